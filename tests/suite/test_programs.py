"""The programs compile, refuse a wrong call in plain words, and spill where they are meant to."""

from __future__ import annotations

import py_compile
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import recorded
from cases import HERE, load
from jobs import Tools, build_command

from ncuroof.ingest.kernel_code import is_debug_build

CUDA = sorted(HERE.glob("*.cu"))
SCRIPTS = ("products.py", "attention.py", "elementwise.py", "training_step.py")

pytestmark = pytest.mark.filterwarnings("default::ResourceWarning")


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc on this machine")
    return tmp_path_factory.mktemp("suite")


@pytest.mark.parametrize("source", CUDA, ids=lambda path: path.stem)
def test_a_cuda_program_compiles_and_refuses_a_wrong_call(source: Path, build: Path) -> None:
    tools = Tools("ncu", "nvcc", sys.executable, build, "none", "sm_90")
    command = [*build_command(source.name, tools), "-Xptxas", "-v", "-Werror", "all-warnings"]
    compiled = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stderr
    if source.name != "unoptimised.cu":
        only_planted_spills_and_registers(source, compiled.stderr)
    words = ["id", "no_such_case", "--", "other", "nor_this"]
    called = subprocess.run([build / source.stem, *words], capture_output=True, text=True, check=False)
    assert called.returncode == 2
    assert called.stderr.startswith("error: one of ")
    assert "no_such_case was found" in called.stderr
    assert "nor_this was found" in called.stderr  # what is wrong with a case costs no other


def only_planted_spills_and_registers(source: Path, told: str) -> None:
    spilling = re.findall(r"Function properties for (\w+)\n\s+\d+ bytes stack frame, [1-9]\d* bytes spill", told)
    assert [name for name in spilling if "spill_registers" not in name] == []
    assert bool(spilling) == (source.name == "contention.cu")
    # What 2048 threads spill fits L1 (256 KiB, less what shared memory takes) with room: the pipe to it is the limit, not L2.
    stacks = [int(n) for n in re.findall(r"spill_registers\w+\n\s+(\d+) bytes stack frame", told)]
    assert all(2048 * n <= 192 * 1024 for n in stacks)
    # No kernel but march_registers holds so many registers that occupancy suffers by accident: per_sm counts on it.
    used = [int(n) for n in re.findall(r"Used (\d+) registers", told)]
    assert sum(n > 48 for n in used) == (source.name == "waiting.cu")


def test_the_debug_build_fits_an_sm_as_often_as_its_case_counts_on(build: Path) -> None:
    tools = Tools("ncu", "nvcc", sys.executable, build, "none", "sm_90")
    command = [*build_command("unoptimised.cu", tools)[:-3], "-Xptxas", "-v", "-cubin", "-o", "/dev/null"]
    told = subprocess.run([*command, "unoptimised.cu"], cwd=HERE, capture_output=True, text=True, check=True).stderr
    registers = re.findall(r"run_chainsI9Fp32Fused.*?Used (\d+) registers", told, re.DOTALL)
    # 34 registers are given as 40; 65536 of an SM suffice for six blocks of 256 threads.
    allocated = [-(-int(n) // 8) * 8 for n in registers]
    (case,) = (case for case in load().cases if case.id == "fp32_chain_unoptimised")
    assert [65536 // (256 * n) for n in allocated] == [case.sizes["per_sm"]]


@pytest.mark.parametrize("program", ["arithmetic.cu", "unoptimised.cu"])
def test_the_planted_debug_build_is_one(program: str, build: Path) -> None:
    tools = Tools("ncu", "nvcc", sys.executable, build, "none", "sm_90")
    code = build / f"{program}.cubin"
    subprocess.run([*build_command(program, tools)[:-3], "-cubin", "-o", code, program], cwd=HERE, check=True)
    assert is_debug_build(code.read_bytes()) == (program == "unoptimised.cu")


@pytest.mark.parametrize("name", [*SCRIPTS, "recorded.py", "triton_kernels.py"])
def test_a_python_program_compiles(name: str, tmp_path: Path) -> None:
    py_compile.compile(str(HERE / name), cfile=str(tmp_path / "compiled"), doraise=True)


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize(
    ("words", "told"),
    [([], "nothing was found"), (["id", "no_such"], "no_such was found"), (["id", "FUNCTION", "n=x"], "n was found")],
)
def test_a_python_program_refuses_a_wrong_call(name: str, words: list[str], told: str) -> None:
    function = re.findall(r"^def ([a-z]\w+)\(.*\) -> Step:", (HERE / name).read_text(encoding="utf-8"), re.MULTILINE)[
        -1
    ]
    words = [function if word == "FUNCTION" else word for word in words]
    done = subprocess.run([sys.executable, HERE / name, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_cases_are_separated_by_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    def failing(n: int) -> recorded.Step:
        raise RuntimeError(f"no memory for {n}")

    assert recorded.main({"failing": failing}, ["a", "failing", "n=1", "--", "b", "failing", "n=2"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: case a: RuntimeError: no memory for 1",
        "error: case b: RuntimeError: no memory for 2",
    ]


def test_the_backward_pass_is_launched_by_the_thread_that_opened_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    nothing = SimpleNamespace(start=int, stop=int, range_push=str, range_pop=int)
    cuda = SimpleNamespace(synchronize=int, empty_cache=int, profiler=nothing, nvtx=nothing)
    monkeypatch.setattr(torch, "cuda", cuda)
    seen: list[bool] = []
    step = lambda: seen.append(torch._C._is_multithreading_enabled())  # noqa: E731
    assert recorded.main({"step": lambda: step}, ["backward", "step"]) == 0
    assert seen == [False] * 4  # three times unseen, once recorded
    assert torch._C._is_multithreading_enabled()
