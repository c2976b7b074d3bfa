"""What a fit says, as DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outweigh.io.needs import pandas_for
from outweigh.protocols import Array

if TYPE_CHECKING:
    from outweigh.estimators.explanation import Explanation

__all__ = ["explanation_frame", "named_frame", "weights_frame"]


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
    return pandas_for("a DataFrame").DataFrame(
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
    return pandas_for("a DataFrame").DataFrame(
        values, columns=list(names), index=None if labels is None else list(labels), copy=False
    )


def weights_frame(
    labels: Sequence[str],
    weights: Array,
    scores: Array,
    flagged: NDArray[np.bool_],
    name: str = "row",
) -> Any:
    """Return what a fit says of each row as a pandas DataFrame."""
    return pandas_for("a DataFrame").DataFrame(
        {name: labels, "weight": weights, "score": scores, "distrusted": flagged}
    )
