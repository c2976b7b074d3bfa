"""What a long command says on the terminal while it works."""

from __future__ import annotations

import io
import logging
import time

import pytest

from outweigh.cli.progress import progress_of_fit, progress_of_runs

logger = logging.getLogger("outweigh")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
def test_runs_done_and_the_time_left_are_told(stream: io.StringIO) -> None:
    records = [{"key": f"run {number}"} for number in range(12)]
    assert list(progress_of_runs(records, 17, 5, stream)) == records
    first, *_, last = said(stream)
    assert first.startswith("5 of 17 runs")
    assert last.startswith("17 of 17 runs, 00:00 gone, about 00:00 left")


def test_runs_of_an_earlier_time_do_not_count_for_the_time_left() -> None:
    stream = Terminal()
    records = iter(progress_of_runs(({"key": key} for key in "abcdef"), 16, 10, stream))
    next(records)
    time.sleep(1.2)
    next(records)
    assert "11 of 16 runs, 00:01 gone, about 00:0" in stream.getvalue()


def test_nothing_to_do_is_not_told() -> None:
    stream = Terminal()
    assert list(progress_of_runs([], 12, 12, stream)) == []
    assert stream.getvalue() == ""
