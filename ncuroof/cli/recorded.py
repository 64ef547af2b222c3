"""What `ncuroof profile` does with a recording: checks for a kernel in it, then shows the diagnosis."""

from __future__ import annotations

from pathlib import Path

from ncuroof.cli.options import EXIT_INTERRUPTED, say
from ncuroof.cli.plain_characters import echo
from ncuroof.cli.standard_output import files_hold_result
from ncuroof.collect.recording import Recording
from ncuroof.errors import NcuroofError, ReportFormatError

_REDACT = (
    "the report contains the environment variables, host name and command line that ncu records: "
    "remove them with ncuroof redact before you share it"
)


def holds_kernel(report: Path) -> bool:
    """Return whether a complete kernel is in a report; also where that cannot be told, so that nothing of use is thrown away."""
    from ncuroof.ingest.framing import walk  # noqa: PLC0415  only for a report that ncu did not close
    from ncuroof.ingest.open_report import report_content  # noqa: PLC0415

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
        NcuroofError: a report cannot be read, or the page not written; after an interrupt, that is only told.
    """
    try:
        with files_hold_result():
            _show(recording, force=force, quiet=quiet, no_color=no_color)
    except NcuroofError as error:
        if not recording.is_interrupted:
            raise
        say(f"ncuroof: {error}")
    return EXIT_INTERRUPTED if recording.is_interrupted else recording.exit_status


def _show(recording: Recording, *, force: bool, quiet: bool, no_color: bool) -> None:
    from ncuroof import read  # noqa: PLC0415  import the analysis only when there is something to analyse
    from ncuroof.cli.showing import show_summary, warn, write_page  # noqa: PLC0415

    found = read(recording.reports)
    analysis = found.analyse()
    if not quiet:
        if recording.trouble:
            say(f"warning: some kernels were not recorded: {recording.trouble}")
        warn(found, analysis)
    show_summary(analysis, no_color=no_color)
    for report in recording.reports:
        echo(f"report: {report}")
    write_page(analysis, recording.reports[0], force=force)
    if not quiet:
        if recording.shortfall:
            say(f"warning: {recording.shortfall}")
        say(_REDACT)
        if recording.exit_status:
            say(f"the program exited with status {recording.exit_status}")
