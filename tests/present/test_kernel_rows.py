"""The exported table stands by itself: rows tell where they come from, and every report has the same columns."""

from __future__ import annotations

import io
from dataclasses import replace

import polars as pl
import pytest

import ncuroof
from ncuroof._version import __version__
from ncuroof.analysis import Analysis
from ncuroof.diagnosis import kernel_table
from ncuroof.fleet import FLEET, FLEET_FAILURES
from ncuroof.metrics import load_catalogue, precisions
from ncuroof.present import render
from ncuroof.present.explanations.meanings import columns_by_name, load_columns, load_limiters
from ncuroof.present.kernel_rows import kernel_columns, kernel_rows
from ncuroof.tables import WEIGHTS
from tests.support import demo
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, write_report

SMALL = write_report([Kernel("saxpy", {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0})])


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return ncuroof.read(demo.REPORT).analyse()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    path = tmp_path_factory.mktemp("small") / "small.ncu-rep"
    path.write_bytes(SMALL)
    return ncuroof.read(path).analyse()


def test_reports_of_few_and_of_many_counters_have_the_same_columns(analysis: Analysis, small: Analysis) -> None:
    assert analysis.kernels.schema == small.kernels.schema
    tables = [pl.read_parquet(io.BytesIO(render(each, "parquet"))) for each in (analysis, small)]
    together = pl.concat(tables)
    assert together.height == analysis.kernels.height + 1
    assert together["work.tensor_fp4_sparse.flop"].to_list() == [None] * together.height
    assert tables[0].schema == tables[1].schema == kernel_columns()


def test_a_row_tells_report_and_gpu_as_the_document_does(analysis: Analysis) -> None:
    document = analysis.to_dict()
    for row, kernel in zip(kernel_rows(analysis).iter_rows(named=True), document["kernels"], strict=True):
        source, device = document["sources"][kernel["source"]], document["devices"][kernel["device"]]
        assert row["id"] == kernel["id"]
        assert (row["report_file"], row["report_sha256"]) == (source["file"], source["sha256"])
        assert (row["gpu_name"], row["compute_capability"]) == ("NVIDIA H200", device["compute_capability"])
        assert row["findings"] == [finding["id"] for finding in kernel["findings"]]
        assert row["gains_ns"] == [finding["gain_ns"] for finding in kernel["findings"]]
        assert (row["n_represented"], row["weight"]) == (1.0, 1.0)
        assert [row[f"counted_{which}_ns"] for which in ("average", "shortest", "longest")] == [None] * 3  # nothing was


def test_kernels_of_reports_of_few_and_of_many_counters_are_one_table(analysis: Analysis, small: Analysis) -> None:
    weights = analysis.kernels.select("id", *(pl.lit(2.0).alias(name) for name in WEIGHTS if name != "id"))
    counted = kernel_table(analysis.measurements, analysis.roofline_tables, analysis.diagnosis, weights)
    together = pl.concat([small.kernels, counted, analysis.kernels])
    assert together["n_represented"].sum() == 1 + 2 * 17 + 17
    assert together["counted_average_ns"].null_count() == 1 + 17
    # of the saxpy time alone is known; of the other report's launches some have FP32 work
    n_fp32 = analysis.roofline_tables.work.filter((pl.col("precision") == "fp32") & (pl.col("flop") > 0)).height
    assert small.kernels.filter(pl.col("work.fp32.flop") > 0).height == 0
    assert together.filter(pl.col("work.fp32.flop") > 0).height == 2 * n_fp32 > 0
    assert together["work.tensor_fp4.flop"].null_count() == together.height
    assert together["intensity.shared"].dtype == pl.Float64()


def test_kernels_have_the_columns_that_are_documented(analysis: Analysis) -> None:
    found, written = analysis.kernels.schema, kernel_columns()
    elsewhere = {"report_file", "report_sha256", "gpu_name", "findings", "gains_ns"}
    assert set(written) - set(found) == elsewhere
    workings = [name for name in found if name not in written]
    assert all(name.startswith(("check.", "definition.")) or name.endswith("_counter") for name in workings)
    assert {name for name in set(found) & set(written) if found[name] != written[name]} == {"compute_capability"}


def test_work_of_a_type_of_later_is_the_last_of_kernels(analysis: Analysis) -> None:
    tables = analysis.roofline_tables
    later = tables.work.filter(pl.col("precision") == "fp32").with_columns(pl.lit("tensor_fp3").alias("precision"))
    placed = replace(tables, work=pl.concat([later, tables.work]))
    found = kernel_table(analysis.measurements, placed, analysis.diagnosis, analysis.weights)
    assert found.columns == [*analysis.kernels.columns, "work.tensor_fp3.flop", "work.tensor_fp3.frac"]
    assert found["work.tensor_fp3.flop"].equals(found["work.fp32.flop"].alias("work.tensor_fp3.flop"))


def test_inner_workings_are_left_to_the_document(analysis: Analysis) -> None:
    names = kernel_rows(analysis).columns
    assert not [name for name in names if name.startswith(("check.", "definition."))]
    assert not [name for name in names if name.endswith("_counter")]
    assert {"limiter.memory", "limiter.stall_frac", "stalls.wait", "roofline.ridge_ratio"} <= set(names)


def test_work_of_a_type_of_later_gets_a_column_at_the_end(analysis: Analysis) -> None:
    class Later:
        def __getattr__(self, name: str) -> object:
            found = getattr(analysis, name)
            return found.with_columns(pl.lit(1.0).alias("work.tensor_fp3.flop")) if name == "kernels" else found

    rows = kernel_rows(Later())  # type: ignore[arg-type]
    assert rows.columns[-1] == "work.tensor_fp3.flop"
    assert rows.columns[:-1] == list(kernel_columns())


def test_a_parquet_file_names_schema_and_version(small: Analysis) -> None:
    metadata = pl.read_parquet_metadata(io.BytesIO(render(small, "parquet")))
    assert metadata["ncuroof.schema"] == "ncuroof.kernels/1"
    assert metadata["ncuroof.version"] == __version__


def test_gains_that_are_not_known_keep_their_place_in_csv() -> None:
    from ncuroof.present.kernel_rows import to_csv  # noqa: PLC0415

    table = pl.DataFrame({"gains_ns": [[None, 2.5], [None], []]}, schema={"gains_ns": pl.List(pl.Float64)})
    assert to_csv(table).decode().splitlines() == ["gains_ns", ";2.5", '""', '""']


# ---- what the columns mean -----------------------------------------------------------------------------------------------


def test_every_column_is_described_once_and_none_that_is_not_there() -> None:
    catalogue = load_catalogue()
    quantities = {quantity.name for quantity in catalogue.described()}
    quantities |= {f"stalls.{reason}" for reason in catalogue.stalls.reasons}
    written, described = {*kernel_columns(), *FLEET, *FLEET_FAILURES}, set(columns_by_name())
    assert written - quantities == described - quantities
    assert described & quantities == set()
    assert described <= written


def test_columns_of_a_level_and_a_precision_name_it() -> None:
    assert columns_by_name()["intensity.l2"].doc.startswith("Arithmetic intensity at l2:")
    assert columns_by_name()["work.fp32.flop"].unit == "flop"
    assert [name for name in load_columns() if name.startswith("work.")] == [
        "work.<precision>.flop", "work.<precision>.frac", "work.flop"
    ]  # fmt: skip
    assert {"fp64", "tensor_bf16_sparse", "tensor_int1"} <= set(precisions())
    assert not {"fp64_sparse", "tensor_fp64_sparse", "tensor_int1_sparse"} & set(precisions())


def test_every_limiter_that_the_rules_name_is_described() -> None:
    resources = {name for side in load_catalogue().resources.values() for name in side.values()}
    assert resources | {"shared", "grid", "tail", "occupancy", "launch"} <= set(load_limiters())
