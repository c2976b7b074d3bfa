"""The filter by quantum entropy scores: outliers in many directions are seen at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outweigh.baselines.base import FloatArray, Found, MeanBaseline
from outweigh.baselines.pruning import naive_prune


@dataclass(eq=False, repr=False)
class QuantumEntropyMean(MeanBaseline):
    """The filter by quantum entropy scores, "QUE".

    With the mean and the covariance S of the weighted rows, the score of a row x is
    ``(x - mean)' U (x - mean)`` where ``U = exp(a E) / tr exp(a E)``, ``E = (S - I) / |S - I|``.
    For a = 0 it is the squared distance, for large a the square along the top eigenvector, and
    between them it weighs all directions in which there is too much variance. While the top
    eigenvalue of S is above 1 + eps ln(1/eps), the rows of largest scores that hold 2 eps of the
    weight are multiplied by 1 - score / largest score.

    Assumptions: noise of identity covariance; the contamination known. Cost: O(n d^2 + d^3) a
    round; the paper has a way to approximate the scores in nearly linear time.

    Parameters
    ----------
    n_nonzero : int or None, default=None
        Number of largest entries to keep; None keeps all.
    contamination : float, default=0.1
        The eps above. With 0 there is only the naive pruning.
    sharpness : float, default=4.0
        The a above; 4 is that of the paper's experiments.
    failure_probability : float, default=0.2
        The tau of :class:`~outweigh.baselines.NaivePruning`.
    max_iter : int, default=100
        Largest number of rounds; it also ends when 2 eps of the weight is gone.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
    support_ : ndarray
        Indices of the entries kept.
    weights_ : ndarray of shape (n_samples,)
    n_iter_ : int
        Number of rounds.

    References
    ----------
    .. [1] Y. Dong, S. Hopkins and J. Li, "Quantum entropy scoring for fast robust mean estimation
       and improved outlier detection", NeurIPS 2019, arXiv:1906.11366.

    Examples
    --------
    >>> from outweigh.adversaries import multi_direction
    >>> sample = multi_direction(800, 20, 20, 0.1, random_state=0)
    >>> found = QuantumEntropyMean().fit(sample.X)
    >>> bool(np.linalg.norm(found.location_ - sample.truth) < 0.4)
    True
    """

    contamination: float = 0.1
    sharpness: float = 4.0
    failure_probability: float = 0.2
    max_iter: int = 100

    def _find(self, X: FloatArray, n_nonzero: int) -> Found:
        eps = self.contamination
        origin = np.median(X, axis=0)
        Z = X - origin
        weights = naive_prune(Z, self.failure_probability) / 1.0
        weights /= weights.sum()
        least, n_iter = 1.0 - 2.0 * eps, 0
        while n_iter < self.max_iter and weights.sum() > least:
            share = weights / weights.sum()
            centred = Z - share @ Z
            values, vectors = np.linalg.eigh((centred * share[:, None]).T @ centred)
            if eps == 0.0 or values[-1] <= 1.0 + eps * np.log(1.0 / eps):
                break
            n_iter += 1
            excess = (values - 1.0) / np.abs(values - 1.0).max()
            spectrum = np.exp(self.sharpness * (excess - excess[-1]))
            scores = (centred @ vectors) ** 2 @ (spectrum / spectrum.sum())
            scores[weights == 0.0] = 0.0
            order = np.argsort(-scores, kind="stable")
            # At least the first, whose weight becomes zero: so it ends.
            far = order[np.cumsum(share[order]) - share[order] < 2.0 * eps]
            weights[far] *= 1.0 - scores[far] / scores.max()
        weights /= weights.sum()
        return Found(origin + weights @ Z, weights=weights, n_iter=n_iter)
