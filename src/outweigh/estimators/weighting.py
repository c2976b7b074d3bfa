"""Weights for prepared samples, at a given contamination or at one found on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from outweigh.certificates import Certificate, stationarity, theorem_stationarity
from outweigh.directions import rescaled_span
from outweigh.estimators.preparation import Prepared, without_pruned
from outweigh.estimators.scoring import RowScore, row_score
from outweigh.estimators.search import SearchOptions, find_weights, floor_at
from outweigh.estimators.stepping import clean_level
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, Callback, Indices, Result, Samples, Span, Status
from outweigh.separation import Separator

__all__ = [
    "AUTO_BOUND",
    "Found",
    "Weighting",
    "bound_for",
    "find_weighting",
    "problem_at",
    "seen_through",
    "weighting_of",
]

# With fewer rows than this no second moment tells a wrong one from a clean one.
_FEWEST = 10
AUTO_BOUND = 0.35
"""The contamination assumed at first where it is to be estimated."""

# The estimate by total variation falls short of the contamination where outliers overlap the clean
# rows; the last step may remove this much more.
_ROOM_FACTOR, _ROOM = 1.15, 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Weights as a search left them, with what is needed to go on or to report on them."""

    prepared: Prepared
    sample_weight: Array
    make_objective: Callable[[Samples], MomentObjective]
    objective: MomentObjective
    domain: CappedSimplex
    contamination_bound: float
    kurtosis: float
    result: Result
    separator: Separator | None

    @property
    def weights(self) -> Array:
        """The weight of each row."""
        return self.result.weights

    @property
    def samples(self) -> Samples:
        """The samples searched on: in units of the noise, zeros in pruned rows."""
        return self.objective.samples

    @property
    def n_effective(self) -> float:
        """The number of equally weighted rows that the weights amount to."""
        return 1.0 / float(np.sum(self.weights**2 / self.sample_weight))

    @property
    def evident_features(self) -> Indices | None:
        """The features descended on, where a descent moved the weights."""
        return self.result.coordinates if _moved(self.result) else None

    def span_in(self, prepared: Prepared, domain: CappedSimplex) -> Span | None:
        """Return the directions descended on in other units, unless other rows are pruned there."""
        span = self.result.span if _moved(self.result) else None
        if span is None or not np.array_equal(domain.caps == 0.0, self.domain.caps == 0.0):
            return None
        return rescaled_span(span, prepared.standardizer.scale / self.prepared.standardizer.scale)

    @property
    def centre(self) -> Array:
        """The weighted mean in the units of X, on the columns that vary."""
        return self.prepared.standardizer.restore(self.samples.mean(self.weights))


@dataclass(frozen=True, slots=True, eq=False)
class Weighting:
    """What a fitted estimator says about weights: how good they are, and a score for any row."""

    found: Found
    certificate: Certificate
    score: RowScore
    scores: Array


def find_weighting(
    prepared: Prepared,
    sample_weight: Array,
    make_objective: Callable[[Samples], MomentObjective],
    contamination: float | None,
    options: SearchOptions,
    *,
    separate_sparse: bool | None,
    callback: Callback | None = None,
    earlier: Found | None = None,
) -> Found:
    """Find weights under which the samples look clean.

    Parameters
    ----------
    prepared : Prepared
    sample_weight : ndarray of shape (n,)
    make_objective : callable
        From samples to the objective.
    contamination : float or None
        The share of wrong rows; None estimates it: descend under a loose bound, take the total
        variation of the weights from uniform as the share, and descend again under that.
    options : SearchOptions
    separate_sparse : bool or None
        Trim along the direction of the removed rows, on few features or on all; None does not.
    callback : callable, optional
    earlier : Found, optional
        What was found with the same rows in somewhat other units: where the evidence lies.

    Returns
    -------
    Found
        At the loose bound where the contamination is to be estimated and `options` ask for rough
        weights only.
    """
    bound = AUTO_BOUND if contamination is None else contamination
    if contamination is None and sample_weight.sum() < _FEWEST:
        bound = contamination = 0.0
    domain, objective = problem_at(prepared, sample_weight, make_objective, bound)
    options = _with_kurtosis(options, objective.samples, domain)
    known = contamination is not None
    separator = _separator(objective, domain, separate_sparse) if known else None
    result = find_weights(
        objective,
        domain,
        options,
        callback,
        polish=separator,
        coordinates=None if earlier is None else earlier.evident_features,
        span=None if earlier is None else earlier.span_in(prepared, domain),
        look_first=True,
    )
    removed = _removed(domain, result.weights)
    if not known and removed > 0.0 and options.verify:
        samples = objective.samples
        searched, objective = problem_at(
            prepared, sample_weight, make_objective, min(removed, AUTO_BOUND)
        )
        bound = max(bound_for(removed), min(removed, AUTO_BOUND))
        domain, _ = problem_at(prepared, sample_weight, make_objective, bound)
        separator = _separator(objective, domain, separate_sparse)
        result = find_weights(
            objective,
            searched,
            options,
            callback,
            polish=separator,
            coordinates=result.coordinates if _moved(result) else None,
            # Projections of other rows than those pruned now are no use.
            span=result.span if _moved(result) and objective.samples is samples else None,
            earlier=result if _costly(result) else None,
        )
    return Found(
        prepared,
        sample_weight,
        make_objective,
        objective,
        domain,
        bound,
        options.kurtosis,
        result,
        separator,
    )


def seen_through(
    found: Found, make_objective: Callable[[Samples], MomentObjective]
) -> Found | None:
    """Return what was found as another objective sees it; None where it is not clean to that."""
    objective = make_objective(found.samples)
    seen = objective.verify(found.weights)
    floor = floor_at(objective, found.domain, found.weights, found.kurtosis)
    if seen.value > clean_level(floor, _moved(found.result)):
        return None
    result = replace(found.result, value=seen.value, form=seen.form, status=Status.REACHED)
    return replace(found, make_objective=make_objective, objective=objective, result=result)


def weighting_of(found: Found) -> Weighting:
    """Return the certificate of weights, and the score that they teach."""
    result = found.result
    pruned = np.flatnonzero(found.domain.caps == 0.0)
    prepared, subgradient = _measured(found, pruned)
    certificate = _certificate(found, subgradient)
    score, scores = row_score(
        prepared.standardizer,
        found.samples,
        result.weights,
        prepared.radius_sq,
        result,
        found.separator.cuts_of(result.weights) if found.separator is not None else (),
        total=float(found.sample_weight.sum()),
        distances=(prepared.anchor, prepared.far),
        pushed=result.pushed,
        beyond=found.separator.beyond(result.weights) if found.separator is not None else None,
    )
    if pruned.size:
        # They hold zeros in the samples of the descent; they are scored as new rows would be.
        rows = prepared.samples.take_rows(pruned)
        if result.span is not None:
            # Directions are read off all features, several of them.
            rows = rows.at_hand()
        scores[pruned] = score.of_samples(rows, squared=prepared.far[pruned])
    return Weighting(found, certificate, score, scores)


def bound_for(removed: float) -> float:
    """Return the contamination allowed to the last step, given the share removed before it."""
    return min(_ROOM_FACTOR * removed + _ROOM, AUTO_BOUND)


def _separator(
    objective: MomentObjective, domain: CappedSimplex, sparse: bool | None
) -> Separator | None:
    return None if sparse is None else Separator(objective.samples, domain, sparse=sparse)


def problem_at(
    prepared: Prepared,
    sample_weight: Array,
    make_objective: Callable[[Samples], MomentObjective],
    bound: float,
) -> tuple[CappedSimplex, MomentObjective]:
    """Return the set of weights and the objective at a contamination, far rows pruned."""
    pruned = prepared.pruned(sample_weight, bound)
    # The bound may equal the pruned share to the last digit; D must not be empty by rounding.
    domain = CappedSimplex.from_contamination(sample_weight, bound + 1e-12 * (pruned.size > 0))
    return domain.pruned(pruned), make_objective(without_pruned(prepared, pruned))


def _with_kurtosis(
    options: SearchOptions, samples: Samples, domain: CappedSimplex
) -> SearchOptions:
    # Steps of a half: finer differences are noise, and equal requests share one noise floor.
    kurtosis = round(2.0 * samples.typical_kurtosis(domain.reference())) / 2.0
    return replace(options, kurtosis=float(np.clip(kurtosis, 1.5, 50.0)))


def _moved(result: Result) -> bool:
    return result.force.n_features > 0 and not result.force.is_zero


def _costly(result: Result) -> bool:
    """Whether the last steps of a descent, if any, were on all features or on directions."""
    everywhere = result.coordinates is None or result.coordinates.size == result.force.n_features
    return _moved(result) and everywhere


def _measured(found: Found, pruned: Indices) -> tuple[Prepared, Array]:
    """Return the samples with distances in their units, and the subgradient at the weights."""
    objective, prepared, form = found.objective, found.prepared, found.result.form
    mean = objective.samples.mean(found.weights)
    if not prepared.outdated:
        return prepared, objective.differentiate(form, mean)[0]
    drift = form.symmetric_product(mean) if objective.centred else None
    far, subgradient = prepared.samples.distances_and_quadratic(prepared.anchor, form, drift)
    # Pruned rows hold zeros in the samples of the descent, and their own values in these.
    subgradient[pruned] = 0.0
    return prepared.measured(far), subgradient


def _certificate(found: Found, subgradient: Array) -> Certificate:
    """Say how good the weights are, from the last full pass at them."""
    objective, domain, result = found.objective, found.domain, found.result
    weights, bound = result.weights, found.contamination_bound
    return Certificate(
        objective=result.value,
        noise_floor=floor_at(objective, domain, weights, found.kurtosis),
        stationarity=stationarity(domain, weights, subgradient),
        theorem_stationarity=theorem_stationarity(domain.n_effective(weights), bound),
        removed=_removed(domain, weights),
        contamination_bound=bound,
        status=result.status,
    )


def _removed(domain: CappedSimplex, weights: Array) -> float:
    """Return the share of weight removed, free of rounding where nothing was."""
    share = domain.total_variation(weights)
    return share if share > 1e-12 else 0.0
