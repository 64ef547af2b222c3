"""A workspace reads files below its root, and no others; it analyses the same content once."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from ncuroof.agent import workspace as module
from ncuroof.agent.workspace import Workspace
from ncuroof.errors import NcuroofError, OutsideRootError, ReportNotFoundError
from tests.support import demo
from tests.support.many_reports import small_report


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "deep").mkdir(parents=True)
    (root / "run.ncu-rep").write_bytes(small_report())
    (tmp_path / "secret.ncu-rep").write_bytes(small_report())
    (tmp_path / "root-beside.ncu-rep").write_bytes(small_report())
    return root


@pytest.mark.parametrize("name", ["run.ncu-rep", "./run.ncu-rep", "deep/../run.ncu-rep", "{root}/run.ncu-rep"])
def test_a_file_below_the_root_is_found_however_it_is_named(root: Path, name: str) -> None:
    assert Workspace(root).file(name.format(root=root)) == root.resolve() / "run.ncu-rep"


@pytest.mark.parametrize(
    "name",
    [
        "../secret.ncu-rep",
        "deep/../../secret.ncu-rep",
        "{root}/../secret.ncu-rep",
        "{root}-beside.ncu-rep",
        "../absent",
        "/etc/passwd",
        "/",
        "..",
        "~/../../etc/passwd/../../../../../../../../../etc/passwd",
        "\u202e/../../../secret.ncu-rep",
    ],
)
def test_no_name_leads_out_of_the_root(root: Path, name: str) -> None:
    with pytest.raises(OutsideRootError):
        Workspace(root).file(name.format(root=root))


def test_no_link_leads_out_of_the_root(root: Path) -> None:
    (root / "link.ncu-rep").symlink_to(root.parent / "secret.ncu-rep")
    (root / "folder").symlink_to(root.parent)
    (root / "chain").symlink_to(root / "link.ncu-rep")
    (root / "inside.ncu-rep").symlink_to(root / "run.ncu-rep")
    files = Workspace(root)
    for name in ("link.ncu-rep", "folder/secret.ncu-rep", "chain"):
        with pytest.raises(OutsideRootError):
            files.file(name)
    assert files.file("inside.ncu-rep") == root.resolve() / "run.ncu-rep"


def test_no_link_beside_a_report_leads_out_of_the_root(root: Path) -> None:
    secret = root.parent / "secret.json"
    secret.write_text('{"password": "hunter2"}', encoding="utf-8")
    (root / "run.counts.json").symlink_to(secret)
    with pytest.raises(OutsideRootError) as caught:
        Workspace(root).analysis("run.ncu-rep")
    assert "password" not in f"{caught.value} {caught.value.hint}"


def test_a_root_that_is_a_link_is_the_folder_that_it_leads_to(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    assert Workspace(link).file("run.ncu-rep") == root.resolve() / "run.ncu-rep"


@pytest.mark.parametrize("name", ["absent.ncu-rep", "deep", ".", "a\0b", "run.ncu-rep/x", "x" * 5000, "pipe"])
def test_a_path_that_is_not_a_file_is_a_named_error(root: Path, name: str) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(NcuroofError):
        Workspace(root).file(name)


def test_a_missing_root_is_a_named_error(tmp_path: Path) -> None:
    with pytest.raises(ReportNotFoundError):
        Workspace(tmp_path / "absent")


@pytest.mark.long
def test_the_same_content_is_analysed_once_and_changed_content_again(root: Path) -> None:
    files = Workspace(root)
    first = files.analysis("run.ncu-rep")
    shutil.copyfile(root / "run.ncu-rep", root / "copy.ncu-rep")
    assert files.analysis("copy.ncu-rep") is first
    (root / "run.ncu-rep").write_bytes(demo.REPORT.read_bytes())
    assert files.analysis("run.ncu-rep").summary.n_kernels != first.summary.n_kernels


def test_calls_at_the_same_time_analyse_a_report_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_read = []
    read = module.read
    monkeypatch.setattr(module, "read", lambda *args, **more: n_read.append(1) or read(*args, **more))
    files = Workspace(root)
    threads = [threading.Thread(target=files.analysis, args=("run.ncu-rep",)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(n_read) == 1


@pytest.mark.long
def test_few_analyses_are_kept(root: Path) -> None:
    files = Workspace(root)
    for number in range(module._N_KEPT + 2):
        (root / f"{number}.ncu-rep").write_bytes(small_report(1, times_us=(100.0 + number,)))
        files.analysis(f"{number}.ncu-rep")
    assert len(files._kept) == len(files._lock_by_key) == module._N_KEPT


class _StopError(Exception):
    pass


def test_cancelled_work_stops_and_keeps_nothing(root: Path) -> None:
    def stop(_: float) -> None:
        raise _StopError

    files = Workspace(root)
    with pytest.raises(_StopError):
        files.analysis("run.ncu-rep", stop)
    assert not files._kept
    assert files.analysis("run.ncu-rep").summary.n_kernels > 0
