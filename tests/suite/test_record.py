"""The command that records: what it would run, and all of it with tools that only pretend."""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import calls
import jobs
import packing
import pytest
import record as record_program
import zstandard
from cases import HERE, load, parsed_toml
from stored import report_in
from suite_error import SuiteError

import ncuroof
from tests.support.constructed import Accesses, Described
from tests.support.constructed_counters import kernel
from tests.support.report_writer import Session, write_report

SECRET = Session(host_name="secret-host.example.org", command_line="/opt/secret/ncu -o run /home/ada/app")
COPY = Described("copy_values", 500_000, loads=Accesses(2**21, 16, bytes_per_thread=16), dram_read_bytes=2**30)

FAKE_NCU = """\
import os, shutil, sys, time
words = sys.argv[1:]
if "--version" in words:
    print("NVIDIA Nsight Compute\\nVersion 2025.3.1.0 (build 1) (public-release)")
    raise SystemExit
if "copy_8" in words:
    sys.stderr.write("==ERROR== /home/ada/app: no permission to read counters\\n")
    raise SystemExit(9)
if "transpose_naive" in words:
    shutil.copy(os.environ["FAKE_REPORT"], words[words.index("--export") + 1])
if "strided" in words or "transpose_naive" in words:
    time.sleep(60)
if ("gather" in words or "conflicts_2" in words) and "full" in words:
    sys.stderr.write("==ERROR== PM sampling is not allowed\\n")
    raise SystemExit(1)
if "misaligned" not in words:
    shutil.copy(os.environ["FAKE_REPORT"], words[words.index("--export") + 1])
if "conflicts_2" in words:
    sys.stderr.write("error: 4 blocks per SM were wanted, 2 fit\\n")
    raise SystemExit(2)
if "spills" in words:
    sys.stderr.write("==ERROR== Failed to profile a second kernel\\n")
    raise SystemExit(1)
"""


def record(*words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "record.py"), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **(environment or {})}
    )
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, str]:
    """Return options that name programs which pretend to be ncu, nvcc and a Python without PyTorch."""
    (tmp_path / "fake_ncu.py").write_text(FAKE_NCU, encoding="utf-8")
    paths = {}
    for name, body in (
        ("ncu", f'exec "{sys.executable}" "{tmp_path}/fake_ncu.py" "$@"'),
        ("nvcc", "exit 0"),
        ("python", "exit 0"),
    ):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)
        paths[name] = str(path)
    return paths


def written_report(folder: Path) -> Path:
    path = folder / "fake.ncu-rep"
    path.write_bytes(write_report([kernel(COPY)], SECRET))
    return path


def run(tools: dict[str, str], tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    report = written_report(tmp_path)
    chosen = [f"--{name}={path}" for name, path in tools.items()]
    alone = () if "--per-call" in words else ("--per-call", "1")
    return record(*chosen, *alone, "--out", str(tmp_path / "out"), *words, environment={"FAKE_REPORT": str(report)})


# ---- without a GPU --------------------------------------------------------------------------------


def test_list_names_every_case_and_those_in_cuda_first() -> None:
    cases = {case.id: case for case in load().cases if case.group in jobs.GROUPS}
    listed = [line.split()[0] for line in record("--list").stdout.splitlines()]
    assert sorted(listed) == sorted(cases)
    is_cuda = [cases[name].is_cuda for name in listed]
    assert is_cuda == sorted(is_cuda, reverse=True)


def test_the_plan_fits_ten_minutes_of_the_machine_that_it_was_measured_on() -> None:
    for_packing_s, for_building_s = record_program.PACKING_SECONDS, 30  # twice what nvcc and versions took
    for groups in (["first"], ["pairs", "hard"], ["phases"], ["blackwell"]):
        planned = jobs.plan(load(), only="", levels=jobs.LEVELS, per_call=20, groups=groups)
        assert jobs.expected_s(planned) + for_building_s + for_packing_s < 570, groups
        assert (planned[-1].program == "training_step.py") == (groups == ["first"])


def test_groups_are_told_with_their_time() -> None:
    lines = [line.split() for line in record("--groups").stdout.splitlines()]
    assert [line[0] for line in lines] == ["first", "pairs", "hard", "phases", "blackwell"]
    assert all(int(line[1]) and int(line[3]) and int(line[5]) for line in lines)


def test_a_group_is_recorded_alone() -> None:
    done = record("--dry-run", "--group", "blackwell")
    build, call = done.stdout.splitlines()
    assert "code=sm_100a" in build  # another GPU cannot run it, whatever it is
    assert call.endswith(
        "build/blackwell tensor_memory_64 columns_64 rounds=8192 -- tensor_memory_256 columns_256 rounds=4096"
    )
    assert "blackwell" not in record("--dry-run").stdout
    assert "invalid choice" in record("--group", "none").stderr


def test_cases_of_a_program_share_a_call_and_others_do_not() -> None:
    planned = jobs.plan(
        load(), only="^copy_|^strided_8$|^fp32_chain$|^cuda_graph|^two_streams", levels=["full"], per_call=3
    )
    assert [(job.program, [case.id for case in job.cases]) for job in planned] == [
        ("memory.cu", ["copy_4", "copy_8", "copy_16"]),
        ("memory.cu", ["copy_misaligned", "strided_8"]),
        ("arithmetic.cu", ["fp32_chain"]),
        ("launches.cu", ["two_streams"]),
        ("launches.cu", ["cuda_graph"]),  # with an option of its own
    ]


def test_a_dry_run_prints_a_command_per_build_and_recording() -> None:
    lines = [shlex.split(line) for line in record("--dry-run").stdout.splitlines()]
    builds, calls = [line for line in lines if line[0] == "nvcc"], [line for line in lines if line[0] == "ncu"]
    assert len(builds) == len(list(HERE.glob("*.cu"))) - 1  # blackwell.cu
    assert len(builds) + len(calls) == len(lines)
    chosen = [case for case in load().cases if case.group in jobs.GROUPS]
    n_recorded = {(case.id, level): 0 for case in chosen for level in case.levels}
    by_id = {case.id: case for case in load().cases}
    for line in calls:
        level = line[line.index("--export") + 1].split(".")[-2]
        for name, function in itertools.pairwise(line):
            if name in by_id and by_id[name].function == function:
                n_recorded[name, level] += 1
    assert set(n_recorded.values()) == {1}


def test_a_case_is_recorded_between_the_profilers_start_and_stop() -> None:
    (line,) = (
        line for line in record("--dry-run", "--only", "^strided_8$").stdout.splitlines() if line.startswith("ncu")
    )
    assert line == (
        "ncu --force-overwrite --export strided_8.full.ncu-rep --clock-control none --set full "
        "--nvtx --profile-from-start off build/memory strided_8 strided n=33554432 stride=8"
    )


def test_options_reach_the_commands() -> None:
    words = (
        "--dry-run",
        "--only",
        "copy_16",
        "--level",
        "quick",
        "--clock-control",
        "base",
        "--arch",
        "sm_90",
        "--build",
        "there",
    )
    build, call = record(*words).stdout.splitlines()
    assert "-arch=sm_90" in build
    assert "--clock-control base --section SpeedOfLight" in call
    assert call.endswith("there/memory copy_16 copy_16 n=67108864")


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("--only", "no_such_case"), 1, "none matches"),
        (("--only", "("), 1, "a regular expression was wanted"),
        (("--ncu", "no_such_program"), 1, "no_such_program was wanted"),
        (("--unpack", "no_such.tar.gz"), 1, "an archive of recordings was wanted"),
        (("--per-call", "0"), 2, "positive"),
        (("--level", "half"), 2, "invalid choice"),
    ],
)
def test_a_wrong_call_is_told(words: tuple[str, ...], status: int, message: str) -> None:
    done = record(*words)
    assert (done.returncode, message in done.stderr) == (status, True), done.stderr


# ---- with tools that pretend ----------------------------------------------------------------------


@pytest.mark.long
def test_a_recording_is_stripped_packed_and_unpacked(tools: dict[str, str], tmp_path: Path) -> None:
    done = run(tools, tmp_path, "--only", "^copy_(4|16)$|^gemm_bf16_8192$", "--level", "full")
    assert done.returncode == 0, done.stdout
    (archive,) = (tmp_path / "out").glob("*.tar.gz")
    unpacked = record("--unpack", str(archive), "--fixtures", str(tmp_path / "fixtures"))
    assert unpacked.returncode == 0, unpacked.stderr
    folder = tmp_path / "fixtures" / "unknown"
    names = {path.name for path in folder.iterdir()}
    assert names == {"copy_4.full.ncu-repz", "copy_16.full.ncu-repz", "gemm_bf16_8192.full.ncu-repz", "provenance.toml"}
    for path in folder.glob("*.ncu-repz"):
        assert b"secret" not in report_in(path)
        assert ncuroof.read(path).analyse().summary.n_kernels == 1
    (entry, *_) = parsed_toml((folder / "provenance.toml").read_text(encoding="utf-8"))["file"]
    assert entry["cases"] == ["copy_16"]
    assert (entry["ncu"], entry["clock_control"], entry["simulated"]) == ("2025.3.1.0", "none", False)
    assert entry["command"].startswith("ncu --force-overwrite --export copy_16.full.ncu-rep ")
    assert str(tmp_path) not in entry["command"]


def test_a_failing_case_costs_no_other_and_is_told(tools: dict[str, str], tmp_path: Path) -> None:
    done = run(tools, tmp_path, "--only", "^copy_(4|8|misaligned)$")
    assert done.returncode == 1
    assert "failed: copy_8.full.ncu-rep: exit status 9: ==ERROR== app: no permission to read counters" in done.stdout
    assert "failed: copy_misaligned.full.ncu-rep: nothing was recorded: it said nothing" in done.stdout
    assert done.stdout.endswith("1 reports recorded, 2 failures, 0 left\n")


def test_what_was_recorded_in_part_says_so(tools: dict[str, str], tmp_path: Path) -> None:
    run(tools, tmp_path, "--only", "^spills$|^copy_4$")
    copy, spills = parsed_toml((tmp_path / "out/provenance.toml").read_text(encoding="utf-8"))["file"]
    assert "complete" not in copy
    assert spills["complete"] is False
    assert spills["why"] == "spills.full.ncu-rep: exit status 1: ==ERROR== Failed to profile a second kernel"


def test_where_ncu_does_not_work_at_all_little_time_is_lost(tools: dict[str, str], tmp_path: Path) -> None:
    done = run({**tools, "ncu": tools["nvcc"]}, tmp_path, "--only", "^l1|^copy|^fp")  # a program that does nothing
    assert "nothing was recorded" in done.stderr
    assert "the first 4 calls recorded nothing" in done.stderr


@pytest.mark.long
def test_a_case_that_the_budget_ends_is_left_with_the_rest(tools: dict[str, str], tmp_path: Path) -> None:
    done = run(tools, tmp_path, "--only", "^copy_4$|^strided_2$|^gather_random$", "--budget-seconds", "32")
    assert done.returncode == 0
    assert "left: 2 of the calls; go on with --only '^(strided_2|gather_random)$'" in done.stdout
    assert done.stdout.endswith("1 reports recorded, 0 failures, 2 left\n")


@pytest.mark.long
def test_a_call_that_the_budget_ends_in_part_is_kept_and_left(tools: dict[str, str], tmp_path: Path) -> None:
    words = ("--only", "^transpose", "--per-call", "20", "--budget-seconds", "28")
    done = run(tools, tmp_path, *words)
    assert "left: 1 of the calls; go on with --only '^(transpose_naive|transpose_padded)$'" in done.stdout
    assert done.stdout.endswith("1 reports recorded, 1 failures, 1 left\n")
    (entry,) = parsed_toml((tmp_path / "out/provenance.toml").read_text(encoding="utf-8"))["file"]
    assert (entry["cases"], entry["complete"]) == (["transpose_naive", "transpose_padded"], False)


def test_a_call_in_python_does_not_begin_where_pytorch_alone_would_take_the_time(
    tools: dict[str, str], tmp_path: Path
) -> None:
    done = run(tools, tmp_path, "--only", "^copy_4$|^layer_norm$|^training_step$", "--budget-seconds", "36")
    assert "left: 2 of the calls; go on with --only '^(layer_norm|training_step)$'" in done.stdout
    assert done.stdout.endswith("1 reports recorded, 0 failures, 2 left\n")


def test_a_step_does_not_begin_that_its_launches_alone_would_overrun(tools: dict[str, str], tmp_path: Path) -> None:
    done = run(tools, tmp_path, "--only", "^layer_norm$|^training_step$", "--budget-seconds", "94")
    assert "left: 1 of the calls; go on with --only '^(training_step)$'" in done.stdout


@pytest.mark.long
def test_a_call_that_hangs_costs_no_more_than_its_limit(
    tools: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = jobs.Limits(at_most_s=1, to_begin_s=1)
    usual = jobs.Job.limits.fget
    assert usual is not None
    limits = property(lambda job: hangs if job.name == "strided_2" else usual(job))  # a sound call has all of its time
    monkeypatch.setattr(jobs.Job, "limits", limits)
    monkeypatch.setenv("FAKE_REPORT", str(written_report(tmp_path)))
    outcome = calls.Outcome(packing.Archives(tmp_path / "out"))
    pretending = jobs.Tools(tools["ncu"], tools["nvcc"], sys.executable, tmp_path / "build", "none", "sm_90")
    planned = jobs.plan(load(), only="^strided_2$|^copy_4$", levels=["full"], per_call=1)
    calls.Recording(load(), pretending, outcome, time.monotonic() + 60).record(planned)
    assert (outcome.archives.n_reports, outcome.left) == (1, [])
    (failure,) = outcome.failures
    assert failure.startswith("strided_2.full.ncu-rep: out of time, nothing was recorded: ")


def test_a_call_that_is_out_of_time_is_asked_to_write_what_it_has(tmp_path: Path) -> None:
    program = """import time
try:
    time.sleep(60)
except KeyboardInterrupt:
    open("kept", "w").close()
"""
    status, _ = calls.run([sys.executable, "-c", program], folder=tmp_path, seconds=2)
    assert status is None
    assert (tmp_path / "kept").exists()


def test_where_the_full_set_fails_its_fallback_is_recorded(tools: dict[str, str], tmp_path: Path) -> None:
    done = run(tools, tmp_path, "--only", "^gather_random$|^l2_resident$")
    assert done.returncode == 0, done.stdout
    assert "the first call printed:\n==ERROR== PM sampling is not allowed" in done.stdout
    assert "level full is recorded with --set detailed --section SchedulerStats" in done.stdout
    record("--unpack", *map(str, (tmp_path / "out").glob("*.tar.gz")), "--fixtures", str(tmp_path / "fixtures"))
    entries = parsed_toml((tmp_path / "fixtures/unknown/provenance.toml").read_text(encoding="utf-8"))["file"]
    assert ["--set detailed" in entry["command"] for entry in entries] == [True, True]


def test_a_fallback_is_kept_though_a_case_of_the_first_call_fails_by_itself(
    tools: dict[str, str], tmp_path: Path
) -> None:
    done = run(tools, tmp_path, "--only", "^shared_conflicts_2$|^gemv_naive$", "--level", "full")
    assert "level full is recorded with --set detailed" in done.stdout
    assert "failed: shared_conflicts_2.full.ncu-rep: exit status 2: error: 4 blocks per SM were wanted" in done.stdout
    assert done.stdout.endswith("2 reports recorded, 1 failures, 0 left\n")
    entries = parsed_toml((tmp_path / "out/provenance.toml").read_text(encoding="utf-8"))["file"]
    assert ["--set detailed" in entry["command"] for entry in entries] == [True, True]


def test_a_first_call_that_fails_otherwise_keeps_the_full_set(tools: dict[str, str], tmp_path: Path) -> None:
    done = run(tools, tmp_path, "--only", "^copy_8$|^copy_16$", "--level", "full")
    assert "is recorded with" not in done.stdout
    assert done.stdout.endswith("1 reports recorded, 1 failures, 0 left\n")


def test_a_killed_recording_has_written_what_it_had(
    tools: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "_JOBS_PER_WRITE", 2)
    monkeypatch.setenv("FAKE_REPORT", str(written_report(tmp_path)))
    archives = packing.Archives(tmp_path / "out")
    outcome = calls.Outcome(archives)
    pretending = jobs.Tools(tools["ncu"], tools["nvcc"], sys.executable, tmp_path / "build", "none", "sm_90")
    planned = jobs.plan(load(), only="^fp64|^fp32_repeated", levels=["full"], per_call=1)
    calls.Recording(load(), pretending, outcome, time.monotonic() + 60).record(planned)
    assert archives.n_reports == 3
    unpacked = packing.unpack(archives.paths, tmp_path / "fixtures")
    assert [path.name for path in unpacked] == ["fp64_chain.full.ncu-repz", "fp64_unfused.full.ncu-repz"]


def test_a_report_that_ncu_compressed_is_decompressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    assert calls._report_in(folder) is None
    (folder / "copy_4.full.ncu-repz").write_bytes(zstandard.compress(b"NVR\0 and the rest"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SuiteError, match=r"ncu wrote copy_4\.full\.ncu-repz, and zstd cannot be run"):
        calls._report_in(folder)
    program = "import sys, zstandard; sys.stdout.buffer.write(zstandard.decompress(sys.stdin.buffer.read()))"
    (tmp_path / "zstd").write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{program}'\n", encoding="utf-8")
    (tmp_path / "zstd").chmod(0o755)
    assert calls._report_in(folder) == b"NVR\0 and the rest"
