"""A fit from raw rows to an answer: the road that all four estimators take.

noise -> problem -> search at a loose bound -> the share it removed -> search at that share -> read
out -> score and certificate. Where better units, or a better count of entries, follow from the
weights found, the road is taken again. What differs between the estimators is a `Task`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from outweigh.fit.beyond import Beyond, BeyondReader, level_beside
from outweigh.fit.certificate import Certificate, stationarity, theorem_stationarity
from outweigh.fit.distances import DistanceScore, distances_for
from outweigh.fit.elliptical import judge_rows
from outweigh.fit.marginals import judged_columns
from outweigh.fit.noise import ROWS_FOR_ORIGIN, Noise, first_look
from outweigh.fit.posterior import freedom_along, groups_spread
from outweigh.fit.problem import Problem, typical_kurtosis
from outweigh.fit.readers import (
    DenseReader,
    Reader,
    SparseReader,
    count_entries,
    count_significant,
    effective_entries,
    is_white,
    largest_of,
    orthonormal,
)
from outweigh.fit.score import EllipticalScore, RowScore, score_rows
from outweigh.fit.search import Found, Search, Weights
from outweigh.fit.standing_out import judge_on_features
from outweigh.fit.tuning import TUNING, Tuning
from outweigh.fit.volume import least_volume, share_beyond
from outweigh.fit.whiteness import MOST_ROWS, bulk_excess, some_columns
from outweigh.fit.workspace import Everything, Part, Workspace, workspace_for
from outweigh.forms import Form
from outweigh.norms import KyFan, RowwiseLargest
from outweigh.norms.entrywise import top_k_indices
from outweigh.norms.floor import NoiseFloor
from outweigh.objectives import MomentObjective
from outweigh.optimise import steps_for
from outweigh.optimise.descent import Callback, Iterate
from outweigh.protocols import Array, Norm, Samples, Status
from outweigh.samples import Rows
from outweigh.samples.dense import column_energy, in_memory, in_span
from outweigh.samples.matrices import as_array

__all__ = ["Fit", "Settings", "Task", "certified", "fit", "weighted_covariance"]

# With fewer rows than this no second moment tells a wrong one from a clean one.
_FEWEST_ROWS = 10
# Sparse components are sought among the columns of most energy when there are more than these.
_SCREEN_ABOVE, _SCREENED = 3000, 1500
_ENERGY_ROWS = 2000
# Rows of unknown covariance are judged on a sample of no more values than this.
_VALUES_TO_JUDGE = 20_000_000


@dataclass(frozen=True, slots=True)
class Task:
    """What differs between the four estimators.

    Attributes
    ----------
    n_components : int
        0 for a mean.
    n_nonzero : tuple of int or None
        Nonzero entries of the mean, or of each component; () counts them, None is for all.
    centred : bool
        Whether second moments are about the weighted mean.
    """

    n_components: int = 0
    n_nonzero: tuple[int, ...] | None = None
    centred: bool = True

    @property
    def is_sparse(self) -> bool:
        """Whether the answer has few nonzero entries."""
        return self.n_nonzero is not None


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user may set beside the task.

    ``contamination`` is None where it is to be found. ``covariance`` is that of clean rows where it
    is known; else None, and ``find_covariance`` says whether rows may be correlated.
    """

    contamination: float | None
    scale: str | Array | None
    covariance: Array | None
    solver: str
    max_iter: int
    tuning: Tuning = TUNING
    find_covariance: bool = False

    @property
    def bound(self) -> float:
        """The largest share that may be removed, before the data says more."""
        return self.tuning.loose_bound if self.contamination is None else self.contamination


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What a fit ends with.

    Attributes
    ----------
    noise : Noise
    problem : Problem
        The objective that the weights were searched for last, on all features.
    found : Found
        The weights, with forces and groups in the coordinates of ``noise.samples``.
    certificate : Certificate
    score : RowScore, DistanceScore or EllipticalScore
    scores : ndarray of shape (n,)
        Of the rows of the fit.
    components : ndarray of shape (d, r)
        In units of the noise, columns of unit length; r is 0 for a mean.
    """

    noise: Noise
    problem: Problem
    found: Found
    certificate: Certificate
    score: RowScore | DistanceScore | EllipticalScore
    scores: Array
    components: Array

    @property
    def weights(self) -> Array:
        """The weight of each row."""
        return self.found.weights.values


@dataclass(frozen=True, slots=True, eq=False)
class _Solution:
    """Weights at the end of the road, and the components beside which they are clean.

    ``part`` says where the coordinates of the problem lie among the features; ``bound`` is the
    share that could have been removed.
    """

    noise: Noise
    part: Part
    problem: Problem
    found: Found
    bound: float
    components: Array


def fit(
    rows: Rows, sample_weight: Array, task: Task, settings: Settings, callback: Callback | None
) -> Fit:
    """Fit weights, and what is read off them, to rows of positive sample weight.

    Parameters
    ----------
    rows : Rows
    sample_weight : ndarray of shape (n,)
    task : Task
    settings : Settings
    callback : callable, optional
        Sees every iterate.
    """
    if settings.contamination is None and sample_weight.sum() < _FEWEST_ROWS:
        settings = replace(settings, contamination=0.0, find_covariance=False)
    noise = first_look(
        rows,
        sample_weight,
        settings.scale,
        settings.covariance,
        settings.bound,
        settings.tuning,
        common_level=task.n_components > 0,
        centred=task.centred,
    )
    if task.n_components and not _looks_white(noise, task, settings):
        return _fit_by_volume(noise, task, settings)
    may_correlate = task.n_components == 0 and settings.find_covariance
    may_correlate = may_correlate and _has_shape(noise, settings.tuning)
    if may_correlate and _is_correlated(noise, settings.tuning):
        return _fit_elliptical(noise, task, settings)
    counts = _first_counts(noise, task, settings)
    risen = False
    for left in reversed(range(settings.tuning.attempts)):
        solution = _Attempt(noise, task, counts, settings, callback).solve()
        factor = _better_units(solution, settings)
        counted = _better_counts(solution, task, counts, settings)
        if risen and sum(counted) < sum(counts):
            # Outliers were counted that fewer entries do not show: no way back to those.
            counted = counts
        risen = sum(counted) > sum(counts)
        if left == 0 or (factor is None and counted == counts):
            break
        counts = counted
        noise = noise if factor is None else noise.rescaled(factor)
    found = _finished(solution, task, counts, settings)
    if may_correlate and found.found.status is Status.STALLED:
        # White noise does not explain the rows, however they are weighted.
        return _fit_elliptical(noise, task, settings)
    return found


def _has_shape(noise: Noise, tuning: Tuning) -> bool:
    """Tell whether two columns or more are continuous: only there rows form a cloud."""
    rows, weight = noise.some_rows(MOST_ROWS)
    columns = noise.standardizer.columns
    columns = columns[some_columns(columns.size)]
    return judged_columns(rows[:, columns], weight, tuning).size > 1


def _is_correlated(noise: Noise, tuning: Tuning) -> bool:
    """Tell whether the bulk of the rows is correlated, on some rows and columns.

    Rows so few that four deviations of a variance hide the excess are taken to be.
    """
    rows, weight = noise.some_rows(MOST_ROWS)
    columns = noise.standardizer.columns
    if columns.size > 1 and 4.0 * np.sqrt(2.0 / weight.sum()) > tuning.correlated - 1.0:
        return True
    columns = columns[some_columns(columns.size)]
    return bulk_excess(rows[:, columns], weight, tuning) > 1.0


def _fit_elliptical(noise: Noise, task: Task, settings: Settings) -> Fit:
    """Fit a mean to rows of unknown covariance."""
    n, columns = len(noise.sample_weight), noise.standardizer.columns
    d = columns.size
    rows, weight = noise.some_rows(max(MOST_ROWS, _VALUES_TO_JUDGE // columns.size))
    rows = rows[:, columns]
    if task.is_sparse and columns.size > settings.tuning.fewest_columns:
        rows = rows / noise.standardizer.scale
        count = task.n_nonzero[0] if task.n_nonzero else None
        some, judged = judge_on_features(rows, weight, count, settings.bound, settings.tuning)
        # Judged in units of the noise; scores are of rows in those of the user.
        judged = judged.in_units(noise.standardizer.scale[some])
        columns = columns[some]
    else:
        judged = judge_rows(rows, weight, settings.bound, settings.tuning)
    judged = replace(judged, columns=columns[judged.columns])
    score = EllipticalScore.of(noise.standardizer, judged)
    if len(weight) == n:
        clean, scores = judged.clean, -judged.severity
    else:
        scores = noise.rows.map(score)
        clean = noise.rows.map(score.clean)
    values = noise.sample_weight * clean
    values /= values.sum()
    noise = noise.without(np.flatnonzero(values == 0.0))
    objective = MomentObjective(noise.samples, _norm(task, (1,)), True)
    problem = Problem(objective, noise.sample_weight, noise.pruned, 3.0, d, settings.tuning)
    weights = Weights.untouched(values, d)
    trusted = float(judged.severity[judged.clean >= 0.5].max(initial=0.0))
    found = Found(weights, trusted, Form.zero(d), Status.REACHED, ())
    removed = problem.removed(values)
    certificate = Certificate(
        trusted,
        NoiseFloor(1.0, 1.0),
        0.0,
        0.0,
        removed,
        max(removed, 0.0 if settings.contamination is None else settings.contamination),
        Status.REACHED,
        noise="elliptical",
        far=judged.far,
        apart=judged.apart,
    )
    return Fit(noise, problem, found, certificate, score, scores, np.empty((d, 0)))


class _Attempt:
    """One way along the road, in given units and with given counts of entries.

    Parameters
    ----------
    noise : Noise
    task : Task
    counts : tuple of int
        Nonzero entries of the mean, or of each component; () for all.
    settings : Settings
    callback : callable, optional
    """

    def __init__(
        self,
        noise: Noise,
        task: Task,
        counts: tuple[int, ...],
        settings: Settings,
        callback: Callback | None,
    ) -> None:
        self._noise, self._task, self._settings = noise, task, settings
        self._counts, self._callback = counts, callback
        self._part, samples = _coordinates(noise, task)
        self._reader = _reader(noise, self._part, task, counts, settings.tuning)
        norm = _norm(task, counts) if self._reader is None else self._reader.residual_norm
        self._problem = Problem(
            MomentObjective(samples, norm, task.centred),
            noise.sample_weight,
            noise.pruned,
            typical_kurtosis(noise.samples, _untouched(noise)),
            noise.samples.n_features,
            settings.tuning,
        )

    def solve(self) -> _Solution:
        """Search at the bound, then at the share that it removed or beside better components."""
        known, problem = self._settings.contamination is not None, self._problem
        bound = self._settings.bound
        components = self._first_components()
        current = _beside(problem, components)
        space = workspace_for(current, sum(self._counts))
        found = self._search(current, bound, space, groups=known)
        share = bound if known else min(problem.removed(found.weights.values), bound)
        if self._reader is not None:
            current, found, components = self._read_again(found, components)
            # Rows that were only pruned leave nothing to search for.
            if found.weights.moved if not known else found.status is not Status.REACHED:
                space = workspace_for(current, sum(self._counts))
                found = self._search(current, share, space, groups=False)
                current, found, components = self._read_again(found, components)
            current, found, components = self._weighed(current, found, components)
        elif not known and found.weights.moved:
            found = self._search(current, share, space, groups=True, earlier=found)
        if self._reader is None and self._task.is_sparse:
            found = self._on_support(found)
        if not known:
            bound = problem.least_bound(found.weights.values)
        return _Solution(self._noise, self._part, current, found, bound, components)

    def _search(
        self,
        problem: Problem,
        share: float,
        space: Workspace,
        *,
        groups: bool,
        earlier: Found | None = None,
        further: bool = False,
    ) -> Found:
        """Search among the weights that remove at most a share.

        Groups of outliers are looked for where the share is not a loose one, under which a descent
        removes too many clean rows to point anywhere; they may remove as much as the bound allows.
        """
        settings, domain = self._settings, self._problem.domain(share)
        make_rule, update = steps_for(settings.solver, domain, settings.tuning.patience)
        return Search(
            problem,
            domain,
            space,
            make_rule,
            update,
            settings.max_iter,
            group_domain=self._problem.domain(settings.bound) if groups else None,
            sparse=self._task.is_sparse and not further,
            callback=self._callback,
        ).run(earlier, further=further)

    def _first_components(self) -> Array:
        """Return components of the bulk of the rows, before any weights; none for a mean."""
        samples = self._problem.samples
        if self._reader is None:
            return np.empty((samples.n_features, 0))
        excess = _excess(self._problem, self._problem.untouched)
        return self._reader.initial(excess, samples, self._noise.kept)

    def _read_again(self, found: Found, components: Array) -> tuple[Problem, Found, Array]:
        """Return the problem beside the components under the weights found, and both."""
        assert self._reader is not None
        excess = _excess(self._problem, found.weights.values)
        components = self._reader.refined(excess, components)
        problem = _beside(self._problem, components)
        return problem, _seen_by(problem, found), components

    def _weighed(
        self, current: Problem, found: Found, components: Array
    ) -> tuple[Problem, Found, Array]:
        """Return what was found with rows weighed by the groups that spread beside components.

        By groups alone where that leaves the rows clean, else on top of what the search removed.
        """
        assert self._reader is not None
        problem, before = self._problem, found.weights
        domain = problem.domain(self._settings.bound)
        values, groups, wrong = groups_spread(
            problem.samples,
            domain,
            problem.untouched,
            before.values,
            orthonormal(components),
            self._reader.leading,
            lambda direction: freedom_along(self._part.lift(direction), problem.kurtosis),
            centred=self._task.centred,
            most=problem.tuning.groups,
        )
        if not groups:
            return current, found, components
        alone = Weights.untouched(values, problem.samples.n_features)
        alone = replace(alone, groups=groups, wrong=wrong)
        weighed = self._read_again(replace(found, weights=alone), components)
        if weighed[1].status is Status.REACHED or found.status is not Status.REACHED:
            return weighed
        least = np.minimum(values, before.values)
        both = replace(
            before, values=domain.project(least / least.sum()), groups=groups, wrong=wrong
        )
        return self._read_again(replace(found, weights=both), components)

    def _on_support(self, found: Found) -> Found:
        """Return what was found after a look at the features of the answer alone.

        Over so few features the noise is far lower than over all pairs, and shows outliers that
        are hidden there. What was found on all features stays.
        """
        if self._noise.standardizer.whitener is not None:
            # The features of the answer are not those of whitened rows.
            return found
        samples = self._problem.samples
        support = top_k_indices(samples.mean(found.weights.values), self._counts[0])
        objective = MomentObjective(samples.columns(support).at_hand(), KyFan(1), True)
        few = replace(self._problem, objective=objective, n_ambient=support.size)
        value = objective.verify(found.weights.values).value
        level = few.floor(found.weights.values).clean
        if value > level:
            space = Everything(few, Part(samples.n_features, columns=support))
            more = self._search(
                few, self._settings.bound, space, groups=True, earlier=found, further=True
            )
            value, level = more.value, few.floor(more.weights.values).clean
            found = _seen_by(self._problem, replace(more, trace=found.trace + more.trace))
            if value > level and found.status is Status.REACHED:
                found = replace(found, status=Status.STALLED)
        return replace(found, support_level=value / level if level > 0.0 else 0.0)


def _beside(problem: Problem, components: Array) -> Problem:
    """Return the problem with components taken out of the second moments."""
    if components.shape[1] == 0:
        return problem
    return problem.with_objective(replace(problem.objective, removed=orthonormal(components)))


def _seen_by(problem: Problem, found: Found) -> Found:
    """Return what was found as a problem beside other components sees it."""
    seen = problem.objective.verify(found.weights.values)
    status = found.status
    if problem.is_clean(seen.value, found.weights.values):
        status = Status.REACHED
    elif status is Status.REACHED:
        status = Status.STALLED
    return replace(found, value=seen.value, form=seen.form, status=status)


def _coordinates(noise: Noise, task: Task) -> tuple[Part, Samples]:
    """Return coordinates for the problem that are no more than it needs.

    For dense components a basis of the span of the rows, where they are fewer than the columns; for
    sparse ones the columns of most energy, where there are too many for a matrix over all pairs.
    """
    samples, d = noise.samples, noise.samples.n_features
    if task.n_components and not task.is_sparse and d > samples.n_samples:
        held, basis = in_span(in_memory(samples), noise.sample_weight)
        return Part(d, basis=basis), held
    if task.n_components and task.is_sparse and d > _SCREEN_ABOVE:
        weights = _untouched(noise)
        if samples.n_samples <= _ENERGY_ROWS:
            energy = column_energy(in_memory(samples), weights)
        else:
            energy = samples.variances(weights)
        columns = np.sort(np.argsort(-energy, kind="stable")[:_SCREENED])
        return Part(d, columns=columns), samples.columns(columns)
    return Part(d), samples.at_hand() if task.n_components else samples


def _norm(task: Task, counts: tuple[int, ...]) -> Norm:
    """Return the norm of a mean."""
    return RowwiseLargest(counts[0]) if task.is_sparse else KyFan(1)


def _reader(
    noise: Noise, part: Part, task: Task, counts: tuple[int, ...], tuning: Tuning
) -> Reader | None:
    """Return what reads components off a matrix; None for a mean."""
    if task.n_components == 0:
        return None
    if task.n_nonzero is None:
        return DenseReader(task.n_components, tuning.candidates)
    whitener, d = noise.standardizer.whitener, noise.samples.n_features
    if whitener is None or part.columns is not None:
        return SparseReader(counts, tuning.candidates)
    limit = largest_of(d) / float(np.sqrt(noise.sample_weight.sum()))
    beyond = Beyond(whitener, noise.standardizer.scale)
    in_features = tuple(min(k, d) for k in task.n_nonzero)
    return BeyondReader(
        counts, tuning.candidates, beyond=beyond, in_features=in_features, limit=limit
    )


def _first_counts(noise: Noise, task: Task, settings: Settings) -> tuple[int, ...]:
    """Return the nonzero entries that an answer is looked for with at first; () for all."""
    if task.n_nonzero is None:
        return ()
    d = noise.samples.n_features
    # What is sparse in the features has more entries in whitened rows; they are counted.
    counted_anyway = task.n_components > 0 and settings.covariance is not None
    if task.n_nonzero and not counted_anyway:
        return tuple(min(k, d) for k in task.n_nonzero)
    if task.n_components:
        samples = _coordinates(noise, task)[1]
        weights = _untouched(noise)
        excess = as_array(samples.moment(weights, centred=task.centred, reference=1.0))
        n = float(noise.sample_weight.sum())
        return count_significant(excess, samples, noise.kept, task.n_components, n)
    # The centre before any weights is read off a sample.
    n = min(float(noise.sample_weight.sum()), float(ROWS_FOR_ORIGIN))
    rough = noise.centre / noise.standardizer.scale
    return (max(1, min(count_entries(rough, n), rough.size // 4)),)


def _better_counts(
    solution: _Solution, task: Task, counts: tuple[int, ...], settings: Settings
) -> tuple[int, ...]:
    """Return the entries counted under the weights found, where they are to be counted at all.

    A count that differs by little is the same: another search would find the same weights.
    """
    counted_anyway = task.n_components > 0 and settings.covariance is not None
    if task.n_nonzero is None or (task.n_nonzero and not counted_anyway):
        return counts
    problem, weights = solution.problem, solution.found.weights.values
    n_effective = problem.n_effective(weights)
    if task.n_components:
        counted = count_significant(
            _excess(problem, weights),
            problem.samples,
            solution.noise.kept,
            task.n_components,
            n_effective,
        )
    else:
        noise = solution.noise
        mean = noise.standardizer.restore(problem.samples.mean(weights))
        counted = (max(1, count_entries(mean / noise.standardizer.scale, n_effective)),)
    tolerance = settings.tuning.count_tolerance
    close = all(abs(a - b) <= tolerance * b for a, b in zip(counted, counts, strict=True))
    return counts if close else counted


def _better_units(solution: _Solution, settings: Settings) -> Array | None:
    """Return by which factor units are off under the weights found; None where they are right.

    For components the one level of all columns, without their part in the components where rows
    are whitened. For a mean the deviation of each column, where `scale` is to be estimated: the
    first scales are inflated by outliers that the weights now exclude.
    """
    noise, problem, tuning = solution.noise, solution.problem, settings.tuning
    weights = solution.found.weights.values
    if solution.components.shape[1]:
        if noise.standardizer.whitener is None:
            level = float(np.sqrt(np.median(noise.samples.variances(weights))))
        else:
            lifted = solution.part.lift(solution.components)
            level = level_beside(noise.samples, weights, lifted)
        off = abs(level - 1.0) > tuning.units_tolerance and level > 0.0
        return np.asarray(level) if off else None
    if not (isinstance(settings.scale, str) and settings.scale == "auto"):
        return None
    if np.all(noise.standardizer.scale == 1.0):
        # Data taken to be of unit noise is so if the typical one of some columns is, within three
        # deviations of a variance.
        d = noise.samples.n_features
        some = noise.samples.variances(weights, np.arange(0, d, max(1, d // 256)))
        room = 3.0 * np.sqrt(max(problem.kurtosis - 1.0, 0.5) / problem.n_effective(weights))
        if np.median(np.abs(some - 1.0)) <= 0.1 + room:
            return None
    variances = noise.samples.variances(weights)
    # Six digits are more than a scale is known to; the rest is the order of summation, which must
    # not decide what a long descent does.
    factor = np.array([float(f"{v:.5e}") for v in np.sqrt(np.where(variances > 0, variances, 1.0))])
    return factor if np.any(np.abs(factor - 1.0) > tuning.units_tolerance) else None


def _finished(solution: _Solution, task: Task, counts: tuple[int, ...], settings: Settings) -> Fit:
    """Return the fit with its certificate and scores, in the coordinates of the features."""
    noise, part, problem, found = (
        solution.noise,
        solution.part,
        solution.problem,
        solution.found,
    )
    given = settings.covariance is not None
    certificate = certified(problem, found, solution.bound, "given" if given else "white")
    components = part.lift(solution.components)
    weights = replace(
        found.weights,
        force=part.lift_form(found.weights.force),
        drift=part.lift(found.weights.drift),
        groups=tuple(group.along(part.lift(group.direction)) for group in found.weights.groups),
    )
    score, scores = score_rows(noise, weights)
    if given and task.n_components:
        components = _in_features(noise, weights.values, components, task, ())
    return Fit(
        noise, problem, replace(found, weights=weights), certificate, score, scores, components
    )


def certified(problem: Problem, found: Found, bound: float, noise: str) -> Certificate:
    """Say how good weights are, from the last survey at them."""
    objective, weights = problem.objective, found.weights.values
    subgradient, _ = objective.differentiate(found.form, objective.samples.mean(weights))
    floor = NoiseFloor(0.0, 0.0) if noise == "other" else problem.floor(weights)
    return Certificate(
        objective=found.value,
        noise_floor=floor,
        stationarity=stationarity(problem.domain(bound), weights, subgradient),
        theorem_stationarity=theorem_stationarity(problem.n_effective(weights), bound),
        removed=problem.removed(weights),
        contamination_bound=bound,
        status=found.status,
        noise=noise,
        support_level=found.support_level,
    )


def weighted_covariance(found: Fit) -> Array:
    """Return the covariance of the columns that vary under the weights found, in the units of X.

    Unbiased for equal weights, where the effective number n of rows is their number: n / (n - 1).
    """
    noise, weights = found.noise, found.weights
    moment = as_array(noise.samples.moment(weights, centred=True))
    back = noise.standardizer.to_features
    scale = noise.standardizer.scale
    with np.errstate(over="ignore"):
        moment = back(back(moment).T) * scale * scale[:, None]
    n = found.problem.n_effective(weights)
    return np.asarray(moment * (n / max(n - 1.0, 1.0)))


def _looks_white(noise: Noise, task: Task, settings: Settings) -> bool:
    """Tell whether the noise beside the components could be white."""
    if noise.varying.size == 0:
        raise ValueError(
            "X: all rows are equal, so there is no direction of variance; "
            "principal components need at least two different rows"
        )
    _, samples = _coordinates(noise, replace(task, n_nonzero=None))
    pooled = as_array(samples.moment(_untouched(noise), centred=task.centred))
    n, d = float(noise.sample_weight.sum()), noise.samples.n_features
    return is_white(pooled, n, d, task.n_components, settings.tuning.white_excess)


def _fit_by_volume(noise: Noise, task: Task, settings: Settings) -> Fit:
    """Fit components to rows whose noise is not white: the weights of least volume."""
    part, samples = _coordinates(noise, replace(task, n_nonzero=None))
    r = min(task.n_components, samples.n_features)
    objective = MomentObjective(samples, KyFan(r), task.centred, 0.0)
    problem = Problem(
        objective, noise.sample_weight, noise.pruned, 3.0, samples.n_features, settings.tuning
    )
    bound = settings.bound
    if settings.contamination is None:
        bound = max(settings.tuning.volume_bound, problem.removed(problem.untouched))
    least = least_volume(problem, r, bound)
    if settings.contamination is None:
        bound = min(max(share_beyond(problem, least), problem.removed(problem.untouched)), bound)
        least = least_volume(problem, r, bound)
    leading = part.lift(least.leading)
    components = leading[:, :r]
    if task.n_nonzero is not None and settings.covariance is None:
        components = _sparse_components(noise, components, least.weights, task)
    elif settings.covariance is not None:
        counts = tuple(effective_entries(column) for column in components.T)
        components = _in_features(noise, least.weights, components, task, counts)
    distances = distances_for(noise.samples, least.weights, leading, task.centred, noise.kept)
    score = DistanceScore(noise.standardizer, distances)
    evaluation = objective.evaluate(least.weights)
    weights = Weights.untouched(least.weights, noise.samples.n_features)
    trace = tuple(Iterate(i, evaluation.value, 0.0, True) for i in range(least.n_iter))
    found = Found(weights, evaluation.value, evaluation.form, Status.STATIONARY, trace)
    certificate = certified(problem, found, bound, "other")
    scores = noise.rows.map(score)
    return Fit(noise, problem, found, certificate, score, scores, components)


def _in_features(
    noise: Noise, weights: Array, found: Array, task: Task, counts: tuple[int, ...]
) -> Array:
    """Return components of the features in place of those of the whitened rows.

    ``counts`` are the entries of each where they are to be found and noise does not tell them.
    """
    whitener = noise.standardizer.whitener
    assert whitener is not None
    matrix = noise.samples.moment(weights, centred=task.centred, reference=1.0)
    beyond = Beyond(whitener, noise.standardizer.scale)
    dense = beyond.dense(matrix, found)
    if task.n_nonzero is None:
        return dense
    d = noise.samples.n_features
    if task.n_nonzero:
        counts = tuple(min(k, d) for k in task.n_nonzero)
    elif counts:
        counts = tuple(effective_entries(column) for column in dense.T)
    n_effective = 1.0 / float(np.sum(weights**2 / noise.sample_weight))
    limit = largest_of(d) / float(np.sqrt(n_effective))
    return beyond.sparse(matrix.restrict(np.arange(d)), found, counts, limit)


def _sparse_components(noise: Noise, dense: Array, weights: Array, task: Task) -> Array:
    """Return sparse components of the weighted covariance, started from the dense ones."""
    part, samples = _coordinates(noise, task)
    counts = task.n_nonzero or tuple(effective_entries(column) for column in dense.T)
    counts = tuple(min(k, samples.n_features) for k in counts)
    array = as_array(samples.moment(weights, centred=task.centred))
    # Scaled to a top eigenvalue of one: the shift of the power iteration is then small beside it.
    scale = max(float(np.abs(np.diagonal(array)).max()), np.finfo(float).tiny)
    return part.lift(SparseReader(counts).best(array / scale))


def _untouched(noise: Noise) -> Array:
    """Return the weights before any evidence: pruned rows have none."""
    return np.asarray(noise.kept / noise.kept.sum())


def _excess(problem: Problem, weights: Array) -> Array:
    """Return the second moments less the identity, as an array."""
    centred = problem.objective.centred
    return as_array(problem.samples.moment(weights, centred=centred, reference=1.0))
