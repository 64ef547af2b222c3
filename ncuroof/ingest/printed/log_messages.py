"""Read ncu's messages in a log: its progress, its warnings, and why it failed.

Source: output of ncu 2020 to 2026 in published logs; `profiles/collect.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ncuroof.ncu.settings import FOLLOWS_FROM_ANOTHER, Failure, known_failure, load_settings

_MESSAGE = re.compile(r"==(PROF|ERROR|WARNING)== (\S.*)")
_WRITTEN = re.compile(r"Report: (\S.*)")
_PROFILING = re.compile(r'Profiling "(.+?)"(?: - |:)(.*)')
_FINISHED = re.compile(r"100%|\d+ pass(?:es)?\b")
_WATCHDOG = re.compile(r"Watchdog caught collective operation timeout|collective operation timed out")
"""PyTorch's message when a collective takes too long. Source: ProcessGroupNCCL.cpp of PyTorch 1.13 to 2.9."""

_COLLECTIVE_WORD = "collective operation"

_HANG = "serialised-kernel"
_COLLECTIVE = "serialised-collective"

_MOST_MESSAGES = 1000
_LONGEST_MESSAGE = 300


class Stuck(NamedTuple):
    """Why the last kernel never ended.

    Attributes:
        message: what it waited for, with a name that `ncuroof explain` knows.
        hint: what to do.
    """

    message: str
    hint: str


@dataclass(slots=True)
class RunLog:
    """The messages of ncu in a log.

    Attributes:
        progress, errors, warnings: the words of its messages of each kind, each once, the first `_MOST_MESSAGES`.
        reports: paths of the reports that it wrote.
        n_profiled: number of launches of which it finished all passes.
        unfinished: name of the kernel that was being profiled when the log ended or something failed; None if none was.
        has_watchdog: whether PyTorch's watchdog found that a collective hangs.
    """

    progress: dict[str, None] = field(default_factory=dict)
    errors: dict[str, None] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)
    reports: list[str] = field(default_factory=list)
    n_profiled: int = 0
    unfinished: str | None = None
    has_watchdog: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the log has no message of ncu."""
        return not (self.progress or self.errors or self.warnings)

    @property
    def failure(self) -> Failure | None:
        """The first known failure in the log."""
        failures = load_settings().failures
        has_kernels = self.n_profiled > 0 or self.unfinished is not None
        found = known_failure(self.errors, failures, has_kernels=has_kernels)
        return found or known_failure(self.warnings, failures, has_kernels=has_kernels)

    @property
    def stuck(self) -> Stuck | None:
        """Why the last kernel never ended; None if nothing shows that it did not end."""
        settings = load_settings()
        hang = next(failure for failure in settings.failures if failure.id == _HANG)
        is_slow = known_failure(self.warnings, [hang]) is not None
        if self.unfinished is None or not (is_slow or self.has_watchdog):
            return None
        if re.search(settings.collectives, self.unfinished, re.IGNORECASE):
            reason = (
                f"{self.unfinished} is a collective: it waits for the other ranks, and ncu runs kernels one at a time, so that "
                "it never ends"
            )
            return Stuck(f"{reason} ({_COLLECTIVE})", hang.hint)
        return Stuck(f"in {self.unfinished}, {hang.message} ({_HANG})", hang.hint)

    def _take(self, kind: str, words: str) -> None:
        messages = {"PROF": self.progress, "ERROR": self.errors, "WARNING": self.warnings}[kind]
        if kind == "PROF" and (found := _PROFILING.match(words)):
            self.unfinished = None if _FINISHED.search(found[2]) else found[1]
            self.n_profiled += self.unfinished is None
        elif kind == "PROF" and (found := _WRITTEN.match(words)):
            self.reports.append(found[1])
        if len(messages) < _MOST_MESSAGES:
            messages[words] = None


def read_log(lines: Iterable[str]) -> RunLog:
    """Return ncu's messages in the lines of a file."""
    log = RunLog()
    for line in lines:
        if "==" in line and (message := _MESSAGE.search(line)):
            words = "".join(each if each.isprintable() else " " for each in message[2][:_LONGEST_MESSAGE])
            log._take(message[1], words.strip())  # noqa: SLF001  defined in this module
        elif _COLLECTIVE_WORD in line and _WATCHDOG.search(line):
            log.has_watchdog = True
    return log


def trouble_beside_tables(lines: Iterable[str]) -> Iterator[str]:
    """Yield what went wrong in a run whose log has tables nevertheless."""
    log = read_log(lines)
    if (stuck := log.stuck) is not None:
        yield f"the log ends in a kernel that never ended: {stuck.message}; {stuck.hint}"
    errors = [words for words in log.errors if not FOLLOWS_FROM_ANOTHER.match(words)]
    if not errors:
        return
    failure = known_failure(errors, load_settings().failures)
    if failure is None:
        yield f"ncu also reports an error, so that kernels may be missing: “{errors[0]}”"
    else:
        yield f"ncu also failed, so that kernels may be missing: {failure.message} ({failure.id}); {failure.hint}"
