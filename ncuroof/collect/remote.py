"""Writes a shell script that records on a machine without ncuroof, where only ncu is installed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

_END = "NCUROOF_RUNNER_ENDS_HERE"
_RUNNER_PLACE = '"$runner"'


def remote_script(
    command: Sequence[str],
    *,
    ncu: str,
    collection: Sequence[str],
    collection_by_capability: Mapping[str, Sequence[str]],
    runner: str,
    runner_sources: Mapping[str, str],
    reports: str,
) -> str:
    """Return a POSIX shell script that does what `command` does.

    Args:
        command: the recording command for this machine.
        ncu: ncu's path in `command`; its first occurrence counts.
        collection: the consecutive words of `command` that say what to collect.
        collection_by_capability: their replacement by compute capability ("9.0"), which the script asks nvidia-smi for.
        runner: the runner's path in `command`.
        runner_sources: source text of the runner's files by name, the runner first; embedded if the command needs the runner.
        reports: the reports that the command writes, as a shell pattern.
    """
    place, ncus_place = _place_of(collection, command), command.index(ncu)
    before = ['"$ncu"' if number == ncus_place else shlex.quote(word) for number, word in enumerate(command[:place])]
    after = [_RUNNER_PLACE if word == runner else shlex.quote(word) for word in command[place + len(collection) :]]
    words = [*before, '"$@"', *after]
    lines = [
        "#!/bin/sh",
        "# Written by ncuroof profile --remote-plan. Needs NVIDIA's ncu, on PATH or in NCUROOF_NCU.",
        "set -eu",
        "ncu=${NCUROOF_NCU:-ncu}",
        'command -v "$ncu" >/dev/null || { echo "ncu not found: put it on PATH, or set NCUROOF_NCU to its path" >&2; exit 1; }',
        *_choice(collection, collection_by_capability),
        *(_carried(runner_sources) if _RUNNER_PLACE in words else []),
        "status=0",
        f"{' '.join(words)} || status=$?",
        f"echo {shlex.quote(f'next, on a machine with ncuroof: ncuroof report {reports}')} >&2",
        "exit $status",
    ]
    return "\n".join([*lines, ""])


def _place_of(part: Sequence[str], whole: Sequence[str]) -> int:
    return next(place for place in range(len(whole)) if list(whole[place : place + len(part)]) == list(part))


def _choice(collection: Sequence[str], by_capability: Mapping[str, Sequence[str]]) -> list[str]:
    """Return shell lines that set the positional parameters to the options for the GPU that the script finds."""
    if not by_capability:
        return [f"set -- {shlex.join(collection)}"]
    return [
        "capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 || true)",
        'case "$capability" in',
        *(f"{capability}) set -- {shlex.join(words)} ;;" for capability, words in by_capability.items()),
        f"*) set -- {shlex.join(collection)} ;;",
        "esac",
    ]


def _carried(sources: Mapping[str, str]) -> list[str]:
    lines = ["folder=$(mktemp -d)", "trap 'rm -rf \"$folder\"' EXIT", f"runner=$folder/{next(iter(sources))}"]
    for name, source in sources.items():
        lines += [f"cat >\"$folder/{name}\" <<'{_END}'", source.rstrip("\n"), _END]
    return lines
