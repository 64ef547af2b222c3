"""What the package returns can be pickled and copied, compared and hashed: processes of a pool return analyses."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import ncuroof
from ncuroof import model
from ncuroof.analysis import Analysis
from ncuroof.present import render
from tests.support import demo

pytestmark = pytest.mark.long  # each test is an analysis of its own


COPIES: list[Callable[[Any], Any]] = [lambda each: pickle.loads(pickle.dumps(each)), copy.copy, copy.deepcopy]
BY_WAY = pytest.mark.parametrize("copied", COPIES, ids=["pickle", "copy", "deepcopy"])


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return ncuroof.read(demo.REPORT).analyse()


def _analysed(path: Path) -> Analysis:
    return ncuroof.read(path).analyse()


@BY_WAY
def test_a_copy_of_an_analysis_tells_what_the_analysis_tells(copied: Callable[[Any], Any], analysis: Analysis) -> None:
    other = copied(analysis)
    assert other is not analysis
    assert other.kernels.equals(analysis.kernels)
    assert other.kernels.schema == analysis.kernels.schema
    assert other.to_dict() == analysis.to_dict()
    assert render(other, "term") == render(analysis, "term")
    assert other.whatif("b200").equals(analysis.whatif("b200"))
    assert [delta.change_frac for delta in ncuroof.compare(analysis, other).deltas] == [0.0] * 16


def test_another_process_returns_the_same_analysis(analysis: Analysis) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(_analysed, demo.REPORT).result().to_dict() == analysis.to_dict()


@BY_WAY
def test_copies_of_reports_and_comparisons(copied: Callable[[Any], Any], analysis: Analysis) -> None:
    reports, comparison = ncuroof.read(demo.REPORT), ncuroof.compare(analysis, analysis)
    assert copied(reports).analyse().to_dict() == analysis.to_dict()
    assert copied(comparison).deltas == comparison.deltas
    assert copied(comparison).before.groups.equals(comparison.before.groups)


def test_analyses_are_equal_to_themselves_alone(analysis: Analysis) -> None:
    reports, other = ncuroof.read(demo.REPORT), ncuroof.read(demo.REPORT)
    comparison = ncuroof.compare(analysis, analysis)
    for each in (reports, analysis, analysis.expected, comparison, comparison.before, *reports.raw):
        assert each == each  # noqa: PLR0124  of tables inside, Python would ask for one truth
        assert each != copy.copy(each)
        assert len({each, each}) == 1
    assert reports != other
    assert reports.analyse() != analysis


@BY_WAY
@pytest.mark.parametrize(
    "made",
    [
        model.gemm(64, 64, 64),
        model.sharded_gemm(64, 64, 64, axis="k", devices=4),
        model.operator("aten::mm", [model.TensorShape((4, 4), "fp32")] * 2, [model.TensorShape((4, 4), "fp32")]),
        model.machine_by_name("b200"),
        model.machine_by_name("tpu-v5e"),
        model.with_measured(model.machine_by_name("b200"), peak_flop_per_s=2e15),
        model.predict(model.gemm(64, 64, 64), model.machine_by_name("b200")),
    ],
    ids=lambda made: getattr(made, "name", "prediction"),
)
def test_copies_of_what_models_make_are_equal(copied: Callable[[Any], Any], made: object) -> None:
    assert copied(made) == made
    assert hash(copied(made)) == hash(made)
    assert repr(copied(made)) == repr(made)


def test_what_a_file_states_cannot_be_changed_in_a_copy_either() -> None:
    for machine in (model.machine_by_name("tpu-v5e"), pickle.loads(pickle.dumps(model.machine_by_name("b200")))):
        with pytest.raises(TypeError):
            machine.bandwidth_bytes_per_s["dram"] = 1.0
    product = model.gemm(4, 5, 6)
    with pytest.raises(TypeError):
        product.sizes["m"] = 9
    with pytest.raises(TypeError):
        model.operator("aten::mm", [(4, 5), (5, 6)]).sizes["operator"] = "x"
    assert product.sizes | {"m": 9} == {"m": 9, "n": 5, "k": 6, "dtype": "bf16"}
