"""Imitates tables that `ncu --csv` prints, in both forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

IDENTITY = {
    "ID": "0", "Process ID": "4242", "Process Name": "app", "Host Name": "127.0.0.1", "Kernel Name": "void ns::fn<int>(int, T1)",
    "Context": "1", "Stream": "7", "Block Size": "(256, 1, 1)", "Grid Size": "(10, 20, 1)", "Device": "0", "CC": "9.0",
}  # fmt: skip
"""The columns before the counters, as printed since 2022; older versions print a time and no shape."""

RULE_COLUMNS = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")

Counters = Mapping[str, tuple[str, str]]
"""Unit and value of each counter, as printed, by name."""


def line(cells: Sequence[str]) -> str:
    """Return a record as ncu writes it: every cell in quotes."""
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells) + "\n"


def wide_table(launches: Sequence[Counters], *, identity: Sequence[Mapping[str, str]] | None = None) -> str:
    """Return `--page raw --csv`: header, units, and a row per launch; the units are those of the first launch that has any."""
    names = list(dict.fromkeys(name for launch in launches for name in launch))
    units = [next(launch[name][0] for launch in launches if name in launch) for name in names]
    identities = identity or [{} for _ in launches]
    columns = list(IDENTITY | dict(identities[0])) if identities else list(IDENTITY)
    text = line([*columns, *names]) + line([*[""] * len(columns), *units])
    for number, (launch, own) in enumerate(zip(launches, identities, strict=True)):
        cells = IDENTITY | {"ID": str(number)} | dict(own)
        text += line([*(cells[column] for column in columns), *(launch.get(name, ("", ""))[1] for name in names)])
    return text


def long_table(
    launches: Sequence[Counters], *, section: str = "Command line profiler metrics", rules: bool = False
) -> str:
    """Return `--page details --csv`: a row per counter; with `rules`, each launch's rows are followed by the row of a rule."""
    columns = [
        *IDENTITY,
        "Section Name",
        "Metric Name",
        "Metric Unit",
        "Metric Value",
        *(RULE_COLUMNS if rules else ()),
    ]
    text = line(columns)
    for number, launch in enumerate(launches):
        cells = (IDENTITY | {"ID": str(number)}).values()
        for name, (unit, value) in launch.items():
            text += line([*cells, section, name, unit, value])
        if rules:
            rule = ("SOLBottleneck", "OPT", "A text,\nof two lines", "local", "12.5")
            text += line([*cells, "SpeedOfLight", "", "", "", *rule])
    return text
