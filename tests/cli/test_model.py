"""`ncuroof model`: what is typed, what comes out in which format, and what is refused."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from ncuroof.model import models
from tests.cli.running import run_main

GEMM = ("model", "gemm", "4096", "4096", "4096")
SWEEP = ("model", "linear", "1:4096", "8192", "8192", "--gpu", "a100-sxm-80gb", "--gpu", "h100-sxm")


def _out(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run_main(*arguments) == 0
    out, err = capfd.readouterr()
    assert err == ""
    return out


def _json(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_out(capfd, *arguments, "--format", "json"))
    return document


# ---- text -------------------------------------------------------------------------------------------------------------------


def test_without_an_operation_all_are_listed(capfd: pytest.CaptureFixture[str]) -> None:
    out = _out(capfd, "model")
    assert all(f"  {each.name} {each.sizes[0].upper()}" in out for each in models().values())
    assert "tpu-v5e" in out
    assert max(map(len, out.splitlines())) <= 110


@pytest.mark.parametrize("name", list(models()))
def test_the_help_of_an_operation_explains_it(capfd: pytest.CaptureFixture[str], name: str) -> None:
    out = _out(capfd, "model", name, "--help")
    assert "FLOP" in out
    assert "Source: " in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_product_on_a_napkin(capfd: pytest.CaptureFixture[str]) -> None:
    out = _out(capfd, *GEMM, "--dtype", "bf16", "--gpu", "h100-sxm")
    # 2·4096³ = 137.4 GFLOP over 3·2·4096² = 100.7 MB; 139.0 µs at 989 TFLOP/s, 30.0 µs at 3.35 TB/s
    assert "137 GFLOP over 101 MB: 1365 FLOP/B" in out
    assert re.search(r"^h100-sxm +1365 +295\.2 +compute +989 TFLOP/s +100 % +139 µs$", out, re.MULTILINE)
    assert "compute 139 µs, DRAM 30.0 µs; 169 µs if nothing overlaps" in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_sweep_has_a_line_per_size_and_machine(capfd: pytest.CaptureFixture[str]) -> None:
    out = _out(capfd, *SWEEP)
    assert len(re.findall(r"^ +\d+  (a100|h100)", out, re.MULTILINE)) == 26  # 1, 2, … 4096 on two
    # R·D / (D − 2·R): 153.02·8192/7885.97 = 158.96; 295.22·8192/7601.6 = 318.2
    assert "a100-sxm-80gb: compute-bound from batch = 159 (" in out
    assert "h100-sxm: compute-bound from batch = 319 (" in out
    assert "crosses the ridge at batch=256" in out


def test_a_sweep_on_one_machine_names_it_once(capfd: pytest.CaptureFixture[str]) -> None:
    out = _out(capfd, "model", "softmax", "1:1024", "4096", "--gpu", "a100-sxm-80gb")
    assert out.splitlines()[0] == "ncuroof · model · softmax rows=… columns=4096 reads=1, bf16, on a100-sxm-80gb"
    assert out.splitlines()[3].split()[:2] == ["rows", "FLOP/B"]
    assert out.endswith("a100-sxm-80gb: never compute-bound, however large rows is\n")


def test_a_tiny_kernel_is_ruled_by_its_launch(capfd: pytest.CaptureFixture[str]) -> None:
    assert "launch overhead dominates" in _out(capfd, "model", "gemm", "128", "128", "128")
    assert "launch overhead dominates" not in _out(capfd, *GEMM)


def test_a_missing_peak_is_stated_and_not_guessed(capfd: pytest.CaptureFixture[str]) -> None:
    out = _out(capfd, *GEMM, "--dtype", "fp8", "--gpu", "a100-sxm-80gb")
    assert "the data sheet states no FP8 tensor peak" in out
    assert re.search(r"^a100-sxm-80gb +2731 +— +— +— +— +—$", out, re.MULTILINE)


def test_times_of_all_kinds_of_work_are_shown(capfd: pytest.CaptureFixture[str]) -> None:
    # 4096² scores: 256 FLOP at 312e12 /s, 5 at 19.5e12 /s; four tensors of 4096·64·2 byte at 2.039e12 /s
    out = " ".join(_out(capfd, "model", "attention", "4096", "64", "--gpu", "a100-sxm-80gb").split())
    assert "compute 13.8 µs, other arithmetic 4.30 µs, DRAM 1.03 µs; 19.1 µs if nothing overlaps" in out


@pytest.mark.parametrize(
    ("achieved", "sentence"),
    [
        (("--achieved-flop-per-s", "120e12"), "120 TFLOP/s of 214 TFLOP/s: 56.0 %, 1.79× below (note: some headroom)"),
        (("--achieved-flop-per-s", "200T"), "93.3 %, 1.07× below (near: at its roof)"),
        (("--achieved-time", "1ms"), "64.0 TFLOP/s of 214 TFLOP/s: 29.9 %, 3.35× below (warn: large headroom)"),
        (("--achieved-flop-per-s", "300T"), "139.9 % (above: above its roof"),
    ],
)
def test_a_measured_rate_is_held_against_the_roof(
    capfd: pytest.CaptureFixture[str], achieved: tuple[str, str], sentence: str
) -> None:
    out = " ".join(_out(capfd, "model", "custom", "flop=64000000000", "bytes=1000000000", *achieved).split())
    assert sentence in out


def test_a_product_shows_the_hit_rate_that_l2_needs(capfd: pytest.CaptureFixture[str]) -> None:
    out = _out(capfd, *GEMM, "--tile-m", "128", "--tile-n", "256")
    # A 16 times, B 32 times 33.55 MB: 1.61 GB; 67.1 MB of it from memory: 95.8 % hits
    assert "SMs read 1.61 GB from L2, 85.33 FLOP/B; 95.8 % of it must hit in L2" in out
    assert re.search(r"^h100-sxm +1365 +295\.2 +L2 ", out, re.MULTILINE)


# ---- how sizes are given ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes",
    [
        ("8", "16", "32"),
        ("m=8", "n=16", "k=32"),
        ("k=32", "8", "16"),
        ("--m", "8", "--n", "16", "--k", "32"),
        ("--n", "16", "8", "32"),
        ("8", "k=32", "--n", "16"),
    ],
)
def test_sizes_by_place_by_name_or_as_options(capfd: pytest.CaptureFixture[str], sizes: tuple[str, ...]) -> None:
    (row,) = _json(capfd, "model", "gemm", *sizes)["rows"]
    assert row["sizes"] == {"m": 8, "n": 16, "k": 32}


def test_options_and_hyphens(capfd: pytest.CaptureFixture[str]) -> None:
    given = ("model", "attention", "64", "32", "kv-heads=2", "--heads", "8", "--causal", "--method", "naive")
    (row,) = _json(capfd, *given)["rows"]
    assert row["sizes"] == {"seq": 64, "head_dim": 32, "heads": 8, "kv_heads": 2}
    assert row["options"]["causal"] is True
    assert row["options"]["method"] == "naive"
    assert row["flop"] == 8 * 64 * 64 * (4 * 32 + 5)


@pytest.mark.parametrize(
    "wrong",
    [
        ("gemm",),
        ("gemm", "1", "2"),
        ("gemm", "1", "2", "3", "4"),
        ("gemm", "1", "2", "3", "m=4"),
        ("gemm", "1", "2", "j=3"),
        ("gemm", "1", "2", "0"),
        ("gemm", "1", "2", "x"),
        ("gemm", "m=1", "m=2", "n=3", "k=4"),
        ("gemm", "1", "2", "3", "dtype=bf16"),
        ("gemm", "1", "2", "3", "--precision", "fp33"),
        ("gemm", "1", "2", "3", "rereads=sometimes"),
        ("sharded-gemm", "64", "64", "64"),
        ("gemm", "1", "2", "3", "--achieved-time", "5"),
        ("gemm", "1:8", "2", "3", "--achieved-time", "5us"),
        ("gemm", "1", "2", "3", "--achieved-time", "5us", "--achieved-flop-per-s", "5T"),
        ("gemm", "1", "2", "3", "--peak-flop-per-s", "-1"),
        ("gemm", "1", "2", "3", "--bandwidth-bytes-per-s", "1..2"),
        ("gemm", "1", "2", "3", "--format", "pdf"),
    ],
)
def test_wrong_usage_exits_with_2(capfd: pytest.CaptureFixture[str], wrong: tuple[str, ...]) -> None:
    assert run_main("model", *wrong) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "wrong", [("gem", "1"), ("gemm", "1", "2", "3", "--gpu", "abacus"), ("gemm", "1", "2", "3", "--dtype", "bf17")]
)
def test_unknown_names_are_named_errors(capfd: pytest.CaptureFixture[str], wrong: tuple[str, ...]) -> None:
    assert run_main("model", *wrong) == 2
    assert "hint: " in capfd.readouterr().err


# ---- formats ----------------------------------------------------------------------------------------------------------------


def test_json_has_base_units_and_null_for_unknown_values(capfd: pytest.CaptureFixture[str]) -> None:
    document = _json(capfd, *GEMM, "--dtype", "bf16", "--dtype", "fp8", "--gpu", "a100-sxm-80gb", "--gpu", "h100-sxm")
    assert document["schema"] == "ncuroof.model/1"
    assert [(row["dtype"], row["machine"]["id"]) for row in document["rows"]] == [
        ("bf16", "a100-sxm-80gb"),
        ("bf16", "h100-sxm"),
        ("fp8", "a100-sxm-80gb"),
        ("fp8", "h100-sxm"),
    ]
    known, unknown = document["rows"][1], document["rows"][2]
    assert known["flop"] == 2 * 4096**3
    assert known["bytes"] == sum(each["bytes"] for each in known["traffic"]) == 3 * 2 * 4096**2
    assert known["least_ns"] == pytest.approx(2 * 4096**3 / 989e12 * 1e9)
    assert known["l2"]["does_fit"] is False
    assert (unknown["bound"], unknown["least_ns"], unknown["peak_flop_per_s"]) == (None, None, None)


def test_hits_are_shown_for_sweeps_and_not_for_products(capfd: pytest.CaptureFixture[str]) -> None:
    swept = _out(capfd, "model", "softmax", "4096", "32768", "--gpu", "h100-sxm").replace("\n    ", " ")
    # two tensors of 268.4 MB, 52.4 of the 536.9 MB stay: 9.8 %
    assert "swept in order repeatedly: at most 9.8 % hits" in swept
    for products in (GEMM, ("model", "attention", "65536", "128", "--heads", "32")):
        assert "hits" not in _out(capfd, *products, "--gpu", "h100-sxm")


@pytest.mark.parametrize(("machine", "is_said"), [("rtx-4090", True), ("h100-sxm", False)])
def test_a_note_says_that_bytes_from_an_l2_of_unknown_bandwidth_do_not_count(
    capfd: pytest.CaptureFixture[str], machine: str, *, is_said: bool
) -> None:
    tiled = (*GEMM, "--tile-m", "128", "--tile-n", "128")
    assert ("L2 bandwidth not stated" in _out(capfd, *tiled, "--gpu", machine)) is is_said
    assert "not counted" not in _out(capfd, *GEMM, "--gpu", machine)  # no bytes from L2


def test_csv_has_a_line_per_row(capfd: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(_out(capfd, *SWEEP, "--format", "csv").splitlines()))
    assert len(rows) == 26
    assert [rows[0][name] for name in ("operation", "machine", "batch", "bound")] == [
        "linear",
        "a100-sxm-80gb",
        "1",
        "memory",
    ]
    assert float(rows[0]["bytes"]) == 2 * (8192 + 8192**2 + 8192)
    assert rows[0]["l2_ns"] == ""


def test_markdown_is_a_table(capfd: pytest.CaptureFixture[str]) -> None:
    lines = _out(capfd, *SWEEP, "--format", "md").splitlines()
    assert sum(line.startswith("| ") for line in lines) == 26 + 2
    assert len({line.count("|") for line in lines if line.startswith("| ")}) == 1


def _marks(svg: str) -> int:
    namespace = "{http://www.w3.org/2000/svg}"
    return len(ET.fromstring(svg).findall(f"{namespace}g"))


def test_the_picture_has_roofs_and_a_mark_per_row(capfd: pytest.CaptureFixture[str]) -> None:
    svg = _out(capfd, *SWEEP, "--format", "svg")
    assert _marks(svg) == 26
    assert svg.count("<polyline") == 2
    # The ridge of the A100 lies on its roof: 312e12 / 2.039e12 = 153.0 is in the legend.
    assert "a100-sxm-80gb: BF16 tensor 312 TFLOP/s, DRAM 2.04 TB/s, ridge 153" in svg
    measured = _out(capfd, *GEMM, "--format", "svg", "--achieved-time", "200us")
    assert _marks(measured) == 2
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


def test_a_picture_of_one_size_has_round_ticks_with_units(capfd: pytest.CaptureFixture[str]) -> None:
    svg = _out(capfd, *GEMM, "--format", "svg")
    ticks = re.findall(r'class="tick">([^<]*)<', svg)
    # half a decade about 989 TFLOP/s, and about the ridge at 295 and the product at 1365 FLOP/B
    assert [tick for tick in ticks if tick.endswith("FLOP/s")] == ["500 TFLOP/s", "1 PFLOP/s", "2 PFLOP/s"]
    assert [tick for tick in ticks if not tick.endswith("FLOP/s")] == ["100", "200", "500", "1000", "2000"]
    assert "<title>gemm 4096×4096×4096 bf16 on h100-sxm, at best</title>" in svg
    assert not re.search(r"<text[^>]*>FLOP/s<", svg)


def test_a_picture_of_many_decades_has_a_tick_at_each(capfd: pytest.CaptureFixture[str]) -> None:
    svg = _out(capfd, *SWEEP, "--format", "svg")
    ticks = re.findall(r'class="tick">([^<]*)<', svg)
    assert [tick for tick in ticks if tick.endswith("FLOP/s")] == [
        "1 TFLOP/s",
        "10 TFLOP/s",
        "100 TFLOP/s",
        "1 PFLOP/s",
    ]


def test_the_page_says_what_is_modelled_as_a_table_and_suits_dark_screens(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.html"
    assert _out(capfd, *SWEEP, "-o", str(path)) == ""
    page = path.read_text(encoding="utf-8")
    subject = re.search(r"<h1>(.*?)</h1>", page)
    assert subject is not None
    assert subject[1] == "linear batch=1…4096 inputs=8192 outputs=8192 bf16 on a100-sxm-80gb, h100-sxm"
    assert "<pre" not in page
    table = re.search(r"<table>.*?</table>", page, re.DOTALL)
    assert table is not None
    rows = [re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", line) for line in table[0].splitlines()]
    assert rows[0] == ["batch", "machine", "FLOP/B", "ridge", "bound", "max rate", "of peak", "min time"]
    assert len([row for row in rows if row]) == 26 + 1
    assert all(len(row) == 8 for row in rows if row)
    assert '<meta name="color-scheme" content="light dark">' in page
    assert "prefers-color-scheme:dark" in page


def test_an_empty_picture_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    assert "nothing here has both work and a roof" in _out(capfd, "model", "embedding", "8", "64", "--format", "svg")


def test_files_are_written_and_written_again(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = [f"x.{suffix}" for suffix in ("html", "svg", "json", "md", "csv", "txt")]
    options = [part for name in names for part in ("-o", str(tmp_path / name))]
    for _ in range(2):
        assert _out(capfd, *GEMM, *options) == ""
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert "1365 FLOP/B" in page
    assert "src=" not in page
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_a_foreign_file_is_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.svg"
    path.write_text("<svg>mine</svg>", encoding="utf-8")
    assert run_main(*GEMM, "-o", path) == 1
    assert path.read_text(encoding="utf-8") == "<svg>mine</svg>"
    assert run_main(*GEMM, "-o", path, "--force") == 0
    assert run_main(*GEMM, "-o", tmp_path / "x.pdf") == 2
    assert "expected a suffix of .html, .htm, .json, .md, .markdown, .csv, .txt, .svg" in capfd.readouterr().err


def test_a_sharded_product_over_a_link(capfd: pytest.CaptureFixture[str]) -> None:
    out = _out(capfd, "model", "sharded-gemm", "1024", "8192", "8192", "--gpu", "tpu-v5e", "--link-bytes-per-s", "45G")
    # 1024·8192·2 byte over 45e9: 372.8 µs; 1024·8192²/1.97e14·1e6 = 348.8 µs; 2·1.97e14/45e9 = 8755.6
    assert "compute 349 µs, DRAM 113 µs, network 373 µs" in out
    assert re.search(r"^tpu-v5e .* network ", out, re.MULTILINE)
    assert "from k > 8756" in out


def test_measured_roofs_in_place_of_the_data_sheets(capfd: pytest.CaptureFixture[str]) -> None:
    (row,) = _json(capfd, *GEMM, "--bandwidth-bytes-per-s", "3T", "--peak-flop-per-s", "800T")["rows"]
    assert row["ridge_flop_per_byte"] == pytest.approx(800 / 3)
    assert row["machine"]["id"] == "h100-sxm, as given"
