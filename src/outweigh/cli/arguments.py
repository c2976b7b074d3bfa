"""The arguments of all commands, their help, and what the exit code means."""

from __future__ import annotations

import argparse
import codecs
import math
from collections.abc import Callable
from typing import Any

from outweigh.files.reading import MAX_GIGABYTES
from outweigh.libraries import version_of

OK, SOME_RUNS_FAILED, BAD_INPUT, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143

_KINDS = ("auto", "mean", "sparse-mean", "pca", "sparse-pca")

_ABOUT = """\
Means and principal components of data that you cannot trust: fit your own files, see the library
at work, and check what is claimed about it."""

_EPILOG = """\
examples:
  outweigh fit mean data.csv --report page.html    your own data, and which rows not to trust
  outweigh demo                                    what it is about, in under a minute
  outweigh plan --features 1000 --nonzero 10       how many rows a mean needs
  outweigh list                                    panels, algorithms and adversaries
  outweigh reproduce --quick --report              every panel, few points
  outweigh reproduce linear-hiding-n --jobs 2      one panel in full
  outweigh reproduce mine.toml --out mine          an experiment of your own

exit codes:
  0 done   1 some runs failed (they are recorded and shown)   2 bad input, or nowhere to write
  130 interrupted   143 terminated"""

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

_DEMO = """\
Makes data of which a tenth is wrong and estimates its mean in many ways; then finds wrong rows in a
real table, beside two methods of scikit-learn. Prints tables of both, and saves a figure and a page
in the current directory."""

_PLAN = """\
Says how many rows a robust mean needs, before any is measured: to see outliers that would move the
plain mean by --shift, and for the theorems of the paper to hold."""

_REPRODUCE = """\
Runs experiments, stores a record of every run, and draws a figure of each experiment. Only
runs without a record are done, so after an interruption, or a crash, the same command goes
on where it stopped. DIR gets records.jsonl, summary.csv, a PNG and an SVG of each figure and,
with --report, report.html: one file with everything, to send or to keep."""

_REPRODUCE_EPILOG = """\
FIGURE is a name from `outweigh list figures`, or a TOML file like this one:

  title = "Far fewer samples"
  adversary = "constant_bias"            # outweigh list adversaries
  algorithms = ["oracle", "outweigh"]    # outweigh list algorithms
  trials = 10
  [fixed]
  n_features = 100
  n_nonzero = 5                          # leave it out for a dense problem
  contamination = 0.1
  [grid]                                 # the one parameter that changes
  n_samples = [50, 100, 200]"""


_PLOT = """\
Draws figures and tables from the records in DIR (the first argument, or --out) and runs nothing."""

_LIST = "Shows the names that `outweigh reproduce` and TOML files know."


class _OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line, and whose texts keep their lines."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> None:  # type: ignore[override]
        """Say what is wrong and where to read more, and exit."""
        self.exit(BAD_INPUT, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line.

    What it parses has ``module`` and ``function``: where in `outweigh.cli` the command is.
    """
    parser = _OneLineParser(prog="outweigh", description=_ABOUT, epilog=_EPILOG)
    version = f"outweigh {version_of('outweigh')}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, module: str, what: str, about: str, epilog: str = "") -> Any:
        added = commands.add_parser(name, help=what, description=about, epilog=epilog)
        added.set_defaults(module=module, function=name)
        return added

    what = "a robust mean or components from a file, and the rows not to trust"
    fit = command("fit", "fit", what, _FIT, _FIT_EPILOG)
    fit.add_argument(
        "kind",
        choices=_KINDS,
        metavar=f"{{{','.join(_KINDS)}}}",
        help="what to estimate; auto: a mean, sparse or not as the table looks, and it is said why",
    )
    _add_reading(fit, columns=True)
    _add_estimate(fit)
    _add_outputs(
        fit,
        out="the result, as .json or .csv",
        weights="weight and score of every row, as .csv",
        report="one HTML page with everything",
        save="the fitted model, for `outweigh score`",
    )

    score = command("score", "fit", "score new rows with a saved model", _SCORE)
    score.add_argument("model", metavar="MODEL", help="a file that `outweigh fit --save` wrote")
    _add_reading(score, columns=False)
    _add_outputs(score, out="score and reasons of every row, as .csv")

    what = "see it at work on made and on real data, beside other methods"
    demo = command("demo", "demo", what, _DEMO)
    demo.add_argument("--seed", type=_whole(0), default=0, help="another sample (default: 0)")

    add = command("plan", "plan", "how many rows a robust mean needs", _PLAN).add_argument
    add("--features", type=_whole(1), required=True, help="the number of columns")
    add("--nonzero", type=_whole(1), help="nonzero entries, if the mean is sparse")
    add("--contamination", type=float, default=0.1, help="share of wrong rows (default: 0.1)")
    add(
        "--shift",
        type=float,
        help="how far the mean may be off, in units of the noise (default: the least to be had)",
    )

    what = "run the experiments, store the results, draw the figures"
    reproduce = command("reproduce", "experiments", what, _REPRODUCE, _REPRODUCE_EPILOG)
    _add_figures(reproduce, "all figures that come with the package")
    reproduce.add_argument(
        "--jobs",
        type=_whole(1),
        metavar="N",
        help="processes, each on one thread (default: one for each core; 1 times best)",
    )
    reproduce.add_argument(
        "--retry-failed", action="store_true", help="do runs again whose record is a failure"
    )

    plot = command("plot", "experiments", "draw the figures again from stored results", _PLOT)
    _add_figures(plot, "all that come with the package and have records")

    what = "show what can be named: figures, algorithms, adversaries"
    names = command("list", "experiments", what, _LIST)
    names.set_defaults(function="list_names")
    names.add_argument(
        "what",
        nargs="?",
        choices=("figures", "algorithms", "adversaries"),
        help="only these (default: all three)",
    )
    return parser


def _add_reading(parser: argparse.ArgumentParser, columns: bool) -> None:
    parser.add_argument("file", metavar="FILE", help="the rows; - reads standard input")
    add = parser.add_argument_group("reading FILE").add_argument
    if columns:
        add("--columns", type=_names, metavar="A,B,...",
            help="columns to use, or patterns such as 'gene_*' (default: "
            "all numeric ones)")  # fmt: skip
        add("--exclude", type=_names, metavar="A,B,...", default=(),
            help="columns not to use, or patterns")  # fmt: skip
    add("--id-column", metavar="NAME", help="the column that names the rows")
    add("--missing", choices=("drop", "median"),
        help="leave rows with missing values out, or put medians of the columns in their place "
        "(default: refuse them)")  # fmt: skip
    add("--na", type=_names, metavar="WORD,...", default=(),
        help="what else stands for a missing value, such as ERR,-999")  # fmt: skip
    add("--delimiter", type=_delimiter, metavar="C",
        help="between cells (default: a tab, semicolon, bar or comma is recognised)")  # fmt: skip
    add("--decimal", type=_decimal, metavar="C",
        help="a point or a comma, in numbers of a text file (default: recognised)")  # fmt: skip
    add("--encoding", type=_encoding, metavar="NAME",
        help="of a text file (default: UTF-8 and UTF-16 are recognised, else latin-1)")  # fmt: skip
    add(
        "--max-gigabytes",
        type=_gigabytes,
        default=argparse.SUPPRESS,
        metavar="GB",
        help=f"refuse files that hold more, also decompressed (default: {MAX_GIGABYTES:g})",
    )
    add(
        "--scheduler",
        metavar="WHERE",
        help="read FILE in parts with Dask: on threads, on processes, or on the cluster at an "
        "ADDRESS; FILE may then be many or remote (part-*.parquet, s3://...), .npy, .zarr or "
        "file.h5::dataset",
    )


def _add_estimate(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the estimate")
    group.add_argument(
        "--contamination",
        type=_share,
        default="auto",
        metavar="SHARE",
        help="the largest share of wrong rows, below 0.5 (default: auto, it is estimated)",
    )
    group.add_argument(
        "--n-nonzero",
        type=_whole(1, "auto"),
        metavar="K",
        help="nonzero entries of a sparse estimate (default: auto)",
    )
    group.add_argument(
        "--components",
        type=_whole(1, "auto"),
        metavar="N",
        help="number of principal components; auto counts those that stand out (default: 1)",
    )
    group.add_argument(
        "--scale",
        choices=("auto", "mad", "none"),
        help="the noise of each column (default: auto for means, none for components)",
    )
    either = group.add_mutually_exclusive_group()
    either.add_argument(
        "--covariance",
        metavar="FILE",
        help="a square table, the covariance of clean rows, or none: columns are uncorrelated; for "
        "components that of the noise alone (default: it is tested, and found)",
    )
    either.add_argument(
        "--trusted",
        metavar="FILE",
        help="rows that you trust, with the same columns, whose covariance is used as above; for "
        "components rows of noise alone, such as blank measurements",
    )
    group.add_argument(
        "--subsample",
        type=_whole(2, "all"),
        metavar="ROWS",
        help="the most rows that weights are searched on; of more, a random sample is fitted and "
        "the others are weighted by their scores, `all`: never (default: 1000000)",
    )


def _add_outputs(parser: argparse.ArgumentParser, **files: str) -> None:
    group = parser.add_argument_group("output")
    for name, what in files.items():
        group.add_argument(f"--{name}", metavar="FILE", help=what)
    group.add_argument("--force", action="store_true", help="overwrite files that exist")
    group.add_argument("--debug", action="store_true", help="show where an error comes from")


def _add_figures(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "figures",
        nargs="*",
        metavar="FIGURE",
        help=f"a name from `outweigh list figures`, or a TOML file (default: {default})",
    )
    parser.add_argument(
        "--quick", action="store_true", help="few points and trials: what [quick] in a file says"
    )
    parser.add_argument(
        "--out",
        default="outweigh-results",
        metavar="DIR",
        help="where records and figures are (default: outweigh-results)",
    )
    parser.add_argument(
        "--report", action="store_true", help="also write DIR/report.html, one file with everything"
    )


def _whole(least: int, word: str = "") -> Callable[[str], int | str]:
    """Return a parser of whole numbers of at least so much, or of one word."""

    def parse(text: str) -> int | str:
        if word and text == word:
            return text
        if not (text.isascii() and text.isdigit() and int(text) >= least):
            either = f"{word} or " if word else ""
            raise argparse.ArgumentTypeError(
                f"must be {either}a whole number of at least {least}; got {text!r}"
            )
        return int(text)

    return parse


def _share(text: str) -> float | str:
    if text != "auto" and not 0.0 <= _float(text) < 0.5:
        raise argparse.ArgumentTypeError(
            "must be auto or a share of the rows from 0 to below 0.5, such as 0.1 (when half of "
            f"the rows may be wrong, nothing tells which half); got {text!r}"
        )
    return text if text == "auto" else float(text)


def _gigabytes(text: str) -> float:
    # Not nan: no file would be larger.
    if not _float(text) > 0.0:
        raise argparse.ArgumentTypeError(f"must be a number above 0, such as 8; got {text!r}")
    return float(text)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _delimiter(text: str) -> str:
    text = "\t" if text in ("\\t", "tab") else text
    if len(text) != 1:
        raise argparse.ArgumentTypeError(f"must be one character, or tab; got {text!r}")
    return text


def _encoding(text: str) -> str:
    try:
        return codecs.lookup(text).name
    except LookupError:
        raise argparse.ArgumentTypeError(
            f"must be an encoding such as utf-8, utf-16 or latin-1; got {text!r}"
        ) from None


def _decimal(text: str) -> str:
    if text not in (".", ","):
        raise argparse.ArgumentTypeError(f"must be a point or a comma; got {text!r}")
    return text
