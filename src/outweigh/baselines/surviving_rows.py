"""Rows that filters have not dropped yet, with their covariance, and the rule for dropping."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.stats import false_discovery_control

from outweigh.adversaries.sample import BoolArray
from outweigh.protocols import Array, Indices


class SurvivingRows:
    """The rows of ``Z`` still alive, and their covariance kept up to date.

    Dropping rows subtracts their part from the second moments, so that a round that drops few
    costs little: the full product is formed once.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Should be roughly centred, so that the subtraction loses no accuracy.
    alive : ndarray of bool, shape (n_samples,)
        The rows to begin with.

    Examples
    --------
    >>> rows = SurvivingRows(np.array([[0.0], [2.0], [9.0]]), np.array([True, True, True]))
    >>> rows.drop(np.array([False, False, True]))
    1
    >>> rows.mean, rows.covariance()
    (array([1.]), array([[2.]]))
    """

    def __init__(self, Z: Array, alive: BoolArray) -> None:
        self.indices: Indices = np.flatnonzero(alive)
        self._Z = Z
        self._sum, self._second = self._moments()

    def __len__(self) -> int:
        return self.indices.size

    @property
    def mean(self) -> Array:
        """Mean of the rows alive."""
        return np.asarray(self._sum / len(self), dtype=np.float64)

    def covariance(self) -> Array:
        """Return the unbiased covariance of the rows alive."""
        centred = self._second - np.outer(self._sum, self._sum / len(self))
        return np.asarray(centred / (len(self) - 1), dtype=np.float64)

    def second_moment(self) -> Array:
        """Return the average of x x' over the rows alive."""
        return np.asarray(self._second / len(self), dtype=np.float64)

    def columns(self, features: Indices) -> Array:
        """Return some columns of the rows alive."""
        return self._Z[np.ix_(self.indices, features)]

    def rows(self) -> Array:
        """Return the rows alive."""
        return self._Z[self.indices]

    def mask(self) -> BoolArray:
        """Return True for the rows alive, False for the others."""
        alive = np.zeros(len(self._Z), dtype=np.bool_)
        alive[self.indices] = True
        return alive

    def drop(self, rejected: BoolArray) -> int:
        """Drop the rows alive that are marked in ``rejected``; return how many they were."""
        n_dropped = int(np.count_nonzero(rejected))
        gone = self._Z[self.indices[rejected]]
        self.indices = self.indices[~rejected]
        if n_dropped > len(self):
            self._sum, self._second = self._moments()
        elif n_dropped:
            self._sum = self._sum - gone.sum(axis=0)
            self._second = self._second - gone.T @ gone
        return n_dropped

    def drop_unlikely(self, tail: Array, rate: float) -> int:
        """Drop the rows alive that :func:`reject_by_false_discovery_rate` marks; return how many.

        Parameters
        ----------
        tail : ndarray of shape (n_alive,)
            For each row alive a bound on the chance that a genuine one is as extreme.
        rate : float
            The false discovery rate.
        """
        return self.drop(reject_by_false_discovery_rate(tail, rate))

    def _moments(self) -> tuple[Array, Array]:
        alive = self._Z[self.indices]
        return alive.sum(axis=0), alive.T @ alive


def reject_by_false_discovery_rate(tail: Array, rate: float) -> BoolArray:
    """Mark the rows whose tail probabilities are too small for their number.

    The rule of Benjamini and Hochberg: with p_(1) <= ... <= p_(n) in order, the i rows of
    smallest probability are rejected for the largest i with p_(i) <= rate * i / n. If that is
    more than three fifths of the rows, the tail bound does not fit and none is rejected.

    Parameters
    ----------
    tail : ndarray of shape (n,)
        For each row a bound on the chance that a genuine one is as extreme; may exceed one.
    rate : float
        The false discovery rate.

    Examples
    --------
    >>> reject_by_false_discovery_rate(np.array([0.5, 1e-9, 0.9]), 0.1)
    array([False,  True, False])
    """
    # Bounds on a probability above one say as little as one.
    rejected = false_discovery_control(np.clip(tail, 0.0, 1.0)) <= rate
    return np.asarray(rejected & (rejected.mean() <= 0.6))


def top_eigenpair(matrix: Array) -> tuple[float, Array]:
    """Return the largest eigenvalue of a symmetric matrix and its unit eigenvector.

    Examples
    --------
    >>> value, vector = top_eigenpair(np.diag([1.0, 3.0]))
    >>> value, abs(vector)
    (3.0, array([0., 1.]))
    """
    last = len(matrix) - 1
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=(last, last))
    return float(values[0]), np.asarray(vectors[:, 0], dtype=np.float64)
