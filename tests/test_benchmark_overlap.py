"""The studies of attacked means: laws, attacks, the fixed grid, and what is told of fits."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from hashlib import sha256
from itertools import combinations

import numpy as np
import pytest

from benchmarks import gauntlet, overlap
from benchmarks.against_oracle import DECLARED, estimator, measure, oracle_error
from benchmarks.attacked import ATTACKS, LAWS, OVERLAPPING, UNSEEN, Attacked, Scene, kind_of
from benchmarks.grid import N_CASES, cases
from outweigh.adversaries import ADVERSARIES, SPIKE_ADVERSARIES


def scene(law="gaussian", n=4000, d=12, k=4, eps=0.2, seed=3) -> Scene:
    return Scene.draw(law, n, d, k, eps, seed)


@pytest.mark.parametrize("law", LAWS)
def test_a_law_has_mean_zero_and_variance_one(law):
    noise = LAWS[law](np.random.default_rng(0), (200_000, 2))
    assert np.abs(noise.mean(axis=0)).max() < 0.02
    np.testing.assert_allclose(noise.var(axis=0), 1.0, atol=0.05)


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_replaces_only_rows_that_it_marks(attack):
    before = scene()
    sample = ATTACKS[attack](before)
    assert sample.X.shape[1] == before.d
    np.testing.assert_array_equal(sample.truth, before.mean)
    np.testing.assert_allclose(np.linalg.norm(sample.directions, axis=1), 1.0)
    rows = {tuple(row) for row in before.X}
    assert all(tuple(row) in rows for row in sample.X[sample.inliers][:50])
    expected = 0 if attack == "subtractive" else 800
    assert sample.n_outliers == expected


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_fits_into_few_features_and_few_rows(attack):
    small = Scene.draw("rounded", 150, 5, 2, 0.01, 0)
    assert np.isfinite(ATTACKS[attack](small).excess)


@pytest.mark.parametrize("attack", sorted(set(OVERLAPPING) - {"linear hiding"}))
def test_many_overlapping_outliers_are_visible(attack):
    assert ATTACKS[attack](scene()).excess > 4.0


@pytest.mark.parametrize("attack", UNSEEN)
def test_what_second_moments_cannot_see_raises_no_variance(attack):
    # Flipped rows leave it, against a clean part that lacks a tail.
    sample = ATTACKS[attack](scene())
    variance = (sample.X @ sample.directions[0]).var()
    assert variance < 1.1


def test_the_excess_is_in_standard_errors_of_a_variance():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((10_000, 3))
    kept = np.ones(10_000, dtype=bool)
    kept[:1000] = False
    X[:1000, 0] += 3.0
    sample = Attacked(X, kept, np.zeros(3), directions=np.eye(3)[:1])
    # eps (1 - eps) shift^2 over sqrt(2 / n).
    assert sample.excess == pytest.approx(0.09 * 9.0 / np.sqrt(2e-4), rel=0.1)


def test_the_oracle_keeps_as_many_entries_as_the_estimate():
    sample = ATTACKS["far"](scene(k=2))
    clean = sample.X[sample.inliers].mean(axis=0)
    largest = np.argsort(-np.abs(clean))[:2]
    kept = np.zeros_like(clean)
    kept[largest] = clean[largest]
    assert oracle_error(sample, 2) == pytest.approx(np.linalg.norm(kept - sample.truth))
    assert oracle_error(sample, None) == pytest.approx(np.linalg.norm(clean - sample.truth))


def test_far_outliers_cost_nothing():
    sample = ATTACKS["far"](scene(n=600, eps=0.1))
    found = measure(estimator(None, 0.1, **DECLARED), sample, None)
    assert found["ratio"] == pytest.approx(1.0, abs=0.05)
    assert found["clean"]


def test_the_grid_is_as_it_was_first_written_down():
    text = json.dumps([asdict(case) for case in cases()])
    digest = sha256(text.encode()).hexdigest()
    assert digest.startswith("fe7e9a301bf0f653")


def test_the_grid_has_what_it_promises():
    grid = cases()
    assert len(grid) == N_CASES == 300
    assert len({case.attack for case in grid}) >= 20
    assert len({case.law for case in grid}) == 9
    assert sum(case.kind == "overlapping" for case in grid) >= 100
    assert {case.n for case in grid} >= {150, 50_000}
    assert max(case.eps for case in grid) == 0.3
    assert {kind_of(attack) for attack in ATTACKS} == {"overlapping", "apart", "unseen"}


@pytest.mark.parametrize(
    ("one", "other"), [*combinations(["law", "n", "eps", "sparse", "known", "kind"], 2)]
)
def test_no_two_choices_of_the_grid_go_together(one, other):
    grid = cases()
    pairs = Counter((getattr(case, one), getattr(case, other)) for case in grid)
    ones, others = (Counter(getattr(case, name) for case in grid) for name in (one, other))
    expected = {(u, v): ones[u] * others[v] / len(grid) for u in ones for v in others}
    square = sum((pairs[pair] - count) ** 2 / count for pair, count in expected.items())
    # Of independent choices about the number of degrees of freedom.
    assert square < 1.2 * (len(ones) - 1) * (len(others) - 1)


def record(number: int, ratio: float, clean: bool = True, visible: bool = True) -> overlap.Record:
    case = cases()[number]
    facts = {"ratio": ratio, "clean": clean, "visible": visible, "excess": 9.0, "removed": 0.1}
    cost = {"verdict": "clean level reached: fine", "seconds": 1.0, "evaluations": 3}
    return {**asdict(case), "kind": case.kind, **facts, **cost}


def test_the_summary_is_of_visible_fits():
    records = [
        record(0, 1.0),
        record(1, 4.0),
        record(2, 8.0, clean=False),
        record(3, 99.0, True, 0),
    ]
    line = overlap.summary("some", records)
    assert line["visible"] == "3 of 4"
    assert line["geometric mean"] == f"{32 ** (1 / 3):.2f}"
    assert line["above 2"] == "66.7%"
    assert line["called clean"] == "2"
    assert line["of these above 2"] == "1 (50.0%)"


def test_parts_of_a_breakdown_hold_all_fits():
    records = [record(number, 1.0) for number in range(N_CASES)]
    lines = overlap.breakdown(records, *overlap.BREAKDOWNS)
    for title in overlap.BREAKDOWNS:
        part = [line for line in lines if str(line["fits"]).startswith(f"{title}: ")]
        assert sum(int(str(line["visible"]).split()[-1]) for line in part) == N_CASES


def test_the_worst_come_first():
    lines = overlap.worst([record(0, 1.0), record(1, 4.0), record(2, 9.0, visible=False)])
    assert [line["case"] for line in lines] == ["1", "0"]


def test_two_runs_are_compared_case_by_case():
    text = overlap.compare([record(0, 1.0), record(1, 4.0)], [record(0, 3.0), record(1, 1.5)])
    assert "| 1.00 | 3.00 |" in text
    assert "| 4.00 | 1.50 |" in text


def test_an_interrupted_grid_goes_on_and_a_changed_library_begins_anew(tmp_path, monkeypatch):
    path = tmp_path / "grid.jsonl"
    small = [case for case in cases() if case.n == 150][:3]
    fitted = []

    def run_case(case, options):
        fitted.append(case.number)
        if len(fitted) == 3:
            raise KeyboardInterrupt
        return {"number": case.number}

    monkeypatch.setattr(overlap, "run_case", run_case)
    with pytest.raises(KeyboardInterrupt):
        overlap.run_grid(path, {}, grid=small)
    found = overlap.run_grid(path, {}, grid=small)
    numbers = [case.number for case in small]
    assert [r["number"] for r in found] == numbers
    assert fitted == [*numbers, numbers[-1]]
    monkeypatch.setattr(overlap, "fingerprint", lambda: "other")
    overlap.run_grid(path, {}, grid=small)
    assert fitted[-3:] == numbers


def test_the_grid_is_printed(tmp_path, monkeypatch, capsys):
    small = [case for case in cases() if case.n == 150][:6]
    monkeypatch.setattr(overlap, "RESULTS", tmp_path)
    monkeypatch.setattr("benchmarks.tables.RESULTS", tmp_path)
    monkeypatch.setattr(overlap, "cases", lambda: small)
    overlap.main(["grid"])
    printed = capsys.readouterr().out
    assert "| **all** |" in printed
    assert "worst visible" in printed
    assert "6 fits" in printed
    assert len(overlap.read(tmp_path / "overlap-grid.jsonl")) == 6


def test_the_named_cases_are_printed(tmp_path, monkeypatch, capsys):
    quick = overlap.Named("quick", overlap.attacked("far", 200, 5, 2, 0.1), 0.1, 2, 1.1, 1.1)
    monkeypatch.setattr("benchmarks.tables.RESULTS", tmp_path)
    monkeypatch.setattr(overlap, "NAMED", (quick,))
    monkeypatch.setattr(overlap, "CLEAN_FITS", ((200, 5, None),))
    overlap.main(["cases", "--seeds", "2"])
    printed = capsys.readouterr().out
    assert "| quick |" in printed
    assert "| laplace |" in printed


def answer(ratio: float, clean: bool, **facts: object) -> gauntlet.Record:
    about = {"law": "t5", "setting": "auto"}
    return {**about, "ratio": ratio, "clean": clean, **facts}


@pytest.mark.parametrize(
    ("adversary", "auto", "units", "off", "word"),
    [
        ("duplicates", 1.1, 1.9, "50%", "yes"),
        ("duplicates", 1.1, 2.1, "5%", "if it is called clean"),
        ("duplicates", np.inf, 1.1, "-", "if it is called clean"),
        ("duplicates", 2.1, 1.1, "6%", "no"),
        ("subtractive", 1.0, 1.0, "0%", "no: second moments do not show it"),
    ],
)
def test_trust_is_lost_by_answers_that_are_off_and_do_not_say_so(adversary, auto, units, off, word):
    found = {"auto, 90 %": auto, "units, 90 %": units, "of these off": off}
    assert gauntlet.trust(adversary, found) == word


def test_verdicts_count_what_is_called_clean_and_is_off():
    records = [answer(1.0, True), answer(3.0, True), answer(3.0, False), answer(1.0, True)]
    assert gauntlet.verdicts(records) == {"called clean": "75%", "of these off": "33%"}
    assert gauntlet.verdicts(records[2:3])["of these off"] == "-"


def test_the_best_baseline_and_the_worst_law_are_named_with_their_medians():
    records = [
        answer(1.0, True, baselines={"median": 4.0, "filter": 1.5}),
        answer(3.0, True, law="uniform", baselines={"median": 4.0, "filter": 1.5}),
    ]
    assert gauntlet.best_baseline(records) == "filter 1.50"
    assert gauntlet.worst_law(records) == "uniform 3"


@pytest.mark.parametrize("adversary", [gauntlet.NOBODY, "far_outliers", "spike_and_cluster"])
def test_a_sample_of_the_gauntlet_is_fitted_in_every_setting(adversary):
    records = [*gauntlet.run_sample(adversary, "gaussian", (300, 10, 2), 0)]
    questions = gauntlet.questions(adversary, 2)
    assert [r["setting"] for r in records] == [*gauntlet.SETTINGS] * len(questions)
    assert all(0.0 < r["ratio"] < np.inf for r in records)
    assert all(r["baselines"]["empirical"] > 0.0 for r in records)
    assert all(q.components == (adversary in SPIKE_ADVERSARIES) for q in questions)


def test_a_fit_that_raises_is_counted_as_one_that_is_off(monkeypatch):
    def fails(model, X):
        raise ZeroDivisionError("no")

    monkeypatch.setattr(gauntlet, "fitted", fails)
    records = [*gauntlet.run_sample("far_outliers", "gaussian", (100, 5, 2), 0)]
    assert {r["raised"] for r in records} == {"ZeroDivisionError('no')"}
    assert gauntlet.quantile(records, 0.5) == np.inf


def test_units_do_not_change_the_error_of_the_oracle():
    question = gauntlet.Question(components=False, k=2)
    sample = gauntlet.draw("far_outliers", "gaussian", (300, 10, 2), 0)
    units = question.units(10)
    model = question.robust(0.1).set_params(scale=units).fit(sample.X * units)
    plain = question.robust(0.1).set_params(scale=None).fit(sample.X)
    assert question.error(model, sample.truth, units) == pytest.approx(
        question.error(plain, sample.truth)
    )


def test_the_gauntlet_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.tables.RESULTS", tmp_path)
    monkeypatch.setattr(gauntlet, "SIZES", ((200, 6, 2),))
    monkeypatch.setattr(gauntlet, "laws_of", lambda adversary: ("gaussian",))
    gauntlet.main(["--seeds", "1", "--only", "nobody", "tight_cluster"])
    printed = capsys.readouterr().out
    assert "| tight_cluster | sparse mean |" in printed
    assert "| gaussian |" in printed
    assert "12 fits" in printed


def test_every_adversary_runs_the_gauntlet_on_six_laws_or_on_its_own():
    tried = {name: gauntlet.laws_of(name) for name in ADVERSARIES}
    assert tried.pop("heavy_tailed") == ("t3",)
    assert all(len(laws) >= 6 for laws in tried.values())
