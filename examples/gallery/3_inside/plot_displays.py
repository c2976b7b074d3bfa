"""
The pictures that come with the library
=======================================

Five ready-made displays, each one call on a fitted estimator. They draw into axes of yours, or make
their own. The table: wines of one kind, with four records whose columns slipped by one place.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import RobustScaler

from outweigh import RobustMean, RobustPCA, RobustSparseMean
from outweigh.displays import (
    ComponentsDisplay,
    LocationDisplay,
    OutlierMapDisplay,
    TraceDisplay,
    WeightsDisplay,
)

wine = load_wine(as_frame=True)
table = wine.data[wine.target == 1].reset_index(drop=True)
slipped = table.copy()
slipped.iloc[:4, 3:8] = table.iloc[:4, 4:9].to_numpy()

mean = RobustMean().fit(slipped)
print(mean.certificate_.verdict)

# %%
# What each row counts, and by how much the columns of the plain mean are off.

fig, (left, right) = plt.subplots(1, 2, figsize=(12, 4), width_ratios=(1.4, 1))
WeightsDisplay.from_estimator(mean, slipped, ax=left)
LocationDisplay.from_estimator(mean, slipped, ax=right)
plt.show()

# %%
# Components: what they are made of, and the map of the rows. Columns in different units are brought
# to one first, as before any principal component analysis.

slipped[:] = RobustScaler().fit_transform(slipped)
pca = RobustPCA(2, contamination=0.1).fit(slipped)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
ComponentsDisplay.from_estimator(pca, ax=left)
OutlierMapDisplay.from_estimator(pca, slipped, ax=right)
plt.show()

# %%
# How the objective came down to the level of clean data. That level is known where the noise is
# white, as in these made-up rows.

rng = np.random.default_rng(0)
X = rng.standard_normal((800, 100))
X[:120, :15] += 1.0
white = RobustSparseMean(15, contamination=0.2, scale=None, covariance=None).fit(X)
fig, ax = plt.subplots(figsize=(7, 3.4))
TraceDisplay.from_estimator(white, ax=ax)
plt.show()
