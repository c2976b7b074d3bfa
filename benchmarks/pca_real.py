"""Real data: rows of one class contaminated by another, and who finds the contaminants.

python -m benchmarks.pca_real [--pairs N]
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.covariance import EllipticEnvelope
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from threadpoolctl import threadpool_limits

from benchmarks.options import asked
from benchmarks.tables import show
from outweigh.estimators.pca import RobustPCA
from outweigh.fit.distances import Distances
from outweigh.samples import DenseSamples

EPS = 0.1
N_COMPONENTS = 5
Mixture = tuple[str, np.ndarray, np.ndarray]


def mixtures() -> Iterator[Mixture]:
    """Yield every ordered pair of digits, and benign with malignant tumours, 1 in 10 wrong."""
    X, y = load_digits(return_X_y=True)
    for genuine in range(10):
        for wrong in range(10):
            if genuine != wrong:
                yield "digits", *_mix(X[y == genuine], X[y == wrong], 10 * genuine + wrong)
    X, y = load_breast_cancer(return_X_y=True)
    # Features in units from 1e-3 to 1e3: every method sees them divided by their spread.
    X = (X - np.median(X, axis=0)) / (np.quantile(X, 0.75, axis=0) - np.quantile(X, 0.25, axis=0))
    for seed in range(10):
        yield "breast cancer", *_mix(X[y == 1], X[y == 0], seed)


def _mix(genuine: np.ndarray, wrong: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    count = round(EPS / (1.0 - EPS) * len(genuine))
    X = np.vstack([genuine, wrong[rng.permutation(len(wrong))[:count]]])
    marked = np.arange(len(X)) >= len(genuine)
    order = rng.permutation(len(X))
    return X[order], marked[order]


def scores(X: np.ndarray, eps: float) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the score of each row by each method; lower is less trusted."""
    yield "RobustPCA", RobustPCA(N_COMPONENTS, contamination=eps).fit(X).score_samples(X)
    basis = PCA(N_COMPONENTS).fit(X).components_.T
    rows = DenseSamples(X - X.mean(axis=0))
    equal = np.full(len(X), 1.0 / len(X))
    ordinary = Distances.of(rows, equal, basis, np.zeros(X.shape[1])).calibrated(rows, equal)
    yield "PCA + distances", -ordinary.combined(rows)
    varying = X[:, np.ptp(X, axis=0) > 0]
    envelope = EllipticEnvelope(contamination=eps, random_state=0).fit(varying)
    yield "EllipticEnvelope", envelope.score_samples(varying)
    yield "IsolationForest", IsolationForest(random_state=0).fit(X).score_samples(X)
    local = LocalOutlierFactor(contamination=eps).fit(X)
    yield "LocalOutlierFactor", local.negative_outlier_factor_


def main(argv: list[str]) -> None:
    """Run the study and print its table."""
    arguments = asked(
        __name__, __doc__, argv, pairs={"type": int, "help": "take every so manieth mixture"}
    )
    found: dict[tuple[str, str], list[float]] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, (data, X, marked) in enumerate(mixtures()):
            if arguments.pairs and number % arguments.pairs:
                continue
            count = int(marked.sum())
            for method, score in scores(X, count / len(X)):
                flagged = np.argsort(score, kind="stable")[:count]
                found.setdefault((data, method), []).append(float(np.mean(marked[flagged])))
    names = sorted({data for data, _ in found}, reverse=True)
    methods = list(dict.fromkeys(method for _, method in found))
    lines = [
        {"method": method, **{data: float(np.mean(found[data, method])) for data in names}}
        for method in methods
    ]
    show("pca-real", lines)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
