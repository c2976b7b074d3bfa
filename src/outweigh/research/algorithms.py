r"""The algorithms of the paper to the letter, with nothing of the road.

The reference is I, in the units of X as it is; no row is pruned and no column left out; the second
moments of components are about zero; all steps are on all features, of the constant length of the
paper's theorems, and end after `max_iter` evaluations. The answer is read off the best weights
seen.
"""

from __future__ import annotations

import math

import numpy as np

from outweigh.fit.certificate import certified
from outweigh.fit.noise import Noise, Standardizer, pruning_radius_sq, refuse_huge
from outweigh.fit.problem import Problem
from outweigh.fit.readers import DenseReader, SparseReader
from outweigh.fit.result import Fit
from outweigh.fit.score import score_rows
from outweigh.fit.search import Found, Weights
from outweigh.fit.task import Settings, Task
from outweigh.norms.spectral import largest_eigenpairs
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.optimise.descent import Callback, descend
from outweigh.optimise.steps import Constant, Subgradient
from outweigh.protocols import Array
from outweigh.samples import Rows
from outweigh.samples.matrices import as_array


def fit_paper(
    rows: Rows,
    sample_weight: Array,
    task: Task,
    settings: Settings,
    callback: Callback | None = None,
) -> Fit:
    """Run Algorithm 1 or 2 of the paper, or its dense form of Appendix D or E.

    Steps are those of the theorems; halved ones, as the authors' program has them, go further
    (`outweigh.baselines.plain`).

    Parameters
    ----------
    rows, sample_weight, task, settings, callback
        As for `outweigh.fit.road.fit`. What the paper does not have is refused: an unknown
        contamination or number of entries, scales, a covariance, and centred components.
    """
    contamination = settings.contamination
    if contamination is None:
        raise ValueError('contamination="auto": solver="paper" needs a number; give one')
    if settings.scale is not None or not settings.is_white:
        raise ValueError('scale, covariance: must be None for solver="paper": X is taken as it is')
    if task.n_nonzero == ():
        raise ValueError('n_nonzero="auto": solver="paper" needs a number; give one')
    if task.n_components and task.centred:
        raise ValueError('assume_centered=False: must be True for solver="paper" of components')
    noise = _as_it_is(rows, sample_weight)
    reader: DenseReader | SparseReader | None = None
    norm = task.norm(task.n_nonzero[0] if task.n_nonzero else 0)
    if task.n_components:
        reader = SparseReader(task.n_nonzero) if task.n_nonzero else DenseReader(task.n_components)
        norm = reader.norm
    objective = MomentObjective(noise.samples, norm, task.n_components == 0)
    d = noise.samples.n_features
    problem = Problem(objective, sample_weight, noise.pruned, 3.0, d)
    domain = problem.domain(contamination)
    budget = settings.max_iter
    update, rule = Subgradient(domain), constant_step(objective, domain, budget)
    result = descend(objective, update, rule, problem.untouched, max_iter=budget, callback=callback)
    weights = Weights(result.weights, result.force, result.drift, result.pushed)
    found = Found(weights, result.value, result.status, result.trace)
    components = np.empty((d, 0))
    if reader is not None:
        matrix = noise.samples.moment(result.weights, centred=False, reference=1.0)
        components = reader.plain(as_array(matrix))
    score, scores = score_rows(noise, weights)
    certificate = certified(problem, found, contamination, "white")
    return Fit(noise, problem, found, certificate, score, scores, components, np.empty((d, 0)))


def constant_step(objective: MomentObjective, domain: CappedSimplex, n_steps: int) -> Constant:
    r"""Return the step of the paper's theorems, with the constants of its lemmas on this data.

    Centred (weakly convex): :math:`\xi / \sqrt T` with :math:`\xi^2 = f(w_0) / (\beta L^2)`,
    :math:`L = \sqrt n \max_i |x_i|^2 + 2 |X|_2^2 / \sqrt n` and :math:`\beta = 2 |X|_2^2`. Not
    centred (convex): :math:`R / (L \sqrt T)` with :math:`L = \sqrt n \max_i |x_i|^2` and R the
    radius :math:`\sqrt{\epsilon / n}` of the set of weights.
    """
    samples, total = objective.samples, float(domain.metric.sum())
    start = domain.reference()
    second = samples.moment(domain.metric / total, centred=False)
    spectral_sq = total * float(largest_eigenpairs(second, 1)[0][0])
    row_sq = float(samples.squared_distances(np.zeros(samples.n_features)).max())
    if spectral_sq <= 0.0 or row_sq <= 0.0:
        return Constant(0.0)
    n = domain.n_effective(start)
    if not objective.centred:
        # The caps exceed the sample weights by 1 / (1 - eps).
        slack = max(float(domain.caps.sum()) - 1.0, 0.0)
        radius = math.sqrt(slack / (1.0 + slack) / n)
        return Constant(radius / (math.sqrt(n) * row_sq * math.sqrt(n_steps)))
    lipschitz = math.sqrt(n) * row_sq + 2.0 * spectral_sq / math.sqrt(n)
    gap = objective.evaluate(start).value
    xi = math.sqrt(gap / (2.0 * spectral_sq)) / lipschitz
    return Constant(xi / math.sqrt(n_steps))


def _as_it_is(rows: Rows, sample_weight: Array) -> Noise:
    """Return X taken to be of unit noise about zero."""
    d = rows.shape[1]
    seen = rows.overview(np.ones(d))
    standardizer = Standardizer(np.arange(d), np.zeros(d), np.ones(d))
    samples = rows.samples(standardizer.view, d, standardizer.affine)
    far = samples.squared_distances(np.zeros(d))
    refuse_huge(far)
    return Noise(
        rows,
        sample_weight,
        standardizer,
        np.zeros(d),
        seen.first,
        np.flatnonzero(seen.varies),
        samples,
        np.empty(0, dtype=np.intp),
        pruning_radius_sq(far, sample_weight, d),
        far,
        seen.keys,
    )
