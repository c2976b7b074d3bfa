"""
Units do not matter
===================

Grams or kilograms: the fit is the same. Methods that measure distances in the columns as they come,
such as ``LocalOutlierFactor``, give another answer after a change of units.
"""

import matplotlib.pyplot as plt
from scipy.stats import spearmanr
from sklearn.datasets import load_wine
from sklearn.neighbors import LocalOutlierFactor

from outweigh import RobustMean

wine = load_wine(as_frame=True)
metric = wine.data[wine.target == 0]
other = metric.copy()
other["proline"] /= 1000  # mg to g
other["magnesium"] /= 1000

fig, axes = plt.subplots(1, 2, figsize=(8, 3.6))
judges = {"RobustMean": RobustMean(), "LocalOutlierFactor": LocalOutlierFactor(20, novelty=True)}
for ax, (name, judge) in zip(axes, judges.items(), strict=True):
    before = judge.fit(metric.to_numpy()).score_samples(metric.to_numpy())
    after = judge.fit(other.to_numpy()).score_samples(other.to_numpy())
    ax.plot(before, after, "o")
    ax.axline((before.mean(), before.mean()), slope=1, color="C3", lw=1)
    ax.set(title=name, xlabel="score, two columns in mg", ylabel="score, the two in g")
    print(f"{name}: rank correlation {spearmanr(before, after).statistic:.3f}")
plt.show()
