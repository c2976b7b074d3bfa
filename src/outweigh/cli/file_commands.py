"""Runs the commands that read files, and turns what is wrong with them into one line."""

from __future__ import annotations

import argparse
import sys

from outweigh.cli.exit_codes import BAD_INPUT
from outweigh.experiments.errors import ExperimentError

__all__ = ["OneLineParser", "run"]


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Say what is wrong and where to read more, and exit."""
        self.exit(BAD_INPUT, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def run(arguments: argparse.Namespace) -> int:
    """Run ``fit`` or ``score``; bad input is told in one line unless --debug is given."""
    try:
        if arguments.command == "fit":
            from outweigh.cli.fit import fit

            return fit(arguments)
        from outweigh.cli.score import score

        return score(arguments)
    except (ValueError, TypeError, ImportError, MemoryError, ExperimentError) as error:
        if arguments.debug:
            raise
        text = " ".join(str(error).split()) or type(error).__name__
        print(f"outweigh {arguments.command}: error: {text}", file=sys.stderr)
        return BAD_INPUT
