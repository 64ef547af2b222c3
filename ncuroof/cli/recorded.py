"""What `ncuroof profile` prints and writes before and after a recording, or instead of one.

Before a recording: the names of the report and the page, and the plan. After it: whether a kernel was recorded, and the diagnosis.
Instead of it, with `--remote-plan`: a script for a machine that has only ncu.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from ncuroof.cli.options import EXIT_INTERRUPTED, STANDARD_OUTPUT, say
from ncuroof.cli.streams import echo, files_hold_result
from ncuroof.collect.counting_run import RUNNER, RUNNER_FILES
from ncuroof.collect.plan import plan_collection
from ncuroof.collect.programs import Program
from ncuroof.collect.recording import Recorder, Recording
from ncuroof.collect.report_paths import claimed, free_report
from ncuroof.enums import capability_text
from ncuroof.errors import NcuroofError, OutputError, ReportFormatError
from ncuroof.ncu.file_names import REPORT_SUFFIX
from ncuroof.present.output import page_beside, write_whole

_REDACT = (
    "the report contains the environment variables, host name and command line that ncu records: "
    "remove them with ncuroof redact before you share it"
)

_SUFFIXES = (".py", ".pyw", ".sh", ".exe")
"""Suffixes of programs that are left out of a report's name. Anything else after a dot may be a version."""

_END = "NCUROOF_RUNNER_ENDS_HERE"
_RUNNER_PLACE = '"$runner"'


def holds_kernel(report: Path) -> bool:
    """Return whether a report has a complete kernel; true if that is unknown, so that nothing useful is discarded."""
    from ncuroof.ingest.framing import walk  # noqa: PLC0415  only for a report that ncu did not close
    from ncuroof.ingest.report_files import report_content  # noqa: PLC0415

    try:
        content, _ = report_content(report)
        return walk(content, where=report.name).n_workloads > 0
    except ReportFormatError:
        return False
    except NcuroofError:
        return True


def show_recorded(recording: Recording, *, force: bool, quiet: bool, no_color: bool) -> int:
    """Show the diagnosis of what was recorded, write the page, and return the exit status.

    Raises:
        NcuroofError: a report cannot be read, or the page cannot be written; after an interrupt, this is only printed.
    """
    try:
        with files_hold_result():
            _show(recording, force=force, quiet=quiet, no_color=no_color)
    except NcuroofError as error:
        if not recording.is_interrupted:
            raise
        say(f"ncuroof: {error}")
    return EXIT_INTERRUPTED if recording.is_interrupted else recording.exit_status


def name_recorded(recording: Recording, *, quiet: bool) -> int:
    """Print the names of the reports, without a diagnosis, and return the exit status."""
    if recording.trouble and not quiet:
        say(f"warning: some kernels were not recorded: {recording.trouble}")
    for report in recording.reports:
        echo(f"report: {report}")
    _show_notes(recording, quiet=quiet)
    return EXIT_INTERRUPTED if recording.is_interrupted else recording.exit_status


def _show(recording: Recording, *, force: bool, quiet: bool, no_color: bool) -> None:
    from ncuroof import read  # noqa: PLC0415  import the analysis only when there is something to analyse
    from ncuroof.cli.outputs import show_summary, warn, write_page  # noqa: PLC0415

    found = read(recording.reports)
    analysis = found.analyse()
    if not quiet:
        if recording.trouble:
            say(f"warning: some kernels were not recorded: {recording.trouble}")
        warn(found, analysis)
    show_summary(analysis, no_color=no_color)
    for report in recording.reports:
        echo(f"report: {report}")
    write_page(analysis, page_beside(recording.reports[0]), of=recording.reports[0], force=force)
    _show_notes(recording, quiet=quiet)


def _show_notes(recording: Recording, *, quiet: bool) -> None:
    if quiet:
        return
    if recording.shortfall:
        say(f"warning: {recording.shortfall}")
    say(_REDACT)
    if recording.exit_status:
        say(f"the program exited with status {recording.exit_status}")


def plan_lines(recorder: Recorder, *, counts_first: bool) -> list[str]:
    """Return lines that say what will be recorded, and how.

    Args:
        recorder: the recorder of the request.
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
    clocks = "not locked" if request.clock_control == "none" else f"locked to {request.clock_control}"
    caches = "flushed before each pass" if request.cache_control == "all" else "not flushed"
    lines.append(
        f"  clocks {clocks} · caches {caches} · {request.replay_mode} replay · "
        f"report {request.report}{' per rank' if recorder.program.rank_variable else ''}"
    )
    if counts_first:
        how_once = "; --no-per-shape skips the counting run and records every launch"
        with_what = " with Nsight Systems" if recorder.program.script is None else ""
        lines.append(
            f"  the program runs twice: first to count its launches{with_what}, then under ncu"
            f"{'' if recorder.counting_run.is_needed else how_once}"
        )
    if request.leaves_collectives_out:
        lines.append(
            "  NCCL and NVSHMEM kernels are skipped: replayed alone, they would wait for the other GPUs forever"
        )
    return lines


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


def wanted_report(output: Path | None, program: Program) -> Path | None:
    """Return the report's path, named after the program, here or in the folder `output`; None if `output` names the report."""
    if output is not None and not output.is_dir():
        return None
    words = program.words[program.script or 0 :]
    name = words[1] if words[0] == "-m" and len(words) > 1 else Path(words[0]).name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return (output or Path()) / f"{name or 'run'}{REPORT_SUFFIX}"


@contextlib.contextmanager
def with_claimed_report(recorder: Recorder, output: Path | None) -> Iterator[Recorder]:
    """Claim the name of the report, and yield the recorder with it. If another run holds the name, take the next free one.

    Raises:
        OutputError: another run holds the name, and the user chose the name or --force.
    """
    request = recorder.request
    wanted = wanted_report(output, recorder.program)
    with contextlib.ExitStack() as kept:
        while True:
            try:
                kept.enter_context(claimed(request.report))
                break
            except OutputError:
                if wanted is None or request.force:
                    raise
                request = replace(request, report=free_report(wanted))
        yield replace(recorder, request=request)


def expected_page(recorder: Recorder) -> Path:
    """Return the path of the page; with ranks, that of rank 0."""
    report = recorder.request.report
    return report.with_suffix(".rank0.html" if recorder.program.rank_variable else ".html")


def write_remote_plan(recorder: Recorder, target: Path | str, *, is_gpu_known: bool) -> None:
    """Write the script to a file or STANDARD_OUTPUT.

    If the GPU is unknown, the script asks nvidia-smi for it and chooses the counters accordingly.
    """
    request, settings = recorder.request, recorder.settings
    selection = recorder.select(recorder.traced())
    by_capability = {
        capability_text(capability): plan_collection(
            request.level, settings, capabilities=[capability], sections=request.sections, metrics=request.metrics
        ).arguments
        for capability in (() if is_gpu_known else settings.capabilities)
    }
    script = remote_script(
        [*_environment(recorder), *recorder.command(selection)],
        ncu=str(recorder.ncu),
        collection=recorder.plan.arguments,
        collection_by_capability=by_capability,
        runner=str(RUNNER),
        runner_sources={path.name: path.read_text(encoding="utf-8") for path in RUNNER_FILES},
        reports=_reports_for_shell(recorder),
    )
    if target == STANDARD_OUTPUT:
        click.echo(script, nl=False)  # a script keeps every character
    else:
        written = write_whole(Path(target), script.encode(), force=request.force)
        with files_hold_result():
            echo(f"script: {written}")


def _environment(recorder: Recorder) -> list[str]:
    """Return an `env` command for the variables that the launcher does not set; empty if it sets all of them."""
    variables = [f"{name}={value}" for name, value in recorder.program.environment.items()]
    return ["env", *variables] if variables else []


def _reports_for_shell(recorder: Recorder) -> str:
    """Return a shell pattern for the reports that the script will write."""
    report = recorder.request.report.as_posix()
    if recorder.program.rank_variable is None:
        return f"{shlex.quote(report)}*"  # a compressed report has one more letter
    return f"{shlex.quote(report.removesuffix(REPORT_SUFFIX))}.rank*{REPORT_SUFFIX}*"


def remote_script(
    command: Sequence[str],
    *,
    ncu: str,
    collection: Sequence[str],
    collection_by_capability: Mapping[str, Sequence[str]],
    runner: str,
    runner_sources: Mapping[str, str],
    reports: str,
) -> str:
    """Return a POSIX shell script that does what `command` does.

    Args:
        command: the recording command for this machine.
        ncu: ncu's path in `command`; its first occurrence counts.
        collection: the consecutive words of `command` that say what to collect.
        collection_by_capability: their replacement by compute capability ("9.0"), which the script asks nvidia-smi for.
        runner: the runner's path in `command`.
        runner_sources: source text of the runner's files by name, the runner first; embedded if the command needs the runner.
        reports: the reports that the command writes, as a shell pattern.
    """
    place, ncus_place = _index_of(collection, command), command.index(ncu)
    before = ['"$ncu"' if number == ncus_place else shlex.quote(word) for number, word in enumerate(command[:place])]
    after = [_RUNNER_PLACE if word == runner else shlex.quote(word) for word in command[place + len(collection) :]]
    words = [*before, '"$@"', *after]
    lines = [
        "#!/bin/sh",
        "# Written by ncuroof profile --remote-plan. Needs NVIDIA's ncu, on PATH or in NCUROOF_NCU.",
        "set -eu",
        "ncu=${NCUROOF_NCU:-ncu}",
        'command -v "$ncu" >/dev/null || { echo "ncu not found: put it on PATH, or set NCUROOF_NCU to its path" >&2; exit 1; }',
        *_set_arguments(collection, collection_by_capability),
        *(_embedded_files(runner_sources) if _RUNNER_PLACE in words else []),
        "status=0",
        f"{' '.join(words)} || status=$?",
        f"echo {shlex.quote(f'next, on a machine with ncuroof: ncuroof report {reports}')} >&2",
        "exit $status",
    ]
    return "\n".join([*lines, ""])


def _index_of(part: Sequence[str], whole: Sequence[str]) -> int:
    return next(place for place in range(len(whole)) if list(whole[place : place + len(part)]) == list(part))


def _set_arguments(collection: Sequence[str], by_capability: Mapping[str, Sequence[str]]) -> list[str]:
    """Return shell lines that set the positional parameters to the options for the GPU that the script finds."""
    if not by_capability:
        return [f"set -- {shlex.join(collection)}"]
    return [
        "capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 || true)",
        'case "$capability" in',
        *(f"{capability}) set -- {shlex.join(words)} ;;" for capability, words in by_capability.items()),
        f"*) set -- {shlex.join(collection)} ;;",
        "esac",
    ]


def _embedded_files(sources: Mapping[str, str]) -> list[str]:
    lines = ["folder=$(mktemp -d)", "trap 'rm -rf \"$folder\"' EXIT", f"runner=$folder/{next(iter(sources))}"]
    for name, source in sources.items():
        lines += [f"cat >\"$folder/{name}\" <<'{_END}'", source.rstrip("\n"), _END]
    return lines
