"""The documentation is what the program does."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from click import Context

from ncuroof import errors
from ncuroof.cli.profile import profile
from ncuroof.cli.program import program
from ncuroof.collect import reachable_roofs
from ncuroof.metrics import load_catalogue
from ncuroof.ncu.settings import load_settings
from ncuroof.present import WRITERS
from ncuroof.present.explanations.explain import explain
from ncuroof.resources import read_profile, read_toml
from tests.cli.running import run_main
from tools import column_page, demo_summary, latency_causes, quantity_pages, recording_page
from tools.counter_availability import FILE, load_availability

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("fixtures/**/*.md"))
)


def test_the_pages_of_quantities_are_fresh() -> None:
    stored = {path.name: path.read_text(encoding="utf-8") for path in quantity_pages.FOLDER.iterdir()}
    assert stored == quantity_pages.pages(), "run make pages"


def test_the_page_of_columns_is_fresh() -> None:
    assert (ROOT / "docs/columns.md").read_text(encoding="utf-8") == column_page.page(), "run make pages"


@pytest.mark.skipif(not demo_summary.REPORT.exists(), reason="the recordings are not in this checkout")
def test_the_page_of_recordings_is_fresh() -> None:
    assert recording_page.FILE.read_text(encoding="utf-8") == recording_page.page(), "run make pages"


def test_the_causes_of_latency_are_listed_in_the_order_in_which_they_are_tried() -> None:
    text = latency_causes.FILE.read_text(encoding="utf-8")
    assert latency_causes.page(text) == text, "run make pages"
    listed = re.findall(r"^\| \d+ \| (.+?) \|", text, re.MULTILINE)
    assert listed[:4] == ["launch", "remote memory", "one warp", "grid"]
    assert len(listed) == len(read_profile("rules.toml")["latency_cause"])


def test_the_example_of_a_comparison_is_what_the_program_prints(capfd, monkeypatch) -> None:
    text = (ROOT / "docs/compare.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```text\n\$ ncuroof (.+?)\n(.+?)```", text, re.DOTALL)
    monkeypatch.chdir(ROOT / "fixtures/simulated")
    assert run_main(*example[0].split()) == 0
    assert capfd.readouterr().out == example[1]


@pytest.mark.skipif(not demo_summary.REPORT.exists(), reason="the embedded report is not in this checkout")
def test_the_summary_in_the_readme_is_what_the_demo_prints() -> None:
    text = demo_summary.PAGE.read_text(encoding="utf-8")
    assert "What to do" in text
    assert "The GPU works for" in text
    assert demo_summary.page(text) == text, "run make pages"


@pytest.mark.long
@pytest.mark.skipif(not demo_summary.REPORT.exists(), reason="the embedded report is not in this checkout")
def test_what_a_steps_time_goes_to_in_the_guide_is_what_the_demo_prints() -> None:
    text = demo_summary.STEP_PAGE.read_text(encoding="utf-8")
    assert "<!-- step -->" in text
    assert demo_summary.page(text) == text, "run make pages"


def test_the_pages_are_the_same_every_time() -> None:
    assert quantity_pages.pages() == quantity_pages.pages()


def test_every_quantity_has_a_section_and_a_line_in_the_index() -> None:
    catalogue = load_catalogue()
    names = {quantity.name for quantity in (*catalogue.described(), *catalogue.measured)} | {"stalls.*reason*"}
    assert {f"bandwidth.{level}" for level in catalogue.bandwidth} <= names
    assert {f"work.{precision}" for precision in (*catalogue.work, "tensor")} <= names
    pages = quantity_pages.pages()
    assert len(pages) <= 16
    index = pages.pop("README.md")
    assert Counter(name for page in pages.values() for name in re.findall(r"^## (.+)$", page, re.MULTILINE)) == Counter(
        names
    )
    assert set(re.findall(r"^\| \[(.+?)\]", index, re.MULTILINE)) == names


def test_a_section_has_formulas_exclusions_and_counters() -> None:
    page = quantity_pages.pages()["traffic_bytes.md"]
    (section,) = re.findall(r"^## traffic_bytes\.dram$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert "32 * sum(lts__t_sectors_aperture_sysmem_lookup_miss.sum" in section
    assert "only on compute capability 7.2, 8.7, 11.0, 12.1" in section
    assert "**What it does not count.** System memory" in section
    # Orin, Thor and GB10 have no DRAM counters.
    assert "| `dram__bytes` | yes | yes | yes | yes | – | yes | yes | yes | yes | – | yes | – |" in section
    assert "- Used by: [bandwidth.dram](bandwidth.md#bandwidthdram)" in section


def test_a_formula_loses_nothing_in_its_lines() -> None:
    for formula in load_catalogue().formulas():
        laid_out = quantity_pages.laid_out(formula.text)
        assert "".join(laid_out.split()) == "".join(formula.text.split())


# ---- which architecture has which counter -----------------------------------------------------------------------------------


def test_the_availability_of_every_counter_is_stated() -> None:
    stated = load_availability().group_by_counter.keys()
    read = {counter.partition(".")[0] for counter in load_catalogue().counters()}
    assert read - stated == set()
    assert {name for name in stated - read if not name.startswith(load_catalogue().tensor.counter_prefix)} == set()


def test_no_counter_is_stated_twice() -> None:
    raw = read_toml(FILE)
    times = Counter([*raw["chips"], *(name for group in raw["group"] for name in group["counters"])])
    assert times.most_common(1)[0][1] == 1


def test_architectures_are_those_of_the_table() -> None:
    availability = load_availability()
    for counter, group in availability.group_by_counter.items():
        assert {*group.available, *group.unknown} <= set(availability.capabilities), counter
        assert not {*group.available} & {*group.unknown}, counter


def test_a_counter_is_there_absent_or_not_known() -> None:
    availability = load_availability()
    assert availability.has("dram__bytes_op_read", 120) is True
    assert availability.has("dram__bytes_op_read", 90) is False
    assert availability.has("inst_executed", 120) is None
    with pytest.raises(errors.ProfileError, match="nothing says which architectures have l1tex__unheard_of"):
        availability.has("l1tex__unheard_of", 90)


# ---- what a number does not count -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["traffic_bytes.l2", "utilisation.fp32", "work.fp32", "bandwidth.dram"])
def test_explain_says_what_a_quantity_does_not_count(name: str) -> None:
    catalogue = load_catalogue()
    (quantity,) = (each for each in (*catalogue.described(), *catalogue.measured) if each.name == name)
    assert quantity.excludes is not None
    assert f"What it does not count: {quantity.excludes}" in explain(name)


def test_explain_says_what_one_of_several_definitions_does_not_count() -> None:
    assert "What it does not count: What the SMs send" in explain("bandwidth.l2")
    assert load_catalogue().stalls.excludes in explain("stalls.wait")


@pytest.mark.parametrize("group", ["traffic_bytes", "access", "utilisation", "occupancy", "instructions", "work"])
def test_what_is_counted_is_told_for_most_of_a_group(group: str) -> None:
    catalogue = load_catalogue()
    members = [each for each in (*catalogue.quantities, *catalogue.measured) if each.name.startswith(f"{group}.")]
    excluding = [each for each in members if each.excludes or any(pair.excludes for pair in catalogue.pairs(each.name))]
    assert len(excluding) >= 0.75 * len(members)


# ---- models of operations ---------------------------------------------------------------------------------------------------


def test_the_example_of_a_model_is_what_the_program_prints(capfd: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/model.md").read_text(encoding="utf-8")
    command, printed = re.findall(r"```text\n\$ ncuroof (.+)\n((?:.*\n)+?)```", page)[0]
    assert run_main(*command.split()) == 0
    assert capfd.readouterr().out == printed


# ---- commands and failures of profiling --------------------------------------------------------------------------------------


def test_the_example_runs_for_as_many_steps_as_the_documents_profile() -> None:
    script = (ROOT / "examples/train_transformer.py").read_text(encoding="utf-8")
    default = int(re.findall(r'"--steps", type=int, default=(\d+)', script)[0])
    named = [int(step) for page in ("README.md", "docs/profile.md") for step in _steps(ROOT / page)]
    assert 10 in named
    assert max(named) <= default


def _steps(page: Path) -> list[str]:
    return re.findall(r"profile --step (\d+)", page.read_text(encoding="utf-8"))


def test_every_option_of_profile_is_documented() -> None:
    page = (ROOT / "docs/profile.md").read_text(encoding="utf-8")
    for parameter in profile.params:
        for flag in (*parameter.opts, *parameter.secondary_opts):
            if flag.startswith("--") and flag not in ("--quiet", "--verbose", "--no-color"):
                assert f"`{flag}" in page or f" {flag}" in page, flag


def test_every_failure_of_ncu_is_documented() -> None:
    page = (ROOT / "docs/profile.md").read_text(encoding="utf-8")
    for failure in load_settings().failures:
        assert f"| `{failure.id}` |" in page, failure.id


def test_every_command_is_documented() -> None:
    documents = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    )
    for command in program.list_commands(Context(program)):
        assert f"ncuroof {command}" in documents, command


# ---- the other pages --------------------------------------------------------------------------------------------------------


def test_every_format_is_documented() -> None:
    text = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    assert [form for form in WRITERS["analysis"] if form != "term" and f"`.{form}`" not in text] == []


def test_every_error_is_documented() -> None:
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, errors.NcuroofError) and kind is not errors.NcuroofError:
            assert f"| `{kind.slug}` | `{name}` |" in page


@pytest.mark.parametrize("page", DOCUMENTS)
def test_links_between_documents_lead_somewhere(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", text):
        file = (ROOT / page).parent / target if target else ROOT / page
        assert file.exists(), target
        if anchor:
            assert anchor in _anchors(file), f"{target}#{anchor}"


@cache
def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {quantity_pages.anchor(heading) for heading in headings}


def test_the_products_that_are_measured_are_those_of_the_page() -> None:
    page = (ROOT / "docs/calibrate.md").read_text(encoding="utf-8")
    for size in (reachable_roofs._MATRIX, reachable_roofs._FP64_MATRIX, reachable_roofs._SMALL_MATRIX):
        assert f"of {size} × {size}" in page
