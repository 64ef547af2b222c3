"""The planted answers are complete, name what the rules know, and their numbers are those of a count by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cases import CASES, HERE, Case, evaluate, load, parsed_toml
from suite_error import SuiteError

from ncuroof.enums import Precision, Verdict
from ncuroof.resources import read_profile

SUITE = load()
BY_ID = {case.id: case for case in SUITE.cases}
SMS = 132


def _limiters() -> set[str]:
    rules, metrics = read_profile("rules.toml"), read_profile("metrics.toml")
    named = {limiter for finding in rules["finding"].values() for limiter in finding.get("limiters", ())}
    causes = {cause["limiter"] for cause in rules["latency_cause"]} - {"stall"}
    resources = {name for side in metrics["resource"].values() for name in side.values()}
    return named - {"stall"} | causes | resources | set(metrics["stalls"]["reasons"]) | {"launch"}


def test_ids_are_unique_and_fit_a_file_name() -> None:
    assert len(BY_ID) == len(SUITE.cases)
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in BY_ID)


def test_every_name_of_an_answer_exists() -> None:
    findings = set(read_profile("rules.toml")["finding"])
    limiters = _limiters()
    for case in SUITE.cases:
        assert set(case.verdicts) <= {verdict.value for verdict in Verdict}, case.id
        assert set(case.limiters) <= limiters, case.id
        assert {*case.must, *case.one_of, *case.must_not} <= findings, case.id
        assert not {*case.must, *case.one_of} & {*case.must_not}, case.id
        assert set(case.flop) <= {precision.value for precision in Precision}, case.id
        assert case.planted.endswith("."), case.id


def source_of(program: str) -> str:
    """Return a program's text with that of the programs which it includes."""
    text = (HERE / program).read_text(encoding="utf-8")
    imported = re.findall(r"^    from (\w+_kernels) import", text, re.MULTILINE)
    included = [*re.findall(r'#include "(\w+\.cu)"', text), *(f"{name}.py" for name in imported)]
    return text + "".join(source_of(name) for name in dict.fromkeys(included))


def test_what_has_no_planted_verdict() -> None:
    mended = [
        "mended_fetch_32",
        "mended_conflicts_8",
        "mended_conflicts_32",
        "mended_occupancy",
        "mended_copies",
        "mended_few_blocks",
    ]
    unjudged = ["fp32_chain_unoptimised", "training_step"]
    assert [case.id for case in SUITE.cases if not case.verdicts and case.group == "first"] == [*mended, *unjudged]
    pairs = parsed_toml((HERE / "mended.toml").read_text(encoding="utf-8"))["pair"]
    after = {pair["mended"] for pair in pairs}
    assert {case.id for case in SUITE.cases if not case.verdicts and case.group != "first"} <= after


def test_the_younger_groups_say_what_would_be_saved_and_why() -> None:
    for case in SUITE.cases:
        assert not case.saving or -1 < case.saving[0] < case.saving[1] <= 1, case.id
        assert len(case.saving) in {0, 2}, case.id
        if case.group != "first" and case.verdicts:
            assert case.saving, case.id
            assert case.why.endswith("."), case.id


def test_pairs_are_of_cases_that_differ_and_name_findings_that_exist() -> None:
    findings = set(read_profile("rules.toml")["finding"])
    pairs = parsed_toml((HERE / "mended.toml").read_text(encoding="utf-8"))["pair"]
    younger = [pair for pair in pairs if BY_ID[pair["mended"]].group == "pairs"]
    assert len(younger) >= 30
    assert {case.id for case in SUITE.cases if case.group == "pairs"} <= {
        pair[side] for pair in younger for side in ("fault", "mended")
    }
    for pair in pairs:
        before, after = BY_ID[pair["fault"]], BY_ID[pair["mended"]]
        assert (before.program, before.function, before.sizes) != (after.program, after.function, after.sizes)
        assert pair["done"], pair
        assert set(pair["findings"]) <= findings, pair
        assert pair["findings"] or not pair.get("isolated", True), pair
        assert not set(before.must) - set(pair["findings"]) or before.group == "first", pair
    for pair in younger:
        assert BY_ID[pair["fault"]].saving, pair
    # Most changes of people are small ones.
    assert sum(BY_ID[pair["fault"]].saving[0] < 0.2 for pair in younger) >= 25


def test_enough_hard_cases_are_ones_on_which_rules_of_percentages_fail() -> None:
    hard = [case for case in SUITE.cases if case.group == "hard"]
    assert len(hard) >= 25
    assert {case.verdicts[0] for case in hard} >= {"memory", "compute", "balanced", "latency", "overhead"}
    assert sum(bool(case.must_not) for case in hard) >= 20  # what a rule of thumb would say


def test_programs_and_their_functions_exist() -> None:
    for case in SUITE.cases:
        source = source_of(case.program)
        named = f'{{"{case.function}", ' if case.is_cuda else case.function
        assert named in source, case.id
        assert case.kernel in source, case.id
        re.compile(case.kernel)
        re.compile(case.judged)


def test_planted_lines_are_lines_of_the_program_and_of_findings_that_must_be_there() -> None:
    planted = [(case, *each) for case in SUITE.cases for each in case.lines.items()]
    for case, finding, part in planted:
        program = (HERE / case.program).read_text(encoding="utf-8")
        assert sum(part in line for line in program.splitlines()) == 1, (case.id, part)
        assert finding in case.must or case.id == "shared_conflicts_1"
    assert len({finding for _, finding, _ in planted}) >= 6


def test_sizes_are_those_that_the_programs_ask_for() -> None:
    for case in SUITE.cases:
        source = source_of(case.program)
        assert all(f'"{name}"' in source or f"{name}: int" in source or name == "value_bytes" for name in case.sizes), (
            case.id
        )


def test_formulas_evaluate() -> None:
    for case in SUITE.cases:
        assert all(flop > 0 for flop in case.work_flop(SMS).values()), case.id
        assert case.read_bytes(SMS) >= 0, case.id
        assert case.write_bytes(SMS) >= 0, case.id


def test_no_property_is_missing() -> None:
    wanted = """copy_4 copy_8 copy_16 copy_misaligned strided_2 strided_8 strided_32 gather_random l2_resident l2_thrashing
    shared_conflicts_1 shared_conflicts_2 shared_conflicts_8 shared_conflicts_32 spills pointer_chase few_blocks tail_105 tail_195
    occupancy_registers occupancy_shared occupancy_block barriers divergent atomics_one atomics_spread fp64_chain fp32_chain
    fp32_chain_unoptimised fp32_repeated
    fp16_chain integer_chain fp32_unfused special_functions gemv_naive gemv_vectorised gemv_shared layer_norm rms_norm softmax gelu
    rope_eager embedding cross_entropy adamw_fused adamw_unfused cos_cos_eager cos_cos_compiled training_step tiny_launches
    cuda_graph two_streams"""
    products = {
        f"gemm_{kind}_{n}" for kind in ("fp32", "tf32", "bf16", "fp16", "fp8", "int8") for n in (128, 1024, 8192)
    }
    assert {*wanted.split(), *products} <= BY_ID.keys()


def test_levels_are_known_and_some_case_is_recorded_at_each() -> None:
    assert set(SUITE.options_by_level) == {"quick", "roofline", "full", "launches"}
    assert all(set(case.levels) <= set(SUITE.options_by_level) for case in SUITE.cases)
    assert sum(len(case.levels) == 3 for case in SUITE.cases) >= 3


# Counted by hand: work in FLOP, bytes read and written.
@pytest.mark.parametrize(
    ("name", "flop", "read", "written"),
    [
        # 2^28 floats in, as many out
        ("copy_4", {}, 2**30, 2**30),
        # every eighth float: 2^25 sectors of 32 bytes in, 2^25 floats out
        ("strided_8", {}, 2**30, 2**27),
        # 4 chains × 4096 steps × 2 FLOP, in 132 SMs × 8 blocks × 4 waves of 256 threads
        ("fp32_chain", {"fp32": 32768 * 1_081_344}, 64, 16 * 1_081_344),
        # a packed pair is two lanes of 2 FLOP
        ("fp16_chain", {"fp16": 65536 * 1_081_344}, 64, 16 * 1_081_344),
        # 138 blocks of 1024 threads: 132 SMs × 1.05
        ("tail_105", {"fp32": 2 * 16384 * 1024 * 138}, 0, 4 * 1024 * 138),
        # a line of 128 bytes per hop
        ("pointer_chase", {}, 256_000, 128),
        # lanes run 1 + 2 + … + 32 = 528 laps of 256 steps: 8 warps × 8 blocks × 132 SMs × 4 waves
        ("divergent", {"fp32": 2 * 256 * 528 * 33_792}, 0, 4_325_376),
        # 16384² products and sums, and five additions of 32 lanes for each row
        ("gemv_vectorised", {"fp32": 536_870_912 + 2_621_440}, 1_073_807_360, 65_536),
        # 2 · 8192³; two operands of 2 bytes, one result
        ("gemm_bf16_8192", {"tensor_bf16": 1_099_511_627_776}, 268_435_456, 134_217_728),
        ("gemm_int8_1024", {"tensor_int8": 2_147_483_648}, 2_097_152, 4_194_304),
        # two products of 4096 × 64 × 4096 in 16 heads
        ("attention_flash_64_4096", {"tensor_bf16": 2 * 2 * 4096 * 64 * 4096 * 16}, 3 * 8_388_608, 8_388_608 + 262_144),
        # dV, dQ and dK read 16 matrices of 4096² scores of 2 bytes, softmax's gradient twice as many; an operand has 2^23 bytes
        ("attention_naive_64_4096_backward", {"tensor_bf16": 8 * 2**34}, 5 * 2**29 + 5 * 2**23, 2 * 2**29 + 3 * 2**23),
        # softmax reads 2^28 logits of 2 bytes and writes as many; of the loss a sector of 32 bytes and a target of 8 per row
        ("cross_entropy", {"fp32": 2**30}, 2**29 + 8192 * 40, 2**29),
        # 2^28 floats in, as many out
        ("gelu", {"fp32": 2**31}, 2**30, 2**30),
        # 32 lanes take turns over 256 rounds of 512 steps, in 2 blocks × 132 SMs × 4 waves
        ("barriers", {"fp32": 2 * 32 * 512 * 256 * 1056}, 0, 4 * 1024 * 1056),
        # parameter, gradient, two moments in; all but the gradient out
        ("adamw_fused", {"fp32": 14 * 2**26}, 2**30, 3 * 2**28),
    ],
)
def test_paper_numbers_are_those_of_a_count_by_hand(name: str, flop: dict[str, int], read: int, written: int) -> None:
    case = BY_ID[name]
    assert (case.work_flop(SMS), case.read_bytes(SMS), case.write_bytes(SMS)) == (flop, read, written)


def test_each_hop_of_the_chase_is_a_line_of_its_own() -> None:
    sizes = BY_ID["pointer_chase"].sizes
    assert sizes["step"] * 4 == 32_769 * 128  # lane 0 stays at the beginning of a line
    assert sizes["values"] * 4 == 2**21 * 128  # 32769 is odd: all 2^21 lines are met before one is met again
    assert sizes["hops"] < 2**21


# What moves at most: four bytes and a FLOP per cycle and lane, to see that no case lasts for seconds.
def test_no_case_lasts_longer_than_a_few_milliseconds_on_paper() -> None:
    peak = {"fp64": 33e12, "fp32": 67e12, "fp16": 134e12}
    for case in SUITE.cases:
        if case.id == "training_step":
            continue
        compute_s = sum(flop / peak.get(name, 400e12) for name, flop in case.work_flop(SMS).items())
        memory_s = (case.read_bytes(SMS) + case.write_bytes(SMS)) / 4.8e12
        assert max(compute_s, memory_s) < 20e-3, case.id


def test_a_formula_holds_nothing_but_arithmetic() -> None:
    assert evaluate("2 * n ** 2 - (n // 3)", {"n": 10}, where="here") == 197
    for bad in ("__import__('os')", "n / 2", "m + 1", "1 +", "n.real", "True"):
        with pytest.raises(SuiteError, match="here"):
            evaluate(bad, {"n": 10}, where="here")


def test_a_broken_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "cases.toml"
    for text, message in (("[", "was wanted"), ("schema = 1", "level"), (_with_unknown_field(), "colour")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(SuiteError, match=message):
            load(path)


def _with_unknown_field() -> str:
    return CASES.read_text(encoding="utf-8").replace("options = []\njudged", 'options = []\ncolour = "red"\njudged', 1)


def test_arguments_hold_function_and_sizes() -> None:
    assert BY_ID["strided_2"].arguments == ("strided_2", "strided", "n=134217728", "stride=2")
    assert BY_ID["gemm_fp8_128"].arguments == ("gemm_fp8_128", "gemm_fp8", "n=128")
    assert isinstance(BY_ID["strided_2"], Case)


def _revised(tmp_path: Path, revision: str) -> Path:
    path = tmp_path / "cases.toml"
    path.write_text(CASES.read_text(encoding="utf-8").replace('{ id = "copy_4", ', f'{{ id = "copy_4", {revision}'))
    return path


def test_a_revised_case_knows_what_was_planted(tmp_path: Path) -> None:
    revision = 'verdicts = ["balanced"], revised = "97 % of issue slots.", before = { verdicts = ["memory"] }, '
    (case,) = (case for case in load(_revised(tmp_path, revision)).cases if case.id == "copy_4")
    assert (case.verdicts, case.as_planted.verdicts) == (("balanced",), ("memory",))
    assert case.as_planted == BY_ID["copy_4"]
    assert BY_ID["copy_4"].as_planted == BY_ID["copy_4"]


@pytest.mark.parametrize(
    ("revision", "message"),
    [
        ('verdicts = ["balanced"], revised = "why", ', "one of the two alone"),
        ('verdicts = ["balanced"], before = { verdicts = ["memory"] }, ', "one of the two alone"),
        ('revised = "why", before = { verdicts = ["memory"] }, ', "found verdicts"),
        ('revised = "why", before = { function = "copy_8" }, ', "found function"),
    ],
)
def test_a_revision_has_to_tell_what_it_changed_and_why(revision: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=message):
        load(_revised(tmp_path, revision))


def test_planted_phases_are_verdicts_that_fill_the_time() -> None:
    planted = [case for case in SUITE.cases if case.phases]
    assert {case.id for case in planted} == {case.id for case in SUITE.cases if case.group == "phases"}
    for case in planted:
        assert {verdict for verdict, _ in case.phases} <= {"memory", "compute", "latency", "balanced"}
        assert 0.9 <= sum(share for _, share in case.phases) <= 1.1, case.id
