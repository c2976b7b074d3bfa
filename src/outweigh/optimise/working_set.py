"""The working set of features: those that carry the evidence, a few at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammainccinv

from outweigh.forms import Form
from outweigh.optimise.rounds import Rounds, descend_in_rounds
from outweigh.protocols import (
    Array,
    Indices,
    Objective,
    Reached,
    Result,
    Status,
    Survey,
    SurveyableObjective,
)

__all__ = ["WorkingSet", "descend_on_working_set"]

# Energy that noise would give to any of the features this rarely is evidence. The rows it is summed
# over were chosen for being large, by which noise gains: half more is clear.
_BY_CHANCE = 0.05
_CLEAR = 1.5

InnerSolver = Callable[[Objective, Array, int], Result]
"""Called with the restricted objective, the weights to start from and its number of features."""

Polish = Callable[[Array, Indices], Array]
"""From the weights of a descent, and its features, to the weights worth verifying."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkingSet:
    """How the working set grows and when the rounds end.

    Parameters
    ----------
    n_coordinates : int
        Features added by the first full pass, besides the rows of the maximiser.
    growth : int, default=2
        A later pass adds this many times as many as the one before, where no measure of noise tells
        which features show evidence, or most do: it is met in a few passes.
    max_rounds : int, default=8
        Full passes allowed.
    sufficient_decrease : float, default=0.03
        A round that lowers the full objective by less than this fraction is the last, unless it
        names new features.
    initial : ndarray of int, optional
        Features known to carry evidence: the first descent runs on them without a pass before it.
    look_first : bool, default=False
        Make that pass even so: it may find the weights clean, or evidence on other features too.
    verify : bool, default=True
        Without it, the weights of the first descent are the answer, polished, whatever their value.
    begin : ndarray of shape (n,), optional
        Weights to begin from, found by another descent; by default the untouched ones.
    noise : callable, optional
        From weights to the variance that noise gives to an entry off the diagonal of the matrix.
        With it, the first descent runs on all features that show evidence, unless most do, and the
        rounds end where a descent has come to its end and no other feature shows any clearly.
    own_noise : float, default=2.0
        How many times as much it gives to one on the diagonal: the kurtosis less one.
    row_noise : float, optional
        What noise of variance one hardly ever puts into a row, see `Survey.by_row`: features whose
        own row holds more show evidence too, which may be in none of the rows of most energy.
    """

    n_coordinates: int
    growth: int = 2
    max_rounds: int = 8
    sufficient_decrease: float = 0.03
    initial: Indices | None = None
    look_first: bool = False
    verify: bool = True
    begin: Array | None = None
    noise: Callable[[Array], float] | None = None
    own_noise: float = 2.0
    row_noise: float | None = None

    def levels(self, weights: Array) -> tuple[float, ...]:
        """Return the energies from which on a feature's own row shows evidence, or does clearly."""
        if self.noise is None or self.row_noise is None:
            return ()
        level = self.noise(weights) * self.row_noise
        return level, _CLEAR * level

    def evident(self, survey: Survey, weights: Array, clear: bool = False) -> Indices:
        """Return the features that show more energy than noise explains, or clearly more."""
        if self.noise is None or survey.energy is None or survey.own is None:
            return np.empty(0, dtype=np.intp)
        energy = survey.energy + survey.own / self.own_noise
        rare = _BY_CHANCE / energy.size
        explained = self.noise(weights) * 2.0 * float(gammainccinv(survey.n_rows / 2.0, rare))
        shows = energy > (_CLEAR if clear else 1.0) * explained
        levels = self.levels(weights)
        if levels and survey.by_row is not None:
            shows |= survey.by_row > levels[int(clear)]
        return np.flatnonzero(shows)


def descend_on_working_set(
    objective: SurveyableObjective,
    inner: InnerSolver,
    start: Array,
    reached: Reached,
    working_set: WorkingSet,
    polish: Polish | None = None,
    exhausted: Callable[[], bool] | None = None,
) -> Result:
    """Alternate full passes and descents on the features they name.

    Parameters
    ----------
    objective : SurveyableObjective
    inner : callable
        Solves the restricted problem.
    start : ndarray of shape (n,)
        The untouched weights.
    reached : callable
        Whether a full value at given weights is at the clean level.
    working_set : WorkingSet
    polish : callable, optional
        Improves the weights of each descent before they are verified; the next descent goes on
        from the weights before.
    exhausted : callable, optional
        Whether the inner solver has spent its budget, after which no further round begins.

    Returns
    -------
    Result
        Its value is that of a full pass at the returned weights.
    """
    features = _Features(objective, working_set)

    def on_features(restricted: Objective, weights: Array) -> Result:
        return inner(restricted, weights, features.coordinates.size)

    def polished(weights: Array) -> Array:
        assert polish is not None
        return polish(weights, features.coordinates)

    def ended(survey: Survey, weights: Array, descent: Status | None) -> Status | None:
        if exhausted is not None and exhausted():
            return Status.EXHAUSTED
        if working_set.noise is None or descent in (None, Status.EXHAUSTED):
            return None
        # What no feature shows clearly is noise, which no weights remove; what only features of the
        # descent show has withstood it.
        clear = working_set.evident(survey, weights, clear=True)
        return Status.STALLED if np.isin(clear, features.coordinates).all() else None

    rounds = Rounds(
        on_features,
        reached,
        polished if polish is not None else None,
        ended,
        working_set.max_rounds,
        working_set.sufficient_decrease,
        descend_first=working_set.initial is not None and not working_set.look_first,
        verify=working_set.verify,
    )
    return descend_in_rounds(features, rounds, start, working_set.begin)


class _Features:
    """The named columns as a workspace; every pass names more of them."""

    def __init__(self, objective: SurveyableObjective, working_set: WorkingSet) -> None:
        none = np.empty(0, dtype=np.intp)
        self.coordinates = none if working_set.initial is None else working_set.initial
        self._objective = objective
        # Beside features that are known, a first look adds none that hold mere noise.
        self._known_suffice = working_set.initial is not None and working_set.look_first
        self._working_set = working_set
        self._asked = working_set.n_coordinates

    @property
    def n_features(self) -> int:
        return self._objective.n_features

    def survey(self, weights: Array) -> Survey:
        return self._objective.survey(weights, self._asked, self._working_set.levels(weights))

    def widen(self, survey: Survey, weights: Array) -> bool:
        assert survey.coordinates is not None
        n_before = self.coordinates.size
        if not self._known_suffice:
            self.coordinates = np.union1d(self.coordinates, survey.coordinates)
        self._known_suffice = False
        evident = self._working_set.evident(survey, weights)
        if 0 < 2 * evident.size <= self.n_features:
            self.coordinates = np.union1d(self.coordinates, evident)
        else:
            # Where most features show evidence, any few of them will do, and then more and more.
            self._asked = min(self._working_set.growth * self._asked, self.n_features)
        return self.coordinates.size > n_before

    def restricted(self) -> Objective:
        return self._objective.restrict(self.coordinates)

    def lift(self, vector: Array) -> Array:
        lifted = np.zeros(self.n_features)
        lifted[self.coordinates] = vector
        return lifted

    def lift_form(self, form: Form) -> Form:
        return form.lift(self.coordinates, self.n_features)

    def recorded(self, result: Result) -> Result:
        return replace(result, coordinates=self.coordinates)
