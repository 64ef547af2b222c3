"""Ranges of a real training step: every product is attached, gradients find their modules, FLOPs are those of PyTorch's counter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import ncuroof
from ncuroof.expected import Expected
from tests.support import pytorch_ranges
from tests.support.constructed import Accesses, Described
from tests.support.constructed_counters import kernel
from tests.support.report_writer import write_report

PRODUCT = re.compile(r"aten::(mm|addmm|bmm|baddbmm), ")
HMMA = "op_hmma_src_bf16_dst_fp32_sparsity_off"

T, D, H, V = 32, 64, 4, 96
"""Tokens, features, heads, words."""

WRITTEN_DOWN = (
    ("Net (Net) [2, 32, 64], op_id = 3", "Net.up (Linear) [2, 32, 64], op_id = 9",
     "aten::linear, seq = 26, op_id = 10, sizes = [[2, 32, 64], [256, 64], [256]]",
     "aten::addmm, seq = 28, op_id = 14, sizes = [[256], [64, 64], [64, 256], [], []]"),
    ("Net (Net) [2, 32, 64], op_id = 3", "aten::gelu, seq = 30, op_id = 20, sizes = [[2, 32, 256], []]"),
    ("autograd::engine::evaluate_function: GeluBackward0, seq = 30, op_id = 300",
     "GeluBackward0, seq = 30, op_id = 301, sizes = [[2, 32, 256]]",
     "aten::gelu_backward, op_id = 302, sizes = [[2, 32, 256], [2, 32, 256], []]"),
    ("autograd::engine::evaluate_function: AddmmBackward0, seq = 28, op_id = 310",
     "AddmmBackward0, seq = 28, op_id = 311, sizes = [[64, 256]]", "aten::mm, op_id = 315, sizes = [[64, 256], [256, 64]]"),
    ("autograd::engine::evaluate_function: AddmmBackward0, seq = 28, op_id = 310",
     "AddmmBackward0, seq = 28, op_id = 311, sizes = [[64, 256]]", "aten::mm, op_id = 321, sizes = [[256, 64], [64, 64]]"),
    ("Optimizer.step#AdamW.step, op_id = 400", "aten::_foreach_add_, op_id = 401, sizes = [[], []]"),
)  # fmt: skip
"""Some ranges of such a step, of PyTorch 2.13."""


def launch(path: Sequence[str]) -> Described:
    """Return a kernel under some ranges; what it does is of no matter here."""
    return Described(
        "gemm_bf16",
        20_000,
        nvtx=tuple(path),
        tensor={HMMA: 2e6},
        loads=Accesses(200, 16, bytes_per_thread=16),
        stores=Accesses(100, 16, bytes_per_thread=16),
        warp_instructions=1e6,
        dram_read_bytes=64_000,
        dram_write_bytes=40_000,
    )


def expected(folder: Path, paths: Sequence[Sequence[str]]) -> Expected:
    file = folder / "step.ncu-rep"
    file.write_bytes(write_report([kernel(launch(path)) for path in paths]))
    return ncuroof.read(file).analyse().expected


@pytest.mark.long
def test_ranges_written_down(tmp_path: Path) -> None:
    calls = expected(tmp_path, WRITTEN_DOWN).calls.to_dicts()
    assert [(call["operator"], call["module"], call["is_backward"]) for call in calls] == [
        ("aten::addmm", "Net (Net)/Net.up (Linear)", False),
        ("aten::gelu", "Net (Net)", False),
        ("aten::gelu_backward", "Net (Net)", True),
        ("aten::mm", "Net (Net)/Net.up (Linear)", True),
        ("aten::mm", "Net (Net)/Net.up (Linear)", True),
    ]
    assert [call["needed_flop"] for call in calls] == [2 * 64 * 64 * 256, 0, 0, 2 * 64 * 256 * 64, 2 * 256 * 64 * 64]


def network(torch: Any) -> Any:
    nn, functional = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.qkv, self.out = nn.LayerNorm(D), nn.Linear(D, 3 * D), nn.Linear(D, D, bias=False)
            self.up, self.down, self.words = nn.Linear(D, 4 * D), nn.Linear(4 * D, D), nn.Linear(D, V, bias=False)

        def forward(self, x: Any) -> Any:
            q, k, v = self.qkv(self.norm(x)).view(2, T, 3, H, D // H).permute(2, 0, 3, 1, 4)
            x = x + self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, T, D))
            return self.words(x + self.down(functional.gelu(self.up(x))))

    return Net()


@pytest.mark.torch
def test_a_training_step_as_pytorch_records_it(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install 'ncuroof[torch]')")
    attention, flop_counter = map(pytest.importorskip, ("torch.nn.attention", "torch.utils.flop_counter"))
    net, x = network(torch), torch.randn(2, T, D, requires_grad=True)

    def step() -> None:
        with attention.sdpa_kernel(attention.SDPBackend.MATH):  # products that PyTorch's counter knows on the CPU too
            torch.nn.functional.cross_entropy(net(x).view(-1, V), torch.zeros(2 * T, dtype=torch.long)).backward()

    with flop_counter.FlopCounterMode(display=False) as counter:
        step()
    with pytorch_ranges.module_ranges(torch, net), torch.profiler.profile(record_shapes=True) as profile:
        step()
    paths = [path for path in pytorch_ranges.paths(profile) if any(map(PRODUCT.match, path))]
    products = dict.fromkeys(
        path[: 1 + next(n for n, text in enumerate(path) if PRODUCT.match(text))] for path in paths
    )
    found = expected(tmp_path, list(products))
    calls = found.calls
    assert calls.height == len(products)
    # A layer's product has two gradients' products, as has each of the two of attention: (5 + 2) × 3.
    assert calls.height == 21
    assert calls["needed_flop"].sum() == counter.get_total_flops()
    assert calls["is_backward"].sum() == 14
    by_module = {row["module"]: row["n_calls"] for row in found.modules.to_dicts()}
    layers = {f"Net (Net)/Net.{name} (Linear)": 3 for name in ("qkv", "out", "up", "down", "words")}
    assert by_module == {"Net (Net)": 21, **layers}
