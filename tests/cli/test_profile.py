"""`ncuroof profile` and `ncuroof doctor` as a user calls them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ncuroof.collect.report_paths import claimed
from tests.cli.running import run_main, run_with_closed_output
from tests.collect.making import DEMO, ROOT, stand_in, stand_in_nsys
from tests.support.nsys_database import Ran, write_database


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a script, and an ncu that works."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools").mkdir()
    monkeypatch.setenv("NCUROOF_NCU", str(stand_in(tmp_path / "tools")))
    monkeypatch.setenv("STAND_IN_REPORT", str(DEMO))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("ncuroof.cli.profile.find_nsys", lambda _: None)
    (tmp_path / "train.py").write_text("import sys\nprint('trained', sys.argv[1:])\n", encoding="utf-8")
    return tmp_path


@pytest.mark.long
def test_from_a_script_to_the_diagnosis(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("profile", "--no-per-shape", "train.py", "--epochs", "1") == 0
    output = capfd.readouterr()
    assert output.out.startswith("trained ['--epochs', '1']\n")
    assert "16 launches take 21.0 ms of GPU time" in output.out
    assert "report: train.ncu-rep\npage: train.html\n" in output.out
    assert "plan: level roofline" in output.err
    assert "ncuroof redact" in output.err
    assert (folder / "train.ncu-rep").read_bytes() == DEMO.read_bytes()
    assert b"<!doctype html>" in (folder / "train.html").read_bytes().lower()


@pytest.mark.long
def test_with_standard_output_closed_the_page_is_the_result(folder: Path) -> None:
    """What the program prints does not go into a file that happens to have the free descriptor."""
    assert run_with_closed_output("profile", "-q", "--no-per-shape", "train.py") == (0, b"")
    assert (folder / "train.ncu-rep").read_bytes() == DEMO.read_bytes()
    assert b"trained" not in (folder / "train.html").read_bytes()


@pytest.mark.long
def test_a_folder_for_the_report_has_to_be_there(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for times in range(2):
        assert run_main("profile", "--no-per-shape", "-o", "runs/", "train.py") == (0 if times else 1)
        (folder / "runs").mkdir(exist_ok=True)
    assert "runs/: no such folder" in capfd.readouterr().err
    assert (folder / "runs" / "train.ncu-rep").exists()
    assert not (folder / "runs.ncu-rep").exists()


@pytest.mark.long
def test_a_program_is_counted_by_nsys_and_weighted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Under nsys each kernel of the demo runs ten times, 1 ms each, and 3 ms after the one before."""
    assert run_main("report", DEMO, "-o", "demo.json") == 0
    kernels = [each for each in json.loads(Path("demo.json").read_bytes())["kernels"] if each["duration_ns"]]
    launched = [each for each in kernels for _ in range(10)]
    ran = [
        Ran(4000 * place, 4000 * place + 1000, None, each["name"], grid=tuple(each["grid"]), block=tuple(each["block"]))
        for place, each in enumerate(launched)
    ]
    nsys = stand_in_nsys(folder / "tools", write_database(folder / "made.sqlite", ran))
    monkeypatch.setattr("ncuroof.cli.profile.find_nsys", lambda _: nsys)
    capfd.readouterr()
    assert run_main("profile", "-o", "run", "--", "/bin/echo", "simulating") == 0
    output = capfd.readouterr()
    assert "the program runs twice: first to count its launches with Nsight Systems, then under ncu" in output.err
    assert (
        f"{len(launched)} launches of {len(kernels)} kernels and shapes, {len(launched)}.0 ms of GPU time" in output.err
    )
    assert output.out.startswith("simulating\nsimulating\n")
    whole_ms = 4 * len(launched) - 3
    screen = " ".join(output.out.split())
    assert f"The run takes {whole_ms} ms. The GPU works for {len(launched)} ms" in screen
    assert f"({len(launched)} launches, {len(launched)} ms" in screen
    assert json.loads((folder / "run.counts.json").read_bytes())["source"] == "nsys"


def test_a_foreign_page_is_noticed_before_the_program_runs(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "train.html").write_text("precious", encoding="utf-8")
    assert run_main("profile", "-q", "--no-per-shape", "train.py") == 1
    output = capfd.readouterr()
    assert "trained" not in output.out
    assert "train.html: exists, and nothing in it says that ncuroof wrote it" in output.err
    assert "choose another name" in output.err


@pytest.mark.long
def test_a_foreign_page_that_appears_later_costs_no_report(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "train.py").write_text("open('train.html', 'w').write('precious')", encoding="utf-8")
    assert run_main("profile", "-q", "--no-per-shape", "train.py") == 1
    assert "hint: ncuroof report train.ncu-rep -o other.html" in capfd.readouterr().err
    assert (folder / "train.ncu-rep").exists()


@pytest.mark.long
def test_the_next_run_gets_a_new_name(folder: Path) -> None:
    assert run_main("profile", "-q", "--no-per-shape", "train.py") == 0
    assert run_main("profile", "-q", "--no-per-shape", "train.py") == 0
    assert sorted(path.name for path in folder.glob("train*.ncu-rep")) == ["train-2.ncu-rep", "train.ncu-rep"]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("train.py",), "train"),
        (("-o", "results", "train.py"), "results/train"),
        (("-o", "results/mine", "train.py"), "results/mine"),
        (("-o", "results/run.1", "train.py"), "results/run.1"),
        (("python", "-m", "mypkg.train"), "mypkg.train"),
        (("--", "./bench_v1.5"), "bench_v1.5"),
        (("--", "tools/run.sh"), "run"),
    ],
)
def test_a_report_is_named_after_the_program(
    folder: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], name: str
) -> None:
    (folder / "results").mkdir()
    assert run_main("profile", "--dry-run", *words) == 0
    assert f"report {name}.ncu-rep\n" in capfd.readouterr().err


@pytest.mark.long
def test_two_runs_at_once_get_two_names(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with claimed(Path("train.ncu-rep")):
        assert run_main("profile", "-q", "--no-per-shape", "train.py") == 0
        assert "report: train-2.ncu-rep" in capfd.readouterr().out
        assert run_main("profile", "-q", "--no-per-shape", "-o", "train", "train.py") == 1
        output = capfd.readouterr()
    assert "trained" not in output.out
    assert "train.ncu-rep.recording: another run is recording train.ncu-rep, or was killed" in output.err
    assert sorted(path.name for path in folder.glob("train*")) == ["train-2.html", "train-2.ncu-rep", "train.py"]


@pytest.mark.long
def test_a_name_that_was_claimed_meanwhile_is_left_to_its_owner(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncuroof.cli.profile.free_report", lambda _: Path("train.ncu-rep"))
    with claimed(Path("train.ncu-rep")):
        assert run_main("profile", "-q", "--no-per-shape", "train.py") == 0
    assert "report: train-2.ncu-rep" in capfd.readouterr().out


@pytest.mark.long
def test_the_programs_status_is_passed_on_after_the_report(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "train.py").write_text("raise SystemExit(7)", encoding="utf-8")
    assert run_main("profile", "--no-per-shape", "train.py") == 7
    output = capfd.readouterr()
    assert "page: train.html" in output.out
    assert "the program exited with status 7" in output.err


def test_a_failure_is_one_line_and_a_hint(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("STAND_IN_REPORT")
    monkeypatch.setenv("STAND_IN_LINES", "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission")
    assert run_main("profile", "--no-per-shape", "train.py") == 1
    lines = capfd.readouterr().err.splitlines()
    assert (
        lines[-2] == "ncuroof: this user may not read the GPU's performance counters (ERR_NVGPUCTRPERM) (no-permission)"
    )
    assert lines[-1].startswith("  hint: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0'")
    assert not list(folder.glob("*.ncu-rep"))


def test_without_ncu_it_says_where_to_get_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NCUROOF_NCU", "/nowhere/ncu")
    assert run_main("profile", "train.py") == 1
    assert "NCUROOF_NCU is set to /nowhere/ncu" in capfd.readouterr().err


def test_a_dry_run_prints_the_command_and_runs_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert (
        run_main(
            "profile",
            "--dry-run",
            "--no-per-shape",
            "--level",
            "quick",
            "--step",
            "3:4",
            "-o",
            "a b",
            "train.py",
            "--x",
        )
        == 0
    )
    words = shlex.split(capfd.readouterr().out)
    runner = str(ROOT / "ncuroof/collect/runner/runner.py")
    assert words == [
        *(str(folder / "tools/ncu"), "--export", "a b"),
        *("--section", "SpeedOfLight", "--section", "WorkloadDistribution", "--section", "LaunchStats", "--section", "Occupancy"),
        *("--replay-mode", "kernel", "--clock-control", "none", "--cache-control", "all", "--target-processes", "all"),
        *("--graph-profiling", "node", "--kernel-name", "regex:^(?!.*(?:nccl|nvshmem))", "--profile-from-start", "off"),
        *(sys.executable, runner, "--step", "3:4", "--of", "optimizer", "--stop-after", "--", "train.py", "--x"),
    ]  # fmt: skip
    assert not list(folder.glob("*.ncu-rep"))


def test_a_dry_run_shows_the_counting_run_too(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("profile", "--dry-run", "--cover", "95%", "train.py") == 0
    first, second = capfd.readouterr().out.splitlines()
    assert "--count FOLDER/trace.json --status FOLDER/journal.jsonl -- train.py" in first
    assert second.startswith(str(folder / "tools/ncu"))


def test_options_for_ncu_pass_through(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ("--section", "SourceCounters", "--metrics", "a.sum,b.sum", "--", "--call-stack", "--", "train.py")
    assert run_main("profile", "--dry-run", "--no-per-shape", *arguments) == 0
    words = shlex.split(capfd.readouterr().out)
    assert words[words.index("--metrics") + 1].endswith(",a.sum,b.sum")
    assert "SourceCounters" in words
    assert words[-3:] == ["--call-stack", sys.executable, "train.py"]


def test_additional_counters_make_the_number_of_passes_a_lower_bound(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plain = ("profile", "--compute-capability", "9.0", "--no-per-shape")
    for more, passes in (
        ((), "10 passes per launch\n"),
        (("--lines",), "10 passes per launch; more for the added sections and counters\n"),
    ):
        assert run_main(*plain, "--level", "quick", *more, "--dry-run", "train.py") == 0
        assert passes in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "is_told"), [((), True), (("--step", "3"), True), (("--cover", "95%"), False), (("--per-shape",), False)]
)
def test_a_counting_run_can_be_skipped_unless_it_was_asked_for(
    folder: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], is_told: bool
) -> None:
    assert run_main("profile", "--dry-run", *words, "train.py") == 0
    told = capfd.readouterr().err
    assert "the program runs twice: first to count its launches, then under ncu" in told
    assert ("--no-per-shape skips the counting run" in told) == is_told


def test_lines_ask_for_source_counters_and_sources(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ("--lines", "--level", "quick", "--", "--call-stack", "--", "train.py")
    assert run_main("profile", "--dry-run", "--no-per-shape", *arguments) == 0
    words = shlex.split(capfd.readouterr().out)
    assert words[words.index("SourceCounters") - 1] == "--section"
    assert words[-5:] == ["--import-source", "yes", "--call-stack", sys.executable, "train.py"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "expected a script or program to profile"),
        (("--step", "0", "train.py"), "--step: expected a number from 1"),
        (("--cover", "200%", "train.py"), "--cover: expected a share of GPU time"),
        (("--step", "1", "true"), "expected a Python script, found 'true'"),
        (("--compute-capability", "90", "train.py"), "expected a compute capability"),
        (
            ("--compute-capability", "6.2", "train.py"),
            "--compute-capability 6.2: Nsight Compute supports 7.0 and later",
        ),
        (("-o", "nowhere/..", "train.py"), "-o: expected a file name, found 'nowhere/..'"),
        (("--remote-plan", "p.sh", "--cover", "95%", "train.py"), "--cover needs launch counts"),
        (("--", "--set=full", "--", "./app"), "--set for ncu: ncuroof sets this option of ncu itself"),
        (("--", "--call-stack", "-kfoo", "--", "./app"), "hint: ask ncuroof instead, before the first `--`: -k REGEX"),
        (("--step-of", "dataloader", "train.py"), "--step-of: only with --step"),
        (("--no-stop-after", "train.py"), "--no-stop-after: only with --step"),
        (("--clock-control", "boost", "train.py"), "--clock-control boost needs ncu 2024.2 or later, found 20"),
        (("-k", "gemm", "-k", "(", "train.py"), "--kernel: expected a regular expression, found '(': missing )"),
        (
            ("--replay-mode", "range", "-k", "gemm", "train.py"),
            "--kernel chooses kernels, but with --replay-mode range ncu",
        ),
        (("--replay-mode", "app-range", "--per-shape", "./app"), "--per-shape chooses kernels"),
        (("--replay-mode", "range", "--cover", "95%", "train.py"), "--cover chooses kernels"),
        (("--replay-mode", "range", "--trace", "t.json", "train.py"), "--trace chooses kernels"),
        (("python", "-m"), "python -m: expected a module, found none"),
        (("--level", "huge", "train.py"), "Invalid value for '--level'"),
    ],
)
def test_a_call_that_makes_no_sense_exits_with_2(
    folder: Path, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert run_main("profile", *arguments) == 2
    assert message in capfd.readouterr().err


def test_the_plan_shows_passes_and_replays(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run_main("profile", "--dry-run", "--compute-capability", "9.0", "--launch-count", "10", "train.py")
    assert "23 to 26 passes per launch, at most 260 replays" in capfd.readouterr().err


MIXED = """#!/bin/sh
case "$1" in
*uuid) printf "GPU-1\\nGPU-2\\nGPU-3\\n" ;;
*) printf "Tesla P100, 6.0, 535.1, [N/A]\\nNVIDIA A100, 8.0, 535.1, Disabled\\nNVIDIA H100, 9.0, 535.1, Disabled\\n" ;;
esac
"""


@pytest.mark.parametrize(
    ("visible", "plan"),
    [("", "for 8.0 and 9.0 · 21 to 26 passes"), ("GPU-3", "counters · 23 to 26"), ("GPU-2", "counters · 21 to 24")],
)
def test_the_plan_is_for_the_gpus_that_the_program_may_use(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], visible: str, plan: str
) -> None:
    (folder / "tools/nvidia-smi").write_text(MIXED, encoding="utf-8")
    (folder / "tools/nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'tools'}:/usr/bin:/bin")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert run_main("profile", "--dry-run", "train.py") == 0
    assert plan in capfd.readouterr().err


def test_a_plan_can_be_written_without_ncu(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ncuroof.ncu.machine.RECORDS_HERE", False)
    assert run_main("profile", "--no-per-shape", "train.py") == 1
    assert "ncuroof: recording needs Linux, this is Windows\n  hint: use WSL, " in capfd.readouterr().err
    assert run_main("profile", "-q", "--remote-plan", "p.sh", "train.py") == 0


def test_a_remote_plan_asks_only_for_counters_of_every_version(folder: Path) -> None:
    assert run_main("profile", "-q", "--remote-plan", "p.sh", "--level", "quick", "train.py") == 0
    script = (folder / "p.sh").read_text(encoding="utf-8")
    assert "--section SpeedOfLight" in script
    assert "WorkloadDistribution" not in script  # of 2024.1 and later


def test_a_remote_plan_runs_where_only_ncu_is(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("profile", "--step", "2", "--of-nothing", "train.py") == 2
    assert (
        run_main(
            "profile",
            "--step",
            "2",
            "--step-of",
            "textwrap:dedent",
            "--remote-plan",
            "plan.sh",
            "-o",
            "away",
            "train.py",
        )
        == 0
    )
    (folder / "train.py").write_text(
        "import textwrap\nfor i in range(9): print(textwrap.dedent(str(i)))\n", encoding="utf-8"
    )
    nvidia_smi = folder / "tools/nvidia-smi"
    nvidia_smi.write_text("#!/bin/sh\necho 9.0\n", encoding="utf-8")
    nvidia_smi.chmod(0o755)
    python = folder / "tools/python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    tools = {"PATH": f"{folder / 'tools'}:/usr/bin:/bin", "STAND_IN_REPORT": str(DEMO)}
    done = subprocess.run(["sh", "-x", "plan.sh"], env=tools, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("0\n==PROF== Connected")  # two calls, then the script ends before it prints again
    assert "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum" in done.stderr  # a counter of 9.0
    assert "ncuroof report away.ncu-rep" in done.stderr
    assert (folder / "away.ncu-rep").exists()


def test_a_remote_plan_for_standard_output_or_a_dry_run_leaves_no_file(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_main("profile", "-q", "--remote-plan", "p.sh", "train.py") == 0
    script = (folder / "p.sh").read_text(encoding="utf-8")
    (folder / "p.sh").unlink()
    there = sorted(folder.rglob("*"))
    for options in (("--remote-plan", "-"), ("--remote-plan", "p.sh", "--dry-run")):
        capfd.readouterr()
        assert run_main("profile", *options, "train.py") == 0
        output = capfd.readouterr()
        assert output.out == script  # and nothing else, so that it can be piped into a shell
        assert "plan: level roofline" in output.err
        assert sorted(folder.rglob("*")) == there
    assert run_main("profile", "-q", "--remote-plan", "./-", "train.py") == 0
    assert (folder / "-").read_text(encoding="utf-8") == script


def test_a_remote_plan_passes_the_programs_words_on(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("profile", "--remote-plan", "p.sh", "--compute-capability", "9.0", "--", "./app", "ncu", "$x") == 0
    assert """ ./app ncu '$x' || status=$?\n""" in (folder / "p.sh").read_text(encoding="utf-8")


def test_a_remote_plan_may_leave_a_report_named_ncu(folder: Path) -> None:
    assert run_main("profile", "-q", "--remote-plan", "p.sh", "-o", "ncu", "train.py") == 0
    assert '\n"$ncu" --export ncu "$@"' in (folder / "p.sh").read_text(encoding="utf-8")


def test_a_remote_plan_replaces_its_own_script_and_names_what_it_leaves(folder: Path) -> None:
    for _ in range(2):
        assert run_main("profile", "-q", "--remote-plan", "p.sh", "-o", "my run", "train.py") == 0
    assert "ncuroof report '\"'\"'my run.ncu-rep'\"'\"'*'" in (folder / "p.sh").read_text(encoding="utf-8")
    assert run_main("profile", "-q", "--remote-plan", "p.sh", "torchrun", "train.py") == 0
    assert "ncuroof report train.rank*.ncu-rep*'" in (folder / "p.sh").read_text(encoding="utf-8")


@pytest.mark.parametrize(("options", "is_once"), [((), True), (("--no-per-shape",), False), (("-k", "gemm"), False)])
def test_a_remote_plan_records_a_whole_run_once_per_shape(
    folder: Path, capfd: pytest.CaptureFixture[str], options: tuple[str, ...], is_once: bool
) -> None:
    assert run_main("profile", *options, "--remote-plan", "p.sh", "train.py") == 0
    script = (folder / "p.sh").read_text(encoding="utf-8")
    assert ("--filter-mode per-launch-config --launch-count 1" in script) is is_once
    assert ("warning: launches are not counted" in capfd.readouterr().err) is is_once


@pytest.mark.parametrize("mode", ["range", "app-range"])
@pytest.mark.parametrize("more", [("--dry-run",), ("--remote-plan", "p.sh")])
def test_ranges_are_recorded_without_sections_about_kernels(
    folder: Path, capfd: pytest.CaptureFixture[str], mode: str, more: tuple[str, ...]
) -> None:
    """ncu 2024.1.1: "Option profile-from-start is not supported during range replay", and so on."""
    assert run_main("profile", "--replay-mode", mode, "--step", "3", *more, "train.py") == 0
    output = capfd.readouterr()
    words = output.out if "--dry-run" in more else (folder / "p.sh").read_text(encoding="utf-8")
    assert f"--replay-mode {mode}" in words
    for option in ("--profile-from-start off ", "--kernel-name ", "--filter-mode ", "--count trace"):
        assert option not in words.replace("`ncu --profile-from-start off`", "")  # as the runner's own text says
    assert "--step 3 --of optimizer" in words
    assert "runs twice" not in output.err


def test_a_remote_plan_does_not_count(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run_main("profile", "--remote-plan", "p.sh", "train.py")
    assert "runs twice" not in capfd.readouterr().err


def test_a_remote_plan_covers_what_a_trace_says(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kernel = {"cat": "kernel", "ts": 0, "args": {"grid": [8, 1, 1], "block": [64, 1, 1]}}
    events = [kernel | {"name": "gemm<4>", "dur": 95}, kernel | {"name": "relu", "dur": 5}]
    (folder / "trace.json").write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    words = ("--cover", "90%", "--trace", "trace.json", "--", "./app")
    assert run_main("profile", "--remote-plan", "p.sh", "--compute-capability", "9.0", *words) == 0
    script = (folder / "p.sh").read_text(encoding="utf-8")
    assert "gemm" in script
    assert "relu" not in script
    assert "--filter-mode per-launch-config" in script
    capfd.readouterr()
    assert run_main("profile", "-q", "--dry-run", "--compute-capability", "9.0", *words) == 0
    assert "gemm" in capfd.readouterr().out


def test_a_remote_plan_does_not_replace_a_foreign_file(folder: Path) -> None:
    assert run_main("profile", "-q", "--no-per-shape", "--remote-plan", "train.py", "train.py") == 1
    assert "trained" in (folder / "train.py").read_text(encoding="utf-8")


@pytest.mark.long
def test_counts_beside_the_report_weight_it(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A recorded launch that stands for many counts for them: here every kernel of the demo for ten."""
    document = json.loads((_json(folder, "plain")).read_bytes())
    kernels = [
        {"name": kernel["name"], "grid": kernel["grid"], "block": kernel["block"], "n_launches": 10, "duration_ns": 10 * kernel["duration_ns"]}  # noqa: E501
        for kernel in document["kernels"]
        if kernel["duration_ns"]
    ]  # fmt: skip
    counts = {"schema": "ncuroof.counts/1", "steps": None, "kernels": kernels}
    (folder / "weighted.counts.json").write_text(json.dumps(counts), encoding="utf-8")
    weighted = json.loads((_json(folder, "weighted")).read_bytes())
    assert weighted["summary"]["duration_ns"] == pytest.approx(10 * document["summary"]["duration_ns"])
    assert weighted["summary"]["recoverable_ns"] == pytest.approx(10 * document["summary"]["recoverable_ns"])
    assert weighted["kernels"][0]["duration_ns"] == document["kernels"][0]["duration_ns"]  # a launch stays what it is
    assert "weighting" not in document["summary"]
    assert {group["n_launches"] for group in weighted["groups"]} == {10}
    assert weighted["kernels"][0]["n_represented"] == 10
    assert weighted["summary"]["weighting"]["n_launches"] == 10 * len(kernels)
    run_main("report", folder / "weighted.ncu-rep", "-v")
    assert "weighted by" in capfd.readouterr().out


@pytest.mark.long
def test_a_trace_weights_a_report_in_place_of_its_counts(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each kernel of the demo ran twice in the trace, twice as long as ncu saw it, and 10 µs after the one before."""
    document = json.loads(_json(folder, "plain").read_bytes())
    timed = [kernel for kernel in document["kernels"] if kernel["duration_ns"]]
    events, ends_us = [], 0.0
    for kernel in [*timed, *timed]:
        took_us = 2 * kernel["duration_ns"] / 1e3
        shape = {"grid": kernel["grid"], "block": kernel["block"]}
        event = {"ph": "X", "cat": "kernel", "name": kernel["name"], "ts": ends_us + 10, "dur": took_us, "args": shape}
        events.append(event)
        ends_us += 10 + took_us
    trace = folder / "trace.json"
    trace.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    beside = {"name": timed[0]["name"], "grid": [1, 1, 1], "block": [1, 1, 1], "n_launches": 7, "duration_ns": 1.0}
    counts = {"schema": "ncuroof.counts/1", "steps": None, "kernels": [beside]}
    (folder / "plain.counts.json").write_text(json.dumps(counts), encoding="utf-8")
    assert run_main("report", folder / "plain.ncu-rep", "--trace", trace, "-o", folder / "traced.json") == 0
    summary = json.loads((folder / "traced.json").read_bytes())["summary"]
    assert summary["duration_ns"] == pytest.approx(4 * document["summary"]["duration_ns"])
    assert summary["weighting"]["covered_frac"] == 1
    (time,) = summary["weighting"]["wall_times"]
    assert time["duration_ns"] == pytest.approx(summary["duration_ns"] + (2 * len(timed) - 1) * 10e3)
    assert [part["name"] for part in time["parts"]] == ["computation", "other_wait"]
    assert run_main("report", folder / "plain.ncu-rep", "--trace", trace, "--trace", trace) == 1
    assert "expected a trace for each report, found 2 for 1" in capfd.readouterr().err


def _json(folder: Path, name: str) -> Path:
    (folder / f"{name}.ncu-rep").write_bytes(DEMO.read_bytes())
    assert run_main("report", folder / f"{name}.ncu-rep", "-o", folder / f"{name}.json") == 0
    return folder / f"{name}.json"


# ---- exit codes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("words", [["gpus"], ["--help"], ["report", "--help"]])
def test_a_closed_pipe_is_not_an_error(words: list[str]) -> None:
    readable, writable = os.pipe()
    os.close(readable)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "ncuroof", *words]
    done = subprocess.run(command, stdout=writable, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(writable)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_exit_raised_elsewhere_is_passed_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(_: object) -> None:
        raise SystemExit(5)

    monkeypatch.setattr("ncuroof.cli.doctor.can_profile", leave)
    assert run_main("doctor") == 5


# ---- doctor ---------------------------------------------------------------------------------------------------------------------


def test_the_doctor_exits_with_1_if_something_is_wrong(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NCUROOF_NCU", "/nowhere/ncu")
    assert run_main("doctor") == 1
    output = capfd.readouterr().out
    assert "failed   ncu " in output
    assert "this machine cannot profile yet" in output


def test_the_doctor_on_a_good_machine(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tools = folder / "tools"
    for name, text in (("nvidia-smi", "NVIDIA H200, 9.0, 570.86.15, Disabled"), ("ps", "bash")):
        (tools / name).write_text(f"#!/bin/sh\necho '{text}'\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    run_main("doctor")
    output = capfd.readouterr().out
    assert "ok       GPU 0 " in output
    assert "NVIDIA H200, compute capability 9.0" in output
