"""`ncuroof whatif`: projects a run to other GPUs, or to changes that are not written yet."""

from __future__ import annotations

from pathlib import Path

import click

from ncuroof import read
from ncuroof.cli.inputs import files_of
from ncuroof.cli.options import FileToRead, common, gpus_begun
from ncuroof.cli.outputs import Outputs, warn, written_as
from ncuroof.present.documents.projection import trial_document
from ncuroof.present.formats import WRITERS
from ncuroof.whatif import parse_changes, parse_targets


@click.command()
@click.argument("reports", nargs=-1, required=True, metavar="REPORT…", type=FileToRead())
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    metavar="NAME",
    shell_complete=gpus_begun,
    help="GPU to estimate for, e.g. b200 or h100-sxm@1500MHz. Repeatable.",
)
@click.option(
    "--change",
    "changes",
    multiple=True,
    metavar="WHAT:HOW",
    help="Change to try: bytes:0.5 (half the DRAM bytes), l2:0.5, flop:0.5, sm:0.5, batch:4 or dtype:bf16. Repeatable.",
)
@click.option("--only", metavar="REGEX", help="Apply the changes only to kernels whose name matches.")
@click.option(
    "--fuse",
    "fusions",
    multiple=True,
    metavar="WRITER,READER",
    help="Fuse two kernels: the one that writes a tensor and the one that reads it. Repeatable.",
)
@written_as(*WRITERS["projection"])
@common("quiet")
def whatif(
    outputs: Outputs,
    *,
    reports: tuple[Path, ...],
    gpus: tuple[str, ...],
    changes: tuple[str, ...],
    only: str | None,
    fusions: tuple[str, ...],
    quiet: bool,
) -> None:
    """Estimate how long the kernels of REPORT take on different GPUs, or after changes: expected time and range.

    Without --gpu, changes are tried on the GPU of the report. The name "same" means that GPU: same@1.98GHz is the same GPU at
    a different SM clock.
    """
    if not (gpus or changes or fusions):
        raise click.UsageError("nothing to try: give a --gpu, a --change or two kernels to --fuse")
    if only is not None and not changes:
        raise click.UsageError("--only restricts --change to some kernels: give a --change as well")
    parse_targets(gpus), parse_changes(changes)  # report malformed words before reading a long report
    files = files_of(reports)
    outputs.check(files)
    found = read(files)
    analysis = found.analyse()
    if not quiet:
        warn(found, analysis)
    document = trial_document(analysis, gpus, changes=changes, only=only, fusions=fusions)
    outputs.write(lambda form: WRITERS["projection"][form](document))
