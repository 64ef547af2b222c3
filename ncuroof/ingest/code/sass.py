"""SASS, the machine code of GPUs: how instructions are encoded from Volta on, and the opcodes that are looked for.

Source: CUDA Binary Utilities, "Instruction Set Reference" (what instructions do); Jia et al., "Dissecting the NVIDIA Volta GPU
Architecture via Microbenchmarking" (2018), 2.1 (128-bit instructions). Opcodes, functions of MUFU and special registers: recorded
code for compute capability 7.5 to 9.0, compared with its SASS, and known programs compiled for 7.5 to 12.1.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator

VOLTA, AMPERE, HOPPER = 70, 80, 90
"""Compute capabilities, major × 10 + minor: below the first, the encoding differs; from the last on, that of branches does. The
second is the first with asynchronous copies."""

INSTRUCTION_BYTES = 16
_WORDS = struct.Struct("<QQ")
OPCODE, FULL_OPCODE = 0x1FF, 0xFFF
"""Masks of the lowest bits: the opcode, and the opcode with the form of its operands."""

PREDICATE_BIT, ALWAYS, NEVER = 12, 0x7, 0xF
"""Lowest of the four bits with an instruction's predicate, and the predicates PT and !PT: the instruction is always executed, or
never, as some LDS that nvcc puts before LDGSTS."""

REGISTER_BYTE = 9
"""Byte of an instruction with the special register that it reads; in MUFU, with the function."""

# Arithmetic: FADD, FMUL, FFMA, DADD, DMUL, DFMA, and MUFU with the functions of its first approximations in FP64.
ARITHMETIC = {0x20: "fmul", 0x21: "fadd", 0x23: "ffma", 0x28: "dmul", 0x29: "dadd", 0x2B: "dfma"}
MUFU = 0x108
MUFU_FUNCTIONS = {6: "rcp64h", 7: "rsq64h"}

CONVERSIONS = (0x045, 0x106, 0x112)
"""I2FP and I2F (two, the second of 64 bits): from integers to floating-point numbers."""
MOVES_AND_INTEGERS = (
    0x002, 0x003, 0x004, 0x005, 0x007, 0x008, 0x00C, 0x010, 0x011, 0x012, 0x016, 0x017, 0x019, 0x01A, 0x01C, 0x024, 0x025, 0x027,
    0x036, 0x082, 0x087, 0x08C, 0x090, 0x091, 0x092, 0x099, 0x0A4, 0x0A5, 0x0B9, 0x118, 0x119, 0x1C2, 0x1C3,
)  # fmt: skip
"""MOV, P2R, R2P, CS2R, SEL, FSEL, ISETP, IADD3, LEA, LOP3, PRMT, IMNMX, SHF, SGXT, PLOP3, IMAD (three), VIADD; UMOV, USEL, UISETP,
UIADD3, ULEA, ULOP3, USHF, UIMAD (two), ULDC; NOP, S2R, R2UR and S2UR: neither floating-point arithmetic nor memory."""

# Control flow.
BRANCH, INDEXED_BRANCH, EXIT, RETURN = 0x147, 0x149, 0x14D, 0x150
CALL_ABSOLUTE = 0x143
"""CALL.ABS: the called function is in another section."""
CALL, CALL_NEARBY = 0x144, 0x944
"""Opcode of CALL.REL, and its full opcode with a constant offset, which stays within the section."""

CONTROL = range(0x140, 0x160)
"""Branches, calls, returns, and instructions that reconverge threads."""
WITHIN_FUNCTION = (
    0x141,
    0x142,
    0x145,
    0x146,
    BRANCH,
    0x148,
    INDEXED_BRANCH,
    EXIT,
    0x14E,
    RETURN,
    0x155,
    0x156,
    0x15C,
    0x15D,
)
"""BSYNC, BREAK, BSSY, YIELD, BRA, WARPSYNC, BRX, EXIT, LEPC, RET, BMOV (two), BPT and NANOSLEEP: they stay in the function."""

# Special registers: S2R and S2UR; CS2R and similar, which read clocks; the numbers of the registers.
SPECIAL_REGISTER_READS, CLOCK_READS = (0x119, 0x1C3), (0x005, 0x0CB)
TID_X, TID_Y, TID_Z, CTAID_X, CTAID_Y, CTAID_Z, ZERO = 0x21, 0x22, 0x23, 0x25, 0x26, 0x27, 0xFF

# Memory.
LOADS = (0x180, 0x181, 0x183)
"""LD, LDG and LDL: loads into registers through L1."""
GENERIC_LOAD, SHARED_STORE, MATRIX_STORE = 0x180, 0x188, 0x044
"""LD, which reads any memory; STS and STSM."""
GLOBAL_LOADS, STORES = (GENERIC_LOAD, 0x181), (0x185, 0x186, 0x187, SHARED_STORE)
"""LD and LDG; ST, STG, STL and STS, which write no register."""
LOADED_BYTES = (1, 1, 2, 2, 4, 8, 16)
"""Bytes per thread by an access's width: unsigned and signed 8 and 16 bits, 32, 64 and 128 bits."""
ATOMICS_WITH_RESULT = (0x18A, 0x18B, 0x1A8, 0x1A9)
"""ATOM and ATOMG, plain and compare-and-swap: atomics on global memory that return a result."""
SHARED_ATOMICS = (0x18C, 0x18D)
"""ATOMS, plain and compare-and-swap."""
OTHER_ATOMICS = (*SHARED_ATOMICS, 0x18E, 0x1A6)
"""ATOMS, RED and REDG."""
GLOBAL_ATOMICS = (0x18E, 0x1A3, 0x1A6, 0x1A8, 0x1A9)
"""RED, ATOMG of floating-point numbers, REDG, ATOMG: atomics that access only global memory."""
LOCAL_ACCESSES, SHARED_LOADS = (0x183, 0x187), (0x03B, 0x184)
"""LDL and STL; LDSM and LDS."""
ASYNC_COPY, WAIT_FOR_COPIES = 0x1AE, 0x11A
"""LDGSTS and DEPBAR. DEPBAR waits for groups of LDGSTS, without a wait mask; warps are sampled at the instruction after it."""
MBARRIER = (0x1A7, 0x1B0, 0x1B1, 0x1B2)
"""SYNCS (three) and ARRIVES: barriers in shared memory, at which copies can arrive."""

WITHOUT_MEMORY = (0x182, 0x189, 0x18F, 0x192, 0x1A1, 0x1AB, 0x1AF, 0x1C2, 0x1C3)
"""LDC, SHFL, CCTL, MEMBAR, MATCH, ERRBAR, LDGDEPBAR, R2UR and S2UR: they read neither global nor shared memory."""

LOADS_AND_STORES = (0x181, 0x182, 0x184, 0x186, SHARED_STORE)
"""LDG, LDC, LDS, STG and STS."""
MEMORY_ACCESSES = (*LOADS, *SHARED_LOADS, *STORES, *ATOMICS_WITH_RESULT, *OTHER_ATOMICS, ASYNC_COPY)
"""Loads, stores, atomics and asynchronous copies, of global, local and shared memory."""

# Several threads together.
MATRIX_PRODUCTS, WARP_GROUP_PRODUCTS = (0x026, 0x037, 0x03C, 0x03D, 0x03F, 0x07A), (0x1F0, 0x1F1, 0x1F2, 0x1F3)
"""IDP, IMMA, HMMA, BMMA, DMMA, QMMA; HGMMA, IGMMA, BGMMA and QGMMA, which run asynchronously."""
BARRIER, WARP_GROUP = 0x11D, 0x1C5
"""BAR, the barrier of a block, and WARPGROUP, which waits for matrix products (WGMMA)."""
ELECT = 0x02F
"""Picks one lane."""
LANE_WISE = (0x037, 0x03A, 0x03B, 0x03C, 0x03F, 0x07A, 0x189)
"""IMMA, LDSM, HMMA, DMMA, QMMA and similar, and SHFL: what a thread gets depends on its lane in the warp."""


NOP = 0x118
"""Fills functions up to a multiple of 128 bytes."""


def is_wait_for_copies(low: int) -> bool:
    """Return whether a DEPBAR, by its low 64 bits, waits for copies: their groups (LDGDEPBAR) are counted by scoreboard 0."""
    return low >> 44 & 7 == 0


def n_groups_left(low: int) -> int:
    """Return how many groups of copies may still be in flight when a DEPBAR, by its low 64 bits, lets a warp continue."""
    return low >> 38 & 63


def beginnings(code: bytes | bytearray) -> dict[int, int]:
    """Return how many instructions have each value of their lowest 16 bits: full opcode and, in the highest four, predicate."""
    low, high = (code[byte::INSTRUCTION_BYTES] for byte in (0, 1))
    return {first | second << 8: n for (first, second), n in Counter(zip(low, high, strict=False)).items()}


def words(code: bytes, compute_capability: int) -> Iterator[tuple[int, int]]:
    """Return the low and the high 64 bits of each instruction; nothing below 7.0, where the encoding differs.

    Args:
        code: machine code of a function.
        compute_capability: its target, such as 86 for 8.6.
    """
    n_bytes = len(code) // INSTRUCTION_BYTES * INSTRUCTION_BYTES if compute_capability >= VOLTA else 0
    return _WORDS.iter_unpack(code[:n_bytes])
