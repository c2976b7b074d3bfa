"""
In the place of MinCovDet
=========================

:class:`~outweigh.RobustMean` has the attributes of ``MinCovDet`` of scikit-learn, so that
one line changes. On clean flowers, the versicolor irises, a cut at the 0.975 quantile flags some of
them by design; a fit that finds the share of wrong rows need not. :doc:`/minimum-covariance` lists
what is called what.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import chi2
from sklearn.covariance import MinCovDet
from sklearn.datasets import load_iris

from outweigh import RobustMean

iris = load_iris(as_frame=True)
X = iris.data[iris.target == 1].to_numpy()
slipped = X.copy()
slipped[:4, 2] -= 1.5  # petals measured from the wrong end

fig, axes = plt.subplots(1, 2, figsize=(8.5, 3.6), sharex=True, sharey=True)
for ax, (title, rows) in zip(axes, {"clean": X, "four slips": slipped}.items(), strict=True):
    fits = RobustMean().fit(rows), MinCovDet(random_state=0).fit(rows)
    ours, theirs = (np.sqrt(fit.mahalanobis(rows)) for fit in fits)
    ax.scatter(ours[4:], theirs[4:], s=18, label="as measured")
    ax.scatter(
        ours[:4], theirs[:4], marker="x" if title != "clean" else "o", s=22, label="rows 0 to 3"
    )
    limit = np.sqrt(chi2(4).ppf(0.975))
    ax.axhline(limit, color="C5", lw=0.8)
    ax.set(title=title, xlabel="distance by RobustMean")
    flagged = np.flatnonzero(fits[0].predict(rows) == -1)
    print(f"{title}: RobustMean flags {flagged}; beyond MinCovDet's limit: {sum(theirs > limit)}")
axes[0].set_ylabel("by MinCovDet")
axes[0].legend()
plt.show()
