"""Recognises the log of an ncu that recorded nothing, or no tables, and says why in ncu's own words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ncuroof.errors import ReportEmptyError, ReportFormatError
from ncuroof.ncu.settings import known_failure, load_settings

_KINDS = ("PROF", "ERROR", "WARNING")
_MESSAGE = re.compile(rf"==({'|'.join(_KINDS)})== (\S.*)")
_WRITTEN = re.compile(r"Report: (\S.*)")
_NOTHING = re.compile(r"No (?:kernels|graphs|ranges) were")
_LEAST_TELLING = re.compile(rf"{_NOTHING.pattern}|The application returned an error code")
"""Messages that follow from another one, if there is another one."""

_MOST_MESSAGES = 1000
_LONGEST_MESSAGE = 300
_NO_METRICS = re.compile(r"No metrics to collect")
_EMPTY = "the log of a run of ncu that recorded nothing"
_VALUELESS = "the log of a run of ncu that recorded no values"
_CHECK_FILTERS = (
    "check that the program runs and launches kernels, and ncu's filters (--kernel-name, --launch-skip, --nvtx-include)"
)
_DOCTOR = "run ncuroof doctor on the machine of that run: it checks this and says what to do"


def error_of_log(
    lines: Iterable[str], name: str, *, has_kernels: bool = False
) -> ReportEmptyError | ReportFormatError | None:
    """Return the error for a log of ncu without any table, with ncu's reason for it; None for a text that is no log of ncu.

    Args:
        lines: the lines of the file.
        name: the file's name.
        has_kernels: whether the log names kernels, though without values. Then a log that gives no reason for that is none.
    """
    said = _messages(lines)
    if not said:
        return None
    progress, errors, warnings = ([words for kind, words in said if kind == each] for each in _KINDS)
    is_without_metrics = any(map(_NO_METRICS.match, warnings))
    if has_kernels and not errors and not is_without_metrics:
        return None
    report = next((found[1] for words in progress if (found := _WRITTEN.match(words))), None)
    is_nothing = any(map(_NOTHING.match, warnings))
    if report is not None or (progress and not errors and not is_nothing and not has_kernels):
        return ReportFormatError(
            f"{name}: expected ncu's tables, found only its progress",
            hint=f"pass the report that it wrote: {report}" if report else "pass the .ncu-rep file that this run wrote",
        )
    failures = load_settings().failures
    empty = _VALUELESS if has_kernels else _EMPTY
    failure = known_failure(errors, failures) or known_failure(warnings, failures)
    if failure is None:
        if not progress and not is_nothing:
            return None
        reason, *_ = sorted([*errors, *warnings], key=lambda words: _LEAST_TELLING.match(words) is not None)
        return ReportEmptyError(f"{name}: {empty}: ncu says “{reason}”", hint=_CHECK_FILTERS)
    return ReportEmptyError(
        f"{name}: {empty}: {failure.message} ({failure.id})",
        hint=_DOCTOR if failure.is_of_machine else failure.hint,
    )


def _messages(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Return kind and words of the first of ncu's messages, each once."""
    found: dict[tuple[str, str], None] = {}
    for line in lines:
        if message := _MESSAGE.search(line):
            words = "".join(each if each.isprintable() else " " for each in message[2][:_LONGEST_MESSAGE])
            found[message[1], words.strip()] = None
            if len(found) == _MOST_MESSAGES:
                break
    return list(found)
