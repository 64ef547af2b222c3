"""What ncu prints as CSV gives the same tables as the report: units, numbers of any country, noise, labels, what is missing."""

from __future__ import annotations

import math
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from ncuroof.cli import main
from ncuroof.errors import ReaderDeclinedError, ReportEmptyError, ReportFormatError
from ncuroof.ingest import RawReport, open_report
from ncuroof.ingest.printed.tables import PUSHED, STARTED, function_name
from ncuroof.ingest.printed.values import load_printed_units
from ncuroof.metrics import selection
from ncuroof.metrics.measurements import scale
from ncuroof.reading import Reports, read
from tests.support import demo
from tests.support.ncu import find_ncu, print_page
from tests.support.printed import IDENTITY, Counters, line, long_table, wide_table

DURATION, SM, MEMORY = (
    "gpu__time_duration.sum",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
)
LONGEST_S = 5.0
"""For what takes a fraction of a second, on a busy machine."""

TIMED: Counters = {DURATION: ("usecond", "4.10")}


def _read(path: Path, text: str, encoding: str = "utf-8", **options: object) -> RawReport:
    path.write_bytes(text.encode(encoding))
    return open_report(path, **options)  # type: ignore[arg-type]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "printed.csv"


# ---- both forms --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [wide_table, long_table])
def test_launches_counters_and_texts_are_read(table: Path, form: object) -> None:
    launches = [{**TIMED, "launch__func_cache_config": ("", "CachePreferNone"), "sm__inst.sum": ("inst", "7")}, TIMED]
    report = _read(table, form(launches))  # type: ignore[operator]
    assert (
        report.workloads.select("function_name", "demangled_name", "workload").rows()
        == [("fn", "void ns::fn<int>(int, T1)", "kernel")] * 2
    )
    assert report.counters[DURATION].to_list() == pytest.approx([4100.0, 4100.0])
    assert report.units[DURATION] == "ns"
    assert report.counters["sm__inst.sum"].to_list() == [7.0, None]
    assert report.texts["launch__func_cache_config"].to_list() == ["CachePreferNone", None]
    assert report.processes.rows() == [(4242, "app")] * 2
    assert [report.counters[f"launch__grid_dim_{axis}"][0] for axis in "xyz"] == [10, 20, 1]
    assert report.counters["device__attribute_compute_capability_major"][0] == 9
    assert (report.damage, report.session.ncu_version, report.is_printed) == (None, None, True)


def test_only_selected_counters_are_kept(table: Path) -> None:
    launch = {**TIMED, "of__nobody.sum": ("", "1")}
    assert "of__nobody.sum" not in _read(table, wide_table([launch]), selection=selection()).counters.columns
    assert "of__nobody.sum" in _read(table, wide_table([launch])).counters.columns


def test_each_row_of_the_long_form_has_its_own_unit(table: Path) -> None:
    report = _read(table, long_table([{DURATION: ("msecond", "1.5")}, {DURATION: ("nsecond", "1500")}]))
    assert report.counters[DURATION].to_list() == [1.5e6, 1500.0]


def test_a_counter_in_units_that_do_not_fit_together_is_left_out(table: Path) -> None:
    report = _read(table, long_table([{"dram__bytes.sum": ("byte", "1")}, {"dram__bytes.sum": ("sector", "1")}]))
    assert report.units["dram__bytes.sum"] == "byte and sector"
    (dropped,) = Reports((report,)).analyse().measurements.dropped
    assert "dram__bytes.sum" in dropped


def test_launches_of_several_processes_and_tables_are_kept_apart(table: Path) -> None:
    other = {"Process ID": "99", "Process Name": "other"}
    text = long_table([TIMED]) + "".join(
        long_table([TIMED]).replace('"4242","app"', '"99","other"').splitlines(keepends=True)[1:]
    )
    assert _read(table, text).processes.rows() == [(4242, "app"), (99, "other")]
    text = wide_table([TIMED, TIMED], identity=[{}, other]) + wide_table([{"sm__inst.sum": ("inst", "3")}])
    report = _read(table, text)
    assert report.processes["process_id"].to_list() == [4242, 99, 4242]
    assert report.counters["sm__inst.sum"].to_list() == [None, None, 3.0]


def test_rules_and_sections_of_the_details_page_are_read(table: Path) -> None:
    report = _read(
        table, long_table([{"Duration": ("ns", "100")}], section="GPU Speed Of Light Throughput", rules=True)
    )
    assert report.sections == ("SpeedOfLight",)
    assert report.rules.rows() == [
        (0, "SOLBottleneck", "SpeedOfLight", "", "A text,\nof two lines", "optimization", 0.125, "local")
    ]


def test_old_tables_have_a_time_and_no_shape(table: Path) -> None:
    names = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream")
    cells = ("0", "1", "app", "h", "fn", "2020-Apr-07 17:01:05", "1", "7")
    columns = ("Section Name", "Metric Name", "Metric Unit", "Metric Value")
    text = line([*names, *columns]) + line([*cells, "GPU Speed Of Light", "SOL DRAM", "%", "39.60"])
    report = _read(table, text)
    assert report.counters["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"].to_list() == [39.6]
    assert "launch__grid_dim_x" not in report.counters.columns


# ---- labels ------------------------------------------------------------------------------------------


def test_the_same_label_is_a_different_counter_in_a_different_section(table: Path) -> None:
    text = long_table([{"Memory Throughput": ("%", "50.00")}], section="GPU Speed Of Light Throughput")
    text += long_table([{"Memory Throughput": ("Gbyte/second", "1.50")}], section="Memory Workload Analysis")
    counters = _read(table, text).counters
    assert counters[MEMORY].drop_nulls().to_list() == [50.0]
    assert counters["dram__bytes.sum.per_second"].drop_nulls().to_list() == [1.5e9]


def test_labels_with_names_are_read_by_the_name(table: Path) -> None:
    report = _read(table, long_table([{f"Duration ({DURATION})": ("ns", "100")}], section="Of One's Own"))
    assert report.counters[DURATION].to_list() == [100.0]


def test_a_table_of_unknown_labels_asks_for_the_raw_page(table: Path) -> None:
    with pytest.raises(ReportFormatError, match="'Speed', 'Size'") as raised:
        _read(table, long_table([{"Speed": ("", "1"), "Size": ("", "2")}], section="Mine"))
    assert "--page raw" in str(raised.value.hint)


def test_unknown_labels_beside_known_ones_are_remarked(table: Path) -> None:
    launch = {"Duration": ("ns", "100"), "Speed": ("", "1")}
    assert "Speed" in " ".join(_read(table, long_table([launch], section="GPU Speed Of Light Throughput")).remarks)


# ---- numbers and units -------------------------------------------------------------------------------

WRITTEN = [
    (["1,234,567.89", "12.50"], [1234567.89, 12.5]),
    (["1.234.567,89", "12,50"], [1234567.89, 12.5]),
    (["1 234 567,89", "12,50"], [1234567.89, 12.5]),
    (["1\u202f234\u00a0567,89", "-12,50"], [1234567.89, -12.5]),
    (["1'234'567.89", "12.50"], [1234567.89, 12.5]),
    (["1,234", "0.5"], [1234.0, 0.5]),
    (["117.344", "27.595.520"], [117344.0, 27595520.0]),  # ncu on a German Windows
    (["117.344", "65,77"], [117344.0, 65.77]),
    (["117.344", "65.77"], [117.344, 65.77]),
    (["117,344", "65.77"], [117344.0, 65.77]),
    (["0.125", "7"], [0.125, 7.0]),
    (["1e3", "1.5E-3"], [1000.0, 0.0015]),
    (["1024.000", "1"], [1024.0, 1.0]),
    (["16.896000", "139660074807808 (1; 2.5; 3)"], [16.896, 139660074807808.0]),
]


@pytest.mark.parametrize(("written", "expected"), WRITTEN)
def test_numbers_of_any_country_are_read(table: Path, written: list[str], expected: list[float]) -> None:
    report = _read(table, wide_table([{"a__b": ("", text)} for text in written]))
    assert report.counters["a__b"].to_list() == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    "written", [["1.5", "2,5"], ["27.595.520", "65.77"], ["1,234,567", "0,5"], ["1.234,5", "1,234.5"]]
)
def test_numbers_written_in_two_ways_are_refused(table: Path, written: list[str]) -> None:
    with pytest.raises(ReportFormatError, match="numbers are written in two notations"):
        _read(table, wide_table([{"a__b": ("", text)} for text in written]))


@pytest.mark.parametrize("nothing", ["", "n/a", "no data", "(!) n/a"])
def test_missing_cells_are_null(table: Path, nothing: str) -> None:
    report = _read(table, wide_table([{**TIMED, "a__b": ("", nothing)}, {**TIMED, "a__b": ("", "1")}]))
    assert report.counters["a__b"].to_list() == [None, 1.0]
    assert report.workloads["n_not_finite"].to_list() == [0, 0]
    assert report.texts.width == 0


@pytest.mark.parametrize("nan", ["nan", "-nan", "(!) nan", "inf", "-nan(ind)"])
def test_a_cell_that_is_not_a_number_counts_as_failed(table: Path, nan: str) -> None:
    report = _read(table, wide_table([{DURATION: ("ns", nan)}, {DURATION: ("ns", "1")}]))
    assert report.counters[DURATION].to_list() == [None, 1.0]
    assert report.workloads.select("n_collected", "n_not_finite").rows() == [(1, 1), (1, 0)]


@pytest.mark.parametrize(
    ("others", "has_failed"),
    [
        ({}, True),
        ({"dram__bytes.sum.peak_sustained": ("byte/cycle", "64"), "launch__registers_per_thread": ("", "32")}, True),
        ({"derived__memory_l1_wavefronts_shared_excessive": ("", "12")}, True),
        ({"smsp__inst_executed.sum": ("inst", "0")}, True),
        ({"smsp__inst_executed.sum": ("inst", "0"), "sm__inst_executed.sum": ("inst", "0")}, False),  # ratios of zeros
        ({"smsp__inst_executed.sum": ("inst", "5")}, False),
        ({"sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "5.00")}, False),
    ],
)
def test_a_launch_failed_if_no_counter_that_was_measured_is_a_number(
    table: Path, others: dict[str, tuple[str, str]], *, has_failed: bool
) -> None:
    nothing = {DURATION: ("ns", "nan"), "a__b.ratio": ("", "nan")}
    workloads = _read(table, wide_table([nothing | others])).workloads
    assert (workloads["n_collected"][0] == workloads["n_not_finite"][0]) == has_failed


CYCLES, ZERO_SHAPE = "gpc__cycles_elapsed.max", {"Grid Size": "(0, 0, 0)", "Block Size": "(0, 0, 0)"}


@pytest.mark.parametrize(
    ("counters", "shape", "has_failed"),
    [
        ({DURATION: ("ns", "0"), CYCLES: ("cycle", "0"), SM: ("%", "0")}, ZERO_SHAPE, True),
        ({DURATION: ("ns", "0"), SM: ("%", "12.5")}, {}, True),
        ({CYCLES: ("cycle", "0"), "dram__bytes.sum": ("byte", "0")}, {}, True),
        ({"dram__bytes.sum": ("byte", "0"), SM: ("%", "0")}, ZERO_SHAPE, True),
        ({DURATION: ("ns", "(!) nan"), SM: ("%", "0")}, ZERO_SHAPE, True),
        ({DURATION: ("second", "0.00"), CYCLES: ("cycle", "1,200")}, {}, False),  # rounded
        ({DURATION: ("ns", "900"), SM: ("%", "0")}, ZERO_SHAPE, False),
        ({"dram__bytes.sum": ("byte", "0"), SM: ("%", "0")}, {}, False),
    ],
)
def test_a_launch_without_time_or_blocks_has_failed(
    table: Path, counters: Counters, shape: dict[str, str], *, has_failed: bool
) -> None:
    good: Counters = {name: (unit, "2000") for name, (unit, _) in counters.items()}
    report = _read(table, wide_table([counters | {"launch__stream_id": ("", "7")}, good], identity=[shape, {}]))
    workloads = report.workloads
    assert (workloads["n_collected"][0] == workloads["n_not_finite"][0]) == has_failed
    assert workloads["n_not_finite"][1] == 0
    if has_failed:
        assert [report.counters[name][0] for name in counters] == [None] * len(counters)
        assert report.counters["launch__stream_id"][0] == 7  # known without measuring


def test_a_launch_that_printed_only_zeros_has_failed(table: Path) -> None:
    table.write_text(
        wide_table([{DURATION: ("ns", "0"), CYCLES: ("cycle", "0"), SM: ("%", "0")}], identity=[ZERO_SHAPE])
    )
    (kernel,) = read(table).analyse().to_dict()["kernels"]
    assert (kernel["failed"], kernel["duration_ns"], kernel["verdict"]) == (True, None, "unknown")


def test_a_rate_per_cycle_that_is_rounded_to_nothing_is_not_zero(table: Path) -> None:
    rate, share = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed", "a__b.pct"
    launch = {rate: ("inst/cycle", "0.00"), share: ("%", "0.00"), "other__zero": ("", "0")}
    counters = _read(table, wide_table([launch, {**launch, rate: ("inst/cycle", "0")}])).counters
    assert counters[rate].to_list() == [None, 0.0]
    assert counters[share].to_list() == [0.0, 0.0]
    del launch["other__zero"]  # as with --print-fp, where zero itself is printed as 0.00
    assert _read(table, wide_table([launch])).counters[rate].to_list() == [0.0]


UNITS = {
    "": ("", 1.0), "%": ("%", 1.0), "ns": ("ns", 1.0), "nsecond": ("ns", 1.0), "us": ("ns", 1e3), "usecond": ("ns", 1e3),
    "µs": ("ns", 1e3), "msecond": ("ns", 1e6), "second": ("ns", 1e9), "Kbyte": ("byte", 1e3), "Tbyte": ("byte", 1e12),
    "Gbyte/second": ("byte/s", 1e9), "Kbyte/cycle": ("byte/cycle", 1e3), "Mbyte/block": ("byte/block", 1e6),
    "cycle/nsecond": ("hz", 1e9), "cycle/usecond": ("hz", 1e6), "Ghz": ("hz", 1e9), "hz": ("hz", 1.0), "1/ns": ("1/s", 1e9),
    "/nsecond": ("1/s", 1e9), "/cycle": ("", 1.0), "sector/usecond": ("sector/s", 1e6), "inst/cycle": ("inst/cycle", 1.0),
    "%/Kbyte": ("%/byte", 1e-3), "%/": ("%", 1.0), "sector/request": ("sector/request", 1.0),
}  # fmt: skip


@pytest.mark.parametrize("printed", UNITS)
def test_printed_units_become_those_of_a_report(printed: str) -> None:
    unit, factor = load_printed_units().stored(printed)
    assert (unit, factor) == (UNITS[printed][0], pytest.approx(UNITS[printed][1]))
    assert scale(unit, metric="") > 0


def test_a_table_without_units_is_refused(table: Path) -> None:
    # As after `grep '^"[0-9I]'`: 4.10 µs would be read as 4.10 ns.
    header, _, row = wide_table([TIMED]).splitlines(keepends=True)
    for text in (header + row, long_table([TIMED]).replace("Metric Unit", "Something")):
        with pytest.raises(ReportFormatError, match="expected a table with the units of its counters"):
            _read(table, text)


def test_units_hold_until_the_next_ones(table: Path) -> None:
    first, second = (wide_table([{DURATION: (unit, "4.00")}]) for unit in ("usecond", "msecond"))
    text = first + "".join(second.splitlines(keepends=True)[1:])
    assert _read(table, text).counters[DURATION].to_list() == [4000.0, 4e6]


def test_a_text_of_digits_is_not_a_number(table: Path) -> None:
    report = _read(table, wide_table([{"a__b": ("", "1.234,5"), "version__": ("", "1.2.3")}]))
    assert report.counters["a__b"].to_list() == [1234.5]


def test_a_unit_that_is_not_known_is_not_guessed(table: Path) -> None:
    report = _read(table, wide_table([{DURATION: ("fortnight", "1")}]))
    analysis = Reports((report,)).analyse()
    assert analysis.kernels["duration_ns"].to_list() == [None]
    assert "fortnight" in analysis.measurements.dropped[0]


# ---- names and ranges --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("Kernel", "Kernel"),
        ("_ZN7cutlass6KernelIiEEvT_", "_ZN7cutlass6KernelIiEEvT_"),
        ("void at::native::<unnamed>::f<float, lambda(int)::operator()(int) const::B>(A<(int)4>, C) const", "f"),
        ("ns::(anonymous namespace)::copy(float *, void (*)(int))", "copy"),
        ("void f<&ns::g>(int) [clone .part]", "f"),
        ("fn()", "fn"),
        ("", ""),
        (")", ")"),
        ("<>", "<>"),
    ],
)
def test_the_function_name_is_taken_from_the_demangled_name(printed: str, name: str) -> None:
    assert function_name(printed) == name


def test_open_ranges_are_read_outermost_first(table: Path) -> None:
    def ranges(*names: str) -> str:
        return "4242 " + "".join(f' "<default domain>:{name}:none:none:none:none:none:none" ' for name in names)

    identity = {PUSHED: ranges("step", "a:b", 'q"x'), STARTED: ranges("all")}
    own = {
        name: identity.get(name, IDENTITY.get(name, ""))
        for name in [*[*IDENTITY][:4], PUSHED, STARTED, *[*IDENTITY][4:]]
    }
    report = _read(table, wide_table([TIMED], identity=[own]))
    assert report.workloads["nvtx"].to_list() == [["step", "a:b", 'q"x', "all"]]


# ---- files that hold more, or less, than a table -----------------------------------------------------

NOISE = "==PROF== Connected to process 4242 (app)\n"


def test_unrelated_output_is_ignored(table: Path) -> None:
    header, units, *rows = wide_table([TIMED] * 3).splitlines(keepends=True)
    text = (
        NOISE
        + "it's 5\", or\n1,2,3\n"
        + header
        + NOISE
        + units
        + rows[0]
        + 'a "quote\n'
        + NOISE
        + rows[1]
        + "\n"
        + rows[2]
    )
    report = _read(table, text + "==PROF== Disconnected\ndone\n")
    assert (report.workloads.height, report.damage) == (3, None)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-8"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_any_shell_may_have_written_the_file(table: Path, encoding: str, end: str) -> None:
    report = _read(table, wide_table([TIMED]).replace("\n", end), encoding)
    assert report.counters[DURATION].to_list() == [4100.0]


def test_a_spreadsheet_may_have_written_the_file(table: Path) -> None:
    text = wide_table([{DURATION: ("usecond", "4,10")}]).replace('","', ";").replace('"', "")
    assert _read(table, text).counters[DURATION].to_list() == pytest.approx([4100.0])


def test_truncated_rows_are_remarked(table: Path) -> None:
    whole = wide_table([TIMED] * 3)
    for n_bytes in range(whole.rindex('"2"') + 10, len(whole) - 2, 7):
        report = _read(table, whole[:n_bytes])
        assert report.workloads.height == 2
        assert "1 of its rows" in str(report.damage)


def _n_read(table: Path, text: str) -> int:
    try:
        return _read(table, text).workloads.height
    except (ReportFormatError, ReportEmptyError):
        return 0


@pytest.mark.long
def test_a_table_cut_anywhere_is_a_named_error_or_what_is_whole(table: Path) -> None:
    for text in (wide_table([TIMED] * 2), long_table([TIMED] * 2, rules=True)):
        found = [_n_read(table, text[:n_bytes]) for n_bytes in range(1, len(text), 5)]
        assert found == sorted(found)
        assert set(found) == {0, 1, 2}


def test_other_texts_are_refused_by_name(table: Path) -> None:
    with pytest.raises(ReportFormatError, match="found another text file"):
        _read(table, "hello\n")
    with pytest.raises(ReportEmptyError, match="contains no profiled kernel"):
        _read(table, wide_table([]))
    with pytest.raises(ReportFormatError, match="no row of ncu's table is whole, 1 are truncated"):
        _read(table, wide_table([TIMED])[:-9])
    with pytest.raises(ReportFormatError, match="a line of more than"):
        _read(table, "x" * (1 << 23))


def test_nvidias_module_is_not_asked(table: Path) -> None:
    with pytest.raises(ReaderDeclinedError, match="not tables printed by ncu"):
        _read(table, wide_table([TIMED]), reader="nvidia")


def test_any_columns_are_read_or_refused_by_name(table: Path) -> None:
    # Found by fuzzing: a launch without any counter, a name that is there twice, columns in another order.
    assert _read(table, wide_table([{}]), selection=selection()).workloads.height == 1
    header, *rows = long_table([TIMED], rules=True).splitlines(keepends=True)
    moved = header.replace('"Metric Name"', '"Name"').replace("Estimated Speedup Type", "Metric Name")
    with pytest.raises(ReportFormatError, match="no row of ncu's table is whole"):
        _read(table, moved + rows[0])
    doubled = wide_table([{**TIMED, "x": ("", "9")}]).replace('"x"', f'"{DURATION}"')
    assert _read(table, doubled).counters[DURATION].to_list() == [4100.0]


@pytest.mark.parametrize(
    "identity",
    [
        {"Process ID": "9" * 5000},
        {"Block Size": f"({'9' * 5000}, 1, 1)", "Device": "9" * 400, "CC": "9" * 30 + ".0"},
        {"Kernel Name": ")" * 50_000 + "<" * 50_000},
        {"Kernel Name": "fn", PUSHED: '"a:' * 40_000},
    ],
)
def test_absurd_cells_are_not_values_and_take_no_time(table: Path, identity: dict[str, str]) -> None:
    own = IDENTITY | identity
    start = time.process_time()
    report = _read(table, wide_table([TIMED], identity=[own]))
    assert time.process_time() - start < LONGEST_S
    assert report.workloads.height == 1
    assert all(math.isfinite(value) for column in report.counters for value in column.drop_nulls())


@pytest.mark.long
def test_a_quote_that_is_never_closed_loses_one_row_in_linear_time(table: Path) -> None:
    header, units, row, *_ = wide_table([TIMED]).splitlines(keepends=True)
    start = time.process_time()
    report = _read(table, header + units + '"0","open\n' + "x\n" * 500_000 + row)
    assert time.process_time() - start < LONGEST_S
    assert (report.workloads.height, report.damage) == (1, "1 of its rows are truncated or malformed and lost")


def test_rows_of_a_table_within_are_not_lost(table: Path) -> None:
    # as --print-details all prints the section NUMA Affinity; a cut row of our own is lost still
    header, units, row, *_ = wide_table([TIMED, TIMED]).splitlines(keepends=True)
    within = '"GPU ID","GPU Name","NUMA ID by CPU Affinity","CPU Affinity"\n"0","Tesla T4","0","0-1"\n"1","Tesla T4","0","0-1"\n'
    report = _read(table, header + units + row + within + row.replace('"0"', '"1"', 1))
    assert (report.workloads.height, report.damage) == (2, None)
    cut = _read(table, header + units + row + within + row + '"0","1","2","3"\n')
    assert cut.damage == "1 of its rows are truncated or malformed and lost"


# ---- the whole way -----------------------------------------------------------------------------------


@pytest.mark.long
def test_a_table_is_analysed_with_a_caveat(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table.write_text(
        wide_table([{DURATION: ("usecond", "100.00"), SM: ("%", "20.00"), MEMORY: ("%", "90.00")}]), encoding="utf-8"
    )
    kernels = read(table).analyse().kernels
    assert kernels["verdict"].to_list() == ["memory"]
    assert "printed_table" in kernels["caveats"][0]
    main(["report", str(table), "-o", "-"])
    assert "fn" in capsys.readouterr().out


def test_the_busiest_counter_is_named_as_in_a_report(table: Path) -> None:
    members = ("dram__cycles_active", "lts__t_sectors", "l1tex__data_bank_reads")
    busy = {f"{name}.avg.pct_of_peak_sustained_elapsed": ("%", f"{80 + place}") for place, name in enumerate(members)}
    launch = {DURATION: ("usecond", "100.00"), SM: ("%", "20.00"), MEMORY: ("%", "82.00")}
    table.write_text(wide_table([{**launch, **busy}]), encoding="utf-8")
    assert read(table).analyse().kernels["limiter"].to_list() == ["l1"]


# ---- against the report ------------------------------------------------------------------------------

EVERY = 12
"""Each twelfth report of the corpus is printed and compared here; all of them take minutes."""

ROUNDED = 0.00501
"""Half of the last decimal that is printed, and the rounding of numbers that lie in the middle."""

LEAST_PRINTED_SHARE = 0.1
"""In percent: rounded shares below it are not known."""

BY_ORDER = ("pointwise_chain", "unfused_pointwise")
"""Findings about a launch and its neighbours: a printed table does not say whether it has all launches."""

BY_CODE = [
    "alike_blocks",
    "alike_threads",
    "async_copies_awaited_at_once",
    "atomic_results",
    "debug_build",
    "fp64_divisions",
    "inlined_generator_setup",
    "local_memory",  # except of debug builds
    "local_memory_by_code",
    "nothing_multiplied",
    "serial_loads",
    "stall_long_scoreboard",
    "stall_overlapping_loads",
    "unread_shared_stores",
]
"""Findings for which a kernel's machine code is asked, which is not printed."""

JUDGED = ("name", "short_name", "workload", "nvtx", "verdict", "limiter", "confidence")


def _compare(report: RawReport, printed: RawReport) -> Counter[str]:
    """Require that a printed table holds the numbers of its report as far as they are printed, and leads to the same verdicts."""
    counted: Counter[str] = Counter()
    for name in set(report.counters.columns) & set(printed.counters.columns):
        theirs, ours = (scale(each.units[name], metric=name) for each in (report, printed))
        for stored, read_back in zip(report.counters[name], printed.counters[name], strict=True):
            if stored is not None and read_back is not None:
                assert math.isclose(stored * theirs, read_back * ours, rel_tol=1e-6, abs_tol=ROUNDED * ours), name
                counted["values"] += 1
            elif stored is not None:
                # Of a share this small two printed digits are left at most: what is computed from it would be no number.
                assert abs(stored) <= (LEAST_PRINTED_SHARE if ".pct" in name else ROUNDED), name
    mine, reference = (Reports((each,)).analyse() for each in (printed, report))
    assert mine.kernels.select(JUDGED).equals(reference.kernels.select(JUDGED))
    ours_found, wanted = (
        each.findings.filter(~pl.col("finding").is_in((*BY_CODE, *BY_ORDER)))
        .select("id", "finding")
        .sort("id", "finding")
        for each in (mine, reference)
    )
    assert ours_found.equals(wanted)
    counted["launches"] = mine.kernels.height
    return counted


@pytest.mark.oracle
def test_the_printed_step_is_analysed_as_the_report(table: Path) -> None:
    ncu = find_ncu()
    if ncu is None:
        pytest.skip("no ncu command-line tool here")
    report = open_report(demo.REPORT, selection=selection())
    table.write_bytes(print_page(ncu, demo.REPORT, "--page", "raw", "--print-units", "base"))
    assert _compare(report, open_report(table, selection=selection()))["values"] > 5_000


@pytest.mark.oracle
@pytest.mark.corpus
def test_printed_reports_of_the_corpus_are_analysed_as_the_reports(table: Path, corpus: list[Path]) -> None:
    ncu = find_ncu()
    if ncu is None:
        pytest.skip("no ncu command-line tool here")
    counted: Counter[str] = Counter()
    for path in corpus[::EVERY]:
        report = open_report(path, selection=selection())
        table.write_bytes(print_page(ncu, path, "--page", "raw", "--print-units", "base"))
        counted += _compare(report, open_report(table, selection=selection()))
    print(f"compared: {dict(counted)}")
    assert counted["values"] > 3_000


@pytest.mark.oracle
@pytest.mark.corpus
def test_details_of_the_corpus_hold_the_numbers_of_the_reports(table: Path, corpus: list[Path]) -> None:
    """The details page holds some of the counters, under labels."""
    ncu = find_ncu()
    if ncu is None:
        pytest.skip("no ncu command-line tool here")
    n_values = 0
    for path in corpus[:: EVERY * 2]:
        table.write_bytes(print_page(ncu, path, "--page", "details", "--print-units", "auto"))
        report, printed = (open_report(each, selection=selection()) for each in (path, table))
        assert printed.workloads["demangled_name"].equals(report.workloads["demangled_name"])
        for name in (name for name in printed.counters.columns if "__" in name and not name.startswith("launch__")):
            theirs, ours = (scale(each.units.get(name, ""), metric=name) for each in (report, printed))
            pairs = pl.DataFrame({"stored": report.counters[name] * theirs, "printed": printed.counters[name] * ours})
            for stored, read_back in pairs.drop_nulls().iter_rows():
                assert math.isclose(stored, read_back, rel_tol=6e-3, abs_tol=ROUNDED * ours), name
                n_values += 1
    assert n_values > 200
