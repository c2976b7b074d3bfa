"""RobustSparseMean in a Pipeline and in GridSearchCV."""

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

from outweigh import RobustMean, RobustSparseMean
from outweigh.adversaries import make

sample = make("wrong_support", 1000, 100, 5, 0.1, random_state=2000)
X = sample.X

# The last step of a pipeline answers predict, decision_function and score_samples. Its location_
# is in the units that the steps before it produce.
pipeline = make_pipeline(RobustScaler(), RobustMean()).fit(X)
print("flagged:", int((pipeline.predict(X) == -1).sum()))


def trimmed_fit(estimator, X, y=None):
    """Return minus the mean squared distance of the nearest 80 % of the held-out rows."""
    squares = np.sort(np.square(X - estimator.location_).sum(axis=1))
    return -squares[: int(0.8 * len(squares))].mean()


# There is no y and no default score: pass a callable, itself robust to the wrong rows.
search = GridSearchCV(RobustSparseMean(), {"n_nonzero": [2, 5, 20]}, scoring=trimmed_fit, cv=3)
print("best:", search.fit(X).best_params_)
