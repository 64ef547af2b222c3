"""Finds what identifies a machine and its user in a report, and removes it from texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ncuroof.ingest import wire
from ncuroof.ingest.framing import Framing

# Field numbers, as `message: field`.
_HEADER_SESSION, _HEADER_PROCESS, _PROCESS_HOST = 3, 6, 2
_SESSION_SYSTEMS, _SESSION_EXECUTABLE, _EXECUTABLE_ENVIRONMENT = (3, 4), 9, 4
_SYSTEM_NAME, _SYSTEM_ADDRESSES, _ADDRESS_TEXT = 5, 7, 1

_USERS = rb"(?:(?i:[a-z]:[\\/]{1,2}users)[\\/]{1,2}|/Users/)"
_SPACED = rb"(?P<spaced>[^\\/:*?\"<>|\x00-\x1f]{1,64})(?<! )"
_PLAIN = rb"(?P<plain>[^\\/:*?\"<>|\x00- '`=,;(){}\[\]]{1,64})(?<!\.)"
_HOME = rb"%b%b(?=[\\/])|(?:%b|/home/)%b" % (_USERS, _SPACED, _USERS, _PLAIN)
_HOME_IN_BYTES = re.compile(_HOME + rb"(?=[\\/:\"' ,;])")
_HOME_IN_TEXT = re.compile(_HOME + rb"(?![^\\/:*?\"<>|\x00- '`=,;(){}\[\].])")
_HOME_TO_ITS_END = re.compile(rb"%b%b(?=[\"'\x00-\x1f]|$)" % (_USERS, _SPACED))
"""Patterns of a user's home folder; under Windows and macOS the user's name may contain spaces. `_HOME_IN_BYTES` is for arbitrary
bytes, where the end of a text is not known; `_HOME_IN_TEXT` and `_HOME_TO_ITS_END` are for single texts."""

_BEFORE_FOLDER = {b"/home/": (0,), b"users": (4, 3, 1)}
"""Bytes between the start of a home path and these folder names: none; a drive and two separators, a drive and one, or a slash."""

_VARIABLE = re.compile(rb"(?:^|[\0\n;])(?P<name>USER|LOGNAME|USERNAME|HOSTNAME|COMPUTERNAME)=(?P<value>[^\0\n;]+)")

# A quoted path may contain any spaces; an unquoted one only a few, within folder names (see `_ABSOLUTE`).
_QUOTED = re.compile(rb'"(?:[A-Za-z]:|~|\.{1,2})?[\\/][^"]*[\\/]([^"\\/]*)"')
_COMPONENT = rb"[^\s\"'=,;:\\/]+"
_ABSOLUTE = re.compile(
    rb"(?<![\w/)\]~.])(?:[A-Za-z]:|~|\.{1,2})?[\\/](?:%(one)b(?: %(one)b){0,3}[\\/]+)+(%(one)b)" % {b"one": _COMPONENT},
    re.ASCII,
)
"""Folder names may contain up to three spaces: it is better to remove too much than too little."""

_COMMON = frozenset(
    {
        "admin", "administrator", "centos", "content", "default", "debian", "docker", "fedora", "google", "guest", "jovyan",
        "localhost", "nvidia", "public", "root", "runner", "shared", "ubuntu", "user", "users", "vagrant", "workspace",
    }
)  # fmt: skip
"""Names that many machines and accounts share: they identify nobody, and occur in other texts for other reasons."""

_LEAST_CHARACTERS = 5
"""Bytes that a name must have to be searched for: shorter ones occur by chance in counters, NVIDIA's texts and binary numbers."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """What a report reveals about its machine and user.

    Attributes:
        hosts: host names; for those with a domain, the first label as well.
        addresses: IP addresses.
        users: account names, from paths and environment variables.
        homes: home folders as written, without a trailing separator.
    """

    hosts: frozenset[bytes]
    addresses: frozenset[bytes]
    users: frozenset[bytes]
    homes: frozenset[bytes]

    def searched(self) -> frozenset[bytes]:
        """Return the strings to search for everywhere, in lower case."""
        words = {word for word in self.hosts | self.users if _is_telling(word)}
        return frozenset(_as_text(str.lower, word) for word in words | self.addresses | self.homes)

    def needles(self) -> tuple[bytes, ...]:
        """Return the spellings of these strings to pass to `masked`, longest first.

        ASCII letters are in lower case; for other letters, both the lower-case and the upper-case spelling is included.
        """
        found = {spelled for word in self.searched() for spelled in (word, _as_text(str.upper, word).lower())}
        return tuple(sorted(found, key=lambda needle: (-len(needle), needle)))

    def with_homes(self, homes: Iterable[tuple[bytes, bytes]]) -> Secrets:
        """Return these secrets with further home folders and their users added, as yielded by `homes_in`."""
        user_by_home = dict(homes)
        return replace(self, homes=self.homes.union(user_by_home), users=self.users.union(user_by_home.values()))

    def unsearched(self) -> tuple[bytes, ...]:
        """Return the names that are too short or too common to be searched for; the fields that hold them are removed anyway."""
        return tuple(sorted(word for word in self.hosts | self.users if not _is_telling(word)))


def _as_text(change: Callable[[str], str], word: bytes) -> bytes:
    return change(word.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _is_telling(word: bytes) -> bool:
    return len(word) >= _LEAST_CHARACTERS and word.lower().decode("utf-8", "replace") not in _COMMON


def find_secrets(content: bytes, framing: Framing) -> Secrets:
    """Return the secrets in a report: those in its headers, and the home folders anywhere in its bytes."""
    hosts: set[bytes] = set()
    addresses: set[bytes] = set()
    users: set[bytes] = set()
    homes: set[tuple[bytes, bytes]] = set()
    for block in framing.blocks:
        for kind, value in _of_header(memoryview(block.header)):
            if kind == "environment":
                homes.update(homes_in(value))
            else:
                {"host": hosts, "address": addresses, "user": users}[kind].add(value)
    hosts |= {host.partition(b".")[0] for host in hosts if not _is_address(host)}
    addresses |= {host for host in hosts if _is_address(host)}
    return Secrets(
        frozenset(hosts - addresses - {b""}),
        frozenset(addresses - {b"", b"127.0.0.1", b"::1", b"0.0.0.0"}),
        frozenset(users - {b""}),
        frozenset(),
    ).with_homes([*homes, *_homes(content, _HOME_IN_BYTES)])


def homes_in(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the home folders in a text, each with its user's name."""
    yield from _homes(text, _HOME_IN_TEXT)
    yield from _homes(text, _HOME_TO_ITS_END)


def _homes(content: bytes, pattern: re.Pattern[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the home folders that a pattern matches, each with its user's name.

    The pattern is only tried around `/home/` and `users`, which is faster than trying it at each byte.
    """
    small = content.lower()
    for folder, starts in _BEFORE_FOLDER.items():
        place = small.find(folder)
        while place >= 0:
            matches = (pattern.match(content, place - start) for start in starts if start <= place)
            if (match := next(filter(None, matches), None)) is not None:
                yield match.group(), next(filter(None, match.groups()))
            place = small.find(folder, place + 1)


def without_folders(text: bytes) -> bytes:
    """Return a text with each path that is absolute, or begins with a dot or tilde, reduced to its last component."""
    return _ABSOLUTE.sub(rb"\1", _QUOTED.sub(rb'"\1"', text))


def base_name(path: bytes) -> bytes:
    """Return the last component of a path."""
    return re.split(rb"[\\/]", path)[-1]


def masked(text: bytes, needles: Iterable[bytes]) -> bytes:
    """Return a text with every needle, whatever the case of its ASCII letters, overwritten by as many x.

    Args:
        text: any bytes.
        needles: as from `Secrets.needles`, ASCII letters in lower case.
    """
    new, small = bytearray(text), bytearray(text.lower())
    for needle in needles:
        end = 0
        while (start := small.find(needle, end)) >= 0:
            end = start + len(needle)
            new[start:end] = small[start:end] = b"x" * len(needle)
    return bytes(new)


def _is_address(host: bytes) -> bool:
    return re.fullmatch(rb"[0-9.]+|[0-9a-fA-F]*:[0-9a-fA-F:.]+(?:%.+)?", host) is not None


def _of_header(header: memoryview) -> Iterator[tuple[str, bytes]]:
    for process in _messages(header, _HEADER_PROCESS):
        yield from (("host", bytes(name)) for name in _messages(process, _PROCESS_HOST))
    for session in _messages(header, _HEADER_SESSION):
        for number in _SESSION_SYSTEMS:
            for system in _messages(session, number):
                yield from (("host", bytes(name)) for name in _messages(system, _SYSTEM_NAME))
                for address in _messages(system, _SYSTEM_ADDRESSES):
                    yield from (("address", bytes(value)) for value in _messages(address, _ADDRESS_TEXT))
        for executable in _messages(session, _SESSION_EXECUTABLE):
            for environment in _messages(executable, _EXECUTABLE_ENVIRONMENT):
                yield "environment", bytes(environment)
                for match in _VARIABLE.finditer(bytes(environment)):
                    yield "host" if match["name"] in {b"HOSTNAME", b"COMPUTERNAME"} else "user", match["value"].strip()


def _messages(message: memoryview, number: int) -> Iterator[memoryview]:
    """Yield the length-delimited fields with this number, up to the point where the message is malformed."""
    try:
        for found, _, value in wire.fields(message):
            if found == number and not isinstance(value, int):
                yield value
    except wire.WireError:
        return
