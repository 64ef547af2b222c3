"""Findings and regressions at their source lines, as SARIF 2.1.0: what code scanning and editors show beside the code.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0. GitHub Docs, "SARIF support for code scanning".

A result is of one rule, kernel and line, however many launches have it. Its fingerprint holds no line number, so that it stays the
same result where lines above it come and go. A result needs a place, and what has none is a notification of the run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from ncuroof import formatting
from ncuroof._version import __version__
from ncuroof.diagnosis import load_rules
from ncuroof.enums import NAMELESS
from ncuroof.metrics.families import USER
from ncuroof.present.analysed import Analysed, Document, Record
from ncuroof.present.documents.analysis import document as document_of
from ncuroof.present.documents.kernels import with_limits
from ncuroof.present.schemas.analysis import AnalysisDocument
from ncuroof.present.schemas.comparison import ComparisonDocument, MatchEntry
from ncuroof.present.schemas.kernels import FindingEntry, KernelEntry
from ncuroof.present.sentences.comparison import cost_ns, match_name, slower
from ncuroof.present.sentences.match_change import both_times
from ncuroof.present.sentences.source_lines import changeable
from ncuroof.present.source_tree import SourceTree

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"
"""What paths are relative to: the root of the repository."""

_FINGERPRINT = "ncuroof/v1"
_LEVELS = {"high": "error", "medium": "warning", "low": "note"}
"""By severity."""

_SLOWER = "slower_than_before"
_TAGS = ["performance", "gpu"]


@dataclass(slots=True)
class _Found:
    """What is told of one kernel at one line.

    Attributes:
        rule: the finding, or what else it is.
        kernel: its names.
        at: the line to change, with `file`, `line` and `text`.
        related: other lines, each with what it is.
        level: error, warning or note.
        title: what it is, in a clause.
        detail: what to do about it, or what is known of it.
        n: how many launches have it.
        gain_ns: what it saves at most, over these; 0 where that is not known.
        duration_ns: what they take, where what they save is known.
        kernels: their ids in the document.
    """

    rule: str
    kernel: Record
    at: Record
    related: list[tuple[str, Record]]
    level: str
    title: str
    detail: str
    n: int = 1
    gain_ns: float = 0.0
    duration_ns: float = 0.0
    kernels: list[int] = field(default_factory=list)


def analysis_sarif(analysis: Analysed) -> str:
    """Return the findings of an analysis; the source files are those around the working directory."""
    return report_sarif(document_of(analysis), SourceTree.around(Path.cwd()))


def report_sarif(document: AnalysisDocument, tree: SourceTree) -> str:
    """Return the findings of a document `ncuroof.analysis/1` that have a source line, those that save most first.

    Args:
        document: of an analysis.
        tree: where the source files are.
    """
    found: dict[tuple[object, ...], _Found] = {}
    for kernel in document["kernels"]:
        for finding in kernel["findings"]:
            if (one := _of_finding(kernel, finding)) is not None:
                key = one.rule, one.kernel["name"], one.at["file"], one.at["line"]
                found[key] = _together(found[key], one) if key in found else one
    ordered = sorted(found.values(), key=lambda each: -each.gain_ns)
    rules = {each.rule: _rule_of_finding(each.rule) for each in ordered}
    return _log("report", ordered, rules, tree, document["summary"]["duration_ns"], _with_gain)


def _of_finding(kernel: KernelEntry, finding: FindingEntry) -> _Found | None:
    """Return a finding of one launch; None where no line of it can be changed, or none is known."""
    cause = finding["where"]
    lines = cause["lines"] if cause else []
    at = next((found for line in lines if (found := changeable(line)) is not None), None)
    if at is None or cause is None:
        return None
    related: list[tuple[str, Record]] = [(f"{formatting.share(line['frac'])} of {cause['of']}", line) for line in lines]
    related += [("waited for here", awaited) for line in lines for awaited in line["awaits"]]
    weight = kernel.get("weight") or 1.0
    gain_ns, duration_ns = finding["gain_ns"], kernel["duration_ns"]
    return _Found(
        rule=finding["id"],
        kernel=kernel,
        at=at,
        related=related,
        level=_LEVELS[finding["severity"]],
        title=finding["title"],
        detail=finding["advice"],
        gain_ns=weight * gain_ns if gain_ns and duration_ns else 0.0,
        duration_ns=weight * duration_ns if gain_ns and duration_ns else 0.0,
        kernels=[kernel["id"]],
    )


def _together(one: _Found, other: _Found) -> _Found:
    """Return what two launches have at the same line: with the words of the one that saves more, and the graver level."""
    most = max(one, other, key=lambda each: each.gain_ns / each.n)
    levels = list(_LEVELS.values())
    return _Found(
        rule=one.rule,
        kernel=most.kernel,
        at=one.at,
        related=most.related,
        level=min(one.level, other.level, key=levels.index),
        title=most.title,
        detail=most.detail,
        n=one.n + other.n,
        gain_ns=one.gain_ns + other.gain_ns,
        duration_ns=one.duration_ns + other.duration_ns,
        kernels=one.kernels + other.kernels,
    )


def _with_gain(found: _Found) -> str:
    """Return what a finding says, with the kernel and what it saves of the time of these launches."""
    launches = "" if found.n == 1 else f" ({formatting.launches(found.n)})"
    share = f": up to {formatting.share(found.gain_ns / found.duration_ns)} of its time" if found.gain_ns else ""
    return f"{found.title} in {formatting.kernel_name(found.kernel)}{launches}{share}. {found.detail}"


def _rule_of_finding(name: str) -> Document:
    """Return a finding as a rule, with its advice to the author of a kernel as help."""
    rules = load_rules()
    finding = rules.findings[name]
    advice = with_limits(finding.advice.text(USER), (), {}, rules.occupancy_cures)
    explained = f"{advice}\n\nWhen it is reported, and what it saves: ncuroof explain {name}"
    return _rule(name, finding.title, explained, _LEVELS[finding.severity])


def _rule(name: str, title: str, explanation: str, level: str) -> Document:
    return {
        "id": name,
        "name": "".join(word.capitalize() for word in name.split("_")),
        "shortDescription": {"text": _message(title)},
        "fullDescription": {"text": _message(title)},
        "help": {"text": _message(explanation)},
        "defaultConfiguration": {"level": level},
        "properties": {"tags": _TAGS, "problem.severity": "recommendation" if level == "note" else level},
    }


def comparison_sarif(document: ComparisonDocument, tree: SourceTree | None = None) -> str:
    """Return the kernels of a document `ncuroof.comparison/1` that got slower beyond noise, at their source lines.

    Kernels without a known line and failed gates are notifications.

    Args:
        document: of a comparison.
        tree: where the source files are; by default around the working directory.
    """
    tree = tree or SourceTree.around(Path.cwd())
    failed = [gate for gate in document["gates"] if not gate["has_passed"]]
    level = "error" if failed else "warning"
    found, without_line = [], []
    for match in slower(document):
        at = match["place"] and changeable(match["place"])
        if at is None:
            without_line.append(match)
        else:
            found.append(_of_match(match, at, level))
    rules = {each.rule: _rule(_SLOWER, "Kernel is slower than before", _SLOWER_HELP, level) for each in found}
    notifications = [
        *(_notification(f"gate failed: {gate['gate']}: {'; '.join(gate['reasons'])}") for gate in failed),
        *(_notification(f"{match_name(each)}: {each['sentence']}") for each in without_line),
    ]
    before_ns = document["before"]["duration_ns"]
    return _log("compare", found, rules, tree, before_ns, lambda each: f"{each.title}: {each.detail}", notifications)


_SLOWER_HELP = (
    "A launch of this kernel takes longer than in the run before, beyond measurement noise. The line is the one whose time grew "
    "most, else the one at which most samples are. ncuroof compare says which quantities explain the change, and whether the "
    "machine code is the same: code that is the same did not make the kernel slower."
)


def _of_match(match: MatchEntry, at: Record, level: str) -> _Found:
    related: list[tuple[str, Record]] = [
        (f"{both_times(each['time_ns'])} at this line", {**each, "line": each["line"][1]})
        for each in match["lines"]
        if each["line"][1]
    ]
    after = match["after"][0]
    return _Found(
        rule=_SLOWER,
        kernel=after,
        at=at,
        related=related,
        level=level,
        title=match_name(match),
        detail=match["sentence"],
        n=after["n_launches"],
        gain_ns=max(cost_ns(match), 0.0),
        kernels=list(after["ids"]),
    )


def _notification(text: str) -> Document:
    """Return what has no place; no error, which would be one of the tool."""
    return {"message": {"text": _message(text)}, "level": "warning"}


def _log(
    command: str,
    found: Iterable[_Found],
    rules: Mapping[str, Document],
    tree: SourceTree,
    duration_ns: float | None,
    message: Callable[[_Found], str],
    notifications: Iterable[Document] = (),
) -> str:
    """Return the log file of one run of ncuroof."""
    numbers = {name: number for number, name in enumerate(rules)}
    driver = {"name": "ncuroof", "semanticVersion": __version__, "rules": list(rules.values())}
    results = [{**each, "ruleIndex": numbers[each["ruleId"]]} for each in _results(found, tree, duration_ns, message)]
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"ncuroof/{command}/"},
        "originalUriBaseIds": {_ROOT: {"description": {"text": "the root of the repository"}}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": list(notifications)}],
        "columnKind": "utf16CodeUnits",
        "results": results,
    }
    log = {"properties": {"generator": "ncuroof"}, "$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=1, allow_nan=False) + "\n"


def _results(
    found: Iterable[_Found], tree: SourceTree, duration_ns: float | None, message: Callable[[_Found], str]
) -> Iterator[Document]:
    """Yield the results whose place is one: a file with a name, and a line from 1 on."""
    n_alike: Counter[str] = Counter()
    for each in found:
        if (location := _physical(each.at, tree)) is None:
            continue
        name = each.kernel["name"] or NAMELESS
        same = _fingerprint(each)
        n_alike[same] += 1
        related: list[tuple[str, Document]] = []
        for words, line in each.related:
            if (where := _physical(line, tree)) is not None and (words, where) not in related:
                related.append((words, where))
        yield {
            "ruleId": each.rule,
            "level": each.level,
            "message": {"text": _message(message(each))},
            "locations": [
                {
                    "physicalLocation": location,
                    "logicalLocations": [
                        {
                            "name": formatting.printable(formatting.kernel_name(each.kernel)),
                            "fullyQualifiedName": formatting.printable(name),
                            "kind": "function",
                        }
                    ],
                }
            ],
            "relatedLocations": [
                {"id": number, "message": {"text": _message(words)}, "physicalLocation": where}
                for number, (words, where) in enumerate(related, start=1)
            ],
            "partialFingerprints": {_FINGERPRINT: f"{same}:{n_alike[same]}"},
            "occurrenceCount": max(each.n, 1),
            **({"rank": _rank(each.gain_ns, duration_ns)} if duration_ns else {}),
            "properties": {"kernels": each.kernels},
        }


def _rank(gain_ns: float, duration_ns: float) -> float:
    """Return how much of the run's time it is about, from 0 to 100."""
    return float(f"{min(max(100 * gain_ns / duration_ns, 0.0), 100.0):.6g}")


def _physical(line: Record, tree: SourceTree) -> Document | None:
    """Return the place of a source line; None where it has none."""
    uri = quote(tree.path(line).encode("utf-8", "replace"), safe="/")
    if not uri or not isinstance(line["line"], int) or line["line"] < 1:
        return None
    region: Document = {"startLine": line["line"]}
    if line.get("text"):
        region["snippet"] = {"text": formatting.printable(str(line["text"]))}
    return {"artifactLocation": {"uri": uri, "uriBaseId": _ROOT}, "region": region}


def _fingerprint(found: _Found) -> str:
    """Return what stays the same of a result while lines above it come and go: rule, kernel, file, and what the line says."""
    kernel = found.kernel["short_name"] or found.kernel["name"] or ""
    said = (found.rule, kernel, found.at["file"], " ".join(str(found.at.get("text") or "").split()))
    return sha256("\0".join(said).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _message(text: str) -> str:
    """Return text of which nothing is a link or a placeholder: SARIF 2.1.0, 3.11.5 and 3.11.6. Lines stay lines."""
    shown = "\n".join(map(formatting.printable, text.split("\n"))).replace("\\", "\\\\")
    return shown.replace("[", "\\[").replace("]", "\\]").replace("{", "{{").replace("}", "}}")
