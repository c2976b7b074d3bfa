"""Fitted estimators in a file that is safe to open: arrays and JSON, nothing executable.

A model is a zip archive (no compression of its own kind, no pickle) with

``model.json``
    ``format`` ("outweigh model"), ``schema`` (1), ``version`` of the library, ``estimator`` (class
    name), ``parameters``, ``state`` (the fitted attributes) and ``arrays``: for each array its
    dtype, shape and SHA-256.
``checksum``
    The SHA-256 of ``model.json``, in hexadecimal.
``arrays/0.npy``, ``arrays/1.npy``, ...
    The arrays, in NumPy's own format, read with ``allow_pickle=False``.

In ``parameters`` and ``state``, ``{"array": 3}`` stands for the array of that number,
``{"tuple": [...]}`` for a tuple, ``{"record": name, "fields": {...}}`` for one of the library's
own records and ``{"status": name}`` for how a descent ended. Anything else is plain JSON.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import zipfile
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from outweigh import objectives
from outweigh.estimators.base import RobustEstimator
from outweigh.estimators.mean import RobustMean, RobustSparseMean
from outweigh.estimators.pca import RobustPCA, RobustSparsePCA
from outweigh.fit.certificate import Certificate, Moreau
from outweigh.fit.distances import Distances, DistanceScore
from outweigh.fit.groups import Group
from outweigh.fit.noise import Standardizer
from outweigh.fit.score import RowScore
from outweigh.forms import Form
from outweigh.norms.floor import NoiseFloor
from outweigh.protocols import Iterate, Status

__all__ = ["ModelFileError", "load_model", "save_model"]

FORMAT, SCHEMA = "outweigh model", 2

_ESTIMATORS: dict[str, type[RobustEstimator]] = {
    cls.__name__: cls for cls in (RobustMean, RobustSparseMean, RobustPCA, RobustSparsePCA)
}
_RECORDS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        Certificate,
        DistanceScore,
        Distances,
        Form,
        Group,
        Iterate,
        Moreau,
        NoiseFloor,
        RowScore,
        Standardizer,
    )
}
_OBJECTIVES: dict[str, Any] = {"mean": objectives.mean, "sparse_mean": objectives.sparse_mean}
_MAX_BYTES = 8_000_000_000


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
    name = type(estimator).__name__
    if _ESTIMATORS.get(name) is not type(estimator):
        raise TypeError(f"estimator: {name} cannot be saved; only {', '.join(_ESTIMATORS)} can")
    if not hasattr(estimator, "offset_"):
        raise ValueError("estimator: is not fitted; call fit first")
    encoder = _Encoder()
    parameters = estimator.get_params(deep=False)
    state = {key: value for key, value in vars(estimator).items() if key not in parameters}
    if not isinstance(state.get("weights_"), np.ndarray):
        # Lazy weights of rows that the file does not hold: `score_samples` tells them again.
        state.pop("weights_", None)
    model = {
        "format": FORMAT,
        "schema": SCHEMA,
        "version": _version(),
        "estimator": name,
        "parameters": {
            key: encoder.encode(value) for key, value in parameters.items() if _storable(value)
        },
        "state": {key: encoder.encode(value) for key, value in state.items()},
    }
    arrays = [_npy(array) for array in encoder.arrays]
    model["arrays"] = [
        {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        for array, data in zip(encoder.arrays, arrays, strict=True)
    ]
    text = json.dumps(model, indent=1, allow_nan=True).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        _write(archive, "model.json", text)
        _write(archive, "checksum", hashlib.sha256(text).hexdigest().encode())
        for number, data in enumerate(arrays):
            _write(archive, f"arrays/{number}.npy", data)


def load_model(source: str | Path | BinaryIO) -> RobustEstimator:
    """Read a fitted estimator from a file that `save_model` wrote.

    Parameters
    ----------
    source : str, Path or binary file

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, or was written by a later version of the format.
    """
    name = str(source) if isinstance(source, str | Path) else "model"
    try:
        with zipfile.ZipFile(source) as archive:
            return _load(archive, name)
    except FileNotFoundError:
        raise ModelFileError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise ModelFileError(f"{name}: is a folder, not a model") from None
    except zipfile.BadZipFile as error:
        raise ModelFileError(
            f"{name}: is not an outweigh model, or is damaged ({error}); models are written by "
            "`outweigh fit --save`"
        ) from error
    except OSError as error:
        raise ModelFileError(f"{name}: cannot be read: {error.strerror or error}") from error


def _load(archive: zipfile.ZipFile, name: str) -> RobustEstimator:
    listed = set(archive.namelist())
    if not {"model.json", "checksum"} <= listed:
        raise ModelFileError(f"{name}: is a zip file, but not an outweigh model")
    if sum(info.file_size for info in archive.infolist()) > _MAX_BYTES:
        raise ModelFileError(f"{name}: claims more than {_MAX_BYTES / 1e9:g} GB")
    text = _read(archive, "model.json", name)
    if hashlib.sha256(text).hexdigest().encode() != _read(archive, "checksum", name).strip():
        raise ModelFileError(f"{name}: is damaged: model.json does not match its checksum")
    try:
        model = json.loads(text)
        if model["format"] != FORMAT:
            raise ModelFileError(f"{name}: is not an outweigh model")
        if model["schema"] != SCHEMA:
            raise ModelFileError(
                f"{name}: was written in schema {model['schema']} by outweigh "
                f"{model['version']}; this version reads schema {SCHEMA}"
            )
        arrays = [
            _array(archive, number, entry, name) for number, entry in enumerate(model["arrays"])
        ]
        decoder = _Decoder(arrays)
        cls = _ESTIMATORS[model["estimator"]]
        estimator = cls(**{key: decoder.decode(v) for key, v in model["parameters"].items()})
        state = {key: decoder.decode(value) for key, value in model["state"].items()}
    except ModelFileError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise ModelFileError(
            f"{name}: is damaged or was not written by outweigh ({what})"
        ) from error
    if any(key.startswith("__") or not key.isidentifier() for key in state):
        raise ModelFileError(f"{name}: is damaged: it sets attributes that no estimator has")
    # Files that say nothing of a sample are of fits on all rows.
    if "subsample_" not in state:
        state |= {"subsample_": None, "_weights_of_sample": None, "_allowance": 0.0}
        state["_n_rows"] = int(state["weights_"].size)
    estimator.__dict__.update(state)
    return estimator


class _Encoder:
    """Turns values into JSON, and collects the arrays on the way."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []

    def encode(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, Status):
            return {"status": value.name}
        if isinstance(value, int | float | np.integer | np.floating):
            return value.item() if isinstance(value, np.generic) else value
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, tuple):
            return {"tuple": [self.encode(item) for item in value]}
        if isinstance(value, list):
            return [self.encode(item) for item in value]
        if dataclasses.is_dataclass(value) and type(value).__name__ in _RECORDS:
            fields = {
                field.name: self.encode(getattr(value, field.name))
                for field in dataclasses.fields(value)
            }
            return {"record": type(value).__name__, "fields": fields}
        return self._objective(value)

    def _array(self, value: NDArray[Any]) -> dict[str, Any]:
        if value.dtype.kind == "O":
            value = value.astype(np.str_)
        self.arrays.append(value)
        return {"array": len(self.arrays) - 1}

    def _objective(self, value: Any) -> dict[str, Any]:
        function = value.func if isinstance(value, partial) else value
        for name, known in _OBJECTIVES.items():
            if function is known:
                options = dict(value.keywords) if isinstance(value, partial) else {}
                return {"objective": name, "options": options}
        raise TypeError(f"cannot be stored in a model file: {type(value).__name__}")


class _Decoder:
    """The way back; knows nothing but the library's own records."""

    def __init__(self, arrays: list[NDArray[Any]]) -> None:
        self._arrays = arrays

    def decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "array" in value:
            return self._arrays[value["array"]]
        if "tuple" in value:
            return tuple(self.decode(item) for item in value["tuple"])
        if "status" in value:
            return Status[value["status"]]
        if "objective" in value:
            function = _OBJECTIVES[value["objective"]]
            options = {str(key): int(number) for key, number in value["options"].items()}
            return partial(function, **options) if options else function
        fields = {key: self.decode(item) for key, item in value["fields"].items()}
        return _RECORDS[value["record"]](**fields)


def _storable(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | np.ndarray | np.generic)


def _array(archive: zipfile.ZipFile, number: int, entry: dict[str, Any], name: str) -> NDArray[Any]:
    data = _read(archive, f"arrays/{number}.npy", name)
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise ModelFileError(f"{name}: is damaged: array {number} does not match its checksum")
    array = np.load(io.BytesIO(data), allow_pickle=False)
    return np.asarray(array)


def _read(archive: zipfile.ZipFile, member: str, name: str) -> bytes:
    try:
        return archive.read(member)
    except KeyError:
        raise ModelFileError(f"{name}: is damaged: {member} is missing") from None
    except Exception as error:
        raise ModelFileError(f"{name}: is damaged: {member}: {error}") from error


def _write(archive: zipfile.ZipFile, member: str, data: bytes) -> None:
    # A fixed time: the same model gives the same bytes.
    info = zipfile.ZipInfo(member, date_time=(1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, data)


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _version() -> str:
    try:
        return version("outweigh")
    except PackageNotFoundError:
        return "unknown"
