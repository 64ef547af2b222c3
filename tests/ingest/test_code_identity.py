"""What identifies machine code, and what a module's names say of it; images built by hand, with and without addresses."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import ncuroof
from ncuroof.ingest.code.elf import Image
from ncuroof.ingest.code.modules import compiler_version
from ncuroof.ingest.code.static_code import has_reciprocals_alone, identity_of
from tests.support.elf_image import elf_with
from tests.support.lined import lined_report
from tests.support.machine_code import ADD, EXIT, LOAD, STORE, branch, instruction
from tests.support.report_writer import Kernel, write_report

AMPERE, PASCAL = 86, 61
NOP, CALL_NEARBY, CALL_REGISTER, CALL_ABS = 0x918, 0x944, 0x344, 0x943


def code_of(*opcodes: int) -> bytes:
    return b"".join(map(instruction, opcodes))


CODE = code_of(LOAD, ADD, STORE, EXIT)


def test_code_says_which_compiler_made_it(tmp_path: Path) -> None:
    report = tmp_path / "lined.ncu-rep"
    report.write_bytes(lined_report())
    found = ncuroof.read(report).raw[0].code
    assert found["compiler"].to_list() == ["13.0.88"]  # as tests/support/line_tables/inlined.cubin says
    assert compiler_version(Image(elf_with({}))) is None


def test_padding_is_not_part_of_a_function() -> None:
    found = identity_of(CODE + code_of(NOP, NOP), AMPERE, ())
    assert found == identity_of(CODE, AMPERE, ())
    assert found is not None
    assert found.n_instructions == 4
    within = identity_of(code_of(LOAD, NOP, ADD, STORE, EXIT), AMPERE, ())
    assert within is not None
    assert (within.n_instructions, within.sha256 == found.sha256) == (5, False)


def test_a_relocated_address_does_not_change_the_code() -> None:
    def with_address(address: int) -> bytes:
        return CODE[:16] + (int.from_bytes(CODE[16:32], "little") | address << 32).to_bytes(16, "little") + CODE[32:]

    here, there = (with_address(address) for address in (0x1000, 0x2FF0))
    assert identity_of(here, AMPERE, {16}) == identity_of(
        there, AMPERE, {20}
    )  # the field may begin within the instruction
    assert identity_of(here, AMPERE, ()) != identity_of(there, AMPERE, ())  # a constant of the program
    other_register = CODE[:16] + (int.from_bytes(CODE[16:32], "little") | 7 << 16).to_bytes(16, "little") + CODE[32:]
    assert identity_of(other_register, AMPERE, {16}) != identity_of(CODE, AMPERE, {16})


@pytest.mark.parametrize(
    ("calls", "is_whole"), [((), True), ((CALL_NEARBY,), True), ((CALL_REGISTER,), False), ((CALL_ABS,), False)]
)
def test_code_that_calls_elsewhere_is_not_whole(calls: tuple[int, ...], *, is_whole: bool) -> None:
    found = identity_of(CODE + code_of(*calls), AMPERE, ())
    assert found is not None
    assert found.is_whole is is_whole


def test_unknown_code_has_no_identity() -> None:
    assert identity_of(b"", AMPERE, ()) is None
    assert identity_of(CODE, PASCAL, ()) is None
    assert identity_of(code_of(NOP), AMPERE, ()) is None
    assert identity_of(CODE, AMPERE, {16 * 4 + 8, 10**9}) == identity_of(
        CODE, AMPERE, ()
    )  # a damaged image: beyond its end


def test_relocations_of_a_function_are_found_by_its_whole_name() -> None:
    name = "a_function_whose_name_is_longer_than_what_is_kept_of_the_names_of_sections_" + "x" * 20
    entries = struct.pack("<QQ", 0x20, 0) + struct.pack("<QQ", 0x30, 0)
    image = Image(
        elf_with({f".text.{name}": CODE, f".rel.text.{name}": entries + b"cut", f".rel.text.{name}2": entries[:16]})
    )
    assert image.relocated(name.encode()) == {0x20, 0x30}
    assert image.relocated(name.encode() + b"2") == {0x20}
    assert image.relocated(b"other") == set()


def test_a_branch_within_the_function_counts_as_it_is() -> None:
    assert identity_of(CODE + branch(-2), AMPERE, ()) != identity_of(CODE + branch(-3), AMPERE, ())


def test_a_kernel_of_the_document_has_its_code(tmp_path: Path) -> None:
    image = bytearray(elf_with({".text.k": CODE + code_of(NOP)}))
    image[0x30] = AMPERE
    path = tmp_path / "r.ncu-rep"
    counters = {"gpu__time_duration.sum": 1e6}
    path.write_bytes(
        write_report([Kernel("k", counters, source=7), Kernel("k", counters)], sources=((7, bytes(image)),))
    )
    known = identity_of(CODE, AMPERE, ())
    assert known is not None
    document = ncuroof.read(path).analyse().to_dict()
    assert [kernel["code"] for kernel in document["kernels"]] == [{"sha256": known.sha256, "n_instructions": 4}, None]


@pytest.mark.parametrize(
    ("names", "alone"),
    [
        ((b"__cuda_sm20_dblrcp_rn_slowpath_v3", b"__cuda_sm20_div_s64"), True),  # the division is one of integers
        ((b"__cuda_sm20_dblrcp_rn_slowpath_v3", b"__cuda_sm20_div_rn_f64_full"), False),
        ((b"__cuda_sm20_dblrcp_rn_slowpath_v3", b"$__internal_0_$__cuda_sm20_div_f64_slowpath_v2"), False),
        ((b"__cuda_sm20_div_rn_f64_full",), False),
        ((), False),
    ],
)
def test_a_module_says_by_its_functions_whether_it_divides(names: tuple[bytes, ...], *, alone: bool) -> None:
    image = Image(elf_with({".strtab": b"\0".join((b"", *names, b""))}))
    assert has_reciprocals_alone(image) is alone
