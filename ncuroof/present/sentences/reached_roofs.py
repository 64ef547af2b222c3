"""How close the launches of a run come to the roofs that a calibration measured, in a line per GPU."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ncuroof.present.analysed import Analysed
from ncuroof.wording import counted, label, share
from ncuroof.words import CeilingSource

_N_ROOFS = 4
_LEAST_FRAC = 0.01
"""Of a roof: launches that reach less are not shown."""


def reached_roof_lines(analysed: Analysed) -> Iterator[str]:
    """Yield a line per GPU that a calibration fits: the number of roofs, and how close launches come to the nearest ones."""
    tables = analysed.roofline_tables
    roofs = tables.ceilings.filter(pl.col("source") == CeilingSource.MEASURED.value).cast({"kind": pl.String})
    launches = analysed.measurements.kernels.select("id", "device")
    shares = (
        tables.roof_shares.join(launches, on="id").group_by("device", "kind", "name").agg(pl.col("reached_frac").max())
    )
    roofs = roofs.join(shares, on=["device", "kind", "name"], how="left").sort(
        "reached_frac", descending=True, nulls_last=True, maintain_order=True
    )
    for (device,), of_device in roofs.group_by("device", maintain_order=True):
        where = f"GPU {device}: " if analysed.measurements.devices.height > 1 else ""
        nearest = of_device.filter(pl.col("reached_frac") >= _LEAST_FRAC).head(_N_ROOFS)
        share_texts = [
            f"{share(frac)} of {label(name)}" for name, frac in nearest.select("name", "reached_frac").rows()
        ]
        reached = f"launches reach up to {', '.join(share_texts)} (roofs scaled to each launch's SM clock)"
        found = reached if share_texts else "no launch comes close to any of them"
        yield f"{where}{counted(of_device.height, 'measured roof')}; {found}"
