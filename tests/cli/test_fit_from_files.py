"""From a file on disk to an answer: five runs with planted outliers, and everything that is bad."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from outweigh.cli import main

Planted = tuple[Path, set[str], list[str]]


def planted(n: int, d: int, seed: int, k: int = 5, shift: float = 4.0) -> tuple[object, set[int]]:
    rng = np.random.default_rng([91, seed])
    X = rng.standard_normal((n, d))
    wrong = rng.choice(n, n // 16, replace=False)
    X[np.ix_(wrong, rng.choice(d, k, replace=False))] += shift
    return X, {int(i) for i in wrong}


def with_ids(folder: Path) -> Planted:
    X, wrong = planted(1000, 30, 1)
    frame = pd.DataFrame(X + 10.0).add_prefix("m")
    frame.insert(0, "sample", [f"S{i}" for i in range(1000)])
    frame.to_csv(folder / "data.csv", index=False)
    return folder / "data.csv", {f"S{i}" for i in wrong}, ["--id-column", "sample"]


def mixed_types(folder: Path) -> Planted:
    X, wrong = planted(800, 20, 2)
    frame = pd.DataFrame(X).add_prefix("v")
    frame["comment"] = "fine, thanks"
    frame["when"] = "2020-01-01"
    frame["ok"] = True
    frame.to_csv(folder / "data.tsv", index=False, sep="\t")
    return folder / "data.tsv", {str(i + 1) for i in wrong}, []


def far_units(folder: Path) -> Planted:
    X, wrong = planted(1000, 25, 3)
    units = np.geomspace(1e-3, 1e3, 25)
    pd.DataFrame((X + 3.0) * units).add_prefix("u").to_csv(folder / "data.csv", index=False)
    return folder / "data.csv", {str(i + 1) for i in wrong}, []


def wide_parquet(folder: Path) -> Planted:
    X, wrong = planted(600, 2000, 4, shift=5.0)
    pd.DataFrame(X).add_prefix("g").to_parquet(folder / "data.parquet")
    return folder / "data.parquet", {str(i + 1) for i in wrong}, ["--n-nonzero", "5"]


def with_holes(folder: Path) -> Planted:
    X, wrong = planted(1000, 20, 5)
    frame = pd.DataFrame(X).add_prefix("c")
    holes = [i for i in range(1000) if i not in wrong][:7]
    frame.loc[holes, "c3"] = np.nan
    frame.to_csv(folder / "data.csv", index=False)
    return folder / "data.csv", {str(i + 1) for i in wrong}, ["--missing", "drop"]


RUNS: dict[str, tuple[str, Callable[[Path], Planted]]] = {
    "a CSV with ids": ("mean", with_ids),
    "mixed types": ("sparse-mean", mixed_types),
    "units a million apart": ("mean", far_units),
    "Parquet with 2,000 columns": ("sparse-mean", wide_parquet),
    "missing values": ("mean", with_holes),
}


@pytest.mark.parametrize("run", RUNS)
def test_the_planted_rows_are_flagged(run: str, tmp_path: Path) -> None:
    kind, make = RUNS[run]
    path, wrong, options = make(tmp_path)
    out = tmp_path / "result.json"
    assert main(["fit", kind, str(path), "--out", str(out), *options]) == 0
    flagged = {row["row"] for row in json.loads(out.read_text())["distrusted"]}
    assert len(flagged & wrong) >= 0.95 * len(wrong)
    assert len(flagged & wrong) >= 0.95 * len(flagged)


@pytest.mark.parametrize("kind", ["pca", "sparse-pca"])
def test_components_come_from_a_file_too(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((500, 20))
    X[:, :4] += 2.0 * rng.standard_normal((500, 1))
    X[:30, 10:14] += 6.0
    np.save(tmp_path / "data.npy", X)
    out = tmp_path / "result.json"
    assert main(["fit", kind, str(tmp_path / "data.npy"), "--out", str(out)]) == 0
    found = json.loads(out.read_text())
    assert {row["row"] for row in found["distrusted"]} >= {str(i) for i in range(1, 28)}
    loadings = np.array(list(found["components"][0].values()))
    assert np.abs(loadings[:4]).min() > 0.4


def test_two_sparse_components_come_from_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((500, 20))
    X[:, :4] += 3.0 * rng.standard_normal((500, 1))
    X[:, 6:10] += 2.0 * rng.standard_normal((500, 1))
    np.save(tmp_path / "data.npy", X)
    out = tmp_path / "result.json"
    command = ["fit", "sparse-pca", str(tmp_path / "data.npy"), "--components", "2"]
    assert main([*command, "--out", str(out)]) == 0
    assert len(json.loads(out.read_text())["components"]) == 2


def test_auto_says_which_estimator_it_took_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X = np.random.default_rng(9).standard_normal((120, 300))
    X[:, :4] += 3.0
    for values, said in (
        (X, "auto took sparse-mean: 120 rows are few for 300 columns, and only 4 of them stand"),
        (X + 5.0, "auto took mean: its entries are not sparse about zero: 300 of 300 columns"),
        (X[:, :10], "auto took mean: 120 rows are enough for 10 columns"),
    ):
        np.save(tmp_path / "data.npy", values)
        assert main(["fit", "auto", str(tmp_path / "data.npy")]) == 0
        assert said in capsys.readouterr().out
    assert main(["fit", "auto", str(tmp_path / "data.npy"), "--n-nonzero", "3"]) == 2
    assert "use sparse-mean" in capsys.readouterr().err


def test_missing_values_are_refused_with_the_rows_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _, _ = with_holes(tmp_path)
    assert main(["fit", "mean", str(path)]) == 2
    error = capsys.readouterr().err
    assert "7 rows have missing or infinite values (1, 2, 3, 4, 5, ...)" in error
    assert "--missing drop" in error


def test_medians_are_filled_in_and_kept_for_rows_to_be_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _, _ = with_holes(tmp_path)
    model, page = str(tmp_path / "m.model"), str(tmp_path / "page.html")
    options = ["--missing", "median"]
    assert main(["fit", "mean", str(path), "--save", model, "--report", page, *options]) == 0
    shown = capsys.readouterr().out
    assert "7 rows were filled in with medians for missing values" in shown
    assert "nan" not in shown
    assert main(["score", model, str(path), *options]) == 0
    assert " of 1,000 rows" in capsys.readouterr().out
    assert main(["fit", "mean", str(path), "--scheduler", "threads", *options]) == 2
    assert "missing: must be None for sparse rows" in capsys.readouterr().err


def test_the_summary_tells_what_a_reader_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _, options = with_ids(tmp_path)
    assert main(["fit", "mean", str(path), *options]) == 0
    shown = capsys.readouterr().out
    assert "rows are named by column 'sample'" in shown
    assert "%) are distrusted; what is left looks like clean data" in shown
    assert "clean level reached" in shown
    assert "robust mean    plain mean" in shown
    assert "Most distrusted rows (10 of " in shown
    assert " sd)" in shown


def test_dropped_columns_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _, _ = mixed_types(tmp_path)
    main(["fit", "mean", str(path)])
    assert "left out 3 columns: 'comment' (text, such as 'fine, thanks')" in capsys.readouterr().out


def test_every_output_is_written_and_a_model_scores_the_same(tmp_path: Path) -> None:
    path, wrong, options = with_ids(tmp_path)
    names = {"--out": "r.csv", "--weights": "w.csv", "--report": "p.html", "--save": "m.outweigh"}
    arguments = [part for o, name in names.items() for part in (o, str(tmp_path / name))]
    assert main(["fit", "mean", str(path), *options, *arguments]) == 0
    weights = pd.read_csv(tmp_path / "w.csv")
    assert list(weights.columns) == ["sample", "weight", "score", "distrusted", "reasons"]
    assert weights["weight"].sum() == pytest.approx(1.0)
    result = pd.read_csv(tmp_path / "r.csv")
    assert list(result.columns) == ["feature", "robust_mean", "plain_mean"]
    assert "<!DOCTYPE html>" in (tmp_path / "p.html").read_text()
    scored = tmp_path / "scored.csv"
    command = ["score", str(tmp_path / "m.outweigh"), str(path), *options, "--out", str(scored)]
    code = "import sys; from outweigh.cli import main; sys.exit(main(sys.argv[1:]))"
    ran = subprocess.run(
        [sys.executable, "-c", code, *command], check=True, capture_output=True, text=True
    )
    assert "the model's verdict: " in ran.stdout
    again = pd.read_csv(scored)
    np.testing.assert_allclose(again["score"], weights["score"], rtol=1e-12)
    assert set(again.loc[again["distrusted"], "sample"]) >= set(list(wrong)[:3])


def test_names_that_a_spreadsheet_would_run_are_inert_in_csv_files(tmp_path: Path) -> None:
    X = np.random.default_rng(6).standard_normal((200, 4))
    frame = pd.DataFrame(X, columns=["=HYPERLINK(1)", "@x", "height", "-2"])
    frame.insert(0, "+id", ["=1+1", "-5", "plain", *(f"S{i}" for i in range(197))])
    frame.loc[:2, "=HYPERLINK(1)"] = 50.0
    frame.to_csv(tmp_path / "data.csv", index=False)
    files = {"--out": "r.csv", "--weights": "w.csv", "--save": "m.outweigh"}
    options = [part for o, name in files.items() for part in (o, str(tmp_path / name))]
    data = [str(tmp_path / "data.csv"), "--id-column=+id"]
    assert main(["fit", "mean", *data, *options]) == 0
    scored = ["--out", str(tmp_path / "s.csv")]
    assert main(["score", str(tmp_path / "m.outweigh"), *data, *scored]) == 0
    result = pd.read_csv(tmp_path / "r.csv", dtype=str)
    assert list(result["feature"]) == ["'=HYPERLINK(1)", "'@x", "height", "-2"]
    for name in ("w.csv", "s.csv"):
        written = pd.read_csv(tmp_path / name, dtype=str)
        assert written.columns[0] == "'+id"
        assert list(written.iloc[:3, 0]) == ["'=1+1", "-5", "plain"]
        assert written["reasons"].dropna().str.startswith("'=HYPERLINK(1)").all()


def test_trusted_rows_make_correlated_columns_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(8)
    root = np.linalg.cholesky(0.8 ** np.abs(np.subtract.outer(np.arange(12), np.arange(12))))
    names = [f"c{j}" for j in range(12)]
    for name in ("data", "trusted"):
        X = rng.standard_normal((500, 12)) @ root.T
        pd.DataFrame(X, columns=names).to_csv(tmp_path / f"{name}.csv", index=False)
    data, trusted = str(tmp_path / "data.csv"), str(tmp_path / "trusted.csv")
    main(["fit", "mean", data])
    assert "in correlated noise" in capsys.readouterr().out
    main(["fit", "mean", data, "--covariance", "none"])
    assert "--trusted FILE" in capsys.readouterr().out
    main(["fit", "mean", data, "--trusted", trusted])
    assert "clean level reached" in capsys.readouterr().out
    covariance = tmp_path / "covariance.csv"
    pd.DataFrame(root @ root.T, columns=names).to_csv(covariance, index=False)
    main(["fit", "mean", data, "--covariance", str(covariance)])
    assert "clean level reached" in capsys.readouterr().out


def test_noise_alone_makes_components_in_correlated_columns_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(9)
    root = np.linalg.cholesky(0.9 ** np.abs(np.subtract.outer(np.arange(20), np.arange(20))))
    names = [f"c{j}" for j in range(20)]
    X, blanks = (rng.standard_normal((n, 20)) @ root.T for n in (1000, 20_000))
    X[:, [3, 11, 17]] += 1.5 * rng.standard_normal((1000, 1))
    for name, values in {"data": X, "blanks": blanks}.items():
        pd.DataFrame(values, columns=names).to_csv(tmp_path / f"{name}.csv", index=False)
    out = tmp_path / "result.csv"
    data, noise = str(tmp_path / "data.csv"), str(tmp_path / "blanks.csv")
    arguments = ["--n-nonzero", "3", "--out", str(out)]
    assert main(["fit", "sparse-pca", data, "--trusted", noise, *arguments]) == 0
    found = pd.read_csv(out, index_col="feature")["component_1"]
    assert list(found.index[found != 0]) == ["c3", "c11", "c17"]
    assert "clean level reached" in capsys.readouterr().out


def good(folder: Path) -> str:
    path = folder / "good.csv"
    np.savetxt(path, np.random.default_rng(0).standard_normal((50, 3)), delimiter=",",
               header="a,b,c", comments="")  # fmt: skip
    return str(path)


BAD: dict[str, tuple[list[str], str]] = {
    "missing file": (["fit", "mean", "none.csv"], "none.csv: no such file"),
    "folder": (["fit", "mean", "."], "is a folder"),
    "device": (["fit", "mean", "/dev/null"], "is a pipe or a device; give -"),
    "unknown option": (["fit", "mean", "good.csv", "--colour"], "unrecognized arguments: --colour"),
    "unknown kind": (["fit", "median", "good.csv"], "invalid choice: 'median'"),
    "unknown column": (["fit", "mean", "good.csv", "--columns", "a,z"], "no column is called 'z'"),
    "unknown id": (["fit", "mean", "good.csv", "--id-column", "z"], "no column is called 'z'"),
    "contamination": (["fit", "mean", "good.csv", "--contamination", "0.7"], "(0.0, 0.5)"),
    "half": (["fit", "mean", "good.csv", "--contamination", "0.5"], "(0.0, 0.5)"),
    "a component of a mean": (
        ["fit", "mean", "good.csv", "--components", "1"],
        "--components: has no meaning for mean",
    ),
    "entries of a dense mean": (
        ["fit", "mean", "good.csv", "--n-nonzero", "auto"],
        "--n-nonzero: has no meaning for mean; use sparse-mean",
    ),
    "parts and a limit": (
        ["fit", "mean", "good.csv", "--scheduler", "threads", "--max-gigabytes", "1"],
        "--max-gigabytes: has no meaning with --scheduler",
    ),
    "no components": (
        ["fit", "pca", "good.csv", "--components", "0"],
        "The 'n_components' parameter of RobustPCA must be an int in the range [1, inf)",
    ),
    "sparse-mean n-nonzero": (
        ["fit", "sparse-mean", "good.csv", "--n-nonzero", "0"],
        "The 'n_nonzero' parameter of RobustSparseMean must be a str among {'auto'} or an int",
    ),
    "no kind": (["fit"], "required: {auto,mean,sparse-mean,pca,sparse-pca}, FILE"),
    "decimal": (["fit", "mean", "good.csv", "--decimal", "x"], "must be a point or a comma"),
    "encoding": (["fit", "mean", "good.csv", "--encoding", "x"], "must be an encoding such as"),
    "nan gigabytes": (["fit", "mean", "good.csv", "--max-gigabytes", "nan"], "above 0"),
    "negative gigabytes": (["fit", "mean", "good.csv", "--max-gigabytes", "-1"], "above 0"),
    "delimiter of an array": (
        ["fit", "mean", "good.npy", "--delimiter", ";"],
        "good.npy: --delimiter ';' has no effect on what is not a text file",
    ),
    "decimal of an array": (["fit", "mean", "good.npy", "--decimal", ","], "--decimal ',' has no"),
    "encoding of Parquet": (
        ["fit", "mean", "good.parquet", "--encoding", "utf-8"],
        "good.parquet: --encoding 'utf-8' has no effect",
    ),
    "words in an array": (["fit", "mean", "good.npy", "--na=-9,ERR"], "--na 'ERR' has no"),
    "decimal of parts": (
        ["fit", "mean", "good.npy", "--scheduler", "threads", "--decimal", ","],
        "--decimal ',' has no effect",
    ),
    "delimiter of parts": (
        ["fit", "mean", "good.parquet", "--scheduler", "threads", "--delimiter", ";"],
        "--delimiter ';' has no effect",
    ),
    "under a file": (["fit", "mean", "good.csv", "--save", "taken/m"], "taken is not a folder"),
    "components": (["fit", "pca", "good.csv", "--components", "9"], "n_components=9"),
    "n-nonzero": (["fit", "mean", "good.csv", "--n-nonzero", "2"], "use sparse-mean"),
    "out": (["fit", "mean", "good.csv", "--out", "r.xlsx"], "must end in .json or .csv"),
    "over the input": (["fit", "mean", "good.csv", "--weights", "good.csv"], "is the input"),
    "exists": (["fit", "mean", "good.csv", "--save", "taken"], "--force overwrites it"),
    "twice": (["fit", "mean", "good.csv", "--out", "x.csv", "--weights", "x.csv"], "already"),
    "no folder": (["fit", "mean", "good.csv", "--delimiter", "ab"], "must be one character"),
    **{
        f"empty {option}": (["fit", "mean", "good.csv", option, ""], f"{option}: must be")
        for option in ("--save", "--trusted", "--scheduler", "--id-column", "--exclude")
    },
    "not a model": (["score", "good.csv", "good.csv"], "is not an outweigh model"),
    "no model": (["score", "none", "good.csv"], "none: cannot be read: No such file"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_code_two(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pd.read_csv(good(tmp_path))
    np.save(tmp_path / "good.npy", rows.to_numpy())
    rows.to_parquet(tmp_path / "good.parquet")
    (tmp_path / "taken").write_text("precious")
    monkeypatch.chdir(tmp_path)
    arguments, reason = BAD[case]
    try:
        code = main(arguments)
    except SystemExit as stopped:
        code = stopped.code
    error = capsys.readouterr().err
    assert code == 2
    assert reason in error
    assert error.startswith("outweigh")
    assert len(error.strip().splitlines()) == 1
    assert (tmp_path / "taken").read_text() == "precious"


def test_a_folder_that_cannot_be_written_is_refused_before_the_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # As root every folder can be written, so the refusal itself is made here.
    def refuse(*args: object, **kwargs: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("outweigh.files.writing.tempfile.TemporaryFile", refuse)
    report = str(tmp_path / "deep" / "page.html")
    assert main(["fit", "mean", str(tmp_path / "none.csv"), "--report", report]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"outweigh fit: error: --report: {report}: cannot be written")
    assert "Permission denied" in error
    assert os.listdir(tmp_path) == []


def test_files_are_written_also_when_the_reader_of_the_summary_has_left(tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    code = "import sys; from outweigh.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["fit", "mean", good(tmp_path), "--out", str(out)]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-c", code, *arguments], stdout=writing, check=False)
    os.close(writing)
    assert done.returncode == 0
    assert json.loads(out.read_text())["n_samples"] == 50


def test_debug_shows_where_an_error_comes_from(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such file"):
        main(["fit", "mean", str(tmp_path / "none.csv"), "--debug"])


def test_force_overwrites(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("old")
    arguments = ["fit", "mean", good(tmp_path), "--save", str(tmp_path / "taken")]
    assert main(arguments) == 2
    assert main([*arguments, "--force"]) == 0
    assert (tmp_path / "taken").read_bytes().startswith(b"PK")


def test_a_failed_fit_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    assert main(["fit", "pca", good(tmp_path), "--components", "9", "--out", str(out)]) == 2
    assert sorted(os.listdir(tmp_path)) == ["good.csv"]


def test_a_terminal_is_not_moved_by_what_is_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X = np.random.default_rng(1).standard_normal((200, 3))
    X[0] = 100.0
    frame = pd.DataFrame(X, columns=["a\x1b[2J", "b", "c"])
    frame.insert(0, "id", ["row\x1b[31m"] + [f"r{i}" for i in range(199)])
    frame.to_csv(tmp_path / "data.csv", index=False)
    assert main(["fit", "mean", str(tmp_path / "data.csv")]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_fit_with_a_page_takes_little_more_than_reading_the_file_and_thirty_covariances(
    tmp_path: Path,
) -> None:
    X, _ = planted(5000, 500, 7)
    path = tmp_path / "data.csv"
    pd.DataFrame(X).add_prefix("g").to_csv(path, index=False)
    main(["fit", "sparse-mean", good(tmp_path), "--report", str(tmp_path / "first.html")])

    def seconds(work: Callable[[], object]) -> float:
        before = time.process_time()
        work()
        return time.process_time() - before

    def yardstick() -> None:
        read = pd.read_csv(path).to_numpy()
        for _ in range(30):
            read.T @ read

    report = str(tmp_path / "page.html")
    fitted = seconds(lambda: main(["fit", "sparse-mean", str(path), "--report", report]))
    assert fitted < 3.0 * seconds(yardstick)


@pytest.mark.parametrize(("level", "said"), [(3.0, True), (0.0, False)])
def test_a_mean_that_is_not_sparse_about_zero_is_said_to_be_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], level: float, said: bool
) -> None:
    X = np.random.default_rng(0).standard_normal((200, 12)) + level
    np.save(tmp_path / "x.npy", X)
    assert main(["fit", "sparse-mean", str(tmp_path / "x.npy")]) == 0
    assert ("the mean is not sparse about zero: 12 of 12" in capsys.readouterr().out) is said
    assert main(["fit", "sparse-mean", str(tmp_path / "x.npy"), "--n-nonzero", "12"]) == 0
    assert "not sparse" not in capsys.readouterr().out


def test_a_table_as_an_instrument_writes_it_is_read_and_what_was_recognised_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, wrong = planted(300, 8, 7, k=4, shift=8.0)
    frame = pd.DataFrame(X).add_prefix("p").astype(object)
    frame.loc[0, "p7"], frame.loc[1, "p6"] = "ERR", -999.0
    frame.insert(0, "Größe", [f"s{i}" for i in range(300)])
    frame.loc[-1] = ["", *["µm"] * 8]
    path = tmp_path / "data.csv"
    text = frame.sort_index().to_csv(index=False, sep=";").replace(".", ",")
    path.write_text(text, encoding="latin-1")
    out = tmp_path / "out.json"
    options = ["--na", "ERR,-999", "--missing", "median", "--exclude", "p[01]", "--out", str(out)]
    assert main(["fit", "mean", str(path), *options]) == 0
    said = capsys.readouterr().out
    assert "300 rows, 6 columns" in said
    assert "latin-1" in said
    assert "a semicolon" in said
    assert "decimal commas" in said
    assert "units (µm)" in said
    assert "named by column 'Größe'" in said
    flagged = {row["row"] for row in json.loads(out.read_text())["distrusted"]}
    assert flagged == {f"s{i}" for i in wrong}
