"""Measure R's rrcov on the samples of the study on real tables, once, and keep the figures.

python -m benchmarks.real_rrcov

Needs Rscript and the R package rrcov (Debian: r-cran-rrcov). The study itself needs neither: it
reads benchmarks/results/real-rrcov.json.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.real import RRCOV, Record, judge, save
from benchmarks.real_cases import Case, cases
from benchmarks.real_peers import OF_RRCOV, Found
from benchmarks.real_tables import collect

SCRIPT = Path(__file__).with_name("real_peers.R")


def read(path: Path, case: Case) -> Record:
    """Return the measurements of what R wrote about a sample."""
    if not path.exists():
        return {"failed": "nothing written"}
    lines = path.read_text().splitlines()
    if lines[0].startswith("failed"):
        return {"failed": lines[0].removeprefix("failed,").strip(" ,")}
    location, scores, flagged = (_numbers(line) for line in lines)
    if len(scores) != len(case.X) or len(flagged) != len(case.X):
        return {"failed": "not a score for each row"}
    return judge(Found(location, scores, flagged > 0.5), case)


def _numbers(line: str) -> np.ndarray:
    return np.array([np.nan if "N" in part else float(part) for part in line.split(",")])


def main() -> None:
    """Write the samples, let R fit them, and keep what it found."""
    samples = list(cases(collect()))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, case in enumerate(samples):
            np.savetxt(folder / f"{number}.csv", case.X, delimiter=",", fmt="%.17g")
        subprocess.run(["Rscript", "--vanilla", str(SCRIPT), name], check=True)
        r, rrcov, robustbase = (folder / "versions").read_text().split()
        made_by = f"rrcov {rrcov}, robustbase {robustbase}, R {r}"
        runs = {
            estimator: {
                "made by": made_by,
                "records": {
                    case.key: read(folder / f"{number}-{estimator.split()[0]}.out", case)
                    for number, case in enumerate(samples)
                },
            }
            for estimator in OF_RRCOV
        }
    save(RRCOV, runs, {case.key: case.fingerprint() for case in samples})
    print(f"saved {RRCOV}")


if __name__ == "__main__":
    main()
