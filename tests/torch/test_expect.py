"""A network counted without a GPU: against hand counts, and against PyTorch's own FLOP counter."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import ncuroof
from ncuroof.errors import ArgumentError, UnknownNameError
from ncuroof.torch.expected_roofline import EXPECTED

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install 'ncuroof[torch]')")
pytestmark = pytest.mark.torch
nn, functional = torch.nn, torch.nn.functional
FlopCounterMode = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode

T, D, H, F = 64, 32, 4, 128
"""Tokens, features, heads, hidden features of the transformer block."""


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.out = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)
        self.up, self.down = nn.Linear(D, F, bias=False), nn.Linear(F, D, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.first(x)).view(1, T, 3, H, D // H).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(attended.transpose(1, 2).reshape(1, T, D))
        return x + self.down(functional.gelu(self.up(self.second(x))))


class Residual(nn.Module):
    """Two convolutions of a ResNet: 16 channels, 8×8 places, the first with stride 2."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False)
        self.norm_one, self.norm_two = nn.BatchNorm2d(16), nn.BatchNorm2d(16)
        self.two = nn.Conv2d(16, 16, 3, padding=1, bias=False)
        self.shortcut = nn.Conv2d(8, 16, 1, stride=2, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.norm_one(self.one(x)))
        return functional.relu(self.norm_two(self.two(y)) + self.shortcut(x), inplace=True)


class Experts(nn.Module):
    """Four experts with a capacity of 16 of the 32 tokens each; the two best experts of a token share it."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(8, 4, bias=False)
        self.up, self.down = nn.Parameter(torch.empty(4, 8, 24)), nn.Parameter(torch.empty(4, 24, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, _ = torch.softmax(self.router(x), dim=-1).topk(2, dim=-1)
        places = torch.zeros(4 * 16, dtype=torch.int64, device=x.device)
        given = x.index_select(0, places).view(4, 16, 8)
        made = torch.bmm(functional.silu(torch.bmm(given, self.up)), self.down).view(64, 8)
        out = torch.zeros_like(x)
        out.index_add_(0, places, made)
        return out * weights.sum(-1, keepdim=True)


def _sum(table: pl.DataFrame, operator: str, column: str = "flop") -> float:
    return float(table.filter(pl.col("operator") == f"aten::{operator}")[column].sum())


def _both(network: nn.Module, x: torch.Tensor, *, backward: bool) -> tuple[pl.DataFrame, int]:
    """Return our table, and the total of PyTorch's counter over the same run."""
    with FlopCounterMode(display=False) as theirs, ncuroof.torch.expect() as ours:
        y = network(x)
        if backward:
            y.sum().backward()
    return ours.table(), theirs.get_total_flops()


# ---- hand counts ------------------------------------------------------------------------------------------------------------


def test_a_transformer_block() -> None:
    with torch.device("meta"):
        network, x = Block().to(torch.bfloat16), torch.empty(1, T, D, dtype=torch.bfloat16)
    with torch.no_grad(), ncuroof.torch.expect() as expected:
        network(x)
    table = expected.table()
    assert _sum(table, "mm") == 2 * T * D * (3 * D + D + F + F)  # four products without bias
    assert _sum(table, "native_layer_norm") == 2 * 8 * T * D
    assert _sum(table, "gelu") == 5 * T * F
    assert _sum(table, "add") == 2 * T * D
    attention = table.filter(pl.col("operator").str.contains("attention"))
    assert attention["flop"].to_list() == [H * T * T * (4 * D // H + 5)]
    assert attention["module"].to_list() == ["Block"]
    # Q, K, V in and O out, 2 byte each; a log-sum of 4 byte per query and head, and the state of a random generator
    assert attention["read_bytes"].to_list() == [3 * T * D * 2]
    assert T * D * 2 + 4 * H * T <= attention["written_bytes"][0] <= T * D * 2 + 4 * H * T + 64
    up = table.filter(pl.col("module") == "Block.up")
    assert up["read_bytes"].to_list() == [2 * (T * D + D * F)]
    assert up["written_bytes"].to_list() == [2 * T * F]


def test_a_residual_block() -> None:
    with torch.device("meta"):
        network, x = Residual(), torch.empty(4, 8, 16, 16)
    with ncuroof.torch.expect() as expected:
        network(x)
    n = 4 * 16 * 8 * 8  # elements of every result
    table = expected.table()
    assert _sum(table, "convolution") == 2 * n * (8 * 9 + 16 * 9 + 8 * 1)
    assert _sum(table, "native_batch_norm") == 2 * 8 * n
    assert _sum(table, "relu") == n
    in_place = table.filter(pl.col("operator") == "aten::relu_")
    assert (in_place["flop"][0], in_place["read_bytes"][0], in_place["written_bytes"][0]) == (n, 4 * n, 4 * n)
    one = table.filter((pl.col("operator") == "aten::convolution") & (pl.col("module") == "Residual.one"))
    assert one["read_bytes"][0] == 4 * (4 * 8 * 16 * 16 + 16 * 8 * 9)


def test_a_mixture_of_experts() -> None:
    with torch.device("meta"):
        network, x = Experts(), torch.empty(32, 8)
    with torch.no_grad(), ncuroof.torch.expect() as expected:
        network(x)
    table = expected.table()
    assert _sum(table, "mm") == 2 * 32 * 8 * 4
    assert _sum(table, "_softmax") == 5 * 32 * 4
    assert _sum(table, "bmm") == 2 * 2 * 4 * 16 * 8 * 24
    assert _sum(table, "silu") == 4 * 4 * 16 * 24
    # 64 rows of 8: 32 distinct rows at most are read (the input has no more), indices 8 byte each
    assert _sum(table, "index_select", "read_bytes") == 64 * 8 + 4 * 32 * 8
    assert _sum(table, "index_add_") == 64 * 8
    assert table["flop"].null_count() == 0


def test_fp64_and_expanded_tensors() -> None:
    x = torch.ones(4, 1, dtype=torch.float64)
    with ncuroof.torch.expect() as expected:
        x.expand(4, 100) * 2
    row = expected.table().row(0, named=True)
    assert (row["operator"], row["dtype"], row["flop"]) == ("aten::mul", "fp64", 400)
    assert (row["read_bytes"], row["written_bytes"]) == (32, 3200)


def test_products_of_fp32_are_made_in_what_pytorch_would_use() -> None:
    x, weights = torch.empty(1, 8, 16, 16, device="meta"), torch.empty(8, 8, 3, 3, device="meta")
    before = torch.get_float32_matmul_precision()
    try:
        found = []
        for precision in ("highest", "high"):
            torch.set_float32_matmul_precision(precision)
            with ncuroof.torch.expect() as expected:
                torch.mm(x[0, 0], x[0, 0])
                functional.conv2d(x, weights)
            found.append(expected.roofline("h100-sxm").calls["precision"].to_list())
    finally:
        torch.set_float32_matmul_precision(before)
    assert found == [["fp32", "tensor_tf32"], ["tensor_tf32", "tensor_tf32"]]
    # Volta has no TF32.
    assert expected.roofline("v100-sxm2").calls["precision"].to_list() == ["fp32", "fp32"]


def test_views_cost_nothing() -> None:
    with ncuroof.torch.expect() as expected:
        torch.empty(4, 6).t().reshape(2, 12)[:1].unsqueeze(0).expand(3, 1, 12)
    assert [row["operator"] for row in expected.table().iter_rows(named=True)] == [
        "aten::clone"
    ]  # reshape of a transpose


def test_results_that_are_given_are_written_and_not_read() -> None:
    a, out = torch.ones(8), torch.empty(8)
    with ncuroof.torch.expect() as expected:
        torch.add(a, a, out=out)
    row = expected.table().row(0, named=True)
    assert (row["read_bytes"], row["written_bytes"]) == (64, 32)


def test_an_optimizer_step() -> None:
    parameter = nn.Parameter(torch.ones(100))
    parameter.grad = torch.ones(100)
    optimizer = torch.optim.AdamW([parameter], fused=True)
    with ncuroof.torch.expect() as expected:
        optimizer.step()
    row = expected.table().filter(pl.col("operator") == "aten::_fused_adamw_").row(0, named=True)
    assert row["flop"] == 1400
    # weights, gradient and two moments in, weights and moments out; the step counts a few bytes
    assert 1600 <= row["read_bytes"] <= 1616
    assert 1200 <= row["written_bytes"] <= 1616


# ---- PyTorch's counter ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(
    ("network", "sizes"),
    [(Block, (1, T, D)), (Residual, (4, 8, 16, 16)), (Experts, (32, 8))],
    ids=["transformer", "residual", "experts"],
)
def test_products_agree_with_pytorchs_counter(network: type[nn.Module], sizes: tuple[int, ...], backward: bool) -> None:
    with torch.device("meta"):
        ours, theirs = _both(network(), torch.empty(sizes, requires_grad=backward), backward=backward)
    assert theirs > 0
    assert ours["matrix_flop"].sum() == theirs


def test_a_causal_mask_halves_what_the_counter_counts_whole() -> None:
    q = torch.empty(1, 2, 64, 16, device="meta")
    with FlopCounterMode(display=False) as theirs, ncuroof.torch.expect() as ours:
        functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    # 64·65/2 of 64² pairs
    assert ours.table()["matrix_flop"].sum() == theirs.get_total_flops() * 65 / 128


@pytest.mark.parametrize("kind", ["none", "bool", "float"])
def test_attention_on_meta_tensors_is_one_kernel(kind: str) -> None:
    q = torch.empty(2, 4, 16, 8, device="meta")
    masks = {
        "none": None,
        "bool": torch.empty(16, 16, dtype=torch.bool, device="meta"),
        "float": torch.empty(16, 16, device="meta"),
    }
    with ncuroof.torch.expect() as fused:
        out = functional.scaled_dot_product_attention(q, q, q, attn_mask=masks[kind])
    assert out.shape == q.shape
    table = fused.table()
    assert table["matrix_flop"].sum() == 2 * 4 * 16 * 16 * 4 * 8
    assert not table["operator"].str.contains("bmm").any()
    with ncuroof.torch.expect(fused_attention=False) as apart:
        functional.scaled_dot_product_attention(q, q, q, attn_mask=masks[kind])
    assert apart.table()["operator"].str.contains("bmm").any()


def test_the_attention_of_a_module_is_one_kernel_too() -> None:
    with torch.device("meta"):
        layer, x = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), torch.empty(2, 16, 32)
    with ncuroof.torch.expect() as expected:
        layer(x).sum().backward()
    table = expected.table()
    assert not table["operator"].str.contains("bmm").any()
    assert table.filter(pl.col("operator").str.contains("attention")).height == 2
    assert table["flop"].null_count() == 0


def test_gradients_of_grouped_convolutions_are_not_counted_once_per_group() -> None:
    # Depthwise: 2·(2·8·6·6)·9 FLOP, and as much for either gradient; PyTorch's counter (2.13) counts the weights' 8 times.
    with torch.device("meta"):
        ours, _ = _both(nn.Conv2d(8, 8, 3, groups=8), torch.empty(2, 8, 8, 8, requires_grad=True), backward=True)
    assert ours["matrix_flop"].sum() == 3 * 2 * 2 * 8 * 6 * 6 * 9


def test_grouped_queries_on_meta_tensors() -> None:
    q, k = torch.empty(1, 8, 16, 8, device="meta"), torch.empty(1, 2, 16, 8, device="meta")
    with ncuroof.torch.expect() as expected:
        functional.scaled_dot_product_attention(q, k, k, enable_gqa=True)
    row = expected.table().row(0, named=True)
    assert (row["matrix_flop"], row["read_bytes"]) == (8 * 16 * 16 * 32, 4 * (8 * 16 * 8 + 2 * 2 * 16 * 8))


# ---- modules, directions, entering ------------------------------------------------------------------------------------------


def test_cpu_and_meta_tensors_count_alike() -> None:
    tables = []
    for device in ("cpu", "meta"):
        network, x = Residual().to(device), torch.zeros(2, 8, 8, 8, device=device)
        with ncuroof.torch.expect() as expected:
            network(x).sum().backward()
        tables.append(expected.table())
    assert tables[0].equals(tables[1])


def test_modules_and_directions_are_shown() -> None:
    with torch.device("meta"):
        network, x = Block(), torch.empty(1, T, D, requires_grad=True)
    with ncuroof.torch.expect() as expected:
        network(x).sum().backward()
    table = expected.table()
    up = table.filter((pl.col("module") == "Block.up") & (pl.col("operator") == "aten::mm"))
    assert up["is_backward"].to_list() == [False, True, True]
    assert up["flop"].to_list() == [2 * T * D * F] * 3
    assert table.filter(pl.col("operator") == "aten::sum")["module"].to_list() == [None]


def test_results_are_those_without_counting() -> None:
    network, x = Residual(), torch.randn(2, 8, 8, 8)
    plain = network(x)
    with ncuroof.torch.expect():
        counted = network(x)
    assert torch.equal(plain, counted)


def test_an_exception_passes_and_counting_ends() -> None:
    expected = ncuroof.torch.expect()
    with expected:
        torch.ones(4) + 1
    with pytest.raises(RuntimeError), expected:
        torch.ones(4) + torch.ones(5)
    n_calls = expected.table().height
    torch.ones(4) + 1
    assert expected.table().height == n_calls == 4  # of the sum that failed, its two inputs
    with expected:
        torch.ones(4)
    assert expected.table().height == 5


@pytest.mark.filterwarnings("ignore")  # PyTorch's own, about compiling under a mode
def test_a_compiled_function_is_counted_as_it_was_written() -> None:
    compiled = torch.compile(lambda x: torch.relu(x) + 1)
    x = torch.ones(4, 4)
    with ncuroof.torch.expect() as expected:
        compiled(x)
    assert expected.table()["operator"].to_list() == ["aten::relu", "aten::add"]


def test_nothing_counted_is_an_empty_table() -> None:
    with ncuroof.torch.expect() as expected:
        pass
    assert expected.table().schema == EXPECTED
    assert expected.roofline("h100-sxm").least_ns == 0
    assert "0 calls" in str(expected.roofline("h100-sxm"))
    assert repr(expected) == "<Expectation: 0 calls, 0 FLOP>"
    assert repr(expected.roofline("h100-sxm")) == "<ExpectedRoofline: NVIDIA H100 SXM5 80GB; 0 calls, 0 s at least>"


# ---- the roofline of a network ----------------------------------------------------------------------------------------------


def test_the_roofline_of_a_network() -> None:
    with torch.device("meta"):
        network, x = (
            nn.Linear(8192, 8192, bias=False, dtype=torch.bfloat16),
            torch.empty(4096, 8192, dtype=torch.bfloat16),
        )
    with torch.no_grad(), ncuroof.torch.expect() as expected:
        functional.relu(network(x))
    found = expected.roofline("h100-sxm")
    # product: 2·4096·8192² / 989e12 = 555.9 µs; ReLU: 2·4096·8192·2 byte / 3.35e12 = 40.1 µs
    assert found.calls["bound"].to_list() == ["compute", "memory"]
    assert found.least_ns == pytest.approx(555_872 + 40_065, rel=1e-4)
    assert found.by_operator()["operator"].to_list() == ["aten::mm", "aten::relu"]
    assert found.by_operator()["share_frac"].sum() == pytest.approx(1)
    assert found.by_module()["module"].to_list() == ["Linear", None]
    assert found.by_module(depth=1)["n_calls"].to_list() == [1, 1]
    assert "596 µs at least" in str(found)
    marks = re.findall("<title>(aten::[^<]*)</title>", found.svg())
    assert marks == [
        "aten::mm 4096×8192, 8192×8192 bf16, Linear: 989 TFLOP/s",
        "aten::relu 4096×8192 bf16, outside: 838 GFLOP/s",  # 0.25 flop/byte · 3.35e12
    ]
    assert expected.roofline(found.machine).calls.equals(found.calls)
    with pytest.raises(UnknownNameError):
        expected.roofline("abacus")
    with pytest.raises(ArgumentError, match="expected a machine or its name, found list"):
        expected.roofline(["h100-sxm"])


def test_unknown_work_is_stated_and_left_out() -> None:
    with ncuroof.torch.expect() as expected:
        torch.linalg.inv_ex(torch.ones(4, 4))
    found = expected.roofline("h100-sxm")
    assert expected.table()["flop"].null_count() == 1
    assert "not included in the time: 1 call whose work or roof is unknown" in str(found)


def test_unknown_work_is_not_zero() -> None:
    with ncuroof.torch.expect() as expected:
        torch.linalg.inv_ex(torch.ones(4, 4))
    assert re.fullmatch(r"<Expectation: 2 calls, 0 FLOP and 1 call of unknown work>", repr(expected))
    unknown = expected.roofline("h100-sxm").by_operator().row(-1, named=True)
    assert (unknown["operator"], unknown["n_calls"], unknown["n_unknown"]) == ("aten::linalg_inv_ex", 1, 1)
    for name in ("flop", "least_ns", "memory_bound_ns", "intensity_flop_per_byte", "share_frac"):
        assert unknown[name] is None
    line = next(line for line in str(expected.roofline("h100-sxm")).splitlines() if "inv_ex" in line)
    assert re.sub(" +", " ", line) == " — — linalg_inv_ex 1× — memory-bound —, 1 unknown"


def test_known_work_beside_unknown_work_is_a_lower_bound() -> None:
    x = torch.ones(1024, 1024)
    with ncuroof.torch.expect() as expected:
        torch.relu(x)
    known = expected.roofline("h100-sxm")
    with expected:
        torch.linalg.inv_ex(x)
    found = expected.roofline("h100-sxm")
    assert known.by_module()["n_unknown"].to_list() == [0]
    assert "1.05 MFLOP, 8.39 MB" in str(known)
    # ReLU: 1024² FLOP and 8 byte each, at 3.35e12 byte/s 2.504 µs; of the inverse only its bytes are known
    (whole,) = found.by_module().iter_rows(named=True)
    assert whole["n_unknown"] == 1
    assert (whole["flop"], found.flop) == (2**20, 2**20)
    assert whole["least_ns"] == found.least_ns == pytest.approx(8 * 2**20 / 3350, rel=1e-6)
    assert whole["bytes"] == found.bytes > 8 * 2**20
    assert whole["intensity_flop_per_byte"] < 1 / 8 == known.by_module()["intensity_flop_per_byte"][0]
    assert "2.50 µs at least, 1.05 MFLOP at least, " in str(found)


def test_without_known_work_there_is_no_sum() -> None:
    x = torch.ones(4, 4, device="meta")
    with ncuroof.torch.expect() as expected:
        x @ x
    found = expected.roofline("h100-sxm")
    nothing = replace(
        found, calls=found.calls.with_columns(pl.lit(None, pl.Float64).alias(name) for name in ("flop", "least_ns"))
    )
    assert (nothing.flop, nothing.least_ns) == (None, None)
    assert repr(nothing) == "<ExpectedRoofline: NVIDIA H100 SXM5 80GB; 1 call, time not known>"
    assert "time not known, work not known, 192 B, 1 call" in str(nothing)
    assert nothing.by_module(depth=1)["share_frac"].to_list() == [None]


def test_a_remark_says_that_meta_tensors_do_not_follow_autocast() -> None:
    x = torch.empty(64, 64, device="meta")
    with ncuroof.torch.expect() as plain:
        x @ x
    assert "autocast" not in str(plain.roofline("h100-sxm"))
    before = torch.is_autocast_enabled("cuda")
    torch.set_autocast_enabled("cuda", True)  # torch.autocast() refuses where there is no GPU
    try:
        with ncuroof.torch.expect() as ignored:
            x @ x
    finally:
        torch.set_autocast_enabled("cuda", before)
    assert ignored.table()["dtype"].to_list() == ["fp32"]
    assert "torch.autocast('cuda') does not convert meta tensors" in str(ignored.roofline("h100-sxm"))


@pytest.mark.skipif(not hasattr(nn, "RMSNorm"), reason="PyTorch before 2.4 has no RMSNorm")
def test_the_network_in_the_guide_gives_the_figures_there() -> None:
    text = (Path(__file__).parents[2] / "docs/model.md").read_text(encoding="utf-8")
    (code, printed) = re.search(r"```python\n(import ncuroof\n.+?)```\n\n```text\n(.+?)```", text, re.DOTALL).groups()
    defined: dict[str, object] = {}
    exec(code, defined)
    found = str(defined["expected"].roofline("h100-sxm")).splitlines()
    lines = printed.splitlines()
    assert "1.44 TFLOP" in lines[0]
    assert "1.44 TFLOP" in found[0]
    # how a norm is taken apart, and so each share of the time, is a matter of PyTorch's version
    rows = {line.split()[4]: line.split(maxsplit=2)[2] for line in found[1:]}
    for line in lines[1:-1]:
        assert line.split(maxsplit=2)[2] == rows[line.split()[4]]
