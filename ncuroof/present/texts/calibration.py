"""A calibration for people: each measured roof beside the data sheet's."""

from __future__ import annotations

from functools import partial

from ncuroof import wording
from ncuroof.roofline import GpuProfile, match_profile
from ncuroof.roofline.sheet_roofs import sheet_roof, sheet_roof_at_clock
from ncuroof.sidecars.calibration import Calibration, ReachedRoof


def to_text(calibration: Calibration) -> str:
    """Return a calibration as lines of plain text, with shares of the data sheet's roofs at boost and at measured clock."""
    profile = match_profile(calibration.gpu, calibration.compute_capability, sm_count=calibration.sm_count or None)
    lines = [f"{wording.printable(calibration.gpu)} · {calibration.sm_count} SMs", ""]
    for roof in calibration.roofs:
        write = wording.byte_rate if roof.kind == "bandwidth" else partial(wording.flop_rate, precision=roof.name)
        sheet = None if profile is None else sheet_roof(profile, roof.kind, roof.name)
        share = "" if sheet is None else f"{wording.share(roof.per_s / sheet):>8} of {write(sheet)}"
        rate = f"{write(roof.per_s):>14}  ±{100 * roof.spread_frac / 2:.1f} %"
        lines.append(
            f"{wording.label(roof.name):<14}{rate:<24}{share:>26}{_at_clock(profile, roof):>22}  {wording.printable(roof.how)}"
        )
    if profile is not None:
        lines += [
            "",
            "of: share of the data sheet's roof at boost clock; at: share of that roof at the SM clock during the measurement",
        ]
    return "\n".join(lines) + "\n"


def _at_clock(profile: GpuProfile | None, roof: ReachedRoof) -> str:
    """Return the share of the sheet's roof at the measured clock: "92.0 % at 1.42 GHz"; for DRAM only the clock."""
    if roof.sm_clock_hz is None:
        return ""
    seen = f"at {wording.scaled(roof.sm_clock_hz, 'Hz')}"
    sheet = None if profile is None else sheet_roof_at_clock(profile, roof.kind, roof.name, roof.sm_clock_hz)
    return seen if sheet is None else f"{wording.share(roof.per_s / sheet)} {seen}"
