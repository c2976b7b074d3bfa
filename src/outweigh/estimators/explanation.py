"""Why rows were distrusted: the features that pushed each of them out, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices

__all__ = ["Explanation", "explain_rows", "joined"]

_SHOWN_ROWS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """The reasons against some rows, the least trusted row first.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Positions of the rows in the X that was explained.
    features : ndarray of int, shape (m, top)
        The features that count most against each row, the weightiest first.
    shares : ndarray of shape (m, top)
        Their shares of the reasons shown; each row sums to one.
    covered : ndarray of shape (m,)
        The part of all reasons, over all features, that the features shown carry.
    deviations : ndarray of shape (m, top)
        How far the row lies from the estimated centre in each of these features, in units of the
        feature's noise.
    scores : ndarray of shape (m,)
        The score of each row.
    labels : ndarray of shape (m,)
        Names of the rows: the index of a DataFrame, or `rows` again.
    feature_names : ndarray of shape (n_features,)
        Names of all features.

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh import RobustMean
    >>> X = np.random.default_rng(0).standard_normal((500, 4))
    >>> X[:20, 2] += 30.0
    >>> explanation = RobustMean().fit(X).explain(X, top=2)
    >>> len(explanation), set(explanation.features[:, 0].tolist())
    (20, {2})
    >>> bool(np.all(explanation.shares[:, 0] > 0.95))
    True
    """

    rows: Indices
    features: Indices
    shares: Array
    covered: Array
    deviations: Array
    scores: Array
    labels: NDArray[np.object_]
    feature_names: NDArray[np.object_]

    def __len__(self) -> int:
        return int(self.rows.size)

    def reasons(self, position: int, limit: int = 3) -> str:
        """Return the reasons against one row in words.

        Parameters
        ----------
        position : int
            Which of `rows`.
        limit : int, default=3
            The largest number of features to name.
        """
        named = [
            f"{self.feature_names[feature]} ({share:.0%}, {as_deviation(deviation)})"
            for feature, share, deviation in zip(
                self.features[position, :limit],
                self.shares[position, :limit],
                self.deviations[position, :limit],
                strict=True,
            )
            if share > 0
        ]
        return ", ".join(named)

    def __str__(self) -> str:
        if not len(self):
            return "no row is distrusted"
        lines = [f"{len(self)} rows are distrusted:" if len(self) > 1 else "1 row is distrusted:"]
        for position in range(min(len(self), _SHOWN_ROWS)):
            lines.append(f"  {self.labels[position]}: {self.reasons(position)}")
        if len(self) > _SHOWN_ROWS:
            lines.append(f"  and {len(self) - _SHOWN_ROWS} more")
        return "\n".join(lines)


def as_deviation(deviation: float) -> str:
    """Write a deviation in units of the noise for a person.

    Examples
    --------
    >>> as_deviation(3.24), as_deviation(-1e7)
    ('+3.2 sd', '-1e+07 sd')
    """
    return f"{deviation:+.1f} sd" if abs(deviation) < 1e4 else f"{deviation:+.0e} sd"


def explain_rows(
    rows: Indices,
    scores: Array,
    contributions: Array,
    deviations: Array,
    columns: Indices,
    top: int,
    labels: NDArray[np.object_],
    feature_names: NDArray[np.object_],
) -> Explanation:
    """Keep the weightiest features of each row.

    Parameters
    ----------
    rows : ndarray of int, shape (m,)
    scores : ndarray of shape (m,)
    contributions, deviations : ndarray of shape (m, len(columns))
        How much each column counts against each row, nonnegative, and how far out it is.
    columns : ndarray of int
        The features that the columns are.
    top : int
    labels, feature_names
        As in `Explanation`.
    """
    order = np.argsort(scores, kind="stable")
    contributions, deviations = contributions[order], deviations[order]
    # Equal contributions in the order of the features, whatever the sort does with ties.
    ranked = np.argsort(-contributions, axis=1, kind="stable")[:, :top]
    chosen = np.take_along_axis(contributions, ranked, axis=1)
    shown = chosen.sum(axis=1)
    return Explanation(
        rows=rows[order],
        features=columns[ranked],
        shares=chosen / shown[:, None],
        covered=shown / contributions.sum(axis=1),
        deviations=np.take_along_axis(deviations, ranked, axis=1),
        scores=scores[order],
        labels=labels[order],
        feature_names=feature_names,
    )


def joined(parts: Sequence[Explanation]) -> Explanation:
    """Return explanations of consecutive rows as one, the least trusted row first."""
    if len(parts) == 1:
        return parts[0]
    scores = np.concatenate([part.scores for part in parts])
    order = np.argsort(scores, kind="stable")

    def all_of(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])[order]

    return Explanation(
        rows=all_of("rows"),
        features=all_of("features"),
        shares=all_of("shares"),
        covered=all_of("covered"),
        deviations=all_of("deviations"),
        scores=scores[order],
        labels=all_of("labels"),
        feature_names=parts[0].feature_names,
    )
