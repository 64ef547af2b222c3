"""The time inside a kernel in words, as a strip of blocks, and on the page."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.present.page.kernel_detail import phase_block
from ncuroof.present.page.text_table import Texts
from ncuroof.present.sentences.phases import limits_sentence, strip
from ncuroof.present.texts.one_kernel import card
from ncuroof.reading import Reports
from tests.support.sampled import Part, sampled_report


def _kernel(*limits: tuple[float, str, str | None, str], course: list[float | None] | None = None) -> dict[str, Any]:
    """Return the entry of a kernel of 100 ns with phases of these lengths, verdicts, limiters and kinds."""
    starts = [sum(each[0] for each in limits[:index]) for index in range(len(limits))]
    phases = [
        {
            "start_ns": start,
            "duration_ns": length,
            "verdict": verdict,
            "limiter": limiter,
            "kind": kind,
            "utilisation": {"dram": 0.5, "l1": 0.01},
            "inferred": {"l2": 0.4, "fp64": 0.0},
        }
        for start, (length, verdict, limiter, kind) in zip(starts, limits, strict=True)
    ]
    samples = {"n": 50, "interval_ns": 2.0, "passes": 2, "caveat": "they differ", "courses": {"dram": course or [0.5]}}
    return {"duration_ns": 100.0, "phases": phases, "samples": samples}


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ({}, ""),
        (_kernel((100, "compute", "tensor", "steady")), "100 % of the time compute-bound (tensor)"),
        (
            _kernel((60, "compute", "tensor", "steady"), (40, "latency", "tail", "tail")),
            "60 % of the time compute-bound (tensor), 40 % latency-bound (tail)",
        ),
        (
            _kernel((10, "latency", None, "ramp"), (90, "memory", "dram", "steady")),
            "90 % of the time memory-bound (DRAM), 10 % latency-bound (ramp-up)",
        ),
        (
            _kernel(
                (30, "memory", "dram", "steady"), (30, "compute", "alu", "steady"), (40, "memory", "dram", "steady")
            ),
            "70 % of the time memory-bound (DRAM), 30 % compute-bound (ALU)",
        ),
        (
            _kernel(*((20, "compute", limiter, "steady") for limiter in ("alu", "fp32", "xu", "tensor", "issue"))),
            "20 % of the time compute-bound (ALU), 20 % compute-bound (FP32), 20 % compute-bound (XU), 40 % others",
        ),
    ],
)
def test_shares_of_the_time_are_said_longest_first(kernel: dict[str, Any], said: str) -> None:
    assert limits_sentence(kernel) == said


def test_a_strip_is_a_block_per_part_of_the_time() -> None:
    kernel = _kernel((100, "compute", "tensor", "steady"), course=[0.0, 0.3, 0.6, 1.0, None])
    assert strip(kernel, 50) == "▁▃▅█ "
    assert strip(kernel, 2) == "▂▇"
    assert strip({}, 50) == ""


def test_the_card_of_a_kernel_has_a_line_of_blocks() -> None:
    report = sampled_report((Part(60, {"dram": 0.9}), Part(60, {"tensor": 0.9})))
    rows = dict(card(Reports((report,)).analyse()).rows)
    blocks, said = rows["over time"]
    assert set(blocks) == {"█"}
    assert said == "50 % of the time memory-bound (DRAM), 50 % compute-bound (tensor)"


def test_the_page_has_the_course_the_phases_and_what_to_know() -> None:
    texts = Texts()
    block = phase_block(_kernel((60, "compute", "tensor", "steady"), (40, "latency", "tail", "tail")), texts)
    assert block is not None
    first, last = block["parts"]
    assert (first["when"], first["limit"], first["units"]) == ("0 to 60 %", "compute-bound: tensor", "DRAM 50 %")
    assert (last["start"], last["length"], last["kind"]) == (0.6, 0.4, "tail")
    assert block["course"] == [0.5]
    notes = [note if isinstance(note, str) else texts.table()[note] for note in block["notes"]]
    assert notes[1:] == [
        "Not sampled, and inferred from the whole kernel's use and how active the SMs were: L2.",
        "50 samples, one every 2.00 ns, from 2 runs of the kernel. They differ.",
    ]


def test_a_kernel_without_series_has_no_block() -> None:
    assert phase_block({"duration_ns": 100.0}, Texts()) is None
