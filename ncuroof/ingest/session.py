"""What a report says about its session: versions, command line, GPUs, processes, and ncu's settings.

These details are spread over the headers of many blocks, a few fields in each, and are merged here. Host names,
addresses and the environment are in the same messages; they are never read. Of a malformed message, the fields
before the error are kept; other messages are not affected.

Source: Nsight Compute Customization Guide, "Report File Format"; Nsight Compute CLI documentation, options.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from ncuroof.ingest import wire

_Fields = dict[int, list[int | memoryview]]

# Field numbers, as `message: field`.
_HEADER_SESSION, _HEADER_PROCESS = 3, 6
_PROCESS_ID, _PROCESS_NAME = 1, 3
_SESSION_PROCESS_ID, _SESSION_CREATED, _SESSION_DEVICE, _SESSION_VERSION = 1, 2, 6, 8
_SESSION_EXECUTABLE, _SESSION_SETTINGS, _SESSION_COMMAND_LINE = 9, 10, 11
_VERSION_PROVIDER, _VERSION_VERSION = 1, 2
_EXECUTABLE_PATH, _EXECUTABLE_ARGUMENTS = 1, 3
_SETTINGS_CLOCK_CONTROL, _SETTINGS_REPLAY_MODE = 8, 11
_DEVICE_ID, _DEVICE_NAME, _DEVICE_ATTRIBUTE = 1, 2, 3
_ATTRIBUTE_NAME, _ATTRIBUTE_VALUE = 1, 2
_VALUE_STRING, _VALUE_REALS, _VALUE_INTEGERS = 1, (2, 3), (4, 5)

_NO_DATE_S = 2**33
"""The year 2242: later dates come from corrupted bits."""

# ncu's options that take no argument. Any other option without "=" takes the next word as its argument. The first
# word that is neither option nor argument is the profiled program; the options after it belong to the program.
_FLAGS = frozenset(
    {
        "-f",
        "--call-stack",
        "--csv",
        "--details-all",
        "--disable-extra-suffixes",
        "--disable-profiler-start-stop",
        "--force-overwrite",
        "--fp",
        "--null-stdin",
        "--nvtx",
        "--open-in-ui",
        "--print-fp",
        "--print-rule-details",
        "--quiet",
        "--support-32bit",
        "--verbose",
    }
)
# Options that can skip launches between profiled ones; --launch-skip and --launch-count alone only skip those before and after.
_CHOICES = frozenset(
    {"-k", "--kernel-name", "--kernel-id", "--kernel-regex", "--filter-mode", "--nvtx-include", "--nvtx-exclude"}
)
_SIMULATED_MARK = "--simulated-by-ncuroof"
_WORD = re.compile(r'(?:"[^"]*"|[^\s"])+')


@dataclass(frozen=True, slots=True)
class Process:
    """A profiled process: its id on the target machine and the file name of its program, without directories."""

    id: int
    name: str | None


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU that was visible to the profiled program.

    Attributes:
        id: the number that a workload's `launch__device_id` refers to.
        name: the GPU's name from the driver.
        attributes: device attributes by their name in the report, which is also the name of the workloads' metrics
            (`device__attribute_multiprocessor_count`).
    """

    id: int
    name: str | None
    attributes: Mapping[str, int | float | str]


@dataclass(frozen=True, slots=True)
class Session:
    """How a report was recorded. None or an empty tuple means that the report does not say.

    Attributes:
        ncu_version: version of the Nsight Compute that recorded it, such as `2025.3.1`.
        cuda_version: CUDA version of the driver, such as `12.9`.
        driver_version: version of the display driver, such as `576.40`.
        command_line: ncu's command line; if the report lacks it, the profiled program and its arguments.
        clock_control: as spelled in ncu's option: `base`, `none`, …
        cache_control: `all` or `none`.
        replay_mode: `kernel`, `application`, `range` or `app-range`.
        sets: section sets requested on the command line.
        sections: sections requested on the command line.
        processes: the profiled processes, in the order of their first block.
        devices: the GPUs, in the order of the report.
        created_s: when the session began, in seconds since 1970 (UTC).
        chooses_launches: whether ncu's command line can skip launches between profiled ones; None without a command line of ncu.
    """

    ncu_version: str | None
    cuda_version: str | None
    driver_version: str | None
    command_line: str | None
    clock_control: str | None
    cache_control: str | None
    replay_mode: str | None
    sets: tuple[str, ...]
    sections: tuple[str, ...]
    processes: tuple[Process, ...]
    devices: tuple[Device, ...]
    created_s: int | None = None
    chooses_launches: bool | None = None

    @property
    def is_simulated(self) -> bool:
        """Whether ncuroof generated the report itself; every output has to say so."""
        return _SIMULATED_MARK in (self.command_line or "")


def read_session(headers: Iterable[wire.Bytes]) -> Session:
    """Return the session described by the headers of a report's blocks.

    Args:
        headers: the encoded header of each block, in file order (`Block.header`).
    """
    session, processes = _merged(headers)
    version_by_provider = dict(_versions(session))
    ncu_command_line = _text(session, _SESSION_COMMAND_LINE)
    program = next(_messages(session, _SESSION_EXECUTABLE), {})
    options = tuple(_options(ncu_command_line or ""))
    argument_by_option = dict(options)  # the last one of an option that is given twice
    settings = next(_messages(session, _SESSION_SETTINGS), {})
    if not processes and (process_id := _integer(session, _SESSION_PROCESS_ID)) is not None:
        processes = (Process(process_id, _base_name(_text(program, _EXECUTABLE_PATH))),)
    return Session(
        ncu_version=_release(version_by_provider.get("Nsight Compute Target")),
        cuda_version=version_by_provider.get("CUDA Version"),
        driver_version=version_by_provider.get("Display Driver Version"),
        command_line=ncu_command_line or _program_line(program),
        clock_control=_mode(_text(settings, _SETTINGS_CLOCK_CONTROL) or argument_by_option.get("--clock-control")),
        cache_control=_mode(argument_by_option.get("--cache-control")),
        replay_mode=_mode(_text(settings, _SETTINGS_REPLAY_MODE) or argument_by_option.get("--replay-mode")),
        sets=tuple(value for name, value in options if name == "--set"),
        sections=tuple(value for name, value in options if name == "--section"),
        processes=processes,
        devices=tuple(_devices(session)),
        created_s=_created(session),
        chooses_launches=any(name in _CHOICES for name, _ in options) if ncu_command_line else None,
    )


def _merged(headers: Iterable[wire.Bytes]) -> tuple[_Fields, tuple[Process, ...]]:
    """Return the merged fields of all session messages, and the processes that the blocks belong to."""
    session: _Fields = {}
    process_by_id: dict[int, Process] = {}
    for header in headers:
        fields = _fields(header)
        for message in _messages(fields, _HEADER_SESSION):
            for number, values in message.items():
                session.setdefault(number, []).extend(values)
        for process in _processes(fields):
            process_by_id.setdefault(process.id, process)
    return session, tuple(process_by_id.values())


def processes_of(header: wire.Bytes) -> Iterator[Process]:
    """Yield the processes that a block's header names; every report seen so far has one per block."""
    yield from _processes(_fields(header))


def _processes(header: _Fields) -> Iterator[Process]:
    for value in header.get(_HEADER_PROCESS, ()):
        process = None if isinstance(value, int) else _process(bytes(value))
        if process is not None:
            yield process


@lru_cache(maxsize=64)
def _process(encoded: bytes) -> Process | None:
    """Return the decoded process; cached, because nearly every block of a report repeats the same one."""
    message = _fields(encoded)
    process_id = _integer(message, _PROCESS_ID)
    return None if process_id is None else Process(process_id, _base_name(_text(message, _PROCESS_NAME)))


def _created(session: _Fields) -> int | None:
    """Return when the session began, in seconds since 1970; None if the report does not say or the date is implausible."""
    created = _integer(session, _SESSION_CREATED)
    return created if created is not None and 0 < created < _NO_DATE_S else None


def _versions(session: _Fields) -> Iterator[tuple[str, str]]:
    for message in _messages(session, _SESSION_VERSION):
        provider, version = _text(message, _VERSION_PROVIDER), _text(message, _VERSION_VERSION)
        if provider and version:
            yield provider, version


def _devices(session: _Fields) -> Iterator[Device]:
    """Yield each device once: the report repeats the list of devices for every profiled process."""
    seen = set()
    for message in _messages(session, _SESSION_DEVICE):
        device_id = _integer(message, _DEVICE_ID)
        if device_id is None or device_id in seen:
            continue
        seen.add(device_id)
        yield Device(device_id, _text(message, _DEVICE_NAME), dict(_attributes(message)))


def _attributes(device: _Fields) -> Iterator[tuple[str, int | float | str]]:
    for attribute in _messages(device, _DEVICE_ATTRIBUTE):
        name = _text(attribute, _ATTRIBUTE_NAME)
        for number, values in next(_messages(attribute, _ATTRIBUTE_VALUE), {}).items():
            value = _attribute_value(number, values[-1])
            if name and value is not None:
                yield name, value


def _attribute_value(number: int, value: int | memoryview) -> int | float | str | None:
    try:
        if number == _VALUE_STRING:
            return wire.as_text(value)
        if number in _VALUE_REALS:
            return wire.as_float(value)
        return wire.as_int(value) if number in _VALUE_INTEGERS else None
    except wire.WireError:
        return None


def _program_line(program: _Fields) -> str | None:
    words = (_text(program, _EXECUTABLE_PATH), _text(program, _EXECUTABLE_ARGUMENTS))
    return " ".join(word for word in words if word) or None


def _options(command_line: str) -> Iterator[tuple[str, str]]:
    """Yield `(option, argument)` for ncu's own options that take one, without those of the profiled program."""
    words = iter([word.replace('"', "") for word in _WORD.findall(command_line)][1:])
    for word in words:
        if not word.startswith("-") or word == "--":
            return
        name, has_argument, argument = word.partition("=")
        if has_argument:
            yield name, argument
        elif name not in _FLAGS and (name.startswith("--") or len(name) == 2):
            yield name, next(words, "")


def _mode(spelling: str | None) -> str | None:
    """Return a mode as ncu's options spell it; the graphical interface stores `Base` and `Kernel`."""
    if not spelling:
        return None
    word = re.sub(r"[\s_-]+", "", spelling).lower()
    return "app-range" if word in ("apprange", "applicationrange") else word


def _release(version: str | None) -> str | None:
    """Return `2024.1.1` for `2024.1.1.0 (build 33998838) (public-release)`."""
    match = re.match(r"\d+(?:\.\d+){1,2}", version or "")
    return match.group() if match else version


def _base_name(path: str | None) -> str | None:
    return re.split(r"[/\\]", path)[-1] or None if path else None


def _fields(message: wire.Bytes) -> _Fields:
    """Return the values of a message by field number, up to the point where it is malformed."""
    found: _Fields = {}
    try:
        for number, _, value in wire.fields(message):
            found.setdefault(number, []).append(value)
    except wire.WireError:
        pass
    return found


def _messages(fields: _Fields, number: int) -> Iterator[_Fields]:
    for value in fields.get(number, ()):
        if not isinstance(value, int):
            yield _fields(value)


def _text(fields: _Fields, number: int) -> str | None:
    """Return a text field, stripped; None if it is absent, empty, or not text. Windows appends a NUL to some."""
    for value in fields.get(number, ()):
        if not isinstance(value, int):
            return wire.as_text(value).rstrip("\0").strip() or None
    return None


def _integer(fields: _Fields, number: int) -> int | None:
    for value in fields.get(number, ()):
        if isinstance(value, int):
            return value
    return None
