"""
Correlated columns: the covariance is found with the weights
============================================================

Blood serum values of 442 patients; total cholesterol and LDL go together. In eight records the LDL
is another patient's. Neither value is odd, only the pair. Told that columns are uncorrelated, a fit
takes the correlation itself for the fault; the default finds the covariance along with the weights.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from outweigh import RobustMean

serum = load_diabetes(as_frame=True, scaled=False).data[["s1", "s2", "s3"]]
serum = serum.set_axis(["cholesterol", "LDL", "HDL"], axis=1)
by_ldl = serum["LDL"].sort_values().index
wrong = np.concatenate([by_ldl[20:24], by_ldl[-24:-20]])
serum.loc[wrong, "LDL"] = serum.loc[wrong[::-1], "LDL"].to_numpy()

fig, axes = plt.subplots(1, 2, figsize=(8.5, 3.8), sharey=True)
for ax, covariance in zip(axes, ("auto", None), strict=True):
    est = RobustMean(covariance=covariance).fit(serum)
    flagged = est.predict(serum) == -1
    print(f"covariance={covariance!r}: {flagged.sum()} flagged, {flagged[wrong].sum()} of 8 wrong")
    ax.scatter(serum["cholesterol"][~flagged], serum["LDL"][~flagged], s=14, label="trusted")
    ax.scatter(serum["cholesterol"][flagged], serum["LDL"][flagged], marker="x", label="distrusted")
    mixed = serum.loc[wrong]
    ax.plot(mixed["cholesterol"], mixed["LDL"], "o", mfc="none", mec="C5", ms=10, label="exchanged")
    ax.set(title=f"covariance={covariance!r}", xlabel="total cholesterol")
axes[0].set_ylabel("LDL")
axes[1].legend()
plt.show()

# %%
# With all six serum values of the table the same slips are *not* found, and the verdict is "clean":
# what is odd in one pair is little among many columns of long tails. Judge columns together that
# belong together.
