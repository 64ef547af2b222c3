"""Record from beginning to end: count launches if that pays, run ncu, keep the reports, explain failures.

A report that is replaced is kept as a backup until the new one is complete.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ncuroof.collect.arguments import LaunchFilter, files_of_ranks, ncu_command, of_rank, uncounted_selection
from ncuroof.collect.counting_run import OTHER_STEPS, RUNNER, CountingRun, step_words
from ncuroof.collect.failures import why_nothing
from ncuroof.collect.journal import Journal, cut_short, read_status, refused, steps_hint
from ncuroof.collect.launch_selection import select_launches
from ncuroof.collect.ncu_run import NcuExit, run_ncu
from ncuroof.collect.plan import Plan
from ncuroof.collect.processes import kept_input
from ncuroof.collect.programs import Program
from ncuroof.collect.report_paths import check_folder, existing_reports
from ncuroof.collect.request import Request
from ncuroof.errors import OutputError, ProfilingError
from ncuroof.ncu import machine
from ncuroof.ncu.settings import Settings, Version, known_failure
from ncuroof.sidecars.counts import Counts, counts_json, counts_path, together
from ncuroof.sidecars.traces.read import read_trace
from ncuroof.temporary_files import temporary_folder

_ERROR = "==ERROR=="
_TAKEN = "report-exists"
_CUT_OFF = "replay-failed"
"""Failure that ncu also reports for the kernel it was replaying when interrupted: `Failed to profile` (2025.3.1)."""
_NEARLY_ALL = 0.95
"""Share of planned launches from which a shortfall is not reported: autotuning and input lengths change a few from run to run."""

_BACKUP = ".before"
"""Suffix of a backup."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The result of a recording.

    Attributes:
        reports: one, or one per rank.
        exit_status: the program's.
        is_interrupted: it was stopped early.
        counts: counts of the whole run, all ranks together; None if nothing was counted.
        messages: ncu's errors and warnings.
        trouble: the first known error that cost kernels although others were recorded, in our words; None without one.
        n_planned: number of planned launches, if each kernel and shape is recorded once; otherwise None, and also if ranks or
            filters make the number unknown.
        n_recorded: number of launches recorded.
    """

    reports: tuple[Path, ...]
    exit_status: int
    is_interrupted: bool
    counts: Counts | None
    messages: tuple[str, ...]
    trouble: str | None = None
    n_planned: int | None = None
    n_recorded: int = 0

    @property
    def shortfall(self) -> str | None:
        """How many planned launches are missing, and what to do, in words; None if few are missing or the reason is known."""
        if (
            self.n_planned is None
            or self.is_interrupted
            or self.trouble
            or self.n_recorded >= _NEARLY_ALL * self.n_planned
        ):
            return None
        return (
            f"only {self.n_recorded} of the {self.n_planned} planned launches were recorded: ncu took different kernels for the "
            "same one, or some were not launched again; --no-per-shape records every launch"
        )


@dataclass(frozen=True, slots=True)
class Recorder:
    """Records one request.

    Attributes:
        request: what the user asks for.
        plan: what to collect.
        program: what to run, not yet inside the runner.
        settings: of profiles/collect.toml.
        ncu: its path.
        ncu_version: version of ncu; empty if unknown.
        nsys: path of Nsight Systems, which counts launches if PyTorch's profiler cannot; None if it is not installed.
        shows_progress: draw a status line.
        say: prints a line on standard error.
        holds_kernel: returns whether a complete kernel is in a report; asked of reports that ncu did not close.
    """

    request: Request
    plan: Plan
    program: Program
    settings: Settings
    ncu: Path
    ncu_version: Version
    nsys: Path | None
    shows_progress: bool
    say: Callable[[str], None]
    holds_kernel: Callable[[Path], bool]

    @property
    def counting_run(self) -> CountingRun:
        """The counting run for this request."""
        return CountingRun(self.request, self.program, self.settings, self.nsys, self.say)

    @property
    def counts_first(self) -> bool:
        """Whether a counting run comes first.

        It does if an option needs it, or if no option limits the launches: without counts, a long run could spend hours
        replaying the same kernels and shapes again and again.
        """
        if self.request.trace is not None or self.request.replays_ranges:
            return False
        run = self.counting_run
        return run.is_needed or (run.is_possible and self.request.is_unlimited)

    def command(
        self, selection: LaunchFilter | None = None, *, log: str | None = None, status: str | None = None
    ) -> list[str]:
        """Return the command that records.

        Args:
            selection: launches to record, chosen from the counts; None without counts.
            log: file for ncu's messages.
            status: file for the runner's journal.

        Raises:
            ProfileRequestError: the request needs a Python script, or an option that this ncu lacks.
        """
        program = self.program
        if self.request.needs_runner:
            words = [str(RUNNER), *step_words(self.request.steps), *(["--annotate"] if self.request.annotates else [])]
            program = program.inside(
                [*words, *(["--status", of_rank(status, program.rank_variable)] if status else []), "--"]
            )
        return ncu_command(
            self.request,
            self.plan,
            program,
            self.settings,
            ncu=str(self.ncu),
            selection=selection,
            log=log,
            ncu_version=self.ncu_version,
        )

    def record(self) -> Recording:
        """Record and return the result.

        Raises:
            ProfilingError: no kernel was recorded.
            NcuNotFoundError: ncu cannot be run.
            OutputError: the report exists already, or its folder cannot be written to.
            CountsError: a trace is not as expected.
        """
        if not machine.RECORDS_HERE:
            raise ProfilingError(machine.NOT_HERE[0], hint=machine.NOT_HERE[1])
        with (
            with_backups(self._to_replace(), is_replaced=self._has_recorded),
            kept_input() if self.counts_first else contextlib.nullcontext(),
        ):
            return self._record()

    def _record(self) -> Recording:
        by_rank = self.counting_run.count() if self.counts_first else {}
        counts = together(by_rank.values()) if by_rank else self.traced()
        selection = self.select(counts)
        with temporary_folder() as folder:
            status = folder / "status.jsonl"
            outcome = run_ncu(
                lambda log: self.command(selection, log=log, status=str(status)),
                shows_progress=self.shows_progress,
                logs_to_file=self.program.rank_variable is None,
                n_all=selection.n_launches,
                environment=self.program.environment,
                say=self.say,
            )
            reports = {} if self._is_foreign(outcome) else self._reports()
            cut_off = self._cut_off(outcome, reports)
            for rank in cut_off:
                reports.pop(rank).unlink(missing_ok=True)
            journal = _longest_journal(status)
        if not reports:
            raise self._failure(outcome, journal, is_cut_off=bool(cut_off))
        cut = cut_short(self.request, journal)
        if cut is not None and not by_rank:
            self.say(f"warning: {cut}")
        for rank, report in reports.items():
            own = by_rank.get(rank) if by_rank else counts
            if own is not None:
                self._write_counts(own, report)
        return Recording(
            tuple(reports.values()),
            outcome.progress.exit_status or 0,  # once there is a report, ncu's own failures are only warnings
            outcome.is_interrupted,
            counts,
            outcome.progress.messages,
            self._trouble(outcome),
            n_planned=selection.n_launches if self._is_counted_as_recorded(selection) else None,
            n_recorded=outcome.progress.n_done,
        )

    def _trouble(self, outcome: NcuExit) -> str | None:
        """Return the first known error that cost kernels, in our words; None without one."""
        errors = [line for line in outcome.progress.messages if line.startswith(_ERROR)]
        failures = [each for each in self.settings.failures if not (outcome.is_interrupted and each.id == _CUT_OFF)]
        failure = known_failure(errors, failures)
        return None if failure is None else f"{failure.message} ({failure.id}); {failure.hint}"

    def _is_counted_as_recorded(self, selection: LaunchFilter) -> bool:
        """Return whether ncu should record as many launches as planned: no ranks, NVTX filter or --launch-skip change that."""
        takes_away = self.program.rank_variable is not None or self.request.nvtx or self.request.skip
        return selection.per_shape and not takes_away

    def traced(self) -> Counts | None:
        """Return the counts from the user's trace (--trace); None without one.

        Raises:
            CountsError: the trace cannot be read, is not a trace, or holds no kernel.
        """
        return None if self.request.trace is None else read_trace(self.request.trace)

    def select(self, counts: Counts | None) -> LaunchFilter:
        """Return which launches to record, given the counts or None, and tell the user what that costs."""
        if counts is not None:
            selection, cost = select_launches(self.request, self.plan, self.settings, counts)
            self.say(cost)
            return selection
        if self.request.per_shape:
            self.say(
                "warning: launches are not counted, and each kernel and shape is recorded once: "
                "sums and shares cover the profiled launches, not the whole run"
            )
        return uncounted_selection(self.request)

    def _write_counts(self, counts: Counts, report: Path) -> None:
        """Write the counts beside the report. If that fails, warn and keep the report, which is not weighted then."""
        path = counts_path(report)
        try:
            path.write_bytes(counts_json(counts))
        except OSError as error:
            path.unlink(missing_ok=True)
            self.say(
                f"warning: {path}: cannot be written: {error.strerror}; sums cover the profiled launches, not the whole run"
            )

    def _to_replace(self) -> list[Path]:
        """Return the files to replace: existing reports, and counts beside them, which would weight the new report wrongly.

        Raises:
            OutputError: files exist and --force is not given, or the folder cannot be written to.
        """
        check_folder(self.request.report)
        reports = [report for _, report in self._existing_reports()]
        counts = dict.fromkeys(map(counts_path, (self.request.report, *reports)))
        existing = [*reports, *filter(Path.exists, counts)]
        if existing and not self.request.force:
            raise OutputError(f"{existing[0]}: already exists", hint="choose another name with -o, or add --force")
        return existing

    def _reports(self) -> dict[int | None, Path]:
        """Return the existing reports by rank; a program without ranks has the key None."""
        return dict(sorted(self._existing_reports(), key=lambda found: found[0] or 0))

    def _existing_reports(self) -> list[tuple[int | None, Path]]:
        return existing_reports(self.request.report, of_ranks=self.program.rank_variable is not None)

    def _cut_off(self, outcome: NcuExit, reports: Mapping[int | None, Path]) -> list[int | None]:
        """Return the ranks whose reports ncu did not close, and which have no complete kernel."""
        closed = {Path(report).name for report in outcome.progress.reports}
        return [rank for rank, report in reports.items() if report.name not in closed and not self.holds_kernel(report)]

    def _has_recorded(self) -> bool:
        return any(self.holds_kernel(report) for _, report in self._existing_reports())

    def _is_foreign(self, outcome: NcuExit) -> bool:
        """Return whether the report is not ours: ncu wrote none because it found one there."""
        taken = next(failure for failure in self.settings.failures if failure.id == _TAKEN)
        return not outcome.progress.reports and any(map(taken.pattern.search, outcome.progress.messages))

    def _failure(self, outcome: NcuExit, journal: Journal, *, is_cut_off: bool) -> BaseException:
        if outcome.is_interrupted:
            return KeyboardInterrupt()
        refusal = refused([journal])
        if refusal is not None:
            return ProfilingError(refusal, hint=OTHER_STEPS)
        hint = None if outcome.progress.exit_status else steps_hint(self.request, journal)
        error = why_nothing(
            outcome,
            self.settings.failures,
            is_filtered=self.request.is_filtered,
            has_ranks=self.program.rank_variable is not None,
            is_cut_off=is_cut_off,
        )
        return ProfilingError(str(error), hint=hint) if hint else error


def _longest_journal(status: Path) -> Journal:
    """Return the runner's journal, with ranks the longest one."""
    journals = [status, *files_of_ranks(status.name, "", list(status.parent.iterdir())).values()]
    return max(map(read_status, journals), key=len)


@contextlib.contextmanager
def with_backups(paths: Sequence[Path], *, is_replaced: Callable[[], bool]) -> Iterator[None]:
    """Rename files to backups during a block; delete the backups if it succeeds, and restore them if it fails.

    Args:
        paths: the files.
        is_replaced: returns whether new files are in their place. If the block fails even so, the backups are kept.

    Raises:
        OutputError: a file cannot be renamed, or a backup of an earlier run exists; no file stays renamed.
    """
    backup_by_path = {path: path.with_name(path.name + _BACKUP) for path in paths}
    for backup in backup_by_path.values():
        if backup.exists():
            raise OutputError(
                f"{backup}: left behind by an earlier run that failed or was killed",
                hint="rename it to keep it, or delete it",
            )
    with contextlib.ExitStack() as restored:
        for path, backup in backup_by_path.items():
            try:
                path.replace(backup)
            except OSError as error:
                raise OutputError(
                    f"{path}: cannot be replaced: {error.strerror}", hint="choose another name with -o"
                ) from error
            restored.callback(backup.replace, path)
        try:
            yield
        except BaseException:
            if is_replaced():
                restored.pop_all()
            raise
        restored.pop_all()
    for backup in backup_by_path.values():
        backup.unlink(missing_ok=True)
