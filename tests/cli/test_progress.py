"""What a long command says on the terminal while it works."""

from __future__ import annotations

import io
import logging
import time
from dataclasses import dataclass

import pytest

from outweigh.cli.progress import progress_of_fit, progress_of_runs

logger = logging.getLogger("outweigh")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@dataclass
class Run:
    key: str
    size: int


def said(stream: io.StringIO) -> list[str]:
    """What stood on the line, one after the other."""
    return [text.strip() for text in stream.getvalue().split("\r") if text.strip()]


def tell(text: str, a_pass: str) -> None:
    # Messages that follow each other at once are not all shown.
    time.sleep(0.11)
    logger.info(text, extra={"a_pass": a_pass})


def test_a_quick_fit_says_nothing() -> None:
    stream = Terminal()
    with progress_of_fit(stream):
        for number in range(20):
            logger.info("evaluation %d", number)
    assert said(stream) == []


def test_a_file_is_told_nothing() -> None:
    stream = io.StringIO()
    with progress_of_fit(stream, delay=1e-9):
        tell("pass 1", "begins")
    assert stream.getvalue() == ""


def test_every_long_pass_is_shown_when_it_begins_and_named_again_while_it_goes_on() -> None:
    stream = Terminal()
    with progress_of_fit(stream, delay=1e-9):
        tell("pass 1", "begins")
        tell("40% of it done", "goes on")
        tell("pass 1: done", "ends")
        tell("pass 2", "begins")
    shown = [line.split(" (")[0] for line in said(stream)]
    assert shown == ["pass 1", "pass 1: 40% of it done", "pass 2"]


def test_the_line_is_gone_when_the_fit_is_over() -> None:
    stream = Terminal()
    with progress_of_fit(stream, delay=1e-9):
        tell("pass 1", "begins")
    assert stream.getvalue().endswith("\r")
    assert stream.getvalue().split("\r")[-2].strip() == ""


def test_the_logger_is_left_as_it_was() -> None:
    before = (logger.level, list(logger.handlers))
    with pytest.raises(ValueError, match="stop"), progress_of_fit(io.StringIO()):
        raise ValueError("stop")
    assert (logger.level, list(logger.handlers)) == before


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "file"])
def test_runs_done_failures_and_the_time_left_are_told(stream: io.StringIO) -> None:
    runs = [Run(f"run {number}", 10) for number in range(12)]
    with progress_of_runs(runs, 5, stream) as update:  # type: ignore[arg-type]
        for run in runs[:-1]:
            update({"key": run.key, "status": "ok"})
        update({"key": runs[-1].key, "status": "failed"})
    first, *_, last = said(stream)
    assert first.startswith("5 of 17 runs")
    assert last.startswith("17 of 17 runs, 1 failed, 00:00 gone, about 00:00 left")


def test_the_time_left_is_judged_by_the_size_of_what_is_left() -> None:
    stream = Terminal()
    with progress_of_runs([Run("small", 1), Run("large", 9)], 0, stream) as update:  # type: ignore[list-item]
        time.sleep(1.2)
        update({"key": "small", "status": "ok"})
    assert "1 of 2 runs, 00:01 gone, about 00:1" in stream.getvalue()


def test_nothing_to_do_is_not_told() -> None:
    stream = Terminal()
    with progress_of_runs([], 12, stream):
        pass
    assert stream.getvalue() == ""
