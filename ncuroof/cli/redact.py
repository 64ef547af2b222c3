"""`ncuroof redact`: copies a report without what should not be shared."""

from __future__ import annotations

from pathlib import Path

import click

from ncuroof.cli.options import FileToRead, FileToWrite, common, keep_inputs, say
from ncuroof.cli.streams import check_standard_output, echo
from ncuroof.errors import OutputError
from ncuroof.ingest.file_content import compress
from ncuroof.ingest.redaction.redact import KEEPABLE, Redaction
from ncuroof.ingest.redaction.redact import redact as redact_report
from ncuroof.ingest.report_files import report_content
from ncuroof.ncu.file_names import COMPRESSED_SUFFIX
from ncuroof.present.output import write_whole
from ncuroof.sidecars.counts import counts_path


@click.command()
@click.argument("source", metavar="IN", type=FileToRead())
@click.argument("target", metavar="OUT", type=FileToWrite())
@click.option(
    "--keep",
    multiple=True,
    type=click.Choice(KEEPABLE),
    help="Code to keep: machine code (sass), PTX, or CUDA source. Repeatable.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@common("quiet")
def redact(
    *,
    source: Path,
    target: Path | str,
    keep: tuple[str, ...],
    force: bool,
    quiet: bool,
) -> None:
    """Write the report IN to OUT without machine, user, program and source details; counters stay unchanged.

    OUT is compressed if its name ends in .ncu-repz; - is standard output. Standard error lists what was removed.
    """
    keep_inputs([target], [source])
    if isinstance(target, Path):
        _refuse_existing(target, force=force)
    else:
        check_standard_output("a report", hint="name a file instead of -")
    content, loss = report_content(source)
    done = redact_report(content, where=source.name, keep=keep)
    if isinstance(target, Path):
        is_compressed = target.suffix == COMPRESSED_SUFFIX
        write_whole(target, compress(done.content) if is_compressed else done.content, force=force)
    else:
        echo(done.content, nl=False)
    if not quiet:
        _tell(done, target, loss or done.lost)
        if (counts := counts_path(source)).exists():
            say(
                f"note: {counts.name} beside {source.name} was not copied: without it, launches represent only themselves"
            )


def _refuse_existing(target: Path, *, force: bool) -> None:
    """Refuse to overwrite any file, even one that ncuroof wrote: a report never replaces a page or a table.

    Raises:
        OutputError: the file exists and is not empty, and --force is not given.
    """
    if not force and target.is_file() and target.stat().st_size:
        raise OutputError(f"{target}: already exists", hint="choose another name, or add --force")


def _tell(done: Redaction, target: Path | str, lost: str | None) -> None:
    say(f"{target}: removed or overwritten:")
    for kind, number in done.removed.items():
        say(f"  {number:>7}  {kind}")
    say(
        f"searched the result for {done.n_searched} host names, accounts, addresses and home folders: none left"
        + (", except as listed below" if done.left else "")
    )
    for place, word, times in done.left:
        say(f"warning: {word!r} remains in {place} ({times} times)")
    if done.unsearched:
        say(
            f"note: removed as fields, but too short or too common to search for: {', '.join(map(repr, done.unsearched))}"
        )
    if lost is not None:
        say(f"warning: the report is damaged: {lost}")
