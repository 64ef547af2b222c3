"""The resources of a GPU that a launch needs: reads `profiles/demand.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ncuroof.errors import ProfileError
from ncuroof.metrics.formula import Formula, parse
from ncuroof.resources import FrozenMapping, profile_file, read_entries

_FILE = "demand.toml"


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource that a launch needs for a part of its duration.

    Attributes:
        label: what people call it.
        demand: share of the duration for which the launch needs it at its peak.
        is_of_sms: each SM has its own.
        sides: the totals of Speed of Light that count it; empty for a total itself.
        stalls: stall reasons of warps that wait for it.
        reach: share of its peak that good kernels reach.
        is_certain: it bounds changes to other resources of its side.
        fed_by: resources through which its work passes: where one of them is the limit, that work may be what keeps it busy.
    """

    label: str
    demand: Formula
    is_of_sms: bool
    sides: tuple[str, ...]
    stalls: tuple[str, ...]
    reach: float
    is_certain: bool
    fed_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Several resources under one name.

    Attributes:
        label: what people call them.
        resources: their names.
    """

    label: str
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DemandModel:
    """All of `profiles/demand.toml`.

    Attributes:
        resources: by name.
        sides: the totals of Speed of Light, by name.
        groups: groups of resources, by name.
        expectation: what of a bound is expected, by what saves the time.
    """

    resources: Mapping[str, Resource]
    sides: Mapping[str, Resource]
    groups: Mapping[str, Group]
    expectation: Mapping[str, float]


@cache
def load_model() -> DemandModel:
    """Return the resources that ship with ncuroof.

    Raises:
        ProfileError: `profiles/demand.toml` is malformed.
    """
    with profile_file(_FILE) as raw:
        return DemandModel(
            FrozenMapping(read_entries(_FILE, "resource", raw["resource"], _resource)),
            FrozenMapping(read_entries(_FILE, "side", raw["side"], _resource)),
            FrozenMapping(read_entries(_FILE, "group", raw["group"], _group)),
            FrozenMapping(raw["expectation"]),
        )


def group(name: str) -> Group:
    """Return the group of a name; a resource is a group by itself.

    Raises:
        ProfileError: there is neither.
    """
    model = load_model()
    if name in model.groups:
        return model.groups[name]
    if name not in model.resources:
        known = ", ".join((*model.resources, *model.groups))
        raise ProfileError(f"no resource or group {name!r}; {_FILE} has {known}")
    return Group(model.resources[name].label, (name,))


def _group(_name: str, entry: Mapping[str, Any]) -> Group:
    return Group(entry["label"], tuple(entry["resources"]))


def _resource(_name: str, entry: Mapping[str, Any]) -> Resource:
    return Resource(
        entry["label"],
        parse(entry["demand"]),
        entry.get("of_sms", False),
        tuple(entry.get("side", ())),
        tuple(entry.get("stalls", ())),
        entry.get("reach", 1.0),
        entry.get("certain", True),
        tuple(entry.get("fed_by", ())),
    )
