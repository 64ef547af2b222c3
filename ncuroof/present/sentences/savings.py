"""What a change saves, and what that assumes, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ncuroof import formatting
from ncuroof.demand import WAITING, Fix, load_model
from ncuroof.enums import Verdict

_ROUNDING = 1.001
"""A gain that exceeds the recoverable time by less than this factor counts as equal."""

_BY_EFFECT = {
    "waits": "these waits go",
    "fills": "more warps hide waiting in proportion to their number",
    "idle": "SMs that idle have work",
    "work": "the needless work goes",
}
_IDLE_BESIDE = 0.2
"""Share of the busiest removed resource's utilisation below which another one does not matter (a choice)."""

_UNTIL = "until what is left of the kernel's work is the limit"


_DIGITS = ((0.1, 3), (1.0, 2))
"""A saving is written with so many digits where its interval is narrower than this share of it; else with one."""


_TOO_COARSE = "123"
"""First digits of numbers that one digit alone would change by up to a third: 13.6 % to 10 %."""

_UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))
_LEAST_IN_UNIT = 1e-3
"""Smaller numbers are written in a smaller unit than their whole."""

_DIGITS_OF_MOST = 2
"""Least digits of a bound; more only where the expected saving has more."""


def about(saved: Mapping[str, Any], whole_ns: float | None = None) -> str:
    """Return what a finding or an action is expected to save, as a time, with as many digits as its interval supports.

    Args:
        saved: a finding or an action.
        whole_ns: the time that it is part of, whose unit is then used: "0.05 ms" of a step of milliseconds.
    """
    return _time(_rounded(saved["expected_ns"], saved), whole_ns)


def at_most(saved: Mapping[str, Any], whole_ns: float | None = None) -> str:
    """Return the most that a finding or an action saves, as a time. Arguments as for `about`."""
    return _time(float(f"{saved['gain_ns']:.{max(_DIGITS_OF_MOST, _n_digits(saved))}g}"), whole_ns)


def saves(saved: Mapping[str, Any], whole_ns: float | None = None) -> str:
    """Return what a finding or an action saves: "about 4 ms, at most 8.8 ms"; one of the two if both are equal or 0 is expected.

    Arguments as for `about`.
    """
    most = at_most(saved, whole_ns)
    if not saved["expected_ns"]:
        return f"at most {most}"
    expected = about(saved, whole_ns)
    return f"about {expected}" if expected == most else f"about {expected}, at most {most}"


def _time(value_ns: float, whole_ns: float | None) -> str:
    if whole_ns is not None:
        unit, size_ns = next((each for each in _UNITS if whole_ns >= each[1]), _UNITS[-1])
        if value_ns >= _LEAST_IN_UNIT * size_ns:
            return f"{float(f'{value_ns / size_ns:.3g}'):g} {unit}"
    number, unit = formatting.duration(value_ns).split(" ")
    return f"{formatting.trimmed(number)} {unit}"


def about_share(saved: Mapping[str, Any], whole_ns: float) -> str:
    """Return the same as a share of a time, with the most that can be saved: "about 31 %, at most 39.1 %"."""
    most = formatting.share(saved["gain_ns"] / whole_ns)
    expected = _rounded(100 * saved["expected_ns"] / whole_ns, saved)
    return f"about {expected:.3g} %, at most {most}" if expected >= _LEAST_PERCENT else f"at most {most}"


_LEAST_PERCENT = 0.1


def _rounded(value: float, saved: Mapping[str, Any]) -> float:
    """Return an expected saving in any unit with its digits; with a further one where it would exceed the bound otherwise."""
    n_digits = _n_digits(saved)
    if n_digits == 1 and f"{value:e}"[0] in _TOO_COARSE:
        n_digits = 2
    rounded = float(f"{value:.{n_digits}g}")
    is_beyond = rounded * saved["expected_ns"] > value * saved["gain_ns"]
    return float(f"{value:.{max(n_digits + 1, _DIGITS_OF_MOST)}g}") if is_beyond else rounded


def _n_digits(saved: Mapping[str, Any]) -> int:
    width, expected = saved["expected_high_ns"] - saved["expected_low_ns"], saved["expected_ns"]
    return next((digits for share, digits in _DIGITS if width < share * expected), 1)


def gain_basis(fix: Fix, kernel: Mapping[str, Any], gain_ns: float | None, label: Callable[[str], str]) -> str | None:
    """Return what a kernel's gain assumes, what does not bound it, and if it exceeds the recoverable time; None without a gain.

    Args:
        fix: what fixing the finding removes.
        kernel: its quantities and `recoverable_ns`.
        gain_ns: the gain.
        label: returns the label of a quantity for people.
    """
    if gain_ns is None:
        return None
    names = {name for formula in fix.formulas() for name in formula.quantities if kernel.get(name) is None}
    unknown = [label(name) for name in sorted(names | _not_bounding(kernel))]
    recoverable_ns = kernel["recoverable_ns"]
    is_beyond = recoverable_ns is not None and gain_ns > recoverable_ns * _ROUNDING
    parts = (
        f"upper bound{', per unit of work' if fix.is_per_work else ''}: {_assumed(fix, kernel)}",
        f"not bounded by what was not collected: {', '.join(unknown)}" if unknown else None,
        "more than the time above the roofline, because the change lowers the roofline time itself"
        if is_beyond
        else None,
    )
    return "; ".join(filter(None, parts))


def expected_basis(fix: Fix, kernel: Mapping[str, Any], limit: str | None, expected_ns: float | None) -> str | None:
    """Return what limits a kernel after a fix, and how sure that is; None without an expected saving.

    Args:
        fix: what fixing the finding removes.
        kernel: its verdict and limiter.
        limit: resource that limits the kernel then.
        expected_ns: the saving that is expected.
    """
    if expected_ns is None:
        return None
    model = load_model()
    if fix.launch is not None or fix.is_open:
        kind = "open" if fix.launch is None else "launch"
        part, low, high = (model.expectation[f"{kind}{end}"] for end in ("", "_low", "_high"))
        whence = (
            "as recorded changes with such a bound saved"
            if fix.launch is None
            else "a choice: no such change is recorded"
        )
        return f"{part:.0%} of the bound, between {low:.0%} and {high:.0%}: {whence}"
    if limit is None or limit == WAITING:
        busy = model.resources.get(kernel["limiter"]) if kernel["verdict"] != Verdict.LATENCY else None
        return (
            f"after it, {busy.label} and waiting are still the limit"
            if busy
            else "after it, waiting is still the limit"
        )
    resource = model.resources.get(limit) or model.sides[limit]
    return f"after it, {resource.label} {'are' if resource.label in _PLURAL else 'is'} the limit"


_PLURAL = {"issue slots", "tensor cores", "the SMs", "L2's tag lookups"}


def _assumed(fix: Fix, kernel: Mapping[str, Any]) -> str:
    if fix.launch is not None:
        return "the launch goes, but for what its neighbours still have to do"
    removed = " and ".join(_removed(fix, kernel)[:2])
    if fix.is_open and removed:
        take = "take" if " and " in removed or removed in _PLURAL else "takes"
        return f"{removed} {take} no time beyond what the rest of the kernel needs"
    effects = [text for name, text in _BY_EFFECT.items() if getattr(fix, name) is not None]
    if removed:
        effects.insert(0, f"the needless share of the demand for {removed} goes, with the waiting for it")
    return f"{effects[0]}, {_UNTIL}"


def _removed(fix: Fix, kernel: Mapping[str, Any]) -> list[str]:
    """Return what a fix removes of a kernel's demand, in words: what is busiest first, and nothing that is idle beside that."""
    needed = [(label, names) for label, quantities, names in fix.removed if all(map(kernel.get, quantities))]
    busy = {
        label: _utilisation(names, kernel) for label, names in needed or [(each[0], each[2]) for each in fix.removed]
    }
    ordered = sorted(busy, key=lambda label: -busy[label])
    return [label for label in ordered if busy[label] >= _IDLE_BESIDE * busy[ordered[0]]]


def _utilisation(resources: Sequence[str], kernel: Mapping[str, Any]) -> float:
    """Return how busy the busiest of some resources is, as far as known."""
    model = load_model().resources
    of_each = [
        kernel.get(name) for each in resources for name in model[each].demand.quantities if "utilisation" in name
    ]
    return max((value for value in of_each if value is not None), default=0.0)


def _not_bounding(kernel: Mapping[str, Any]) -> set[str]:
    """Return a quantity of each main resource that does not bound a fix, since none of its quantities is known."""
    model = load_model()
    main = (model.resources["dram"], *model.sides.values())
    of_each = (each.demand.quantities for each in main)
    return {min(names) for names in of_each if all(kernel.get(name) is None for name in names)}
