"""Runs compared, for people: on the terminal, and as Markdown for a job's summary or a pull request.

Of many runs there is a line per kernel with its time in every run, jumps beyond noise marked. CI systems get the results of gates
as JUnit XML and as annotations for GitHub Actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from ncuroof import formatting
from ncuroof.comparison import Comparison, run_obstacle, total_ns
from ncuroof.comparison.history import History, Trend
from ncuroof.present.schemas.comparison import ComparisonDocument, GateEntry, MatchEntry
from ncuroof.present.sentences.comparison import (
    ALONE,
    alone,
    candidate,
    changed_findings,
    changed_lines,
    how_matched,
    match_name,
    moved,
    outcome,
    short_group,
    side,
    slower,
)
from ncuroof.present.sentences.match_change import both_times, signed_share, times
from ncuroof.present.sentences.source_lines import changeable
from ncuroof.present.source_tree import SourceTree
from ncuroof.present.texts.layout import WIDTH, code, escaped, filled, table_row, wrapped_lines

SCREEN = 40
"""Lines of a screen, which a comment on a pull request should not exceed."""

_SCREEN_WIDTH = 110
_MOST_UNFOLDED, _MOST_GATES = 6, 6
"""Kernels and gates that are shown where the whole exceeds a screen."""

_MOST_ANNOTATIONS = 10
_MOST_LINES = 20
_MOST_CANDIDATES = 5

_MOST_TRENDS = 30
_NAME_WIDTH = 32
_LEAST_NAME_WIDTH = 12
_TIME_WIDTH = 10
_SLOWER, _FASTER = "▲", "▼"


def to_text(document: ComparisonDocument) -> str:
    """Return a comparison as lines of plain text."""
    lines = [
        "ncuroof · compare",
        *heading(document),
        *_changes(document),
        *_others(document),
        *_candidates(document),
        *_gates(document),
    ]
    return "".join(f"{line}\n" for line in wrapped_lines("\n".join(lines)))


def to_markdown(document: ComparisonDocument) -> str:
    """Return a comparison as Markdown of one screen: the result, gates, and what moved as a table; more than that is folded."""
    start = ["<!-- ncuroof compare -->", "", "# ncuroof compare", ""]
    start += [*(f"{escaped(line)}  " for line in heading(document)), ""]
    shown, gates = moved(document), sorted(document["gates"], key=lambda gate: gate["has_passed"])
    everything = [*_table([_table_row(match, document) for match in shown[:_MOST_LINES]]), *_other_items(document)]
    if len(shown) > _MOST_LINES:
        everything.append(f"- {len(shown) - _MOST_LINES} more in the JSON document")
    whole = [*start, *everything, *_gate_items(gates)]
    if _height(whole) <= SCREEN:
        return "\n".join(whole).rstrip() + "\n"
    lines = [*start, *_gate_items(gates[:_MOST_GATES], is_short=True)]
    lines += _table([_table_row(match, document, is_short=True) for match in shown[:_MOST_UNFOLDED]])
    lines += _folded(f"{formatting.counted(len(shown), 'kernel')} that changed, and what else did", everything)
    lines += _folded("all gates", _gate_items(gates) if len(gates) > _MOST_GATES else ())
    return "\n".join(lines).rstrip() + "\n"


def _gate_items(gates: Sequence[GateEntry], *, is_short: bool = False) -> list[str]:
    """Return gates as the items of a list under a heading; short ones have a line or two of reasons."""
    items = []
    for gate in gates:
        reasons = "; ".join(gate["reasons"])
        said = formatting.shortened(reasons, _SCREEN_WIDTH) if is_short else reasons
        items.append(f"- {'✅' if gate['has_passed'] else '❌'} {code(gate['gate'])}: {escaped(said)}")
    return ["", "## Gates", "", *items, ""] if items else []


def _other_items(document: ComparisonDocument) -> list[str]:
    """Return what has no match, and what may belong together, as the items of a list."""
    items = [f"- {escaped(line.strip())}" for line in _others(document)]
    return items + [f"- {escaped(candidate(each))}" for each in document["candidates"][:_MOST_CANDIDATES]]


def _table(rows: Sequence[str]) -> list[str]:
    return ["| kernel | before | after | change |", "|---|---:|---:|---|", *rows, ""] if rows else []


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    return ["", "<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>", ""] if lines else []


def _height(lines: Iterable[str]) -> int:
    """Return how many lines of a screen Markdown takes, about."""
    shown = (part for line in lines for part in line.split("<br>"))
    return sum(1 + len(part) // _SCREEN_WIDTH for part in shown)


def _table_row(match: MatchEntry, document: ComparisonDocument, *, is_short: bool = False) -> str:
    """Return the row of a match; a short one leaves out how it was matched, and findings and lines."""
    how = "" if is_short else how_matched(match)
    name = code(match_name(match)) + (f"<br>match: {escaped(how)}" if how else "")
    more = () if is_short else (*changed_findings(match), *changed_lines(match))
    sentence = formatting.shortened(match["sentence"], _SCREEN_WIDTH) if is_short else match["sentence"]
    change = "<br>".join(map(escaped, (sentence, *more)))
    return table_row((name, *(times(match, document) or [formatting.MISSING] * 2), change))


def heading(document: ComparisonDocument) -> Iterator[str]:
    """Yield the change as a whole, then the runs, then what else is to be known of it."""
    answer, *others = outcome(document)
    yield answer
    yield f"before: {side(document['before'])}"
    yield f"after:  {side(document['after'])}"
    yield from others


def _changes(document: ComparisonDocument) -> Iterator[str]:
    shown = moved(document)
    for match in shown[:_MOST_LINES]:
        yield ""
        yield f"  {match_name(match)}"
        if both := times(match, document):
            yield f"    {' → '.join(both)}, above the roofline {both_times(match['recoverable_ns'])}"
        if how := how_matched(match):
            yield from filled("    ", f"match: {how}".split(), WIDTH)
        yield from filled("    ", match["sentence"].split(), WIDTH)
        for line in changed_findings(match):
            yield from filled("    ", line.split(), WIDTH)
        yield from (formatting.shortened(f"    {line}", WIDTH) for line in changed_lines(match))
    if len(shown) > _MOST_LINES:
        yield f"  {len(shown) - _MOST_LINES} more in the JSON document"


def _others(document: ComparisonDocument) -> Iterator[str]:
    for key, words in ALONE.items():
        groups = document[key]
        for group in groups[:_MOST_LINES]:
            yield f"  {words}: {formatting.printable(short_group(group))}, {alone(group, key)}"
        if len(groups) > _MOST_LINES:
            yield f"  {words}: {len(groups) - _MOST_LINES} more in the JSON document"


def _candidates(document: ComparisonDocument) -> Iterator[str]:
    for each in document["candidates"][:_MOST_CANDIDATES]:
        yield from filled("  ", candidate(each).split(), WIDTH)


def _gates(document: ComparisonDocument) -> Iterator[str]:
    if document["gates"]:
        yield ""
    for gate in document["gates"]:
        yield f"gate {'passed' if gate['has_passed'] else 'FAILED'}: {formatting.printable(gate['gate'])}"
        for reason in gate["reasons"]:
            yield from filled("  ", formatting.printable(reason).split(), WIDTH)


def to_junit(document: ComparisonDocument) -> bytes:
    """Return the gates as JUnit XML, a test case each; a failed gate's reasons are its message."""
    gates = document["gates"]
    failed = [gate for gate in gates if not gate["has_passed"]]
    suite = ET.Element("testsuite", name="ncuroof compare", tests=str(len(gates)), failures=str(len(failed)))
    for gate in gates:
        case = ET.SubElement(suite, "testcase", classname="ncuroof.gates", name=formatting.printable(gate["gate"]))
        reasons = formatting.printable("; ".join(gate["reasons"]))
        if gate["has_passed"]:
            ET.SubElement(case, "system-out").text = reasons
        else:
            ET.SubElement(case, "failure", message=reasons)
    ET.indent(suite)
    written: bytes = ET.tostring(suite, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def github_annotations(document: ComparisonDocument) -> str:
    """Return the annotations as lines; the source files are those around the working directory."""
    return "".join(f"{line}\n" for line in to_annotations(document, SourceTree.around(Path.cwd())))


def to_annotations(document: ComparisonDocument, tree: SourceTree) -> Iterator[str]:
    """Yield workflow commands for GitHub Actions: errors for failed gates, warnings at the lines of kernels that got slower.

    Where all gates passed, a notice says so. GitHub shows ten errors and ten warnings of a step.

    Args:
        document: of a comparison.
        tree: where the source files are.

    Source: GitHub Docs, "Workflow commands for GitHub Actions" (escapes for %, carriage return and line feed; of properties also
    colon and comma).
    """
    failed = [gate for gate in document["gates"] if not gate["has_passed"]]
    for gate in failed:
        yield f"::error title=ncuroof gate failed::{_escaped(gate['gate'])}: {_escaped('; '.join(gate['reasons']))}"
    if document["gates"] and not failed:
        yield f"::notice title=ncuroof::{len(document['gates'])} gates passed"
    for match in slower(document)[:_MOST_ANNOTATIONS]:
        said = _escaped(f"{match_name(match)}: {match['sentence']}")
        at = match["place"] and changeable(match["place"])
        where = f"file={_property(tree.path(at))},line={at['line']}," if at else ""
        yield f"::warning {where}title=ncuroof{_property(': ')}slower::{said}"


def _escaped(value: str) -> str:
    return formatting.printable(value).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _escaped(value).replace(":", "%3A").replace(",", "%2C")


def history_text(found: History) -> str:
    """Return the trends as lines of plain text: a column per run, with marks at times that changed beyond noise."""
    lines = ["ncuroof · history"]
    lines += [
        f"  {number}: {formatting.printable(run.label)} · {formatting.duration(total_ns(run))} in "
        f"{formatting.launches(run.n_kernels)}" + (formatting.DAMAGED if run.damage else "")
        for number, run in enumerate(found.runs)
    ]
    lines += [
        f"  {number} to {number + 1}: {formatting.printable(said)}"
        for number, step in enumerate(found.steps)
        for said in _not_compared(step)
    ]
    lines += [
        "",
        f"{'kernel, time of one launch':<{_NAME_WIDTH}}"
        + "".join(f"{number:>{_TIME_WIDTH}}  " for number in range(len(found.runs)))
        + "  change",
    ]
    lines += [_line(trend) for trend in found.trends[:_MOST_TRENDS]]
    if len(found.trends) > _MOST_TRENDS:
        lines.append(f"{len(found.trends) - _MOST_TRENDS} more in the JSON document")
    if any(trend.jumps for trend in found.trends[:_MOST_TRENDS]):
        lines += ["", f"{_SLOWER} slower, {_FASTER} faster than in the previous run, beyond measurement noise"]
    return "\n".join(lines) + "\n"


def _not_compared(step: Comparison) -> list[str]:
    """Return what is not compared from one run to the next, and why."""
    if step.comparable.reasons:
        return [f"times are not compared: {reason}" for reason in step.comparable.reasons]
    obstacle = run_obstacle(step)
    return [] if obstacle is None else [f"sums over the whole runs say nothing: {obstacle}"]


def _line(trend: Trend) -> str:
    cells = "".join(
        f"{formatting.duration(value):>{_TIME_WIDTH}} {_mark(trend, number)}"
        for number, value in enumerate(trend.mean_ns)
    )
    change = "" if trend.change_frac is None else signed_share(trend.change_frac)
    return f"{_fitted(formatting.printable(trend.name)):<{_NAME_WIDTH}}{cells}  {change}".rstrip()


def _fitted(name: str) -> str:
    """Return a name that fits its column; what distinguishes it from others of the name stays."""
    short, dot, words = name.partition(" · ")
    tail = formatting.shortened(f"{dot}{words}", _NAME_WIDTH - _LEAST_NAME_WIDTH)
    return formatting.shortened(short, _NAME_WIDTH - 1 - len(tail)) + tail


def _mark(trend: Trend, number: int) -> str:
    jump = trend.jumps.get(number)
    return " " if jump is None else (_SLOWER if jump > 0 else _FASTER)
