"""How long a run would take on other GPUs or after changes, for people: on the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncuroof import formatting
from ncuroof.present.schemas.projection import (
    ProjectedKernelEntry,
    ProjectedTimesEntry,
    ProjectionDocument,
    ProjectionEntry,
    TargetEntry,
)
from ncuroof.present.texts.layout import aligned, code, escaped, filled, screen_width, table_row

_MOST_KERNELS = 20
_NAME_WIDTH, _LEAST_NAME_WIDTH, _TIME_WIDTH = 32, 12, 10
_CELL_WIDTH = 29
_WIDTH = 100
_LEAST_RANGE_FRAC = 0.05


def to_text(document: ProjectionDocument) -> str:
    """Return a projection as lines of plain text."""
    lines = ["ncuroof · what if", formatting.printable(", ".join(document["sources"]))]
    if document["changes"]:
        lines.append("changed: " + formatting.printable(", ".join(document["changes"])))
    lines += ["", *_totals(document), "", *_kernels(document)]
    for note in _notes(document):
        lines += _filled(note)
    lines.append("")
    for assumption in document["assumptions"]:
        lines += _filled(f"· {assumption}")
    return "\n".join(lines) + "\n"


def to_markdown(document: ProjectionDocument) -> str:
    """Return a projection as Markdown: the run, then the kernels."""
    targets = [total["target"] for total in document["targets"]]
    lines = ["<!-- ncuroof whatif -->", "", "# ncuroof: what if", ""]
    if document["changes"]:
        lines += ["Changed: " + ", ".join(map(code, document["changes"])), ""]
    lines += ["| target | recorded | expected | range | speedup |", "|---|---:|---:|---:|---:|"]
    lines += [table_row(map(escaped, _total(total))) for total in document["targets"]]
    lines += ["", table_row(("kernel", "recorded", *map(escaped, targets))), "|---|---:|" + "---:|" * len(targets)]
    for kernel in document["kernels"][:_MOST_KERNELS]:
        times = [formatting.duration(kernel["recorded_ns"]), *map(_time, kernel["projections"])]
        lines.append(table_row((code(_name(kernel)), *map(escaped, times))))
    notes = [*_notes(document), *document["assumptions"]]
    return "\n".join([*lines, "", *(f"- {escaped(note.strip())}" for note in notes)]) + "\n"


def _totals(document: ProjectionDocument) -> list[str]:
    head = ("run on", "recorded", "expected", "range", "speedup")
    rows = [head, *map(_total, document["targets"])]
    return aligned(rows, left=[True, *[False] * (len(head) - 1)])


def _total(total: TargetEntry) -> tuple[str, str, str, str, str]:
    speed = formatting.MISSING if total["speedup"] is None else f"{total['speedup']:.3g}×"
    return (
        total["target"],
        formatting.duration(total["recorded_ns"]),
        formatting.duration(total["duration_ns"]),
        _between(total),
        speed,
    )


def _between(times: ProjectedTimesEntry) -> str:
    least, most = map(formatting.duration, (times["least_ns"], times["most_ns"]))
    return least if least == most else f"{least} to {most}"


def _kernels(document: ProjectionDocument) -> Iterator[str]:
    kernels = document["kernels"]
    targets = (formatting.shortened(total["target"], _CELL_WIDTH - 2) for total in document["targets"])
    left = (screen_width() or _WIDTH) - _TIME_WIDTH - _CELL_WIDTH * len(document["targets"])
    width = min(max(left, _LEAST_NAME_WIDTH), _NAME_WIDTH)
    yield f"{'kernel':<{width}}{'recorded':>{_TIME_WIDTH}}" + "".join(f"{target:>{_CELL_WIDTH}}" for target in targets)
    for kernel in kernels[:_MOST_KERNELS]:
        name = formatting.shortened(formatting.printable(_name(kernel)), width - 1)
        cells = "".join(f"{_time(projection):>{_CELL_WIDTH}}" for projection in kernel["projections"])
        yield f"{name:<{width}}{formatting.duration(kernel['recorded_ns']):>{_TIME_WIDTH}}{cells}"
    if len(kernels) > _MOST_KERNELS:
        yield f"{len(kernels) - _MOST_KERNELS} more in the JSON document"


def _name(kernel: ProjectedKernelEntry) -> str:
    times = f"{kernel['n_launches']} × " if kernel["n_launches"] > 1 else ""
    return times + formatting.kernel_name(kernel)


def _time(projection: ProjectionEntry) -> str:
    """Return the expected time and, where the hypotheses differ from it by a twentieth or more, their range."""
    expected, least, most = projection["duration_ns"], projection["least_ns"], projection["most_ns"]
    if expected is None or least is None or most is None:
        return formatting.MISSING
    is_wide = max(expected - least, most - expected) >= _LEAST_RANGE_FRAC * expected
    return formatting.duration(expected) + (f" ({_between(projection)})" if is_wide else "")


def _notes(document: ProjectionDocument) -> Iterator[str]:
    yield from (*_of_wall_time(document), *_crossing(document), *_assumed(document), *_unknown(document))


def _of_wall_time(document: ProjectionDocument) -> Iterator[str]:
    """Yield what a faster GPU leaves of the time by the clock, in which the kernels run for a part only."""
    for total in document["targets"]:
        recorded_ns, wall_ns = total["wall_recorded_ns"], total["wall_ns"]
        if wall_ns and recorded_ns:
            yield (
                f"from start to end it takes {formatting.duration(recorded_ns)}, on {total['target']} "
                f"{formatting.duration(wall_ns)} ({recorded_ns / wall_ns:.3g}×): "
                "the time in which no kernel runs is assumed to stay"
            )


def _crossing(document: ProjectionDocument) -> Iterator[str]:
    """Yield which kernels change sides of the ridge on each target."""
    for index, total in enumerate(document["targets"]):
        there = [(_name(kernel), kernel["projections"][index]) for kernel in document["kernels"]]
        to_memory = [name for name, projection in there if projection["n_crossing_to_memory"]]
        to_compute = [
            name for name, projection in there if projection["n_crossing"] > projection["n_crossing_to_memory"]
        ]
        for side, names in (("memory", to_memory), ("compute", to_compute)):
            if names:
                yield f"on {total['target']}, these kernels cross the ridge to the {side} side: {_some(names)}"


def _assumed(document: ProjectionDocument) -> Iterator[str]:
    """Yield which kernels are limited on each target by an L2 whose bandwidth no document states."""
    for index, total in enumerate(document["targets"]):
        if total["n_limited_by_assumed_l2"]:
            limited = [each for each in document["kernels"] if each["projections"][index]["n_limited_by_assumed_l2"]]
            yield (
                f"on {total['target']}, these kernels are limited by an assumed L2 bandwidth: "
                f"{_some([_name(each) for each in limited])}"
            )


def _some(names: Sequence[str]) -> str:
    return formatting.first_of([formatting.printable(name) for name in names], 3)


def _unknown(document: ProjectionDocument) -> Iterator[str]:
    for index, total in enumerate(document["targets"]):
        if total["n_unknown"]:
            reasons = filter(None, {kernel["projections"][index]["reason"] for kernel in document["kernels"]})
            yield f"no estimate for {formatting.launches(total['n_unknown'])} on {total['target']}: {'; '.join(sorted(reasons))}"


def _filled(sentence: str) -> Iterator[str]:
    return filled("", sentence.split(" "), min(screen_width() or _WIDTH, _WIDTH), hanging="  ")
