from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from outweigh.adversaries import ADVERSARIES
from outweigh.experiments.algorithms import ALGORITHMS
from outweigh.experiments.errors import ExperimentError
from outweigh.experiments.spec import builtin_names, load, load_builtin


def test_the_panels_of_the_figures_are_there() -> None:
    mean = {
        "linear-hiding-n",
        "linear-hiding-k",
        "tail-flipping-n",
        "tail-flipping-eps",
        "constant-bias-n",
        "constant-bias-k",
        "constant-bias-text",
    }
    assert set(builtin_names()) == mean | {
        "dense-mean",
        "sparse-pca-n",
        "sparse-pca-k",
        "dense-pca",
    }


@pytest.mark.parametrize("name", builtin_names())
def test_a_panel_has_an_oracle_and_ours_and_ten_trials(name: str) -> None:
    experiment = load_builtin(name)
    chosen = [ALGORITHMS[algorithm] for algorithm in experiment.algorithms]
    assert sum(algorithm.needs_inliers for algorithm in chosen) == 1
    assert any(algorithm.ours for algorithm in chosen)
    assert experiment.trials == 10


@pytest.mark.parametrize("name", builtin_names())
def test_no_two_curves_of_a_panel_have_one_colour(name: str) -> None:
    colours = [ALGORITHMS[algorithm].colour for algorithm in load_builtin(name).algorithms]
    assert len(set(colours)) == len(colours)


def test_no_two_algorithms_of_a_task_look_the_same() -> None:
    looks = [(a.task, a.colour, a.marker) for a in ALGORITHMS.values()]
    assert len(set(looks)) == len(looks)


def test_only_the_oracles_are_told_the_truth() -> None:
    assert {a.name for a in ALGORITHMS.values() if a.needs_inliers} == {"oracle", "pca_oracle"}


@pytest.mark.parametrize(
    ("old", "new", "key", "value", "choice"),
    [
        ('"median"', '"medain"', "algorithms", "'medain' (did you mean 'median'?)", "outweigh"),
        ('"median"', '"pca_filter"', "algorithms", "'pca_filter'", "outweigh"),
        ("constant_bias", "constant_bais", "adversary", "'constant_bais'", "linear_hiding"),
        ("trials = 3", "trails = 3", "trails", "'trails'", "trials"),
        ("n_features = 6", "n_feature = 6", "fixed.n_feature", "'n_feature'", "n_features"),
        ("[axes]\nlog_x", "[axes]\nlog", "axes.log", "'log'", "log_x"),
        ("[quick]\nvalues", "[quick]\ngrid", "quick.grid", "'grid'", "values"),
        ("[fixed]", "[options]\nbiass = 1.0\n[fixed]", "options.biass", "'biass'", "bias"),
    ],
)
def test_an_unknown_name_is_answered_with_file_key_value_and_choices(
    edited: Callable[..., Path], old: str, new: str, key: str, value: str, choice: str
) -> None:
    path = edited((old, new))
    with pytest.raises(ExperimentError) as caught:
        load(str(path))
    message = str(caught.value)
    assert message.startswith(f"{path}: {key}: ")
    assert value in message
    assert choice in message.split("choose from")[1]
    assert "\n" not in message


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("n_nonzero = 2", "n_nonzero = 7", "n_nonzero: must be at most n_features = 6 at"),
        (
            "n_nonzero = 2",
            "n_nonzero = 0",
            "The 'n_nonzero' parameter of the table fixed must be an int",
        ),
        (
            "n_nonzero = 2",
            "n_nonzero = 2.5",
            "The 'n_nonzero' parameter of the table fixed must be an int",
        ),
        (
            "contamination = 0.1",
            "contamination = 0.5",
            "The 'contamination' parameter of the table fixed must",
        ),
        ("contamination = 0.1", "", "fixed.contamination: is missing"),
        (
            "contamination = 0.1",
            "contamination = true",
            "The 'contamination' parameter of the table fixed must",
        ),
        (
            "[20, 40]",
            "[20, 0]",
            "The 'n_samples' parameter of the experiment at n_samples = 0 must be an int",
        ),
        (
            "[20, 40]",
            "[1]",
            "The 'n_samples' parameter of the experiment at n_samples = 1 must be an int",
        ),
        (
            "[20, 40]",
            "[20.5]",
            "The 'n_samples' parameter of the experiment at n_samples = 20.5 must be an int",
        ),
        ("[20, 40]", "[20, 20]", "grid.n_samples: must be a list of values, none of them twice"),
        ("[20, 40]", "[]", "grid.n_samples: must be a list of values"),
        ("[20, 40]", "[20, nan]", "grid.n_samples: must be a list of finite numbers"),
        ("[20, 40]", "[20]\nn_nonzero = [1]", "grid: must change one parameter"),
        (
            "values = [20]",
            "values = [0]",
            "The 'n_samples' parameter of the experiment at n_samples = 0 must be an int",
        ),
        ("trials = 3", "trials = 0", "The 'trials' parameter of the file must be an int"),
        ("trials = 3", "trials = '3'", "The 'trials' parameter of the file must be an int"),
        ("trials = 3", "", "trials: is missing"),
        ("log_x = true", "log_x = 1", "The 'log_x' parameter of the table axes must be"),
        ('"A small one"', "3", "The 'title' parameter of the file must be an instance of 'str'"),
        ('"A small one"', '"x"\nname = "../x"', "name: must be letters, digits"),
        ('"A small one"', '"x', "not valid TOML"),
        (
            "[fixed]",
            "[options]\nbias = 1.0\n[fixed]\nn_samples = 3",
            "fixed.n_samples: unknown key",
        ),
        (
            '["oracle", "median", "empirical"]',
            '["oracle", "oracle"]',
            "algorithms: must be a list of values, none of them twice",
        ),
        ('["oracle", "median", "empirical"]', "[]", "algorithms: must be a list of values"),
    ],
)
def test_an_impossible_value_is_refused_in_one_line_that_names_the_key(
    edited: Callable[..., Path], old: str, new: str, problem: str
) -> None:
    path = edited((old, new))
    with pytest.raises(ExperimentError) as caught:
        load(str(path))
    assert str(caught.value).startswith(f"{path}: {problem}")
    assert "\n" not in str(caught.value)


def test_an_algorithm_is_refused_where_there_are_more_features_than_it_takes(
    edited: Callable[..., Path],
) -> None:
    path = edited(('"median"', '"sdp"'), ("n_features = 6", "n_features = 61"))
    with pytest.raises(ExperimentError, match="'sdp' takes at most 60 features"):
        load(str(path))


def test_a_missing_file_and_an_unknown_figure_are_named(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"none\.toml: cannot be read: No such file"):
        load(str(tmp_path / "none.toml"))
    with pytest.raises(ExperimentError, match="did you mean 'dense-mean'"):
        load("dense-maen")


def test_a_dense_problem_leaves_the_sparsity_out(edited: Callable[..., Path]) -> None:
    experiment = load(str(edited(("n_nonzero = 2", ""))))
    assert all(point.n_nonzero is None for point in experiment.points())


@pytest.mark.parametrize("adversary", list(ADVERSARIES))
def test_every_adversary_can_be_used_in_a_file(edited: Callable[..., Path], adversary: str) -> None:
    path = edited(
        ("constant_bias", adversary),
        ("n_features = 6", "n_features = 20"),
        *(
            [('["oracle", "median", "empirical"]', '["pca_oracle", "pca_empirical"]')]
            if "spike" in adversary
            else []
        ),
    )
    assert load(str(path)).adversary == adversary
