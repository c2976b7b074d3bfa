"""``outweigh reproduce``, ``plot`` and ``list``: records, tables, figures and the report."""

from __future__ import annotations

import argparse
import csv
import io
import re
import sys
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from outweigh.adversaries import ADVERSARIES, MEAN_ADVERSARIES, options_of
from outweigh.cli.arguments import OK, SOME_RUNS_FAILED
from outweigh.cli.progress import progress_of_runs
from outweigh.experiments.algorithms import ALGORITHMS
from outweigh.experiments.errors import ExperimentError
from outweigh.experiments.figures import panel
from outweigh.experiments.runs import do_runs, missing_runs
from outweigh.experiments.spec import Experiment, builtin_names, load, load_builtin
from outweigh.experiments.store import Store
from outweigh.experiments.summary import Cell, Summary, summarise
from outweigh.files.writing import write_file
from outweigh.libraries import MissingLibrary, version_of
from outweigh.report import build_report

_RECORDS = "records.jsonl"


def reproduce(arguments: argparse.Namespace) -> int:
    """Do the missing runs of some experiments, then draw and tabulate all of them."""
    experiments = _load(arguments.figures or builtin_names(), arguments.quick)
    store = Store(Path(arguments.out) / _RECORDS, version_of("outweigh"))
    runs = [run for experiment in experiments for run in experiment.runs()]
    with store:
        waiting = missing_runs(runs, store, arguments.retry_failed)
        n_before = len(runs) - len(waiting)
        _say(
            f"{len(experiments)} experiments, {len(runs)} runs, {n_before} of them already in "
            f"{store.path}"
        )
        try:
            records = do_runs(waiting, store, arguments.jobs or joblib.cpu_count())
            for _ in progress_of_runs(records, len(runs), n_before, sys.stderr):
                pass
        except KeyboardInterrupt as interrupt:
            done = len(runs) - len(missing_runs(runs, store))
            # Of its own kind, which decides the exit code.
            said = f"interrupted: {done} of {len(runs)} runs are safe in {store.path}"
            raise type(interrupt)(f"{said}; the same command goes on from there") from interrupt
        except TerminatedWorkerError as error:
            said = "a worker process died, perhaps for want of memory; go on with fewer --jobs"
            raise ExperimentError(said) from error
    summaries = [summarise(experiment, store) for experiment in experiments]
    return _publish(summaries, Path(arguments.out), arguments.report)


def plot(arguments: argparse.Namespace) -> int:
    """Draw and tabulate experiments from what is stored."""
    out, names = Path(arguments.out), arguments.figures
    if names and Path(names[0]).is_dir():
        # `outweigh plot DIR` is what people try first.
        out, names = Path(names[0]), names[1:]
    path = out / _RECORDS
    if not path.exists():
        raise ExperimentError(f"{path}: does not exist; `outweigh reproduce --out {out}` makes it")
    store = Store(path, version_of("outweigh"))
    summaries = [summarise(e, store) for e in _load(names or builtin_names(), arguments.quick)]
    known = [summary for summary in summaries if summary.xs]
    for summary in summaries:
        if names and not summary.xs:
            raise ExperimentError(f"{path}: has no records of {summary.experiment.name}")
    if not known:
        raise ExperimentError(f"{path}: has no records of the figures; name a TOML file to plot")
    return _publish(known, out, arguments.report)


def _load(names: Sequence[str], quick: bool) -> list[Experiment]:
    """Load all experiments before anything is done, and refuse two of one name."""
    experiments: dict[str, Experiment] = {}
    for name in dict.fromkeys(names):
        experiment = load(name)
        if experiment.name in experiments:
            raise ExperimentError(
                f"{name}: name: another experiment is called {experiment.name!r} too; rename one"
            )
        experiments[experiment.name] = experiment.quickly() if quick else experiment
    return list(experiments.values())


def _publish(summaries: Sequence[Summary], folder: Path, report: bool) -> int:
    written = [write_file(folder / "summary.csv", _as_csv(summaries))]
    images: dict[str, bytes] = {}
    try:
        for summary in summaries:
            name = summary.experiment.name
            drawn = panel(summary)
            images[name] = drawn["png"]
            written += [write_file(folder / f"{name}.{kind}", data) for kind, data in drawn.items()]
    except MissingLibrary as error:
        _say(f"no figures: {error}")
    if report:
        written.append(write_file(folder / "report.html", build_report(summaries, images)))
    for summary in summaries:
        print(_verdict(summary))
    print(f"\nwritten: {', '.join(str(path) for path in written)}")
    failed = [record for summary in summaries for record in summary.failures]
    for record in failed[:5]:
        _say(
            f"failed: {record['experiment']} at {record['x']:g}, {record['algorithm']}, "
            f"trial {record['trial']}: {record['failure']}"
        )
    if len(failed) > 5:
        _say(f"and {len(failed) - 5} more failures; --report shows all of them")
    return SOME_RUNS_FAILED if failed else OK


def _verdict(summary: Summary) -> str:
    """Say in a few lines how our algorithm did in an experiment, and who beat it where."""
    experiment = summary.experiment
    lines = [f"{experiment.name}: {experiment.title}"]
    if summary.ours is None:
        return lines[0]
    for x in summary.xs:
        mine = summary.cell(x, summary.ours)
        done = [cell for cell in summary.cells if cell.x == x and cell.n_done]
        rivals = [cell for cell in done if cell.algorithm in summary.rivals]
        best = min(rivals, key=lambda cell: cell.median, default=None)
        text = f"  {experiment.parameter} = {x:<8g} {summary.ours} {mine.median:.3f}"
        if best is not None:
            text += f"   best rival {best.algorithm} {best.median:.3f}"
            if best.beats(mine):
                where = "beyond" if best.outside(mine) else "within"
                text += f"   (better, {where} our quartiles)"
        lines.append(text)
    if summary.n_missing:
        lines.append(f"  {summary.n_missing} runs are missing")
    return "\n".join(lines)


def _as_csv(summaries: Sequence[Summary]) -> str:
    buffer = io.StringIO(newline="")
    names = ["experiment", "parameter", *(field.name for field in fields(Cell))]
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(names)
    for summary in summaries:
        about = (summary.experiment.name, summary.experiment.parameter)
        writer.writerows((*about, *astuple(cell)) for cell in summary.cells)
    return buffer.getvalue()


def _say(text: str) -> None:
    print(f"outweigh: {text}", file=sys.stderr)


def list_names(arguments: argparse.Namespace) -> int:
    """Print figures, algorithms and adversaries, or one of the three."""
    listed: dict[str, list[str]] = {"figures": [], "algorithms": [], "adversaries": []}
    for name in builtin_names():
        experiment = load_builtin(name)
        n_runs = sum(1 for _ in experiment.runs())
        listed["figures"].append(f"{name:<24} {experiment.title} ({n_runs} runs)")
    for algorithm in ALGORITHMS.values():
        notes = [algorithm.task]
        if algorithm.needs_inliers:
            notes.append("told the truth")
        if algorithm.max_features is not None:
            notes.append(f"up to {algorithm.max_features} features")
        if algorithm.extra is not None:
            notes.append(f"needs outweigh[{algorithm.extra}]")
        said = f"{algorithm.label} ({', '.join(notes)})"
        listed["algorithms"].append(f"{algorithm.name:<24} {said}")
    for name, adversary in ADVERSARIES.items():
        task = "mean" if name in MEAN_ADVERSARIES else "components"
        # The first line of the docstring, without its markup.
        what = re.sub(r":\w+:|`", "", (adversary.__doc__ or "").strip().splitlines()[0])
        said = f"{what}\n  {'':<24}   {task}; options {', '.join(options_of(name))}"
        listed["adversaries"].append(f"{name:<24} {said}")
    shown = [arguments.what] if arguments.what else list(listed)
    print("\n\n".join("\n  ".join([f"{section}:", *listed[section]]) for section in shown))
    if arguments.what is None:
        print("\nRun one with `outweigh reproduce NAME`; `outweigh reproduce --help` says more.")
    return OK
