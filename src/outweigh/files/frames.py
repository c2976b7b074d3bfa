"""What a fit says, as DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outweigh.files.table import is_number
from outweigh.libraries import library
from outweigh.protocols import Array

if TYPE_CHECKING:
    from outweigh.estimators.explanation import Explanation

# What a cell of a spreadsheet begins with that is not text or a number.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def explanation_frame(explanation: Explanation) -> Any:
    """Return an explanation as a pandas DataFrame, one line for each row and feature.

    Parameters
    ----------
    explanation : Explanation

    Returns
    -------
    pandas.DataFrame
        Columns row, label, score, feature, share, deviation.
    """
    top = explanation.features.shape[1]
    return _pandas().DataFrame(
        {
            "row": np.repeat(explanation.rows, top),
            "label": np.repeat(explanation.labels, top),
            "score": np.repeat(explanation.scores, top),
            "feature": explanation.feature_names[explanation.features.ravel()],
            "share": explanation.shares.ravel(),
            "deviation": explanation.deviations.ravel(),
        }
    )


def named_frame(values: Array, names: Sequence[str], labels: Sequence[str] | None = None) -> Any:
    """Return numbers as a pandas DataFrame with names for columns and, if given, rows."""
    return _pandas().DataFrame(
        values, columns=list(names), index=None if labels is None else list(labels), copy=False
    )


def inert(text: str) -> str:
    """Return text that no spreadsheet runs as a formula; numbers stay as they are.

    Examples
    --------
    >>> [inert(text) for text in ("=1+1", "-2.5", "height")]
    ["'=1+1", '-2.5', 'height']
    """
    return f"'{text}" if text.startswith(_FORMULA) and not is_number(text) else text


def rows_csv(labels: Sequence[str], name: str | None, found: Explanation, **numbers: Array) -> str:
    """Return what is known of each row as CSV, in which all text is `inert`.

    Parameters
    ----------
    labels : sequence of str
        The names of the rows.
    name : str or None
        The name of the column that they stand in; row by default.
    found : Explanation
        The reasons against the rows that are distrusted.
    **numbers : ndarray of shape (n,)
        Further columns, such as weight and score.
    """
    reasons = {int(row): found.reasons(i) for i, row in enumerate(found.rows)}
    columns = {
        inert(name or "row"): [inert(label) for label in labels],
        **numbers,
        "distrusted": [i in reasons for i in range(len(labels))],
        "reasons": [inert(reasons.get(i, "")) for i in range(len(labels))],
    }
    return str(_pandas().DataFrame(columns).to_csv(index=False))


def _pandas() -> Any:
    return library("pandas", "a DataFrame needs")
