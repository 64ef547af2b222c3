"""Tensor work from counts by opcode, chosen by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.metrics import measure
from tests.metrics.test_tensor import CLOCKS, INSTRUCTIONS, chip, tensor
from tests.support.raw import raw_report

OPCODES = "sass__inst_executed_per_opcode_with_modifier_all"
DURATION = "gpu__time_duration.sum"

# Operations of one warp's instruction: 2·M·N·K of the shapes of PTX's mma and wgmma, the latter a quarter of a warpgroup's.
PRODUCTS = [
    ("HMMA.884.F32.F32.STEP0", "tensor_fp16", 2 * 8 * 8 * 4),
    ("HMMA.884.F16.F16.STEP1", "tensor_fp16", 2 * 2 * 8 * 8 * 4),
    ("HMMA.1688.F16", "tensor_fp16", 2 * 16 * 8 * 8),
    ("HMMA.16816.F32", "tensor_fp16", 4096),
    ("HMMA.16816.F32.BF16", "tensor_bf16", 4096),
    ("HMMA.1684.F32.TF32", "tensor_tf32", 1024),
    ("HMMA.1688.F32.TF32", "tensor_tf32", 2048),
    ("HMMA.SP.16832.F32", "tensor_fp16_sparse", 8192),
    ("IMMA.8816.S8.S8.SAT", "tensor_int8", 2048),
    ("IMMA.16832.S8.U8", "tensor_int8", 8192),
    ("IMMA.16864.S4.S4", "tensor_int4", 16384),
    ("BMMA.88128.XOR.POPC", "tensor_int1", 16384),
    ("BMMA.168256.AND.POPC", "tensor_int1", 65536),
    ("DMMA.884", "tensor_fp64", 512),
    ("QMMA.16832.F32.E4M3.E4M3", "tensor_fp8", 8192),
    ("OMMA.SF.16864.F32.E2M1.E2M1.UE8", "tensor_fp4", 16384),
    ("HGMMA.64x128x16.F32", "tensor_fp16", 512 * 128),
    ("HGMMA.64x256x16.F32.BF16", "tensor_bf16", 512 * 256),
    ("HGMMA.64x64x8.F32.TF32", "tensor_tf32", 2 * 64 * 64 * 8 / 4),
    ("QGMMA.64x128x32.F32.E4M3.E5M2", "tensor_fp8", 1024 * 128),
    ("IGMMA.64x64x32.S8.S8", "tensor_int8", 1024 * 64),
]
UNKNOWN = ["UTCHMMA.2CTA", "HMMA.NEW.F32", "HMMA", "QGMMA.64x99999x32", "IMMA.12345.S8"]


def work_of(*kernels: dict[str, float | str]) -> list[dict[str, dict[str, Any]]]:
    """Return, per kernel, its work by precision."""
    rows = measure([raw_report(*kernels)]).work.to_dicts()
    return [{row["precision"]: row for row in rows if row["id"] == number} for number in range(len(kernels))]


@pytest.mark.parametrize(("opcode", "precision", "flop"), PRODUCTS)
def test_an_instruction_is_worth_the_operations_of_its_shape(opcode: str, precision: str, flop: float) -> None:
    (work,) = work_of({OPCODES: f"{opcode} 1000", DURATION: 500.0})
    assert set(work) == {precision}
    assert work[precision]["flop"] == pytest.approx(1000 * flop)
    assert work[precision]["flop_per_s"] == pytest.approx(1000 * flop / 500e-9)
    assert (work[precision]["peak_flop_per_s"], work[precision]["reliable"]) == (None, True)
    assert opcode in work[precision]["definition"]


@pytest.mark.parametrize(
    ("counted", "accumulates_in"),
    [
        ("HMMA.16816.F16 20 HMMA.16816.F32 10", "fp16"),
        ("HMMA.16816.F16 10 HMMA.16816.F32.BF16 90 HMMA.16816.F32 20", "fp32"),
        ("HMMA.16816.F16 10 HMMA.16816.F32 10", None),
        ("HMMA.884.F16.F16.STEP0 9", "fp16"),
    ],
)
def test_opcodes_tell_what_most_of_the_work_adds_up_in(counted: str, accumulates_in: str | None) -> None:
    (work,) = work_of({OPCODES: counted, DURATION: 500.0})
    assert work["tensor_fp16"]["accumulates_in"] == accumulates_in


def test_opcodes_of_a_type_add_up_and_types_stand_apart() -> None:
    text = "HMMA.1688.F32 10 HMMA.16816.F32 20 HMMA.16816.F32.BF16 5 IMMA.16832.S8.S8 0"
    (work,) = work_of({OPCODES: text, DURATION: 1.0})
    assert {precision: row["flop"] for precision, row in work.items()} == {
        "tensor_fp16": 10 * 2048 + 20 * 4096,
        "tensor_bf16": 5 * 4096,
    }


@pytest.mark.parametrize("opcode", UNKNOWN)
def test_with_an_instruction_of_unknown_shape_no_part_of_the_work_is_told(opcode: str) -> None:
    counted = "HMMA.16816.F32 7"
    assert work_of({OPCODES: f"{opcode} 3 {counted}", DURATION: 1.0}, {OPCODES: counted, DURATION: 1.0})[0] == {}
    (work,) = work_of({OPCODES: f"{opcode} 0 {counted}", DURATION: 1.0})
    assert work["tensor_fp16"]["flop"] == 7 * 4096


@pytest.mark.parametrize(
    ("opcode", "on_another_path", "on_the_sheet_s"),
    [
        ("HMMA.16816.F32.BF16", (90, 100, 103), (80, 86, 89, 120)),
        ("IMMA.16832.S8.S8.SAT", (90, 110), (75, 80, 121)),
        ("HGMMA.64x128x16.F32", (), (90,)),
        ("DMMA.884", (), (80, 90)),
        ("HMMA.16816.F16", (75, 86, 89, 120), (70, 80)),
        ("HMMA.SP.16832.F16", (86,), (80,)),
        ("QMMA.16832.F16.E4M3.E4M3", (89, 120), ()),
        ("HMMA.16816.F32", (), (75, 86, 89, 120)),
    ],
)
def test_where_an_instruction_has_another_peak_than_the_data_sheet_says_no_work_is_told(
    opcode: str, on_another_path: tuple[int, ...], on_the_sheet_s: tuple[int, ...]
) -> None:
    for capability in (*on_another_path, *on_the_sheet_s):
        (work,) = work_of({OPCODES: f"{opcode} 9", DURATION: 1.0, **chip(capability)})
        assert bool(work) == (capability in on_the_sheet_s), capability


def test_kernels_without_tensor_instructions_or_counts_have_no_tensor_work() -> None:
    without, unknown, some = work_of(
        {OPCODES: "", DURATION: 1.0}, {DURATION: 1.0}, {OPCODES: "DMMA.884 1", DURATION: 1.0}
    )
    assert (without, unknown, set(some)) == ({}, {}, {"tensor_fp64"})


def test_counted_operations_come_before_opcodes_and_these_before_instructions() -> None:
    # 2 · 1.5 GHz instructions for 1 µs on Volta, 512 each: 3000 · 512
    operations = {**tensor("src_fp16_dst_fp32", 64.0, 1024.0), **CLOCKS, DURATION: 1000.0}
    volta = {**chip(70), **INSTRUCTIONS}
    opcodes = {OPCODES: "HMMA.884.F32.F32.STEP0 3000"}
    counted, by_opcode, by_instruction = work_of({**operations, **opcodes}, {**volta, **opcodes}, volta)
    assert counted["tensor_fp16"]["flop"] == pytest.approx(64 * 1.5e9 * 1e-6)
    assert by_opcode["tensor_fp16"]["flop"] == pytest.approx(3000 * 512)
    assert by_instruction["tensor_fp16"]["flop"] == pytest.approx(3000 * 512)
    assert [work["tensor_fp16"]["reliable"] for work in (counted, by_opcode, by_instruction)] == [True, True, False]
