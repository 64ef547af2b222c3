"""`ncuroof profile --remote-plan`: writes a script for a machine that has only ncu."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ncuroof.cli.file_option import STANDARD_OUTPUT
from ncuroof.cli.plain_characters import echo
from ncuroof.cli.standard_output import files_hold_result
from ncuroof.collect.counting_run import RUNNER, RUNNER_FILES
from ncuroof.collect.plan import plan_collection
from ncuroof.collect.recording import Recorder
from ncuroof.collect.remote import remote_script
from ncuroof.ncu.file_names import REPORT_SUFFIX
from ncuroof.present.output import write_whole
from ncuroof.words import capability_text


def write_remote_plan(recorder: Recorder, target: Path | str, *, is_gpu_known: bool) -> None:
    """Write the script to a file or STANDARD_OUTPUT.

    If the GPU is not known, the script chooses the counters by asking nvidia-smi.
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
    """Return a prefix for the command that sets the variables which the launcher may leave unset; empty if there are none."""
    variables = [f"{name}={value}" for name, value in recorder.program.environment.items()]
    return ["env", *variables] if variables else []


def _reports_for_shell(recorder: Recorder) -> str:
    """Return a shell pattern for the reports that the script will write."""
    report = recorder.request.report.as_posix()
    if recorder.program.rank_variable is None:
        return f"{shlex.quote(report)}*"  # a compressed report has one more letter
    return f"{shlex.quote(report.removesuffix(REPORT_SUFFIX))}.rank*{REPORT_SUFFIX}*"
