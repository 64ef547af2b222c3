"""Runs a constructed kernel through the whole chain, from counters to findings."""

from __future__ import annotations

from typing import Any

from ncuroof.reading import Reports
from tests.support.constructed import Described
from tests.support.constructed_counters import counters
from tests.support.raw import raw_report

MORE = {
    "reductions": "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
    "atomics": "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
    "loads": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "stores": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "compression_success_percent": "lts__average_gcomp_input_sector_success_rate.pct",
    "compression_input_sectors": "lts__gcomp_input_sectors.sum",
    "written_bytes": "l1tex__m_l1tex2xbar_write_bytes.sum",
    "bulk_load_bytes": "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",
    "to_l2_percent": "lts__xbar2lts_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "from_l2_percent": "lts__lts2xbar_cycles_active.avg.pct_of_peak_sustained_elapsed",
}
"""Counters that no description implies, by short name."""


_JUDGED: dict[str, dict[str, Any]] = {}
"""Diagnoses by description: many tests ask for that of the same kernel."""


def judged(described: Described, **more: float) -> dict[str, Any]:
    """Return the diagnosis of a kernel from the counters that its description implies and those of MORE that are given."""
    key = repr((described, sorted(more.items())))
    if key not in _JUDGED:
        extra = {MORE[name]: value for name, value in more.items()}
        report = raw_report(counters(described) | extra, names=[described.name])
        _JUDGED[key] = Reports((report,)).analyse().to_dict()["kernels"][0]
    return _JUDGED[key]


def gains(kernel: dict[str, Any]) -> dict[str, float | None]:
    """Return the gains of a kernel's findings as fractions of its duration, by finding; None for a finding without a gain."""
    return {
        finding["id"]: None if finding["gain_ns"] is None else finding["gain_ns"] / kernel["duration_ns"]
        for finding in kernel["findings"]
    }
