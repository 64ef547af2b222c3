"""Documents made by hand: numbers are round, so that a reader can follow them."""

from __future__ import annotations

import copy
from typing import Any


def saving(gain_ns: float | None, expected_frac: float = 0.5) -> dict[str, float | None]:
    """Return what a fix saves of which nine tenths to eleven tenths of what is expected are saved."""
    if gain_ns is None:
        return dict.fromkeys(("gain_ns", "expected_ns", "expected_low_ns", "expected_high_ns"))
    expected_ns = expected_frac * gain_ns
    return {
        "gain_ns": gain_ns,
        "expected_ns": expected_ns,
        "expected_low_ns": 0.9 * expected_ns,
        "expected_high_ns": 1.1 * expected_ns,
    }


def action(finding: str | None, gain_ns: float = 1.0, **changes: Any) -> dict[str, Any]:
    """Return an action: that of a finding, or idle time."""
    return {
        "rank": 1,
        "id": finding or "host_wait",
        "finding": finding,
        "title": "A title",
        "advice": "Do it.",
        "where": None,
        "kernels": [],
        "n_launches": 1,
        **saving(gain_ns),
        "share_frac": 0.1,
        "needs_more_work": False,
    } | changes


LINE = {
    "file": "a.cu",
    "line": 7,
    "text": "x[i] = y[j];",
    "callers": [{"file": "b.cu", "line": 9}],
    "awaits": [
        {"file": "a.cu", "line": 5, "callers": [{"file": "b.cu", "line": 8}], "frac": 0.9, "address_from": None}
    ],
    "value": 700.0,
    "frac": 0.7,
}
_UTILISATION = ("memory", "compute", "sm", "dram", "l2", "l1", "issue", "tensor", "fp32", "busiest", "lead", "gap")

# Of an entry of work or bandwidth: no data sheet or calibration fits.
_OTHER_ROOFS = {"peak_source": "counters", "datasheet_frac": None, "reached_frac": None}

# Of a run whose nine launches were all profiled.
WEIGHTING = {
    "n_launches": 9, "duration_ns": 1e6, "covered_frac": 1.0, "not_recorded": [], "uneven_frac": None, "n_unmatched": 0,
    "computation_frac": None, "uncounted_frac": None, "timed_frac": None, "foreign": [], "wall_times": [],
    "is_summary": False,
}  # fmt: skip

# A kernel of 100 µs that moves 200 MB at 2 TB/s (of 2.5) and does 100 MFLOP at 1 TFLOP/s (of 10): intensity 0.5 FLOP/B.
_KERNEL = {
    "id": 0,
    "source": 0,
    "device": 0,
    "name": "void saxpy<float>(int, float, float const *, float *)",
    "short_name": "saxpy",
    "family": "user",
    "workload": "kernel",
    "failed": False,
    "grid": [1024, 1, 1],
    "block": [256, 1, 1],
    "stream": 7,
    "context": 1,
    "process": {"id": 42, "name": "bench"},
    "nvtx": ["epoch", "step"],
    "duration_ns": 100_000.0,
    "sm_clock_hz": 1.5e9,
    "passes": 9,
    "work": {
        "fp32": {
            "flop": 1e8,
            "flop_per_s": 1e12,
            "peak_flop_per_s": 1e13,
            "frac": 0.1,
            "definition": "fadd + fmul + 2·ffma",
            "reliable": True,
            **_OTHER_ROOFS,
        },
        "fp64": {
            "flop": 0.0,
            "flop_per_s": 0.0,
            "peak_flop_per_s": 5e12,
            "frac": 0.0,
            "definition": "dadd + dmul + 2·dfma",
            "reliable": True,
            **_OTHER_ROOFS,
        },
    },
    "bandwidth": {
        "dram": {
            "bytes_per_s": 2e12,
            "peak_bytes_per_s": 2.5e12,
            "frac": 0.8,
            "definition": "dram__bytes, both directions",
            **_OTHER_ROOFS,
        }
    },
    "launch": {},
    "arithmetic": {},
    "scheduler": {},
    "check": {},
    "traffic_definition": {},
    "traffic_bytes": {"dram": 2e8, "dram_read": 1.5e8, "dram_write": 5e7, "l2": 2e8, "l1": None, "shared": 0.0},
    "utilisation": {
        "memory": 0.8,
        "compute": 0.2,
        "dram": 0.8,
        "tensor": 0.0,
        "fp16": None,
        "busiest": 0.8,
        "lead": 0.6,
        "gap": 0.6,
    },
    "occupancy": {"achieved_frac": 0.75, "theoretical_frac": 1.0, "waves": 2.0, "limiters": ["warps"]},
    "access": {"load_bytes_per_sector": 32.0, "l1_hit_frac": 0.0, "l2_hit_frac": None},
    "stalls": {"long_scoreboard": 0.6, "barrier": 0.0},
    "points": [
        {
            "level": level,
            "precision": "fp32",
            "intensity_flop_per_byte": intensity,
            "flop_per_s": 1e12,
            "roof_flop_per_s": 1.25e12,
            "ridge_flop_per_byte": 4.0,
            "roof_frac": 0.8,
        }
        for level, intensity in (("dram", 0.5), ("l2", 0.25), ("l1", None))
    ],
    # 5 M warp instructions in 100 µs, of 200 GIPS; 2 TB/s of DRAM are 62.5 GTXN/s of 32 byte: 0.8 warp instructions each.
    "instructions": {
        "warp_executed": 5e6,
        "inst_per_s": 5e10,
        "peak_inst_per_s": 2e11,
        "frac": 0.25,
        "definition": "executed warp instructions",
        "points": [
            {
                "level": level,
                "intensity_inst_per_transaction": intensity,
                "inst_per_s": 5e10,
                "roof_inst_per_s": 6.25e10,
                "ridge_inst_per_transaction": 2.56,
                "roof_frac": 0.8,
            }
            for level, intensity in (("dram", 0.8), ("l2", 0.4), ("shared", None))
        ],
    },
    "verdict": "memory",
    "limiter": "dram",
    "side": "memory",
    "dominant_precision": None,
    "confidence": "high",
    "flip": None,
    "above_roof_cause": None,
    "scaling": None,
    "path": [
        {
            "node": "busy_enough",
            "quantity": "utilisation.busiest",
            "value": 0.8,
            "op": ">=",
            "threshold": 0.6,
            "outcome": True,
            "margin_frac": 1 / 3,
        }
    ],
    "caveats": ["short_kernel"],
    "findings": [
        {
            "id": "dram_roof",
            "title": "It runs close to what DRAM can deliver",
            "severity": "low",
            "advice": "Move fewer bytes, since nothing else makes it faster.",
            "evidence": [{"quantity": "utilisation.dram", "value": 0.8, "unit": "share"}],
            "where": {"measure": "samples", "of": "the samples", "lines": [LINE]},
            **saving(10_000.0),
            "is_most_worth": True,
            "gain_basis": "a share of the duration",
            "expected_basis": "after it, L2 is the limit",
            "waste": {"l1": {"bytes": 6e6, "frac": 0.75}, "dram": {"bytes": 1.5e6, "frac": 0.25}},
        }
    ],
    "lines": [{**LINE, "stall": "wait", "not_issued_frac": 0.8}],
    "min_time_ns": 80_000.0,
    "min_time_frac": 0.8,
    "min_time_by": None,
    "recoverable_ns": 20_000.0,
    "missing": [
        {"quantity": "access.l2_hit_frac", "collect": "--metrics lts__t_sector_hit_rate.pct"},
        {"quantity": "scheduler.n_eligible_warps", "collect": "--section SchedulerStats"},
    ],
    "vendor": {
        "verdict": "latency",
        "rules": [
            {
                "id": "SOLBottleneck",
                "type": "optimization",
                "title": "Latency Issue",
                "message": "Look at @section:WarpStateStats:Warp State Statistics@ and the "
                "@url:Guide:https://docs.example.com/guide#a@.",
                "speedup_frac": 0.25,
                "scope": "global",
            },
            {"id": "Occupancy", "type": "error", "title": "", "message": "/home/someone/Occupancy.py:44"},
        ],
    },
}


DEVICE = {
    "name": "NVIDIA Imaginary",
    "compute_capability": "9.0",
    "sm_count": 100,
    "dram_bytes_per_s": None,
    "profile": "imaginary",
}


def kernel(**changes):
    """Return a kernel with some of its entries replaced."""
    return copy.deepcopy(_KERNEL) | changes


def ceiling(kind, name, per_s, source="counters", device=0):
    """Return a ceiling."""
    return {"device": device, "kind": kind, "name": name, "per_s": per_s, "source": source, "definition": "by hand"}


CEILINGS = (
    ceiling("bandwidth", "dram", 2.5e12),
    ceiling("bandwidth", "dram", 3e12, "datasheet"),
    ceiling("bandwidth", "l2", 5e12),
    ceiling("compute", "fp32", 1e13),
    ceiling("compute", "fp32", 1.2e13, "datasheet"),
    ceiling("compute", "fp64", 5e12),
)


INSTRUCTION_CEILINGS = (
    ceiling("bandwidth", "dram", 2.5e12 / 32),
    ceiling("bandwidth", "dram", 3e12 / 32, "datasheet"),
    ceiling("bandwidth", "l2", 5e12 / 32),
    ceiling("compute", "warp_issue", 2e11),
    ceiling("compute", "warp_issue", 2.5e11, "datasheet"),
)


def known_sum(parts):
    """Return the sum of what is not None; None where nothing is."""
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def outlook(**changes):
    """Return the outlook of a run in which nobody knows what actions save together, with some of its entries replaced."""
    return {
        "n_first": 0,
        "joint_frac": None,
        "joint_speedup": None,
        "is_mostly_unjudged": False,
        "of_run_frac": 1.0,
        "is_beyond_roofline": False,
        "near_dram_roof_frac": 0.0,
        "too_short_frac": 0.0,
        "in_doubt_frac": 0.0,
    } | changes


def document(*kernels, **changes):
    """Return a document of these kernels, by default on one GPU."""
    by_verdict = {}
    total_ns, recoverable_ns = (
        known_sum(each.get(name) for each in kernels) for name in ("duration_ns", "recoverable_ns")
    )
    for each in kernels:
        if each["failed"]:
            continue
        share = by_verdict.setdefault(
            each["verdict"], {"n_kernels": 0, "n_launches": 0, "duration_ns": None, "share_frac": None}
        )
        share["n_kernels"] += 1
        share["n_launches"] += 1
        share["duration_ns"] = known_sum((share["duration_ns"], each["duration_ns"]))
        share["share_frac"] = share["duration_ns"] / total_ns if total_ns and share["duration_ns"] is not None else None
    worth = sorted((each for each in kernels if not each["failed"]), key=lambda each: -(each["recoverable_ns"] or 0.0))
    return {
        "schema": "ncuroof.analysis/1",
        "actions": [],
        "groups": [
            {
                "id": each["id"],
                "launches": [each["id"]],
                "n_launches": 1,
                "duration_ns": each["duration_ns"],
                "recoverable_ns": each["recoverable_ns"],
                "min_duration_ns": each["duration_ns"],
                "max_duration_ns": each["duration_ns"],
                "duration_cv": None,
                "has_gain": True,
                "is_in_doubt": False,
            }
            for each in worth
        ],
        "tool": {"name": "ncuroof", "version": "0.0.0"},
        "sources": [
            {
                "file": "run.ncu-rep",
                "sha256": "00",
                "ncu_version": "2025.3.1",
                "driver_version": "580.1",
                "cuda_version": "13.0",
                "command_line": "ncu --set full python train.py",
                "clock_control": "base",
                "cache_control": None,
                "replay_mode": "kernel",
                "sections": ["SpeedOfLight", "Occupancy"],
                "damage": None,
                "simulated": False,
            }
        ],
        "devices": [DEVICE],
        "summary": {
            "n_kernels": len(kernels),
            "n_failed": sum(each["failed"] for each in kernels),
            "n_launches": sum(not each["failed"] for each in kernels),
            "duration_ns": total_ns,
            "recoverable_ns": recoverable_ns,
            "n_debug_builds": 0,
            "debug_build_frac": 0.0,
            "doubted_frac": None,
            "by_doubt": {},
            "outlook": outlook(n_first=len(changes.get("actions", ()))),
            "by_verdict": by_verdict,
            "by_family": [],
            "by_nvtx": [],
            "by_nvtx_branch": [],
            "by_nvtx_path": [],
        },
        "ceilings": list(CEILINGS),
        "instruction_ceilings": list(INSTRUCTION_CEILINGS),
        "kernels": list(kernels),
        "expected": None,
    } | changes


def weighted_document():
    """Return a run of 10 counted launches, of which 4 were recorded: alpha twice for 5 launches, beta for 4, and gamma for itself.

    alpha's 100 and 300 µs weigh half each, 200 µs for 5 launches; beta's 50 µs weigh 4 times, 200 µs; gamma's are 100 µs. Above the
    roofline: alpha (10 + 30) / 2 = 20 µs, beta 4 * 20 = 80 µs, gamma 90 µs: of 500 µs 190.
    """
    stands = {"counted_average_ns": None, "counted_shortest_ns": None, "counted_longest_ns": None}
    alpha = {"short_name": "alpha", "n_represented": 2.5, "weight": 0.5, **stands}
    kernels = [
        kernel(id=0, duration_ns=1e5, recoverable_ns=1e4, **alpha),
        kernel(id=1, duration_ns=3e5, recoverable_ns=3e4, **alpha),
        kernel(id=2, short_name="beta", duration_ns=5e4, recoverable_ns=2e4, n_represented=4.0, weight=4.0, **stands),
        kernel(id=3, short_name="gamma", duration_ns=1e5, recoverable_ns=9e4, n_represented=1.0, weight=1.0, **stands),
    ]
    ends = {"duration_cv": None, "min_duration_ns": 1e5, "max_duration_ns": 1e5}
    groups = [
        {"id": 3, "launches": [3], "n_launches": 1, "duration_ns": 1e5, "recoverable_ns": 9e4, **ends},
        {"id": 2, "launches": [2], "n_launches": 4, "duration_ns": 2e5, "recoverable_ns": 8e4, **ends},
        {"id": 1, "launches": [0, 1], "n_launches": 5, "duration_ns": 2e5, "recoverable_ns": 2e4, **ends},
    ]
    found = document(*kernels, groups=groups)
    times = {"duration_ns": 5e5, "recoverable_ns": 1.9e5, "n_launches": 10}
    weighting = WEIGHTING | {"n_launches": 10, "duration_ns": 5e5, "uneven_frac": 0.0, "computation_frac": 1.0}
    memory = {"n_kernels": 4, "n_launches": 10, "duration_ns": 5e5, "share_frac": 1.0}
    found["summary"] |= {**times, "by_verdict": {"memory": memory}, "weighting": weighting}
    return found


def unknown_kernel(**changes):
    """Return a kernel of which nothing but its name is known, and whose profiling failed."""
    nothing = dict.fromkeys(
        ("grid", "block", "stream", "context", "process", "duration_ns", "sm_clock_hz", "passes", "limiter", "side")
    )
    unknown = kernel(
        **nothing,
        failed=True,
        nvtx=[],
        work={},
        bandwidth={},
        traffic_bytes={"dram": None},
        utilisation=dict.fromkeys(_UTILISATION),
        occupancy={"achieved_frac": None, "limiters": []},
        access={"l1_hit_frac": None},
        stalls={},
        points=[],
        instructions=None,
        verdict="unknown",
        confidence="low",
        path=[],
        caveats=["failed"],
        findings=[],
        min_time_ns=None,
        min_time_frac=None,
        recoverable_ns=None,
        missing=[],
        vendor={"verdict": None, "rules": []},
    )
    return unknown | changes


def without_flop(**changes):
    """Return a kernel whose FLOPs were counted, and are none."""
    counted = kernel()["work"]["fp64"]
    return kernel(work={"fp64": counted}, points=[], **changes)


def three_kernels():
    """Return a document of one kernel with a dot, another, and one without FLOPs."""
    return document(
        kernel(id=10, short_name="alpha", duration_ns=1e5, recoverable_ns=1e4),
        kernel(id=11, short_name="beta", duration_ns=3e5, recoverable_ns=None, verdict="compute"),
        without_flop(id=12, short_name="gamma", duration_ns=2e5, recoverable_ns=9e4, verdict="latency"),
    )


HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>alert(1)</script>",
    "{{ 7 * 7 }} ${7*7} %{x} <b>bold</b> &lt;i&gt;",
    "\u202egnitirw\u202c \x1b[31m\x00",
    "template<" + "std::pair<int, " * 700 + ">",
    "🚀 👩\u200d🚀 größe 核",
)
"""Names that would do harm as markup, as a template, as terminal escapes, as direction marks, or by their length."""


def hostile_document():
    kernels = [
        kernel(id=number, name=name, short_name=name, nvtx=[name], process={"id": 1, "name": name})
        for number, name in enumerate(HOSTILE)
    ]
    for each, name in zip(kernels, HOSTILE, strict=True):
        called = [{"file": name + ".", "line": 1}]
        awaited = {
            "file": name + "!",
            "line": 1,
            "callers": called,
            "frac": 1.0,
            "address_from": {"file": name, "line": 2},
        }
        line = {**LINE, "file": name, "text": name, "callers": called, "awaits": [awaited]}
        each["lines"] = [{**line, "stall": "wait", "not_issued_frac": None}]
        each["findings"][0]["where"] = {"measure": "samples", "of": "the samples", "lines": [line]}
    source = document()["sources"][0] | {"file": HOSTILE[0], "command_line": HOSTILE[1], "damage": HOSTILE[0]}
    device = document()["devices"][0] | {"name": HOSTILE[0], "profile": HOSTILE[2]}
    definitions = [ceiling("bandwidth", HOSTILE[0], 1e12), *CEILINGS]
    return document(
        *kernels, sources=[source], devices=[device], ceilings=definitions, instruction_ceilings=definitions
    )


EMPTY_DOCUMENTS = {
    "no kernel": document(),
    "failed kernel": document(unknown_kernel()),
    "launch only": document(unknown_kernel(failed=False, grid=[1, 1, 1])),
    "no devices": document(kernel(device=None), devices=[], ceilings=[], instruction_ceilings=[]),
    "no ceilings": document(kernel(), ceilings=[], instruction_ceilings=[]),
    "no instructions": document(kernel(instructions=None), instruction_ceilings=[]),
    "names unknown": document(kernel(name="", short_name="")),
}
