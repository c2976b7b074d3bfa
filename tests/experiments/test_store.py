from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from outweigh.experiments.errors import ExperimentError
from outweigh.experiments.spec import SCHEMA
from outweigh.experiments.store import Store


def filled(path: Path, keys: str = "abc") -> Store:
    store = Store(path, "1.0")
    with store:
        for key in keys:
            store.append({"key": key, "value": ord(key)})
    return store


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    filled(tmp_path / "new" / "r.jsonl")
    again = Store(tmp_path / "new" / "r.jsonl", "1.0").records
    assert [record["key"] for record in again.values()] == ["a", "b", "c"]
    assert again["b"] == {"key": "b", "value": 98}
    assert "d" not in again


def test_a_record_is_on_disk_before_append_returns(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with Store(path, "1.0") as store:
        store.append({"key": "a"})
        assert json.loads(path.read_bytes().splitlines()[-1]) == {"key": "a"}


def test_a_last_line_torn_anywhere_is_recovered_and_nothing_else_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    filled(path)
    whole = path.read_bytes()
    start = whole[:-1].rfind(b"\n") + 1
    for end in range(start, len(whole)):
        path.write_bytes(whole[:end])
        assert [r["key"] for r in Store(path, "1.0").records.values()] == ["a", "b"]
        assert path.read_bytes() == whole[:end], "reading must not write"
        with Store(path, "1.0") as store:
            store.append({"key": "c", "value": 99})
        assert path.read_bytes() == whole


def test_a_first_line_torn_anywhere_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    filled(path, "")
    header = path.read_bytes()
    for end in range(len(header)):
        path.write_bytes(header[:end])
        filled(path, "")
        assert path.read_bytes() == header


@pytest.mark.parametrize(
    ("field", "value"), [("schema", SCHEMA + 1), ("version", "0.9"), ("kind", "something else")]
)
def test_a_store_from_another_version_is_refused_and_left_alone(
    tmp_path: Path, field: str, value: object
) -> None:
    path = tmp_path / "r.jsonl"
    filled(path)
    header, *rest = path.read_text().splitlines(keepends=True)
    path.write_text(json.dumps({**json.loads(header), field: value}) + "\n" + "".join(rest))
    before = path.read_bytes()
    with pytest.raises(ExperimentError) as caught:
        Store(path, "1.0")
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"hello", b"hello\n", b"[1, 2]\n", b"\x00\x00\n"])
def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    with pytest.raises(ExperimentError, match="is not a store of records"):
        Store(path, "1.0")
    assert path.read_bytes() == content


def test_damage_before_the_last_line_is_named_and_not_repaired(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    filled(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"{torn\n", *lines[2:]]))
    with pytest.raises(ExperimentError, match="line 2 is damaged"):
        Store(path, "1.0")


def test_two_writers_at_once_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with Store(path, "1.0"), pytest.raises(ExperimentError, match="another process is writing"):
        Store(path, "1.0").__enter__()
    with Store(path, "1.0"):
        pass


def test_a_writer_sees_what_another_wrote_since_it_was_made(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    early = Store(path, "1.0")
    filled(path)
    with early:
        assert len(early.records) == 3


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExperimentError, match=r"r\.jsonl: cannot be"):
        Store(tmp_path / "file" / "r.jsonl", "1.0").__enter__()


def test_a_full_disk_is_named_and_earlier_records_are_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.jsonl"
    filled(path)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Store(path, "1.0") as store, monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(ExperimentError, match=r"r\.jsonl: cannot be written: No space left"):
            store.append({"key": "d"})
        assert "d" not in store.records
    assert {"a", "b", "c"} <= {record["key"] for record in Store(path, "1.0").records.values()}


def test_a_record_without_a_finite_number_is_not_stored(tmp_path: Path) -> None:
    with Store(tmp_path / "r.jsonl", "1.0") as store, pytest.raises(ValueError, match="float"):
        store.append({"key": "a", "error": float("nan")})
    assert not Store(tmp_path / "r.jsonl", "1.0").records


def test_writing_to_a_store_that_is_not_open_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="open the store"):
        Store(tmp_path / "r.jsonl", "1.0").append({"key": "a"})
