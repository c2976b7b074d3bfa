"""What the estimators share: parameters, validation, the fit template, the outlier interface."""

from __future__ import annotations

import logging
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from html import escape
from numbers import Integral
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from outweigh.estimators.explanation import Explanation, explain_rows
from outweigh.estimators.input import (
    allowance,
    check_numbers,
    column_medians,
    each_row,
    filled,
    open_rows,
    sample_weights,
    subsample_of,
    trusted,
)
from outweigh.estimators.parameters import MAY_BE, Parameters
from outweigh.fit.certificate import Certificate
from outweigh.fit.distances import DistanceScore
from outweigh.fit.noise import known_covariance
from outweigh.fit.result import Fit
from outweigh.fit.road import fit
from outweigh.fit.score import HALF_LOST, EllipticalScore, RowScore
from outweigh.fit.task import Settings, Task
from outweigh.norms import KyFan, LargestEntries, RowwiseLargest
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.optimise.descent import Iterate
from outweigh.protocols import Array, Indices, Samples
from outweigh.research.algorithms import fit_paper
from outweigh.research.moreau import moreau_gradient, stationarity, theorem_stationarity
from outweigh.samples import ArrayRows, Rows
from outweigh.samples.rows import Accepted

logger = logging.getLogger("outweigh")

# With no more rows than these a fit warns.
_FEW = 5

# A search that took this part of the share it was allowed has met outliers.
_MUCH = 0.5


class JudgesRows(OutlierMixin):
    """What follows from the score of each row, and the offset below which rows are outliers."""

    offset_: float

    @abstractmethod
    def score_samples(self, X: ArrayLike) -> Array:
        """Return how far each row is to be trusted: lower is less."""

    def decision_function(self, X: ArrayLike) -> Array:
        """Return ``score_samples(X) - offset_``: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """Return +1 for rows to be trusted and -1 for outliers."""
        return np.where(self.decision_function(X) < 0, -1, 1)


class RobustEstimator(Parameters, JudgesRows, BaseEstimator):
    """Base of the four estimators; not for direct use.

    Attributes
    ----------
    weights_ : ndarray of shape (n_samples,)
        The weight of each row. After a fit of Dask rows on a sample a dask array, chunked like
        them and not yet computed.
    subsample_ : ndarray of int or None
        The rows that weights were searched on; None for all of them.
    contamination_ : float
        The share of the sample weight removed: total variation of `weights_` from uniform.
    contamination_bound_ : float
        The share that could have been removed.
    scale_ : ndarray of shape (n_features,)
        The noise that each feature was divided by.
    objective_, noise_floor_ : float
        The objective at the weights, and the median level of clean data.
    certificate_ : Certificate
        How good the weights are; ``str(est.certificate_)`` is a verdict for a person.
    n_iter_ : int
    n_passes_ : int
        Passes made over data in chunks; only set for such data.
    trace_ : tuple of Iterate
    offset_ : float
        ``predict`` flags rows whose score is below it.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = MAY_BE

    n_features_in_: int
    scale_: Array
    weights_: Any
    subsample_: Indices | None
    contamination_: float
    contamination_bound_: float
    objective_: float
    noise_floor_: float
    n_iter_: int
    trace_: tuple[Iterate, ...]
    _n_rows: int
    _allowance: float
    _trusted_from: float
    _weights_of_sample: Array | None
    _medians: Array | None
    _incomplete: Indices
    certificate_: Certificate
    _score: RowScore | DistanceScore | EllipticalScore
    _norm: KyFan | LargestEntries | RowwiseLargest
    _pruned: Indices

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        r"""Find weights under which the rows look clean and read the estimate off them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Also a pandas or polars DataFrame, a `numpy.memmap`, or a Dask array or DataFrame,
            which is read in passes and held as a whole only within a budget. The means also take
            matrices and arrays of `scipy.sparse`, which are never made dense as a whole.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative. Whole numbers count as so many copies of the row, which are no further
            evidence unless chance repeats rows. Other weights are relative: together they count as
            :math:`(\sum s)^2 / \sum s^2` rows. Multiplying all by a number changes nothing.

        Returns
        -------
        self
            Unchanged if the fit fails.
        """
        before = dict(vars(self))
        self.__dict__.pop("n_passes_", None)
        try:
            self._validate_params()
            if self.subsample is None and self.random_state is not None:
                raise ValueError("random_state has no effect with subsample=None; leave one out")
            rows, weight = self._validate_rows(X, sample_weight)
            self._n_rows = rows.shape[0]
            n_counted = rows.shape[0] if weight is None else int(np.count_nonzero(weight))
            if n_counted <= _FEW:
                few = (
                    f"X: only {n_counted} rows count; so few do not tell wrong rows from right ones"
                )
                warnings.warn(few, stacklevel=2)
            self.subsample_, self._weights_of_sample, self._allowance = None, None, 0.0
            if self.subsample is None or n_counted <= self.subsample:
                self._fit_rows(rows, np.ones(rows.shape[0]) if weight is None else weight)
            else:
                drawn = subsample_of(rows, weight, self.subsample, self.random_state)
                self.subsample_, some_rows, some_weight = drawn
                if self.contamination != "auto":
                    self._allowance = allowance(float(self.contamination), some_weight)
                self._fit_rows(some_rows, some_weight)
                self._extend(rows, weight)
            n, dropped = int(self._incomplete.size), self.missing == "drop"
            self.certificate_ = replace(
                self.certificate_, left_out=n * dropped, filled=n * (not dropped)
            )
            if rows.n_passes is not None:
                self.n_passes_ = rows.n_passes
            if self.certificate_.trust == "not clean":
                warnings.warn(self.certificate_.verdict, ConvergenceWarning, stacklevel=2)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    @abstractmethod
    def _task(self, n_samples: int) -> Task:
        """Return what is asked of a fit, given the number of rows that count."""

    def _better_task(self, task: Task, found: Fit) -> Task:
        """Return what is asked of a second fit; `task` again where the first one suffices."""
        return task

    @abstractmethod
    def _set_answer(self, found: Fit) -> None:
        """Set what is read off the weights of a fit."""

    def _fit_rows(self, X: Rows, sample_weight: Array) -> None:
        """Set the fitted attributes; `sample_weight` has at least two positive entries."""
        distinct = X.distinct(sample_weight)
        rows, weight = distinct.rows, distinct.weight
        d = X.shape[1]
        scale: Any = self.scale
        if scale is not None and not isinstance(scale, str):
            check_numbers(scale, "scale")
            scale = np.asarray(scale, dtype=np.float64)
            if scale.shape != (d,):
                raise ValueError(f"scale must be of shape ({d},); got shape {scale.shape}")
            if not np.all((scale > 0) & np.isfinite(scale)):
                raise ValueError("scale must be positive and finite; replace its other entries")
        if not isinstance(self.covariance, str):
            check_numbers(self.covariance, "covariance")
        covariance = known_covariance(self.covariance, d)
        if covariance is not None and not isinstance(scale, np.ndarray) and scale != "mad":
            scale = np.sqrt(np.diagonal(covariance))
        known = None if self.contamination == "auto" else float(self.contamination)
        settings = Settings(
            None if known is None else known + self._allowance,
            scale,
            covariance,
            self.solver,
            self.max_iter,
            find_covariance=isinstance(self.covariance, str),
        )
        task = self._task(int(np.count_nonzero(sample_weight)))
        solve = fit_paper if self.solver == "paper" else fit
        # On standard error, also in a notebook, unless somebody listens.
        heard = logger.isEnabledFor(logging.INFO) and logger.hasHandlers()
        shown = self.verbose and not heard
        log = self._log if self.verbose else None
        with heard_by(logging.StreamHandler()) if shown else nullcontext():
            found = solve(rows, weight, task, settings, log)
            again = self._better_task(task, found)
            if again != task:
                found = solve(rows, weight, again, settings, log)
        found = replace(found, copies=float(sample_weight.sum() / weight.sum()))
        constant = np.setdiff1d(np.arange(d), found.noise.varying)
        if constant.size:
            some = getattr(self, "feature_names_in_", np.arange(d))[constant[:5]]
            named = ", ".join(map(str, some)) + (", ..." if constant.size > 5 else "")
            counted = f"{constant.size} of {d} features are constant (columns {named})"
            left_out = f"{counted}; they are left out, and their location is the constant"
            warnings.warn(left_out, stacklevel=3)
        certificate = found.certificate
        self.weights_ = distinct.shared(found.weights, sample_weight)
        self.certificate_ = certificate
        self.contamination_ = certificate.removed
        self.contamination_bound_ = certificate.contamination_bound
        self.objective_ = certificate.objective
        self.noise_floor_ = certificate.noise_floor.median
        self.n_iter_ = len(found.found.trace)
        self.trace_ = found.found.trace
        norm = found.problem.objective.norm
        assert isinstance(norm, KyFan | LargestEntries | RowwiseLargest)
        self._score, self._norm, self._pruned = found.score, norm, found.noise.pruned
        self.offset_, self._trusted_from = self._thresholds(found.scores, weight, sample_weight)
        self._set_answer(found)

    def _extend(self, X: Rows, sample_weight: Array | None) -> Accepted:
        """Weigh all rows by what a sample of them taught; return those that are trusted."""
        self._weights_of_sample = self.weights_
        accepts = partial(trusted, score=self._score, offset=self._trusted_from)
        found = X.accept(accepts, self._origin, sample_weight)
        self.weights_ = found.shares
        # Sums of the same numbers in another order differ in the last digit.
        self.contamination_ = max(1.0 - found.kept / found.total, 0.0)
        return found

    @property
    @abstractmethod
    def _origin(self) -> Array:
        """A point among the trusted rows, about which sums lose no digits."""

    def score_samples(self, X: ArrayLike) -> Array:
        """Return how far each row is to be trusted: at most 0, lower is less.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            A dask array, not yet computed, for data of Dask.
        """
        check_is_fitted(self)
        return each_row(self, X, self._score)

    def explain(self, X: ArrayLike, top: int = 5) -> Explanation:
        """Return the features that pushed out each row that `predict` flags.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        top : int, default=5
            How many features to name for each row.

        Returns
        -------
        Explanation
            Rows, features and shares; ``str`` of it is a list for a person.
        """
        check_is_fitted(self)
        if not isinstance(top, Integral) or top < 1:
            raise ValueError(f"top must be a whole number of at least 1; got {top!r}")
        labels, rows = getattr(X, "index", None), open_rows(self, X)
        if labels is None or callable(labels):
            labels = np.arange(rows.shape[0])
        names = np.array(self._feature_names, dtype=object)
        return explain_rows(self._score, self.offset_, rows, int(top), np.asarray(labels), names)

    def certify(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Certificate:
        """Return the certificate with its stationarity and Moreau gradient, which take longer.

        Of the objective that the weights were searched for; for components, beside them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows the estimator was fitted on.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        Certificate
            That of the fit where no objective was minimised: rows of unknown covariance, and
            components in noise that is not white.
        """
        check_is_fitted(self)
        rows = open_rows(self, X)
        if rows.shape[0] != self._n_rows:
            raise ValueError(f"X must hold the {self._n_rows} rows of the fit; got {rows.shape[0]}")
        given = self._weights_that_count(sample_weight, rows.shape[0])
        weight = np.ones(rows.shape[0]) if given is None else given
        searched = self.weights_
        if self.subsample_ is not None:
            rows, weight = rows.part(self.subsample_), weight[self.subsample_]
            searched = self._weights_of_sample
        if rows.n_passes is not None:
            # Rows in chunks are checked as they are looked over.
            rows.overview(np.zeros(rows.shape[1]))
        if self.certificate_.noise in ("elliptical", "other"):
            return self.certificate_
        standardizer, pruned = self._score.standardizer, self._pruned
        distinct = rows.distinct(weight)
        samples = distinct.rows.samples(
            standardizer.view, standardizer.columns.size, standardizer.affine
        )
        samples = samples.without(pruned) if pruned.size else samples
        bound = self.contamination_bound_ + 1e-12 * (pruned.size > 0)
        domain = CappedSimplex.from_contamination(distinct.weight, bound).pruned(pruned)
        weights = domain.project(distinct.merged(searched))
        objective = self._searched_for(samples)
        subgradient = objective.evaluate(weights).subgradient
        return replace(
            self.certificate_,
            stationarity=stationarity(domain, weights, subgradient),
            theorem_stationarity=theorem_stationarity(domain.n_effective(weights), bound),
            moreau=moreau_gradient(objective, domain, weights),
        )

    def _searched_for(self, samples: Samples) -> MomentObjective:
        """Return the objective that the search lowered, on rows in units of their noise."""
        return MomentObjective(samples, self._norm, True)

    def report(self, X: ArrayLike, path: str | PathLike[str]) -> str:
        """Write one HTML page about the fit: verdict, pictures, distrusted rows with reasons.

        The page loads nothing from elsewhere. Pictures need matplotlib.

        Parameters
        ----------
        X : array-like or Dask array of shape (n_samples, n_features)
            The rows of the fit.
        path : str or path
            A file that is there is replaced.

        Returns
        -------
        str
            The path.
        """
        check_is_fitted(self)
        from outweigh.report import write_report

        return write_report(self, X, path)

    @property
    def _feature_names(self) -> list[str]:
        """What the features are called: x0, x1, ... where the rows of the fit had no names."""
        named = getattr(self, "feature_names_in_", None)
        if named is None:
            return [f"x{j}" for j in range(self.n_features_in_)]
        return [str(name) for name in named]

    def _repr_html_inner(self) -> str:
        return self._verdict_html() + str(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._verdict_html() + bundle["text/html"]
        return bundle

    def _verdict_html(self) -> str:
        """Return the verdict of a fitted estimator, for a notebook."""
        certificate = getattr(self, "certificate_", None)
        if certificate is None:
            return ""
        of = ""
        if self.subsample_ is not None:
            of = f" (on a random sample of {self.subsample_.size:,} of {self._n_rows:,} rows)"
        colour = "#2e7d43" if certificate.clean else "#b26a00"
        return (
            f'<div style="border-left:.4em solid {colour};padding:.2em .8em;margin:.4em 0">'
            f"{escape(certificate.verdict + of)}</div>"
        )

    def _validate_rows(
        self, X: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Rows, Array | None]:
        """Return the rows and their weights; None where each counts alike, as n may be huge."""
        rows = open_rows(self, X, reset=True)
        self._medians, self._incomplete = None, np.empty(0, dtype=np.intp)
        if isinstance(rows, ArrayRows) and self.missing is not None:
            self._incomplete = np.flatnonzero(np.isnan(rows.array).any(axis=1))
            names = getattr(self, "feature_names_in_", range(rows.shape[1]))
            counts = sample_weights(sample_weight, rows.shape[0])
            self._medians = column_medians(rows.array, counts, names)
            rows = ArrayRows(filled(rows.array, self._medians))
        weight = self._weights_that_count(sample_weight, rows.shape[0])
        if weight is not None and np.count_nonzero(weight) < 2:
            raise ValueError(
                "fewer than two samples have a positive sample_weight and no missing values; a "
                "robust estimate needs at least 2"
            )
        return rows, weight

    def _weights_that_count(self, sample_weight: ArrayLike | None, n_rows: int) -> Array | None:
        """Return the sample weights, 0 for rows left out; None where all rows count alike."""
        left_out = self._incomplete if self.missing == "drop" else self._incomplete[:0]
        if sample_weight is None and not left_out.size:
            return None
        counted = np.ones(n_rows)
        counted[left_out] = 0.0
        return sample_weights(counted * sample_weights(sample_weight, n_rows), n_rows)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing is not None
        return tags

    def _log(self, iterate: Iterate) -> bool:
        logger.info(
            "%s: evaluation %d, objective %.6g, step %.3g",
            type(self).__name__,
            iterate.iteration,
            iterate.value,
            iterate.step,
        )
        return False

    def _thresholds(
        self, scores: Array, weight: Array, sample_weight: Array
    ) -> tuple[float, float]:
        """Return the score below which rows are flagged, and that from which new rows are trusted.

        Flagged is the share `contamination`. Where it is "auto" that is the share of the rows whose
        weight fell to half of its cap or less; where there is no such row, the share of the weight
        that was removed.

        New rows are trusted from the same score on, with two exceptions. Where less than half of a
        given `contamination` was removed there are few outliers, and a cut at that share would
        lose clean rows: only rows that score as those that lost half of their weight are not
        trusted. And where no row lost half of its weight, all new rows are trusted.

        Parameters
        ----------
        scores, weight : ndarray of shape (m,)
            Of the rows that count, in which equal rows may be one: scores and sample weights.
        sample_weight : ndarray of shape (n,)
            Of all rows of the fit.
        """
        caps = sample_weight / ((1.0 - self.contamination_bound_) * sample_weight.sum())
        lost = float(sample_weight[self.weights_ < 0.5 * caps].sum() / sample_weight.sum())
        share = lost or self.contamination_
        # By distance there is a limit up to which new rows are trusted, though none came so far. By
        # forces there is where half of a weight is lost, for rows that a sample stands for.
        limit = -1.0
        if isinstance(self._score, RowScore):
            limit = HALF_LOST if self.subsample_ is not None else -np.inf
        if self.contamination == "auto":
            offset = trusted = _offset(scores, weight, share, limit)
        else:
            # What was asked for is of all rows; the share of a sample is only close to it, and a
            # cut among the outliers would trust some, one among clean rows lose those of a side.
            known = float(self.contamination)
            share = float(np.clip(share, known - self._allowance, known + self._allowance))
            offset = trusted = _offset(scores, weight, share, limit)
            if self.contamination_ < _MUCH * known:
                trusted = min(offset, _offset(scores, weight, lost, limit))
        return offset, trusted if lost > 0.0 else -np.inf


def _offset(scores: Array, sample_weight: Array, share: float, limit: float) -> float:
    """Return the threshold below which `share` of the sample weight scores, to the nearest row.

    Between the last row below it and the first one kept any threshold would do. It is `limit` if
    that lies between them, else just below the first row kept: a new row that scores less than all
    that were kept is like none of them.
    """
    order = np.argsort(scores, kind="stable")
    ranked = scores[order]
    cumulative = np.cumsum(sample_weight[order]) / sample_weight.sum()
    # Equal rows stand or fall together, also where rounding told them apart.
    last_of_ties = np.diff(ranked, append=np.inf) > 1e-9 * np.maximum(np.abs(ranked), 1e-300)
    flagged = np.concatenate([[0.0], cumulative[last_of_ties]])
    ends = np.concatenate([[-1], np.flatnonzero(last_of_ties)])
    end = int(ends[np.argmin(np.abs(flagged - share))])
    if end == ranked.size - 1:
        return float(np.nextafter(ranked[-1], np.inf))
    worst = float(ranked[end]) if end >= 0 else -np.inf
    kept = float(ranked[end + 1])
    # Below the last row kept by what rounding may do to its score, but above those flagged.
    highest = max(kept - 1e-9 * max(abs(kept), 1e-300), worst / 2.0 + kept / 2.0)
    return limit if worst < limit < highest else highest


def clipped(n_nonzero: int, n_features: int) -> int:
    """Return a number of entries, at most all of them; warn where that is fewer."""
    if n_nonzero > n_features:
        used = f"n_nonzero={n_nonzero} is larger than the number of features; {n_features} is used"
        warnings.warn(used, stacklevel=5)
    return min(int(n_nonzero), n_features)


@contextmanager
def heard_by(handler: logging.Handler) -> Iterator[None]:
    """Hand what is logged, from level INFO on, to a handler."""
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
