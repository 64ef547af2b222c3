from __future__ import annotations

import json
from typing import Any

import pytest

import ncuroof
from ncuroof.comparison.deltas import Outcome
from ncuroof.diagnosis import load_parts, load_rules
from ncuroof.diagnosis.conditions import Condition
from ncuroof.diagnosis.rules import Node
from ncuroof.enums import Confidence, Side, Verdict
from ncuroof.errors import UnknownNameError
from ncuroof.formatting import label
from ncuroof.metrics import load_catalogue
from ncuroof.metrics.families import USER, load_families
from ncuroof.ncu.settings import load_settings
from ncuroof.present.documents.kernels import QUANTITY_GROUPS
from ncuroof.present.explanations.explain import explain, listing, meant, names
from ncuroof.present.explanations.findings import node_lines, path_lines
from ncuroof.present.explanations.in_report import lines_in_report
from ncuroof.present.explanations.meanings import (
    columns_by_name,
    every_quantity,
    findings_in_plain_words,
    limiter_in_plain_words,
    load_columns,
    load_limiters,
    load_terms,
    quantity_label,
)
from ncuroof.present.kernel_rows import kernel_rows
from ncuroof.present.page.methods import explained
from ncuroof.resources import folder
from tests.cli.running import run_main
from tests.support import demo


@pytest.mark.parametrize("name", names())
def test_every_name_is_explained(name: str) -> None:
    lines = explain(name).splitlines()
    assert lines[0].startswith(f"{name}: ")
    assert any(line.strip() for line in lines[1:])


@pytest.mark.parametrize("name", names())
def test_an_explanation_ends_with_the_files_that_define_the_name(name: str) -> None:
    files = explain(name).splitlines()[-1].removeprefix("Defined in ").split(", ")
    assert all(file.startswith(("profiles/", "ncuroof/errors.py")) for file in files)
    texts = [(folder("profiles").parent / file).read_text(encoding="utf-8") for file in files]
    expanded = {column.name: place for place, each in load_columns().items() for column in each.expanded()}
    written = expanded.get(name, name).removeprefix("wall_time.").removeprefix("stalls.")
    assert name == USER or all(written in text for text in texts)


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("memory", "profiles/rules.toml"),
        ("uncoalesced_global_load", "profiles/rules/global_memory.toml"),
        ("shared_slice", "profiles/rules/caveats.toml"),
        ("access.load_bytes_per_sector", "profiles/metrics/global_accesses.toml"),
        ("bandwidth.dram", "profiles/metrics/roof_traffic.toml"),
        ("stalls.wait", "profiles/metrics/stalls.toml"),
        ("wall_time.host_wait", "profiles/temporal_breakdown.toml"),
        ("wave", "profiles/terms.toml"),
        ("h200-sxm", "profiles/gpus/h200-sxm.toml"),
        ("NVIDIA A30", "profiles/gpus/a30.toml"),
        ("busy_enough", "profiles/rules.toml"),
    ],
)
def test_the_file_is_the_one_to_change(name: str, files: str) -> None:
    assert explain(name).endswith(f"\n\nDefined in {files}\n")
    assert explain(name, with_files=False) == explain(name).removesuffix(f"\n\nDefined in {files}\n") + "\n"


def test_a_counter_names_the_files_that_read_it() -> None:
    said = explain("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio")
    assert said.endswith("\n\nRead in profiles/metrics/global_accesses.toml\n")


@pytest.mark.long
def test_everything_that_a_document_names_can_be_explained() -> None:
    known = set(names())
    for kernel in ncuroof.read(demo.REPORT).analyse().to_dict()["kernels"]:
        assert kernel["verdict"] in known
        assert set(kernel["caveats"]) <= known
        for finding in kernel["findings"]:
            assert finding["id"] in known
            assert {item["quantity"] for item in finding["evidence"]} <= known
        assert {step["quantity"] for step in kernel["path"]} <= known
        assert {step["node"] for step in kernel["path"]} <= known
        for group in QUANTITY_GROUPS:
            assert group in known
            written = {f"{group}.{key}" for key in kernel[group]}
            assert {name for name in written if meant(name) not in known} == set()


@pytest.mark.long
def test_the_page_explains_verdicts_limiters_and_families_of_its_kernels() -> None:
    document = ncuroof.read(demo.REPORT).analyse().to_dict()
    names = {name for name, _ in explained(document)}
    kernels = document["kernels"]
    assert {kernel["verdict"] for kernel in kernels} <= names
    assert {kernel["family"] for kernel in kernels} <= names
    assert {"dram", "tensor"} <= {kernel["limiter"] for kernel in kernels} & names


def test_an_unknown_name_names_its_neighbours() -> None:
    with pytest.raises(UnknownNameError, match="conflict") as caught:
        explain("conflict")
    assert caught.value.hint is not None
    assert "bank_conflicts" in caught.value.hint


@pytest.mark.parametrize(
    "name", ["", " ", "memory · ", "foo_qux", "zzz", "the quick brown fox", "the fox", "memory of brown foxes"]
)
def test_a_name_like_no_other_gets_no_guesses(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        explain(name)
    assert caught.value.hint == "ncuroof explain lists every name"


def test_a_misspelt_name_is_found() -> None:
    with pytest.raises(UnknownNameError) as caught:
        explain("recoverabel_ns")
    assert caught.value.hint == "did you mean recoverable_ns?"


# ---- verdicts ------------------------------------------------------------------------------------------------------------


def test_a_verdict_says_the_whole_way_to_it() -> None:
    assert explain("overhead", with_files=False).splitlines()[4:] == [
        "Decision path, starting at 1:",
        "  1. Did profiling succeed? (check.failed < 1): yes → 2",
        "  2. Does the kernel run longer than its launch costs? (check.usual_ns ≥ 5000): no → 3",
        "  3. Can the grid fill at least one wave? (occupancy.most_waves ≥ 1): yes → 4, no → overhead",
        "  4. Do the SMs have work for half of the time? (scheduler.own_sm_active_frac ≥ 0.5): no → overhead",
    ]


def test_answers_that_no_launch_can_give_are_left_out() -> None:
    text = explain("unknown")
    assert "Did profiling succeed? (check.failed < 1): yes → 2, no or not known → unknown\n" in text
    assert "its launch costs? (check.usual_ns ≥ 5000): yes or not known → 5, no → 3\n" in text
    assert "Is the arithmetic intensity clearly left of the ridge?" not in text


_NODES = (
    Node("a", "A?", Condition("x", ">", 1.0), "verdict:p", "b", "b"),
    Node("b", "B?", Condition("x", ">", 0.5), "c", "verdict:p", "verdict:q"),
    Node("c", "C?", Condition("x", ">", 0.7), "verdict:p", "verdict:q", "verdict:r"),
)


def test_a_quantity_is_there_where_every_way_to_a_question_says_so() -> None:
    assert list(path_lines("q", _NODES)) == [
        "  1. A? (x > 1): no or not known → 2",
        "  2. B? (x > 0.5): yes → 3, not known → q",
        "  3. C? (x > 0.7): no → q",
    ]
    assert list(path_lines("r", _NODES)) == []


def test_a_question_says_what_it_compares_and_where_each_answer_leads() -> None:
    assert list(node_lines(_NODES[1], _NODES)) == [
        "b: question of the decision path",
        "",
        "B?",
        "",
        "Asked: x > 0.5",
        "  yes → c",
        "  no → verdict p",
        "  not known → verdict q",
    ]
    assert "Asked: utilisation.busiest ≥ 0.6\n  yes → one_side_leads\n  no → verdict latency\n" in explain(
        "busy_enough"
    )
    assert "\nSource: a choice: about what launching one kernel costs" in explain("long_enough")
    assert explain("left of ridge") == explain("left_of_ridge")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("stalls", "  stalls.long_scoreboard: The warp waits for data from L1TEX"),
        ("access", "  access.load_bytes_per_sector: Bytes of each 32-byte sector that global loads use, on average.\n"),
        ("occupancy", "  occupancy.waves: Blocks in the grid over the number of blocks that fit on all SMs at once.\n"),
    ],
)
def test_a_group_lists_its_quantities(name: str, said: str) -> None:
    text = explain(name)
    assert f"{name}: group of quantities\n" in text
    assert said in text


def test_occupancy_is_a_limiter_too() -> None:
    assert explain("occupancy").startswith("occupancy: limiter\n")


# ---- quantities, columns, limiters ---------------------------------------------------------------------------------------


def test_a_formula_says_on_which_gpus_it_holds() -> None:
    lines = explain("device.l2_sectors_per_slice_cycle").splitlines()
    assert "  lts__t_sectors.avg.peak_sustained" in lines
    assert "  1  (only on compute capability 7.0, 7.5, 8.6)" in lines


@pytest.mark.parametrize(
    ("name", "first", "said"),
    [
        ("recoverable_ns", "recoverable_ns: column, ns", "duration minus roofline time"),
        ("work.fp32.flop", "work.fp32.flop: column, flop", "Work of the launch in fp32."),
        ("bandwidth.dram.frac", "bandwidth.dram.frac: column, share", "Roof traffic of dram over its peak"),
        ("intensity.<level>", "intensity.<level>: column, flop/byte", "Arithmetic intensity at <level>"),
        ("alu", "alu: limiter", "The ALU pipe: integer"),
        ("dram", "dram: limiter", "Findings for kernels that it limits: cold_l2,"),
        ("grid", "grid: column", "grid: limiter\n\nThe grid has too few blocks"),
    ],
)
def test_columns_and_limiters_are_explained(name: str, first: str, said: str) -> None:
    text = explain(name)
    assert text.splitlines()[0] == first
    assert said in text


def test_a_finding_says_which_others_it_replaces() -> None:
    said = "  or uncoalesced_global_load and uncoalesced_global_store both apply, in whose place it then stands"
    assert said in explain("uncoalesced_global_access").splitlines()


@pytest.mark.parametrize("name", ["serial_loads", "stall_long_scoreboard", "stall_overlapping_loads"])
def test_a_finding_says_which_other_is_told_in_its_place(name: str) -> None:
    assert "  two_stage_mainloop does not apply, which says the same in particular" in explain(name).splitlines()


def test_words_lead_on_to_what_is_explained() -> None:
    words = load_terms()
    assert {"roofline", "wave", "mfu"} <= set(words)
    for name, word in words.items():
        assert explain(name).splitlines()[2] == word.doc
        assert all(explain(other) for other in word.see)


def test_every_limiter_of_latency_is_told_in_plain_words_or_is_plain() -> None:
    def in_plain_words(limiter: str) -> str:
        return limiter_in_plain_words({"limiter": limiter, "caveats": ()})

    assert in_plain_words("long_scoreboard") == "waits for data from memory: long scoreboard"
    assert in_plain_words("dram") == "DRAM"
    jargon = set(load_catalogue().stalls.reasons) - {"selected", "not_selected", "misc", "dispatch_stall"}
    assert {name for name in jargon if in_plain_words(name) == label(name)} == set()


@pytest.mark.parametrize(
    ("printed", "first"),
    [
        ("LSU", "lsu: limiter"),
        ("long scoreboard", "stalls.long_scoreboard: quantity"),
        ("MIO throttle", "stalls.mio_throttle: quantity"),
        ("Above roof", "recoverable_ns: column, ns"),
        ("roofline time", "min_time_ns: column, ns"),
        ("bound by", "limiter: column"),
        ("waves", "occupancy.waves: quantity, count"),
        ("achieved occupancy", "occupancy.achieved_frac: quantity"),
        ("memory-bound", "memory: verdict"),
        ("reduced clock", "reduced_clock: caveat"),
        ("Small grid: too few blocks to fill the GPU", "small_grid: finding"),
        ("waiting for the CPU to launch kernels", "wall_time.host_wait: part"),
        ("FP32", "fp32: limiter"),
        ("Of roofline", "efficiency: page column"),
        ("ridge", "side: column"),
        ("DRAM FLOP/B", "intensity.dram: column, flop/byte"),
        ("Small grid: too few…", "small_grid: finding"),
        ("near_ridge", "side: column"),
        ("near the ridge", "side: column"),
        ("PyTorch, fixed grid", "pytorch_fixed_grid: kernel family, PyTorch, fixed grid"),
        ("own code", "user: kernel family, own code"),
        ("cuBLAS", "cublas: kernel family"),
        ("roofline", "roofline: term"),
        ("wave", "wave: term"),
        ("MFU", "mfu: term"),
        ("Arithmetic intensity", "intensity: term"),
        ("time above the roofline", "recoverable_ns: column, ns"),
        ("GPU time", "gpu_time: term"),
        ("up to", "gain: term"),
        ("replays", "replay: term"),
        ("sectors", "sector: term"),
        ("coalescing", "coalesced: term"),
        ("findings", "findings: column"),
        ("finding", "finding: term"),
        ("caveat", "caveat: term"),
    ],
)
def test_names_may_be_written_as_they_are_printed(printed: str, first: str) -> None:
    assert explain(printed).startswith(first)


@pytest.mark.parametrize(
    ("asked", "proposed"),
    [
        ("spills", "local_memory"),
        ("L2 hit rate", "access.l2_hit_frac"),
        ("time above the roof", "recoverable_ns"),
        ("uncoalesced loads", "uncoalesced_global_load"),
        ("dram__byte.sum", "dram__bytes.sum"),
    ],
)
def test_words_of_the_field_propose_what_they_are_in(asked: str, proposed: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        explain(asked)
    assert proposed in str(caught.value.hint).removeprefix("did you mean ").removesuffix("?").split(", ")


def test_a_family_says_how_it_is_told_and_what_to_do() -> None:
    text = explain("pytorch_fixed_grid")
    assert "\nPart of pytorch, PyTorch.\n" in text
    assert "\nBasis: listed before PyTorch, of which it is a part: the gradient of a norm's weights" in text
    assert "\n  Fuse it with its neighbours (torch.compile" in text
    assert (
        "\n  or, where no family's name pattern matches, some of its source lines are in a file that matches \\.py$\n"
        in explain("triton")
    )


def test_a_verdict_called_as_a_side_of_the_ridge_says_so() -> None:
    assert [name for name in ("memory", "compute", "latency") if "ncuroof explain side" in explain(name)] == [
        "memory",
        "compute",
    ]


def test_a_verdict_and_its_limiter_are_explained_together() -> None:
    both = explain("latency · grid")
    assert both.startswith("latency: verdict, latency-bound\n")
    assert "\n\ngrid: limiter\n" in both
    assert explain("memory bound") == explain("memory")


def test_a_counter_says_what_it_is_read_for() -> None:
    said = explain("sm__sass_thread_inst_executed_op_ffma_pred_on.sum").splitlines()
    assert said[:3] == ["sm__sass_thread_inst_executed_op_ffma_pred_on.sum: NVIDIA counter", "", "Used for:"]
    assert any(line.startswith("  work.fp32: ") for line in said)
    assert "  stalls.wait" in explain("smsp__average_warps_issue_stalled_wait_per_issue_active.ratio").splitlines()


def test_a_counter_of_tensor_instructions_is_read_for_tensor_work() -> None:
    said = explain("smsp__inst_executed_pipe_tensor.sum.per_cycle_elapsed", with_files=False).splitlines()
    assert said[2] == "Used for:"
    assert [line.split(":")[0] for line in said[3:]] == ["  work.tensor"]
    assert "\n  work.tensor: " in explain("sm__cycles_elapsed.avg.per_second")


def test_a_counter_in_no_formula_tells_which_launch_it_was() -> None:
    no_formula = {
        name for name in load_catalogue().counters() if "not used in the formula of any quantity" in explain(name)
    }
    assert {"launch__stream_id", "launch__context_id"} <= no_formula
    # which are numbers that name a launch, and no measurements of it
    assert all(name.startswith(("launch__", "device__attribute_compute_capability")) for name in no_formula)


def test_what_was_cut_short_and_begins_several_names_proposes_them() -> None:
    with pytest.raises(UnknownNameError) as caught:
        explain("MIO…")
    assert caught.value.hint == "did you mean mio_throttle, stall_xu_queue, stall_mio_throttle, utilisation.mio?"


def test_a_stall_says_first_what_the_warp_does() -> None:
    lines = explain("drain").splitlines()
    assert lines[2].startswith("The warp has exited and waits for its outstanding memory operations")
    assert lines[4].startswith(
        "Here: a stall reason's share of the time that a warp spends between two issued instructions,"
    )


def test_what_is_printed_for_a_limiter_can_be_asked_for() -> None:
    for name in (*load_limiters(), *load_catalogue().stalls.reasons):
        assert explain(label(name)) == explain(name)


@pytest.mark.long
def test_every_column_and_limiter_of_a_run_can_be_explained() -> None:
    rows = kernel_rows(ncuroof.read(demo.REPORT).analyse())
    known = set(names())
    assert set(rows.columns) - known == set()
    for limiter in rows["limiter"].drop_nulls():
        assert explain(limiter)


def test_the_listing_has_every_name_once_under_what_it_is() -> None:
    listed = listing()
    assert listed.startswith("verdicts\n  memory  compute  balanced  latency  overhead  unknown\nfindings\n")
    assert "\nlimiters\n  dram  l2  " in listed
    assert "work.<precision>.flop" in listed
    words = set(listed.split())
    assert {name for name in names() if "<" not in name} - words <= set(columns_by_name())
    assert max(map(len, listed.splitlines())) <= 100


def test_without_a_name_the_command_lists_what_there_is(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("explain") == 0
    assert capfd.readouterr().out == listing()


def test_a_finding_says_of_which_lines_it_speaks() -> None:
    text = explain("global_atomics")
    assert "the global atomics: inst_executed, where memory_type is 4 and memory_access_type is 0" in text
    assert "Attributed to the source lines" not in explain("tail_wave")


def test_a_part_of_a_steps_time_is_explained_beside_a_verdict_of_its_name() -> None:
    assert explain("host_wait") == explain("wall_time.host_wait")
    assert explain("host_wait").startswith(
        "wall_time.host_wait: part of a step's time, idle, waiting for the CPU to launch kernels"
    )
    assert "memory: verdict" in explain("memory")
    assert "Copies or memsets run, and no kernel." in explain("wall_time.memory")


def test_efficiency_is_told_from_a_dots_share_of_its_roof():
    text = explain("efficiency")
    assert "roofline time (`min_time_ns`) over duration" in text
    assert "`min_time_by`" in text


def test_a_finding_lists_only_its_own_advice() -> None:
    text = explain("alike_threads")
    assert "\n  triton: Let each program process a block of values" in text
    assert "\n  nccl: " not in text  # "send larger messages" answers any finding, and so none


def test_reasons_in_parentheses_are_known() -> None:
    for name in (*(failure.id for failure in load_settings().failures), *load_settings().reasons):
        assert explain(name).startswith(f"{name}: reason why ncu recorded nothing")
    assert "What to do:" in explain("no-permission")


def test_slugs_of_errors_are_known() -> None:
    assert explain("report-empty").startswith("report-empty: error of ncuroof")


# ---- what it means, and the rule on request ----------------------------------------------------------------------------------


def test_every_finding_is_told_in_two_plain_sentences() -> None:
    said = findings_in_plain_words()
    assert set(said) == set(load_rules().findings)
    quantities = {name for name in every_quantity() if "." in name}
    for name, text in said.items():
        assert text.endswith("."), name
        assert text.count(". ") == 1, name  # two sentences
        assert 80 < len(text) < 330, name
        assert not quantities & set(text.split()), name
        assert "__" not in text, name


@pytest.mark.parametrize(
    "name", [*load_rules().findings, *load_rules().verdicts, *load_rules().caveats, *load_families()]
)
def test_an_explanation_without_its_rule_has_no_expressions(name: str) -> None:
    said = explain(name, with_files=False, is_whole=False)
    assert said.startswith(f"{name}: ")
    assert " ≥ " not in said
    assert "kernel name matches" not in said
    assert "Fires when" not in said


def test_the_command_shows_the_rule_on_request(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("explain", "tail_wave") == 0
    plain = capfd.readouterr().out
    assert findings_in_plain_words()["tail_wave"].split(". ")[0] in plain
    assert "Fires when" not in plain
    assert plain.endswith("By which rule: ncuroof explain -v tail_wave\n")
    assert run_main("explain", "-v", "tail_wave") == 0
    whole = capfd.readouterr().out
    assert "Fires when:\n  occupancy.waves ≥ 1" in whole
    assert whole.endswith("Defined in profiles/rules/grid.toml\n")


def test_every_name_is_in_the_document(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("explain", "--all", "--format", "json") == 0
    document = json.loads(capfd.readouterr().out)
    assert document["schema"] == "ncuroof.explanations/1"
    assert {entry["name"] for entry in document["names"]} >= {
        "tail_wave",
        "memory",
        "occupancy.waves",
        "sm",
        "h200-sxm",
    }
    assert all(entry["explanation"].startswith(f"{entry['name']}: ") for entry in document["names"])
    assert run_main("explain", "--format", "json", "memory") == 2
    assert run_main("explain", "--all", "memory") == 2
    assert run_main("explain", "--report", "run.ncu-rep") == 2


@pytest.fixture(scope="module")
def run() -> dict[str, Any]:
    return ncuroof.read(demo.REPORT).analyse().to_dict()


@pytest.mark.long
def test_the_numbers_of_a_report_follow(run: dict[str, Any]) -> None:
    for kernel in run["kernels"]:
        if kernel["failed"]:
            continue
        for finding in kernel["findings"]:
            first, *rows = lines_in_report(finding["id"], run)
            assert first.startswith(f"In {run['sources'][0]['file']}: ")
            assert rows
        for name in (kernel["verdict"], *kernel["caveats"]):
            assert len(list(lines_in_report(name, run))) > 1
    waves = next(iter(run["kernels"]))["occupancy"]["waves"]
    assert any(f"{waves:.3g}" in line for line in lines_in_report("waves", run))
    assert list(lines_in_report("roofline", run)) == []  # a term has no numbers
    assert list(lines_in_report("debug_build", run)) == [f"In {run['sources'][0]['file']}: no kernel has it."]


# ---- the vocabulary -----------------------------------------------------------------------------------------------------------

HEADINGS = (
    "working", "waiting", "idle", "saves", "at most", "about", "per unit of work", "upper bounds", "What limits the kernels",
    "time", "above roof", "bound by", "kernel", "launches", "reached", "occupancy", "issue slots", "waves", "recorded",
    "expected", "range", "speedup", "step", "MFU", "SM", "peak", "extrapolated", "noise", "added", "removed", "gate", "findings",
    "caveats", "confidence", "less sure", "GPU time",
)  # fmt: skip
"""Headings and words that the terminal prints of its own."""


def _vocabulary() -> set[str]:
    """Return the words by which outputs name things: of enumerations, rules, tables and headings."""
    rules, catalogue = load_rules(), load_catalogue()
    quantities = set(every_quantity())
    return {
        *HEADINGS,
        *(verdict.value for verdict in Verdict),
        *(verdict.title for verdict in rules.verdicts.values()),
        *(side.value for side in Side),
        *(outcome.value for outcome in Outcome),
        *(confidence.value for confidence in Confidence),
        *rules.findings,
        *(finding.title for finding in rules.findings.values()),
        *rules.caveats,
        *map(label, rules.caveats),
        *load_limiters(),
        *map(label, load_limiters()),
        *catalogue.stalls.reasons,
        *map(label, catalogue.stalls.reasons),
        *columns_by_name(),
        *(title for column in columns_by_name().values() for title in column.printed),
        *quantities,
        *map(quantity_label, quantities),
        *(part.title for part in load_parts().values()),
    }


def test_every_word_that_an_output_prints_is_known() -> None:
    known = {*names(), *load_catalogue().stalls.reasons}
    assert {word for word in _vocabulary() if word not in known and meant(word) not in known} == set()
