"""What the report writer writes, NVIDIA's readers read: the module here, the CLI where it is installed."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ncu_report
import pytest

from ncuroof.ingest import wire
from ncuroof.ingest.framing import entries, walk
from tests.support.patience import PATIENCE_S
from tests.support.report_writer import (
    METRICS_BY_CHIP,
    Device,
    Float32,
    FocusMetric,
    Instances,
    Kernel,
    Metric,
    PerCycle,
    RooflineChart,
    RooflinePair,
    Rule,
    Section,
    Session,
    Uint32,
    write_report,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

CHART = RooflineChart(
    "Roofline",
    roofs=(RooflinePair(PerCycle(("peak.a", "peak.b"), "clock"), "dram.peak", "DRAM Roofline"),),
    points=(RooflinePair(2.5, PerCycle(("dram.per_cycle",), "dram.clock"), "DRAM"),),
)
RULES = (
    Rule(
        "SOLBottleneck",
        "Bottleneck",
        "SpeedOfLight",
        "High Throughput",
        "Nothing is left to gain.",
        speedup=("global", 12.5),
        focus_metrics=(FocusMetric("dram__bytes.sum", 64.0, "high", "info"), FocusMetric("zero", 0.0)),
    ),
    Rule("Occupancy", "Occupancy", "Occupancy", "Limited", "Registers limit it.", "warning"),
)
SAXPY = Kernel(
    "saxpy",
    {
        **METRICS_BY_CHIP["GA100"],
        "gpu__time_duration.sum": 4096.0,
        "dram__bytes.sum": 0.0,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 12.5,
        "launch__grid_size": 0,
        "launch__large": 2**63,
        "narrow": Uint32(7),
        "single": Float32(1.5),
        "device__attribute_display_name": "NVIDIA Test GPU µ",
        "inst_executed": Instances((1, 2, 0), (16, 32, 48), total=3),
        "series": Instances((1.0, 2.5)),
    },
    mangled="_Z5saxpyifPf",
    demangled="saxpy(int, float, float *)",
    grid=(4, 2, 1),
    block=(256, 1, 1),
    stream=13,
    context=2,
    nvtx=("outer", "inner"),
    sections=(Section("SpeedOfLight_RooflineChart", "Roofline", charts=(CHART,)), "SpeedOfLight"),
    rules=RULES,
)
OTHER_PROCESS = Kernel("scale", {"dram__bytes.sum": 3.0, "new": 1}, process_id=5, nvtx=("step",), nvtx_domain="model")
RANGE = Kernel("", {"gpu__time_duration.sum": 5.0}, kind="range", sections=("Occupancy",), nvtx=("r",))
GRAPH = Kernel("", {"gpu__time_duration.sum": 6.0}, kind="graph")
COMMAND_LIST = Kernel("optixAccelBuild", {"gpu__time_duration.sum": 7.0}, kind="cmdlist", rules=RULES[1:])
WORKLOADS = (SAXPY, OTHER_PROCESS, RANGE, GRAPH, COMMAND_LIST)
SESSION = Session(
    ncu_version="2024.1.1",
    processes=((4242, "/opt/test/program"), (5, "C:\\test\\other.exe")),
    devices=(Device(0, "NVIDIA Test GPU", {"device__attribute_multiprocessor_count": 108}),),
)


@pytest.fixture(params=[1, 5], ids=["a block each", "one block"])
def actions(request: pytest.FixtureRequest, tmp_path: Path) -> list[Any]:
    path = tmp_path / "written.ncu-rep"
    path.write_bytes(write_report(WORKLOADS, SESSION, kernels_per_block=request.param))
    context = ncu_report.load_report(str(path))
    assert context.num_ranges() == 1
    whole = context.range_by_idx(0)
    return [whole.action_by_idx(index) for index in range(whole.num_actions())]


def test_ncu_report_reads_the_workloads_in_order(actions: list[Any]) -> None:
    found = [(action.name(), action.workload_type()) for action in actions]
    kind = ncu_report.IAction
    assert found == [
        ("saxpy", kind.WorkloadType_KERNEL),
        ("scale", kind.WorkloadType_KERNEL),
        ("range", kind.WorkloadType_RANGE),
        ("graph", kind.WorkloadType_GRAPH),
        ("optixAccelBuild", kind.WorkloadType_CMDLIST),
    ]


def test_ncu_report_reads_the_three_names_of_a_kernel(actions: list[Any]) -> None:
    action = actions[0]
    assert action.name(action.NameBase_FUNCTION) == "saxpy"
    assert action.name(action.NameBase_MANGLED) == "_Z5saxpyifPf"
    assert action.name(action.NameBase_DEMANGLED) == "saxpy(int, float, float *)"


def test_ncu_report_reads_every_metric_of_every_workload(actions: list[Any]) -> None:
    for action, workload in zip(actions, WORKLOADS, strict=True):
        assert sorted(action.metric_names()) == sorted(workload.metrics)


def test_ncu_report_reads_the_written_values_and_kinds(actions: list[Any]) -> None:
    action = actions[0]
    kinds = ncu_report.IMetric
    wanted = {
        "gpu__time_duration.sum": (4096.0, kinds.ValueKind_DOUBLE),
        "dram__bytes.sum": (0.0, kinds.ValueKind_DOUBLE),
        "launch__grid_size": (0, kinds.ValueKind_UINT64),
        "launch__large": (2**63, kinds.ValueKind_UINT64),
        "narrow": (7, kinds.ValueKind_UINT32),
        "single": (1.5, kinds.ValueKind_FLOAT),
        "device__attribute_display_name": ("NVIDIA Test GPU µ", kinds.ValueKind_STRING),
    }
    assert {name: (action[name].value(), action[name].kind()) for name in wanted} == wanted
    assert all(action[name].has_value() for name in wanted)


def test_ncu_report_reads_instances_and_their_correlation_ids(actions: list[Any]) -> None:
    metric = actions[0]["inst_executed"]
    addresses = metric.correlation_ids()
    assert metric.value() == 3
    assert [metric.value(index) for index in range(metric.num_instances())] == [1, 2, 0]
    assert [addresses.value(index) for index in range(addresses.num_instances())] == [16, 32, 48]


def test_ncu_report_reads_instances_without_a_total(actions: list[Any]) -> None:
    metric = actions[0]["series"]
    assert not metric.has_value()
    assert not metric.has_correlation_ids()
    assert [metric.value(index) for index in range(metric.num_instances())] == [1.0, 2.5]


def test_ncu_report_knows_the_units_of_a_known_chip_only(actions: list[Any]) -> None:
    known, unknown = (action["gpu__time_duration.sum"].unit() for action in (actions[0], actions[2]))
    # Which unit of time the module names depends on what the process read before: after a damaged report, seconds.
    assert known in ("ns", "s")
    assert unknown == ""


def test_ncu_report_knows_every_chip_of_the_writer(tmp_path: Path) -> None:
    duration = {"gpu__time_duration.sum": 1.0}
    path = tmp_path / "chips.ncu-rep"
    path.write_bytes(write_report([Kernel(chip, {**METRICS_BY_CHIP[chip], **duration}) for chip in METRICS_BY_CHIP]))
    context = ncu_report.load_report(str(path))
    actions = (context.range_by_idx(0).action_by_idx(index) for index in range(len(METRICS_BY_CHIP)))
    units = {action.name(): action["gpu__time_duration.sum"].unit() for action in actions}
    # A chip that the module does not know has no units. Which unit of time it names depends on what the process read before.
    assert set(units) == set(METRICS_BY_CHIP)
    assert set(units.values()) <= {"ns", "s"}


def test_ncu_report_reads_the_nvtx_ranges(actions: list[Any]) -> None:
    def ranges(action: Any) -> dict[str, tuple[str, ...]]:
        state = action.nvtx_state()
        domains = (state.domain_by_id(domain_id) for domain_id in state.domains())
        return {domain.name(): domain.push_pop_ranges() for domain in domains}

    assert ranges(actions[0]) == {"<default domain>": ("outer", "inner")}
    assert ranges(actions[1]) == {"<default domain>": (), "model": ("step",)}
    assert ranges(actions[2]) == {"<default domain>": ("r",)}


def test_ncu_report_reads_the_sections(actions: list[Any]) -> None:
    found = [[section.identifier() for section in action.sections()] for action in actions]
    assert found == [["SpeedOfLight_RooflineChart", "SpeedOfLight"], [], ["Occupancy"], [], []]


def test_ncu_report_reads_the_rules(actions: list[Any]) -> None:
    # ncu_report counts message types as none 0, ok 1, optimization 2, warning 3, error 4, unlike the file.
    warning = {
        "name": "Occupancy",
        "rule_identifier": "Occupancy",
        "rule_message": {"title": "Limited", "message": "Registers limit it.", "type": 3},
        "section_identifier": "Occupancy",
    }
    bottleneck = {
        "name": "Bottleneck",
        "rule_identifier": "SOLBottleneck",
        "rule_message": {"title": "High Throughput", "message": "Nothing is left to gain.", "type": 2},
        "section_identifier": "SpeedOfLight",
        "speedup_estimation": {"type": 2, "speedup": 12.5},
        "focus_metrics": [
            {"name": "dram__bytes.sum", "value": 64.0, "severity": 2, "info": "info"},
            {"name": "zero", "value": 0.0, "severity": 0, "info": ""},
        ],
    }
    assert actions[0].rule_results_as_dicts() == [bottleneck, warning]
    assert actions[4].rule_results_as_dicts() == [warning]


def test_chart_is_embedded_as_written() -> None:
    report = write_report([SAXPY])
    (block,) = (block for block in walk(report).blocks if block.n_workloads)
    (result,) = entries(report, block)
    chart = _at(result, 17, 5, 1, 6)
    assert _text(chart, 1) == "Roofline"
    assert [_text(chart, 4, 1, 3, 1, 1), _text(chart, 4, 1, 3, 2, 1)] == ["peak.a", "clock"]
    assert [_text(chart, 4, 2, 2, 1), _text(chart, 4, 3, 1)] == ["dram.peak", "DRAM Roofline"]
    assert wire.as_float(_at(chart, 5, 1, 1)) == 2.5
    assert [_text(chart, 5, 2, 3, 1, 1), _text(chart, 5, 3, 1)] == ["dram.per_cycle", "DRAM"]


def _at(message: memoryview, *path: int) -> memoryview:
    """Return the first field at a path of field numbers."""
    for wanted in path:
        found = next(value for number, _, value in wire.fields(message) if number == wanted)
        assert isinstance(found, memoryview)
        message = found
    return message


def _text(message: memoryview, *path: int) -> str:
    return wire.as_text(_at(message, *path))


def test_same_input_gives_the_same_bytes() -> None:
    assert write_report(WORKLOADS, SESSION) == write_report(WORKLOADS, SESSION)


def test_kernels_of_one_block_share_one_header() -> None:
    report = write_report([SAXPY, SAXPY, OTHER_PROCESS, RANGE, RANGE], SESSION, kernels_per_block=2)
    # A change of process or kind begins a new block.
    assert [block.n_workloads for block in walk(report).blocks if block.n_workloads] == [2, 1, 2]


@pytest.fixture(scope="module")
def ncu() -> str:
    cached = Path.home() / ".cache" / "nsight-compute" / "ncu"
    found = os.environ.get("NCUROOF_NCU") or shutil.which("ncu") or (str(cached) if cached.exists() else None)
    if not found:
        pytest.skip("NVIDIA's ncu is neither in NCUROOF_NCU nor on the PATH")
    return found


def _printed(ncu: str, path: Path, *options: str, workloads: Sequence[Kernel] = WORKLOADS) -> str:
    path.write_bytes(write_report(workloads, SESSION))
    command = [ncu, "--import", str(path), *options]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout


def _table(printed: str) -> list[dict[str, str]]:
    """Return the rows of ncu's CSV; the first holds the units."""
    return list(csv.DictReader(io.StringIO(printed)))


@pytest.mark.oracle
def test_ncu_prints_every_written_value(ncu: str, tmp_path: Path) -> None:
    printed = _printed(ncu, tmp_path / "written.ncu-rep", "--page", "raw", "--csv", "--print-units", "base")
    rows = _table(printed)[1:]
    # ncu orders by process id, and within a process as the file does.
    for row, workload in zip(rows, (OTHER_PROCESS, SAXPY, RANGE, GRAPH, COMMAND_LIST), strict=True):
        assert {name: row[name] for name in workload.metrics} == {
            name: _as_printed(metric) for name, metric in workload.metrics.items()
        }
        assert all(row[name] == "" for name in SAXPY.metrics if name not in workload.metrics)


def _as_printed(metric: Metric) -> str:
    """Return a value as ncu prints it: two decimals if it is not whole, nothing for a missing total."""
    if isinstance(metric, Instances):
        return "" if metric.total is None else _as_printed(metric.total)
    value = metric.value if isinstance(metric, Uint32 | Float32) else metric
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{value:.2f}"
    return str(value)


@pytest.mark.oracle
def test_ncu_prints_the_units_of_a_known_chip(ncu: str, tmp_path: Path) -> None:
    options = ("--page", "raw", "--csv", "--print-units", "base")
    units = _table(_printed(ncu, tmp_path / "written.ncu-rep", *options, workloads=[SAXPY]))[0]
    assert (units["gpu__time_duration.sum"], units["dram__bytes.sum"]) == ("nsecond", "byte")


@pytest.mark.oracle
def test_ncu_prints_the_launch_as_written(ncu: str, tmp_path: Path) -> None:
    printed = _printed(ncu, tmp_path / "written.ncu-rep", "--page", "raw", "--csv")
    row = _table(printed)[2]
    assert (row["Process ID"], row["Process Name"], row["Host Name"]) == ("4242", "program", "host.invalid")
    assert (row["Kernel Name"], row["Context"], row["Stream"]) == ("saxpy(int, float, float *)", "2", "13")
    assert (row["Grid Size"], row["Block Size"], row["CC"]) == ("(4, 2, 1)", "(256, 1, 1)", "8.0")


@pytest.mark.oracle
def test_ncu_prints_session_and_rules_as_written(ncu: str, tmp_path: Path) -> None:
    session = _printed(ncu, tmp_path / "written.ncu-rep", "--page", "session")
    for wanted in ("ncu --set roofline -o test ./program", "2024.1.1.0", "580.65", "C:\\test\\other.exe"):
        assert wanted in session
    assert "multiprocessor_count 108" in session
    details = _printed(ncu, tmp_path / "written.ncu-rep", "--page", "details")
    assert "Est. Speedup: 12.5%" in details
    assert "Nothing is left to gain." in details
    assert "<1,inner>" in details
