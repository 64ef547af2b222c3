"""`ncuroof whatif` as programs see it: formats, exit codes, errors."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import ncuroof
from ncuroof.whatif import Target, busy_times, change, parse_change, project
from ncuroof.whatif.schemas import BUSY_TIMES
from tests.cli.running import run_main
from tests.support import demo


@pytest.mark.long
def test_the_run_is_shown_on_each_gpu(capfd) -> None:
    assert run_main("whatif", demo.REPORT, "--gpu", "b200", "--gpu", "a100-sxm-80gb") == 0
    lines = capfd.readouterr().out.splitlines()
    rows = {line.split()[0]: line for line in lines if line}
    assert rows["b200"].split()[-1] == "1.21×"
    assert "sgemm_naive_vec4" in rows
    assert max(map(len, lines)) <= 100


@pytest.mark.long
def test_a_gpu_that_is_named_twice_is_projected_to_once(capfd) -> None:
    names = ("--gpu", "b200", "--gpu", "B200", "--gpu", "b200@1500MHz")
    assert run_main("whatif", demo.REPORT, *names, "--format", "json") == 0
    document = json.loads(capfd.readouterr().out)
    # 17 launches each, not 34 on the first
    assert [(each["target"], each["n_launches"]) for each in document["targets"]] == [
        ("b200", 17),
        ("b200@1500MHz", 17),
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("same@90GHz", "same@90000MHz is above the boost clock of h200-sxm, 1980 MHz"),
        ("b200@1966MHz", "b200@1966MHz is above the boost clock of b200, 1965 MHz"),
        ("b200@1965MHz", None),
        ("same@1500MHz", None),
        ("b200", None),
    ],
)
def test_a_clock_above_boost_is_remarked(capfd, target: str, said: str | None) -> None:
    assert run_main("whatif", demo.REPORT, "--gpu", target, "--format", "json") == 0
    first, *rest = json.loads(capfd.readouterr().out)["assumptions"]
    assert said in first if said else not any("boost clock of" in each for each in (first, *rest))


@pytest.mark.long
def test_formats_hold_the_same(tmp_path: Path, capfd) -> None:
    files = [tmp_path / f"w{suffix}" for suffix in (".json", ".md", ".txt")]
    options = [part for path in files for part in ("-o", path)]
    assert run_main("whatif", demo.REPORT, "--change", "bytes:0.5", "--quiet", *options) == 0
    assert capfd.readouterr().out == ""
    document = json.loads(files[0].read_text(encoding="utf-8"))
    assert document["schema"] == "ncuroof.whatif/1"
    assert document["changes"] == ["bytes:0.5"]
    (total,) = document["targets"]
    # 16 of 17: one failed to profile
    assert (total["target"], total["n_launches"], total["n_unknown"]) == ("same", 17, 1)
    assert total["duration_ns"] == pytest.approx(
        sum(kernel["projections"][0]["duration_ns"] or 0 for kernel in document["kernels"])
    )
    adam = next(kernel for kernel in document["kernels"] if kernel["short_name"] == "multi_tensor_apply_kernel")
    # at 90 % of DRAM; half of the bytes are half of the time where nothing else is as busy
    assert adam["projections"][0]["duration_ns"] == pytest.approx(652_288 / 2, rel=1e-3)
    assert "| same |" in files[1].read_text(encoding="utf-8")
    assert files[2].read_text(encoding="utf-8").startswith("ncuroof · what if")
    assert run_main("whatif", demo.REPORT, "--change", "bytes:0.5", "--quiet", *options) == 0  # its own files


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "nothing to try"),
        (("--gpu", "h1000"), 2, "no GPU profile matches"),
        (("--gpu", "h100-sxm@0MHz"), 2, "expected a clock above zero"),
        (("--change", "speed:2"), 2, "not a change"),
        (("--change", "bytes:0.5", "--only", "nothing"), 2, "no kernel name matches"),
        (
            ("--change", "dtype:fp16", "--change", "dtype:fp32"),
            2,
            "expected one change of type, found dtype:fp16 and",
        ),
        (("--gpu", "b200", "--only", "nothing"), 2, "--only restricts --change to some kernels"),
        (("--fuse", "a,b"), 2, "no kernel is called 'a'"),
        (("--gpu", "b200", "-o", "w.pdf"), 2, "expected a suffix of .json, .md, .markdown, .txt, found .pdf"),
    ],
)
def test_bad_input_gets_a_named_error(capfd, arguments: tuple[str, ...], code: int, said: str) -> None:
    assert run_main("whatif", demo.REPORT, *arguments) == code
    errors = capfd.readouterr().err
    assert said in errors
    assert "Traceback" not in errors


@pytest.mark.long
def test_a_damaged_report_is_remarked(tmp_path: Path, capfd) -> None:
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(demo.REPORT.read_bytes()[:-100])
    assert run_main("whatif", path, "--gpu", "b200", "--format", "json") == 0
    out, err = capfd.readouterr()
    assert err.startswith("warning: cut.ncu-rep is damaged: ")
    document = json.loads(out)
    (damage,) = document["damage"]
    assert damage.startswith("cut.ncu-rep: ")
    assert document["assumptions"][0] == f"Launches may be missing in all times, as a report is damaged ({damage})."
    assert run_main("whatif", path, "--gpu", "b200", "--format", "json", "--quiet") == 0
    assert capfd.readouterr() == (out, "")
    assert run_main("whatif", demo.REPORT, "--gpu", "b200", "--format", "json") == 0
    out, err = capfd.readouterr()
    assert (json.loads(out)["damage"], err) == ([], "")


@pytest.mark.long
def test_fusing_a_writer_that_runs_after_the_reader_is_remarked(capfd) -> None:
    pair = ("indexSelectLargeIndex", "lennard_jones_fp64")  # the first and the last of its launches
    for first, second, is_remarked in ((*pair, False), (*pair[::-1], True)):
        assert run_main("whatif", demo.REPORT, "--fuse", f"{first},{second}", "--format", "json") == 0
        said = f"{first} runs after {second}, which cannot have read what it wrote"
        assert json.loads(capfd.readouterr().out)["assumptions"][0].startswith(said) is is_remarked


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("recorded", "wanted", "kernel", "error_frac"),
    [
        # one SGEMM on a GTX 1660 SUPER and, with 64 times the products, on an RTX 4090
        ("gemm__reps__global_mem_coalesce", "profiling__profiles__coalesceMemoryAccess", "sgemm_global_mem_coalesce", 0.10),
        ("profiling__profiles__coalesceMemoryAccess", "gemm__reps__global_mem_coalesce", "sgemm_global_mem_coalesce", 0.10),
        # a latency-bound kernel on an RTX 3070 Ti at 1.56 GHz and on a laptop's RTX 3060 at 0.90 GHz
        ("full_profile@4dbc67d", "profile_output@218ba7a", "delayAndSum", 0.05),
        ("profile_output@218ba7a", "full_profile@4dbc67d", "delayAndSum", 0.05),
    ],
)  # fmt: skip
def test_a_kernel_that_was_recorded_on_two_gpus(
    corpus: list[Path], recorded: str, wanted: str, kernel: str, error_frac: float
) -> None:
    here, there = (_first(corpus, name, kernel) for name in (recorded, wanted))
    factor = there[1]["instructions.warp_executed"][0] / here[1]["instructions.warp_executed"][0]
    busy = change(here[1].select(list(BUSY_TIMES)), parse_change(f"batch:{factor}"))
    profile = there[0].roofline_tables.profiles[there[1]["device"][0]]
    target = Target(profile, there[1]["sm_clock_hz"][0])
    (expected,) = project(busy, here[0].roofline_tables.profiles, [target])["duration_ns"]
    assert expected == pytest.approx(there[1]["duration_ns"][0], rel=error_frac)


def _first(corpus: list[Path], name: str, kernel: str):
    analysis = ncuroof.read(next(path for path in corpus if path.name.startswith(name))).analyse()
    busy = busy_times(analysis.kernels, analysis.roofline_tables.work)
    rows = busy.hstack(analysis.kernels.select("instructions.warp_executed"))
    return analysis, rows.filter(pl.col("short_name") == kernel).head(1)


@pytest.mark.long
def test_the_time_without_kernels_stays_on_a_faster_gpu(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A step that waits for the CPU three quarters of its time gains little from a GPU whose kernels take 1.19 times less."""
    report = Path(__file__).resolve().parents[2] / "demo/train_transformer.roofline.ncu-repz"
    if not report.exists():
        pytest.skip("the recordings are not in this checkout")
    assert run_main("whatif", report, "--gpu", "b200", "-o", tmp_path / "w.json", "-o", "-") == 0
    (total,) = json.loads((tmp_path / "w.json").read_bytes())["targets"]
    assert total["wall_recorded_ns"] > 3 * total["recorded_ns"]
    assert 1 < total["wall_recorded_ns"] / total["wall_ns"] < 1.06 < total["speedup"]
    assert "from start to end it takes 13.9 ms, on b200 13.3 ms (1.04×)" in " ".join(capfd.readouterr().out.split())
