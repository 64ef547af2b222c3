"""`ncuroof compare`: says what changed between two runs and why, and checks gates for CI."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ncuroof import read
from ncuroof.analysis import Analysis
from ncuroof.cli.inputs import with_standard_input
from ncuroof.cli.options import STANDARD_OUTPUT, FileToRead, FileToWrite, common, keep_inputs, say
from ncuroof.cli.outputs import Outputs, warn, written_as
from ncuroof.comparison import (
    Gate,
    GateResult,
    Run,
    baseline_json,
    judge,
    parse_gate,
    parse_pair,
    read_baseline,
    with_distinct_labels,
)
from ncuroof.comparison import compare as compared
from ncuroof.comparison.accepted_runs import accepted_files, averaged_run, next_file, read_accepted
from ncuroof.comparison.history import history
from ncuroof.errors import GateError, GatesFailedError, NcuroofError, OutputError, OutputFormatError
from ncuroof.formatting import counted
from ncuroof.present.documents.comparison import comparison_document
from ncuroof.present.formats import PAGE, WRITERS
from ncuroof.present.output import check_place, write_whole
from ncuroof.present.source_tree import SourceTree
from ncuroof.present.texts.comparison import to_annotations
from ncuroof.reading import BASELINE_SUFFIX
from ncuroof.resources import read_toml

_GATES_HINT = 'gates = ["time:+5%"] in [tool.ncuroof], or time = "+5%" in [tool.ncuroof.gates]'


@click.command()
@click.argument("runs", nargs=-1, metavar="BEFORE AFTER", type=FileToRead())
@written_as(*WRITERS["comparison"])
@click.option(
    "--gate", "gates", multiple=True, metavar="EXPR", help="Condition that AFTER must meet, e.g. time:+5%. Repeatable."
)
@click.option(
    "--save-baseline", type=FileToWrite(), metavar="FILE", help="Save AFTER as a baseline to compare later runs with."
)
@click.option(
    "--baseline-dir",
    "folder",
    type=FileToRead(),
    metavar="DIR",
    help="Compare AFTER with the mean times of the last accepted runs in this folder; their deviation is the noise.",
)
@click.option("--accept", is_flag=True, help="Add AFTER to the folder of --baseline-dir if no gate fails.")
@click.option(
    "--keep",
    "n_kept",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="Accepted runs to compare with, and to keep in the folder of --baseline-dir.",
)
@click.option(
    "--check-gates",
    "is_check",
    is_flag=True,
    help="Only check that gates can be judged: those of --gate, else of the named pyproject.toml files, else of the nearest one.",
)
@click.option(
    "--pair",
    "pairs",
    multiple=True,
    metavar="OLD=NEW",
    help="Compare only kernel OLD of BEFORE with kernel NEW of AFTER (regular expressions; without AFTER, both of BEFORE). "
    "Repeatable.",
)
@click.option(
    "--history",
    "is_history",
    is_flag=True,
    help="Show the time of each kernel over two or more runs, in the order given.",
)
@common("quiet")
def compare(  # noqa: PLR0913  an argument per option
    outputs: Outputs,
    *,
    runs: tuple[Path, ...],
    gates: tuple[str, ...],
    save_baseline: Path | str | None,
    folder: Path | None,
    accept: bool,
    n_kept: int,
    is_check: bool,
    pairs: tuple[str, ...],
    is_history: bool,
    quiet: bool,
) -> None:
    """Compare run AFTER with run BEFORE: which kernels changed beyond measurement noise, by how much, and why.

    Each is a report (.ncu-rep) or a baseline (.json) that --save-baseline wrote. Versions of a kernel in one report are
    compared with --pair OLD=NEW. Gates come from --gate, else from [tool.ncuroof.gates] in the nearest
    pyproject.toml, in the working directory or above it. If a gate fails, the exit code is 3. With --baseline-dir, AFTER is the
    only run to name.
    """
    if is_check:
        _check_gates(gates, runs, outputs)
        return
    runs = tuple(with_standard_input(runs))
    outputs.check([*runs, *(accepted_files(folder) if folder is not None else ())])
    baseline = _baseline_file(save_baseline, outputs, runs)
    if is_history:
        if len(runs) < 2 or gates or pairs or baseline is not None or folder is not None or accept:
            raise click.UsageError(
                "--history takes two or more runs, without --gate, --pair, --baseline-dir, --accept or --save-baseline"
            )
        _write_history(runs, outputs, quiet=quiet)
        return
    runs = _both_runs(runs, is_one_enough=bool(pairs) or folder is not None, folder=folder, accept=accept)
    wanted = [parse_gate(text) for text in gates] or _configured_gates()
    if not wanted and not quiet:
        _warn_without_gate(outputs)
    is_baseline = runs[1].suffix == BASELINE_SUFFIX
    if is_baseline and PAGE in outputs.forms:
        raise OutputFormatError(
            "the HTML page needs the report of AFTER, found a baseline", hint="choose another format"
        )
    before, of_before = _read_run(runs[0], quiet=quiet)
    run, after = (before, of_before) if runs[0] == runs[1] else _read_run(runs[1], quiet=quiet)
    accepted = run  # a baseline keeps the label of its own report
    before, run = with_distinct_labels([(before, runs[0]), (run, runs[1])])
    if folder is not None:
        before = _accepted_before(folder, n_kept, quiet=quiet) or before
    comparison = compared(before, run, [parse_pair(text) for text in pairs])
    results = judge(wanted, comparison)
    document = comparison_document(comparison, results)
    outputs.write(lambda form: WRITERS["comparison"][form](document, *([after] if form == PAGE else [])))
    if baseline is not None:  # last, so that a failed output keeps the old baseline
        write_whole(baseline, baseline_json(accepted), force=outputs.force)
    for line in to_annotations(document, _tree()) if _is_in_ci() and "github" not in outputs.forms else ():
        say(line)
    _raise_if_gates_failed(results)
    if folder is not None and accept:
        _accept(accepted, folder, n_kept)


def _raise_if_gates_failed(results: Sequence[GateResult]) -> None:
    failed = [result.gate for result in results if not result.has_passed]
    if failed:
        raise GatesFailedError(f"{len(failed)} of {len(results)} gates failed: {', '.join(failed)}")


def _both_runs(runs: tuple[Path, ...], *, is_one_enough: bool, folder: Path | None, accept: bool) -> tuple[Path, ...]:
    """Return the paths of BEFORE and AFTER. One path is returned twice if a run is compared with itself or with accepted runs.

    Raises:
        UsageError: the number of runs is wrong, or --accept is given without --baseline-dir.
    """
    if accept and folder is None:
        raise click.UsageError("--accept adds the run to the folder of --baseline-dir: name it")
    if folder is not None and len(runs) != 1:
        raise click.UsageError(f"expected one run, AFTER, beside --baseline-dir, found {len(runs)}")
    if is_one_enough and len(runs) == 1:
        return runs * 2
    if len(runs) != 2:
        raise click.UsageError(f"expected two runs, BEFORE and AFTER, found {len(runs)}; --history takes more")
    return runs


def _accepted_before(folder: Path, n_last: int, *, quiet: bool) -> Run | None:
    """Return the last accepted runs as one run. If there are none, print a note and return None."""
    if known := read_accepted(folder, n_last):
        return averaged_run(known)
    if not quiet:
        say(f"note: {folder} has no accepted run, so the run is compared with itself: --accept makes it the first")
    return None


def _accept(run: Run, folder: Path, n_kept: int) -> None:
    """Add a run to a folder of accepted runs, and remove the oldest beyond `n_kept`. A damaged run is not added.

    Raises:
        OutputError: the folder cannot be written.
    """
    if run.damage:
        say(f"warning: the run is damaged and was not accepted: {'; '.join(run.damage)}")
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(next_file(folder), baseline_json(run))
        for path in accepted_files(folder)[:-n_kept]:
            path.unlink()
    except OSError as error:
        if isinstance(error, NcuroofError):
            raise
        raise OutputError(f"{folder}: cannot be written: {error.strerror}", hint="choose another folder") from error


def _check_gates(gates: Sequence[str], files: Sequence[Path], outputs: Outputs) -> None:
    """Check that all gates can be judged, and print their number.

    Raises:
        GateError: a gate is malformed, or a file has something else in place of gates.
        UsageError: an output or a format is given.
    """
    if not outputs.is_default:
        raise click.UsageError("--check-gates compares nothing, so there is nothing to write with -o or --format")
    if gates:
        found = [parse_gate(text) for text in gates]
    elif files:
        tables = ((path, table) for path in files if (table := _ncuroof_table(path)) is not None)
        found = [gate for path, table in tables for gate in _gates_in(path, table)]
    else:
        found = _configured_gates()
    say(f"{counted(len(found), 'gate')} can be judged")


def _tree() -> SourceTree:
    return SourceTree.around(Path.cwd())


def _is_in_ci() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def _warn_without_gate(outputs: Outputs) -> None:
    """Warn in CI that there is no gate, so that the comparison always passes."""
    if _is_in_ci() or "junit" in outputs.forms:
        say(f"warning: there is no gate, so this comparison cannot fail: --gate time:+5%, or {_GATES_HINT}")


def _baseline_file(given: Path | str | None, outputs: Outputs, runs: Sequence[Path]) -> Path | None:
    """Return the file that --save-baseline names, or None.

    Raises:
        UsageError: it is standard output, or a file that -o names.
        OutputError: the file cannot be written, or is one of the compared reports.
    """
    if isinstance(given, str):
        raise click.UsageError(
            f"--save-baseline needs a file, found {STANDARD_OUTPUT!r}: standard output is for the comparison; "
            f"a file of that name is ./{STANDARD_OUTPUT}"
        )
    if given is not None and given.resolve() in [path.resolve() for path in outputs.paths]:
        raise click.UsageError("--save-baseline and -o need different files")
    keep_inputs([given], [run for run in runs if run.suffix != BASELINE_SUFFIX])  # a baseline may be overwritten
    if given is not None:
        check_place(given, force=outputs.force)
    return given


def _read_run(path: Path, *, quiet: bool) -> tuple[Run, Analysis | None]:
    """Return a run and, unless it is a baseline, its analysis. Warn if it is damaged."""
    if path.suffix == BASELINE_SUFFIX:
        run = read_baseline(path)
        for damage in () if quiet else run.damage:
            say(f"warning: {path}: the run of this baseline is damaged: {damage}")
        return run, None
    found = read(path)
    analysis = found.analyse()
    if not quiet:
        warn(found, analysis)
    return analysis.run(), analysis


def _write_history(runs: Sequence[Path], outputs: Outputs, *, quiet: bool) -> None:
    if wrong := outputs.forms - set(WRITERS["history"]):
        raise OutputFormatError(
            f"--history writes only .json and .txt, not {', '.join(sorted(wrong))}", hint="choose one of these"
        )
    found = history(with_distinct_labels([(_read_run(path, quiet=quiet)[0], path) for path in runs]))
    outputs.write(lambda form: WRITERS["history"][form](found))


def _configured_gates() -> list[Gate]:
    """Return the gates of the nearest pyproject.toml with a table [tool.ncuroof], in this folder or above; empty without one.

    Raises:
        GateError: the file cannot be read, or [tool.ncuroof] has an unknown key: a misspelt key would let every run pass.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        path = Path(os.path.relpath(folder / "pyproject.toml"))
        if path.is_file() and (table := _ncuroof_table(path)) is not None:
            return _gates_in(path, table)
    return []


def _ncuroof_table(path: Path) -> dict[str, Any] | None:
    """Return the table [tool.ncuroof] of a pyproject.toml, or None.

    Raises:
        GateError: the file cannot be read, or its entry `tool.ncuroof` is not a table.
    """
    try:
        settings: Any = read_toml(path)
    except (OSError, UnicodeDecodeError) as error:
        raise GateError(f"cannot read {path}: {error}", hint=_GATES_HINT) from error
    for table in ("tool", "tool.ncuroof"):
        name = table.rpartition(".")[2]
        if name not in settings:
            return None
        settings = settings[name]
        if not isinstance(settings, dict):
            raise GateError(f"{path}: expected a table [{table}], found {type(settings).__name__}", hint=_GATES_HINT)
    found: dict[str, Any] = settings
    return found


def _gates_in(path: Path, settings: Mapping[str, Any]) -> list[Gate]:
    """Parse the gates in a table [tool.ncuroof].

    Raises:
        GateError: the table has an unknown key, gates are neither a list of strings nor a table, or a gate is malformed; the
            message names the file.
    """
    if unknown := sorted(settings.keys() - {"gates"}):
        raise GateError(f"{path}: [tool.ncuroof] takes only gates, found {', '.join(unknown)}", hint=_GATES_HINT)
    gates = settings.get("gates", [])
    if isinstance(gates, dict):  # [tool.ncuroof.gates]: time = "+5%", "findings.high" = "==0"
        gates = [f"{name}{':' if str(limit)[:1] in {'+', '-'} else ''}{limit}" for name, limit in gates.items()]
    if not isinstance(gates, list) or not all(isinstance(gate, str) for gate in gates):
        raise GateError(f"{path}: gates in [tool.ncuroof] must be a list of strings or a table", hint=_GATES_HINT)
    try:
        return [parse_gate(text) for text in gates]
    except GateError as error:
        raise GateError(f"{path}: {error}", hint=error.hint) from error
