"""A file is written in one piece or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outweigh import RobustMean, load_model, save_model
from outweigh.files.writing import check_target, write_file


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def full(*arguments: Any, **options: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


class FullDisk:
    """A file that takes a few bytes and no more."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def __enter__(self) -> FullDisk:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def write(self, data: bytes) -> int:
        self.file.write(data[:3])
        return int(full())


def failing(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    if step == "write":
        monkeypatch.setattr(
            "outweigh.files.writing.open",
            lambda *a: FullDisk(open(*a)),  # noqa: SIM115
            raising=False,
        )
    else:
        monkeypatch.setattr(f"outweigh.files.writing.os.{step}", full)


STEPS = ["write", "fsync", "replace", "chmod"]


def test_a_new_file_is_written_with_its_folders_and_the_permissions_of_the_umask(
    tmp_path: Path, umask: None
) -> None:
    path = tmp_path / "deep" / "er" / "new"
    assert write_file(path, "ä") == path
    assert path.read_bytes() == "ä".encode()
    assert mode(path) == 0o640


@pytest.mark.parametrize("permissions", [0o600, 0o644, 0o660])
def test_a_file_that_exists_keeps_its_permissions(
    tmp_path: Path, umask: None, permissions: int
) -> None:
    path = tmp_path / "private"
    path.write_bytes(b"old")
    path.chmod(permissions)
    write_file(path, b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", permissions)


@pytest.mark.parametrize("step", STEPS)
def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "precious"
    path.write_bytes(b"old")
    with monkeypatch.context() as patch:
        failing(patch, step)
        with pytest.raises(OSError, match="cannot be written: No space left") as caught:
            write_file(path, b"new and longer")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert os.listdir(tmp_path) == ["precious"]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("step", STEPS)
def test_a_model_that_cannot_be_saved_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    X = np.random.default_rng(0).standard_normal((200, 5))
    est = RobustMean().fit(X)
    path = tmp_path / "model"
    save_model(est, path)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        failing(patch, step)
        with pytest.raises(OSError, match="No space left"):
            save_model(RobustMean(contamination=0.1).fit(X), path)
    assert os.listdir(tmp_path) == ["model"]
    assert path.read_bytes() == before
    np.testing.assert_array_equal(load_model(path).location_, est.location_)


@pytest.mark.parametrize("there", [True, False], ids=["a file", "nothing yet"])
def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path, there: bool) -> None:
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    target.parent.mkdir()
    if there:
        target.write_bytes(b"old")
    link.symlink_to(target)
    write_file(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("what", ["folder", "pipe", "device", "link to a device", "circle"])
@pytest.mark.parametrize("function", [check_target, lambda path: write_file(path, b"x")])
def test_what_is_not_a_regular_file_is_refused(tmp_path: Path, what: str, function: Any) -> None:
    path = tmp_path / "strange"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path = Path(os.devnull)
    else:
        path.symlink_to(path if what == "circle" else os.devnull)
    before = path.lstat().st_mode
    with pytest.raises(OSError, match="cannot be written: is not a regular file"):
        function(path)
    assert path.lstat().st_mode == before


def test_errors_are_of_their_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("outweigh.files.writing.os.replace", refuse)
    with pytest.raises(PermissionError, match="Permission denied"):
        write_file(tmp_path / "x", b"")
    with pytest.raises(NotADirectoryError):
        write_file(Path(__file__) / "x", b"")


SMALL = """
title = "A small one"
adversary = "constant_bias"
algorithms = ["oracle", "median"]
trials = 20
[fixed]
n_features = 6
n_nonzero = 2
contamination = 0.1
[grid]
n_samples = [20]
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of processes")
@pytest.mark.parametrize("limit", [100, 2000, 20_000])
def test_a_disk_that_is_full_is_one_line_and_exit_code_two(tmp_path: Path, limit: int) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    code = (
        "import resource, sys; from outweigh.cli import main; import outweigh.cli.experiments\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "sys.exit(main(['reproduce', 'small.toml', '--out', 'out', '--jobs', '1', '--report']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    *_, last = done.stderr.strip().splitlines()
    assert last.startswith("outweigh reproduce: error: out/")
    assert ": cannot be written: File too large" in last
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "out").glob(".outweigh-*"))
