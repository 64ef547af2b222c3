"""Assertions on a report: on a kernel by its name, or on the whole report by gates, as CI judges them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncuroof.errors import ArgumentError, GateError, SelectionError

if TYPE_CHECKING:
    import os

    from ncuroof.analysis import Analysis

_MOST_NAMES = 10


@dataclass(frozen=True, slots=True)
class Kernel:
    """The launches of a kernel in a report.

    Attributes:
        name: short name of the longest launch.
        n_launches: number of recorded launches.
        duration_ns: mean time of a launch; None if it was not collected.
        verdict, limiter: of the longest launch.
        findings: ids of the findings of all launches, those of the longest launch first.
        remark: text and place of the first finding; "" without findings.
        known_roof_frac: `roof_frac`, or None if it is unknown.
    """

    name: str
    n_launches: int
    duration_ns: float | None
    verdict: str
    limiter: str | None
    findings: tuple[str, ...]
    remark: str
    known_roof_frac: float | None

    @property
    def roof_frac(self) -> float:
        """Roofline time over duration, summed over the launches.

        Raises:
            AssertionError: it is unknown, because counters were not collected.
        """
        if self.known_roof_frac is None:
            raise AssertionError(f"roof_frac of {self.name} is not known: record with --level roofline or full")
        return self.known_roof_frac

    def __repr__(self) -> str:
        """Return what pytest shows if an assertion fails."""
        from ncuroof import formatting  # noqa: PLC0415

        reached = (
            "" if self.known_roof_frac is None else f", {formatting.share(self.known_roof_frac)} of its roofline speed"
        )
        bound = formatting.bound_by(self.verdict, self.limiter)
        said = f"; {self.remark}" if self.remark else ""
        return f"<{self.name}: {formatting.duration(self.duration_ns)}, {bound}{reached}{said}>"


@dataclass(frozen=True, slots=True)
class Report:
    """A report that `ncuroof_profile` recorded, or one recorded earlier.

    Attributes:
        path: path of its file.
        analysis: its analysis, as `ncuroof.read(path).analyse()`.
        is_recorded_now: whether it was recorded in this run of the tests.
    """

    path: str
    analysis: Analysis
    is_recorded_now: bool = False

    def kernel(self, pattern: str) -> Kernel:
        """Return the launches whose name matches a regular expression anywhere; see `assert_kernel`."""
        return assert_kernel(self, pattern)

    def check(self, *gates: str) -> None:
        """Check gates as `ncuroof compare` does (docs/compare.md), such as `kernel(rmsnorm).access.local_bytes==0`.

        Raises:
            AssertionError: a gate does not hold; the message says why.
            GateError: a gate is malformed, or needs a run before.
        """
        from ncuroof.comparison import compare, judge, parse_gate  # noqa: PLC0415

        __tracebackhide__ = True  # pytest shows the line of the test
        wanted = [parse_gate(text) for text in gates]
        if needing := [gate.text for gate in wanted if gate.limit_frac is not None or gate.word]:
            raise GateError(
                f"{needing[0]!r} needs a run before, and a test has one run",
                hint="ask for what the run itself has, as kernel(REGEX).roof_frac>=0.7; compare runs with ncuroof compare",
            )
        run = self.analysis.run()
        failed = [each for each in judge(wanted, compare(run, run)) if not each.has_passed]
        if failed:
            raise AssertionError("\n".join(f"gate failed: {each.gate}: {'; '.join(each.reasons)}" for each in failed))


def assert_kernel(report: Report | Analysis | str | os.PathLike[str], pattern: str) -> Kernel:
    """Return the launches of a kernel, and fail the test if the report has none.

    Args:
        report: what `ncuroof_profile` returned, an analysis, or the path of a report.
        pattern: regular expression that is found anywhere in the kernel's demangled name.

    Raises:
        AssertionError: no name matches `pattern`.
        SelectionError: `pattern` is not a regular expression.
        ArgumentError: `report` is not a report.
        NcuroofError: the report cannot be read.
    """
    __tracebackhide__ = True
    analysis = _analysis(report)
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise SelectionError(
            f"{pattern!r} is not a regular expression: {error}", hint="'rmsnorm', for example"
        ) from error
    rows = list(analysis.kernels.iter_rows(named=True))
    found = [row for row in rows if not row["failed"] and expression.search(row["name"] or "")]
    if not found:
        names = list(dict.fromkeys(row["short_name"] or "" for row in rows))
        more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        raise AssertionError(f"no kernel matches {pattern!r}; the report has {', '.join(names[:_MOST_NAMES])}{more}")
    return _kernel(found, analysis)


def _analysis(report: Any) -> Analysis:
    from ncuroof.analysis import Analysis  # noqa: PLC0415
    from ncuroof.reading import read  # noqa: PLC0415

    if isinstance(report, Report):
        return report.analysis
    if isinstance(report, Analysis):
        return report
    if isinstance(report, str) or hasattr(report, "__fspath__"):
        return read(report).analyse()
    raise ArgumentError(
        f"expected a report, found {type(report).__name__}", hint="pass what ncuroof_profile returned, or a path"
    )


def _kernel(found: Sequence[Mapping[str, Any]], analysis: Analysis) -> Kernel:
    """Return the kernel that launches belong to."""
    from ncuroof.present.documents.kernels import kernel_entries  # noqa: PLC0415
    from ncuroof.present.sentences.source_lines import first_place  # noqa: PLC0415

    placed = [row for row in found if row["min_time_ns"] is not None and row["duration_ns"]]
    times = [row["duration_ns"] for row in found if row["duration_ns"] is not None]
    ordered = sorted(found, key=lambda row: -(row["duration_ns"] or 0.0))
    (entry,) = kernel_entries(analysis, [ordered[0]["id"]])
    first = entry["findings"][0] if entry["findings"] else None
    findings = analysis.findings.select("id", "finding").rows()
    ids = [row["id"] for row in ordered]
    return Kernel(
        name=ordered[0]["short_name"] or ordered[0]["name"],
        n_launches=len(found),
        duration_ns=sum(times) / len(times) if times else None,
        verdict=ordered[0]["verdict"],
        limiter=ordered[0]["limiter"],
        findings=tuple(dict.fromkeys(name for number in ids for launch, name in findings if launch == number)),
        remark="" if first is None else " at ".join(filter(None, (str(first["title"]), first_place(first["where"])))),
        known_roof_frac=sum(row["min_time_ns"] for row in placed) / sum(row["duration_ns"] for row in placed)
        if placed
        else None,
    )
