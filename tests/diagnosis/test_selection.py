"""Part of a run by the names of kernels and NVTX ranges: sums are its own, verdicts those of the whole run. Numbers by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import ncuroof
from ncuroof.analysis import Analysis
from ncuroof.diagnosis import select
from ncuroof.errors import SelectionError
from ncuroof.reading import Reports
from ncuroof.sidecars.counts import Counts, KernelCount
from tests.support import demo
from tests.support.constructed import Described
from tests.support.constructed_counters import kernel
from tests.support.raw import raw_report
from tests.support.report_writer import write_report

KERNELS = pl.DataFrame(
    {
        "id": [0, 1, 2, 3],
        "name": ["void a::sgemm<4>(int)", "void a::copy<sgemm_tag>(int)", "softmax()", None],
        "nvtx": [["step", "forward", "mlp"], ["step", "forward"], ["step", "backward", None], []],
    },
    schema={"id": pl.UInt32, "name": pl.String, "nvtx": pl.List(pl.String)},
)


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, [0, 1, 2, 3]),
        ({"kernel": "sgemm"}, [0, 1]),  # also as an argument of a template
        ({"kernel": "^sgemm$"}, [0]),  # the function's name
        ({"kernel": "a::copy<"}, [1]),
        ({"kernel": "SOFT"}, None),
        ({"kernel": "(?i)SOFT"}, [2]),
        ({"nvtx": "forward"}, [0, 1]),
        ({"nvtx": "^step/forward$"}, [1]),
        ({"nvtx": "backward/$"}, [2]),  # within a range without a name
        ({"kernel": "sgemm", "nvtx": "mlp"}, [0]),
        ({"kernel": "softmax", "nvtx": "mlp"}, None),
        ({"nvtx": "step", "skip": 1}, [1, 2]),
        ({"nvtx": "step", "skip": 1, "count": 1}, [1]),
        ({"count": 9}, [0, 1, 2, 3]),
        ({"skip": 4}, None),
    ],
)
def test_launches_by_name(filters: dict[str, object], ids: list[int] | None) -> None:
    if ids is None:
        with pytest.raises(SelectionError):
            select(KERNELS, **filters)  # type: ignore[arg-type]
        return
    assert select(KERNELS, **filters).to_list() == ids  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("filters", "message", "hint"),
    [
        ({"kernel": "gemv"}, "no kernel matches 'gemv'", "there are sgemm, copy, softmax"),
        ({"nvtx": "epoch"}, "no NVTX range matches 'epoch'", "there are step"),
        ({"kernel": "softmax", "nvtx": "mlp"}, "no NVTX range matches 'mlp'", "there are step"),
        ({"kernel": "("}, "expected a regular expression for the kernel, found '('", "quote it"),
        ({"nvtx": "forward", "skip": 2}, "after the first 2 that match, found 2 in all", "skip fewer"),
        ({"skip": -1}, "found -1 and None", "leave the numbers out"),
        ({"count": 0}, "found 0 and 0", "leave the numbers out"),
    ],
)
def test_what_no_launch_passes_is_refused_with_what_there_is(
    filters: dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(SelectionError) as raised:
        select(KERNELS, **filters)  # type: ignore[arg-type]
    assert message in str(raised.value)
    assert hint in raised.value.hint


def test_a_report_without_ranges_says_how_to_have_them() -> None:
    with pytest.raises(SelectionError) as raised:
        select(KERNELS.with_columns(nvtx=pl.lit([], pl.List(pl.String))), nvtx="forward")
    assert raised.value.hint == "the report has none: profile with --nvtx"


def launch(duration_ns: float, memory: float) -> dict[str, float]:
    pct = ".avg.pct_of_peak_sustained_elapsed"
    return {
        "gpu__time_duration.sum": duration_ns,
        f"gpu__compute_memory_throughput{pct}": memory,
        f"sm__throughput{pct}": 10.0,
        f"gpu__dram_throughput{pct}": memory,
        f"sm__pipe_alu_cycles_active{pct}": 10.0,
        **{f"launch__{what}_dim_{axis}": 8.0 for what in ("grid", "block") for axis in "xyz"},
    }


def analysed(counts: Counts | None = None) -> Analysis:
    raw = raw_report(launch(1000, 90), launch(3000, 10), launch(4000, 90), names=["copy", "chase", "fill"])
    return Reports((raw,), counts=(counts,)).analyse()


def test_sums_are_those_of_the_selection_and_ids_those_of_the_report() -> None:
    part = analysed().select(kernel="chase|fill")
    assert part.summary.n_kernels == 2
    assert part.summary.duration_ns == 7000
    assert {name: share.share_frac for name, share in part.summary.by_verdict.items()} == {
        "memory": 4 / 7,
        "latency": 3 / 7,
    }
    assert part.kernels["id"].to_list() == [1, 2]
    assert [entry["id"] for entry in part.to_dict()["kernels"]] == [1, 2]
    assert part.selection is not None
    assert (part.selection.of_n_kernels, part.selection.duration_frac) == (3, 7 / 8)


def test_a_selection_of_a_selection_is_a_part_of_that() -> None:
    part = analysed().select(kernel="chase|fill").select(kernel="fill")
    assert part.kernels["id"].to_list() == [2]
    assert part.selection is not None
    assert (part.selection.of_n_kernels, part.selection.duration_frac) == (2, 4 / 7)


def test_counted_launches_keep_their_weights_and_the_rest_of_the_run_is_left_out() -> None:
    shape = ((8, 8, 8), (8, 8, 8))
    counts = Counts((KernelCount("copy", *shape, 10, 20_000.0), KernelCount("left out", *shape, 5, 5_000.0)))
    whole = analysed(counts)
    assert whole.weighting is not None
    assert (whole.weighting.covered_frac, whole.weighting.n_unmatched) == (0.8, 2)
    # copy: 10 launches in 20 µs, recorded once in 1 µs; fill was not counted, and stands for itself
    part = whole.select(kernel="copy|fill")
    assert part.weighting is not None
    assert part.weights["weight"].to_list() == [20, 1]
    assert part.summary.duration_ns == 24_000
    assert (part.weighting.n_launches, part.weighting.duration_ns) == (10, 20_000)
    assert (part.weighting.n_unmatched, part.weighting.uncounted_frac) == (1, 4 / 24)
    assert (part.weighting.covered_frac, part.weighting.not_recorded) == (None, ())
    assert part.selection is not None
    assert part.selection.duration_frac == 24_000 / 27_000
    assert whole.select(kernel="chase").weighting is None


@pytest.mark.long
def test_a_launch_is_judged_by_its_neighbours_in_the_whole_run() -> None:
    whole = ncuroof.read(Path(__file__).parents[2] / "fixtures/h100-80gb-hbm3/cos_cos_eager.full.ncu-repz").analyse()
    second = whole.select(skip=1, count=1)
    assert second.kernels.height == 1
    assert second.findings.equals(whole.findings.filter(pl.col("id") == second.kernels["id"][0]))
    assert "pointwise_chain" in second.findings["finding"]


@pytest.mark.long
def test_an_operator_is_judged_by_all_of_its_kernels_or_not_at_all(tmp_path: Path) -> None:
    mm = ("aten::mm, seq = 3, op_id = 5, sizes = [[100, 64], [64, 200]]",)
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(
        write_report(
            [
                kernel(Described(name, 20_000, nvtx=mm, warp_instructions=1e6))
                for name in ("ampere_bf16_s16816gemm_bf16_128x256", "reduce")
            ]
        )
    )
    whole = ncuroof.read(path).analyse()
    assert whole.expected.calls["ids"].to_list() == [[0, 1]]
    assert whole.select(nvtx="aten::mm").expected.calls["ids"].to_list() == [[0, 1]]
    assert whole.select(kernel="gemm").expected.calls.is_empty()
    assert whole.select(nvtx="aten::mm").expected.utilisation is None


@pytest.mark.long
def test_a_selection_can_be_compared_and_projected_and_drawn() -> None:
    part = ncuroof.read(demo.REPORT).analyse().select(count=5)
    assert ncuroof.compare(part, part).after.n_kernels == 5
    assert part.whatif("b200")["id"].to_list() == part.kernels["id"].to_list()
    assert "5 kernels" in repr(part)
