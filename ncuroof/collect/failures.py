"""Turn ncu's failures into one clear line and a fix."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from ncuroof.collect.ncu_run import NcuExit
from ncuroof.errors import ProfilingError
from ncuroof.ncu.settings import FOLLOWS_FROM_ANOTHER, Failure, known_failure

_MARK = re.compile(r"==(?:ERROR|WARNING)== ")
_ERROR = "==ERROR== "
_LOOK_AT_COMMAND = "--dry-run shows the command, ncuroof doctor checks the machine"
_LOOK_ABOVE = f"its output is above; {_LOOK_AT_COMMAND}"
RUN_IT_ALONE = "its output is above; first make it run without ncuroof"


def why_nothing(
    outcome: NcuExit,
    failures: Sequence[Failure],
    *,
    is_filtered: bool,
    has_ranks: bool = False,
    is_cut_off: bool = False,
) -> ProfilingError:
    """Return the error for a run that recorded no kernel.

    Args:
        outcome: how ncu, or the launcher that started it, ended.
        failures: the known failures of profiles/collect.toml.
        is_filtered: the user's options may exclude launches.
        has_ranks: a launcher of ranks was run.
        is_cut_off: ncu ended while it wrote a report, and no complete kernel was in it.
    """
    exit_status = outcome.progress.exit_status
    messages = sorted(outcome.progress.messages, key=lambda line: not line.startswith(_ERROR))
    errors = [line for line in messages if line.startswith(_ERROR)]
    has_kernels = outcome.progress.kernel is not None
    failure = known_failure(errors, failures, has_kernels=has_kernels)
    if failure is None and not _other_words(errors):
        failure = known_failure(messages, failures, has_kernels=has_kernels)
    if failure is not None:
        return ProfilingError(f"{failure.message} ({failure.id})", hint=failure.hint)
    if exit_status:
        return ProfilingError(
            f"the program exited with status {exit_status} before a kernel was recorded (target-failed)",
            hint=RUN_IT_ALONE,
        )
    others = _other_words(messages)
    if others:
        return ProfilingError(f"ncu recorded nothing: {others[0]}", hint=_LOOK_ABOVE)
    return _how_it_ended(outcome, is_filtered=is_filtered, has_ranks=has_ranks, is_cut_off=is_cut_off)


def _how_it_ended(outcome: NcuExit, *, is_filtered: bool, has_ranks: bool, is_cut_off: bool) -> ProfilingError:
    """Return the error for a run in which ncu reported no trouble."""
    if is_cut_off:
        return ProfilingError(
            f"ncu ended with status {outcome.status} before a kernel was complete in its report, which was deleted",
            hint=_LOOK_ABOVE,
        )
    if outcome.progress.is_connected:
        return ProfilingError(
            "the program used CUDA, but no kernel was recorded (no-kernels)",
            hint=(
                "no launch passed --kernel, --nvtx, --step or --launch-skip: widen them (--dry-run shows the command); --kernel "
                "searches the function name, which all Kokkos or RAJA kernels share, or with < or :: in it the whole name"
                if is_filtered
                else "it launched none: check its output"
            ),
        )
    if outcome.status:
        ended = "the launcher" if has_ranks else "ncu"
        return ProfilingError(
            f"{ended} exited with status {outcome.status} before any program used CUDA", hint=_LOOK_ABOVE
        )
    return ProfilingError(
        "ncu saw no process that uses CUDA (no-kernels)",
        hint="check that the program uses this GPU; child processes are profiled with --target-processes all",
    )


def refusal(said: str, failures: Sequence[Failure], passed_over: Collection[str] = ()) -> ProfilingError | None:
    """Return the error if ncu's output says that it refuses its options or cannot work on this machine; None if it does not.

    Args:
        said: all that ncu printed.
        failures: of profiles/collect.toml.
        passed_over: ids of failures that are not refusals.
    """
    errors = [line for line in said.splitlines() if line.startswith(_ERROR)]
    failure = known_failure(errors, failures)
    if failure is None:
        others = _other_words(errors)
        return ProfilingError(f"ncu does not start: {others[0]}", hint=_LOOK_AT_COMMAND) if others else None
    if failure.id in passed_over:
        return None
    said_by_ncu = next(line for line in errors if failure.pattern.search(line))
    return ProfilingError(
        f"{failure.message} ({failure.id}): {_MARK.sub('', said_by_ncu)}",
        hint=failure.hint,
    )


def _other_words(messages: Iterable[str]) -> list[str]:
    """Return ncu's messages, except those that say that the program failed or that nothing was recorded."""
    return [_MARK.sub("", line) for line in messages if not FOLLOWS_FROM_ANOTHER.search(line)]
