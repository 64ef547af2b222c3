"""The command that records: what it would run, and all of it with tools that only pretend."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import packing
import pytest
from cases import HERE, load, parsed_toml
from machine import folder_of
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
if "strided" in words:
    time.sleep(60)
if "misaligned" not in words:
    shutil.copy(os.environ["FAKE_REPORT"], words[words.index("--export") + 1])
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
    """Return options that name programs which pretend to be ncu and nvcc."""
    (tmp_path / "fake_ncu.py").write_text(FAKE_NCU, encoding="utf-8")
    paths = {}
    for name, body in (("ncu", f'exec "{sys.executable}" "{tmp_path}/fake_ncu.py" "$@"'), ("nvcc", "exit 0")):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)
        paths[name] = str(path)
    return paths


def run(tools: dict[str, str], tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    report = tmp_path / "fake.ncu-rep"
    report.write_bytes(write_report([kernel(COPY)], SECRET))
    chosen = [f"--{name}={path}" for name, path in tools.items()]
    return record(*chosen, "--out", str(tmp_path / "out"), *words, environment={"FAKE_REPORT": str(report)})


def _ids() -> list[str]:
    """Return the cases' ids in the order of recording: CUDA first, the same level together."""
    cases = load().cases
    first = [case for case in cases if case.is_cuda] + [case for case in cases if not case.is_cuda]
    return [case.id for case in first]


# ---- without a GPU --------------------------------------------------------------------------------


def test_list_names_every_case() -> None:
    assert [line.split()[0] for line in record("--list").stdout.splitlines()] == _ids()


def test_a_dry_run_prints_a_command_per_build_and_recording() -> None:
    lines = [shlex.split(line) for line in record("--dry-run").stdout.splitlines()]
    builds, calls = [line for line in lines if line[0] == "nvcc"], [line for line in lines if line[0] == "ncu"]
    assert len(builds) == len(list(HERE.glob("*.cu")))
    assert len(builds) + len(calls) == len(lines)
    n_recorded = {(case.id, level): 0 for case in load().cases for level in case.levels}
    for line in calls:
        name, level = line[line.index("--export") + 1].removesuffix(".ncu-rep").rsplit(".", 1)
        for case in load().cases:
            if case.id in line or (case.is_cuda and case.id == name):
                n_recorded[case.id, level] += 1
    assert set(n_recorded.values()) == {1}


def test_a_cuda_case_is_recorded_after_its_first_launches() -> None:
    (line,) = (
        line for line in record("--dry-run", "--only", "^strided_8$").stdout.splitlines() if line.startswith("ncu")
    )
    assert line == (
        "ncu --force-overwrite --export strided_8.full.ncu-rep --clock-control none --set full "
        "--kernel-name regex:read_strided --launch-skip 2 --launch-count 1 build/memory strided n=33554432 stride=8"
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
    assert call.endswith("there/memory copy_16 n=67108864")


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("--only", "no_such_case"), 1, "none matches"),
        (("--only", "("), 1, "a regular expression was wanted"),
        (("--ncu", "no_such_program"), 1, "no_such_program was wanted"),
        (("--unpack", "no_such.tar.gz"), 1, "an archive of recordings was wanted"),
        (("--per-call", "0"), 2, "positive"),
        (("--level", "half"), 2, "invalid choice"),
    ],
)
def test_a_wrong_call_is_told(words: tuple[str, ...], status: int, told: str) -> None:
    done = record(*words)
    assert (done.returncode, told in done.stderr) == (status, True), done.stderr


# ---- with tools that pretend ----------------------------------------------------------------------


def test_a_recording_is_stripped_packed_and_unpacked(tools: dict[str, str], tmp_path: Path) -> None:
    done = run(tools, tmp_path, "--only", "^copy_(4|16)$|^gemm_bf16_8192$", "--level", "full")
    assert done.returncode == 0, done.stdout
    (archive,) = (tmp_path / "out").glob("*.tar.gz")
    unpacked = record("--unpack", str(archive), "--fixtures", str(tmp_path / "fixtures"))
    assert unpacked.returncode == 0, unpacked.stderr
    folder = tmp_path / "fixtures" / "unknown"
    names = {path.name for path in folder.iterdir()}
    assert names == {"copy_4.full.ncu-rep", "copy_16.full.ncu-rep", "gemm_bf16_8192.full.ncu-rep", "provenance.toml"}
    for path in folder.glob("*.ncu-rep"):
        assert b"secret" not in path.read_bytes()
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


def test_where_ncu_does_not_work_at_all_little_time_is_lost(tools: dict[str, str], tmp_path: Path) -> None:
    done = run({**tools, "ncu": tools["nvcc"]}, tmp_path, "--only", "^l1|^copy|^fp")  # a program that does nothing
    assert "nothing was recorded" in done.stderr
    assert "the first 4 calls recorded nothing" in done.stderr


def test_a_case_that_hangs_ends_with_the_budget_and_the_rest_is_left(tools: dict[str, str], tmp_path: Path) -> None:
    done = run(tools, tmp_path, "--only", "^copy_4$|^strided_2$|^gather_random$", "--budget-seconds", "32")
    assert done.returncode == 1
    assert "failed: strided_2.full.ncu-rep: no time was left for it" in done.stdout
    assert "left: 1 of the calls; go on with --only '^(gather_random)$'" in done.stdout
    assert done.stdout.endswith("1 reports recorded, 1 failures, 1 left\n")


# ---- packing --------------------------------------------------------------------------------------


def reports(*sizes: int) -> list[tuple[packing.Entry, bytes]]:
    return [
        (packing.entry(f"r{i}.ncu-rep", data, {"gpu": "NVIDIA H200", "cases": ["a"], "level": "full"}), data)
        for i, data in enumerate(os.urandom(size) for size in sizes)
    ]


def test_no_archive_exceeds_the_limit(tmp_path: Path) -> None:
    limit = 60_000
    archives, too_large = packing.pack(reports(30_000, 30_000, 20_000, 70_000, 5_000), tmp_path, limit_bytes=limit)
    assert too_large == ["r3.ncu-rep"]
    assert all(path.stat().st_size <= limit for path in archives)
    unpacked = packing.unpack(archives, tmp_path / "fixtures")
    assert sorted(path.name for path in unpacked) == ["r0.ncu-rep", "r1.ncu-rep", "r2.ncu-rep", "r4.ncu-rep"]
    assert {path.parent.name for path in unpacked} == {"h200"}


def test_a_second_recording_is_added_to_the_provenance(tmp_path: Path) -> None:
    fixtures = tmp_path / "fixtures"
    for part in (reports(10, 20), [(packing.entry("other.ncu-rep", b"x", {"gpu": "NVIDIA H200"}), b"x")]):
        packing.unpack(packing.pack(part, tmp_path / "out")[0], fixtures)
    entries = parsed_toml((fixtures / "h200" / "provenance.toml").read_text(encoding="utf-8"))["file"]
    assert [entry["name"] for entry in entries] == ["other.ncu-rep", "r0.ncu-rep", "r1.ncu-rep"]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"../evil.ncu-rep": b"x", "provenance.toml": b""}, "evil"),
        ({"r.ncu-rep": b"x"}, "no provenance.toml"),
        ({"provenance.toml": b"file = 1 2"}, "a provenance was wanted"),
        ({"provenance.toml": b"[[file]]\nname = 'r.ncu-rep'\n"}, "one is missing"),
        ({"r.ncu-rep": b"y", "provenance.toml": packing.provenance([reports(3)[0][0]]).encode()}, "SHA-256"),
    ],
)
def test_a_strange_archive_is_refused(files: dict[str, bytes], told: str, tmp_path: Path) -> None:
    path = tmp_path / "strange.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    with pytest.raises(SuiteError, match=told):
        packing.unpack([path], tmp_path / "fixtures")
    assert not list(tmp_path.rglob("*.ncu-rep"))


def test_a_gpu_has_a_folder() -> None:
    names = ("NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090", "")
    assert [folder_of(name) for name in names] == ["h200", "h100-80gb-hbm3", "rtx-4090", "unknown"]
