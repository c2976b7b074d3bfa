"""Files that are read in parts by Dask: the same answers as files read at once."""

from __future__ import annotations

import gzip
import json
import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from outweigh import RobustMean
from outweigh.cli import main
from outweigh.files import DataError, open_table, read_table
from outweigh.files.parts import _told_of_tasks
from outweigh.libraries import MissingLibrary
from outweigh.samples.chunked_rows import ChunkedRows

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pytest.importorskip("dask.dataframe")

N, D, N_WRONG = 600, 8, 36


def rows() -> np.ndarray:
    X = np.random.default_rng(93).standard_normal((N, D)) + 5.0
    X[:N_WRONG, [1, 4]] += 8.0
    return X


def frame() -> pd.DataFrame:
    table = pd.DataFrame(rows()).add_prefix("c")
    table.insert(0, "id", [f"r{i}" for i in range(N)])
    table["note"] = "fine"
    return table


def saved(folder: Path, kind: str) -> str:
    if kind == "csv":
        frame().to_csv(folder / "data.csv", index=False)
        return str(folder / "data.csv")
    if kind == "csv.gz":
        frame().to_csv(folder / "data.csv.gz", index=False)
        return str(folder / "data.csv.gz")
    if kind == "parts":
        for part in range(3):
            frame()[part * 200 : (part + 1) * 200].to_parquet(folder / f"part-{part}.parquet")
        return str(folder / "part-*.parquet")
    if kind == "folder":
        (folder / "table").mkdir()
        frame().to_parquet(folder / "table" / "0.parquet")
        return str(folder / "table")
    np.save(folder / "data.npy", rows())
    return str(folder / "data.npy")


KINDS = ["csv", "csv.gz", "parts", "folder", "npy"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_values_are_those_of_the_files_and_not_yet_read(kind: str, tmp_path: Path) -> None:
    table = open_table(saved(tmp_path, kind))
    assert table.lazy
    assert isinstance(table.values, da.Array)
    assert table.values.numblocks[1] == 1
    np.testing.assert_allclose(table.values.compute(), rows())
    if kind == "npy":
        assert (table.columns[0], table.labels[0], table.numbered) == ("x0", "1", True)
    else:
        assert table.columns == [f"c{j}" for j in range(D)]
        assert (table.labels[0], table.id_column) == ("r0", "id")
        assert [name for name, _ in table.dropped] == ["note"]


def test_an_array_is_cut_into_parts_that_are_read_by_the_name_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outweigh.files.parts._BYTES_AT_A_TIME", 100 * D * 8)
    table = open_table(saved(tmp_path, "npy"))
    assert table.values.numblocks == (6, 1)
    np.testing.assert_array_equal(table.values.compute(scheduler="processes"), rows())


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_in_parts_gives_the_same_answer(kind: str, tmp_path: Path) -> None:
    path = saved(tmp_path, kind)
    lazy, plain = tmp_path / "lazy.json", tmp_path / "plain.json"
    assert main(["fit", "mean", path, "--scheduler", "threads", "--out", str(lazy)]) == 0
    whole = path if kind not in ("parts", "folder") else saved(tmp_path, "csv")
    assert main(["fit", "mean", whole, "--out", str(plain)]) == 0
    one, other = json.loads(lazy.read_text()), json.loads(plain.read_text())
    assert one["location"].keys() == other["location"].keys()
    np.testing.assert_allclose(
        list(one["location"].values()), list(other["location"].values()), rtol=1e-6
    )
    assert {row["row"] for row in one["distrusted"]} == {row["row"] for row in other["distrusted"]}
    assert len(one["distrusted"]) == N_WRONG


def test_every_output_and_a_model_that_knows_the_columns(tmp_path: Path) -> None:
    path = saved(tmp_path, "parts")
    names = {"--weights": "w.csv", "--report": "p.html", "--save": "m.outweigh"}
    outputs = [part for option, name in names.items() for part in (option, str(tmp_path / name))]
    assert main(["fit", "mean", path, "--scheduler", "threads", *outputs]) == 0
    weights = pd.read_csv(tmp_path / "w.csv")
    assert weights["id"].tolist() == [f"r{i}" for i in range(N)]
    assert "c4" in (tmp_path / "p.html").read_text()
    shuffled = tmp_path / "shuffled.csv"
    frame()[["c7", "id", *[f"c{j}" for j in range(7)]]].to_csv(shuffled, index=False)
    for options in ([], ["--scheduler", "processes"]):
        out = tmp_path / f"scores{len(options)}.csv"
        arguments = ["--id-column", "id", "--out", str(out), *options]
        assert main(["score", str(tmp_path / "m.outweigh"), str(shuffled), *arguments]) == 0
        np.testing.assert_allclose(pd.read_csv(out)["score"], weights["score"], rtol=1e-9)


@pytest.mark.parametrize("where", [[], ["--scheduler", "threads"]], ids=["memory", "in parts"])
def test_every_output_of_a_fit_on_a_sample_speaks_of_all_rows(
    where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, "csv")
    names = {"--weights": "w.csv", "--report": "p.html", "--save": "m.outweigh", "--out": "o.json"}
    outputs = [part for option, name in names.items() for part in (option, str(tmp_path / name))]
    assert main(["fit", "mean", path, "--subsample", "200", *where, *outputs]) == 0
    assert "searched on a random sample of 200 rows" in capsys.readouterr().out
    weights = pd.read_csv(tmp_path / "w.csv")["weight"].to_numpy()
    # A cut learnt from ten outliers may leave one of the others on the wrong side.
    assert np.count_nonzero(weights[:N_WRONG]) <= 1
    assert np.all(weights[N_WRONG:] > 0.0)
    np.testing.assert_allclose(weights[weights > 0], 1.0 / np.count_nonzero(weights))
    result = json.loads((tmp_path / "o.json").read_text())
    assert (result["n_samples"], result["n_subsampled"]) == (N, 200)
    assert result["contamination"] == pytest.approx(np.mean(weights == 0.0))
    assert len(result["distrusted"]) == np.count_nonzero(weights == 0.0)
    assert "--subsample 200" in (tmp_path / "p.html").read_text()
    assert main(["score", str(tmp_path / "m.outweigh"), path]) == 0


def test_all_rows_can_be_asked_for_and_one_row_cannot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, "csv")
    assert main(["fit", "mean", path, "--subsample", "all"]) == 0
    assert "random sample" not in capsys.readouterr().out
    for bad in ("1", "some"):
        assert main(["fit", "mean", path, "--subsample", bad]) == 2
        assert "'subsample' parameter of RobustMean must be an int" in capsys.readouterr().err


def test_a_page_of_components_is_made_too(tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    arguments = ["--scheduler", "threads", "--report", str(page)]
    assert main(["fit", "pca", saved(tmp_path, "npy"), *arguments]) == 0
    assert "Outlier map" in page.read_text()


@pytest.mark.slow
def test_a_fit_runs_on_the_cluster_at_an_address(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    out = tmp_path / "r.json"
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        address = cluster.scheduler_address
        path = saved(tmp_path, "parts")
        assert main(["fit", "mean", path, "--scheduler", address, "--out", str(out)]) == 0
    assert len(json.loads(out.read_text())["distrusted"]) == N_WRONG


def test_a_dataset_in_an_hdf5_file(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["measured/X"] = rows()
    source = str(tmp_path / "data.h5")
    np.testing.assert_array_equal(open_table(f"{source}::measured/X").values.compute(), rows())
    with pytest.raises(DataError, match="has no dataset called 'Y'"):
        open_table(f"{source}::Y")


def test_a_zarr_folder(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    source = str(tmp_path / "data.zarr")
    da.from_array(rows(), chunks=(100, 4)).to_zarr(source)
    np.testing.assert_array_equal(open_table(source).values.compute(), rows())


def test_missing_values_are_refused_by_name_or_dropped(tmp_path: Path) -> None:
    table = frame()
    table.loc[[2, 5], "c3"] = np.nan
    table.to_csv(tmp_path / "data.csv", index=False)
    path = str(tmp_path / "data.csv")
    with pytest.raises(DataError, match=r"2 rows have missing or infinite values \(r2, r5\)"):
        open_table(path)
    found, whole = open_table(path, missing="drop"), read_table(path, missing="drop")
    assert (found.n_missing, found.labels) == (2, whole.labels)
    np.testing.assert_allclose(found.values.compute(), whole.values)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("none.csv", {}, "none.csv: no such file"),
        ("part-*.csv", {}, "no such file"),
        ("-", {}, "standard input cannot be read in parts"),
        ("data.csv", {"columns": ["z"]}, "no column is called 'z'"),
        ("data.csv", {"columns": ["note"]}, "column 'note' cannot be used"),
        ("text.npy", {}, "needs numbers in rows and columns"),
    ],
)
def test_what_cannot_be_opened_is_refused(
    source: str,
    options: dict[str, object],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saved(tmp_path, "csv")
    np.save(tmp_path / "text.npy", np.array(["a", "b"]))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message):
        open_table(source, **options)


def test_a_scheduler_that_does_not_answer_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")

    def refuse(*args: object, **kwargs: object) -> object:
        raise OSError("Timed out trying to connect")

    monkeypatch.setattr(distributed, "Client", refuse)
    assert main(["fit", "mean", saved(tmp_path, "npy"), "--scheduler", "tcp://nobody:1"]) == 2
    error = capsys.readouterr().err
    assert "--scheduler: tcp://nobody:1: no scheduler answers there" in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("module", "source", "install"),
    [
        ("dask", "data.npy", r"outweigh\[dask,io\]"),
        ("h5py", "data.npy::X", r"outweigh\[storage\]"),
    ],
)
def test_without_a_library_it_is_said_which_to_install(
    module: str, source: str, install: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path, "npy")
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingLibrary, match=f"needs {module}: pip install .*{install}"):
        open_table(source)


def test_a_file_too_large_for_memory_is_pointed_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "mean", saved(tmp_path, "csv"), "--max-gigabytes", "1e-9"]) == 2
    assert "--scheduler threads" in capsys.readouterr().err


@pytest.fixture
def never_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to bring a table of Dask into memory as one array."""

    def guarded(name: str) -> None:
        original = getattr(da.Array, name)

        def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
            assert self.ndim < 2, f"{name} of an array of shape {self.shape}"
            return original(self, *args, **kwargs)

        monkeypatch.setattr(da.Array, name, checked)

    guarded("__array__")
    guarded("compute")


@pytest.mark.parametrize("kind", ["mean", "sparse-mean", "pca", "sparse-pca"])
@pytest.mark.usefixtures("never_whole")
def test_no_output_brings_the_rows_into_memory(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outweigh.files.parts._BYTES_AT_A_TIME", 100 * D * 8)
    monkeypatch.setattr("outweigh.estimators.explanation._BYTES_OF_CHUNKS", 10 * D * 8)
    taken: list[int] = []
    take = ChunkedRows.take
    monkeypatch.setattr(
        ChunkedRows,
        "take",
        lambda self, indices: (taken.append(indices.size), take(self, indices))[1],
    )
    path = saved(tmp_path, "npy")
    names = {"--out": "r.json", "--weights": "w.csv", "--report": "p.html", "--save": "m.outweigh"}
    outputs = [part for option, name in names.items() for part in (option, str(tmp_path / name))]
    # Scales and levels are read off a sample that would be all of so few rows.
    for values in ("_VALUES_FOR_SCALE", "_VALUES_FOR_LEVEL"):
        monkeypatch.setattr(f"outweigh.fit.noise.{values}", 0)
    options = ["--contamination", "0.06", "--scale", "none", "--scheduler", "threads"]
    # So is the test of whether columns are correlated, which is not looked at here.
    options += ["--covariance", "none"]
    assert main(["fit", kind, path, *options, *outputs]) == 0
    assert all((tmp_path / name).stat().st_size for name in names.values())
    assert len(json.loads((tmp_path / "r.json").read_text())["distrusted"]) == N_WRONG
    # The first row, the rows for origin and level, or those pruned, which are scored as new ones;
    # then those to explain, ten at a time.
    explained = -(-N_WRONG // 10)
    assert len(taken) <= 3 + explained
    assert max(taken) <= 500
    assert max(taken[-explained:]) == 10
    assert sum(taken[-explained:]) == N_WRONG


def test_a_page_shows_the_plain_mean_without_the_rows(never_whole: None, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from outweigh.displays import LocationDisplay

    X = open_table(saved(tmp_path, "npy")).values
    shown = LocationDisplay.from_estimator(RobustMean(scale=None).fit(X), X)
    np.testing.assert_allclose(shown.plain, rows().mean(axis=0))


def test_without_dask_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, "npy")
    for name in [name for name in sys.modules if name.partition(".")[0] == "dask"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dask", None)
    assert main(["fit", "mean", path, "--scheduler", "threads"]) == 2
    error = capsys.readouterr().err
    assert "--scheduler: needs dask: pip install 'outweigh[dask,io]'" in error
    assert len(error.strip().splitlines()) == 1


def test_the_share_of_a_pass_that_is_done_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.INFO, "outweigh"),
        dask.config.set(scheduler="synchronous"),
        _told_of_tasks(interval=0.0),
    ):
        da.ones((4, 2), chunks=(1, 2)).sum().compute(optimize_graph=False)
    shares = [int(text.strip().split("%")[0]) for text in caplog.messages]
    assert shares == sorted(shares)
    assert len(shares) > 4
    assert shares[0] < 50
    assert shares[-1] == 100


def test_a_group_of_an_hdf5_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["measured/X"] = rows()
        file["nothing"] = h5py.Empty("f8")
    source = str(tmp_path / "data.h5")
    assert main(["fit", "mean", f"{source}::measured", "--scheduler", "threads"]) == 2
    assert "measured: is not a dataset but a group of 'X'" in capsys.readouterr().err
    with pytest.raises(DataError, match="is not a dataset but a group of 'measured'"):
        open_table(f"{source}::")
    with pytest.raises(DataError, match=r"got float64 of shape \(\)"):
        open_table(f"{source}::nothing")


def test_parts_of_an_hdf5_file_are_found_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["X"] = rows()
    monkeypatch.chdir(tmp_path)
    values = open_table("data.h5::X").values
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    np.testing.assert_array_equal(values.compute(), rows())


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz", "*.csv"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,a,b\n1,2,3\n2,3,4\n", "more than one column is called 'a'; rename them"),
        ("a,b\n1,2,3\n2,3,4\n", "the rows have more cells than the first line has names"),
        ("1,2\n2,3\n3,4\n", "the first line holds numbers and no names"),
        ("", "the file is empty"),
    ],
)
def test_a_header_is_refused_as_it_is_in_memory(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    data = text.encode()
    (tmp_path / "data.csv").write_bytes(data)
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(data))
    with pytest.raises(DataError, match=message):
        open_table(str(tmp_path / name))
    if text and name != "*.csv":
        with pytest.raises(DataError, match=message):
            read_table(str(tmp_path / name))


def late(folder: Path, start: str, cell: str) -> str:
    """Write a column whose last cell is of another kind than those that Dask looks at."""
    path = folder / "late.csv"
    path.write_text("a,b\n" + f"{start},2.5\n" * 60_000 + f"{cell},2.5\n")
    return str(path)


@pytest.mark.parametrize("start", ["1", "1.5"])
@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_word_late_in_a_column_is_one_line(
    start: str, scheduler: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = late(tmp_path, start, "oops")
    assert main(["fit", "mean", path, "--scheduler", scheduler]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith(f"outweigh fit: error: {path}: cannot be read: column 'a' is float64")
    assert "could not convert string to float: 'oops'" in error
    assert not any(word in error for word in ("+--", "dtype=", "Traceback", "\n"))


def test_names_of_rows_that_change_their_type_are_one_line(tmp_path: Path) -> None:
    path = late(tmp_path, "1", "r7")
    with pytest.raises(DataError, match=r"late.csv: cannot be read: .*r7"):
        open_table(path, id_column="a")


def test_fractions_may_follow_whole_numbers(tmp_path: Path) -> None:
    path = late(tmp_path, "1", "0.5")
    np.testing.assert_array_equal(open_table(path).values.compute(), read_table(path).values)
    path = late(tmp_path, "1", "7")
    assert open_table(path, id_column="a").labels[-1] == "7"


@pytest.mark.parametrize("command", ["fit", "score"])
def test_a_pass_that_fails_is_one_line(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, model = saved(tmp_path, "npy"), str(tmp_path / "m.outweigh")
    assert main(["fit", "mean", path, "--save", model]) == 0
    capsys.readouterr()

    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("Dask: the scheduler was lost;\nnothing was fitted")

    monkeypatch.setattr(RobustMean, "fit", fail)
    monkeypatch.setattr(RobustMean, "explain", fail)
    what = ["fit", "mean"] if command == "fit" else ["score", model]
    assert main([*what, path, "--scheduler", "threads"]) == 2
    said = f"{path}: Dask: the scheduler was lost; nothing was fitted\n"
    assert capsys.readouterr().err == f"outweigh {command}: error: {said}"
    with pytest.raises(RuntimeError):
        main([*what, path])


def test_all_columns_of_an_array_are_not_copied(tmp_path: Path) -> None:
    path = saved(tmp_path, "npy")
    assert not any("getitem" in name for name in open_table(path).values.dask.layers)
    some = open_table(path, columns=["x5", "x0"])
    assert some.columns == ["x5", "x0"]
    np.testing.assert_array_equal(some.values.compute(), rows()[:, [5, 0]])


def test_the_plain_mean_of_few_digits_is_summed_in_many(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from outweigh.displays import LocationDisplay

    X = (rows() + 1e4).astype(np.float32)
    np.save(tmp_path / "few.npy", X)
    opened = open_table(str(tmp_path / "few.npy")).values
    shown = LocationDisplay.from_estimator(RobustMean(scale=None).fit(opened), opened)
    np.testing.assert_allclose(shown.plain, X.mean(axis=0, dtype=np.float64), rtol=1e-12)
    out = tmp_path / "r.json"
    arguments = ["--scheduler", "threads", "--out", str(out)]
    assert main(["fit", "mean", str(tmp_path / "few.npy"), *arguments]) == 0
    plain = list(json.loads(out.read_text())["plain_mean"].values())
    np.testing.assert_allclose(plain, X.mean(axis=0, dtype=np.float64), rtol=1e-12)


def test_files_of_different_headers_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "part-1.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "part-2.csv").write_text("a,c\n1,2\n3,4\n")
    assert main(["fit", "mean", str(tmp_path / "part-*.csv"), "--scheduler", "threads"]) == 2
    assert "part-2.csv has other columns" in capsys.readouterr().err


def test_how_text_is_written_is_recognised_as_it_is_in_memory(tmp_path: Path) -> None:
    path = str(tmp_path / "data.csv")
    words = "\ufeff\nname;a;b\nu;1,5;2\nv;ERR;3\nw;-999;4\nz;7,5;8\n"
    Path(path).write_text(words, encoding="utf-8")
    options: dict[str, Any] = {"na": ["ERR", "-999"], "missing": "drop", "exclude": ["nam*"]}
    found, whole = open_table(path, **options), read_table(path, **options)
    np.testing.assert_array_equal(found.values.compute(), whole.values)
    np.testing.assert_array_equal(whole.values, [[1.5, 2.0], [7.5, 8.0]])
    assert (found.labels, found.recognised) == (whole.labels, whole.recognised)
    assert (whole.labels, len(whole.recognised)) == (["u", "z"], 2)


def test_what_cannot_be_cut_into_parts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b\n1,2\n3,4\n", encoding="utf-16")
    with pytest.raises(DataError, match=r"utf-16 cannot be read in parts.*UTF-8"):
        open_table(str(path))
    path.write_text("a,b\ng,cm\n1,2\n3,4\n")
    with pytest.raises(DataError, match=r"units \(g, cm\), to be removed before"):
        open_table(str(path))
