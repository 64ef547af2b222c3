"""What a report says is text in Markdown, and acts as markup in none; of the summary, see test_markdown."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ncuroof.comparison import compare
from ncuroof.fleet import FLEET_FAILURES
from ncuroof.fleet.questions import across_gpus, by_time, code_versions, overview
from ncuroof.present.documents.comparison import comparison_document
from ncuroof.present.documents.fleet import fleet_document
from ncuroof.present.documents.projection import projection_document
from ncuroof.present.texts import comparison as comparison_text
from ncuroof.present.texts import fleet as fleet_text
from ncuroof.present.texts import projection as projection_text
from ncuroof.present.texts.layout import code, escaped, table_row
from ncuroof.roofline import profile_by_name
from ncuroof.whatif import Target, project
from tests.comparison import runs
from tests.fleet import launches as of_fleet
from tests.present.test_markdown import HOSTILE
from tests.whatif import launches as of_whatif

_CODE = re.compile(r"(?<!\\)`[^`]+`")
_MARKUP = re.compile(r"(?<!\\)(?:\\\\)*[\[\]*_`<>&~]")


def of_comparison(name: str) -> str:
    before, after = (runs.run(runs.launch(name, us)) for us in (300.0, 100.0))
    document = comparison_document(compare(before, after))
    document["before"]["label"] = document["after"]["gpus"][0] = name
    document["comparable"]["remarks"] = [name]
    (match,) = document["matches"]
    document["added"] = match["after"]
    match["lines"] = [{"file": name, "line": [84, 84], "text": name, "callers": [], "time_ns": [2e5, 1e5]}]
    document["gates"] = [{"gate": name, "has_passed": False, "reasons": [name]}]
    return comparison_text.to_markdown(document)


def of_projection(name: str) -> str:
    busy = of_whatif.table(of_whatif.launch(name))
    target = Target(profile_by_name("a100-sxm-80gb"))
    projection = project(busy, {0: profile_by_name("h100-sxm")}, [target])
    document: dict[str, Any] = projection_document(busy, projection, sources=[name], changes=[name], remarks=[name])
    document["targets"][0]["n_limited_by_assumed_l2"] = 1
    for kernel in document["kernels"]:
        kernel["projections"][0]["n_limited_by_assumed_l2"] = 1
    return projection_text.to_markdown(document)


def of_fleets(name: str) -> str:
    rows = of_fleet.fleet(of_fleet.launch("a", 0, 100.0, name=name, short_name=name, gpu_name=name))
    failures = FLEET_FAILURES.to_frame()
    document = fleet_document(
        name, overview(rows), by_time(rows), across_gpus(rows), [], code_versions(rows), failures, top=3
    )
    document["changes"] = [{"by": f"label:{name}", "n_steps": 0, "n_series": 0, "n_compared": 0}]
    return fleet_text.to_markdown(document)


@pytest.mark.parametrize("text", [*HOSTILE, ""])
@pytest.mark.parametrize("write", [of_comparison, of_projection, of_fleets])
def test_hostile_names_act_as_markup_nowhere(write: Any, text: str) -> None:
    hostile, plain = ([unspanned(line) for line in write(name).splitlines()] for name in (text, "plain"))
    assert list(map(n_cells, hostile)) == list(map(n_cells, plain))
    for line, harmless in zip(hostile, plain, strict=True):
        assert len(_MARKUP.findall(line)) == len(_MARKUP.findall(harmless)), line
        assert not re.search("[\x1b\u202e]", line)


def unspanned(line: str) -> str:
    """Return a line without its code spans, which hold no bars and in which nothing else acts."""
    assert not any("|" in span for span in _CODE.findall(line))
    return _CODE.sub("", line)


def n_cells(line: str) -> int:
    return len(re.findall(r"(?<!\\)(?:\\\\)*\|", line))


def test_a_name_is_code_where_a_code_span_can_hold_it() -> None:
    # within a code span nothing is escaped: a backslash or an entity would be shown as it is written
    assert code("vector<float>(T *)") == "`vector<float>(T *)`"
    assert code("operator|") == r"operator\|"
    assert code("a`b") == r"a\`b"
    assert code(" ") == " "


def test_text_is_escaped_once() -> None:
    assert escaped("[x](y) | *a_b* <c> & \\") == r"\[x\]\(y\) \| \*a\_b\* \<c\> \& " + "\\\\"
    assert table_row((code("a"), escaped("b|c"))) == r"| `a` | b\|c |"
