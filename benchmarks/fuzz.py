"""Fits of random tables with random parameters: each is refused clearly or answered soundly.

A case is a pure function of its seed: what is drawn, what is asked of the answer, and so whether it
fails. A refusal is a ValueError or TypeError that the library or scikit-learn's checks raised on
purpose, that names what is wrong, and that leaves the estimator as it was. An answer is finite, and
what the documentation promises of answers holds for it. Neither takes long or warns of arithmetic.

python -m benchmarks fuzz --cases 10000 [--first-seed S] [--jobs J]
"""

from __future__ import annotations

import contextlib
import io
import pickle
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.covariance import EmpiricalCovariance, LedoitWolf
from threadpoolctl import threadpool_limits

from benchmarks.options import asked
from outweigh import (
    RobustMean,
    RobustPCA,
    RobustSparseMean,
    RobustSparsePCA,
    load_model,
    save_model,
)
from outweigh.protocols import Status

Array = np.ndarray
Generator = np.random.Generator

MEANS = (RobustMean, RobustSparseMean)
ESTIMATORS = (*MEANS, RobustPCA, RobustSparsePCA)
# A fit of a case takes some hundredths of a second; this is a hang also on a busy machine.
SECONDS = 30.0
# Relations are checked to this many units of the noise, and relatively for weights: descents of
# hundreds of steps have made rounding larger, but not by more than six digits.
TOLERANCE = 1e-5
# Values farther from zero than so many noise units have lost the digits that relations need.
FAR = 1e8
# Scores below this are those of outliers by any measure.
FARTHEST = 1e4


@dataclass
class Case:
    """What one fit is given, and what is expected of it.

    Attributes
    ----------
    seed : int
    estimator : estimator
        Not fitted.
    X, sample_weight : object
        As they are passed to `fit`.
    values : ndarray of shape (n, d)
        X as plain numbers.
    story : list of str
        How X came about, in words.
    wrong : list of str
        What is wrong on purpose: a refusal must name one of them.
    extreme : bool
        Whether a refusal is as good as an answer.
    """

    seed: int
    estimator: Any = None
    X: Any = None
    sample_weight: Any = None
    values: Array = field(default_factory=lambda: np.empty((0, 0)))
    story: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    extreme: bool = False

    @property
    def weight(self) -> Array:
        """The sample weights, ones by default."""
        given = np.ones(len(self.values)) if self.sample_weight is None else self.sample_weight
        return np.asarray(given, dtype=float)

    def fit(self, **changed: Any) -> Any:
        """Return a fitted estimator; X and sample_weight may be others."""
        given = {"X": self.X, "sample_weight": self.sample_weight, **changed}
        return deepcopy(self.estimator).fit(given["X"], sample_weight=given["sample_weight"])

    def reproduction(self, failure: str) -> str:
        """Return a failure as lines that show it again."""
        return (
            f"# {failure}\n"
            f"# {', '.join(self.story)}\n"
            "from benchmarks.fuzz import draw, failure_of\n"
            f"case = draw({self.seed})  # {' '.join(repr(self.estimator).split())}\n"
            "case.fit()\n"
            "assert not failure_of(case)"
        )


class BrokenPromiseError(AssertionError):
    """A promise that does not hold."""


# Drawing


def draw(seed: int) -> Case:
    """Return the case of a seed."""
    rng = np.random.default_rng([17, seed])
    case = Case(seed)
    case.values = _values(rng, case)
    _put_into_container(rng, case)
    case.estimator = _estimator(rng, case)
    case.sample_weight = _sample_weight(rng, case)
    n_counted = np.count_nonzero(case.weight)
    counted = case.values[case.weight > 0] if case.weight.size == len(case.values) else case.values
    if n_counted < 2:
        case.wrong.append("ample")
    if not isinstance(case.estimator, MEANS):
        if sp.issparse(case.X):
            case.wrong.append("parse")
        if case.estimator.n_components > min(n_counted, case.values.shape[1]):
            case.wrong.append("n_components")
        if len(np.unique(counted, axis=0)) < 2:
            case.extreme = True
    return case


def chance(rng: Generator, probability: float) -> bool:
    """Return True with a probability."""
    return bool(rng.random() < probability)


def pick(rng: Generator, *options: Any) -> Any:
    """Return one of some options, all equally likely."""
    return options[rng.integers(len(options))]


def _values(rng: Generator, case: Case) -> Array:
    """Return rows of some law, in some units, with some oddities."""
    n = (
        int(np.exp(rng.uniform(0.0, np.log(300.0))))
        if chance(rng, 0.5)
        else int(rng.integers(1, 120))
    )
    d = int(np.exp(rng.uniform(0.0, np.log(40.0))))
    law = pick(rng, *LAWS)
    X = np.asarray(LAWS[law](rng, n, d), dtype=float)
    case.story.append(f"{n} x {d} {law} rows")
    for name, probability, change in ODDITIES:
        if chance(rng, probability):
            case.story.append(name)
            X = change(rng, X)
    if chance(rng, 0.1):
        size = 10.0 ** pick(rng, -300, -160, -100, -20, 20, 100, 153, 300)
        case.story.append(f"times {size:g}")
        case.extreme |= not 1e-50 < size < 1e50
        with np.errstate(all="ignore"):
            X = np.clip(X * size, -1e300, 1e300)
    if chance(rng, 0.05):
        case.story.append("some values of 1e300")
        case.extreme = True
        X = np.where(rng.random(X.shape) < 0.02, pick(rng, 1e300, -1e300, 1e160), X)
    if chance(rng, 0.03):
        case.story.append("columns of all sizes")
        case.extreme = True
        X = X / np.maximum(np.abs(X).max(initial=1.0), 1.0) * 10.0 ** rng.uniform(-290, 290, d)
    return X


LAWS: dict[str, Callable[[Generator, int, int], Array]] = {
    "Gaussian": lambda rng, n, d: rng.standard_normal((n, d)),
    "correlated": lambda rng, n, d: rng.standard_normal((n, d)) @ rng.standard_normal((d, d)),
    "one-factor": lambda rng, n, d: rng.standard_normal((n, d)) + 3.0 * rng.standard_normal((n, 1)),
    "heavy-tailed": lambda rng, n, d: rng.standard_t(pick(rng, 1, 2, 5), (n, d)),
    "lognormal": lambda rng, n, d: rng.lognormal(0.0, 1.0, (n, d)),
    "low-rank": lambda rng, n, d: (
        rng.standard_normal((n, max(1, d // 3))) @ rng.standard_normal((max(1, d // 3), d))
    ),
    "count": lambda rng, n, d: rng.poisson(pick(rng, 0.1, 1.0, 20.0), (n, d)),
    "binary": lambda rng, n, d: rng.random((n, d)) < pick(rng, 0.05, 0.5),
    "mostly zero": lambda rng, n, d: rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.1),
    "lattice": lambda rng, n, d: rng.integers(-2, 3, (n, d)),
    "uniform": lambda rng, n, d: rng.uniform(-1.0, 1.0, (n, d)),
    "two-cluster": lambda rng, n, d: (
        rng.standard_normal((n, d)) + 6.0 * (rng.random((n, 1)) < pick(rng, 0.2, 0.5))
    ),
}


def _outliers(rng: Generator, X: Array) -> Array:
    X = X.copy()
    X[: len(X) // 10] += pick(rng, 2.0, 5.0, 100.0, 1e6) * rng.standard_normal(X.shape[1])
    return X


def _some_columns(rng: Generator, X: Array, replaced: Array) -> Array:
    return np.where(rng.random(X.shape[1]) < 0.3, replaced, X)


# What may further be done to rows, and how often.
ODDITIES: tuple[tuple[str, float, Callable[[Generator, Array], Array]], ...] = (
    ("with outliers", 0.4, _outliers),
    ("rows repeated", 0.12, lambda rng, X: X[rng.integers(0, len(X), len(X))]),
    ("half the rows equal", 0.05, lambda _, X: np.where(np.arange(len(X))[:, None] % 2, X, X[0])),
    ("all rows equal", 0.01, lambda _, X: np.repeat(X[:1], len(X), axis=0)),
    ("columns repeated", 0.08, lambda rng, X: X[:, rng.integers(0, X.shape[1], X.shape[1])]),
    ("constant columns", 0.1, lambda rng, X: _some_columns(rng, X, np.full_like(X, 7.0))),
    (
        "one value but for a row",
        0.04,
        lambda rng, X: _some_columns(rng, X, np.where(np.arange(len(X))[:, None] == 0, 1.0, 0.0)),
    ),
    ("in other units", 0.2, lambda rng, X: X * 10.0 ** rng.uniform(-4.0, 4.0, X.shape[1])),
    ("in units of a thousand", 0.08, lambda _, X: 1e3 * X),
    (
        "far from zero",
        0.12,
        lambda rng, X: X + pick(rng, 10.0, 1e3, 1e6) * rng.standard_normal(X.shape[1]),
    ),
    ("rows in order", 0.05, lambda _, X: X[np.lexsort(X.T)]),
)

SPARSE = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")


def _put_into_container(rng: Generator, case: Case) -> None:
    """Set X to the values in another type, order or container, and the values to what it holds."""
    X, kind = case.values, pick(rng, *"pppppdddoosssfffm")
    if kind == "d":
        dtype = pick(rng, "f4", "f2", "i8", "i2", "u1", "?", ">f8", "longdouble")
        case.story.append(f"dtype {dtype}")
        X = _as(X, dtype)
        case.extreme |= X.dtype.kind == "f" and X.dtype.itemsize < 8
    elif kind == "o":
        layout = pick(rng, "Fortran order", "strided", "reversed", "objects", "lists", "read-only")
        case.story.append(layout)
        X = _laid_out(X, layout)
    elif kind == "s":
        name = pick(rng, *SPARSE) + pick(rng, "_array", "_matrix")
        case.story.append(name)
        with warnings.catch_warnings():
            # Not every table is sparse.
            warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
            X = getattr(sp, name)(X)
    elif kind == "f":
        X = _frame(rng, case, X)
    elif kind == "m":
        X = np.ma.MaskedArray(X)
        case.story.append("masked array")
        if chance(rng, 0.5):
            X.mask = np.zeros(X.shape, dtype=bool)
            X.mask[rng.integers(len(X)), 0] = True
            case.story.append("with a masked value")
            case.wrong.append("mask")
    if kind in "pdo" and chance(rng, 0.04):
        X = np.array(X, dtype=float)
        X[rng.integers(len(X)), rng.integers(X.shape[1])] = pick(rng, np.nan, np.inf, -np.inf)
        case.story.append("with a value that is not finite")
        case.wrong.append("X")
    case.X = X
    if not case.wrong:
        dense = X.toarray() if sp.issparse(X) else X
        case.values = np.array(dense, dtype=np.float64)


def _as(X: Array, dtype: str) -> Array:
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return np.round(np.clip(X, max(limits.min, -1e15), min(limits.max, 1e15))).astype(kind)
    if kind.kind == "f" and kind.itemsize < 8:
        X = np.clip(X, np.finfo(kind).min, np.finfo(kind).max)
    return (np.median(X) < X) if kind.kind == "b" else X.astype(kind)


def _laid_out(X: Array, layout: str) -> Any:
    if layout == "Fortran order":
        return np.asfortranarray(X)
    if layout == "strided":
        return np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    if layout == "reversed":
        return X[::-1, ::-1]
    if layout == "objects":
        return X.astype(object)
    if layout == "lists":
        return X.tolist()
    X = X.copy()
    X.flags.writeable = False
    return X


def _frame(rng: Generator, case: Case, X: Array) -> pd.DataFrame:
    """Return a frame, of one type or several, and now and then with a cell that is no number."""
    frame = pd.DataFrame(X, columns=[f"feature {j}" for j in range(X.shape[1])])
    case.story.append("frame")
    kind = pick(rng, "plain", "mixed", "nullable", "labelled", "wrong", "=names")
    if kind == "mixed":
        for j in range(0, X.shape[1], 2):
            dtype = pick(rng, "f4", "i8", "?", "Int64", "Float64", "boolean")
            plain = {"Int64": "i8", "Float64": "f8", "boolean": "?"}.get(dtype, dtype)
            frame[f"feature {j}"] = pd.Series(_as(X[:, j], plain)).astype(dtype)
            case.extreme |= dtype == "f4"
        case.story.append("of several types")
    elif kind == "nullable":
        frame = frame.astype("Float64")
    elif kind == "labelled":
        frame.index = [f"row {i}" for i in range(len(frame))]
    elif kind == "=names":
        frame.columns = [f"={name}" for name in frame.columns]
    elif kind == "wrong":
        column = frame.columns[rng.integers(X.shape[1])]
        what = pick(rng, np.nan, np.inf, None, "text", pd.Timestamp("2020"), pd.Timedelta("1s"))
        if isinstance(what, pd.Timestamp | pd.Timedelta):
            frame[column] = what
        else:
            frame[column] = frame[column].astype(object if isinstance(what, str) else float)
            frame.loc[rng.integers(len(frame)), column] = what
        case.story.append(f"with {what!r} in {column!r}")
        case.wrong.append(column)
    return frame


def _estimator(rng: Generator, case: Case) -> Any:
    """Return an estimator with some of its parameters changed, to values wrong ones among them."""
    cls = pick(rng, *ESTIMATORS)
    n, d = case.values.shape
    options: dict[str, Any] = {}

    def change(name: str, probability: float, *values: Any) -> None:
        if chance(rng, probability):
            options[name] = pick(rng, *values)

    change("contamination", 0.5, 0.0, 0.01, 0.1, 0.3, 0.49, float(rng.uniform(0.0, 0.5)))
    change("scale", 0.4, "auto", "mad", None, np.exp(rng.standard_normal(d)))
    change("covariance", 0.35, *("auto",) * 3, *_covariances(rng, d))
    change("solver", 0.3, "polyak", "backtracking", "mirror", "paper")
    change("max_iter", 0.2, 1, 2, 10, 1000)
    change("subsample", 0.1, None, 10, max(10, n // 2))
    change("random_state", 0.1, None, 0, 7)
    change("verbose", 0.05, True, 1)
    change("n_components", 0.5, 1, 2, 3, d)
    change("n_nonzero", 0.5, "auto", 1, 2, 3, d, d + 1)
    change("assume_centered", 0.2, True, False)
    if chance(rng, 0.02):
        name, value = pick(rng, *WRONG)
        options[name] = value
    options = {key: value for key, value in options.items() if key in cls().get_params()}
    if options.get("solver") == "paper":
        # It needs both; now and then it does without, and says so.
        right = not chance(rng, 0.1)
        if right:
            options["contamination"] = float(rng.uniform(0.0, 0.4))
            options["scale"] = None
        case.extreme = True
    for name, value in WRONG:
        if name in options and options[name] is value:
            case.wrong.append(name)
    if options.get("subsample", 10) is None and options.get("random_state") is not None:
        case.wrong.append("random_state")
    if options.get("subsample") is not None:
        # It may be too small for the components, or constant.
        case.extreme = True
    return cls(**options)


WRONG: tuple[tuple[str, Any], ...] = (
    ("contamination", 0.5),
    ("contamination", "some"),
    ("scale", "iqr"),
    ("solver", "newton"),
    ("max_iter", 0),
    ("subsample", 0),
    ("subsample", 9),
    ("random_state", "seed"),
    ("n_components", 0),
    ("n_nonzero", 0),
    ("assume_centered", "yes"),
    ("covariance", "known"),
    ("covariance", EmpiricalCovariance()),
    ("covariance", np.ones((50, 50))),
    ("covariance", -np.ones((1, 1))),
)


def _covariances(rng: Generator, d: int) -> tuple[Any, ...]:
    root = rng.standard_normal((d, d)) + 2.0 * np.eye(d)
    rows = rng.standard_normal((3 * d + 5, d))
    return (
        root @ root.T,
        np.diag(np.exp(rng.standard_normal(d))),
        LedoitWolf().fit(rows),
    )


def _sample_weight(rng: Generator, case: Case) -> Any:
    """Return weights of rows: mostly none; else copies, shares, zeros, tiny, huge or wrong ones."""
    n = len(case.values)
    if chance(rng, 0.65):
        return None
    kind = pick(
        rng, "copies", "shares", "fractions", "many zeros", "tiny", "huge", "uneven", "wrong"
    )
    case.story.append(f"sample_weight: {kind}")
    fractions = rng.uniform(0.1, 2.0, n)
    if kind == "copies":
        return rng.integers(0, 5, n)
    if kind == "shares":
        return fractions / fractions.sum()
    if kind == "many zeros":
        return fractions * (rng.random(n) < 0.4)
    if kind in ("tiny", "huge"):
        return fractions * (
            pick(rng, 1e-310, 1e-150) if kind == "tiny" else pick(rng, 1e160, 1e307)
        )
    if kind == "uneven":
        case.extreme = True
        return 10.0 ** rng.uniform(-12.0, 12.0, n)
    if kind == "wrong":
        case.wrong.append("ample")
        fractions[0] = pick(rng, np.nan, np.inf, -1.0)
        return pick(rng, fractions, np.ones(n + 1), np.ones((n, 2)), np.zeros(n))
    return fractions


# Checking


def failure_of(case: Case) -> str:
    """Return what is wrong with what the library makes of a case; empty where nothing is."""
    try:
        with time_limit(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("error")
            # The library speaks to its users by these, and by no others.
            warnings.simplefilter("ignore", UserWarning)
            _check(case)
    except BrokenPromiseError as failed:
        return str(failed)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename.rpartition('/')[2]}:{place.lineno}"
        return f"{type(error).__name__} at {where}: {' '.join(str(error).split())[:200]}"
    return ""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the block when it takes longer; only in the main thread, on POSIX."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"no answer after {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _check(case: Case) -> None:
    kept = _content(case.X)
    try:
        est = case.fit()
    except (ValueError, TypeError) as refusal:
        _check_refusal(case, refusal)
        return
    _require(not case.wrong, f"was not refused, though wrong: {', '.join(case.wrong)}")
    _require(_content(case.X) == kept, "X was written to")
    _check_weights(case, est)
    _check_numbers(case, est)
    _check_copies(case, est)
    # Of extreme numbers too few digits are left to compare two answers.
    if est.subsample_ is None and not case.extreme:
        for relation in RELATIONS:
            relation(case, est)


def _content(X: Any) -> bytes:
    # A sparse matrix remembers what it found out about itself: that is not content.
    return pickle.dumps(X.toarray() if sp.issparse(X) else X)


def _require(holds: object, promise: str) -> None:
    if not holds:
        raise BrokenPromiseError(promise)


def _check_refusal(case: Case, refusal: Exception) -> None:
    said = " ".join(str(refusal).split())
    last = traceback.extract_tb(refusal.__traceback__)[-1]
    # What arithmetic raises is no refusal: only a raise statement, and what validation converts.
    on_purpose = "sklearn" in last.filename or (last.line or "").startswith("raise ")
    if not on_purpose or isinstance(refusal, np.linalg.LinAlgError):
        raise refusal
    _require(case.wrong or case.extreme, f"refused, though nothing is wrong: {said[:200]}")
    named = not case.wrong or any(word in said for word in case.wrong)
    _require(named, f"the refusal names none of {case.wrong}: {said[:200]}")
    unfitted = deepcopy(case.estimator)
    fitted = type(unfitted)().fit(np.random.default_rng(0).standard_normal((12, 3)))
    for est in (unfitted, fitted.set_params(**unfitted.get_params(deep=False))):
        before = dict(vars(est))
        with contextlib.suppress(ValueError, TypeError):
            est.fit(case.X, sample_weight=case.sample_weight)
        after = vars(est)
        same = before.keys() == after.keys() and all(before[key] is after[key] for key in before)
        _require(same, f"a refused fit changed the estimator: {said[:100]}")


def _check_weights(case: Case, est: Any) -> None:
    weights, share = est.weights_, case.weight / case.weight.max()
    share = share / share.sum()
    _require(weights.shape == share.shape, f"weights of shape {weights.shape}")
    _require(np.isfinite(weights).all(), "weights that are not finite")
    _require((weights >= 0.0).all(), f"a weight of {weights.min()}")
    _require(abs(weights.sum() - 1.0) < 1e-9, f"weights that sum to {weights.sum()!r}")
    _require((weights[share == 0.0] == 0.0).all(), "a row of no sample weight has weight")
    bound, removed = est.contamination_bound_, est.contamination_
    _require(0.0 <= bound < 1.0, f"contamination_bound_ {bound}")
    _require(0.0 <= removed < 1.0, f"contamination_ {removed}")
    if est.subsample_ is None:
        over = (weights - share / (1.0 - bound)).max()
        _require(over < 1e-9, f"a weight exceeds its cap by {over:.2g}")
        _require(removed <= bound + 1e-9, f"{removed} removed, of at most {bound}")


def _check_numbers(case: Case, est: Any) -> None:
    for name, value in vars(est).items():
        numbers = isinstance(value, float) or (
            isinstance(value, np.ndarray) and value.dtype.kind == "f"
        )
        if name.endswith("_") and numbers:
            _require(np.isfinite(value).all(), f"{name} is not finite")
    scores, labels = est.score_samples(case.X), est.predict(case.X)
    _require(np.isfinite(scores).all(), "scores that are not finite")
    _require((scores <= 0.0).all(), f"a score of {scores.max()}")
    _require(set(np.unique(labels)) <= {-1, 1}, f"predict: {np.unique(labels)}")
    _require(((labels == -1) == (scores < est.offset_)).all(), "predict and scores disagree")
    _require((est.scale_ > 0.0).all(), "a scale of zero")
    str(est.certificate_)
    if isinstance(est, MEANS):
        _check_mean(case, est)
    else:
        _check_components(case, est)


def _check_mean(case: Case, est: Any) -> None:
    if isinstance(est, RobustSparseMean):
        outside = np.setdiff1d(np.flatnonzero(est.location_), est.support_)
        drawn = np.arange(len(case.values)) if est.subsample_ is None else est.subsample_
        counted = case.values[drawn][case.weight[drawn] > 0]
        constant = np.flatnonzero(np.ptp(counted, axis=0) == 0.0)
        _require(np.isin(outside, constant).all(), "location_ is not zero outside support_")
        _require(est.n_nonzero_ == est.support_.size, "n_nonzero_ is not the size of support_")
    elif hasattr(est, "covariance_"):
        covariance = est.covariance_
        # A variance is known to some digits of the squares that it is a difference of.
        known = 1e-3 * est.scale_ + 1e-4 * np.abs(case.values).max(axis=0)
        size = np.maximum(np.sqrt(np.diagonal(covariance)), known)
        _require((np.diagonal(covariance) >= 0.0).all(), "covariance_: a negative variance")
        _require(np.array_equal(covariance, covariance.T), "covariance_ is not symmetric")
        # What is beside variances near the smallest number is lost.
        if not case.extreme:
            least = np.linalg.eigvalsh(covariance / size / size[:, None]).min()
            _require(least > -1e-6, f"covariance_ has a negative eigenvalue, {least:.2g}")


def _check_components(case: Case, est: Any) -> None:
    components, variances = est.components_, est.explained_variance_
    _require(components.shape == (est.n_components, case.values.shape[1]), "components: shape")
    lengths = np.linalg.norm(components, axis=1)
    _require(np.allclose(lengths, 1.0, atol=1e-9), f"components of length {lengths}")
    _require((variances >= 0.0).all(), "a negative variance")
    _require((np.diff(variances) <= 1e-9 * variances[0]).all(), "variances that increase")
    if isinstance(est, RobustPCA):
        # In units of the scale or, beyond a known covariance, in those of X.
        off = np.abs(components @ components.T - np.eye(len(components))).max()
        _require(off < 1e-6, f"components are off right angles by {off:.2g}")
    else:
        wanted = est.n_nonzero
        if not isinstance(wanted, str):
            most = np.count_nonzero(components, axis=1).max()
            _require(most <= max(wanted, 1), f"{most} nonzero entries, asked for {wanted}")
    scores = est.transform(case.X)
    back = est.inverse_transform(scores)
    _require(np.isfinite(scores).all() and np.isfinite(back).all(), "transform is not finite")
    for name in ("score_distances", "orthogonal_distances"):
        _require(np.isfinite(getattr(est, name)(case.X)).all(), f"{name} are not finite")


def _check_copies(case: Case, est: Any) -> None:
    file = io.BytesIO()
    save_model(est, file)
    scores = est.score_samples(case.X)
    for how, copy in (("pickle", pickle.loads(pickle.dumps(est))), ("file", load_model(file))):
        same = np.array_equal(copy.score_samples(case.X), scores) and copy.offset_ == est.offset_
        _require(same, f"other scores after a {how}")


# Relations: what an answer must be, given the answer to another question


def _permuted(case: Case, est: Any) -> None:
    order = np.random.default_rng(case.seed).permutation(len(case.values))
    weight = None if case.sample_weight is None else case.weight[order]
    other = case.fit(X=case.values[order], sample_weight=weight)
    _compare(case, est, other, "rows in another order", order)


def _shifted(case: Case, est: Any) -> None:
    if isinstance(est, RobustSparseMean) or getattr(est, "assume_centered", False):
        return
    size = 2.0 ** np.round(np.log2(_spread(case)))
    shift = size * np.random.default_rng(case.seed).integers(-8, 9, case.values.shape[1])
    other = case.fit(X=case.values + shift)
    _compare(case, est, other, "another origin", shift=shift)


def _spread(case: Case) -> Array:
    """Return a size for each column that its digits resolve: that of its typical deviations."""
    counted = case.values[case.weight > 0]
    away = np.abs(counted - np.median(counted, axis=0))
    typical = np.where(np.median(away, axis=0) > 0.0, np.median(away, axis=0), away.max(axis=0))
    return np.where(typical > 0.0, typical, 1.0)


def _in_units(case: Case, est: Any) -> None:
    if not isinstance(est, MEANS) or repr(est.scale) != "'mad'" or est.covariance is not None:
        return
    units = 2.0 ** np.random.default_rng(case.seed).integers(-8, 9, case.values.shape[1])
    other = case.fit(X=case.values * units)
    _compare(case, est, other, "other units", units=units)


def _as_copies(case: Case, est: Any) -> None:
    weight = case.weight
    if case.sample_weight is None or np.any(weight != np.round(weight)) or weight.max() > 10:
        return
    times = weight.astype(int)
    other = case.fit(X=np.repeat(case.values, times, axis=0), sample_weight=None)
    first = np.minimum(np.cumsum(times) - times, times.sum() - 1)
    _compare(case, est, other, "rows repeated instead of weighted", first, times=times)


RELATIONS = (_permuted, _shifted, _in_units, _as_copies)


def _compare(
    case: Case,
    est: Any,
    other: Any,
    what: str,
    order: Array | slice = slice(None),
    shift: Array | float = 0.0,
    units: Array | float = 1.0,
    times: Array | float = 1.0,
) -> None:
    """Require that another fit gave the same answer.

    `order` says which row of this fit each of the other is, or the reverse where rows were repeated
    `times` over.
    """
    unit = _spread(case) / est.scale_
    varying = np.ptp(case.values[case.weight > 0], axis=0) > 0.0
    uneven = unit[varying].max(initial=1.0) / unit[varying].min(initial=1.0)
    farthest = (np.abs(case.values) / est.scale_ / np.minimum(unit, 1.0)).max()
    if farthest > FAR or uneven > np.sqrt(FAR):
        return
    if est.certificate_.status is Status.STALLED or other.certificate_.status is Status.STALLED:
        # The objective has kinks, and a search that ends at one far above the level of clean rows
        # may end at another after rounding: only how far it came can be compared.
        low, high = sorted((est.objective_, other.objective_))
        _require(high < 2.0 * low + 1.0, f"{what}: ends at {high:.3g} instead of {low:.3g}")
        return
    if np.count_nonzero(case.weight) <= 5:
        # The fit has warned that so few rows tell nothing: two of them are alike but for rounding.
        return
    n = len(case.values)
    if what.startswith("rows repeated"):
        mine, theirs = est.weights_, np.where(times > 0, other.weights_[order] * times, 0.0)
    else:
        mine, theirs = est.weights_[order], other.weights_
    apart = n * np.abs(mine - theirs).max()
    _require(apart < 100.0 * TOLERANCE, f"{what}: weights move by {apart:.2g} of one row's")
    if isinstance(est, MEANS):
        moved = np.abs((other.location_ - shift) / units - est.location_) / est.scale_
        _require(
            moved.max() < TOLERANCE, f"{what}: location moves by {moved.max():.2g} noise units"
        )
    else:
        # Sparse components after the first begin from what it leaves, where columns may tie.
        count = len(est.components_) if isinstance(est, RobustPCA) else 1
        moved = (other.explained_variance_ - est.explained_variance_)[:count]
        # In the units of X or of the scale; of rows that do not vary rounding is left.
        size = max(
            est.explained_variance_[0], (TOLERANCE * min(unit.max(), _spread(case).max())) ** 2
        )
        moved = np.abs(moved) / size
        _require(moved.max() < 100.0 * TOLERANCE, f"{what}: variances move by {moved.max():.2g}")
    # Where clean rows lie in a subspace, how far out others are is a matter of rounding.
    scores = np.maximum(est.score_samples(case.values), -FARTHEST)
    others = np.maximum(other.score_samples(case.values * units + shift), -FARTHEST)
    moved = np.abs(others - scores) / (1.0 + np.abs(scores))
    _require(moved.max() < 1000.0 * TOLERANCE, f"{what}: scores move by {moved.max():.2g}")


# The command


def run(seed: int) -> tuple[int, str, str]:
    """Return the seed of a case, what came of it, and the lines that show its failure."""
    case = draw(seed)
    failure = failure_of(case)
    outcome = "refused" if case.wrong else "extreme" if case.extreme else "answered"
    return seed, outcome, case.reproduction(failure) if failure else ""


def main(argv: list[str]) -> None:
    arguments = asked(__name__, __doc__, argv, cases=1000, first_seed=0, jobs=1)
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.cases)
    started, outcomes, failures = time.monotonic(), Counter[str](), 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))
        results: Iterator[tuple[int, str, str]] = map(run, seeds)
        if arguments.jobs > 1:
            pool = stack.enter_context(
                ProcessPoolExecutor(arguments.jobs, initializer=partial(threadpool_limits, 1))
            )
            results = pool.map(run, seeds, chunksize=20)
        for _, outcome, failure in results:
            outcomes[outcome] += 1
            if failure:
                failures += 1
                print(f"{failure}\n", flush=True)
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    seconds = time.monotonic() - started
    print(f"{len(seeds)} cases ({told}), {failures} failures, {seconds:.0f} s")
    if failures:
        sys.exit(1)
