"""A profile whose tables stand in several files reads as if they stood in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncuroof import resources
from ncuroof.errors import ProfileError
from ncuroof.resources import read_profile


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(resources, "folder", lambda _: tmp_path)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules.toml").write_text("[order]\nfirst = 1\n[finding.a]\n", encoding="utf-8")
    return tmp_path


def test_a_folder_adds_tables_and_entries_of_tables(profiles: Path) -> None:
    (profiles / "rules" / "one.toml").write_text("[finding.b]\nx = 1\n[caveat.c]\n", encoding="utf-8")
    (profiles / "rules" / "two.toml").write_text("[[finding.d.variant]]\n", encoding="utf-8")
    (profiles / "rules" / "README.md").write_text("No data.", encoding="utf-8")
    found = read_profile("rules.toml")
    assert found == {
        "order": {"first": 1},
        "finding": {"a": {}, "b": {"x": 1}, "d": {"variant": [{}]}},
        "caveat": {"c": {}},
    }
    assert list(found["finding"]) == ["a", "b", "d"]


@pytest.mark.parametrize(
    ("text", "what"), [("[finding.a]\nx = 1\n", r"finding\.a"), ("[[finding]]\n", "finding"), ("order = 1\n", "order")]
)
def test_what_another_file_says_already_is_named_with_the_second_file(profiles: Path, text: str, what: str) -> None:
    (profiles / "rules" / "more.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError, match=rf"^rules/more\.toml: another file has {what} as well$"):
        read_profile("rules.toml")


def test_a_file_without_a_folder_is_all_there_is(profiles: Path) -> None:
    (profiles / "order.toml").write_text("first = 1\n", encoding="utf-8")
    assert read_profile("order.toml") == {"first": 1}


def test_a_text_in_several_lines_is_one_paragraph(profiles: Path) -> None:
    (profiles / "rules" / "more.toml").write_text(
        '[finding.b]\nadvice = """\n  Load 16 bytes\n  per thread  (float4),\n\n\tor less.\n"""\n'
        'lines = ["""a\nb"""]\nname = "  two  spaces "\n',
        encoding="utf-8",
    )
    assert read_profile("rules.toml")["finding"]["b"] == {
        "advice": "Load 16 bytes per thread  (float4), or less.",
        "lines": ["a b"],
        "name": "  two  spaces ",
    }
