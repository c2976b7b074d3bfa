"""Tables that do not fit into memory, as Dask arrays that are read a part at a time."""

from __future__ import annotations

import glob
import logging
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outweigh.files.dialect import HEAD, encoding_of, read_header, recognise
from outweigh.files.table import (
    NAMED,
    DataError,
    Found,
    Table,
    Wanted,
    is_id,
    listed,
    named,
    one_line,
    refuse_other_arrays,
    table_from,
)
from outweigh.libraries import library

logger = logging.getLogger("outweigh")

# Of float64, in one part of an array on disk.
_BYTES_AT_A_TIME = 64 * 2**20

# Characters of an error.
_SAID = 400

_NEEDS = "--scheduler: needs"


@contextmanager
def on_scheduler(scheduler: str) -> Iterator[None]:
    """Compute on threads, on processes, or on the cluster at an address.

    Parameters
    ----------
    scheduler : str
        "threads", "processes", or the address of a scheduler of dask.distributed, such as
        ``tcp://10.0.0.1:8786``.

    Raises
    ------
    DataError
        If nothing answers at the address.
    """
    dask = library("dask", _NEEDS)
    if scheduler in ("threads", "processes"):
        with dask.config.set(scheduler=scheduler), _told_of_tasks():
            yield
        return
    try:
        client = library("distributed", _NEEDS).Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise DataError(
            f"--scheduler: {scheduler}: no scheduler answers there ({one_line(error)}); give "
            "threads, processes, or an address such as tcp://10.0.0.1:8786"
        ) from error
    with client:
        yield


def _told_of_tasks(interval: float = 1.0) -> AbstractContextManager[object]:
    """Tell the logger now and then how much of the present pass is done.

    Parameters
    ----------
    interval : float, default=1.0
        Seconds between messages.
    """
    last = [monotonic()]

    def after_task(key: object, result: object, graph: object, state: Any, worker: object) -> None:
        now = monotonic()
        if now - last[0] >= interval:
            last[0] = now
            done = len(state["finished"])
            left = sum(len(state[part]) for part in ("ready", "waiting", "running"))
            share = 100.0 * done / max(done + left, 1)
            logger.info("%.0f%% of it done", share, extra={"a_pass": "goes on"})

    callbacks = library("dask.callbacks", _NEEDS)
    callback: AbstractContextManager[object] = callbacks.Callback(posttask=after_task)
    return callback


def open_table(source: str, **options: Any) -> Table:
    """Open files as one table whose values are a Dask array, chunked along the rows.

    Parameters
    ----------
    source : str
        CSV, TSV or Parquet files, also many (``part-*.parquet``) and remote (``s3://...``); a
        ``.npy`` file; a ``.zarr`` folder; or ``file.h5::dataset``.
    **options
        As in `read_table`. How text is written is recognised from the beginning of the first file.

    Returns
    -------
    Table
        The names of the rows are in memory, the values are not.
    """
    path, wanted = source.partition("::")[0], Wanted(**options)
    with named(source):
        if source == "-":
            raise DataError("standard input cannot be read in parts; leave --scheduler out")
        if "://" not in path and not glob.glob(path):
            raise DataError("no such file")
        try:
            if "::" in source or source.rstrip("/").endswith((".npy", ".zarr")):
                wanted.refuse_writing()
                found = _from_array(_array(source))
            else:
                found = _from_frame(*_frame(source, wanted))
            return table_from(found, source, wanted)
        except DataError:
            raise
        except (OSError, EOFError, ValueError, RuntimeError) as error:
            raise DataError(f"cannot be read: {said_by_dask(error)}") from error


def said_by_dask(error: BaseException) -> str:
    """Return on one line what went wrong in a part, without Dask's tables, advice and tracebacks.

    Parameters
    ----------
    error : BaseException
        From a pass over the parts; one of a process carries its traceback in its text.
    """
    text = str(getattr(error, "exception", error))
    if not text.startswith("Mismatched dtypes found"):
        return " ".join(text.split())[:_SAID] or type(error).__name__
    changes = re.findall(r"^\| (.+?) +\| (\S+) +\| (\S+) +\|$", text, re.MULTILINE)
    # The first line names the columns of the table.
    said = [f"column {name!r} is {first} at first, {later} later" for name, later, first in changes]
    said = said[1 : NAMED + 1] or ["the type of a column changes on the way"]
    reason = re.search(r"^- .+\n +\w+\((['\"])(.+)\1\)$", text, re.MULTILINE)
    cause = f" ({reason[2]})" if reason else ""
    return f"{', '.join(said)}{cause}; correct it, or choose --columns without it"


def _from_array(array: Any) -> Found:
    places = {f"x{j}": j for j in range(array.shape[1])}

    def numbers(columns: list[str]) -> Any:
        # Not for all columns: it would copy each part in each pass.
        chosen = [places[column] for column in columns]
        return array if chosen == list(places.values()) else array[:, chosen]

    def cells(column: str) -> Any:
        return array[:, places[column]].compute()

    return Found(list(places), lambda column: None, cells, numbers)


def _array(source: str) -> Any:
    """Return an array on disk as a Dask array of parts of all columns."""
    da = library("dask.array", _NEEDS)
    name, _, dataset = source.partition("::")
    path = str(Path(name).resolve())
    if "::" in source:
        stored = _hdf5(path, dataset)
    elif name.rstrip("/").endswith(".zarr"):
        library("zarr", _NEEDS)
        found = da.from_zarr(source)
        refuse_other_arrays(found.shape, found.dtype)
        return found.rechunk({1: -1})
    else:
        opened = np.load(path, mmap_mode="r", allow_pickle=False)
        stored = _OnDisk(path, None, opened.shape, opened.dtype)
    refuse_other_arrays(stored.shape, stored.dtype)
    rows = max(1, _BYTES_AT_A_TIME // (8 * stored.shape[1]))
    return da.from_array(stored, chunks=(rows, -1))


@dataclass(frozen=True)
class _OnDisk:
    """An array in a .npy or HDF5 file, which workers open anew for each part."""

    path: str
    dataset: str | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    ndim = 2

    def __getitem__(self, part: Any) -> NDArray[Any]:
        if self.dataset is None:
            return np.array(np.load(self.path, mmap_mode="r", allow_pickle=False)[part])
        with library("h5py", _NEEDS).File(self.path, "r") as file:
            return np.asarray(file[self.dataset][part])


def _hdf5(path: str, dataset: str) -> _OnDisk:
    h5py = library("h5py", _NEEDS)
    with h5py.File(path, "r") as file:
        found = file.get(dataset) if dataset else file
        if found is None:
            raise DataError(f"has no dataset called {dataset!r}")
        if not isinstance(found, h5py.Dataset):
            inside = [repr(name) for name in found] if hasattr(found, "keys") else []
            group = f" but a group of {listed(inside)}" if inside else ""
            raise DataError(f"is not a dataset{group}")
        # A dataset that holds nothing has no shape at all.
        return _OnDisk(path, dataset, found.shape or (), found.dtype)


def _from_frame(frame: Any, recognised: list[str]) -> Found:
    def not_numeric(column: str) -> str | None:
        dtype = frame[column].dtype
        return None if dtype.kind in "fiu" else f"{dtype}, no numbers"

    def numbers(columns: list[str]) -> Any:
        # Lengths of the parts of the array and not of the frame, whose parts Dask may merge.
        return frame[columns].astype(np.float64).to_dask_array().compute_chunk_sizes()

    names = [str(column) for column in frame.columns]
    return Found(
        names, not_numeric, lambda column: frame[column].compute(), numbers, None, recognised
    )


def _frame(source: str, wanted: Wanted) -> tuple[Any, list[str]]:
    """Return the files as one frame of Dask, and what was recognised of them."""
    dd = library("dask.dataframe", _NEEDS)
    name = source.lower().rstrip("/")
    try:
        if name.endswith((".parquet", ".pq")) or Path(source).is_dir():
            wanted.refuse_writing()
            library("pyarrow", "reading Parquet files needs")
            return dd.read_parquet(source), []
        options, recognised = _written(source, wanted)
        options["na_values"] = wanted.words
        if name.endswith((".gz", ".bz2", ".xz", ".zst")):
            # A compressed file cannot be entered in the middle.
            options["blocksize"] = None
        types = dd.read_csv(source, **options).dtypes
        first = str(types.index[0])
        ids = wanted.id_column or (first if is_id(first) else None)
        # Whole numbers that name the rows: 7 is not called 7.0.
        whole = {ids: types[ids]} if ids in types and types[ids].kind in "iu" else {}
        # Fractions and gaps may follow where a column begins with whole numbers.
        return dd.read_csv(source, assume_missing=True, dtype=whole, **options), recognised
    except (DataError, ImportError):
        raise
    except Exception as error:
        raise DataError(f"cannot be opened by Dask: {one_line(error)}") from error


def _written(source: str, wanted: Wanted) -> tuple[dict[str, Any], list[str]]:
    """Return how the files are written, for pandas, and what was recognised; check their headers.

    The names are looked at as they are written: pandas would make them differ.
    """
    opened = partial(library("fsspec", _NEEDS).open_files, source, compression="infer")
    with opened(mode="rb")[0] as first:
        head = first.read(HEAD)
    encoding = encoding_of([head], wanted.encoding)
    if encoding.startswith("utf-16"):
        raise DataError(f"text in {encoding} cannot be read in parts; convert it to UTF-8 first")
    dialect = recognise(head, encoding, source, wanted)
    if dialect.units is not None:
        raise DataError(f"{dialect.recognised[-1]}, to be removed before it is read in parts")
    files = opened(mode="rt", encoding=encoding, newline="")
    headers = []
    for file in files:
        with file as lines:
            headers.append(read_header(lines, dialect.separator))
        if headers[-1] != headers[0]:
            # Dask would read the columns of all files by their places in the first.
            one, other = Path(files[0].path).name, Path(file.path).name
            raise DataError(f"{other} has other columns than {one}; give files of one header")
    options = {"sep": dialect.separator, "decimal": dialect.decimal, "encoding": encoding}
    return options, dialect.recognised
