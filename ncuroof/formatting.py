"""Format numbers (in base units) and names as text, the same way for the page and the terminal.

Numbers have three significant digits and SI prefixes; an unknown value is a dash. Text from reports is made printable here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ncuroof.enums import NAMELESS, SLOWER_PATH_SUFFIX, SPARSE_SUFFIX, TENSOR_PREFIX

MISSING = "—"
"""Written for an unknown value; a measured zero is written as 0."""

DAMAGED = " (damaged, incomplete)"
"""Written after the name of a run if one of its reports is damaged."""

_PREFIXES = {-9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_TRAILING_ZEROS = re.compile(r"(\.\d*?)0+(?=\D|$)")

_SYMBOL_BY_UNIT = {
    "hz": "Hz",
    "byte": "B",
    "byte/s": "B/s",
    "flop": "FLOP",
    "flop/s": "FLOP/s",
    "flop/byte": "FLOP/B",
    "inst/s": "IPS",
    "byte/sector": "B/sector",
    "ratio": "",
    "count": "",
}
"""Units of `profiles/metrics/` that only need a symbol; "ns" and "share" are converted as well."""

_LEAST_SCALED_COUNT = 10_000
"""Whole numbers below this are written in full, without a prefix."""

_FRAC = re.compile("_frac$")
_INTEGER = re.compile(r"(?:^|_)u?int\d")
_TENSOR_PATH = re.compile(r"tensor_(?:fp|tf|bf|int)\d")
_ACCUMULATE = "_accumulate"
"""Suffix of peaks that name their accumulator type: "tensor_fp16_fp16_accumulate"."""
_ABBREVIATIONS = frozenset(
    {"dram", "l1", "l2", "sm", "fp64", "fp32", "fp16", "alu", "xu", "lsu", "imc", "mio", "lg", "tma", "fma"}
)


def scaled(value: float | None, symbol: str = "", *, exponents: tuple[int, int] = (0, 18)) -> str:
    """Return a number with three significant digits, an SI prefix and a unit's symbol.

    Args:
        value: the number, in the unit of `symbol`.
        symbol: symbol of the unit; empty for a bare number.
        exponents: powers of ten of the smallest and the largest prefix; by default none below 1, as there are no millibytes.
    """
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return f"0 {symbol}".rstrip()
    # Round before choosing the prefix: 999.9 becomes 1.00e+03, which takes the next prefix instead of being written as "1000".
    written = f"{value:.2e}"
    mark = written.index("e")
    mantissa, exponent = written[:mark], int(written[mark + 1 :])
    least, greatest = exponents
    prefix_exponent = min(max(3 * (exponent // 3), least), greatest)
    place = exponent - prefix_exponent
    prefixed = _PREFIXES[prefix_exponent] + symbol
    if not -6 <= place <= 5:
        number = f"{mantissa}e{place}"
    elif prefix_exponent == 0 and float(value).is_integer():
        number = f"{value:.0f}"
    else:
        number = f"{float(mantissa) * 10.0**place:.{max(2 - place, 0)}f}" if place else mantissa
    return f"{number} {prefixed}" if prefixed else number


def duration(value_ns: float | None) -> str:
    """Return a time: "12.3 µs"."""
    if value_ns is None:
        return MISSING
    return scaled(value_ns * 1e-9, "s", exponents=(-9, 0))


def in_operations(written: str, precision: str | None) -> str:
    """Return a written amount, rate or intensity of work with the unit of its type: "466 TOP/s" for integers, else "466 TFLOP/s".

    Source: NVIDIA H100 Tensor Core GPU Architecture, 2022, table 2: INT8 in TOPS, floating point in TFLOPS.
    """
    return written.replace("FLOP", "OP") if precision and _INTEGER.search(precision) else written


def work_units(precisions: Iterable[str]) -> str:
    """Return the unit of work that covers several types: "FLOP", "OP", or "FLOP or OP"."""
    return " or ".join(sorted({in_operations("FLOP", precision) for precision in precisions})) or "FLOP"


def flop_rate(value_flop_per_s: float | None, precision: str | None = None) -> str:
    """Return a rate of work: "1.89 TFLOP/s", or "1.89 TOP/s" for integers."""
    return in_operations(scaled(value_flop_per_s, "FLOP/s"), precision)


def byte_rate(value_bytes_per_s: float | None) -> str:
    """Return a rate of traffic: "3.35 TB/s"."""
    return scaled(value_bytes_per_s, "B/s")


def instruction_rate(value_inst_per_s: float | None) -> str:
    """Return a rate of warp instructions: "490 GIPS"."""
    return scaled(value_inst_per_s, "IPS")


def transaction_rate(value_transactions_per_s: float | None) -> str:
    """Return a rate of memory transactions: "25.9 GTXN/s"."""
    return scaled(value_transactions_per_s, "TXN/s")


def instruction_intensity(value_inst_per_transaction: float | None) -> str:
    """Return warp instructions per memory transaction: "0.25 inst/TXN"."""
    return scaled(value_inst_per_transaction, "inst/TXN")


def byte_count(value_bytes: float | None) -> str:
    """Return an amount of traffic or memory: "268 MB"."""
    return scaled(value_bytes, "B")


def kibibytes(value_bytes: float | None) -> str:
    """Return a size of shared memory in KiB, as the CUDA documentation gives it: "129 KiB"."""
    return MISSING if value_bytes is None else f"{value_bytes / 1024:.3g} KiB" if value_bytes else "0"


def flop_count(value_flop: float | None, precision: str | None = None) -> str:
    """Return an amount of work: "270 MFLOP", or "270 MOP" for integers."""
    return in_operations(scaled(value_flop, "FLOP"), precision)


def intensity(value_flop_per_byte: float | None) -> str:
    """Return an arithmetic intensity: "1.12 FLOP/B"."""
    return scaled(value_flop_per_byte, "FLOP/B")


def share(value_frac: float | None) -> str:
    """Return a fraction as a percentage: "83.4 %". Only an exact 0 is written as "0 %", and only an exact 1 as "100 %"."""
    if value_frac is None or not math.isfinite(value_frac):
        return MISSING
    if value_frac in {0, 1}:
        return f"{abs(value_frac) * 100:.0f} %"  # abs: -0.0 is written as 0
    if abs(value_frac) < 0.0005:
        return "<0.1 %" if value_frac > 0 else ">-0.1 %"
    if 0.9995 <= value_frac < 1:
        return ">99.9 %"
    return f"{value_frac * 100:.1f} %" if abs(value_frac) < 100 else f"{float(f'{value_frac * 100:.3g}'):.0f} %"


def percent(share_frac: float) -> str:
    """Return a share in whole percent: "62 %", "<1 %"."""
    rounded = round(100 * share_frac)
    if rounded == 0 and share_frac > 0:
        return "<1 %"
    return ">99 %" if rounded == 100 and share_frac < 1 else f"{rounded} %"


def at_most(value_frac: float) -> str:
    """Return a share as an upper bound: "up to 83.4 %", "less than 0.1 %"."""
    text = share(value_frac)
    return f"less than {text[1:]}" if text.startswith("<") else f"up to {text}"


def quantity(value: float | None, unit: str) -> str:
    """Return a value of a canonical quantity, given its unit in `profiles/metrics/`; an unknown unit is used as the symbol."""
    if unit == "ns":
        return duration(value)
    if unit == "share":
        return share(value)
    if unit == "count" and value is not None and abs(value) < _LEAST_SCALED_COUNT and value == int(value):
        return f"{value + 0:.0f}"
    return scaled(value, _SYMBOL_BY_UNIT.get(unit, unit))


def threshold(value: float | None, unit: str) -> str:
    """Return a value that was chosen, not measured, without trailing zeros, which would suggest precision: "60 %", "5 µs"."""
    return trimmed(quantity(value, unit))


def trimmed(number: str) -> str:
    """Return a written number without trailing zeros: "1 TFLOP/s" for "1.00 TFLOP/s"."""
    return _TRAILING_ZEROS.sub(lambda match: match[1].rstrip("."), number)


def counted(number: int, noun: str) -> str:
    """Return a count with its noun: "1 kernel", "3 kernels"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_of(names: Sequence[str], most: int) -> str:
    """Return the first names, and how many more there are: "a, b, c and 2 more"."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def launches(number: int) -> str:
    """Return a number of launches: "one launch", "3 launches"."""
    return "one launch" if number == 1 else f"{number} launches"


def launch_count(number: float) -> str:
    """Return a number of launches: "8", "2.50". It may be fractional: n counted launches over r profiled ones."""
    return f"{number:.0f}" if number == int(number) else scaled(number)


def operator(op: str) -> str:
    """Return a comparison operator of a decision path as its mathematical sign."""
    return {">=": "≥", "<=": "≤", "known >": ">", "known >=": "≥"}.get(op, op)


def extent(sizes: Iterable[int] | None) -> str:
    """Return the size of a grid or block: "1056 × 1 × 1"."""
    return MISSING if sizes is None else " × ".join(map(str, sizes))


def compact_extent(sizes: Iterable[int] | None) -> str:
    """Return the size of a grid or block for a name: "32×16", without trailing ones; empty if unknown."""
    known = list(sizes or ())
    while len(known) > 1 and known[-1] == 1:
        del known[-1]
    return "×".join(map(str, known))


@lru_cache(maxsize=1024)
def label(name: str | None) -> str:
    """Return a name used in documents (level, precision, limiter, key of a quantity) as words: "DRAM", "TF32 tensor", "waves"."""
    if name is None:
        return MISSING
    if _TENSOR_PATH.match(name):
        path = name.removesuffix(SLOWER_PATH_SUFFIX)
        kind = path.removeprefix(TENSOR_PREFIX)
        dense = kind.removesuffix(SPARSE_SUFFIX)
        inputs, _, accumulated = dense.partition("_") if dense.endswith(_ACCUMULATE) else (dense, "", "")
        kinds = (
            f"{accumulated.removesuffix(_ACCUMULATE).upper()} accumulation" if accumulated else "",
            "sparse" if kind != dense else "",
            "slower path" if path != name else "",
        )
        which = ", ".join(filter(None, kinds))
        return f"{inputs.upper()} tensor" + (f" ({which})" if which else "")
    words = _FRAC.sub("_share", name.removeprefix("n_")).split("_")
    return " ".join(word.upper() if word in _ABBREVIATIONS else word for word in words)


_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e01ff]"
)
"""Controls, and characters that take no space or change the direction of writing: joiners and
selectors stay, which emoji and some scripts need.

Those from U+E0000 on can hide a whole text in another (Unicode Standard, chapter 23.9: tag characters). Ranges: one by one, each
character of a text would be compared with all of them.
"""


def _visible(found: re.Match[str]) -> str:
    """Return a character as JSON escapes it, with two surrogates beyond U+FFFF; a space for tabs and line breaks."""
    if found[0] in "\t\r\n":
        return " "
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


_COMMAND_ANYWHERE = re.compile(r"##((?:vso)?\[)")
_COMMAND_AT_START = re.compile(r"^([^\S\n]*)::", re.MULTILINE)
"""Source: GitHub's runner, ActionCommand.cs (TryParse and TryParseV2); Azure Pipelines, "Logging commands"."""


def printable(text: str) -> str:
    r"""Return text of a report with every control character made visible.

    Terminal escapes, invisible characters, those that change the writing direction, and lone surrogates (which UTF-8 cannot encode)
    become `\u…`; tabs and line breaks become spaces. The second sign of "##[" and "##vso[" is escaped, too, because CI systems obey
    these as commands anywhere in a line. Everything else is kept.
    """
    if "##" in text:
        text = _COMMAND_ANYWHERE.sub(r"#\\u0023\1", text)
    return text if text.isascii() and text.isprintable() else _CONTROL.sub(_visible, text)


def inert(lines: str) -> str:
    r"""Return lines of text with "::" at the begin of a line as `\u003a:`, because GitHub Actions would obey it as a command.

    Elsewhere in a line, "::" is kept: C++ names contain it. Apply this last, when the line breaks are final.
    """
    return _COMMAND_AT_START.sub(r"\1\\u003a:", lines) if "::" in lines else lines


def kernel_name(kernel: Mapping[str, Any], n_characters: int | None = None) -> str:
    """Return the name of a kernel of the document, cut to `n_characters` if given."""
    name = kernel["short_name"] or kernel["name"] or NAMELESS
    return name if n_characters is None else shortened(name, n_characters)


def signed_percent(change_frac: float) -> str:
    """Return a change in percent with its sign: "+79.3 %", "−44.2 %"."""
    return f"{100 * change_frac:+.1f} %".replace("-", "−")


def bound_by(verdict: str, limiter: str | None) -> str:
    """Return a verdict with the label of its limiter: "memory · DRAM"."""
    return f"{verdict} · {limiter}" if limiter else verdict


def gpu_name(device: Mapping[str, Any]) -> str:
    """Return the name of a GPU of the document, else a description by compute capability."""
    capability = device.get("compute_capability")
    return device["name"] or (f"GPU of compute capability {capability}" if capability else "unknown GPU")


def shortened(text: str, n_characters: int) -> str:
    """Return text cut to at most `n_characters`, the last of which is then an ellipsis."""
    return text if len(text) <= n_characters else text[: n_characters - 1] + "…"


def first_sentence(advice: str) -> str:
    """Return a text up to its first full stop that a space follows."""
    end = advice.find(". ")
    return advice if end < 0 else advice[: end + 1]


_CLAUSE_END = re.compile(r"(?<=[a-z0-9)])[.:;](?= |$)(?![^()]*\))")


def first_clause(advice: str) -> str:
    """Return a text up to its first full stop, colon or semicolon outside parentheses."""
    return _CLAUSE_END.split(advice, maxsplit=1)[0]
