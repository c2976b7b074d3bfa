"""``outweigh fit auto``: which estimator a table asks for, and why."""

from __future__ import annotations

import numpy as np

from outweigh.files.table import Table

# A sparse mean pays where there are many columns, and fewer rows than these for each of them.
_MANY_COLUMNS, _ROWS_PER_COLUMN = 50, 10
# The largest share of columns that stand out from zero in a mean that is called sparse.
_SPARSE = 0.1


def choose(table: Table) -> tuple[str, str]:
    """Return "mean" or "sparse-mean", and the reason in words.

    Components are never chosen: whether a mean or what varies about it is wanted, no table tells.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((100, 200))
    >>> X[:, :5] += 2.0
    >>> names = [f"x{j}" for j in range(200)]
    >>> choose(Table(X, names, [str(i) for i in range(100)], None, [], 0, "X"))[0]
    'sparse-mean'
    """
    n, d = table.values.shape
    if table.lazy:
        return "mean", "rows that are read in parts are not looked at first"
    if d < _MANY_COLUMNS or n >= _ROWS_PER_COLUMN * d:
        return "mean", f"{n:,} rows are enough for {d:,} columns"
    # Columns whose median is not zero, beyond what chance would do in any.
    median = np.nanmedian(table.values, axis=0)
    spread = 1.4826 * np.nanmedian(np.abs(table.values - median), axis=0)
    # 1.2533: a median of normal rows varies by so much more than a mean.
    chance = 1.2533 * spread * np.sqrt(2.0 * np.log(d) / n)
    away = int(np.count_nonzero(np.abs(median) > chance))
    if 0 < away <= _SPARSE * d:
        return (
            "sparse-mean",
            f"{n:,} rows are few for {d:,} columns, and only {away:,} of them stand out from zero",
        )
    how = "none stands" if away == 0 else f"{away:,} of {d:,} columns stand"
    return "mean", (
        f"its entries are not sparse about zero: {how} out; of spectra and the like `outweigh fit "
        "pca` may find more"
    )
