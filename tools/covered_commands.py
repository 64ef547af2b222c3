"""What `tools/output_digests.py` runs: every command in every format, over every input that there is.

Inputs are the reports of fixtures/, those that `tools/built_inputs.py` builds, and where they are beside the checkout, a corpus of
recorded reports and small cases of other inputs.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from ncuroof.cli import main as ncuroof

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
CORPUS = ROOT.parent / "shared/corpus"
CASES = ROOT.parent / "shared/cases"
TRACE = ROOT / "tests/collect/traces/h100-training-step.json.gz"
DATASET = "dataset"
"""The folder that jobs ingest into."""

_REPORT_SUFFIXES = (".ncu-rep", ".ncu-repz")
_INPUT_SUFFIXES = (*_REPORT_SUFFIXES, ".csv", ".log", ".txt", ".ipynb")
_SIMULATED = ("fixtures/simulated/h200-training-step.ncu-rep", "fixtures/simulated/h200-training-step-mended.ncu-rep")
_STEP = {gpu: f"fixtures/{gpu}/train_transformer.roofline.ncu-repz" for gpu in ("h100-80gb-hbm3", "h200")}
_WIDE = {"COLUMNS": "120"}
_COLOURED = {"COLORTERM": "truecolor", "FORCE_COLOR": "1"}
_MOST_BYTES_TO_PAIR = 3_000_000
"""Larger reports are not compared with their neighbours, which would take most of the time."""

Inputs = Mapping[str, Path]
"""Files by their place in the folder in which a command runs."""

Words = tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """Commands to run one after another in a folder of their own.

    Attributes:
        commands: the words of each, without `ncuroof`.
        inputs: files that are in the folder.
        environment: variables that differ from the usual ones.
    """

    commands: Sequence[Words]
    inputs: Inputs = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_bytes(self) -> int:
        """Size of the inputs, by which the time can be told."""
        return sum(path.stat().st_size for path in self.inputs.values())

    def name(self, words: Words) -> str:
        """Return one of the commands as typed in a shell."""
        return shlex.join([*(f"{name}={value}" for name, value in self.environment.items()), "ncuroof", *words])


def jobs(built: Path, *, corpus: Path = CORPUS, cases: Path = CASES) -> Iterator[Job]:
    """Yield everything to run.

    Args:
        built: folder with what `tools/built_inputs.py` wrote.
        corpus: recorded reports, in folders; may be absent.
        cases: inputs of any kind; may be absent.
    """
    places = {"fixtures": FIXTURES, "built": built, "corpus": corpus, "cases": cases}
    inputs = {
        f"{name}/{path.relative_to(folder)}": path
        for name, folder in places.items()
        for path in sorted(folder.glob("**/*"))
        if path.name.endswith(_INPUT_SUFFIXES)
    }
    for place in inputs:
        yield from _of_input(place, _with_sidecars(place, inputs))
    yield from _comparisons(inputs)
    yield from _choices(inputs)
    yield from _what_ifs(inputs)
    yield from _dataset(inputs)
    yield from _without_inputs()
    yield from _profiling()
    yield from _errors(inputs)


def _with_sidecars(place: str, inputs: Inputs) -> dict[str, Path]:
    """Return an input and what belongs to it: files with its name and another suffix."""
    path = inputs[place]
    beside = [path, *path.parent.glob(f"{path.name.removesuffix(path.suffix)}.*.json")]
    return {f"{Path(place).parent}/{each.name}": each for each in beside}


def _several(inputs: Inputs, *places: str) -> dict[str, Path]:
    return {name: path for place in places for name, path in _with_sidecars(place, inputs).items()}


def _written(stem: str, *suffixes: str) -> Words:
    """Return options that write these formats and print the text."""
    return (*(word for suffix in suffixes for word in ("-o", f"{stem}.{suffix}")), "-o", "-")


# ---- over inputs -------------------------------------------------------------------------------------


def _of_input(place: str, files: Inputs) -> Iterator[Job]:
    yield Job([("report", "-v", place, *_written("r", "json", "html", "md", "csv", "parquet", "txt"))], files)
    if place.startswith("fixtures/"):
        yield Job([("report", place)], files, _WIDE)  # with the page beside it
    elif not place.startswith("corpus/"):
        yield Job([("report", place, "-o", "-")], files, _WIDE)
    yield Job([("whatif", place, "--gpu", "b200", "--change", "bytes:0.5", *_written("w", "json", "md"))], files)
    if place.endswith(_REPORT_SUFFIXES):
        yield Job([("redact", place, "redacted.ncu-rep")], files)
    if "brief" in _names("--help"):
        yield Job([("brief", place, "--format", form) for form in ("json", "md")], files)


def _comparisons(inputs: Inputs) -> Iterator[Job]:
    formats = _written("c", "json", "md", "html", "xml")
    before, after = _SIMULATED
    files = _several(inputs, before, after)
    gates = ("--gate", "time:+5%", "--gate", "kernel(.*).time:+5%", "--gate", "findings.high<=2")
    yield Job(
        [
            ("compare", before, after, *gates, "--save-baseline", "baseline.json", *formats),
            ("compare", "baseline.json", before, "--gate", "time:-10%"),
            ("compare", before, "baseline.json", "--format", "junit"),
            ("compare", after, before, "--quiet", "--format", "md"),
            ("compare", before, "--pair", "sgemm_naive.*=transpose_tile.*"),
            ("compare", before, before),
            ("compare", "--history", before, after, "baseline.json", *_written("h", "json")),
        ],
        files,
    )
    yield Job([("compare", before, after)], files, _COLOURED)
    yield Job([("compare", before, after)], files, _WIDE)
    by_name: dict[str, list[str]] = {}
    for place in inputs:
        by_name.setdefault(Path(place).name, []).append(place)
    of_two_gpus = [places for name, places in by_name.items() if len(places) == 2 and places[0].startswith("fixtures/")]
    neighbours = [
        pair
        for pair in list(pairwise(inputs))[::2]
        if Path(pair[0]).parent == Path(pair[1]).parent
        and sum(inputs[place].stat().st_size for place in pair) < _MOST_BYTES_TO_PAIR
    ]
    for first, second in {*map(tuple, of_two_gpus), *neighbours}:
        if (first, second) != (before, after):
            yield Job([("compare", first, second, *formats)], _several(inputs, first, second))


def _choices(inputs: Inputs) -> Iterator[Job]:
    """Yield reports of some launches, of several reports, with roofs, a trace, other readers, and on other terminals."""
    simulated, mended = _SIMULATED
    files = _several(inputs, simulated, mended)
    for environment in (_COLOURED, {"PYTHONIOENCODING": "ascii"}, {"COLUMNS": "50"}, {"NO_COLOR": "1", **_COLOURED}):
        yield Job([("report", simulated, "-o", "-"), ("report", "-q", simulated, "-o", "-")], files, environment)
    formats = _written("part", "json", "html", "md", "csv")
    for words in (
        ("-k", "gemm|norm"),
        ("--launch-skip", "3", "--launch-count", "4"),
        ("-k", "copy", "--launch-count", "1"),
    ):
        yield Job([("report", simulated, *words, *formats), ("report", simulated, *words)], files)
    yield Job([("report", simulated, mended, *_written("both", "json", "html", "md", "csv", "parquet"))], files)
    yield Job(
        [("report", simulated, simulated, "built/damaged/cut.ncu-rep")],
        files | _several(inputs, "built/damaged/cut.ncu-rep"),
    )
    for gpu, place in _STEP.items():
        roofs = {f"{name}.json": FIXTURES / name / "calibration.json" for name in _STEP}
        step = _several(inputs, place) | roofs
        formats = _written("r", "json", "html", "md")
        yield Job([("report", place, "--calibration", f"{gpu}.json", *formats)], step)
        yield Job([("report", place, "--nvtx", r"layers\.0 ", *formats)], step)
        yield Job([("report", place, *(word for name in roofs for word in ("--calibration", name)), "-o", "-")], step)
        trace = {place: inputs[place], "trace.json.gz": TRACE}
        yield Job([("report", place, "--trace", "trace.json.gz", *formats)], trace)
        yield Job([("report", place, "-o", "-")], {place: inputs[place]}, {"COLUMNS": "81"})  # without counts beside it
    for place in [simulated, *[each for each in inputs if "/h200/" in each or each.startswith("built/damaged/")]][::3]:
        for reader in ("native", "nvidia"):
            yield Job([("report", place, "--reader", reader, *_written(reader, "json"))], _with_sidecars(place, inputs))


def _what_ifs(inputs: Inputs) -> Iterator[Job]:
    simulated, files = _SIMULATED[0], _with_sidecars(_SIMULATED[0], inputs)
    every_gpu = [word for name in _gpus() for word in ("--gpu", name)]
    formats = _written("w", "json", "md")
    yield Job([("whatif", simulated, *every_gpu, *formats)], files)
    yield Job([("whatif", simulated, "--gpu", "b200", "--gpu", "h100-sxm@1500MHz")], files, _COLOURED)
    changes = ("l2:0.5", "flop:0.5", "sm:0.5", "batch:4", "dtype:bf16", "dtype:fp8", "bytes:2")
    yield Job([("whatif", simulated, "--change", change, *_written(change, "json", "md")) for change in changes], files)
    yield Job(
        [("whatif", simulated, "--change", "bytes:0.5", "--only", "norm", "--gpu", "same@1.2GHz", *formats)], files
    )
    step = _STEP["h200"]
    fused = ("--fuse", "layer_norm_grad_input_kernel_vectorized,GammaBetaBackwardCUDAKernelTemplate")
    yield Job([("whatif", step, *fused, "--gpu", "same", *formats)], _with_sidecars(step, inputs))


def _dataset(inputs: Inputs) -> Iterator[Job]:
    damaged = (
        "cut",
        "doubled",
        "flipped_00",
        "flipped_01",
        "text",
    )  # one that fails: several are in the order of their folder's hash
    chosen = {each for each in inputs if each.startswith("built/constructed/")} - {"built/constructed/none.ncu-rep"}
    places = [*_SIMULATED, _STEP["h200"], *sorted(chosen), *(f"built/damaged/{name}.ncu-rep" for name in damaged)]
    files = _several(inputs, *places)
    ingest = ("ingest", "-o", DATASET, "--threads", "--workers", "1")
    fleet = ("fleet", DATASET)
    yield Job(
        [
            (*ingest, *_SIMULATED, "--label", "commit=abc"),
            (*ingest, "built", "fixtures", "--label", "commit=def"),
            (*ingest, *_SIMULATED, "--label", "machine=m1", "--again", "--quiet"),
            (*fleet, *_written("f", "json", "md")),
            (*fleet, "--top", "100", "--by", "report", "--by", "label:commit"),
            (*fleet, "--gpu", "H200", "--kernel", "gemm", "--since", "2026-01-01"),
            (*fleet, "--failures", *_written("failures", "json", "md")),
            (*fleet, "--sql", "SELECT * FROM kernels ORDER BY report_sha256, id", "--format", "json"),
            (
                *fleet,
                "--sql",
                "SELECT gpu_name, SUM(duration_ns) AS t FROM kernels GROUP BY gpu_name ORDER BY t, gpu_name",
            ),
            (*fleet, "--sql", "SELECT nothing FROM kernels"),
            (*fleet, "--sql", "DROP TABLE kernels"),
            (*fleet, "--kernel", "no such kernel"),
            (*fleet, "--by", "nothing"),
            (*ingest, "--scheduler", "tcp://localhost:1", _SIMULATED[0]),
            (*ingest, "--label", "commit", _SIMULATED[0]),
            (*ingest, "no-such-folder"),
        ],
        files,
    )


# ---- without inputs ----------------------------------------------------------------------------------


def _printed(*words: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        ncuroof(words)
    return printed.getvalue()


def _names(*words: str) -> list[str]:
    """Return the names that a command lists, each on a line of its own, indented by two blanks."""
    return re.findall(r"^  ([a-z][\w-]*)", _printed(*words).rpartition("Commands:\n")[2], re.MULTILINE)


def _gpus() -> list[str]:
    return [line.split()[0] for line in _printed("gpus").splitlines()[1:] if line.strip()]


def _without_inputs() -> Iterator[Job]:
    yield Job([(), ("--help",), ("--version",), ("model",), ("gpus",), ("explain",)])
    for environment in (_WIDE, _COLOURED):
        yield Job(
            [("--help",), ("model",), ("gpus",), ("gpus", "h100-sxm"), ("explain",), ("explain", "roofline")],
            {},
            environment,
        )
    yield Job([(command, "--help") for command in _names("--help")])
    yield Job([("gpus", name) for name in _gpus()])
    explained = re.findall(r"(?<=  )\S+(?: \S+)*", _printed("explain"))
    yield Job([("explain", name) for name in dict.fromkeys(explained)])
    yield Job([("explain", *words.split()) for words in ("long scoreboard", "Memory", "bf16", "not a name", "")])
    signatures = re.findall(r"^  ([a-z][\w-]*)((?: [A-Z_]+)+)$", _printed("model"), re.MULTILINE)
    for name, sizes in signatures:
        shared = ("--link-bytes-per-s", "450G") if "sharded" in name else ()
        model, given = ("model", name, *shared), ["128"] * len(sizes.split())
        formats = ("json", "md", "csv", "svg", "html")
        yield Job(
            [
                (*model, "--help"),
                (*model, *given, *_written("one", *formats)),
                (
                    *model,
                    "64:1024",
                    *given[1:],
                    "--gpu",
                    "a100-sxm-80gb",
                    "--gpu",
                    "b200",
                    *_written("sweep", *formats),
                ),
                (*model, *given, "--dtype", "fp8", "--dtype", "fp32", "--gpu", "tpu-v6e"),
                (*model, *given, "--achieved-time", "1ms"),
                (*model, *given, "--backward"),
                (*model, *given, "--gpu", "h200"),
                (*model, *given[1:]),
                (*model, "none", *given[1:]),
            ]
        )


def _profiling() -> Iterator[Job]:
    """Yield what `profile` does without a GPU."""
    script = {"train.py": ROOT / "examples/train_transformer.py"}
    for capability in ("7.0", "8.0", "9.0", "10.0", "12.0"):
        for level in ("quick", "roofline", "full"):
            words = ("profile", "--level", level, "--compute-capability", capability)
            yield Job(
                [
                    (*words, "--remote-plan", f"{level}.sh", "./app"),
                    (*words, "--dry-run", "--lines", "-k", "gemm", "./app"),
                ]
            )
    yield Job([("profile", "--remote-plan", "-", "--step", "10", "--annotate", "train.py", "--epochs", "1")], script)


def _errors(inputs: Inputs) -> Iterator[Job]:
    simulated = _SIMULATED[0]
    yield Job(
        [
            ("nonsense",),
            ("-q", "-v", "gpus"),
            ("gpus", "h1000"),
            ("explain", "nothing"),
            ("model", "nothing"),
            ("model", "gemm", "0", "1", "1"),
            ("model", "gemm", "1", "1", "1", "--dtype", "fp3"),
            ("model", "gemm", "1", "1", "1", "--gpu", "h1000"),
            ("report",),
            ("report", "missing.ncu-rep"),
            ("report", "."),
            ("report", ""),
            ("report", simulated, "--format", "xml"),
            ("report", simulated, "-o", "r.pdf"),
            ("report", simulated, "-o", "no/such/folder/r.json"),
            ("report", simulated, "-o", simulated, "--format", "json", "--force"),
            ("report", simulated, "-o", "r.json", "--format", "md"),
            ("report", simulated, "-k", "("),
            ("report", simulated, "-k", "no such kernel"),
            ("report", simulated, "--nvtx", "no such range"),
            ("report", simulated, "--launch-skip", "1000"),
            ("report", simulated, "--launch-count", "0"),
            ("report", simulated, "--calibration", simulated),
            ("report", simulated, "--trace", simulated),
            ("report", simulated, "--trace", "missing.json"),
            ("report", simulated, "--reader", "other"),
            ("compare", simulated),
            ("compare", simulated, "missing.json"),
            ("compare", simulated, simulated, "--gate", "time>3"),
            ("compare", simulated, simulated, "--gate", "kernel(.*).nothing>=1"),
            ("compare", simulated, "--pair", "nothing=more"),
            ("compare", simulated, "--history"),
            ("compare", simulated, simulated, "-o", "c.csv"),
            ("whatif", simulated),
            ("whatif", simulated, "--gpu", "h1000"),
            ("whatif", simulated, "--gpu", "h100-sxm@0MHz"),
            ("whatif", simulated, "--change", "speed:2"),
            ("whatif", simulated, "--change", "bytes:0.5", "--only", "nothing"),
            ("whatif", simulated, "--fuse", "a,b"),
            ("redact", "missing.ncu-rep", "out.ncu-rep"),
            ("redact", simulated, simulated, "--force"),
            ("redact", simulated, "kept.ncu-repz", "--keep", "sass", "--keep", "source"),
            ("redact", simulated, "kept.ncu-repz"),
            ("redact", simulated, "-"),
            ("ingest",),
            ("ingest", simulated, "-o", simulated),
            ("fleet", "missing"),
            ("profile",),
            ("profile", "--level", "most", "./app"),
            ("profile", "--step", "x", "train.py"),
        ],
        _with_sidecars(simulated, inputs),
    )
