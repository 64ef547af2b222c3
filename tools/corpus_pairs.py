"""What ncuroof promised for changes that people made to their kernels, against what the changes saved: a table in Markdown.

    python -m tools.corpus_pairs                        # of the folder of recorded reports beside the checkout
    python -m tools.corpus_pairs --cache kept --source leimao --out table.md

`fixtures/suite/corpus_pairs.toml` pairs launches before and after a change. Analyses kept in the folder that `--cache` names are
used again unless ncuroof or its profiles have changed since. A saving may be negative: then the change made the kernel slower.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tomli

import ncuroof
from tools.covered_commands import CORPUS, FIXTURES, ROOT

PAIRS = FIXTURES / "suite/corpus_pairs.toml"
COLUMNS = ("source", "before → after", "done", "saved", "promised at most", "expected")
NOT_FOUND = "not found"


@dataclass(frozen=True)
class Pair:
    """One pair of corpus_pairs.toml with the analyses of both launches, as in ncuroof's JSON.

    Attributes:
        entry: the pair as the file has it.
        before: the launch before the change.
        after: the launch after it.
    """

    entry: Mapping[str, Any]
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def saved(self) -> float:
        """The share of the time before that the change saved."""
        work = float(Fraction(self.entry["work"].replace(" ", "")))
        return 1 - float(self.after["duration_ns"]) * work / float(self.before["duration_ns"])

    @property
    def promised(self) -> dict[str, float | str | None]:
        """The upper bound of each finding that names the change, as a share of the time before; None where it has no bound."""
        listed = {finding["id"]: self._share(finding["gain_ns"]) for finding in self.before["findings"]}
        return {name: listed.get(name, NOT_FOUND) for name in self.entry["findings"]}

    @property
    def expected(self) -> dict[str, list[float | None]]:
        """What a prediction gives for each of these findings, likewise: its parts in the order of the document."""
        named = [finding for finding in self.before["findings"] if finding["id"] in self.entry["findings"]]
        return {
            finding["id"]: parts
            for finding in named
            if (parts := [self._share(finding[key]) for key in finding if re.fullmatch("expected.*_ns", key)])
        }

    def _share(self, saved_ns: float | None) -> float | None:
        return None if saved_ns is None else saved_ns / self.before["duration_ns"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table; return the exit status."""
    options = _parser().parse_args(arguments)
    if not options.corpus.is_dir():
        print(f"nothing to compare, because there is no such folder: {options.corpus}", file=sys.stderr)
        return 0
    with TemporaryDirectory() as temporary:
        kept = options.cache or Path(temporary)
        kept.mkdir(parents=True, exist_ok=True)
        found = [pair for pair in pairs(options.corpus, kept) if options.source in pair.entry["source"]]
    print(*table(found), sep="\n", file=options.out)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.corpus_pairs", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--corpus", type=Path, default=CORPUS, metavar="DIR", help="recorded reports, in folders")
    parser.add_argument(
        "--cache", type=Path, metavar="DIR", help="keep the analyses there, and use those that are there"
    )
    parser.add_argument("--source", default="", metavar="TEXT", help="only pairs whose source contains this")
    parser.add_argument("--out", type=argparse.FileType("w", encoding="utf-8"), default="-", metavar="FILE")
    return parser


def pairs(corpus: Path, kept: Path, file: Path = PAIRS) -> Iterator[Pair]:
    """Yield the pairs of `file` whose reports are in `corpus`; analyses are read from `kept`, or kept there."""
    for entry in tomli.loads(file.read_text(encoding="utf-8"))["pair"]:
        sides = [entry["before"], entry["after"]]
        if all((corpus / side["file"]).is_file() for side in sides):
            before, after = (_launches(corpus, side["file"], kept)[side["id"]] for side in sides)
            yield Pair(entry, before, after)


@cache
def _launches(corpus: Path, name: str, kept: Path) -> dict[int, Mapping[str, Any]]:
    """Return the launches of a report by id."""
    analysed = kept / f"{name.replace('/', '__')}.json"
    if not analysed.exists() or analysed.stat().st_mtime < _changed():
        ncuroof.read(corpus / name).analyse().write(analysed, force=True)
    return {kernel["id"]: kernel for kernel in json.loads(analysed.read_text(encoding="utf-8"))["kernels"]}


@cache
def _changed() -> float:
    """Return when ncuroof or its profiles changed last."""
    return max(path.stat().st_mtime for folder in ("ncuroof", "profiles") for path in (ROOT / folder).rglob("*.[pt]*"))


def table(found: Sequence[Pair]) -> Iterator[str]:
    """Yield the lines of a table with a row for each pair."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|" + "---|" * len(COLUMNS)
    for pair in found:
        yield f"| {' | '.join(_cells(pair))} |"


def _cells(pair: Pair) -> Iterator[str]:
    yield pair.entry["source"]
    yield " → ".join(f"`{side['short_name']}`" for side in (pair.before, pair.after))
    yield pair.entry["done"] + ("" if pair.entry["isolated"] else " (and more)")
    yield f"{pair.saved:.1%}"
    yield ", ".join(f"`{name}` {_text(bound)}" for name, bound in pair.promised.items()) or "–"
    yield ", ".join(f"`{name}` {'/'.join(map(_text, parts))}" for name, parts in pair.expected.items()) or "–"


def _text(share: float | str | None) -> str:
    return share if isinstance(share, str) else "–" if share is None else f"{share:.1%}"


if __name__ == "__main__":
    sys.exit(main())
