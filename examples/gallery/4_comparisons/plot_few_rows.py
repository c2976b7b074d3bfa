"""
Fewer rows than columns
=======================

Images of the digit 6, of which only the first few dozen are known, and a tenth of sevens among
them: about 55 columns that vary. How far is each estimate from the mean of the sixes alone? With
as many rows as columns nobody finds the sevens. :class:`~outweigh.RobustMean` accepts any number
of rows and regularises, but it cannot see what is not there; from about 90 rows on it finds them.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.covariance import MinCovDet
from sklearn.datasets import load_digits

from outweigh import RobustMean

digits = load_digits()
sixes, sevens = digits.data[digits.target == 6], digits.data[digits.target == 7]
sizes = [20, 30, 45, 60, 90, 120, 160]


def errors(n):
    clean, wrong = sixes[: n - n // 10], sevens[: n // 10]
    X = np.concatenate([clean, wrong])
    X, truth = X[:, X.std(axis=0) > 0], clean.mean(axis=0)[X.std(axis=0) > 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MinCovDet: the covariance is singular
        locations = (
            RobustMean().fit(X).location_,
            MinCovDet(random_state=0).fit(X).location_,
            np.median(X, axis=0),
            X.mean(axis=0),
        )
    return [np.linalg.norm(location - truth) for location in locations]


fig, ax = plt.subplots()
names = "RobustMean", "MinCovDet", "median of each column", "plain mean"
lines = np.transpose([errors(n) for n in sizes])
for name, line, style in zip(names, lines, ("o-", "s-", "^--", "x--"), strict=True):
    ax.plot(sizes, line, style, label=name)
ax.set(
    xlabel="rows",
    ylabel="distance from the mean of the sixes",
    title="A tenth of sevens among few sixes",
)
ax.set_ylim(0, None)
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
