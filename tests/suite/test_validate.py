"""Answers held against planted ones, on reports constructed to be right and to be wrong."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import packing
import pytest
from cases import HERE, load
from tables import rendered
from validate import judge, judged_reports, right_share, right_share_as_planted

from tests.support.constructed import Accesses, Described
from tests.support.constructed_counters import kernel
from tests.support.report_writer import write_report

SUITE = load()
BY_ID = {case.id: case for case in SUITE.cases}
GIB = 2**30
# 2^21 warp-wide loads of 512 bytes: 1 GiB in and out, in half a millisecond at 90 % of the H200's DRAM.
_WARPS = Accesses(2**21, 16, bytes_per_thread=16)
COPY = Described(
    "copy_values", 500_000, loads=_WARPS, stores=_WARPS, dram_read_bytes=GIB, dram_write_bytes=GIB - 40 * 2**20
)
# 4096 steps of four fused chains in 1081344 threads: 17.7e9 multiply-adds.
FMA = 4 * 4096 * 1_081_344
CHAIN = Described(
    "run_chains",
    640_000,
    fp32=(0, 0, FMA),
    stores=Accesses(4 * 33_792),
    dram_read_bytes=0,
    warp_instructions=FMA / 32 * 1.03,
)

pytestmark = pytest.mark.long


def folder_with(path: Path, named: dict[str, Described]) -> Path:
    path.mkdir()
    entries = []
    for name, described in named.items():
        data = write_report([kernel(described)])
        (path / f"{name}.ncu-rep").write_bytes(data)
        entries.append(packing.entry(f"{name}.ncu-rep", data, {"gpu": "NVIDIA H200", "cases": [name], "level": "full"}))
    (path / "provenance.toml").write_text(packing.provenance(entries), encoding="utf-8")
    return path


def validate(folder: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, HERE / "validate.py", folder], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_with(tmp_path_factory.mktemp("right") / "h200", {"copy_16": COPY, "fp32_chain": CHAIN})


def test_right_answers_are_counted_as_right(right: Path) -> None:
    judged, problems = judged_reports(right, SUITE)
    assert problems == []
    assert {each.case.id: (each.found, each.wrong, each.amiss) for each in judged} == {
        "copy_16": (("memory", "dram"), (), ()),
        "fp32_chain": (("compute", judged[1].found[1]), (), ()),
    }
    assert judged[1].flop == {"fp32": (2 * FMA, pytest.approx(2 * FMA))}
    assert judged[0].dram_bytes == ((GIB, pytest.approx(GIB)), (GIB, pytest.approx(GIB - 40 * 2**20)))
    assert right_share(judged) == 1


def test_the_command_prints_tables_and_ends_with_0(right: Path) -> None:
    done = validate(right)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| copy_16 | full | memory · dram | memory · dram |" in done.stdout
    assert "| planted, ncuroof says | compute | memory |" in done.stdout
    assert "| planted, NVIDIA says |" in done.stdout
    n_first = sum(case.group == "first" for case in SUITE.cases)
    assert f"not judged: {n_first - 2} of {n_first} cases: copy_4, " in done.stdout
    assert "groups of which nothing is recorded: pairs (" in done.stdout
    assert done.stdout.endswith(
        "amounts that differ from paper: 0 of 2; they do not affect the share\n"
        "recorded but not judged: 0; the exit status is 1 unless this is 0\n"
        "right by the answers as planted: 100.0%; 0 answers were revised after recording\n"
        "right: 100.0% of 2; at least 95% are required\n"
    )


def test_a_wrong_answer_and_amounts_amiss_are_told(tmp_path: Path) -> None:
    strided = replace(
        COPY,
        loads=Accesses(2**21, 32, bytes_per_sector=4),
        stores=Accesses(2**21),
        dram_read_bytes=2 * GIB,
        dram_write_bytes=2**28,
        duration_ns=560_000,
    )
    folder = folder_with(tmp_path / "h200", {"copy_16": strided, "fp32_chain": replace(CHAIN, fp32=(0, FMA, 0))})
    judged, _ = judged_reports(folder, SUITE)
    assert "says uncoalesced_global_load" in judged[0].wrong
    assert judged[0].amiss == ("read ×2.000", "written ×0.250")
    assert judged[1].amiss == ("fp32 ×0.500",)
    done = validate(folder)
    assert done.returncode == 1
    assert "says uncoalesced_global_load" in done.stdout


def test_findings_are_asked_for_at_full_level_alone() -> None:
    launch = {
        "failed": False,
        "name": "read_l1",
        "short_name": "read_l1",
        "duration_ns": 1.0,
        "verdict": "memory",
        "limiter": "l1",
        "findings": [],
    }
    case = BY_ID["l1_loads_16"]
    assert judge(case, "full", [launch], SUITE).wrong == ("lacks l1_traffic",)
    assert judge(case, "quick", [launch], SUITE).wrong == ()
    assert judge(case, "full", [{**launch, "verdict": "compute", "limiter": "lsu"}], SUITE).wrong[:2] == (
        "verdict compute",
        "limiter lsu",
    )


def test_of_several_launches_the_longest_that_is_meant_is_judged() -> None:
    def launch(name: str, duration_ns: float, verdict: str) -> dict[str, object]:
        return {
            "failed": False,
            "name": name,
            "short_name": name,
            "duration_ns": duration_ns,
            "verdict": verdict,
            "findings": [],
            "limiter": "dram",
        }

    launches = [launch("gemm", 9.0, "compute"), launch("softmax_a", 2.0, "memory"), launch("softmax_b", 1.0, "latency")]
    judged = judge(BY_ID["cross_entropy"], "quick", launches, SUITE)
    assert (judged.found, judged.wrong) == (("memory", "dram"), ())


def test_what_cannot_be_judged_is_told(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "h200", {"copy_16": COPY})
    provenance = folder / "provenance.toml"
    provenance.write_text(
        provenance.read_text(encoding="utf-8").replace('["copy_16"]', '["copy_16", "no_such"]'), encoding="utf-8"
    )
    done = validate(folder)
    assert done.returncode == 1
    assert "case no_such of copy_16.ncu-rep is not in cases.toml" in done.stdout
    assert "case copy_16: a launch whose name matches" in done.stdout
    assert "recorded but not judged: 2; " in done.stdout


def test_a_case_that_a_cut_call_lost_and_another_recorded_is_judged_once(right: Path, tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "h200", {"copy_16": COPY, "fp32_chain": CHAIN})
    (path, text) = (folder / "provenance.toml", (folder / "provenance.toml").read_text(encoding="utf-8"))
    data = write_report([kernel(replace(COPY, name="copy_other"))])
    (folder / "group.ncu-rep").write_bytes(data)
    facts = {"gpu": "NVIDIA H200", "cases": ["copy_16", "fp32_chain", "copy_8"], "level": "full", "complete": False}
    for complete, n_problems in (({}, 1), ({"complete": True}, 3), ({"level": "quick"}, 3)):
        group = packing.provenance([packing.entry("group.ncu-rep", data, {**facts, **complete})])
        path.write_text(text + group, encoding="utf-8")
        judged, problems = judged_reports(folder, SUITE)
        assert [each.case.id for each in judged] == ["copy_16", "fp32_chain"]
        assert len(problems) == n_problems  # copy_8 was recorded nowhere else


@pytest.mark.parametrize(("name", "amiss"), [("l2_thrashing", ()), ("gemv_vectorised", ("read ×0.900",))])
def test_a_tenth_of_the_bytes_may_stay_in_l2_where_the_case_says_so(name: str, amiss: tuple[str, ...]) -> None:
    case = BY_ID[name]
    read, written = case.read_bytes(SUITE.sm_count), case.write_bytes(SUITE.sm_count)
    launch = {
        "failed": False, "name": case.kernel, "short_name": case.kernel, "duration_ns": 1e6, "verdict": "memory",
        "limiter": "dram", "findings": [], "traffic_bytes": {"dram_read": 0.9 * read, "dram_write": written},
    }  # fmt: skip
    assert judge(case, "quick", [launch], SUITE).amiss == amiss


@pytest.mark.parametrize(
    "content", [None, "[[file]]\nname = 'a'\n", "x = ", "[[file]]\nname = 'a.ncu-rep'\ncases = []\nlevel = 'full'\n"]
)
def test_a_folder_that_is_none_is_told(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "provenance.toml").write_text(content, encoding="utf-8")
    done = validate(tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "Hint: " in done.stderr


def test_a_table_has_as_many_cells_in_each_row(right: Path) -> None:
    judged, _ = judged_reports(right, SUITE)
    tables = "\n".join(rendered(judged, [])).strip().split("\n\n")
    assert len(tables) == 4
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1


def placed(line: int | None, caller: int | None = None, file: str = "memory.cu") -> dict[str, object]:
    """Return a launch of the strided copy whose loads are placed at a line of memory.cu."""
    callers = [] if caller is None else [{"file": "memory.cu", "line": caller}]
    where = None if line is None else {"lines": [{"file": file, "line": line, "callers": callers}]}
    finding = {"id": "uncoalesced_global_load", "where": where}
    return {
        "name": "read_strided(const float *)", "short_name": "read_strided", "failed": False, "duration_ns": 1e6,
        "verdict": "memory", "limiter": "dram", "findings": [finding],
    }  # fmt: skip


def test_a_finding_has_to_be_at_the_planted_line() -> None:
    case = BY_ID["strided_2"]
    program = (HERE / "memory.cu").read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(program, start=1) if "* stride]" in text)
    wrong = {
        number: judge(case, "full", [placed(*place)], SUITE).wrong
        for number, place in enumerate(
            [(line,), (3, line, "copy.h"), (line + 1,), (10_000,), (None,), (1, None, "../../pyproject.toml")]
        )
    }
    assert wrong == {
        0: (),
        1: (),  # inlined, and called there
        2: (f"places uncoalesced_global_load at memory.cu:{line + 1}",),
        3: ("places uncoalesced_global_load at memory.cu:10000",),
        4: ("places uncoalesced_global_load nowhere",),
        5: ("places uncoalesced_global_load at ../../pyproject.toml:1",),
    }
    assert judge(case, "roofline", [placed(None)], SUITE).wrong == ()


def test_a_revised_answer_is_counted_by_what_was_planted_too(right: Path) -> None:
    copy = BY_ID["copy_16"]
    revised = replace(copy, limiters=("l2",), revised="DRAM rests at 12 %.", before={"limiters": copy.limiters})
    suite = replace(SUITE, cases=tuple(revised if case is copy else case for case in SUITE.cases))
    judged, _ = judged_reports(right, suite)
    assert [(each.wrong, each.wrong_as_planted) for each in judged] == [(("limiter dram",), ()), ((), ())]
    assert (right_share(judged), right_share_as_planted(judged)) == (0.5, 1)
    tables = "\n".join(rendered(judged, [])).strip().split("\n\n")
    assert tables[-1].splitlines()[2:] == ["| copy_16 | limiters dram | limiters l2 | DRAM rests at 12 %. |"]
