"""From validated rows to components: the white path, the coloured one, and the paper's own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from outweigh.certificates import Certificate, stationarity, theorem_stationarity
from outweigh.estimators.components import (
    DenseReader,
    Reader,
    SparseReader,
    count_significant,
    effective_entries,
    largest_of,
)
from outweigh.estimators.pca_beyond import Beyond, BeyondReader, level_beside
from outweigh.estimators.pca_coloured import fit_coloured
from outweigh.estimators.pca_descent import Descent, PCAProblem, fit_plain, fit_white
from outweigh.estimators.pca_distances import DistanceScore, distances_for
from outweigh.estimators.pca_space import (
    Coordinates,
    PCASpace,
    is_white,
    prepare_pca,
    screened,
    spanned,
)
from outweigh.estimators.preparation import Standardizer
from outweigh.estimators.scoring import RowScore, row_score
from outweigh.estimators.search import SearchOptions
from outweigh.estimators.weighting import AUTO_BOUND
from outweigh.forms import Form
from outweigh.norms import KyFan
from outweigh.norms.floor import NoiseFloor
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, Callback, Iterate, Samples, Status
from outweigh.pruning import pruning_radius_sq
from outweigh.samples import Rows
from outweigh.samples.matrices import as_array

__all__ = ["DistanceScore", "FittedPCA", "PCACertificate", "PCASettings", "fit_pca"]

# The noise level is estimated again where the weights found show it to be off by more than this.
_LEVEL_TOLERANCE = 0.04
_COUNTS = 2


@dataclass(frozen=True)
class PCACertificate(Certificate):
    """What is known about the weights of a PCA fit.

    Attributes
    ----------
    white : bool
        Whether the noise looked white, so that there is a level of clean data to compare with. The
        objective is then the norm of what the components leave; else it is the sum of the leading
        variances.
    known : bool
        Whether the covariance of the noise was given; white then means as it says.
    """

    white: bool = True
    known: bool = False

    @property
    def clean(self) -> bool:
        """Whether the level of clean data is known and reached."""
        return self.white and super().clean

    @property
    def verdict(self) -> str:
        """One sentence for a person."""
        if self.white:
            return super().verdict
        noise = "not as `covariance` says" if self.known else "not white"
        return (
            f"the noise is {noise}, or there are too few rows or features to tell, so there is "
            f"no level of clean data to compare with: "
            f"{self.removed:.1%} of the weight removed by distance from the bulk"
        )


@dataclass(frozen=True, slots=True)
class PCASettings:
    """What a fit is asked for; ``n_nonzero`` is None for dense components, () for "auto"."""

    n_components: int
    n_nonzero: tuple[int, ...] | None
    contamination: float | None
    scale: str | Array | None
    centred: bool
    refit: bool
    options: SearchOptions
    covariance: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FittedPCA:
    """Components as rows on the columns of the standardizer, in its units, and the rest.

    The scores are those of all rows where they are known.
    """

    components: Array
    weights: Array
    standardizer: Standardizer
    samples: Samples
    certificate: PCACertificate
    score: RowScore | DistanceScore
    n_iter: int
    trace: tuple[Iterate, ...]
    first: Array = field(default_factory=lambda: np.empty(0))
    scores: Array | None = None


def fit_pca(
    rows: Rows, sample_weight: Array, settings: PCASettings, callback: Callback | None
) -> FittedPCA:
    """Fit components and weights to rows of positive sample weight.

    Parameters
    ----------
    rows : Rows
    sample_weight : ndarray of shape (n,)
    settings : PCASettings
    callback : callable, optional

    Returns
    -------
    FittedPCA
    """
    bound = AUTO_BOUND if settings.contamination is None else settings.contamination
    space, first = prepare_pca(
        rows, sample_weight, settings.scale, bound, settings.centred, settings.covariance
    )
    found = replace(_fit_in(space, sample_weight, settings, callback), first=first)
    return found if settings.covariance is None else _beyond(found, sample_weight, settings)


def _fit_in(
    space: PCASpace, sample_weight: Array, settings: PCASettings, callback: Callback | None
) -> FittedPCA:
    """Fit in a space: by descent where its noise is white, else by volume."""
    bound = AUTO_BOUND if settings.contamination is None else settings.contamination
    span = spanned(space, sample_weight)
    reference = _reference(space, sample_weight, bound)
    pooled = as_array(span.samples.moment(reference, centred=settings.centred))
    white = is_white(pooled, sample_weight.sum(), space.samples.n_features, settings.n_components)
    del pooled
    if not settings.refit:
        return _fit_by_descent(space, span, sample_weight, settings, callback)
    if not white:
        return _fit_by_volume(space, span, sample_weight, settings)
    found = _fit_by_descent(space, span, sample_weight, settings, callback)
    if settings.covariance is None:
        level = float(np.sqrt(np.median(space.samples.variances(found.weights))))
    else:
        level = level_beside(found.samples, found.weights, found.components.T)
    if abs(level**2 - 1.0) > _LEVEL_TOLERANCE and level > 0.0:
        space = space.rescaled(level)
        span = spanned(space, sample_weight)
        found = _fit_by_descent(space, span, sample_weight, settings, callback)
    return found


def _beyond(found: FittedPCA, sample_weight: Array, settings: PCASettings) -> FittedPCA:
    """Return the fit with components of the features in place of those of the whitened rows."""
    whitener = found.standardizer.whitener
    assert whitener is not None
    matrix = found.samples.moment(found.weights, centred=settings.centred, reference=1.0)
    beyond = Beyond(whitener, found.standardizer.scale)
    directions = found.components.T
    found = replace(found, certificate=replace(found.certificate, known=True))
    if settings.n_nonzero is None:
        return replace(found, components=beyond.dense(matrix, directions).T)
    counts = _fitting(settings.n_nonzero, found.samples.n_features)
    if not counts and not found.certificate.white:
        counts = tuple(effective_entries(column) for column in beyond.dense(matrix, directions).T)
    limit = _standing_out(found.samples.n_features, found.weights, sample_weight)
    excess = matrix.restrict(np.arange(matrix.n_features))
    return replace(found, components=beyond.sparse(excess, directions, counts, limit).T)


def _standing_out(n_features: int, weights: Array, sample_weight: Array) -> float:
    n_effective = 1.0 / float(np.sum(weights**2 / sample_weight))
    return largest_of(n_features) / float(np.sqrt(n_effective))


def _reader(
    counts: tuple[int, ...],
    space: PCASpace,
    where: Coordinates,
    sample_weight: Array,
    settings: PCASettings,
) -> SparseReader:
    whitener = space.standardizer.whitener
    if whitener is None or where.columns is not None:
        return SparseReader(counts)
    d = space.samples.n_features
    limit = _standing_out(d, sample_weight / sample_weight.sum(), sample_weight)
    in_features = _fitting(settings.n_nonzero or (), d)
    return BeyondReader(counts, Beyond(whitener, space.standardizer.scale), in_features, limit)


def _reference(space: PCASpace, sample_weight: Array, bound: float) -> Array:
    domain = CappedSimplex.from_contamination(sample_weight, bound + 1e-12)
    return domain.pruned(space.pruned).reference()


def _fit_by_descent(
    space: PCASpace,
    span: Coordinates,
    sample_weight: Array,
    settings: PCASettings,
    callback: Callback | None,
) -> FittedPCA:
    if settings.n_nonzero is None:
        return _descend(
            space, span, sample_weight, DenseReader(settings.n_components), settings, callback
        )
    bound = AUTO_BOUND if settings.contamination is None else settings.contamination
    reference = _reference(space, sample_weight, bound)
    where = screened(space, reference)
    # What is sparse in the features has more entries in whitened rows; they are counted.
    if settings.n_nonzero and settings.covariance is None:
        reader = SparseReader(_fitting(settings.n_nonzero, where.samples.n_features))
        return _descend(space, where, sample_weight, reader, settings, callback)
    problem = _problem(space, where, sample_weight, settings.centred)
    counts = count_significant(
        problem.excess(reference),
        problem.samples,
        sample_weight,
        settings.n_components,
        float(sample_weight.sum()),
    )
    for _ in range(_COUNTS):
        reader = _reader(counts, space, where, sample_weight, settings)
        found = _descend(space, where, sample_weight, reader, settings, callback)
        before = counts
        counts = count_significant(
            problem.excess(found.weights),
            problem.samples,
            sample_weight,
            settings.n_components,
            1.0 / float(np.sum(found.weights**2 / sample_weight)),
        )
        if max(abs(a - b) - 0.1 * b for a, b in zip(counts, before, strict=True)) <= 0.0:
            break
    return found


def _fitting(n_nonzero: tuple[int, ...], n_features: int) -> tuple[int, ...]:
    return tuple(min(k, n_features) for k in n_nonzero)


def _problem(
    space: PCASpace, where: Coordinates, sample_weight: Array, centred: bool
) -> PCAProblem:
    ambient = space.samples.n_features
    samples = where.samples.at_hand()
    return PCAProblem(samples, sample_weight, space.pruned, centred, ambient)


def _descend(
    space: PCASpace,
    where: Coordinates,
    sample_weight: Array,
    reader: Reader,
    settings: PCASettings,
    callback: Callback | None,
) -> FittedPCA:
    problem = _problem(space, where, sample_weight, settings.centred)
    options = settings.options
    if isinstance(reader, SparseReader):
        wanted = 3 * sum(reader.n_nonzero) if options.working_set else 0
        options = replace(options, working_set=wanted)
    reference = _reference(space, sample_weight, AUTO_BOUND)
    kurtosis = round(2.0 * space.samples.typical_kurtosis(reference)) / 2.0
    options = replace(options, kurtosis=float(np.clip(kurtosis, 1.5, 50.0)))
    solve = fit_white if settings.refit else fit_plain
    found = solve(problem, reader, settings.contamination, options, callback)
    certificate = _certificate(problem, found)
    score, scores = _row_score(space, where, sample_weight, found)
    return FittedPCA(
        where.lift(found.components).T,
        found.weights,
        space.standardizer,
        space.samples,
        certificate,
        score,
        found.result.n_iter,
        found.result.trace,
        scores=scores,
    )


def _certificate(problem: PCAProblem, found: Descent) -> PCACertificate:
    domain = problem.domain(found.bound)
    evaluation = found.objective.evaluate(found.weights)
    removed = domain.total_variation(found.weights)
    return PCACertificate(
        objective=evaluation.value,
        noise_floor=found.floor,
        stationarity=stationarity(domain, found.weights, evaluation.subgradient),
        theorem_stationarity=theorem_stationarity(domain.n_effective(found.weights), found.bound),
        removed=removed if removed > 1e-12 else 0.0,
        contamination_bound=found.bound,
        status=found.result.status,
    )


def _row_score(
    space: PCASpace,
    where: Coordinates,
    sample_weight: Array,
    found: Descent,
) -> tuple[RowScore, Array]:
    total = float(sample_weight.sum())
    along = where.samples.project(found.components)
    variances = np.maximum(found.weights @ along**2 - (found.weights @ along) ** 2 - 1.0, 0.0)
    # A clean row may be as far out along the components as the largest of n Gaussians.
    room = float(variances.sum()) + 2.0 * float(variances.max()) * np.log(total / 0.05)
    radius_sq = pruning_radius_sq(total, space.samples.n_features) + float(room)
    result = found.result
    lifted = replace(
        result,
        force=where.lift_form(result.force) if result.force.n_features else Form.zero(0),
        drift=where.lift(result.drift),
    )
    cuts = tuple(where.lift_cut(cut) for cut in found.cuts)
    score, scores = row_score(
        space.standardizer, space.samples, found.weights, radius_sq, lifted, cuts, total
    )
    if space.pruned.size:
        # They hold zeros in the samples of the descent; they are scored as new rows would be.
        scores[space.pruned] = score(space.rows.take(space.pruned))
    return score, scores


def _fit_by_volume(
    space: PCASpace, span: Coordinates, sample_weight: Array, settings: PCASettings
) -> FittedPCA:
    found = fit_coloured(
        span.samples,
        sample_weight,
        space.pruned,
        settings.n_components,
        settings.contamination,
        settings.centred,
    )
    components = span.lift(found.components)
    if settings.n_nonzero is not None and settings.covariance is None:
        components = _sparse_components(space, components, found.weights, settings)
    distances = distances_for(
        space.samples, found.weights, span.lift(found.leading), settings.centred, sample_weight
    )
    domain = CappedSimplex.from_contamination(sample_weight, found.bound + 1e-12)
    domain = domain.pruned(space.pruned)
    norm = KyFan(min(settings.n_components, span.samples.n_features))
    evaluation = MomentObjective(span.samples, norm, settings.centred, 0.0).evaluate(found.weights)
    removed = domain.total_variation(found.weights)
    certificate = PCACertificate(
        objective=evaluation.value,
        noise_floor=NoiseFloor(0.0, 0.0),
        stationarity=stationarity(domain, found.weights, evaluation.subgradient),
        theorem_stationarity=theorem_stationarity(domain.n_effective(found.weights), found.bound),
        removed=removed if removed > 1e-9 else 0.0,
        contamination_bound=found.bound,
        status=Status.STATIONARY,
        white=False,
    )
    return FittedPCA(
        components.T,
        found.weights,
        space.standardizer,
        space.samples,
        certificate,
        DistanceScore(space.standardizer, distances),
        found.n_iter,
        (),
    )


def _sparse_components(
    space: PCASpace, dense: Array, weights: Array, settings: PCASettings
) -> Array:
    """Return sparse components of the weighted covariance, started from the dense ones."""
    counts = settings.n_nonzero or tuple(effective_entries(column) for column in dense.T)
    where = screened(space, weights)
    counts = _fitting(counts, where.samples.n_features)
    matrix = where.samples.moment(weights, centred=settings.centred)
    array = matrix.restrict(np.arange(matrix.n_features))
    # Scaled to a top eigenvalue of one: the shift of the power iteration is then small beside it.
    scale = max(float(np.abs(np.diagonal(array)).max()), np.finfo(float).tiny)
    return where.lift(SparseReader(counts).best(array / scale))
