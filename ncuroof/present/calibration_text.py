"""A calibration for people: each roof that was reached, beside the data sheet's."""

from __future__ import annotations

from ncuroof.collect.calibration import Calibration
from ncuroof.present import format as text
from ncuroof.roofline import GpuProfile, match_profile


def to_text(calibration: Calibration) -> str:
    """Return a calibration as lines of plain text, with what it is of the data sheet's roofs."""
    profile = match_profile(calibration.gpu, calibration.compute_capability, sm_count=calibration.sm_count or None)
    lines = [f"{text.printable(calibration.gpu)} · {calibration.sm_count} SMs", ""]
    for roof in calibration.roofs:
        write = text.byte_rate if roof.kind == "bandwidth" else text.flop_rate
        sheet = _sheet(profile, roof.kind, roof.name)
        share = "" if sheet is None else f"{text.share(roof.per_s / sheet):>8} of {write(sheet)}"
        rate = f"{write(roof.per_s):>14}  ±{100 * roof.spread_frac / 2:.1f} %"
        clock = "" if roof.sm_clock_hz is None else text.scaled(roof.sm_clock_hz, "Hz")
        lines.append(f"{text.label(roof.name):<14}{rate}{share:>28}{clock:>10}  {text.printable(roof.how)}")
    return "\n".join(lines) + "\n"


def _sheet(profile: GpuProfile | None, kind: str, name: str) -> float | None:
    if profile is None:
        return None
    return (profile.bandwidth_bytes_per_s if kind == "bandwidth" else profile.peak_flop_per_s).get(name)
