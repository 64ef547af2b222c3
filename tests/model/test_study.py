"""Sizes as they are written, models as they are listed, and sweeps over sizes, types and machines."""

from __future__ import annotations

import inspect

import pytest

from ncuroof import model
from ncuroof.errors import ModelError, UnknownNameError
from ncuroof.model.catalogue import Model
from ncuroof.model.study import Study, StudyRequest, sizes_of, study

H100, A100 = model.machine_by_name("h100-sxm"), model.machine_by_name("a100-sxm-80gb")


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("4096", (4096,)),
        ("1_000", (1000,)),
        ("1e9", (10**9,)),
        ("1,8,32", (1, 8, 32)),
        ("1:16", (1, 2, 4, 8, 16)),
        ("3:20", (3, 6, 12, 20)),
        ("8:8", (8,)),
        ("256:1024:256", (256, 512, 768, 1024)),
        ("1:10:4", (1, 5, 9)),
    ],
)
def test_sizes(text: str, sizes: tuple[int, ...]) -> None:
    assert sizes_of(text) == sizes


@pytest.mark.parametrize(
    "text", ["", "x", "4k", "1.5", "8:1", "0:8", "1:8:0", "1:2:3:4", "1:", "1,x", "1:1000000:1", "nan", "inf"]
)
def test_malformed_sizes_are_refused(text: str) -> None:
    with pytest.raises(ModelError):
        sizes_of(text)


# ---- the catalogue ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("found", model.models().values(), ids=lambda each: each.name)
def test_every_model_says_what_it_counts_and_where_from(found: Model) -> None:
    assert found.sizes
    assert found.summary
    assert "FLOP" in found.formula
    assert "Source: " in found.formula
    assert all(each.help for each in found.parameters), [each.name for each in found.parameters if not each.help]


def test_parameters_are_read_off_the_function() -> None:
    found = model.model_by_name("attention")
    assert found.sizes == ("seq", "head_dim")
    kinds = {each.name: each.kind for each in found.parameters}
    assert (kinds["heads"], kinds["causal"], kinds["method"], kinds["dtype"]) == ("size", "flag", "choice", "dtype")
    assert list(kinds) == list(inspect.signature(model.attention).parameters)
    assert found.parameter("kv-heads") == found.parameter("kv_heads")


def test_an_unknown_operation_has_near_names() -> None:
    with pytest.raises(UnknownNameError) as error:
        model.model_by_name("layer_norms")
    assert "layernorm" in str(error.value.hint)
    assert model.model_by_name("cross_entropy").name == "cross-entropy"


# ---- sweeps -----------------------------------------------------------------------------------------------------------------


def _study(name: str, sizes: dict[str, tuple[int, ...]], **rest: object) -> Study:
    given = {"options": {}, "dtypes": ("bf16",), "machines": (H100,), **rest}
    return study(StudyRequest(model=model.model_by_name(name), sizes=sizes, **given))  # type: ignore[arg-type]


def test_rows_are_all_combinations_machines_fastest() -> None:
    found = _study("gemm", {"m": (1, 512), "n": (4096,), "k": (4096,)}, dtypes=("bf16", "fp8"), machines=(A100, H100))
    points = [(row.sizes["m"], row.dtype, row.prediction.machine.id) for row in found.rows]
    assert points[:4] == [(1, "bf16", A100.id), (1, "bf16", H100.id), (1, "fp8", A100.id), (1, "fp8", H100.id)]
    assert len(points) == 8
    assert found.rows[5].prediction.operation.intensity_flop_per_byte == pytest.approx(409.6)


def test_the_size_that_crosses_the_ridge_is_found() -> None:
    # bf16: 240.9 at 256 lies between the ridges 153 and 295; 128 (124.1) and 512 (455.1) do not
    found = _study("linear", {"batch": (128, 256, 512), "inputs": (8192,), "outputs": (8192,)}, machines=(A100, H100))
    assert [[row.sizes["batch"] for row in group] for group in found.crossing] == [[256, 256]]


def test_the_critical_size_is_that_of_what_is_swept() -> None:
    # closed form: R·D/(D − 2·R) = 318.1 for 8192 on the H100
    sizes = {"batch": (1, 2), "inputs": (8192,), "outputs": (8192,)}
    (critical,) = _study("linear", sizes).critical
    assert (critical.size, critical.value) == ("batch", 319)
    assert critical.of_large == pytest.approx(295.2, abs=0.05)
    (weights,) = _study("linear", sizes, options={"weight_dtype": "int4"}).critical
    assert weights.of_large == pytest.approx(295.2 / 4, abs=0.05)
    # of a product's contraction: compute-bound from R·... on, by search: just below is memory-bound
    (k,) = _study("gemm", {"m": (1024,), "n": (1024,), "k": (64, 128)}).critical
    assert k.size == "k"
    below, at = (model.predict(model.gemm(1024, 1024, value), H100).bound for value in (k.value - 1, k.value))
    assert (below, at) == ("memory", "compute")


@pytest.mark.parametrize(
    ("dtype", "machine", "value", "lacks"),
    [
        ("fp16", "gb10", None, "tensor_fp16"),  # its sheet states tensor_fp4 alone
        ("fp32", "gtx-1650", None, "dram"),  # a peak and no bandwidth
        # m > w·R·D / (2·(D − w·R)) for w bytes and ridge R: 2·295.22·4096 / (2·3505.6) = 344.9, 4·20·4096 / (2·4016) = 40.8
        ("bf16", "h100-sxm", 345, None),
        ("fp32", "h100-sxm", 41, None),
    ],
)
def test_a_roof_that_is_not_known_is_not_a_size_that_is_never_reached(
    dtype: str, machine: str, value: int | None, lacks: str | None
) -> None:
    sizes = {"m": (4096,), "n": (4096,), "k": (4096,)}
    (found,) = _study("gemm", sizes, dtypes=(dtype,), machines=(model.machine_by_name(machine),)).critical
    assert (found.value, found.lacks) == (value, lacks)


def test_a_product_of_narrow_matrices_never_is_compute_bound() -> None:
    # n = k = 8 in BF16: at most 2·8·8 / (2·8 + 2·8) = 4 FLOP/B, far below the ridge
    (found,) = _study("gemm", {"m": (4096,), "n": (8,), "k": (8,)}).critical
    assert (found.value, found.lacks) == (None, None)


def test_there_is_no_critical_size_if_two_are_swept_or_none_decides() -> None:
    assert _study("gemm", {"m": (1, 2), "n": (4, 8), "k": (8,)}).critical == ()
    assert _study("softmax", {"rows": (8,), "columns": (8,)}).critical == ()


def test_searching_a_critical_size_is_fast() -> None:
    # The search looks at sequences of 2^40, whose blocks nobody could go through.
    found = _study("attention", {"seq": (1, 2), "head_dim": (128,), "tile_q": (128,)}, options={"causal": True})
    assert found.critical[0].value is not None
    assert _study("softmax", {"rows": (8,), "columns": (8,), "reads": (1, 2)}).critical == ()


def test_tiles_take_the_rule_of_large_layers_away() -> None:
    (critical,) = _study("gemm", {"m": (8,), "n": (4096,), "k": (4096,), "tile_m": (128,), "tile_n": (128,)}).critical
    assert critical.of_large is None


def test_a_shared_product_needs_a_link() -> None:
    sizes = {"m": (64,), "n": (64,), "k": (64,)}
    with pytest.raises(ModelError):
        _study("sharded-gemm", sizes)
    (critical,) = _study("sharded-gemm", sizes, link_bytes_per_s=450e9).critical
    assert critical.of_large == pytest.approx(2 * 989e12 / 450e9)


def test_too_many_rows_are_refused_before_any_is_made() -> None:
    many = tuple(range(1, 200))
    with pytest.raises(ModelError):
        _study("gemm", {"m": many, "n": many, "k": (1,)})


def test_an_unknown_roof_is_refused() -> None:
    with pytest.raises(ModelError):
        _study("gemm", {"m": (8,), "n": (8,), "k": (8,)}, precision="fp33")


def test_a_measured_time_is_held_against_the_roof() -> None:
    # 2·4096³ FLOP in 200 µs: 687.2e12 /s of 989e12
    found = _study("gemm", {"m": (4096,), "n": (4096,), "k": (4096,)})
    (away,) = found.distance(achieved_flop_per_s=None, achieved_ns=200e3)
    assert away is not None
    assert away.efficiency_frac == pytest.approx(2 * 4096**3 / 200e-6 / 989e12)
    assert found.distance(achieved_flop_per_s=None, achieved_ns=None) == (None,)


@pytest.mark.parametrize(
    ("name", "sizes", "options"),
    [
        # 4096 keys, aligned at the end: of more queries than that, those before the first key see none and move all the same
        (
            "attention",
            {"seq": (1024, 4096, 16384), "head_dim": (128,), "heads": (32,), "keys": (4096,)},
            {"causal": True},
        ),
        # more bytes for the same work: compute-bound up to a size, not from one on
        ("custom", {"flop": (10**12,), "bytes": (10**6, 10**12)}, {}),
    ],
)
def test_there_is_no_critical_size_if_intensity_falls_with_the_size(name: str, sizes, options) -> None:
    found = _study(name, sizes, options=options)
    assert "compute" in {row.prediction.bound for row in found.rows}
    assert found.critical == ()
