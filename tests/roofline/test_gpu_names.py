"""What people type, and which GPU they are taken to mean: one, or none and a question."""

from __future__ import annotations

import pytest

from ncuroof.errors import UnknownNameError
from ncuroof.roofline.gpu_names import profile_by_name
from ncuroof.roofline.gpu_profiles import GpuProfile, load_profiles


@pytest.mark.parametrize("profile", load_profiles(), ids=lambda profile: profile.id)
def test_every_id_names_its_profile_with_blanks_or_without(profile: GpuProfile) -> None:
    for name in (profile.id, profile.id.upper().replace("-", " "), profile.id.replace("-", "")):
        assert profile_by_name(name) is profile


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("h100-sxm", "h100-sxm"),
        ("H100 SXM", "h100-sxm"),
        ("4090", "rtx-4090"),
        ("3080", "rtx-3080"),
        ("4090 laptop", "rtx-4090-laptop"),
        ("a2", "a2"),
        ("h20", "h20"),
        ("l4", "l4"),
        ("RTX 4060", "rtx-4060"),
        ("nvidia h200", "h200-sxm"),
        ("Tesla T4", "t4"),
        ("b200", "b200"),
    ],
)
def test_a_profile_is_found_by_id_device_name_or_unique_part(name: str, profile: str) -> None:
    assert profile_by_name(name).id == profile


@pytest.mark.parametrize(
    ("name", "message", "suggestion"),
    [
        ("h100", "3 GPU profiles match 'h100'", "h100-nvl, h100-pcie, h100-sxm"),
        ("rtx-4091", "no GPU", "rtx-4090"),
    ],
)
def test_an_unknown_or_ambiguous_name_lists_near_ones(name: str, message: str, suggestion: str) -> None:
    with pytest.raises(UnknownNameError, match=message) as caught:
        profile_by_name(name)
    assert suggestion in str(caught.value.hint)


@pytest.mark.parametrize("name", ["", "nvidia", "mi300x"])
def test_a_name_that_resembles_nothing_still_gets_a_hint(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        profile_by_name(name)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("rtx4090", "rtx-4090"),
        ("4090d", "rtx-4090-d"),
        ("RTX5070Ti", "rtx-5070-ti"),
        ("5070ti", "rtx-5070-ti"),
        ("1660ti", "gtx-1660-ti"),
        ("rtx6000ada", "rtx-6000-ada"),
        ("h100nvl", "h100-nvl"),
        ("dgx spark", "gb10"),  # a word of the product's name, "NVIDIA GB10 (DGX Spark)"
        ("nano orin", "jetson-orin-nano-8gb"),
        ("rtx 4060 ti 16gb", "rtx-4060-ti"),  # sold with 8 and 16 GB: its sheet leaves it open
        ("a100 sxm 80gb", "a100-sxm-80gb"),
    ],
)
def test_blanks_and_the_order_of_words_do_not_matter(name: str, profile: str) -> None:
    assert profile_by_name(name).id == profile


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("a100 80gb", ["a100-pcie-80gb", "a100-sxm-80gb"]),
        ("a100 40gb", ["a100-pcie-40gb", "a100-sxm-40gb"]),
        ("h100 80gb", ["h100-pcie", "h100-sxm"]),
        ("a100 sxm", ["a100-sxm-40gb", "a100-sxm-80gb"]),
        ("v100 32gb", ["v100-pcie", "v100-sxm2"]),
    ],
)
def test_a_name_of_several_gpus_asks_which_one(name: str, candidates: list[str]) -> None:
    with pytest.raises(UnknownNameError, match=f"2 GPU profiles match '{name}'") as caught:
        profile_by_name(name)
    assert caught.value.hint == f"use one of: {', '.join(candidates)}"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("v100s", ["v100-pcie", "v100-sxm2"]),  # neither is it
        ("4080s", ["rtx-4080", "rtx-4080-laptop", "rtx-4080-super"]),
        ("p100", ["a100-pcie-40gb", "a100-pcie-80gb"]),
        ("h100 96gb", ["gh200-96gb"]),
        # the 3060 Ti and the 3080 Ti have as much memory as these, and are other products
        ("rtx 3060 8gb", []),
        ("rtx 3080 12gb", []),
    ],
)
def test_an_unknown_gpu_is_not_taken_for_a_similar_one(name: str, nearest: list[str]) -> None:
    with pytest.raises(UnknownNameError, match=f"no GPU profile matches '{name}'") as caught:
        profile_by_name(name)
    found = (caught.value.hint or "").removeprefix("use one of: ").split(", ")
    assert found[: len(nearest)] == nearest


def test_a_machine_known_only_to_models_is_named_as_one() -> None:
    with pytest.raises(UnknownNameError, match="no GPU profile matches 'TPU-v5e'") as caught:
        profile_by_name("TPU-v5e")
    assert caught.value.hint == "TPU-v5e is for `ncuroof model` only: --gpu TPU-v5e"
