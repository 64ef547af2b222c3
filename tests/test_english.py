"""Docstrings, comments and messages use none of the phrases that had to be read twice, each with the wording to use instead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ncuroof

PACKAGE = Path(ncuroof.__file__).parent
ROOMS = (
    "agent", "batch", "cli", "collect", "comparison", "expected", "fleet", "ingest", "model", "ncu", "roofline", "sidecars",
    "testing", "torch", "whatif",
)  # fmt: skip
"""Rooms whose English was revised; the top-level modules are checked as well. Add a room when it is done."""

BETTER_BY_PHRASE = {
    r"\bwhere (?:(?:it|that|this|they|these) (?:is|are) )?(?:not )?known\b": "if known, if unknown",
    r"\b(?:None|null|empty) where (?:there (?:is|are)|none|it (?:does|has)|nothing)\b": "None if …, or None",
    r"\b(?:its|whose|the) like\b(?! of)": "the match, the same",
    r"\bless one\b": "minus one",
    r"\bmakes? (?:it )?seem possible\b": "the noise",
    r"\b(?:is|are) told\b": "is reported, is distinguished",
    r"\btells? (?:nothing|apart)\b": "say nothing, distinguish",
    r"(?<!there )(?<!usually )\b(?:is|are) none\b(?! of)": "is not a …, is missing",
    r"\bas of (?:[A-Z]|`)": "as in",
    r"\bsuch (?:a one|ones)\b": "repeat the noun",
    r"\b(?:it|they|that|which|value|text|path) (?:is|are) no (?!longer\b|more\b|less\b|such\b)[a-z]": "is not a",
    r"\blikewise of\b": "repeat the noun",
    r"\bof what a\b": "of a",
    r"\bfor want of\b": "because there is no",
    r"\bof these, (?:of|that)\b": "repeat the noun",
}


FOLDERS = (PACKAGE, *sorted({path.parent for room in ROOMS for path in (PACKAGE / room).rglob("*.py")}))


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.relative_to(PACKAGE.parent).as_posix() for folder in FOLDERS])
def test_a_newcomer_reads_each_sentence_only_once(folder: Path) -> None:
    found = [
        f"{path.relative_to(PACKAGE.parent)}: “{text[max(match.start() - 40, 0) : match.end() + 20]}”: write {better}"
        for path in sorted(folder.glob("*.py"))
        for text in [re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))]
        for phrase, better in BETTER_BY_PHRASE.items()
        for match in re.finditer(phrase, text)
    ]
    assert not found, "\n".join(found)


def test_every_phrase_is_found_in_the_sentence_that_it_was_taken_from() -> None:
    sentences = (
        "None where that is not known.", "None where there is none.", "every group has its like", "after over before, less one",
        "the change that chance alone makes seem possible", "what is malformed is told", "what no data sheet tells nothing of",
        "A smaller change is none.", "a text as of `instances_text`", "of which such a one can be neither seen", "it is no text",
        "likewise of the run after", "of what a run has", "for want of documents", "of these, of several",
    )  # fmt: skip
    for phrase, sentence in zip(BETTER_BY_PHRASE, sentences, strict=True):
        assert re.search(phrase, sentence), (phrase, sentence)
