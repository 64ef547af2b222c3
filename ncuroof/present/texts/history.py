"""Many runs for people: a line per kernel with its time in every run, jumps beyond noise marked."""

from __future__ import annotations

from ncuroof import wording
from ncuroof.comparison import Comparison, run_obstacle, total_ns
from ncuroof.comparison.history import History, Trend
from ncuroof.present.sentences.change import signed_share

_MOST_TRENDS = 30
_NAME_WIDTH = 32
_LEAST_NAME_WIDTH = 12
_TIME_WIDTH = 10
_SLOWER, _FASTER = "▲", "▼"


def history_text(found: History) -> str:
    """Return the trends as lines of plain text: a column per run, with marks at times that changed beyond noise."""
    lines = ["ncuroof · history"]
    lines += [
        f"  {number}: {wording.printable(run.label)} · {wording.duration(total_ns(run))} in {wording.launches(run.n_kernels)}"
        + (wording.DAMAGED if run.damage else "")
        for number, run in enumerate(found.runs)
    ]
    lines += [
        f"  {number} to {number + 1}: {wording.printable(said)}"
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
    return [] if obstacle is None else [f"GPU times of the whole runs are not compared: {obstacle}"]


def _line(trend: Trend) -> str:
    cells = "".join(
        f"{wording.duration(value):>{_TIME_WIDTH}} {_mark(trend, number)}" for number, value in enumerate(trend.mean_ns)
    )
    change = "" if trend.change_frac is None else signed_share(trend.change_frac)
    return f"{_fitted(wording.printable(trend.name)):<{_NAME_WIDTH}}{cells}  {change}".rstrip()


def _fitted(name: str) -> str:
    """Return a name that fits its column; what distinguishes it from others of the name stays."""
    short, dot, words = name.partition(" · ")
    tail = wording.shortened(f"{dot}{words}", _NAME_WIDTH - _LEAST_NAME_WIDTH)
    return wording.shortened(short, _NAME_WIDTH - 1 - len(tail)) + tail


def _mark(trend: Trend, number: int) -> str:
    jump = trend.jumps.get(number)
    return " " if jump is None else (_SLOWER if jump > 0 else _FASTER)
