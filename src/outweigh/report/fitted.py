"""What there is to tell about a fit, gathered once for the terminal, for files and for a page."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from outweigh.displays.estimates import telling_entries
from outweigh.estimators.base import RobustEstimator
from outweigh.estimators.explanation import Explanation
from outweigh.files.frames import named_frame
from outweigh.fit.certificate import Certificate
from outweigh.protocols import Array, Indices

logger = logging.getLogger("outweigh")

_REASONS = 5

# Columns among which advice looks for a pair, and the ratio of tails from which one is skewed.
_COMPARED, _SKEWED = 1000, 2.0


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted estimator with its rows and their names.

    Attributes
    ----------
    estimator : estimator
        Fitted on `X`.
    X : ndarray of shape (n, d), or a Dask array
    labels : sequence of str
        A name for each row.
    names : sequence of str
        A name for each feature.
    source : str
        Where the rows come from.
    notes : sequence of str
        What happened on the way: columns left out, rows dropped, warnings.
    command : str
        How to do it again.
    """

    estimator: RobustEstimator
    X: Any
    labels: Sequence[str]
    names: Sequence[str]
    source: str = "data"
    notes: Sequence[str] = ()
    command: str = ""

    @property
    def title(self) -> str:
        """What was estimated."""
        name = type(self.estimator).__name__.replace("PCA", "PrincipalComponents")
        return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()

    @property
    def certificate(self) -> Certificate:
        """The certificate of the fit."""
        certificate: Certificate = self.estimator.certificate_
        return certificate

    @cached_property
    def explanation(self) -> Explanation:
        """The reasons against every distrusted row, under the names given here."""
        self._tell("the reasons against rows")
        found = self.estimator.explain(self.rows, top=_REASONS)
        labels = np.array([self.labels[i] for i in found.rows], dtype=object)
        return replace(found, labels=labels, feature_names=np.array(self.names, dtype=object))

    @cached_property
    def scores(self) -> Array:
        """The score of each row."""
        self._tell("the scores of the rows")
        return np.asarray(self.estimator.score_samples(self.rows))

    @cached_property
    def weights(self) -> Array:
        """The weight of each row."""
        weights = self.estimator.weights_
        if not isinstance(weights, np.ndarray):
            self._tell("the weights of the rows")
        return np.asarray(weights)

    @property
    def rows(self) -> Any:
        """The rows as the estimator saw them: with names if it was given names."""
        if not isinstance(self.X, np.ndarray) or not hasattr(self.estimator, "feature_names_in_"):
            return self.X
        return named_frame(self.X, self.names)

    @property
    def distrusted(self) -> NDArray[np.bool_]:
        """Whether `predict` flags each row."""
        flagged = np.zeros(len(self.labels), dtype=np.bool_)
        flagged[self.explanation.rows] = True
        return flagged

    @cached_property
    def plain_mean(self) -> Array:
        """The mean of all rows."""
        self._tell("the plain mean")
        return np.asarray(self.X.mean(axis=0, dtype=np.float64))

    def _tell(self, purpose: str) -> None:
        if not isinstance(self.X, np.ndarray):
            logger.info("after the fit: %s", purpose, extra={"a_pass": "begins"})

    @property
    def is_mean(self) -> bool:
        """Whether a mean was estimated, or components."""
        return hasattr(self.estimator, "location_")

    @property
    def estimate(self) -> dict[str, Array]:
        """The robust mean beside the plain one, or the components, by name."""
        est = self.estimator
        if self.is_mean:
            return {"robust mean": est.location_, "plain mean": self.plain_mean}
        return {f"component {j}": row for j, row in enumerate(est.components_, start=1)}

    @cached_property
    def rank_correlations(self) -> Array | None:
        """How strongly columns go together by rank, from 0 to 1, over the trusted rows.

        A column with itself counts 0. None for one column, or very many.
        """
        if not isinstance(self.X, np.ndarray) or not 2 <= self.X.shape[1] <= _COMPARED:
            return None
        with np.errstate(invalid="ignore", divide="ignore"):
            ranks = rankdata(self.X[~self.distrusted], axis=0)
            between = np.abs(np.nan_to_num(np.atleast_2d(np.corrcoef(ranks, rowvar=False))))
        np.fill_diagonal(between, 0.0)
        return between

    def largest_entries(self, count: int) -> Indices:
        """Return the features of the estimate to show.

        Of a sparse mean the nonzero entries, largest first; of a mean the entries that differ most
        from the plain mean; both in units of the noise. Of components the largest loadings.
        """
        est = self.estimator
        if not self.is_mean:
            size = np.abs(est.components_).max(axis=0)
            chosen = np.argsort(-size, kind="stable")[:count]
            return np.asarray(chosen[size[chosen] > 0], dtype=np.intp)
        robust, plain = est.location_ / est.scale_, self.plain_mean / est.scale_
        return telling_entries(robust, plain, sparse=hasattr(est, "support_"))[:count]

    @property
    def headline(self) -> str:
        """The verdict in one plain sentence."""
        n, n_rows = len(self.explanation), len(self.labels)
        counted = f"{n:,} of {n_rows:,} rows ({n / n_rows:.1%}) are distrusted"
        if self.certificate.noise == "other":
            return f"{counted}, by their distance from the bulk."
        if self.certificate.noise == "elliptical" and not self.certificate.clean:
            return f"Look before you trust it: {counted}."
        if not self.certificate.clean:
            return f"Use with care: {counted}, and what is left does not look like clean data."
        if n == 0:
            return f"No evidence against any of the {n_rows:,} rows."
        return f"{counted}; what is left looks like clean data."

    @property
    def advice(self) -> str:
        """What to do where the level of clean data was not reached."""
        found, steps, first = self.certificate, [], []
        maybe_white = found.doubtful > 0.0 and found.doubt == "white"
        white, trusted, bound = "--covariance none", "--trusted FILE", "--contamination"
        if not self.command:
            white, trusted, bound = "covariance=None", "covariance= fitted to them", "contamination"
        if len(self.explanation):
            first.append("look at the distrusted rows and their reasons")
        elif not maybe_white and found.noise == "elliptical":
            first.append("look whether the rows are of two kinds")
        if self._skewed:
            first.append(f"{self._skewed} are skewed, perhaps take logarithms of them")
        if found.spared > 0.0:
            steps.append(f"with a higher {bound}, if so many rows may be wrong")
        if maybe_white:
            steps.append(f"with {white}, if {self._columns} are uncorrelated in truth")
        if found.noise != "elliptical":
            rows = f"rows that you trust, if {self._columns} are correlated"
            if not self.is_mean:
                rows = "rows of noise alone such as blank measurements"
            steps.append(f"with {rows} ({trusted})")
            if self.estimator.contamination == "auto":
                steps.append(f"with {bound} 0.1, say, to see the tenth that is least like the rest")
            else:
                steps.append(f"with a higher {bound}, if more rows may be wrong")
        again = "fit again " + ", or ".join(steps)
        return "What to do: " + "; or ".join([*first, again] if steps else first) + "."

    @property
    def _columns(self) -> str:
        """The two columns that are most correlated over the trusted rows, in words."""
        between = self.rank_correlations
        if between is None:
            return "columns"
        one, other = divmod(int(between.argmax()), len(self.names))
        return f"columns such as {self.names[one]} and {self.names[other]}"

    @property
    def _skewed(self) -> str:
        """Columns, three at most, that are positive and skewed over the trusted rows, in words."""
        if not isinstance(self.X, np.ndarray) or self.X.shape[1] > _COMPARED:
            return ""
        trusted = self.X[~self.distrusted]
        lower, middle, upper = np.quantile(trusted, (0.1, 0.5, 0.9), axis=0)
        wide = (trusted.min(axis=0) > 0) & (upper > lower)
        # Of a normal law 1, of an exponential one 4 or so.
        ratio = np.where(wide, (upper - middle) / np.maximum(middle - lower, 1e-300), 0.0)
        worst = [j for j in np.argsort(-ratio, kind="stable")[:3] if ratio[j] > _SKEWED]
        return "" if not worst else "columns such as " + ", ".join(self.names[j] for j in worst)

    @property
    def parameters(self) -> Mapping[str, str]:
        """The parameters of the estimator, in words."""
        found = {}
        for name, value in sorted(self.estimator.get_params(deep=False).items()):
            shown = "given" if np.ndim(value) else repr(value)
            found[name] = shown if len(shown) <= 60 else type(value).__name__
        return found
