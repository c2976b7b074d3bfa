"""Fits that stall above the clean level or do not, and what to do about each."""

import numpy as np

from outweigh import RobustMean, RobustSparseMean
from outweigh.adversaries import make

# More rows are wrong than the fit was allowed to remove.
X = make("wrong_support", 2000, 200, 10, 0.2, random_state=2000).X
print("contamination too small:", RobustSparseMean(10, contamination=0.05).fit(X).certificate_)
print("left to the estimator:  ", RobustSparseMean(10).fit(X).certificate_)

# The clean rows are correlated, which is found; said to be white, it is unexplained variance.
rng = np.random.default_rng(2000)
lags = np.abs(np.subtract.outer(np.arange(60), np.arange(60)))
mixing = np.linalg.cholesky(0.6**lags)
clean = rng.standard_normal((3000, 60))
Y = clean @ mixing.T
print("correlated features:    ", RobustMean().fit(Y).certificate_)
print("said to be white:       ", RobustMean(covariance=None).fit(Y).certificate_)

# With the covariance known from elsewhere.
print("covariance given:       ", RobustMean(covariance=0.6**lags).fit(Y).certificate_)
