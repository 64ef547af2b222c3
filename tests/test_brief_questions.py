"""Questions with known answers are answered by packets of 4 KB, and the table in the docs says how many bytes that saves."""

from __future__ import annotations

import re
import runpy

import pytest

from ncuroof.present.brief import BUDGET_BYTES
from tools import brief_questions

QUESTIONS = brief_questions.questions()
BIG = "train_transformer.roofline"


def test_there_are_forty_questions_or_more_about_several_reports() -> None:
    assert len({question.ask for question in QUESTIONS}) >= 40
    assert len({question.report for question in QUESTIONS}) >= 8


@pytest.mark.long
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.ask)
def test_a_packet_alone_answers(question: brief_questions.Question) -> None:
    assert len(question.packet().encode()) <= BUDGET_BYTES
    assert question.is_answered()


def test_a_wrong_answer_is_none() -> None:
    question = next(each for each in QUESTIONS if each.at == "do[0].id")
    assert question.is_answered()
    wrong = brief_questions.Question(question.report, question.ask, question.at, question.kernel, "dram_roof")
    assert not wrong.is_answered()


@pytest.mark.long
def test_the_table_is_fresh() -> None:
    text = brief_questions.FILE.read_text(encoding="utf-8")
    of_ncu = re.compile(r"\| [\d–]+ \|$", re.MULTILINE)  # what another version of ncu prints has another size
    assert of_ncu.sub("", brief_questions.page(text)) == of_ncu.sub("", text), "run make pages"


@pytest.mark.long
def test_the_loop_of_the_example_ends_at_the_roof(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(brief_questions.ROOT / "examples/optimise_loop.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert re.findall(r"^(\w+): (\w+)", printed, re.MULTILINE) == [
        ("gemv_naive", "latency"),
        ("gemv_vectorised", "memory"),
    ]
    assert re.search(r"stop: 9\d% of the roofline$", printed.strip())
