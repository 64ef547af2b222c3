"""The bytes of a file, and their digest that is computed beside the reading."""

from __future__ import annotations

import hashlib
import mmap
from pathlib import Path
from threading import Thread

import pytest

from ncuroof.ingest.stored import LARGE_BYTES, RELEASE_BYTES, Digest, load, sha256

SIZES = [0, 1, LARGE_BYTES - 1, LARGE_BYTES, 2 * RELEASE_BYTES, 2 * RELEASE_BYTES + 5]


@pytest.mark.parametrize("size", SIZES)
def test_the_digest_is_that_of_all_bytes(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    written = (b"0123456789abcdef!" * (size // 17 + 1))[:size]
    path.write_bytes(written)
    content = load(path)
    assert isinstance(content, mmap.mmap) == (size >= LARGE_BYTES)
    assert Digest(content).hexdigest() == sha256(path) == hashlib.sha256(written).hexdigest()
    assert content[:] == written  # pages that were given back come again


def test_a_digest_whose_thread_failed_is_computed_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Thread, "run", lambda _: None)
    assert Digest(b"abc").hexdigest() == hashlib.sha256(b"abc").hexdigest()
