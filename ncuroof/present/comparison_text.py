"""A comparison for people: on the terminal, and as Markdown for a job's summary or a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ncuroof.present import format as text
from ncuroof.present.change_sentence import factor

Record = Mapping[str, Any]

_MOST_LINES = 20
_MOST_NAME = 60
_WIDTH = 80


def to_text(document: Record) -> str:
    """Return a comparison as lines of plain text."""
    return (
        "\n".join(["ncuroof · compare", *heading(document), *_changes(document), *_others(document), *_gates(document)])
        + "\n"
    )


def to_markdown(document: Record) -> str:
    """Return a comparison as Markdown: what moved as a table, gates as a list."""
    lines = ["<!-- ncuroof compare -->", "", "# ncuroof compare", "", *(f"{line}  " for line in heading(document)), ""]
    shown = moved(document)
    if shown:
        lines += ["| kernel | before | after | change |", "|---|---:|---:|---|"]
        lines += [
            f"| `{_cell(match_name(match))}` | {text.duration(match['duration_ns'][0])} | {text.duration(match['duration_ns'][1])} "
            f"| {_cell(match['sentence'])} |"
            for match in shown[:_MOST_LINES]
        ]
        lines.append("")
    lines += [f"- {_cell(line.strip())}" for line in _others(document)]
    if document["gates"]:
        lines += ["", "## Gates", ""]
        lines += [
            f"- {'✅' if gate['has_passed'] else '❌'} `{_cell(gate['gate'])}`: {_cell('; '.join(gate['reasons']))}"
            for gate in document["gates"]
        ]
    return "\n".join(lines).rstrip() + "\n"


def heading(document: Record) -> Iterator[str]:
    """Yield the runs, what of them can be compared, and the change as a whole."""
    before, after, summary = document["before"], document["after"], document["summary"]
    yield f"before: {_side(before)}"
    yield f"after:  {_side(after)}"
    comparable = document["comparable"]
    if not comparable["time"]:
        yield from (f"times are not compared: {text.printable(reason)}" for reason in comparable["reasons"])
    elif summary["duration_change_frac"] is not None:
        change, noise = summary["duration_change_frac"], summary["noise_frac"]
        is_moved = abs(change) > noise
        yield (
            f"the run is {factor(change)}"
            if is_moved
            else f"the run's time did not change beyond chance (±{text.share(noise)})"
        )
    yield from (f"note: {text.printable(remark)}" for remark in comparable["remarks"])
    if not comparable["time"]:
        yield f"{text.counted(summary['n_matches'], 'kernel')} matched, {summary['n_added']} added, {summary['n_removed']} removed"
        return
    yield (
        f"{text.counted(summary['n_faster'], 'kernel')} faster, {summary['n_slower']} slower, "
        f"{summary['n_matches'] - summary['n_faster'] - summary['n_slower']} unchanged, "
        f"{summary['n_added']} added, {summary['n_removed']} removed"
    )


def _side(side: Record) -> str:
    gpus = ", ".join(map(text.printable, side["gpus"])) or "unknown GPU"
    return f"{text.printable(side['label'])} · {gpus} · {text.launches(side['n_kernels'])}, {text.duration(side['duration_ns'])}"


def moved(document: Record) -> list[Record]:
    """Return the matches to tell of: those that changed beyond chance, or in verdict, or, where times say nothing, in amounts."""
    is_comparable = document["comparable"]["time"]
    return [
        match
        for match in document["matches"]
        if (match["is_significant"] and is_comparable)
        or (match["verdict"][0] != match["verdict"][1] and "unknown" not in match["verdict"])
        or (not is_comparable and match["changes"])
    ]


def _changes(document: Record) -> Iterator[str]:
    shown = moved(document)
    for match in shown[:_MOST_LINES]:
        yield ""
        yield f"  {match_name(match)}"
        was, became = match["duration_ns"]
        yield f"    {text.duration(was)} → {text.duration(became)}{_how(match)}"
        yield from _wrapped(match["sentence"], "    ")
    if len(shown) > _MOST_LINES:
        yield f"  {len(shown) - _MOST_LINES} more in the JSON document"


def match_name(match: Record) -> str:
    """Return the names of a match, once where they are the same before and after."""
    before, after = (" + ".join(_short(group) for group in match[side]) for side in ("before", "after"))
    return text.printable(before if before == after else f"{before} → {after}")


def _short(group: Record) -> str:
    return text.shortened(group["short_name"] or group["name"] or "(no name)", _MOST_NAME)


def _how(match: Record) -> str:
    if match["how"] == "same":
        return ""
    sure = "" if match["sureness"] == "certain" else f", {match['sureness']}"
    return f"  (matched as {match['how']}{sure})"


def _others(document: Record) -> Iterator[str]:
    for key in ("added", "removed"):
        groups = document[key]
        for group in groups[:_MOST_LINES]:
            time = text.duration(group["duration_ns"])
            yield f"  {key}: {text.printable(_short(group))}, {text.launches(group['n_launches'])}, {time}"
        if len(groups) > _MOST_LINES:
            yield f"  {key}: {len(groups) - _MOST_LINES} more in the JSON document"


def _gates(document: Record) -> Iterator[str]:
    if document["gates"]:
        yield ""
    for gate in document["gates"]:
        yield f"gate {'passed' if gate['has_passed'] else 'FAILED'}: {text.printable(gate['gate'])}"
        for reason in gate["reasons"]:
            yield from _wrapped(text.printable(reason), "  ")


def _wrapped(sentence: str, indent: str) -> Iterator[str]:
    line = indent
    for word in sentence.split(" "):
        if len(line) > len(indent) and len(line) + len(word) + 1 > _WIDTH:
            yield line.rstrip()
            line = indent
        line += word + " "
    yield line.rstrip()


def _cell(value: str) -> str:
    """Return text of a report that stays within a table's cell and is no markup."""
    return text.printable(value).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
