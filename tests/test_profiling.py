"""Functions are profiled from Python: in a process of their own, by name, with their arguments, one call or a sweep."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import ncuroof
from ncuroof.errors import ArgumentError
from tests.collect.making import stand_in
from tests.support.lined import lined_report
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on a machine whose ncu runs programs, and then hands out one recorded report."""
    (tmp_path / "recorded.ncu-rep").write_bytes(lined_report())
    monkeypatch.setenv("NCUROOF_NCU", str(stand_in(tmp_path)))
    monkeypatch.setenv("STAND_IN_REPORT", str(tmp_path / "recorded.ncu-rep"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(dedent(text), encoding="utf-8")
    return subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=folder, timeout=PATIENCE_S, check=False
    )


@pytest.mark.long
def test_a_function_of_a_script_is_called_once_more_than_it_warms_up(machine: Path) -> None:
    done = run(
        machine,
        """
        import os, ncuroof

        def work(path, times):
            with open(path, "a") as file:
                file.write(f"{os.getpid()} " * times)

        if __name__ == "__main__":
            analysis = ncuroof.Profiler(warmups=2, output="kept.v2").profile(work, "called", times=1)
            print(*analysis.kernels["short_name"], os.getpid())
        """,
    )
    assert done.returncode == 0, done.stderr
    *kernels, parent = done.stdout.split()
    assert kernels == ["_Z5scalePfi"]
    callers = (machine / "called").read_text(encoding="utf-8").split()
    assert len(callers) == 3
    assert len(set(callers)) == 1
    assert callers[0] != parent
    assert (machine / "kept.v2.ncu-rep").read_bytes() == lined_report()


@pytest.mark.long
def test_a_sweep_profiles_every_combination_and_leaves_the_function_as_it_is(machine: Path) -> None:
    done = run(
        machine,
        """
        import ncuroof

        @ncuroof.sweep(n=[1, 2], kind=["a"])
        def work(n, kind):
            with open("called", "a") as file:
                file.write(f"{kind}{n} ")
            return n

        if __name__ == "__main__":
            assert work(n=5, kind="b") == 5 and work.__name__ == "work"
            table = work.profile().table
            print(table.columns[:4], table.select("n", "kind", "kernel").rows())
        """,
    )
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout == "['n', 'kind', 'n_launches', 'duration_ns'] [(1, 'a', '_Z5scalePfi'), (2, 'a', '_Z5scalePfi')]\n"
    )
    assert (machine / "called").read_text(encoding="utf-8") == "b5 a1 a1 a2 a2 "


@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("ncuroof.profile(print)", "put that under `if __name__"),
        ("if __name__ == '__main__': ncuroof.profile(fail)", "ValueError: a bad size"),
    ],
    ids=["no guard", "the function fails"],
)
def test_what_failed_in_the_other_process_is_said(machine: Path, script: str, said: str) -> None:
    done = run(machine, f"import ncuroof\ndef fail(): raise ValueError('a bad size')\n{script}\n")
    assert done.returncode == 1
    assert "ncuroof.errors.ProfilingError: nothing was recorded of" in done.stderr
    assert said in done.stderr


def test_what_cannot_be_sent_to_another_process_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(ArgumentError, match="can only be sent to another process by its code") as failure:
        ncuroof.profile(lambda: None)
    assert "top level of a script or module" in failure.value.hint
    with pytest.raises(ArgumentError, match="at least one call before"):
        ncuroof.Profiler(warmups=0)
    with pytest.raises(ArgumentError, match="expected a list of values for n"):
        ncuroof.sweep(n="abc")(print)
    with pytest.raises(ArgumentError, match="argument kernel has the name of a column"):
        ncuroof.sweep(kernel=["a"])(print)
    with pytest.raises(ArgumentError, match="several reports"):
        ncuroof.Profiler(output="a.ncu-rep").sweep(n=[1])(print)
