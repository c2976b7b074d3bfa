"""``outweigh fit``: from a file to an estimate, a verdict, and the rows not to trust."""

from __future__ import annotations

import argparse
import io
import shlex
import sys
import time
import warnings
from typing import Any

import numpy as np

from outweigh.cli.exit_codes import OK
from outweigh.cli.outputs import check_outputs, result_csv, result_json, weights_csv, write
from outweigh.cli.progress import sparing_progress
from outweigh.cli.reading import notes_on, read_beside, read_rows, scheduler_of, split_names
from outweigh.cli.text import clean, indent, short
from outweigh.estimators.base import RobustEstimator
from outweigh.estimators.mean import RobustMean, RobustSparseMean
from outweigh.estimators.pca import RobustPCA, RobustSparsePCA
from outweigh.fit_report import Fitted, build_fit_report
from outweigh.io import DataError, Table, named_frame
from outweigh.model_file import save_model
from outweigh.protocols import Array

__all__ = ["fit"]

_ENTRIES = 10
_ROWS = 10


def fit(arguments: argparse.Namespace) -> int:
    """Run the command."""
    outputs = {
        "--out": arguments.out,
        "--weights": arguments.weights,
        "--report": arguments.report,
        "--save": arguments.save,
    }
    check_outputs(outputs, arguments.file, arguments.force)
    _check_options(arguments)
    with scheduler_of(arguments), sparing_progress(sys.stderr):
        _fit(arguments)
    written = [name for name in outputs.values() if name]
    if written:
        print(f"\nWritten: {', '.join(written)}")
    return OK


def _fit(arguments: argparse.Namespace) -> None:
    columns = None if arguments.columns is None else split_names(arguments.columns)
    table = read_rows(arguments, columns)
    estimator = _estimator(arguments, table)
    notes = notes_on(table)
    started = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = table.values if table.lazy else named_frame(table.values, table.columns)
        estimator.set_params(verbose=True).fit(rows)
    estimator.set_params(verbose=False)
    notes += dict.fromkeys(f"warning: {warning.message}" for warning in caught)
    if estimator.subsample_ is not None:
        notes.append(
            f"weights were searched on a random sample of {estimator.subsample_.size:,} rows, of "
            "which the verdict speaks; the others are weighted by their scores (see --subsample)"
        )
    seconds = time.monotonic() - started
    fitted = Fitted(
        estimator,
        table.values,
        table.labels,
        table.columns,
        source="standard input" if table.source == "-" else table.source,
        notes=notes,
        command=_command(arguments),
    )
    try:
        _show(fitted, seconds)
        sys.stdout.flush()
        left: BrokenPipeError | None = None
    except BrokenPipeError as error:
        # The reader of the summary has left, as `| head` does; the files are wanted all the same.
        left = error
    if arguments.out:
        as_json = arguments.out.lower().endswith(".json")
        write(arguments.out, result_json(fitted) if as_json else result_csv(fitted))
    if arguments.weights:
        write(arguments.weights, weights_csv(fitted, table.id_column))
    if arguments.report:
        write(arguments.report, build_fit_report(fitted))
    if arguments.save:
        if table.lazy:
            # A Dask array has no names, and rows to be scored are found by them.
            estimator.feature_names_in_ = np.array(table.columns, dtype=object)
        buffer = io.BytesIO()
        save_model(estimator, buffer)
        write(arguments.save, buffer.getvalue())
    if left is not None:
        raise left


def _check_options(arguments: argparse.Namespace) -> None:
    kind = arguments.kind
    if arguments.n_nonzero != "auto" and not kind.startswith("sparse-"):
        raise DataError(f"--n-nonzero: has no meaning for {kind}; use sparse-{kind}")
    if arguments.components != 1 and not kind.endswith("pca"):
        raise DataError(f"--components: has no meaning for {kind}; it is for pca and sparse-pca")
    if arguments.covariance and arguments.trusted:
        raise DataError("--trusted: give either it or --covariance")


def _estimator(arguments: argparse.Namespace, table: Table) -> RobustEstimator:
    options: dict[str, Any] = {
        "contamination": arguments.contamination,
        "covariance": _covariance(arguments, table),
    }
    if arguments.subsample is not None:
        options["subsample"] = None if arguments.subsample == "all" else arguments.subsample
    if arguments.scale is not None:
        options["scale"] = None if arguments.scale == "none" else arguments.scale
    if arguments.kind == "mean":
        return RobustMean(**options)
    if arguments.kind == "sparse-mean":
        return RobustSparseMean(arguments.n_nonzero, **options)
    if arguments.kind == "pca":
        return RobustPCA(arguments.components, **options)
    return RobustSparsePCA(arguments.components, n_nonzero=arguments.n_nonzero, **options)


def _covariance(arguments: argparse.Namespace, table: Table) -> Array | None:
    if arguments.covariance:
        known = read_beside(arguments, arguments.covariance, table.columns)
        d = len(table.columns)
        if known.values.shape != (d, d):
            raise DataError(
                f"{arguments.covariance}: needs one row and one column for each of the {d} "
                f"columns used; got {known.values.shape[0]} rows"
            )
        return known.values
    if arguments.trusted:
        from sklearn.covariance import LedoitWolf

        trusted = read_beside(arguments, arguments.trusted, table.columns)
        return np.asarray(LedoitWolf().fit(trusted.values).covariance_)
    return None


def _show(fitted: Fitted, seconds: float) -> None:
    n, d = fitted.X.shape
    print(f"{fitted.title}: {fitted.source}, {n:,} rows, {d:,} columns ({seconds:.1f} s)")
    for note in fitted.notes:
        print(f"  {note}")
    print(f"\n{fitted.headline}\n{indent(str(fitted.certificate))}\n")
    if not fitted.certificate.clean:
        print(f"{fitted.advice}\n")
    _show_estimate(fitted)
    found = fitted.explanation
    if len(found):
        print(f"\nMost distrusted rows ({min(len(found), _ROWS)} of {len(found)}) and why:")
        width = max(len(short(str(label))) for label in found.labels[:_ROWS])
        for i in range(min(len(found), _ROWS)):
            print(f"  {short(str(found.labels[i])):<{width}}  {clean(found.reasons(i))}")


def _show_estimate(fitted: Fitted) -> None:
    est = fitted.estimator
    shown = fitted.largest_entries(_ENTRIES).tolist()
    width = max([len(short(fitted.names[j])) for j in shown], default=0)
    width = max(width, len("column"))
    if fitted.is_mean:
        order = "largest entries" if hasattr(est, "support_") else "largest differences first"
        print(f"The estimate beside the plain mean, {order}:")
        print(f"  {'column':<{width}}  {'robust mean':>12}  {'plain mean':>12}")
        for j in shown:
            robust, plain = est.location_[j], fitted.plain_mean[j]
            print(f"  {short(fitted.names[j]):<{width}}  {robust:>12.5g}  {plain:>12.5g}")
    else:
        head = "".join(f"  {f'component {j + 1}':>12}" for j in range(est.components_.shape[0]))
        print(f"  {'column':<{width}}{head}")
        for j in shown:
            row = "".join(f"  {value:>12.4f}" for value in est.components_[:, j])
            print(f"  {short(fitted.names[j]):<{width}}{row}")
        shares = ", ".join(f"{ratio:.1%}" for ratio in est.explained_variance_ratio_)
        print(f"  share of the variance: {shares}")
    left = len(fitted.names) - len(shown)
    if left:
        print(f"  ... and {left:,} more columns")


def _command(arguments: argparse.Namespace) -> str:
    words = ["outweigh", "fit", arguments.kind, arguments.file]
    for option, value, default in (
        ("--columns", arguments.columns, None),
        ("--id-column", arguments.id_column, None),
        ("--delimiter", arguments.delimiter, None),
        ("--decimal", arguments.decimal, "."),
        ("--contamination", arguments.contamination, "auto"),
        ("--n-nonzero", arguments.n_nonzero, "auto"),
        ("--components", arguments.components, 1),
        ("--scale", arguments.scale, None),
        ("--covariance", arguments.covariance, None),
        ("--trusted", arguments.trusted, None),
        ("--subsample", arguments.subsample, None),
        ("--scheduler", arguments.scheduler, None),
    ):
        if value != default:
            words += [option, str(value)]
    if arguments.drop_missing:
        words.append("--drop-missing")
    return shlex.join(words)
