"""What the exit code of a command means."""

from __future__ import annotations

OK = 0
SOME_RUNS_FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
