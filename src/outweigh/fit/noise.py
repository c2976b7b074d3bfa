"""What clean rows look like: which columns vary, in which units, about which centre, how far out.

The first station of a fit. Everything after it works on rows in units of their noise, in which
clean rows are white: variance one along every direction, but for the components that are sought.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from outweigh.fit.columns import (
    MAD_TO_SD,
    RankedColumns,
    column_bulks,
    largest_of,
    weighted_quantile,
)
from outweigh.fit.tuning import TUNING
from outweigh.protocols import Array, Indices, Samples
from outweigh.samples import Rows
from outweigh.samples.dense import INFINITE
from outweigh.samples.rows import COPIED_BYTES, Affine, ArrayRows, evidence_of_copies

# The origin, and whether the noise is of unit size, are read off this many rows.
ROWS_FOR_ORIGIN = 500
# Scales that are divided by are read off all rows unless there are more values than this.
_VALUES_FOR_SCALE = 10_000_000
# One level of all columns is known to a thousandth by these.
_VALUES_FOR_LEVEL = 2_000_000
# A centre within this many noise units of zero needs no shift of the origin.
_NEAR_ORIGIN = 10.0
_VALUES_AT_ONCE, _VALUES_IN_CACHE = 1_000_000, 1 << 15
# In units of the noise. Beyond it, sums of fourth powers of what is left after pruning overflow.
TOO_LARGE = 1e70
# Of rows along a direction, in units of their spread: products of blocks of rows round differently.
_ROUNDING = 1e-9
# Spreads whose squares, and sums of products of squares, are well within floating point.
_SMALLEST_LEVEL, _LARGEST_LEVEL = 1e-70, 1e70
_RANK_RTOL = 1e-10
_NEARLY_NONE = 1e-6
# Times 1/sqrt(n): the relative error of a median absolute deviation of Gaussian values.
MAD_ERROR = 1.17


@dataclass(frozen=True, slots=True, eq=False)
class Standardizer:
    """The map from a row of X to the units of the noise: z = (x[columns] - origin) / scale.

    Where the correlations R of clean rows are known, further to R^(-1/2) z: uncorrelated, and as
    close to the features themselves as uncorrelated ones can be, so what is sparse stays so.
    """

    columns: NDArray[np.intp]
    origin: Array
    scale: Array
    whitener: Array | None = None

    def apply(self, X: NDArray[np.floating]) -> Array:
        """Return the standardised rows, shape (n, len(columns)), huge values clipped."""
        z = self.view(X)
        if z is X or z.base is X:
            return np.clip(z, -INFINITE, INFINITE)
        return np.asarray(np.clip(z, -INFINITE, INFINITE, out=z))

    def view(self, X: NDArray[np.floating]) -> Array:
        """Return the standardised rows, not clipped; X itself where nothing is to be done."""
        return self.standardize(X if self.columns.size == X.shape[1] else X[:, self.columns])

    def standardize(self, part: NDArray[np.floating]) -> Array:
        """Return rows of the columns alone in the units of the noise."""
        with np.errstate(over="ignore"):
            if np.any(self.origin != 0.0):
                part = np.subtract(part, self.origin, dtype=np.float64)
            if np.any(self.scale != 1.0):
                # What was shifted is a copy, which can be written to.
                out = part if np.any(self.origin != 0.0) else None
                part = np.divide(part, self.scale, out=out, dtype=np.float64)
        if self.whitener is not None:
            part = np.clip(part, -INFINITE, INFINITE) @ self.whitener
        return np.asarray(part, dtype=np.float64)

    def direction(self, step: Array) -> Array:
        """Return a step between two rows, in the units of X, in those of the noise."""
        with np.errstate(over="ignore"):
            z = step / self.scale
        z = np.clip(z, -INFINITE, INFINITE)
        return np.asarray(z if self.whitener is None else z @ self.whitener)

    @property
    def affine(self) -> Affine | None:
        """The map for rows that it can be applied to implicitly; None where it whitens."""
        if self.whitener is not None:
            return None
        return Affine(self.columns, self.origin, self.scale)

    def restore(self, z: Array) -> Array:
        """Return a point in the units of the noise in those of X, on the columns."""
        return np.asarray(self.to_features(z) * self.scale + self.origin)

    def to_features(self, z: Array) -> Array:
        """Return R^(1/2) z, for a point or for columns of several: the way back from whitened."""
        if self.whitener is None:
            return z
        return np.asarray(np.linalg.solve(self.whitener, z), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """Rows in units of their noise, and what the first look at them said.

    Attributes
    ----------
    rows : Rows
        In the units of the user.
    sample_weight : ndarray of shape (n,)
    standardizer : Standardizer
    centre : ndarray of shape (len(standardizer.columns),)
        Of the bulk, in the units of X, about the origin of the standardizer.
    first : ndarray of shape (d,)
        The first row, which holds the constants.
    varying : ndarray of int
        The columns that vary.
    samples : Samples
        The rows in units of the noise, zeros in the pruned ones.
    pruned : ndarray of int
        Rows so far out that no plausible centre would keep them.
    radius_sq : float
        Squared distance from the centre beyond which rows are pruned, in units of the noise.
    far : ndarray of shape (n,) or None
        The squared distance of each row; None where the units have changed since.
    keys : ndarray of shape (n,)
        The rows along a fixed direction: by their order rows are spread evenly.
    level : float
        What the scales of all columns were multiplied by alike.
    """

    rows: Rows
    sample_weight: Array
    standardizer: Standardizer
    centre: Array
    first: Array
    varying: Indices
    samples: Samples
    pruned: Indices
    radius_sq: float
    far: Array | None
    keys: Array
    level: float = 1.0

    @property
    def anchor(self) -> Array:
        """The centre in units of the noise."""
        return self.standardizer.direction(self.centre)

    @property
    def kept(self) -> Array:
        """The sample weights, zero for the pruned rows, whose samples hold zeros."""
        weight = self.sample_weight.copy()
        weight[self.pruned] = 0.0
        return weight

    @property
    def untouched(self) -> Array:
        """The weights before any evidence: pruned rows have none."""
        return np.asarray(self.kept / self.kept.sum())

    def without(self, pruned: Indices) -> Noise:
        """Return the same rows with these taken for lost, and no others."""
        samples = _samples(self.rows, self.standardizer) if self.pruned.size else self.samples
        return replace(
            self, samples=samples.without(pruned) if pruned.size else samples, pruned=pruned
        )

    def counted(self, share: Array) -> Noise:
        """Return the same with each row counted as a share of one, be it next to nothing."""
        return replace(self, sample_weight=self.sample_weight * np.maximum(share, _NEARLY_NONE))

    def some_rows(self, count: int) -> tuple[Array, Array]:
        """Return about so many rows in the units of the user, spread evenly, with their weights."""
        return _spread_rows(self.rows, self.sample_weight, self.keys, count)

    def rows_at(self, places: Indices, some: slice) -> Array:
        """Return some rows in units of the noise, on some of the columns."""
        standard = self.standardizer
        if standard.whitener is not None:
            return standard.apply(self.rows.take(places))[:, some]
        columns = standard.columns[some]
        few = Standardizer(np.arange(columns.size), standard.origin[some], standard.scale[some])
        return few.apply(self.rows.entries(places, columns))

    def rescaled(self, factor: Array) -> Noise:
        """Return the same rows with every scale multiplied by `factor`; the same are pruned."""
        standardizer = replace(self.standardizer, scale=self.standardizer.scale * factor)
        level = self.level * float(factor) if factor.ndim == 0 else self.level
        if standardizer.whitener is None:
            factor = np.broadcast_to(factor, (standardizer.columns.size,))
            samples = self.samples.rescaled(factor)
        else:
            # It stands between scales and samples.
            samples = _samples(self.rows, standardizer)
            samples = samples.without(self.pruned) if self.pruned.size else samples
        return replace(self, standardizer=standardizer, samples=samples, far=None, level=level)


def first_look(
    rows: Rows,
    sample_weight: Array,
    scale: str | Array | None,
    covariance: Array | None,
    bound: float,
    *,
    common_level: bool = False,
    centred: bool = True,
) -> Noise:
    """Look at all rows for the first time.

    Parameters
    ----------
    rows : Rows
        n rows of d columns.
    sample_weight : ndarray of shape (n,)
        Positive.
    scale : {"auto", "mad"}, array of shape (d,) or None
        Either name reads scales off the rows; "auto" as exactly as outliers allow.
    covariance : ndarray of shape (d, d), optional
        Of clean rows, or of their noise, where it is known.
    bound : float
        At most this share of the sample weight is pruned.
    common_level : bool, default=False
        Divide all columns by one level too, the deviation of a typical one: for components, whose
        noise is of one size, but not of size one.
    centred : bool, default=True
        Whether the origin is free; else it is zero, and a constant column varies about it.
    """
    given = np.ones(rows.shape[1])
    if scale is not None and not isinstance(scale, str):
        given = np.asarray(scale, dtype=np.float64)
    # A fixed direction in the units known so far: the rows picked along it depend neither on their
    # order nor on the origin.
    direction = np.random.default_rng(0).standard_normal(rows.shape[1])
    seen = rows.overview(direction / given)
    varying = np.flatnonzero(seen.varies)
    columns = np.flatnonzero(seen.varies if centred else seen.varies | (seen.first != 0.0))
    if columns.size == 0:
        # Where nothing varies, one column stands in for all: its mean is its constant.
        columns = np.zeros(1, dtype=np.intp)
    to_read = isinstance(scale, str)
    # A centre is read off few rows, scales off as many as there is time for.
    count = ROWS_FOR_ORIGIN
    if to_read or common_level:
        values = _VALUES_FOR_SCALE if to_read else _VALUES_FOR_LEVEL
        count = max(count, values // columns.size)
    some, some_weight = _spread_rows(rows, sample_weight, seen.keys, count)
    if rows.n_passes is not None or 8 * sample_weight.size * rows.shape[1] > COPIED_BYTES:
        # Of fewer rows it is known which are equal.
        worth = evidence_of_copies(_of_equal_rows(sample_weight, seen.keys), some)
        sample_weight, some_weight = worth * sample_weight, worth * some_weight
    origin, centre, robust, few = _centre_and_scales(some, some_weight, columns)
    scales = robust
    if not centred:
        origin, centre = np.zeros((2, columns.size))
    if not to_read:
        scales = given[columns]
    elif scale == "auto" and not common_level:
        named = some if columns.size == some.shape[1] else some[:, columns]
        standard = Standardizer(np.arange(columns.size), origin, scales)
        scales = _with_deviations(named, some_weight, standard, centre, few)
    if scale is None and not common_level and np.all(np.abs(origin) <= _NEAR_ORIGIN):
        # Rows of unit noise are taken as they are: a near origin is not worth a copy of X.
        origin, centre = np.zeros_like(origin), origin + centre
    whitener = None if covariance is None else _whitener(covariance, columns)
    standardizer = Standardizer(columns, origin, scales, whitener)
    level = 1.0
    if common_level:
        level = _common_level(some, some_weight, robust, standardizer)
        standardizer = replace(standardizer, scale=scales * level)
    samples = _samples(rows, standardizer)
    anchor = standardizer.direction(centre)
    refuse_huge(np.array([anchor @ anchor]))
    # Rows in chunks find, in the same pass, the moments of those that are most likely kept.
    likely = _noise_radius_sq(float(sample_weight.sum()), columns.size)
    far = samples.squared_distances(anchor, (likely, sample_weight))
    far = np.minimum(far, INFINITE**2)
    radius_sq = likely
    if common_level:
        # Along components clean rows lie farther out, nobody knows how far.
        radius_sq = pruning_radius_sq(far, sample_weight, columns.size)
    pruned = _pruned_rows(far, radius_sq, sample_weight, bound)
    refuse_huge(np.delete(far, pruned))
    # In units of the noise, where they are at hand, so that no choice of rows depends on the units.
    keys = seen.keys
    if to_read and rows.n_passes is None:
        with np.errstate(over="ignore", invalid="ignore"):
            keys = samples.project(direction[columns, None])[:, 0]
    return Noise(
        rows,
        sample_weight,
        standardizer,
        centre,
        seen.first,
        varying,
        samples.without(pruned) if pruned.size else samples,
        pruned,
        radius_sq,
        far,
        keys,
        level,
    )


def known_covariance(covariance: object, n_features: int) -> Array | None:
    """Return a given covariance as an array, checked, or None if there is none.

    Parameters
    ----------
    covariance : None, "auto", array-like of shape (d, d), or an object with ``covariance_``
    n_features : int
        The d it must have.

    Examples
    --------
    >>> known_covariance([[1.0, 0.5], [0.5, 1.0]], 2)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    if covariance is None or isinstance(covariance, str):
        return None
    if hasattr(covariance, "fit"):
        if not hasattr(covariance, "covariance_"):
            raise NotFittedError(
                f"covariance: {type(covariance).__name__} is not fitted, or has no covariance_; "
                "fit it on rows that you trust, or pass an array"
            )
        covariance = covariance.covariance_
    array = np.asarray(covariance, dtype=np.float64)
    if array.shape != (n_features, n_features):
        raise ValueError(
            f"covariance must have one row and one column per feature, shape "
            f"({n_features}, {n_features}); got shape {array.shape}"
        )
    if not np.all(np.isfinite(array)):
        raise ValueError("covariance must be finite; it holds NaN or infinity")
    if not np.allclose(array, array.T, rtol=1e-6, atol=1e-8 * float(np.abs(array).max())):
        raise ValueError("covariance must be symmetric; pass (C + C.T) / 2 if it nearly is")
    if np.any(np.diagonal(array) <= 0.0):
        raise ValueError("covariance must have a positive diagonal: the variances of the features")
    return np.asarray((array + array.T) / 2.0)


def pruning_radius_sq(squared_distances: Array, sample_weight: Array, n_features: int) -> float:
    r"""Return a squared distance from the centre that clean rows do not exceed.

    The larger of two. What n rows of unit noise exceed with probability 0.05,
    :math:`1.2^2 (d + 2\sqrt{dL} + 2L)` with :math:`L = \log(n/0.05)`: the chi-squared tail bound of
    Laurent and Massart (2000), with room for a centre that is off by a fifth of the noise in every
    feature: a mean needs no more. And ten robust deviations beyond the median of the distances
    themselves, for rows with components, which are not of unit noise along these.
    """
    distances = np.sqrt(squared_distances)
    middle = float(weighted_quantile(distances, sample_weight, [0.5])[0])
    deviation = float(weighted_quantile(np.abs(distances - middle), sample_weight, [0.5])[0])
    # A row at the median is within, also where a root squared is a little less.
    by_bulk = (middle + TUNING.far * MAD_TO_SD * deviation) * (1.0 + 1e-9)
    return float(max(_noise_radius_sq(float(sample_weight.sum()), n_features), by_bulk**2))


def _noise_radius_sq(n_samples: float, n_features: int) -> float:
    """Return the squared distance that rows of unit noise hardly ever exceed."""
    log_term = float(np.log(n_samples / 0.05))
    spread = 2.0 * float(np.sqrt(n_features * log_term)) + 2.0 * log_term
    return (1.0 + TUNING.centre_off) ** 2 * (n_features + spread)


def _samples(rows: Rows, standardizer: Standardizer) -> Samples:
    return rows.samples(standardizer.view, standardizer.columns.size, standardizer.affine)


def _spread_rows(rows: Rows, sample_weight: Array, keys: Array, count: int) -> tuple[Array, Array]:
    """Return about `count` rows spread evenly over the data, with their weights.

    They are evenly spaced in the order of their keys, so whole numbers as weights choose as copies
    of the rows do.
    """
    places, times = spread_places(sample_weight, keys, count)
    if places.size == rows.shape[0] and isinstance(rows, ArrayRows):
        return rows.array, times
    return rows.take(places), times


def spread_places(sample_weight: Array, keys: Array, count: int) -> tuple[Indices, Array]:
    """Return which rows those are, and how often each counts."""
    total = float(sample_weight.sum())
    if total <= count:
        return np.arange(sample_weight.size), sample_weight
    # Huge values make projections infinite; their order among themselves is no matter.
    order = np.argsort(np.nan_to_num(keys, nan=np.inf), kind="stable")
    cumulative = np.cumsum(sample_weight[order])
    # A place that is reached but for rounding is reached.
    places = (np.arange(count) + 0.5) * (total / count) * (1.0 - 1e-12)
    chosen, times = np.unique(np.searchsorted(cumulative, places), return_counts=True)
    return order[chosen], times.astype(np.float64)


def _of_equal_rows(sample_weight: Array, keys: Array) -> Array:
    """Return the weight of each distinct row, given the rows along a direction that tells them."""
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    rounding = _ROUNDING * float(np.median(np.abs(ranked - np.median(ranked))))
    begins = np.flatnonzero(np.diff(ranked, prepend=-np.inf) > rounding)
    return np.asarray(np.add.reduceat(sample_weight[order], begins))


def _centre_and_scales(
    rows: Array, sample_weight: Array, columns: Indices
) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
    """Return an origin, a centre about it and a scale of each named column; which have few values.

    The origin is a value of the column, its median: differences from it are those from any other
    origin, to the last digit where numbers have few. The centre is the midmean, the scale positive
    and robust. Some columns at a time: sorted copies of all would take several times their memory.
    """
    size = max(1, _VALUES_AT_ONCE // max(rows.shape[0], 1))
    parts = [columns[start : start + size] for start in range(0, columns.size, size)]
    ranked = (RankedColumns(rows[:, part], sample_weight) for part in parts)
    found = [
        (each.quantile(0.5), each.midmean(), each.scales(), each.has_few_values())
        for each in ranked
    ]
    origins, centres, scales, few = map(np.concatenate, zip(*found, strict=True))
    return origins, centres, scales, few


def _with_deviations(
    rows: Array,
    weight: Array,
    standard: Standardizer,
    centre: Array,
    few: NDArray[np.bool_],
) -> Array:
    r"""Return scales of the columns that are as exact as their outliers let them be.

    A robust scale errs by :math:`1.17/\sqrt n` of a Gaussian column, a plain deviation by
    :math:`0.71/\sqrt n`, and only the latter leaves no excess on the diagonal of the second
    moments. With :math:`r_j` the ratio of both, over the rows within the pruning radius, and r that
    of a typical column (1 for Gaussian ones, more for heavy tails): the plain deviation where
    :math:`|\log(r_j/r)|` is no more than the largest of d errors, r times the deviation of the
    bulk where outliers make it more. Columns of few values follow no such law: the plain one.
    """
    n, d = float(weight.sum()), few.size
    middle = standard.direction(centre)
    size = max(1, _VALUES_IN_CACHE // d)
    parts = [slice(start, start + size) for start in range(0, len(rows), size)]
    squared = np.empty(len(rows))
    for part in parts:
        z = standard.apply(rows[part]) - middle
        squared[part] = np.minimum(np.einsum("ij,ij->i", z, z), INFINITE**2)
    kept = weight * (squared <= pruning_radius_sq(squared, weight, d))
    share = kept / kept.sum()
    mean, square = np.zeros((2, d))
    for part in parts:
        z = standard.apply(rows[part])
        mean += share[part] @ z
        square += share[part] @ np.square(z, out=z)
    variance = np.maximum(square - np.square(mean), 0.0)
    # Where all rows that are kept are equal, rounding is left.
    ratio = np.sqrt(np.where(variance > 1e-12, variance, 1.0))
    typical = float(np.median(ratio if few.all() else ratio[~few]))
    room = largest_of(d) * MAD_ERROR / np.sqrt(n)
    plain = few | (np.abs(np.log(ratio / typical)) <= room)
    if not plain.all():
        # Outliers only inflate a robust scale.
        z = replace(
            standard,
            columns=np.flatnonzero(~plain),
            origin=standard.origin[~plain],
            scale=standard.scale[~plain],
        ).apply(rows)
        z -= middle[~plain]
        bulk = np.minimum(column_bulks(z, kept)[1], 1.0)
        ratio[~plain] = typical * np.sqrt(bulk)
    return np.asarray(standard.scale * ratio)


def _common_level(
    rows: Array, sample_weight: Array, robust: Array, standardizer: Standardizer
) -> float:
    """Return the deviation of a typical column in the units of the standardizer.

    ``robust`` is that of each column in the units of the rows.
    """
    scales = robust / standardizer.scale
    if standardizer.whitener is not None:
        whitened = standardizer.apply(rows)
        scales = _centre_and_scales(whitened, sample_weight, np.arange(whitened.shape[1]))[2]
    level = float(np.median(scales))
    largest = float(np.max(level * standardizer.scale))
    if not _SMALLEST_LEVEL < largest < _LARGEST_LEVEL:
        raise ValueError(
            f"X: its typical spread is {largest:.1e}, whose square is beyond floating point; "
            "rescale X"
        )
    return level


def _whitener(covariance: Array, columns: Indices) -> Array:
    """Return R^(-1/2), R the correlations of the named features.

    Of all maps that make the features uncorrelated it changes them least.
    """
    part = covariance[np.ix_(columns, columns)]
    deviation = np.sqrt(np.diagonal(part))
    values, vectors = np.linalg.eigh(part / deviation / deviation[:, None])
    if values.size and values[0] <= _RANK_RTOL * values[-1]:
        raise ValueError(
            "covariance must be positive definite; add a little to its diagonal, or use a "
            "shrunk estimate such as sklearn.covariance.LedoitWolf"
        )
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)


def _pruned_rows(
    squared_distances: Array, radius_sq: float, sample_weight: Array, bound: float
) -> Indices:
    """Return the rows beyond the radius, farthest first, as many as the bound allows.

    Rounded up to whole rows.
    """
    beyond = np.flatnonzero(squared_distances > radius_sq)
    order = beyond[np.argsort(-squared_distances[beyond], kind="stable")]
    # A share of the rows is rarely a whole number of them: the row that is partly in it is, too. A
    # share given as a decimal fraction is not exact.
    budget = np.ceil(bound * sample_weight.sum() * (1.0 - 1e-9))
    allowed = np.cumsum(sample_weight[order]) <= budget * (1.0 + 1e-9)
    # Rows as far out as each other, but for rounding, go together or not at all.
    distances = squared_distances[order]
    split = float(distances[~allowed].max(initial=0.0))
    return np.asarray(order[allowed & (distances > split * (1.0 + 1e-9))])


def refuse_huge(squared_distances: Array) -> None:
    """Refuse rows that are still too far out, after pruning, for sums of their squares."""
    largest = float(np.sqrt(squared_distances.max(initial=0.0)))
    if largest > TOO_LARGE:
        raise ValueError(
            f"X: rows as far as {largest:.1e} noise units out remain after pruning as many as "
            "contamination allows, too far for second moments in floating point; raise "
            "contamination, pass scale, or remove those rows"
        )
