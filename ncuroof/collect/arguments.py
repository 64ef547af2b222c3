"""The command line of ncu: a visible list, made of values alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ncuroof.collect import REPORT_SUFFIX
from ncuroof.collect.plan import Plan
from ncuroof.collect.programs import Program
from ncuroof.collect.request import Request
from ncuroof.collect.settings import Settings, Version
from ncuroof.errors import ProfileRequestError

_KERNEL_REPLAY = "kernel"
_BOOST = "--clock-control boost"

FUNCTION = "function"
"""ncu's own `--kernel-name-base`: without namespaces, template arguments and parameters."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which launches ncu records, as found by counting.

    Attributes:
        functions: names of the kernels' functions, exactly; empty: all.
        per_shape: few launches per kernel and launch shape.
        n_launches: how many these are; None where not known.
        n_per_shape: how many of each kernel and shape, as ncu tells kernels apart.
        name_base: what ncu takes for a kernel's name: "function", "demangled" or "mangled".
    """

    functions: tuple[str, ...] = ()
    per_shape: bool = False
    n_launches: int | None = None
    n_per_shape: int = 1
    name_base: str = FUNCTION


def uncounted_selection(request: Request, settings: Settings) -> Selection:
    """Return which launches to record where nothing was counted.

    Patterns of --kernel are looked for in the function's name, so that ncu goes by it, and records one of several instantiations.
    """
    base = settings.name_base if request.per_shape and not request.kernels else FUNCTION
    return Selection(
        per_shape=bool(request.per_shape),
        n_launches=None if request.per_shape else request.count,
        name_base=base,
    )


def report_argument(report: Path, rank_variable: str | None) -> str:
    """Return what `ncu --export` takes; with ranks, a name that holds the rank's number."""
    return of_rank(str(report).removesuffix(REPORT_SUFFIX).replace("%", "%%"), rank_variable)


def of_rank(name: str, rank_variable: str | None) -> str:
    """Return a name into which ncu, nsys and the runner put a rank's number; without ranks the name itself."""
    return f"{name}.rank%q{{{rank_variable}}}" if rank_variable else name


def ncu_command(  # noqa: PLR0913  the command is made of all of these
    request: Request,
    plan: Plan,
    program: Program,
    settings: Settings,
    *,
    ncu: str,
    selection: Selection | None = None,
    log: str | None = None,
    ncu_version: Version = (),
) -> list[str]:
    """Return the whole command: launcher of ranks, ncu with its options, program.

    Args:
        request: what the user asks for.
        plan: what to collect.
        program: what to run; inside the runner already where it is needed.
        settings: of profiles/collect.toml.
        ncu: path of ncu.
        selection: what counting found; None where nothing was counted.
        log: file for ncu's own words, which then do not mix with the program's.
        ncu_version: empty where not known.

    Raises:
        ProfileRequestError: this ncu lacks an option that is needed.
    """
    selection = selection or uncounted_selection(request, settings)
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


def kernel_pattern(request: Request, selection: Selection, settings: Settings) -> str | None:
    """Return the regular expression that a kernel's name has to match, in the selection's base; None for every kernel.

    The expression is in Perl's syntax, as of Boost.Regex, which ncu holds, and is looked for anywhere in the name. That ncu takes
    the negative lookahead is tested against the real one, which filters what it imports by the same option.
    """
    is_collective_safe = request.with_collectives or request.replay_mode != _KERNEL_REPLAY
    excluded = "" if is_collective_safe else f"(?!.*(?:{settings.collectives}))"
    if selection.functions:
        return f"^{excluded}{_NAMED[selection.name_base](selection.functions)}"
    if request.kernels:
        return f"^{excluded}.*(?:{'|'.join(map(_with_flags_inside, request.kernels))})"
    return f"^{excluded}" if excluded else None


def _are_names(functions: Sequence[str]) -> str:
    return f"(?:{_any_of(functions)})$"


def _in_signatures(functions: Sequence[str]) -> str:
    """Return what finds them in `void at::native::copy<(int)4, float>(int, T2)`; one that a template is given is found, too."""
    return rf"(?:.*[\s:])?(?:{_any_of(functions)})(?:[<(].*)?$"


def _in_mangled(functions: Sequence[str]) -> str:
    """Return what finds them in `_ZN2at6native4copyILi4EfEEviT0_`, behind their lengths, and as they are in C."""
    lengths = (f"{len(name)}{name}" for name in functions)
    return f"(?:(?:{_any_of(functions)})$|.*(?:{_any_of(lengths)}))"


_NAMED = {FUNCTION: _are_names, "demangled": _in_signatures, "mangled": _in_mangled}
"""By base, what finds functions in the names of kernels."""


def _any_of(names: Iterable[str]) -> str:
    return "|".join(map(_literal, names))


def _with_flags_inside(pattern: str) -> str:
    """Return a pattern that may begin with flags as one that may stand within another: `(?i)gemm` is `(?i:gemm)`."""
    return re.sub(r"\A\(\?([imsx]+)\)(.*)\Z", r"(?\1:\2)", pattern, flags=re.DOTALL)


def _control(request: Request, settings: Settings, ncu_version: Version) -> list[str]:
    if request.clock_control == "boost" and not _has(_BOOST, settings, ncu_version):
        raise _too_old(_BOOST, settings)
    chosen = [
        *("--replay-mode", request.replay_mode),
        *("--clock-control", request.clock_control),
        *("--cache-control", request.cache_control),
        *("--target-processes", request.target_processes),
    ]
    if _has("--graph-profiling", settings, ncu_version):
        chosen += ["--graph-profiling", request.graph_profiling]
    elif request.graph_profiling != "node":
        raise _too_old("--graph-profiling", settings)
    return chosen


def _filters(request: Request, selection: Selection, settings: Settings, ncu_version: Version) -> list[str]:
    chosen: list[str] = []
    pattern = kernel_pattern(request, selection, settings)
    if pattern is not None:
        chosen += ["--kernel-name", f"regex:{pattern}"]
    if selection.name_base != FUNCTION:
        chosen += ["--kernel-name-base", selection.name_base]
    if (request.nvtx or request.annotates) and "--nvtx" not in request.ncu_words:
        chosen += ["--nvtx"]
    for expression in request.nvtx:
        chosen += ["--nvtx-include", expression]
    if request.steps is not None:
        chosen += ["--profile-from-start", "off"]
    if request.skip:
        chosen += ["--launch-skip", str(request.skip)]
    if selection.per_shape:
        if not _has("--filter-mode", settings, ncu_version):
            raise _too_old("--filter-mode", settings)
        chosen += ["--filter-mode", "per-launch-config"]
    count = selection.n_per_shape if selection.per_shape and request.count is None else request.count
    return [*chosen, *(["--launch-count", str(count)] if count is not None else [])]


def _has(option: str, settings: Settings, version: Version) -> bool:
    return not version or version >= settings.option_since[option]


def _too_old(option: str, settings: Settings) -> ProfileRequestError:
    since = ".".join(map(str, settings.option_since[option]))
    return ProfileRequestError(
        f"{option} was wanted, which ncu has from {since} on",
        hint="name a newer ncu in NCUROOF_NCU, or do without: --no-per-shape"
        if option == "--filter-mode"
        else "name a newer ncu in NCUROOF_NCU",
    )


def _literal(name: str) -> str:
    r"""Return a function's name so that it stands for itself in a regular expression of ncu's.

    Only what has a meaning of its own gets a backslash; before other signs it gives one: `\<` begins a word, `\'` ends the name.
    """
    return re.sub(r"[\\^$.|?*+(){}\[\]]", r"\\\g<0>", name)


def files_of_ranks(name: str, suffix: str, exists: Sequence[Path]) -> dict[int | None, Path]:
    """Return the files of ranks among others: those that `of_rank` names, by rank."""
    pattern = re.compile(re.escape(name) + r"\.rank(\d+)" + re.escape(suffix))
    by_rank = {int(match[1]): path for path in exists if (match := pattern.fullmatch(path.name))}
    return {rank: by_rank[rank] for rank in sorted(by_rank)}
