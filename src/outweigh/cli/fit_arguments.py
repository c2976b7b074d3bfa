"""The arguments of ``outweigh fit`` and ``outweigh score``."""

from __future__ import annotations

import argparse
import math
from typing import Any

from outweigh.io import MAX_GIGABYTES

KINDS = ("mean", "sparse-mean", "pca", "sparse-pca")

_FIT = """\
Estimates a mean or principal components from the numeric columns of FILE, and says which rows it
distrusts and why. FILE is CSV, TSV, Parquet, .npy or .npz, or - for standard input."""

_FIT_EPILOG = """\
examples:
  outweigh fit mean measurements.csv --report report.html
  outweigh fit sparse-mean genes.parquet --id-column patient --weights weights.csv
  outweigh fit pca spectra.csv --components 2 --contamination 0.1
  outweigh fit mean old.csv --save model.outweigh && outweigh score model.outweigh new.csv"""

_SCORE = """\
Scores the rows of FILE with a model that `outweigh fit --save` wrote, and says which are to be
distrusted and why."""


def add_fit(commands: Any) -> None:
    """Add ``fit`` to the commands."""
    fit = commands.add_parser(
        "fit",
        help="a robust mean or components from a file, and the rows not to trust",
        description=_FIT,
        epilog=_FIT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    fit.add_argument(
        "kind", choices=KINDS, metavar=f"{{{','.join(KINDS)}}}", help="what to estimate"
    )
    _add_reading(fit)
    what = fit.add_argument_group("the estimate")
    what.add_argument(
        "--contamination",
        type=_share,
        default="auto",
        metavar="SHARE",
        help="the largest share of wrong rows, below 0.5 (default: auto, it is estimated)",
    )
    what.add_argument(
        "--n-nonzero",
        type=_count,
        default="auto",
        metavar="K",
        help="nonzero entries of a sparse estimate (default: auto)",
    )
    what.add_argument(
        "--components",
        type=_number_of,
        default=1,
        metavar="N",
        help="number of principal components (default: 1)",
    )
    what.add_argument(
        "--scale",
        choices=("auto", "mad", "none"),
        default=None,
        help="the noise of each column (default: auto for means, none for components)",
    )
    what.add_argument(
        "--covariance",
        metavar="FILE",
        help="a square table, the covariance of clean rows, where columns are correlated; for "
        "components that of the noise alone",
    )
    what.add_argument(
        "--trusted",
        metavar="FILE",
        help="rows that you trust, with the same columns, whose covariance is used as above; for "
        "components rows of noise alone, such as blank measurements",
    )
    what.add_argument(
        "--subsample",
        type=_rows_searched,
        default=None,
        metavar="ROWS",
        help="the most rows that weights are searched on; of more, a random sample is fitted and "
        "the others are weighted by their scores, `all`: never (default: 1000000)",
    )
    out = fit.add_argument_group("output")
    out.add_argument("--out", metavar="FILE", help="the result, as .json or .csv")
    out.add_argument("--weights", metavar="FILE", help="weight and score of every row, as .csv")
    out.add_argument("--report", metavar="FILE", help="one HTML page with everything")
    out.add_argument("--save", metavar="FILE", help="the fitted model, for `outweigh score`")
    _add_common(out)
    fit.set_defaults(run="fit")


def add_score(commands: Any) -> None:
    """Add ``score`` to the commands."""
    score = commands.add_parser(
        "score",
        help="score new rows with a saved model",
        description=_SCORE,
    )
    score.add_argument("model", metavar="MODEL", help="a file that `outweigh fit --save` wrote")
    _add_reading(score, columns=False)
    out = score.add_argument_group("output")
    out.add_argument("--out", metavar="FILE", help="score and reasons of every row, as .csv")
    _add_common(out)
    score.set_defaults(run="score")


def _add_reading(parser: argparse.ArgumentParser, columns: bool = True) -> None:
    parser.add_argument("file", metavar="FILE", help="the rows; - reads standard input")
    reading = parser.add_argument_group("reading FILE")
    if columns:
        reading.add_argument(
            "--columns", metavar="A,B,...", help="columns to use (default: all numeric ones)"
        )
    reading.add_argument("--id-column", metavar="NAME", help="the column that names the rows")
    reading.add_argument(
        "--drop-missing", action="store_true", help="leave rows with missing values out"
    )
    reading.add_argument(
        "--delimiter", metavar="C", help="between cells (default: a tab for .tsv, else a comma)"
    )
    reading.add_argument(
        "--decimal", metavar="C", default=".", help="in numbers of a text file (default: a point)"
    )
    reading.add_argument(
        "--max-gigabytes",
        type=_gigabytes,
        default=MAX_GIGABYTES,
        metavar="GB",
        help=f"refuse larger files (default: {MAX_GIGABYTES:g})",
    )
    reading.add_argument(
        "--scheduler",
        metavar="WHERE",
        help="read FILE in parts with Dask: on threads, on processes, or on the cluster at an "
        "ADDRESS; FILE may then be many or remote (part-*.parquet, s3://...), .npy, .zarr or "
        "file.h5::dataset",
    )


def _add_common(group: Any) -> None:
    group.add_argument("--force", action="store_true", help="overwrite files that exist")
    group.add_argument("--debug", action="store_true", help="show where an error comes from")


def _share(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < 0.5:
        raise argparse.ArgumentTypeError(
            "must be auto or a share of the rows from 0 to below 0.5, such as 0.1 (when half of "
            f"the rows may be wrong, nothing tells which half); got {text!r}"
        )
    return value


def _count(text: str) -> int | str:
    return text if text == "auto" else _number_of(text, "auto or ")


def _rows_searched(text: str) -> int | str:
    if text == "all":
        return text
    rows = _number_of(text, "all or ")
    if rows < 2:
        raise argparse.ArgumentTypeError(f"must be all or at least 2 rows; got {text!r}")
    return rows


def _number_of(text: str, alternative: str = "") -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(
            f"must be {alternative}a whole number of at least 1; got {text!r}"
        )
    return int(text)


def _gigabytes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    # Not nan: no file would be larger.
    if not value > 0.0:
        raise argparse.ArgumentTypeError(f"must be a number above 0, such as 8; got {text!r}")
    return value
