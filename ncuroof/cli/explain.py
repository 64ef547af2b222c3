"""`ncuroof explain`: says what a name in the output means."""

from __future__ import annotations

from pathlib import Path

import click

from ncuroof.cli.options import FileToRead, common
from ncuroof.cli.streams import echo


def _names(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Return the names that start with a word, for completion in a shell."""
    from ncuroof.present.explanations.explain import names  # noqa: PLC0415

    return [name for name in names() if name.startswith(begun)]


@click.command()
@click.argument("name", nargs=-1, metavar="[NAME]", shell_complete=_names)
@click.option(
    "--report",
    "reports",
    multiple=True,
    type=FileToRead(),
    metavar="FILE",
    help="Add the numbers of this report. Repeatable.",
)
@click.option("--all", "is_all", is_flag=True, help="Explain every name.")
@click.option("--format", "form", type=click.Choice(["term", "json"]), help="Format of --all; default: term.")
@common("verbose")
def explain(*, name: tuple[str, ...], reports: tuple[Path, ...], is_all: bool, form: str | None, verbose: bool) -> None:
    """Explain NAME: a verdict, finding, caveat, quantity, column, limiter, term, kernel family, GPU or question of the path.

    NAME may also be as printed ("long scoreboard"). With -v, the rule follows: conditions, formulas, and the file of the
    repository that defines it.

    Without NAME, list every name.
    """
    _check(name, reports, is_all=is_all, form=form)
    from ncuroof.present.documents.json_text import json_text  # noqa: PLC0415
    from ncuroof.present.explanations import explain as explanations  # noqa: PLC0415
    from ncuroof.present.texts.layout import screen_width, wrapped_lines  # noqa: PLC0415

    if form == "json":
        echo(json_text(explanations.document_of_names()), nl=False)
        return
    wanted = list(explanations.names()) if is_all else [" ".join(name)] if name else []
    texts = [explanations.explain(each, with_files=verbose, is_whole=verbose) for each in wanted]
    text = "\n".join(texts) if wanted else explanations.listing(screen_width())
    if reports:
        text = f"{text}\n{_numbers(wanted[0], reports)}"
    echo("".join(f"{line}\n" for line in wrapped_lines(text)), nl=False)


def _check(name: tuple[str, ...], reports: tuple[Path, ...], *, is_all: bool, form: str | None) -> None:
    if is_all and (name or reports):
        raise click.UsageError("--all explains every name, and takes neither a name nor --report")
    if form is not None and not is_all:
        raise click.UsageError("--format needs --all")
    if reports and not name:
        raise click.UsageError("--report adds the numbers of a NAME: give one")


def _numbers(name: str, reports: tuple[Path, ...]) -> str:
    from ncuroof import read  # noqa: PLC0415  only where a report is given
    from ncuroof.cli.inputs import files_of  # noqa: PLC0415
    from ncuroof.present.documents.analysis import document  # noqa: PLC0415
    from ncuroof.present.explanations.in_report import lines_in_report  # noqa: PLC0415

    found = list(lines_in_report(name, document(read(files_of(reports)).analyse())))
    return "\n".join(found or [f"A report has no numbers of {name}."])
