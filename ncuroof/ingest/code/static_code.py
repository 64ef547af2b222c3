"""What each kernel's machine code says without counters: indices that it never reads, arithmetic, uses of memory.

Narrow loads: a thread that works on consecutive elements loads them one by one unless their type or a vector type says that they
are aligned. The compiler then emits loads with the same address register at offsets that follow each other. Source: width, address
register and offset of LD and LDG: 1 169 loads in recorded code for compute capability 7.5 to 9.0, compared with its SASS.

Shared memory that is filled and never read: a compiler cannot remove such stores as it does others, because all threads of the
block see them. Where what a kernel computes from a tile reaches no result, the tile is still filled, and no instruction is left
that reads it. Source: CUDA Binary Utilities, "Instruction Set Reference", of the instruction sets from Volta to Hopper: what reads
shared memory. Opcodes: what nvcc 13.0 makes for 7.5 to 9.0a of PTX that reads or writes shared memory, and 2 282 recorded launches
on 7.5 to 9.0, both compared with their SASS.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import polars as pl

from ncuroof.ingest.code import sass
from ncuroof.ingest.code.async_copies import serial_copies
from ncuroof.ingest.code.elf import Image
from ncuroof.ingest.code.modules import CodeModule, compiler_version, debug_builds, kernel_spans, located
from ncuroof.ingest.code.sass import CONTROL, GLOBAL_LOADS, LOADED_BYTES, OPCODE, STORES, words
from ncuroof.ingest.file_content import Content
from ncuroof.ingest.framing import Framing

_MOST_LOOKED_AT = 1_000
"""Launches analysed; of more, only the first ones."""

_MOST_BYTES = 1 << 26
"""Bytes of code searched, over all functions. A large kernel has 0.1 MB."""

_N_FUNCTIONS = 4_096
"""Functions whose result is cached for further launches."""

_WIDEST = LOADED_BYTES[-1]

_KINDS = {
    **sass.ARITHMETIC,
    **dict.fromkeys((*sass.GLOBAL_LOADS, sass.ASYNC_COPY), "global_load"),
    **dict.fromkeys(sass.SHARED_LOADS, "shared_load"),
    **dict.fromkeys(sass.CONVERSIONS, "conversion"),
}
_UNKNOWN = "beyond_integers"
"""Instructions that are not known to be without floating-point arithmetic: it, tensor instructions, atomics, calls."""

OPERATIONS = (*dict.fromkeys(_KINDS.values()), *sass.MUFU_FUNCTIONS.values(), _UNKNOWN)

_WITHOUT_FLOATS = {
    *sass.MOVES_AND_INTEGERS,
    *sass.LOADS_AND_STORES,
    sass.BARRIER,
    *sass.WITHIN_FUNCTION,
}

_NEWEST_KNOWN = sass.HOPPER
"""Later instruction sets read shared memory in ways that are not known here: tcgen05, for one."""

_STORES = (sass.SHARED_STORE, sass.MATRIX_STORE, sass.ASYNC_COPY)
_READS = (*sass.SHARED_LOADS, *sass.SHARED_ATOMICS)

_FROM_MEMORY_ON = 0x180
"""Opcodes below belong to arithmetic, control flow and textures; of these, LDSM alone reads shared memory."""

_OF_OTHER_MEMORY = (
    *(opcode for opcode in (*sass.LOADS, *sass.STORES) if opcode != sass.GENERIC_LOAD),
    *sass.GLOBAL_ATOMICS,
    *sass.WITHOUT_MEMORY,
    sass.ASYNC_COPY,
)
"""Opcodes from `_FROM_MEMORY_ON` on that do not read shared memory. The others do, or may: generic accesses, copies in bulk and by
TMA, matrix products (WGMMA)."""

INDICES = {
    sass.TID_X: "launch__block_dim_x",
    sass.TID_Y: "launch__block_dim_y",
    sass.TID_Z: "launch__block_dim_z",
    sass.CTAID_X: "launch__grid_dim_x",
    sass.CTAID_Y: "launch__grid_dim_y",
    sass.CTAID_Z: "launch__grid_dim_z",
}
"""By special register, the counter with the launch extent along which it numbers threads or blocks."""

BY_LANE = "by_lane"
"""Marker that accompanies the extents if the code exchanges values within warps: its threads can then differ without an index."""

_OTHERWISE_DIFFERENT = (sass.ELECT, *sass.ATOMICS_WITH_RESULT, *sass.OTHER_ATOMICS, sass.CALL_ABSOLUTE)
"""Instructions whose result or effect differs by thread, and calls of functions that are not searched."""

_TELLING = re.compile(
    b"["
    + b"".join(
        re.escape(bytes([opcode & 0xFF]))
        for opcode in (
            *sass.SPECIAL_REGISTER_READS,
            *sass.CLOCK_READS,
            *sass.LANE_WISE,
            *_OTHERWISE_DIFFERENT,
            sass.CALL,
        )
    )
    + b"]"
)


_ADDRESS_BITS = ((1 << 82) - 1) ^ ((1 << 32) - 1)
"""Where an instruction holds an address: immediates begin at bit 32, targets end at bit 81."""


@dataclass(frozen=True, slots=True)
class CodeIdentity:
    """By what the code of a function is recognised.

    Attributes:
        sha256: of its instructions, in hexadecimal; without addresses that linker and loader fill in, and what only fills up.
        n_instructions: how many these are.
        is_whole: whether it calls nothing outside, so that equal code computes the same.
    """

    sha256: str
    n_instructions: int
    is_whole: bool


def identity_of(code: bytes, compute_capability: int, relocated: Collection[int]) -> CodeIdentity | None:
    """Return by what a function's code is recognised; None if its code is not known.

    Args:
        code: the function's machine code.
        compute_capability: its target, such as 86 for 8.6. Below 7.0 the instruction encoding differs and the result is None.
        relocated: offsets of addresses in it.
    """
    size = sass.INSTRUCTION_BYTES
    n_instructions = len(code) // size if compute_capability >= sass.VOLTA else 0
    while n_instructions and _opcode(code, n_instructions - 1) == sass.NOP:
        n_instructions -= 1
    if not n_instructions:
        return None
    content = bytearray(code[: n_instructions * size])
    for start in {offset - offset % size for offset in relocated}:
        if start < len(content):
            instruction = int.from_bytes(content[start : start + size], "little")
            content[start : start + size] = (instruction & ~_ADDRESS_BITS).to_bytes(size, "little")
    full = {beginning & sass.FULL_OPCODE for beginning in sass.beginnings(content)}
    calls = {each for each in full if each & sass.OPCODE in (sass.CALL, sass.CALL_ABSOLUTE)}
    return CodeIdentity(hashlib.sha256(content).hexdigest(), n_instructions, calls <= {sass.CALL_NEARBY})


def _opcode(code: bytes, number: int) -> int:
    """Return the opcode of an instruction, by its number."""
    start = number * sass.INSTRUCTION_BYTES
    return int.from_bytes(code[start : start + 2], "little") & sass.OPCODE


def adjacent_share(code: bytes, compute_capability: int) -> float | None:
    """Return the share of a function's loads from global memory that read right beside another load of their width.

    Loads of 16 bytes, the widest there are, never count as such. Each load counts once, however often it is executed. None if the
    function has no loads, or its code is not known.

    Args:
        code: the function's machine code.
        compute_capability: its target, such as 86 for 8.6. Below 7.0 the instruction encoding differs and the result is None.
    """
    n_loads = 0
    groups: list[tuple[int, set[int]]] = []
    # Offsets, by address register and width, since that register was written.
    open_groups: dict[tuple[int, int], set[int]] = {}
    for low, high in words(code, compute_capability):
        opcode, result = low & OPCODE, low >> 16 & 0xFF
        if opcode in GLOBAL_LOADS:
            n_loads += 1
            width = LOADED_BYTES[min(high >> 9 & 7, len(LOADED_BYTES) - 1)]
            group = open_groups.setdefault((low >> 24 & 0xFF, width), set())
            if not group:
                groups.append((width, group))
            group.add(_signed(low >> 40))
        if opcode in CONTROL:
            open_groups.clear()
        elif opcode not in STORES:
            written = (result, result - 1)  # addresses take a pair of registers
            open_groups = {key: group for key, group in open_groups.items() if key[0] not in written}
    return sum(_n_adjacent(offsets, width) for width, offsets in groups) / n_loads if n_loads else None


def _n_adjacent(offsets: set[int], width: int) -> int:
    """Return how many of the loads at these offsets have another one right before or behind them."""
    if width == _WIDEST:
        return 0
    return sum(offset - width in offsets or offset + width in offsets for offset in offsets)


def _signed(bits: int) -> int:
    """Return a number of 24 bits in two's complement."""
    return bits - (1 << 24) if bits >> 23 else bits


def operations_in(code: bytes, compute_capability: int) -> dict[str, int] | None:
    """Return how many instructions of each of the OPERATIONS a function has.

    None if its code is not known.

    Args:
        code: the function's machine code.
        compute_capability: its target, such as 86 for 8.6. Below 7.0 the instruction encoding differs and the result is None.
    """
    if not code or compute_capability < sass.VOLTA:
        return None
    found = dict.fromkeys(OPERATIONS, 0)
    low, high, functions = (code[byte :: sass.INSTRUCTION_BYTES] for byte in (0, 1, sass.REGISTER_BYTE))
    for (first, second, function), n in Counter(zip(low, high, functions, strict=False)).items():
        if second >> 4 == sass.NEVER:
            continue
        opcode = (first | second << 8) & sass.OPCODE
        is_mufu = opcode == sass.MUFU
        operation = sass.MUFU_FUNCTIONS.get(function >> 2 & 15) if is_mufu else _KINDS.get(opcode)
        if operation is not None:
            found[operation] += n
        if opcode not in _WITHOUT_FLOATS:
            found[_UNKNOWN] += n
    return found


def local_share(code: bytes, compute_capability: int) -> float | None:
    """Return the share of a function's memory instructions that load from local memory or store to it.

    Loads, stores, atomics and asynchronous copies count, each once, however often it is executed; reads of constants do not. None
    if the function has none, or its code is not known.

    Args:
        code: the function's machine code.
        compute_capability: its target, such as 86 for 8.6. Below 7.0 the instruction encoding differs and the result is None.
    """
    if compute_capability < sass.VOLTA:
        return None
    n_accesses, n_local = (
        sum(n for beginning, n in sass.beginnings(code).items() if beginning & sass.OPCODE in opcodes)
        for opcodes in (sass.MEMORY_ACCESSES, sass.LOCAL_ACCESSES)
    )
    return n_local / n_accesses if n_accesses else None


def unread_shared_stores(code: bytes, compute_capability: int) -> int | None:
    """Return how many instructions of a function store to shared memory, or copy there, if none reads it; 0 if one does.

    Each counts once, however often it is executed. It is 0 too if no instruction stores there. None if others can read shared
    memory (generic accesses, bulk copies, called functions), or the code is not known.

    Args:
        code: the function's machine code.
        compute_capability: its target, such as 86 for 8.6. Below 7.0 the instruction encoding differs, above 9.0 the instructions
            that read shared memory are not all known, and the result is None.
    """
    is_cut = len(code) % sass.INSTRUCTION_BYTES  # what is missing may read it
    if not code or is_cut or not sass.VOLTA <= compute_capability <= _NEWEST_KNOWN:
        return None
    executed = {each: n for each, n in sass.beginnings(code).items() if each >> sass.PREDICATE_BIT != sass.NEVER}
    n_stores = sum(n for each, n in executed.items() if each & sass.OPCODE in _STORES)
    if not n_stores or any(each & sass.OPCODE in _READS for each in executed):
        return 0
    return n_stores if all(_leaves_shared_memory(each & sass.FULL_OPCODE) for each in executed) else None


def _leaves_shared_memory(full: int) -> bool:
    """Return whether an instruction, by its full opcode, is known not to read shared memory, nor to call what may."""
    opcode = full & sass.OPCODE
    if opcode in sass.CONTROL:
        return opcode in sass.WITHIN_FUNCTION or full == sass.CALL_NEARBY
    return opcode < _FROM_MEMORY_ON or opcode in _OF_OTHER_MEMORY


def unread_in(code: bytes, compute_capability: int) -> frozenset[str] | None:
    """Return the extents along which a function reads no index, plus BY_LANE if it applies.

    None if its threads can differ in other ways, or the code is not known.

    Args:
        code: the function's machine code.
        compute_capability: its target, such as 86 for 8.6. Below 7.0 the instruction encoding differs and the result is None.
    """
    if not code or compute_capability < sass.VOLTA:
        return None
    read, is_by_lane = set(), False
    low, high, registers = (code[byte :: sass.INSTRUCTION_BYTES] for byte in (0, 1, sass.REGISTER_BYTE))
    for match in _TELLING.finditer(low[: len(registers)]):
        number = match.start()
        full = (low[number] | high[number] << 8) & sass.FULL_OPCODE
        opcode = full & sass.OPCODE
        reads_clock = opcode in sass.CLOCK_READS and registers[number] != sass.ZERO  # of SRZ, they write zeros
        if opcode in sass.SPECIAL_REGISTER_READS or reads_clock:
            read.add(registers[number])
        elif opcode in sass.LANE_WISE:
            is_by_lane = True
        elif opcode in _OTHERWISE_DIFFERENT or (opcode == sass.CALL and full != sass.CALL_NEARBY):
            return None
    unread = frozenset(INDICES[register] for register in INDICES.keys() - read)
    return (unread | {BY_LANE} if is_by_lane else unread) if read <= INDICES.keys() else None


def unread_indices(code: bytes, compute_capability: int) -> list[str] | None:
    """Return what `unread_in` returns, as a sorted list."""
    unread = unread_in(code, compute_capability)
    return None if unread is None else sorted(unread)


ANALYSES: Mapping[str, tuple[pl.DataType, Callable[[bytes, int], Any]]] = {
    "unread_indices": (pl.List(pl.String), unread_indices),
    "operations": (pl.Struct(dict.fromkeys(OPERATIONS, pl.Int64())), operations_in),
    "adjacent_loads": (pl.Float64(), adjacent_share),
    "local_accesses": (pl.Float64(), local_share),
    "unread_shared_stores": (pl.Int64(), unread_shared_stores),
    "serial_copies": (pl.Int64(), serial_copies),
}
"""What is computed of each function: a column of RAW_CODE, its type, and the function that computes it.

That function takes the machine code and its compute capability (86 for 8.6), and returns None for what it does not know. What it
returns is said in its docstring."""

_IDENTITY = pl.Struct({"sha256": pl.String(), "n_instructions": pl.Int64(), "is_whole": pl.Boolean()})
"""CodeIdentity."""

_RECIPROCAL = b"_dblrcp_"
_DIVISION = re.compile(rb"__cuda_sm\d+_div_\w*f64")
"""Names of the compiler's functions that a module has for unusual operands: of reciprocals and of divisions in FP64."""

RAW_CODE = pl.Schema(
    {
        "is_debug_build": pl.Boolean(),
        "has_reciprocals_alone": pl.Boolean(),  # in FP64, and no divisions
        "identity": _IDENTITY,
        "compiler": pl.String(),  # version of ptxas
        **{name: dtype for name, (dtype, _) in ANALYSES.items()},
    }
)
"""One row per profiled workload: what its machine code says. Null where that is not known, as without the code."""


def code_table(
    content: Content, framing: Framing, modules: Mapping[int, CodeModule], rows: Sequence[int]
) -> pl.DataFrame:
    """Return RAW_CODE; nothing is known of a workload whose code the report does not contain.

    Args:
        content: the report's bytes.
        framing: its blocks, all of whose workloads were read.
        modules: the code in the report, by reference.
        rows: all workload rows, the most important first.
    """
    builds = debug_builds(content, framing, modules) or (None,) * len(rows)
    found: list[dict[str, Any]] = [{"is_debug_build": is_debug_build} for is_debug_build in builds]
    for row, values in _analysed(content, framing, modules, rows):
        found[row].update(values)
    return raw_code(found)


def has_reciprocals_alone(image: Image) -> bool:
    """Return whether a module computes reciprocals in FP64, and does not divide in FP64.

    A reciprocal begins with the same approximation as a division. Each has a function for unusual operands, whose name tells them
    apart.
    """
    names = image.content(b".strtab")
    return _RECIPROCAL in names and _DIVISION.search(names) is None


def raw_code(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return RAW_CODE with these rows; what a row does not have is null."""
    return pl.DataFrame({name: [row.get(name) for row in rows] for name in RAW_CODE}, schema=RAW_CODE)


def _analysed(
    content: Content, framing: Framing, modules: Mapping[int, CodeModule], rows: Iterable[int]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rows of workloads whose code is in the report, each with the values of ANALYSES."""
    if modules and not any(module.code for module in modules.values()):
        return
    spans = list(kernel_spans(framing))
    n_left = _MOST_BYTES

    @lru_cache(_N_FUNCTIONS)
    def of_function(module: CodeModule, function: bytes) -> Mapping[str, Any]:
        nonlocal n_left
        image = module.image
        if image is None or n_left <= 0:
            return {}
        code = image.code(function)
        n_left -= len(code)
        target = image.compute_capability
        identity = identity_of(code, target, image.relocated(function))
        return {name: analyse(code, target) for name, (_, analyse) in ANALYSES.items()} | {
            "identity": None if identity is None else asdict(identity),
            "compiler": compiler_version(image),
            "has_reciprocals_alone": has_reciprocals_alone(image),
        }

    for row in islice(rows, _MOST_LOOKED_AT):
        span = spans[row]
        kernel = None if span is None else located(content, span, modules)
        if kernel is not None:
            yield row, of_function(*kernel)
