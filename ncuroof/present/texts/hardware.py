"""GPUs for people: their data sheets, and a calibration with each measured roof beside the data sheet's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from rich.table import Table

from ncuroof import formatting
from ncuroof.formatting import MISSING, byte_count, byte_rate, flop_rate, in_operations, intensity, label, scaled
from ncuroof.present.texts.layout import result_console, wrapped_lines
from ncuroof.roofline import GpuProfile, match_profile
from ncuroof.roofline.sheet_roofs import sheet_roof, sheet_roof_at_clock
from ncuroof.sidecars.calibration import Calibration, ReachedRoof

_SHOWN_PRECISIONS = ("fp32", "tensor_bf16")
_LEAST_SHOWN = 4
"""Columns that a narrow terminal shows as well: all but the ridges."""


def print_profiles(profiles: Sequence[GpuProfile], *, color: bool | None = None) -> None:
    """Print a line per GPU on standard output: name, size, DRAM bandwidth, and ridge points."""
    console = result_console(color=color)
    headings = ("GPU", "cc", "SMs", "DRAM", *(f"{label(name)} ridge" for name in _SHOWN_PRECISIONS))
    rows = [_row(profile) for profile in profiles]
    n_shown = _n_that_fit([max(map(len, column)) for column in zip(headings, *rows, strict=True)], console.width)
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    for number, heading in enumerate(headings[:n_shown]):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row[:n_shown])
    console.print(table)


def _n_that_fit(widths: Sequence[int], width: int) -> int:
    """Return how many columns fit beside each other, two places apart; the first ones stay whatever the width is."""
    fitting = [n for n in range(1, len(widths) + 1) if sum(widths[:n]) + 2 * (n - 1) <= width]
    return max([_LEAST_SHOWN, *fitting])


def _row(profile: GpuProfile) -> list[str]:
    ridges = [intensity(profile.ridge_flop_per_byte(name)) for name in _SHOWN_PRECISIONS]
    dram = byte_rate(profile.bandwidth_bytes_per_s.get("dram"))
    return [profile.id, profile.compute_capability, str(profile.sm_count), dram, *ridges]


def print_profile(profile: GpuProfile, *, color: bool | None = None) -> None:
    """Print everything known about a GPU on standard output, each number with its source."""
    console = result_console(color=color)

    def say(line: str, style: str = "") -> None:
        for each in wrapped_lines(line):
            console.print(each, style=style, soft_wrap=True)

    say(f"{profile.name} ({profile.id}), {profile.architecture} {profile.chip}", "bold")
    for line in _facts(profile):
        say(line)
    for key, roof in _roofs(profile):
        say(roof)
        say(f"  {profile.sources[key]}", "dim")
    for about, note in profile.notes.items():
        say(f"note on {about}: {note}")
    say(f"defined in profiles/gpus/{profile.id}.toml")


def _facts(profile: GpuProfile) -> Iterator[str]:
    clock = scaled(profile.sm_boost_clock_hz, "Hz")
    yield f"compute capability {profile.compute_capability}, {profile.sm_count} SMs, boost {clock}"
    memory = [
        f"{byte_count(profile.dram_bytes)} DRAM" if profile.dram_bytes else None,
        f"{byte_count(profile.l2_bytes)} L2" if profile.l2_bytes else None,
    ]
    yield ", ".join(filter(None, memory)) or MISSING
    yield "device names in reports: " + ", ".join(profile.device_names)


def _roofs(profile: GpuProfile) -> Iterator[tuple[str, str]]:
    """Yield the key of each roof in `sources`, and the roof as text."""
    for name, bytes_per_s in profile.bandwidth_bytes_per_s.items():
        yield f"bandwidth_bytes_per_s.{name}", f"{label(name)}: {byte_rate(bytes_per_s)}"
    for name, flop_per_s in profile.peak_flop_per_s.items():
        ridge = in_operations(intensity(profile.ridge_flop_per_byte(name)), name)
        yield f"peak_flop_per_s.{name}", f"{label(name)}: {flop_rate(flop_per_s, name)}, ridge {ridge}"


def to_text(calibration: Calibration) -> str:
    """Return a calibration as lines of plain text, with shares of the data sheet's roofs at boost and at measured clock."""
    profile = match_profile(calibration.gpu, calibration.compute_capability, sm_count=calibration.sm_count or None)
    lines = [f"{formatting.printable(calibration.gpu)} · {calibration.sm_count} SMs", ""]
    for roof in calibration.roofs:
        write = formatting.byte_rate if roof.kind == "bandwidth" else partial(formatting.flop_rate, precision=roof.name)
        sheet = None if profile is None else sheet_roof(profile, roof.kind, roof.name)
        share = "" if sheet is None else f"{formatting.share(roof.per_s / sheet):>8} of {write(sheet)}"
        rate = f"{write(roof.per_s):>14}  ±{100 * roof.spread_frac / 2:.1f} %"
        lines.append(
            f"{formatting.label(roof.name):<14}{rate:<24}{share:>26}{_at_clock(profile, roof):>22}  "
            f"{formatting.printable(roof.how)}"
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
    seen = f"at {formatting.scaled(roof.sm_clock_hz, 'Hz')}"
    sheet = None if profile is None else sheet_roof_at_clock(profile, roof.kind, roof.name, roof.sm_clock_hz)
    return seen if sheet is None else f"{formatting.share(roof.per_s / sheet)} {seen}"
