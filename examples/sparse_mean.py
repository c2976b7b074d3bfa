"""Fit a sparse mean, read the verdict, and ask which rows are wrong."""

import numpy as np

from outweigh import RobustSparseMean
from outweigh.adversaries import make

sample = make("wrong_support", 2000, 200, 10, 0.2, random_state=2000)
X = sample.X

est = RobustSparseMean().fit(X)

print("error, plain mean:", round(float(np.linalg.norm(X.mean(axis=0) - sample.truth)), 3))
print("error, outweigh:  ", round(float(np.linalg.norm(est.location_ - sample.truth)), 3))
print("nonzero entries:  ", est.n_nonzero_)
print("right support:    ", np.array_equal(est.support_, sample.support))
print(est.certificate_)

flagged = est.predict(X) == -1
print(
    "rows flagged:     ", int(flagged.sum()), "of them wrong:", int(flagged[~sample.inliers].sum())
)
