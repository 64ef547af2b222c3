"""What is stated beside an advice that asks for another change than the finding's gain bounds, in recorded kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ncuroof
from ncuroof.diagnosis import load_rules

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "h100-80gb-hbm3"
WITHOUT = {
    (finding.id, variant.advice)
    for finding in load_rules().findings.values()
    for variant in finding.advice.variants
    if variant.without_gain
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("report", "least"),
    [
        ("training_step.quick.ncu-repz", 50),  # vectorised kernels, steps of an optimizer
        ("layer_norm-to-cross_entropy.full.ncu-repz", 3),  # norms, rows picked by index
        ("attention_flash_128_4096-to-attention_flash_128_4096_backward.full.ncu-repz", 3),
    ],
)
def test_no_gain_stands_beside_advice_that_it_does_not_bound(report: str, least: int) -> None:
    """The advice is chosen for each kernel where documents are made, the gain for all where findings are: both choose alike."""
    kernels: list[dict[str, Any]] = ncuroof.read(RECORDED / report).analyse().to_dict()["kernels"]
    findings = [finding for kernel in kernels for finding in kernel["findings"]]
    gains = [each["gain_ns"] for each in findings if (each["id"], each["advice"]) in WITHOUT]
    assert len(gains) >= least
    assert set(gains) == {None}
