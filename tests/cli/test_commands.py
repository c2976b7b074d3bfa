from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError

from outweigh.adversaries import ADVERSARIES
from outweigh.cli import demo as demo_command
from outweigh.cli import experiments as experiments_command
from outweigh.cli import main
from outweigh.experiments.algorithms import ALGORITHMS
from outweigh.experiments.spec import builtin_names, parse

SMALL = """
title = "A small one"
adversary = "constant_bias"
algorithms = ["oracle", "outweigh", "median"]
trials = 2
[fixed]
n_features = 6
n_nonzero = 2
contamination = 0.1
[grid]
n_samples = [20, 40]
[quick]
values = [20]
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL)


def one_error_line(capsys: pytest.CaptureFixture[str]) -> str:
    output = capsys.readouterr()
    (line,) = output.err.splitlines()
    assert re.match(r"outweigh (reproduce|plot): error: ", line)
    assert output.out == ""
    return line


def launch(*arguments: str) -> subprocess.Popen[str]:
    code = "import sys; from outweigh.cli import main; sys.exit(main())"
    root = Path(__file__).resolve().parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_reproduce_writes_records_table_figures_and_report(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["reproduce", "small.toml", "--out", "out", "--report", "--jobs", "1"]) == 0
    assert {path.name for path in Path("out").iterdir()} == {
        "records.jsonl",
        "summary.csv",
        "small.png",
        "small.svg",
        "report.html",
    }
    assert len(Path("out/records.jsonl").read_text().splitlines()) == 1 + 2 * 3 * 2
    assert len(Path("out/summary.csv").read_text().splitlines()) == 1 + 2 * 3
    output = capsys.readouterr()
    assert "n_samples = 20" in output.out
    assert "12 of 12 runs" in output.err


def test_reproduce_does_nothing_twice_and_quick_runs_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["reproduce", "small.toml", "--out", "out", "--jobs", "1"]
    assert main([*command, "--quick"]) == 0
    capsys.readouterr()
    assert main(command) == 0
    assert "12 runs, 6 of them already in" in capsys.readouterr().err
    before = Path("out/records.jsonl").read_bytes()
    assert main(command) == 0
    assert Path("out/records.jsonl").read_bytes() == before


def test_plot_draws_again_from_the_records_alone() -> None:
    assert main(["reproduce", "small.toml", "--out", "out", "--jobs", "1"]) == 0
    drawn = Path("out/small.png").read_bytes()
    for path in Path("out").glob("small.*"):
        path.unlink()
    assert main(["plot", "small.toml", "--out", "out", "--report"]) == 0
    assert main(["plot", "out", "small.toml", "--report"]) == 0, "a folder is not taken for --out"
    assert Path("out/small.png").read_bytes() == drawn
    assert Path("out/report.html").exists()


def test_plot_without_records_says_how_to_make_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "--out", "out"]) == 2
    assert "out/records.jsonl: does not exist" in one_error_line(capsys)
    assert not Path("out").exists()


def test_plot_of_a_figure_without_records_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    main(["reproduce", "small.toml", "--out", "out", "--jobs", "1", "--quick"])
    capsys.readouterr()
    assert main(["plot", "dense-mean", "--out", "out"]) == 2
    assert "has no records of dense-mean" in one_error_line(capsys)
    assert main(["plot", "--out", "out"]) == 2
    assert "name a TOML file" in one_error_line(capsys)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "nowhere.toml"], "nowhere.toml: cannot be read: No such file"),
        (["reproduce", "dense-maen"], "unknown figure 'dense-maen' (did you mean 'dense-mean'?)"),
        (["reproduce", "small.toml", "./small.toml"], "./small.toml: name: another experiment"),
        (["reproduce", "small.toml", "--out", "small.toml"], "small.toml/records.jsonl: cannot be"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two_and_nothing_is_written(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(arguments) == 2
    assert message in one_error_line(capsys)
    assert [path.name for path in Path().iterdir()] == ["small.toml"]
    assert Path("small.toml").read_text() == SMALL


def test_a_store_from_another_version_is_refused_and_left_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("out").mkdir()
    store = Path("out/records.jsonl")
    store.write_text('{"kind":"outweigh records","schema":0,"version":"0.0.1"}\n{"key":"a"}\n')
    before = store.read_bytes()
    for command in ("reproduce", "plot"):
        assert main([command, "small.toml", "--out", "out"]) == 2
        line = one_error_line(capsys)
        assert "out/records.jsonl: is from schema 0, this is schema 2" in line
    assert store.read_bytes() == before
    assert [path.name for path in Path("out").iterdir()] == ["records.jsonl"]


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_a_folder_that_may_not_be_written_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    Path("closed").mkdir(mode=0o500)
    assert main(["reproduce", "small.toml", "--out", "closed/out"]) == 2
    assert "closed/out/records.jsonl: cannot be written: Permission denied" in one_error_line(
        capsys
    )


@pytest.mark.parametrize("jobs", ["0", "-1", "two", "1.5"])
def test_a_senseless_number_of_jobs_is_refused(
    capsys: pytest.CaptureFixture[str], jobs: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["reproduce", f"--jobs={jobs}"])
    assert caught.value.code == 2
    assert "argument --jobs: must be" in capsys.readouterr().err


def test_failed_runs_are_shown_and_give_exit_code_one(capsys: pytest.CaptureFixture[str]) -> None:
    text = SMALL.replace("[fixed]", '[options]\ninliers = "martian"\n[fixed]')
    Path("bad.toml").write_text(text)
    assert main(["reproduce", "bad.toml", "--out", "out", "--jobs", "1", "--report"]) == 1
    output = capsys.readouterr()
    assert "failed: bad at 20, oracle, trial 0: InvalidParameterError" in output.err
    assert "and 7 more failures" in output.err
    assert "martian" in Path("out/report.html").read_text()


def test_without_matplotlib_the_records_and_tables_are_there_and_figures_are_excused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["reproduce", "small.toml", "--out", "out", "--jobs", "1", "--quick"]) == 0
    assert "no figures: figures need matplotlib" in capsys.readouterr().err
    assert {p.name for p in Path("out").iterdir()} == {"records.jsonl", "summary.csv"}


@pytest.mark.parametrize(
    "command", [["reproduce", "small.toml", "--report"], ["fit", "mean", "x", "--report", "p.html"]]
)
def test_without_jinja2_a_report_is_refused_before_any_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main(command) == 2
    said = f"outweigh {command[0]}: error: --report: needs jinja2: pip install jinja2\n"
    assert capsys.readouterr().err == said
    assert [path.name for path in Path().iterdir()] == ["small.toml"]


def test_an_interrupt_says_how_to_go_on_and_keeps_what_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = experiments_command.do_runs

    def interrupted(*arguments: object) -> object:
        for number, record in enumerate(real(*arguments)):  # type: ignore[arg-type]
            if number == 3:
                raise KeyboardInterrupt
            yield record

    with monkeypatch.context() as patch:
        patch.setattr(experiments_command, "do_runs", interrupted)
        assert main(["reproduce", "small.toml", "--out", "out", "--jobs", "1"]) == 130
    assert "4 of 12 runs are safe in out/records.jsonl; the same command goes on" in (
        capsys.readouterr().err
    )
    assert main(["reproduce", "small.toml", "--out", "out", "--jobs", "1"]) == 0
    assert "12 runs, 4 of them already in" in capsys.readouterr().err


def test_a_worker_that_dies_is_one_line_that_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(*arguments: object) -> object:
        raise TerminatedWorkerError("killed")

    monkeypatch.setattr(experiments_command, "do_runs", dying)
    assert main(["reproduce", "small.toml", "--out", "out"]) == 2
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith("outweigh reproduce: error: a worker process died")
    assert "fewer --jobs" in last


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize(
    ("jobs", "sent", "code"),
    [("1", signal.SIGINT, 130), ("2", signal.SIGINT, 130), ("2", signal.SIGTERM, 143)],
)
def test_a_signal_ends_the_command_quickly_and_without_a_traceback(
    jobs: str, sent: signal.Signals, code: int
) -> None:
    Path("long.toml").write_text(SMALL.replace("trials = 2", "trials = 3000"))
    process = launch("reproduce", "long.toml", "--out", "out", "--jobs", jobs)
    store = Path("out/records.jsonl")
    deadline = time.monotonic() + 120
    while not (store.exists() and store.read_bytes().count(b"\n") > 10):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if sent == signal.SIGINT:
        os.killpg(process.pid, sent)
    else:  # as `kill` and service managers do first: not to the workers
        process.send_signal(sent)
    _, error = process.communicate(timeout=60)
    assert process.returncode == code
    assert "the same command goes on from there" in error
    assert "Traceback" not in error
    for line in store.read_text().splitlines():
        json.loads(line)


def test_list_shows_all_that_can_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    words = capsys.readouterr().out.split()
    assert {*builtin_names(), *ALGORITHMS, *ADVERSARIES} <= set(words)


def test_list_shows_one_kind_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "figures"]) == 0
    words = capsys.readouterr().out.split()
    assert set(builtin_names()) <= set(words)
    assert "naive_pruning" not in words


def test_the_demo_prints_both_tables_and_saves_a_figure_and_a_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert Path("outweigh-demo.png").read_bytes().startswith(b"\x89PNG")
    lines = [line for line in out.splitlines() if " s   " in line]
    assert lines[0].startswith("oracle")
    assert lines[1].startswith("outweigh"), "ours is not next to the oracle"
    found = re.search(r"^outweigh +(\d+), 12 of them rightly +12 ", out, re.MULTILINE)
    assert found is not None
    # Beside the twelve at most a fiftieth of the 345 genuine tumours.
    assert int(found[1]) <= 12 + 345 // 50
    assert "mean radius (9" in out, "the reason is not named"
    assert "mean radius" in Path("outweigh-demo.html").read_text(encoding="utf-8")
    assert "Try next" in out


def test_the_demo_names_a_file_it_cannot_write(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_command, "NAMES", ("oracle", demo_command.OURS))
    Path("outweigh-demo.png").mkdir()
    assert main(["demo"]) == 2
    assert "outweigh demo: error: outweigh-demo.png: cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["demo"], ["reproduce"], ["plot"], ["list"]])
def test_help_is_there_for_every_command(
    capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0
    assert "usage: outweigh" in capsys.readouterr().out


def test_the_experiment_in_the_help_is_a_valid_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["reproduce", "--help"])
    example = capsys.readouterr().out.split("like this one:")[1]
    assert parse(example, "example", "help").grid == {"n_samples": [50, 100, 200]}


def test_the_command_is_installed_under_its_name() -> None:
    beside = Path(sys.executable).parent / "outweigh"
    found = str(beside) if beside.exists() else shutil.which("outweigh")
    if found is None:
        pytest.skip("the package is not installed: pip install -e .")
    done = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("outweigh ")


def test_the_package_runs_as_a_module_and_exits_with_the_code_of_the_command() -> None:
    run = [sys.executable, "-m", "outweigh"]
    done = subprocess.run([*run, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("outweigh ")
    assert subprocess.run([*run, "fit"], capture_output=True, check=False).returncode == 2


def test_help_does_not_wait_for_libraries_that_it_does_not_need() -> None:
    heavy = {"sklearn", "pandas", "matplotlib", "dask", "jinja2", "tqdm"}
    code = (
        "import sys; import outweigh.cli.main as _; "
        f"sys.exit(', '.join({heavy} & set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
