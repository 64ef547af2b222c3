"""The younger CUDA programs on a CPU: no access beyond an array, and both cases of a pair compute the same."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from cases import HERE as SUITE
from cases import Case, load, parsed_toml

from tests.suite import emulated

SMALL = {
    "loads.cu": {"blocks": 2, "per_block": 16384, "n": 4096, "rows": 16, "values": 1024},
    "instructions.cu": {
        **dict.fromkeys(("laps", "iterations"), 8),
        **dict.fromkeys(("rows", "pitch"), 64),
        "blocks": 2,
        "n": 512,
        "degree": 16,
        "width": 97,
        "height": 31,
    },
    "balance.cu": {
        **dict.fromkeys(("n", "launched"), 4096),
        "rows": 1024,
        "longest": 64,
        "scale": 2,
        "blocks": 64,
        "iterations": 16,
        "laps": 8,
        "values": 65536,
    },
    "waiting.cu": {"values": 65536, "waves": 1, "repeats": 8},
    "sharing.cu": {
        **dict.fromkeys(("per_thread", "iterations"), 8),
        "n": 512,
        "rows": 4,
        "columns": 1024,
        "blocks": 2,
        "tiles": 9,
        "laps": 4,
    },
    "fusing.cu": {"n": 16384, "rows": 4, "blocks": 8},
    "irregular.cu": {
        **dict.fromkeys(("rows", "keys", "walks", "wanted"), 512),
        **dict.fromkeys(("columns", "vertices", "inner"), 1024),
        "per_row": 5,
        "slots": 2048,
        "degree": 6,
        "part": 64,
        "n": 4096,
        "blocks": 2,
        "per_thread": 8,
        "rounds": 8,
    },
    "mixed.cu": {"n": 4096, "iterations": 8, "laps": 8, "rounds": 8, "blocks": 2, "tickets": 100, "steps": 8},
    "stencils.cu": {"n": 32, "depth": 8},
    "tensor_paths.cu": {"n": 128, "blocks": 2, "rounds": 8},
    "hopper.cu": {"per_sm": 2, "rounds": 8, "copies": 9},
}
"""Sizes for a CPU, by program: those that a case has of them."""
OTHERS = {
    ("instructions.cu", "coarse_1"): {"n": 4096},
    ("instructions.cu", "coarse_8"): {"n": 4096},
    ("instructions.cu", "single_halves"): {"n": 1024},
    ("instructions.cu", "paired_halves"): {"n": 1024},
    ("instructions.cu", "divided"): {"n": 65536},
    ("instructions.cu", "multiplied"): {"n": 65536},
    ("balance.cu", "chains"): {},
    ("fusing.cu", "tiles_2"): {"n": 128},
    ("fusing.cu", "tiles_4"): {"n": 128},
    ("fusing.cu", "tiles_8"): {"n": 128},
    ("mixed.cu", "naive"): {"n": 32},
}
NOT_COMPARED = {
    "particle_records": "the fields lie in another order, and so hold other numbers",
    "vectors_of_three": "so do padded vectors",
    "row_pitch": "padding is summed up as well",
    "halves": "sums of halves are not told",
    "two_kinds": "other elements are of the other kind",
    "last_blocks": "more blocks give more results",
    "activation_apart": "what lies between both kernels is one more buffer, of which the fused one has a stub",
    "norms_apart": "so are the norms",
}
"""Pairs that compute the same in a way that sums of buffers do not show."""
WITH_ASSEMBLY = ("late_tiles", "double_products", "small_fragments", "bulk_awaited")
"""Pairs whose arithmetic or copies are inline assembly, which a CPU does without."""

CASES = {case.id: case for case in load().cases if case.program in SMALL and case.group in ("pairs", "hard")}
PAIRS = [
    (pair["fault"], pair["mended"])
    for pair in parsed_toml((SUITE / "mended.toml").read_text(encoding="utf-8"))["pair"]
    if {pair["fault"], pair["mended"]} <= CASES.keys() and pair["fault"] not in (*NOT_COMPARED, *WITH_ASSEMBLY)
]

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler on this machine")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[emulated.Freed]]:
    """Return the buffers of each case, the last one that was made first."""
    folder = tmp_path_factory.mktemp("emulated")
    programs = {program: emulated.built(program, folder) for program in SMALL}
    return {name: run(case, programs[case.program]) for name, case in CASES.items()}


def run(case: Case, program: Path) -> list[emulated.Freed]:
    small = SMALL[case.program] | OTHERS.get((case.program, case.function), {})
    sizes = {name: min(size, small.get(name, size)) for name, size in case.sizes.items()}
    return emulated.ran(program, case.function, sizes)


@pytest.mark.long
def test_no_case_touches_what_is_not_its_own(results: dict[str, list[emulated.Freed]]) -> None:
    assert len(CASES) >= 100
    assert all(results.values())  # each ran to its end


@pytest.mark.long
def test_both_cases_of_a_pair_give_the_same_result(results: dict[str, list[emulated.Freed]]) -> None:
    assert len(PAIRS) >= 25
    assert {*NOT_COMPARED, *WITH_ASSEMBLY} <= CASES.keys()
    for before, after in PAIRS:
        (result, *_), (other, *_) = results[before], results[after]
        assert result.n_bytes == other.n_bytes, before
        assert result.total == pytest.approx(other.total, rel=1e-4), before
        assert result.total, before


def test_an_access_beyond_an_array_is_found(tmp_path: Path) -> None:
    program = tmp_path / "beyond.cu"
    program.write_text(
        """
        #include "data.cuh"
        __global__ void read_beyond(const float* in, float* out, int more) { out[threadIdx.x] = in[threadIdx.x + more]; }
        static void reading(const Sizes& sizes) {
            Buffer<float> in(32), out(32);
            repeat([&] { read_beyond<<<1, 32>>>(in, out, static_cast<int>(sizes["more"])); });
        }
        int main(int argc, char** argv) { return run_cases(argc, argv, {{"reading", reading}}); }
        """,
        encoding="utf-8",
    )
    made = emulated.built(program.name, tmp_path, source=program)
    assert len(emulated.ran(made, "reading", {"more": 0})) == 2
    with pytest.raises(AssertionError, match="-11"):  # SIGSEGV
        emulated.ran(made, "reading", {"more": 1})


def test_launches_become_calls() -> None:
    source = "repeat([&] { kernel<2, true><<<dim3(n / 2, f(n)), 256, shared>>>(in, g(out), 1); });"
    wanted = "repeat([&] { emulate(dim3(n / 2, f(n)), 256, shared, [&] { kernel<2, true>(in, g(out), 1); }); });"
    assert emulated.on_cpu(source) == wanted
    assert emulated.on_cpu("__shared__ float tile[32];") == "static float tile[32];"


def turns(addresses: list[int]) -> int:
    """Return how many turns shared memory takes for words at these byte addresses: equal words are one."""
    words = {address // 4 for address in addresses}
    return max(Counter(word % 32 for word in words).values())


def sectors(addresses: list[int]) -> int:
    return len({address // 32 for address in addresses})


def test_planted_conflicts_and_those_that_padding_avoids() -> None:
    assert [turns([4 * lane * pitch for lane in range(32)]) for pitch in (32, 33)] == [32, 1]  # tile_padding
    # Eight rows of 16 bytes at a time, as ldmatrix reads the tiles of late_tiles: 40 values of two bytes apart.
    assert turns([80 * row + part for row in range(8) for part in range(0, 16, 4)]) == 1
    # Half a warp at a time, as doubles are read: rows of A 20 doubles apart, rows of B 68.
    for half in (range(16), range(16, 32)):
        of_a = [8 * (lane // 4 * 20 + lane % 4) for lane in half]
        of_b = [8 * (lane % 4 * 68 + lane // 4) for lane in half]
        assert turns([place + word for place in of_a for word in (0, 4)]) == 1
        assert turns([place + word for place in of_b for word in (0, 4)]) == 1
    # Taps of one filter and one tap are the same word for all lanes: a load each is a turn each, as is one of four taps.
    assert turns([4 * 129] * 32) == 1


def test_planted_sectors() -> None:
    lanes = range(32)
    assert sectors([32 * lane for lane in lanes]) == 32  # particle_records: a record each
    assert sectors([4 * lane for lane in lanes]) == 4
    assert sectors([12 * lane for lane in lanes]) == 12  # vectors_of_three
    starts = [4 * 1021 * row for row in range(8)]
    assert [sectors([start + 4 * lane for lane in lanes]) for start in starts].count(5) == 7  # row_pitch: all but one
    assert sectors([4 * 1024 + 4 * lane for lane in lanes]) == 4
    # narrow_columns: 16 bytes of 32 rows, and of four rows 128 bytes each
    assert sectors([4 * 16384 * lane for lane in lanes]) == 32
    assert sectors([4 * 16384 * (lane // 8) + 16 * (lane % 8) for lane in lanes]) == 16
