"""Quantities, stall reasons and NVIDIA's counters as text: unit, meaning, what they do not count, and the counters behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncuroof.enums import capability_text
from ncuroof.metrics import load_catalogue
from ncuroof.metrics.catalogue_types import Pair
from ncuroof.present.explanations.findings import RULE
from ncuroof.present.explanations.meanings import STALLS, every_quantity

_TENSOR_WORK = "work.tensor"
_EXCLUDES = "What it does not count:"


def stall_lines(name: str) -> Iterator[str]:
    """Yield the explanation of a stall reason, with or without the prefix of its group."""
    reason, stalls = name.removeprefix(STALLS), load_catalogue().stalls
    yield from (f"{STALLS}{reason}: quantity, share", "")
    yield from (
        stalls.reasons[reason],
        "",
        f"Here: {stalls.doc[0].lower()}{stalls.doc[1:]}",
        "",
        f"{_EXCLUDES} {stalls.excludes}",
        RULE,
    )
    yield from ("", "From:", f"  {stalls.of_latency(reason)} / {stalls.total}")
    yield from (f"  {name} / samples of all reasons" for name in stalls.of_samples(reason))
    yield from ("", f"Collect with: {stalls.collect}")


def quantity_lines(name: str) -> Iterator[str]:
    """Yield the explanation of a quantity: its unit, its meaning, and the counters that it comes from."""
    quantity, pairs = every_quantity()[name], load_catalogue().pairs(name)
    yield from (f"{quantity.name}: quantity, {quantity.unit}", "", quantity.doc)
    if quantity.excludes:
        yield from ("", f"{_EXCLUDES} {quantity.excludes}")
    if quantity.sources or pairs:
        yield from (RULE, "", "From, in order of preference:")
    for source in quantity.sources:
        yield f"  {source.formula.text}" + _remarks(source.note, source.capabilities)
    for pair in pairs:
        yield from _pair(pair)
    if quantity.collect:
        yield from ("", f"Collect with: {quantity.collect}")


def counter_lines(name: str) -> Iterator[str]:
    """Yield the explanation of an NVIDIA counter: the quantities that it is used for."""
    yield from (f"{name}: NVIDIA counter", "")
    quantities = every_quantity()
    found = [
        f"  {user}: {quantities[user].doc}" if user in quantities else f"  {user}" for user in users_of_counter(name)
    ]
    identity = "It identifies the launch (block, stream, context, GPU) and is not used in the formula of any quantity."
    yield from ("Used for:", *found) if found else (identity,)


def users_of_counter(name: str) -> list[str]:
    """Return the quantities and the stall reasons whose formulas read a counter."""
    catalogue = load_catalogue()
    found = []
    of_tensor = {catalogue.tensor.cycles_per_second, *catalogue.tensor.instruction_rate.counters}
    for quantity in every_quantity().values():
        formulas = [source.formula for source in quantity.sources]
        formulas += [each for pair in catalogue.pairs(quantity.name) for each in (pair.achieved, pair.peak) if each]
        is_of_tensor = quantity.name == _TENSOR_WORK and name in of_tensor
        if is_of_tensor or any(name in formula.counters for formula in formulas):
            found.append(quantity.name)
    return [*found, *(f"{STALLS}{each}" for each in catalogue.stalls.reasons if name in _counters_of_stall(each))]


def _counters_of_stall(reason: str) -> tuple[str, ...]:
    stalls = load_catalogue().stalls
    return (stalls.of_latency(reason), *stalls.of_samples(reason), stalls.total)


def _pair(pair: Pair) -> Iterator[str]:
    yield f"  {pair.whole_definition}{_remarks(None, pair.capabilities)}"
    yield f"    {'total' if pair.is_count else 'achieved'}: {pair.achieved.text}"
    if pair.peak is not None:
        yield f"    peak: {pair.peak.text}"
    if pair.excludes:
        yield f"    {_EXCLUDES} {pair.excludes}"


def _remarks(note: str | None, capabilities: Sequence[int]) -> str:
    """Return the limits of a formula: its note, and the compute capabilities to which it is restricted."""
    alone = ", ".join(map(capability_text, capabilities))
    parts = [note] if note else []
    parts += [f"only on compute capability {alone}"] if alone else []
    return f"  ({'; '.join(parts)})" if parts else ""
