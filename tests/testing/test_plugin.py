"""The pytest plugin: it replays recorded reports, records with ncu, skips where it can do neither, and costs nothing unused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ncuroof.resources import read_toml
from tests.collect.making import stand_in
from tests.support.lined import lined_report

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "fixtures/h100-80gb-hbm3/strided_32.full.ncu-repz"

PASSES = """
    from ncuroof.testing import assert_kernel

    def untouchable():
        raise RuntimeError("a replayed function is not called")

    def test_strided(ncuroof_profile):
        report = ncuroof_profile(untouchable)
        assert not report.is_recorded_now
        kernel = assert_kernel(report, "read_str")
        assert kernel.roof_frac <= 0.9
        assert kernel.verdict == "memory"
        assert "uncoalesced_global_load" in kernel.findings
        report.check("kernel(read_strided).roof_frac>=0.01", "run.n_failed==0")
"""


@pytest.fixture
def alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder for tests, in which pytest loads this plugin alone, on a machine without ncu."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name in ("NCUROOF_NCU", "CUDA_HOME", "CUDA_PATH", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    return pytester


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "ncuroof.testing.plugin", "-p", "no:cacheprovider", "-rs", *options)


def keep(pytester: pytest.Pytester, name: str) -> None:
    folder = pytester.path / "ncuroof_reports"
    folder.mkdir(exist_ok=True)
    shutil.copy(RECORDED, folder / f"{name}.ncu-repz")


@pytest.mark.long
def test_a_report_beside_the_test_is_replayed(alone: pytest.Pytester) -> None:
    alone.makepyfile(test_norms=PASSES)
    keep(alone, "test_norms.test_strided")
    run(alone, "-m", "ncuroof", "--strict-markers").assert_outcomes(passed=1)


@pytest.mark.long
def test_without_a_gpu_and_a_report_the_test_is_skipped_with_what_to_do(alone: pytest.Pytester) -> None:
    alone.makepyfile(test_norms=PASSES)
    result = run(alone, "--ncuroof=replay")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(
        ["*no recorded report ncuroof_reports/test_norms.test_strided.ncu-rep: pytest --ncuroof=record*"]
    )


@pytest.mark.long
def test_what_fails_says_what_the_kernel_did(alone: pytest.Pytester) -> None:
    alone.makepyfile(
        test_fast="""
        import pytest
        from ncuroof.testing import assert_kernel

        @pytest.mark.ncuroof(report="kept/strided.ncu-repz")
        @pytest.mark.parametrize("pattern", ["read_strided", "rmsnorm"])
        def test_fast(ncuroof_profile, pattern):
            assert assert_kernel(ncuroof_profile(print), pattern).roof_frac >= 0.99

        @pytest.mark.ncuroof(report="kept/strided")
        def test_gates(ncuroof_profile):
            ncuroof_profile(print).check("findings.high==0")
        """
    )
    (alone.path / "kept").mkdir()
    shutil.copy(RECORDED, alone.path / "kept" / "strided.ncu-repz")
    result = run(alone)
    result.assert_outcomes(failed=3)
    said = result.stdout.str()
    assert "<read_strided: " in said
    assert "% of its roofline speed; Uncoalesced global loads: each sector is only partly used at memory.cu:29" in said
    assert "no kernel matches 'rmsnorm'; the report has read_strided" in said
    assert "gate failed: findings.high==0: 2 findings of high severity" in said


@pytest.mark.long
def test_a_report_is_recorded_by_running_the_test_under_ncu(alone: pytest.Pytester, monkeypatch) -> None:
    (alone.path / "tools").mkdir()
    monkeypatch.setenv("NCUROOF_NCU", str(stand_in(alone.path / "tools")))
    (alone.path / "tools" / "recorded.ncu-rep").write_bytes(lined_report())
    monkeypatch.setenv("STAND_IN_REPORT", str(alone.path / "tools" / "recorded.ncu-rep"))
    alone.makepyfile(
        test_norms="""
        from pathlib import Path
        from ncuroof.testing import assert_kernel

        def work(path, times):
            with open(path, "a") as file:
                file.write("x" * times)

        def test_twice(ncuroof_profile):
            first = ncuroof_profile(work, "first", times=1)
            second = ncuroof_profile(work, "second", times=2)
            assert first.is_recorded_now and second.is_recorded_now
            assert assert_kernel(second, "scale").n_launches == 1
            assert Path("first").read_text() == "xx"  # a warm-up, and the call that was recorded
            assert Path("second").read_text() == "xxxx"
        """
    )
    run(alone, "--ncuroof=record").assert_outcomes(passed=1)
    kept = sorted(path.name for path in (alone.path / "ncuroof_reports").iterdir())
    assert kept == ["test_norms.test_twice.2.ncu-rep", "test_norms.test_twice.ncu-rep"]


@pytest.mark.long
def test_a_function_that_fails_under_ncu_fails_the_test_with_what_it_said(alone: pytest.Pytester, monkeypatch) -> None:
    (alone.path / "tools").mkdir()
    monkeypatch.setenv("NCUROOF_NCU", str(stand_in(alone.path / "tools")))
    alone.makepyfile(
        test_norms="""
        def broken():
            raise ValueError("no such shape")

        def test_broken(ncuroof_profile):
            ncuroof_profile(broken)
        """
    )
    result = run(alone, "--ncuroof=record")
    result.assert_outcomes(failed=1)
    assert "ncuroof could not record test_norms.py::test_broken" in result.stdout.str()
    assert "no such shape" in result.stdout.str()


@pytest.mark.long
def test_a_misspelt_option_of_the_marker_is_an_error(alone: pytest.Pytester) -> None:
    alone.makepyfile(
        """
        import pytest

        @pytest.mark.ncuroof(reprot="x")
        def test_it(ncuroof_profile):
            pass
        """
    )
    result = run(alone)
    assert "the marker ncuroof takes kernel=, level=, report=, warmups=, found reprot" in result.stdout.str()


def test_the_plugin_loads_nothing_heavy() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import ncuroof.testing.plugin, json\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    loaded = set(json.loads(done.stdout))
    assert {name.partition(".")[0] for name in loaded} & {"polars", "click", "rich", "jinja2", "zstandard"} == set()
    assert {name for name in loaded if name.startswith("ncuroof.")} == {
        "ncuroof._version",
        "ncuroof.errors",
        "ncuroof.profiling",
        "ncuroof.temporary_files",
        "ncuroof.testing",
        "ncuroof.testing.kernels",
        "ncuroof.testing.plugin",
    }


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    entry_points = read_toml(ROOT / "pyproject.toml")["project"]["entry-points"]
    assert entry_points["pytest11"] == {"ncuroof": "ncuroof.testing.plugin"}
