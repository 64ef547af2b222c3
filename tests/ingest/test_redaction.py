"""A redacted report tells nothing of machine, user, program and source, and everything of its kernels."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import ncu_report
import pytest

import ncuroof
from ncuroof.errors import RedactionError, ReportFormatError
from ncuroof.ingest import framing, wire
from ncuroof.ingest.native import reader as native
from ncuroof.ingest.redaction import redact as redaction_module
from ncuroof.ingest.redaction.fields import KERNEL, UNKNOWN
from ncuroof.ingest.redaction.fields import message as of_message
from ncuroof.ingest.redaction.redact import redact
from ncuroof.ingest.redaction.secrets import find_secrets, without_folders
from ncuroof.ingest.report_files import report_content
from ncuroof.ingest.wire import field, rewritten, varint, with_number
from ncuroof.metrics.code_quantities import BY_CODE
from tests.support.constructed import Accesses, Described
from tests.support.constructed_counters import kernel
from tests.support.ncu import find_ncu, raw_page
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, Rule, Session, write_report
from tests.support.wire_encoder import integer, message, text

HOST = "build-7.secret.example.org"
SESSION = Session(
    host_name=HOST,
    command_line=(
        '/opt/nvidia/ncu --set full --section "MySection" --clock-control none -k regex:hush '
        '-o "/home/lovelace/my runs/run" /home/lovelace/project/train.py --key=hunter2'
    ),
    executable=("/home/lovelace/project/train.py", "--key=hunter2"),
    processes=((4242, "/home/lovelace/project/train.py"),),
)
RULES = (
    Rule(
        "Coalescing",
        "Coalescing",
        "SourceCounters",
        "Uncoalesced",
        "excessive at /home/lovelace/my project/kernels/copy.cu, 2 bytes/sector, see https://docs.nvidia.com/a/b",
    ),
)
DESCRIBED = Described(
    "copy", 250_000, loads=Accesses(2**20), stores=Accesses(2**20), nvtx=("step", "read /home/lovelace/x"), rules=RULES
)


@pytest.fixture(scope="module")
def report() -> bytes:
    return write_report([kernel(DESCRIBED)] * 2, SESSION)


def test_nothing_of_machine_user_and_program_is_left(report: bytes) -> None:
    assert b"hunter2" in report
    done = redact(report, where="r")
    for secret in (HOST, "build-7", "lovelace", "hunter2", "/opt", "project", "my runs", "hush", "/home"):
        assert secret.encode() not in done.content, secret
    for kept in (
        b"ncu --clock-control none --set full --section MySection --kernel-name regex:.",
        b"train.py",
        b"excessive at copy.cu, 2 bytes/sector, see https://docs.nvidia.com/a/b",
        b"read " + b"x" * len("/home/lovelace") + b"/x",
    ):
        assert kept in done.content, kept
    assert done.left == ()
    assert done.n_searched == 4  # two names of the host, the user, the home folder


def test_removed_values_are_counted(report: bytes) -> None:
    removed = redact(report, where="r").removed
    n_blocks = len(framing.walk(report).blocks)
    # The process of each block has a host and a path; system information stands in two blocks.
    assert removed["host names"] == n_blocks + 2
    assert removed["program folders"] == n_blocks
    assert removed["command lines"] == 1
    assert removed["program paths, arguments and environments"] == 1
    assert removed["paths and names in messages"] == 2  # the rule of two kernels
    assert removed["names in labels"] == 2  # a range of two kernels


def test_counters_are_kept_to_the_byte(report: bytes) -> None:
    def counters(content: bytes) -> list[bytes]:
        return [
            bytes(value)
            for block in framing.walk(content).blocks
            for entry in list(framing.entries(content, block))[len(block.sources) :]
            for number, _, value in wire.fields(entry)
            if number == 13 and not isinstance(value, int)
        ]

    before = counters(report)
    assert len(before) > 600
    assert counters(redact(report, where="r").content) == before


def test_a_redacted_report_stays_as_it_is(report: bytes) -> None:
    once = redact(report, where="r").content
    assert redact(once, where="r").content == once


def test_kernel_names_are_kept_and_a_remark_says_so() -> None:
    name = "/home/lovelace/kernels.py:42 copy"
    report = write_report([Kernel(name, dict(METRICS_BY_CHIP["GA100"]))], Session(host_name=HOST))
    done = redact(report, where="r")
    assert name.encode() in done.content
    # In three names, the one with parameters among them; the user in the folder.
    assert done.left == (("kernel names", "/home/lovelace", 3), ("kernel names", "lovelace", 3))


def test_short_and_common_names_are_remarked_and_their_fields_removed() -> None:
    report = write_report(
        [Kernel("root_sky", dict(METRICS_BY_CHIP["GA100"]))],
        Session(host_name="sky", processes=((4242, "/home/ubuntu/a/app"),)),
    )
    done = redact(report, where="r")
    assert done.unsearched == ("sky", "ubuntu")
    assert b"root_sky" in done.content
    assert b"/home" not in done.content
    assert done.content.count(b"sky") == 3  # the kernel's three names


def test_unknown_fields_are_removed() -> None:
    entry = text(7, "known") + text(99, "whose is this") + integer(98, 7) + message(21, text(77, "nor this"))
    report = _one_block({2: 1}, [entry, b"another kind of entry"])
    done = redact(report, where="r")
    assert b"known" in done.content
    assert b"this" not in done.content
    assert b"another" not in done.content
    assert done.removed == {UNKNOWN: 3}
    assert integer(98, 7) in done.content  # numbers stay


def test_every_kind_of_result_that_is_read_is_redacted() -> None:
    kinds = {"source", "kernel", "range", "cmdlist", "graph"}
    assert redaction_module.ENTRY_BY_KIND.keys() == {"source", *native._MESSAGE_BY_KIND} == kinds


@pytest.mark.parametrize(
    ("keep", "kept"),
    [((), ()), (("sass",), (b"SASS", b"symbol")), (("ptx",), (b"PTX",)), (("source",), (b"__global__", b"copy.cu"))],
)
def test_code_is_left_out_unless_it_is_asked_for(keep: tuple[str, ...], kept: tuple[bytes, ...]) -> None:
    files = message(8, message(1, text(1, "/home/lovelace/copy.cu"), text(2, "__global__ void copy()")))
    symbols = message(9, message(1, text(1, "symbol")))
    source = integer(1, 1) + text(3, "PTX of /home/lovelace/") + text(4, "SASS") + files + symbols
    done = redact(_one_block({1: 1}, [source]), where="r", keep=keep)
    everything = (b"SASS", b"symbol", b"PTX", b"__global__", b"copy.cu")
    assert tuple(code for code in everything if code in done.content) == kept
    assert b"lovelace" not in done.content


def test_a_string_that_slipped_through_stops_the_command(report: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = of_message({**KERNEL, 19: lambda content, _: content})
    monkeypatch.setitem(redaction_module.ENTRY_BY_KIND, "kernel", rules)
    with pytest.raises(
        RedactionError, match=r"'/home/lovelace' should have been removed, but is still in the result 2 times"
    ):
        redact(report, where="r")


def test_a_cut_report_is_redacted_as_far_as_it_is_whole(report: bytes) -> None:
    blocks = framing.walk(report).blocks
    done = redact(report[: blocks[-1].end_offset - 1], where="r")
    assert done.lost is not None
    assert len(framing.walk(done.content).blocks) == len(blocks) - 1
    assert b"lovelace" not in done.content
    with pytest.raises(ReportFormatError):
        redact(b"no report", where="r")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("at /home/ada/a b/c.cu:7, then", "at c.cu:7, then"),
        (r'in "C:\Program Files\x y\k.cu"', 'in "k.cu"'),
        ("16 bytes/sector, a / b, ld/st", "16 bytes/sector, a / b, ld/st"),
        (
            "@url:guide:https://docs.nvidia.com/nsight/index.html@",
            "@url:guide:https://docs.nvidia.com/nsight/index.html@",
        ),
        ("../../sections/NvRules.py", "NvRules.py"),
    ],
)
def test_paths_in_texts_keep_their_last_component(before: str, after: str) -> None:
    assert without_folders(before.encode()) == after.encode()


# ---- the rewriter -----------------------------------------------------------------------------------------------------------


def _gone(content: bytes, passing: None) -> None:
    """Leave a field out."""


def test_fields_that_stay_keep_their_bytes() -> None:
    overlong = b"\x08\x81\x00"  # 1, encoded in two bytes: kept as it is
    before = (
        overlong + text(2, "old") + text(5, "unknown") + integer(3, 300) + b"\x1d\x01\x02\x03\x04" + text(4, "kept")
    )
    treatments = {2: lambda content, _: content.upper(), 4: lambda content, _: content}
    after = rewritten(before, treatments, None, _gone)
    assert after == overlong + text(2, "OLD") + integer(3, 300) + b"\x1d\x01\x02\x03\x04" + text(4, "kept")


def test_numbers_and_fields_are_encoded_as_documented() -> None:
    assert varint(300) == b"\xac\x02"  # the example of protobuf's documentation
    assert field(2, b"testing") == b"\x12\x07testing"  # so is this
    assert with_number(integer(1, 5) + text(2, "x"), 1, 300) == integer(1, 300) + text(2, "x")


# ---- other people's reports -------------------------------------------------------------------------------------------------


_BY_CODE = (
    "alike_threads",
    "alike_blocks",
    "async_copies_awaited_at_once",
    "atomic_results",
    "fp64_divisions",
    "idle_warps",
    "inlined_generator_setup",
    "local_memory_by_code",
    "serial_loads",
    "stall_xu_queue",
    "stall_long_scoreboard",
    "stall_overlapping_loads",
    "nothing_multiplied",
    "unread_shared_stores",
)
_ADVISED_BY_CODE = (
    "idle_tensor_cores", "little_work_per_thread", "scattered_accesses", "uncoalesced_global_access", "uncoalesced_global_load",
)  # fmt: skip
_DERIVED_FROM_CODE = (
    "access.generator_setup_frac", "access.local_bytes", "access.local_frac", "access.most_idle_warp_frac",
    "arithmetic.fp32_unfused_frac", "instructions.generator_frac", "instructions.xu_sample_frac",
)  # fmt: skip
"""Quantities that need the code besides BY_CODE: of source lines, and those that a value of BY_CODE stands in for."""
_EVIDENCE_BY_CODE = "arithmetic.loads_per_multiply_add"
EVERY = 6
"""Each sixth report of the corpus is compared here; all of them take minutes."""


@pytest.mark.corpus
def test_real_reports_keep_their_metrics_and_their_analysis(corpus: list[Path], tmp_path: Path) -> None:
    n_metrics = n_rules = n_needles = n_cut_texts = 0
    for path in corpus[::EVERY]:
        content, _ = report_content(path)
        done = redact(content, where=path.name)
        target = tmp_path / path.with_suffix(".ncu-rep").name
        target.write_bytes(done.content)
        assert done.left == (), path
        for needle in find_secrets(content, framing.walk(content)).needles():
            n_needles += 1
            assert needle not in done.content.lower(), path
        for (name, metrics, rules), (name_before, metrics_before, rules_before) in zip(
            _content(target), _content(path), strict=True
        ):
            assert name == name_before, path
            assert metrics == metrics_before, path
            n_metrics += len(metrics)
            for rule, before in zip(rules, rules_before, strict=True):
                n_rules += 1
                n_cut_texts += rule != before
                assert rule == before or ("/home/" in before or "/root/" in before), path
        assert _analysis(target) == _analysis(path), path
    print(f"{n_metrics} metrics, {n_rules} rules equal but for {n_cut_texts} paths; {n_needles} strings gone")
    assert n_metrics > 40_000
    assert n_rules > 300
    assert n_needles > 100


@pytest.mark.corpus
@pytest.mark.oracle
def test_ncu_prints_of_redacted_reports_what_it_prints_of_the_originals(corpus: list[Path], tmp_path: Path) -> None:
    ncu = find_ncu()
    if ncu is None:
        pytest.skip("no ncu command-line tool here")
    recorded_somewhere = {"Process ID", "Process Name", "Host Name"}
    n_kernels = 0
    for path in corpus[:: 9 * EVERY]:
        target = tmp_path / path.name
        target.write_bytes(redact(report_content(path)[0], where=path.name).content)
        after, before = raw_page(ncu, target), raw_page(ncu, path)
        n_kernels += len(after)
        for mine, theirs in zip(after, before, strict=True):
            assert {k: v for k, v in mine.items() if k not in recorded_somewhere} == {
                k: v for k, v in theirs.items() if k not in recorded_somewhere
            }
        printed = subprocess.run(
            [ncu, "--import", target, "--page", "session"], capture_output=True, text=True, check=True
        )
        assert "/home/" not in printed.stdout
    assert n_kernels > 0


def _content(path: Path) -> list[tuple[str, dict[str, Any], list[str]]]:
    """Return name, all metrics with unit, and all rules of each workload, as NVIDIA's module reads them."""
    context = ncu_report.load_report(str(path))
    return [
        (
            action.name(),
            {name: _metric(action[name]) for name in action.metric_names()},
            [json.dumps(dict(rule), default=str) for rule in action.rule_results_as_dicts()],
        )
        for range_ in (context.range_by_idx(i) for i in range(context.num_ranges()))
        for action in (range_.action_by_idx(i) for i in range(range_.num_actions()))
    ]


def _metric(metric: Any) -> tuple[str, str, int]:
    return repr(metric.value()), metric.unit(), metric.num_instances()


def _analysis(path: Path) -> dict[str, Any]:
    """Return the document without what was taken out, and without NVIDIA's texts, compared before.

    With the code go lines of the source, and what is known from them or from the code: loads in flight, indices that are
    read, executions and widths of single instructions, generators, Triton.
    """
    found = ncuroof.read(path).analyse().to_dict()
    for source in found["sources"]:
        for gone in ("file", "sha256", "command_line"):
            source.pop(gone)
    found["summary"].pop("outlook")
    found["summary"].pop("actions")
    for group in found["groups"]:
        for judged in ("has_gain", "is_in_doubt"):
            group.pop(judged)
    found.pop("actions")  # the sums of the findings below: each has what those before it leave
    for each in found["kernels"]:
        each["vendor"].pop("rules", None)
        each.pop("lines")
        each.pop("code")
        each["missing"] = [entry for entry in each["missing"] if entry["quantity"] not in _DERIVED_FROM_CODE]
        for group, _, key in (name.partition(".") for name in (*BY_CODE, *_DERIVED_FROM_CODE)):
            (each[group] or {}).pop(key, None)
        each["findings"] = [finding for finding in each["findings"] if finding["id"] not in _BY_CODE]
        for finding in each["findings"]:
            finding.pop("where")
            finding.pop("is_most_worth")  # one that is known from the code may have been
            if finding["id"] in _ADVISED_BY_CODE:
                finding.pop("advice")
            finding["evidence"] = [
                each for each in finding["evidence"] if each["quantity"] not in (_EVIDENCE_BY_CODE, *_DERIVED_FROM_CODE)
            ]
    return found


def _one_block(counts: dict[int, int], entries: list[bytes]) -> bytes:
    payload = b"".join(struct.pack("<I", len(entry)) + entry for entry in entries)
    header = b"".join(integer(number, count) for number, count in counts.items()) + integer(5, len(payload))
    parts = (integer(1, 7), header)
    return b"NVR\0" + b"".join(struct.pack("<I", len(part)) + part for part in parts) + payload
