"""``outweigh fit`` and ``outweigh score``: from a file to the rows not to trust, and why."""

from __future__ import annotations

import argparse
import io
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shlex import join
from textwrap import indent
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from outweigh.cli.arguments import OK
from outweigh.cli.choice import choose
from outweigh.cli.outputs import check_outputs, result_csv, result_json
from outweigh.cli.progress import progress_of_fit
from outweigh.estimators.base import RobustEstimator
from outweigh.estimators.explanation import Explanation
from outweigh.estimators.input import filled
from outweigh.estimators.mean import RobustMean, RobustSparseMean
from outweigh.estimators.pca import RobustPCA, RobustSparsePCA
from outweigh.files.frames import named_frame, rows_csv
from outweigh.files.model import load_model, save_model
from outweigh.files.parts import on_scheduler, open_table, said_by_dask
from outweigh.files.reading import BINARY, read_table
from outweigh.files.table import DataError, Table, listed
from outweigh.files.writing import write_file
from outweigh.protocols import Array
from outweigh.report import Fitted, build_fit_report

_SHOWN = 10
_ESTIMATORS: dict[str, type[RobustEstimator]] = {
    "mean": RobustMean,
    "sparse-mean": RobustSparseMean,
    "pca": RobustPCA,
    "sparse-pca": RobustSparsePCA,
}


def fit(arguments: argparse.Namespace) -> int:
    """Fit an estimator to the rows of a file."""
    kind = arguments.kind
    if arguments.n_nonzero is not None and not kind.startswith("sparse-"):
        sparse = "sparse-mean" if kind == "auto" else f"sparse-{kind}"
        raise DataError(f"--n-nonzero: has no meaning for {kind}; use {sparse}")
    if arguments.n_components is not None and not kind.endswith("pca"):
        raise DataError(f"--components: has no meaning for {kind}; it is for pca and sparse-pca")
    # What it refuses is said before anything is read.
    _estimator(arguments, "auto")._validate_params()
    asked = check_outputs(
        arguments, out=(".json", ".csv"), weights=(".csv",), report=(".html", ".htm"), save=()
    )
    with _passes(arguments):
        fitted, seconds, table = _fitted(arguments)
        summary = _summary(fitted, seconds)
        files = _files(arguments, fitted, table)
    return _tell(summary, files, asked)


def score(arguments: argparse.Namespace) -> int:
    """Score the rows of a file with a saved model."""
    asked = check_outputs(arguments, out=(".csv",))
    with _passes(arguments):
        model = load_model(arguments.model)
        names = [str(name) for name in getattr(model, "feature_names_in_", ())]
        table = _rows(arguments, columns=names or None, min_rows=1)
        rows: Any = table.values
        if names and table.lazy:
            # The columns were chosen by name; a Dask array does not carry the names on.
            del model.feature_names_in_
        elif names:
            rows = named_frame(table.values, table.columns, table.labels)
        found = model.explain(rows)
        files: dict[str, str | bytes] = {}
        if arguments.out:
            scores = np.asarray(model.score_samples(rows))
            files[arguments.out] = rows_csv(table.labels, table.id_column, found, score=scores)
    n = len(table.labels)
    summary = [
        f"{type(model).__name__} from {arguments.model} on {table.source}: {n:,} rows",
        f"  the model's verdict: {model.certificate_.verdict}",
        *(f"  {note}" for note in _notes(table)),
        f"\n{len(found):,} of {n:,} rows ({len(found) / n:.1%}) are distrusted.",
        *_reasons(found, [table.labels[i] for i in found.rows[:_SHOWN]]),
    ]
    return _tell(summary, files, asked)


def _tell(summary: list[str], files: dict[str, str | bytes], asked: list[str]) -> int:
    try:
        # Files first: whoever reads the summary may leave, as `| head` does.
        for name, data in files.items():
            write_file(name, data)
    finally:
        print("\n".join(summary))
    if asked:
        print(f"\nWritten: {', '.join(asked)}")
    # Not sys.stdout.flush(): there is none where the caller has closed it.
    print(end="", flush=True)
    return OK


@contextmanager
def _passes(arguments: argparse.Namespace) -> Iterator[None]:
    """Show how far it is, and read the parts of FILE where --scheduler says.

    Raises
    ------
    DataError
        With one line, where a pass over the parts failed.
    """
    with progress_of_fit(sys.stderr):
        if not arguments.scheduler:
            yield
            return
        try:
            with on_scheduler(arguments.scheduler):
                yield
        except Exception as error:
            # Other errors, as those of the estimators, are written for a person.
            of_a_part = (
                isinstance(error, RuntimeError | OSError)
                or hasattr(error, "exception")
                or type(error).__module__.partition(".")[0] == "distributed"
                or str(error).startswith("Mismatched dtypes")
            )
            if not of_a_part:
                raise
            raise DataError(f"{arguments.file}: {said_by_dask(error)}") from error


# Options of how files are written, and of what is read of FILE.
_WRITTEN = ("delimiter", "decimal", "encoding", "na")
_READ = (*_WRITTEN, "columns", "exclude", "id_column", "missing")
# Options that are parameters of the estimators.
_ESTIMATE = ("contamination", "n_components", "n_nonzero", "scale", "subsample")


def _options(arguments: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    """Return some options of a command by name; not each command has all."""
    return {name: value for name, value in vars(arguments).items() if name in names}


def _rows(arguments: argparse.Namespace, **options: Any) -> Table:
    """Read FILE as the options say; those given here count more."""
    options = {**_options(arguments, _READ), **options}
    if not arguments.scheduler:
        return read_table(arguments.file, **_options(arguments, ("max_gigabytes",)), **options)
    # What --trusted and --covariance name is read as a whole.
    others = {vars(arguments).get(name) for name in ("trusted", "covariance")}
    if "max_gigabytes" in arguments and others <= {None, "none"}:
        raise DataError("--max-gigabytes: has no meaning with --scheduler; leave out one of them")
    return open_table(arguments.file, **options)


def _notes(table: Table) -> list[str]:
    """Return what was recognised, named, left out or dropped on the way, a sentence each."""
    notes = list(table.recognised)
    if table.id_column is not None:
        notes.append(f"rows are named by column {table.id_column!r}")
    elif table.numbered:
        notes.append("rows are numbered from 1 (a header is not counted)")
    if table.dropped:
        shown = listed([f"{name!r} ({why})" for name, why in table.dropped])
        notes.append(f"left out {_counted(len(table.dropped), 'column')}: {shown}")
    if table.n_missing:
        left = _counted(table.n_missing, "row")
        notes.append(f"left out {left} with missing or infinite values")
    return notes


def _fitted(arguments: argparse.Namespace) -> tuple[Fitted, float, Table]:
    table = _rows(arguments)
    chosen = []
    if arguments.kind == "auto":
        arguments.kind, why = choose(table)
        chosen.append(f"auto took {arguments.kind}: {why}")
    estimator = _estimator(arguments, _covariance(arguments, table.columns))
    if arguments.missing == "median" or not table.lazy:
        estimator.set_params(missing=arguments.missing)
    started = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # The verdict says so.
        warnings.simplefilter("ignore", ConvergenceWarning)
        rows = table.values if table.lazy else named_frame(table.values, table.columns)
        estimator.set_params(verbose=True).fit(rows)
    estimator.set_params(verbose=False)
    seconds = time.monotonic() - started
    notes = [
        *chosen,
        *_notes(table),
        *dict.fromkeys(f"warning: {found.message}" for found in caught),
    ]
    if estimator.subsample_ is not None:
        notes.append(
            f"weights were searched on a random sample of {estimator.subsample_.size:,} rows, of "
            "which the verdict speaks; the others are weighted by their scores (see --subsample)"
        )
    found_auto = arguments.kind == "sparse-mean" and estimator.n_nonzero == "auto"
    if found_auto and 2 * (stand_out := estimator.n_nonzero_) > len(table.columns):
        notes.append(
            f"the mean is not sparse about zero: {stand_out:,} of {len(table.columns):,} entries "
            "stand out; subtract a baseline that you know, or fit mean instead of sparse-mean"
        )
    source = "standard input" if table.source == "-" else table.source
    command = join(["outweigh", *arguments.words])
    X = filled(table.values, estimator._medians)
    fitted = Fitted(estimator, X, table.labels, table.columns, source, notes, command)
    return fitted, seconds, table


def _estimator(arguments: argparse.Namespace, covariance: Array | str | None) -> RobustEstimator:
    # Where one is not given, the estimator knows its default.
    given: dict[str, Any] = {
        name: None if value in ("none", "all") else value
        for name, value in _options(arguments, _ESTIMATE).items()
        if value is not None
    }
    return _ESTIMATORS.get(arguments.kind, RobustMean)(covariance=covariance, **given)


def _covariance(arguments: argparse.Namespace, columns: list[str]) -> Array | str | None:
    """Return the covariance of clean rows: "auto" if nobody gave one, None if uncorrelated."""
    file = arguments.covariance or arguments.trusted
    if not file:
        return "auto"
    if arguments.covariance == "none":
        return None
    # What is said of how FILE is written need not hold for a file of another kind.
    names = ("max_gigabytes",) if file.lower().endswith(BINARY) else (*_WRITTEN, "max_gigabytes")
    values = read_table(file, columns=columns, **_options(arguments, names)).values
    if arguments.trusted:
        from sklearn.covariance import LedoitWolf

        return np.asarray(LedoitWolf().fit(values).covariance_)
    return values


def _files(arguments: argparse.Namespace, fitted: Fitted, table: Table) -> dict[str, str | bytes]:
    """Return the content of every file that was asked for."""
    files: dict[str, str | bytes] = {}
    if arguments.out:
        as_json = arguments.out.lower().endswith(".json")
        files[arguments.out] = result_json(fitted) if as_json else result_csv(fitted)
    if arguments.weights:
        known = {"weight": fitted.weights, "score": fitted.scores}
        files[arguments.weights] = rows_csv(
            fitted.labels, table.id_column, fitted.explanation, **known
        )
    if arguments.report:
        files[arguments.report] = build_fit_report(fitted)
    if arguments.save:
        if table.lazy:
            # A Dask array has no names, and rows to be scored are found by them.
            fitted.estimator.feature_names_in_ = np.array(table.columns, dtype=object)
        buffer = io.BytesIO()
        save_model(fitted.estimator, buffer)
        files[arguments.save] = buffer.getvalue()
    return files


def _summary(fitted: Fitted, seconds: float) -> list[str]:
    n, d = fitted.X.shape
    found = fitted.explanation
    lines = [
        f"{fitted.title}: {fitted.source}, {_counted(n, 'row')}, {_counted(d, 'column')} "
        f"({seconds:.1f} s)",
        *(f"  {note}" for note in fitted.notes),
        f"\n{fitted.headline}\n{indent(str(fitted.certificate), '  ')}\n",
    ]
    if not fitted.certificate.clean:
        lines.append(f"{fitted.advice}\n")
    lines += _estimate(fitted)
    if len(found):
        shown = f"{min(len(found), _SHOWN)} of {len(found)}"
        lines.append(f"\nMost distrusted rows ({shown}) and why:")
    return lines + _reasons(found, [str(label) for label in found.labels[:_SHOWN]])


def _estimate(fitted: Fitted) -> list[str]:
    """Return the entries of the estimate that are worth a look, as a table."""
    est = fitted.estimator
    shown = fitted.largest_entries(_SHOWN).tolist()
    lines, after, digits = [], [], ".5g"
    if fitted.is_mean:
        order = "largest entries" if hasattr(est, "support_") else "largest differences first"
        lines.append(f"The estimate beside the plain mean, {order}:")
    else:
        digits = ".4f"
        shares = ", ".join(f"{ratio:.1%}" for ratio in est.explained_variance_ratio_)
        after.append(f"  share of the variance: {shares}")
    names = [_short(fitted.names[j]) for j in shown]
    width = max(map(len, ["column", *names]))
    lines.append(f"  {'column':<{width}}" + "".join(f"  {name:>12}" for name in fitted.estimate))
    for j, name in zip(shown, names, strict=True):
        row = "".join(f"  {values[j]:>12{digits}}" for values in fitted.estimate.values())
        lines.append(f"  {name:<{width}}{row}")
    if len(fitted.names) > len(shown):
        after.append(f"  ... and {len(fitted.names) - len(shown):,} more columns")
    return lines + after


def _reasons(found: Explanation, labels: list[str]) -> list[str]:
    names = [_short(label) for label in labels]
    width = max(map(len, names), default=0)
    return [f"  {name:<{width}}  {_clean(found.reasons(i))}" for i, name in enumerate(names)]


def _clean(text: str) -> str:
    """Return text that cannot move a terminal's cursor, whatever is in a file."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _short(name: str, width: int = 28) -> str:
    """Return a name that fits a column."""
    name = _clean(name)
    return name if len(name) <= width else name[: width - 1] + "…"


def _counted(number: int, what: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> _counted(1, "row"), _counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
