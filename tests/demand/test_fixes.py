"""How a finding states what its change removes, and what is said where that cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ncuroof.demand import load_model, read_fix
from ncuroof.diagnosis import load_rules
from ncuroof.diagnosis.finding import read_finding
from ncuroof.diagnosis.rules import complete_findings
from ncuroof.errors import ProfileError
from ncuroof.resources import read_entries, read_profile
from tests.demand.launches import FIXES


def read(changed: Mapping[str, Any]) -> None:
    """Read the findings with other changes of one that stands in `profiles/rules/dram.toml`."""
    raw = read_profile("rules.toml")
    entry = {key: value for key, value in raw["finding"]["remote_memory"].items() if key not in {"removes", "adds"}}
    raw = {**raw, "finding": {"remote_memory": entry | dict(changed)}}
    read_entries("rules.toml", "finding", complete_findings(raw), read_finding)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"removes": {"drum": "all"}}, "no resource or group 'drum'; demand.toml has dram, "),
        ({"removes": {"dram": "all"}, "frees": {"drum": "all"}}, "no resource or group 'drum'; demand.toml has dram, "),
        ({"removes": {"dram": "all"}, "adds": {"drum": "0.5"}}, "no resource or group 'drum'; demand.toml has dram, "),
        ({"removes": {"dram": "half of it"}}, "half of it"),
        ({"waits": "{stalls.wait"}, "{stalls.wait"),
        ({"waits": ["0.5", "0.6", "0.7"]}, "a key is missing or of the wrong type"),
        ({"waits": 0.5}, "a key is missing or of the wrong type"),
        ({"removes": "all"}, "a key is missing or of the wrong type"),
        ({"frees": {"dram": "all"}}, "frees: expected one of removes, waits, fills, idle, work, launch as well"),
        ({"adds": {"dram": "0.5"}, "frees": {"l2": "0.5"}}, "adds and frees: expected one of removes, "),
    ],
)
def test_what_cannot_be_read_is_said_with_its_file_and_finding(changed: Mapping[str, Any], says: str) -> None:
    with pytest.raises(ProfileError) as error:
        read(changed)
    assert str(error.value).startswith("rules/dram.toml: finding.remote_memory: ")
    assert says in str(error.value)


def test_all_names_that_exist_are_said() -> None:
    model = load_model()
    with pytest.raises(ProfileError) as error:
        read_fix({"removes": {"drum": "all"}})
    for name in (*model.resources, *model.groups):
        assert f" {name}" in str(error.value)


def test_what_is_said_of_one_resource_comes_before_what_is_said_of_its_group() -> None:
    removes = {"l2_tags": "0.25", "l2": "0.5"}
    fix = read_fix({"removes": removes})
    assert fix is not None
    shares = {name: str(amount) for name, amount in fix.removes.items()}
    assert shares == dict.fromkeys(load_model().groups["l2"].resources, "0.5") | {"l2_tags": "0.25"}
    turned = read_fix({"removes": dict(reversed(removes.items()))})
    assert turned is not None
    assert {name: str(amount) for name, amount in turned.removes.items()} == shares


def test_a_finding_that_states_nothing_has_no_change() -> None:
    assert read_fix({"title": "something"}) is None
    assert load_rules().findings["dram_roof"].fix is None


def test_the_names_of_the_model_are_those_that_it_has() -> None:
    model = load_model()
    for resource in model.resources.values():
        assert {*resource.sides} <= model.sides.keys()
        assert {*resource.fed_by} <= model.resources.keys()
    for name, group in model.groups.items():
        assert {*group.resources} <= model.resources.keys(), name


def test_every_change_takes_something_away() -> None:
    for name, fix in FIXES.items():
        assert fix.removes or any(fix.effects().values()), name
