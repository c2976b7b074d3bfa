"""Which number earns its keep: each switched off in turn, over attacks, sizes and estimators.

python -m benchmarks rules [--quick] [--only FIELD ...] [--fresh]

For every field of `outweigh.fit.tuning.Tuning` the fits that read it are made again with the value
that switches its rule off; where it is not read nothing can move. Errors are medians of paired
ratios on the same samples, times ratios of processor time on one thread where it is read, passes
those of a Dask fit of the first sample of each case, of which a quarter may be held. Beside the
attacks on white rows there are a few on correlated rows, of one size each, at the defaults, where
columns may be skewed, heavy-tailed or of few values: many rules decide about such tables alone. The
study writes what it has found after every fit and goes on from there, as long as the library is the
same; --fresh begins anew.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import outweigh
from benchmarks import WHITE
from benchmarks.correlated import LAWS, Ellipsoid, attacked, moments
from benchmarks.house import listening
from benchmarks.options import asked
from benchmarks.pairing import RESULTS
from benchmarks.tables import Line, show
from outweigh import RobustMean, RobustPCA, RobustSparseMean, RobustSparsePCA
from outweigh.adversaries import Sample, dense_spike, make, spiked_mixture, two_outlier_spikes
from outweigh.fit.tuning import Tuning, tuned

# Nothing is tuned on these.
FIRST_SEED = 9000
STORE = RESULTS / "rules-fits.jsonl"
USUAL = "as it is"
MEANS = ("wrong_support", "hidden_at_zero", "multi_direction", "linear_hiding", "constant_bias")
SIZES = ((600, 60, 5), (2000, 200, 10), (4000, 800, 20))
# Of correlated rows: the covariance, the attack, perhaps the law of the columns; rows and features.
TABLES = (
    ("blocks: least variable", 1000, 20),
    ("factors: one point", 300, 10),
    ("series .9: gross", 300, 10),
    ("blocks: all directions", 100, 20),
    ("series .6: most variable, rounded", 300, 10),
    ("series .6: clean, lognormal", 300, 10),
    ("series .6: most variable, lognormal", 300, 10),
    ("series .6: clean, t3", 150, 8),
    ("series .6: three times as far, exponential", 400, 10),
    ("series .6: least variable, codes", 300, 10),
    ("condition 1000: least variable", 60, 6),
)
# Of these two components are asked for.
SUBSPACES = (
    ("factors: gross", 200, 12),
    ("factors: least variable", 400, 30),
    ("series .9: clean, lognormal", 150, 10),
    ("condition 1000: one point", 100, 10),
)


@dataclass(frozen=True)
class Case:
    """An estimator on an attack of one size."""

    estimator: str
    attack: str
    size: tuple[int, int, int]

    @property
    def name(self) -> str:
        n, d, k = self.size
        return f"{self.estimator}, {self.attack}, {n}x{d} k={k}"

    def draw(self, seed: int) -> Sample:
        n, d, k = self.size
        if self.attack == "spike":
            return spiked_mixture(n, d, k, 0.1, seed, outlier_spike=10.0, outlier_norm="unit")
        if self.attack == "two spikes":
            return two_outlier_spikes(n, d, k, 0.1, seed)
        if self.attack == "dense spike":
            return dense_spike(n, d, d, 0.1, seed, spike=1.0)
        if self.attack == "uneven noise":
            return uneven(n, d, seed)
        if ": " in self.attack:
            return table(self.attack, n, d, seed, components=2 * (self.estimator == "pca"))
        scaled = self.attack.endswith(", scaled")
        sample = make(self.attack.removesuffix(", scaled"), n, d, k, 0.1, random_state=seed)
        if scaled:
            units = np.logspace(0, 2, d)
            sample = replace(sample, X=sample.X * units, truth=sample.truth * units)
        return sample

    def fit(self, X: Any, contamination: Any) -> Any:
        noise = {"covariance": None} if self.attack.endswith(", scaled") else WHITE
        noise = {} if ": " in self.attack else noise
        kinds = {
            "mean": (RobustMean, noise),
            "sparse mean": (RobustSparseMean, {"n_nonzero": self.size[2], **noise}),
            "sparse mean, k unknown": (RobustSparseMean, noise),
            "pca": (RobustPCA, {"n_components": 2} if ": " in self.attack else {}),
            "sparse pca": (RobustSparsePCA, {"n_nonzero": self.size[2]}),
        }
        kind, options = kinds[self.estimator]
        return kind(contamination=contamination, **options).fit(X)


def table(attack: str, n: int, d: int, seed: int, components: int) -> Sample:
    """Return correlated rows, a tenth of them wrong; the truth is their mean, or some components.

    The columns may follow a law, or be rounded, or every other one be a code: 0 or 1.
    """
    rng, (name, how) = np.random.default_rng(seed), attack.split(": ")
    how, _, law = how.partition(", ")
    shape, inliers = Ellipsoid.of(name, d), np.arange(n) >= (0 if how == "clean" else n // 10)
    X = rng.standard_normal((n, d)) @ shape.root.T
    truth = np.zeros(d)
    if law in LAWS:
        X = LAWS[law](X, rng)
        truth = moments(law, d)[0]
    attacked(X, slice(np.count_nonzero(~inliers)), how, shape, rng)
    if law == "rounded":
        X = np.round(X)
    if law == "codes":
        X[:, ::2] = X[:, ::2] > 0.5
        truth[::2] = norm.sf(0.5)
    return Sample(X, inliers, shape.axes[:, ::-1][:, :components].T if components else truth)


def uneven(n: int, d: int, seed: int) -> Sample:
    """Return a component in noise whose deviations fall tenfold, with outliers along another."""
    rng, inliers = np.random.default_rng(seed), np.arange(n) >= n // 10
    truth, other = np.linalg.qr(rng.standard_normal((d, 2)))[0].T
    X = rng.standard_normal((n, d)) * np.logspace(0, -1, d)
    X += np.outer(3.0 * rng.standard_normal(n), truth) + 6.0 * ~inliers[:, None] * other
    return Sample(X, inliers, truth[None, :])


def cases(quick: bool) -> Iterator[Case]:
    """Yield the attacks on all four estimators."""
    for size in SIZES[1:2] if quick else SIZES:
        for attack in MEANS:
            yield Case("sparse mean", attack, size)
            yield Case("mean", attack, size)
        yield Case("sparse mean", "wrong_support, scaled", size)
        yield Case("mean", "wrong_support, scaled", size)
        yield Case("sparse mean, k unknown", "wrong_support", size)
        for attack in ("spike", "two spikes"):
            yield Case("sparse pca", attack, size)
        yield Case("pca", "dense spike", size)
    for attack, n, d in TABLES:
        yield Case("mean", attack, (n, d, d))
    for attack, n, d in SUBSPACES:
        yield Case("pca", attack, (n, d, d))
    yield Case("sparse mean", "blocks: least variable", (1000, 20, 3))
    yield Case("pca", "uneven noise", (300, 20, 20))


def error(fitted: Any, sample: Sample) -> float:
    """Return the distance of the estimate from the truth."""
    if hasattr(fitted, "location_"):
        return float(np.linalg.norm(fitted.location_ - sample.truth))
    found = np.atleast_2d(fitted.components_)
    overlap = np.linalg.norm(np.atleast_2d(sample.truth) @ found.T) ** 2
    return float(np.sqrt(max(2.0 * (len(found) - overlap), 0.0)))


def run(case: Case, seed: int) -> Line:
    """Return the errors and the time of the fits of one sample, known and unknown share.

    A fit that fails, as some do without a rule, errs without bound.
    """
    sample = case.draw(seed)
    found: Line = {}
    for name, contamination in (("known", 0.1), ("auto", "auto")):
        start = time.process_time()
        try:
            found[name] = error(case.fit(sample.X, contamination), sample)
        except ArithmeticError:
            found[name] = math.inf
        found[f"{name} time"] = time.process_time() - start
    if seed == FIRST_SEED and math.isfinite(found["auto"]):
        chunked = da.from_array(sample.X, chunks=(len(sample.X) // 4, -1))
        budget = {"outweigh.gathered-bytes": sample.X.nbytes // 4}
        with dask.config.set(budget, scheduler="synchronous"):
            found["passes"] = int(case.fit(chunked, "auto").n_passes_)
    return found


def run_usual(case: Case, seed: int) -> Line:
    """Return the same with the numbers as they are, and which of them were read."""
    with listening() as names:
        run(case, seed)
    # Listening takes time.
    return run(case, seed) | {"read": sorted(names)}


def library() -> str:
    """Return what tells this library from others: a digest of its source."""
    sources = sorted(Path(outweigh.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def stored() -> dict[tuple[str, str, int], Line]:
    """Return what earlier runs of the same library have found."""
    if not STORE.exists():
        return {}
    lines = [json.loads(text) for text in STORE.read_text().splitlines()]
    return {
        (line["rule"], line["case"], line["seed"]): line
        for line in lines
        if line["library"] == library()
    }


def main(argv: list[str]) -> None:
    """Run what is missing, and print by how much each rule moves what."""
    arguments = asked(
        __name__,
        __doc__,
        argv,
        quick=(False, "one size, four seeds"),
        only={"nargs": "*", "help": "fields of Tuning; all by default"},
        fresh=(False, "forget what earlier runs found"),
    )
    if arguments.fresh:
        STORE.unlink(missing_ok=True)
    rules = {
        rule.name: rule.metadata["off"]
        for rule in fields(Tuning)
        if not arguments.only or rule.name in arguments.only
    }
    chosen, seeds = list(cases(arguments.quick)), range(FIRST_SEED, FIRST_SEED + 4)
    known, own = stored(), library()
    RESULTS.mkdir(parents=True, exist_ok=True)
    lines = []
    with threadpool_limits(1), warnings.catch_warnings(), STORE.open("a") as store:
        # What stalls without a rule.
        warnings.simplefilter("ignore", ConvergenceWarning)

        def keep(rule: str, case: Case, seed: int, found: Line) -> None:
            line = {"library": own, "rule": rule, "case": case.name, "seed": seed} | found
            known[rule, case.name, seed] = line
            store.write(json.dumps(line) + "\n")
            store.flush()

        for case in chosen:
            for seed in seeds:
                if (USUAL, case.name, seed) not in known:
                    keep(USUAL, case, seed, run_usual(case, seed))
        for rule, off in rules.items():
            for case in chosen:
                for seed in seeds:
                    usual = known[USUAL, case.name, seed]
                    if rule in usual["read"] and (rule, case.name, seed) not in known:
                        with tuned(**{rule: off}):
                            keep(rule, case, seed, run(case, seed))
            lines.append(moved(rule, chosen, seeds, known))
            print(lines[-1], flush=True)
    show("rules", lines)


def moved(rule: str, chosen: list[Case], seeds: range, known: dict[Any, Line]) -> Line:
    """Return by how much a rule that is switched off moves errors, time and passes."""
    errors, times, passes, read = {}, [1.0], [0], 0
    for case in chosen:
        usual = [known[USUAL, case.name, s] for s in seeds]
        # A fit that does not read the number is as it was.
        pairs = [
            (known.get((rule, case.name, s), on), on) for s, on in zip(seeds, usual, strict=True)
        ]
        read += sum(off is not on for off, on in pairs)
        for share in ("known", "auto"):
            ratios = [off[share] / max(on[share], 1e-300) for off, on in pairs]
            errors[f"{case.name}, {share}"] = float(np.median(ratios))
            times += [
                off[f"{share} time"] / on[f"{share} time"] for off, on in pairs if off is not on
            ]
        passes.append(pairs[0][0].get("passes", pairs[0][1]["passes"]) - pairs[0][1]["passes"])
    worst, best = max(errors, key=errors.__getitem__), min(errors, key=errors.__getitem__)
    return {
        "rule": rule,
        "read by": f"{read} of {len(chosen) * len(seeds)}",
        "errors": f"{np.exp(np.mean(np.log(list(errors.values())))):.3f}",
        "worst": f"{errors[worst]:.2f} ({worst})" if errors[worst] > 1.005 else "1.00",
        "best": f"{errors[best]:.2f} ({best})" if errors[best] < 0.995 else "1.00",
        "time": f"{np.exp(np.mean(np.log(times))):.2f}",
        "passes": f"{max(passes, key=abs):+d}",
    }
