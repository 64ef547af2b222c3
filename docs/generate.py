"""Writes docs/quantities.md from the catalogue. Run `python docs/generate.py` after a change of profiles/metrics.toml."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ncuroof.metrics import load_catalogue
from ncuroof.metrics.catalogue import Pair, Quantity, TensorInstruction

PAGE = Path(__file__).parent / "quantities.md"


def page() -> str:
    """Return the page: every quantity, roof traffic and work with the counters behind it."""
    catalogue = load_catalogue()
    lines = [
        "# Every quantity and its counters",
        "",
        "Generated from [`profiles/metrics.toml`](../profiles/metrics.toml) by `python docs/generate.py`. The first formula",
        "whose counters a report holds gives the value; a quantity without any is null. Counters enter in base units (shares",
        "instead of percent); `{name}` is another quantity.",
    ]
    for quantity in catalogue.described():
        lines += _quantity(quantity)
    stalls = catalogue.stalls
    lines += [
        "",
        "## stalls.*reason*",
        "",
        "A reason's share of the time that a warp spends between two issued instructions (share).",
        "",
        f"1. `{stalls.counter} / {stalls.total}`",
        *(f"{n}. `{name}` over the samples of all reasons" for n, name in enumerate(stalls.sampled_counters, start=2)),
        "",
        f"Reasons: {', '.join(stalls.reasons)}. Collect with `{stalls.collect}`.",
        "",
        "# Roof traffic",
    ]
    for level, pairs in catalogue.bandwidth.items():
        lines += ["", f"## bandwidth.{level}", "", *_pairs(pairs)]
    lines += ["", "# Work"]
    for precision, pairs in catalogue.work.items():
        lines += ["", f"## work.{precision}", "", *_pairs(pairs)]
    tensor = catalogue.tensor
    lines += [
        "",
        "## work.tensor_*",
        "",
        f"Operations counted by `{tensor.counter_prefix}*`, by the type of the inputs; within a class `op_*` names are",
        "summed, else the split by sparsity, else the bare name. Where none was collected, and marked unreliable, instructions",
        f"(`{tensor.instruction_rate.text}`) × what one of the kernel's shape is worth; nothing where no shape can be told:",
        "",
        *_instructions(tensor.instructions),
    ]
    return "\n".join(lines) + "\n"


def _quantity(quantity: Quantity) -> Iterator[str]:
    yield from ("", f"## {quantity.name}", "", f"{quantity.doc} Unit: {quantity.unit}.", "")
    for number, source in enumerate(quantity.sources, start=1):
        yield f"{number}. `{source.formula.text}`" + (f" ({source.note})" if source.note else "")
    if quantity.collect:
        yield from ("", f"Collect with `{quantity.collect}`.")


def _pairs(pairs: Iterable[Pair]) -> Iterator[str]:
    for number, pair in enumerate(pairs, start=1):
        yield f"{number}. {pair.definition}"
        yield f"   - {'total' if pair.is_count else 'achieved'}: `{pair.achieved.text}`"
        if pair.peak is not None:
            yield f"   - peak: `{pair.peak.text}`"


def _instructions(instructions: Iterable[TensorInstruction]) -> Iterator[str]:
    for number, instruction in enumerate(instructions, start=1):
        yield f"{number}. {instruction.precision}: {instruction.definition}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
