"""Explains a name in the output: a verdict, finding, caveat, quantity, column, limiter, term, question or kernel family."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Callable, Collection, Iterator
from functools import cache

from ncuroof.diagnosis import load_parts, load_rules
from ncuroof.errors import UnknownNameError
from ncuroof.metrics import load_catalogue
from ncuroof.metrics.families import LIBRARY, USER, load_families, title
from ncuroof.present.explanations.columns import columns_by_name, load_columns, load_page_columns
from ncuroof.present.explanations.findings import caveat_lines, finding_lines
from ncuroof.present.explanations.groups import STALLS, every_quantity, group_lines, quantities_by_group
from ncuroof.present.explanations.limiters import load_limiters
from ncuroof.present.explanations.path import node_lines, path_lines
from ncuroof.present.explanations.printed_names import begun, meant, similar
from ncuroof.present.explanations.quantities import counter_lines, quantity_lines, stall_lines
from ncuroof.present.explanations.terms import load_terms, term_lines
from ncuroof.words import Side

_WALL_TIME = "wall_time."
_WIDTH = 100
_LIKE = 0.75
"""Least similarity (difflib's ratio) of a name that is proposed in place of an unknown one."""
_MOST_PROPOSED = 8
_JOINT = " · "
"""Separates a verdict from its limiter in the output."""


def explain(name: str) -> str:
    """Return the explanation of `name` as lines of plain text.

    The name may be written as printed ("long scoreboard", "above roof", "latency · grid"), or be that of an NVIDIA counter.

    Raises:
        UnknownNameError: the name is unknown.
    """
    parts = name.split(_JOINT)
    each = ("\n".join(_lines(part if part in names() else meant(part))) for part in parts)
    return "\n\n".join(text.rstrip("\n") for text in each) + "\n"


@cache
def names() -> tuple[str, ...]:
    """Return every name that can be explained, without duplicates."""
    listed = (name for group in _names_by_kind().values() for name in group)
    return tuple(dict.fromkeys((*listed, *columns_by_name())))


def listing() -> str:
    """Return every name that can be explained, grouped by kind, as lines of plain text."""
    page = textwrap.TextWrapper(_WIDTH, "  ", "  ", break_on_hyphens=False, break_long_words=False)
    lines = []
    for kind, listed in _names_by_kind().items():
        lines += [kind, *page.wrap("  ".join(listed))]
    return "\n".join(lines) + "\n"


def _names_by_kind() -> dict[str, list[str]]:
    rules = load_rules()
    groups = quantities_by_group()
    return {
        "verdicts": list(rules.verdicts),
        "findings": list(rules.findings),
        "caveats": list(rules.caveats),
        "limiters": list(load_limiters()),
        "kernel families": [*load_families(), USER],
        "table columns": list(load_columns()),
        "page columns": list(load_page_columns()),
        "terms": list(load_terms()),
        "parts of a step's time": [f"{_WALL_TIME}{name}" for name in load_parts()],
        "questions of the decision path": [node.id for node in rules.nodes],
        "groups of quantities": list(filter(None, groups)),
        **{f"quantities: {group}".removesuffix(": "): list(quantities) for group, quantities in groups.items()},
    }


def _lines(name: str) -> Iterator[str]:
    return next((lines for known, lines in _kinds() if name in known), _of_several_kinds)(name)


def _kinds() -> Iterator[tuple[Collection[str], Callable[[str], Iterator[str]]]]:
    """Yield the names of each kind, and what explains one of them; a name of several of these kinds is one of the first."""
    rules, parts, reasons = load_rules(), load_parts(), load_catalogue().stalls.reasons
    yield rules.verdicts, _verdict
    yield rules.findings, finding_lines
    yield rules.caveats, caveat_lines
    yield (*load_families(), USER), _family
    yield {*parts, *(f"{_WALL_TIME}{part}" for part in parts)}, _part_of_time
    yield {*reasons, *(f"{STALLS}{reason}" for reason in reasons)}, stall_lines
    yield every_quantity(), quantity_lines
    yield load_catalogue().counters(), counter_lines
    yield [node.id for node in rules.nodes], _question
    yield load_terms(), term_lines


def _of_several_kinds(name: str) -> Iterator[str]:
    """Yield the explanation of a column, limiter or group: the same name can be all of these."""
    lines = [*_column(name), *_limiter(name), *_group(name)]
    if not lines:
        raise _unknown(name)
    yield from lines


def _unknown(name: str) -> UnknownNameError:
    every = names()
    near = (
        begun(name)
        or [candidate for candidate in every if name and name.lower() in candidate]
        or difflib.get_close_matches(name, [*every, *load_catalogue().counters()], n=5, cutoff=_LIKE)
        or similar(name)
    )
    hint = f"did you mean {', '.join(near[:_MOST_PROPOSED])}?" if near else "ncuroof explain lists every name"
    return UnknownNameError(f"unknown name {name!r}", hint=hint)


def _verdict(name: str) -> Iterator[str]:
    rules = load_rules()
    yield from (f"{name}: verdict, {rules.verdicts[name].title}", "", rules.verdicts[name].doc)
    yield from ("", "Decision path, starting at 1:", *path_lines(name, rules.nodes))
    if name in {side.value for side in Side}:
        yield from ("", "It is also a side of the ridge: ncuroof explain side")


def _family(name: str) -> Iterator[str]:
    """Yield the origin of a family's kernels, how they are recognised, and what their caller can do."""
    yield from (f"{name}: kernel family, {title(name)}", "")
    if name == USER:
        yield "Kernels that match no other family's pattern: your own code, or an unknown library's."
        return
    family = load_families()[name]
    if family.parent not in {USER, LIBRARY}:
        yield from (f"Part of {family.parent}, {title(family.parent)}.", "")
    yield from ("Recognised where no family listed before it matches:", f"  kernel name matches {family.pattern}")
    if family.unless:
        yield f"  kernel name does not match {family.unless}"
    if family.file:
        yield f"  or, where no family's name pattern matches, some of its source lines are in a file that matches {family.file}"
    yield from ("", f"Basis: {family.remark}.")
    if family.advice:
        yield from (
            "",
            "What to do, where a finding has no advice for this family or its parent:",
            f"  {family.advice}",
        )
    if family.advice_from_pytorch:
        yield from ("", "What to do where PyTorch launches it:", f"  {family.advice_from_pytorch}")


def _part_of_time(name: str) -> Iterator[str]:
    name = name.removeprefix(_WALL_TIME)
    part = load_parts()[name]
    kind = f"idle, {part.title}" if part.is_idle else part.title
    yield from (f"{_WALL_TIME}{name}: part of a step's time, {kind}", "", part.doc)
    if part.advice:
        yield from ("", "What to do:", f"  {part.advice}")
    if part.advice_without_torch:
        yield from ("", "What to do without PyTorch:", f"  {part.advice_without_torch}")
    if part.long_gaps:
        where = f"here half of it is in gaps of {part.long_gaps.least_ns / 1e3:.0f} µs or more"
        yield from ("", f"W{where}:", f"  {part.long_gaps.advice}")
        yield from ("", f"In a whole run, w{where}:", f"  {part.long_gaps.advice_for_whole_run}")
    for pattern, advice in part.advice_by_place:
        yield from ("", f"Where most of it is in {pattern.pattern}:", f"  {advice}")
    if part.source:
        yield from ("", f"Source: {part.source}")


def _question(name: str) -> Iterator[str]:
    nodes = load_rules().nodes
    yield from node_lines(next(node for node in nodes if node.id == name), nodes)


def _column(name: str) -> Iterator[str]:
    if name in load_page_columns():
        yield from (f"{name}: page column, share", "", load_page_columns()[name].doc, "")
    column = {**load_columns(), **columns_by_name()}.get(name)
    if column is not None:
        unit = f", {column.unit}" if column.unit else ""
        yield from (f"{name}: column{unit}", "", column.doc, "")


def _limiter(name: str) -> Iterator[str]:
    if name not in load_limiters():
        return
    yield from (f"{name}: limiter", "", load_limiters()[name])
    findings = [finding.id for finding in load_rules().findings.values() if name in finding.limiters]
    if findings:
        yield from ("", f"Findings for kernels that it limits: {', '.join(findings)}.")
    yield ""


def _group(name: str) -> Iterator[str]:
    if name and name in quantities_by_group():  # those without a group are in one without a name
        yield from group_lines(name)
