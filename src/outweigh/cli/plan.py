"""`outweigh plan`: how many rows a mean needs."""

from __future__ import annotations

import argparse

from outweigh.cli.arguments import OK
from outweigh.research.plan import rows_needed


def plan(arguments: argparse.Namespace) -> int:
    """Print how many rows are needed."""
    needed = rows_needed(
        arguments.features, arguments.contamination, arguments.nonzero, shift=arguments.shift
    )
    mean = "mean" if arguments.nonzero is None else f"mean of {arguments.nonzero} nonzero entries"
    print(
        f"a {mean}, {arguments.features:,} columns, {arguments.contamination:g} of the rows wrong:"
    )
    print(f"  {needed.shift:>12.3g} of the noise is how far outliers may move it unseen")
    print(f"  {needed.visible:>12,} rows for outliers that do more to be visible at all")
    print(f"  {needed.theory:>12,} rows for the theorems, whose constant is taken to be one")
    return OK
