"""Runs a command, and turns what is wrong with its input into one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from outweigh.cli.arguments import BAD_INPUT, INTERRUPTED, OK, build_parser
from outweigh.experiments.errors import ExperimentError
from outweigh.libraries import library

__all__ = ["main"]

_ABOUT_INPUT = {
    # The estimators refuse rows and parameters in words for a person.
    "fit": (OSError, ImportError, ExperimentError, ValueError, TypeError, MemoryError),
    "experiments": (OSError, ImportError, ExperimentError),
    "demo": (OSError, ImportError, ExperimentError),
}


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
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = build_parser().parse_args(words)
    arguments.words = words
    try:
        if getattr(arguments, "report", None):
            # Now, and not after hours of work.
            library("jinja2", "--report: needs")
        # Commands are imported when they are called, so that help and errors come at once.
        module = import_module(f"outweigh.cli.{arguments.module}")
        code: int = getattr(module, arguments.function)(arguments)
    except BrokenPipeError:
        # The reader of the output has left, as `| head` does. Nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        print("\noutweigh: interrupted", file=sys.stderr)
        return INTERRUPTED
    except _ABOUT_INPUT[arguments.module] as error:
        if getattr(arguments, "debug", False):
            raise
        print(f"outweigh {arguments.command}: error: {_one_line(error)}", file=sys.stderr)
        return BAD_INPUT
    return code


def _one_line(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    return " ".join(text.split()) or type(error).__name__
