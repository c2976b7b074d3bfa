"""Samples held in memory as a NumPy array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from outweigh.forms import Form
from outweigh.protocols import Array, Indices, MomentMatrix, Samples
from outweigh.samples.matrices import (
    CHANGE_BELOW,
    AnySamples,
    ArrayMoment,
    Block,
    LazyMoment,
    SecondMoments,
    block_rows,
    second_moment,
)

_T = TypeVar("_T", bound=np.generic)

INFINITE = 1e100
"""Values beyond it, in units of the noise, are as good as infinite."""

# By default moment matrices may take this many times the memory of X, and never less than so many
# bytes: a small matrix is held however short X is.
_TIMES_X = 2
_ALWAYS = 64 * 2**20
_BLOCK_SIZE = 512
# Directions weaker than this share of the strongest are rounding.
_RANK_RTOL = 1e-10
# The fourth powers of smaller values are within floating point.
_POWERS_BELOW = 1e70
# Rows read at once of a matrix in float32, and the sides of a tile of one that is not held.
_ROUNDED_ROWS, _TILE = 256, 1024
# Values combined at once where a temporary of the size of X would be wasteful: they stay in cache.
_CHUNK = 1 << 15
# So few directions are projected on one at a time, in a third of the time of a product of matrices.
_FEW = 4
# Rows that are gathered before they are summed cost so many times as much.
_SEVERAL = 4
# What an entry of a form costs alone, in multiplications of a product of matrices.
_PER_ENTRY = 60
# Multiplications above which changing the last moment matrix beats summing a new one.
_UPDATE_ABOVE = 5e7
# What a sum of n products in single precision loses, relative to the largest diagonal entry: each
# rounds by 2^-24 and errors add up like sqrt(n) at most; a tenfold margin on what is seen.
_SINGLE_ROUNDING = 2.0**-20


@dataclass(frozen=True, slots=True, eq=False)
class DenseSamples(AnySamples):
    """The rows of an (n, d) float64 array, seen through reductions.

    Parameters
    ----------
    array : ndarray of shape (n, d)
        Not copied and never written to.
    memory_budget : int, optional
        Bytes that moment matrices may take. A d x d array that does not fit is never made: passes
        then run over tiles of it. By default twice the size of X, and at least 64 MiB.
    zeroed : ndarray of int
        Rows that count as zeros, whose weights must be zero.

    Examples
    --------
    >>> import numpy as np
    >>> samples = DenseSamples(np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> samples.mean(np.array([0.5, 0.5]))
    array([1., 1.])
    >>> samples.moment(np.array([0.5, 0.5]), centred=True).restrict(np.arange(2))
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    array: NDArray[np.float64]
    memory_budget: int | None = None
    zeroed: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    _known: SecondMoments = field(default_factory=SecondMoments, repr=False)
    _rounded: SecondMoments = field(default_factory=partial(SecondMoments, np.float32), repr=False)
    _means: list[tuple[Array, Array]] = field(default_factory=list, repr=False)

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        return int(self.array.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        return int(self.array.shape[1])

    def mean(self, weights: Array) -> Array:
        """Return mu_w = X'w, for one or several weights in shape (n,) or (m, n)."""
        if weights.ndim > 1:
            # One at a time: few columns are multiplied more quickly so.
            return np.stack([self._mean(part) for part in weights])
        # The last is asked for again: what a search ends with is looked at from several sides.
        if not (self._means and np.array_equal(self._means[0][0], weights)):
            self._means[:] = [(weights.copy(), self._mean(weights))]
        return self._means[0][1].copy()

    def _mean(self, weights: Array) -> Array:
        if _SEVERAL * np.count_nonzero(weights) > weights.size:
            return np.asarray(weights @ self.array)
        used = np.flatnonzero(weights)
        return np.asarray(weights[used] @ self.array[used])

    def moment_about(self, weights: Array, mean: Array | None, reference: float) -> MomentMatrix:
        """Return M_w - mu mu' - r I as an array, or on demand where it does not fit the budget."""
        lazy = self._lazy_moment(weights, mean, reference)
        if not self._holds(1, np.float64):
            return lazy
        if self.remembers_moments:
            found = self._known.get(self.array, weights).copy()
        else:
            found = second_moment(self.array, weights)
        return ArrayMoment.of(np.asarray(found, dtype=np.float64), lazy)

    def rounded_moment(self, weights: Array, mean: Array | None, reference: float) -> MomentMatrix:
        """Return M_w - mu mu' - r I, read as a whole in blocks that are summed in float32.

        That takes half the time. Where the moments are known in float64, they are exact all the
        same.
        """
        lazy = self._lazy_moment(weights, mean, reference)
        known = self._known.find(weights)
        if known is not None:
            return ArrayMoment.of(np.array(known, dtype=np.float64), lazy)
        if self._holds(2, np.float32):
            second = self._rounded.get(self.array, weights)
            rounded, largest = partial(_rounded_rows, second, mean), np.diagonal(second).max()
        else:
            root = self._root(weights, mean, np.float32)
            rounded, largest = partial(_tiles, root), np.einsum("ij,ij->j", root, root).max()
        largest = float(largest) + abs(reference)
        return replace(lazy, rounded=rounded, rounding=_SINGLE_ROUNDING * largest)

    def _lazy_moment(self, weights: Array, mean: Array | None, reference: float) -> LazyMoment:
        root = partial(self._root, weights, mean) if self.n_samples < self.n_features else None
        return LazyMoment(self, weights, mean, reference, _BLOCK_SIZE, root=root)

    @property
    def remembers_moments(self) -> bool:
        """Whether moments in float64 that were asked for once cost little from then on."""
        # What is remembered beside the matrix is small beside X, or not worth its memory; and
        # where a sum is quick, finding out what changed is not.
        if self.n_samples * self.n_features**2 <= _UPDATE_ABOVE:
            return False
        return 4 * self.n_features <= self.n_samples and self._holds(1, np.float64)

    def _root(
        self, weights: Array, mean: Array | None, dtype: type[np.floating] = np.float64
    ) -> NDArray[Any]:
        """Return the rows, less a mean if there is one, times the roots of their weights."""
        root = np.empty(self.array.shape, dtype=dtype)
        for rows in self._chunks():
            part = self.array[rows] if mean is None else self.array[rows] - mean
            # In double, then rounded: a huge value without weight must give 0, not inf times 0.
            scale = np.sqrt(weights[rows, None])
            np.multiply(part, scale, out=root[rows], dtype=np.float64, casting="same_kind")
        return root

    def moment_rows(self, weights: Array, indices: Indices) -> Array:
        """Return the named rows of X'diag(w)X."""
        part = np.take(self.array, indices, axis=1)
        part *= weights[:, None]
        return np.asarray(part.T @ self.array)

    def moment_block(self, weights: Array, indices: Indices) -> Array:
        """Return the block of X'diag(w)X on the named coordinates."""
        part = np.take(self.array, indices, axis=1) * np.sqrt(weights)[:, None]
        return np.asarray(part.T @ part)

    def moment_product(self, weights: Array, vectors: Array) -> Array:
        """Return X'diag(w)X V."""
        along = self.array @ vectors
        scale = weights if along.ndim == 1 else weights[:, None]
        return np.asarray(self.array.T @ (scale * along))

    def _holds(self, n_matrices: int, dtype: type[np.floating]) -> bool:
        """Whether moment matrices, and the scaled rows they are summed from, fit the budget.

        The first is a sum of all rows, each further one a change by some of them.
        """
        budget = self.memory_budget
        if budget is None:
            budget = max(_TIMES_X * self.array.nbytes, _ALWAYS)
        n, d = self.n_samples, self.n_features
        rows = max(d + block_rows(n, d), n_matrices * d + block_rows(int(CHANGE_BELOW * n), d))
        return np.dtype(dtype).itemsize * d * rows <= budget

    def _chunks(self, width: int | None = None) -> Iterator[slice]:
        """Yield runs of rows, of which so many columns are about as many as stay in cache."""
        size = max(1, _CHUNK // max(self.n_features if width is None else width, 1))
        for start in range(0, self.n_samples, size):
            yield slice(start, min(start + size, self.n_samples))

    def quadratic(self, form: Form, drift: Array | None = None) -> Array:
        """Return x_i'Zx_i - x_i'b for every row; b is zero unless a `drift` is given."""
        result = np.zeros(self.n_samples) if drift is None else -self.project(drift)
        if form.strengths.size:
            result += (self.array @ form.directions) ** 2 @ form.strengths
        if form.values.size:
            result += self._sparse_quadratic(form)
        result[self.zeroed] = 0.0
        return result

    def _sparse_quadratic(self, form: Form) -> Array:
        """Return x_i'Zx_i for listed entries, one by one where they are scattered."""
        d = self.n_features
        in_rows, in_cols = np.zeros((2, d), dtype=np.bool_)
        in_rows[form.rows] = True
        in_cols[form.cols] = True
        rows, cols = np.flatnonzero(in_rows), np.flatnonzero(in_cols)
        few, many = (form.rows, form.cols) if rows.size <= cols.size else (form.cols, form.rows)
        if rows.size > cols.size:
            rows, cols = cols, rows
        if _PER_ENTRY * form.values.size < rows.size * cols.size:
            result = np.empty(self.n_samples)
            for part in self._chunks(form.values.size):
                x = self.array[part]
                products = np.take(x, form.rows, axis=1)
                products *= np.take(x, form.cols, axis=1)
                result[part] = products @ form.values
            return result
        # Gathering columns costs more than multiplying by some zeros.
        whole = 4 * cols.size > d
        block = np.zeros((d if whole else cols.size, rows.size))
        place = many if whole else np.searchsorted(cols, many)
        np.add.at(block, (place, np.searchsorted(rows, few)), form.values)
        left = self.array if whole else np.take(self.array, cols, axis=1)
        right = self.array if rows.size == d else np.take(self.array, rows, axis=1)
        return np.asarray(np.einsum("ij,ij->i", left @ block, right))

    def project(self, vectors: Array) -> Array:
        """Return X V."""
        if vectors.ndim == 1 or not 0 < vectors.shape[1] <= _FEW:
            along = np.asarray(self.array @ vectors)
        else:
            parts = np.ascontiguousarray(vectors.T)
            along = np.column_stack([self.array @ part for part in parts])
        along[self.zeroed] = 0.0
        return along

    def columns(self, indices: Indices) -> DenseSamples:
        """Return the same rows on the named columns, gathered."""
        # Three times as quick as indexing, whose result is in Fortran order.
        array = np.take(self.array, indices, axis=1)
        array[self.zeroed] = 0.0
        return DenseSamples(array, self.memory_budget)

    def without(self, rows: Indices) -> DenseSamples:
        """Return the same with zeros in some rows, of which there is a copy only if they are huge.

        Elsewhere their weights make them zeros in every sum.
        """
        rows = np.union1d(self.zeroed, rows)
        if np.abs(self.array[rows]).max(initial=0.0) < _POWERS_BELOW:
            return DenseSamples(self.array, zeroed=rows)
        array = self.array.copy()
        array[rows] = 0.0
        return DenseSamples(array)

    def variances(self, weights: Array) -> Array:
        """Return the weighted variance of each column."""
        mean = self.mean(weights)
        total = np.zeros(self.n_features)
        for rows in self._chunks():
            part = self.array[rows] - mean
            total += weights[rows] @ np.square(part, out=part)
        return total

    def typical_kurtosis(self, weights: Array) -> float:
        """Return the median over columns of the weighted kurtosis; 3 for Gaussian features.

        Read off some 128 evenly spaced columns: the median of so many errs by a tenth of what the
        kurtosis of one column does.
        """
        part = np.ascontiguousarray(some_columns(self.array))
        mean = weights @ part
        sums = np.zeros((2, mean.size))
        for rows in self._chunks(mean.size):
            squares = np.square(part[rows] - mean)
            sums[0] += weights[rows] @ squares
            sums[1] += weights[rows] @ np.square(squares, out=squares)
        return median_kurtosis(*sums)

    def squared_distances(self, centre: Array, near: tuple[float, Array] | None = None) -> Array:
        """Return |x_i - centre|^2 for every row."""
        del near
        result = np.empty(self.n_samples)
        with np.errstate(over="ignore"):
            for rows in self._chunks():
                part = self.array[rows] - centre
                np.einsum("ij,ij->i", part, part, out=result[rows])
        result[self.zeroed] = centre @ centre
        return result

    def rescaled(self, factor: Array) -> DenseSamples:
        """Return the same rows with every column divided by its factor; what is known stays so."""
        known, rounded = self._known.divided(factor), self._rounded.divided(factor)
        return DenseSamples(self.array / factor, self.memory_budget, self.zeroed, known, rounded)


def _rounded_rows(second: NDArray[np.floating], mean: Array | None) -> Iterator[Block]:
    """Yield M - mu mu' by rows, few enough for what is subtracted to stay in cache."""
    short = None if mean is None else mean.astype(second.dtype)
    for start in range(0, second.shape[0], _ROUNDED_ROWS):
        rows = slice(start, start + _ROUNDED_ROWS)
        block = second[rows].copy()
        if short is not None:
            block -= short[rows, None] * short
        yield start, 0, block


def _tiles(root: NDArray[np.floating]) -> Iterator[Block]:
    """Yield Y'Y in square tiles on and above the diagonal."""
    d = root.shape[1]
    for start in range(0, d, _TILE):
        # A copy in order: it is multiplied with every strip to the right of it.
        left = np.array(root[:, start : start + _TILE].T, order="C")
        # NumPy knows a product of an array with its own transpose: half the multiplications.
        yield start, start, left @ left.T
        for column in range(start + _TILE, d, _TILE):
            yield start, column, left @ root[:, column : column + _TILE]


def some_columns(array: NDArray[_T]) -> NDArray[_T]:
    """Return some 128 evenly spaced columns, or entries, to read a typical kurtosis off."""
    return array[..., :: max(1, array.shape[-1] // 128)]


def median_kurtosis(second: Array, fourth: Array) -> float:
    """Return the median kurtosis, given central moments; 3 where nothing varies."""
    square = second**2
    varying = square > 0
    return float(np.median(fourth[varying] / square[varying])) if varying.any() else 3.0


def values_of(samples: Samples) -> Array:
    """Return samples of few columns as an array, which is not to be written to."""
    if isinstance(samples, DenseSamples):
        every = np.arange(samples.n_features)
        return samples.columns(every).array if samples.zeroed.size else samples.array
    return samples.project(np.eye(samples.n_features))


def in_memory(samples: Samples) -> DenseSamples:
    """Return samples of few rows and many columns in memory, or say that they do not fit."""
    held = samples.at_hand()
    if isinstance(held, DenseSamples):
        return held
    raise ValueError(
        f"X: {samples.n_samples} rows of {samples.n_features} columns do not fit the memory that "
        "may be gathered, as fewer rows than columns must; raise outweigh.gathered-bytes in the "
        "configuration of Dask, or drop columns"
    )


def in_span(samples: DenseSamples, sample_weight: Array) -> tuple[DenseSamples, Array]:
    """Return the rows in an orthonormal basis of their span, and that basis.

    Exact: second moments in these coordinates have the same nonzero eigenvalues. Costs the n x n
    Gram matrix and no d x d array.

    Parameters
    ----------
    samples : DenseSamples
    sample_weight : ndarray of shape (n,)
        Where it is 0 the row does not count for the span.

    Returns
    -------
    coordinates : DenseSamples
        n rows of as many columns as the rank.
    basis : ndarray of shape (d, rank)

    Examples
    --------
    >>> import numpy as np
    >>> coordinates, basis = in_span(DenseSamples(np.array([[3.0, 0.0, 4.0]])), np.ones(1))
    >>> abs(coordinates.array), basis.shape
    (array([[5.]]), (3, 1))
    """
    rows = values_of(samples)[sample_weight > 0]
    gram = rows @ rows.T
    values, vectors = scipy.linalg.eigh(gram)
    tiny = np.finfo(float).tiny
    kept = values > _RANK_RTOL * max(float(values[-1]), tiny)
    # Where all rows are zero, one axis stands for all.
    kept[-1] = True
    values, vectors = np.maximum(values[kept][::-1], tiny), vectors[:, kept][:, ::-1]
    # Orthonormal up to the squared condition number; one QR step makes it exact.
    basis = np.linalg.qr(rows.T @ (vectors / np.sqrt(values)))[0]
    return DenseSamples(samples.project(basis)), basis


def column_energy(samples: DenseSamples, weights: Array) -> Array:
    """Return sum_l (S_w)_jl^2 for every column j, through the n x n Gram matrix."""
    root = np.sqrt(weights)[:, None] * (samples.array - samples.mean(weights))
    gram = root @ root.T
    return np.asarray(np.einsum("ij,ij->j", root, gram @ root))
