"""Explains a name in the output: a verdict, finding, caveat, quantity, column, limiter, term, question, kernel family or GPU.

Names as printed (on the terminal, the page, in tables) are mapped to the names that `ncuroof explain` knows. A quantity is
explained with the counters that it comes from. An explanation ends with the file that defines the name, for those who want to
change it.
"""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ncuroof._version import __version__
from ncuroof.diagnosis import load_parts, load_rules
from ncuroof.enums import Side
from ncuroof.errors import NcuroofError, UnknownNameError
from ncuroof.formatting import label
from ncuroof.metrics import load_catalogue
from ncuroof.metrics.families import LIBRARY, USER, load_families, title
from ncuroof.ncu.settings import Failure, load_settings
from ncuroof.present.explanations.findings import RULE, caveat_lines, finding_lines, node_lines, path_lines
from ncuroof.present.explanations.meanings import (
    STALLS,
    columns_by_name,
    every_quantity,
    group_lines,
    load_columns,
    load_limiters,
    load_page_columns,
    load_terms,
    quantities_by_group,
    quantity_label,
    term_lines,
    verdicts_in_plain_words,
)
from ncuroof.present.explanations.quantities import counter_lines, quantity_lines, stall_lines, users_of_counter
from ncuroof.resources import files_with, folder
from ncuroof.roofline import load_profiles, profile_by_name

_WALL_TIME = "wall_time."
_WIDTH = 100
_LIKE = 0.75
"""Least similarity (difflib's ratio) of a name that is proposed in place of an unknown one."""
_MOST_PROPOSED = 8
_JOINT = " · "
"""Separates a verdict from its limiter in the output."""

_CUT = "…"
_OF_KERNEL = re.compile(r"^k\d+\.(path\.)?")
_BETWEEN_WORDS = re.compile(r"[\s_.·-]+")
_ENDINGS = re.compile(r"(?<=\w{4})(ing|ed|es|s)$")
"""Endings that are cut off before a search: "spills" and "coalescing" are searched as "spill" and "coalesc"."""
_LITTLE_WORDS = (
    "a", "an", "and", "are", "at", "by", "for", "in", "is", "it", "not", "of", "on", "or", "that", "the", "to", "with",
)  # fmt: skip
"""Too common to search for."""

_TABLES_OF_QUANTITIES = ("quantity", "computed", "measured")


@dataclass(frozen=True, slots=True)
class _Kind:
    """Names of one kind, and how one of them is explained.

    Attributes:
        names: of the kind.
        lines: yields the explanation of one of them.
        files: returns the files that define one of them, as paths below `folder`.
        verb: what the files do with it.
        folder: of the repository.
    """

    names: Collection[str]
    lines: Callable[[str], Iterator[str]]
    files: Callable[[str], list[str]]
    verb: str = "Defined"
    folder: str = "profiles"


def explain(name: str, *, with_files: bool = True, is_whole: bool = True) -> str:
    """Return the explanation of `name` as lines of plain text.

    The name may be written as printed ("long scoreboard", "above roof", "latency · grid"), be that of an NVIDIA counter, or the id
    of a kernel's number ("k12.access.load_bytes_per_sector").

    Args:
        name: to explain.
        with_files: whether the explanation ends with the files that define the name.
        is_whole: whether the rule follows what the name means: conditions, formulas, patterns, files.

    Raises:
        UnknownNameError: the name is unknown.
    """
    words = _OF_KERNEL.sub("", name).split(_JOINT)
    known = [part if part in names() else meant(part) for part in words]
    every = [list(_lines(part, with_files=with_files)) for part in known]
    if not is_whole:
        every = [_without_rule(lines, part) for lines, part in zip(every, known, strict=True)]
    each = ("\n".join(line for line in lines if line != RULE) for lines in every)
    return "\n\n".join(text.rstrip("\n") for text in each) + "\n"


def _without_rule(lines: Sequence[str], name: str) -> list[str]:
    """Return an explanation without rules, and where there is one, how to see it."""
    found, is_rule = [], False
    for line in lines:
        is_rule = (is_rule or line == RULE) and not line.startswith(f"{name}: ")
        if not is_rule:
            found.append(line)
    return [*found, "", f"By which rule: ncuroof explain -v {name}"] if RULE in lines else found


def document_of_names() -> dict[str, Any]:
    """Return every name that can be explained with its kind and explanation, as the document `ncuroof.explanations/1`."""
    return {
        "schema": "ncuroof.explanations/1",
        "tool": {"name": "ncuroof", "version": __version__},
        "names": [
            {"name": name, "kind": kind, "explanation": explain(name, with_files=False, is_whole=False)}
            for kind, listed in _names_by_kind().items()
            for name in listed
        ],
    }


@cache
def names() -> tuple[str, ...]:
    """Return every name that can be explained, without duplicates."""
    listed = (name for group in _names_by_kind().values() for name in group)
    return tuple(dict.fromkeys((*listed, *columns_by_name())))


def listing(width: int | None = None) -> str:
    """Return every name that can be explained, grouped by kind, as lines of plain text of at most `width` characters."""
    page = textwrap.TextWrapper(
        min(width or _WIDTH, _WIDTH), "  ", "  ", break_on_hyphens=False, break_long_words=False
    )
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
        "reasons why ncu recorded nothing": list(_reasons()),
        "errors": list(_errors()),
        "questions of the decision path": [node.id for node in rules.nodes],
        "GPUs": list(_gpus()),
        "groups of quantities": list(filter(None, groups)),
        **{f"quantities: {group}".removesuffix(": "): list(quantities) for group, quantities in groups.items()},
    }


def _reasons() -> dict[str, Failure | None]:
    """Return the reasons that errors give in parentheses, with what ncu says where it does."""
    settings = load_settings()
    return {failure.id: failure for failure in settings.failures} | dict.fromkeys(settings.reasons)


def _reason(name: str) -> Iterator[str]:
    failure = _reasons()[name]
    yield from (f"{name}: reason why ncu recorded nothing, or not everything", "")
    if failure is None:
        yield load_settings().reasons[name]
        return
    yield from (f"{failure.message[0].upper()}{failure.message[1:]}.", "", "What to do:", f"  {failure.hint}")
    yield from ("", "What ncu prints then matches:", f"  {failure.pattern.pattern}")


def _errors() -> dict[str, type[NcuroofError]]:
    """Return ncuroof's errors by their slug."""
    return {each.slug: each for each in NcuroofError.__subclasses__()}


def _error(name: str) -> Iterator[str]:
    yield from (f"{name}: error of ncuroof", "", str(_errors()[name].__doc__).splitlines()[0])


def _lines(name: str, *, with_files: bool) -> Iterator[str]:
    """Yield the explanation of a name; a name of several kinds is explained as the first, or as all that can be meant at once."""
    kind = next((kind for kind in _kinds() if name in kind.names), None)
    kinds = [kind] if kind else [kind for kind in _kinds_at_once() if name in kind.names]
    if not kinds:
        raise _unknown(name)
    for number, each in enumerate(kinds):
        yield from ("",) if number else ()
        lines = list(each.lines(name))
        yield from lines
        if with_files and (files := each.files(name)):
            yield from () if RULE in lines else (RULE,)
            yield from ("", f"{each.verb} in {', '.join(f'{each.folder}/{file}' for file in files)}")


def _kinds() -> Iterator[_Kind]:
    """Yield the kinds of names; a name of several of them is one of the first."""
    rules, parts, reasons = load_rules(), load_parts(), load_catalogue().stalls.reasons
    yield _Kind(rules.verdicts, _verdict, _in_table("rules.toml", "verdict"))
    yield _Kind(rules.findings, finding_lines, _in_table("rules.toml", "finding"))
    yield _Kind(rules.caveats, caveat_lines, _in_table("rules.toml", "caveat"))
    yield _Kind((*load_families(), USER), _family, lambda _: ["families.toml"])
    of_time = _in_table("temporal_breakdown.toml", "part", prefix=_WALL_TIME)
    yield _Kind({*parts, *(f"{_WALL_TIME}{part}" for part in parts)}, _part_of_time, of_time)
    yield _Kind({*reasons, *(f"{STALLS}{reason}" for reason in reasons)}, stall_lines, _files_of_quantity)
    yield _Kind(every_quantity(), quantity_lines, _files_of_quantity)
    yield _Kind(load_catalogue().counters(), counter_lines, _files_of_counter, verb="Read")
    yield _Kind([node.id for node in rules.nodes], _question, _in_table("rules.toml", "node"))
    yield _Kind(_reasons(), _reason, lambda _: ["collect.toml"])
    yield _Kind(_errors(), _error, lambda _: ["errors.py"], folder="ncuroof")
    yield _Kind(load_terms(), term_lines, _in_table("terms.toml", "term"))
    yield _Kind(_gpus(), _gpu, lambda gpu: [f"gpus/{gpu}.toml"])


def _kinds_at_once() -> Iterator[_Kind]:
    """Yield kinds that can have the same name: it is explained as each of them."""
    yield _Kind({*load_page_columns(), *load_columns(), *columns_by_name()}, _column, lambda _: ["columns.toml"])
    yield _Kind(load_limiters(), _limiter, _in_table("limiters.toml", "limiter"))
    groups = quantities_by_group()
    yield _Kind(
        set(filter(None, groups)),  # those without a group are in one without a name
        group_lines,
        lambda group: list(dict.fromkeys(file for name in groups[group] for file in _files_of_quantity(name))),
    )


def _in_table(name: str, table: str, prefix: str = "") -> Callable[[str], list[str]]:
    return lambda entry: files_with(name, table, [entry.removeprefix(prefix)])


@cache
def _files_of_quantity(name: str) -> list[str]:
    if name.removeprefix(STALLS) in load_catalogue().stalls.reasons:
        return files_with("metrics.toml", "stalls", ["reasons"])
    return [file for table in _TABLES_OF_QUANTITIES for file in files_with("metrics.toml", table, [name])]


def _files_of_counter(name: str) -> list[str]:
    return list(dict.fromkeys(file for quantity in users_of_counter(name) for file in _files_of_quantity(quantity)))


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
    if name in {side.value for side in Side}:
        yield from ("", "It is also a side of the ridge: ncuroof explain side")
    yield from (RULE, "", "Decision path, starting at 1:", *path_lines(name, rules.nodes))


def _family(name: str) -> Iterator[str]:
    """Yield the origin of a family's kernels, how they are recognised, and what their caller can do."""
    yield from (f"{name}: kernel family, {title(name)}", "")
    if name == USER:
        yield "Kernels that match no other family's pattern: your own code, or an unknown library's."
        return
    family = load_families()[name]
    if family.parent not in {USER, LIBRARY}:
        yield from (f"Part of {family.parent}, {title(family.parent)}.", "")
    yield f"Kernels of {title(name)}: findings have advice of their own for those who call them."
    if family.advice:
        yield from (
            "",
            "What to do, where a finding has no advice for this family or its parent:",
            f"  {family.advice}",
        )
    if family.advice_from_pytorch:
        yield from ("", "What to do where PyTorch launches it:", f"  {family.advice_from_pytorch}")
    yield from (
        RULE,
        "",
        "Recognised where no family listed before it matches:",
        f"  kernel name matches {family.pattern}",
    )
    if family.unless:
        yield f"  kernel name does not match {family.unless}"
    if family.file:
        yield f"  or, where no family's name pattern matches, some of its source lines are in a file that matches {family.file}"
    yield from ("", f"Basis: {family.remark}.")


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
        yield from (f"{name}: page column, share", "", load_page_columns()[name].doc)
    column = {**load_columns(), **columns_by_name()}.get(name)
    if column is not None:
        unit = f", {column.unit}" if column.unit else ""
        yield from ("",) if name in load_page_columns() else ()
        yield from (f"{name}: column{unit}", "", column.doc)


def _limiter(name: str) -> Iterator[str]:
    yield from (f"{name}: limiter", "", load_limiters()[name])
    findings = [finding.id for finding in load_rules().findings.values() if name in finding.limiters]
    if findings:
        yield from ("", f"Findings for kernels that it limits: {', '.join(findings)}.")


@cache
def _gpus() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (folder("profiles") / "gpus").glob("*.toml")))


def _gpu(name: str) -> Iterator[str]:
    profile = profile_by_name(name)
    yield from (f"{name}: GPU, {profile.name}, {profile.architecture} {profile.chip}", "")
    yield f"Its data sheet, each number with its source: ncuroof gpus {name}"


def meant(name: str) -> str:
    """Return the known name for a printed one ("long scoreboard", "LSU", "above roof"), or the argument if none is known."""
    if name.endswith(_CUT):
        found = begun(name)
        return found[0] if len(found) == 1 else name
    return _names_by_key().get(_key(name), name)


def begun(name: str) -> list[str]:
    """Return the names whose printed text starts like a truncated one ("The grid does not…"); none if it is not truncated."""
    if not name.endswith(_CUT):
        return []
    key = _key(name.removesuffix(_CUT))
    return list(dict.fromkeys(known for printed, known in _names_by_key().items() if key and printed.startswith(key)))


def similar(name: str) -> list[str]:
    """Return the names that match the most words of `name`, by name or printed text; none where fewer than half match."""
    words = [_ENDINGS.sub("", word) for word in _key(name).split() if word not in _LITTLE_WORDS]
    names: dict[int, dict[str, None]] = {}
    for printed, known in _names_by_key().items():
        names.setdefault(sum(word in printed for word in words), {})[known] = None
    most = max(names)
    return list(names[most]) if most and 2 * most >= len(words) else []


@cache
def _names_by_key() -> dict[str, str]:
    """Return the known names by normalised printed text.

    Of names with the same text, terms win over column titles, and both over what is added after them.
    """
    rules, catalogue = load_rules(), load_catalogue()
    titles = {verdict.title: name for name, verdict in rules.verdicts.items()}
    titles |= {words: name for name, words in verdicts_in_plain_words().items()}
    titles |= {finding.title: name for name, finding in rules.findings.items()}
    titles |= {part.title: f"wall_time.{name}" for name, part in load_parts().items()}
    families = (*load_families(), USER)
    titles |= {title(family): family for family in families}
    columns = load_columns()
    whole = [*rules.verdicts, *rules.findings, *rules.caveats, *load_limiters(), *catalogue.stalls.reasons, *families]
    titled = {**load_page_columns(), **columns_by_name()}.items()
    found = {_key(printed): name for name, column in titled for printed in column.printed}
    for name, term in load_terms().items():
        found |= dict.fromkeys(map(_key, (name, *term.printed)), name)
    nodes = [node.id for node in rules.nodes]
    for name in (*whole, *columns, *every_quantity(), *nodes):
        found.setdefault(_key(name), name)
    for name in whole:
        found.setdefault(_key(label(name)), name)
    for printed, name in titles.items():
        found.setdefault(_key(printed), name)
    for name in every_quantity():
        found.setdefault(_key(quantity_label(name)), name)
    for profile in load_profiles():
        for printed in (profile.id, profile.name, *profile.device_names):
            found.setdefault(_key(printed), profile.id)
    return found


def _key(name: str) -> str:
    return _BETWEEN_WORDS.sub(" ", name.casefold()).strip()
