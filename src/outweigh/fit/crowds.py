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
    step, filled = np.array(steps), np.flatnonzero(np.any(shares, axis=0))
    half = BINS // 2 - min(filled[0], BINS - 1 - filled[-1])
    mass = np.array(shares)[:, BINS // 2 - half : BINS // 2 + half]
    at = np.arange(2 * half) - (half - 0.5)
    # Between two points with rows a bin ends half-way: those between values that a feature does not
    # take are no evidence.
    before = np.maximum.accumulate(np.where(mass > 0.0, at, -np.inf), axis=1)[:, :-1]
    after = np.minimum.accumulate(np.where(mass > 0.0, at, np.inf)[:, ::-1], axis=1)[:, -2::-1]
    ends = (before + after) / 2.0 * (step / deviations)[:, None]
    below, expected = np.zeros((2, len(columns), 2 * half + 1))
    np.cumsum(mass, axis=1, out=below[:, 1:])
    expected[:, 1:-1], expected[:, -1] = law.below(ends), 1.0
    guesses: dict[int, list[Array]] = {}
    for side, outermost in ((slice(half + 1), 0), (slice(half, None), 2 * half)):
        begin, end = _most_evident(below[:, side], expected[:, side], n)
        for place in np.flatnonzero(end).tolist():
            inner = begin[place] + (side.start or 0), end[place] + (side.start or 0)
            for start, stop in (inner, (min(inner[0], outermost), max(inner[1], outermost))):
                o, e = (of[place, stop] - of[place, start] for of in (below, expected))
                guess = np.zeros(2 * half)
                guess[start:stop] = max(1.0 - e / o, 0.0)
                guesses.setdefault(place, []).append(guess[mass[place] > 0.0])
    for place in sorted(guesses):
        seen = mass[place] > 0.0
        yield place, means[place] + step[place] * at[seen], mass[place, seen], guesses[place]


def _most_evident(below: Array, expected: Array, n: float) -> tuple[Indices, Indices]:
    """Return where the interval of most evidence begins and ends; 0 twice if it is not enough.

    Given the shares up to each point, of the rows and by a law.
    """
    most = np.full(len(below), _LAW_PRICE * np.log(n))
    begin, end = np.zeros((2, len(below)), dtype=np.intp)
    more = below - expected
    for width in (1 << power for power in range((below.shape[1] - 1).bit_length())):
        e = expected[:, width:] - expected[:, :-width]
        excess = more[:, width:] - more[:, :-width]
        # There are no more nats than n (o - e)^2 / e.
        rows, at = np.nonzero(n * excess * np.abs(excess) > most[:, None] * e)
        e, excess = np.maximum(e[rows, at], _TINY), excess[rows, at]
        evidence = n * ((e + excess) * np.log1p(excess / e) - excess)
        order = np.argsort(evidence, kind="stable")
        order = order[evidence[order] > most[rows[order]]]
        # Of several in a feature the last, which is most evident, stays.
        most[rows[order]], begin[rows[order]] = evidence[order], at[order]
        end[rows[order]] = at[order] + width
    return begin, end
