"""A loop from a slow kernel to its roof, by briefs alone: read one, make the edit for its first finding, read the next, stop.

    python examples/optimise_loop.py

The kernel multiplies a matrix of 16384 x 16384 with a vector on an H100 (fixtures/suite/gemv.cu). Instead of a compiler and a GPU
there are recordings: for each finding that the loop may act on, the edit and the report that was recorded after it.
"""

from __future__ import annotations

import json
from pathlib import Path

import ncuroof
from ncuroof.present.brief import brief_text

RECORDINGS = Path(__file__).resolve().parents[1] / "fixtures/h100-80gb-hbm3"
FIRST = "gemv_naive.full.ncu-repz"
EDITS = {
    "uncoalesced_global_load": (
        "one warp per row, so that its threads load neighbours",
        "gemv_vectorised.full.ncu-repz",
    ),
    "small_grid": ("one warp per row, so that there are 32 times as many warps", "gemv_vectorised.full.ncu-repz"),
    "l1_full_on_working_sms": (
        "one warp per row, so that its threads load neighbours",
        "gemv_vectorised.full.ncu-repz",
    ),
}
"""By finding: what to change, and the report that was recorded after that.."""

AT_ROOF = 0.8
"""Share of the roofline from which on tuning stops."""


def main() -> None:
    """Run the loop and print each step with the numbers that it rests on."""
    report, before_ns = FIRST, None
    while True:
        packet = json.loads(brief_text(ncuroof.read(RECORDINGS / report).analyse(), "json"))
        kernel = packet["kernels"][0]
        changed = "" if before_ns is None else f", {before_ns / kernel['ns']:.1f} times as fast as before"
        print(f"{kernel['name']}: {kernel['verdict']} ({kernel['limiter']}), {kernel['ns'] / 1e3:.0f} us{changed}")
        for number in kernel["because"]:
            print(
                f"  {number['e']} = {number['v']:.3g} {number['u']}"
                + (f", threshold {number['t']:g}" if "t" in number else "")
            )
        if kernel["min_time_frac"] >= AT_ROOF:
            print(f"  stop: {kernel['min_time_frac']:.0%} of the roofline")
            return
        todo = kernel["do"][0]["id"] if kernel["do"] else None
        if todo not in EDITS:
            print(f"  stop: no edit for {todo}")
            return
        edit, report = EDITS[todo]
        print(f"  {todo}: {edit}; {kernel['do'][0]['expected_ns'] / 1e3:.0f} us are expected of it")
        before_ns = kernel["ns"]


if __name__ == "__main__":
    main()
