"""A fit from raw rows to an answer: the road that all four estimators take.

noise -> problem -> search at a loose bound -> the share it removed -> search at that share -> read
out -> score and certificate. Where better units, or a better count of entries, follow from the
weights found, the road is taken again. What differs between the estimators is a `Task`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from outweigh.fit.attempt import (
    Attempt,
    Solution,
    better_units,
    excess_of,
    is_explained,
    mean_in_units,
    seen_by,
)
from outweigh.fit.beyond import in_features
from outweigh.fit.certificate import certified
from outweigh.fit.columns import together_by_ranks
from outweigh.fit.law import Law
from outweigh.fit.noise import ROWS_FOR_ORIGIN, Noise, first_look
from outweigh.fit.own_features import component_of_bulk
from outweigh.fit.readers import count_entries, count_significant
from outweigh.fit.result import Fit
from outweigh.fit.score import score_rows
from outweigh.fit.task import Settings, Task
from outweigh.fit.tuning import TUNING
from outweigh.fit.unknown import fit_elliptical, looks_correlated
from outweigh.fit.volume import fit_by_volume, looks_white
from outweigh.fit.widened import LawOfRows, Widened
from outweigh.fit.workspace import coordinates
from outweigh.optimise.descent import Callback
from outweigh.protocols import Array, Status
from outweigh.samples import Rows
from outweigh.samples.dense import values_of
from outweigh.samples.matrices import as_array

_Settle = Callable[[Noise, Settings], Solution]


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
    if settings.contamination is None and sample_weight.sum() < TUNING.fewest_rows:
        settings = replace(settings, contamination=0.0, find_covariance=False)
    noise = first_look(
        rows,
        sample_weight,
        settings.scale,
        settings.covariance,
        settings.bound,
        common_level=task.n_components > 0,
        centred=task.centred,
    )
    if task.n_components and noise.varying.size == 0:
        raise ValueError(
            "X: all rows are equal, so there is no direction of variance; "
            "principal components need at least two different rows"
        )
    if task.n_components and not (settings.is_white or looks_white(noise, task)):
        return fit_by_volume(noise, task, settings)
    may_correlate = settings.find_covariance and not task.n_components
    if may_correlate and looks_correlated(noise):
        return fit_elliptical(noise, task, settings)
    if task.n_components and task.n_nonzero is None and settings.covariance is None:
        noise = _in_units_beside(noise, task, settings)
    sought = task
    if task.n_components and settings.covariance is not None:
        # What is sparse in the features is not so in whitened rows.
        sought = replace(task, n_nonzero=None)
    law = LawOfRows(noise)

    def settle(noise: Noise, settings: Settings) -> Solution:
        return _settled(noise, sought, settings, callback, law)

    solution = (
        settle(noise, settings)
        if task.n_components or settings.bound == 0.0
        else _mean_of(noise, settings, law, settle)
    )
    stalled = solution.found.status is Status.STALLED and not solution.found.weights.groups
    if task.n_components and settings.find_covariance and stalled:
        # Neither clean nor with outliers in groups: never white, but skewed or of heavy tails.
        return fit_by_volume(solution.noise, task, settings)
    if may_correlate and not is_explained(solution.found):
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
) -> Solution:
    """Return the solution in units, and with counts of entries, that follow from its weights."""
    counts = _first_counts(noise, task)
    risen = False
    for left in reversed(range(TUNING.attempts)):
        solution = Attempt(noise, task, counts, settings, callback, law).solve()
        factor = better_units(solution, settings)
        counted = _better_counts(solution, task, counts)
        if risen and sum(counted) < sum(counts):
            # Outliers were counted that fewer entries do not show: no way back to those.
            counted = counts
        risen = sum(counted) > sum(counts)
        if left == 0 or (factor is None and counted == counts):
            break
        counts = counted
        noise = noise if factor is None else noise.rescaled(factor)
    return solution


def _mean_of(noise: Noise, settings: Settings, law: LawOfRows, settle: _Settle) -> Solution:
    """Return the solution for a mean, without rows that are likely widened unless it is cleaner.

    At once without them where they lie to no side, if that leaves the rows clean. Those that do are
    a group, or there is one among them: it is told from them first, by the side. Else groups are
    looked for among all rows: what a radius left of these would hide.
    """
    everything = np.ones(noise.sample_weight.shape, dtype=np.bool_)
    widened, nearer = law.widened(everything), None
    apart = widened
    if widened is not None and widened.to_one_side:
        apart = law.beside_group(widened, settings.bound)
    if apart is not None and not apart.to_one_side:
        nearer = _without(apart, noise, settings, settle)
        if nearer.looks == (1.0, False):
            return nearer
    solution = settle(noise, settings)
    if solution.found.weights.groups:
        widened, nearer = law.widened(solution.found.weights.wrong < 0.5), None
    if widened is None:
        return solution
    nearer = nearer or _without(widened, noise, settings, settle)
    return solution if solution.looks < nearer.looks else nearer


def _without(widened: Widened, noise: Noise, settings: Settings, settle: _Settle) -> Solution:
    """Return the solution with each row counted by its chance not to be widened."""
    left, chance = settings, widened.chance
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
    nearer = settle(fewer, left)
    problem = replace(nearer.problem, sample_weight=noise.sample_weight)
    found, values = nearer.found, nearer.found.weights.values
    allowed = problem.domain(settings.bound).project(values)
    if not np.allclose(allowed, values, rtol=0.0, atol=1e-9 * values.max()):
        found = seen_by(problem, replace(found, weights=replace(found.weights, values=allowed)))
    bound = problem.least_bound(allowed)
    if settings.contamination is not None:
        bound = problem.in_whole_rows(settings.bound)
    noise = replace(nearer.noise, sample_weight=noise.sample_weight, radius_sq=widened.beyond)
    return replace(nearer, noise=noise, problem=problem, found=found, bound=bound)


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
    return (max(1, min(count_entries(rough, n), int(TUNING.first_counted * rough.size))),)


def _better_counts(solution: Solution, task: Task, counts: tuple[int, ...]) -> tuple[int, ...]:
    """Return the entries counted under the weights found, where they are to be counted at all.

    A count that differs by little is the same: another search would find the same weights.
    """
    if task.n_nonzero is None or task.n_nonzero:
        return counts
    problem, weights = solution.problem, solution.found.weights.values
    n_effective = problem.n_effective(weights)
    if task.n_components:
        counted = count_significant(
            excess_of(problem, weights),
            problem.samples,
            solution.noise.kept,
            task.n_components,
            n_effective,
        )
    else:
        counted = (max(1, count_entries(mean_in_units(solution.noise, weights), n_effective)),)
    tolerance = TUNING.count_tolerance
    close = all(abs(a - b) <= tolerance * b for a, b in zip(counted, counts, strict=True))
    return counts if close else counted


def _in_units_beside(noise: Noise, task: Task, settings: Settings) -> Noise:
    """Return the rows in units of what components leave of the typical column, where it is less.

    Components that are in most columns are in the spread of a typical one. Outliers only add to
    what is left, so units that would be larger are no better.
    """
    attempt = Attempt(noise, task, (), settings, None, LawOfRows(noise))
    level = attempt.level_beside_first()
    # Noise that is nothing beside the components is not told from rounding.
    off = 1e-6 < level < 1.0 - TUNING.units_tolerance
    return noise.rescaled(np.asarray(level)) if off else noise


def _finished(solution: Solution, task: Task, settings: Settings) -> Fit:
    """Return the fit with its certificate and scores, in the coordinates of the features."""
    noise, part = solution.noise, solution.part
    problem, found = solution.problem, solution.found
    given = settings.covariance is not None
    if solution.support is not None:
        rows, kept = values_of(noise.samples.columns(solution.support)), found.weights.values
        by_ranks = together_by_ranks(rows, kept, problem.n_effective(kept))
        found = replace(found, support_level=max(by_ranks, found.support_level))
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
        components = in_features(noise, weights.values, components, task)
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
