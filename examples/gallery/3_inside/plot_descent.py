"""
How a descent moves the weights
===============================

All rows start with the same weight. Each step takes weight from rows that add variance nobody can
explain, until the weighted rows look like clean ones. The loop below is the idea in three lines;
the estimators take longer steps, stop at the level of clean data and look after units and
correlations. Made-up data: a tenth of 600 rows is moved by one along ten of 40 columns, so that no
single value of theirs is odd.
"""

import matplotlib.pyplot as plt
import numpy as np

from outweigh.norms import KyFan
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.samples import DenseSamples

rng = np.random.default_rng(0)
X = rng.standard_normal((600, 40))
X[:60, :10] += 1.0

objective = MomentObjective(DenseSamples(X), KyFan(1), centred=True)  # the largest excess variance
allowed = CappedSimplex.from_contamination(600, 0.12)  # weights that leave out at most 12 %
weights, path, values = allowed.reference(), [], []
for _ in range(40):
    seen = objective.evaluate(weights)
    path.append(weights * 600)
    values.append(seen.value)
    weights = allowed.project(weights - 4e-6 * seen.subgradient)

path = np.array(path)
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.7))
left.plot(path[:, 60::4], color="C3", lw=0.4, alpha=0.5)
left.plot(path[:, :60], color="C1", lw=0.5, alpha=0.5)
left.plot(path[:, 60:].mean(axis=1), color="C5", lw=2.5, label="clean rows, mean")
left.plot(path[:, :60].mean(axis=1), color="C1", lw=2.5, label="wrong rows, mean")
left.set(
    xlabel="step", ylabel="weight (1 = average)", title="Every thin line is a row", ylim=(0, 1.5)
)
left.legend(loc="upper right")
right.plot(values, "o-", ms=3)
right.set(xlabel="step", ylabel="largest excess variance", title="The objective", ylim=(0, None))
plt.show()
