"""
A poisoned training set, cleaned before the classifier
======================================================

Somebody adds images to the training set of a classifier of handwritten digits: zeros that are
labelled 1, and so on. One fit a class, and the rows that it distrusts are left out. The classifier
never sees which images were poison.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from outweigh import RobustPCA

images, labels = load_digits(return_X_y=True)
images = images + np.random.default_rng(0).random(images.shape)  # no column is constant
X, X_test, y, y_test = train_test_split(images, labels, random_state=0, stratify=labels)


def poisoned(share, rng):
    """Return a training set of which a share of each class is images of the class before it."""
    y_wrong = y.copy()
    for k in range(10):
        victims = np.flatnonzero(y == k)
        y_wrong[rng.choice(victims, int(share * len(victims)), replace=False)] = (k + 1) % 10
    return y_wrong


def trusted(labels_given):
    """Return which rows a fit to each class trusts."""
    keep = np.zeros(len(X), dtype=bool)
    for k in range(10):
        rows = np.flatnonzero(labels_given == k)
        keep[rows] = RobustPCA(5, contamination=0.25).fit_predict(X[rows]) == 1
    return keep


shares = [0.0, 0.05, 0.1, 0.15, 0.2]
scores = []
for share in shares:
    y_wrong = poisoned(share, np.random.default_rng(1))
    keep = trusted(y_wrong)
    fits = (X, y), (X, y_wrong), (X[keep], y_wrong[keep])
    scores.append(
        [GaussianNB(var_smoothing=1e-2).fit(*rows).score(X_test, y_test) for rows in fits]
    )
    print(
        f"{share:.2f} poisoned: {np.mean((y != y_wrong)[~keep]):.2f} of what is left out is poison"
    )

fig, ax = plt.subplots()
names = ["trained on clean images", "on the poisoned set", "on the rows that are trusted"]
for name, line, colour in zip(names, np.transpose(scores), ("C5", "C1", "C0"), strict=True):
    ax.plot(shares, line, "o-", color=colour, label=name)
ax.set(xlabel="share of each class that is poison", ylabel="accuracy on clean images")
ax.set_title("A classifier of digits")
ax.legend()
plt.show()
