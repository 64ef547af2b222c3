"""The verbs of the package work again and again, whatever was imported meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import ncuroof
from ncuroof.comparison.baseline import baseline_json
from ncuroof.errors import ArgumentError, ModelError, OutputError, ReportNotFoundError, UnknownNameError, WhatIfError
from ncuroof.reading import Reports
from ncuroof.sidecars.calibration import Calibration, ReachedRoof, calibration_json, read_calibration
from tests.comparison.runs import launch, run
from tests.support import demo
from tests.support.lined import lined_report


@pytest.mark.long
def test_comparing_works_again_once_the_room_is_loaded() -> None:
    analysis = ncuroof.read(demo.REPORT).analyse()
    first, second = (ncuroof.compare(analysis, analysis) for _ in range(2))
    assert [delta.change_frac for delta in first.deltas] == [delta.change_frac for delta in second.deltas]


@pytest.mark.long
def test_lines_are_read_unless_they_are_not_wanted(tmp_path: Path) -> None:
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(lined_report())
    with_lines, without = (ncuroof.read(path, lines=lines).analyse() for lines in (True, False))
    assert not with_lines.measurements.lines.is_empty()
    assert without.measurements.lines.is_empty()
    assert with_lines.findings.equals(without.findings)


@pytest.mark.long
def test_runs_are_compared_by_their_paths_as_well(tmp_path: Path) -> None:
    analysis = ncuroof.read(demo.REPORT).analyse()
    baseline = tmp_path / "baseline.json"
    baseline.write_bytes(baseline_json(analysis.run()))
    for before in (demo.REPORT, str(demo.REPORT), baseline):
        changes = [delta.change_frac for delta in ncuroof.compare(before, analysis).deltas]
        assert changes == pytest.approx([0.0] * 16, abs=1e-5)  # a baseline's numbers are rounded
    with pytest.raises(ArgumentError, match="found Reports"):
        ncuroof.compare(ncuroof.read(demo.REPORT), analysis)  # type: ignore[arg-type]
    with pytest.raises(ReportNotFoundError, match="none"):
        ncuroof.compare("none.ncu-rep", analysis)


def test_nothing_to_read_and_a_reader_that_is_none_are_refused_by_name() -> None:
    with pytest.raises(ReportNotFoundError, match="expected a report, found none"):
        ncuroof.read([])
    with pytest.raises(UnknownNameError, match="no reader 'foo'") as caught:
        ncuroof.read(demo.REPORT, reader="foo")  # type: ignore[arg-type]
    assert caught.value.hint == "use one of: auto, native, nvidia"


@pytest.mark.long
def test_representations_are_short() -> None:
    reports = ncuroof.read(demo.REPORT)
    assert repr(reports) == "<Reports: h200-training-step.ncu-rep; 17 kernels>"
    assert repr(reports.analyse()) == "<Analysis: h200-training-step.ncu-rep; 17 kernels, 21.0 ms GPU time>"
    comparison = ncuroof.compare(reports.analyse(), reports.analyse())
    name = "h200-training-step.ncu-rep"
    assert repr(comparison) == f"<Comparison: {name} → {name}; 16 kernels matched, 0 added, 0 removed>"
    many = Reports(reports.raw * 5)
    assert repr(many).count("h200-training-step.ncu-rep") == 3
    assert repr(many).endswith(" and 2 more; 85 kernels>")


@pytest.mark.long
def test_a_notebook_shows_the_summary_of_the_terminal() -> None:
    shown = ncuroof.read(demo.REPORT).analyse()._repr_html_()
    assert "ncuroof · h200-training-step.ncu-rep · NVIDIA H200" in shown
    assert "16 launches take 21.0 ms of GPU time" in shown
    assert "\x1b" not in shown


def test_a_notebook_shows_a_comparison_with_names_escaped(tmp_path: Path) -> None:
    paths = tmp_path / "before.json", tmp_path / "after.json"
    for path, names in zip(paths, (("a", "gone<b>"), ("a",)), strict=True):
        path.write_bytes(baseline_json(run(*(launch(name, **{"work.fp32.flop": 1e9 * len(name)}) for name in names))))
    shown = ncuroof.compare(*paths)._repr_html_()
    assert shown.startswith("<pre>ncuroof · compare\n")
    assert "  removed: gone&lt;b&gt;, one launch, 100 µs\n" in shown
    assert shown.endswith("</pre>")


@pytest.mark.long
def test_an_analysis_is_written_in_the_format_of_the_suffix(tmp_path: Path) -> None:
    analysis = ncuroof.read(demo.REPORT).analyse()
    assert analysis.write(tmp_path / "run.md").read_text(encoding="utf-8").startswith("<!-- ncuroof ")
    assert analysis.write(tmp_path / "run", "csv").read_text(encoding="utf-8").startswith("id,source,device,name,")
    (tmp_path / "other.html").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError):
        analysis.to_html(tmp_path / "other.html")
    assert analysis.to_html(tmp_path / "other.html", force=True).read_bytes().lower().startswith(b"<!doctype html>")


@pytest.mark.long
def test_not_even_force_writes_over_the_report(tmp_path: Path) -> None:
    report = tmp_path / "run.ncu-rep"
    report.write_bytes(demo.REPORT.read_bytes())
    with pytest.raises(OutputError, match="a report that was read"):
        ncuroof.read(report).analyse().write(report, "json", force=True)
    assert report.read_bytes() == demo.REPORT.read_bytes()


@pytest.mark.long
def test_one_change_is_a_text() -> None:
    analysis = ncuroof.read(demo.REPORT).analyse()
    assert analysis.whatif("b200", changes="dtype:fp8").equals(analysis.whatif("b200", changes=["dtype:fp8"]))
    with pytest.raises(WhatIfError, match="there are no changes"):
        analysis.whatif("b200", only="gemm")


@pytest.mark.parametrize("paths", [5, None, b"run.ncu-rep", [5], [demo.REPORT, None], BytesIO(b"x")])
def test_what_is_no_path_is_refused_by_name(paths: Any) -> None:
    with pytest.raises(ArgumentError, match=r"expected the path of a report, found (int|NoneType|bytes|BytesIO)$"):
        ncuroof.read(paths)


@pytest.mark.long
def test_verbs_say_what_they_take() -> None:
    reports = ncuroof.read(demo.REPORT)
    analysis, product = reports.analyse(), ncuroof.model.gemm(64, 64, 64)
    verbs: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
        (analysis.whatif, (["b200"],), "expected the name of a GPU, found list"),
        (partial(analysis.whatif, changes=[5]), ("b200",), "expected a change as a string, found int"),
        (partial(analysis.whatif, changes=5), ("b200",), "expected a change as a string, found int"),
        (partial(ncuroof.read, n_processes="4"), (demo.REPORT,), "expected a number of processes, found .4."),
        (reports.analyse, ("h200.json",), "expected a calibration, found str"),
        (reports.analyse, (None,), "expected a calibration, found NoneType"),
        (reports.analyse, ([Path("h200.json")],), "expected a calibration, found (Posix|Windows)Path"),
        (ncuroof.model.predict, (product, None), "expected a machine or its name, found NoneType"),
        (ncuroof.model.predict, ("gemm", "b200"), "expected an operation, found str"),
        (partial(ncuroof.model.gemm, dtype=16), (64, 64, 64), "expected the name of an element type, found int"),
    ]
    for verb, arguments, said in verbs:
        with pytest.raises(ArgumentError, match=f"^{said}$") as caught:
            verb(*arguments)
        assert caught.value.hint


@pytest.mark.long
def test_a_calibration_needs_no_list(tmp_path: Path) -> None:
    reached = ReachedRoof("bandwidth", "dram", 4.1e12, 0.01, 40, "copies", None)
    file = tmp_path / "h200.json"
    file.write_bytes(calibration_json(Calibration("NVIDIA H200", "9.0", 132, "2.8", "12.8", (reached,), ())))
    reports, calibration = ncuroof.read(demo.REPORT), read_calibration(str(file))
    one, listed = reports.analyse(calibration), reports.analyse([calibration])
    assert one.to_dict() == listed.to_dict() != reports.analyse().to_dict()


def test_a_machine_goes_by_its_name() -> None:
    model = ncuroof.model
    product, machine = model.gemm(4096, 4096, 4096), model.machine_by_name("h100-sxm")
    assert model.predict(product, "h100-sxm") == model.predict(product, machine)
    assert model.predict(product, "tpu-v5e").machine.name == model.machine_by_name("tpu-v5e").name
    assert model.with_measured("h100-sxm", peak_flop_per_s=5e14).peak_flop_per_s["tensor_fp8"] == 5e14
    assert model.residency(1e6, "h100-sxm") == model.residency(1e6, machine)
    with pytest.raises(UnknownNameError, match="'abacus'"):
        model.predict(product, "abacus")


@pytest.mark.parametrize("size", [4096.5, float("nan"), float("inf"), 0.5, 0, -1])
def test_sizes_of_an_operation_are_whole(size: float) -> None:
    with pytest.raises(ModelError, match="m must be a whole number of at least 1"):
        ncuroof.model.gemm(size, 16, 16)  # type: ignore[arg-type]


def test_completion_proposes_the_verbs() -> None:
    assert {"read", "compare", "model", "torch"} <= set(dir(ncuroof))
    assert "import_module" not in dir(ncuroof)
