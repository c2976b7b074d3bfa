"""Files to tables: which columns are used, how rows are named, and what is refused in one line."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from outweigh import RobustMean
from outweigh.files import DataError, read_table

VALUES = np.array([[1.0, 2.5], [3.0, -4.0], [5.5, 6.0]])


def frame() -> pd.DataFrame:
    # A copy: before pandas 3 what is written into the frame is written into the array.
    return pd.DataFrame(VALUES.copy(), columns=["a", "b"])


def saved(folder: Path, kind: str) -> Path:
    path = folder / f"data.{kind}"
    if kind == "csv":
        frame().to_csv(path, index=False)
    elif kind == "tsv":
        frame().to_csv(path, index=False, sep="\t")
    elif kind == "csv.gz":
        frame().to_csv(path, index=False)
    elif kind == "parquet":
        frame().to_parquet(path)
    elif kind == "npy":
        np.save(path, VALUES)
    else:
        np.savez(path, X=VALUES, other=np.arange(3))
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "parquet", "npy", "npz"])
def test_every_kind_of_file_gives_the_same_numbers(tmp_path: Path, kind: str) -> None:
    table = read_table(saved(tmp_path, kind))
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.columns == (["x0", "x1"] if kind.startswith("np") else ["a", "b"])
    assert table.labels == ["1", "2", "3"]


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy", "npz"])
def test_standard_input_is_recognised_by_its_bytes(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = saved(tmp_path, kind).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    np.testing.assert_array_equal(read_table("-").values, VALUES)


def test_text_dates_and_truth_values_are_left_out_and_named(tmp_path: Path) -> None:
    mixed = frame().assign(
        name=["x", "y", "z"], flag=[True, False, True], empty=[None] * 3, mostly=["1", "2", "n.a!"]
    )
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    table = read_table(tmp_path / "mixed.csv")
    assert table.columns == ["a", "b"]
    reasons = dict(table.dropped)
    assert reasons["name"] == "text, such as 'x'"
    assert reasons["flag"] == "true and false"
    assert reasons["empty"] == "nothing"
    assert "'n.a!'" in reasons["mostly"]


def test_a_column_can_name_the_rows(tmp_path: Path) -> None:
    frame().assign(who=["p", "q", "r"]).to_csv(tmp_path / "data.csv", index=False)
    table = read_table(tmp_path / "data.csv", id_column="who")
    assert (table.labels, table.columns, table.dropped) == (["p", "q", "r"], ["a", "b"], [])


@pytest.mark.parametrize("name", ["id", "ID", "index", ""])
def test_a_first_column_of_distinct_ids_is_not_a_feature(tmp_path: Path, name: str) -> None:
    data = frame()
    data.insert(0, name, [7, 8, 9])
    data.to_csv(tmp_path / "data.csv", index=False)
    table = read_table(tmp_path / "data.csv")
    assert (table.id_column, table.labels, table.columns) == (name, ["7", "8", "9"], ["a", "b"])


def test_a_first_column_of_repeated_values_is_a_feature(tmp_path: Path) -> None:
    data = frame()
    data.insert(0, "index", [7, 7, 9])
    data.to_csv(tmp_path / "data.csv", index=False)
    assert read_table(tmp_path / "data.csv").columns == ["index", "a", "b"]


def test_the_index_of_a_parquet_file_names_the_rows(tmp_path: Path) -> None:
    frame().set_index(pd.Index(["p", "q", "r"])).to_parquet(tmp_path / "data.parquet")
    assert read_table(tmp_path / "data.parquet").labels == ["p", "q", "r"]


def test_columns_are_used_in_the_order_given(tmp_path: Path) -> None:
    for kind in ("csv", "parquet"):
        table = read_table(saved(tmp_path, kind), columns=["b", "a"])
        np.testing.assert_array_equal(table.values, VALUES[:, ::-1])


def test_missing_rows_are_named_and_refused(tmp_path: Path) -> None:
    data = frame().assign(id=["p", "q", "r"])
    data.loc[1, "b"] = np.nan
    data[["id", "a", "b"]].to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(DataError, match=r"1 row has missing or infinite values \(q\); leave"):
        read_table(tmp_path / "data.csv")


def test_missing_rows_are_dropped_when_asked(tmp_path: Path) -> None:
    data = frame()
    data.loc[1, "b"] = np.inf
    data.to_csv(tmp_path / "data.csv", index=False)
    table = read_table(tmp_path / "data.csv", missing="drop")
    assert (table.n_missing, table.labels) == (1, ["1", "3"])


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return (pytest.fail, ("unpickled",))

    np.save(tmp_path / "data.npy", np.array([[Bomb()]]), allow_pickle=True)
    np.savez(tmp_path / "data.npz", np.array([[Bomb()]]))
    for kind in ("npy", "npz"):
        with pytest.raises(DataError, match=r"cannot be read as .*holds Python objects"):
            read_table(tmp_path / f"data.{kind}")


BAD = {
    "empty": ("", "the file is empty"),
    "header only": ("a,b\n", "has a header and no rows"),
    "no numbers": ("a,b\nx,y\nz,w\n", "no numeric column; found 'a' (text, such as 'x')"),
    "twice": ("a,b,a\n1,2,3\n4,5,6\n", "more than one column is called 'a'"),
    "zeros": ("a,b\n1,2\n3,\0\n", "is not a text file"),
    "no header": ("1,2\n3,4\n5,6\n", "the first line holds numbers and no names"),
    "one row": ("a,b\n1,2\n", "1 usable rows; at least 2 are needed"),
    "ragged": ("a,b\n1,2\n1,2,3,4\n", "cannot be read"),
    "lines above the header": (
        "# by hand\n# today\na,b\n1,2\n",
        "the names of the columns in the first line: Error tokenizing data. C error: Expected 1",
    ),
    "wide rows": ("a,b\n1,2,3\n4,5,6\n", "name all columns"),
    "a line above the header": ("# by hand\na,b\n1,2\n", "there, and put no line above them"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_cannot_be_used_is_refused_with_a_reason(tmp_path: Path, case: str) -> None:
    text, reason = BAD[case]
    path = tmp_path / "data.csv"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read_table(path)
    assert reason in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet"])
def test_a_damaged_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = saved(tmp_path, kind)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(DataError, match="cannot be read as"):
        read_table(path)


def test_a_text_file_in_disguise_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"is not a \.parquet file"):
        read_table(path)


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.csv"
    with path.open("wb") as file:
        file.truncate(10_000_000_000)
    with pytest.raises(DataError, match=r"10\.0 GB is more than is read at once \(4 GB\); raise"):
        read_table(path)


def test_unknown_columns_are_named_with_those_that_exist(tmp_path: Path) -> None:
    for kind in ("csv", "parquet"):
        with pytest.raises(DataError, match="no column is called 'c'; there are 'a', 'b'"):
            read_table(saved(tmp_path, kind), columns=["a", "c"])


def test_an_array_of_the_wrong_shape_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", np.zeros(5))
    with pytest.raises(DataError, match="needs numbers in rows and columns"):
        read_table(tmp_path / "data.npy")


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_go_in_and_their_names_stay(kind: Any) -> None:
    X = np.random.default_rng(0).standard_normal((200, 3))
    X[:10] += 8.0
    data = kind({name: X[:, j] for j, name in enumerate("abc")})
    est = RobustMean().fit(data)
    assert est.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(est.score_samples(data), RobustMean().fit(X).score_samples(X))


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("separator", ["\t", ";", "|", " "])
def test_what_stands_between_cells_and_in_numbers_is_recognised_and_said(
    tmp_path: Path, separator: str, decimal: str
) -> None:
    path = tmp_path / "data.csv"
    frame().to_csv(path, index=False, sep=separator, decimal=decimal)
    table = read_table(path)
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.recognised[0].startswith("cells are separated by a ")
    assert ("decimal commas" in table.recognised[-1]) == (decimal == ",")
    told = read_table(path, delimiter=separator, decimal=decimal)
    assert told.recognised == []
    np.testing.assert_array_equal(told.values, VALUES)


def test_decimal_commas_do_not_pass_for_separators_though_they_split_rows_equally(
    tmp_path: Path,
) -> None:
    path = tmp_path / "data.csv"
    path.write_text("sample;400,5;401,0\ns1;0,12;0,13\ns2;0,22;0,23\n")
    table = read_table(path)
    assert (table.columns, table.labels) == (["400,5", "401,0"], ["s1", "s2"])
    np.testing.assert_array_equal(table.values, [[0.12, 0.13], [0.22, 0.23]])


def test_commas_between_thousands_are_no_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "data.tsv"
    path.write_text("a\tb\n1,234\t5\n2,345\t6\n")
    table = read_table(path)
    assert table.columns == ["b"]
    assert "use --decimal ," in dict(table.dropped)["a"]


def test_the_name_of_a_single_column_may_hold_a_space(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("body mass\n1.5\n2.5\n")
    assert read_table(path).columns == ["body mass"]


def test_a_workbook_of_a_spreadsheet_is_refused_as_one(tmp_path: Path) -> None:
    path = tmp_path / "data.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
        archive.writestr("xl/workbook.xml", "<x/>")
    with pytest.raises(DataError, match="save the sheet with the table as CSV"):
        read_table(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_unicode_is_recognised(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes("größe,b\n1,2\n3,4\n".encode(encoding))
    table = read_table(path)
    assert table.columns == ["größe", "b"]
    assert bool(table.recognised) == encoding.startswith("utf-16")


def test_what_is_not_unicode_is_read_as_latin_1_and_said(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    # Beyond the beginning from which the separator is told.
    path.write_bytes(b"id,b,note\n" + b"".join(b"r%d,2,ok\n" % i for i in range(200_000))
                     + "z,2,schön\n".encode("latin-1"))  # fmt: skip
    table = read_table(path)
    assert table.recognised == ["text is read as latin-1 (--encoding)"]
    with pytest.raises(DataError, match=r"cannot be read as text.*utf-8"):
        read_table(path, encoding="utf-8")
    assert read_table(path, encoding="latin-1").recognised == []


def test_words_and_numbers_can_stand_for_missing_values(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b\n1,2\nERR,4\n5,-999\n7,8\n")
    table = read_table(path, na=["ERR", "-999"], missing="drop")
    np.testing.assert_array_equal(table.values, [[1.0, 2.0], [7.0, 8.0]])
    np.save(tmp_path / "data.npy", [[1.0, 2.0], [3.0, -999.0], [7.0, 8.0]])
    table = read_table(tmp_path / "data.npy", na=["-999"], missing="drop")
    np.testing.assert_array_equal(table.values, [[1.0, 2.0], [7.0, 8.0]])


def test_a_column_with_a_rare_word_is_left_out_with_the_way_to_keep_it(tmp_path: Path) -> None:
    data = pd.DataFrame({"a": np.arange(100.0), "b": np.arange(100.0)}).astype({"b": object})
    data.loc[3, "b"] = "ERR"
    data.to_csv(tmp_path / "data.csv", index=False)
    assert "use --na ERR" in dict(read_table(tmp_path / "data.csv").dropped)["b"]


def test_a_line_of_units_is_recognised_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("\nwhen,mass,length\n,g,cm\nmon,1,2\ntue,3,4\n")
    table = read_table(path)
    np.testing.assert_array_equal(table.values, [[1.0, 2.0], [3.0, 4.0]])
    assert table.recognised == ["the line below the header is no row: it holds units (g, cm)"]


@pytest.mark.parametrize("first", ["x,1,ok", "x,NA,", "x,,", "x,ERR,ERR"])
def test_a_first_row_that_holds_numbers_or_nothing_is_a_row(tmp_path: Path, first: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(f"id,a,b\n{first}\ny,1,2\nz,3,4\nu,ERR,2\nv,6,ERR\n")
    table = read_table(path, na=["ERR", "ok"], missing="median")
    assert table.labels == list("xyzuv")


def test_a_first_column_of_distinct_words_names_the_rows(tmp_path: Path) -> None:
    data = frame()
    data.insert(0, "sample", ["p", "q", "r"])
    data.to_csv(tmp_path / "data.csv", index=False)
    data.to_parquet(tmp_path / "data.parquet")
    for kind in ("csv", "parquet"):
        table = read_table(tmp_path / f"data.{kind}", columns=["a"])
        assert (table.id_column, table.labels, table.columns) == ("sample", ["p", "q", "r"], ["a"])
    data.assign(sample=["p", "q", "q"]).to_csv(tmp_path / "data.csv", index=False)
    assert read_table(tmp_path / "data.csv").numbered


@pytest.mark.parametrize("cells", [("1.5", "2.5", "ERR"), ("1%", "2%", "3%")])
def test_a_first_column_of_numbers_with_words_or_marks_names_nothing(
    tmp_path: Path, cells: tuple[str, ...]
) -> None:
    lines = [f"{cell},{i}\n" for i, cell in enumerate(cells)]
    (tmp_path / "data.csv").write_text("".join(["t,a\n", *lines]))
    assert read_table(tmp_path / "data.csv").numbered


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_can_be_chosen_and_excluded_by_patterns(tmp_path: Path, kind: str) -> None:
    data = frame().assign(**{"g1": 1.0, "g2": 2.0, "g[x]": 3.0, "gnote": "word"})
    path = tmp_path / f"data.{kind}"
    data.to_csv(path, index=False) if kind == "csv" else data.to_parquet(path)
    table = read_table(path, columns=["b", "g*"], exclude=["g2"])
    assert table.columns == ["b", "g1", "g[x]"]
    assert [name for name, _ in table.dropped] == ["gnote"]
    assert read_table(path, columns=["g[x]"]).columns == ["g[x]"]
    assert read_table(path, exclude=["g*"]).columns == ["a", "b"]
    for options in ({"columns": ["h*"]}, {"exclude": ["h*"]}):
        with pytest.raises(DataError, match=r"no column is called 'h\*'"):
            read_table(path, **options)


def test_it_is_known_whether_rows_are_named_or_numbered(tmp_path: Path) -> None:
    assert read_table(saved(tmp_path, "csv")).numbered
    frame().assign(id=list("xyz"))[["id", "a", "b"]].to_csv(tmp_path / "ids.csv", index=False)
    assert not read_table(tmp_path / "ids.csv").numbered


def test_a_sparse_matrix_of_scipy_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "counts.npz"
    scipy.sparse.save_npz(path, scipy.sparse.csr_array(np.eye(4)))
    with pytest.raises(DataError, match=r"a sparse matrix; in Python the means take"):
        read_table(path)


@pytest.mark.parametrize("kind", ["csv.gz", "csv.bz2", "csv.xz"])
def test_a_compressed_file_is_recognised_by_its_bytes(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"data.{kind}"
    frame().to_csv(path, index=False)
    renamed = path.rename(tmp_path / "data.csv")
    np.testing.assert_array_equal(read_table(renamed).values, VALUES)


@pytest.mark.parametrize("module", [gzip, bz2, lzma])
def test_what_a_compressed_file_holds_is_bounded(tmp_path: Path, module: Any) -> None:
    path = tmp_path / "bomb.csv"
    path.write_bytes(module.compress(b"a,b\n" + b"1,2\n" * 2_500_000))
    assert path.stat().st_size < 1e5
    with pytest.raises(DataError, match=r"decompressed is more than is read at once \(0\.005 GB\)"):
        read_table(path, max_gigabytes=0.005)
    with pytest.raises(DataError, match="raise --max-gigabytes"):
        read_table(path, max_gigabytes=0.005)
    assert read_table(path, max_gigabytes=0.011).values.shape == (2_500_000, 2)


def test_what_an_archive_of_arrays_holds_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, X=np.zeros((1000, 1000)))
    with pytest.raises(DataError, match=r"decompressed is more than is read at once \(0\.005 GB\)"):
        read_table(path, max_gigabytes=0.005)
    assert read_table(path, max_gigabytes=0.01).values.shape == (1000, 1000)


def test_standard_input_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"a,b\n" + b"1,2\n" * 2_000_000
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    with pytest.raises(DataError, match=r"standard input is more than is read at once \(0\.005"):
        read_table("-", max_gigabytes=0.005)


@pytest.mark.parametrize("kind", ["npy", "npz", "-"])
def test_a_shape_that_is_larger_than_the_file_takes_no_memory(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
    np.lib.format.write_array_header_1_0(file, header)
    file.write(bytes(80))
    path = tmp_path / f"data.{kind}"
    path.write_bytes(file.getvalue())
    if kind == "npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("X.npy", file.getvalue())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(file.getvalue())))
    with pytest.raises(DataError, match="cannot be read as np"):
        read_table("-" if kind == "-" else path)


def test_a_member_that_holds_more_than_it_declares_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez_compressed(path, X=np.zeros((1000, 1000)))
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.rindex(mark) + offset
        data[at : at + 4] = (200).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(DataError, match="cannot be read as npz"):
        read_table(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_that_are_compressed_in_an_unusual_manner_are_refused(
    tmp_path: Path, method: int
) -> None:
    file = io.BytesIO()
    np.save(file, VALUES)
    with zipfile.ZipFile(tmp_path / "data.npz", "w", method) as archive:
        archive.writestr("X.npy", file.getvalue())
    with pytest.raises(DataError, match=r"X\.npy is encrypted, or compressed in an unusual manner"):
        read_table(tmp_path / "data.npz")


def test_a_number_that_seems_to_stand_for_a_missing_value_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\n1,2,400\n-999,3,999\n-999,4,999\n5,999,7\n")
    assert read_table(path).recognised == [
        "'a' is -999 in 2 rows: use --na=-999 if it means a missing value",
        "'c' is 999 in 2 rows: use --na=999 if it means a missing value",
    ]
    assert read_table(path, na=["-999", "999"], missing="median").recognised == []


@pytest.mark.parametrize(("n", "cell"), [(600_000, 0.0), (2000, "text" * 1000)])
def test_parquet_of_one_value_is_refused_by_what_it_holds(
    tmp_path: Path, n: int, cell: object
) -> None:
    path = tmp_path / "bomb.parquet"
    pd.DataFrame({"a": 1.0, "b": [cell] * n}).to_parquet(path)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(DataError, match=r"decompressed is more than is read at once \(0\.005 GB\)"):
        read_table(path, max_gigabytes=0.005)
    np.testing.assert_array_equal(read_table(path, columns=["a"], max_gigabytes=1.0).values, 1.0)
