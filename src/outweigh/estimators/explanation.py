"""Why rows were distrusted: the features that pushed each of them out, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outweigh.fit.distances import DistanceScore
from outweigh.fit.score import EllipticalScore, RowScore
from outweigh.protocols import Array, Indices
from outweigh.samples import Rows

_SHOWN_ROWS = 10

# Of distrusted rows whose reasons are found at once, with several temporaries of their size: more
# where each look at rows reads chunks anew.
_BYTES, _BYTES_OF_CHUNKS = 4 * 2**20, 64 * 2**20

NEGLIGIBLE = 0.005
"""Smaller shares of the reasons are not told to a person."""


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
    foretold : ndarray of shape (m, top)
        The value of each of these features that the other features of the row foretell, in the
        units of X. A feature that alone is to blame for the row foretells nothing. NaN where the
        noise is uncorrelated, or no feature foretells it.
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
    foretold: Array
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
        named = []
        for name, share, deviation, foretold in self.features_of(position)[:limit]:
            if share >= NEGLIGIBLE:
                said = f"{share:.0%}, {as_deviation(deviation)}"
                if np.isfinite(foretold):
                    said += f", by the others {foretold:.4g}"
                named.append(f"{name} ({said})")
        return ", ".join(named)

    def features_of(self, position: int) -> list[tuple[str, float, float, float]]:
        """Return name, share, deviation and what is foretold of each feature against one row.

        Parameters
        ----------
        position : int
            Which of `rows`.
        """
        names = [str(name) for name in self.feature_names[self.features[position]]]
        numbers = self.shares[position], self.deviations[position], self.foretold[position]
        return list(zip(names, *(part.tolist() for part in numbers), strict=True))

    def __str__(self) -> str:
        if not len(self):
            return "no row is distrusted"
        lines = [f"{len(self)} rows are distrusted:" if len(self) > 1 else "1 row is distrusted:"]
        for position in range(min(len(self), _SHOWN_ROWS)):
            lines.append(f"  {self.labels[position]}: {self.reasons(position)}")
        if len(self) > _SHOWN_ROWS:
            lines.append(f"  and {len(self) - _SHOWN_ROWS} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return a table for a notebook, the least trusted rows first."""
        lines = str(self).splitlines()
        rows = "".join(
            f"<tr><td>{escape(str(self.labels[i]))}</td><td>{self.scores[i]:.3g}</td>"
            f'<td style="text-align:left">{escape(self.reasons(i))}</td></tr>'
            for i in range(min(len(self), _SHOWN_ROWS))
        )
        more = f"<p>{lines[-1].strip()}</p>" if len(self) > _SHOWN_ROWS else ""
        head = "<tr><th>row</th><th>score</th><th>reasons</th></tr>"
        table = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>" if rows else ""
        return f"<p>{escape(lines[0])}</p>{table}{more}"


def as_deviation(deviation: float) -> str:
    """Write a deviation in units of the noise for a person.

    Examples
    --------
    >>> as_deviation(3.24), as_deviation(-1e7)
    ('+3.2 sd', '-1e+07 sd')
    """
    return f"{deviation:+.1f} sd" if abs(deviation) < 1e4 else f"{deviation:+.0e} sd"


def explain_rows(
    score: RowScore | DistanceScore | EllipticalScore,
    offset: float,
    rows: Rows,
    top: int,
    labels: NDArray[Any],
    feature_names: NDArray[np.object_],
) -> Explanation:
    """Return the reasons against the rows whose score is below the offset, the lowest first.

    Parameters
    ----------
    score : callable
        Of rows; it knows what each feature contributes.
    offset : float
    rows : Rows
    top : int
        How many features to name for each row.
    labels : ndarray of shape (n,)
        Names of all rows.
    feature_names
        As in `Explanation`.
    """
    scores = rows.map(score)
    flagged = np.flatnonzero(scores < offset)
    # The distrusted rows may be many: their values are looked at a part at a time.
    held = _BYTES if rows.n_passes is None else _BYTES_OF_CHUNKS
    size = max(1, held // (8 * rows.shape[1]))
    parts = [
        _weightiest(score, rows.take(flagged[start : start + size]), top)
        for start in range(0, max(flagged.size, 1), size)
    ]
    order = np.argsort(scores[flagged], kind="stable")
    features, counted, deviations, foretold, total = (
        np.concatenate(part)[order] for part in zip(*parts, strict=True)
    )
    flagged, shown = flagged[order], counted.sum(axis=1)
    return Explanation(
        rows=flagged,
        features=features,
        shares=counted / shown[:, None],
        covered=shown / total,
        deviations=deviations,
        foretold=foretold,
        scores=scores[flagged],
        labels=labels[flagged].astype(object),
        feature_names=feature_names,
    )


def _weightiest(
    score: RowScore | DistanceScore | EllipticalScore, rows: Array, top: int
) -> tuple[NDArray[Any], ...]:
    """Return the features that count most against each of some rows, and numbers about them.

    These are how much each counts, its deviation, what the other features foretell of it (NaN where
    nothing does), and how much all features of the row together count against it.
    """
    counted, away = score.contributions(rows)
    foretold = np.full(away.shape, np.nan)
    if not isinstance(score, RowScore):
        foretold = score.foretold(rows)
    # Equal contributions in the order of the features, whatever the sort does with ties.
    ranked = np.argsort(-counted, axis=1, kind="stable")[:, :top]
    shown = (np.take_along_axis(values, ranked, axis=1) for values in (counted, away, foretold))
    return score.standardizer.columns[ranked], *shown, counted.sum(axis=1)
