"""Robust PCA against the same read-out on the clean rows and against its peers.

python -m benchmarks pca [--study NAME ...] [--seeds N] [--peer-seeds N]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.options import asked
from benchmarks.pairing import Row, format_table, paired_ratio, save
from outweigh.adversaries import (
    Sample,
    dense_spike,
    spike_and_cluster,
    spiked_mixture,
    two_outlier_spikes,
)
from outweigh.baselines import EmpiricalPCA, FilterPCA, FilterSparsePCA
from outweigh.estimators.pca import RobustPCA, RobustSparsePCA
from outweigh.fit.readers import DenseReader, SparseReader, orthonormal

# Nothing was tuned on seeds below 10000.
FIRST_SEED = 0
RHO = 1.0


@dataclass(frozen=True)
class Case:
    """A model with the number of components and entries that the estimators are told."""

    name: str
    draw: Callable[[int], Sample]
    contamination: float
    n_components: int = 1
    n_nonzero: int | None = None
    target: float | None = 1.25


def rows() -> Iterator[Case]:
    """Yield the sparse-PCA rows of the authors' figures."""
    for n in (1010, 2010, 4010):
        yield Case(
            f"40 x spike, k=4, d=200, n={n}",
            lambda seed, n=n: spiked_mixture(n, 200, 4, 0.1, seed),
            0.1,
            n_nonzero=4,
            target=1.15,
        )
    for k in (4, 10, 19, 28):
        yield Case(
            f"2 x spike, k={k}, d=300, n=2000",
            lambda seed, k=k: spiked_mixture(
                2000, 300, k, 0.1, seed, outlier_spike=2.0, outlier_norm="unit"
            ),
            0.1,
            n_nonzero=k,
            target=1.3 if k == 28 else 1.15,
        )


def attacks() -> Iterator[Case]:
    """Yield outlier spikes of several heights, two of them, and a tight cluster."""
    for eps in (0.02, 0.1, 0.2):
        for height in (1.0, 2.0, 10.0):
            yield Case(
                f"{height:.0f} x spike, eps={eps}",
                lambda seed, h=height, e=eps: spiked_mixture(
                    2000, 200, 8, e, seed, outlier_spike=h, outlier_norm="unit"
                ),
                eps,
                n_nonzero=8,
            )
        yield Case(
            f"two spikes, eps={eps}",
            lambda seed, e=eps: two_outlier_spikes(2000, 200, 8, e, seed),
            eps,
            n_nonzero=8,
        )
        yield Case(
            f"tight cluster, eps={eps}",
            lambda seed, e=eps: spike_and_cluster(2000, 200, 8, e, seed),
            eps,
            n_nonzero=8,
        )


def dense() -> Iterator[Case]:
    """Yield dense components, outliers with a spike of 10 on ten features."""
    for spike in (0.5, 1.0, 3.0):
        for d in (50, 200):
            for n in (4000, 8000):
                yield Case(
                    f"dense, spike {spike}, d={d}, n={n}",
                    lambda seed, s=spike, d=d, n=n: dense_spike(n, d, d, 0.1, seed, spike=s),
                    0.1,
                )


def several() -> Iterator[Case]:
    """Yield two and three sparse components, disjoint and overlapping."""
    for count, heights in ((2, (1.5, 1.0)), (3, (2.0, 1.5, 1.0))):
        for overlapping in (False, True):
            yield Case(
                f"{count} components, {'overlapping' if overlapping else 'disjoint'}",
                lambda seed, c=count, h=heights, o=overlapping: spiked_mixture(
                    3000,
                    200,
                    8,
                    0.1,
                    seed,
                    spike=h,
                    n_components=c,
                    overlapping=o,
                    outlier_norm="unit",
                ),
                0.1,
                n_components=count,
                n_nonzero=8,
            )


def error(components: np.ndarray, truth: np.ndarray) -> float:
    """Return |P - P*|_F of the projectors: sqrt(2) times the sines of the principal angles."""
    overlap = np.linalg.norm(truth @ orthonormal(components.T)) ** 2
    return float(np.sqrt(max(2.0 * (truth.shape[0] - overlap), 0.0)))


def oracle(case: Case, sample: Sample) -> np.ndarray:
    """Return the same read-out from the clean rows."""
    clean = sample.X[sample.inliers]
    away = clean - clean.mean(axis=0)
    excess = away.T @ away / len(clean) - np.eye(clean.shape[1])
    if case.n_nonzero is None:
        return DenseReader(case.n_components).plain(excess).T
    return SparseReader((case.n_nonzero,) * case.n_components).best(excess).T


def ours(case: Case, contamination: float | str) -> RobustPCA | RobustSparsePCA:
    if case.n_nonzero is None:
        return RobustPCA(case.n_components, contamination=contamination)
    return RobustSparsePCA(case.n_components, case.n_nonzero, contamination=contamination)


def peers(case: Case) -> dict[str, object]:
    """Return what to compare with; the filters estimate one component."""
    k = case.n_nonzero
    found: dict[str, object] = {"PCA": EmpiricalPCA(case.n_components, n_nonzero=k)}
    if case.n_components == 1:
        found["dense filter"] = FilterPCA(n_nonzero=k)
        if k is not None:
            eps = case.contamination
            found["sparse filter"] = FilterSparsePCA(k, eps, RHO)
            found["sparse filter, signs known"] = FilterSparsePCA(k, eps, RHO, nonnegative=True)
    return found


def run_case(case: Case, n_seeds: int, n_peer_seeds: int) -> list[Row]:
    """Return the ratios to the oracle, known and unknown eps, and to the best peer."""
    errors: dict[str, list[float]] = {}
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        sample = case.draw(seed)

        def note(name: str, components: np.ndarray, sample: Sample = sample) -> None:
            errors.setdefault(name, []).append(error(components, sample.truth))

        note("oracle", oracle(case, sample))
        note("auto", ours(case, "auto").fit(sample.X).components_)
        if seed < FIRST_SEED + n_peer_seeds:
            note("eps given", ours(case, case.contamination).fit(sample.X).components_)
            for name, peer in peers(case).items():
                note(name, peer.fit(sample.X).components_)
    found = [
        paired_ratio(case.name, "auto / oracle", errors["auto"], errors["oracle"], case.target)
    ]
    if n_peer_seeds:
        given = errors["eps given"]
        found.append(
            paired_ratio(
                case.name, "eps given / oracle", given, errors["oracle"][: len(given)], case.target
            )
        )
        best = min(peers(case), key=lambda name: float(np.median(errors[name])))
        found.append(
            paired_ratio(
                case.name, f"auto / {best}", errors["auto"][: len(given)], errors[best], 1.05
            )
        )
    print(format_table(found).split("\n", 2)[2], flush=True)
    return found


STUDIES = {"rows": rows, "attacks": attacks, "dense": dense, "several": several}


def main(argv: list[str]) -> None:
    """Run the studies and print their tables."""
    arguments = asked(
        __name__,
        __doc__,
        argv,
        study={"nargs": "*", "choices": list(STUDIES)},
        seeds=50,
        peer_seeds=50,
    )
    with threadpool_limits(1):
        for name in arguments.study or STUDIES:
            found: list[Row] = []
            for case in STUDIES[name]():
                found += run_case(case, arguments.seeds, arguments.peer_seeds)
                save(f"pca-{name}", found)
            print(f"\npca-{name}\n{format_table(found)}")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
