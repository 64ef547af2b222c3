"""Writes Nsight Compute reports from chosen kernels and counters, so that tests can define what a report contains.

The reports have the same layout as ncu's: a block that opens the session, a block of sources, blocks of results,
each with the strings that it is the first to use, and, after the first block of results, the remaining session
details in their own blocks. NVIDIA's `ncu_report` and `ncu --import` read them like ncu's own. The same input
gives the same bytes.

    report = write_report([Kernel("saxpy", {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0})])

Units are not in a report: NVIDIA's readers look them up for the chip that the kernel's
`device__attribute_implementation` identifies, and give hardware counters no unit if that metric is missing or
they do not know the chip (`launch__…` counters always have one).

Source: Nsight Compute Customization Guide, "Report File Format".
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tests.support.report_parts import (
    METRICS_BY_CHIP,
    Device,
    Float32,
    FocusMetric,
    Instances,
    Kernel,
    Kind,
    Metric,
    PerCycle,
    RooflineChart,
    RooflinePair,
    RooflineValue,
    Rule,
    Scalar,
    Section,
    Session,
    Uint32,
    encode_rule,
    encode_section,
)
from tests.support.wire_encoder import double, float32, integer, message, text, varint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "FILE_VERSION",
    "METRICS_BY_CHIP",
    "Device",
    "Float32",
    "FocusMetric",
    "Instances",
    "Kernel",
    "Kind",
    "Metric",
    "PerCycle",
    "RooflineChart",
    "RooflinePair",
    "RooflineValue",
    "Rule",
    "Scalar",
    "Section",
    "Session",
    "Uint32",
    "write_report",
]

FILE_VERSION = 7
_PLAIN_SESSION = Session()


def write_report(
    kernels: Sequence[Kernel],
    session: Session = _PLAIN_SESSION,
    *,
    kernels_per_block: int = 1,
    file_version: int = FILE_VERSION,
    sources: Sequence[tuple[int, bytes]] = ((1, b""),),
    functions: Sequence[tuple[str, int]] = (),
    files: Sequence[tuple[str, str]] = (),
) -> bytes:
    """Return the bytes of a report that contains the kernels in the given order.

    Args:
        kernels: the workloads; a change of kind or process between two of them begins a new block.
        session: details for the report's session blocks; must include the kernels' processes.
        kernels_per_block: the most kernels per block; ncu itself writes one.
        file_version: file format version, 7 in every report so far.
        sources: reference and machine code (empty for none) of each module.
        functions: mangled name and load address of each function, the same for every module.
        files: path and text of each imported source file, the same for every module.
    """
    process_by_id = {pid: _process(pid, name, session) for pid, name in session.processes}
    first_process = next(iter(process_by_id.values()), b"")
    opening, remainder = _session_details(session)
    results = _result_blocks(kernels, process_by_id, kernels_per_block)
    parts = [b"NVR\0", _with_length(integer(1, file_version)), _block(first_process, session=opening)]
    loaded = b"".join(message(1, text(1, name), integer(2, address)) for name, address in functions)
    imported = b"".join(message(1, text(1, name), text(2, content)) for name, content in files)
    entries = [
        integer(1, reference)
        + (message(4, code) if code else b"")
        + (message(8, imported) if imported else b"")
        + (message(9, loaded) if loaded else b"")
        for reference, code in sources
    ]
    parts += [_block(first_process, counts={1: len(entries)}, entries=entries)] if kernels else []
    parts += results[:1]
    parts += [_block(first_process, session=detail) for detail in remainder]
    parts += results[1:]
    return b"".join(parts)


# ---- blocks --------------------------------------------------------------------------------------

_COUNT_FIELD_BY_KIND = {"kernel": 2, "range": 7, "cmdlist": 8, "graph": 9}


def _with_length(encoded: bytes) -> bytes:
    return struct.pack("<I", len(encoded)) + encoded


def _block(
    process: bytes,
    *,
    session: bytes = b"",
    counts: Mapping[int, int] | None = None,
    strings: Sequence[str] = (),
    entries: Sequence[bytes] = (),
) -> bytes:
    payload = b"".join(map(_with_length, entries))
    number_by_field = {1: 0, 2: 0, **(counts or {})}
    header = b"".join(
        (
            *(integer(number, n) for number, n in number_by_field.items() if number < 3),
            message(3, session) if session else b"",
            message(4, *(text(1, string) for string in strings)),
            integer(5, len(payload)),
            process,
            *(integer(number, n) for number, n in number_by_field.items() if number > 6),
        )
    )
    return _with_length(header) + payload


def _process(process_id: int, name: str, session: Session) -> bytes:
    return message(6, integer(1, process_id), text(2, session.host_name), text(3, name))


def _result_blocks(
    kernels: Sequence[Kernel], process_by_id: Mapping[int, bytes], kernels_per_block: int
) -> list[bytes]:
    names = _Names()
    blocks = []
    start = 0
    while start < len(kernels):
        first = kernels[start]
        stop = start + 1
        while stop < min(start + kernels_per_block, len(kernels)) and (
            kernels[stop].kind,
            kernels[stop].process_id,
        ) == (first.kind, first.process_id):
            stop += 1
        entries = [_result(kernel, names) for kernel in kernels[start:stop]]
        counts = {_COUNT_FIELD_BY_KIND[first.kind]: stop - start}
        process = process_by_id[first.process_id]
        blocks.append(_block(process, counts=counts, strings=names.take_new(), entries=entries))
        start = stop
    return blocks


class _Names:
    """The report's string table: the encoded `NameId` field of each name, and the names not written yet."""

    def __init__(self) -> None:
        self.id_field_by_name: dict[str, bytes] = {}
        self._new: list[str] = []

    def add(self, name: str) -> bytes:
        encoded = integer(1, len(self.id_field_by_name))
        self.id_field_by_name[name] = encoded
        self._new.append(name)
        return encoded

    def take_new(self) -> list[str]:
        new, self._new = self._new, []
        return new


def _session_details(session: Session) -> tuple[bytes, list[bytes]]:
    """Return the session details of the opening block, and those that follow the first block of results."""
    system = (text(1, "Linux"), text(4, "x86_64"), text(5, session.host_name), integer(6, 2))
    versions = (
        ("CUDA Version", session.cuda_version),
        ("Display Driver Version", session.driver_version),
        (
            "Nsight Compute Target",
            session.ncu_version and f"{session.ncu_version}.0 (build 1) (public-release)",
        ),
    )
    settings = [
        text(number, value) for number, value in ((8, session.clock_control), (11, session.replay_mode)) if value
    ]
    remainder = [_device(device) for device in session.devices]
    remainder += [message(8, text(1, provider), text(2, version)) for provider, version in versions if version]
    remainder.append(message(4, *system))
    if session.executable:
        remainder.append(message(9, text(1, session.executable[0]), text(3, session.executable[1])))
    if settings:
        remainder.append(message(10, *settings))
    if session.command_line is not None:
        remainder.append(text(11, session.command_line))
    return integer(2, session.creation_time_s) + message(3, *system), remainder


def _device(device: Device) -> bytes:
    attributes = (message(3, text(1, name), message(2, _value(value))) for name, value in device.attributes.items())
    return message(6, integer(1, device.id), text(2, device.name), *attributes)


# ---- results -------------------------------------------------------------------------------------


def _result(kernel: Kernel, names: _Names) -> bytes:
    if kernel.kind == "kernel":
        return _kernel_result(kernel, names)
    # Ranges, command lists and graphs share these numbers; rules exist for command lists only.
    with_stream = kernel.kind != "range"
    return b"".join(
        (
            integer(1, kernel.thread_id or kernel.process_id),
            integer(2, 1),
            *_metrics(4, kernel.metrics, names),
            integer(6, 0),
            *(encode_section(7, section) for section in kernel.sections),
            _nvtx(10, kernel),
            integer(11, kernel.context),
            integer(12, kernel.stream) if with_stream else b"",
            message(13 if with_stream else 12, integer(1, 1), integer(2, 1)),
            text(18, kernel.name) if kernel.kind == "cmdlist" else b"",
            *(encode_rule(21, rule) for rule in kernel.rules if kernel.kind == "cmdlist"),
        )
    )


def _kernel_result(kernel: Kernel, names: _Names) -> bytes:
    demangled = f"{kernel.name}()" if kernel.demangled is None else kernel.demangled
    return b"".join(
        (
            integer(1, kernel.thread_id or kernel.process_id),
            integer(2, 1),
            integer(3, 1),
            integer(4, 1),
            text(5, kernel.name if kernel.mangled is None else kernel.mangled),
            text(6, kernel.name),
            text(7, demangled),
            integer(8, 3),
            _triple(9, (0, 0, 0)),
            _triple(10, kernel.grid),
            _triple(11, kernel.block),
            *_metrics(13, kernel.metrics, names),
            message(15, integer(1, kernel.source), message(4, kernel.code) if kernel.code else b""),
            integer(16, 0),
            *(encode_section(17, section) for section in kernel.sections),
            *(encode_rule(19, rule) for rule in kernel.rules),
            _nvtx(21, kernel),
            integer(22, kernel.context),
            integer(23, kernel.stream),
            message(25, integer(1, 1), integer(2, 1)),
        )
    )


def _triple(number: int, values: tuple[int, int, int]) -> bytes:
    return message(number, *(integer(axis, value) for axis, value in enumerate(values, start=1)))


def _metrics(number: int, metrics: Mapping[str, Metric], names: _Names) -> list[bytes]:
    tag = varint(number << 3 | 2)
    id_field_by_name = names.id_field_by_name
    encoded: list[bytes] = []
    for name, metric in metrics.items():
        id_field = id_field_by_name.get(name) or names.add(name)
        body = id_field + (_instances(metric) if isinstance(metric, Instances) else message(2, _value(metric)))
        encoded += (tag, varint(len(body)), body)
    return encoded


def _instances(metric: Instances) -> bytes:
    total = b"" if metric.total is None else message(2, _value(metric.total))
    if metric.correlation_ids is None:
        return total + b"".join(message(3, message(2, _value(value))) for value in metric.values)
    pairs = zip(metric.correlation_ids, metric.values, strict=True)
    return total + b"".join(message(3, message(1, _value(key)), message(2, _value(value))) for key, value in pairs)


def _value(value: Scalar) -> bytes:
    """Return a metric value in the field for its Python type; zero is written explicitly like any other value."""
    if isinstance(value, float):
        return double(3, value)
    if isinstance(value, int):
        return integer(5, value)
    if isinstance(value, str):
        return text(1, value)
    return integer(4, value.value) if isinstance(value, Uint32) else float32(2, value.value)


def _nvtx(number: int, kernel: Kernel) -> bytes:
    if not kernel.nvtx:
        return b""
    domain_id = 1 if kernel.nvtx_domain else 0
    domains = [message(1, integer(1, 0), text(2, "<default domain>"))]
    if kernel.nvtx_domain:
        domains.append(message(1, integer(1, domain_id), text(2, kernel.nvtx_domain)))
    stack = message(2, integer(1, domain_id), *(message(3, text(1, name)) for name in kernel.nvtx))
    thread = message(2, integer(1, kernel.thread_id or kernel.process_id), stack)
    return message(number, *domains, thread, integer(4, 0))
