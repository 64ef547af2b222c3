"""The runner inside the user's PyTorch process: what is profiled, what is passed on, what is left alone. On the CPU."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ncuroof.collect.counting_run import RUNNER
from ncuroof.collect.journal import read_status
from ncuroof.collect.runner.tools import Annotations, BatchClock, Counting, ScriptProfilers
from ncuroof.ncu.settings import load_settings, option_name
from tests.collect.making import ROOT

pytestmark = [pytest.mark.torch, pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")]

EXAMPLE = str(ROOT / "examples/train_transformer.py")
SMALL = [
    "--steps",
    "5",
    "--width",
    "16",
    "--layers",
    "1",
    "--heads",
    "2",
    "--batch",
    "2",
    "--tokens",
    "4",
    "--words",
    "16",
]

SCRIPT = """
import sys, threading, multiprocessing
import torch
from torch import nn
print(__name__, __file__, sys.argv, sys.path[0])

class Trainer:
    def train_step(self, n):
        return n

def helper():
    return 1

model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
main_, other = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
trainer = Trainer()
for step in range(4):
    try:
        model(torch.ones(2, 4)).sum().backward()
        main_.step()
        other.step()
        trainer.train_step(step)
        helper()
        print("did", step)
    except Exception:
        print("caught")
    finally:
        print("cleaned", step)
print("the end")
"""
FAILING = "import torch\n\ndef inner():\n    raise ValueError('wrong value')\n\ninner()\n"
LEAVING = "import torch, sys\nprint('leaving')\nsys.exit(7)\n"
PROFILING = """
import sys
import torch
from torch.profiler import profile, schedule

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters())
exported = []
with profile(schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=lambda p: exported.append(p.export_chrome_trace("its.json"))) as p:
    for _ in range(3):
        with torch.autograd.profiler.profile() as other:
            model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        p.step()
print(len(exported), len(other.key_averages()), len(p.events()))
"""  # noqa: E501
LOADERS = """
from torch.utils.data import DataLoader

checked, trained = DataLoader(range(9)), DataLoader(range(3))
for _ in zip(range(2), checked): pass
for batch in trained:
    for _ in zip(range(2), checked): pass
"""
ELSEWHERE = """
import inspect, os

def f():
    pass

os.chdir("/")
print(__file__, inspect.getsource(f), "def f" in __loader__.get_source("__main__"))
"""
LOADING = """
import time
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, index):
        time.sleep(0.04)
        return index

for batch in DataLoader(Slow()):
    time.sleep(0.01)
"""
COMPILED = """
import sys, torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters())
fetches = "optimizer" in sys.argv

@torch.compile(backend="eager")
def step_it(): optimizer.step()

@torch.compile(backend="eager", fullgraph=True)
def train_step(x): return model(x).relu().sum()

for _ in range(4):
    train_step(torch.ones(2, 4)).backward()
    step_it() if fetches else optimizer.step()
print("the end")
"""
OPTIMIZERS = """
import sys, threading, torch
model = torch.nn.Linear(2, 2)

class Clipping(torch.optim.AdamW):
    def step(self, closure=None): return super().step(closure)

def no(): raise RuntimeError("no")

def subclassed():
    other, its = torch.optim.AdamW(model.parameters()), Clipping(model.parameters())
    for _ in range(3):
        its.step()
        try: its.step(no)
        except RuntimeError: pass

def epochs(keep):
    for _ in range(3):
        keep.append(torch.optim.SGD(model.parameters()))
        for _ in range(7): keep[-1].step()
        if keep[0] is None: keep.pop()

def critic():
    one, five = (torch.optim.SGD(model.parameters()) for _ in range(2))
    for _ in range(3):
        one.step()
        for _ in range(5): five.step()

def in_a_thread():
    thread = threading.Thread(target=subclassed)
    thread.start()
    thread.join()

def gone(): epochs([None])
def kept(): epochs([])

globals()[sys.argv[1]]()
print("the end")
"""
COMMAND = """
import click, copy

@click.command()
def train(): pass

group = click.Group()
group.add_command(train)
for main in (group, train, copy.copy(train).main): main([*(["train"] if main is group else [])], standalone_mode=False)
print(isinstance(train, click.Command), train.name)
"""
PARSER = "from torch.distributed.run import get_args_parser\nprint([s for a in get_args_parser()._actions if a.nargs == 0 for s in a.option_strings])\n"  # noqa: E501


@dataclass(frozen=True)
class Run:
    """What came of a case."""

    status: int
    stdout: str
    stderr: str
    journal: list[dict[str, Any]]
    folder: Path

    def events(self, *without: str) -> list[str]:
        """Return the journal's events in short."""
        events = (event for event in self.journal if event["event"] not in ("began", "passed-over", *without))
        return [" ".join(str(value) for value in event.values()) for event in events]


CASES: dict[str, tuple[list[str], list[str]]] = {
    "optimizer": (["--step", "2:3", "--stop-after"], ["script.py", "--flag", "x"]),
    "first": (["--step", "1", "--stop-after"], ["script.py"]),
    "goes on": (["--step", "2"], ["script.py"]),
    "never reached": (["--step", "9", "--stop-after"], ["script.py"]),
    "cut short": (["--step", "3:9", "--stop-after"], ["script.py"]),
    "method": (["--step", "2", "--of", "Trainer.train_step", "--stop-after"], ["script.py"]),
    "function of a module": (["--step", "2", "--of", "textwrap:dedent"], ["calls.py"]),
    "no such function": (["--step", "2", "--of", "nothing"], ["script.py"]),
    "module": (["--step", "2", "--stop-after"], ["-m", "script", "--flag"]),
    "failing": (["--step", "2"], ["failing.py"]),
    "leaving": (["--step", "1"], ["leaving.py"]),
    "not python": (["--step", "1"], ["not_python.py"]),
    "annotated": (["--step", "2", "--stop-after", "--annotate"], ["script.py"]),
    "a profiler of its own": (["--step", "2", "--count", "own.json"], ["profiling.py"]),
    "asynchronous": (["--step", "2:3", "--of", "step"], ["asynchronous.py"]),
    "no such method": (["--step", "1", "--of", "textwrap:TextWrapper.nothing"], ["calls.py"]),
    "catching all": (["--step", "2", "--of", "step", "--stop-after"], ["catching.py"]),
    "two loaders": (["--step", "3", "--of", "dataloader"], ["loaders.py"]),
    "elsewhere": ([], ["elsewhere.py"]),
    "folder": ([], ["package"]),
    "linked": ([], ["linked.py"]),
    "function with -m": (["--step", "2", "--of", "helper"], ["-m", "script"]),
    "batches": (["--step", "2:3", "--of", "dataloader"], [EXAMPLE, *SMALL, "--workers", "2"]),
    "counting": (["--step", "2:3", "--stop-after", "--count", "trace.json"], ["script.py"]),
    "counting batches": (["--step", "3:4", "--of", "dataloader", "--count", "batches.json"], ["loads.py"]),
    "a compiled step": (["--step", "2"], ["compiled.py", "optimizer"]),
    "a compiled function": (["--step", "2", "--of", "train_step"], ["compiled.py"]),
    "a subclass": (["--step", "99"], ["optimizers.py", "subclassed"]),
    "optimizers that are gone": (["--step", "99"], ["optimizers.py", "gone"]),
    "optimizers that are kept": (["--step", "99"], ["optimizers.py", "kept"]),
    "a critic's optimizer": (["--step", "99"], ["optimizers.py", "critic"]),
    "a command": (["--step", "9", "--of", "train"], ["command.py"]),
    "in a thread": (["--step", "2", "--stop-after"], ["optimizers.py", "in_a_thread"]),
    "torchrun's parser": ([], ["parser.py"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    folder = tmp_path_factory.mktemp("runner")
    scripts = {
        "script.py": SCRIPT,
        "failing.py": FAILING,
        "leaving.py": LEAVING,
        "profiling.py": PROFILING,
        "asynchronous.py": "import asyncio\nasync def step(): await asyncio.sleep(0)\nfor _ in range(4): asyncio.run(step())\n",
        "catching.py": "def step(): pass\nfor n in range(4):\n    try: step()\n    except: pass\nprint('the end')\n",
        "loaders.py": LOADERS,
        "elsewhere.py": ELSEWHERE,
        "not_python.py": "def f(:\n",
        "calls.py": "import textwrap\nfor i in range(3): print(textwrap.dedent('  x'))\n",
        "parser.py": PARSER,
        "loads.py": LOADING,
        "compiled.py": COMPILED,
        "optimizers.py": OPTIMIZERS,
        "command.py": COMMAND,
    }
    (folder / "package").mkdir()
    (folder / "package/__main__.py").write_text("import sys; print(sys.path[0], sys.argv)", encoding="utf-8")
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere/linked.py").write_text("import sys; print(sys.path[0])", encoding="utf-8")
    (folder / "linked.py").symlink_to("elsewhere/linked.py")
    for name, text in scripts.items():
        (folder / name).write_text(text, encoding="utf-8")
    cases = [
        {"argv": [str(RUNNER), *options, "--status", f"{number}.jsonl", "--", *words], "folder": str(folder)}
        for number, (options, words) in enumerate(CASES.values())
    ]
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    forked = subprocess.run(
        [sys.executable, str(ROOT / "tests/support/forked_runs.py"), str(folder / "cases.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    results = json.loads(forked.stdout.splitlines()[-1])
    runs = {
        name: Run(**result, journal=read_status(folder / f"{number}.jsonl"), folder=folder)  # type: ignore[arg-type]
        for number, (name, result) in enumerate(zip(CASES, results, strict=True))
    }
    return runs.__getitem__


def test_the_wanted_steps_lie_in_the_window_and_the_script_ends_after_them(run: Callable[[str], Run]) -> None:
    found = run("optimizer")
    assert found.events() == ["step 1", "start 2", "step 2", "step 3", "stop 3"]
    assert found.status == 0
    # The third step of the first optimizer ends it: past `except Exception`, through `finally`.
    assert found.stdout.splitlines()[1:] == ["did 0", "cleaned 0", "did 1", "cleaned 1", "cleaned 2"]


def test_the_script_sees_what_python_shows_it(run: Callable[[str], Run]) -> None:
    name, file, *_ = run("optimizer").stdout.split()
    assert (name, file) == ("__main__", str(run("optimizer").folder / "script.py"))
    assert "['script.py', '--flag', 'x']" in run("optimizer").stdout
    assert "runner0" in run("optimizer").stdout.splitlines()[0].split()[-1]  # the script's folder, not the runner's


def test_the_first_step_begins_with_the_script(run: Callable[[str], Run]) -> None:
    assert run("first").events() == ["start 1", "step 1", "stop 1"]


def test_without_stopping_the_script_goes_on(run: Callable[[str], Run]) -> None:
    assert run("goes on").events() == ["step 1", "start 2", "step 2", "stop 2", "step 3", "step 4"]
    assert run("goes on").stdout.endswith("the end\n")


def test_steps_that_are_never_reached_start_nothing(run: Callable[[str], Run]) -> None:
    assert run("never reached").events() == ["step 1", "step 2", "step 3", "step 4"]
    assert run("never reached").status == 0


def test_a_window_is_closed_where_the_script_ends_in_it(run: Callable[[str], Run]) -> None:
    assert run("cut short").events() == ["step 1", "step 2", "start 3", "step 3", "step 4", "stop 4"]


@pytest.mark.parametrize("name", ["method", "function of a module"])
def test_calls_of_a_function_can_be_the_steps(run: Callable[[str], Run], name: str) -> None:
    assert run(name).events()[:4] == ["step 1", "start 2", "step 2", "stop 2"]


def test_a_missing_function_is_a_named_error(run: Callable[[str], Run]) -> None:
    assert run("no such function").status == 1
    assert "script.py has no function 'nothing'" in run("no such function").stderr


def test_a_module_runs_as_with_dash_m(run: Callable[[str], Run]) -> None:
    assert run("module").events() == ["step 1", "start 2", "step 2", "stop 2"]
    assert run("module").stdout.startswith("__main__ ")
    assert "'--flag']" in run("module").stdout


def test_an_exception_is_shown_as_python_shows_it(run: Callable[[str], Run]) -> None:
    found = run("failing")
    assert found.status == 1
    lines = found.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{found.folder / "failing.py"}", line 6, in <module>'
    assert lines[-1] == "ValueError: wrong value"
    assert "collect/runner" not in found.stderr


def test_a_syntax_error_of_the_script_is_shown_as_its_own(run: Callable[[str], Run]) -> None:
    assert run("not python").status == 1
    assert 'not_python.py", line 1' in run("not python").stderr


def test_sys_exit_is_passed_on_and_the_window_closed(run: Callable[[str], Run]) -> None:
    assert run("leaving").status == 7
    assert run("leaving").events() == ["start 1", "stop 0"]


@pytest.fixture
def ranges(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is pushed, and "pop" for what is popped, with a stand-in for CUDA; ours are open until the test ends."""
    torch = pytest.importorskip("torch")
    pushed: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.autograd.profiler, "emit_nvtx", lambda **_: nullcontext())
    monkeypatch.setattr(torch.cuda.nvtx, "range_push", pushed.append)
    monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: pushed.append("pop"))
    return pushed


@contextmanager
def annotated() -> Iterator[None]:
    annotations = Annotations(ScriptProfilers())
    annotations.start()
    try:
        yield
    finally:
        annotations.stop()


def test_ranges_open_and_close_in_order(ranges: list[str]) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    with annotated():
        model(torch.ones(2, 4))
    model(torch.ones(2, 4))  # no longer annotated
    assert ranges == [
        "Sequential (Sequential) [2, 4]",
        "Sequential.0 (Linear) [2, 4]",
        "pop",
        "Sequential.1 (ReLU) [2, 4]",
        "pop",
        "pop",
    ]


def test_ranges_close_where_a_module_raises(ranges: list[str]) -> None:
    torch = pytest.importorskip("torch")

    def no(*_: object) -> None:
        raise RuntimeError("no")

    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    model[1].forward = no
    with annotated(), pytest.raises(RuntimeError, match="no"):
        model(torch.ones(1, 2))
    assert [text == "pop" for text in ranges] == [False, False, True, False, True, True]


def test_ranges_of_operators_outlive_the_window(ranges: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The last step ends within Optimizer.step's range: to end emit_nvtx there made PyTorch 2.11 print an internal assertion."""
    torch = pytest.importorskip("torch")

    @contextmanager
    def emit_nvtx(**_: object) -> Iterator[None]:
        ranges.append("emitted")
        yield
        ranges.append("ended")

    monkeypatch.setattr(torch.autograd.profiler, "emit_nvtx", emit_nvtx)
    with annotated():
        pass
    assert ranges == ["emitted"]


def test_only_the_advice_of_pytorch_about_several_cycles_is_hidden() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with ScriptProfilers().at_work():
            warnings.warn("Warning: Profiler clears events at the end of each cycle.Only events", stacklevel=1)
            warnings.warn("CUPTI is missing", stacklevel=1)
    assert [str(each.message) for each in said] == ["CUPTI is missing"]


def test_only_tensors_have_shapes(ranges: list[str]) -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Module()
    module.forward = lambda odd, x: x
    with annotated():
        module(SimpleNamespace(shape=3), torch.ones(1, 2))
    assert ranges == ["Module (Module) [1, 2]", "pop"]


def test_a_nested_tensor_has_no_shape_and_costs_nothing(ranges: list[str]) -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)])
    with annotated():
        torch.nn.Identity()(nested)
    assert ranges == ["Identity", "pop"]


@pytest.mark.parametrize("name", ["a compiled step", "a compiled function"])
def test_steps_under_torch_compile_are_counted(run: Callable[[str], Run], name: str) -> None:
    found = run(name)
    assert (found.status, found.stdout) == (0, "the end\n"), found.stderr
    assert found.events() == ["step 1", "start 2", "step 2", "stop 2", "step 3", "step 4"]


@pytest.mark.parametrize(
    ("name", "n_steps", "n_passed_over"),
    [
        ("a subclass", 3, 0),  # each calls the step of its superclass, and a call that raises counts for nothing
        ("optimizers that are gone", 21, 0),
        ("optimizers that are kept", 11, 10),  # the first five steps of the second and of the third
        ("a critic's optimizer", 3, 15),  # steps five times for each step of the first
    ],
)
def test_steps_of_an_optimizer_count_once(
    run: Callable[[str], Run], name: str, n_steps: int, n_passed_over: int
) -> None:
    found = run(name)
    assert found.events() == [f"step {number}" for number in range(1, n_steps + 1)]
    assert sum(event.get("n_steps", 0) for event in found.journal) == n_passed_over


def test_a_decorated_function_keeps_its_type(run: Callable[[str], Run]) -> None:
    found = run("a command")
    assert (found.stdout, found.events()) == ("True train\n", ["step 1"]), found.stderr  # that of its own call


def test_steps_that_end_in_a_thread_end_only_this_thread(run: Callable[[str], Run]) -> None:
    found = run("in a thread")
    assert (found.status, found.stdout, found.stderr) == (0, "the end\n", "")


def test_annotating_without_a_gpu_changes_nothing(run: Callable[[str], Run]) -> None:
    assert (run("annotated").status, run("annotated").stderr) == (0, "")
    assert run("annotated").events() == ["step 1", "start 2", "step 2", "stop 2"]


def test_a_linked_script_finds_what_lies_beside_it_as_under_python(run: Callable[[str], Run]) -> None:
    assert run("linked").stdout.rstrip().endswith("elsewhere")


def test_a_function_of_a_module_that_runs_is_refused(run: Callable[[str], Run]) -> None:
    assert run("function with -m").status == 1
    assert "'helper' cannot be counted in a module run with -m" in run("function with -m").stderr


def test_a_profiler_of_the_script_records_nothing_and_does_not_interfere(run: Callable[[str], Run]) -> None:
    found = run("a profiler of its own")
    assert (found.status, found.stdout) == (0, "2 0 0\n"), found.stderr
    assert json.loads((found.folder / "its.json").read_bytes())["traceEvents"] == []
    events = json.loads((found.folder / "own.json").read_bytes())["traceEvents"]
    assert sum(event.get("name") == "aten::linear" for event in events) == 1


def test_calls_of_a_coroutine_are_steps_when_it_has_ended(run: Callable[[str], Run]) -> None:
    assert run("asynchronous").events() == ["step 1", "start 2", "step 2", "step 3", "stop 3", "step 4"]


def test_a_function_that_a_module_lacks_is_a_named_error(run: Callable[[str], Run]) -> None:
    assert run("no such method").status == 1
    assert run("no such method").stderr.startswith("ncuroof: calls of textwrap:TextWrapper.nothing cannot be counted")


def test_a_script_that_catches_its_end_gets_a_warning(run: Callable[[str], Run]) -> None:
    found = run("catching all")
    assert found.stdout == "the end\n"
    assert found.stderr == "ncuroof: the script catches the SystemExit that ends it after the last step, and runs on\n"
    assert found.events() == ["step 1", "start 2", "step 2", "stop 2", "step 3", "step 4"]


def test_batches_of_all_loaders_are_steps(run: Callable[[str], Run]) -> None:
    """Two batches that are looked at first, of which the second is left in hand; then three with the same within each."""
    assert sum(event.startswith("step") for event in run("two loaders").events()) == 1 + 3 * (1 + 1)


def test_a_script_knows_its_place_after_it_has_gone_elsewhere(run: Callable[[str], Run]) -> None:
    found = run("elsewhere")
    assert found.stdout == f"{found.folder / 'elsewhere.py'} def f():\n    pass\n True\n", found.stderr


def test_a_folder_runs_as_under_python(run: Callable[[str], Run]) -> None:
    assert run("folder").stdout.startswith("package [")


def test_batches_of_a_loader_with_workers_are_counted_once(run: Callable[[str], Run]) -> None:
    found = run("batches")
    assert found.status == 0, found.stderr
    assert found.events() == ["step 1", "start 2", "step 2", "step 3", "stop 3", "step 4", "step 5"]
    assert found.stdout.count("loss") == 5


def test_counting_leaves_a_trace_of_the_window(run: Callable[[str], Run]) -> None:
    assert run("counting").events("counted") == ["step 1", "start 2", "step 2", "step 3", "stop 3"]
    events = json.loads((run("counting").folder / "trace.json").read_bytes())["traceEvents"]
    # No GPU here: operators stand for kernels. Two steps of the model in the window, three in the script.
    assert sum(event.get("name") == "aten::linear" for event in events) == 2


def test_waiting_for_batches_is_timed_within_the_window(run: Callable[[str], Run]) -> None:
    """Five batches that take 40 ms each: two of them, and two steps of 10 ms, in the window."""
    found = run("counting batches")
    assert found.status == 0, found.stderr
    assert found.events("counted") == ["step 1", "step 2", "start 3", "step 3", "step 4", "stop 4", "step 5"]
    (counted,) = (event for event in found.journal if event["event"] == "counted")
    assert counted["batches_ns"] >= 80e6
    assert counted["batches_ns"] + 20e6 <= counted["duration_ns"]
    assert counted["earlier_steps_ns"] == []  # no GPU here


def test_earlier_steps_are_timed_by_events_on_the_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for CUDA, whose events lie 1, 2, 3, … ms after the one before; the last five differences stay."""
    torch = pytest.importorskip("torch")
    clock = itertools.accumulate(itertools.count(1))

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.at_ms = next(clock)

        def elapsed_time(self, end: Event) -> float:
            if end.at_ms > 100:
                raise RuntimeError("Both events must be recorded on the same device")
            return float(end.at_ms - self.at_ms)

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    entries: list[dict[str, Any]] = []
    journal: Any = SimpleNamespace(tell=lambda _, **more: entries.append(more))

    def new() -> Counting:
        return Counting(str(tmp_path / "trace.json"), journal, ScriptProfilers(), BatchClock())

    counting = new()
    for _ in range(8):
        counting.step_done()
    counting.start()
    counting.step_done()  # under the profiler: not timed
    counting.stop()
    assert entries[0]["earlier_steps_ns"] == [4e6, 5e6, 6e6, 7e6, 8e6]
    again = new()
    for _ in range(8):
        again.step_done()
    again.start()
    again.stop()
    assert entries[1]["earlier_steps_ns"] == []


def test_ranks_leave_files_of_their_own(tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-S",
        str(RUNNER),
        "--count",
        "t.%q{MY_RANK}.json",
        "--status",
        "s.rank%q{MY_RANK}.%q{NONE}jsonl",
    ]
    for rank in ("0", "11"):
        environment = {**os.environ, "MY_RANK": rank}
        subprocess.run([*words, "--", "script.py"], cwd=tmp_path, env=environment, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.rank0.jsonl", "s.rank11.jsonl"]


@pytest.mark.parametrize(("with_operators", "activities"), [(False, {"CUDA"}), (True, {"CUDA", "CPU"})])
def test_operators_are_recorded_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_operators: bool, activities: set[str]
) -> None:
    """Each costs the host a microsecond or two, which idle time on a GPU would grow by."""
    torch = pytest.importorskip("torch")
    asked: list[Any] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    profile = SimpleNamespace(start=lambda: None)
    monkeypatch.setattr(torch.profiler, "profile", lambda activities: asked.extend(activities) or profile)
    journal: Any = None
    path = str(tmp_path / "trace.json")
    Counting(path, journal, ScriptProfilers(), BatchClock(), with_operators=with_operators).start()
    assert {activity.name for activity in asked} == activities


IN_A_THREAD = """
from concurrent.futures import ThreadPoolExecutor

def work():
    import torch
    return (torch.ones(10) + 1).sum().item()

with ThreadPoolExecutor(1) as pool:
    print(pool.submit(work).result())
"""


@pytest.mark.parametrize("options", [["--count", "trace.json"], ["--step", "1", "--annotate"]])
def test_a_script_that_begins_in_a_thread_ends_as_ever(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "script.py").write_text(IN_A_THREAD, encoding="utf-8")
    words = [sys.executable, str(RUNNER), *options, "--status", "journal", "--", "script.py"]
    done = subprocess.run(words, cwd=tmp_path, stdout=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (0, b"20.0\n")
    assert not (tmp_path / "trace.json").exists()
    is_reported = "not-counted" in [entry["event"] for entry in read_status(tmp_path / "journal")]
    assert is_reported is ("--count" in options)


def test_a_full_disk_costs_the_journal_and_no_script(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print('ran')", encoding="utf-8")
    words = [sys.executable, "-S", str(RUNNER), "--status", "/dev/full", "--", "script.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


def test_torchruns_flags_are_those_of_its_parser(run: Callable[[str], Run]) -> None:
    flags = {option_name(flag) for flag in json.loads(run("torchrun's parser").stdout.replace("'", '"'))}
    launchers = load_settings().launchers
    assert flags == launchers["torchrun"].flags
    assert launchers["torch.distributed.launch"].flags == {*flags, "use-env"}


def test_without_torch_nothing_is_counted_and_the_script_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print('ran')", encoding="utf-8")
    words = [sys.executable, "-S", str(RUNNER), "--count", "t.json", "--status", "s.jsonl", "--", "script.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert read_status(tmp_path / "s.jsonl") == [{"event": "no-torch"}]
