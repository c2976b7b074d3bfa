"""Outliers that overlap the clean rows: means against the oracle, on named cases and on a grid.

    python -m benchmarks overlap cases [--seeds N]    the cases of a table with targets
    python -m benchmarks overlap grid [--fresh]       the 300 fits of `benchmarks/grid.py`

The oracle is the same estimator's read-out from the clean rows only: their mean, its k largest
entries for the sparse mean. Noise of deviation one, uncorrelated, is declared (`scale=None`,
`covariance=None`); with --defaults nothing is.

An attack is *visible* where the variance along its direction exceeds that of the clean rows by
more than 4 standard errors, and where it is not one of those that second moments cannot see.

Each fit of the grid is written to a file as it ends, with a fingerprint of the library: a run that
was interrupted goes on where it ended, and one after a change begins anew. --before FILE shows an
earlier file of the same kind beside it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import outweigh
from benchmarks.against_oracle import DECLARED, estimator, measure
from benchmarks.attacked import ATTACKS, LAWS, Scene
from benchmarks.grid import SIZES, Case, cases
from benchmarks.options import asked
from benchmarks.pairing import FIRST_SEED, RESULTS
from benchmarks.tables import Line, format_lines, format_number, show
from outweigh.adversaries import Sample, make

Record = dict[str, Any]

VISIBLE = 4.0  # standard errors
FAR_OFF = 2.0  # a ratio above this is a wrong answer
LOST = 0.02  # clean rows may lose this share of their weight
SHOWN = 15  # worst cases

# Named cases


@dataclass(frozen=True)
class Named:
    """A case of the table and the ratios that are asked for, with known share and with "auto"."""

    name: str
    draw: Callable[[int], Sample]
    eps: float
    k: int | None
    known: float
    auto: float


def attacked(name: str, n: int, d: int, k: int, eps: float) -> Callable[[int], Sample]:
    """Return what draws Gaussian rows under an attack, given a seed."""
    return lambda seed: ATTACKS[name](Scene.draw("gaussian", n, d, k, eps, seed))


def adversary(name: str, n: int, d: int, k: int, eps: float) -> Callable[[int], Sample]:
    """Return what draws rows from an adversary of the library, given a seed."""
    return lambda seed: make(name, n, d, k, eps, seed)


NAMED = (
    *(
        Named(
            f"mean, wrong support, {n:,} x 50, k={k}, eps .1",
            adversary("wrong_support", n, 50, k, 0.1),
            0.1,
            None,
            1.1,
            1.15,
        )
        for n, k in ((50_000, 3), (50_000, 5), (200_000, 5))
    ),
    Named(
        "sparse mean, support 3, 20,000 x 20, k=5, eps .2",
        attacked("support 3", 20_000, 20, 5, 0.2),
        0.2,
        5,
        1.1,
        1.15,
    ),
    Named(
        "sparse mean, tenth doubled, 20,000 x 300, k=10, eps .2",
        attacked("tenth doubled", 20_000, 300, 10, 0.2),
        0.2,
        10,
        1.5,
        1.7,
    ),
    Named(
        "sparse mean, support 2, 3000 x 300, k=10, eps .1",
        attacked("support 2", 3000, 300, 10, 0.1),
        0.1,
        10,
        2.0,
        2.0,
    ),
    *(
        Named(
            f"sparse mean, tight groups, 3000 x 300, k=10, eps {eps}",
            attacked("tight groups", 3000, 300, 10, eps),
            eps,
            10,
            target,
            target,
        )
        for eps, target in ((0.1, 1.1), (0.2, 1.2), (0.3, 1.3))
    ),
)
# Of clean rows: laws, and the fits in which they may lose weight. Rows, features, entries or None.
CLEAN_LAWS = ("laplace", "t5", "lognormal", "exponential")
CLEAN_FITS = ((500, 20, None), (2000, 50, None), (5000, 20, None), (1000, 200, 5), (5000, 50, 5))
CLEAN_TARGET = 0.05


def run_named(case: Named, count: int, options: Record) -> Line:
    """Return one line of the table: medians over seeds, and the range of the ratios."""
    runs: dict[str, list[Record]] = {"known": [], "auto": []}
    for seed in range(FIRST_SEED, FIRST_SEED + count):
        sample = case.draw(seed)
        for kind, told in (("known", case.eps), ("auto", "auto")):
            model = estimator(case.k, told, **options)
            runs[kind].append(measure(model, sample, case.k))
    line: dict[str, str | float] = {"case": case.name}
    for kind, target in (("known", case.known), ("auto", case.auto)):
        ratios = [run["ratio"] for run in runs[kind]]
        line[kind] = float(np.median(ratios))
        line[f"{kind}, range"] = f"{min(ratios):.2f} to {max(ratios):.2f}"
        line[f"{kind}, asked"] = f"{target:.2f} {'yes' if line[kind] <= target else 'NO'}"
        line[f"{kind}, clean"] = f"{sum(run['clean'] for run in runs[kind])} of {count}"
        line[f"{kind}, seconds"] = float(np.median([run["seconds"] for run in runs[kind]]))
        line[f"{kind}, evaluations"] = f"{np.median([run['evaluations'] for run in runs[kind]]):g}"
    return line


def run_clean(law: str, count: int, options: Record) -> Line:
    """Return how often clean rows of a law lose more than 2 % of their weight to "auto"."""
    line: dict[str, str | float] = {"clean rows": law}
    lost: list[bool] = []
    for n, d, k in CLEAN_FITS:
        removed = []
        for seed in range(FIRST_SEED, FIRST_SEED + count):
            scene = Scene.draw(law, n, d, k or d, 0.0, seed)
            sample = Sample(scene.X, scene.kept, scene.mean)
            removed.append(measure(estimator(k, "auto", **options), sample, k)["removed"] > LOST)
        line[f"{n} x {d}" + (f", k={k}" if k else "")] = float(np.mean(removed))
        lost += removed
    line["all"] = share = float(np.mean(lost))
    line["asked"] = f"{CLEAN_TARGET:.2f} {'yes' if share <= CLEAN_TARGET else 'NO'}"
    return line


def run_cases(count: int, options: Record, name: str) -> None:
    """Run the named cases and print their two tables."""
    show(name, [run_named(case, count, options) for case in NAMED])
    # A fit of clean rows is quick, and shares need more of them than medians do.
    clean = [run_clean(law, 4 * count, options) for law in CLEAN_LAWS]
    show(f"{name}-clean", clean)


# The grid


def fingerprint() -> str:
    """Return a short digest of the library's source, which decides what a fit answers."""
    root = Path(outweigh.__file__).parent
    digest = sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def run_case(case: Case, options: Record) -> Record:
    """Fit one case of the grid and return all that is known about it."""
    sample = case.draw()
    excess = sample.excess
    found = measure(estimator(case.entries, case.told, **options), sample, case.entries)
    visible = excess > VISIBLE and case.kind != "unseen"
    return {**asdict(case), "kind": case.kind, "excess": excess, "visible": visible, **found}


def read(path: Path) -> list[Record]:
    """Return the fits that a file holds."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run_grid(
    path: Path, options: Record, fresh: bool = False, grid: Iterable[Case] | None = None
) -> list[Record]:
    """Fit what of the grid the file does not hold yet, and return all of it in order."""
    library = fingerprint()
    held = {} if fresh else {r["number"]: r for r in read(path) if r["library"] == library}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in held.values()))
    with path.open("a") as file:
        for case in cases() if grid is None else grid:
            if case.number not in held:
                held[case.number] = {**run_case(case, options), "library": library}
                file.write(json.dumps(held[case.number]) + "\n")
                file.flush()
    return [held[number] for number in sorted(held)]


def summary(name: str, records: Sequence[Record]) -> Line:
    """Return one line about the visible fits among some: ratios, and verdicts that were wrong."""
    seen = [r for r in records if r["visible"]]
    ratios = np.array([r["ratio"] for r in seen])
    clean = [r for r in seen if r["clean"]]
    wrong = [r for r in clean if r["ratio"] > FAR_OFF]
    line: dict[str, str | float] = {"fits": name, "visible": f"{len(seen)} of {len(records)}"}
    if not seen:
        return {**line, **dict.fromkeys(SUMMARY, "-")}
    values = (
        format_number(float(np.exp(np.log(ratios).mean()))),
        format_number(float(np.quantile(ratios, 0.9))),
        f"{np.mean(ratios > FAR_OFF):.1%}",
        f"{len(clean)}",
        f"{len(wrong)}" + (f" ({len(wrong) / len(clean):.1%})" if clean else ""),
    )
    return {**line, **dict(zip(SUMMARY, values, strict=True))}


SUMMARY = ("geometric mean", "90 % quantile", "above 2", "called clean", "of these above 2")


def size_of(record: Record) -> str:
    return f"{record['n']} x {record['d']}"


# What the summary is broken down by: title, the values in their order, and that of a fit.
BREAKDOWNS: dict[str, tuple[Sequence[Any], Callable[[Record], Any]]] = {
    "kind": (("overlapping", "apart", "unseen"), lambda r: r["kind"]),
    "told": (("known", "auto"), lambda r: "known" if r["known"] else "auto"),
    "estimator": (
        ("RobustMean", "RobustSparseMean"),
        lambda r: "RobustSparseMean" if r["sparse"] else "RobustMean",
    ),
    "law": (tuple(LAWS), lambda r: r["law"]),
    "size": (tuple(f"{n} x {d}" for n, d, _ in SIZES), size_of),
    "attack": (tuple(ATTACKS), lambda r: r["attack"]),
}


def breakdown(records: Sequence[Record], *titles: str) -> list[Line]:
    """Return the summary of all fits and of the parts of some breakdowns."""
    lines = [summary("**all**", records)]
    for title in titles:
        values, value_of = BREAKDOWNS[title]
        for value in values:
            part = [r for r in records if value_of(r) == value]
            lines.append(summary(f"{title}: {value}", part))
    return lines


def worst(records: Sequence[Record], count: int = SHOWN) -> list[Line]:
    """Return the visible fits of the largest ratios, with their numbers."""
    seen = sorted((r for r in records if r["visible"]), key=lambda r: -r["ratio"])
    return [
        {
            "case": f"{r['number']}",
            "attack": r["attack"],
            "law": r["law"],
            "n x d, k": f"{size_of(r)}, {r['k']}",
            "fit": ("sparse, " if r["sparse"] else "dense, ") + ("known" if r["known"] else "auto"),
            "eps": f"{r['eps']:g}",
            "removed": f"{r['removed']:.3f}",
            "excess": f"{r['excess']:.1f}",
            "ratio": f"{r['ratio']:.2f}",
            "verdict": r["verdict"].split(":")[0],
        }
        for r in seen[:count]
    ]


def cost(records: Sequence[Record]) -> str:
    """Return the processor time and the evaluations of all fits."""
    seconds = sum(r["seconds"] for r in records)
    evaluations = sum(r["evaluations"] for r in records)
    return f"{len(records)} fits, {seconds:.1f} s of processor time, {evaluations} evaluations"


def compare(before: Sequence[Record], after: Sequence[Record]) -> str:
    """Return both summaries, and the visible fits whose ratio moved most either way."""
    earlier = {r["number"]: r for r in before}
    both = [(earlier[r["number"]], r) for r in after if r["visible"] and r["number"] in earlier]
    moved = sorted(both, key=lambda pair: pair[1]["ratio"] / pair[0]["ratio"])
    # Fits that moved to the better and to the worse, each once where there are few.
    shown = moved if len(moved) <= 2 * SHOWN else [*moved[:SHOWN], *moved[-SHOWN:]]
    lines = [
        {
            "case": f"{new['number']}",
            "attack": new["attack"],
            "law": new["law"],
            "n x d": size_of(new),
            "before": f"{old['ratio']:.2f}",
            "after": f"{new['ratio']:.2f}",
        }
        for old, new in shown
    ]
    ends = [summary("before", before), summary("after", after)]
    return f"{format_lines(ends)}\n\nmoved most\n{format_lines(lines)}"


def report_grid(records: Sequence[Record], name: str) -> None:
    """Print the summary, its breakdowns and the worst cases."""
    show(name, breakdown(records, "kind", "told", "estimator", "law", "size"))
    show(f"{name}-attacks", breakdown(records, "attack"))
    print(f"\nworst visible\n{format_lines(worst(records))}\n\n{cost(records)}")


def main(argv: list[str]) -> None:
    """Run the parts asked for, both where none is."""
    arguments = asked(
        __name__,
        __doc__,
        argv,
        "part",
        part={"nargs": "*", "help": "cases, grid; both when none is given"},
        seeds=(5, "of each named case"),
        fresh=(False, "fit the whole grid again"),
        before={"type": Path, "help": "an earlier file of the grid to compare with"},
        defaults=(False, "declare nothing: scale, covariance as they are"),
    )
    parts = arguments.part or ["cases", "grid"]
    if unknown := set(parts) - {"cases", "grid"}:
        sys.exit(f"unknown part {', '.join(sorted(unknown))}; choose from cases, grid")
    options = {} if arguments.defaults else DECLARED
    ending = "-defaults" if arguments.defaults else ""
    # Read first: it may be the very file that this run writes.
    before = read(arguments.before) if arguments.before else []
    with threadpool_limits(1):
        if "cases" in parts:
            run_cases(arguments.seeds, options, f"overlap-cases{ending}")
        if "grid" in parts:
            path = RESULTS / f"overlap-grid{ending}.jsonl"
            records = run_grid(path, options, arguments.fresh)
            report_grid(records, f"overlap-grid{ending}")
            if before:
                print(f"\n{compare(before, records)}")
