from __future__ import annotations

import pytest

import ncuroof
from ncuroof.errors import UnknownNameError
from ncuroof.present.explain import explain, names
from tests.support import demo


@pytest.mark.parametrize("name", names())
def test_every_name_is_explained(name: str) -> None:
    lines = explain(name).splitlines()
    assert lines[0].startswith(f"{name}: ")
    assert any(line.strip() for line in lines[1:])


def test_everything_that_a_document_names_can_be_explained() -> None:
    known = set(names())
    for kernel in ncuroof.read(demo.REPORT).analyse().to_dict()["kernels"]:
        assert kernel["verdict"] in known
        assert set(kernel["caveats"]) <= known
        for finding in kernel["findings"]:
            assert finding["id"] in known
            assert {item["quantity"] for item in finding["evidence"]} <= known
        assert {step["quantity"] for step in kernel["path"]} <= known


def test_an_unknown_name_names_its_neighbours() -> None:
    with pytest.raises(UnknownNameError, match="conflict") as caught:
        explain("conflict")
    assert caught.value.hint is not None
    assert "bank_conflicts" in caught.value.hint


def test_a_verdict_says_how_it_is_reached() -> None:
    assert "Does its grid fill the GPU once? no (occupancy.waves ≥ 1)" in explain("overhead")


def test_a_finding_says_of_which_lines_it_speaks() -> None:
    told = explain("global_atomics")
    assert "the atomics on global memory: inst_executed, where memory_type is 4 and memory_access_type is 0" in told
    assert "Placed at the lines" not in explain("tail_wave")


def test_a_part_of_a_steps_time_is_explained_beside_a_verdict_of_its_name() -> None:
    assert explain("host_wait") == explain("wall_time.host_wait")
    assert explain("host_wait").startswith("wall_time.host_wait: part of a step's time, idle, launches came late")
    assert "memory: verdict" in explain("memory")
    assert "Copies or memsets run, and no kernel." in explain("wall_time.memory")
