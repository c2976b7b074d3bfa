"""Arguments, help, and what the exit code means.

Commands are imported when they are called, so that help and errors come at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from outweigh.cli.exit_codes import BAD_INPUT, INTERRUPTED, OK
from outweigh.cli.file_commands import OneLineParser, run
from outweigh.cli.fit_arguments import add_fit, add_score
from outweigh.experiments.errors import ExperimentError

_ABOUT = """\
Means and principal components of data that you cannot trust: fit your own files, see the library
at work, and check what is claimed about it."""

_EPILOG = """\
examples:
  outweigh fit mean data.csv --report page.html    your own data, and which rows not to trust
  outweigh demo                                    what it is about, in under a minute
  outweigh list                                    panels, algorithms and adversaries
  outweigh reproduce --quick --report              every panel, few points
  outweigh reproduce linear-hiding-n --jobs 2      one panel in full
  outweigh reproduce mine.toml --out mine          an experiment of your own

exit codes:
  0 done   1 some runs failed (they are recorded and shown)   2 bad input   130 interrupted"""

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


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit code.
    """
    arguments = build_parser().parse_args(argv)
    try:
        return _dispatch(arguments)
    except ExperimentError as error:
        print(f"outweigh: error: {' '.join(str(error).split())}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:
        # The reader of the output has left, as `| head` does. Nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        print("\noutweigh: interrupted", file=sys.stderr)
        return INTERRUPTED


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = OneLineParser(
        prog="outweigh",
        description=_ABOUT,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"outweigh {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    add_fit(commands)
    add_score(commands)

    demo = commands.add_parser(
        "demo",
        help="contaminate data, compare estimates of its mean, save a figure",
        description=(
            "Makes data of which a tenth is wrong, estimates its mean in many ways, prints a "
            "table of the errors and saves a figure in the current directory."
        ),
    )
    demo.add_argument("--seed", type=_not_negative, default=0, help="another sample (default: 0)")

    reproduce = commands.add_parser(
        "reproduce",
        help="run the experiments, store the results, draw the figures",
        description=_REPRODUCE,
        epilog=_REPRODUCE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_figures(reproduce, "all figures that come with the package")
    reproduce.add_argument(
        "--jobs",
        type=_positive,
        default=None,
        metavar="N",
        help="processes, each on one thread (default: one for each core; 1 times best)",
    )
    reproduce.add_argument(
        "--retry-failed", action="store_true", help="do runs again whose record is a failure"
    )

    plot = commands.add_parser(
        "plot",
        help="draw the figures again from stored results",
        description="Draws figures and tables from the records in DIR and runs nothing.",
    )
    _add_figures(plot, "all that come with the package and have records")

    listing = commands.add_parser(
        "list",
        help="show what can be named: figures, algorithms, adversaries",
        description="Shows the names that `outweigh reproduce` and TOML files know.",
    )
    listing.add_argument(
        "what",
        nargs="?",
        choices=("figures", "algorithms", "adversaries"),
        help="only these (default: all three)",
    )
    return parser


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


def _dispatch(arguments: argparse.Namespace) -> int:
    if arguments.command in ("fit", "score"):
        return run(arguments)
    if arguments.command == "demo":
        from outweigh.cli.demo import demo

        return demo(arguments.seed)
    if arguments.command == "list":
        from outweigh.cli.listing import show

        return show(arguments.what)
    from outweigh.cli.reproduce import plot, reproduce

    if arguments.command == "plot":
        return plot(arguments.figures, arguments.quick, arguments.out, arguments.report)
    return reproduce(
        arguments.figures,
        quick=arguments.quick,
        out=arguments.out,
        report=arguments.report,
        jobs=arguments.jobs,
        retry_failed=arguments.retry_failed,
    )


def _positive(text: str) -> int:
    value = _not_negative(text)
    if value == 0:
        raise argparse.ArgumentTypeError("must be at least 1, got 0")
    return value


def _not_negative(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(text)


def _version() -> str:
    try:
        return version("outweigh")
    except PackageNotFoundError:
        return "(not installed)"
