"""Set-up of all tests: settings of the process, which tests are long, where the corpus is."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")  # a deadline of 200 ms fails on a busy machine, whatever the code does
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell has programs that it starts in the background ignore Ctrl-C. Tests that interrupt a program need it heeded.
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.pop("COLUMNS", None)  # pytest-xdist sets it for its workers; commands would wrap their lines to it

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
NEED_MORE = ("corpus", "oracle", "browser", "cluster", "torch")
"""Markers of tests that need more than Python. `make test` leaves these out as it leaves out the long ones."""


@pytest.hookimpl(tryfirst=True)  # before -m is applied
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that need more than Python as long, so that `-m "not long"` leaves out both kinds."""
    for item in items:
        if any(item.get_closest_marker(name) for name in NEED_MORE):
            item.add_marker(pytest.mark.long)


def pytest_collection_finish() -> None:
    """Exclude what was collected from garbage collection, which would look at thousands of tests again and again."""
    gc.collect()
    gc.freeze()


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
