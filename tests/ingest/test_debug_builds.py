from __future__ import annotations

import struct
from pathlib import Path

import pytest

import ncuroof
from ncuroof.ingest import open_report
from ncuroof.ingest.code.elf import Image
from ncuroof.ingest.code.modules import is_debug_build
from ncuroof.ingest.raw_report import CounterSelection
from ncuroof.ingest.redaction.fields import outline
from ncuroof.ingest.wire import WireError
from ncuroof.present import render
from tests.support.elf_image import elf
from tests.support.report_writer import Kernel, write_report

DURATION = {"gpu__time_duration.sum": 1e5}


# What nvcc 13.0 and ptxas give each build, by readelf.
OPTIMISED = elf(".debug_frame", ".note.nv.tkinfo", ".text.k")
WITH_LINES = elf(".debug_frame", ".debug_line", ".debug_str", ".nv_debug_line_sass", ".nv_debug_ptx_txt", ".text.k")
DEBUG = elf(".debug_info", ".debug_line", ".nv_debug_info_reg_sass", ".nv_debug_info_reg_type", ".text.k")


def builds(path: Path, *kernels: Kernel, sources: tuple[tuple[int, bytes], ...]) -> list[bool | None]:
    path.write_bytes(write_report(kernels, sources=sources))
    return open_report(path).code["is_debug_build"].to_list()


@pytest.mark.parametrize(
    ("code", "expected"),
    [(OPTIMISED, False), (WITH_LINES, False), (DEBUG, True), (b"", None), (b"// PTX", None), (DEBUG[:80], None)],
    ids=["optimised", "-lineinfo", "-G", "left out", "no ELF", "cut"],
)
def test_the_code_says_how_it_was_built(tmp_path: Path, code: bytes, expected: bool | None) -> None:
    assert builds(tmp_path / "r.ncu-rep", Kernel("k", DURATION), sources=((1, code),)) == [expected]


@pytest.mark.parametrize(("code", "expected"), [(OPTIMISED, False), (DEBUG, True)])
def test_redacted_code_says_only_how_it_was_built(code: bytes, expected: bool) -> None:
    left = outline(code)
    assert left is not None
    assert is_debug_build(Image(left)) is expected
    assert b".text" not in left
    assert outline(b"// PTX") is None


def test_an_oversized_table_of_sections_is_malformed() -> None:
    image = bytearray(DEBUG)
    struct.pack_into("<Q", image, 0x28, 2**64 - 1)
    with pytest.raises(WireError):
        Image(bytes(image))


def test_headers_of_sections_that_overlap_are_malformed() -> None:
    image = bytearray(DEBUG)
    struct.pack_into("<HH", image, 0x3A, 0, 0xFFFF)  # 65 535 headers at the same place
    with pytest.raises(WireError, match="section headers of 0 bytes"):
        Image(bytes(image))


def test_each_kernel_has_the_build_of_its_own_code(tmp_path: Path) -> None:
    kernels = [
        Kernel("a", DURATION, source=7),
        Kernel("b", DURATION, source=8),
        Kernel("c", DURATION, source=9),
        Kernel("r", DURATION, kind="range"),
    ]
    # the code of 8 is mentioned again without being stored again, as ncu does
    sources = ((7, WITH_LINES), (8, DEBUG), (8, b""))
    assert builds(tmp_path / "r.ncu-rep", *kernels, sources=sources) == [False, True, None, None]


def test_code_that_was_left_out_is_not_taken_for_optimised(tmp_path: Path) -> None:
    kernels = [Kernel("a", DURATION, source=1), Kernel("b", DURATION, source=2)]
    assert builds(tmp_path / "r.ncu-rep", *kernels, sources=((1, OPTIMISED), (2, b""))) == [False, None]


def test_old_kernels_hold_their_code_themselves(tmp_path: Path) -> None:
    kernels = [Kernel("a", DURATION, code=DEBUG), Kernel("b", DURATION, code=OPTIMISED)]
    assert builds(tmp_path / "r.ncu-rep", *kernels, sources=()) == [True, False]


def test_builds_are_unknown_if_results_were_lost(tmp_path: Path) -> None:
    path = tmp_path / "r.ncu-rep"
    names = ("first", "second", "third")
    whole = write_report([Kernel(name, DURATION, code=DEBUG) for name in names], sources=())
    path.write_bytes(whole.replace(b"\x32\x06second", b"\x32\x7fsecond"))
    assert open_report(path).code["is_debug_build"].to_list() == [None, None]
    assert ncuroof.read(path).analyse().summary.n_kernels == 2


@pytest.mark.long
def test_a_debug_build_comes_first_and_hides_gains(tmp_path: Path) -> None:
    path = tmp_path / "debug.ncu-rep"
    counters = DURATION | {
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
        "launch__waves_per_multiprocessor": 0.1,
    }
    kernels = [Kernel(name, counters, block=(256, 1, 1), source=number) for number, name in enumerate("ab", 1)]
    path.write_bytes(write_report(kernels, sources=((1, DEBUG), (2, OPTIMISED))))
    analysis = ncuroof.read(path).analyse()
    debug, optimised = analysis.to_dict()["kernels"]
    assert [(finding["id"], finding["gain_ns"]) for finding in debug["findings"]] == [
        ("debug_build", None),
        ("small_grid", None),
    ]
    assert [finding["id"] for finding in optimised["findings"]] == ["small_grid"]
    assert optimised["findings"][0]["gain_ns"] == pytest.approx(0.8e5)
    assert (debug["check"]["debug_build"], optimised["check"]["debug_build"]) == (1, 0)
    (action,) = analysis.to_dict()["actions"]
    assert action["n_launches"] == 1
    for form in ("term", "md", "html"):
        assert "1 of 2 kernels was compiled for debugging" in " ".join(render(analysis, form).decode().split()), form


@pytest.mark.long
def test_debug_builds_of_recorded_reports_are_those_whose_bytes_say_so(corpus: list[Path]) -> None:
    n_debug_builds = 0
    for path in corpus:
        if path.suffix != ".ncu-rep":
            continue
        found = open_report(path, selection=CounterSelection(frozenset())).code["is_debug_build"]
        has_mark = b".nv_debug_info_reg_sass" in path.read_bytes()
        assert set(found) == {has_mark}, path.name
        n_debug_builds += has_mark
    assert n_debug_builds == 15
