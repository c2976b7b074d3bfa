"""A fit that is interrupted, terminated or out of memory ends in one line and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import outweigh.cli.fit  # noqa: F401  (here, for the same reason as in `read_only`)
from outweigh import RobustMean
from outweigh.cli import main

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals, limits and permissions")

# The signal comes when the estimator first tells how far it is: in the middle of the fit.
IN_A_FIT = """
import logging, os, signal, sys
from outweigh.cli import main

# A job in the background is started without it.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Raised(logging.Handler):
    def emit(self, record):
        logging.getLogger("outweigh").removeHandler(self)
        os.kill(os.getpid(), {signal})

logging.getLogger("outweigh").addHandler(Raised())
sys.exit(main(sys.argv[1:]))
"""
WITH_LITTLE_MEMORY = """
import resource, sys
from outweigh.cli import main
import outweigh.cli.fit
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + {more}, held + {more}))
sys.exit(main(sys.argv[1:]))
"""


def python(code: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    X = np.random.default_rng(0).standard_normal((200, 20))
    X[:20, :3] += 3.0
    np.save(tmp_path / "rows.npy", X)
    (tmp_path / "w.csv").write_text("old")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "code", "said"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")]
)
def test_a_signal_in_a_fit_is_one_line(rows: Path, name: str, code: int, said: str) -> None:
    number = int(getattr(signal, name))
    script = IN_A_FIT.format(signal=number)
    done = python(script, rows, "fit", "mean", "rows.npy", "--weights", "w.csv", "--force")
    assert done.returncode == code
    assert done.stderr.strip() == f"outweigh: {said}"
    assert done.stdout == ""
    assert (rows / "w.csv").read_text() == "old"
    assert sorted(path.name for path in rows.iterdir()) == ["rows.npy", "w.csv"]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs to know its memory")
def test_a_fit_without_memory_is_one_line(rows: Path) -> None:
    np.save(rows / "rows.npy", np.random.default_rng(0).standard_normal((4000, 1000)))
    script = WITH_LITTLE_MEMORY.format(more=50_000_000)
    done = python(script, rows, "fit", "mean", "rows.npy", "--weights", "w.csv", "--force")
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("outweigh fit: error: ")
    assert len(done.stderr.splitlines()) == 1
    assert (rows / "w.csv").read_text() == "old"


def test_memory_that_runs_out_without_a_word_is_named(
    rows: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fit(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(RobustMean, "fit", fit)
    assert main(["fit", "mean", str(rows / "rows.npy")]) == 2
    assert capsys.readouterr().err == "outweigh fit: error: out of memory\n"


def test_a_caller_s_own_handler_of_signals_stays(rows: Path) -> None:
    command = ["fit", "mean", str(rows / "rows.npy")]
    assert main(command) == 0
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

    def mine(*_: object) -> None: ...

    signal.signal(signal.SIGTERM, mine)
    try:
        assert main(command) == 0
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main(command)))
    thread.start()
    thread.join()
    assert codes == [0]


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder that this process may read and not write to, also where it is root's."""
    root = os.geteuid() == 0
    # Loads what reading the figures needs, which nobody else may read where root installed it.
    assert main(["list", "figures"]) == 0
    # Not pytest's own folder, which nobody else may enter.
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o555)
        if root:
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)
            Path(name).chmod(0o755)


def test_a_read_only_folder_is_refused_before_any_work(
    rows: Path,
    read_only: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(RobustMean, "fit", lambda *_: pytest.fail("worked in vain"))
    for option, name in (("--out", "a.csv"), ("--report", "a.html"), ("--save", "m")):
        assert main(["fit", "mean", "rows.npy", option, str(read_only / name)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{option}: {read_only / name}: cannot be written: Permission denied" in line
    assert main(["reproduce", "dense-mean", "--out", str(read_only / "out")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "Permission denied" in line
    assert not list(read_only.iterdir())
