"""The arguments of all commands, their help, and what the exit code means."""

from __future__ import annotations

import argparse
import codecs
import re
from collections.abc import Callable
from contextlib import suppress
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


# Options as they are described to a person: a flag, what follows it, if anything, what it means.
_OPTION = re.compile(r"^(--\S+)(?: (\S+))?  +(.+(?:\n .+)*)", re.MULTILINE)

_COLUMNS = """\
--columns A,B,...  columns to use, or patterns such as 'gene_*' (default: all numeric ones)
--exclude A,B,...  columns not to use, or patterns"""

_READING = f"""\
--id-column NAME   the column that names the rows
--missing {{drop,median}}  leave rows with missing values out, or put medians of the columns in
                   their place (default: refuse them)
--na WORD,...      what else stands for a missing value, such as ERR,-999
--delimiter C      what is between cells (default: tab, semicolon, bar, comma or space, recognised)
--decimal C        a point or a comma: what stands in numbers of a text file (default: recognised)
--encoding NAME    of a text file (default: UTF-8 and UTF-16 are recognised, else latin-1)
--max-gigabytes GB  refuse files that hold more, also decompressed (default: {MAX_GIGABYTES:g})
--scheduler WHERE  read FILE in parts with Dask: on threads, on processes, or on the cluster at an
                   ADDRESS; FILE may then be many or remote (part-*.parquet, s3://...), .npy, .zarr
                   or file.h5::dataset"""

_ESTIMATE = """\
--contamination SHARE  the largest share of wrong rows, below 0.5 (default: auto, it is estimated)
--n-nonzero K      nonzero entries of a sparse estimate (default: auto)
--components N     number of principal components; auto counts those that stand out (default: 1)
--scale {auto,mad,none}  the noise of each column (default: auto for means, none for components)"""

_COVARIANCE = """\
--covariance FILE  the covariance of clean rows, a square table, or none where columns are not
                   correlated; for components that of the noise alone (default: tested, and found)
--trusted FILE     rows that you trust, with the same columns, whose covariance is used as above;
                   for components rows of noise alone, such as blank measurements"""

_SUBSAMPLE = """\
--subsample ROWS   fit so many rows at most: of more a random sample, and weigh the others by their
                   scores; all sets no limit (default: 1000000)"""

_RESULTS = """\
--out FILE         the result, as .json or .csv
--weights FILE     weight and score of every row, as .csv
--report FILE      one HTML page with everything
--save FILE        the fitted model, for `outweigh score`"""

_OUTPUT = """\
--force            overwrite files that exist
--debug            show where an error comes from"""

_NEEDED = """\
--features FEATURES  the number of columns
--nonzero NONZERO  nonzero entries, if the mean is sparse
--contamination CONTAMINATION  share of wrong rows (default: 0.1)
--shift SHIFT      how far the mean may be off, in units of the noise (default: the least to be
                   had)"""

_DRAWN = """\
--quick            few points and trials: what [quick] in a file says
--out DIR          where records and figures are (default: outweigh-results)
--report           also write DIR/report.html, one file with everything"""

_RUNS = """\
--jobs N           processes, each on one thread (default: one for each core; 1 times best)
--retry-failed     do runs again whose record is a failure"""


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
    what = "what to estimate; auto takes a mean or a sparse mean by the table, and says why"
    fit.add_argument("kind", choices=_KINDS, metavar=f"{{{','.join(_KINDS)}}}", help=what)
    _add_reading(fit, _COLUMNS)
    group = fit.add_argument_group("the estimate")
    components = {"type": _value, "dest": "n_components"}
    _add(group, _ESTIMATE, contamination=_value, n_nonzero=_value, components=components)
    _add(group.add_mutually_exclusive_group(), _COVARIANCE)
    _add(group, _SUBSAMPLE, subsample=_value)
    group = fit.add_argument_group("output")
    _add(group, _RESULTS)
    _add(group, _OUTPUT)

    score = command("score", "fit", "score new rows with a saved model", _SCORE)
    score.add_argument("model", metavar="MODEL", help="a file that `outweigh fit --save` wrote")
    _add_reading(score)
    group = score.add_argument_group("output")
    _add(group, "--out FILE  score and reasons of every row, as .csv")
    _add(group, _OUTPUT)

    what = "see it at work on made and on real data, beside other methods"
    demo = command("demo", "demo", what, _DEMO)
    _add(demo, "--seed SEED  another sample (default: 0)", seed={"type": _whole(0), "default": 0})

    plan = command("plan", "plan", "how many rows a robust mean needs", _PLAN)
    features, share = {"type": int, "required": True}, {"type": float, "default": 0.1}
    _add(plan, _NEEDED, features=features, nonzero=int, contamination=share, shift=float)

    what = "run the experiments, store the results, draw the figures"
    reproduce = command("reproduce", "experiments", what, _REPRODUCE, _REPRODUCE_EPILOG)
    _add_figures(reproduce, "all figures that come with the package")
    _add(reproduce, _RUNS, jobs=_whole(1))

    plot = command("plot", "experiments", "draw the figures again from stored results", _PLOT)
    _add_figures(plot, "all that come with the package and have records")

    what = "show what can be named: figures, algorithms, adversaries"
    names = command("list", "experiments", what, _LIST)
    names.set_defaults(function="list_names")
    three = ("figures", "algorithms", "adversaries")
    what = "only these (default: all three)"
    names.add_argument("what", nargs="?", choices=three, help=what)
    return parser


def _add(parser: Any, described: str, **kinds: Any) -> None:
    """Add options to a parser, or to a group of one.

    Parameters
    ----------
    parser : argparse.ArgumentParser or group
    described : str
        One or more options as `_OPTION` finds them: ``--flag VALUE  what it means``. Choices stand
        in braces for VALUE; an option without VALUE is true where it is given.
    **kinds
        By option the function that reads its text, by default `_text`; or a dict of arguments of
        ``add_argument``.
    """
    for flag, value, meaning in _OPTION.findall(described):
        kind = kinds.get(flag[2:].replace("-", "_"), _text)
        how = {"type": _text, **kind} if isinstance(kind, dict) else {"type": kind}
        if value.startswith("{"):
            how["choices"] = value[1:-1].split(",")
        elif value:
            how["metavar"] = value
        else:
            how = {"action": "store_true"}
        parser.add_argument(flag, help=meaning, **how)


def _add_reading(parser: argparse.ArgumentParser, before: str = "") -> None:
    parser.add_argument("file", metavar="FILE", help="the rows; - reads standard input")
    group = parser.add_argument_group("reading FILE")
    names = {"type": _names, "default": ()}
    _add(group, before, columns=_names, exclude=names)
    size = {"type": _gigabytes, "default": argparse.SUPPRESS}
    kinds = {"delimiter": _delimiter, "decimal": _decimal, "encoding": _encoding}
    _add(group, _READING, na=names, max_gigabytes=size, **kinds)


def _add_figures(parser: argparse.ArgumentParser, default: str) -> None:
    what = f"a name from `outweigh list figures`, or a TOML file (default: {default})"
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=what)
    _add(parser, _DRAWN, out={"default": "outweigh-results"})


# How the text of an option is read.


def _read(
    wanted: str, parse: Callable[[str], Any], fits: Callable[[Any], bool] = lambda value: True
) -> Callable[[str], Any]:
    """Return a reader of text that says what is wanted where it cannot be read, or does not fit."""

    def read(text: str) -> Any:
        try:
            value = parse(text)
            refused = not fits(value)
        except (ValueError, LookupError):
            refused = True
        if refused:
            raise argparse.ArgumentTypeError(f"must be {wanted}; got {text!r}")
        return value

    return read


def _whole(least: int) -> Callable[[str], Any]:
    return _read(f"a whole number of at least {least}", int, least.__le__)


def _value(text: str) -> int | float | str:
    """Return a number where it is one: the estimators say what they take."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


# An empty text is what a script makes of a variable that is not set.
_text = _read("given, not empty", str, bool)
_names = _read(
    "names, with commas between them",
    lambda text: [name.strip() for name in text.split(",") if name.strip()],
    bool,
)
# Not nan: no file would be larger.
_gigabytes = _read("a number above 0, such as 8", float, lambda value: value > 0.0)
_delimiter = _read(
    "one character, or tab",
    lambda text: "\t" if text in ("\\t", "tab") else text,
    lambda value: len(value) == 1,
)
_encoding = _read(
    "an encoding such as utf-8, utf-16 or latin-1", lambda text: codecs.lookup(text).name
)
_decimal = _read("a point or a comma", str, (".", ",").__contains__)
