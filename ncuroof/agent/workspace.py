"""The files that a server may read, those below one folder, and the analyses of the latest ones.

A path is resolved with all its links before anything is opened, so neither `..` nor a link leads out of the folder. This also holds
for the launch counts beside a report. Analyses are kept by the content of the report and of its counts.
"""

from __future__ import annotations

import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from ncuroof import read
from ncuroof.analysis import Analysis
from ncuroof.comparison import Run
from ncuroof.errors import OutsideRootError, ReportAccessError, ReportNotFoundError
from ncuroof.formatting import printable, shortened
from ncuroof.ingest.file_content import sha256
from ncuroof.reading import BASELINE_SUFFIX, read_run
from ncuroof.sidecars.counts import counts_path

_N_KEPT = 4
"""Number of analyses that are kept. One of ten thousand launches takes some 100 MB."""

_N_AT_ONCE = 2
"""Number of analyses that run at once. One of ten thousand launches takes about 1 GB while it runs."""

_MOST_SHOWN = 120

Progress = Callable[[float], None]


class Workspace:
    """The files below a folder, read-only.

    Args:
        root: the folder.

    Raises:
        ReportNotFoundError: there is no such folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))
        if not self._root.is_dir():
            raise ReportNotFoundError(f"{root}: no such folder", hint="name the folder that holds the reports")
        self._kept: OrderedDict[tuple[str, ...], Analysis] = OrderedDict()
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(_N_AT_ONCE)
        self._lock_by_key: dict[tuple[str, ...], threading.Lock] = {}

    def file(self, name: str) -> Path:
        """Return the real path of a file below the root.

        Args:
            name: relative to the root, or absolute.

        Raises:
            OutsideRootError: the name leads out of the root, whether or not the file exists.
            ReportNotFoundError: the file does not exist, or it is a folder, a device or a pipe.
            ReportAccessError: the system does not allow access to the file.
        """
        shown = shortened(printable(name), _MOST_SHOWN)
        try:
            found = Path(os.path.realpath(self._root / name))
            if not found.is_relative_to(self._root):
                raise OutsideRootError(f"{shown}: outside of the folder that the server may read", hint=_BELOW)
            mode = found.stat().st_mode
        except OutsideRootError:
            raise
        except (FileNotFoundError, NotADirectoryError, ValueError) as error:  # ValueError: the name contains a NUL
            raise ReportNotFoundError(f"{shown}: no such file", hint=_BELOW) from error
        except OSError as error:
            raise ReportAccessError(f"{shown}: cannot be read", hint="check its permissions") from error
        if not stat.S_ISREG(mode):
            raise ReportNotFoundError(f"{shown}: expected a file, found something else", hint=_BELOW)
        return found

    def analysis(self, name: str, on_progress: Progress = lambda _: None) -> Analysis:
        """Return the analysis of a report below the root. Analyses are kept by content.

        Args:
            name: path of the report.
            on_progress: called with the share read so far, and before the analysis; an exception that it raises ends the work.

        Raises:
            NcuroofError: the path leads out of the root, or the file cannot be read.
        """
        report = self.file(name)
        beside = counts_path(report)
        counts = self.file(str(beside)) if os.path.lexists(beside) else None
        key = tuple(sha256(path) for path in (report, counts) if path is not None)
        with self._lock:
            own = self._lock_by_key.setdefault(key, threading.Lock())
        with own, self._slots:  # two calls for the same report analyse it once
            if (kept := self._kept_one(key)) is None:
                on_progress(0.0)  # raises if the call was cancelled while it waited
                try:
                    found = read(report, on_progress=on_progress)
                    on_progress(1.0)
                    kept = found.analyse()
                except BaseException:
                    with self._lock:
                        self._lock_by_key.pop(key, None)
                    raise
                self._keep(key, kept)
        return kept

    def run(self, name: str, on_progress: Progress = lambda _: None) -> Run:
        """Return the run to compare of a report or of a baseline (.json) below the root.

        Raises:
            NcuroofError: the path leads out of the root, or the file cannot be read.
        """
        path = self.file(name)
        return read_run(path) if path.suffix == BASELINE_SUFFIX else self.analysis(name, on_progress).run()

    def _kept_one(self, key: tuple[str, ...]) -> Analysis | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: tuple[str, ...], analysis: Analysis) -> None:
        with self._lock:
            self._kept[key] = analysis
            while len(self._kept) > _N_KEPT:
                dropped, _ = self._kept.popitem(last=False)
                self._lock_by_key.pop(dropped, None)


_BELOW = "name a file below the server's root, relative to it"
