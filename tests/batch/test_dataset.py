"""A dataset: whole files, one per report, read by their schema."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pytest

from ncuroof import temporary_files
from ncuroof.batch.dataset import Dataset, partition
from ncuroof.errors import DatasetError
from ncuroof.fleet import FLEET, SCHEMA


def rows(sha256: str, *gpus: str | None) -> pl.DataFrame:
    known = {"report_sha256": [sha256] * len(gpus), "gpu_name": list(gpus), "id": list(range(len(gpus)))}
    absent = {name: [None] * len(gpus) for name in FLEET if name not in known}
    return pl.DataFrame(known | absent, schema_overrides=dict(FLEET)).select(FLEET.names())


@pytest.mark.parametrize("location", ["{tmp}/fleet", "file://{tmp}/fleet", "memory://{tmp}/fleet"])
def test_rows_are_found_again_on_any_file_system(tmp_path: Path, location: str) -> None:
    dataset = Dataset.at(location.format(tmp=tmp_path))
    dataset.prepare()
    dataset.put_report(rows("aa", "NVIDIA A100", "NVIDIA A100"))
    dataset.put_report(rows("bb", "Tesla T4"))
    dataset.put_report(rows("bb", "Tesla T4"))
    assert dataset.hashes() == {"aa", "bb"}
    found = dataset.kernels().collect()
    assert sorted(found["report_sha256"]) == ["aa", "aa", "bb"]
    assert found.schema == FLEET


def test_partitions_are_gpus_and_a_report_of_several_is_one_file(tmp_path: Path) -> None:
    assert partition(rows("a", "NVIDIA A100-SXM4-40GB", None)) == "gpu=a100-sxm4-40gb"
    assert partition(rows("a", "A100-SXM4-40GB")) == "gpu=a100-sxm4-40gb"  # as old drivers call it
    assert partition(rows("a", "Tesla T4", "NVIDIA A10G")) == "gpu=several"
    assert partition(rows("a", None)) == "gpu=unknown"
    assert partition(rows("a", "../../etc")) == "gpu=etc"


def test_a_file_names_the_schema(tmp_path: Path) -> None:
    dataset = Dataset.at(str(tmp_path / "fleet"))
    dataset.prepare()
    dataset.put_report(rows("aa", "Tesla T4"))
    (file,) = tmp_path.glob("fleet/kernels/gpu=tesla-t4/aa.parquet")
    assert pl.read_parquet_metadata(file)["ncuroof.schema"] == SCHEMA == "ncuroof.fleet/1"


def test_unknown_columns_are_ignored_and_missing_columns_are_null(tmp_path: Path) -> None:
    dataset = Dataset.at(str(tmp_path / "fleet"))
    dataset.prepare()
    dataset.put_report(rows("aa", "Tesla T4"))
    (file,) = tmp_path.glob("fleet/kernels/*/aa.parquet")
    other = rows("bb", "Tesla T4").drop("cuda_version").with_columns(pl.lit(1).alias("of_tomorrow"))
    other.write_parquet(file.with_name("bb.parquet"))
    found = dataset.kernels().collect()
    assert found.schema == FLEET
    assert found["cuda_version"].to_list() == [None, None]


def test_half_a_file_is_not_seen_and_the_next_run_removes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Dataset.at(str(tmp_path / "fleet"))
    dataset.prepare()
    folder = tmp_path / "fleet/kernels/gpu=tesla-t4"
    folder.mkdir(parents=True)
    (folder / ".ncuroof-killed.part").write_bytes(b"half")
    assert dataset.hashes() == frozenset()
    assert dataset.kernels().collect().is_empty()
    monkeypatch.setattr(temporary_files, "_LOCKED_AFTER_S", -1)
    dataset.prepare()
    assert not list(folder.iterdir())


def test_an_interrupt_while_a_file_is_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Dataset.at(str(tmp_path / "fleet"))
    dataset.prepare()
    monkeypatch.setattr(Path, "replace", _killed)
    with pytest.raises(KeyboardInterrupt):
        dataset.put_report(rows("aa", "Tesla T4"))
    assert not list((tmp_path / "fleet/kernels/gpu=tesla-t4").iterdir())


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_failures_are_noted_once_and_taken_back(tmp_path: Path) -> None:
    dataset = Dataset.at(str(tmp_path / "fleet"))
    dataset.prepare()
    failure = {"report_location": "/a/x", "report_file": "x", "error": "unit", "message": "m", "ncuroof_version": "1"}
    for _ in range(2):
        dataset.put_failure(failure)
    dataset.put_failure(failure | {"report_location": "/a/y"})
    assert sorted(dataset.failures().collect()["report_location"]) == ["/a/x", "/a/y"]
    dataset.forget_failures(["/a/x", "/a/never"])
    assert dataset.failures().collect()["report_location"].to_list() == ["/a/y"]


def test_earlier_rows_in_a_different_partition_are_removed(tmp_path: Path) -> None:
    dataset = Dataset.at(str(tmp_path / "fleet"))
    dataset.prepare()
    dataset.put_report(rows("aa", "Tesla T4"))
    new = rows("aa", "NVIDIA T4")
    dataset.drop_report("aa", but=new)
    dataset.put_report(new)
    assert dataset.kernels().collect()["gpu_name"].to_list() == ["NVIDIA T4"]


def test_a_folder_that_is_not_a_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="found none"):
        Dataset.at(str(tmp_path / "none")).kernels()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DatasetError, match="found something else"):
        Dataset.at(str(tmp_path)).prepare()
    other = tmp_path / "other"
    other.mkdir()
    (other / "ncuroof.json").write_text(json.dumps({"schema": "ncuroof.fleet/9"}))
    with pytest.raises(DatasetError, match=r"expected schema ncuroof\.fleet/1, found ncuroof\.fleet/9"):
        Dataset.at(str(other)).prepare()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_a_named_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(DatasetError, match="cannot be written"):
        Dataset.at(str(tmp_path / "fleet")).prepare()
