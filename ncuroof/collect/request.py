"""The options of `ncuroof profile`, independent of the machine."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ncuroof.errors import ProfileRequestError

_OF_WHOLE_NAMES = re.compile(r"[<>]|::")
_SPECIAL_SYNTAX = re.compile(r"\\.|\(\?(?:P?<\w+>|<?[=!]|[:>]|[imsx-]+[:)])")
"""Syntax of regular expressions that contains these characters without matching them: `\\<`, `(?<!…`, `(?:…`."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Which steps of a PyTorch script to profile.

    Attributes:
        first: number of the first step, from 1.
        last: number of the last step, inclusive.
        of: what counts as a step: "optimizer", "dataloader", or calls of a function: `module:name`, or `name` in the script.
        stops_after: end the script after the last step.
    """

    first: int
    last: int
    of: str = "optimizer"
    stops_after: bool = True

    @property
    def are_calls(self) -> bool:
        """Whether each call of a function is a step."""
        return self.of not in ("optimizer", "dataloader")

    @property
    def text(self) -> str:
        """The steps as `--step` takes them."""
        return f"{self.first}" if self.first == self.last else f"{self.first}:{self.last}"


def parse_steps(text: str | None, *, of: str | None = None, stops_after: bool | None = None) -> Steps | None:
    """Parse steps, `N` or `N:M`; None for None.

    Raises:
        ProfileRequestError: `text` is malformed, or is None although `of` or `stops_after` is given.
    """
    if text is None:
        for option, value in (("--step-of", of), ("--stop-after and --no-stop-after", stops_after)):
            if value is not None:
                raise ProfileRequestError(f"{option}: only with --step", hint="add --step 10")
        return None
    match = re.fullmatch(r"(\d+)(?::(\d+))?", text)
    first = int(match[1]) if match else 0
    last = int(match[2] or match[1]) if match else 0
    if first < 1 or last < first:
        raise ProfileRequestError(
            f"--step: expected a number from 1, or a range N:M, found {text!r}",
            hint="--step 10 profiles the tenth step, --step 10:12 three steps",
        )
    return Steps(first, last, of or "optimizer", stops_after is not False)


_RANGE_MODES = ("range", "app-range")


@dataclass(frozen=True, slots=True)
class Request:
    """What to profile, and how.

    Attributes:
        words: the program and its arguments.
        report: path of the report, with suffix.
        level: a level of profiles/collect.toml.
        sections: sections in addition to the level's.
        metrics: metrics in addition to the level's.
        ncu_words: options passed to ncu unchanged.
        kernels: regular expressions, one of which must match within a kernel's name (see `asks_for_whole_names`); empty: all
            kernels.
        nvtx: NVTX filters, as `ncu --nvtx-include` takes them.
        skip: number of matching launches to skip first.
        count: number of launches to record (with `per_shape`, of each kernel and shape); None for all.
        per_shape: record one launch per kernel and launch shape; None decides by the number of launches.
        cover_frac: least share of GPU time that the recorded functions must make up; None for all.
        trace: trace of PyTorch's profiler or Nsight Systems to use in place of the counting run, or None.
        steps: steps of a PyTorch script to profile; None for the whole run.
        annotates: open NVTX ranges for modules and operators.
        with_collectives: also replay the kernels of NCCL and NVSHMEM.
        replay_mode, clock_control, cache_control, graph_profiling, target_processes: as ncu's options of these names.
        rank_variable: environment variable that holds a process's rank, for launchers that ncuroof does not know.
        force: overwrite an existing report.
    """

    words: tuple[str, ...]
    report: Path
    level: str = "roofline"
    sections: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    ncu_words: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    nvtx: tuple[str, ...] = ()
    skip: int = 0
    count: int | None = None
    per_shape: bool | None = None
    cover_frac: float | None = None
    trace: Path | None = None
    steps: Steps | None = None
    annotates: bool = False
    with_collectives: bool = False
    replay_mode: str = "kernel"
    clock_control: str = "none"
    cache_control: str = "all"
    graph_profiling: str = "node"
    target_processes: str = "all"
    rank_variable: str | None = None
    force: bool = False

    @property
    def needs_runner(self) -> bool:
        """Whether the script must run inside ncuroof's runner while it is profiled."""
        return self.steps is not None or self.annotates

    @property
    def replays_ranges(self) -> bool:
        """Whether ncu records whole ranges instead of kernels."""
        return self.replay_mode in _RANGE_MODES

    @property
    def leaves_collectives_out(self) -> bool:
        """Whether kernels that wait for other GPUs are skipped: replayed alone, they would wait forever."""
        return not self.with_collectives and self.replay_mode == "kernel"

    @property
    def asks_for_whole_names(self) -> bool:
        """Whether the expressions in `kernels` match whole demangled names, with namespaces and template arguments.

        They do if one of them contains `<`, `>` or `::`, which no function name contains. Otherwise they match function names.
        """
        return any(_OF_WHOLE_NAMES.search(_SPECIAL_SYNTAX.sub("", pattern)) for pattern in self.kernels)

    @property
    def is_bounded(self) -> bool:
        """Whether the user restricts the launches to record by number, kernel or NVTX range."""
        return self.count is not None or bool(self.kernels or self.nvtx or self.skip)

    @property
    def is_unlimited(self) -> bool:
        """Whether the launches are not bounded, and neither --per-shape, --no-per-shape nor a replay mode for ranges is given."""
        return self.per_shape is None and not self.replays_ranges and not self.is_bounded

    @property
    def is_filtered(self) -> bool:
        """Whether the user's options, steps included, may exclude launches."""
        return self.is_bounded or self.steps is not None


def checked(request: Request) -> Request:
    """Return the request unchanged if it does not contradict itself.

    Raises:
        ProfileRequestError: a pattern of --kernel is not a regular expression; options that choose kernels come with a replay mode
            that records ranges; or --cover comes with --kernel patterns that match whole names.
    """
    for pattern in request.kernels:
        error = _pattern_error(pattern)
        if error is not None:
            raise ProfileRequestError(
                f"--kernel: expected a regular expression, found {pattern!r}: {error}",
                hint="escape characters to be matched literally: 'operator\\('",
            )
    if request.asks_for_whole_names and request.cover_frac is not None:
        raise ProfileRequestError(
            "--cover chooses whole functions, but --kernel with < > or :: chooses single instantiations",
            hint="use --kernel alone, or match the function name, without < > ::",
        )
    about_kernels = (
        ("--kernel", request.kernels),
        ("--per-shape", request.per_shape),
        ("--cover", request.cover_frac is not None),
        ("--trace", request.trace is not None),
    )
    for option, is_asked in about_kernels:
        if request.replays_ranges and is_asked:
            raise ProfileRequestError(
                f"{option} chooses kernels, but with --replay-mode {request.replay_mode} ncu records whole ranges",
                hint="choose ranges with --step or --nvtx, or record kernels with --replay-mode application",
            )
    return request


def _pattern_error(pattern: str) -> re.error | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about syntax that later versions of Python may read differently
            re.compile(pattern)
    except re.error as error:
        return error
    return None


def split_words(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split `NCU ARGS -- PROGRAM ARGS`, or `PROGRAM ARGS`, into options for ncu and the program with its arguments.

    Raises:
        ProfileRequestError: there is no program.
    """
    ncu_words: tuple[str, ...] = ()
    if words and words[0].startswith("-"):
        if "--" not in words:
            raise ProfileRequestError(
                f"expected a program, found the option {words[0]}",
                hint="ncuroof's options go before the program; options for ncu go between two `--`: -- --call-stack -- ./app",
            )
        place = words.index("--")
        ncu_words, words = words[:place], words[place + 1 :]
    if not words:
        raise ProfileRequestError(
            "expected a script or program to profile, found none", hint="ncuroof profile train.py --epochs 1"
        )
    return ncu_words, words


def refuse_options_set_by_ncuroof(ncu_words: Iterable[str], given: Mapping[str, str]) -> None:
    """Refuse options for ncu that ncuroof sets itself, because ncu accepts each option only once.

    Args:
        ncu_words: options that the user passes to ncu.
        given: the options that ncuroof sets, each with the option of ncuroof to use instead.

    Raises:
        ProfileRequestError: `ncu_words` contains such an option.
    """
    for word in ncu_words:
        option = word.partition("=")[0] if word.startswith("--") else word[:2]
        if option in given:
            raise ProfileRequestError(
                f"{option} for ncu: ncuroof sets this option of ncu itself",
                hint=f"ask ncuroof instead, before the first `--`: {given[option]}",
            )


def parse_cover(text: str) -> float:
    """Parse a share, `95%` or `0.95`.

    Raises:
        ProfileRequestError: the text is not a share above 0 and at most 1.
    """
    match = re.fullmatch(r"(\d+(?:\.\d*)?)(%?)", text)
    share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < share <= 1:
        raise ProfileRequestError(
            f"--cover: expected a share of GPU time, found {text!r}", hint="--cover 95%, or --cover 0.95"
        )
    return share
