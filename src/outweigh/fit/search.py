"""From untouched weights to weights under which the rows look clean.

A search goes in rounds. A survey, one full pass over all features, says how unclean the rows look
under the present weights, and where. The workspace takes that in. A descent runs on the workspace
alone, and the groups of outliers that it reveals say how likely each row is to be clean.
`Search._ended` is the only place that ends the rounds, and `Problem.is_clean` the only one that
says what clean is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np

from outweigh.fit.mixture import Groups
from outweigh.fit.posterior import groups_apart
from outweigh.fit.problem import Problem
from outweigh.fit.tuning import TUNING
from outweigh.fit.workspace import Workspace
from outweigh.forms import Form
from outweigh.norms.floor import NoiseFloor
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.optimise.descent import Callback, Iterate, Reached, Result, descend
from outweigh.optimise.steps import steps_for
from outweigh.protocols import Array, Status, Survey

# Of two that score alike but for rounding the earlier is kept.
_NOT_ROUNDING = 1.0 - 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The weight of each row, and what led to it.

    Attributes
    ----------
    values : ndarray of shape (n,)
    force, drift : Form and ndarray of shape (d,)
        The descent as a function of x: a row was pushed down by x'Fx - x'b, with F the sum of
        step_t Z_t and b that of step_t (Z_t + Z_t') mu_t over its steps. Zero where the weights
        are by groups alone.
    pushed : ndarray of shape (n,)
        That function at the rows descended on.
    groups : tuple of Group
        The groups of outliers that the rows were weighed by.
    wrong : ndarray of shape (n,)
        How likely each row is to be in one of them.
    """

    values: Array
    force: Form
    drift: Array
    pushed: Array
    groups: Groups = ()
    wrong: Array = field(default_factory=lambda: np.zeros(1))

    @classmethod
    def untouched(cls, values: Array, n_features: int) -> Weights:
        """Return weights that nothing has moved."""
        none = np.zeros(n_features)
        return cls(values, Form.zero(n_features), none, np.zeros(values.size))

    def by_groups(self, values: Array, groups: Groups, wrong: Array) -> Weights:
        """Return other values, by further groups that rows are likely to be in."""
        wrong = 1.0 - (1.0 - self.wrong) * (1.0 - wrong)
        return replace(self, values=values, groups=self.groups + groups, wrong=wrong)

    @property
    def moved(self) -> bool:
        """Whether they differ from those before any evidence."""
        return bool(self.groups) or not self.force.is_zero


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a search ends with.

    ``value`` is the objective over all features at the weights, by the last survey. The status is
    None where the weights come of a descent after it.
    ``support_level`` is the spectral norm on the features of a sparse answer, over the level of
    clean rows there; 0 where nobody looked.
    """

    weights: Weights
    value: float
    status: Status | None
    trace: tuple[Iterate, ...]
    support_level: float = 0.0


@dataclass(eq=False)
class Search:
    """Rounds of survey, descent and groups over one set of weights.

    Parameters
    ----------
    problem : Problem
    domain : CappedSimplex
        The weights that the descent may reach.
    workspace : Workspace
        Widened on the way. Where another search has left evidence in it, a descent comes first.
    solver : str
        How to descend, one of `outweigh.optimise.steps.SOLVERS`.
    max_iter : int
        Evaluations of the objective allowed.
    group_domain : CappedSimplex, optional
        The weights that rows may be given by the groups they are in; without it no groups are
        looked for.
    start : Weights, optional
        What was found before, and stays: only more is removed. By default nothing was.
    sparse : bool
        Whether a group differs in few features.
    callback : callable, optional
        Sees every iterate.
    """

    problem: Problem
    domain: CappedSimplex
    workspace: Workspace
    solver: str
    max_iter: int
    group_domain: CappedSimplex | None = None
    start: Weights | None = None
    sparse: bool = False
    callback: Callback | None = None
    _trace: list[Iterate] = field(default_factory=list, init=False)
    _last: Result | None = field(default=None, init=False)

    @cached_property
    def _first(self) -> Weights:
        """The weights that the search sets out from."""
        if self.start is None:
            return Weights.untouched(self.domain.reference(), self.problem.objective.n_features)
        return replace(self.start, values=self.domain.project(self.start.values))

    def run(self, loose: Found | None = None) -> Found:
        """Search for clean weights.

        Parameters
        ----------
        loose : Found, optional
            By a search over a larger set of weights, which has left its evidence in the workspace:
            a descent then goes on from there before the first survey.
        """
        descended = self._first
        if loose is not None:
            values = self.domain.project(loose.weights.values)
            descended = self._descend(replace(loose.weights, values=values, groups=()))
        *_, found = self._rounds(descended)
        return found

    def loosely(self) -> Found:
        """Search for weights that another search sets out from, whose survey will do for both.

        This one ends where a descent has reached the level of its workspace.
        """
        for found in self._rounds(self._first):
            level = self._level(found.weights.values).median if self._last else np.inf
            if found.status is None and self._last and self._last.value <= level:
                break
        return found

    def _rounds(self, descended: Weights) -> Iterator[Found]:
        """Yield what there is after each descent, and at last what the search ends with."""
        best: Found | None = None
        weights = self._weigh(descended)
        while True:
            survey = self._survey(weights)
            if weights is not descended and not self.problem.is_clean(survey.value, weights.values):
                # Groups that leave the rows unclean have given weight back to other outliers.
                least = np.minimum(weights.values, descended.values)
                values = (self.group_domain or self.domain).project(least / least.sum())
                both = replace(descended, values=values, groups=weights.groups, wrong=weights.wrong)
                again = self._survey(both)
                if again.value < _NOT_ROUNDING * survey.value:
                    survey, weights = again, both
            found = Found(weights, survey.value, None, ())
            status = self._ended(survey, weights)
            reached = status is Status.REACHED
            if best is None or reached or found.value < _NOT_ROUNDING * best.value:
                best = found
            if status is not None:
                yield replace(best, status=status, trace=tuple(self._trace))
                return
            self.workspace.widen(weights.values)
            descended = self._descend(descended)
            weights = self._weigh(descended)
            yield replace(best, weights=weights, trace=tuple(self._trace))

    def _ended(self, survey: Survey, weights: Weights) -> Status | None:
        """Return how the search ends with this survey, or None if another round should begin."""
        if self.problem.is_clean(survey.value, weights.values):
            return Status.REACHED
        if len(self._trace) >= self.max_iter:
            return Status.EXHAUSTED
        if self._last is None:
            return None
        # What only the workspace shows has withstood the descent there; the rest is noise.
        return None if self.workspace.misses(weights.values) else Status.STALLED

    def _survey(self, weights: Weights) -> Survey:
        survey = self.workspace.survey(weights.values)
        self._record(Iterate(len(self._trace), survey.value, 0.0, True))
        return survey

    def _descend(self, begin: Weights) -> Weights:
        """Return the weights at the end of a descent on the workspace."""
        space = self.workspace
        level = self._level(begin.values).median
        make_rule, update = steps_for(self.solver, self.domain)
        found = descend(
            space.objective,
            update,
            make_rule(level),
            begin.values,
            max_iter=max(1, self.max_iter - len(self._trace)),
            reached=near_or_slow(level, TUNING.slow),
            callback=self._record,
        )
        self._last = found
        return replace(
            begin,
            values=found.weights,
            force=begin.force + space.part.lift_form(found.force),
            drift=begin.drift + space.part.lift(found.drift),
            pushed=begin.pushed + found.pushed,
        )

    def _weigh(self, descended: Weights) -> Weights:
        """Return weights by the groups of outliers that a descent has revealed."""
        most = TUNING.groups
        # What was found before has been weighed.
        if self.group_domain is None or self._last is None or not (most and descended.moved):
            return descended
        space, problem = self.workspace, self.problem
        values, groups, wrong = groups_apart(
            space.objective.samples,
            self.group_domain,
            self._first.values,
            descended.values,
            space.part.lift,
            cache(lambda: problem.law(descended.values)),
            sparse=self.sparse,
            features=space.part.basis is None,
            most=most,
        )
        if not groups:
            return descended
        lifted = tuple(group.lifted(space.part.lift) for group in groups)
        return self._first.by_groups(values, lifted, wrong)

    def _level(self, weights: Array) -> NoiseFloor:
        """Return what clean rows score on the workspace."""
        space = self.workspace
        return self.problem.floor(weights, space.objective.norm, space.n_noise)

    def _record(self, iterate: Iterate) -> bool:
        """Add a line to the trace of the whole search; return whether the user stops it."""
        iterate = replace(iterate, iteration=len(self._trace))
        self._trace.append(iterate)
        return bool(self.callback is not None and self.callback(iterate))


def near_or_slow(level: float, slow: float) -> Reached:
    """Return what ends a descent at a level, or where two steps in a row hardly lower the value.

    A workspace was chosen where noise is largest, so its level may be out of reach; the next survey
    knows better what is left to do.
    """
    best, in_a_row = np.inf, 0

    def ended(value: float, weights: Array) -> bool:
        nonlocal best, in_a_row
        in_a_row = in_a_row + 1 if value > slow * best else 0
        best = min(best, value)
        return value <= level or in_a_row >= 2

    return ended
