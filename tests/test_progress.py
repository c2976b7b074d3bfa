"""What a long fit says on the terminal."""

from __future__ import annotations

import io
import logging

from outweigh.cli.progress import _Sparingly


class Said:
    """A handler on a clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0
        self.stream = io.StringIO()
        self.handler = _Sparingly(self.stream, clock=lambda: self.now)

    def after(self, seconds: float, text: str, a_pass: str | None = None) -> None:
        self.now += seconds
        record = logging.LogRecord("outweigh", logging.INFO, "", 0, text, None, None)
        if a_pass:
            record.a_pass = a_pass
        self.handler.emit(record)

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


def test_a_quick_fit_says_nothing() -> None:
    said = Said()
    for number in range(20):
        said.after(0.1, f"pass {number}", "begins")
    assert said.lines == []


def test_every_long_pass_is_shown_when_it_begins() -> None:
    said = Said()
    said.after(4.0, "pass 2", "begins")
    for number in (3, 4):
        said.after(1.5, f"pass {number - 1}: done", "ends")
        said.after(0.0, f"pass {number}", "begins")
    assert said.lines == ["pass 2", "pass 3", "pass 4"]


def test_short_passes_of_a_long_fit_are_shown_now_and_then() -> None:
    said = Said()
    for number in range(100):
        said.after(0.1, f"pass {number}", "begins")
    assert 5 <= len(said.lines) <= 8


def test_a_pass_that_goes_on_is_named_again() -> None:
    said = Said()
    said.after(1.0, "pass 1", "begins")
    said.after(9.0, "40% of it done", "goes on")
    said.after(1.0, "45% of it done", "goes on")
    assert said.lines == ["pass 1: 40% of it done"]


def test_other_messages_come_every_few_seconds() -> None:
    said = Said()
    for number in range(100):
        said.after(0.1, f"evaluation {number}")
    assert 2 <= len(said.lines) <= 3
