"""What findings share stands once in the rules, and means what it would mean if it stood in each of them."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ncuroof import resources
from ncuroof.diagnosis import load_rules
from ncuroof.diagnosis.rules import complete_findings
from ncuroof.errors import ProfileError

PROFILES = resources.folder("profiles")
RAW = resources.read_profile("rules.toml")

_PATTERNS = {"name", "not_name", "ranges"}
_REFERENCES = {"base", "kernels", "not_kernels"}


def completed(
    finding: dict[str, Any], base: dict[str, Any] | None = None, kernels: dict[str, Any] | None = None
) -> dict[str, Any]:
    return complete_findings({"finding": {"f": finding}, "base": base or {}, "kernels": kernels or {}})["f"]


def test_a_finding_has_what_its_bases_say_and_it_does_not() -> None:
    bases = {
        "wait": {"group": "stall", "severity": "low", "lines": ["samples"]},
        "loads": {"base": "wait", "severity": "high", "advice_cub": "Widen"},
    }
    assert completed({"base": "loads", "lines": ["loads"], "advice": "Unroll"}, bases) == {
        "group": "stall",
        "severity": "high",
        "lines": ["loads"],
        "advice_cub": "Widen",
        "advice": "Unroll",
        "variant": [],
    }


def test_variants_of_a_base_come_before_those_of_its_finding() -> None:
    variants = [{"family": "cub", "name": name, "advice": "Wait"} for name in "abc"]
    bases = {"first": {"variant": variants[:1]}, "second": {"base": "first", "variant": variants[1:2]}}
    assert completed({"base": "second", "variant": variants[2:]}, bases)["variant"] == variants


def test_the_stall_of_a_finding_stands_wherever_its_base_asks_for_it() -> None:
    bases = {
        "stall": {
            "when": ["stalls.$stall >= 0.3"],
            "gain": {"default": "{stalls.$stall} * 2 - {stalls.$stall}"},
        },
        "wait": {"base": "stall", "stall": "wait"},
    }
    of_wait = completed({"base": "wait"}, bases)
    assert of_wait["when"] == ["stalls.wait >= 0.3"]
    assert of_wait["gain"] == {"default": "{stalls.wait} * 2 - {stalls.wait}"}
    assert completed({"base": "wait", "stall": "drain"}, bases)["when"] == ["stalls.drain >= 0.3"]
    with pytest.raises(ProfileError, match="stall"):
        completed({"base": "stall"}, bases)


def test_a_variant_has_what_its_kernels_say_and_it_does_not() -> None:
    kernels = {
        "sum": {"family": "pytorch", "name": "sum_functor", "advice": "Fuse it", "remark": "Reduce.cuh"},
        "gradient": {"kernels": "sum", "ranges": "Backward", "remark": "autograd"},
    }
    finding = {"variant": [{"kernels": "gradient"}, {"kernels": "sum", "advice": "Leave it"}]}
    assert completed(finding, kernels=kernels)["variant"] == [
        {"family": "pytorch", "name": "sum_functor", "ranges": "Backward", "advice": "Fuse it"},
        {"family": "pytorch", "name": "sum_functor", "advice": "Leave it"},
    ]


def test_a_finding_is_for_or_not_for_kernels_by_their_name_alone() -> None:
    kernels = {
        "sum": {"family": "pytorch", "name": "sum", "advice": "Fuse"},
        "part": {"kernels": "sum", "name": "psum"},
    }
    assert completed({"kernels": "sum", "not_kernels": "part"}, kernels=kernels) == {
        "name": "sum",
        "not_name": "psum",
        "variant": [],
    }


def test_a_family_has_the_advice_of_another_where_it_has_none() -> None:
    bases = {"b": {"advice_cub": "Widen", "same_advice": {"cub": "library", "inductor": "pytorch"}}}
    finding = completed({"base": "b", "advice_library": "Align", "advice_pytorch": "Fuse"}, bases)
    assert (finding["advice_cub"], finding["advice_inductor"]) == ("Widen", "Fuse")
    assert "same_advice" not in finding
    with pytest.raises(ProfileError, match="advice_triton"):
        completed({"same_advice": {"inductor": "triton"}})


def test_advice_from_pytorch_comes_after_all_variants() -> None:
    finding = {
        "advice_cublas_from_pytorch": "Batch",
        "advice_cublas": "Align",
        "variant": [{"family": "cublas", "name": "gemv", "advice": "Group"}],
        "same_advice": {"cublas_gemv_from_pytorch": "cublas"},
    }
    assert completed(finding) == {
        "advice_cublas": "Align",
        "variant": [
            {"family": "cublas", "name": "gemv", "advice": "Group"},
            {"family": "cublas", "is_from_pytorch": True, "advice": "Batch"},
            {"family": "cublas_gemv", "is_from_pytorch": True, "advice": "Align"},
        ],
    }


@pytest.mark.parametrize("finding", [{"base": "absent"}, {"kernels": "absent"}, {"variant": [{"kernels": "absent"}]}])
def test_what_a_finding_refers_to_has_to_exist(finding: dict[str, Any]) -> None:
    with pytest.raises(ProfileError, match=r"finding\.f: .*absent"):
        completed(finding)


def test_a_reference_to_nothing_is_reported_with_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(PROFILES, tmp_path, dirs_exist_ok=True)
    changed = tmp_path / "rules" / "waits_for_memory.toml"
    text = changed.read_text(encoding="utf-8")
    changed.write_text(text.replace('\nbase = "loads_in_flight"\n', '\nbase = "absent"\n', 1), encoding="utf-8")
    monkeypatch.setattr(resources, "folder", lambda _: tmp_path)
    with pytest.raises(ProfileError, match=r"^rules/waits_for_memory\.toml: finding\.serial_loads: .*absent"):
        load_rules.__wrapped__()


_WRONG_FINDING = '[finding.wrong]\ntitle = "Wrong"\nverdicts = []\nevidence = []\nadvice = "None."\n'
_WRONG_NODE = '[[node]]\nid = "wrong"\nquestion = "?"\nyes = "ran"\nno = "ran"\nunknown = "ran"\n'


@pytest.mark.parametrize(
    ("file", "added", "said"),
    [
        (
            "rules/dram.toml",
            _WRONG_FINDING + 'when = ["duration_ns > x"]',
            r"finding\.wrong: condition 'duration_ns > x': expected a number, found 'x'",
        ),
        (
            "rules/dram.toml",
            _WRONG_FINDING + 'when_any = "duration_ns > 1"',
            r"finding\.wrong: expected a list of conditions, found 'duration_ns > 1'",
        ),
        (
            "rules/dram.toml",
            _WRONG_FINDING + 'rank = "last"',
            r"finding\.wrong: rank: expected one of overrides, first, cause, general, found 'last'",
        ),
        (
            "rules/dram.toml",
            _WRONG_FINDING + "when = [1]",
            r"finding\.wrong: expected a condition, such as 'occupancy\.waves >= 1', found 1",
        ),
        (
            "rules/dram.toml",
            '[caveat.wrong]\ndoc = "Wrong"\nwhen = ["duration_ns"]',
            r"caveat\.wrong: condition 'duration_ns': expected a comparison, .* found its end",
        ),
        (
            "rules.toml",
            _WRONG_NODE + 'condition = "duration_ns is known"',
            r"node\.wrong: expected a comparison with a number, found 'duration_ns is known'",
        ),
    ],
)
def test_a_fault_in_an_entry_is_reported_with_its_file_and_name(
    file: str, added: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(PROFILES, tmp_path, dirs_exist_ok=True)
    changed = tmp_path / file
    changed.write_text(f"{changed.read_text(encoding='utf-8')}\n{added}\n", encoding="utf-8")
    monkeypatch.setattr(resources, "folder", lambda _: tmp_path)
    with pytest.raises(ProfileError, match=rf"^{file}: {said}$"):
        load_rules.__wrapped__()


def test_what_is_shared_is_used_at_least_twice() -> None:
    used = Counter(value for key, value in _strings(RAW) if key in _REFERENCES)
    shared = {*RAW["base"], *RAW["kernels"]}
    assert len(shared) == len(RAW["base"]) + len(RAW["kernels"])
    assert {name: used[name] for name in shared if used[name] < 2} == {}


def test_no_pattern_for_names_stands_twice() -> None:
    patterns = Counter(value for key, value in _strings(RAW) if key in _PATTERNS)
    assert [pattern for pattern, n_times in patterns.items() if n_times > 1] == []


def test_kernels_with_a_name_say_where_they_are_from() -> None:
    assert {name for name, entry in RAW["kernels"].items() if not entry.get("remark")} == set()


def _strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield all strings in a parsed TOML file with the key that each belongs to."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _strings(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each, key)
    elif isinstance(value, str):
        yield key, value
