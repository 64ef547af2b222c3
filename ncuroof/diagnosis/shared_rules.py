"""What findings of `profiles/rules/*.toml` share and state once: bases, kernels with a name, one family's advice for another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncuroof.resources import read_entries

_BASE, _KERNELS, _SAME_ADVICE, _VARIANT, _STALL = "base", "kernels", "same_advice", "variant", "stall"
_NAME_BY_KERNELS = {_KERNELS: "name", "not_kernels": "not_name"}
"""Keys of a finding that refer to named kernels, and the keys that they stand for."""

_ADVICE, _FROM_PYTORCH = "advice_", "_from_pytorch"
_PLACEHOLDER = "$stall"
_REMARK = "remark"


def complete_findings(raw: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the findings by id, as they would stand in `profiles/rules.toml` if nothing in it were shared.

    A finding with `base` has all keys of that base that it does not state itself, and the base's variants before its own; in a
    base, `$stall` stands for the finding's `stall`. In a variant, `kernels` stands for the keys of the named kernels that it does
    not state itself; in a finding, for their name (`not_kernels`: the name that the finding leaves out). Bases and named kernels
    may refer to others. `same_advice` gives a family the advice of another one, and `advice_<family>_from_pytorch` becomes a
    variant after all others.

    Args:
        raw: the parsed file.

    Raises:
        ProfileError: what an entry refers to does not exist, or a base asks for a `stall` that the finding does not state.
    """
    return read_entries(
        "rules.toml", "finding", raw["finding"], lambda _, entry: _complete(entry, raw[_BASE], raw[_KERNELS])
    )


def _complete(entry: Mapping[str, Any], bases: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    whole = _with_base(entry, bases)
    for shared, key in _NAME_BY_KERNELS.items():
        if shared in whole:
            whole[key] = _with_kernels(named[whole.pop(shared)], named)["name"]
    for family, other in whole.pop(_SAME_ADVICE, {}).items():
        whole.setdefault(_ADVICE + family, whole[_ADVICE + other])
    variants = [_with_kernels(variant, named) for variant in whole.pop(_VARIANT, ())]
    for key in [key for key in whole if key.startswith(_ADVICE) and key.endswith(_FROM_PYTORCH)]:
        family = key.removeprefix(_ADVICE).removesuffix(_FROM_PYTORCH)
        variants.append({"family": family, "is_from_pytorch": True, "advice": whole.pop(key)})
    stall = whole.pop(_STALL, None)
    return {**{key: _filled(value, stall) for key, value in whole.items()}, _VARIANT: variants}


def _with_base(entry: Mapping[str, Any], bases: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry with what its base and the base's bases say, and the variants of all of them, its own last."""
    base = _with_base(bases[entry[_BASE]], bases) if _BASE in entry else {}
    variants = [*base.get(_VARIANT, ()), *entry.get(_VARIANT, ())]
    return {key: value for key, value in {**base, **entry, _VARIANT: variants}.items() if key != _BASE}


def _with_kernels(entry: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a variant, or of named kernels, with those of the kernels that it refers to."""
    kernels = _with_kernels(named[entry[_KERNELS]], named) if _KERNELS in entry else {}
    return {key: value for key, value in {**kernels, **entry}.items() if key not in {_KERNELS, _REMARK}}


def _filled(value: Any, stall: str | None) -> Any:
    """Return a value of a TOML file with the name of a stall reason in place of `$stall`."""
    if isinstance(value, Mapping):
        return {key: _filled(each, stall) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, stall) for each in value]
    if not isinstance(value, str) or _PLACEHOLDER not in value:
        return value
    if stall is None:
        raise KeyError(_STALL)
    return value.replace(_PLACEHOLDER, stall)
