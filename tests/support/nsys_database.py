"""Writes databases as Nsight Systems exports them: the tables and columns that ncuroof reads, with chosen rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

PID, OTHER_PID = 4711, 4712
_HARDWARE = 1 << 48
"""The bits above the process id in NVIDIA's global identifiers."""


def process(pid: int) -> int:
    return _HARDWARE + (pid << 24)


def thread(pid: int, tid: int) -> int:
    return process(pid) + tid


@dataclass(frozen=True)
class Ran:
    """A kernel, copy or graph that ran on the GPU; times in µs."""

    start: float
    end: float
    launched_by: int | None = 0
    name: str = "void gemm<float>(T1 *)"
    table: str = "KERNEL"
    grid: tuple[int, int, int] = (8, 1, 1)
    block: tuple[int, int, int] = (64, 1, 1)
    device: int = 0
    pid: int = PID
    node: int | None = None


@dataclass(frozen=True)
class Called:
    """A call of the CUDA API; times in µs."""

    start: float
    end: float
    launches: int
    name: str = "cudaLaunchKernel_v7000"
    tid: int = PID
    pid: int = PID


@dataclass(frozen=True)
class Pushed:
    """An NVTX range; times in µs."""

    start: float
    end: float | None
    text: str
    tid: int = PID
    event_type: int = 59
    is_registered: bool = False


TABLES = {
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER, textId INTEGER",
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
    "demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, registersPerThread INTEGER NOT NULL, "
    "gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, "
    "blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, "
    "staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, "
    "localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
    "bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
    "value INTEGER NOT NULL, bytes INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
    "graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, "
    "correlationId INTEGER, globalPid INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, "
    "globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL",
}
_OF_KERNEL = {
    "registersPerThread": 32, "staticSharedMemory": 0, "dynamicSharedMemory": 0, "localMemoryPerThread": 0, "localMemoryTotal": 0,
    "gridId": 1,
}  # fmt: skip
_MORE = {
    "KERNEL": _OF_KERNEL,
    "MEMCPY": {"bytes": 4, "copyKind": 1},
    "MEMSET": {"value": 0, "bytes": 4},
    "GRAPH_TRACE": {"graphId": 1, "graphExecId": 2},
}


def write_database(
    path: Path, ran: Sequence[Ran], called: Sequence[Called] = (), pushed: Sequence[Pushed] = ()
) -> Path:
    """Write a database with only those tables that have rows, as nsys does by default."""
    activities = {f"CUPTI_ACTIVITY_KIND_{each.table}" for each in ran}
    wanted = [
        "StringIds",
        *sorted(activities),
        *(["CUPTI_ACTIVITY_KIND_RUNTIME"] if called else []),
        *(["NVTX_EVENTS"] if pushed else []),
    ]
    with closing(sqlite3.connect(path)) as connection, connection:
        for name in wanted:
            connection.execute(f"CREATE TABLE {name} ({TABLES[name]})")
        fill(connection, ran, called, pushed)
    return path


def fill(
    connection: sqlite3.Connection, ran: Iterable[Ran], called: Iterable[Called], pushed: Iterable[Pushed] = ()
) -> None:
    """Add rows to the tables of an export."""
    for each in ran:
        row = {
            **_times(each.start, each.end), "deviceId": each.device, "contextId": 1, "streamId": 7,
            "correlationId": each.launched_by, "globalPid": process(each.pid), **_MORE[each.table],
        }  # fmt: skip
        if each.table == "KERNEL":
            name = _text(connection, each.name)
            row |= {"demangledName": name, "shortName": name, "graphNodeId": each.node}
            row |= dict(zip(("gridX", "gridY", "gridZ"), each.grid, strict=True))
            row |= dict(zip(("blockX", "blockY", "blockZ"), each.block, strict=True))
        _insert(connection, f"CUPTI_ACTIVITY_KIND_{each.table}", row)
    for call in called:
        row = {
            **_times(call.start, call.end), "eventClass": 0, "globalTid": thread(call.pid, call.tid),
            "correlationId": call.launches, "nameId": _text(connection, call.name), "returnValue": 0,
        }  # fmt: skip
        _insert(connection, "CUPTI_ACTIVITY_KIND_RUNTIME", row)
    for each_range in pushed:
        text = {"textId": _text(connection, each_range.text)} if each_range.is_registered else {"text": each_range.text}
        start, end = each_range.start, each_range.end
        times = _times(start, start if end is None else end) | ({"end": None} if end is None else {})
        row = {**times, "eventType": each_range.event_type, "globalTid": thread(PID, each_range.tid), **text}
        _insert(connection, "NVTX_EVENTS", row)


def _times(start: float, end: float) -> dict[str, int | None]:
    return {"start": round(1e3 * start), "end": round(1e3 * end)}


def _text(connection: sqlite3.Connection, text: str) -> int:
    found = connection.execute("SELECT id FROM StringIds WHERE value = ?", (text,)).fetchone()
    if found is not None:
        return int(found[0])
    ((number,),) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM StringIds")
    connection.execute("INSERT INTO StringIds VALUES (?, ?)", (number, text))
    return int(number)


def _insert(connection: sqlite3.Connection, table: str, row: dict[str, object]) -> None:
    columns, places = ", ".join(row), ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", tuple(row.values()))
