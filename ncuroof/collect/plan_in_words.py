"""The plan in words: what is collected, at what cost, with which settings, and what is skipped."""

from __future__ import annotations

from ncuroof.collect.recording import Recorder
from ncuroof.words import capability_text


def plan_lines(recorder: Recorder, *, counts_first: bool) -> list[str]:
    """Return a few lines that say what is going to be recorded, and how.

    Args:
        recorder: of the request.
        counts_first: whether a counting run comes first.
    """
    plan, request = recorder.plan, recorder.request
    asked = [f"level {plan.level}", *([f"set {plan.set}"] if plan.set else []), f"{len(plan.sections)} sections"]
    asked += [f"{len(plan.metrics)} counters"] if plan.metrics else []
    if len(plan.capabilities) > 1:
        asked += [f"for {' and '.join(map(capability_text, sorted(plan.capabilities)))}"]
    lines = [
        f"plan: {' · '.join(asked)} · {_passes(plan.passes, is_gpu_known=bool(plan.capabilities))}{_replays(recorder)}"
    ]
    if plan.passes is not None and (request.sections or request.metrics):
        lines[0] += "; more for the added sections and counters"
    lines.append(
        f"  {_clocks(request.clock_control)} · {_caches(request.cache_control)} · {request.replay_mode} replay · "
        f"report {request.report}{' per rank' if recorder.program.rank_variable else ''}"
    )
    if counts_first:
        how_once = "; --no-per-shape skips the counting run and records every launch"
        lines.append(
            f"  the program runs twice: first to count its launches{_counted_by(recorder)}, then under ncu"
            f"{'' if recorder.counting_run.is_needed else how_once}"
        )
    if request.leaves_collectives_out:
        lines.append(
            "  NCCL and NVSHMEM kernels are skipped: replayed alone, they would wait for the other GPUs forever"
        )
    return lines


def _counted_by(recorder: Recorder) -> str:
    return "" if recorder.program.script is not None else " with Nsight Systems"


def _passes(passes: tuple[int, int] | None, *, is_gpu_known: bool) -> str:
    if passes is None:
        reason = "for this GPU" if is_gpu_known else "without a GPU (--compute-capability names one)"
        return f"passes per launch unknown {reason}"
    low, high = passes
    return f"about {low} passes per launch" if low == high else f"{low} to {high} passes per launch"


def _replays(recorder: Recorder) -> str:
    count, passes = recorder.request.count, recorder.plan.passes
    if count is None or passes is None or recorder.request.per_shape:
        return ""
    return f", at most {count * passes[1]} replays"


def _clocks(clock_control: str) -> str:
    return {"none": "clocks not locked", "base": "clocks locked to base", "boost": "clocks locked to boost"}[
        clock_control
    ]


def _caches(cache_control: str) -> str:
    return "caches flushed before each pass" if cache_control == "all" else "caches not flushed"
