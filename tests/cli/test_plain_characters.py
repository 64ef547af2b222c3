"""Where an encoding lacks a character, what is printed reads alike."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ncuroof.cli.streams import ERRORS, replace_what_cannot_be_encoded
from tests.support.patience import PATIENCE_S


@pytest.mark.parametrize(
    ("text", "encoding", "printed"),
    [
        ("26.1 µs ×2 · 1 → 2…", "ascii", b"26.1 us x2 . 1 > 2~"),
        ("2.04 ms ▼, 3 ms ▲", "ascii", b"2.04 ms v, 3 ms ^"),
        ("26.1 µs ×2 · 1 → 2…", "latin-1", b"26.1 \xb5s \xd72 \xb7 1 > 2~"),
        ("█▓▒░·", "ascii", b"#=+:."),
        ("±2.7 % ≥ 5 − 1 — café Aᵀ", "ascii", b"+-2.7 % >= 5 - 1 - cafe AT"),
        ("漢字?", "ascii", b"???"),
    ],
)
def test_characters_that_an_encoding_lacks_are_replaced(text: str, encoding: str, printed: bytes) -> None:
    replace_what_cannot_be_encoded()
    assert text.encode(encoding, ERRORS) == printed


def test_undecodable_input_stays_an_error() -> None:
    replace_what_cannot_be_encoded()
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", ERRORS)


@pytest.mark.long
@pytest.mark.parametrize("words", [("explain", "tail_wave"), ("model", "gemm", "128", "128", "128"), ("whatif",)])
def test_every_command_prints_what_an_ascii_terminal_shows(words: tuple[str, ...]) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "ncuroof", *words], capture_output=True, timeout=PATIENCE_S, env=environment, check=False
    )
    printed = done.stdout + done.stderr  # whatif prints a usage error, whose REPORT… is not ASCII
    assert printed
    assert printed.isascii()
