"""Build ncu's command line, as a list of words, from values only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ncuroof.collect.plan import Plan
from ncuroof.collect.programs import Program
from ncuroof.collect.request import Request
from ncuroof.errors import ProfileRequestError
from ncuroof.ncu.file_names import REPORT_SUFFIX
from ncuroof.ncu.settings import Settings, Version, version_text

_BOOST = "--clock-control boost"


@dataclass(frozen=True, slots=True)
class LaunchFilter:
    """Which launches ncu records, chosen from the counts.

    Attributes:
        functions: exact function names of the kernels; empty: all kernels.
        per_shape: record only one launch, or --launch-count launches, per kernel and launch shape.
        n_launches: number of launches to record; None if unknown.
        by_mangled_names: ncu distinguishes kernels by mangled name. By default it uses the function name, under which all
            instantiations of a template are the same kernel: of 88 kernels and shapes in a step of examples/train_transformer.py it
            recorded 69 (ncu 2025.3.1 on an H100). By mangled names it recorded 88, by demangled names 95 launches of 87 kernels.
    """

    functions: tuple[str, ...] = ()
    per_shape: bool = False
    n_launches: int | None = None
    by_mangled_names: bool = False


def uncounted_selection(request: Request) -> LaunchFilter:
    """Return which launches to record without counts.

    With --kernel, ncu distinguishes kernels by the names that the patterns match: whole demangled names, or function names, so that
    it records only one instantiation of a template. Without --kernel it uses mangled names.
    """
    return LaunchFilter(
        per_shape=bool(request.per_shape),
        n_launches=None if request.per_shape else request.count,
        by_mangled_names=bool(request.per_shape and not request.kernels),
    )


def report_argument(report: Path, rank_variable: str | None) -> str:
    """Return the value of `ncu --export`; with ranks, it holds a placeholder for the rank."""
    return of_rank(report.as_posix().removesuffix(REPORT_SUFFIX).replace("%", "%%"), rank_variable)


def of_rank(name: str, rank_variable: str | None) -> str:
    """Return a name with a placeholder that ncu, nsys and the runner replace by the rank; without ranks the name itself."""
    return f"{name}.rank%q{{{rank_variable}}}" if rank_variable else name


def ncu_command(  # noqa: PLR0913  the command is made of all of these
    request: Request,
    plan: Plan,
    program: Program,
    settings: Settings,
    *,
    ncu: str,
    selection: LaunchFilter | None = None,
    log: str | None = None,
    ncu_version: Version = (),
) -> list[str]:
    """Return the whole command: launcher of ranks, ncu with its options, program.

    Args:
        request: what the user asks for.
        plan: what to collect.
        program: what to run; already inside the runner if it is needed.
        settings: the settings of profiles/collect.toml.
        ncu: path of ncu.
        selection: launches to record, chosen from the counts; None without counts.
        log: file for ncu's messages, which keeps them out of the program's output.
        ncu_version: version of ncu; empty if unknown.

    Raises:
        ProfileRequestError: this ncu lacks a required option.
    """
    selection = selection or uncounted_selection(request)
    return [
        *program.launcher,
        ncu,
        *(["--force-overwrite"] if request.force else []),
        *("--export", report_argument(request.report, program.rank_variable)),
        *(["--log-file", log] if log else []),
        *plan.arguments,
        *_control(request, settings, ncu_version),
        *_filters(request, selection, settings, ncu_version),
        *request.ncu_words,
        *program.words,
    ]


def kernel_pattern(request: Request, selection: LaunchFilter, settings: Settings) -> str | None:
    """Return the regular expression for ncu's --kernel-name, or None for every kernel.

    It applies to the name that --kernel-name-base selects: function, demangled or mangled. ncu uses Boost.Regex (Perl syntax) and
    searches anywhere in the name. A test with the real ncu, which applies the same option to reports that it imports, shows that it
    accepts the negative lookahead.
    """
    excluded = f"(?!.*(?:{settings.collectives}))" if request.leaves_collectives_out else ""
    if selection.functions:
        named = _in_mangled_names if selection.by_mangled_names else _as_whole_names
        return f"^{excluded}{named(selection.functions)}"
    if request.kernels:
        return f"^{excluded}.*(?:{'|'.join(map(_with_flags_inside, request.kernels))})"
    return f"^{excluded}" if excluded else None


def _as_whole_names(functions: Sequence[str]) -> str:
    return f"(?:{_any_of(functions)})$"


def _in_mangled_names(functions: Sequence[str]) -> str:
    """Return a pattern that finds functions in mangled names (`_ZN2at6native4copyILi4EfEEviT0_`, after their length) or as C names.

    It may also match further kernels: if the function is a template argument, or if a different length ends in the same digits
    (`14copykernel_v2x`).
    """
    lengths = (f"{len(name)}{name}" for name in functions)
    return f"(?:(?:{_any_of(functions)})$|.*(?:{_any_of(lengths)}))"


def _any_of(names: Iterable[str]) -> str:
    return "|".join(map(_literal, names))


def _with_flags_inside(pattern: str) -> str:
    """Return a pattern with its leading flags scoped, so that it can be part of another: `(?i)gemm` becomes `(?i:gemm)`."""
    return re.sub(r"\A\(\?([imsx]+)\)(.*)\Z", r"(?\1:\2)", pattern, flags=re.DOTALL)


def _control(request: Request, settings: Settings, ncu_version: Version) -> list[str]:
    if request.clock_control == "boost" and not _has(_BOOST, settings, ncu_version):
        raise _too_old(_BOOST, settings, ncu_version)
    chosen = [
        *("--replay-mode", request.replay_mode),
        *("--clock-control", request.clock_control),
        *("--cache-control", request.cache_control),
        *("--target-processes", request.target_processes),
    ]
    if _has("--graph-profiling", settings, ncu_version):
        chosen += ["--graph-profiling", request.graph_profiling]
    elif request.graph_profiling != "node":
        raise _too_old("--graph-profiling", settings, ncu_version)
    return chosen


def _filters(request: Request, selection: LaunchFilter, settings: Settings, ncu_version: Version) -> list[str]:
    chosen: list[str] = []
    pattern = kernel_pattern(request, selection, settings)
    if pattern is not None:
        chosen += ["--kernel-name", f"regex:{pattern}"]
    if selection.by_mangled_names:
        chosen += ["--kernel-name-base", "mangled"]
    elif request.asks_for_whole_names:
        chosen += ["--kernel-name-base", "demangled"]
    if (request.nvtx or request.annotates) and "--nvtx" not in request.ncu_words:
        chosen += ["--nvtx"]
    for expression in request.nvtx:
        chosen += ["--nvtx-include", expression]
    if request.steps is not None and not request.replays_ranges:  # with those, the runner's window is the range
        chosen += ["--profile-from-start", "off"]
    if request.skip:
        chosen += ["--launch-skip", str(request.skip)]
    if selection.per_shape:
        if not _has("--filter-mode", settings, ncu_version):
            raise _too_old("--filter-mode", settings, ncu_version)
        chosen += ["--filter-mode", "per-launch-config"]
    count = 1 if selection.per_shape and request.count is None else request.count
    return [*chosen, *(["--launch-count", str(count)] if count is not None else [])]


def _has(option: str, settings: Settings, version: Version) -> bool:
    return not version or version >= settings.option_since[option]


def _too_old(option: str, settings: Settings, ncu_version: Version) -> ProfileRequestError:
    since, found = map(version_text, (settings.option_since[option], ncu_version))
    return ProfileRequestError(
        f"{option} needs ncu {since} or later, found {found}",
        hint="point NCUROOF_NCU to a newer ncu, or record every launch with --no-per-shape"
        if option == "--filter-mode"
        else "point NCUROOF_NCU to a newer ncu",
    )


def _literal(name: str) -> str:
    r"""Return a pattern that matches a function's name literally in ncu's regular expressions.

    Unlike `re.escape`, it escapes special characters only: before others a backslash adds a meaning (`\<` starts a word, `\'` ends
    the text).
    """
    return re.sub(r"[\\^$.|?*+(){}\[\]]", r"\\\g<0>", name)


def files_of_ranks(name: str, suffix: str, exists: Sequence[Path]) -> dict[int | None, Path]:
    """Return, by rank, the files whose names `of_rank` produced."""
    pattern = re.compile(re.escape(name) + r"\.rank(\d+)" + re.escape(suffix))
    by_rank = {int(match[1]): path for path in exists if (match := pattern.fullmatch(path.name))}
    return {rank: by_rank[rank] for rank in sorted(by_rank)}
