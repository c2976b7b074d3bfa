"""The one way in which a study declares its options."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any


def asked(
    module: str, about: str | None, argv: Sequence[str] | None, /, *first: str, **declared: Any
) -> argparse.Namespace:
    """Parse what follows ``python -m benchmarks NAME``.

    Parameters
    ----------
    module, about : str
        ``__name__`` and ``__doc__`` of the study: what it is called, and what help shows.
    argv : sequence of str
    *first : str
        The names of what is given by its place and not by a flag.
    **declared
        For each name a default, which also says of what type the value is (False: a flag without
        one), a pair of a default and help, or all that ``add_argument`` takes.

    Examples
    --------
    >>> asked("benchmarks.means", "", ["--seeds", "3"], seeds=50, fresh=(False, "forget"))
    Namespace(seeds=3, fresh=False)
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {module.rpartition('.')[2]}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, how in declared.items():
        if not isinstance(how, Mapping):
            default, said = how if isinstance(how, tuple) else (how, None)
            kind = {"action": "store_true"} if default is False else {"type": type(default)}
            how = {"default": default, "help": said, **kind}
        flag = name if name in first else f"--{name.replace('_', '-')}"
        parser.add_argument(flag, **how)
    return parser.parse_args(argv)
