"""One way along the road, in given units and with given counts of entries: from rows to weights.

A search at a loose bound, again at the share that it removed, and a look at what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from outweigh.fit.beyond import level_beside
from outweigh.fit.columns import largest_of
from outweigh.fit.crowds import crowded_features, groups_in_features
from outweigh.fit.law import GAUSSIAN, Law
from outweigh.fit.noise import MAD_ERROR, Noise, spread_places
from outweigh.fit.posterior import groups_spread
from outweigh.fit.problem import Problem, typical_kurtosis
from outweigh.fit.readers import DenseReader, Reader, SparseReader, orthonormal
from outweigh.fit.search import Found, Search, Weights
from outweigh.fit.task import Settings, Task
from outweigh.fit.tuning import TUNING
from outweigh.fit.workspace import Everything, Part, Workspace, coordinates, workspace_for
from outweigh.norms import KyFan
from outweigh.norms.entrywise import top_k_indices
from outweigh.objectives import MomentObjective
from outweigh.optimise.descent import Callback
from outweigh.protocols import Array, Indices, Samples, Status
from outweigh.samples.matrices import as_array

# Of so many rows a twentieth that lie together are told in any feature.
_ROWS_FOR_CROWDS = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Weights at the end of the road, and the components beside which they are clean.

    ``part`` says where the coordinates of the problem lie among the features; ``bound`` is the
    share that could have been removed; ``support`` has the features of a sparse mean that were
    looked at alone.
    """

    noise: Noise
    part: Part
    problem: Problem
    found: Found
    bound: float
    components: Array
    support: Indices | None = None

    @property
    def looks(self) -> tuple[float, bool]:
        """How unclean the rows look, less first: by how much, and whether for no known reason."""
        level = self.problem.floor(self.found.weights.values).clean
        above = max(self.found.value / level, 1.0) if level > 0.0 else 1.0
        return above, not is_explained(self.found)


@dataclass(eq=False)
class Attempt:
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

    noise: Noise
    task: Task
    counts: tuple[int, ...]
    settings: Settings
    callback: Callback | None
    law: Callable[[Array], Law]

    def __post_init__(self) -> None:
        noise, task, counts = self.noise, self.task, self.counts
        self._part, samples = coordinates(noise, task)
        self._reader: Reader | None = None
        norm = task.norm(counts[0] if counts else 1)
        if task.n_components:
            d = noise.samples.n_features
            dense = DenseReader(task.n_components, TUNING.candidates, d)
            self._reader = SparseReader(counts, TUNING.candidates) if task.is_sparse else dense
            norm = self._reader.residual_norm
        self._problem = Problem(
            MomentObjective(samples, norm, task.centred),
            noise.sample_weight,
            noise.pruned,
            typical_kurtosis(noise.samples, noise.untouched),
            noise.samples.n_features,
            self.law,
        )

    def solve(self) -> Solution:
        """Search at the bound, then at the share that it removed or beside better components."""
        known, problem = self.settings.contamination is not None, self._problem
        bound = self.settings.bound
        components = self._first_components()
        current = _beside(problem, components)
        space = workspace_for(current, sum(self.counts))
        if self._reader is None:
            found = self._search_for_mean(space)
        else:
            found = self._search(current, bound, space, bound if known else 0.0).run()
            share = bound if known else min(problem.removed(found.weights.values), bound)
            current, found, components = self._read_again(found, components)
            # Rows that were only pruned leave nothing to search for.
            if found.weights.moved if not known else found.status is not Status.REACHED:
                space = workspace_for(current, sum(self.counts))
                found = self._search(current, share, space).run()
                current, found, components = self._read_again(found, components)
            current, found, components = self._weighed(current, found, components)
        solution = Solution(self.noise, self._part, current, found, bound, components)
        # In wrong units rows that did not come clean are no better seen by another look.
        if self._reader is None and (
            found.status is Status.REACHED or better_units(solution, self.settings) is None
        ):
            solution = replace(solution, found=self._further(current, found, space))
            # The features of the answer are not those of whitened rows.
            if self.task.is_sparse and self.noise.standardizer.whitener is None:
                solution = self._on_support(solution)
            elif self.settings.finds_scales and found.status is Status.REACHED:
                solution = self._on_crowded(solution)
        least = problem.least_bound(solution.found.weights.values)
        return replace(solution, bound=problem.in_whole_rows(bound) if known else least)

    def _search_for_mean(self, space: Workspace) -> Found:
        """Search at the bound, and where that is loose at the share that was removed."""
        problem, bound = self._problem, self.settings.bound
        if self.settings.contamination is not None:
            return self._search(problem, bound, space, bound).run()
        loose = self._search(problem, bound, space).loosely()
        if not loose.weights.moved:
            return loose
        while True:
            share = min(problem.removed(loose.weights.values), bound)
            found = self._search(problem, share, space, bound).run(loose)
            if found.status is Status.REACHED or loose.status is not None:
                return found
            # What the loose one passed over may be why.
            loose = self._search(problem, bound, space, start=loose.weights).run()

    def _search(
        self,
        problem: Problem,
        share: float,
        space: Workspace,
        in_groups: float = 0.0,
        start: Weights | None = None,
    ) -> Search:
        """Return a search among the weights that remove at most a share.

        Groups of outliers, which may be a share of the rows too, are looked for where that of the
        search is not a loose one, under which a descent removes too many clean rows to point
        anywhere.
        """
        settings = self.settings
        return Search(
            problem,
            self._problem.domain(share),
            space,
            settings.solver,
            settings.max_iter,
            group_domain=self._problem.domain(in_groups) if in_groups else None,
            start=start,
            sparse=self.task.is_sparse and problem is self._problem,
            callback=self.callback,
        )

    def _more(self, problem: Problem, found: Found, space: Workspace) -> Found:
        """Return what a search finds beside what was found, which stays."""
        bound = self.settings.bound
        more = self._search(problem, bound, space, bound, found.weights).run()
        return replace(more, trace=found.trace + more.trace)

    def _further(self, problem: Problem, found: Found, space: Workspace) -> Found:
        """Return what was found after a look at what its groups leave, as long as that is more.

        A descent from the weights of the groups points at the next ones.
        """
        while found.weights.groups and found.status is Status.STALLED:
            more = self._more(problem, found, space)
            if len(more.weights.groups) == len(found.weights.groups):
                break
            found = more
        return found

    def _first_components(self) -> Array:
        """Return components of the bulk of the rows, before any weights; none for a mean."""
        samples = self._problem.samples
        if self._reader is None:
            return np.empty((samples.n_features, 0))
        excess = excess_of(self._problem, self._problem.untouched)
        if self.settings.contamination == 0.0 and self.task.n_nonzero is None:
            return self._reader.plain(excess)
        return self._reader.initial(excess, samples, self.noise.kept)

    def level_beside_first(self) -> float:
        """Return the level of the columns beside the first components, in units of the noise."""
        components = self._part.lift(self._first_components())
        return level_beside(self.noise.samples, self.noise.untouched, components)

    def _read_again(self, found: Found, components: Array) -> tuple[Problem, Found, Array]:
        """Return the problem beside the components under the weights found, and both."""
        assert self._reader is not None
        excess = excess_of(self._problem, found.weights.values)
        components = self._reader.refined(excess, components)
        problem = _beside(self._problem, components)
        return problem, seen_by(problem, found), components

    def _weighed(
        self, current: Problem, found: Found, components: Array
    ) -> tuple[Problem, Found, Array]:
        """Return what was found with rows weighed by the groups that spread beside components.

        By groups alone where that leaves the rows clean, else on top of what the search removed.
        """
        assert self._reader is not None
        problem, before = self._problem, found.weights
        domain = problem.domain(self.settings.bound)
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
            centred=self.task.centred,
            most=TUNING.groups,
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

    def _on_support(self, solution: Solution) -> Solution:
        """Return the solution after a look at the features of the answer alone.

        Over so few features the noise is far lower than over all pairs, and shows outliers that
        are hidden there. What was found on all features stays.
        """
        samples, found = self._problem.samples, solution.found
        support = top_k_indices(mean_in_units(self.noise, found.weights.values), self.counts[0])
        objective = MomentObjective(samples.columns(support).at_hand(), KyFan(1), True)
        few = replace(self._problem, objective=objective, n_ambient=support.size)
        part = Part(samples.n_features, columns=support)
        value = cache(lambda weights: objective.verify(weights.values))
        if not few.is_clean(value(found.weights), found.weights.values):
            more = self._more(few, found, Everything(few, part))
            found = seen_by(self._problem, more)
        found = self._in_features(replace(solution, found=found), objective.samples, part)
        left, level = value(found.weights), few.floor(found.weights.values).clean
        if left > level and found.status is Status.REACHED:
            found = replace(found, status=Status.STALLED)
        found = replace(found, support_level=left / level if level > 0.0 else 0.0)
        return replace(solution, found=found, support=support)

    def _on_crowded(self, solution: Solution) -> Solution:
        """Return the solution after a look at single features, where some rows lie together.

        A scale that was read off a feature itself hides what does from second moments.
        """
        noise, problem, weights = self.noise, self._problem, solution.found.weights.values
        places, times = spread_places(noise.sample_weight, noise.keys, _ROWS_FOR_CROWDS)
        total = noise.sample_weight.sum()
        times = times * weights[places] / noise.sample_weight[places] * total
        rows = noise.rows_at(places, slice(None))
        crowded = crowded_features(rows, times, self._law_of_features(weights))
        if not crowded.size:
            return solution
        samples, part = problem.samples.columns(crowded), Part(rows.shape[1], columns=crowded)
        return replace(solution, found=self._in_features(solution, samples.at_hand(), part))

    def _law_of_features(self, weights: Array) -> Law:
        """Return the law of a typical feature: off rows, which is a pass, only if no Gaussian."""
        problem = self._problem
        return GAUSSIAN if problem.kurtosis == 3.0 else problem.law(weights)

    def _in_features(self, solution: Solution, samples: Samples, part: Part) -> Found:
        """Return what was found without rows that lie together in single features of a part."""
        problem, found = self._problem, solution.found
        before = found.weights
        if not TUNING.groups:
            return found
        law = self._law_of_features(before.values)
        domain = problem.domain(self.settings.bound)
        values, groups, wrong = groups_in_features(samples, domain, before.values, part.lift, law)
        if not groups or (law == GAUSSIAN and problem.law(before.values) != GAUSSIAN):
            return found
        lifted = tuple(group.lifted(part.lift) for group in groups)
        weighed = replace(found, weights=before.by_groups(values, lifted, wrong))
        # Modes of a skewed feature are no outliers: without them the rows that are left look worse,
        # even in units that follow from their weights.
        factor = better_units(replace(solution, found=weighed), self.settings)
        objective = problem.objective
        if factor is not None:
            objective = replace(objective, samples=problem.samples.rescaled(factor))
        left = seen_by(problem.with_objective(objective), weighed)
        worse = found.status is Status.REACHED and left.status is not Status.REACHED
        return found if worse else seen_by(problem, weighed)


def is_explained(found: Found) -> bool:
    """Tell whether white noise explains the rows, with the outliers that were found in it.

    Rows that are left must be clean, and rows that were removed in a group of outliers: those of
    correlated rows are in none.
    """
    grouped = bool(found.weights.groups) or not found.weights.moved
    return grouped and found.status is not Status.STALLED


def _beside(problem: Problem, components: Array) -> Problem:
    """Return the problem with components taken out of the second moments."""
    if components.shape[1] == 0:
        return problem
    return problem.with_objective(replace(problem.objective, removed=orthonormal(components)))


def seen_by(problem: Problem, found: Found) -> Found:
    """Return what was found as a problem beside other components sees it."""
    value = problem.objective.verify(found.weights.values)
    status = found.status
    if problem.is_clean(value, found.weights.values):
        status = Status.REACHED
    elif status is Status.REACHED:
        status = Status.STALLED
    return replace(found, value=value, status=status)


def mean_in_units(noise: Noise, weights: Array) -> Array:
    """Return the mean of the rows in units of the noise, about zero and not the origin of these."""
    standard = noise.standardizer
    return np.asarray(standard.restore(noise.samples.mean(weights)) / standard.scale)


def better_units(solution: Solution, settings: Settings) -> Array | None:
    """Return by which factor units are off under the weights found; None where they are right.

    For components the one level of all columns, without their part in the components. For a
    mean the deviation of each column, where `scale` is to be estimated: the
    first scales are inflated by outliers that the weights now exclude.
    """
    noise, problem = solution.noise, solution.problem
    weights = solution.found.weights.values
    if solution.components.shape[1]:
        level = level_beside(noise.samples, weights, solution.part.lift(solution.components))
        # Where the components hold all variance, rounding is left.
        off = abs(level - 1.0) > TUNING.units_tolerance and level > 1e-6
        return np.asarray(level) if off else None
    if not settings.finds_scales:
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
    return factor if np.any(np.abs(factor - 1.0) > TUNING.units_tolerance) else None


def excess_of(problem: Problem, weights: Array) -> Array:
    """Return the second moments less the identity, as an array."""
    centred = problem.objective.centred
    return as_array(problem.samples.moment(weights, centred=centred, reference=1.0))
