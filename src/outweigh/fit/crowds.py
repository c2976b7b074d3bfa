r"""Rows that lie together in single features.

Few rows at one place add less to second moments than noise does. But the density shows them: where
more rows lie in an interval than the law of clean rows has there, a group begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from outweigh.fit.law import GAUSSIAN, Law, masses_at
from outweigh.fit.mixture import Group, laws_along
from outweigh.fit.posterior import (
    BINS,
    BINS_IN_QUARTILES,
    Weighed,
    direction_price,
    nats_gained,
    weighed,
)
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, Indices, Samples
from outweigh.samples.dense import values_of

# A law of four numbers costs so many times log(n).
_LAW_PRICE = 2.0
# The distance between the quartiles of a Gaussian.
_QUARTILES = 1.349
_TINY = 1e-12
# Their histograms are held together.
_FEATURES_AT_ONCE = 256


def groups_in_features(
    samples: Samples,
    domain: CappedSimplex,
    weights: Array,
    lift: Callable[[Array], Array],
    law: Law = GAUSSIAN,
) -> Weighed:
    """Find rows that lie together in single features, and weigh rows by them.

    Parameters
    ----------
    samples : Samples
        In units of the noise: the features to look at.
    domain, lift
        As for `groups_apart`.
    weights : ndarray of shape (n,)
        Before the look.
    law : Law
        Of clean rows in a feature.

    Returns
    -------
    weights, groups, wrong
        As for `groups_apart`.
    """
    n, d = float(domain.metric.sum()), samples.n_features
    columns, looked_at = np.ascontiguousarray(values_of(samples).T), 0
    # What may be removed: of more than that, the others may as well be the clean rows.
    most = 1.0 - 1.0 / float(domain.caps.sum())

    def find(clean: Array) -> tuple[Group, Array] | None:
        nonlocal looked_at
        first, base = looked_at, weights * clean / float(weights @ clean)
        for place, values, counts, guesses in _crowded(columns[first:], base, n, law):
            looked_at = first + place + 1
            direction = np.eye(1, d, first + place)[0]
            found = [laws_along(values, counts, n, law, guess, most) for guess in guesses]
            groups = [group for group in found if group is not None]
            worth = [nats_gained(group, values, counts, n) for group in groups]
            if max(worth, default=0.0) > direction_price(lift(direction), n):
                return replace(groups[int(np.argmax(worth))], direction=direction), columns[
                    first + place
                ]
        return None

    return weighed(find, domain, weights, weights, d)


def crowded_features(rows: Array, times: Array, law: Law) -> Indices:
    """Return the features of few rows, each counted so many times, in which some lie together."""
    n, d = float(times.sum()), rows.shape[1]
    blocks = range(0, d, _FEATURES_AT_ONCE)
    found = [
        start + place
        for start in blocks
        for place, *_ in _crowded(
            np.ascontiguousarray(rows[:, start : start + _FEATURES_AT_ONCE].T), times / n, n, law
        )
    ]
    return np.array(found, dtype=np.intp)


def _crowded(
    columns: Array, base: Array, n: float, law: Law
) -> Iterator[tuple[int, Array, Array, list[Array]]]:
    r"""Yield the features in which rows are too many somewhere, and which these may be.

    With the share o of the rows in an interval and e that the law has there,
    :math:`n (o \log(o/e) - o + e)` nats are evidence of too many where o exceeds e. On either side
    of the mean those in the interval in which it is most evident, and all from there outwards: a
    group may be narrower than clean rows, or moved and as wide. None of a side where the evidence
    against one law is below the price of another.

    Parameters
    ----------
    columns : ndarray of shape (d, n)
    base, n, law
        As for `outweigh.fit.mixture.fitted`.

    Yields
    ------
    place : int
    values, counts : ndarray of shape (b,)
        The feature on a grid about its mean: where there are rows, and their weight.
    guesses : list of ndarray of shape (b,)
        How likely those at each point are to be too many.
    """
    if columns.size == 0:
        return
    means = columns @ base
    deviations, steps, shares = [], [], []
    for column, mean in zip(columns, means.tolist(), strict=True):
        away = column - mean
        deviation = float(np.sqrt(base @ (away * away)))
        # In units of the noise outliers only widen a feature.
        steps.append(min(deviation, 1.0) * _QUARTILES / BINS_IN_QUARTILES or 1.0)
        deviations.append(deviation or 1.0)
        shares.append(masses_at(away / steps[-1] + (BINS - 1) / 2.0, base, BINS))
    step, mass = np.array(steps), np.array(shares)
    # Points with rows alone, at the left: those that a feature does not take are no evidence.
    sizes = np.count_nonzero(mass, axis=1)
    order = np.argsort(mass == 0.0, axis=1, kind="stable")[:, : sizes.max()]
    mass = np.take_along_axis(mass, order, axis=1)
    at = np.where(mass > 0.0, order - (BINS - 1) / 2.0, np.inf)
    below, expected = np.zeros((2, len(columns), mass.shape[1] + 1))
    np.cumsum(mass, axis=1, out=below[:, 1:])
    # Half-way between two points one bin ends.
    ends = (at[:, 1:] + at[:, :-1]) / 2.0 * (step / deviations)[:, None]
    expected[:, 1:-1], expected[:, -1] = law.below(ends), 1.0
    split = np.clip(np.count_nonzero(at < 0.0, axis=1), 1, np.maximum(sizes - 1, 1))
    intervals = _most_evident(below, expected, split, n)
    # Where most rows are equal clean ones are, and other values are no group for being rare.
    uneven = (below[:, 2:] - below[:, :-2]).max(axis=1, initial=0.0) <= 0.5
    for place in np.flatnonzero(intervals.any(axis=(0, 2)) & uneven).tolist():
        guesses, size = [], sizes[place]
        for outermost, (begin, end) in zip((0, size), intervals[:, place].tolist(), strict=True):
            # None on a side is an interval from 0 to 0.
            outwards = min(begin, outermost), max(end, outermost)
            for start, stop in dict.fromkeys(((begin, end), outwards)) if end else ():
                o, e = (of[place, stop] - of[place, start] for of in (below, expected))
                guess = np.zeros(size)
                guess[start:stop] = max(1.0 - e / o, 0.0)
                guesses.append(guess)
        yield place, means[place] + step[place] * at[place, :size], mass[place, :size], guesses


def _most_evident(below: Array, expected: Array, split: Indices, n: float) -> Indices:
    """Return where the interval of most evidence begins and ends, before a split and after it.

    Shape (2, d, 2), 0 twice where there is not enough. Given are the shares up to each point, of
    the rows and by a law, shape (d, b + 1).
    """
    most = np.full((2, len(below)), _LAW_PRICE * np.log(n))
    found = np.zeros((2, len(below), 2), dtype=np.intp)
    more = below - expected
    for width in (1 << power for power in range((below.shape[1] - 1).bit_length())):
        e = expected[:, width:] - expected[:, :-width]
        excess = more[:, width:] - more[:, :-width]
        # There are no more nats than n (o - e)^2 / e.
        rows, at = np.nonzero(n * excess * np.abs(excess) > most.min(axis=0)[:, None] * e)
        across = (at < split[rows]) & (at + width > split[rows])
        rows, at = rows[~across], at[~across]
        e, excess = np.maximum(e[rows, at], _TINY), excess[rows, at]
        evidence = n * ((e + excess) * np.log1p(excess / e) - excess)
        side = (at >= split[rows]).astype(np.intp)
        order = np.argsort(evidence, kind="stable")
        order = order[evidence[order] > most[side[order], rows[order]]]
        side, rows, at = side[order], rows[order], at[order]
        # Of several in a feature the last, which is most evident, stays.
        most[side, rows] = evidence[order]
        found[side, rows] = np.stack([at, at + width], axis=1)
    return found
