"""SARIF: valid by the schema, at the right lines of the repository, the same result after edits, and nothing of a name acts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import ncuroof
from ncuroof.present import render
from ncuroof.present.documents.comparison import comparison_document
from ncuroof.present.documents.sarif import comparison_sarif, report_sarif
from ncuroof.present.source_tree import NO_TREE, SourceTree
from tests.support.lined import lined_report
from tests.support.schemas import schema

ROOT = Path(__file__).resolve().parents[2]
STRIDED = ROOT / "fixtures/h100-80gb-hbm3/strided_32.full.ncu-repz"


def run_of(text: str) -> dict[str, Any]:
    """Return the run of a log that the schema allows."""
    log = json.loads(text)
    jsonschema.Draft7Validator(schema("sarif-2.1.0")).validate(log)
    (run,) = log["runs"]
    found: dict[str, Any] = run
    return found


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(inner)


@pytest.fixture(scope="module")
def lined(tmp_path_factory) -> dict[str, Any]:
    """The document of a report with lines and their text: line 9 of inlined.h, called at line 4 of inlined.cu."""
    path = tmp_path_factory.mktemp("lined") / "lined.ncu-rep"
    path.write_bytes(lined_report())
    return ncuroof.read(path).analyse().to_dict()


def with_line(lined: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the document with one finding, whose only line is line 7 of a.cu unless changed."""
    (kernel,) = lined["kernels"]
    finding = next(each for each in kernel["findings"] if each["where"])
    line = {**finding["where"]["lines"][0], "file": "a.cu", "line": 7, "text": "x = y;", "callers": [], "awaits": []}
    where = {**finding["where"], "lines": [line | changes]}
    return {**lined, "kernels": [{**kernel, "findings": [{**finding, "where": where}]}]}


# ---- findings ----------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_recorded_finding_is_at_its_line_of_the_repository(monkeypatch) -> None:
    monkeypatch.chdir(ROOT / "docs")  # the root is found from within
    run = run_of(render(ncuroof.read(STRIDED).analyse(), "sarif").decode())
    rules = run["tool"]["driver"]["rules"]
    first = run["results"][0]
    assert first["ruleId"] == rules[first["ruleIndex"]]["id"] == "uncoalesced_global_load"
    assert first["level"] == "error"
    assert "consecutive" in rules[first["ruleIndex"]]["help"]["text"]
    place = first["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "fixtures/suite/memory.cu", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 29},
    }
    line = (ROOT / "fixtures/suite/memory.cu").read_text(encoding="utf-8").splitlines()[28]
    assert "[" in line  # an access to an array
    assert "read_strided" in first["message"]["text"]
    assert "% of its time" in first["message"]["text"]


def test_a_line_of_a_header_is_told_at_its_call(lined) -> None:
    run = run_of(report_sarif(lined, NO_TREE))
    assert run["results"]
    for result in run["results"]:
        place = result["locations"][0]["physicalLocation"]
        assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("inlined.cu", 4)
        related = [each["physicalLocation"] for each in result["relatedLocations"]]
        assert ("inlined.h", 9) in [(each["artifactLocation"]["uri"], each["region"]["startLine"]) for each in related]


def test_what_has_no_line_is_no_result(lined) -> None:
    (kernel,) = lined["kernels"]
    without = [{**finding, "where": None} for finding in kernel["findings"]]
    assert run_of(report_sarif({**lined, "kernels": [{**kernel, "findings": without}]}, NO_TREE))["results"] == []
    assert run_of(report_sarif(with_line(lined, line=0), NO_TREE))["results"] == []


@pytest.mark.parametrize(("severity", "level"), [("high", "error"), ("medium", "warning"), ("low", "note")])
def test_the_level_is_that_of_the_severity(lined, severity: str, level: str) -> None:
    one = with_line(lined)
    one["kernels"][0]["findings"][0]["severity"] = severity
    (result,) = run_of(report_sarif(one, NO_TREE))["results"]
    assert result["level"] == level


def test_launches_of_a_kernel_are_one_result(lined) -> None:
    one = with_line(lined)
    (kernel,) = one["kernels"]
    twice = {**one, "kernels": [kernel, {**kernel, "id": 1}]}
    (result,) = run_of(report_sarif(twice, NO_TREE))["results"]
    assert result["occurrenceCount"] == 2
    assert result["properties"]["kernels"] == [0, 1]
    assert "(2 launches)" in result["message"]["text"]


# ---- fingerprints ------------------------------------------------------------------------------------


def fingerprint(lined: dict[str, Any], **changes: Any) -> str:
    (result,) = run_of(report_sarif(with_line(lined, **changes), NO_TREE))["results"]
    found: str = result["partialFingerprints"]["ncuroof/v1"]
    return found


def test_a_result_stays_the_same_where_lines_come_above_it(lined) -> None:
    assert fingerprint(lined) == fingerprint(lined, line=9) == fingerprint(lined, text="  x = y; ")
    assert len({fingerprint(lined), fingerprint(lined, text="x = z;"), fingerprint(lined, file="b.cu")}) == 3


def test_results_on_lines_that_say_the_same_are_told_apart(lined) -> None:
    one, other = with_line(lined)["kernels"][0], with_line(lined, line=8)["kernels"][0]
    results = run_of(report_sarif({**lined, "kernels": [one, {**other, "id": 1}]}, NO_TREE))["results"]
    assert [each["partialFingerprints"]["ncuroof/v1"][-2:] for each in results] == [":1", ":2"]


# ---- names from reports ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("/etc/passwd", "etc/passwd"),
        ("../../secret.cu", "secret.cu"),
        ("javascript:alert(1)", "javascript%3Aalert%281%29"),
        ("a b\n.cu", "a%20b%0A.cu"),
        ("\udcff.cu", "%3F.cu"),
        ("Base/int.jl.cu", "Base/int.jl.cu"),
    ],
)
def test_a_uri_is_relative_whatever_the_report_says(lined, file: str, uri: str) -> None:
    one = with_line(lined, file=file, callers=[])
    results = run_of(report_sarif(one, NO_TREE))["results"]
    assert [each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in results] in ([uri], [])


def test_a_hostile_name_is_no_link_and_no_placeholder(lined) -> None:
    name = "[click](https://example.com) {0}\x1b[2J"
    one = with_line(lined)
    one["kernels"][0] |= {"name": name, "short_name": name}
    text = report_sarif(one, NO_TREE)
    assert text.isascii()
    (result,) = run_of(text)["results"]
    assert "\\[click\\](https://example.com) {{0}}\\\\u001b\\[2J" in result["message"]["text"]


@pytest.mark.long
def test_no_folder_of_the_machine_is_in_the_log() -> None:
    log = render(ncuroof.read(STRIDED).analyse(), "sarif").decode()
    assert not [text for text in strings(json.loads(log)) if str(ROOT) in text or "/root/" in text or "/home/" in text]


# ---- files of the repository -------------------------------------------------------------------------


def test_of_files_with_one_name_the_line_tells_which(tmp_path: Path) -> None:
    for folder, text in (("one", "a\nb\n"), ("two", "a\nc\n"), (".hidden", "a\nb\n"), ("env", "a\nb\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "k.cu").write_text(text, encoding="utf-8")
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert SourceTree.around(tmp_path / "one").path({"file": "k.cu", "line": 2, "text": "b"}) == "k.cu"
    (tmp_path / ".git").mkdir()
    tree = SourceTree.around(tmp_path / "one")
    assert tree.path({"file": "k.cu", "line": 2, "text": " b"}) == "one/k.cu"
    assert tree.path({"file": "k.cu", "line": 2, "text": "c"}) == "two/k.cu"
    for text in ("d", None):
        assert tree.path({"file": "k.cu", "line": 2, "text": text}) == "k.cu"
    assert tree.path({"file": "k.cu", "line": 9, "text": "b"}) == "k.cu"


# ---- regressions -------------------------------------------------------------------------------------


def compared(folder: Path, *, before_ns: float, after_ns: float) -> dict[str, Any]:
    runs = []
    for name, duration_ns, n_at_9 in (("before", before_ns, 600), ("after", after_ns, 5400)):
        path = folder / f"{name}.ncu-rep"
        path.write_bytes(lined_report(duration_ns=duration_ns, n_at_9=n_at_9))
        runs.append(ncuroof.read(path).analyse())
    return comparison_document(ncuroof.compare(*runs))


@pytest.mark.long
def test_a_regression_is_at_the_line_whose_time_grew(tmp_path: Path) -> None:
    run = run_of(comparison_sarif(compared(tmp_path, before_ns=1e6, after_ns=1.5e6), NO_TREE))
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("inlined.cu", 4)
    assert result["ruleId"] == run["tool"]["driver"]["rules"][0]["id"] == "slower_than_before"
    assert "1.5× slower" in result["message"]["text"]
    assert result["level"] == "warning"


@pytest.mark.long
def test_what_got_faster_is_no_result_and_a_failed_gate_is_a_notification(tmp_path: Path) -> None:
    found = compared(tmp_path, before_ns=1.5e6, after_ns=1e6)
    found["gates"] = [{"gate": "time:-90%", "has_passed": False, "reasons": ["GPU time changed by -33.3 %"]}]
    run = run_of(comparison_sarif(found, NO_TREE))
    assert run["results"] == []
    (said,) = run["invocations"][0]["toolExecutionNotifications"]
    assert said == {"message": {"text": "gate failed: time:-90%: GPU time changed by -33.3 %"}, "level": "warning"}


@pytest.mark.long
def test_a_regression_without_a_line_is_a_notification(tmp_path: Path) -> None:
    found = compared(tmp_path, before_ns=1e6, after_ns=1.5e6)
    for match in found["matches"]:
        match["place"] = None
    run = run_of(comparison_sarif(found, NO_TREE))
    assert run["results"] == []
    assert "_Z5scalePfi: 1.5× slower" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
