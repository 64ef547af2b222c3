"""What is said of a part of a run, on the terminal, in Markdown, JSON and on the page."""

from __future__ import annotations

import json
from html import unescape
from typing import Any

import pytest

import ncuroof
from ncuroof.present import render
from ncuroof.present.sentences.actions import gpu_time, is_whole, whole
from ncuroof.present.sentences.remarks import selection_sentence
from tests.support import demo

ALL: dict[str, Any] = {"kernel": None, "nvtx": None, "skip": 0, "count": None, "of_n_kernels": 69}
END = "all totals, shares and savings are of these"


@pytest.mark.parametrize(
    ("selection", "sentence"),
    [
        (
            {"kernel": "gemm"},
            f"only kernels matching 'gemm': 3 of the run's 69 launches, 12.5 % of its GPU time; {END}",
        ),
        (
            {"nvtx": "mlp"},
            f"only launches in NVTX ranges matching 'mlp': 3 of the run's 69 launches, 12.5 % of its GPU time; {END}",
        ),
        (
            {"kernel": "a", "nvtx": "b", "skip": 2, "count": 3},
            "only kernels matching 'a' in NVTX ranges matching 'b' (without the first 2, at most 3): 3 of the run's 69 launches, "
            f"12.5 % of its GPU time; {END}",
        ),
        ({"count": 3, "duration_frac": None}, f"only launches (at most 3): 3 of the run's 69 launches; {END}"),
        ({"kernel": "gemm", "of_n_kernels": 3}, ""),
        ({"kernel": "\x1b[31m", "of_n_kernels": 9}, None),
    ],
)
def test_what_is_shown_of_the_run(selection: dict[str, Any], sentence: str | None) -> None:
    said = selection_sentence({"n_kernels": 3, "selection": ALL | {"duration_frac": 0.125} | selection})
    assert said == sentence if sentence is not None else "\x1b" not in said


def test_of_a_whole_run_nothing_is_said() -> None:
    assert selection_sentence({"n_kernels": 3}) == ""


def test_shares_are_of_the_selected_time() -> None:
    part = {"selection": ALL}
    assert (gpu_time(part), whole(part), is_whole(part)) == ("selected GPU time", "selected GPU time", False)
    assert (gpu_time({}), whole({}), is_whole({})) == ("GPU time", "the run's GPU time", True)


@pytest.mark.long
@pytest.mark.parametrize("form", ["term", "md", "html"])
def test_every_text_says_so_first(form: str) -> None:
    analysis = ncuroof.read(demo.REPORT).analyse()
    said = ": 2 of the run's 17 launches"
    assert said in " ".join(unescape(render(analysis.select(count=2), form).decode()).split())
    assert said not in " ".join(unescape(render(analysis, form).decode()).split())
    assert "run's GPU time" not in render(analysis.select(count=2), form).decode()


@pytest.mark.long
def test_the_document_names_the_filters() -> None:
    analysis = ncuroof.read(demo.REPORT).analyse()
    summary = json.loads(render(analysis.select(skip=1, count=2), "json"))["summary"]
    assert summary["selection"] == {
        "kernel": None,
        "nvtx": None,
        "skip": 1,
        "count": 2,
        "of_n_kernels": analysis.summary.n_kernels,
        "duration_frac": pytest.approx(summary["duration_ns"] / analysis.summary.duration_ns),
    }
    assert "selection" not in json.loads(render(analysis, "json"))["summary"]
