"""How far a verdict is from flipping to another, in a sentence."""

from __future__ import annotations

from ncuroof import wording
from ncuroof.diagnosis import Rules
from ncuroof.present.analysed import Record
from ncuroof.words import Verdict

_SIDES = {"memory_side": "the memory side", "compute": "the SMs", "busiest": "the busiest unit"}
_OTHER = {"memory_side": "compute", "compute": "memory"}


def flip_sentence(kernel: Record, rules: Rules) -> str:
    """Return which change would flip a kernel's verdict; empty where none is known."""
    flip = kernel["flip"]
    if not flip:
        return ""
    becomes, factor = rules.verdicts[flip["becomes"]].title, 1 + flip["change_frac"]
    group, _, key = flip["quantity"].partition(".")
    if key not in _SIDES:
        return f"Would become {becomes} at {factor:.3g} times its intensity."
    side = _SIDES[key]
    if Verdict.LATENCY in (kernel["verdict"], flip["becomes"]):
        now = kernel[group][key]
        wanted = wording.share(now * factor)
        return f"Would be {becomes} if {side} were {wanted} busy instead of {wording.share(now)}."
    less = f"Would be {becomes} if {side} had {wording.share(1 - factor)} less to do"
    if kernel["verdict"] == Verdict.BALANCED:
        return f"{less}."
    return f"{less}, and {rules.verdicts[_OTHER[key]].title} with still less."
