"""
When it fails
=============

Three ways in which wrong rows go unseen, on made-up data whose truth is known, and the verdict that
each of them gets. No method that reads second moments sees the first; the second hides in the noise
of few rows; in the third half of the rows is a group of its own, and nothing tells which half is
wrong. :doc:`/when-to-trust` has the long list.
"""

import matplotlib.pyplot as plt
import numpy as np

from outweigh import RobustMean

rng = np.random.default_rng(0)
flipped = rng.standard_normal((2000, 5))
tail = np.argsort(flipped[:, 0])[:200]
flipped[tail] *= -1  # the lowest tenth, mirrored: the covariance about zero is as before

few = rng.standard_normal((40, 20))
few[:4, :5] += 1.0  # small, and 40 rows do not show it

halves = rng.standard_normal((600, 5))
halves[:290, :2] += 4.0

cases = {
    "mirrored tail": (flipped, tail),
    "few rows": (few, range(4)),
    "two halves": (halves, range(290)),
}
fig, axes = plt.subplots(1, 3, figsize=(10, 3.4))
for ax, (name, (X, wrong)) in zip(axes, cases.items(), strict=True):
    est = RobustMean().fit(X)
    is_wrong = np.isin(np.arange(len(X)), wrong)
    flagged = est.predict(X) == -1
    print(f"{name}: {flagged[is_wrong].sum()} of {is_wrong.sum()} wrong rows are flagged")
    print("  verdict:", est.certificate_.verdict)
    ax.scatter(*X[~is_wrong, :2].T, s=9, color="C3", label="clean")
    ax.scatter(*X[is_wrong, :2].T, s=9, color="C1", label="wrong")
    ax.plot(*est.location_[:2], "P", color="C0", ms=12, mec="white", label="estimate")
    ax.plot(0, 0, "+", color="C5", ms=16, mew=2, label="truth")
    ax.set(title=name, xlabel="first column")
axes[0].set_ylabel("second column")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
plt.show()
