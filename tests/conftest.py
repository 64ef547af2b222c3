"""What several tests need: where the corpus of other people's reports is, and the scripts of docs/."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))
CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"


def corpus_files() -> list[Path]:
    """Return the reports of the corpus, none where it is absent."""
    return sorted(path for path in CORPUS.glob("*/*") if path.is_file())


@pytest.fixture(scope="session")
def corpus() -> list[Path]:
    """The reports of the corpus; the test is skipped where there are none."""
    files = corpus_files()
    if not files:
        pytest.skip("the corpus of recorded reports is not beside this checkout")
    return files
