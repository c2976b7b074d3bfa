"""Outliers with a spike on the component's own features: two Gaussians on its support.

Beside the component second moments show nothing of them. On the few features of the component the
rows are a mixture of two Gaussians of different covariance, which a thousand rows tell apart.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from outweigh.fit.columns import robust_scatter
from outweigh.fit.mixture import NATS
from outweigh.fit.tuning import TUNING
from outweigh.protocols import Array

_STEPS = 40


def component_of_bulk(rows: Array, weights: Array, n_rows: float) -> Array | None:
    """Return the leading direction of the bulk where rows are a bulk and a spike of outliers.

    Two Gaussians about one mean are fitted by expectation maximisation, begun at a redescending
    scatter. They are taken where they are worth their parameters (BIC) and the lesser has a spike.

    Parameters
    ----------
    rows : ndarray of shape (n, k)
        On the features of a component.
    weights : ndarray of shape (n,)
        Of sum one.
    n_rows : float
        How many rows of equal weight these amount to.

    Returns
    -------
    ndarray of shape (k,) or None
        None where one Gaussian, or two without a spike, explain the rows.
    """
    k = rows.shape[1]
    # A spike and its share have k + 1 parameters. What all entries of a covariance gain in noise
    # (Wilks) comes on top: half a nat each, and two and a half deviations.
    entries = k * (k + 1) / 2.0
    price = (
        (k + 1) / 2.0 * np.log(n_rows) + entries / 2.0 + TUNING.deviations * np.sqrt(entries / 2.0)
    )
    if k < 2 or n_rows < TUNING.rows_per_parameter * k * (k + 1):
        return None
    rows = rows - weights @ rows
    whole = _covariance(rows, weights)
    bulk = robust_scatter(rows, weights)
    # What lies in a subspace, as few values do, is no Gaussian.
    least = 1e-9 * float(np.linalg.eigvalsh(whole)[-1])
    if np.linalg.eigvalsh(bulk)[0] <= least:
        return None
    # Rows beyond what half of the bulk does not exceed begin as the outliers that they may be.
    squared = np.einsum("ij,ij->i", rows @ np.linalg.inv(bulk), rows)
    wrong = expit((squared - 2.0 * k) / 2.0)
    alone, before = float(weights @ _log_density(rows, whole)), -np.inf
    for left in reversed(range(_STEPS)):
        share = float(weights @ wrong)
        if not 1.0 / n_rows * 3.0 * k < share < 0.5:
            return None
        other = _covariance(rows, weights * wrong / share)
        bulk = (whole - share * other) / (1.0 - share)
        if min(np.linalg.eigvalsh(bulk)[0], np.linalg.eigvalsh(other)[0]) <= least:
            return None
        first = _log_density(rows, bulk) + np.log1p(-share)
        second = _log_density(rows, other) + np.log(share)
        wrong = expit(second - first)
        reached = float(weights @ np.logaddexp(first, second))
        gain, last = n_rows * (reached - alone), n_rows * (reached - before)
        if gain + left * last <= price:
            # Each step gains less than the one before.
            return None
        if last <= NATS:
            break
        before = reached
    root = np.linalg.cholesky(np.linalg.inv(bulk))
    wider = np.linalg.eigvalsh(root.T @ other @ root)
    # Along a typical direction the outliers are no wider than the bulk: they have a spike.
    if gain <= price or float(np.median(wider)) >= TUNING.elsewhere:
        return None
    return np.asarray(np.linalg.eigh(bulk)[1][:, -1])


def _covariance(rows: Array, weights: Array) -> Array:
    return np.asarray((rows * weights[:, None]).T @ rows)


def _log_density(rows: Array, covariance: Array) -> Array:
    """Return that of a Gaussian about zero, but for a constant."""
    root = np.linalg.cholesky(covariance)
    white = rows @ np.linalg.inv(root).T
    return np.asarray(-0.5 * np.einsum("ij,ij->i", white, white) - np.log(np.diagonal(root)).sum())
