"""How far a long command is, on standard error, by tqdm."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from tqdm import tqdm

from outweigh.estimators.base import heard_by
from outweigh.experiments.spec import Record

# Its thread would only redraw what does not change, and does not survive a fork.
tqdm.monitor_interval = 0


def progress_of_runs(
    records: Iterable[Record], n_runs: int, n_before: int, stream: TextIO
) -> Iterable[Record]:
    """Hand records on, and count them.

    Parameters
    ----------
    records : iterable of dict
        Of runs, as they are done.
    n_runs, n_before : int
        Number of all runs, and of those that were done before.
    stream : text file
        A line on it is rewritten: at once on a terminal, elsewhere every ten seconds.
    """
    counted: Iterable[Record] = tqdm(
        records,
        total=n_runs,
        initial=n_before,
        bar_format="{n_fmt} of {total_fmt} runs, {elapsed} gone, about {remaining} left",
        smoothing=0.0,
        miniters=0,
        mininterval=0.1 if stream.isatty() else 10.0,
        disable=n_before == n_runs,
        file=stream,
    )
    return counted


@contextmanager
def progress_of_fit(stream: TextIO, delay: float = 3.0) -> Iterator[None]:
    """Show on a terminal what a long fit is at, from what the estimator logs.

    Parameters
    ----------
    stream : text file
        Nothing is written to it if it is not a terminal.
    delay : float, default=3.0
        Seconds during which nothing is shown: most fits are quick.
    """
    with (
        tqdm(
            bar_format="{desc} ({elapsed})",
            miniters=0,
            delay=delay,
            disable=None,
            leave=False,
            file=stream,
        ) as bar,
        heard_by(_Phases(bar)),
    ):
        yield


class _Phases(logging.Handler):
    """Shows the last message; of a pass over data, its name and how much of it is done."""

    def __init__(self, bar: Any) -> None:
        super().__init__()
        self._bar = bar
        self._pass = "reading"

    def emit(self, record: logging.LogRecord) -> None:
        """Write the message over the one before."""
        text, part = record.getMessage(), getattr(record, "a_pass", None)
        if part == "ends":
            # Else it would be shown instead of the beginning of the next.
            return
        if part == "begins":
            self._pass = text
        elif part == "goes on":
            text = f"{self._pass}: {text}"
        self._bar.set_description_str(text, refresh=False)
        self._bar.update()
