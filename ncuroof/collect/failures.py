"""ncu's failures in one clear line and a fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ncuroof.collect.settings import Failure
from ncuroof.errors import ProfilingError

_MARK = re.compile(r"==(?:ERROR|WARNING)== ")
_EXIT_STATUS = "The application returned an error code"
_FILTERED = "no-kernels"


def known_failure(messages: Iterable[str], failures: Sequence[Failure]) -> Failure | None:
    """Return the first failure that ncu's words tell of, in the order of `failures`."""
    said = list(messages)
    return next((failure for failure in failures if any(failure.pattern.search(line) for line in said)), None)


def why_nothing(
    messages: Sequence[str], failures: Sequence[Failure], *, exit_status: int | None, is_filtered: bool
) -> ProfilingError:
    """Return the error for a run that recorded no kernel.

    Args:
        messages: ncu's errors and warnings.
        failures: of profiles/collect.toml.
        exit_status: the program's where it is not 0, or None.
        is_filtered: the user chose kernels, ranges or steps.
    """
    failure = known_failure(messages, failures)
    if failure is not None:
        return ProfilingError(f"{failure.message} ({failure.id})", hint=failure.hint)
    if exit_status:
        return ProfilingError(
            f"the program ended with status {exit_status} before a kernel was recorded (target-failed)",
            hint="run it without ncuroof first; what it printed stands above",
        )
    others = [_MARK.sub("", line) for line in messages if _EXIT_STATUS not in line and "No kernels were" not in line]
    if others:
        return ProfilingError(f"ncu recorded nothing: {others[0]}", hint="ncuroof doctor looks for what is wrong")
    return ProfilingError(
        f"the program ran, and no kernel was recorded ({_FILTERED})",
        hint=(
            "no launch passed --kernel, --nvtx, --step or --launch-skip: look at --dry-run, and widen them"
            if is_filtered
            else "it launched none on this GPU: look whether it uses CUDA; child processes count with --target-processes all"
        ),
    )
