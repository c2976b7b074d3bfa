"""A fit from raw rows to an answer: the road that all four estimators take.

noise -> problem -> search at a loose bound -> the share it removed -> search at that share -> read
out -> score and certificate. Where better units, or a better count of entries, follow from the
weights found, the road is taken again. What differs between the estimators is a `Task`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from outweigh.fit.beyond import in_features, level_beside
from outweigh.fit.certificate import FEWEST_ROWS, certified
from outweigh.fit.columns import largest_of, together_by_ranks
from outweigh.fit.crowds import groups_in_features
from outweigh.fit.law import GAUSSIAN, Law
from outweigh.fit.noise import MAD_ERROR, ROWS_FOR_ORIGIN, Noise, first_look
from outweigh.fit.own_features import component_of_bulk
from outweigh.fit.posterior import groups_spread
from outweigh.fit.problem import Problem, typical_kurtosis
from outweigh.fit.readers import (
    DenseReader,
    Reader,
    SparseReader,
    count_entries,
    count_significant,
    orthonormal,
)
from outweigh.fit.result import Fit
from outweigh.fit.score import score_rows
from outweigh.fit.search import Found, Search, Weights
from outweigh.fit.task import Settings, Task
from outweigh.fit.tuning import Tuning
from outweigh.fit.unknown import fit_elliptical, looks_correlated
from outweigh.fit.volume import fit_by_volume, looks_white
from outweigh.fit.widened import LawOfRows
from outweigh.fit.workspace import Everything, Part, Workspace, coordinates, workspace_for
from outweigh.norms import KyFan
from outweigh.norms.entrywise import top_k_indices
from outweigh.objectives import MomentObjective
from outweigh.optimise.descent import Callback
from outweigh.optimise.steps import steps_for
from outweigh.protocols import Array, Samples, Status
from outweigh.samples import Rows
from outweigh.samples.matrices import as_array


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

    @property
    def looks(self) -> tuple[float, bool]:
        """How unclean the rows look, less first: by how much, and whether for no known reason."""
        level = self.problem.floor(self.found.weights.values).clean
        above = max(self.found.value / level, 1.0) if level > 0.0 else 1.0
        return above, not _explained(self.found)


_Settle = Callable[[Noise, Settings, Found | None], _Solution]


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
    if settings.contamination is None and sample_weight.sum() < FEWEST_ROWS:
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
    if task.n_components and noise.varying.size == 0:
        raise ValueError(
            "X: all rows are equal, so there is no direction of variance; "
            "principal components need at least two different rows"
        )
    if task.n_components and not (settings.is_white or looks_white(noise, task, settings)):
        return fit_by_volume(noise, task, settings)
    may_correlate = settings.find_covariance and not task.n_components
    if may_correlate and looks_correlated(noise, settings.tuning):
        return fit_elliptical(noise, task, settings)
    if task.n_components and task.n_nonzero is None and settings.covariance is None:
        noise = _in_units_beside(noise, task, settings)
    sought = task
    if task.n_components and settings.covariance is not None:
        # What is sparse in the features is not so in whitened rows.
        sought = replace(task, n_nonzero=None)
    law = LawOfRows(noise)

    def settle(noise: Noise, settings: Settings, earlier: Found | None = None) -> _Solution:
        return _settled(noise, sought, settings, callback, law, earlier)

    solution = (
        settle(noise, settings, None)
        if task.n_components or settings.bound == 0.0
        else _mean_of(noise, settings, law, settle)
    )
    stalled = solution.found.status is Status.STALLED and not solution.found.weights.groups
    if task.n_components and settings.find_covariance and stalled:
        # Neither clean nor with outliers in groups: never white, but skewed or of heavy tails.
        return fit_by_volume(solution.noise, task, settings)
    if may_correlate and not _explained(solution.found):
        shaped = fit_elliptical(solution.noise, task, settings)
        unseen = bool(solution.found.weights.groups) and shaped.certificate.apart == 0.0
        grouped = solution.problem.removed(solution.found.weights.values) if unseen else 0.0
        # Groups that only uncorrelated columns would show are not passed over in silence.
        return shaped.in_doubt(grouped) if grouped > shaped.certificate.removed else shaped
    return _finished(solution, task, settings)


def _settled(
    noise: Noise,
    task: Task,
    settings: Settings,
    callback: Callback | None,
    law: Callable[[Array], Law],
    earlier: Found | None,
) -> _Solution:
    """Return the solution in units, and with counts of entries, that follow from its weights.

    What was found earlier among more rows stays removed.
    """
    counts = _first_counts(noise, task)
    risen = False
    for left in reversed(range(settings.tuning.attempts)):
        solution = _Attempt(noise, task, counts, settings, callback, law).solve(earlier)
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
    return solution


def _mean_of(noise: Noise, settings: Settings, law: LawOfRows, settle: _Settle) -> _Solution:
    """Return the solution for a mean, without rows that are likely widened unless it is cleaner.

    At once without them where they lie to no side, if that leaves the rows clean. Else they may be
    groups, which are looked for first: what a radius left of these would hide.
    """
    everything = np.ones(noise.sample_weight.shape, dtype=np.bool_)
    widened, nearer = law.widened(everything), None
    if widened is not None and not widened[2]:
        nearer = _without(*widened[:2], noise, settings, settle, None)
        if nearer.looks == (1.0, False):
            return nearer
    solution = settle(noise, settings, None)
    if solution.found.weights.groups:
        widened, nearer = law.widened(solution.found.weights.wrong < 0.5), None
    if widened is None:
        return solution
    nearer = nearer or _without(*widened[:2], noise, settings, settle, _by_groups_alone(solution))
    return solution if solution.looks < nearer.looks else nearer


def _by_groups_alone(solution: _Solution) -> Found | None:
    """Return what was found with rows weighed by its groups alone; None where it has none."""
    found, weights = solution.found, solution.found.weights
    if not weights.groups:
        return None
    values = solution.problem.untouched * (1.0 - weights.wrong)
    return replace(found, weights=replace(weights, values=values / values.sum()))


def _without(
    beyond: float,
    chance: Array,
    noise: Noise,
    settings: Settings,
    settle: _Settle,
    earlier: Found | None,
) -> _Solution:
    """Return the solution with each row counted by its chance not to be widened."""
    left = settings
    if settings.contamination is not None:
        # No more may be left out than the bound allows beside those that are pruned.
        total, pruned = noise.sample_weight.sum(), noise.sample_weight[noise.pruned].sum()
        room = max(settings.bound * total - pruned, 0.0)
        chance = chance * min(1.0, room / float(chance @ noise.sample_weight))
    fewer = noise.counted(1.0 - chance)
    if settings.contamination is not None:
        # Of those left so many may be wrong that no more are than the bound allows.
        share = float(fewer.kept.sum() / noise.kept.sum())
        left = replace(settings, contamination=max(1.0 - (1.0 - settings.bound) / share, 0.0))
    nearer = settle(fewer, left, earlier)
    problem = replace(nearer.problem, sample_weight=noise.sample_weight)
    found, values = nearer.found, nearer.found.weights.values
    allowed = problem.domain(settings.bound).project(values)
    if not np.allclose(allowed, values, rtol=1e-9, atol=0.0):
        found = _seen_by(problem, replace(found, weights=replace(found.weights, values=allowed)))
    bound = problem.least_bound(allowed)
    if settings.contamination is not None:
        bound = problem.in_whole_rows(settings.bound)
    noise = replace(nearer.noise, sample_weight=noise.sample_weight, radius_sq=beyond)
    return replace(nearer, noise=noise, problem=problem, found=found, bound=bound)


def _explained(found: Found) -> bool:
    """Tell whether white noise explains the rows, with the outliers that were found in it.

    Rows that are left must be clean, and rows that were removed in a group of outliers: those of
    correlated rows are in none.
    """
    grouped = bool(found.weights.groups) or not found.weights.moved
    return grouped and found.status is not Status.STALLED


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
    law : callable
        From weights to the law of a typical feature under them.
    """

    def __init__(
        self,
        noise: Noise,
        task: Task,
        counts: tuple[int, ...],
        settings: Settings,
        callback: Callback | None,
        law: Callable[[Array], Law],
    ) -> None:
        self._noise, self._task, self._settings = noise, task, settings
        self._counts, self._callback = counts, callback
        self._part, samples = coordinates(noise, task)
        self._reader = _reader(noise, task, counts, settings.tuning)
        norm = (
            task.norm(counts[0] if counts else 1)
            if self._reader is None
            else self._reader.residual_norm
        )
        self._problem = Problem(
            MomentObjective(samples, norm, task.centred),
            noise.sample_weight,
            noise.pruned,
            typical_kurtosis(noise.samples, noise.untouched),
            noise.samples.n_features,
            settings.tuning,
            law,
        )

    def solve(self, earlier: Found | None = None) -> _Solution:
        """Search at the bound, then at the share that it removed or beside better components."""
        known, problem = self._settings.contamination is not None, self._problem
        bound = self._settings.bound
        components = self._first_components()
        current = _beside(problem, components)
        space = workspace_for(current, sum(self._counts))
        if self._reader is None:
            found = self._search_for_mean(space, earlier)
        else:
            found = self._search(current, bound, space, groups=known)
            share = bound if known else min(problem.removed(found.weights.values), bound)
            current, found, components = self._read_again(found, components)
            # Rows that were only pruned leave nothing to search for.
            if found.weights.moved if not known else found.status is not Status.REACHED:
                space = workspace_for(current, sum(self._counts))
                found = self._search(current, share, space, groups=False)
                current, found, components = self._read_again(found, components)
            current, found, components = self._weighed(current, found, components)
        solution = _Solution(self._noise, self._part, current, found, bound, components)
        # In wrong units rows that did not come clean are no better seen by another look.
        if self._reader is None and (
            found.status is Status.REACHED or _better_units(solution, self._settings) is None
        ):
            found = self._further(current, found, space)
            found = self._on_support(found) if self._task.is_sparse else found
            solution = replace(solution, found=found)
        least = problem.least_bound(solution.found.weights.values)
        return replace(solution, bound=problem.in_whole_rows(bound) if known else least)

    def _search_for_mean(self, space: Workspace, earlier: Found | None) -> Found:
        """Search at the bound, and where that is loose at the share that was removed.

        Or at the share that was removed earlier, from there.
        """
        problem, bound = self._problem, self._settings.bound
        loose, share = earlier, bound
        if self._settings.contamination is None:
            if loose is None:
                loose = self._search(problem, bound, space, groups=False, to_go_on=True)
                if not loose.weights.moved:
                    return loose
            share = min(problem.removed(loose.weights.values), bound)
        further = earlier is not None
        found = self._search(problem, share, space, groups=True, earlier=loose, further=further)
        if found.status is not Status.REACHED and loose is not None and not loose.surveyed:
            # What the loose one passed over may be why.
            loose = self._search(problem, bound, space, groups=False, earlier=loose, further=True)
            share = min(problem.removed(loose.weights.values), bound)
            found = self._search(problem, share, space, groups=True, earlier=loose)
        return found

    def _search(
        self,
        problem: Problem,
        share: float,
        space: Workspace,
        *,
        groups: bool,
        earlier: Found | None = None,
        further: bool = False,
        to_go_on: bool = False,
    ) -> Found:
        """Search among the weights that remove at most a share.

        Groups of outliers are looked for where the share is not a loose one, under which a descent
        removes too many clean rows to point anywhere; they may remove as much as the bound allows.
        """
        settings, domain = self._settings, self._problem.domain(share)
        make_rule, update = steps_for(settings.solver, domain)
        return Search(
            problem,
            domain,
            space,
            make_rule,
            update,
            settings.max_iter,
            group_domain=self._problem.domain(settings.bound) if groups else None,
            sparse=self._task.is_sparse and problem is self._problem,
            callback=self._callback,
        ).run(earlier, further=further, to_go_on=to_go_on)

    def _further(self, problem: Problem, found: Found, space: Workspace) -> Found:
        """Return what was found after a look at what its groups leave, as long as that is more.

        A descent from the weights of the groups points at the next ones.
        """
        while found.weights.groups and found.status is Status.STALLED:
            more = self._search(
                problem, self._settings.bound, space, groups=True, earlier=found, further=True
            )
            if len(more.weights.groups) == len(found.weights.groups):
                break
            found = replace(more, trace=found.trace + more.trace)
        return found

    def _first_components(self) -> Array:
        """Return components of the bulk of the rows, before any weights; none for a mean."""
        samples = self._problem.samples
        if self._reader is None:
            return np.empty((samples.n_features, 0))
        excess = _excess(self._problem, self._problem.untouched)
        if self._settings.contamination == 0.0 and self._task.n_nonzero is None:
            return self._reader.plain(excess)
        return self._reader.initial(excess, samples, self._noise.kept)

    def level_beside_first(self) -> float:
        """Return the level of the columns beside the first components, in units of the noise."""
        components = self._part.lift(self._first_components())
        return level_beside(self._noise.samples, self._noise.untouched, components)

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
        # Read off rows only where there are any to weigh.
        law = cache(lambda: problem.law(before.values))
        values, groups, wrong = groups_spread(
            problem.samples,
            domain,
            problem.untouched,
            before.values,
            orthonormal(components),
            self._reader.leading,
            lambda direction: law().along(self._part.lift(direction)),
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
        support = top_k_indices(_mean(self._noise, found.weights.values), self._counts[0])
        objective = MomentObjective(samples.columns(support).at_hand(), KyFan(1), True)
        few = replace(self._problem, objective=objective, n_ambient=support.size)
        part = Part(samples.n_features, columns=support)
        if not few.is_clean(objective.verify(found.weights.values).value, found.weights.values):
            space = Everything(few, part)
            more = self._search(
                few, self._settings.bound, space, groups=True, earlier=found, further=True
            )
            found = _seen_by(self._problem, replace(more, trace=found.trace + more.trace))
        found = self._in_features(objective.samples, part, found)
        weights = found.weights.values
        value, level = objective.verify(weights).value, few.floor(weights).clean
        if value > level and found.status is Status.REACHED:
            found = replace(found, status=Status.STALLED)
        rows = few.samples.project(np.eye(support.size))
        by_ranks = together_by_ranks(rows, weights, few.n_effective(weights))
        return replace(found, support_level=max(by_ranks, value / level if level > 0.0 else 0.0))

    def _in_features(self, samples: Samples, part: Part, found: Found) -> Found:
        """Return what was found without rows that lie together in single features of the answer."""
        problem, before = self._problem, found.weights
        if not problem.tuning.groups:
            return found
        # Read off rows only where it need not be a Gaussian: that is a pass.
        law = GAUSSIAN if problem.kurtosis == 3.0 else problem.law(before.values)
        domain = problem.domain(self._settings.bound)
        values, groups, wrong = groups_in_features(samples, domain, before.values, part.lift, law)
        if not groups or (law == GAUSSIAN and problem.law(before.values) != GAUSSIAN):
            return found
        lifted = tuple(group.lifted(part.lift) for group in groups)
        return _seen_by(problem, replace(found, weights=before.by_groups(values, lifted, wrong)))


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


def _reader(noise: Noise, task: Task, counts: tuple[int, ...], tuning: Tuning) -> Reader | None:
    """Return what reads components off a matrix; None for a mean."""
    if task.n_components == 0:
        return None
    if task.n_nonzero is None:
        return DenseReader(task.n_components, tuning.candidates, noise.samples.n_features)
    return SparseReader(counts, tuning.candidates)


def _first_counts(noise: Noise, task: Task) -> tuple[int, ...]:
    """Return the nonzero entries that an answer is looked for with at first; () for all."""
    if task.n_nonzero is None:
        return ()
    d = noise.samples.n_features
    if task.n_nonzero:
        return tuple(min(k, d) for k in task.n_nonzero)
    if task.n_components:
        samples = coordinates(noise, task)[1]
        weights = noise.untouched
        excess = as_array(samples.moment(weights, centred=task.centred, reference=1.0))
        n = float(noise.sample_weight.sum())
        return count_significant(excess, samples, noise.kept, task.n_components, n)
    # The centre before any weights is read off a sample.
    n = min(float(noise.sample_weight.sum()), float(ROWS_FOR_ORIGIN))
    rough = noise.standardizer.origin + noise.centre
    rough /= noise.standardizer.scale
    return (max(1, min(count_entries(rough, n), rough.size // 4)),)


def _better_counts(
    solution: _Solution, task: Task, counts: tuple[int, ...], settings: Settings
) -> tuple[int, ...]:
    """Return the entries counted under the weights found, where they are to be counted at all.

    A count that differs by little is the same: another search would find the same weights.
    """
    if task.n_nonzero is None or task.n_nonzero:
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
        counted = (max(1, count_entries(_mean(solution.noise, weights), n_effective)),)
    tolerance = settings.tuning.count_tolerance
    close = all(abs(a - b) <= tolerance * b for a, b in zip(counted, counts, strict=True))
    return counts if close else counted


def _mean(noise: Noise, weights: Array) -> Array:
    """Return the mean of the rows in units of the noise, about zero and not the origin of these."""
    standard = noise.standardizer
    return np.asarray(standard.restore(noise.samples.mean(weights)) / standard.scale)


def _in_units_beside(noise: Noise, task: Task, settings: Settings) -> Noise:
    """Return the rows in units of what components leave of the typical column, where it is less.

    Components that are in most columns are in the spread of a typical one. Outliers only add to
    what is left, so units that would be larger are no better.
    """
    attempt = _Attempt(noise, task, (), settings, None, LawOfRows(noise))
    level = attempt.level_beside_first()
    # Noise that is nothing beside the components is not told from rounding.
    off = 1e-6 < level < 1.0 - settings.tuning.units_tolerance
    return noise.rescaled(np.asarray(level)) if off else noise


def _better_units(solution: _Solution, settings: Settings) -> Array | None:
    """Return by which factor units are off under the weights found; None where they are right.

    For components the one level of all columns, without their part in the components. For a
    mean the deviation of each column, where `scale` is to be estimated: the
    first scales are inflated by outliers that the weights now exclude.
    """
    noise, problem, tuning = solution.noise, solution.problem, settings.tuning
    weights = solution.found.weights.values
    if solution.components.shape[1]:
        level = level_beside(noise.samples, weights, solution.part.lift(solution.components))
        # Where the components hold all variance, rounding is left.
        off = abs(level - 1.0) > tuning.units_tolerance and level > 1e-6
        return np.asarray(level) if off else None
    if not (isinstance(settings.scale, str) and settings.scale == "auto"):
        return None
    factor = np.sqrt(noise.samples.variances(weights))
    # Where all rows that are kept are equal, rounding is left.
    factor = np.where(factor > 1e-6, factor, 1.0)
    # A deviation beyond what the typical column and the error of a robust scale explain is one of
    # outliers that are still there: adopted, it would hide them for good.
    error = MAD_ERROR / np.sqrt(problem.n_effective(weights))
    most = float(np.median(factor)) * np.exp(largest_of(factor.size) * error)
    factor = np.minimum(factor, most)
    # Six digits are more than a scale is known to; the rest is the order of summation, which must
    # not decide what a long descent does.
    factor = np.array([float(f"{v:.5e}") for v in factor])
    return factor if np.any(np.abs(factor - 1.0) > tuning.units_tolerance) else None


def _finished(solution: _Solution, task: Task, settings: Settings) -> Fit:
    """Return the fit with its certificate and scores, in the coordinates of the features."""
    noise, part = solution.noise, solution.part
    problem, found = solution.problem, solution.found
    given = settings.covariance is not None
    certificate = certified(
        problem, found, solution.bound, "given" if given else "white", settings.expected
    )
    # Those set aside beside the components that were asked for come last.
    components = part.lift(solution.components[:, : task.n_components])
    weights = replace(
        found.weights,
        force=part.lift_form(found.weights.force),
        drift=part.lift(found.weights.drift),
        groups=tuple(group.lifted(part.lift) for group in found.weights.groups),
    )
    score, scores = score_rows(noise, weights)
    if task.n_components and task.is_sparse and not given and settings.bound > 0.0:
        components = _of_bulk(
            noise, weights.values, components, problem.n_effective(weights.values)
        )
    if given and task.n_components:
        components = in_features(noise, weights.values, components, task, ())
    removed = problem.objective.removed
    aside = np.empty((noise.samples.n_features, 0)) if removed is None else part.lift(removed)
    found = replace(found, weights=weights)
    return Fit(noise, problem, found, certificate, score, scores, components, aside)


def _of_bulk(noise: Noise, weights: Array, components: Array, n_rows: float) -> Array:
    """Return sparse components of the bulk where outliers have a spike on their own features."""
    turned = components.copy()
    for component in turned.T:
        support = np.flatnonzero(component)
        axes = np.zeros((component.size, support.size))
        axes[support, np.arange(support.size)] = 1.0
        rows = noise.samples.project(axes)
        found = component_of_bulk(rows, weights, n_rows)
        if found is not None:
            component[support] = found
    return turned


def _excess(problem: Problem, weights: Array) -> Array:
    """Return the second moments less the identity, as an array."""
    centred = problem.objective.centred
    return as_array(problem.samples.moment(weights, centred=centred, reference=1.0))
