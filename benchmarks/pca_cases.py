"""Hard cases for components: clean rows of any shape and tail, far rows, clusters, spikes, spectra.

python -m benchmarks pca_cases [--group NAME ...] [--seeds N] [--first SEED]

Each line is one case over several seeds: the share of the wrong rows that is flagged (least over
the seeds), that of the clean rows (median and largest), and the error of the components, the root
mean square of the sines to the true ones, over that of the same read-out of the clean rows (median
and largest). Fits that raise are counted.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.linalg import toeplitz
from scipy.stats import norm
from scipy.stats import t as student_t
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from benchmarks.options import asked
from benchmarks.pairing import FIRST_SEED
from benchmarks.pca_real import mixtures
from benchmarks.tables import show
from outweigh.adversaries import spiked_mixture
from outweigh.estimators.base import RobustEstimator
from outweigh.estimators.pca import RobustPCA, RobustSparsePCA
from outweigh.fit.readers import SparseReader, orthonormal

Drawn = tuple[np.ndarray, np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class Case:
    """Rows to draw, with a mask of the wrong ones and the true components, and what is fitted.

    ``n_nonzero`` is 0 for dense components.
    """

    name: str
    draw: Callable[[np.random.Generator], Drawn]
    n_components: int = 1
    known: bool = False
    n_nonzero: int = 0

    def estimator(self, wrong: np.ndarray) -> RobustEstimator:
        """Return what is fitted to the rows."""
        contamination = float(wrong.mean()) if self.known else "auto"
        if self.n_nonzero:
            return RobustSparsePCA(self.n_components, self.n_nonzero, contamination=contamination)
        return RobustPCA(self.n_components, contamination=contamination)

    def oracle(self, rows: np.ndarray) -> np.ndarray:
        """Return the same read-out of the clean rows alone."""
        if self.n_nonzero:
            excess = np.cov(rows.T, bias=True) - np.eye(rows.shape[1])
            return SparseReader((self.n_nonzero,) * self.n_components).best(excess).T
        return PCA(self.n_components).fit(rows).components_


def factors(
    rng: np.random.Generator, n: int, d: int, variances: list[float] | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return white noise with factors of so much excess variance, and their directions."""
    axes = np.linalg.qr(rng.standard_normal((d, max(len(variances), 1))))[0][:, : len(variances)]
    scores = rng.standard_normal((n, len(variances))) * np.sqrt(variances)
    return rng.standard_normal((n, d)) + scores @ axes.T, axes.T


def clean() -> Iterator[Case]:
    """Yield clean Gaussian rows of five rows a feature or more, with any number of factors."""
    for d, count, r in product((5, 12, 20, 50), (0, 1, 3, 8), (1, 3)):
        if count >= d:
            continue

        def draw(rng: np.random.Generator, d: int = d, count: int = count, r: int = r) -> Drawn:
            n = d * int(rng.choice([5, 10, 40]))
            X, axes = factors(
                rng, n, d, np.linspace(20.0, 4.0, count) if count > 1 else [6.0][:count]
            )
            return X, np.zeros(n, dtype=bool), axes[:r] if count >= r else None

        yield Case(f"clean, d={d}, {count} factors, r={r}", draw, r)
    for d, r in product((8, 30), (1, 4)):

        def equal(rng: np.random.Generator, d: int = d, r: int = r) -> Drawn:
            X = rng.standard_normal((20 * d, d)) + np.sqrt(3 / 7) * rng.standard_normal((20 * d, 1))
            return X, np.zeros(len(X), dtype=bool), np.full((1, d), d**-0.5) if r == 1 else None

        def series(rng: np.random.Generator, d: int = d) -> Drawn:
            X = correlated(rng, 20 * d, d)
            return X, np.zeros(len(X), dtype=bool), None

        yield Case(f"clean, equicorrelated .3, d={d}, r={r}", equal, r)
        yield Case(f"clean, series .8, d={d}, r={r}", series, r)


def correlated(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Return rows of a series whose neighbours have a correlation of 0.8."""
    return rng.standard_normal((n, d)) @ np.linalg.cholesky(toeplitz(0.8 ** np.arange(d))).T


MARGINS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "lognormal .5": lambda z: np.exp(0.5 * z),
    "lognormal 1": np.exp,
    "exponential": lambda z: -norm.logsf(z),
    "laplace": lambda z: -np.sign(z) * (np.log(2.0) + norm.logsf(np.abs(z))),
    "t3": lambda z: student_t.ppf(norm.cdf(z), 3),
    "t5": lambda z: student_t.ppf(norm.cdf(z), 5),
}


def tails() -> Iterator[Case]:
    """Yield rows of skewed and heavy columns, clean or with a cluster eight deviations away."""
    for name, noise, (n, d), share in product(
        [*MARGINS, "mixed"], ("series", "factors"), ((300, 8), (1000, 20), (2000, 50)), (0.0, 0.1)
    ):

        def draw(
            rng: np.random.Generator,
            name: str = name,
            noise: str = noise,
            n: int = n,
            d: int = d,
            share: float = share,
        ) -> Drawn:
            if noise == "series":
                z = correlated(rng, n, d)
            else:
                z, axes = factors(rng, n, d, np.full(3, d / 2.0))
                z /= np.sqrt(1.0 + d / 2.0 * np.square(axes).sum(axis=0))
            laws = list(MARGINS.values()) if name == "mixed" else [MARGINS[name]]
            X = np.column_stack([laws[j % len(laws)](column) for j, column in enumerate(z.T)])
            middle = np.median(X, axis=0)
            spread = 1.4826 * np.median(np.abs(X - middle), axis=0)
            wrong = np.arange(n) < round(share * n)
            place = rng.choice([-1.0, 1.0], d) * 8.0 / np.sqrt(d)
            X[wrong] = middle + spread * (place + 0.3 * rng.standard_normal((wrong.sum(), d)))
            return X * 10.0 ** rng.uniform(-0.5, 0.5, d), wrong, None

        kind = "cluster" if share else "clean"
        for r in (1, 5):
            yield Case(f"{kind}, {name}, {noise}, {n}x{d}, r={r}", draw, r)


def small() -> Iterator[Case]:
    """Yield clean rows with many factors for few rows."""
    for n, d, r in ((200, 100, 10), (100, 50, 5)):

        def draw(rng: np.random.Generator, n: int = n, d: int = d, r: int = r) -> Drawn:
            X, axes = factors(rng, n, d, np.full(r, 3.0))
            return X, np.zeros(n, dtype=bool), axes

        yield Case(f"clean, {n}x{d}, r={r}", draw, r)


def far() -> Iterator[Case]:
    """Yield rows of which some are far away, at one place or all over."""
    shapes = ((200, 5), (300, 10), (25, 40), (60, 30), (100, 100), (500, 50))
    for (n, d), share, known, place in product(
        shapes, (0.05, 0.2, 0.35), (False, True), ("one place", "all over")
    ):

        def draw(
            rng: np.random.Generator,
            n: int = n,
            d: int = d,
            share: float = share,
            place: str = place,
        ) -> Drawn:
            X, axes = factors(rng, n, d, [9.0])
            wrong = np.arange(n) < max(round(share * n), 1)
            X[wrong] += (
                100.0 if place == "one place" else 100.0 * rng.standard_normal((wrong.sum(), d))
            )
            return X, wrong, axes

        yield Case(
            f"far, {place}, {n}x{d}, {share:.0%}, {'known' if known else 'auto'}", draw, 1, known
        )


def clusters() -> Iterator[Case]:
    """Yield tight clusters and repeated rows some deviations away, in ten columns."""
    kinds, noises = ("point", "cluster"), ("white", "correlated")
    for kind, noise, share, away, known in product(
        kinds, noises, (0.05, 0.15, 0.3), (6.0, 10.0), (False, True)
    ):

        def draw(
            rng: np.random.Generator,
            kind: str = kind,
            noise: str = noise,
            share: float = share,
            away: float = away,
        ) -> Drawn:
            n, d = 600, 10
            X = rng.standard_normal((n, d)) if noise == "white" else correlated(rng, n, d)
            wrong = np.arange(n) < round(share * n)
            place = rng.standard_normal(d)
            place *= away / np.linalg.norm(place)
            if noise == "correlated":
                place = np.linalg.cholesky(toeplitz(0.8 ** np.arange(d))) @ place
            X[wrong] = place
            if kind == "cluster":
                X[wrong] += 0.1 * rng.standard_normal((wrong.sum(), d))
            return X, wrong, None

        name = f"{kind}, {noise}, {share:.0%}, {away:.0f} dev., {'known' if known else 'auto'}"
        yield Case(name, draw, 2, known)


def spikes() -> Iterator[Case]:
    """Yield several outlier spikes beside a sparse component, and spikes on its own features."""
    for count in (4, 5, 8, 12):

        def draw(rng: np.random.Generator, count: int = count) -> Drawn:
            sample = spiked_mixture(
                2000,
                200,
                4,
                0.1,
                int(rng.integers(2**31)),
                outlier_norm="unit",
                n_outlier_spikes=count,
            )
            return sample.X, ~sample.inliers, sample.truth

        yield Case(f"{count} outlier spikes, sparse", draw, 1, False, 4)
    for share, angle in product((0.1, 0.2), (30.0, 60.0, 90.0)):

        def turned(rng: np.random.Generator, share: float = share, angle: float = angle) -> Drawn:
            X = rng.standard_normal((2000, 200))
            support = rng.choice(200, 8, replace=False)
            pair = np.linalg.qr(rng.standard_normal((8, 2)))[0]
            u, v = np.zeros(200), np.zeros(200)
            u[support] = pair[:, 0]
            at = np.deg2rad(angle)
            v[support] = np.cos(at) * pair[:, 0] + np.sin(at) * pair[:, 1]
            wrong = np.arange(2000) < 2000 * share
            X += rng.standard_normal((2000, 1)) * np.where(wrong[:, None], np.sqrt(10.0) * v, u)
            return X, wrong, u[None, :]

        yield Case(f"spike on the same features, {angle:.0f} degrees, {share}", turned, 1, False, 8)


def spectra() -> Iterator[Case]:
    """Yield smooth curves with an extra peak or a shifted baseline in some."""
    for kind, share, r in product(("peak", "baseline"), (0.05, 0.15, 0.2), (1, 2, 3, 5)):

        def draw(rng: np.random.Generator, kind: str = kind, share: float = share) -> Drawn:
            x = np.linspace(0.0, 1.0, 200)
            n = int(rng.choice([40, 80, 200]))
            peaks = np.exp(-((x - 0.3) ** 2) / 0.02) + 0.7 * np.exp(-((x - 0.65) ** 2) / 0.03)
            modes = [np.exp(-((x - c) ** 2) / 0.05) for c in (0.2, 0.45, 0.7)]
            scores = rng.standard_normal((n, 5)) * [1.0, 0.4, 0.2, 0.1, 0.05]
            X = (1.0 + 0.1 * rng.standard_normal((n, 1))) * peaks
            X += scores @ np.array([*modes, x, x**2]) + 0.002 * rng.standard_normal((n, 200))
            wrong = np.arange(n) < max(round(share * n), 1)
            size = rng.uniform(0.8, 1.2, (int(wrong.sum()), 1))
            if kind == "peak":
                X[wrong] += size * np.exp(-((x - 0.85) ** 2) / 0.0005)
            else:
                X[wrong] += size * (x > 0.5)
            return X, wrong, None

        yield Case(f"spectra, {kind}, {share:.0%}, r={r}", draw, r)


GROUPS = {
    "clean": clean,
    "tails": tails,
    "small": small,
    "far": far,
    "clusters": clusters,
    "spikes": spikes,
    "spectra": spectra,
}


def sine(components: np.ndarray, truth: np.ndarray) -> float:
    """Return the root mean square of the sines of the angles of the truth to the components."""
    overlap = float(np.linalg.norm(truth @ orthonormal(components.T)) ** 2)
    return float(np.sqrt(max(1.0 - overlap / len(truth), 0.0)))


def run_case(case: Case, seeds: range) -> dict[str, object]:
    """Return the line of one case."""
    found, others, ratios, failed = [], [], [], 0
    for seed in seeds:
        X, wrong, truth = case.draw(np.random.default_rng(seed))
        try:
            est = case.estimator(wrong).fit(X)
        except ValueError:
            failed += 1
            continue
        flagged = est.predict(X) == -1
        if wrong.any():
            found.append(float(flagged[wrong].mean()))
        others.append(float(flagged[~wrong].mean()))
        if truth is not None:
            best = max(sine(case.oracle(X[~wrong]), truth), 1e-6)
            ratios.append(sine(est.components_, truth) / best)
    return {
        "case": case.name,
        "found, least": min(found, default=float("nan")),
        "clean flagged": float(np.median(others)) if others else float("nan"),
        "largest": max(others, default=float("nan")),
        "error / oracle": float(np.median(ratios)) if ratios else float("nan"),
        "worst": max(ratios, default=float("nan")),
        "raised": failed,
    }


def real() -> list[dict[str, object]]:
    """Return what "auto" flags of the mixtures of real classes."""
    seen: dict[str, list[tuple[float, float]]] = {}
    for data, X, wrong in mixtures():
        flagged = RobustPCA(5).fit_predict(X) == -1
        seen.setdefault(data, []).append((flagged[wrong].mean(), flagged[~wrong].mean()))
    return [
        {"case": f"{data}, auto", "found": recall, "clean flagged": others}
        for data, (recall, others) in ((k, np.mean(v, axis=0)) for k, v in seen.items())
    ]


def main(argv: list[str]) -> None:
    """Run the cases and print their table."""
    arguments = asked(
        __name__,
        __doc__,
        argv,
        group={"nargs": "*", "choices": [*GROUPS, "real"]},
        seeds=5,
        first=FIRST_SEED,
    )
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in arguments.group or [*GROUPS, "real"]:
            lines = real() if name == "real" else [run_case(c, seeds) for c in GROUPS[name]()]
            show(f"pca-cases-{name}", lines)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
