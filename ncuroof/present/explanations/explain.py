"""Explains a name in the output: a verdict, finding, caveat, quantity, column, limiter, term, question or kernel family."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterator, Sequence

from ncuroof.diagnosis import Rules, load_parts, load_rules
from ncuroof.diagnosis.rules import Caveat, Finding
from ncuroof.errors import UnknownNameError
from ncuroof.metrics import Catalogue, load_catalogue
from ncuroof.metrics.entries import ByLine, Pair, Quantity
from ncuroof.metrics.families import LIBRARY, USER, load_families, title
from ncuroof.present.explanations.columns import columns_by_name, load_columns, load_limiters, load_page_columns
from ncuroof.present.explanations.groups import STALLS, group_lines, quantities_by_group
from ncuroof.present.explanations.path import condition, node_lines, path_lines
from ncuroof.present.explanations.printed_names import begun, meant, similar
from ncuroof.present.explanations.words import load_words, word_lines
from ncuroof.present.sentences.collect_options import collect_options
from ncuroof.words import Side, capability_text

_WALL_TIME = "wall_time."
_TENSOR_WORK = "work.tensor"
_EXCLUDES = "What it does not count:"
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
    rules, catalogue = load_rules(), load_catalogue()
    parts = name.split(_JOINT)
    each = ("\n".join(_lines(part if part in names() else meant(part), rules, catalogue)) for part in parts)
    return "\n\n".join(text.rstrip("\n") for text in each) + "\n"


def names() -> list[str]:
    """Return every name that can be explained, without duplicates."""
    listed = {name: None for group in _names_by_kind().values() for name in group}
    return list(listed | dict.fromkeys(columns_by_name()))


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
        "terms": list(load_words()),
        "parts of a step's time": [f"{_WALL_TIME}{name}" for name in load_parts()],
        "questions of the decision path": [node.id for node in rules.nodes],
        "groups of quantities": list(filter(None, groups)),
        **{f"quantities: {group}".removesuffix(": "): list(quantities) for group, quantities in groups.items()},
    }


def _lines(name: str, rules: Rules, catalogue: Catalogue) -> Iterator[str]:
    if name in rules.verdicts:
        yield from _verdict(name, rules)
    elif name in rules.findings:
        yield from _finding(rules.findings[name], catalogue)
    elif name in rules.caveats:
        yield from _caveat(name, rules.caveats[name])
    elif name == USER or name in load_families():
        yield from _family(name)
    elif name.removeprefix(_WALL_TIME) in load_parts():
        yield from _part_of_time(name.removeprefix(_WALL_TIME))
    elif name.removeprefix(STALLS) in catalogue.stalls.reasons:
        yield from _stall(name.removeprefix(STALLS), catalogue)
    else:
        every = (*catalogue.described(), *catalogue.measured)
        found = [quantity for quantity in every if quantity.name == name]
        if found:
            yield from _quantity(found[0], catalogue.pairs(name))
        elif name in catalogue.counters():
            yield from _counter(name, catalogue)
        else:
            yield from _of_other_kind(name, rules)


def _of_other_kind(name: str, rules: Rules) -> Iterator[str]:
    """Yield the explanation of a question, term, column, limiter or group; the same name can be several of the last three."""
    if nodes := [node for node in rules.nodes if node.id == name]:
        yield from node_lines(nodes[0], rules.nodes)
        return
    if name in load_words():
        yield from word_lines(name)
        return
    groups = set(filter(None, quantities_by_group()))  # quantities without a group are one without a name
    column = {**load_columns(), **columns_by_name()}.get(name)
    if name in load_page_columns():
        yield from (f"{name}: page column, share", "", load_page_columns()[name].doc, "")
    elif column is None and name not in load_limiters() and name not in groups:
        raise _unknown(name)
    if column is not None:
        unit = f", {column.unit}" if column.unit else ""
        yield from (f"{name}: column{unit}", "", column.doc, "")
    if name in load_limiters():
        yield from (*_limiter(name, rules), "")
    if name in groups:
        yield from group_lines(name)


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


def _verdict(name: str, rules: Rules) -> Iterator[str]:
    yield from (f"{name}: verdict, {rules.verdicts[name].title}", "", rules.verdicts[name].doc)
    yield from ("", "Decision path, starting at 1:", *path_lines(name, rules.nodes))
    if name in {side.value for side in Side}:
        yield from ("", "It is also a side of the ridge: ncuroof explain side")


def _finding(finding: Finding, catalogue: Catalogue) -> Iterator[str]:
    yield from (f"{finding.id}: finding, {finding.title}", "")
    yield f"For verdicts {', '.join(finding.verdicts)}" + (
        f"; limiters {', '.join(finding.limiters)}." if finding.limiters else "."
    )
    yield from ("", "Fires when:", *_conditions(finding), *_names(finding), *_replaced(finding))
    if finding.gain_by_limiter:
        yield from ("", f"Gain, as a share of the duration: {finding.gain_basis}.")
        yield from (f"  {limiter}: {formula.text}" for limiter, formula in finding.gain_by_limiter.items())
    if finding.waste_by_level:
        yield from ("", "Unneeded bytes:")
        yield from (f"  {level}: {formula.text}" for level, formula in finding.waste_by_level.items())
    yield from ("", "What to do:")
    yield from (f"  {family}: {advice}" for family, advice in _advice(finding))
    if finding.lines:
        yield from ("", "Attributed to the source lines with the most of:")
        yield from (f"  {_by_line(catalogue.by_line[name])}" for name in finding.lines)
    collect = _collect(finding.evidence, catalogue)
    if collect:
        yield from ("", f"Collect its evidence with: {collect}")


def _by_line(measure: ByLine) -> str:
    only = [f"{name} is {', '.join(f'{code:g}' for code in codes)}" for name, codes in measure.only.items()]
    where = f", where {' and '.join(only)}" if only else ""
    return f"{measure.label}: {' or '.join(formula.text for formula in measure.formulas)}{where}"


def _advice(finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield the finding's own advice by family and for kernel-name variants, without what a family's caller can always do."""
    yield USER, finding.advice.text(USER)
    for family in reversed(tuple(load_families().values())):
        advice = finding.advice.text(family.name)
        if advice not in {finding.advice.text(family.parent), family.advice, family.advice_from_pytorch}:
            yield family.name, advice
    yield from ((f"{each.family}, where {each.where()}", each.advice) for each in finding.advice.variants)


def _caveat(name: str, caveat: Caveat) -> Iterator[str]:
    yield from (f"{name}: caveat", "", caveat.doc, "", "Holds where:", *_conditions(caveat))
    if caveat.explained_by:
        yield from ("", f"Likely causes, most likely first: {', '.join(caveat.explained_by)}.")
    if caveat.weakens:
        yield from ("", "It lowers the verdict's confidence by one step.")


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
    part = load_parts()[name]
    kind = f"idle, {part.title}" if part.is_idle else part.title
    yield from (f"{_WALL_TIME}{name}: part of a step's time, {kind}", "", part.doc)
    if part.advice:
        yield from ("", "What to do:", f"  {part.advice}")
    if part.advice_without_torch:
        yield from ("", "What to do without PyTorch:", f"  {part.advice_without_torch}")
    if part.advice_for_long_gaps:
        least_ns, advice = part.advice_for_long_gaps
        yield from ("", f"Where half of it is in gaps of {least_ns / 1e3:.0f} µs or more:", f"  {advice}")
    for pattern, advice in part.advice_by_place:
        yield from ("", f"Where most of it is in {pattern.pattern}:", f"  {advice}")
    if part.source:
        yield from ("", f"Source: {part.source}")


def _conditions(rule: Finding | Caveat) -> Iterator[str]:
    yield from (f"  {condition(each)}" for each in rule.all_of)
    if rule.any_of:
        yield f"  any of: {'; '.join(map(condition, rule.any_of))}"


def _names(finding: Finding) -> Iterator[str]:
    if finding.name_pattern:
        yield f"  kernel name matches {finding.name_pattern}"
    if finding.excluded_name_pattern:
        yield f"  kernel name does not match {finding.excluded_name_pattern}"


def _replaced(finding: Finding) -> Iterator[str]:
    if finding.instead_of:
        yield f"  or {' and '.join(finding.instead_of)} both apply, in whose place it then stands"


def _collect(evidence: Sequence[str], catalogue: Catalogue) -> str:
    by_name = {quantity.name: quantity.collect for quantity in catalogue.quantities}
    return collect_options(options for name in evidence if (options := by_name.get(name)))


def _stall(reason: str, catalogue: Catalogue) -> Iterator[str]:
    stalls = catalogue.stalls
    yield from (f"{STALLS}{reason}: quantity, share", "")
    yield from (
        stalls.reasons[reason],
        "",
        f"Here: {stalls.doc[0].lower()}{stalls.doc[1:]}",
        "",
        f"{_EXCLUDES} {stalls.excludes}",
    )
    yield from ("", "From:", f"  {stalls.of_latency(reason)} / {stalls.total}")
    yield from (f"  {name} / samples of all reasons" for name in stalls.of_samples(reason))
    yield from ("", f"Collect with: {stalls.collect}")


def _quantity(quantity: Quantity, pairs: Sequence[Pair]) -> Iterator[str]:
    yield from (f"{quantity.name}: quantity, {quantity.unit}", "", quantity.doc)
    if quantity.excludes:
        yield from ("", f"{_EXCLUDES} {quantity.excludes}")
    if quantity.sources or pairs:
        yield from ("", "From, in order of preference:")
    for source in quantity.sources:
        yield f"  {source.formula.text}" + _remarks(source.note, source.capabilities)
    for pair in pairs:
        yield from _pair(pair)
    if quantity.collect:
        yield from ("", f"Collect with: {quantity.collect}")


def _counter(name: str, catalogue: Catalogue) -> Iterator[str]:
    yield from (f"{name}: NVIDIA counter", "")
    found = []
    of_tensor = {catalogue.tensor.cycles_per_second, *catalogue.tensor.instruction_rate.counters}
    for quantity in (*catalogue.described(), *catalogue.measured):
        formulas = [source.formula for source in quantity.sources]
        formulas += [each for pair in catalogue.pairs(quantity.name) for each in (pair.achieved, pair.peak) if each]
        is_of_tensor = quantity.name == _TENSOR_WORK and name in of_tensor
        if is_of_tensor or any(name in formula.counters for formula in formulas):
            found.append(f"  {quantity.name}: {quantity.doc}")
    reasons = catalogue.stalls.reasons
    found += [f"  {STALLS}{reason}" for reason in reasons if name in _counters_of_stall(reason, catalogue)]
    identity = "It identifies the launch (block, stream, context, GPU) and is not used in the formula of any quantity."
    yield from ("Used for:", *found) if found else (identity,)


def _counters_of_stall(reason: str, catalogue: Catalogue) -> tuple[str, ...]:
    stalls = catalogue.stalls
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


def _limiter(name: str, rules: Rules) -> Iterator[str]:
    yield from (f"{name}: limiter", "", load_limiters()[name])
    findings = [finding.id for finding in rules.findings.values() if name in finding.limiters]
    if findings:
        yield from ("", f"Findings for kernels that it limits: {', '.join(findings)}.")
