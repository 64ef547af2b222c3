"""A machine without PyTorch."""

from __future__ import annotations

import sys

import pytest

import ncuroof
from ncuroof.errors import MissingExtraError


def test_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ncuroof.torch.counting", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError) as error:
        ncuroof.torch.expect()
    assert "ncuroof[torch]" in str(error.value.hint)


def test_something_else_that_is_missing_is_not_called_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ncuroof.torch.counting", None)
    with pytest.raises(ImportError) as error:
        ncuroof.torch.expect()
    assert not isinstance(error.value, MissingExtraError)
