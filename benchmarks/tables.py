"""Studies for the documentation: their seeds, and medians shown as a table and saved."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.pairing import RESULTS

# Neither the seeds of the tests nor those of the other studies.
FIRST_SEED = 2000

Line = Mapping[str, str | float]


def seeds(count: int) -> range:
    return range(FIRST_SEED, FIRST_SEED + count)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call returns, and how long it took."""
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each measurement over the runs."""
    return {name: float(np.median([run[name] for run in runs])) for name in runs[0]}


def format_lines(lines: Sequence[Line]) -> str:
    """Return the lines as a Markdown table."""
    header = list(lines[0])
    cells = [
        [value if isinstance(value, str) else format_number(value) for value in line.values()]
        for line in lines
    ]
    rows = [header, ["---"] * len(header), *cells]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def format_number(value: float) -> str:
    """Return a count as it is and a measurement with about three digits."""
    if value == 0.0 or (value >= 2.0 and value == round(value)):
        return f"{value:.0f}"
    decimals = 3 if value < 0.9995 else 2 if value < 10.0 else 1
    return f"{value:.{decimals}f}"


def show(name: str, lines: Sequence[Line]) -> None:
    """Print the table and write it as JSON beside the other results."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(list(lines), indent=1) + "\n")
    print(f"\n{name}\n{format_lines(lines)}\nsaved {path}")
