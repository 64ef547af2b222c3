"""Pages about the house are true: paths exist, functions are where they are said to be, and rooms are those of the test."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from textwrap import dedent

import pytest
import tomli

import ncuroof
from ncuroof.roofline.gpu_profiles import read_profile
from tests.test_rooms import EDGE, FLOW

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("docs/architecture.md", "SECURITY.md", "CONTRIBUTING.md")
FOLDERS = ("benchmarks", "docs", "examples", "fixtures", "ncuroof", "profiles", "templates", "tests", "tools")
_PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[^`\s]*)`")
_STOP = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \|", re.MULTILINE)


def _text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def _stops(name: str) -> list[tuple[str, str]]:
    """Return file and function of each stop of a walk of the architecture page."""
    (walk,) = re.findall(rf"<!-- walk: {name} -->(.*?)<!-- end -->", _text("docs/architecture.md"), re.DOTALL)
    return _STOP.findall(walk)


@pytest.mark.parametrize("page", PAGES)
def test_every_path_on_a_page_exists(page: str) -> None:
    paths = _PATH.findall(_text(page))
    assert paths
    assert [path for path in paths if not list(ROOT.glob(path.replace("NAME", "*")))] == []


@pytest.mark.parametrize("name", ["value", "finding"])
def test_every_stop_of_a_walk_is_in_its_file(name: str) -> None:
    stops = _stops(name)
    assert len(stops) > 10
    for path, what in stops:
        text = (ROOT / path).read_text(encoding="utf-8")
        wanted = rf"\[{re.escape(what)}\]" if path.endswith(".toml") else rf"(?:def|class|function) {what}\b"
        assert re.search(wanted, text), f"{path}: {what}"


def test_the_rooms_are_listed_in_the_order_of_the_flow() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", _text("docs/architecture.md"), re.MULTILINE)
    assert listed[: len(FLOW)] == FLOW
    assert set(listed[len(FLOW) :]) == EDGE


@pytest.mark.long
def test_the_launch_of_the_walks_has_the_value_and_the_finding() -> None:
    text = _text("docs/architecture.md")
    ((launch, report),) = re.findall(r"Launch (\d+) of `(fixtures/[^`]+)`", text)
    kernel = ncuroof.read(ROOT / report).analyse().to_dict()["kernels"][int(launch)]
    assert f"{kernel['access']['load_bytes_per_sector']:.1f} for launch {launch}" in text
    assert kernel["verdict"] == "memory"
    assert "uncoalesced_global_load" in {finding["id"] for finding in kernel["findings"]}


def _blocks(language: str) -> list[str]:
    """Return the blocks of code of the recipes in a language."""
    return [
        dedent(block)
        for block in re.findall(rf"^ *```{language}\n(.*?)^ *```", _text("CONTRIBUTING.md"), re.DOTALL | re.MULTILINE)
    ]


def test_examples_of_the_recipes_can_be_parsed() -> None:
    tables = [tomli.loads(block) for block in _blocks("toml")]
    assert {"finding", "computed", "gpu", "quantity"} <= {name for table in tables for name in table}
    for block in _blocks("python"):
        ast.parse(block)


def test_the_gpu_of_the_recipe_is_one(tmp_path: Path) -> None:
    (block,) = (block for block in _blocks("toml") if block.startswith("[gpu]"))
    path = tmp_path / "gtx-1630.toml"
    path.write_text(block, encoding="utf-8")
    assert read_profile(path).peak_flop_per_s["fp32"] == pytest.approx(2 * 512 * 1.785e9)  # 64 cores on each of 8 SMs
