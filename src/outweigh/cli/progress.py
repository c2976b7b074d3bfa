"""How far a long command is, on standard error: runs done and the time left, or evaluations."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from outweigh.experiments.spec import Run


class Progress:
    """A line that is rewritten on a terminal, or written now and then elsewhere.

    The time left is judged by what each algorithm took on data of what size so far, and by how
    much of that was done a second since the first run ended: starting processes is not work.

    Parameters
    ----------
    runs : sequence of Run
        What is to be done.
    n_before : int
        Number of runs that were done before.
    stream : text file
    clock : callable
        Seconds since any fixed moment.
    interval : float
        Seconds between lines when the stream is not a terminal.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        n_before: int,
        stream: TextIO,
        clock: Callable[[], float] = time.monotonic,
        interval: float = 10.0,
    ) -> None:
        self._waiting = {run.key: run for run in runs}
        self._total = n_before + len(runs)
        self._stream = stream
        self._clock = clock
        self._start = self._last = clock()
        self._first: float | None = None
        self._behind = 0.0
        self._live = stream.isatty()
        self._interval = 0.1 if self._live else interval
        self._spent: dict[str, tuple[float, int]] = {}
        self._n_failed = 0
        self._width = 0

    def update(self, record: Mapping[str, Any]) -> None:
        """Take note of a run that is done, and say so if it is time."""
        run = self._waiting.pop(record["key"])
        self._n_failed += record["status"] == "failed"
        now = self._clock()
        cost = record.get("seconds", 0.0) + 3e-8 * run.size
        spent, size = self._spent.get(run.algorithm, (0.0, 0))
        self._spent[run.algorithm] = (spent + cost, size + run.size)
        if self._first is None:
            self._first = now
        else:
            self._behind += cost
        if now - self._last >= self._interval or not self._waiting:
            self._last = now
            self._say(now)

    def close(self) -> None:
        """End the line."""
        if self._live and self._width:
            self._stream.write("\n")
            self._stream.flush()

    def time_left(self, now: float) -> float | None:
        """Return the seconds that the waiting runs will take, or None if unknown."""
        if self._first is None or self._behind == 0.0:
            return None
        rates = {name: spent / size for name, (spent, size) in self._spent.items()}
        unknown = max(rates.values())
        ahead = sum(rates.get(r.algorithm, unknown) * r.size for r in self._waiting.values())
        return (now - self._first) * ahead / self._behind

    def _say(self, now: float) -> None:
        done = self._total - len(self._waiting)
        left = self.time_left(now)
        text = f"{done} of {self._total} runs, {as_time(now - self._start)} gone"
        if self._waiting and left is not None:
            text += f", about {as_time(left)} left"
        if self._n_failed:
            text += f", {self._n_failed} failed"
        if self._live:
            self._stream.write("\r" + text.ljust(self._width))
            self._width = len(text)
        else:
            self._stream.write(text + "\n")
        self._stream.flush()


def as_time(seconds: float) -> str:
    """Write a duration for a person.

    Examples
    --------
    >>> as_time(7.4), as_time(130), as_time(4000)
    ('7 s', '2 min 10 s', '1 h 6 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def sparing_progress(stream: TextIO) -> Iterator[None]:
    """Say on a long fit how far it is, from what the estimator logs."""
    logger = logging.getLogger("outweigh")
    handler = _Sparingly(stream)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _Sparingly(logging.Handler):
    """Shows one message every few seconds, the first after as long, and long passes over data."""

    def __init__(
        self,
        stream: TextIO,
        clock: Callable[[], float] = time.monotonic,
        interval: float = 3.0,
        between_passes: float = 1.0,
    ) -> None:
        super().__init__()
        self._stream = stream
        self._clock = clock
        self._interval = interval
        self._between_passes = between_passes
        self._start = self._last = clock()
        self._pass = "reading"

    def emit(self, record: logging.LogRecord) -> None:
        """Write the message if it is time."""
        part = getattr(record, "a_pass", None)
        if part == "ends":
            # Else it would be shown instead of the beginning of the next.
            return
        text = record.getMessage()
        if part == "begins":
            self._pass = text
        elif part == "goes on":
            text = f"{self._pass}: {text}"
        now = self._clock()
        wait = self._between_passes if part == "begins" else self._interval
        if now - self._start >= self._interval and now - self._last >= wait:
            self._last = now
            self._stream.write(f"{text}\n")
            self._stream.flush()
