"""`ncuroof whatif`: projects a run to other GPUs, or to changes that are not written yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from ncuroof import read
from ncuroof.cli.kept_inputs import keep_inputs
from ncuroof.cli.options import common
from ncuroof.cli.outputs import Outputs, written_as
from ncuroof.present.documents.json_text import json_text
from ncuroof.present.documents.projection import projection_document
from ncuroof.present.texts.projection import to_markdown, to_text
from ncuroof.whatif import (
    above_boost,
    busy_times,
    change,
    fuse,
    parse_changes,
    parse_fusion,
    parse_targets,
    project,
    recorded_dram,
    with_recorded_dram,
)

_FORMATS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "term": to_text,
    "json": json_text,
    "md": to_markdown,
}


@click.command()
@click.argument("reports", nargs=-1, required=True, metavar="REPORT…", type=click.Path(readable=False, path_type=Path))
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    metavar="NAME",
    help="GPU to project to, e.g. b200 or h100-sxm@1500MHz; again for more.",
)
@click.option(
    "--change",
    "changes",
    multiple=True,
    metavar="WHAT:HOW",
    help="bytes:0.5, l2:0.5, flop:0.5, sm:0.5, batch:4, dtype:bf16.",
)
@click.option("--only", metavar="REGEX", help="Kernels that the changes concern, by name.")
@click.option(
    "--fuse", "fusions", multiple=True, metavar="NAME,NAME", help="Kernel that writes and kernel that reads, as one."
)
@written_as(*_FORMATS)
@common
def whatif(
    outputs: Outputs,
    *,
    reports: tuple[Path, ...],
    gpus: tuple[str, ...],
    changes: tuple[str, ...],
    only: str | None,
    fusions: tuple[str, ...],
    **flags: bool,  # noqa: ARG001
) -> None:
    """Say what the kernels of REPORT would take on other GPUs, or after changes: expected, and between which hypotheses.

    Without --gpu, changes are tried on the GPU that recorded the report. The name "same" stands for it: same@1.98GHz is that GPU at
    another SM clock.
    """
    if not (gpus or changes or fusions):
        raise click.UsageError("nothing to try: name a --gpu, a --change or two kernels to --fuse")
    if only is not None and not changes:
        raise click.UsageError("--only names the kernels that changes concern, and there is none: name a --change")
    targets, wanted = parse_targets(gpus), parse_changes(changes)
    keep_inputs(outputs.paths, reports)
    analysis = read(reports).analyse()
    placed = analysis.roofline_tables
    profiles = with_recorded_dram(placed.profiles, recorded_dram(analysis.kernels))
    busy = busy_times(analysis.kernels, placed.work)
    for text in fusions:
        busy = fuse(busy, *parse_fusion(text, busy))
    for each in wanted:
        busy = change(busy, each, only, profiles)
    projection = project(busy, profiles, targets)
    document = projection_document(
        busy,
        projection,
        sources=[report.file for report in analysis.reports],
        only=only,
        remarks=above_boost(targets, profiles),
        changes=[*(f"{text} for {only}" if only else text for text in changes), *(f"fuse {text}" for text in fusions)],
    )
    outputs.write(lambda form: _FORMATS[form](document).encode())
