"""What can be known before a program runs is reported before it runs."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncuroof.collect.preflight import preflight
from ncuroof.collect.recording import Recorder
from ncuroof.collect.request import Steps
from ncuroof.errors import NcuroofError, OutputError, ProfileRequestError, ProfilingError
from ncuroof.ncu.settings import load_settings
from tests.collect.test_doctor import machine
from tests.collect.test_recording import recorder
from tests.support.ncu import find_ncu

OLD = {"smi": "Tesla P100-PCIE-16GB, 6.0, 535.54, [N/A]\n"}
RESTRICTED = {"params": "RmProfilingAdminOnly: 1\n"}


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text("raise SystemExit('it ran')", encoding="utf-8")
    return str(path)


def with_launcher(one: Recorder) -> Recorder:
    return replace(one, program=replace(one.program, launcher=("env",), rank_variable="RANK"))


def test_a_script_on_a_good_machine_may_run(tmp_path: Path, script: str) -> None:
    preflight(recorder(tmp_path, (script,)), machine())
    assert not list(tmp_path.glob("*.ncu-rep"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere.py",), r"nowhere\.py: no such script \(program-not-found\)"),
        (("./nowhere",), r"\./nowhere: no such program \(program-not-found\)"),
        (("/nowhere/python", "train.py"), "/nowhere/python: no such program"),
        (("no-such-launcher", "-n", "2", "./app"), r"no-such-launcher: not found on PATH \(program-not-found\)"),
    ],
)
def test_a_missing_program_is_refused(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(NcuroofError, match=message) as error:
        preflight(recorder(tmp_path, words), machine())
    assert error.value.exit_code == 1  # as for a report that is not there; 2 is for wrong options


def test_a_missing_command_is_named_before_the_lack_of_a_script(tmp_path: Path) -> None:
    # trl is a Python script itself; where it is missing, that is the news, not "expected a Python script".
    with pytest.raises(NcuroofError, match=r"^no-such-trl: not found on PATH \(program-not-found\)"):
        preflight(recorder(tmp_path, ("no-such-trl", "sft"), steps=Steps(10, 10)), machine())


def test_a_wrapper_may_know_another_folder_with_the_script(tmp_path: Path) -> None:
    preflight(recorder(tmp_path, ("env", "-C", "elsewhere", "python", "nowhere.py")), machine())


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        (
            "my tool.sh",
            r"my tool\.sh: is not executable \(program-not-found\)",
            "chmod +x 'my tool.sh', or put its interpreter",
        ),
        ("./my tool.sh", r"\./my tool\.sh: is not executable", "chmod +x './my tool.sh', or put its interpreter"),
        ("build", r"build: expected a program, found a directory \(program-not-found\)", "name a program in it"),
    ],
)
def test_a_file_that_is_not_a_program_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str, hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my tool.sh").write_text("echo hello\n", encoding="utf-8")
    Path("build").mkdir()
    with pytest.raises(ProfilingError, match=message) as error:
        preflight(recorder(tmp_path, (name,)), machine())
    assert str(error.value.hint).startswith(hint)
    Path("my tool.sh").chmod(0o755)
    preflight(recorder(tmp_path, ("my tool.sh",)), machine())  # ncu finds it in the working directory


FUNCTIONS = """
import torch
class Trainer:
    def fit(self): pass
    async def step(self): pass
def main():
    if torch:
        def train_step(): pass
"""


@pytest.mark.parametrize(
    ("of", "message", "hint"),
    [
        ("train_step", "has no such function", "did you mean main.train_step?"),
        ("Trainer.train_step", "has no such function", "did you mean main.train_step?"),
        ("Trainer", "has no such function", "it defines Trainer.fit, Trainer.step, main, main.train_step;"),
    ],
)
def test_a_function_that_the_script_lacks_is_refused_before_it_runs(
    tmp_path: Path, script: str, of: str, message: str, hint: str
) -> None:
    Path(script).write_text(FUNCTIONS, encoding="utf-8")
    for words in ((script,), ("torchrun", script)):
        one = recorder(tmp_path, words, steps=Steps(2, 2, of=of))
        with pytest.raises(ProfileRequestError, match=f"--step-of {of}: .*train.py {message}") as error:
            preflight(replace(one, program=replace(one.program, launcher=())), machine())
        assert str(error.value.hint).startswith(hint)


@pytest.mark.parametrize("of", ["optimizer", "dataloader", "main.train_step", "Trainer.step", "pkg:nothing"])
def test_a_function_that_may_be_a_step_passes_the_check(tmp_path: Path, script: str, of: str) -> None:
    Path(script).write_text(FUNCTIONS, encoding="utf-8")
    preflight(recorder(tmp_path, (script,), steps=Steps(2, 2, of=of)), machine())
    Path(script).write_text("def f(:", encoding="utf-8")  # Python will tell
    preflight(recorder(tmp_path, (script,), steps=Steps(2, 2, of="f")), machine())


def test_a_function_of_a_module_run_with_dash_m_is_refused_before_it_runs(tmp_path: Path) -> None:
    words = (sys.executable, "-m", "pkg.train")
    with pytest.raises(ProfileRequestError, match="cannot be counted in a module run with -m"):
        preflight(recorder(tmp_path, words, steps=Steps(2, 2, of="step")), machine())


def test_a_machine_that_cannot_profile(tmp_path: Path, script: str) -> None:
    one = recorder(tmp_path, (script,))
    with pytest.raises(ProfilingError, match=r"Nsight Compute supports 7\.0"):
        preflight(one, machine(**OLD))
    preflight(with_launcher(one), machine(**OLD))  # ranks may run elsewhere


def test_an_ncu_may_have_a_privilege_that_this_process_lacks(tmp_path: Path, script: str) -> None:
    said: list[str] = []
    preflight(recorder(tmp_path, (script,), said=said), machine(**RESTRICTED))
    assert said == ["warning: counter permission: restricted to administrators (ERR_NVGPUCTRPERM)"]


def test_the_driver_is_ncus_to_find(tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = recorder(tmp_path, (script,))
    preflight(one, machine(smi=None))
    refuse(one, "==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?).")
    with pytest.raises(ProfilingError, match="no-driver"):
        preflight(one, machine())
    preflight(with_launcher(one), machine())


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("==ERROR== unrecognised option '--nosuch'.", r"\(unknown-option\): unrecognised option '--nosuch'"),
        ("==ERROR== The moon is in the way.", "ncu does not start: The moon is in the way"),
        ("==ERROR== The application returned an error code (1).", None),
        ("==ERROR== The target process terminated before first instrumented API call.", None),
        ("==ERROR== No kernels were able to be profiled.", None),
        ("==ERROR== No kernels were able to be profiled.\n==ERROR== Invalid regex", r"\(unknown-option\)"),
    ],
)
def test_what_ncu_refuses(tmp_path: Path, script: str, said: str, message: str | None) -> None:
    one = recorder(tmp_path, (script,))
    refuse(one, said)
    preflight(replace(one, request=replace(one.request, per_shape=False)), machine())  # ncu says it itself, at once
    if message is None:
        preflight(one, machine())
    else:
        with pytest.raises(ProfilingError, match=message):
            preflight(one, machine())


def test_asking_ncu_touches_no_report(tmp_path: Path, script: str) -> None:
    one = recorder(tmp_path, (script,), force=True)
    one.ncu.write_text('#!/bin/sh\necho "$@" >"$(dirname "$0")/asked"\n', encoding="utf-8")
    preflight(one, machine())
    asked = (tmp_path / "asked").read_text(encoding="utf-8")
    assert str(one.request.report.with_suffix("")) not in asked
    assert "--filter-mode per-launch-config" in asked


def refuse(one: Recorder, said: str) -> None:
    one.ncu.write_text(f'#!/bin/sh\necho "{said}"\nexit 1\n', encoding="utf-8")


def test_an_ncu_that_is_too_old_for_a_long_run_is_refused(tmp_path: Path, script: str) -> None:
    one = replace(recorder(tmp_path, (script,)), ncu_version=(2022, 3))
    with pytest.raises(ProfileRequestError, match=r"--filter-mode needs ncu 2022\.4 or later, found 2022\.3") as error:
        preflight(one, machine())
    assert "--no-per-shape" in str(error.value.hint)


def test_a_folder_that_cannot_hold_a_report_is_refused(tmp_path: Path, script: str) -> None:
    (tmp_path / "taken.ncu-rep").mkdir()
    for report, fault in ((tmp_path / "taken.ncu-rep", "is a folder"), (Path("/proc/x.ncu-rep"), "cannot be written")):
        with pytest.raises(OutputError, match=fault):
            recorder(tmp_path, (script,), report=report).record()


@pytest.mark.oracle
@pytest.mark.parametrize(("more", "message"), [({"kernels": ("(",)}, "Invalid regex"), ({}, "no-driver")])
def test_the_real_ncu_is_asked(tmp_path: Path, script: str, more: dict[str, Any], message: str) -> None:
    ncu = find_ncu()
    if ncu is None:
        pytest.skip("NVIDIA's ncu is not installed")
    if Path("/dev/nvidia0").exists() and message == "no-driver":
        pytest.skip("this machine has a GPU")
    from ncuroof.collect.plan import plan_collection  # noqa: PLC0415

    plan = plan_collection("quick", load_settings(), capabilities=[90])
    one = replace(recorder(tmp_path, (script,), cover_frac=0.9, **more), ncu=Path(ncu), plan=plan)
    with pytest.raises(ProfilingError, match=message):
        preflight(one, machine())
