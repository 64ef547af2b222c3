"""Redacts a report so that it can be shared: removes machine, user, program and source details, keeps every counter unchanged.

Only what is on an allow-list (`redaction.fields`) is kept, byte by byte unless something in it has to change. Host names, accounts,
addresses and home folders that the report mentions are also overwritten in texts, and searched for in the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ncuroof.errors import RedactionError
from ncuroof.ingest.file_content import Part
from ncuroof.ingest.framing import FILE_VERSION, LENGTH, MAGIC, PAYLOAD_SIZE, Block, Framing, entries, walk
from ncuroof.ingest.redaction.fields import BLOCK_HEADER, ENTRY_BY_KIND, Cleaning, Rule, left_by_place, unknown
from ncuroof.ingest.redaction.secrets import find_secrets
from ncuroof.ingest.session import Session, read_session
from ncuroof.ingest.wire import varint, with_number

KEEPABLE = ("sass", "ptx", "source")
"""Code that is kept on request: machine code, PTX, and CUDA source with the names of its files."""

_OPTION_VALUE = re.compile(r"[\w.-]{1,64}")

_SOME_LAUNCHES = "--kernel-name regex:."
"""Replaces the options that selected launches: it still shows that other launches may have run between the profiled ones."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """A redacted report.

    Attributes:
        content: its bytes, not compressed.
        removed: number of items removed or overwritten, by kind, most first.
        n_searched: number of host names, accounts, addresses and home folders that were searched for in the result.
        left: place, string and number of occurrences of those that remain: in kernel names, or in what NVIDIA's own tool writes.
        unsearched: names too short or too common to be searched for.
        lost: what was left out of a damaged report, or None.
    """

    content: bytes
    removed: Mapping[str, int]
    n_searched: int
    left: tuple[tuple[str, str, int], ...]
    unsearched: tuple[str, ...]
    lost: str | None


def redact(content: bytes, *, where: str, keep: Iterable[str] = ()) -> Redaction:
    """Return the report without anything that identifies its machine or user.

    Args:
        content: the report, not compressed.
        where: its name, for error messages.
        keep: the kinds of code to keep, from KEEPABLE.

    Raises:
        ReportFormatError: it is not a report.
        RedactionError: something that should have been removed is still there.
    """
    framing = walk(content, where=where)
    secrets = find_secrets(content, framing)
    command_line = _command_line(read_session(block.header for block in framing.blocks))
    while True:
        cleaning = Cleaning(secrets.needles(), frozenset(keep), command_line)
        parts = [MAGIC, _prefixed(varint(FILE_VERSION << 3) + varint(framing.version))]
        parts += [part for block in framing.blocks for part in _block(content, block, cleaning)]
        if secrets.homes.issuperset(home for home, _ in cleaning.homes):
            break
        secrets = secrets.with_homes(cleaning.homes)  # to remove these from all other texts too
    result = b"".join(parts)
    _verify(result, cleaning, where)
    counts = sorted((-number, kind) for kind, number in cleaning.removed.items() if number)
    return Redaction(
        content=result,
        removed={kind: -number for number, kind in counts},
        n_searched=len(secrets.searched()),
        left=tuple(left_by_place(cleaning.left)),
        unsearched=tuple(word.decode("utf-8", "replace") for word in secrets.unsearched()),
        lost=_loss_text(framing),
    )


def _block(content: bytes, block: Block, cleaning: Cleaning) -> Iterator[bytes]:
    header = _cleaned(block.header, BLOCK_HEADER, cleaning)
    rules = [ENTRY_BY_KIND[kind] for kind in block.kinds]
    new: list[bytes] = []
    for number, entry in enumerate(entries(content, block)):
        if number < len(rules):
            new.append(_prefixed(_cleaned(entry, rules[number], cleaning)))
        else:
            unknown(bytes(entry), cleaning)
    yield _prefixed(with_number(header, PAYLOAD_SIZE, sum(map(len, new))))
    yield from new


def _cleaned(encoded: Part, rule: Rule, cleaning: Cleaning) -> bytes:
    """Return a redacted entry; a malformed one becomes empty, so that the number of entries stays the same."""
    return rule(bytes(encoded), cleaning) or b""


def _command_line(session: Session) -> bytes:
    """Return the redacted command line of ncu: only its own options for how to record, rebuilt from the parsed session."""
    options = [
        ("--clock-control", session.clock_control),
        ("--cache-control", session.cache_control),
        ("--replay-mode", session.replay_mode),
        *(("--set", name) for name in session.sets),
        *(("--section", name) for name in session.sections),
    ]
    words = [f"{name} {value}" for name, value in options if value and _OPTION_VALUE.fullmatch(value)]
    chosen = [_SOME_LAUNCHES] if session.chooses_launches else []
    return " ".join(["ncu", *words, *chosen]).encode()


def _verify(result: bytes, cleaning: Cleaning, where: str) -> None:
    """Search all bytes of the result for every needle; it may occur only as often as it was deliberately kept.

    Raises:
        RedactionError: a needle occurs more often.
    """
    small = result.lower()
    for needle in cleaning.needles:
        n_seen = sum(times for (kept, _), times in cleaning.left.items() if kept == needle)
        n_found = small.count(needle)
        if n_found > n_seen:
            raise RedactionError(
                f"{where}: {needle.decode('utf-8', 'replace')!r} should have been removed, but is still in the result "
                f"{n_found - n_seen} times",
                hint="nothing was written; please report this with the version of Nsight Compute that recorded the report",
            )


def _prefixed(encoded: bytes) -> bytes:
    return LENGTH.pack(len(encoded)) + encoded


def _loss_text(framing: Framing) -> str | None:
    return None if framing.damage is None else f"{framing.damage}; everything after it is left out"
