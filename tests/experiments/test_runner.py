from __future__ import annotations

import gc
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outweigh.experiments import runs as module
from outweigh.experiments.algorithms import ALGORITHMS, Algorithm
from outweigh.experiments.runs import do_runs, execute, flagged_rows, missing_runs
from outweigh.experiments.spec import Experiment, Record, Run
from outweigh.experiments.store import Store

MEASURED = ("seconds", "peak_memory_mb")


def results(records: list[Record]) -> dict[str, Record]:
    """The records by key, without what differs from one time to the next."""
    return {r["key"]: {k: v for k, v in r.items() if k not in MEASURED} for r in records}


def run_all(experiment: Experiment, path: Path, jobs: int = 1) -> list[Record]:
    with Store(path, "1.0") as store:
        return list(do_runs(missing_runs(experiment.runs(), store), store, jobs))


class Broken:
    """An estimator that fails, or answers nonsense."""

    def __init__(self, answer: float | None) -> None:
        self.answer = answer

    def fit(self, X: Any) -> Broken:
        if self.answer is None:
            raise RuntimeError("it\nbroke")
        self.location_ = np.full(X.shape[1], self.answer)
        return self


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replace the coordinatewise median by something broken."""

    def install(answer: float | None) -> None:
        bad = replace(ALGORITHMS["median"], kinds=(lambda: Broken(answer),))
        monkeypatch.setattr(module, "ALGORITHMS", {**ALGORITHMS, "median": bad})
        module._warm_up.cache_clear()

    yield install
    module._warm_up.cache_clear()


def test_one_process_and_two_give_the_same_results(small: Experiment, tmp_path: Path) -> None:
    experiment = replace(small, algorithms=(*small.algorithms, "outweigh", "ransac"))
    alone = run_all(experiment, tmp_path / "1.jsonl", jobs=1)
    together = run_all(experiment, tmp_path / "2.jsonl", jobs=2)
    assert len(alone) == 2 * 5 * 3
    assert results(alone) == results(together)
    assert all(record["status"] == "ok" for record in alone)


def test_a_record_that_cannot_be_stored_ends_the_workers_without_a_warning(
    small: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(store: Store, record: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(Store, "append", full)
    with Store(tmp_path / "r.jsonl", "1.0") as store, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(OSError, match="No space left"):
            list(do_runs(small.runs(), store, jobs=2))
        gc.collect()
    assert [str(warning.message) for warning in said] == []


def test_the_order_of_the_runs_does_not_change_a_result(small: Experiment) -> None:
    runs = list(small.runs())
    forward = results([execute(run) for run in runs])
    assert forward == results([execute(run) for run in reversed(runs)])


def test_only_what_is_missing_is_done_and_each_run_once(small: Experiment, tmp_path: Path) -> None:
    runs = [*small.runs(), *small.quickly().runs()]
    path = tmp_path / "r.jsonl"
    with Store(path, "1.0") as store:
        for _, _record in zip(range(5), do_runs(missing_runs(runs, store), store), strict=False):
            pass
    stored = len(Store(path, "1.0").records)
    assert 5 <= stored < 2 * 9
    rest = run_all(small, path)
    assert stored + len(rest) == 18
    assert missing_runs(runs, Store(path, "1.0")) == []
    assert len(path.read_text().splitlines()) == 1 + 18


@pytest.mark.parametrize(
    ("answer", "failure"),
    [(None, "RuntimeError: it broke"), (np.nan, "FloatingPointError: the estimate is not finite")],
)
def test_a_failure_is_a_record_and_the_other_runs_go_on(
    small: Experiment, tmp_path: Path, broken: Any, answer: float | None, failure: str
) -> None:
    broken(answer)
    records = run_all(small, tmp_path / "r.jsonl")
    failed = [record for record in records if record["status"] == "failed"]
    assert len(records) == 18
    assert {record["algorithm"] for record in failed} == {"median"}
    assert {record["failure"] for record in failed} == {failure}
    assert len(failed) == 6
    assert all("error" not in record for record in failed)


def test_a_failure_is_tried_again_only_when_asked(
    small: Experiment, tmp_path: Path, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(None)
    path = tmp_path / "r.jsonl"
    run_all(small, path)
    runs = list(small.runs())
    assert missing_runs(runs, Store(path, "1.0")) == []
    monkeypatch.undo()
    module._warm_up.cache_clear()
    with Store(path, "1.0") as store:
        again = missing_runs(runs, store, retry_failed=True)
        assert {run.algorithm for run in again} == {"median"}
        list(do_runs(again, store))
    assert all(record["status"] == "ok" for record in Store(path, "1.0").records.values())


def test_data_that_cannot_be_made_is_a_failure_too(small: Experiment) -> None:
    experiment = replace(small, options={"inliers": "martian"})
    record = execute(next(experiment.runs()))
    assert record["status"] == "failed"
    assert "martian" in record["failure"]


def test_a_record_says_what_it_took_and_what_came_out(small: Experiment) -> None:
    run = next(run for run in replace(small, algorithms=("outweigh",)).runs() if run.point.x == 40)
    record = execute(run)
    assert record["status"] == "ok", record
    assert record["seed"] == run.seed
    assert record["error"] >= 0
    assert record["seconds"] > 0
    assert record["n_iter"] >= 0
    assert record["verdict"]
    assert record["versions"]["numpy"] == np.__version__
    assert 0 <= record["n_flagged_outliers"] <= record["n_flagged"] <= 40


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the kernel keeps no mark")
def test_peak_memory_is_that_of_the_fit_and_does_not_carry_over(
    small: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def using(megabytes: int) -> Record:
        class Hungry(Broken):
            def fit(self, X: Any) -> Broken:
                np.ones(megabytes << 17)
                return super().fit(X)

        hungry = replace(ALGORITHMS["median"], kinds=(lambda: Hungry(0.0),))
        monkeypatch.setattr(module, "ALGORITHMS", {**ALGORITHMS, "median": hungry})
        return execute(next(r for r in small.runs() if r.algorithm == "median"))

    assert using(60)["peak_memory_mb"] == pytest.approx(60, abs=5)
    assert using(20)["peak_memory_mb"] == pytest.approx(20, abs=5)


def test_warnings_of_an_algorithm_are_kept_in_its_record(
    small: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hesitant(Broken):
        def fit(self, X: Any) -> Broken:
            import warnings

            warnings.warn("not sure", UserWarning, stacklevel=1)
            return super().fit(X)

    hesitant = replace(ALGORITHMS["median"], kinds=(lambda: Hesitant(0.0),))
    monkeypatch.setattr(module, "ALGORITHMS", {**ALGORITHMS, "median": hesitant})
    record = execute(next(r for r in small.runs() if r.algorithm == "median"))
    assert record["warnings"] == ["UserWarning: not sure"]


@pytest.mark.parametrize(
    "algorithm",
    [a for a in ALGORITHMS.values() if a.extra is None],
    ids=lambda algorithm: algorithm.name,
)
def test_every_algorithm_does_a_run(small: Experiment, algorithm: Algorithm) -> None:
    experiment = replace(
        small,
        algorithms=(algorithm.name,),
        adversary="constant_bias" if algorithm.task == "mean" else "spiked_mixture",
        grid={"n_samples": [80]},
    )
    record = execute(next(experiment.runs()))
    assert record["status"] == "ok", record["failure"]
    assert np.isfinite(record["error"])


def test_an_estimator_that_does_not_say_flags_no_rows() -> None:
    assert flagged_rows(object(), np.zeros((3, 2))) is None


def test_a_run_can_be_sent_to_another_process(small: Experiment) -> None:
    import pickle

    run: Run = next(small.runs())
    assert pickle.loads(pickle.dumps(run)) == run
