from __future__ import annotations

import json
import math

import pytest

from ncuroof.present.documents.json_text import json_text


def test_a_document_reads_back_and_has_a_line_for_each_entry_of_a_list() -> None:
    document = {
        "schema": "x/1",
        "none": None,
        "empty": [],
        "kernels": [{"id": 0, "name": "größe \n"}, {"id": 1, "grid": [1, 2]}],
    }
    text = json_text(document)
    assert json.loads(text) == document
    assert text.splitlines() == [
        "{",
        ' "schema": "x/1",',
        ' "none": null,',
        ' "empty": [],',
        ' "kernels": [',
        '  {"id": 0, "name": "größe \\n"},',
        '  {"id": 1, "grid": [1, 2]}',
        " ]",
        "}",
    ]


def test_what_a_terminal_would_obey_is_escaped_and_reads_back() -> None:
    document = {
        "name": "\x1b]52;c;QQ==\x07 \x7f \x9b31m \u202e \u2028 \u2029 \ufeff",
        "kernels": [{"\x9b": "größe 😀"}],
    }
    text = json_text(document)
    assert json.loads(text) == document
    assert text == (
        '{\n "name": "\\u001b]52;c;QQ==\\u0007 \\u007f \\u009b31m \\u202e \\u2028 \\u2029 \\ufeff",\n'
        ' "kernels": [\n  {"\\u009b": "größe 😀"}\n ]\n}\n'
    )


def test_what_json_cannot_say_is_an_error() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_text({"kernels": [{"duration_ns": math.nan}]})
