"""Reached roofs: the file, what it holds for, and what a launch reached of them. Numbers by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import ncuroof
from ncuroof.errors import CalibrationError
from ncuroof.sidecars.calibration import Calibration, ReachedRoof, calibration_json, read_calibration
from tests.support import demo

H200 = Calibration(
    gpu="NVIDIA H200",
    compute_capability="9.0",
    sm_count=132,
    torch_version="2.13.0",
    cuda_version="13.0",
    roofs=(
        ReachedRoof("bandwidth", "dram", 4.1e12, 0.01, 50, "copy of 4 GB", 1.98e9),
        ReachedRoof("bandwidth", "dram", 4.4e12, 0.01, 50, "sum of 4 GB", 1.98e9),
        ReachedRoof("compute", "tensor_bf16", 7.5e14, 0.03, 40, "product of 8192 × 8192 random numbers", 1.65e9),
    ),
    not_measured=(("tensor_int8", "no such kernel"),),
)


def test_a_file_holds_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "h200.json"
    path.write_bytes(calibration_json(H200))
    assert read_calibration(path) == read_calibration(str(path)) == H200


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "expected a calibration"),
        (b"[]", "expected a calibration, found a JSON list$"),
        (b"{}", "expected a calibration, found an empty JSON object$"),
        (b"\xff", "expected a calibration"),
        (b"[" * 100_000, "expected a calibration, found a file that is not JSON$"),
        (b'{"schema": "ncuroof.analysis/1"}', "expected schema ncuroof.calibration/1, found ncuroof.analysis/1"),
        (b'{"schema": "ncuroof.calibration/1"}', "the file is damaged: 'compute_capability' is missing$"),
        (calibration_json(H200).replace(b"4100000000000.0", b"-1"), "expected a positive rate"),
        (
            calibration_json(H200).replace(b"4100000000000.0", b'"fast"'),
            "dram: expected a positive rate, found 'fast'$",
        ),
        (calibration_json(H200).replace(b'"kind": "compute"', b'"kind": "magic"'), "found 'magic'$"),
        (calibration_json(H200).replace(b'"sm_count"', b'"n_sms"'), "'sm_count' is missing$"),
    ],
)
def test_a_file_that_is_not_a_calibration_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(content)
    with pytest.raises(CalibrationError, match=said):
        read_calibration(path)
    with pytest.raises(CalibrationError, match="No such file"):
        read_calibration(tmp_path / "none.json")
    with pytest.raises(CalibrationError, match="expected a calibration, found a directory"):
        read_calibration(tmp_path)


@pytest.mark.long
def test_reached_roofs_stand_beside_the_others() -> None:
    analysis = ncuroof.read(demo.REPORT).analyse([H200])
    ceilings = analysis.roofline_tables.ceilings
    measured = {row["name"]: row["per_s"] for row in ceilings.iter_rows(named=True) if row["source"] == "measured"}
    # of the two ways to move bytes the one that moved more
    assert measured == {"dram": 4.4e12, "tensor_bf16": 7.5e14}
    assert {"counters", "datasheet", "measured"} == set(ceilings["source"])


@pytest.mark.long
def test_a_launch_is_judged_against_both() -> None:
    kernels = {each["short_name"]: each for each in ncuroof.read(demo.REPORT).analyse([H200]).to_dict()["kernels"]}
    adam = kernels["multi_tensor_apply_kernel"]["bandwidth"]["dram"]
    # 28 bytes of each of 1536 * 65536 parameters in 652.288 µs
    rate = 28 * 1536 * 65536 / 652.288e-6
    assert adam["datasheet_frac"] == pytest.approx(rate / 4.8e12, rel=1e-3)
    assert adam["reached_frac"] == pytest.approx(rate / 4.4e12, rel=1e-3)
    product = kernels["nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNT"]
    clock = product["sm_clock_hz"]
    rate = 2 * 16384 * 16384 * 4096 / (product["duration_ns"] * 1e-9)
    assert product["work"]["tensor_bf16"]["datasheet_frac"] == pytest.approx(rate / 989e12, rel=1e-3)
    # reached at 1.65 GHz; this launch ran at its own clock
    assert product["work"]["tensor_bf16"]["reached_frac"] == pytest.approx(rate / (7.5e14 * clock / 1.65e9), rel=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("other", [replace(H200, gpu="NVIDIA H100 80GB HBM3"), replace(H200, sm_count=114)])
def test_roofs_of_a_different_gpu_are_left_out(other: Calibration) -> None:
    analysis = ncuroof.read(demo.REPORT).analyse([other])
    assert "measured" not in set(analysis.roofline_tables.ceilings["source"])
    assert (
        analysis.roofline_tables.roof_shares["reached_frac"].null_count() == analysis.roofline_tables.roof_shares.height
    )


@pytest.mark.long
def test_a_calibration_changes_no_verdict() -> None:
    plain, judged = (ncuroof.read(demo.REPORT).analyse(each) for each in ([], [H200]))
    assert plain.diagnosis.verdicts.equals(judged.diagnosis.verdicts)
    assert plain.roofline_tables.bounds.equals(judged.roofline_tables.bounds)


def test_the_file_is_json_that_people_can_read() -> None:
    content = json.loads(calibration_json(H200))
    assert content["roofs"][2]["how"] == "product of 8192 × 8192 random numbers"
