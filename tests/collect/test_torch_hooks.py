"""Nothing is imported or initialised before the script does it; with a stand-in for PyTorch that tells what is called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ncuroof.collect.counting_run import RUNNER

TORCH = {
    "__init__.py": """
import os
print("torch with", os.environ.get("OMP_NUM_THREADS"))
from types import SimpleNamespace
from . import cuda, optim, autograd
backends = SimpleNamespace(cuda=SimpleNamespace(is_built=lambda: True))
""",
    "cuda.py": """
_queue, _is_initialized, current = [], False, None

def _lazy_call(call):
    call() if _is_initialized else _queue.append(call)

def init():
    global _is_initialized
    print("CUDA begins")
    for call in _queue:
        call()
    _is_initialized = True

is_initialized = lambda: _is_initialized
is_available = lambda: True
device_count = lambda: 4
synchronize = lambda: print("synchronize")

class device:
    def __init__(self, number): self.number = number
    def __enter__(self): print("on", self.number)
    def __exit__(self, *_): pass

class cudart:
    cudaProfilerStart = staticmethod(lambda: print("start"))
    cudaProfilerStop = staticmethod(lambda: print("stop"))
""",
    "optim/__init__.py": "from . import optimizer\n",
    "optim/optimizer.py": """
hooks = []
register_optimizer_step_post_hook = hooks.append

class Optimizer:
    def step(self):
        print("step")
        for hook in hooks:
            hook(self, (), {})
""",
    "autograd/__init__.py": "from . import profiler\n",
    "autograd/profiler.py": "_prepare_profiler = _enable_profiler = _disable_profiler = None\n",
}
SCRIPT = """
print("first line")
import os
os.environ["OMP_NUM_THREADS"] = "1"
import torch
optimizer = torch.optim.optimizer.Optimizer()
torch.cuda.init()
for _ in range(3):
    optimizer.step()
"""


def run(folder: Path, script: str, *options: str, **environment: str) -> list[str]:
    """Return what a script prints inside the runner."""
    for name, text in TORCH.items():
        path = folder / "torch" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, encoding="utf-8")
    (folder / "script.py").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-S", str(RUNNER), *options, "--status", "journal.jsonl", "--", "script.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONUNBUFFERED": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_the_first_step_begins_where_the_script_first_uses_cuda(tmp_path: Path) -> None:
    assert run(tmp_path, SCRIPT, "--step", "1:2", "--stop-after") == [
        *("first line", "torch with 1", "CUDA begins", "on -1", "start"),
        *("step", "step", "synchronize", "on -1", "stop"),
    ]


def test_a_rank_begins_on_its_own_gpu(tmp_path: Path) -> None:
    assert run(tmp_path, SCRIPT, "--step", "1", "--stop-after", LOCAL_RANK="2")[3:5] == ["on 2", "start"]
    assert run(tmp_path, SCRIPT, "--step", "1", "--stop-after", LOCAL_RANK="7")[3:5] == ["on -1", "start"]


def test_a_later_step_begins_when_the_one_before_has_ended(tmp_path: Path) -> None:
    assert run(tmp_path, SCRIPT, "--step", "2", "--stop-after")[3:] == [
        *("step", "synchronize", "on -1", "start"),
        *("step", "synchronize", "on -1", "stop"),
    ]


@pytest.mark.parametrize("option", [["--step", "1"], ["--count", "trace.json"], ["--annotate"]])
def test_a_script_without_pytorch_is_left_alone(tmp_path: Path, option: list[str]) -> None:
    script = "import sys; print('torch' in sys.modules, [type(each).__name__ for each in sys.meta_path][0])"
    assert run(tmp_path, script, *option)[0].startswith("False")
    assert not (tmp_path / "trace.json").exists()


@pytest.mark.parametrize("option", [["--step", "1"], ["--count", "trace.json"], ["--annotate"]])
def test_a_different_module_named_torch_is_left_alone(tmp_path: Path, option: list[str]) -> None:
    (tmp_path / "lit").mkdir()
    (tmp_path / "lit" / "torch.py").write_text("print('lit')\n", encoding="utf-8")
    script = "import sys; sys.path.insert(0, 'lit'); import torch; print(torch.__name__)"
    assert run(tmp_path, script, *option) == ["lit", "torch"]


@pytest.mark.parametrize(("step", "starts"), [("1", []), ("1:3", [2]), ("2:3", [2]), ("3", [3])])
def test_without_pytorch_the_window_opens_after_a_step(tmp_path: Path, step: str, starts: list[int]) -> None:
    (tmp_path / "later.py").write_text("def work(): print('works')\n", encoding="utf-8")
    run(tmp_path, "import later\nfor _ in range(4): later.work()\n", "--step", step, "--of", "later:work")
    entries = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text("utf-8").splitlines()]
    assert [entry["before"] for entry in entries if entry["event"] == "start"] == starts


def test_a_process_that_is_forked_before_cuda_is_used_begins_nothing(tmp_path: Path) -> None:
    script = "import os, torch, sys\nif os.fork() == 0:\n    torch.cuda.init()\nelse:\n    os.wait()\n"
    assert run(tmp_path, script, "--step", "1") == ["torch with None", "CUDA begins"]
    events = [json.loads(line)["event"] for line in (tmp_path / "journal.jsonl").read_text("utf-8").splitlines()]
    assert events == ["began", "stop"]


def test_calls_of_a_module_that_the_script_imports_later_are_counted(tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text("print('imported')\ndef work(): print('works')\n", encoding="utf-8")
    script = (
        "print('first line')\nimport importlib.util, later\nlater.work(); later.work()\nprint(later.__loader__.name)\n"
    )
    said = run(tmp_path, script, "--step", "2", "--of", "later:work", "--stop-after")
    assert said == ["first line", "imported", "works", "works"]
