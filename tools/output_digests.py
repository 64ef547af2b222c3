"""Whether a change of the code changes anything that users see: a digest per output, of every command over every input.

    python -m tools.output_digests write before.txt --keep kept     # of one commit
    python -m tools.output_digests write after.txt --keep kept      # of another
    python -m tools.output_digests compare before.txt after.txt     # what differs, by command and format; then exit status 1
    python -m tools.output_digests compare before.txt after.txt --keep kept --show 'spills.*json'

`tools/covered_commands.py` says what is run. Commands run in this process, through the command line's own entry, each in a folder
of its own in which the inputs have fixed names. Paths, ncuroof's version and rates are taken out of the outputs; of a Parquet file,
the values count, not the bytes. What is kept is named by its digest, so one folder holds the outputs of any number of commits.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import io
import multiprocessing
import os
import re
import shlex
import shutil
import sys
import tempfile
import uuid
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import zstandard

from ncuroof import __version__
from ncuroof.cli import main as ncuroof
from tools.built_inputs import write_inputs
from tools.covered_commands import CASES, CORPUS, DATASET, Job, jobs

_INHERITED = ("HOME", "LD_LIBRARY_PATH", "PYTHONPATH", "SYSTEMROOT", "TEMP", "TMPDIR")
_FIXED = {
    "COLUMNS": "80", "LC_ALL": "C.UTF-8", "LINES": "24", "PATH": "", "POLARS_MAX_THREADS": "1", "TERM": "xterm-256color",
}  # fmt: skip
"""What the environment is for commands: nothing of the terminal, and no ncu or Python on the path."""

_VERSION = re.compile(rb"(ncuroof[^0-9\n]{0,40}?)" + re.escape(__version__.encode()))
_RATE = re.compile(rb"(\d+/\d+ reports, )[\d.]+/s")
_STANDARD_OUTPUT = "standard output"
_LONGEST_LINE = 500
"""Longer lines, such as those of a page's data, are broken before they are compared."""


class Output(NamedTuple):
    """What a command gave: a line of a file of digests.

    Attributes:
        digest: of the output's content.
        status: the command's exit status.
        errors: digest of what the command wrote to standard error.
        name: the command, and where the output went.
    """

    digest: str
    status: int
    errors: str
    name: str

    @property
    def group(self) -> str:
        """The command's name, and the format."""
        command = next(part for part in self.name.split() if "=" not in part and part != "ncuroof")
        return f"{command} {Path(self.name.rpartition(' > ')[2]).suffix or _STANDARD_OUTPUT}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare digests; return the exit status."""
    options = _parser().parse_args(arguments)
    if options.action == "compare":
        return compare(_read(options.before), _read(options.after), show=options.show, keep=options.keep)
    for folder in (options.corpus, options.cases):
        if not folder.is_dir():
            print(f"left out, because there is no such folder: {folder}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as built:
        write_inputs(Path(built))
        chosen = [
            job
            for job in jobs(Path(built), corpus=options.corpus, cases=options.cases)
            if options.only is None or any(re.search(options.only, job.name(words)) for words in job.commands)
        ]
        write(options.file, chosen, keep=options.keep, n_processes=options.jobs)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.output_digests", description=(__doc__ or "").partition("\n")[0]
    )
    actions = parser.add_subparsers(dest="action", required=True)
    writing = actions.add_parser("write", help="run everything and write a digest per output")
    writing.add_argument("file", type=Path)
    writing.add_argument("--only", metavar="PATTERN", help="only commands that match this regular expression")
    writing.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default: 2)")
    writing.add_argument("--corpus", type=Path, default=CORPUS, metavar="DIR", help="recorded reports, in folders")
    writing.add_argument("--cases", type=Path, default=CASES, metavar="DIR", help="small inputs of any kind")
    writing.add_argument("--keep", type=Path, metavar="DIR", help="keep the outputs there, compressed")
    comparing = actions.add_parser("compare", help="list the outputs that differ; exit status 1 if any does")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--show", metavar="PATTERN", help="show how outputs differ whose names match; needs --keep")
    comparing.add_argument("--keep", type=Path, metavar="DIR", help="where the outputs of both were kept")
    return parser


# ---- writing -----------------------------------------------------------------------------------------


def write(file: Path, chosen: Iterable[Job], *, keep: Path | None = None, n_processes: int = 1) -> None:
    """Run jobs and write the digest of each output, sorted by name.

    Raises:
        ValueError: the same command gave two outputs.
    """
    largest_first = sorted(chosen, key=lambda job: -job.n_bytes)
    run = partial(outputs, keep=keep)
    if n_processes == 1:
        done = list(map(run, largest_first))
    else:
        spawning = multiprocessing.get_context("spawn")  # polars' threads do not survive a fork
        with ProcessPoolExecutor(n_processes, mp_context=spawning) as pool:
            done = list(pool.map(run, largest_first))
    found = sorted({output for each in done for output in each}, key=lambda output: output.name)
    if several := [name for name, n in Counter(output.name for output in found).items() if n > 1]:
        raise ValueError(f"run twice with different outputs: {several}")
    file.write_text(
        "".join(f"{each.digest} {each.status} {each.errors} {each.name}\n" for each in found), encoding="utf-8"
    )
    print(f"{file}: {len(found)} outputs", file=sys.stderr)


def outputs(job: Job, *, keep: Path | None = None) -> list[Output]:
    """Run a job's commands; return what they printed and which files they wrote."""
    keep = keep and keep.resolve()
    found: list[Output] = []
    with _folder() as folder, _environment(folder, job.environment):
        for place, source in job.inputs.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).symlink_to(source.resolve())
        for words in job.commands:
            before = set(_files(folder))
            status, printed, errors = _run(words, encoding=job.environment.get("PYTHONIOENCODING", "utf-8"))
            written = {str(path.relative_to(folder)): path for path in _files(folder) if path not in before}
            contents = {_STANDARD_OUTPUT: printed} | {place: _content(path) for place, path in written.items()}
            said = _digest(_neutral(errors, folder), keep)
            found += [
                Output(_digest(_neutral(content, folder), keep), status, said, f"{job.name(words)} > {place}")
                for place, content in contents.items()
            ]
    return found


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder except those of a dataset, whose values `fleet` prints."""
    return (path for path in folder.rglob("*") if path.is_file() and DATASET not in path.relative_to(folder).parts)


def _run(words: Sequence[str], *, encoding: str) -> tuple[int, bytes, bytes]:
    """Run a command; return its exit status and what it wrote to standard output and standard error."""
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as errors:
        with _streams(printed.fileno(), errors.fileno(), encoding), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python tells each once per process, whichever command is first
            status = _status(words)
        printed.seek(0)
        errors.seek(0)
        return status, printed.read(), errors.read()


def _status(words: Sequence[str]) -> int:
    try:
        ncuroof(words)
    except SystemExit as exited:
        return int(exited.code or 0)
    except Exception as error:  # a traceback has lines that move; that there is one counts
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return -1
    return 0


@contextlib.contextmanager
def _streams(printed: int, errors: int, encoding: str) -> Iterator[None]:
    """Let standard output and standard error be these files, also for what writes to their descriptors."""
    originals = sys.stdout, sys.stderr
    kept = os.dup(1), os.dup(2)
    for stream in originals:
        stream.flush()
    os.dup2(printed, 1)
    os.dup2(errors, 2)
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(fd, "w", closefd=False), encoding=encoding) for fd in (1, 2))
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdout, sys.stderr = originals
        for fd, original in zip((1, 2), kept, strict=True):
            os.dup2(original, fd)
            os.close(original)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Make a folder whose name has always the same length, and no character that Markdown escapes or a shell quotes."""
    folder = Path(tempfile.gettempdir()).resolve() / f"digests{uuid.uuid4().hex}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def _environment(folder: Path, changed: Mapping[str, str]) -> Iterator[None]:
    """Work in a folder, with environment variables that are the same everywhere."""
    before, environment = Path.cwd(), dict(os.environ)
    os.environ.clear()
    os.environ.update({name: environment[name] for name in _INHERITED if name in environment} | _FIXED | dict(changed))
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)


def _content(path: Path) -> bytes:
    """Return a file's bytes, or if it is Parquet, its schema, metadata and values as text."""
    if path.suffix != ".parquet":
        return path.read_bytes()
    import polars as pl  # noqa: PLC0415  reads its number of threads from the environment

    table = pl.read_parquet(path)
    metadata = {name: text for name, text in pl.read_parquet_metadata(path).items() if name != "ARROW:schema"}
    columns = "".join(f"{name}: {kind}\n" for name, kind in table.schema.items())
    return f"{metadata}\n{columns}{table.write_ndjson()}".encode()


def _neutral(content: bytes, folder: Path) -> bytes:
    """Return an output without what may differ between two runs of the same code, and between versions of it."""
    content = content.replace(os.fsencode(folder), b"FOLDER")
    return _RATE.sub(rb"\1N/s", _VERSION.sub(rb"\1VERSION", content))


def _digest(content: bytes, keep: Path | None) -> str:
    digest = hashlib.sha256(content).hexdigest()[:16]
    if keep is not None and not (path := _kept(keep, digest)).exists():
        keep.mkdir(parents=True, exist_ok=True)
        partial_path = path.with_suffix(f".{os.getpid()}")
        partial_path.write_bytes(zstandard.compress(content))
        partial_path.replace(path)
    return digest


def _kept(keep: Path, digest: str) -> Path:
    return keep / f"{digest}.zst"


# ---- comparing ---------------------------------------------------------------------------------------


def compare(before: Mapping[str, Output], after: Mapping[str, Output], *, show: str | None, keep: Path | None) -> int:
    """Print which outputs differ, by command and format, and how if they match `show`; return 1 if any differs, else 0."""
    names = list(dict.fromkeys([*before, *after]))
    how_by_name = {name: how for name in names if (how := _difference(before.get(name), after.get(name)))}
    groups: dict[str, list[str]] = defaultdict(list)
    for name in how_by_name:
        groups[(before.get(name) or after[name]).group].append(name)
    totals = Counter((before.get(name) or after[name]).group for name in names)
    for group, members in sorted(groups.items()):
        print(f"{group}: {len(members)} of {totals[group]} differ")
        for name in members:
            print(f"  {how_by_name[name]}: {name}")
            if show is not None and re.search(show, name) and name in before and name in after:
                _show(before[name], after[name], keep)
    print(f"{len(how_by_name)} of {len(names)} outputs differ")
    return 1 if how_by_name else 0


def _difference(before: Output | None, after: Output | None) -> str:
    if before is None or after is None:
        return "only before" if after is None else "only after"
    parts = {
        "output": before.digest != after.digest,
        f"exit status {before.status} became {after.status}": before.status != after.status,
        "standard error": before.errors != after.errors,
    }
    return ", ".join(part for part, differs in parts.items() if differs)


def _show(before: Output, after: Output, keep: Path | None) -> None:
    if keep is None:
        raise SystemExit("--show needs --keep DIR, given to write as well")
    for what, old, new in (("output", before.digest, after.digest), ("standard error", before.errors, after.errors)):
        sys.stdout.writelines(
            f"{line}\n"
            for line in difflib.unified_diff(_lines(keep, old), _lines(keep, new), what, what, n=1, lineterm="")
        )


def _lines(keep: Path, digest: str) -> list[str]:
    path = _kept(keep, digest)
    if not path.exists():
        raise SystemExit(f"{keep} lacks {path.name}: write both files of digests with --keep {shlex.quote(str(keep))}")
    content = zstandard.decompress(path.read_bytes())
    if b"\0" in content:
        return [f"{len(content)} bytes, {digest}"]
    lines = content.decode(errors="replace").splitlines()
    broken = (re.sub(r"(,|\}|\]|>)", r"\1\n", line) if len(line) > _LONGEST_LINE else line for line in lines)
    return [part for line in broken for part in line.split("\n")]


def _read(file: Path) -> dict[str, Output]:
    lines = (line.split(" ", 3) for line in file.read_text(encoding="utf-8").splitlines())
    return {name: Output(digest, int(status), errors, name) for digest, status, errors, name in lines}


if __name__ == "__main__":
    sys.exit(main())
