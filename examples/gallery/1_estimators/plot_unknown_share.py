"""
How many rows are wrong?
========================

``contamination="auto"``, the default, estimates the share of wrong rows. Here flowers, or images,
of another kind are mixed in, from none to three in ten, and the share that a fit distrusts is
compared with the truth. In two of the three tables it is close throughout. In the third, ones
among zeros, it is right up to 15 %; from 20 % on the ones pass for a part of the spread of the
rows. Look at a table (:class:`~outweigh.displays.OutlierMapDisplay`, say) when so much of it may
be wrong.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, load_iris

from outweigh import RobustMean


def share_flagged(load, kind, other, share):
    data = load()
    rows, wrong = data.data[data.target == kind], data.data[data.target == other]
    count = round(share / (1 - share) * len(rows))
    X = np.concatenate([rows, wrong[:count]])
    X = X[:, X.std(axis=0) > 0.1]
    return count / len(X), np.mean(RobustMean().fit_predict(X) == -1)


fig, ax = plt.subplots(figsize=(7.5, 4))
ax.plot([0, 0.3], [0, 0.3], color="C3", label="the truth")
for name, marker, *mixture in (
    ("versicolor among setosa", "o", load_iris, 0, 1),
    ("sevens among sixes", "s", load_digits, 6, 7),
    ("ones among zeros", "x", load_digits, 0, 1),
):
    shares = [share_flagged(*mixture, share) for share in (0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)]
    ax.plot(*np.transpose(shares), marker, label=name)
ax.set(xlabel="share of wrong rows", ylabel="share that is distrusted")
ax.set_title("Another kind among the rows")
ax.legend()
plt.show()
