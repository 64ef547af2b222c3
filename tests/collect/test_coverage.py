"""The level roofline collects every counter that a rule needs, on every chip, and no counter that the chip lacks."""

from __future__ import annotations

import re
import subprocess

import polars as pl
import pytest

from ncuroof.collect.plan import plan_collection
from ncuroof.demand import load_model
from ncuroof.diagnosis.rules import load_rules
from ncuroof.metrics import load_catalogue
from ncuroof.ncu.machine import ncu_version
from ncuroof.ncu.settings import load_settings
from tests.support.ncu import find_ncu
from tools.counter_availability import load_availability

CAPABILITIES = load_settings().capabilities
NEWEST = (9999,)
CHIPS = {70: "gv100", 75: "tu102", 80: "ga100", 86: "ga102", 87: "ga10b", 89: "ad102", 90: "gh100"}
"""Those that Nsight Compute 2024.1 knows, by compute capability."""
PCT = ".avg.pct_of_peak_sustained_elapsed"

BY_SECTION = {
    "LaunchStats": r"launch__\w+",
    "Occupancy": r"sm__warps_active\.avg\.(pct_of_peak_sustained_active|per_cycle_active)|sm__maximum_warps_per_active_cycle_pct",
    "SchedulerStats": r"smsp__(issue_active|warps_active|warps_eligible)\.avg\.per_cycle_active",
    "WarpStateStats": r"smsp__average_warps_issue_stalled_\w+_per_issue_active\.ratio|smsp__average_warp_latency_per_inst_issued\.ratio"  # noqa: E501
    r"|smsp__thread_inst_executed(_pred_on)?_per_inst_executed\.ratio",
    "SpeedOfLight": r"(gpu__compute_memory_throughput|gpu__dram_throughput|lts__throughput|sm__throughput)" + re.escape(PCT)
    + r"|l1tex__throughput\.avg\.pct_of_peak_sustained_active|gpu__time_duration\.sum|sm__cycles_active\.avg"
    r"|gpc__cycles_elapsed\.(max|avg\.per_second)|dram__cycles_elapsed\.avg\.per_second",
    "WorkloadDistribution": r"(sm|lts|dram)__cycles_active\.(avg|min|max|sum)|(sm|lts|dram)__cycles_elapsed\.(sum|avg|min|max)",
    "charts": r"dram__bytes\.sum\.(per_second|peak_sustained)|(sm|smsp|l1tex|lts)__cycles_elapsed\.avg\.per_second"
    r"|smsp__sass_thread_inst_executed_op_[dfh](add|mul|fma)_pred_on\.sum\.per_cycle_elapsed"
    r"|sm__sass_thread_inst_executed_op_[dfh]fma_pred_on\.sum\.peak_sustained"
    r"|derived__(lts__lts2xbar|l1tex__lsu_writeback)_bytes\w*\.sum\.(per_second|peak_sustained)",
    "SourceCounters": r"memory_(l1|l2)_\w+|inst_executed",
}  # fmt: skip
"""Catalogue's counters that NVIDIA's sections bring (section files of 2024.1.1), as patterns of full names."""

ALWAYS = r"launch__\w+|device__attribute_\w+|profiler__replayer_passes|sm__maximum_warps_per_active_cycle_pct"
"""What every report holds without a pass."""

BREAKDOWN = r"(idc|l1tex|lts|sm|dram)__\w+" + re.escape(PCT)
"""Members of the two breakdowns; which unit has which is the chip's affair (recorded on 7.0 to 12.0)."""

BREAKDOWN_MEMBERS = [
    "idc__request_cycles_active",
    "l1tex__data_bank_reads",
    "l1tex__data_bank_writes",
    "l1tex__data_pipe_lsu_wavefronts",
    "l1tex__data_pipe_tex_wavefronts",
    "l1tex__f_wavefronts",
    "l1tex__lsu_writeback_active",
    "l1tex__lsuin_requests",
    "l1tex__tex_writeback_active",
    "l1tex__texin_sm2tex_req_cycles_active",
    "lts__d_atomic_input_cycles_active",
    "lts__lts2xbar_cycles_active",
    "lts__t_sectors",
    "lts__xbar2lts_cycles_active",
    "sm__inst_executed",
    "sm__inst_executed_pipe_adu",
    "sm__inst_executed_pipe_cbu_pred_on_any",
    "sm__inst_executed_pipe_lsu",
    "sm__inst_executed_pipe_tex",
    "sm__inst_executed_pipe_xu",
    "sm__issue_active",
    "sm__mio_inst_issued",
    "sm__pipe_fma_cycles_active",
    "sm__pipe_fp64_cycles_active",
    "sm__pipe_tensor_cycles_active",
]
"""Members on every chip that a public report was recorded on."""

OF_SOME = (
    "dram__cycles_active",
    "l1tex__m_l1tex2xbar_req_cycles_active",
    "lts__d_sectors",
    "lts__t_tag_requests",
    "sm__inst_executed_pipe_fp16",
    "sm__inst_executed_pipe_uniform",
    "sm__pipe_tma_cycles_active",
)
ALU = ("sm__pipe_alu_cycles_active", "sm__pipe_aluheavy_cycles_active")  # the second on 12.0

OF_THE_CHIP = {
    "utilisation.tma",
    "utilisation.uniform",
    "access.compression_input_frac",
    "access.compression_success_frac",
    "utilisation.fp16",
    "utilisation.beside_operands",
    "utilisation.l1_beyond",
    "utilisation.l1_to_l2",
    "access.async_copy_bytes",
    "access.async_copy_frac",
    "access.async_sectors_per_lookup",
    "access.bulk_copy_frac",
    "access.wavefronts_per_instruction",
    "access.load_instruction_frac",  # the LSU's peak rate is known where it was recorded
}
"""Quantities that some chips have no counter for, or whose counters were not seen on some."""

OF_SAMPLES = {"check.sampled_frac"}
"""Quantities that say how far samples go, which are taken for lines alone (`--lines`)."""

OF_THE_FULL_SET = {"access.excess_tag_requests_frac", "utilisation.l2_stages"}
"""Quantities that raise or bound a gain where a report has them; how many passes their counters cost has not been measured."""

CONSTANTS = {"device.has_async_copy", "device.has_async_tensor_path", "device.has_packed_fp32"}
"""No counters, but facts of the chip."""


def collected(capability: int) -> list[str]:
    """Return patterns of the full names that the plan's sections and counters bring."""
    plan = plan_collection("roofline", load_settings(), capabilities=[capability], ncu_version=NEWEST)
    assert plan.set == "roofline"
    of_set = ("SpeedOfLight", "WorkloadDistribution", "charts")
    sections = [BY_SECTION[name] for name in (*plan.sections, *of_set)]
    members = [re.escape(name + PCT) for name in (*BREAKDOWN_MEMBERS, *OF_SOME, *ALU)]
    return [ALWAYS, *sections, *members, *map(re.escape, plan.metrics)]


def is_collected(counter: str, capability: int, patterns: list[str]) -> bool:
    availability = load_availability()
    is_there = counter.startswith("device__") or availability.has(counter.partition(".")[0], capability) is not False
    return is_there and any(re.fullmatch(pattern, counter) for pattern in patterns)


def computable(capability: int, counters: object) -> set[str]:
    """Return the quantities that formulas give from counters; `counters` tells which there are."""
    known: set[str] = set()
    while True:
        found = {
            quantity.name
            for quantity in load_catalogue().quantities
            for source in quantity.sources
            if not source.capabilities or capability in source.capabilities
            if source.formula.expression(
                lambda name: pl.lit(1.0) if counters(name) else None,  # type: ignore[operator]
                frozenset(known),
            )
            is not None
        }
        if found == known:
            return known
        known = found


def needed() -> set[str]:
    """Return the quantities with formulas that anything of the diagnosis reads, down to the demand for a resource."""
    rules = load_rules()
    names = {node.condition.quantity for node in rules.nodes} | set(rules.missing_quantities)
    for finding in rules.findings.values():
        names |= {condition.quantity for condition in (*finding.all_of, *finding.any_of)} | set(finding.evidence)
        of_change = finding.fix.formulas() if finding.fix is not None else ()
        for formula in (*of_change, *finding.waste_by_level.values()):
            names |= formula.quantities
    model = load_model()
    for resource in (*model.resources.values(), *model.sides.values()):
        names |= resource.demand.quantities
    for caveat in rules.caveats.values():
        names |= {condition.quantity for condition in (*caveat.all_of, *caveat.any_of)}
    return names & {quantity.name for quantity in load_catalogue().quantities}


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_every_quantity_that_a_rule_needs_is_collected(capability: int) -> None:
    patterns = collected(capability)
    availability = load_availability()
    by_plan = computable(capability, lambda name: is_collected(name, capability, patterns))
    # What the chip could give, whatever was asked for: a plan cannot do better.
    by_chip = computable(
        capability,
        lambda name: name.startswith("device__") or availability.has(name.partition(".")[0], capability) is not False,
    )
    assert needed() & by_chip - by_plan - OF_SAMPLES - OF_THE_FULL_SET == set()
    assert len(needed() & by_plan) > 80
    lacking = needed() - by_chip - CONSTANTS - OF_THE_CHIP
    assert not lacking or capability in (87, 110, 121), lacking  # no DRAM channels to count on these


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_every_stall_that_a_rule_needs_is_collected(capability: int) -> None:
    patterns = collected(capability)
    stalls = load_catalogue().stalls
    for counter in (stalls.total, *(stalls.of_latency(reason) for reason in stalls.reasons)):
        if load_availability().has(counter.partition(".")[0], capability):
            assert is_collected(counter, capability, patterns), counter


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_work_of_every_precision_has_a_peak_and_an_amount(capability: int) -> None:
    patterns = collected(capability)
    for precision in ("fp64", "fp32", "fp16"):
        assert any(
            pair.peak is not None
            and all(is_collected(name, capability, patterns) for name in pair.achieved.counters | pair.peak.counters)
            for pair in load_catalogue().work[precision]
        ), precision


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_no_counter_is_asked_for_that_the_chip_lacks(capability: int) -> None:
    availability = load_availability()
    for name in plan_collection("roofline", load_settings(), capabilities=[capability], ncu_version=NEWEST).metrics:
        assert availability.has(name.partition(".")[0], capability) is True, name


def test_an_unknown_chip_is_asked_for_what_every_chip_has() -> None:
    availability = load_availability()
    for capabilities in ([], [130]):
        names = plan_collection("roofline", load_settings(), capabilities=capabilities).metrics
        assert "lts__t_sector_hit_rate.pct" in names
        assert "dram__bytes_read.sum" not in names  # not on 8.7, 11.0, 12.0, 12.1
        assert all(
            availability.has(name.partition(".")[0], each) for name in names for each in availability.capabilities
        )


@pytest.mark.oracle
def test_sections_collect_the_counters_stated_for_them() -> None:
    """Every counter of a pattern stands in NVIDIA's section file, in the headers, bodies or metrics that it collects."""
    ncu = find_ncu()
    folder = None if ncu is None else ncu.parent / "sections"
    if folder is None or not folder.is_dir():
        pytest.skip("NVIDIA's section files are not unpacked")
    text_by_section = {
        match[1]: text
        for path in folder.glob("*.section")
        if (match := re.search(r'^Identifier: "(.+)"', text := path.read_text(encoding="utf-8"), re.MULTILINE))
    }
    names = load_catalogue().counters()
    for section, pattern in BY_SECTION.items():
        texts = [
            text
            for name, text in text_by_section.items()
            if name == section or (section == "charts" and "Roofline" in name)
        ]
        assert texts, section
        joined = "\n".join(texts)
        for name in sorted(names):
            if re.fullmatch(pattern, name) and not re.fullmatch(ALWAYS, name):
                base = name.partition(".")[0]
                assert f'"{base}' in joined or section == "SourceCounters", (section, name)


@pytest.mark.oracle
@pytest.mark.parametrize(("capability", "chip"), CHIPS.items())
def test_the_real_ncu_lists_every_counter_that_it_is_asked_for(capability: int, chip: str) -> None:
    """It refuses the whole run for one name that it does not know. Source counters stand in no list of its own."""
    ncu = find_ncu()
    if ncu is None:
        pytest.skip("NVIDIA's ncu is not installed")
    asked = plan_collection(
        "roofline", load_settings(), capabilities=[capability], ncu_version=ncu_version(ncu)
    ).metrics
    counters = {name for name in asked if "." in name}
    bases = ",".join(sorted({name.partition(".")[0] for name in counters}))
    options = ["--query-metrics", "--query-metrics-mode", "suffix", "--metrics", bases, "--chips", chip]
    listed = subprocess.run([str(ncu), *options], capture_output=True, text=True, check=True).stdout
    assert counters - {line.split()[0] for line in listed.splitlines() if line.strip()} == set()
    assert all(re.fullmatch(BY_SECTION["SourceCounters"], name) for name in set(asked) - counters)


def test_counters_of_newer_versions_are_not_asked_of_older_ones() -> None:
    def asked(version: tuple[int, ...]) -> tuple[str, ...]:
        return plan_collection("roofline", load_settings(), capabilities=[90], ncu_version=version).metrics

    name = "lrc__average_ilc_input_sector_success_rate.pct"
    assert name in asked((2025, 1, 0))
    assert name not in asked((2024, 3, 2))
    assert name not in asked(())
