"""
A mean with few nonzero entries: the stuck pixels of a camera
=============================================================

A camera adds a little light at four of its pixels. Handwritten digits, less the mean image of their
class, are the noise it is to be seen in; one image in ten was taken with a light leak at six other
pixels. :class:`~outweigh.RobustSparseMean` finds the four pixels, and how many they are. The images
are real, the camera is made up.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from outweigh import RobustSparseMean

digits = load_digits()
classes = [digits.data[digits.target == k] for k in range(10)]
X = np.concatenate([images - images.mean(axis=0) for images in classes])
rng = np.random.default_rng(0)
X += rng.standard_normal(X.shape)  # the noise of the camera itself
STUCK, LEAK = [9, 14, 49, 54], [24, 25, 32, 33, 40, 41]
X[:, STUCK] += 0.8
leaked = rng.random(len(X)) < 0.1
X[np.ix_(leaked, LEAK)] += 6.0

est = RobustSparseMean().fit(X)
print(est.certificate_.verdict)
print("stuck pixels:", STUCK, "found:", est.support_)

fig, axes = plt.subplots(1, 3, figsize=(8, 2.9))
truth = np.zeros(64)
truth[STUCK] = 0.8
for ax, image, title in zip(
    axes,
    (truth, X.mean(0), est.location_),
    ("what the camera adds", "plain mean", "robust, sparse"),
    strict=True,
):
    picture = ax.imshow(image.reshape(8, 8), vmin=0, vmax=0.9)
    ax.set(title=title, xticks=[], yticks=[])
    ax.grid(False)
fig.colorbar(picture, ax=axes, label="light added")
plt.show()
