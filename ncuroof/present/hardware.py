"""Data sheets of GPUs for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from ncuroof.present.console import result_console
from ncuroof.present.format import MISSING, byte_count, byte_rate, flop_rate, intensity, label, scaled
from ncuroof.roofline import GpuProfile

_SHOWN_PRECISIONS = ("fp32", "tensor_bf16", "tensor_fp16", "tensor_fp8")


def print_profiles(profiles: Sequence[GpuProfile], *, color: bool | None = None) -> None:
    """Print a line per GPU on standard output: what it is, its DRAM, and its ridge points."""
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("GPU", no_wrap=True)
    for heading in ("cc", "SMs", "DRAM", *(f"{label(name)} ridge" for name in _SHOWN_PRECISIONS[:2])):
        table.add_column(heading, justify="right", no_wrap=True)
    for profile in profiles:
        ridges = [intensity(profile.ridge_flop_per_byte(name)) for name in _SHOWN_PRECISIONS[:2]]
        dram = byte_rate(profile.bandwidth_bytes_per_s.get("dram"))
        table.add_row(profile.id, profile.compute_capability, str(profile.sm_count), dram, *ridges)
    result_console(color=color).print(table)


def print_profile(profile: GpuProfile, *, color: bool | None = None) -> None:
    """Print everything known about a GPU on standard output, each number with its source."""
    console = result_console(color=color)
    console.print(f"{profile.name} ({profile.id}), {profile.architecture} {profile.chip}", style="bold", soft_wrap=True)
    for line in _facts(profile):
        console.print(line, soft_wrap=True)
    for table, numbers, as_text in (
        ("bandwidth_bytes_per_s", profile.bandwidth_bytes_per_s, byte_rate),
        ("peak_flop_per_s", profile.peak_flop_per_s, flop_rate),
    ):
        for name, value in numbers.items():
            ridge = (
                "" if table == "bandwidth_bytes_per_s" else f", ridge {intensity(profile.ridge_flop_per_byte(name))}"
            )
            console.print(f"{label(name)}: {as_text(value)}{ridge}", soft_wrap=True)
            console.print(f"  {profile.sources[f'{table}.{name}']}", style="dim", soft_wrap=True)
    for about, note in profile.notes.items():
        console.print(f"note on {about}: {note}", soft_wrap=True)


def _facts(profile: GpuProfile) -> Iterator[str]:
    clock = scaled(profile.sm_boost_clock_hz, "Hz")
    yield f"compute capability {profile.compute_capability}, {profile.sm_count} SMs, boost {clock}"
    memory = [
        f"{byte_count(profile.dram_bytes)} DRAM" if profile.dram_bytes else None,
        f"{byte_count(profile.l2_bytes)} L2" if profile.l2_bytes else None,
    ]
    yield ", ".join(filter(None, memory)) or MISSING
    yield "named in reports: " + ", ".join(profile.device_names)
