"""Counters that ncu did not know are named, with those that were probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncuroof.cli import main
from ncuroof.errors import ReportEmptyError
from ncuroof.ingest import open_report
from ncuroof.metrics.measurements import selection
from tests.support.console import log, section
from tests.support.printed import long_table, wide_table
from tests.support.printed_logs import counter_values

WRONG_UNDERSCORES = [
    ("dram_bytes_read.sum", "dram__bytes_read.sum"),
    ("gpu_time_duration.sum", "gpu__time_duration.sum"),
    ("gpu___time_duration.sum", "gpu__time_duration.sum"),
]
SIMILAR = [
    ("lts__t_sector_srcunit_tex.sum", "lts__t_sectors_srcunit_tex.sum"),
    ("smsp__inst_execute.sum", "smsp__inst_executed.sum"),
    ("l1tex__t_sectors_pipe_lsu_mem_globl_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
]
NOTHING, KNOWN = ("", "(!) n/a"), "sm__throughput.avg.pct_of_peak_sustained_elapsed"


def _write(folder: Path, form: str, counters: dict[str, tuple[str, str]]) -> Path:
    path = folder / "ncu.txt"
    rows = [(name, unit, value) for name, (unit, value) in counters.items()]
    forms = {
        "log": log(section("Command line profiler metrics", rows)),
        "raw": wide_table([counters]),
        "csv": long_table([counters]),
    }
    path.write_text(forms[form])
    return path


@pytest.mark.parametrize("form", ["log", "raw", "csv"])
@pytest.mark.parametrize(("asked", "meant"), WRONG_UNDERSCORES)
def test_wrong_underscores_prove_that_a_counter_does_not_exist(
    tmp_path: Path, form: str, asked: str, meant: str
) -> None:
    with pytest.raises(ReportEmptyError) as caught:
        open_report(_write(tmp_path, form, {asked: NOTHING}), selection=selection())
    assert f"{asked} does not exist: {meant} does" in str(caught.value)
    assert "--query-metrics" in (caught.value.hint or "")


@pytest.mark.parametrize(("asked", "like"), SIMILAR)
def test_a_similar_counter_is_proposed(tmp_path: Path, asked: str, like: str) -> None:
    with pytest.raises(ReportEmptyError, match="is misspelt, or not on this GPU") as caught:
        open_report(_write(tmp_path, "log", {asked: NOTHING}), selection=selection())
    assert f"{asked} is misspelt, or not on this GPU (a similar one: {like})" in str(caught.value)


@pytest.mark.parametrize(
    "asked",
    [
        "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum",
        "lts__t_sectors_srcunit_ltcfabric.sum",
        "sm__inst_executed_pipe_tensor_op_imma.sum",
        "sm__ctas_active.avg",
    ],
)
def test_a_counter_of_nvidia_that_ncuroof_does_not_read_is_not_said_to_be_missing(tmp_path: Path, asked: str) -> None:
    """ncu 2024.1.1 lists these for gh100 (`--query-metrics`)."""
    with pytest.raises(ReportEmptyError) as caught:
        open_report(_write(tmp_path, "log", {asked: NOTHING}), selection=selection())
    assert "does not exist" not in str(caught.value)


def test_an_unknown_name_with_one_underscore_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(ReportEmptyError, match=r"as in lts__qqqq\.sum"):
        open_report(_write(tmp_path, "log", {"lts_qqqq.sum": NOTHING}), selection=selection())


@pytest.mark.parametrize("form", ["log", "raw", "csv"])
def test_beside_other_counters_it_is_a_warning(tmp_path: Path, form: str) -> None:
    report = open_report(
        _write(tmp_path, form, {KNOWN: ("%", "41.50"), "dram_bytes.sum": NOTHING}), selection=selection()
    )
    assert counter_values(report, KNOWN) == [[41.5]]
    assert report.warnings == (
        "ncu has no value of counters that it was asked for: dram_bytes.sum does not exist: dram__bytes.sum does",
    )


def test_a_counter_that_the_gpu_lacks_is_not_misspelt(tmp_path: Path) -> None:
    with pytest.raises(ReportEmptyError, match=r"dram__bytes\.sum exists, but not on this GPU"):
        open_report(_write(tmp_path, "log", {"dram__bytes.sum": NOTHING}), selection=selection())


def test_many_are_counted(tmp_path: Path) -> None:
    names = {f"nothing__like_{number}.sum": NOTHING for number in "abcdef"}
    with pytest.raises(ReportEmptyError, match="is misspelt, or not on this GPU; 2 more have no value either"):
        open_report(_write(tmp_path, "log", names), selection=selection())


def test_it_is_one_line_and_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["report", str(_write(tmp_path, "log", {"sm_cycles_elapsed.avg": NOTHING})), "-o", "-"])
    assert "sm_cycles_elapsed.avg does not exist: sm__cycles_elapsed.avg does" in capsys.readouterr().err
