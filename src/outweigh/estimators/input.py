"""From what a user passes as X to checked rows: arrays, DataFrames, sparse, on disk, Dask.

Of more rows than weights are searched on, also a random sample, and what it teaches of the rest.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import _check_sample_weight, validate_data

from outweigh.fit.columns import weighted_quantile
from outweigh.protocols import Array, Indices
from outweigh.samples import ArrayRows, Rows, SparseRows
from outweigh.samples.chunked_rows import chunked_rows
from outweigh.samples.rows import is_dask, is_on_disk

# Whole numbers beyond it have no neighbours that are not whole: they are no counts.
_MOST_COPIES = 2.0**52
# To NumPy some of these are numbers, of a size that depends on the unit of time.
_TIMES = (date, timedelta, np.datetime64, np.timedelta64)

_DEVIATIONS = 4.0

logger = logging.getLogger("outweigh")


def open_rows(estimator: BaseEstimator, X: Any, *, reset: bool = False) -> Rows:
    """Return the rows of X, checked; those in chunks are checked when they are first read.

    Missing values are the medians of the fit, where the estimator was fitted with `missing`; for a
    fit they stay NaN.

    Parameters
    ----------
    estimator : BaseEstimator
        Fitted: the columns must be those of the fit.
    X : array-like, numpy.memmap, dask.array.Array or dask.dataframe.DataFrame
        Also a matrix or array of scipy.sparse, where the tags of the estimator say so.
    reset : bool, default=False
        As in scikit-learn's ``validate_data``: for a fit, which needs two rows, and sets
        ``n_features_in_`` and ``feature_names_in_``.
    """
    least, in_chunks = 2 if reset else 1, is_dask(X) or is_on_disk(X)
    tags = get_tags(estimator).input_tags
    if reset and tags.allow_nan and (in_chunks or sp.issparse(X)):
        raise ValueError(
            "missing: must be None for sparse rows, data on disk and of Dask; fill them in before"
        )
    if in_chunks:
        chunked = chunked_rows(X)
        validate_data(estimator, _stand_in(X), skip_check_array=True, reset=reset)
        if chunked.shape[0] < least:
            raise ValueError(
                f"Found array with {chunked.shape[0]} sample(s) (shape={chunked.shape}) while a "
                f"minimum of {least} is required."
            )
        return chunked
    how: dict[str, Any] = {"dtype": np.float64, "ensure_min_samples": least, "reset": reset}
    if tags.sparse:
        if sp.issparse(X):
            _refuse_sparse_oddities(X)
        how["accept_sparse"] = "csr"
    rows = _validated(estimator, X, **how)
    return SparseRows.of(rows) if sp.issparse(rows) else ArrayRows(rows)


def sample_weights(sample_weight: ArrayLike | None, n_samples: int) -> Array:
    r"""Return nonnegative sample weights that count rows; ones by default.

    Whole numbers are copies of rows and stay as they are. Other weights are relative, as in surveys
    and importance sampling: they are brought to the sum :math:`(\sum s)^2 / \sum s^2`, the number
    of equally weighted rows whose mean is as good (Kish, "Survey Sampling", 1965). Those of Dask
    are gathered: eight bytes a row.
    """
    if is_dask(sample_weight):
        sample_weight = np.asarray(sample_weight)
    check_numbers(sample_weight, "sample_weight")
    weights = np.asarray(
        _check_sample_weight(
            sample_weight, np.empty((n_samples, 0)), dtype=np.float64, ensure_non_negative=True
        )
    )
    largest = float(weights.max(initial=0.0))
    if largest == 0.0 or (largest < _MOST_COPIES and np.all(weights == np.round(weights))):
        return weights
    # Divided by the largest first: squares of huge or tiny weights are out of range.
    weights = weights / largest
    # What has no square beside the largest counts for nothing.
    weights[np.square(weights) == 0.0] = 0.0
    # In the order of their sizes: so no digit depends on the order of the rows.
    ranked = np.sort(weights)
    return np.asarray(weights * (ranked.sum() / (ranked @ ranked)))


def allowance(contamination: float, weight: Array) -> float:
    """Return how much more than a share of all rows may well be the share in a sample of them.

    Where a given share of all rows may be wrong, that of the sample exceeds it half of the
    time, and rows far out that could not be removed would be the end of the estimate. Four
    standard deviations, which sampling without replacement makes somewhat smaller yet.

    Parameters
    ----------
    contamination : float
    weight : ndarray of shape (m,)
        Sample weights of the rows of the sample, all positive.
    """
    n_effective = float(weight.sum() ** 2 / (weight @ weight))
    deviation = np.sqrt(contamination * (1.0 - contamination) / n_effective)
    return float(min(_DEVIATIONS * deviation, (0.5 - contamination) / 2.0))


def trusted(
    rows: NDArray[np.floating], score: Callable[[NDArray[np.float64]], Array], offset: float
) -> NDArray[np.bool_]:
    """Return whether the score of each row is not below the offset; it is sent to workers."""
    return np.asarray(score(np.asarray(rows, dtype=np.float64)) >= offset)


def subsample_of(
    rows: Rows,
    sample_weight: Array | None,
    size: int,
    random_state: int | np.random.RandomState | None,
) -> tuple[Indices, Rows, Array]:
    """Return `size` of the rows of positive weight, of which there are more.

    That is their places among all rows, increasing, the rows, and their sample weights.

    Parameters
    ----------
    rows : Rows
    sample_weight : ndarray of shape (n,), optional
        Nonnegative; one each by default.
    size : int
    random_state : int, RandomState or None
        None means 0, so that the default is reproducible.
    """
    counted = None if sample_weight is None else np.flatnonzero(sample_weight)
    n_counted = rows.shape[0] if counted is None else int(counted.size)
    logger.info(
        "X: weights are searched on a random sample of %d of %d rows (subsample)", size, n_counted
    )
    generator = check_random_state(0 if random_state is None else random_state)
    drawn = sample_without_replacement(n_counted, size, random_state=generator)
    indices = np.sort(drawn).astype(np.intp, copy=False)
    indices = indices if counted is None else counted[indices]
    weight = None if sample_weight is None else sample_weight[indices]
    # Relative weights count as rows by their own sizes: those of a sample may all be small.
    return indices, rows.part(indices), sample_weights(weight, size)


def each_row(
    estimator: BaseEstimator,
    X: Any,
    function: Callable[[NDArray[Any]], NDArray[Any]],
    *,
    dtypes: Any = np.float64,
    n_columns: int | None = None,
) -> NDArray[Any]:
    """Return a function of every row: an array, or lazily a dask array for data of Dask.

    Parameters
    ----------
    estimator : BaseEstimator
        Fitted.
    X : as for `open_rows`
    function : callable
        From checked rows to one answer a row; it is sent to workers, so it must be small.
    dtypes : numpy dtype or list of them
        As ``dtype`` in scikit-learn's ``check_array``.
    n_columns : int, optional
        The number of answers a row, if not one.
    """
    if is_dask(X):
        validate_data(estimator, _stand_in(X), reset=False, skip_check_array=True)
        from outweigh.samples.dask_chunks import map_rows

        mapped: NDArray[Any] = map_rows(X, function, n_columns)
        return mapped
    if is_on_disk(X) or get_tags(estimator).input_tags.sparse:
        return open_rows(estimator, X).map(function)
    return function(_validated(estimator, X, reset=False, dtype=dtypes))


def each_block(
    estimator: BaseEstimator,
    X: Any,
    function: Callable[[NDArray[Any]], NDArray[Any]],
    n_columns: int,
) -> Any:
    """Return a function of every block of rows, one row of answers a block; lazily for Dask."""
    if is_dask(X):
        validate_data(estimator, _stand_in(X), reset=False, skip_check_array=True)
        from outweigh.samples.dask_chunks import map_blocks

        return map_blocks(X, function, n_columns)
    return open_rows(estimator, X).map(function)


def column_medians(X: Array, sample_weight: Array, names: Sequence[object]) -> Array:
    """Return the median of what is known of each column.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        NaN where a value is missing.
    sample_weight : ndarray of shape (n,)
        A whole number counts as that many copies of the row; a row of weight 0 does not count.
    names : sequence of length d
        What the columns are called in an error.

    Raises
    ------
    ValueError
        If a column holds no value at all.

    Examples
    --------
    >>> import numpy as np
    >>> column_medians(np.array([[1.0], [np.nan], [4.0], [2.0], [9.0]]), np.ones(5), ["mass"])
    array([3.])
    """
    medians = np.empty(X.shape[1])
    for j, column in enumerate(X.T):
        known = ~np.isnan(column) & (sample_weight > 0)
        if not known.any():
            raise ValueError(f"X: column {names[j]!r} holds no value at all; leave it out")
        values, weight = column[known], sample_weight[known]
        low, high = (weighted_quantile(side, weight, [0.5])[0] for side in (values, -values))
        # Between the two in the middle, each halved first: their difference may overflow.
        medians[j] = low / 2.0 - high / 2.0
    return medians


def filled(X: NDArray[Any], medians: Array | None) -> NDArray[Any]:
    """Return rows with the medians where values are missing; without medians, as they are."""
    if medians is None or not np.isnan(X).any():
        return X
    return np.where(np.isnan(X), medians.astype(X.dtype), X)


def _stand_in(X: Any) -> Any:
    """Return two rows with the columns of data in chunks, for scikit-learn to check those."""
    if is_on_disk(X):
        return np.zeros((2, X.shape[1]))
    from outweigh.samples.dask_chunks import refuse_other_kinds

    refuse_other_kinds(X)
    if np.isnan(X.shape[1]):
        raise ValueError("X: its number of columns is unknown; call X.compute_chunk_sizes() first")
    return X._meta_nonempty if hasattr(X, "columns") else np.zeros((2, X.shape[1]))


def _validated(estimator: BaseEstimator, X: Any, **how: Any) -> Any:
    """Return X as scikit-learn checks it; of a DataFrame the column at fault is named."""
    medians = None if how["reset"] or sp.issparse(X) else getattr(estimator, "_medians", None)
    missing = get_tags(estimator).input_tags.allow_nan and (how["reset"] or medians is not None)
    if np.ma.is_masked(X) and X.dtype.kind in "biuf":
        X = X.astype(np.result_type(X, np.float32)).filled(np.nan)
    _refuse_masked(X, "X")
    if isinstance(X, list | tuple):
        X = np.asarray(X)
    if getattr(X, "dtype", np.dtype(float)).kind in "mMV":
        raise ValueError("X holds dates, time spans or records; turn them into numbers first")
    if hasattr(X, "head"):
        _refuse_frame(X)
    if hasattr(X, "head") or getattr(X, "dtype", None) == np.dtype(object):
        _refuse_times(X)
    if missing and hasattr(X, "isna"):
        # NA of pandas among objects is no number to NumPy.
        X = X.mask(X.isna(), np.nan)
    # Sparse rows are checked elsewhere, where the place of a bad value can be named.
    how["ensure_all_finite"] = False if sp.issparse(X) else "allow-nan" if missing else True
    try:
        # It looks for values that are not finite by a sum of all, which may overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            return filled(validate_data(estimator, X, **how), medians)
    except (ValueError, TypeError, OverflowError) as error:
        # What is neither number nor text in an array is not a cell of a table.
        if not (isinstance(error, TypeError) and isinstance(X, np.ndarray)):
            _refuse_cells(X, missing)
        raise


def _refuse_frame(X: Any) -> None:
    """Refuse a DataFrame that has not been computed, has no columns, or two of one name."""
    if hasattr(X, "collect"):
        raise TypeError("X: a lazy frame has no rows yet; pass X.collect()")
    names = list(getattr(X, "columns", [None]))
    if not names:
        raise ValueError("X: has no columns; at least one is needed")
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ValueError(f"X: more than one column is called {name!r}; rename them")


def _refuse_times(X: Any) -> None:
    """Refuse dates and time spans by their column."""
    for name, column in _columns(X):
        # Where cells are of one type, one tells.
        cells = np.asarray(column if column.dtype == object else column[:1])
        if cells.dtype.kind in "mM":
            raise _unusable(name, "dates or time spans")
        for row, cell in enumerate(cells.tolist()):
            if isinstance(cell, _TIMES):
                raise _unusable(name, f"{cell!r} in row {row}")


def _refuse_cells(X: Any, missing: bool) -> None:
    """Refuse cells that are no numbers by their column; they may be `missing`, or not."""
    for name, column in _columns(X):
        for row, cell in enumerate(np.asarray(column).tolist()):
            if _is_number(cell) or (missing and _is_missing(cell)):
                continue
            if _is_missing(cell):
                raise ValueError(
                    "X contains NaN or masked values, which are missing values: column "
                    f'{name!r} holds {cell!r} in row {row}; fit with missing="drop" to leave out '
                    'such rows, or with missing="median" to put the median of the column in their '
                    "place"
                )
            raise _unusable(name, f"{cell!r} in row {row}")


def _unusable(name: object, held: str) -> ValueError:
    return ValueError(
        f"X: column {name!r} holds {held}; only finite numbers can be used: leave out the column "
        "or such rows, or replace what it holds"
    )


def _columns(X: Any) -> Iterable[tuple[object, Any]]:
    """Return the columns of a pandas or polars DataFrame with their names.

    Of an array by number: of floats those that have NaN, of objects and text all. None of other
    data.
    """
    if hasattr(X, "iter_columns"):
        return zip(X.columns, X.iter_columns(), strict=True)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OSU":
        return enumerate(X.T)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f":
        return [(int(j), X[:, j]) for j in np.flatnonzero(np.isnan(X).any(axis=0))]
    return X.items() if hasattr(X, "iloc") and hasattr(X, "columns") else ()


def _is_missing(cell: Any) -> bool:
    """Tell NaN, None and the NA of pandas, which is not imported for it, from other cells."""
    if cell is None or type(cell).__name__ == "NAType":
        return True
    return isinstance(cell, float | np.floating) and bool(np.isnan(cell))


def _is_number(cell: Any) -> bool:
    """Tell finite numbers, also as text, from other cells."""
    try:
        return math.isfinite(float(cell))
    except (ValueError, TypeError, OverflowError):
        return False


def check_numbers(values: Any, name: str) -> None:
    """Refuse a parameter with masked entries, dates, text or complex numbers."""
    _refuse_masked(values, name)
    if np.asarray(values).dtype.kind not in "biufO":
        raise ValueError(f"{name} must hold numbers; got dates, text or complex numbers")


def _refuse_masked(values: Any, name: str) -> None:
    """Refuse arrays, and lists of them, with masked entries: what is below a mask is not data."""
    each = values if isinstance(values, list | tuple) else [values]
    if any(map(np.ma.is_masked, each)):
        raise ValueError(f"{name} holds masked values, which are missing values; fill them in")


def _refuse_sparse_oddities(X: Any) -> None:
    """Refuse sparse data that scikit-learn would convert at will, or not understand."""
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array: X must have rows and columns; its shape is {X.shape}")
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: the dtype of X is {X.dtype}")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers; its dtype is {X.dtype}: convert it first")
