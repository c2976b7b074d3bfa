"""
Principal components, and a map of the outliers
===============================================

Images of the digit 0, and eighteen of the digit 1 among them. The outlier map of
:class:`~outweigh.RobustPCA` shows each image by how far it lies *in* the plane of the components
and how far it lies *off* it: an image that is nothing like a zero is off the plane.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from outweigh import RobustPCA

digits = load_digits()
X = np.concatenate([digits.data[digits.target == 0], digits.data[digits.target == 1][:18]])
X = X[:, X.std(axis=0) > 0]
is_one = np.arange(len(X)) >= len(X) - 18

est = RobustPCA(2, contamination=0.15).fit(X)
print("ones among the 29 rows flagged:", int((est.predict(X)[is_one] == -1).sum()), "of 18")

fig, ax = plt.subplots()
along, off = est.score_distances(X), est.orthogonal_distances(X)
ax.scatter(along[~is_one], off[~is_one], s=18, label="zeros")
ax.scatter(along[is_one], off[is_one], marker="x", label="ones")
ax.axvline(est.score_cutoff_, color="C5", lw=0.8)
ax.axhline(est.orthogonal_cutoff_, color="C5", lw=0.8)
ax.set(xlabel="distance within the plane", ylabel="distance from the plane", title="Outlier map")
ax.legend()
plt.show()
