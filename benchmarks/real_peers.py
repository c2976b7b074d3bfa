"""What the study on real tables compares: estimators of a location that flag rows, at defaults.

Detectors that estimate no location are given the mean of the rows they do not flag. So is robpy's
ROBPCA, whose own location is the plain mean.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import chi2
from sklearn.covariance import EllipticEnvelope, EmpiricalCovariance, MinCovDet
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.utils.validation import validate_data

import outweigh
from outweigh import RobustMean, RobustPCA

# The usual quantile of the distances of Gaussian rows beyond which a row is flagged.
QUANTILE = 0.975


@dataclass(frozen=True)
class Found:
    """What a fit says: a location, a score of each row (higher is worse), the rows it flags.

    `clean` is what it says of its own answer: that the rows left look clean, or None where an
    estimator gives no verdict.
    """

    location: np.ndarray
    scores: np.ndarray
    flagged: np.ndarray
    clean: bool | None = None


@dataclass(frozen=True)
class Estimator:
    """A way to fit, the package it is from, and whether it flags the same share of any table."""

    fit: Callable[[np.ndarray], Found]
    package: str
    fixed_share: bool = False

    def made_by(self) -> str | None:
        """Return what a stored figure is by; None where the package is not installed."""
        if self.package == "outweigh":
            return f"outweigh {_source()}"
        try:
            return f"{self.package} {version(self.package)}"
        except PackageNotFoundError:
            return None


def _source() -> str:
    """Return a hash of the source of the library: it is measured again when that changes."""
    root = Path(outweigh.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def _kept(X: np.ndarray, scores: np.ndarray, flagged: np.ndarray) -> Found:
    # Where nothing is left there is no better guess than the mean of all.
    rows = X if flagged.all() else X[~flagged]
    return Found(rows.mean(axis=0), scores, flagged)


def _far(X: np.ndarray, location: np.ndarray, squared: np.ndarray) -> Found:
    return Found(location, squared, squared > chi2.ppf(QUANTILE, X.shape[1]))


def robust_mean(X: np.ndarray) -> Found:
    """Fit the library's dense mean."""
    est = RobustMean().fit(X)
    return Found(est.location_, -est.score_samples(X), est.predict(X) < 0, est.certificate_.clean)


def robust_pca(X: np.ndarray) -> Found:
    """Fit the library's dense components; two of them."""
    est = RobustPCA(2).fit(X)
    return Found(est.mean_, -est.score_samples(X), est.predict(X) < 0, est.certificate_.clean)


def plain(X: np.ndarray) -> Found:
    """Take the plain mean and covariance."""
    est = EmpiricalCovariance().fit(X)
    return _far(X, est.location_, est.mahalanobis(X))


def min_cov_det(X: np.ndarray) -> Found:
    """Fit scikit-learn's minimum covariance determinant."""
    est = MinCovDet(random_state=0).fit(X)
    return _far(X, est.location_, est.mahalanobis(X))


def elliptic_envelope(X: np.ndarray) -> Found:
    """Fit the same with a share of a tenth to flag."""
    est = EllipticEnvelope(random_state=0).fit(X)
    return Found(est.location_, -est.score_samples(X), est.predict(X) < 0)


def isolation_forest(X: np.ndarray) -> Found:
    """Fit scikit-learn's isolation forest."""
    est = IsolationForest(random_state=0).fit(X)
    return _kept(X, -est.score_samples(X), est.predict(X) < 0)


def local_outlier_factor(X: np.ndarray) -> Found:
    """Fit scikit-learn's local outlier factor."""
    est = LocalOutlierFactor(n_neighbors=min(20, len(X) - 1))
    flagged = est.fit_predict(X) < 0
    return _kept(X, -est.negative_outlier_factor_, flagged)


def pyod_knn(X: np.ndarray) -> Found:
    """Fit pyod's distance to the nearest neighbours."""
    from pyod.models.knn import KNN

    return _of_pyod(KNN(), X)


def pyod_ecod(X: np.ndarray) -> Found:
    """Fit pyod's empirical cumulative distributions."""
    from pyod.models.ecod import ECOD

    return _of_pyod(ECOD(), X)


def _of_pyod(est: Any, X: np.ndarray) -> Found:
    est.fit(X)
    return _kept(X, est.decision_scores_, est.labels_.astype(bool))


def mended_robpy() -> None:
    """Give robpy's covariances a method of scikit-learn that they call and that is gone since."""
    from robpy.covariance.base import RobustCovariance

    if not hasattr(RobustCovariance, "_validate_data"):
        RobustCovariance._validate_data = validate_data


def robpy_robpca(X: np.ndarray) -> Found:
    """Fit robpy's robust components; two of them."""
    from robpy.pca import ROBPCA
    from robpy.pca.base import get_od_cutoff

    mended_robpy()
    est = ROBPCA(n_components=2, random_seed=0).fit(X)
    centred = X - est.location_
    within = centred @ est.components_
    orthogonal = np.linalg.norm(centred - within @ est.components_.T, axis=1)
    score = np.sqrt(np.sum(within**2 / est.explained_variance_, axis=1))
    ratios = [score / np.sqrt(chi2.ppf(QUANTILE, 2))]
    # Two components of two columns leave nothing.
    if X.shape[1] > 2:
        ratios.append(orthogonal / get_od_cutoff(orthogonal))
    scores = np.max(ratios, axis=0)
    return _kept(X, scores, scores > 1.0)


YARDSTICK = "MinCovDet"
ESTIMATORS = {
    "**RobustMean**": Estimator(robust_mean, "outweigh"),
    "**RobustPCA(2)**": Estimator(robust_pca, "outweigh"),
    YARDSTICK: Estimator(min_cov_det, "scikit-learn"),
    "EllipticEnvelope": Estimator(elliptic_envelope, "scikit-learn", fixed_share=True),
    "IsolationForest": Estimator(isolation_forest, "scikit-learn"),
    "LocalOutlierFactor": Estimator(local_outlier_factor, "scikit-learn"),
    "KNN (pyod)": Estimator(pyod_knn, "pyod", fixed_share=True),
    "ECOD (pyod)": Estimator(pyod_ecod, "pyod", fixed_share=True),
    "ROBPCA (robpy)": Estimator(robpy_robpca, "robpy"),
    "plain mean": Estimator(plain, "scikit-learn"),
}
# Measured once by benchmarks/real_rrcov.py.
OF_RRCOV = ("CovMcd (rrcov)", "CovMrcd (rrcov)", "PcaHubert (rrcov)")
