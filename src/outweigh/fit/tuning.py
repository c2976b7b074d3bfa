"""Every number that can change an answer and that no formula gives, in one place.

Each field says what it decides, why it has the size it has, and what its neutral value is: the one
that switches the rule off. ``python -m benchmarks rules`` switches each off in turn and prints by
how much errors, times and passes move; a number that moves nothing does not stay.

Numbers that follow from a formula (quantiles of a named law, factors that make a robust scale
consistent for Gaussian data) stand beside their formula instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any


def _rule(value: float, *, off: float) -> Any:
    """Return a field with its value, and the one that switches its rule off."""
    return field(default=value, metadata={"off": off})


@dataclass(frozen=True, slots=True)
class Tuning:
    """The numbers behind a fit.

    Attributes
    ----------
    loose_bound
        The contamination assumed at first where it is to be estimated.
    volume_bound
        The same for components in noise that is not white, where the least volume of too few rows
        is a part of the bulk: at 0.4 the cap of 16 in 40 curves is flagged.
    rows_per_direction, most_directions
        Components in noise that is not white: with so many rows for each direction rows are judged
        in all directions, else in so many leading ones, and by how far they are from these. With 12
        for 8 a tenth more of the genuine digits is flagged and fewer of the others are.
    clump
        A group that stands apart is a clump where its deviation is this part of the bulk's, or
        less: it is wrong wherever it is. Wider ones may be genuine, as kinds of a digit are (0.5
        and more), and their distance tells. At 0.25 of clusters eight deviations away in skewed and
        heavy columns .58 is found for .84 (`pca_cases --group tails`), and nothing else moves.
    slow
        On a part of the features, two steps in a row that leave more than this share of the best
        value end a descent: the next full pass knows better what is left to do.
    groups
        Groups of outliers that rows may be weighed by; more than there are in any study.
    fewest_columns
        A first full pass names as many features as there are nonzero entries, and at least so many.
    clear_evidence
        Energy in this excess over what noise gives to any feature once in twenty samples is clear
        evidence; the rows it is summed over were chosen for being large, by which noise gains.
    fewest_for_parts
        With fewer features a descent runs on all of them at once. On parts of them the errors of
        outliers that overlap clean rows are larger: over four draws of `overlap grid` by 2 % in the
        mean, and nine in ten below 1.60 of the oracle's for 1.46.
    max_rounds
        Full passes that one search may take.
    units_tolerance
        Units are found again with the weights found where a deviation is off by more than this.
    count_tolerance
        A number of entries is counted again where the count is off by more than this share.
    attempts
        How often a fit is made again in better units or with a better count, the first included.
    far
        A row is beyond reach this many deviations of the distances beyond their median; a value of
        a column that rows are not judged by, so many times as far from the median as most others.
    candidates
        Sparse or dense directions looked at beyond the components asked for.
    bulk
        Steepness of the weights exp(-bulk z^2 / 2) under which the variance of the bulk is read.
    white_excess
        What the noise of components may show in excess of white noise: the mean square of the
        eigenvalues, over their squared mean, may be 1.1 plus this many times d/n.
    correlated
        Rows are correlated where the bulk along an axis varies by this factor more than the edge of
        white noise, if there are signs of outliers along it: white rows under all attacks of the
        library show at most 1.45 (shares to 0.3, 300x10 to 5000x300), series, factors and blocks of
        correlation 0.6 at least 1.9. So they are where weights that make white rows clean stall
        this factor above the clean level.
    few_values
        A column of at most this many values that count is not continuous: rows are judged by it
        only where there is no pair of others, and groups in it are told, not removed. With all
        columns of four and more judged like the others fewer of the ordinary tables stay quiet.
    few_far, few_far_share
        So many far rows, or that share of all, are single outliers; more may be the tail of one
        law. Where those in excess of the law are asked for that instead, a class of .05 planted in
        another costs 1.0 of the plain mean's error for .64 (`real`, the chosen half). With straight
        columns this share of clean rows is as far out as rows that components distrust; at .01 and
        .05 clean lognormal rows lose .013 and .032, and .76 and .84 of breast cancer is found.
    false_discoveries
        Of the rows taken for far this share may be clean. At 0.05 more ordinary tables lose a tenth
        of their rows.
    inner
        Rows are measured by this share of those trusted, the nearest to the core. With all of them
        rows of a class planted in another hide one another; with fewer, fewer ordinary tables are
        quiet.
    valley
        Two groups are two where the density between them falls to this part of the lower peak.
    rows_per_feature
        With fewer rows for each feature a covariance is shrunk toward a multiple of the identity.
    """

    loose_bound: float = _rule(0.4, off=0.49)
    volume_bound: float = _rule(0.25, off=0.4)
    rows_per_direction: int = _rule(5, off=1)
    most_directions: int = _rule(8, off=10**9)
    clump: float = _rule(0.45, off=0.0)
    slow: float = _rule(0.98, off=1.0)
    groups: int = _rule(20, off=0)
    fewest_columns: int = _rule(30, off=1)
    clear_evidence: float = _rule(1.5, off=1.0)
    fewest_for_parts: int = _rule(64, off=0)
    max_rounds: int = _rule(8, off=100)
    units_tolerance: float = _rule(0.03, off=math.inf)
    count_tolerance: float = _rule(0.2, off=0.0)
    attempts: int = _rule(3, off=1)
    far: float = _rule(10.0, off=0.0)
    candidates: int = _rule(3, off=0)
    bulk: float = _rule(0.5, off=1e-9)
    white_excess: float = _rule(2.0, off=math.inf)
    correlated: float = _rule(1.6, off=math.inf)
    few_values: int = _rule(10, off=1)
    few_far: int = _rule(5, off=0)
    few_far_share: float = _rule(0.02, off=0.0)
    false_discoveries: float = _rule(0.01, off=0.0)
    inner: float = _rule(0.95, off=1.0)
    valley: float = _rule(0.25, off=1.0)
    rows_per_feature: float = _rule(10.0, off=0.0)


TUNING = Tuning()
