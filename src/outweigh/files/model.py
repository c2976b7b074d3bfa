"""Fitted estimators in a file that is safe to open: arrays and JSON, nothing executable.

A model is a zip archive with

``model.json``
    ``format`` ("outweigh model"), ``schema``, ``version`` of the library, ``estimator`` (class
    name), ``parameters`` and ``state`` (the fitted attributes, those of `STATE` below and no
    others).
``arrays/0.npy``, ``arrays/1.npy``, ...
    The arrays, in NumPy's own format, without pickles.

In ``parameters`` and ``state``, ``{"array": 3}`` stands for the array of that number,
``{"tuple": [...]}`` for a tuple, ``{"record": name, "fields": {...}}`` for one of the library's
own records and ``{"status": name}`` for how a descent ended. Anything else is plain JSON.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import EllipsisType, UnionType
from typing import Any, BinaryIO, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from outweigh.estimators.base import RobustEstimator
from outweigh.estimators.mean import RobustMean, RobustSparseMean
from outweigh.estimators.pca import RobustPCA, RobustSparsePCA
from outweigh.files.archive import TooLarge, array_in, check_members, read_member
from outweigh.files.writing import write_file
from outweigh.libraries import version_of
from outweigh.protocols import Status

FORMAT, SCHEMA = "outweigh model", 8

# All that a file holds of a fit: by the name of each attribute the axes of an array (n rows, s rows
# of the sample, d features, k components, m nonzero entries, p pruned rows, i incomplete rows, v
# columns that vary, a directions set aside), which must agree with each other, or "" for what is
# not an array. A change here is a change of SCHEMA.
_FIT = """
    n_features_in_: _n_rows: scale_:d subsample_:s _weights_of_sample:s _allowance: certificate_:
    contamination_: contamination_bound_: objective_: noise_floor_: n_iter_: trace_: offset_:
    _trusted_from: _medians:d _incomplete:i _score: _norm: _pruned:p"""
_MEAN = _FIT + " location_:d"
_PCA = f"""{_FIT} mean_:d components_:kd explained_variance_:k explained_variance_ratio_:k
    n_components_: _units:d singular_values_:k noise_variance_: _distances: _aside:va
    score_cutoff_: orthogonal_cutoff_:"""
_STATE: dict[type[RobustEstimator], str] = {
    RobustMean: _MEAN,
    RobustSparseMean: f"{_MEAN} support_:m n_nonzero_:",
    RobustPCA: _PCA,
    RobustSparsePCA: _PCA,
}
# Not every fit has these: data without names, in memory, weights that are lazy.
_OPTIONAL = "feature_names_in_:d n_passes_: weights_:n covariance_:dd"


def _axes(declared: str) -> dict[str, str]:
    return dict(word.split(":") for word in declared.split())


# The types of a class do not change, and a trace has hundreds of records.
_types: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


def _records(declared: Any) -> set[Any]:
    """Return the dataclasses that values of a type may hold, at any depth."""
    own: set[Any] = {declared} if dataclasses.is_dataclass(declared) else set()
    inside = _types(declared).values() if own else get_args(declared)
    return own.union(*map(_records, inside))


STATE = {cls: _axes(declared) for cls, declared in _STATE.items()}
OPTIONAL = _axes(_OPTIONAL)
_ESTIMATORS = {cls.__name__: cls for cls in STATE}
# The library's own records: those that the attributes of an estimator may hold.
_RECORDS = {
    record.__name__: record
    for cls, declared in STATE.items()
    for key in declared
    for record in _records(_types(cls)[key])
}

# What rows are divided by, in attributes and records: by zero some rows would have no score.
_DIVISORS = """
    scale_ _units scale unit spread spreads variances radius radius_sq limit"""

# Of whole numbers: those of any size would be no numbers to NumPy.
_MOST = np.iinfo(np.int64).max

# Of model.json, which takes several times as much memory when it is parsed.
_MAX_TEXT = 64_000_000


class ModelFileError(ValueError):
    """A file that is not a model, is damaged, or of another kind; the message says which."""


def save_model(estimator: RobustEstimator, target: str | Path | BinaryIO) -> None:
    """Write a fitted estimator to a file.

    Parameters
    ----------
    estimator : RobustMean, RobustSparseMean, RobustPCA or RobustSparsePCA
        Fitted. Parameters that are objects, such as a random state or a covariance estimator, are
        not stored: what was fitted with them is. Nor are ``weights_`` that are a dask array, as
        after a fit of Dask rows on a sample: rows whose score is at least ``offset_`` are those
        of equal weight.
    target : str, Path or binary file
        A file that exists is replaced when the new one is complete, and not before.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from outweigh import RobustMean
    >>> X = np.random.default_rng(0).standard_normal((200, 5))
    >>> est = RobustMean().fit(X)
    >>> file = io.BytesIO()
    >>> save_model(est, file)
    >>> _ = file.seek(0)
    >>> bool(np.all(load_model(file).score_samples(X) == est.score_samples(X)))
    True
    """
    cls = type(estimator)
    if cls not in STATE:
        raise TypeError(f"estimator: must be one of {', '.join(_ESTIMATORS)}; got {cls.__name__}")
    if not hasattr(estimator, "offset_"):
        raise ValueError("estimator: is not fitted; call fit first")
    state = {key: vars(estimator)[key] for key in STATE[cls]}
    state |= {key: vars(estimator)[key] for key in OPTIONAL if key in vars(estimator)}
    if not isinstance(state.get("weights_"), np.ndarray):
        # Lazy weights of rows that the file does not hold: `score_samples` tells them again.
        state.pop("weights_", None)
    _check_state(cls, state)
    parameters = estimator.get_params(deep=False)
    plain = (bool, int, float, str, np.ndarray, np.generic, type(None))
    arrays: list[NDArray[Any]] = []
    model: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "version": version_of("outweigh"),
        "estimator": cls.__name__,
        "parameters": {
            key: _encoded(value, arrays)
            for key, value in parameters.items()
            if isinstance(value, plain)
        },
        "state": {key: _encoded(value, arrays) for key, value in state.items()},
    }
    buffer = io.BytesIO()
    members: dict[str, Any] = {f"arrays/{i}": array for i, array in enumerate(arrays)}
    np.savez_compressed(buffer, **members)
    with zipfile.ZipFile(buffer, "a") as archive:
        # The fixed time of a ZipInfo, as NumPy has it: the same model gives the same bytes.
        text = json.dumps(model, indent=1)
        archive.writestr(zipfile.ZipInfo("model.json"), text, zipfile.ZIP_DEFLATED)
    if isinstance(target, str | Path):
        write_file(target, buffer.getvalue())
    else:
        target.write(buffer.getvalue())


def load_model(source: str | Path | BinaryIO, *, max_gigabytes: float = 1.0) -> RobustEstimator:
    """Read a fitted estimator from a file that `save_model` wrote.

    Parameters
    ----------
    source : str, Path or binary file
    max_gigabytes : float, default=1.0
        A model that holds more when it is decompressed is refused.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, or was written in another schema.

    Examples
    --------
    >>> from outweigh import load_model
    >>> est = load_model("model.outweigh")  # doctest: +SKIP
    >>> est.predict(new_rows)  # doctest: +SKIP
    """
    name = str(source) if isinstance(source, str | Path) else "model"
    try:
        with zipfile.ZipFile(source) as archive:
            check_members(archive, 1e9 * max_gigabytes)
            return _load(archive)
    except Exception as error:
        raise ModelFileError(f"{name}: {_reason(error, max_gigabytes)}") from error


def _reason(error: Exception, max_gigabytes: float) -> str:
    """Return why a model could not be read, in words."""
    if isinstance(error, ModelFileError):
        return str(error)
    if isinstance(error, TooLarge):
        return (
            f"holds more than {max_gigabytes:g} GB when it is decompressed; if you trust it, "
            "load_model(..., max_gigabytes=...) in Python takes more"
        )
    if isinstance(error, zipfile.BadZipFile):
        return (
            f"is not an outweigh model, or is damaged ({error}); models are written by "
            "`outweigh fit --save`"
        )
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    return f"is damaged or was not written by outweigh ({type(error).__name__}: {error})"


def _load(archive: zipfile.ZipFile) -> RobustEstimator:
    if "model.json" not in archive.namelist():
        raise ModelFileError("is a zip file, but not an outweigh model")
    if archive.getinfo("model.json").file_size > _MAX_TEXT:
        raise TooLarge("model.json")
    model = json.loads(read_member(archive, "model.json").getvalue())
    if model["format"] != FORMAT:
        raise ModelFileError("is not an outweigh model")
    if model["schema"] != SCHEMA:
        other = f"schema {model['schema']} by outweigh {model['version']}"
        raise ModelFileError(f"was written in {other}; this version reads schema {SCHEMA}")

    # Once each: many names of one large array take no more memory than it does.
    @cache
    def array(number: int) -> NDArray[Any]:
        found = array_in(read_member(archive, f"arrays/{number}.npy"))
        _refuse_strange(found)
        return found

    cls = _ESTIMATORS[model["estimator"]]
    estimator = cls(**{key: _decoded(value, array) for key, value in model["parameters"].items()})
    if set(model["state"]) - set(OPTIONAL) != set(STATE[cls]):
        raise ValueError(f"it sets attributes that {cls.__name__} has not, or lacks some it has")
    state = {key: _decoded(value, array) for key, value in model["state"].items()}
    _check_state(cls, state)
    _check_types(cls, state)
    estimator._validate_params()
    estimator.__dict__.update(state)
    # Records inside of the state may still contradict each other: then no row can be scored. What
    # fits two numbers of rows fits any.
    for n in (2, 3):
        rows = np.repeat(np.arange(float(n))[:, None], estimator.n_features_in_, axis=1)
        scores = estimator._score(rows)
        with np.errstate(all="ignore"):
            # Of rows as far out as these may be, reasons are beyond floating point.
            estimator._score.contributions(rows)
        if scores.shape != (n,) or not np.isfinite(scores - estimator.offset_).all():
            raise ValueError("it gives scores that are not finite")
    return estimator


def _check_state(cls: type[RobustEstimator], state: dict[str, Any]) -> None:
    """Refuse arrays whose shapes contradict each other, and public numbers that are not finite."""
    sizes = {"n": state["_n_rows"], "d": state["n_features_in_"]}
    for key, axes in {**STATE[cls], **OPTIONAL}.items():
        value = state.get(key)
        if key not in state or (value is None and key not in OPTIONAL):
            continue
        shape = np.shape(value) if isinstance(value, np.ndarray) else ()
        if len(shape) != len(axes) or any(
            sizes.setdefault(axis, size) != size for axis, size in zip(axes, shape, strict=True)
        ):
            raise ValueError(f"{key} has the shape {shape}")
        # Inside, infinite is how a law without heavy tails, or a cut that no row fails, is said.
        if key.endswith("_") and isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{key} is {value}")


def _check_types(cls: type, values: Mapping[str, Any]) -> None:
    """Refuse values of other types than a class declares for its attributes."""
    for key, declared in _types(cls).items():
        if key in values and not _is(values[key], declared):
            raise ValueError(f"{key} of {cls.__name__} is not of the type {declared}")
    for key in values.keys() & set(_DIVISORS.split()):
        if np.any(values[key] <= 0.0):
            raise ValueError(f"{key} of {cls.__name__} is not positive")


def _is(value: Any, declared: Any) -> bool:
    kind, inside = get_origin(declared), get_args(declared)
    if kind is UnionType:
        return any(_is(value, one) for one in inside)
    if kind is tuple:
        each = inside[:1] * len(value) if isinstance(inside[-1], EllipsisType) else inside
        return isinstance(value, tuple) and len(value) == len(each) and all(map(_is, value, each))
    if kind is np.ndarray and isinstance(value, np.ndarray):
        (scalar,) = get_args(inside[1])
        return scalar is Any or np.issubdtype(value.dtype, scalar)
    if declared is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and not math.isnan(value)
    return declared is Any or isinstance(value, kind or declared)


def _encoded(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """Return a value as JSON; append the arrays in it to `arrays`."""
    if value is None or isinstance(value, bool | str | int | float):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Status):
        return {"status": value.name}
    if isinstance(value, np.ndarray):
        value = value.astype(np.str_) if value.dtype.kind == "O" else value
        _refuse_strange(value)
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, tuple):
        return {"tuple": [_encoded(item, arrays) for item in value]}
    if type(value) in _RECORDS.values():
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        encoded = {key: _encoded(item, arrays) for key, item in fields.items()}
        return {"record": type(value).__name__, "fields": encoded}
    raise TypeError(f"cannot be stored in a model file: {type(value).__name__}")


def _decoded(value: Any, array: Callable[[int], NDArray[Any]]) -> Any:
    """Return what was encoded; nothing but the library's own records can come of it."""
    if isinstance(value, list):
        raise ValueError("a list, which is never written")
    if isinstance(value, int) and abs(value) > _MOST:
        raise ValueError("a number of more digits than any that is written")
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return array(value["array"])
    if "tuple" in value:
        return tuple(_decoded(item, array) for item in value["tuple"])
    if "status" in value:
        return Status[value["status"]]
    fields = {key: _decoded(item, array) for key, item in value["fields"].items()}
    cls = _RECORDS[value["record"]]
    _check_types(cls, fields)
    return cls(**fields)


def _refuse_strange(array: NDArray[Any]) -> None:
    """Refuse an array of other things than finite numbers or text, written or read."""
    kind = array.dtype.kind
    if kind not in "fiubU" or (kind == "f" and not np.isfinite(array).all()):
        raise ValueError(f"an array of {array.dtype} does not hold finite numbers or text alone")
