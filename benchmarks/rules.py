"""Which number earns its keep: each switched off in turn, over attacks, sizes and estimators.

python -m benchmarks rules [--quick] [--only FIELD ...] [--fresh]

For every field of `outweigh.fit.tuning.Tuning` the fits are made again with the value that switches
its rule off. Errors are medians of paired ratios on the same samples, times ratios of processor
time on one thread, passes those of a Dask fit of the first sample of each case, of which a quarter
may be held. Beside the attacks on white rows there are a few on correlated rows, of one size each,
at the defaults: many rules decide about such tables alone. The study writes what it has found after
every fit and goes on from there, as long as the library is the same; --fresh begins anew.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from threadpoolctl import threadpool_limits

import outweigh
from benchmarks import WHITE
from benchmarks.correlated import Ellipsoid, attacked
from benchmarks.options import asked
from benchmarks.pairing import RESULTS
from benchmarks.tables import Line, show
from outweigh import RobustMean, RobustPCA, RobustSparseMean, RobustSparsePCA
from outweigh.adversaries import Sample, dense_spike, make, spiked_mixture, two_outlier_spikes
from outweigh.fit.tuning import TUNING, Tuning

# Nothing is tuned on these.
FIRST_SEED = 9000
STORE = RESULTS / "rules-fits.jsonl"
MEANS = ("wrong_support", "hidden_at_zero", "multi_direction", "linear_hiding", "constant_bias")
SIZES = ((600, 60, 5), (2000, 200, 10), (4000, 800, 20))
# Of correlated rows: the covariance, the attack, rows and features.
TABLES = (
    ("blocks: least variable", 1000, 20),
    ("factors: one point", 300, 10),
    ("series .9: gross", 300, 10),
    ("blocks: all directions", 100, 20),
    ("series .6: most variable, rounded", 300, 10),
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
            return table(self.attack, n, d, seed)
        scaled = self.attack.endswith(", scaled")
        sample = make(self.attack.removesuffix(", scaled"), n, d, k, 0.1, random_state=seed)
        if scaled:
            units = np.logspace(0, 2, d)
            sample = replace(sample, X=sample.X * units, truth=sample.truth * units)
        return sample

    def fit(self, X: Any, contamination: Any, tuning: Tuning) -> Any:
        noise = {"covariance": None} if self.attack.endswith(", scaled") else WHITE
        noise = {} if ": " in self.attack else noise
        kinds = {
            "mean": (RobustMean, noise),
            "sparse mean": (RobustSparseMean, {"n_nonzero": self.size[2], **noise}),
            "sparse mean, k unknown": (RobustSparseMean, noise),
            "pca": (RobustPCA, {}),
            "sparse pca": (RobustSparsePCA, {"n_nonzero": self.size[2]}),
        }
        kind, options = kinds[self.estimator]
        tuned = type(kind.__name__, (kind,), {"_tuning": tuning})
        return tuned(contamination=contamination, **options).fit(X)


def table(attack: str, n: int, d: int, seed: int) -> Sample:
    """Return correlated rows about zero, a tenth of them wrong; perhaps of few values."""
    rng, (name, how) = np.random.default_rng(seed), attack.split(": ")
    shape, inliers = Ellipsoid.of(name, d), np.arange(n) >= n // 10
    X = rng.standard_normal((n, d)) @ shape.root.T
    attacked(X, slice(n // 10), how.removesuffix(", rounded"), shape, rng)
    return Sample(np.round(X) if how.endswith("rounded") else X, inliers, np.zeros(d))


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
    yield Case("sparse mean", "blocks: least variable", (1000, 20, 3))
    yield Case("pca", "uneven noise", (300, 20, 20))


def error(fitted: Any, sample: Sample) -> float:
    """Return the distance of the estimate from the truth."""
    if hasattr(fitted, "location_"):
        return float(np.linalg.norm(fitted.location_ - sample.truth))
    found = np.atleast_2d(fitted.components_)
    overlap = np.linalg.norm(np.atleast_2d(sample.truth) @ found.T) ** 2
    return float(np.sqrt(max(2.0 * (len(found) - overlap), 0.0)))


def run(case: Case, seed: int, tuning: Tuning) -> Line:
    """Return the errors and the time of the fits of one sample, known and unknown share."""
    sample = case.draw(seed)
    found: Line = {}
    for name, contamination in (("known", 0.1), ("auto", "auto")):
        start = time.process_time()
        fitted = case.fit(sample.X, contamination, tuning)
        found[f"{name} time"] = time.process_time() - start
        found[name] = error(fitted, sample)
    if seed == FIRST_SEED:
        chunked = da.from_array(sample.X, chunks=(len(sample.X) // 4, -1))
        budget = {"outweigh.gathered-bytes": sample.X.nbytes // 4}
        with dask.config.set(budget, scheduler="synchronous"):
            found["passes"] = int(case.fit(chunked, "auto", tuning).n_passes_)
    return found


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
    variants = {"as it is": TUNING} | {
        rule.name: replace(TUNING, **{rule.name: rule.metadata["off"]})
        for rule in fields(Tuning)
        if not arguments.only or rule.name in arguments.only
    }
    chosen, seeds = list(cases(arguments.quick)), range(FIRST_SEED, FIRST_SEED + 4)
    known, own = stored(), library()
    RESULTS.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1), STORE.open("a") as store:
        for rule, tuning in variants.items():
            for case in chosen:
                for seed in seeds:
                    if (rule, case.name, seed) in known:
                        continue
                    line = {"library": own, "rule": rule, "case": case.name, "seed": seed}
                    line |= run(case, seed, tuning)
                    known[rule, case.name, seed] = line
                    store.write(json.dumps(line) + "\n")
                    store.flush()
            if rule != "as it is":
                print(moved(rule, chosen, seeds, known), flush=True)
    lines = [moved(rule, chosen, seeds, known) for rule in variants if rule != "as it is"]
    show("rules", lines)


def moved(rule: str, chosen: list[Case], seeds: range, known: dict[Any, Line]) -> Line:
    """Return by how much a rule that is switched off moves errors, time and passes."""
    errors, times, passes = {}, [], []
    for case in chosen:
        pairs = [(known[rule, case.name, s], known["as it is", case.name, s]) for s in seeds]
        for share in ("known", "auto"):
            ratios = [off[share] / max(on[share], 1e-300) for off, on in pairs]
            errors[f"{case.name}, {share}"] = float(np.median(ratios))
            times += [off[f"{share} time"] / on[f"{share} time"] for off, on in pairs]
        passes.append(pairs[0][0]["passes"] - pairs[0][1]["passes"])
    worst, best = max(errors, key=errors.__getitem__), min(errors, key=errors.__getitem__)
    return {
        "rule": rule,
        "errors": f"{np.exp(np.mean(np.log(list(errors.values())))):.3f}",
        "worst": f"{errors[worst]:.2f} ({worst})",
        "best": f"{errors[best]:.2f} ({best})",
        "time": f"{np.exp(np.mean(np.log(times))):.2f}",
        "passes": f"{max(passes, key=abs):+d}",
    }
