"""Messages of NVIDIA's own rules for a kernel, and whether they agree with its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

import polars as pl

from ncuroof.diagnosis import Rules, vendor_verdict
from ncuroof.ingest import RawReport
from ncuroof.present.analysed import Document, Record


def vendor_rules(reports: Iterable[RawReport]) -> pl.DataFrame:
    """Return the messages of NVIDIA's rules of all reports, with the kernel's `id` in the analysis."""
    parts, n_before = [], 0
    for report in reports:
        parts.append(report.rules.with_columns((pl.col("row") + n_before).cast(pl.UInt32).alias("id")))
        n_before += report.workloads.height
    return pl.concat(parts).select("id", "rule_id", "type", "title", "message", "speedup_frac", "scope")


def vendor_block(messages: Sequence[Record], verdict: str, path: Iterable[Record], rules: Rules) -> Document:
    """Return NVIDIA's verdict and messages, whether ncuroof's verdict agrees, and why not where it does not.

    Args:
        messages: rows of `vendor_rules` for this kernel, without `id`.
        verdict: ncuroof's.
        path: rows of PATH for this kernel, which led to the verdict.
        rules: for what NVIDIA's messages mean.
    """
    described = [{"id" if key == "rule_id" else key: value for key, value in each.items()} for each in messages]
    return asdict(vendor_verdict(messages, verdict, path, rules.vendor)) | {"rules": described}
