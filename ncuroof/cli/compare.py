"""`ncuroof compare`: two runs in, what changed and why out, and gates for CI."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ncuroof import read
from ncuroof.analysis import Analysis
from ncuroof.cli.kept_inputs import keep_inputs
from ncuroof.cli.options import common, format_by_suffix, say
from ncuroof.compare import compare as compared
from ncuroof.compare import judge, parse_gate, write_baseline
from ncuroof.compare.history import history
from ncuroof.errors import GateError, GatesFailedError, OutputFormatError
from ncuroof.present.comparison_document import comparison_document
from ncuroof.present.comparison_text import to_markdown, to_text
from ncuroof.present.gate_reports import to_annotations, to_junit
from ncuroof.present.history_text import history_document, history_text
from ncuroof.present.json_text import json_text
from ncuroof.present.output import write_whole
from ncuroof.reading import BASELINE_SUFFIX, side_of
from ncuroof.resources import read_toml

Document = Mapping[str, Any]

_PAGE = "html"
_GATES_HINT = 'gates = ["time:+5%"] in [tool.ncuroof], or time = "+5%" in [tool.ncuroof.gates]'

_FORMATS: Mapping[str, Callable[[Document], bytes]] = {
    "term": lambda document: to_text(document).encode(),
    "json": lambda document: json_text(document).encode(),
    "md": lambda document: to_markdown(document).encode(),
    "junit": to_junit,
}
_FORMAT_BY_SUFFIX = {".json": "json", ".md": "md", ".xml": "junit", ".txt": "term", ".html": _PAGE}


@click.command()
@click.argument(
    "runs", nargs=-1, required=True, metavar="BEFORE AFTER", type=click.Path(readable=False, path_type=Path)
)
@click.option(
    "-o", "--output", "outputs", multiple=True, help="File to write; its suffix names the format. Again for more."
)
@click.option("--format", "form", type=click.Choice(list(_FORMATS)), help="Format on standard output, instead of text.")
@click.option(
    "--gate", "gates", multiple=True, metavar="EXPR", help="Condition to meet, e.g. time:+5%; again for more."
)
@click.option(
    "--save-baseline", type=click.Path(path_type=Path), help="Write AFTER as a baseline, to compare later runs with."
)
@click.option(
    "--history",
    "is_history",
    is_flag=True,
    help="Many runs in order instead of two: the time of each kernel over them.",
)
@click.option("--force", is_flag=True, help="Replace files that ncuroof did not write.")
@common
def compare(
    *,
    runs: tuple[Path, ...],
    outputs: tuple[str, ...],
    form: str | None,
    gates: tuple[str, ...],
    save_baseline: Path | None,
    **flags: bool,
) -> None:
    """Compare the run AFTER with the run BEFORE: which kernels changed, by how much beyond chance, and why.

    Each is a report (.ncu-rep) or a baseline (.json) of --save-baseline. Gates come from --gate, else from [tool.ncuroof.gates] in
    pyproject.toml of the working directory; where one fails, the exit code is 3.
    """
    keep_inputs(outputs, runs)
    keep_inputs([save_baseline], [run for run in runs if run.suffix != BASELINE_SUFFIX])  # a baseline may be renewed
    if flags["is_history"]:
        _over_time(runs, outputs, form, gates, force=flags["force"])
        return
    if len(runs) != 2:
        raise click.UsageError(f"two runs were wanted, BEFORE and AFTER, found {len(runs)}; --history takes more")
    wanted = [parse_gate(text) for text in gates or _configured()]
    forms = [(format_by_suffix(name, _FORMAT_BY_SUFFIX), Path(name)) for name in outputs]
    after = read(runs[1]).analyse() if runs[1].suffix != BASELINE_SUFFIX else None
    sides = side_of(runs[0]), after.side() if after else side_of(runs[1])
    comparison = compared(*sides)
    results = judge(wanted, comparison)
    document = comparison_document(comparison, results)
    if save_baseline is not None:
        write_whole(save_baseline, write_baseline(sides[1]), force=flags["force"])
    for chosen, path in forms:
        content = _page(document, after) if chosen == _PAGE else _FORMATS[chosen](document)
        write_whole(path, content, force=flags["force"])
    if form is not None or not flags["quiet"]:
        click.echo(_FORMATS[form or "term"](document).decode(), nl=False)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in to_annotations(document):
            say(line)
    failed = [result.gate for result in results if not result.has_passed]
    if failed:
        raise GatesFailedError(f"{len(failed)} of {len(results)} gates failed: {', '.join(failed)}")


def _page(document: Document, after: Analysis | None) -> bytes:
    if after is None:
        raise OutputFormatError(
            "the page wants the report of the run after, found a baseline", hint="choose another format"
        )
    from ncuroof.present.page import render_page  # noqa: PLC0415  loads the template engine

    return render_page(after.to_dict(), after.reports, document).encode()


def _over_time(
    runs: tuple[Path, ...], outputs: tuple[str, ...], form: str | None, gates: tuple[str, ...], *, force: bool
) -> None:
    if len(runs) < 2 or gates:
        raise click.UsageError("--history wants two runs or more, and no gate")
    found = history([side_of(path) for path in runs])
    document = json_text(history_document(found))
    contents = {"term": history_text(found), "json": document}
    chosen = [(format_by_suffix(name, _FORMAT_BY_SUFFIX), Path(name)) for name in outputs]
    if wrong := {form or "term", *(each for each, _ in chosen)} - set(contents):
        raise OutputFormatError(
            f"--history is written as .json or .txt, found {', '.join(sorted(wrong))}", hint="choose one of them"
        )
    for each, path in chosen:
        write_whole(path, contents[each].encode(), force=force)
    click.echo(contents[form or "term"], nl=False)


def _configured() -> Sequence[str]:
    """Return the gates of the working directory's pyproject.toml; none where it has none."""
    path = Path("pyproject.toml")
    if not path.is_file():
        return ()
    gates = read_toml(path).get("tool", {}).get("ncuroof", {}).get("gates", [])
    if isinstance(gates, dict):  # [tool.ncuroof.gates]: time = "+5%", "findings.high" = "==0"
        gates = [f"{name}{':' if str(limit)[:1] in {'+', '-'} else ''}{limit}" for name, limit in gates.items()]
    if not isinstance(gates, list) or not all(isinstance(gate, str) for gate in gates):
        raise GateError(
            "pyproject.toml: the gates of [tool.ncuroof] have to be a list of texts or a table", hint=_GATES_HINT
        )
    return gates
