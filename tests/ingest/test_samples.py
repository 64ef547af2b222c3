"""Series over a kernel's time are read as NVIDIA's module reads them, and no claim of a file makes the reader allocate much."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncuroof.ingest import RawReport, open_report
from ncuroof.ingest.native import samples as reader
from ncuroof.ingest.native.samples import sampled_counter
from tests.support.report_writer import METRICS_BY_CHIP, Instances, Kernel, write_report
from tests.support.sampled import FIRST_NS, Part, metrics, series

PARTS = (Part(20, {"dram": 0.8, "issue": 0.1}), Part(10, {"tensor": 0.9, "issue": 0.3}))
NAME = "pmsampling:dramc__throughput.avg.pct_of_peak_sustained_elapsed"


def _report(folder: Path, *kernels: dict[str, object]) -> RawReport:
    path = folder / "simulated.ncu-rep"
    written = [
        Kernel(f"kernel_{number}", {**METRICS_BY_CHIP["GH100"], "gpu__time_duration.sum": 60_000.0 - number, **each})  # type: ignore[dict-item]
        for number, each in enumerate(kernels)
    ]
    path.write_bytes(write_report(written))
    return open_report(path)


def _one(folder: Path, times: tuple[object, ...], values: tuple[object, ...]) -> list[tuple[object, ...]]:
    report = _report(folder, {NAME: Instances(values, times, total=1.0)})  # type: ignore[arg-type]
    return report.samples.rows()


def test_times_and_values_are_those_of_the_file(tmp_path: Path) -> None:
    recorded = series(PARTS)
    samples = _report(tmp_path, {}, metrics(recorded)).samples  # type: ignore[arg-type]
    assert {row: (times, values) for number, row, times, values in samples.iter_rows() if number == 1} == recorded
    assert set(samples["row"]) == {1}


def test_names_of_both_kinds_lead_to_the_counter() -> None:
    counter = "dramc__throughput.avg.pct_of_peak_sustained_elapsed"
    for prefix in ("pmsampling:", "FBSP.TriageSCG.", "TriageA."):
        assert sampled_counter(f"{prefix}{counter}") == counter


def test_a_report_without_series_has_no_samples(tmp_path: Path) -> None:
    assert _report(tmp_path, {}).samples.is_empty()


def test_samples_come_in_the_order_of_time(tmp_path: Path) -> None:
    assert _one(tmp_path, (30, 10, 20), (3.0, 1.0, 2.0)) == [(0, NAME, [10, 20, 30], [1.0, 2.0, 3.0])]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1e40])
def test_impossible_values_are_left_out(tmp_path: Path, value: float) -> None:
    assert _one(tmp_path, (10, 20, 30), (1.0, value, 3.0)) == [(0, NAME, [10, 30], [1.0, 3.0])]


@pytest.mark.parametrize(
    "times",
    [(10,), (0, 0), (10, 10), (1, 1 << 63), (1, 1 << 50)],
    ids=["a single sample", "no times", "one time", "beyond what a table holds", "more than an hour"],
)
def test_malformed_series_are_left_out(tmp_path: Path, times: tuple[int, ...]) -> None:
    assert _one(tmp_path, times, (1.0,) * len(times)) == []


def test_texts_in_place_of_times_are_not_a_series(tmp_path: Path) -> None:
    assert _one(tmp_path, ("a", "b"), (1.0, 2.0)) == []


def test_a_series_longer_than_any_recorded_one_is_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_MOST_BYTES_OF_ONE", 100)
    assert _one(tmp_path, tuple(range(FIRST_NS, FIRST_NS + 10)), (1.0,) * 10) == []


def test_only_the_longest_workloads_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_MOST_WORKLOADS", 2)
    each = metrics(series(PARTS))
    assert set(_report(tmp_path, each, each, each).samples["row"]) == {0, 1}  # type: ignore[arg-type]


def test_no_further_series_is_read_beyond_the_most_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    each = metrics(series(PARTS))
    lengths = _report(tmp_path, each).samples["values"].list.len()  # type: ignore[arg-type]
    monkeypatch.setattr(reader, "_MOST_SAMPLES", lengths.sum())
    assert _report(tmp_path, each, each).samples["row"].to_list() == [0] * len(lengths)  # type: ignore[arg-type]
    monkeypatch.setattr(reader, "_MOST_SAMPLES", lengths[0])
    assert _report(tmp_path, each, each).samples.height == 1  # type: ignore[arg-type]


def test_nvidias_module_reads_the_same_series(tmp_path: Path) -> None:
    ncu_report = pytest.importorskip("ncu_report")
    samples = _report(tmp_path, metrics(series(PARTS))).samples  # type: ignore[arg-type]
    action = ncu_report.load_report(str(tmp_path / "simulated.ncu-rep"))[0][0]
    for _, counter, times, values in samples.iter_rows():
        metric = action[counter]
        places = metric.correlation_ids()
        assert [places.as_uint64(index) for index in range(metric.num_instances())] == times
        assert [metric.as_double(index) for index in range(metric.num_instances())] == values
    assert samples.height == 9


@pytest.mark.long
@pytest.mark.corpus
def test_series_of_recorded_reports_are_those_of_nvidias_module(corpus: list[Path]) -> None:
    ncu_report = pytest.importorskip("ncu_report")
    n_compared = 0
    for path in (path for path in corpus if path.stat().st_size < 1_000_000 and b"Triage" in path.read_bytes()):
        actions = [action for each in ncu_report.load_report(str(path)) for action in each]
        for row, counter, times, values in open_report(path).samples.iter_rows():
            metric = actions[row][counter]
            places = metric.correlation_ids()
            stored = {places.as_uint64(index): metric.as_double(index) for index in range(metric.num_instances())}
            assert {time: stored[time] for time in times} == dict(zip(times, values, strict=True)), (path.name, counter)
            n_compared += 1
    assert n_compared > 100
