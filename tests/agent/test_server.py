"""The server answers the official client: the commands' bytes, named errors, and nothing that leaves its field."""

from __future__ import annotations

import json
import shutil
import sys
import time
import unicodedata
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

import anyio
import jsonschema
from mcp import Client, StdioServerParameters

import ncuroof
from ncuroof.agent.server import server
from ncuroof.diagnosis import load_rules
from ncuroof.present.brief import LEAST_BUDGET_BYTES
from tests.cli.running import run_main
from tests.present.test_brief import HOSTILE
from tests.support import demo
from tests.support.patience import PATIENCE_S
from tests.support.report_writer import METRICS_BY_CHIP, Device, Kernel, Session, write_report

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ["brief", "kernel", "evidence", "compare", "whatif", "explain", "gates", "lines"]
BEFORE, AFTER = demo.REPORT.name, demo.REPORT_MENDED.name
Asked = Callable[[Any], Awaitable[Any]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for report in (demo.REPORT, demo.REPORT_MENDED):
        shutil.copyfile(report, tmp_path / report.name)
    return tmp_path


def _stdio(root: Path) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-m", "ncuroof", "mcp", "--root", str(root)], env={"PYTHONPATH": str(ROOT)}
    )


def _ask(where: Any, ask: Asked) -> Any:
    """Return what a client gets from a server: in this process, or one that it starts."""

    async def asked() -> Any:
        async with Client(where) as client:
            return await ask(client)

    return anyio.run(asked)


def _call(where: Any, tool: str, **arguments: Any) -> tuple[bool, str]:
    """Return whether a call failed, and its text."""

    async def called(client: Client) -> tuple[bool, str]:
        found = await client.call_tool(tool, arguments)
        assert len(found.content) == 1
        return bool(found.is_error), found.content[0].text

    found: tuple[bool, str] = _ask(where, called)
    return found


def test_the_tools_say_that_they_only_read_and_what_they_take(root: Path) -> None:
    async def listed(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools = _ask(server(root), listed)
    assert [tool.name for tool in tools] == TOOLS
    for tool in tools:
        assert tool.annotations.read_only_hint is True
        assert tool.annotations.open_world_hint is False
        assert len(tool.description) > 60
        assert "\n" not in tool.description
        assert all(entry.get("description") for entry in tool.input_schema["properties"].values())


@pytest.mark.long
def test_resources_are_the_schema_and_the_findings(root: Path) -> None:
    async def read(client: Client) -> Any:
        return [(await client.read_resource(f"ncuroof://{name}")).contents[0].text for name in ("schema", "findings")]

    schema, findings = map(json.loads, _ask(server(root), read))
    jsonschema.validate(json.loads(_call(server(root), "brief", report=BEFORE)[1]), schema)
    assert {each["id"] for each in findings} == load_rules().findings.keys()


@pytest.mark.long
@pytest.mark.parametrize(
    ("tool", "arguments", "command"),
    [
        ("brief", {"report": BEFORE}, ["brief", BEFORE]),
        (
            "brief",
            {"report": BEFORE, "form": "md", "budget": 2000},
            ["brief", BEFORE, "--format", "md", "--budget", "2000"],
        ),
        ("kernel", {"report": BEFORE, "kernel": "13"}, ["brief", BEFORE, "--kernel", "13"]),
        ("kernel", {"report": BEFORE, "kernel": "sgemm"}, ["brief", BEFORE, "--kernel", "sgemm"]),
        ("compare", {"before": BEFORE, "after": AFTER}, ["compare", BEFORE, AFTER, "--format", "brief"]),
        (
            "gates",
            {"before": BEFORE, "after": AFTER, "gates": ["time:+5%"]},
            ["compare", BEFORE, AFTER, "--gate", "time:+5%", "--format", "brief"],
        ),
        ("whatif", {"report": BEFORE, "gpus": ["b200"]}, ["whatif", BEFORE, "--gpu", "b200", "--format", "brief"]),
        ("explain", {"name": "waves"}, ["explain", "waves"]),
    ],
)
def test_a_tool_returns_the_bytes_of_its_command(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tool: str,
    arguments: dict[str, Any],
    command: list[str],
) -> None:
    monkeypatch.chdir(root)
    assert run_main(*command) == 0
    assert _call(server(root), tool, **arguments) == (False, capfd.readouterr().out)


@pytest.mark.long
def test_evidence_is_exactly_the_documents(root: Path) -> None:
    document = ncuroof.read(root / BEFORE).analyse().to_dict()
    ids = ["k13.utilisation.busiest", "k0.duration_ns", "k2.access.bank_conflict_frac"]
    failed, text = _call(server(root), "evidence", report=BEFORE, ids=ids)
    assert not failed
    found = json.loads(text)["evidence"]
    assert [each["e"] for each in found] == ids
    assert found[0]["v"] == document["kernels"][13]["utilisation"]["busiest"]
    assert found[1]["v"] == document["kernels"][0]["duration_ns"]
    assert found[2]["v"] == document["kernels"][2]["access"]["bank_conflict_frac"]
    assert found[0]["in"] == "kernels[13].utilisation.busiest"


def test_lines_are_those_of_the_kernel_as_far_as_the_budget_allows(tmp_path: Path) -> None:
    report = ROOT / "fixtures/h200/spills-to-atomics_spread.full.ncu-repz"
    shutil.copyfile(report, tmp_path / "run.ncu-repz")
    failed, text = _call(server(tmp_path), "lines", report="run.ncu-repz", kernel=0, budget=LEAST_BUDGET_BYTES)
    assert not failed
    assert len(text.encode()) <= LEAST_BUDGET_BYTES
    found = json.loads(text)
    assert found["lines"][0]["at"] == "contention.cu:24"
    assert found["left_out"] >= 0


# ---- errors and limits -------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("tool", "arguments", "slug"),
    [
        ("brief", {"report": "../secret"}, "outside-root"),
        ("brief", {"report": "absent.ncu-rep"}, "report-not-found"),
        ("brief", {"report": "text.ncu-rep"}, "report-format"),
        ("kernel", {"report": BEFORE, "kernel": "9999"}, "selection"),
        ("kernel", {"report": BEFORE, "kernel": "("}, "selection"),
        ("evidence", {"report": BEFORE, "ids": ["nonsense"]}, "unknown-name"),
        ("evidence", {"report": BEFORE, "ids": ["k0.no.such"]}, "unknown-name"),
        ("evidence", {"report": BEFORE, "ids": ["k0.findings"]}, "unknown-name"),
        ("evidence", {"report": BEFORE, "ids": ["k9999.duration_ns"]}, "selection"),
        ("compare", {"before": BEFORE, "after": "/etc/passwd"}, "outside-root"),
        ("compare", {"before": BEFORE, "after": "no.json"}, "baseline"),
        ("gates", {"before": BEFORE, "after": AFTER, "gates": ["nonsense"]}, "gate"),
        ("whatif", {"report": BEFORE, "gpus": ["no-such-gpu"]}, "unknown-name"),
        ("whatif", {"report": BEFORE, "changes": ["nonsense"]}, "what-if"),
        ("explain", {"name": "nonsense"}, "unknown-name"),
        ("lines", {"report": BEFORE, "kernel": 9999}, "selection"),
    ],
)
def test_an_error_is_the_named_one_as_json(root: Path, tool: str, arguments: dict[str, Any], slug: str) -> None:
    (root / "text.ncu-rep").write_text("no report\n" * 10, encoding="utf-8")
    (root / "no.json").write_text('{"secret": 1}', encoding="utf-8")
    failed, text = _call(server(root), tool, **arguments)
    assert failed
    assert json.loads(text)["error"] == slug


@pytest.mark.parametrize("budget", [0, -1, LEAST_BUDGET_BYTES - 1, 10**9])
def test_a_budget_out_of_range_is_refused(root: Path, budget: int) -> None:
    failed, text = _call(server(root), "brief", report=BEFORE, budget=budget)
    assert failed
    assert "budget" in text


@pytest.mark.long
@pytest.mark.parametrize("tool", ["brief", "kernel", "compare", "whatif", "explain", "gates", "lines"])
def test_no_answer_exceeds_its_budget(root: Path, tool: str) -> None:
    arguments = {
        "kernel": {"report": BEFORE, "kernel": "13"},
        "compare": {"before": BEFORE, "after": AFTER},
        "gates": {"before": BEFORE, "after": AFTER, "gates": [f"time:+{n}%" for n in range(50)]},
        "whatif": {"report": BEFORE, "gpus": ["b200", "a100-sxm-80gb"]},
        "explain": {"name": "uncoalesced_global_load"},
        "lines": {"report": BEFORE, "kernel": 13},
    }.get(tool, {"report": BEFORE})
    failed, text = _call(server(root), tool, budget=LEAST_BUDGET_BYTES, **arguments)
    assert not failed
    assert len(text.encode()) <= LEAST_BUDGET_BYTES


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_name_in_a_report_leaves_its_field(tmp_path: Path, name: str) -> None:
    text = name.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    counters = {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0, "device__attribute_display_name": text}
    named = Kernel(text, counters, demangled=text, nvtx=(text,))
    (tmp_path / "run.ncu-rep").write_bytes(write_report([named], Session(ncu_version=text, devices=(Device(0, text),))))
    own = server(tmp_path)
    for tool, arguments in (
        ("brief", {}),
        ("kernel", {"kernel": "0"}),
        ("kernel", {"kernel": "no such name"}),
        ("lines", {"kernel": 0}),
        ("whatif", {"gpus": ["b200"]}),
    ):
        failed, answer = _call(own, tool, report="run.ncu-rep", **arguments)
        assert failed == (arguments == {"kernel": "no such name"}), (tool, answer)
        found = json.loads(answer)
        assert "untrusted" in found
        assert not [c for c in answer if unicodedata.category(c) in {"Cc", "Cf"} and c not in "\n\u200d"]
        assert len(answer.encode()) < 5000


# ---- over standard input and output ------------------------------------------------------------------------------------------


@pytest.mark.long
def test_two_clients_of_one_folder_get_the_same(root: Path) -> None:
    answers: list[str] = []

    async def both() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(one)

    async def one() -> None:
        async with Client(_stdio(root)) as client:
            found = [await client.call_tool("brief", {"report": BEFORE}) for _ in range(2)]
            answers.extend(each.content[0].text for each in found)

    anyio.run(both)
    assert len(answers) == 4
    assert len(set(answers)) == 1


@pytest.mark.long
def test_a_large_report_shows_progress_and_a_cancelled_call_leaves_the_server_working(root: Path) -> None:
    shutil.copyfile(ROOT / "fixtures/h200/gemm_fp32_128-to-gemm_int8_8192.full.ncu-repz", root / "large.ncu-repz")
    told: list[float] = []

    async def progress(share: float, total: float | None, message: str | None) -> None:
        told.append(share)

    async def ask(client: Client) -> tuple[float, bool, str]:
        with anyio.move_on_after(0.3) as scope:
            await client.call_tool("brief", {"report": "large.ncu-repz"})
        begun_s = time.monotonic()
        answer = await client.call_tool("explain", {"name": "waves"})
        waited_s = time.monotonic() - begun_s
        whole = await client.call_tool("brief", {"report": "large.ncu-repz"}, progress_callback=progress)
        assert not answer.is_error
        return waited_s, scope.cancelled_caught, whole.content[0].text

    waited_s, was_cancelled, text = _ask(_stdio(root), ask)
    assert was_cancelled
    assert waited_s < PATIENCE_S
    assert json.loads(text)["run"]["n_kernels"] > 5
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_a_missing_folder_and_a_missing_extra_are_named_errors(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_main("mcp", "--root", tmp_path / "absent") == 1
    assert "no such folder" in capfd.readouterr().err
    monkeypatch.delitem(sys.modules, "ncuroof.agent.server")
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    assert run_main("mcp", "--root", tmp_path) == 1
    assert "pip install 'ncuroof[mcp]'" in capfd.readouterr().err
