from __future__ import annotations

from dataclasses import replace

import pytest

from outweigh.experiments.spec import Experiment, builtin_names, load_builtin


def test_every_point_algorithm_and_trial_is_run_once(small: Experiment) -> None:
    runs = list(small.runs())
    assert len(runs) == 2 * 3 * 3
    assert len({run.key for run in runs}) == len(runs)


def test_all_algorithms_see_the_same_sample_and_no_two_samples_share_a_seed(
    small: Experiment,
) -> None:
    seeds: dict[tuple[float, int], set[int]] = {}
    for run in small.runs():
        seeds.setdefault((run.point.x, run.trial), set()).add(run.seed)
    assert all(len(group) == 1 for group in seeds.values())
    assert len(set.union(*seeds.values())) == len(seeds)


def test_seeds_do_not_depend_on_which_algorithms_and_points_there_are(small: Experiment) -> None:
    fewer = replace(small, algorithms=("median",), grid={"n_samples": [40]}, trials=1)
    (run,) = fewer.runs()
    assert run in list(small.runs())


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"adversary": "tight_cluster"},
        {"seed": 1},
        {"options": {"bias": 1.0}},
        {"fixed": {"n_features": 6, "n_nonzero": 2, "contamination": 0.2}},
    ],
)
def test_whatever_changes_a_result_changes_every_key(
    small: Experiment, change: dict[str, object]
) -> None:
    keys = {run.key for run in small.runs()}
    assert keys.isdisjoint(run.key for run in replace(small, **change).runs())  # type: ignore[arg-type]


def test_seeds_are_the_same_on_every_machine() -> None:
    run = next(load_builtin("constant-bias-n").runs())
    assert (run.seed, run.key) == (3674381294, "e2e6fe599e5a125f3532")


@pytest.mark.parametrize("name", builtin_names())
def test_what_a_quick_look_ran_need_not_run_again(name: str) -> None:
    experiment = load_builtin(name)
    full = {run.key for run in experiment.runs()}
    quick = {run.key for run in experiment.quickly().runs()}
    assert quick < full
