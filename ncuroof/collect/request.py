"""What a user asks `ncuroof profile` for, before anything is known of the machine."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ncuroof.errors import ProfileRequestError

_OF_WHOLE_NAMES = re.compile(r"[<>]|::")
_MEANS_ANOTHER = re.compile(r"\\.|\(\?(?:P?<\w+>|<?[=!]|[:>]|[imsx-]+[:)])")
"""What of an expression holds such signs and stands for something else: `\\<`, `(?<!…`, `(?:…`."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Which steps of a PyTorch script to profile.

    Attributes:
        first: number of the first, from 1.
        last: number of the last, itself included.
        of: what a step is: "optimizer", "dataloader", or a function as `module:name`, or `name` in the script.
        stops_after: end the script after the last.
    """

    first: int
    last: int
    of: str = "optimizer"
    stops_after: bool = True

    @property
    def text(self) -> str:
        """The steps as `--step` takes them."""
        return f"{self.first}" if self.first == self.last else f"{self.first}:{self.last}"


def parse_steps(text: str | None, *, of: str | None = None, stops_after: bool | None = None) -> Steps | None:
    """Return the steps that `N` or `N:M` names; None for None.

    Raises:
        ProfileRequestError: it names none, or there are none that the other options could be about.
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
        report: where the report goes, with suffix.
        level: of profiles/collect.toml.
        sections: asked for beside the level's.
        metrics: asked for beside the level's.
        ncu_words: passed on to ncu as they are.
        kernels: regular expressions, of which one has to be found in a kernel's name (see `asks_for_whole_names`); all kernels
            where empty.
        nvtx: NVTX filters, as `ncu --nvtx-include` takes them.
        skip: launches that match and are left out first.
        count: launches to record, or None for all.
        per_shape: one launch per kernel and launch shape; None leaves it to the run's length.
        cover_frac: least share of GPU time that the kernels of recorded functions make up; None for all.
        trace: of PyTorch's profiler or Nsight Systems, used in place of the counting run; or None.
        steps: of a PyTorch script, or None for the whole run.
        annotates: NVTX ranges for modules and operators.
        with_collectives: replay NCCL's and NVSHMEM's kernels as well.
        replay_mode, clock_control, cache_control, graph_profiling, target_processes: as ncu's options.
        rank_variable: environment variable of a rank's number, where the launcher is not known.
        force: overwrite what is there.
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
        """Whether the script has to run inside ncuroof's runner while it is profiled."""
        return self.steps is not None or self.annotates

    @property
    def replays_ranges(self) -> bool:
        """Whether ncu records ranges as wholes, and no kernels."""
        return self.replay_mode in _RANGE_MODES

    @property
    def asks_for_whole_names(self) -> bool:
        """Whether the kernels' expressions are about demangled names with namespaces and template arguments.

        They are where one of them has what no function's name has, `<`, `>` or `::`. Otherwise they are about the function's name.
        """
        return any(_OF_WHOLE_NAMES.search(_MEANS_ANOTHER.sub("", pattern)) for pattern in self.kernels)

    @property
    def is_bounded(self) -> bool:
        """Whether the user says which launches to record."""
        return self.count is not None or bool(self.kernels or self.nvtx or self.skip)

    @property
    def is_filtered(self) -> bool:
        """Whether there can be launches that are not recorded because of what the user says."""
        return self.is_bounded or self.steps is not None


def checked(request: Request) -> Request:
    """Return a request that does not contradict itself.

    Raises:
        ProfileRequestError: a pattern of --kernel is no regular expression, kernels are chosen where ranges are recorded, or
            functions to cover among kernels that are chosen by whole names.
    """
    for pattern in request.kernels:
        error = _what_is_wrong(pattern)
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


def _what_is_wrong(pattern: str) -> re.error | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what later versions of Python may read otherwise
            re.compile(pattern)
    except re.error as error:
        return error
    return None


def split_words(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return options for ncu, and the program with its arguments, out of `NCU ARGS -- PROGRAM ARGS` or `PROGRAM ARGS`.

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


def refuse_what_is_given(ncu_words: Iterable[str], given: Mapping[str, str]) -> None:
    """Refuse options for ncu that ncuroof gives to it itself: ncu takes each only once.

    Args:
        ncu_words: that the user passes on.
        given: what to ask ncuroof for instead, by the option.

    Raises:
        ProfileRequestError: one of them is among these.
    """
    for word in ncu_words:
        option = word.partition("=")[0] if word.startswith("--") else word[:2]
        if option in given:
            raise ProfileRequestError(
                f"{option} for ncu: ncuroof sets this option of ncu itself",
                hint=f"ask ncuroof instead, before the first `--`: {given[option]}",
            )


def parse_cover(text: str) -> float:
    """Return the share that `95%` or `0.95` names.

    Raises:
        ProfileRequestError: it is no share above 0 and up to 1.
    """
    match = re.fullmatch(r"(\d+(?:\.\d*)?)(%?)", text)
    share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < share <= 1:
        raise ProfileRequestError(
            f"--cover: expected a share of GPU time, found {text!r}", hint="--cover 95%, or --cover 0.95"
        )
    return share
