"""Writes the pages of docs/quantities/ from profiles/metrics/ and profiles/availability.toml: an index, and a page per group.

`make pages` runs it; the tests compare.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ncuroof.enums import capability_text
from ncuroof.metrics import Catalogue, load_catalogue
from ncuroof.metrics.catalogue_types import Pair, Quantity, Source
from ncuroof.metrics.formula import Formula
from tools.counter_availability import Availability, load_availability

FOLDER = Path(__file__).resolve().parents[1] / "docs/quantities"
INDEX = "README.md"
STALLS = "stalls"
NO_GROUP = "time"

GROUPS: Mapping[str, str] = {
    NO_GROUP: "Time and clocks",
    "device": "Device",
    "launch": "Launch",
    "bandwidth": "Roof traffic",
    "work": "Work",
    "traffic_bytes": "Traffic",
    "utilisation": "Utilisation",
    "occupancy": "Occupancy",
    "scheduler": "Scheduling and stall reasons",
    "limiter": "Limiter",
    "access": "Access patterns",
    "arithmetic": "Arithmetic",
    "instructions": "Instruction roofline",
    "roofline": "Roofline",
    "check": "Checks",
}
"""Heading by name of a group, which is the first part of a quantity's name, in the order of the index."""

_OTHER_GROUP: Mapping[str, str] = {"": NO_GROUP, STALLS: "scheduler"}
"""The group by the first part of a name that is not one."""

_WIDTH = 110
"""Characters of a formula that stay on one line."""

_N_NAMED = 3
"""Counters that a note names; the others it only counts."""

_COUNTER = re.compile(r"\b[a-z0-9]+__[\w.{},]*[\w}]")
_NAME = re.compile(r"(?<![\w./])[a-z]\w*(?:\.[a-z]\w*)+(?!\w)")

_ABOUT = (
    "The counters that each quantity comes from, which architectures have them, and what it does not count; a page per group. In "
    "the terminal, `ncuroof explain NAME` prints the same formulas. Generated from [profiles/metrics/](../../profiles/metrics) and "
    "[availability.toml](../../profiles/availability.toml) by `make pages`."
)
_ON_EVERY_PAGE = (
    "Counters are in base units: shares instead of percent, bytes, hertz, nanoseconds. `{name}` is another quantity; `max`, `min` "
    "and `sum` use those of their arguments that are available. A formula with `if` applies only where its condition is known to "
    "hold. In the tables, yes: the architecture has the counter · –: it does not · ?: not known (sources: "
    "[availability.toml](../../profiles/availability.toml))."
)
_FIRST_WINS = "The first formula whose counters are all in the report is used. Without one, the quantity is null."
_PAIRS_WIN = (
    "The first pair whose counters are all in the report gives the achieved value and its peak; one without a peak is used only "
    "where no pair is complete. A total is divided by the duration."
)
_FINEST_WIN = (
    "1. Operations of every `{prefix}*` of a type. The counters with the finest split of a type are summed: `op_*`, else the "
    "split by sparsity, else the bare name, which is the sum of the others."
)
_CELLS = {True: "yes", False: "–", None: "?"}


@dataclass(frozen=True)
class Writer:
    """Writes the pages of one catalogue."""

    catalogue: Catalogue
    availability: Availability

    def pages(self) -> dict[str, str]:
        """Return every page by its file name."""
        pages = {_file(group): "\n".join(self._page(group)) + "\n" for group in GROUPS}
        return {INDEX: "\n".join(self._index()) + "\n", **pages}

    @cached_property
    def _quantities(self) -> list[Quantity]:
        """Every quantity that is described, in the order of the index."""
        stalls = self.catalogue.stalls
        shared = Quantity(STALLS, "share", stalls.doc, stalls.collect, (), excludes=stalls.excludes)
        every = (*self.catalogue.described(), *self.catalogue.measured, shared)
        order = list(GROUPS)
        return sorted(every, key=lambda quantity: order.index(_group(quantity.name)))

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(quantity.name for quantity in self._quantities)

    @cached_property
    def _readers(self) -> Mapping[str, list[str]]:
        """The quantities that use a quantity."""
        readers: dict[str, list[str]] = {}
        for quantity in self._quantities:
            for name in self._read_by(quantity):
                readers.setdefault(name, []).append(quantity.name)
        return readers

    def _index(self) -> Iterator[str]:
        yield "# Every quantity, its formulas and its counters"
        yield from ("", _ABOUT)
        for group, heading in GROUPS.items():
            yield from ("", f"## [{heading}]({_file(group)})", "", "| quantity | unit | |", "|---|---|---|")
            for quantity in self._of_group(group):
                yield f"| {link(quantity.name)} | {quantity.unit} | {self._prose(quantity.doc, quantity.name)} |"

    def _of_group(self, group: str) -> Iterator[Quantity]:
        return (quantity for quantity in self._quantities if _group(quantity.name) == group)

    def _page(self, group: str) -> Iterator[str]:
        yield from (f"# {GROUPS[group]}", "", f"{_ON_EVERY_PAGE} [All quantities]({INDEX}).")
        for quantity in self._of_group(group):
            yield from ("", *self._section(quantity))

    def _section(self, quantity: Quantity) -> Iterator[str]:
        yield from (f"## {_title(quantity.name)}", "", self._prose(quantity.doc, quantity.name), "")
        yield f"- Unit: {quantity.unit}"
        yield f"- Collected with: {self._collected(quantity)}"
        if reads := self._read_by(quantity):
            yield f"- Computed from: {', '.join(map(link, reads))}"
        if readers := self._readers.get(quantity.name, []):
            yield f"- Used by: {', '.join(map(link, readers))}"
        yield from self._excluded(quantity)
        yield from self._formulas(quantity)
        yield from self._counters(quantity)

    def _excluded(self, quantity: Quantity) -> Iterator[str]:
        """Yield what the quantity does not count: by every formula, then by some."""
        numbers_by_text: dict[str, list[str]] = {}
        for number, pair in enumerate(self.catalogue.pairs(quantity.name), start=1):
            if pair.excludes:
                numbers_by_text.setdefault(pair.excludes, []).append(str(number))
        if quantity.excludes:
            yield from ("", f"**What it does not count.** {self._prose(quantity.excludes, quantity.name)}")
        for text, numbers in numbers_by_text.items():
            whose = f"formula {numbers[0]} does" if len(numbers) == 1 else f"formulas {', '.join(numbers)} do"
            yield from ("", f"**What {whose} not count.** {self._prose(text)}")

    def _formulas(self, quantity: Quantity) -> Iterator[str]:
        yield ""
        pairs = self.catalogue.pairs(quantity.name)
        if quantity.name == STALLS:
            yield from self._of_stalls()
        elif pairs:
            yield f"**Formulas, in order of preference.** {_PAIRS_WIN}"
            for number, pair in enumerate(pairs, start=1):
                yield from self._pair(number, pair, quantity.name)
        elif quantity.sources:
            yield (
                f"**Formulas, in order of preference.** {_FIRST_WINS}" if len(quantity.sources) > 1 else "**Formula.**"
            )
            for number, source in enumerate(quantity.sources, start=1):
                yield from self._source(number, source, quantity.name)
        elif quantity in self.catalogue.measured:
            yield from self._of_tensor()
        else:
            yield "No formula over counters: it is computed from other values, as described above."

    def _source(self, number: int, source: Source, name: str) -> Iterator[str]:
        formula = source.formula
        parts = [what for what, names in (("quantities", formula.quantities), ("counters", formula.counters)) if names]
        about = self._prose(source.note, name) if source.note else f"from {' and '.join(parts) or 'no counter'}"
        yield from ("", f"{number}. {about}{_limits(source.capabilities)}")
        yield from _code([laid_out(formula.text)])

    def _pair(self, number: int, pair: Pair, name: str) -> Iterator[str]:
        yield from ("", f"{number}. {self._prose(pair.whole_definition, name)}{_limits(pair.capabilities)}")
        formulas = [("total" if pair.is_count else "achieved", pair.achieved), ("peak", pair.peak)]
        yield from _code([laid_out(f"{what} = {formula.text}") for what, formula in formulas if formula is not None])
        if not pair.is_reliable:
            yield from ("", "   A bound or an estimate: verdicts do not use it.")

    def _of_stalls(self) -> Iterator[str]:
        stalls = self.catalogue.stalls
        yield "**Formulas, in order of preference.** For each of these reasons; samples are used where the counters are missing."
        yield from ("", "| reason | what the warp does |", "|---|---|")
        yield from (f"| {reason} | {doc} |" for reason, doc in stalls.reasons.items())
        yield from ("", "1. From its counters")
        yield from _code([f"{stalls.counter} / {stalls.total}"])
        absent = " and ".join(stalls.only_on_some_chips)
        yield from (
            "",
            f"   Where the total is missing, over the sum of all reasons (not every chip has {absent}).",
        )
        for number, sampled in enumerate(stalls.sampled_counters, start=2):
            yield from ("", f"{number}. Samples of the reason over the samples of all reasons")
            yield from _code([sampled])
        yield from ("", *(f"   {reason} is called {name} there." for reason, name in stalls.sampled_names.items()))

    def _of_tensor(self) -> Iterator[str]:
        tensor = self.catalogue.tensor
        yield "**Formulas, in order of preference.**"
        yield ""
        yield _FINEST_WIN.format(prefix=tensor.counter_prefix)
        yield "2. Where none was counted, and marked unreliable: instructions × operations per instruction of the kernel's shape"
        yield from _code([f"{tensor.instruction_rate.text} * operations of an instruction"])
        yield ""
        for instruction in tensor.instructions:
            definition = self._prose(instruction.definition, "work.tensor")
            yield f"   - {instruction.precision}: {definition}{_limits(instruction.capabilities)}"

    def _counters(self, quantity: Quantity) -> Iterator[str]:
        counters = self._base_names(quantity)
        if not counters:
            return
        capabilities = self.availability.capabilities
        yield ""
        yield f"| counter | {' | '.join(map(capability_text, capabilities))} |"
        yield f"|---|{'---|' * len(capabilities)}"
        for counter in counters:
            cells = [_CELLS[self.availability.has(counter, capability)] for capability in capabilities]
            yield f"| `{counter}` | {' | '.join(cells)} |"
        yield from self._notes(counters)

    def _notes(self, counters: Iterable[str]) -> Iterator[str]:
        """Yield the notes on counters that are not hardware counters of a chip."""
        counters_by_note: dict[str, list[str]] = {}
        for counter in counters:
            note = self.availability.group(counter).note
            if note:
                counters_by_note.setdefault(note, []).append(f"`{counter}`")
        for note, named in counters_by_note.items():
            more = f" and {len(named) - _N_NAMED} more" if len(named) > _N_NAMED else ""
            yield from ("", f"{', '.join(named[:_N_NAMED])}{more}: {self._prose(note)}")

    def _base_names(self, quantity: Quantity) -> list[str]:
        """Return the counters that the quantity's formulas read, without what follows the first dot."""
        named = [
            counter for formula in self._formulas_of(quantity) for counter in _in_order(formula.text, formula.counters)
        ]
        tensor, stalls = self.catalogue.tensor, self.catalogue.stalls
        if quantity.name == "work.tensor":
            every = self.availability.group_by_counter
            listed = [name for name in every if name.startswith(tensor.counter_prefix)]
            named = [*listed, *named, tensor.cycles_per_second]
        if quantity.name == STALLS:
            named = [stalls.of_latency(reason) for reason in stalls.reasons]
            named += [name for reason in stalls.reasons for name in stalls.of_samples(reason)]
            named = [*named, stalls.total]
        return list(dict.fromkeys(map(_base_name, named)))

    def _formulas_of(self, quantity: Quantity) -> Iterator[Formula]:
        yield from (source.formula for source in quantity.sources)
        for pair in self.catalogue.pairs(quantity.name):
            yield pair.achieved
            if pair.peak is not None:
                yield pair.peak
        if quantity.name == "work.tensor":
            yield self.catalogue.tensor.instruction_rate

    def _read_by(self, quantity: Quantity) -> list[str]:
        read = [name for formula in self._formulas_of(quantity) for name in _in_order(formula.text, formula.quantities)]
        return list(dict.fromkeys(read))

    def _collected(self, quantity: Quantity) -> str:
        """Return the ncu options: those that the catalogue names, else those for the counters of the first formula."""
        if quantity.collect:
            return f"`{quantity.collect}`"
        if not quantity.sources:
            return "the same options as its parts"
        first = quantity.sources[0].formula
        counters = _in_order(first.text, first.counters)
        groups = {counter: self.availability.group(_base_name(counter)) for counter in counters}
        of_chips = [counter for counter, group in groups.items() if group.note is None]
        options = [f"`--metrics {','.join(of_chips)}`"] if of_chips else []
        options += dict.fromkeys(f"`{group.collect}`" for group in groups.values() if group.collect)
        options += ["the options of the quantities that it is computed from"] if first.quantities else []
        return " and ".join(options) or "no option: every report contains it"

    def _prose(self, text: str, own_name: str = "") -> str:
        """Return `text` with counters as code and the names of other quantities as links."""

        def linked(match: re.Match[str]) -> str:
            return link(match[0]) if match[0] in self._names and match[0] != own_name else match[0]

        return _COUNTER.sub(lambda match: f"`{match[0]}`", _NAME.sub(linked, text))


def laid_out(formula: str) -> str:
    """Return a formula in lines: a long one is broken after commas, before signs and conditions, indented by its parentheses."""
    if len(formula) <= _WIDTH:
        return formula
    lines, before = [""], ""
    for part in re.split(r"(?<=, )|(?= (?:[-+]|if|and) )", formula):
        depth = before.count("(") - before.count(")")
        is_argument = depth == 1 and before.endswith(", ")
        is_condition = depth == 0 and part.startswith((" if ", " and "))
        if before and (is_argument or is_condition or len(lines[-1]) + len(part) > _WIDTH):
            lines.append("  " * (depth + 1) + part.lstrip())
        else:
            lines[-1] += part
        before += part
    return "\n".join(line.rstrip() for line in lines)


def _code(formulas: Sequence[str]) -> Iterator[str]:
    """Yield formulas as a block of code within an item of a list."""
    lines = [line for formula in formulas for line in formula.split("\n")]
    yield from ("", "   ```text", *(f"   {line}" for line in lines), "   ```")


def _in_order(text: str, names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (text.index(name), name))


def _limits(capabilities: Sequence[int]) -> str:
    return f"; only on compute capability {', '.join(map(capability_text, capabilities))}" if capabilities else ""


def _base_name(counter: str) -> str:
    return counter.partition(".")[0]


def _group(name: str) -> str:
    first = name if name == STALLS else name.rpartition(".")[0].split(".")[0]
    return _OTHER_GROUP.get(first, first)


def _title(name: str) -> str:
    return "stalls.*reason*" if name == STALLS else name


def _file(group: str) -> str:
    return f"{group}.md"


def anchor(heading: str) -> str:
    """Return the anchor that GitHub, and Python's Markdown, give to a heading."""
    return re.sub(r"[^\w\s-]", "", heading.lower()).strip().replace(" ", "-")


def link(name: str) -> str:
    """Return a link to a quantity, from a page of docs/quantities/."""
    return f"[{_title(name)}]({address(name)})"


def address(name: str) -> str:
    """Return where a quantity is described, seen from docs/quantities/."""
    return f"{_file(_group(name))}#{anchor(_title(name))}"


def pages() -> dict[str, str]:
    """Return every page of docs/quantities/ by its file name."""
    return Writer(load_catalogue(), load_availability()).pages()


def main() -> None:
    """Write the pages, and remove those of groups that no longer exist."""
    written = pages()
    for stray in {path.name for path in FOLDER.glob("*.md")} - written.keys():
        (FOLDER / stray).unlink()
    for name, text in written.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
