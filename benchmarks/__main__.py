"""Run a study: ``python -m benchmarks NAME [options]``."""

from __future__ import annotations

import importlib
import sys

STUDIES = (
    "means",
    "overlap",
    "correlated",
    "gauntlet",
    "speed",
    "peers",
    "ablation",
    "contamination",
    "solvers",
    "pca",
    "pca_real",
    "pca_cases",
    "pca_grid",
)
# These need a checkout of another repository, or Dask, or much time (larger also 4 GB of disk), or
# are tools for a change of the library: freeze, fuzz, house, mutants and rules. Real and rules_real
# need `bench`.
ON_REQUEST = (
    "authors",
    "larger",
    "huge",
    "subsample",
    "chunks",
    "passes",
    "freeze",
    "fuzz",
    "house",
    "mutants",
    "rules",
    "rules_real",
    "real",
)


def main() -> int:
    names = sys.argv[1:2]
    known = (*STUDIES, *ON_REQUEST)
    if names and names[0] not in known:
        print(f"unknown study {names[0]!r}; choose from {', '.join(known)}", file=sys.stderr)
        return 2
    for name in names or STUDIES:
        importlib.import_module(f"benchmarks.{name}").main(sys.argv[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
