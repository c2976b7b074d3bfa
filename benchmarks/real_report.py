"""Tables and a picture of what was measured on real tables, each half of the tables apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.real_cases import ATTACKS, CLASS_SHARES, Case
from benchmarks.real_peers import ESTIMATORS, YARDSTICK
from benchmarks.real_tables import DOCUMENTED, half
from benchmarks.tables import Line, format_lines, show

HALVES = ("chosen", "apart")
# Flagged more than this of an ordinary table is loud; of clean Gaussian rows, more than that.
QUIET, QUIET_GAUSSIAN = 0.10, 0.05
# Numbers in a sample that is not small.
LARGE = 1000
NOTHING = "-"
FIGURE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "real.png"

Records = Mapping[str, Mapping[str, Any]]
Runs = Mapping[str, Records]
# What a table shows of the records of one estimator on some samples.
Columns = Callable[[list[Mapping[str, Any]]], dict[str, str | float]]


def report(samples: Sequence[Case], runs: Runs, write: bool) -> None:
    """Print all tables; if asked to, also write them, the page and the picture."""
    tables = {
        "real-sets": documented_sets(samples),
        "real-ordinary": by_half(samples, runs, ["ordinary"], _quiet),
        "real-documented": by_half(samples, runs, ["documented"], _ranked),
        "real-gaussian": by_half(samples, runs, ["gaussian"], _gaussian),
        "real-verdicts": verdicts(samples, runs),
        "real-time": times(samples, runs),
    }
    for part in HALVES:
        chosen = [case for case in samples if case.half == part]
        tables[f"real-classes-{part}"] = classes(chosen, runs)
        tables[f"real-attacks-{part}"] = attacks(chosen, runs)
    for name, lines in tables.items():
        if lines and write:
            show(name, lines)
        elif lines:
            print(f"\n{name}\n{format_lines(lines)}")
    if write:
        draw(samples, runs)
        from benchmarks import pages

        pages.main()


# Tables


def of(samples: Sequence[Case], records: Records, kinds: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the records of samples of some kinds, those of fits that failed among them."""
    keys = [case.key for case in samples if case.kind in kinds]
    return [records[key] for key in keys if key in records]


def numbers(records: list[Mapping[str, Any]], name: str) -> np.ndarray:
    """Return a measurement from the fits that made it."""
    return np.array([record[name] for record in records if name in record])


def middle(records: list[Mapping[str, Any]], name: str) -> str | float:
    """Return the median of a measurement."""
    values = numbers(records, name)
    return float(np.median(values)) if values.size else NOTHING


def fixed_share(name: str) -> bool:
    """Tell whether an estimator flags the same share of any table by default: a tenth."""
    return name in ESTIMATORS and ESTIMATORS[name].fixed_share


def by_half(
    samples: Sequence[Case], runs: Runs, kinds: Sequence[str], columns: Columns
) -> list[Line]:
    """Return a line for each estimator, with the columns of each half beside each other."""
    lines: list[Line] = []
    for name, records in runs.items():
        line: dict[str, str | float] = {"estimator": name}
        for part in HALVES:
            found = of([case for case in samples if case.half == part], records, kinds)
            line |= {f"{column}, {part}": value for column, value in columns(found).items()}
            # Quiet by definition, and loud only as a tenth is rounded up to a whole row.
            if fixed_share(name) and columns is _quiet:
                line[f"at most 10 % flagged, {part}"] = "always a tenth"
        lines.append(line)
    return lines


def _quiet(records: list[Mapping[str, Any]]) -> dict[str, str | float]:
    quiet = int(np.sum(numbers(records, "flagged") <= QUIET))
    return {
        "at most 10 % flagged": f"{quiet} of {len(records)}",
        "median flagged": middle(records, "flagged"),
        "failed": _failed(records),
    }


def _failed(records: list[Mapping[str, Any]]) -> str:
    return str(sum("failed" in record for record in records))


def ranking(records: list[Mapping[str, Any]]) -> np.ndarray:
    """Return the AUC of each fit; one that failed tells no row from another."""
    return np.array([record.get("auc", 0.5) for record in records])


def _ranked(records: list[Mapping[str, Any]]) -> dict[str, str | float]:
    auc = ranking(records)
    f1 = np.array([record.get("f1", 0.0) for record in records])
    return {
        "AUC": float(auc.mean()) if auc.size else NOTHING,
        "worst": float(auc.min()) if auc.size else NOTHING,
        "F1": float(f1.mean()) if f1.size else NOTHING,
        "failed": _failed(records),
    }


def _gaussian(records: list[Mapping[str, Any]]) -> dict[str, str | float]:
    flagged = numbers(records, "flagged")
    return {
        "median flagged": middle(records, "flagged"),
        "above 5 %": f"{int(np.sum(flagged > QUIET_GAUSSIAN))} of {len(records)}",
        "error / mean": middle(records, "error/mean"),
        "failed": _failed(records),
    }


def classes(samples: Sequence[Case], runs: Runs) -> list[Line]:
    """Return, for each share of one class planted in another, medians over the pairs."""
    lines: list[Line] = []
    for name, records in runs.items():
        line: dict[str, str | float] = {"estimator": name}
        for share in CLASS_SHARES:
            found = of(samples, records, [f"class {share:g}"])
            line[f"error / mean, {share:g}"] = middle(found, "error/mean")
            line[f"AUC, {share:g}"] = middle(found, "auc")
            line[f"clean flagged, {share:g}"] = middle(found, "clean flagged")
        lines.append(line)
    return lines


def attacks(samples: Sequence[Case], runs: Runs) -> list[Line]:
    """Return, for each attack, the median error over what the oracle is off by on average."""
    lines: list[Line] = []
    kinds = {attack: [c.kind for c in samples if c.kind.startswith(attack)] for attack in ATTACKS}
    for name, records in runs.items():
        line: dict[str, str | float] = {"estimator": name}
        for attack in ATTACKS:
            line[attack] = middle(of(samples, records, kinds[attack]), "error/oracle")
        found = of(samples, records, [kind for group in kinds.values() for kind in group])
        auc = numbers(found, "auc")
        line["AUC below 0.95"] = f"{int(np.sum(auc < 0.95))} of {len(found)}"
        line["clean flagged"] = middle(found, "clean flagged")
        line["failed"] = _failed(found)
        lines.append(line)
    return lines


def verdicts(samples: Sequence[Case], runs: Runs) -> list[Line]:
    """Return how often an estimator that gives a verdict says clean, and is loud all the same."""
    lines: list[Line] = []
    for name, records in runs.items():
        line: dict[str, str | float] = {"estimator": name}
        for part in HALVES:
            keys = [case.key for case in samples if case.half == part]
            judged = [records[k] for k in keys if k in records and "said clean" in records[k]]
            said = [record for record in judged if record["said clean"]]
            loud = sum(record["clean flagged"] > QUIET for record in said)
            line[f"said clean, {part}"] = f"{len(said)} of {len(judged)}"
            line[f"and flagged over 10 % of clean rows, {part}"] = str(loud)
            if not judged:
                break
        else:
            lines.append(line)
    return lines


def times(samples: Sequence[Case], runs: Runs) -> list[Line]:
    """Return times over those of the yardstick on the same samples in the same run.

    Sums, because the clock of the processor is too coarse for the smallest samples.
    """
    sizes = {"small samples": (0, LARGE), "larger samples": (LARGE, np.inf)}
    lines: list[Line] = []
    for name, records in runs.items():
        line: dict[str, str | float] = {"estimator": name}
        for column, (least, most) in sizes.items():
            timed = [
                records[case.key]
                for case in samples
                if least <= case.X.size < most
                and {"seconds", "beside"} <= records.get(case.key, {}).keys()
            ]
            beside = numbers(timed, "beside").sum()
            line[column] = float(numbers(timed, "seconds").sum() / beside) if beside else NOTHING
        if name != YARDSTICK and set(line.values()) != {name, NOTHING}:
            lines.append(line)
    return lines


def documented_sets(samples: Sequence[Case]) -> list[Line]:
    """Return the tables with documented outliers, and where those are documented."""
    shapes = {case.name: case.X.shape for case in samples if case.kind == "documented"}
    return [
        {
            "table": entry.item + (" (logarithms)" if entry.logarithm else ""),
            "rows x columns": "{} x {}".format(*shapes[f"{entry.package}/{entry.item}"]),
            "outliers": _ranges(entry.rows),
            "half": half(entry.item),
            "documented in": entry.reference,
        }
        for entry in DOCUMENTED
        if f"{entry.package}/{entry.item}" in shapes
    ]


def _ranges(rows: Sequence[int]) -> str:
    groups = np.split(np.array(rows), np.flatnonzero(np.diff(rows) > 1) + 1)
    return ", ".join(f"{g[0]}-{g[-1]}" if len(g) > 2 else ", ".join(map(str, g)) for g in groups)


# Picture


def draw(samples: Sequence[Case], runs: Runs) -> None:
    """Draw how many ordinary tables are left in peace against how well outliers are ranked."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(11.0, 4.6), sharey=True)
    drawn: list[list[tuple[float, float, str]]] = []
    for part in HALVES:
        chosen = [case for case in samples if case.half == part]
        points: list[tuple[float, float, str]] = []
        for name, records in runs.items():
            quiet = of(chosen, records, ["ordinary"])
            auc = ranking(of(chosen, records, ["documented"]))
            if quiet and auc.size:
                share = float(np.sum(numbers(quiet, "flagged") <= QUIET)) / len(quiet)
                share = 1.0 if fixed_share(name) else share
                points.append((share, float(auc.mean()), name))
        drawn.append(points)
    least = min(y for points in drawn for _, y, _ in points)
    for axes, part, points in zip(panels, HALVES, drawn, strict=True):
        _label(axes, points, least)
        title = {"chosen": "tables that rules may be chosen on", "apart": "tables kept apart"}[part]
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("share of ordinary tables with at most 10 % of the rows flagged")
        axes.set_xlim(-0.03, 1.42)
        axes.set_xticks(np.linspace(0.0, 1.0, 6))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("AUC on documented outliers, mean")
    figure.tight_layout()
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, dpi=130, metadata={"Software": None})
    plt.close(figure)
    print(f"saved {FIGURE}")


def _label(axes: Any, points: list[tuple[float, float, str]], least: float) -> None:
    """Mark the points and name them in a column beside them, in the order of their height."""
    points = sorted(points, key=lambda point: (point[1], point[0]))
    places = np.linspace(least, 1.0, len(points))
    for (x, y, name), place in zip(points, places, strict=True):
        ours = name.startswith("**")
        colour = "#c0392b" if ours else "#34495e"
        face = "white" if fixed_share(name) else colour
        axes.plot([x, 1.07], [y, place], color="#cccccc", linewidth=0.6, zorder=1)
        axes.scatter([x], [y], s=42, facecolor=face, edgecolor=colour, zorder=2)
        weight = "bold" if ours else "normal"
        axes.text(
            1.08, place, name.strip("*"), fontsize=8, va="center", color=colour, fontweight=weight
        )
