"""A stripped report tells nothing of its machine, and everything of its kernels."""

from __future__ import annotations

import math
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import ncu_report
import pytest
from cases import HERE
from strip import masked, shortened, stripped
from suite_error import SuiteError
from wire import WireError, integers, rewritten, varint, with_integer

from ncuroof.ingest import framing, wire
from tests.support.constructed import Accesses, Described
from tests.support.constructed_counters import kernel
from tests.support.report_writer import Rule, Session, write_report
from tests.support.wire_encoder import integer, message, text

HOST = "secret-host.example.org"
SESSION = Session(
    host_name=HOST,
    command_line='/opt/nvidia/ncu --set full -o "/home/ada/my runs/run" /home/ada/project/train.py --data=/data/ada/set.bin',
    executable=("/home/ada/project/train.py", "--data=/data/ada/set.bin"),
    processes=((4242, "/home/ada/project/train.py"),),
)
MESSAGE = "excessive at /home/ada/project/kernels/copy.cu, 2 bytes/sector, see https://docs.nvidia.com/a/b"
RULES = (Rule("Coalescing", "Coalescing", "SourceCounters", "Uncoalesced", MESSAGE),)
DESCRIBED = Described("copy", 250_000, loads=Accesses(2**20), stores=Accesses(2**20), nvtx=("step",), rules=RULES)


@pytest.fixture(scope="module")
def report() -> bytes:
    return write_report([kernel(DESCRIBED)] * 2, SESSION)


def test_nothing_of_the_machine_is_left(report: bytes) -> None:
    assert HOST.encode() in report
    left = stripped(report)
    for secret in (HOST, "ada", "/opt", "project", "my runs", "/data"):
        assert secret.encode() not in left, secret
    for kept in (
        b"ncu --set full",
        b'-o "run"',
        b"train.py --data=set.bin",
        b"at copy.cu, 2 bytes/sector, see https://docs.nvidia.com/a/b",
    ):
        assert kept in left, kept


def test_metrics_kernels_and_ranges_are_kept(report: bytes, tmp_path: Path) -> None:
    before, after = (
        _content(report, tmp_path / "before.ncu-rep"),
        _content(stripped(report), tmp_path / "after.ncu-rep"),
    )
    assert before == after
    assert len(before) == 2
    assert len(before[0][2]) > 300


def test_a_stripped_report_stays_as_it_is(report: bytes) -> None:
    assert stripped(stripped(report)) == stripped(report)


def test_a_report_without_secrets_keeps_every_payload() -> None:
    bare = write_report(
        [kernel(Described("copy", 250_000, loads=Accesses(2**20)))], Session(processes=((4242, "app"),))
    )
    assert _payloads(bare) == _payloads(stripped(bare))


def test_the_directories_in_debug_sections_are_overwritten() -> None:
    image = _elf(
        b"\x00\x01/home/ada/project/src\0copy.cu\0/usr/lib/py/kernel.py\0C:\\\\Users\\\\ada\\\\x\0\x02",
        code=b"/home/ada/is/code",
    )
    source = message(1, text(1, "x"))  # any other field of a source
    report = _one_source(source + message(4, image))
    left = stripped(report)
    assert b"/xxxx/xxx/xxxxxxx/xxx\0copy.cu\0/xxx/xxx/xx/kernel.py\0x:\\\\xxxxx\\\\xxx\\\\x\0" in left
    assert b"/home/ada/is/code" in left  # instructions are never touched
    assert len(left) == len(report)


@pytest.mark.parametrize(
    "damaged", [b"", b"NVR\0", b"NVR\0\x05\0\0\0", b"%PDF-1.4", b"NVR\0\x02\0\0\0\x08\x07\xff\xff\0\0"]
)
def test_a_damaged_report_is_told(damaged: bytes) -> None:
    with pytest.raises(SuiteError, match=r"r\.ncu-rep: "):
        stripped(damaged, where="r.ncu-rep")


def test_a_cut_report_is_told(report: bytes) -> None:
    for size in range(9, len(report), len(report) // 40):
        try:
            stripped(report[:size])
        except SuiteError:
            continue
        framing.walk(report[:size])  # cut between two blocks: a report as well


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/usr/bin/ncu -o run ./app", "ncu -o run app"),
        ("ncu --export=/tmp/a/b.ncu-rep ~/bin/app x/y", "ncu --export=b.ncu-rep app x/y"),
        (r'"C:\Program Files\NVIDIA\ncu.exe" -o C:/Users/ada/run', '"ncu.exe" -o run'),
        ("16 bytes/sector, a / b, ld/st", "16 bytes/sector, a / b, ld/st"),
        ("regex:^(copy|gemm)$", "regex:^(copy|gemm)$"),
    ],
)
def test_of_paths_the_last_component_stays(before: str, after: str) -> None:
    assert shortened(before) == after


def test_a_secret_is_masked_wherever_it_stands() -> None:
    assert masked(b"\x0a\x04node and node", ["node", ""]) == b"\x0a\x04xxxx and xxxx"


def test_the_command_tells_errors_without_a_traceback(report: bytes, tmp_path: Path) -> None:
    source, target = tmp_path / "a.ncu-rep", tmp_path / "b.ncu-rep"
    source.write_bytes(report)
    assert _run(source, target) == (0, "")
    assert target.read_bytes() == stripped(report)
    assert _run(source)[0] == 2
    status, said = _run(tmp_path / "none.ncu-rep", target)
    assert (status, said[:6]) == (1, "error:")
    source.write_bytes(b"no report")
    assert _run(source, target)[1].startswith("error: ")


# ---- the rewriter ---------------------------------------------------------------------------------


def test_other_fields_keep_their_bytes() -> None:
    overlong = b"\x08\x81\x00"  # 1, encoded in two bytes: kept as it is
    before = overlong + text(2, "old") + integer(3, 300) + message(4, text(1, "old") + text(2, "kept"))
    after = rewritten(before, {2: None, 4: {1: lambda _: b"newer"}})
    assert after == overlong + integer(3, 300) + message(4, text(1, "newer") + text(2, "kept"))


def test_integers_are_read_and_set() -> None:
    encoded = integer(1, 5) + text(2, "x") + integer(300, 2**40)
    assert integers(encoded) == {1: 5, 300: 2**40}
    assert integers(with_integer(encoded, 300, 7)) == {1: 5, 300: 7}
    assert varint(300) == b"\xac\x02"


@pytest.mark.parametrize("malformed", [b"\x0a\x05ab", b"\xff" * 11, b"\x0b", b"\x00\x00", b"\x09\x01"])
def test_a_malformed_message_is_an_error(malformed: bytes) -> None:
    with pytest.raises(WireError):
        rewritten(malformed, {})


# ---- other people's reports -----------------------------------------------------------------------


@pytest.mark.corpus
def test_real_reports_keep_their_metrics_and_lose_their_machine(corpus: list[Path], tmp_path: Path) -> None:
    n_secrets = n_metrics = 0
    for path in (path for path in corpus if path.read_bytes()[:4] == b"NVR\0"):
        before = path.read_bytes()
        after = stripped(before, where=path.name)
        for secret in _secrets(before):
            n_secrets += 1
            assert secret not in after, (path, secret)
        mine, theirs = _content(after, tmp_path / "after.ncu-rep"), _content(before, tmp_path / "before.ncu-rep")
        assert mine == theirs, path
        n_metrics += sum(len(metrics) for _, _, metrics in mine)
    print(f"{n_secrets} strings gone, {n_metrics} metrics equal")
    assert n_secrets > 100
    assert n_metrics > 100_000


def _secrets(report: bytes) -> set[bytes]:
    """Return host names, and the program folders under a user's home, that a report's headers tell."""
    found = set()
    for block in framing.walk(report).blocks:
        for number, _, value in wire.fields(block.header):
            if number == 6:
                fields = {n: bytes(v) for n, _, v in wire.fields(value) if not isinstance(v, int)}
                found |= {fields.get(2, b""), fields.get(3, b"").replace(b"\\", b"/").rpartition(b"/")[0]}
            if number == 3:
                for n, _, system in wire.fields(value):
                    if n in (3, 4):
                        found |= {bytes(v) for m, _, v in wire.fields(system) if m in (5, 7) and not isinstance(v, int)}
    return {secret for secret in found if len(secret) > 7 and not secret.startswith((b"/usr", b"/opt"))}


def _content(report: bytes, path: Path) -> list[tuple[str, tuple[str, ...], dict[str, Any]]]:
    """Return name, NVTX ranges and all metrics of each kernel, as NVIDIA's module reads them."""
    path.write_bytes(report)
    context = ncu_report.load_report(str(path))
    return [
        (action.name(), _ranges(action), {name: _value(action[name]) for name in action.metric_names()})
        for range_ in (context.range_by_idx(i) for i in range(context.num_ranges()))
        for action in (range_.action_by_idx(i) for i in range(range_.num_actions()))
    ]


def _ranges(action: Any) -> tuple[str, ...]:
    state = action.nvtx_state()
    if state is None:
        return ()
    domains = (state.domain_by_id(i) for i in state.domains())
    return tuple(name for domain in domains for name in domain.push_pop_ranges())


def _value(metric: Any) -> Any:
    value = metric.value()
    value = "nan" if isinstance(value, float) and math.isnan(value) else value
    return value, metric.num_instances()


def _payloads(report: bytes) -> list[bytes]:
    return [report[block.payload_offset : block.end_offset] for block in framing.walk(report).blocks]


def _run(*paths: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, HERE / "strip.py", *paths], capture_output=True, text=True, check=False)
    assert not re.search("Traceback", done.stderr)
    return done.returncode, done.stderr


def _one_source(source: bytes) -> bytes:
    payload = struct.pack("<I", len(source)) + source
    header = integer(1, 1) + integer(2, 0) + integer(5, len(payload))
    file_header = integer(1, 7)
    return b"NVR\0" + b"".join(struct.pack("<I", len(part)) + part for part in (file_header, header)) + payload


def _elf(debug: bytes, *, code: bytes) -> bytes:
    """Return an ELF image with a section of code, one of debug lines, and their names."""
    names = b"\0.text\0.debug_line\0.shstrtab\0"
    bodies = (b"", code, debug, names)
    offsets = [64 + sum(map(len, bodies[:i])) for i in range(len(bodies))]
    table = sum(map(len, bodies)) + 64
    sections = [
        struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, len(body), 0, 0, 0, 0)
        for name, kind, offset, body in zip((0, 1, 7, 19), (0, 1, 1, 3), offsets, bodies, strict=True)
    ]
    header = bytearray(64)
    header[:5] = b"\x7fELF\x02"
    struct.pack_into("<Q", header, 0x28, table)
    struct.pack_into("<HHH", header, 0x3A, 64, len(sections), 3)
    return bytes(header) + b"".join(bodies) + b"".join(sections)
