"""A machine without PyTorch."""

from __future__ import annotations

import sys

import pytest

import ncuroof
from ncuroof.errors import MissingExtraError


def test_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ncuroof.torch.counting", None)
    with pytest.raises(MissingExtraError) as error:
        ncuroof.torch.expect()
    assert "ncuroof[torch]" in str(error.value.hint)
