"""Every number that can change an answer and that no formula gives, in one place.

Each field says what it decides, why it has the size it has, and what its neutral value is: the one
that switches the rule off. ``python -m benchmarks rules`` switches each off in turn and prints by
how much errors, times and passes move; a number that moves nothing does not stay.

Numbers that follow from a formula (quantiles of a named law, factors that make a robust scale
consistent for Gaussian data) stand beside their formula instead.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TUNING", "Tuning"]


@dataclass(frozen=True, slots=True)
class Tuning:
    """The numbers behind a fit.

    Attributes
    ----------
    loose_bound
        The contamination assumed at first where it is to be estimated.
    room_factor, room
        The share that the first descent removed falls short of the contamination where outliers
        overlap the clean rows: the last step may remove ``room_factor * share + room``.
    near
        A descent ends this factor above the level it steps toward, which it nears ever more slowly.
    slow
        On a part of the features, two steps in a row that leave more than this share of the best
        value end a descent: the next full pass knows better what is left to do.
    cut_may_score
        Weights after a cut may score this factor more than those before it, on the features
        descended on: a cut keeps clean rows that the descent trims for their share of the norm.
    nearest_cut, farthest_cut
        Limits of a cut in deviations: a nearer one takes too many clean rows, one farther out
        leaves too many outliers.
    cut_pull
        A row one deviation beyond the cut loses this many times its weight: all of it.
    cut_rounds
        How often the direction of the removed rows is looked for again.
    columns_per_entry, fewest_columns
        A first full pass names this many features for each nonzero entry, and at least so many.
    clear_evidence
        Energy in this excess over what noise gives to any feature once in twenty samples is clear
        evidence; the rows it is summed over were chosen for being large, by which noise gains.
    spare_directions
        Directions below the level that a descent along directions takes along: they may come to
        exceed it on the way.
    fewest_for_directions
        With fewer features a descent runs on all of them at once.
    missed_length
        A direction beyond the level is missed by a span where this length of it lies outside.
    max_rounds
        Full passes that one search may take.
    patience
        Steps without progress after which the level that steps aim at moves up.
    units_tolerance
        Units are found again with the weights found where a deviation is off by more than this.
    count_tolerance
        A number of entries is counted again where the count is off by more than this share.
    attempts
        How often a fit is made again in better units or with a better count, the first included.
    far
        A row is beyond reach this many deviations of the distances beyond their median.
    unit_factor, unit_columns
        A column may be of unit noise where its robust scales are within this factor of one, and
        columns are left alone where this share of them may be.
    candidates
        Sparse or dense directions looked at beyond the components asked for.
    bulk
        Steepness of the weights exp(-bulk z^2 / 2) under which the variance of the bulk is read.
    white_excess
        What the noise of components may show in excess of white noise: the mean square of the
        eigenvalues, over their squared mean, may be 1.1 plus this many times d/n.
    """

    loose_bound: float = 0.4
    room_factor: float = 1.15
    room: float = 0.01
    near: float = 1.03
    slow: float = 0.98
    cut_may_score: float = 1.25
    nearest_cut: float = 2.0
    farthest_cut: float = 4.0
    cut_pull: float = 5.0
    cut_rounds: int = 2
    columns_per_entry: int = 3
    fewest_columns: int = 30
    clear_evidence: float = 1.5
    spare_directions: int = 8
    fewest_for_directions: int = 64
    missed_length: float = 0.3
    max_rounds: int = 8
    patience: int = 5
    units_tolerance: float = 0.03
    count_tolerance: float = 0.2
    attempts: int = 3
    far: float = 10.0
    unit_factor: float = 2.0
    unit_columns: float = 0.9
    candidates: int = 3
    bulk: float = 0.5
    white_excess: float = 2.0


TUNING = Tuning()
