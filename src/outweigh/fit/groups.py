"""Groups of rows that stand apart from the bulk along some direction, whatever the covariance.

Second moments cannot tell a minority from variance of the clean rows; the shape of the cloud can.
Two Gaussians of one covariance are fitted by expectation maximisation, from many directions at
once. In coordinates in which all rows together are white the likelihood of such a pair depends on
the rows along one direction alone, and the best direction for given odds is the difference of the
two means: a step is two products with the rows, whatever the number of starts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import chdtri, expit

from outweigh.fit.columns import column_quantiles, weighted_quantile
from outweigh.fit.radial import radial_law
from outweigh.fit.tuning import TUNING
from outweigh.protocols import Array, Indices

_TINY = 1e-300
# The first step takes these shares of the rows for the minority, in turn over the starts.
_FIRST_SHARES = (0.15, 0.3)
# Steps from each start, and half as many from the best.
EM_STEPS = 25
# First on a sample of so many rows, and so many for each feature: with 15 for each, groups of .2
# and .3 six deviations out were missed in 20 of 60 cells of 5000 x 100, with 50 in none.
_SAMPLE, _SAMPLE_PER_FEATURE = 1500, 50


def price_of_direction(n: float, d: int) -> float:
    r"""Return by how many nats a direction chosen on the rows may look like two groups by chance.

    :math:`d (1 + \log(n/d)/2)` for one sought among all: half the logarithm of the number of rows
    for each of d parameters (BIC), n counted per parameter, and one nat more for the search. With
    fewer than three rows for each feature no direction is sought; one of the principal axes is
    taken, which are at most min(n, d).
    """
    if n < TUNING.rows_for_search * d:
        return float(np.log(min(n, d) / 0.05))
    return float(d * (1.0 + np.log(max(n / d, 1.0)) / 2.0))


def principal_axes(rows: Array, weight: Array) -> tuple[Array, Array]:
    """Return variances and axes of weighted rows about zero, largest first, shape (d, r).

    Those of positive variance, by the smaller of both matrices of products. The first of the
    largest entries of an axis is positive: seen the other way round, an even number of rows has
    another median.
    """
    root = np.sqrt(weight / weight.sum())[:, None] * rows
    wide = rows.shape[1] > len(rows)
    values, vectors = np.linalg.eigh(root @ root.T if wide else root.T @ root)
    values, vectors = values[::-1], vectors[:, ::-1]
    positive = values > 1e-12 * max(values[0], _TINY)
    # Where all rows are zero, one axis stands for all.
    positive[0] = True
    values = np.maximum(values, _TINY)
    values, vectors = values[positive], vectors[:, positive]
    axes = root.T @ vectors / np.sqrt(values) if wide else vectors
    size = np.abs(axes)
    first = np.argmax(size > (1.0 - 1e-6) * size.max(axis=0), axis=0)
    return values, axes * np.copysign(1.0, axes[first, np.arange(first.size)])


def set_apart(
    Z: Array, sample_weight: Array, bound: float
) -> tuple[list[NDArray[np.bool_]], NDArray[np.bool_]]:
    """Return the minorities that stand apart, as masks of rows, and one that overlaps the others.

    A group counts if it is worth its direction, its share, distance and spread. It stands apart if
    a valley of the density parts it from the others. It overlaps them if there is none, but no one
    law along its direction, however skewed and heavy-tailed, explains the rows as well. All groups
    apart together hold at most the share `bound`.
    """
    n = float(sample_weight.sum())
    rest = np.ones(len(Z), dtype=np.bool_)
    groups: list[NDArray[np.bool_]] = []
    while len(groups) < TUNING.groups:
        minor, apart = _next_group(
            Z[rest], sample_weight[rest], (bound * n) - sample_weight[~rest].sum()
        )
        group = np.zeros(len(Z), dtype=np.bool_)
        group[np.flatnonzero(rest)[minor]] = True
        if not apart:
            return groups, group
        groups.append(group)
        rest &= ~group
    return groups, np.zeros_like(rest)


def _in_span(rows: Array, weight: Array) -> Array:
    """Return rows in coordinates of the directions between them, where those are not all.

    Outside these is rounding, which would be whitened to directions of its own. Of each row only
    the direction from the one nearest to zero counts, not how far it is.
    """
    squared = np.einsum("ij,ij->i", rows, rows)
    from_nearest = rows - rows[np.argmin(squared)]
    length = np.sqrt(np.einsum("ij,ij->i", from_nearest, from_nearest))
    # The difference of two rows that are equal but for rounding has no direction.
    apart = length > 1e-9 * np.sqrt(squared + squared.min())
    if not apart.any():
        return rows
    axes = principal_axes(from_nearest[apart] / length[apart, None], weight[apart])[1]
    return from_nearest @ axes if axes.shape[1] < rows.shape[1] else rows


def _next_group(Z: Array, weight: Array, allowed: float) -> tuple[NDArray[np.bool_], bool]:
    """Return a minority and whether it stands apart; none of the rows where there is none."""
    n, d = float(weight.sum()), Z.shape[1]
    if n < TUNING.rows_for_search * d:
        # Too few rows to look for a direction: those of most variance, as they are.
        Y = _principal(Z, weight)
        found = two_groups(Y, weight, np.eye(Y.shape[1]), EM_STEPS, move=False)
    else:
        # Also where all rows are not, those without the groups before may be in a subspace.
        Y = _bounded(_in_span(Z, weight), weight)
        d = Y.shape[1]
        some, times = _some_rows(Y, weight, max(_SAMPLE, _SAMPLE_PER_FEATURE * d))
        start = _first_directions(Y[some], times)
        found = two_groups(Y[some], times, start, EM_STEPS)
        best = np.argsort(-np.round(found[2], 6), kind="stable")[:8]
        odds = found[1][:, best] if times is weight else None
        found = two_groups(Y, weight, found[0][:, best], EM_STEPS // 2, odds)
    directions, odds, gain = found
    price = price_of_direction(n, d) + 1.5 * np.log(n)
    first = True
    overlapping = np.zeros(len(Z), dtype=np.bool_)
    for j in np.argsort(-np.round(gain, 6), kind="stable"):
        if gain[j] < price:
            break
        minor = odds[:, j] >= 0.5
        if weight[minor].sum() > n / 2.0:
            minor = ~minor
        if not 0.0 < weight[minor].sum() <= allowed:
            continue
        y = Y @ directions[:, j]
        if valley(y, weight, minor) <= TUNING.valley:
            return np.asarray(minor), True
        if first and gain[j] - gain_of_one_law(y, weight) >= 1.5 * np.log(n):
            overlapping = minor
        first = False
    return overlapping, False


def two_groups(
    Y: Array,
    weight: Array,
    directions: Array,
    steps: int,
    odds: Array | None = None,
    *,
    move: bool = True,
) -> tuple[Array, Array, Array]:
    """Fit two Gaussians of one covariance from each of several directions.

    Parameters
    ----------
    Y : ndarray of shape (n, d)
        White: weighted mean 0, weighted covariance I.
    weight : ndarray of shape (n,)
    directions : ndarray of shape (d, m)
        Columns of unit length.
    steps : int
    odds : ndarray of shape (n, m), optional
        The chance of each row to be in the second group; by default the rows at the longer tail.
    move : bool, default=True
        Whether directions move to the difference of the means.

    Returns
    -------
    directions : ndarray of shape (d, m)
    odds : ndarray of shape (n, m)
    gain : ndarray of shape (m,)
        Log likelihood less that of one Gaussian.
    """
    # A group has a row at least, and leaves one.
    share, least = weight / weight.sum(), 1.0 / max(float(weight.sum()), 2.0)
    for step in range(steps + 1):
        y = Y @ directions
        if odds is None:
            odds = _longer_tail(y, share)
        p = np.clip(share @ odds, least, 1.0 - least)
        second = share @ (odds * y) / p
        first = -p * second / (1.0 - p)
        # Variance within; at least a hundredth of the whole, or a point would gain without bound.
        within = np.maximum(1.0 - p * (1.0 - p) * (second - first) ** 2, 0.01)
        log_odds = np.log(p / (1.0 - p)) + (second - first) / within * (y - (first + second) / 2.0)
        odds = expit(log_odds)
        if move and step < steps:
            directions = _unit(Y.T @ (share[:, None] * (odds - share @ odds)))
    likelihood = np.log1p(-p) - (y - first) ** 2 / (2.0 * within) + np.logaddexp(0.0, log_odds)
    gain = weight @ (likelihood - np.log(within) / 2.0 + y**2 / 2.0)
    return directions, np.asarray(odds), np.asarray(gain)


def _longer_tail(y: Array, share: Array) -> Array:
    """Return 1 for the rows at the tail toward which each column is skewed, else 0."""
    y = np.where(share @ y**3 < 0, -1.0, 1.0) * y
    order = np.argsort(-y, axis=0, kind="stable")
    beyond = np.cumsum(share[order], axis=0) > np.resize(_FIRST_SHARES, y.shape[1])
    last = np.take_along_axis(order, beyond.argmax(axis=0)[None, :], axis=0)
    # Equal rows are on one side, that of the tail: they may be all of the minority.
    return (y >= np.take_along_axis(y, last, axis=0)).astype(np.float64)


def _first_directions(Y: Array, weight: Array) -> Array:
    """Return directions in which two groups may show.

    The vector of third moments and the end of their power iteration; both ends of the matrix of
    fourth moments (Cardoso's FOBI), where two groups have the extreme kurtosis; all axes; and some
    fixed ones at random.
    """
    d = Y.shape[1]
    share = weight / weight.sum()
    squared = np.einsum("ij,ij->i", Y, Y)
    skewed = _unit(Y.T @ (share * (squared - d)))
    end = skewed
    for _ in range(10):
        end = _unit(Y.T @ (share * (Y @ end) ** 2))
    fourth = _fourth_axes(Y, share)
    ends = fourth[:, np.unique(np.r_[0 : min(3, d), max(d - 3, 0) : d])]
    random = np.random.default_rng(0).standard_normal((d, 50))
    return _unit(np.column_stack([skewed, end, ends, np.eye(d), random]))


def _bounded(Z: Array, weight: Array) -> Array:
    """Return white rows, those far out drawn in to a radius: Huber's M-scatter.

    Nothing depends on how columns were mixed.
    """
    share = weight / weight.sum()
    Y = Z - column_quantiles(Z, weight, [0.5])[0]
    for _ in range(10):
        shrunk = share * _pull(Y, weight, Z.shape[1])
        Y = Y - shrunk @ Y / shrunk.sum()
        whitener, spread = _whitener(Y * _pull(Y, weight, Z.shape[1])[:, None], share)
        Y = Y @ whitener
        if spread < 1.05:
            break
    Y = Y * _pull(Y, weight, Z.shape[1])[:, None]
    Y = Y - share @ Y
    Y = Y @ _whitener(Y, share)[0]
    # White rows have no axes but those of their fourth moments.
    return np.asarray(Y @ _fourth_axes(Y, share))


def _principal(Z: Array, weight: Array) -> Array:
    """Return rows along their leading principal axes, of variance one along each.

    Far rows are drawn in first, so that no axis is one row. Lengths of correlated rows vary as
    those of fewer degrees of freedom than there are features.
    """
    share = weight / weight.sum()
    Y = Z - column_quantiles(Z, weight, [0.5])[0]
    squared = np.einsum("ij,ij->i", Y, Y)
    law = radial_law(squared, weight, Z.shape[1], float(weight.sum()), 0.0, shrink=True)
    Y = Y * _pull(Y, weight, law.k)[:, None]
    Y = Y - share @ Y
    values, axes = principal_axes(Y, weight)
    # Axes of less than average variance are those of single rows.
    leading = values >= np.mean(values)
    return np.asarray(Y @ axes[:, leading] / np.sqrt(values[leading]))


def _pull(Y: Array, weight: Array, degrees: float) -> Array:
    """Return the factor that draws each row in to the radius that 1 in 100 Gaussian rows exceed.

    In units of the median of the distances from the origin.
    """
    squared = np.einsum("ij,ij->i", Y, Y)
    # Half of the rows may be equal.
    middle = weighted_quantile(squared, weight, [0.5])[0] or weight @ squared / weight.sum()
    radius = middle * chdtri(degrees, 0.01) / chdtri(degrees, 0.5)
    return np.asarray(np.sqrt(np.minimum(radius, squared) / np.maximum(squared, _TINY)))


def _whitener(Y: Array, share: Array) -> tuple[Array, float]:
    """Return S^(-1/2) of the second moments S, and their largest over their least."""
    values, axes = np.linalg.eigh((Y * share[:, None]).T @ Y)
    values = np.maximum(values, max(1e-10 * values[-1], _TINY))
    return (axes / np.sqrt(values)) @ axes.T, float(values[-1] / values[0])


def _fourth_axes(Y: Array, share: Array) -> Array:
    """Return the axes of the fourth moments, each toward the longer tail of the rows along it."""
    squared = np.einsum("ij,ij->i", Y, Y)
    axes = np.linalg.eigh((Y * (share * squared)[:, None]).T @ Y)[1]
    return np.asarray(axes * np.where(share @ (Y @ axes) ** 3 < 0.0, -1.0, 1.0))


def _some_rows(Y: Array, weight: Array, count: int) -> tuple[Indices, Array]:
    """Return about so many rows, evenly spaced along a fixed direction, with their weights."""
    if weight.sum() <= count:
        return np.arange(len(Y)), weight
    order = np.argsort(Y @ np.random.default_rng(1).standard_normal(Y.shape[1]), kind="stable")
    places = (np.arange(count) + 0.5) * (weight.sum() / count)
    chosen = np.searchsorted(np.cumsum(weight[order]), places)
    chosen, times = np.unique(chosen, return_counts=True)
    return order[chosen], times.astype(np.float64)


def valley(y: Array, weight: Array, minor: NDArray[np.bool_]) -> float:
    """Return the least density between two groups over the lower of the densities at them."""
    if min(weight[minor].sum(), weight[~minor].sum()) < TUNING.fewest_in_law:
        return 1.0
    means, deviations = [], []
    for group in (minor, ~minor):
        share = weight[group] / weight[group].sum()
        means.append(float(share @ y[group]))
        deviations.append(float(np.sqrt(share @ (y[group] - means[-1]) ** 2)))
    if max(deviations) == 0.0:
        # Two values, and nothing between them.
        return 0.0
    # Silverman's width for the narrower group.
    width = 1.06 * max(min(deviations), 1e-3 * max(deviations)) * weight.sum() ** -0.2
    grid = np.linspace(means[0], means[1], 41)
    density = np.exp(-0.5 * ((grid[:, None] - y) / width) ** 2) @ weight
    lower_peak = max(float(min(density[:5].max(), density[-5:].max())), _TINY)
    return float(density.min()) / lower_peak


def gain_of_one_law(y: Array, weight: Array) -> float:
    r"""Return by how many nats one skewed, heavy-tailed law explains y better than a Gaussian.

    The most likely sinh-arcsinh law (Jones and Pewsey, 2009): with :math:`u = (y - m)/s` the value
    :math:`\sinh(\delta \operatorname{arcsinh} u - \epsilon)` is standard Gaussian. Skewness is
    :math:`\epsilon`; tails are heavier than a Gaussian's where :math:`\delta < 1`.
    """
    n = float(weight.sum())
    y = y - weight @ y / n
    y = y / max(float(np.sqrt(weight @ y**2 / n)), _TINY)

    def loss(t: Array) -> tuple[float, Array]:
        shrink, delta = np.exp(-t[1]), np.exp(t[3])
        u = (y - t[0]) * shrink
        bent = delta * np.arcsinh(u)
        z, root = np.sinh(bent - t[2]), np.sqrt(1.0 + u * u)
        steep = np.sqrt(1.0 + z * z)
        value = weight @ (np.log(steep / root) - 0.5 * z * z) + n * (t[3] - t[1])
        by_bent = z / steep - z * steep
        by_u = (by_bent * delta - u / root) / root
        gradient = [-shrink * (weight @ by_u), -n - weight @ (by_u * u)]
        gradient += [-(weight @ by_bent), n + weight @ (by_bent * bent)]
        return -float(value), -np.array(gradient)

    side = float(np.sign(weight @ y**3))
    starts = ([0.0, 0.0, 0.0, 0.0], [-0.5 * side, -0.3, side, -0.3])
    bounds = [(-3.0, 3.0), (-3.0, 3.0), (-6.0, 6.0), (-1.5, 1.5)]
    fits = [minimize(loss, t, jac=True, method="L-BFGS-B", bounds=bounds) for t in starts]
    return float(n / 2.0 - min(fit.fun for fit in fits))


def _unit(columns: Array) -> Array:
    return np.asarray(columns / np.maximum(np.linalg.norm(columns, axis=0), _TINY))
