"""Reports that are taken in together are as they would be alone, and a bad one among them harms no other."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest
from polars.testing import assert_frame_equal

from ncuroof.batch.dataset import Dataset
from ncuroof.batch.ingest import IngestResult, Task, Workers, ingest, ingest_some
from ncuroof.errors import DatasetError
from ncuroof.fleet.questions import overview
from ncuroof.reading import Reports
from ncuroof.sidecars.counts import Counts, KernelCount, counts_json
from tests.support.many_reports import small_report


def task(folder: Path) -> Task:
    dataset = Dataset.at(str(folder))
    dataset.prepare()
    return Task(dataset, {"commit": "abc"}, again=False, run=str(folder))


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Four reports of two chips, one of them a copy."""
    contents = {
        "a": small_report(0),
        "b": small_report(1, chip="GH100", gpu="NVIDIA H100", times_us=(7.0,)),
        "c": small_report(2, times_us=(50.0, 60.0)),
        "d": small_report(0),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return [str(tmp_path / name) for name in contents]


@pytest.mark.long
def test_reports_together_give_the_rows_of_reports_one_by_one(tmp_path: Path, files: list[str]) -> None:
    together, alone = task(tmp_path / "together"), task(tmp_path / "alone")
    outcomes = ingest_some(files, together)
    for file in files[:3]:
        ingest_some([file], alone)
    by = ["report_sha256", "id"]
    rows = together.dataset.kernels().sort(by).collect()
    assert_frame_equal(rows, alone.dataset.kernels().sort(by).collect())
    assert rows.height == 3 + 1 + 2
    assert sorted((Path(each.location).name, each.status, each.n_launches) for each in outcomes) == [
        ("a", "added", 3),
        ("b", "added", 1),
        ("c", "added", 2),
        ("d", "present", 0),
    ]


def test_a_path_that_is_not_a_file_is_refused_before_workers_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncuroof.batch.ingest.connected", None)
    (outcome,) = ingest(
        ["/dev/zero"], Dataset.at(str(tmp_path / "set")), labels={}, workers=Workers(), progress=lambda _: None
    )
    assert (outcome.status, outcome.error) == ("failed", "report-access")


@pytest.mark.parametrize("prefix", ["", "memory://"])
def test_counts_beside_a_report_say_what_its_launches_stand_for(tmp_path: Path, prefix: str) -> None:
    """k0 ran 40 times, for 8 ms together: its one recorded launch of 100 µs stands for them. Beside the other is nothing."""
    counts = Counts((KernelCount("k0", (1, 1, 1), (1, 1, 1), 40, 8e6),))
    contents = {
        "run.ncu-rep": small_report(0, times_us=(100.0,)),
        "run.counts.json": counts_json(counts),
        "other.ncu-rep": small_report(1, times_us=(100.0,)),
    }
    folder = f"{prefix}{tmp_path}"
    for name, content in contents.items():
        with fsspec.open(f"{folder}/{name}", "wb") as file:
            file.write(content)
    one = task(tmp_path / "dataset")
    ingest_some([f"{folder}/run.ncu-rep", f"{folder}/other.ncu-rep"], one)
    rows = one.dataset.kernels().sort("report_file").collect()
    assert rows.select("report_file", "n_represented", "weight").rows() == [
        ("other.ncu-rep", 1.0, 1.0),
        ("run.ncu-rep", 40.0, 80.0),
    ]
    found = overview(one.dataset.kernels())
    assert (found.n_launches, found.duration_ns) == (41, pytest.approx(8e6 + 100e3))


@pytest.mark.long
def test_a_report_whose_name_is_not_utf8_is_read(tmp_path: Path) -> None:
    for name, content in ((b"good \xff", small_report()), (b"bad \xff", b"no report")):
        (tmp_path / os.fsdecode(name)).write_bytes(content)
    runs = [str(tmp_path / os.fsdecode(name)) for name in (b"good \xff", b"bad \xff")]
    dataset = Dataset.at(str(tmp_path / "dataset"))
    statuses: list[str] = []
    ingest(
        runs,
        dataset,
        labels={},
        workers=Workers(n_workers=1, are_threads=True),
        progress=lambda outcome: statuses.append(outcome.status),
    )
    assert sorted(statuses) == ["added", "failed"]
    assert dataset.kernels().collect()["report_file"][0] == "good \N{REPLACEMENT CHARACTER}"
    assert dataset.failures().collect()["report_file"].to_list() == ["bad \N{REPLACEMENT CHARACTER}"]


def test_only_the_report_that_kills_its_task_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a report needs more memory than any worker has: its neighbours in the task are tried again without it."""

    def dying(locations: tuple[str, ...], task: Task) -> list[IngestResult]:
        if "bad" in locations:
            raise MemoryError("worker died")
        return [IngestResult(location, "present") for location in locations]

    monkeypatch.setattr("ncuroof.batch.ingest.ingest_some", dying)
    outcomes = ingest(
        [*map(str, range(39)), "bad"],
        Dataset.at(str(tmp_path / "dataset")),
        labels={},
        workers=Workers(n_workers=1, are_threads=True),
        progress=lambda outcome: None,
    )
    assert sorted(outcome.location for outcome in outcomes) == sorted([*map(str, range(39)), "bad"])
    assert [outcome.location for outcome in outcomes if outcome.status == "failed"] == ["bad"]


@pytest.mark.long
def test_only_the_report_that_breaks_the_analysis_fails(
    tmp_path: Path, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    analyse = Reports.analyse

    def breaking(reports: Reports) -> object:
        if any(report.file == "b" for report in reports.raw):
            raise ZeroDivisionError("b")
        return analyse(reports)

    monkeypatch.setattr(Reports, "analyse", breaking)
    outcomes = {Path(each.location).name: each for each in ingest_some(files[:3], task(tmp_path / "dataset"))}
    assert [outcomes[name].status for name in "abc"] == ["added", "failed", "added"]
    assert (outcomes["b"].error, outcomes["b"].message) == ("defect", "ZeroDivisionError: b")


@pytest.mark.long
def test_a_report_whose_new_rows_cannot_be_written_keeps_its_old_ones(
    tmp_path: Path, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier version named its GPU otherwise, so that the old rows lie in another partition and are dropped."""
    once = task(tmp_path / "dataset")
    ingest_some(files[:1], once)
    (file,) = (tmp_path / "dataset").glob("kernels/*/*.parquet")
    old = file.parent.with_name("gpu=unknown") / file.name
    file.parent.rename(old.parent)

    def full(dataset: Dataset, rows: object) -> None:
        raise DatasetError("cannot be written", hint="")

    again = replace(once, again=True)
    with monkeypatch.context() as patch:
        patch.setattr(Dataset, "put_report", full)
        assert [each.status for each in ingest_some(files[:1], again)] == ["failed"]
    assert old.exists()
    assert [each.status for each in ingest_some(files[:1], again)] == ["added"]
    assert (old.exists(), file.exists()) == (False, True)
