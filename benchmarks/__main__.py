"""Run a study: ``python -m benchmarks NAME [options]``."""

from __future__ import annotations

import importlib
import sys

STUDIES = ("means", "speed", "peers", "ablation", "contamination", "solvers")


def main() -> int:
    names = sys.argv[1:2]
    if names and names[0] not in STUDIES:
        print(f"unknown study {names[0]!r}; choose from {', '.join(STUDIES)}", file=sys.stderr)
        return 2
    for name in names or STUDIES:
        importlib.import_module(f"benchmarks.{name}").main(sys.argv[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
