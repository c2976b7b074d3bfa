"""Every number that can change an answer and that no formula gives, in one place.

Each field says what it decides, why it has the size it has, and what its neutral value is: the one
that switches the rule off. ``python -m benchmarks rules`` switches each off in turn and prints by
how much errors, times and passes move; a number that moves nothing does not stay.

Numbers that follow from a formula (quantiles of a named law, factors that make a robust scale
consistent for Gaussian data) stand beside their formula instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
        for 8 a tenth more of the genuine digits is flagged and fewer of the others are. Clumps are
        looked for in these and in all: in these alone the error of two tables of `pca_grid` rises,
        .19 to .58 and .07 to .14.
    clump
        A group that stands apart is a clump where its deviation is this part of the bulk's, or
        less: it is wrong wherever it is. Wider ones may be genuine, as kinds of a digit are (0.5
        and more), and their distance tells. At 0.25 of clusters eight deviations away in skewed and
        heavy columns .58 is found for .84 (`pca_cases --group tails`), and nothing else moves.
    slow
        On a part of the features, two steps in a row that leave more than this share of the best
        value end a descent: the next full pass knows better what is left to do.
    groups
        Groups of outliers that rows may be weighed by, or set apart in; more than there are in any
        study.
    fewest_columns
        A first full pass names as many features as there are nonzero entries, and at least so many.
    clear_evidence
        Energy in this excess over what noise gives to any feature once in twenty samples is clear
        evidence; the rows it is summed over were chosen for being large, by which noise gains.
    fewest_for_parts
        With fewer features a descent runs on all of them at once. On parts of them the errors of
        outliers that overlap clean rows are larger: over four draws of `overlap grid` by 2 % in the
        mean, and nine in ten below 1.60 of the oracle's for 1.46.
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
        Of the rows that components take for far this share may be clean.
    inner
        Rows are measured by this share of those trusted, the nearest to the core. With all of them
        rows of a class planted in another hide one another; with fewer, fewer ordinary tables are
        quiet.
    valley
        Two groups are two where the density between them falls to this part of the lower peak.
    rows_per_feature
        With fewer rows for each feature a covariance is shrunk toward a multiple of the identity,
        and no robust scatter is taken in several directions.
    rows_for_search
        A direction among all, along which groups stand apart, is sought where there are so many
        rows for each feature.
    rows_per_parameter
        So many rows for each entry of two covariances, before outliers on the own features of a
        component are looked for.
    fewest_rows
        Of fewer rows none is called wrong, and nothing is said of them.
    second_group
        A group of this share may be genuine, and is said to be one of two.
    core
        The core holds half of all rows, and no more than this part of those in no group.
    least_skew, most_skew
        A column is made straight where Tukey's g is so large, and by no larger g.
    drawn_in
        Beyond this many deviations a straightened column goes on as a line: a logarithm would draw
        far rows in. Where asymmetry is measured they are drawn in to there. Three deviations hold
        all but 0.3 % of a Gaussian column.
    fewest_in_law
        Fewer rows have no law of their own.
    laws
        Laws of outliers along one direction: more would only follow the noise of one that is
        smeared.
    narrowest
        A law narrower than this share of the spread of all rows is a point.
    negligible
        A chance to be wrong below this is as good as none, and leaves nearly all rows their weight.
    centre_off
        Rows are pruned at the distance that clean ones keep to about a centre that is off by this
        much of the noise in every feature.
    excess
        Rows far out are too many where there are more than so many times what a law foretells; rows
        lie to one side where their mean is so many times as long, squared, as that of others.
    at_one
        A law of distances that has more than this share at one of them has no density.
    bounded, uncounted
        Where whiteness is judged entries are bounded at so many deviations, and do not count beyond
        so many.
    white_deviations
        So many deviations of a variance are room enough for white noise where no groups are seen.
        Where rows are so few that they hide the excess, rows are taken for correlated.
    white_rows, white_features, aside
        A level of white noise is told from the spikes of components by so many rows and features,
        with so many spikes beside the components set aside.
    uneven, white_level
        What the mean square of eigenvalues over their squared mean may be in white noise, before
        what few rows add; and by what factor the level may differ from that of a typical column.
    beside
        A column that lies in the components but for this share tells nothing of the noise.
    start_entries
        A component of unknown entries begins with so many.
    bulk_part, above_edge
        The bulk varies along a direction, and not outliers alone, where it has this part of the
        variance there, and this much more than the edge of noise.
    deviations
        So many deviations below one a variance of clean rows hardly is; so far above its mean what
        the entries of a covariance gain in noise hardly is.
    elsewhere
        The second Gaussian on the features of a component is one of outliers where it is wider than
        the bulk along a typical direction by no more than this factor: tails are wider along all.
        Without it components of Laplace rows are off by .059 for .039.
    first_counted
        The entries of a mean are at first this part of the features at most.
    new_length
        An eigenvector that lies in a span but for this length adds nothing to it.
    distance_gain, loss_gain
        Steepness of the two terms of a score: negligible among clean rows, in command beyond the
        radius or once half of a row's weight is lost.
    order_gain
        What a distance adds to a score, by which rows that nothing speaks against are in an order.
    small_deviation
        A feature in which a row's squared deviation is below this share of its largest hardly
        counts against it.
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
    rows_for_search: int = _rule(3, off=0)
    rows_per_parameter: int = _rule(5, off=0)
    fewest_rows: int = _rule(10, off=0)
    second_group: float = _rule(0.2, off=1.0)
    core: float = _rule(0.75, off=1.0)
    least_skew: float = _rule(0.1, off=0.0)
    most_skew: float = _rule(1.0, off=math.inf)
    drawn_in: float = _rule(3.0, off=8.0)
    fewest_in_law: float = _rule(3.0, off=1.0)
    laws: int = _rule(4, off=1)
    narrowest: float = _rule(0.02, off=1e-12)
    negligible: float = _rule(1e-3, off=0.0)
    centre_off: float = _rule(0.2, off=0.0)
    excess: float = _rule(2.0, off=1.0)
    at_one: float = _rule(0.25, off=2.0)
    bounded: float = _rule(1.5, off=4.0)
    uncounted: float = _rule(4.0, off=1e6)
    white_deviations: float = _rule(4.0, off=0.0)
    white_rows: int = _rule(30, off=0)
    white_features: int = _rule(8, off=1)
    aside: int = _rule(4, off=0)
    uneven: float = _rule(1.1, off=1.0)
    white_level: float = _rule(2.0, off=math.inf)
    beside: float = _rule(0.1, off=0.0)
    start_entries: int = _rule(12, off=1)
    bulk_part: float = _rule(0.7, off=0.0)
    above_edge: float = _rule(1.15, off=1.0)
    deviations: float = _rule(2.5, off=0.0)
    elsewhere: float = _rule(1.5, off=math.inf)
    first_counted: float = _rule(0.25, off=1.0)
    new_length: float = _rule(0.03, off=1e-6)
    distance_gain: float = _rule(20.0, off=1.0)
    loss_gain: float = _rule(3.0, off=1.0)
    order_gain: float = _rule(1e-3, off=0.0)
    small_deviation: float = _rule(0.05, off=1e-9)


TUNING = Tuning()
"""The numbers of every fit."""


@contextmanager
def tuned(**numbers: float) -> Iterator[None]:
    """Make fits with other numbers while the context lasts: for studies of the numbers, and tests.

    The table is that of the whole process, so no other thread may fit meanwhile.

    Examples
    --------
    >>> with tuned(groups=0):
    ...     TUNING.groups
    0
    >>> TUNING.groups
    20
    """
    usual = {name: getattr(TUNING, name) for name in numbers}
    try:
        _set(numbers)
        yield
    finally:
        _set(usual)


def _set(numbers: Mapping[str, float]) -> None:
    for name, value in numbers.items():
        # Frozen, so that nothing else changes them.
        object.__setattr__(TUNING, name, value)
