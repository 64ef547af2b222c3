"""The pytest plugin: the fixture `ncuroof_profile` profiles a function if there is a GPU, and replays a recorded report if not.

To record, ncu runs pytest once more with only this test. In that process, one call of the function is the step to profile.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ncuroof import profiling
from ncuroof.profiling import REPORT_SUFFIXES, found_report, last_words, record_call

if TYPE_CHECKING:
    from ncuroof.testing.kernels import Report

_FIXTURE, _MARKER = "ncuroof_profile", "ncuroof"
_CALL, _REPORTS = "NCUROOF_PYTEST_CALL", "NCUROOF_PYTEST_REPORTS"
"""Environment variables of the process that ncu runs: the call of the fixture to record, and the folder of earlier reports."""

_NOT_IN_NAMES = re.compile(r"[^\w.=-]+")
_MARKER_OPTIONS = {"report", "level", "kernel", "warmups"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("ncuroof", "profiles of GPU kernels")
    group.addoption(
        "--ncuroof",
        dest="ncuroof_mode",
        choices=("auto", "record", "replay"),
        default="auto",
        help="ncuroof_profile: record where ncu and a GPU are, else replay (auto); record and keep the reports; only replay.",
    )
    parser.addini(
        "ncuroof_reports",
        "folder of recorded reports, seen from the folder of the test's file",
        default="ncuroof_reports",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers",
        "ncuroof(report=None, level='roofline', kernel=None, warmups=1): profiles kernels with ncuroof_profile; the recorded "
        "report to replay, the level and the kernels of ncuroof profile, and the calls before the one that is recorded",
    )


@pytest.hookimpl(tryfirst=True)  # before -m is applied
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use the fixture, so that -m ncuroof selects them."""
    for item in items:
        if _FIXTURE in getattr(item, "fixturenames", ()) and item.get_closest_marker(_MARKER) is None:
            item.add_marker(_MARKER)


class ProfileFixture:
    """Profiles a function; the value of the fixture `ncuroof_profile`.

    Args:
        item: the test.
        folder: folder of new reports, before they are kept; the same for all calls.
    """

    def __init__(self, item: pytest.Item, folder: Callable[[], Path]) -> None:
        self._item, self._folder, self._n_calls = item, functools.cache(folder), 0
        marker = item.get_closest_marker(_MARKER)
        self._asked: dict[str, Any] = dict(marker.kwargs) if marker is not None else {}
        unknown = [*sorted(self._asked.keys() - _MARKER_OPTIONS), *map(repr, marker.args if marker is not None else ())]
        if unknown:
            known = ", ".join(f"{name}=" for name in sorted(_MARKER_OPTIONS))
            raise pytest.UsageError(f"{item.nodeid}: the marker ncuroof takes {known}, found {', '.join(unknown)}")

    def __call__(self, function: Callable[..., object], *args: Any, **kwargs: Any) -> Report:
        """Return the report of one call of `function` with these arguments, after `warmups` calls that are not recorded.

        If there is neither a GPU nor a recorded report, the test is skipped. If a report is replayed, `function` is not called.
        """
        self._n_calls += 1
        recorded = os.environ.get(_CALL)
        if recorded is not None and int(recorded) == self._n_calls:
            for _ in range(self._n_warmups + 1):
                profiling.one_call(function, args, kwargs)
            pytest.skip("recorded: the test itself goes on in the process that asked for it")
        if recorded is not None:
            return self._read(found_report(Path(os.environ[_REPORTS]) / self._name), is_recorded_now=True)
        mode = self._item.config.getoption("ncuroof_mode")
        if mode == "record" or (mode == "auto" and _can_record()):
            recorded_now = self._record()
            return self._read(self._keep(recorded_now) if mode == "record" else recorded_now, is_recorded_now=True)
        return self._read(found_report(self._kept), is_recorded_now=False)

    @property
    def _n_warmups(self) -> int:
        """The number of calls before the recorded one: at least one, so that nothing of the test's set-up is recorded."""
        return max(int(self._asked.get("warmups", 1)), 1)

    @property
    def _name(self) -> str:
        """The name of this call's report, without suffix: "test_norms.test_rmsnorm", "….test_rmsnorm.2" of a second call."""
        test = self._item.nodeid.partition("::")[2].replace("::", ".")
        number = "" if self._n_calls == 1 else f".{self._n_calls}"
        return _NOT_IN_NAMES.sub("_", f"{self._item.path.stem}.{test}").strip("_") + number

    @property
    def _kept(self) -> Path:
        """The recorded report beside the test, without suffix unless the marker names one."""
        beside = self._item.path.parent
        if (named := self._asked.get("report")) is not None and self._n_calls == 1:
            return beside / str(named)
        return beside / str(self._item.config.getini("ncuroof_reports")) / self._name

    def _keep(self, report: Path) -> Path:
        """Move a report to its place beside the test, where it replaces an earlier one, and return its path."""
        kept = (
            self._kept
            if self._kept.suffix in REPORT_SUFFIXES
            else self._kept.with_name(self._kept.name + report.suffix)
        )
        kept.parent.mkdir(parents=True, exist_ok=True)
        for earlier in filter(None, (found_report(self._kept),)):
            earlier.unlink()
        return Path(shutil.copy(report, kept))

    def _record(self) -> Path:
        """Record this call, and return the report's path. If that is impossible, fail the test with ncuroof's message."""
        path = self._folder() / f"{self._name}{REPORT_SUFFIXES[0]}"
        config, level = self._item.config, str(self._asked.get("level", "roofline"))
        of_pytest = ("-n", "0") if config.pluginmanager.hasplugin("xdist") else ()
        plugin = ("-p", __name__) if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD") else ()
        done = record_call(
            ("-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *of_pytest, self._item.nodeid),
            path,
            level=level,
            kernel=self._asked.get("kernel"),
            warmups=self._n_warmups,
            environment={_CALL: str(self._n_calls), _REPORTS: str(path.parent)},
            folder=config.rootpath,
        )
        written = found_report(path.with_name(self._name))
        if done.returncode != 0 or written is None:
            said = f"exit code {done.returncode}:\n{last_words(done)}"
            pytest.fail(f"ncuroof could not record {self._item.nodeid}, {said}", pytrace=False)
        return written

    def _read(self, path: Path | None, *, is_recorded_now: bool) -> Report:
        from ncuroof.reading import read  # noqa: PLC0415  loads polars, which tests without kernels do not need
        from ncuroof.testing.kernels import Report  # noqa: PLC0415

        if path is None:
            pytest.skip(
                f"no GPU to profile on here, and no recorded report {os.path.relpath(self._kept)}.ncu-rep: "
                "pytest --ncuroof=record writes it on a machine with ncu and a GPU"
            )
        return Report(str(path), read(path).analyse(), is_recorded_now)


@pytest.fixture
def ncuroof_profile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ProfileFixture:
    """Profile the kernels of one call of a function, and return their report; see `ProfileFixture.__call__`."""
    return ProfileFixture(request.node, lambda: tmp_path_factory.mktemp("ncuroof"))


def _can_record() -> bool:
    """Return whether this machine has ncu and a GPU."""
    from ncuroof.errors import NcuNotFoundError  # noqa: PLC0415
    from ncuroof.ncu.machine import RECORDS_HERE, find_gpus, find_ncu  # noqa: PLC0415

    try:
        return RECORDS_HERE and bool(find_ncu(os.environ)) and bool(find_gpus(os.environ))
    except NcuNotFoundError:
        return False
