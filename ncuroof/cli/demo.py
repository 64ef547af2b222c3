"""`ncuroof demo`: analyses the report that ships with ncuroof, a training step recorded on an H200."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ncuroof.cli.options import FileOrFolder, common
from ncuroof.cli.outputs import open_page, opened, show_summary, warn
from ncuroof.cli.streams import echo, files_hold_result
from ncuroof.errors import OutputError
from ncuroof.formatting import printable
from ncuroof.resources import folder as packaged

_REPORT = "train_transformer.roofline.ncu-repz"


@click.command()
@click.argument("folder", default=".", type=FileOrFolder(), metavar="[FOLDER]")
@click.option("--force", is_flag=True, help="Overwrite a page that ncuroof did not write.")
@opened
@common("quiet", "no_color")
def demo(*, folder: Path, force: bool, is_opened: bool, quiet: bool, no_color: bool) -> None:
    """Analyse the report that ships with ncuroof: a summary on the terminal, and a page in FOLDER (the working directory).

    It is one training step of examples/train_transformer.py, recorded on an NVIDIA H200.
    """
    if not folder.is_dir():
        raise OutputError(f"{folder}: no such folder", hint=f"create it: mkdir -p {shlex.quote(str(folder))}")
    from ncuroof import read  # noqa: PLC0415  loads polars, which --help does not need
    from ncuroof.present import write  # noqa: PLC0415
    from ncuroof.present.output import page_beside  # noqa: PLC0415

    found = read(packaged("demo") / _REPORT)
    analysis = found.analyse()
    if not quiet:
        warn(found, analysis)
    with files_hold_result():
        show_summary(analysis, no_color=no_color)
        page = write(analysis, page_beside(folder / _REPORT), "html", force=force)
        echo(f"page: {printable(str(page))}")
    if is_opened:
        open_page(page)
