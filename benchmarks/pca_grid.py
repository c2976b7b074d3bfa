"""Three hundred tables with wrong rows, fixed once and for all: components against all peers.

    python -m benchmarks pca_grid [--every K] [--fresh]

Case number i is a pure function of i. The grid was written down before any rule was judged by it
and is not changed afterwards. The error is the root mean square of the sines of the angles from the
leading eigenvectors of the covariance of clean rows to the components found. All methods are told
the number of components, and of entries where they are sparse; those that take a share of wrong
rows are told it, `outweigh` in half of the cases. The oracle is PCA of the clean rows. ROBPCA is
robpy's, where that is installed.

Each case is written to a file as it ends: a run that was interrupted goes on where it ended, and
after a change of the library only what the library answers is measured again.
"""

from __future__ import annotations

import importlib.util
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import sqrtm, toeplitz
from sklearn.covariance import MinCovDet
from threadpoolctl import threadpool_limits

from benchmarks.options import asked
from benchmarks.overlap import fingerprint, read
from benchmarks.pairing import RESULTS
from benchmarks.pca_cases import sine
from benchmarks.real_peers import mended_robpy
from benchmarks.tables import show
from outweigh.baselines import PCA_BASELINES
from outweigh.baselines.pca import leading_directions
from outweigh.estimators.pca import RobustPCA, RobustSparsePCA
from outweigh.norms.entrywise import hard_threshold

N_CASES = 300
# Neither the seeds of the tests nor those of the other studies.
SEED = 8000
SIZES = ((60, 200), (100, 10), (200, 50), (300, 20), (500, 100), (1000, 30), (2000, 60))
SHARES = (0.05, 0.1, 0.2, 0.3)
NOISES = ("white", "uneven", "series", "decaying", "t5")
# Of the factors, in units of the largest variance of the noise; those after the third are weak.
STRENGTHS = (8.0, 5.0, 3.0, 1.5, 1.5)
ATTACKS = (
    "none",
    "far all over",
    "far place",
    "point",
    "cluster",
    "spike",
    "four spikes",
    "wide",
    "beside",
    "leverage",
    "half and half",
    "columns",
)
# A peer is better where its error is smaller by this factor and this much.
BETTER, BY = 1.3, 0.05


@dataclass(frozen=True)
class Case:
    """A table of the grid, and what the estimators are told about it."""

    number: int
    attack: str
    noise: str
    n: int
    d: int
    eps: float
    r: int
    further: int
    n_nonzero: int | None
    known: bool


def case(number: int) -> Case:
    """Return case `number` of the grid: 25 of each attack, all else nearly independent of it."""
    replicate, attack = divmod(number, len(ATTACKS))
    n, d = SIZES[(attack + replicate) % len(SIZES)]
    noise = NOISES[replicate % len(NOISES)]
    r = 1 + (replicate + attack // 4) % 3
    sparse = noise == "white" and replicate % 2 == 0
    return Case(
        number=number,
        attack=ATTACKS[attack],
        noise=noise,
        n=n,
        d=d,
        eps=0.0 if ATTACKS[attack] == "none" else SHARES[(attack + replicate // 5) % len(SHARES)],
        r=r,
        further=0 if sparse else 2 * (replicate // 3 % 2),
        n_nonzero=min(6, d // r) if sparse else None,
        known=(attack + replicate) % 2 == 0,
    )


def draw(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows, which of them are wrong, and the true components as rows."""
    rng = np.random.default_rng([SEED, case.number])
    n, d, count = case.n, case.d, case.r + case.further
    noise = _noise(rng, case.noise, d)
    height = float(np.linalg.eigvalsh(noise)[-1])
    if case.n_nonzero is None:
        axes = np.linalg.qr(rng.standard_normal((d, count)))[0]
    else:
        axes = np.zeros((d, count))
        for j, features in enumerate(np.split(rng.permutation(d)[: count * case.n_nonzero], count)):
            axes[features, j] = rng.choice([-1.0, 1.0], case.n_nonzero) / np.sqrt(case.n_nonzero)
    strengths = np.array([*STRENGTHS[: case.r], *STRENGTHS[3 : 3 + case.further]])
    covariance = noise + height * (axes * strengths) @ axes.T
    truth = np.linalg.eigh(covariance)[1][:, ::-1][:, : case.r]
    root = np.real(sqrtm(covariance))
    X = rng.standard_normal((n, d)) @ root
    if case.noise == "t5":
        X *= np.sqrt(3.0 / rng.chisquare(5.0, n))[:, None]
    wrong = np.arange(n) < round(case.eps * n)
    if wrong.any():
        X[wrong] = _attacked(rng, case.attack, X[wrong], root, truth)
    return X, wrong, truth.T


def _noise(rng: np.random.Generator, name: str, d: int) -> np.ndarray:
    """Return the covariance of the noise, of a mean variance of one."""
    if name == "uneven":
        variances = np.geomspace(0.25, 4.0, d)
        return np.diag(variances / variances.mean())
    if name == "series":
        return np.asarray(toeplitz(0.8 ** np.arange(d)))
    if name == "decaying":
        variances = 1.0 / np.arange(1, d + 1)
        turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
        return np.asarray((turn * (variances / variances.mean())) @ turn.T)
    return np.eye(d)


def _attacked(
    rng: np.random.Generator, name: str, rows: np.ndarray, root: np.ndarray, truth: np.ndarray
) -> np.ndarray:
    """Return the rows as an attack leaves them."""
    n, d = rows.shape
    beside = rng.standard_normal((d, 4))
    beside = np.linalg.qr(beside - truth @ (truth.T @ beside))[0]
    spread = np.sqrt(np.sum((root @ beside) ** 2, axis=0))
    place = rng.standard_normal(d)
    # Just beyond the bulk, in deviations of the clean rows.
    place = (np.sqrt(d) + 6.0) * root @ (place / np.linalg.norm(place))
    if name == "far all over":
        return rows + 20.0 * rng.standard_normal((n, d)) @ root
    if name == "far place":
        return rows + 10.0 * place
    if name == "point":
        return np.tile(place, (n, 1))
    if name == "cluster":
        return place + 0.1 * rng.standard_normal((n, d)) @ root
    if name in ("spike", "four spikes"):
        used = beside[:, : 4 if name == "four spikes" else 1]
        height = np.sqrt(10.0) * np.linalg.norm(root, 2)
        return rows + height * rng.standard_normal((n, used.shape[1])) @ used.T
    if name == "wide":
        return 3.0 * rows
    if name == "beside":
        return rows + 5.0 * spread[0] * beside[:, 0]
    if name == "leverage":
        along = 4.0 * float(np.linalg.norm(root @ truth[:, 0])) * truth[:, 0]
        return rows + along + 4.0 * spread[0] * beside[:, 0]
    if name == "half and half":
        far = 20.0 * rng.standard_normal((n, d)) @ root
        return np.where(np.arange(n)[:, None] % 2 == 0, rows + far, place + 0.1 * rows)
    columns = rng.choice(d, 3, replace=False)
    shifted = rows.copy()
    shifted[:, columns] += 8.0 * np.sqrt(np.sum(root[columns] ** 2, axis=1))
    return shifted


def wrapped_covariance(X: np.ndarray) -> np.ndarray:
    """Return the covariance of columns whose far values were drawn in and then sent to zero.

    Raymaekers and Rousseeuw, "Fast robust correlation for high-dimensional data", Technometrics 63
    (2021), with their constants.
    """
    scale = 1.4826 * np.median(np.abs(X - np.median(X, axis=0)), axis=0)
    z = (X - np.median(X, axis=0)) / scale
    size = np.abs(z)
    drawn_in = np.sign(z) * 1.540793 * np.tanh(0.8622731 * (4.0 - size))
    z = np.where(size < 1.5, z, np.where(size < 4.0, drawn_in, 0.0)) * scale
    return np.cov(z.T)


def robpca(case: Case, X: np.ndarray) -> np.ndarray:
    """Return robpy's components; its core is smaller where more than a quarter is wrong."""
    from robpy.pca import ROBPCA

    mended_robpy()
    core = 0.75 if case.eps <= 0.2 else 0.5
    found = ROBPCA(n_components=case.r, alpha=core, random_seed=0).fit(X).components_.T
    return np.array([hard_threshold(row, case.n_nonzero or case.d) for row in found])


Method = Callable[[Case, np.ndarray], np.ndarray]


def baseline(name: str, **options: Any) -> Method:
    """Return what fits a baseline of the library."""

    def found(case: Case, X: np.ndarray) -> np.ndarray:
        est = PCA_BASELINES[name](n_nonzero=case.n_nonzero, **options)
        if hasattr(est, "n_components"):
            est.n_components = case.r
        if hasattr(est, "contamination"):
            est.contamination = max(case.eps, 1.0 / case.n)
        return est.fit(X).components_

    return found


def ours(case: Case, X: np.ndarray) -> np.ndarray:
    """Return the components of the library."""
    told = case.eps if case.known else "auto"
    if case.n_nonzero is None:
        return RobustPCA(case.r, contamination=told).fit(X).components_
    return RobustSparsePCA(case.r, case.n_nonzero, contamination=told).fit(X).components_


# Each with the cases that it can be asked for.
PEERS: dict[str, tuple[Method, Callable[[Case], bool]]] = {
    "PCA": (baseline("empirical"), lambda c: True),
    "SparsePCA": (baseline("empirical_sparse", max_iter=30), lambda c: c.n_nonzero is not None),
    "ROBPCA (robpy)": (robpca, lambda c: importlib.util.find_spec("robpy") is not None),
    "spherical": (baseline("spherical"), lambda c: True),
    "Tyler": (baseline("tyler"), lambda c: True),
    "MinCovDet": (
        lambda c, X: leading_directions(
            MinCovDet(random_state=0).fit(X).covariance_, c.r, c.n_nonzero or c.d
        ),
        lambda c: c.n >= 4 * c.d,
    ),
    "wrapped covariance": (
        lambda c, X: leading_directions(wrapped_covariance(X), c.r, c.n_nonzero or c.d),
        lambda c: True,
    ),
    "filter": (baseline("filter"), lambda c: c.r == 1),
    "sparse filter": (baseline("filter_sparse"), lambda c: c.r == 1 and c.n_nonzero is not None),
}


def measured(method: Method, case: Case, X: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return the error of a method, one where it fails, and its processor time."""
    start = time.process_time()
    try:
        error = sine(np.asarray(method(case, X)), truth)
    except (ValueError, np.linalg.LinAlgError, FloatingPointError):
        error = 1.0
    return {"error": error, "seconds": time.process_time() - start}


def run(numbers: Sequence[int], fresh: bool) -> list[dict[str, Any]]:
    """Fit what the file does not hold yet, and return the records of the cases asked for."""
    path = RESULTS / "pca-grid.jsonl"
    held = {} if fresh else {record["number"]: record for record in read(path)}
    library = fingerprint()
    for number in numbers:
        record = held.get(number, {"number": number, "found": {}, "library": ""})
        asked, found = case(number), record["found"]
        missing = [name for name, (_, fits) in PEERS.items() if fits(asked) and name not in found]
        if record["library"] != library or missing:
            X, wrong, truth = draw(asked)
            if record["library"] != library:
                found["outweigh"] = measured(ours, asked, X, truth)
            if "oracle" not in found:
                oracle = PEERS["PCA"][0]
                if asked.n_nonzero is not None:
                    oracle = lambda c, X: leading_directions(np.cov(X.T), c.r, c.n_nonzero)  # noqa: E731
                found["oracle"] = measured(oracle, asked, X[~wrong], truth)
            for name in missing:
                found[name] = measured(PEERS[name][0], asked, X, truth)
            held[number] = {"number": number, "found": found, "library": library}
            path.write_text("".join(json.dumps(held[i]) + "\n" for i in sorted(held)))
    return [held[number] for number in numbers]


def by_method(records: Sequence[dict[str, Any]]) -> list[dict[str, str | float]]:
    """Return one line a method: its mean error and ours on the cases that it was asked for."""
    lines: list[dict[str, str | float]] = []
    for name in ("outweigh", "oracle", *PEERS):
        pairs = [(r["found"]["outweigh"], r["found"][name]) for r in records if name in r["found"]]
        if not pairs:
            continue
        us, them = (np.array([p[i]["error"] for p in pairs]) for i in (0, 1))
        seconds = [sum(p[i]["seconds"] for p in pairs) for i in (0, 1)]
        better = np.mean((us > BETTER * them) & (us > them + BY))
        worse = np.mean((them > BETTER * us) & (them > us + BY))
        lines.append(
            {
                "method": name,
                "cases": float(len(pairs)),
                "error": float(them.mean()),
                "outweigh": float(us.mean()),
                "better than outweigh": f"{better:.1%}",
                "worse": f"{worse:.1%}",
                "time": seconds[1] / seconds[0],
            }
        )
    return lines


def by_attack(records: Sequence[dict[str, Any]]) -> list[dict[str, str | float]]:
    """Return the mean error of each method under each attack, where it is asked for all cases."""
    everywhere = [
        name
        for name in ("outweigh", "oracle", *PEERS)
        if all(name in record["found"] for record in records)
    ]
    parts = {"attack": ATTACKS, "noise": NOISES}
    return [
        {
            "tables": f"{kind}: {value}",
            **{
                name: float(np.mean([r["found"][name]["error"] for r in part]))
                for name in everywhere
            },
        }
        for kind, values in parts.items()
        for value in values
        if (part := [r for r in records if getattr(case(r["number"]), kind) == value])
    ]


def main(argv: list[str]) -> None:
    """Run the grid and print its tables."""
    arguments = asked(
        __name__,
        __doc__,
        argv,
        every=(1, "take every so manieth case"),
        fresh=(False, "forget what was measured before"),
    )
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        records = run(range(0, N_CASES, arguments.every), arguments.fresh)
    show("pca-grid", by_method(records))
    show("pca-grid-attacks", by_attack(records))
    worst = sorted(records, key=lambda r: min_of_peers(r) - r["found"]["outweigh"]["error"])
    for record in worst[:15]:
        print(case(record["number"]), f"{record['found']['outweigh']['error']:.3f}", end=" ")
        print(f"best peer {min_of_peers(record):.3f}")


def min_of_peers(record: dict[str, Any]) -> float:
    """Return the least error of the peers in one case."""
    return min(float(v["error"]) for k, v in record["found"].items() if k in PEERS)
