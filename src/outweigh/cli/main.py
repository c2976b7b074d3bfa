"""Runs a command, and turns what is wrong with its input into one line and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from outweigh.cli.arguments import BAD_INPUT, INTERRUPTED, OK, TERMINATED, build_parser
from outweigh.experiments.errors import ExperimentError
from outweigh.libraries import library

_OF_ANY_COMMAND = (OSError, ImportError, ExperimentError, MemoryError)
# The estimators, and a plan, refuse rows and parameters in words for a person.
_IN_WORDS = {"fit": (ValueError, TypeError), "plan": (ValueError,)}


class _Terminated(KeyboardInterrupt):
    """SIGTERM: ends a command as an interrupt does, so that nothing is left half done."""


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
        with _sigterm_as_exception():
            code: int = getattr(module, arguments.function)(arguments)
    except BrokenPipeError:
        # The reader of the output has left, as `| head` does. Nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt as error:
        terminated = isinstance(error, _Terminated)
        said = str(error) or ("terminated" if terminated else "interrupted")
        print(f"\noutweigh: {said}", file=sys.stderr)
        return TERMINATED if terminated else INTERRUPTED
    except (*_OF_ANY_COMMAND, *_IN_WORDS.get(arguments.module, ())) as error:
        if getattr(arguments, "debug", False):
            raise
        print(f"outweigh {arguments.command}: error: {_one_line(error)}", file=sys.stderr)
        return BAD_INPUT
    return code


@contextmanager
def _sigterm_as_exception() -> Iterator[None]:
    """Raise `_Terminated` where SIGTERM would end the process at once, files half written."""

    def terminate(*_: object) -> None:
        raise _Terminated

    # Signals are for the main thread alone, and a caller's own handler stays.
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _one_line(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, MemoryError):
        text = f"out of memory: {text}" if text else "out of memory"
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    return " ".join(text.split()) or type(error).__name__
