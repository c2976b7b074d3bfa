"""Tables that do not fit into memory, as Dask arrays that are read a part at a time."""

from __future__ import annotations

import csv
import glob
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outweigh.io.files import MORE_CELLS, check_header
from outweigh.io.needs import NAMED, DataError, listed, one_line, refuse_unknown
from outweigh.io.table import ID_NAMES, Table

__all__ = ["on_scheduler", "open_table", "said_by_dask"]

logger = logging.getLogger("outweigh")

# Of float64, in one part of an array on disk.
_BYTES_AT_A_TIME = 64 * 2**20

# Characters of an error.
_SAID = 400


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
        If Dask is not installed or nothing answers at the address.
    """
    dask = _dask("dask")
    if scheduler in ("threads", "processes"):
        with dask.config.set(scheduler=scheduler), _told_of_tasks():
            yield
        return
    distributed = _dask("distributed")
    try:
        client = distributed.Client(scheduler, timeout="10s")
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

    callback: AbstractContextManager[object] = _dask("dask.callbacks").Callback(posttask=after_task)
    return callback


def open_table(
    source: str,
    *,
    columns: Sequence[str] | None = None,
    id_column: str | None = None,
    drop_missing: bool = False,
    delimiter: str | None = None,
    decimal: str = ".",
    min_rows: int = 2,
) -> Table:
    """Open files as one table whose values are a Dask array, chunked along the rows.

    Parameters
    ----------
    source : str
        CSV, TSV or Parquet files, also many (``part-*.parquet``) and remote (``s3://...``); a
        ``.npy`` file; a ``.zarr`` folder; or ``file.h5::dataset``.
    columns, id_column, drop_missing, delimiter, decimal, min_rows
        As in `read_table`. A first column called id or index names the rows, without a look at
        whether its values are distinct.

    Returns
    -------
    Table
        The names of the rows are in memory, the values are not.
    """
    _refuse_missing(source)
    try:
        if _is_array(source):
            values = _array(source)
            names = [f"x{j}" for j in range(values.shape[1])]
            refuse_unknown(source, [*(columns or []), *([id_column] if id_column else [])], names)
            chosen = names if columns is None else list(columns)
            if columns is not None:
                # Not for all columns: it would copy each part in each pass.
                places = {name: j for j, name in enumerate(names)}
                values = values[:, [places[name] for name in chosen]]
            labels, id_column = None, None
            dropped: list[tuple[str, str]] = []
        else:
            frame = _frame(source, delimiter, decimal, id_column)
            values, labels, chosen, dropped, id_column = _numbers(frame, source, columns, id_column)
        return _checked(values, labels, chosen, dropped, id_column, source, drop_missing, min_rows)
    except DataError:
        raise
    except (OSError, EOFError, ValueError, RuntimeError) as error:
        raise DataError(f"{source}: cannot be read: {said_by_dask(error)}") from error


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


def _refuse_missing(source: str) -> None:
    path = source.partition("::")[0]
    if source == "-":
        raise DataError("-: standard input cannot be read in parts; name a file, or leave "
                        "--scheduler out")  # fmt: skip
    if "://" not in path and not glob.glob(path):
        raise DataError(f"{source}: no such file")


def _is_array(source: str) -> bool:
    return "::" in source or source.rstrip("/").endswith((".npy", ".zarr"))


def _array(source: str) -> Any:
    """Return an array on disk; parts are read where they are needed, by name of the file."""
    if "::" in source:
        name, _, dataset = source.partition("::")
        h5py = _dask("h5py")
        with h5py.File(name, "r") as file:
            found = file.get(dataset) if dataset else file
            if found is None:
                raise DataError(f"{source}: {name} has no dataset called {dataset!r}")
            if not isinstance(found, h5py.Dataset):
                raise DataError(f"{source}: is not a dataset{_within(found)}")
            # A dataset that holds nothing has no shape at all.
            held: Any = () if found.shape is None else found.shape
            shape, dtype = held, found.dtype
        path = str(Path(name).resolve())

        def read(start: int, stop: int) -> NDArray[Any]:
            with h5py.File(path, "r") as file:
                return np.asarray(file[dataset][start:stop])
    elif source.rstrip("/").endswith(".zarr"):
        _dask("zarr")
        found = _dask("dask.array").from_zarr(source)
        _refuse_shape(source, found.shape, found.dtype)
        return found.rechunk({1: -1})
    else:
        path = str(Path(source).resolve())
        stored = _mapped(path, source)
        shape, dtype = stored.shape, stored.dtype

        def read(start: int, stop: int) -> NDArray[Any]:
            return np.array(np.load(path, mmap_mode="r", allow_pickle=False)[start:stop])

    _refuse_shape(source, shape, dtype)
    return _from_parts(read, shape, dtype)


def _within(group: Any) -> str:
    names = list(group) if hasattr(group, "keys") else []
    return f" but a group of {listed(names)}" if names else ""


def _mapped(path: str, source: str) -> NDArray[Any]:
    try:
        return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except ValueError as error:
        raise DataError(f"{source}: cannot be read as .npy: {one_line(error)}") from error


def _from_parts(
    read: Callable[[int, int], NDArray[Any]], shape: tuple[int, int], dtype: np.dtype[Any]
) -> Any:
    da, delayed = _dask("dask.array"), _dask("dask").delayed(read, pure=True)
    n, d = shape
    step = max(1, _BYTES_AT_A_TIME // (8 * d))
    parts = [
        da.from_delayed(
            delayed(start, min(start + step, n)), (min(start + step, n) - start, d), dtype
        )
        for start in range(0, n, step)
    ]
    return da.concatenate(parts)


def _refuse_shape(source: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if len(shape) != 2 or 0 in shape or dtype.kind not in "fiu":
        raise DataError(
            f"{source}: needs an array of numbers with two dimensions, rows and columns; got "
            f"{dtype} of shape {shape}"
        )


def _frame(source: str, delimiter: str | None, decimal: str, id_column: str | None) -> Any:
    dd = _dask("dask.dataframe")
    name = source.lower().rstrip("/")
    try:
        if name.endswith((".parquet", ".pq")) or Path(source).is_dir():
            return dd.read_parquet(source)
        separator = delimiter or ("\t" if name.endswith((".tsv", ".tab")) else ",")
        compressed = name.endswith((".gz", ".bz2", ".xz", ".zst"))
        # A compressed file cannot be entered in the middle.
        options: dict[str, Any] = {"sep": separator, "decimal": decimal}
        if compressed:
            options["blocksize"] = None
        check_header(_header(source, separator), source, separator)
        named = _id_type(dd.read_csv(source, **options), id_column)
        # Fractions and gaps may follow where a column begins with whole numbers.
        return dd.read_csv(source, assume_missing=True, dtype=named, **options)
    except DataError:
        raise
    except ImportError as error:
        raise DataError(
            f"{source}: reading it needs {one_line(error)}; pip install 'outweigh[dask,io]'"
        ) from error
    except Exception as error:
        raise DataError(f"{source}: cannot be opened by Dask: {one_line(error)}") from error


def _header(source: str, separator: str) -> list[str]:
    """Return the names in the files as they are written; pandas would make them differ."""
    files = _dask("fsspec").open_files(
        source, "rt", compression="infer", encoding="utf-8-sig", newline=""
    )
    header = _names_in(files[0], source, separator)
    for file in files[1:]:
        if _names_in(file, source, separator) != header:
            # Dask would read the columns of all files by their places in the first.
            raise DataError(
                f"{source}: {Path(file.path).name} has other columns than "
                f"{Path(files[0].path).name}; give files of one header"
            )
    return header


def _names_in(opened: Any, source: str, separator: str) -> list[str]:
    with opened as file:
        lines = csv.reader(file, delimiter=separator)
        filled = (cells for cells in lines if len(cells) > 1 or "".join(cells).strip())
        header, row = next(filled, []), next(filled, [])
    if not header:
        raise DataError(f"{source}: the file is empty")
    if len(row) > len(header) > 1:
        # Dask would take the first cell for the name of the row and shift the others.
        raise DataError(MORE_CELLS.format(source))
    return header


def _id_type(frame: Any, id_column: str | None) -> dict[str, Any]:
    """Return the type of a column of whole numbers that name the rows; 7 is not called 7.0."""
    first = str(frame.columns[0])
    if id_column is None and first.strip().lower() in ID_NAMES:
        id_column = first
    return {
        c: frame[c].dtype for c in frame.columns if c == id_column and frame[c].dtype.kind in "iu"
    }


def _numbers(
    frame: Any, source: str, columns: Sequence[str] | None, id_column: str | None
) -> tuple[Any, list[str] | None, list[str], list[tuple[str, str]], str | None]:
    """Return the numeric columns of a Dask frame, by their types, and the names of the rows."""
    known = [str(column) for column in frame.columns]
    refuse_unknown(source, [*(columns or []), *([id_column] if id_column else [])], known)
    if id_column is None and len(known) > 1 and known[0].strip().lower() in ID_NAMES:
        id_column = known[0]
    wanted = [c for c in (known if columns is None else columns) if c != id_column]
    chosen = [c for c in wanted if frame[c].dtype.kind in "fiu"]
    dropped = [(c, f"{frame[c].dtype}, no numbers") for c in wanted if c not in chosen]
    if columns is not None and dropped:
        name, reason = dropped[0]
        raise DataError(f"{source}: column {name!r} cannot be used: it holds {reason}")
    if not chosen:
        held = ", ".join(f"{name!r} ({reason})" for name, reason in dropped[:NAMED])
        raise DataError(f"{source}: no numeric column; found {held}")
    labels = None
    if id_column is not None:
        labels = [str(label) for label in frame[id_column].compute()]
    # Lengths of the parts of the array and not of the frame, whose parts Dask may merge.
    values = frame[chosen].astype(np.float64).to_dask_array().compute_chunk_sizes()
    return values, labels, chosen, dropped, id_column


def _checked(
    values: Any,
    labels: list[str] | None,
    columns: list[str],
    dropped: list[tuple[str, str]],
    id_column: str | None,
    source: str,
    drop_missing: bool,
    min_rows: int,
) -> Table:
    da = _dask("dask.array")
    logger.info("%s: looking for missing values", source, extra={"a_pass": "begins"})
    bad = np.asarray((~da.isfinite(values)).any(axis=1))
    numbered = labels is None
    names = labels or [str(number) for number in range(1, bad.size + 1)]
    if bad.any() and not drop_missing:
        rows = np.flatnonzero(bad)
        shown = ", ".join(names[i] for i in rows[:NAMED]) + (", ..." if rows.size > NAMED else "")
        raise DataError(
            f"{source}: {rows.size} rows have missing or infinite values ({shown}); leave them "
            "out with --drop-missing"
        )
    if bad.any():
        values = values[~bad]
        names = [name for name, left in zip(names, bad, strict=True) if not left]
    if len(names) < min_rows:
        raise DataError(f"{source}: {len(names)} usable rows; at least {min_rows} are needed")
    return Table(values, columns, names, id_column, dropped, int(bad.sum()), source, numbered)


def _dask(module: str) -> ModuleType:
    try:
        return __import__(module, fromlist=["_"])
    except ImportError as error:
        package = module.partition(".")[0]
        extra = "'outweigh[dask,io]'" if package in ("dask", "distributed") else package
        raise DataError(f"--scheduler: needs {package}: pip install {extra}") from error
