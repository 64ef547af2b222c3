"""`ncuroof profile`: runs a program under ncu and produces a report, a summary and a page."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ncuroof.cli.options import (
    STANDARD_OUTPUT,
    Command,
    FileOrFolder,
    FileToRead,
    FileToWrite,
    common,
    keep_inputs,
    say,
)
from ncuroof.cli.recorded import (
    expected_page,
    holds_kernel,
    name_recorded,
    plan_lines,
    show_recorded,
    wanted_report,
    with_claimed_report,
    write_remote_plan,
)
from ncuroof.collect.doctor import this_machine
from ncuroof.collect.plan import plan_collection
from ncuroof.collect.preflight import preflight
from ncuroof.collect.programs import NamedPython, Program, find_program, python_named_in, python_of_scripts
from ncuroof.collect.recording import Recorder
from ncuroof.collect.report_paths import free_report, report_named
from ncuroof.collect.request import (
    Request,
    checked,
    parse_cover,
    parse_steps,
    refuse_options_set_by_ncuroof,
    split_words,
)
from ncuroof.enums import capability_text
from ncuroof.errors import NcuNotFoundError, ProfileRequestError
from ncuroof.ncu.machine import find_gpus, find_ncu, find_nsys, ncu_version
from ncuroof.ncu.settings import Settings, Version, load_settings, parse_capability
from ncuroof.present.output import page_beside, refuse_foreign
from ncuroof.sidecars.counts import counts_path

_UNCHANGED = (
    "level", "kernels", "nvtx", "per_shape", "with_collectives", "replay_mode", "clock_control", "cache_control",
    "graph_profiling", "target_processes", "rank_variable", "trace", "force",
)  # fmt: skip
"""Options that go into the request unchanged."""


def _choice(name: str, *choices: str, text: str) -> Callable[[Command], Command]:
    """Return an option with these choices; the first is the default."""
    return click.option(name, type=click.Choice(choices), default=choices[0], show_default=True, help=text)


_HAS_SEPARATOR = f"{__name__}.is_parted"
"""Key, in click's context, of whether the words contain a `--`."""


class _Profile(click.Command):
    """Remembers whether a `--` separates options from the program, because click removes it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        ctx.meta[_HAS_SEPARATOR] = "--" in args
        return super().parse_args(ctx, args)


@click.command(cls=_Profile, context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[NCU_OPTIONS --] PROGRAM [ARGS]…")
@click.option(
    "-o", "--output", type=FileOrFolder(), help="Report to write, or folder for it. Default: PROGRAM.ncu-rep here."
)
@click.option(
    "--level",
    type=click.Choice(["quick", "roofline", "full"]),
    default="roofline",
    show_default=True,
    help="quick: verdicts; roofline: all that the diagnosis reads; full: every page of NVIDIA's GUI.",
)
@click.option("--section", "sections", multiple=True, help="ncu section to collect in addition.")
@click.option("--metrics", multiple=True, help="Counters to collect in addition, separated by commas.")
@click.option(
    "--lines",
    is_flag=True,
    help="Show source lines: adds source counters (a few passes) and the sources of -lineinfo builds.",
)
@click.option(
    "-k",
    "--kernel",
    "kernels",
    multiple=True,
    metavar="REGEX",
    help="Record kernels whose function name matches anywhere; with < > or :: in REGEX, whose whole demangled name does.",
)
@click.option(
    "--nvtx", multiple=True, metavar="FILTER", help="Record launches inside these NVTX ranges (ncu --nvtx-include)."
)
@click.option("--launch-skip", metavar="N", type=click.IntRange(0), default=0, help="Skip N matching launches first.")
@click.option(
    "--launch-count",
    metavar="N",
    type=click.IntRange(1),
    help="Record at most N; with --per-shape, N of each kernel and shape.",
)
@click.option(
    "--per-shape/--no-per-shape",
    default=None,
    help="Record one launch per kernel and launch shape, weighted by a counting run; the default for long runs.",
)
@click.option(
    "--cover", metavar="SHARE", help="Record only functions that make up at least this share of GPU time, such as 95%."
)
@click.option(
    "--trace",
    type=FileToRead(),
    help="Trace from PyTorch's profiler or Nsight Systems, used instead of a counting run.",
)
@click.option("--step", metavar="N[:M]", help="Profile only these steps of a PyTorch script, counted from 1.")
@click.option(
    "--step-of",
    metavar="WHAT",
    help="What counts as a step: optimizer (the default), dataloader, or a function: NAME in the script, or MODULE:NAME.",
)
@click.option(
    "--stop-after/--no-stop-after", default=None, help="End the script after the last profiled step (default)."
)
@click.option("--annotate", is_flag=True, help="Add NVTX ranges with shapes around PyTorch modules and operators.")
@click.option("--with-collectives", is_flag=True, help="Also replay NCCL and NVSHMEM kernels, which can hang.")
@_choice(
    "--replay-mode",
    "kernel",
    "application",
    "range",
    "app-range",
    text="kernel: replay kernels; application: rerun the program for each pass; range, app-range: record whole ranges.",
)
@_choice("--clock-control", "none", "base", "boost", text="none: clocks as in production; base, boost: locked.")
@_choice("--cache-control", "all", "none", text="all: flush caches before each pass.")
@_choice("--graph-profiling", "node", "graph", text="CUDA graphs kernel by kernel (node), or as a whole (graph).")
@_choice("--target-processes", "all", "application-only", text="all: child processes too.")
@click.option(
    "--rank-variable",
    metavar="NAME",
    help="Environment variable with the rank, for launchers other than torchrun, accelerate, deepspeed, mpirun, mpiexec, srun.",
)
@click.option(
    "--python",
    metavar="PATH",
    help="Interpreter for Python scripts. Default: the launcher's, or the one that runs ncuroof.",
)
@click.option(
    "--compute-capability",
    "capabilities",
    multiple=True,
    metavar="X.Y",
    help="Compute capability of the GPU to profile on, if it is not in this machine. Repeatable.",
)
@click.option(
    "--record-only", is_flag=True, help="Keep the report, without summary and page: for ncuroof report, later."
)
@click.option("--dry-run", is_flag=True, help="Print the commands and exit.")
@click.option(
    "--remote-plan",
    type=FileToWrite(),
    help="Write a shell script for a machine with only ncu, and exit; - or --dry-run prints it.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing report, and files that ncuroof did not write.")
@common("quiet", "verbose", "no_color")
def profile(*, words: tuple[str, ...], quiet: bool, verbose: bool, no_color: bool, **asked: Any) -> int:
    """Run PROGRAM under NVIDIA's ncu, keep the report, and say what bounds each kernel.

    \b
    ncuroof profile --step 10 train.py                one training step
    ncuroof profile -k gemm -- ./app --size 3         some kernels
    ncuroof profile -- ./app --size 3                 a whole program
    ncuroof profile -- --call-stack -- ./app          options for ncu: between two `--`

    ncuroof's own options go before the program. A .py script runs with the current interpreter.
    """  # noqa: D301  click keeps the line breaks of a paragraph that starts with \b
    if not quiet:
        _remark_on_misplaced_options(words)
    recorder = _recorder(words, asked, quiet=quiet)
    plan = STANDARD_OUTPUT if asked["remote_plan"] and asked["dry_run"] else asked["remote_plan"]
    _keep_what_runs(recorder.request, plan)
    if plan is not None:
        _show_plan(recorder, counts_first=False)
        write_remote_plan(recorder, plan, is_gpu_known=bool(asked["capabilities"]))
        return 0
    if asked["dry_run"]:
        _show_plan(recorder, counts_first=recorder.counts_first)
        _print_commands(recorder)
        return 0
    with with_claimed_report(recorder, asked["output"]) as placed:
        _show_plan(placed, counts_first=placed.counts_first)
        preflight(placed, this_machine())
        if not asked["record_only"]:
            refuse_foreign(expected_page(placed), force=asked["force"])
        recording = placed.record()
        for message in recording.messages if verbose else ():
            say(message)
        if asked["record_only"]:
            return name_recorded(recording, quiet=quiet)
        return show_recorded(recording, force=asked["force"], quiet=quiet, no_color=no_color)


def _remark_on_misplaced_options(words: tuple[str, ...]) -> None:
    """Remark on an option of this command after the program, which therefore goes to the program, unless there is a `--`."""
    context = click.get_current_context()
    if context.meta.get(_HAS_SEPARATOR):
        return
    own = {flag for each in context.command.params for flag in each.opts if flag.startswith("--")}
    found = [word for word in words[1:] if word.partition("=")[0] in own]
    if found and not _is_in_text(found[0].partition("=")[0], words[0]):
        say(
            f"note: {found[0]} goes to {words[0]}: options of ncuroof profile go before the program, "
            "and a -- before the program says that all following words belong to it"
        )


def _is_in_text(option: str, program: str) -> bool:
    """Return whether the text of a script contains an option, so that the option is likely the script's own."""
    try:
        return option.encode() in Path(program).read_bytes()
    except (OSError, ValueError):
        return False


def _show_plan(recorder: Recorder, *, counts_first: bool) -> None:
    from ncuroof.present.texts.layout import wrapped_lines  # noqa: PLC0415  loads rich, which --help does not need

    for line in wrapped_lines("\n".join(plan_lines(recorder, counts_first=counts_first))):
        recorder.say(line)


def _keep_what_runs(request: Request, remote_plan: Path | str | None) -> None:
    """Refuse to overwrite the program, files in its arguments, or the trace."""
    written = (request.report, counts_path(request.report), page_beside(request.report))
    files = [path for path in map(Path, request.words) if os.path.isfile(path)]  # noqa: PTH113  Path.is_file raises if a word is too long
    keep_inputs(written if remote_plan is None else [remote_plan], [*files, *filter(None, [request.trace])])


def _recorder(words: tuple[str, ...], asked: dict[str, Any], *, quiet: bool) -> Recorder:
    settings = load_settings()
    is_elsewhere = asked["remote_plan"] is not None
    ncu_words, words = split_words(words)
    refuse_options_set_by_ncuroof(ncu_words, settings.given_by_ncuroof)
    program = find_program(
        words,
        settings,
        python=asked["python"] or ("python3" if is_elsewhere else python_of_scripts(os.environ)),
        find=shutil.which,
        named_python=_named_python(asked["python"], is_elsewhere=is_elsewhere),
        rank_variable=asked["rank_variable"],
    )
    request = _request(asked, ncu_words, words, program, settings, is_kept=is_elsewhere)
    ncu, version = (Path("ncu"), ()) if is_elsewhere else _ncu(is_needed=not asked["dry_run"])
    named = tuple(_supported(parse_capability(text), settings) for text in asked["capabilities"])
    plan = plan_collection(
        request.level,
        settings,
        capabilities=named or (() if is_elsewhere else _capabilities(settings)),
        ncu_version=version,
        sections=request.sections,
        metrics=request.metrics,
    )
    nsys = None if is_elsewhere else find_nsys(os.environ)
    return Recorder(
        request,
        plan,
        program,
        settings,
        ncu,
        version,
        nsys,
        shows_progress=not quiet,
        say=(lambda _: None) if quiet else say,
        holds_kernel=holds_kernel,
    )


def _named_python(given: str | None, *, is_elsewhere: bool) -> NamedPython:
    """Return a function that returns the Python of an executable script: that of its first line, or --python if there is one."""
    if is_elsewhere:
        return lambda _: ()
    if given is None:
        return python_named_in
    return lambda script: (given,) if python_named_in(script) else ()


def _request(
    asked: dict[str, Any],
    ncu_words: tuple[str, ...],
    words: tuple[str, ...],
    program: Program,
    settings: Settings,
    *,
    is_kept: bool,
) -> Request:
    """Return the request. Without -o, the report is named after the program, with a number if the name is taken.

    `is_kept` is true for a script for a different machine (--remote-plan): the report's name need not be free on this machine.

    Raises:
        ProfileRequestError: -o names no file, or the request contradicts itself or is impossible on another machine.
    """
    output, wanted = asked["output"], wanted_report(asked["output"], program)
    if wanted is not None:
        output = wanted if is_kept or asked["force"] else free_report(wanted)
    if output.name in ("", ".."):
        raise ProfileRequestError(f"-o: expected a file name, found {str(output)!r}", hint="-o run.ncu-rep")
    if is_kept and asked["cover"] is not None and asked["trace"] is None:
        raise ProfileRequestError(
            "--cover needs launch counts, and a script for a different machine has no counting run",
            hint="take them from a trace with --trace FILE, choose kernels with --kernel, or use --per-shape instead",
        )
    request = Request(
        words=words,
        report=report_named(output),
        sections=(*asked["sections"], *(settings.line_sections if asked["lines"] else ())),
        ncu_words=(
            *(settings.line_options if asked["lines"] and settings.line_options[0] not in ncu_words else ()),
            *ncu_words,
        ),
        metrics=tuple(name for listed in asked["metrics"] for name in listed.split(",") if name),
        skip=asked["launch_skip"],
        count=asked["launch_count"],
        cover_frac=None if asked["cover"] is None else parse_cover(asked["cover"]),
        steps=parse_steps(asked["step"], of=asked["step_of"], stops_after=asked["stop_after"]),
        annotates=asked["annotate"],
        **{name: asked[name] for name in _UNCHANGED},
    )
    if (
        is_kept and request.trace is None and request.is_unlimited
    ):  # without counts, the script would replay every launch
        request = replace(request, per_shape=True)
    return checked(request)


def _ncu(*, is_needed: bool) -> tuple[Path, Version]:
    try:
        ncu = find_ncu(os.environ)
        return ncu, ncu_version(ncu)
    except NcuNotFoundError:
        if is_needed:
            raise
        return Path("ncu"), ()


def _capabilities(settings: Settings) -> tuple[int, ...]:
    """Return the compute capabilities of the visible GPUs that ncu can profile."""
    known = (gpu.capability for gpu in find_gpus(os.environ) or () if gpu.capability is not None)
    return tuple(capability for capability in known if capability >= min(settings.capabilities))


def _supported(capability: int, settings: Settings) -> int:
    """Return a compute capability given by the user, if Nsight Compute supports it.

    Raises:
        ProfileRequestError: the compute capability is too old.
    """
    if capability < settings.oldest_capability:
        oldest = capability_text(settings.oldest_capability)
        raise ProfileRequestError(
            f"--compute-capability {capability_text(capability)}: Nsight Compute supports {oldest} and later",
            hint="ncuroof gpus lists the GPUs with their compute capabilities",
        )
    return capability


def _print_commands(recorder: Recorder) -> None:
    if recorder.counts_first:
        click.echo(shlex.join(recorder.counting_run.command(Path("FOLDER"))))
    counts = recorder.traced()
    click.echo(shlex.join(recorder.command(None if counts is None else recorder.select(counts))))
