"""Kernels of one short name and reports of one file name are told apart by what differs in them."""

from __future__ import annotations

from pathlib import Path

import pytest

import ncuroof
from ncuroof.metrics.names import differences
from ncuroof.present.sentences.report_names import with_folders
from ncuroof.present.texts.markdown import to_markdown
from ncuroof.present.texts.run_summary import run_summary
from ncuroof.present.texts.terminal import TerminalOptions, to_text
from tests.support.report_writer import METRICS_BY_CHIP, Device, Kernel, Session, write_report

METRICS = {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0}


def test_names_differ_in_the_first_words_that_are_not_alike() -> None:
    drain = "void thrust::core::_kernel_agent<thrust::__reduce::DrainAgent<int>, int>(T2)"
    least = "void thrust::core::_kernel_agent<thrust::__reduce::ReduceAgent<int *, thrust::arg_min_f<float>>, int>(T2)"
    most = "void thrust::core::_kernel_agent<thrust::__reduce::ReduceAgent<int *, thrust::arg_max_f<float>>, int>(T2)"
    assert differences([drain, least, most, drain]) == {
        drain: ("DrainAgent",),
        least: ("ReduceAgent", "arg_min_f"),
        most: ("ReduceAgent", "arg_max_f"),
    }


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["gemm<128, 64>", "gemm<128, 32>"], [("64",), ("32",)]),
        (["copy<float>", "copy<float, 4>"], [(), ("4",)]),  # one has a word less
        (["copy<float *>", "copy<float &>"], [(), ()]),  # no word differs
        (["copy<float>"], [()]),
        ([], []),
    ],
)
def test_words_by_which_names_differ(names: list[str], words: list[tuple[str, ...]]) -> None:
    assert list(differences(names).values()) == words


def test_files_of_one_name_show_their_folders() -> None:
    assert with_folders([("a", "run"), ("b", "run"), ("a", "other"), ("", "other")]) == [
        "a/run",
        "b/run",
        "a/other",
        "other",
    ]
    assert with_folders([("a", "run"), ("a", "other")]) == ["run", "other"]


def _gpu(name: str) -> Session:
    return Session(devices=(Device(0, name),))


def _reports(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / folder / "run.ncu-rep" for folder in ("before", "after")]
    for path, gpu in zip(paths, ("GPU of one kind", "GPU of another"), strict=True):
        path.parent.mkdir()
        metrics = {**METRICS, "device__attribute_display_name": gpu}
        kernels = [Kernel("copy", metrics, demangled=f"void copy<ns::{kind}>(int)") for kind in ("Narrow", "Wide")]
        path.write_bytes(write_report(kernels, _gpu(gpu)))
    return paths


def test_reports_and_kernels_of_one_name_on_two_gpus(tmp_path: Path) -> None:
    analysis = ncuroof.read(_reports(tmp_path)).analyse()
    summary = run_summary(analysis)
    assert summary.title == "before/run.ncu-rep, after/run.ncu-rep"
    assert [line.split(" · ")[0] for line in summary.devices] == ["GPU 0: GPU of one kind", "GPU 1: GPU of another"]
    labels = {(line.gpu, line.differs_in) for line in summary.kernels}
    assert labels == {(gpu, (word,)) for gpu in ("GPU 0", "GPU 1") for word in ("Narrow", "Wide")}
    assert "| copy · Wide · GPU 1 | 1 |" in to_markdown(analysis)
    assert " copy · Wide · GPU 1 " in to_text(analysis, TerminalOptions(is_verbose=True))


def test_one_gpu_and_one_report_need_no_more_words(tmp_path: Path) -> None:
    summary = run_summary(ncuroof.read(_reports(tmp_path)[0]).analyse())
    assert summary.title == "run.ncu-rep"
    assert summary.devices[0].startswith("GPU of one kind")
    assert {line.gpu for line in summary.kernels} == {""}


def test_in_little_room_the_last_words_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.ncu-rep"
    names = [f"void agents<ns::ReduceTheTiles<ns::{last}>>(int)" for last in ("arg_min_f", "arg_max_f")]
    path.write_bytes(
        write_report([Kernel("agents", METRICS, demangled=name) for name in (*names, "void agents<ns::Drain>(int)")])
    )
    text = to_text(ncuroof.read(path).analyse(), TerminalOptions(is_verbose=True))
    assert {line.split()[3] for line in text.splitlines() if " agents · " in line} == {
        "arg_min_f",
        "arg_max_f",
        "Drain",
    }
