"""Writes fixtures/README.md: what each recording costs in bytes, and which tests read it.

`make pages` runs it; the tests compare.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "fixtures/README.md"
FOLDERS = ("h200", "h100-80gb-hbm3")
READS_ALL = "tests/suite/test_recordings.py"
MAKES_ITS_OWN = "tests/suite/test_keep.py"

_SUFFIXES = (".ncu-repz", ".json")
_LEVEL = re.compile(r"\.(\w+)\.ncu-repz$")

_ABOUT = f"""# Recordings

Reports that tests read. Those of a GPU were recorded by [suite/record.py](suite/record.py), with kernels of planted properties;
`provenance.toml` says of each when and by which command it was made, and holds its hash. [suite/WANTED.md](suite/WANTED.md) says
what the next GPU should record. `simulated/` is what `make fixtures` writes: two reports of 0.2 MB in which nothing is measured,
for tests that need no recording. A source distribution leaves most recordings out. Written by `make pages`.

`{READS_ALL}` reads every file: its hash, whether it tells anything of its machine, and whether the answers
for its cases are right; `tests/whatif/recorded_pairs.py` reads every report whose cases both GPUs have, and `make digests` all.
The tables have the largest first, and name the tests that need a file besides: one without is kept for its answers alone.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([_ABOUT, *map(_section, FOLDERS)])


def _section(folder: str) -> str:
    files = [path for path in (ROOT / "fixtures" / folder).iterdir() if path.suffix in _SUFFIXES]
    tests_by_file = {path: list(readers(path)) for path in sorted(files, key=lambda path: (-_size(path), path.name))}
    alone = [path for path, tests in tests_by_file.items() if not tests]
    lines = [
        f"| `{path.name}` | {_size(path):,} | {', '.join(f'`{test}`' for test in tests)} |"
        for path, tests in tests_by_file.items()
    ]
    of_all, of_these = (f"{sum(map(_size, each)):,} bytes" for each in (files, alone))
    total = f"{len(files)} files, {of_all}; {len(alone)} of them, {of_these}, for their answers alone."
    return "\n".join([f"## {folder}", "", total, "", "| file | bytes | tests |", "|---|---|---|", *lines, ""])


def _size(path: Path) -> int:
    return path.stat().st_size


def readers(recording: Path) -> Iterator[str]:
    """Yield the tests that name a recording: whole, or by its case where they add the level to the names of several cases."""
    level = _LEVEL.search(recording.name)
    case = _LEVEL.sub("", recording.name)
    for test, text in _tests().items():
        is_added = level is not None and f'}}.{level[1]}.ncu-repz"' in text and f'"{case}"' in text
        if recording.parent.name in text and (recording.name in text or is_added):
            yield test


@cache
def _tests() -> dict[str, str]:
    """Return the text of each test that may read some recordings and not all, by its path."""
    paths = {path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / "tests").rglob("test_*.py"))}
    return {
        name: path.read_text(encoding="utf-8") for name, path in paths.items() if name not in {READS_ALL, MAKES_ITS_OWN}
    }


def main() -> None:
    """Write the page."""
    FILE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
