"""Baselines: what is read back compares like the run itself; what is no baseline is refused by name."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ncuroof.comparison import baseline_json, compare, judge, parse_gate, read_baseline
from ncuroof.errors import BaselineError
from tests.comparison.runs import launch, run

RUN = run(
    launch("a", 1000.0),
    launch("b", 2000.0, grid=[7, 1, 1]),
    launch("b", 2100.0, grid=[7, 1, 1]),
    launch("c", None, failed=True),
)


def test_a_baseline_compares_as_its_run_does(tmp_path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(baseline_json(RUN))
    back = read_baseline(path)
    assert compare(back, RUN).is_empty
    assert back.setup == RUN.setup
    assert (back.n_kernels, back.n_failed) == (4, 1)
    slower = run(launch("a", 1000.0), launch("b", 3000.0, grid=[7, 1, 1]))
    found = [
        (delta.names[1], round(delta.change_frac, 3)) for delta in compare(back, slower).deltas if delta.is_significant
    ]
    assert found == [("b", round(3000 / 2050 - 1, 3))]
    assert baseline_json(back) == baseline_json(RUN)
    path.write_bytes(baseline_json(replace(RUN, step_ns=4.5e7, idle_frac=0.25)))
    assert (read_baseline(path).step_ns, read_baseline(path).idle_frac) == (4.5e7, 0.25)


def test_a_baseline_of_a_damaged_run_says_so(tmp_path) -> None:
    path = tmp_path / "run.json"
    damage = ("a.ncu-rep: the rest is lost", "b.ncu-rep: 3 of its rows are lost")
    path.write_bytes(baseline_json(replace(RUN, damage=damage)))
    assert read_baseline(path).damage == damage
    content = json.loads(baseline_json(RUN))
    assert content.pop("damage") == []
    path.write_text(json.dumps(content), encoding="utf-8")  # of an earlier version
    assert read_baseline(path).damage == ()


def test_values_that_no_run_has_are_not_written_to_a_baseline(tmp_path) -> None:
    # counters of a damaged report may be anything
    odd = {"traffic_bytes.dram": 1e31, "work.fp32.flop": 1e-31}
    path = tmp_path / "run.json"
    path.write_bytes(baseline_json(run(launch("a", 2e15, **odd), launch("b", 1e15, **{"traffic_bytes.dram": 1e30}))))
    groups = read_baseline(path).groups
    assert groups["mean_ns"].to_list() == [None, 1e18]  # 2e18 ns are 63 years
    assert groups["traffic_bytes.dram"].to_list() == [None, 1e30]
    assert groups["work.flop"].to_list() == [None, 1e9]


def test_a_baseline_of_an_earlier_version_knows_no_step(tmp_path) -> None:
    content = json.loads(baseline_json(RUN))
    del content["step_ns"], content["idle_frac"]
    (tmp_path / "run.json").write_text(json.dumps(content), encoding="utf-8")
    assert read_baseline(tmp_path / "run.json").step_ns is None


def test_a_baseline_knows_whether_launches_were_counted(tmp_path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(baseline_json(replace(RUN, is_counted=True, not_recorded_ns=1.5e6)))
    assert (read_baseline(path).is_counted, read_baseline(path).not_recorded_ns) == (True, 1.5e6)
    # of an earlier version: they were where a launch stands for others, or took another time than ncu's
    alone, thrice = [launch("a", 1000.0 / 3, n_represented=each, weight=each) for each in (1.0, 3.0)]
    for launches, is_counted in (
        ([alone] * 3, False),
        ([thrice], True),
        ([alone, alone | {"weight": 0.9}], True),
        ([alone | {"duration_ns": None}], False),
    ):
        content = json.loads(baseline_json(run(*launches)))
        for key in ("is_counted", "not_recorded_ns", "not_recorded", "steps", "n_steps"):
            del content[key]
        del content["recording"]["precisions"]
        path.write_text(json.dumps(content), encoding="utf-8")
        back = read_baseline(path)
        assert (back.is_counted, back.not_recorded_ns, back.setup.precisions) == (is_counted, None, ())
        assert (back.unprofiled, back.steps, back.n_steps) == ((), None, None)


def test_a_baseline_of_an_earlier_version_knows_how_many_failed_and_not_which(tmp_path) -> None:
    content = json.loads(baseline_json(RUN))
    del content["failed"]
    (tmp_path / "run.json").write_text(json.dumps(content), encoding="utf-8")
    back = read_baseline(tmp_path / "run.json")
    gates = [parse_gate("time:+5%"), parse_gate("kernel(.*).time:+5%")]
    assert all(found.has_passed for found in judge(gates, compare(back, RUN)))
    (found,) = judge([parse_gate("kernel(^c).duration_ns<=1e9")], compare(back, RUN))
    assert found.reasons == ("c failed to profile",)  # of the run after it is known which
    more = run(launch("a", 1000.0), launch("b", None, failed=True), launch("c", None, failed=True))
    (found,) = judge(gates[:1], compare(back, more))
    assert found.reasons == ("times are not comparable: launches failed to profile: 1 before, 2 after",)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "expected a baseline, found a file that is not JSON$"),
        (b"\xff\xfe", "expected a baseline"),
        (b"[1, 2]", "expected a baseline, found a JSON list$"),
        (b"{}", "expected a baseline, found an empty JSON object$"),
        (b'{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}', "found a JSON object with 'a', 'b', 'c', 'd', …$"),
        (b"[" * 100_000, "expected a baseline, found a file that is not JSON$"),
        (b'{"schema": "ncuroof.analysis/1"}', "expected schema ncuroof.baseline/1, found ncuroof.analysis/1"),
        (b'{"schema": "ncuroof.baseline/1"}', "the file is damaged: 'groups' is missing$"),
        (
            b'{"schema": "ncuroof.baseline/1"}' + b" " * 64 * 2**20,
            "expected a baseline of at most 64 MiB, found a larger",
        ),
    ],
)
def test_a_file_that_is_not_a_baseline_is_refused(tmp_path, content: bytes, said: str) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    with pytest.raises(BaselineError, match=said):
        read_baseline(path)


@pytest.mark.parametrize("groups", [[0, 2], [0, 0], [1, 0], [None, 1]])
def test_a_baseline_that_was_cut_or_merged_is_damaged(tmp_path, groups: list[int | None]) -> None:
    content = json.loads(baseline_json(RUN))
    content["groups"]["group"] = groups
    (tmp_path / "run.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(BaselineError, match="expected groups 0 to 1 in order, found"):
        read_baseline(tmp_path / "run.json")


def test_names_of_a_baseline_are_shortened_by_the_current_rules(tmp_path) -> None:
    content = json.loads(baseline_json(RUN))
    content["groups"] |= {"renamed": ["as it was", "told then"], "variant": ["as it was", "told then"]}
    (tmp_path / "run.json").write_text(json.dumps(content), encoding="utf-8")
    assert read_baseline(tmp_path / "run.json").groups["variant"].to_list() == ["a", "b"]


def test_a_baseline_may_lack_a_name(tmp_path) -> None:
    content = json.loads(baseline_json(RUN))
    content["groups"]["name"] = [None, "b(float *, int)"]
    (tmp_path / "run.json").write_text(json.dumps(content), encoding="utf-8")
    comparison = compare(read_baseline(tmp_path / "run.json"), RUN)
    assert [(each.before, each.after) for each in comparison.matching.matches][-1] == ((1,), (1,))


def test_a_baseline_that_lost_a_column_or_holds_nonsense_is_damaged(tmp_path) -> None:
    whole = json.loads(baseline_json(RUN))
    path = tmp_path / "run.json"
    for key in whole["groups"]:
        if (
            key not in ("work.flop", "traffic_bytes.dram")
            and "." not in key
            and key not in ("sm_clock_hz", "counted_average_ns", "findings", "sha256", "n_instructions", "is_whole")
        ):
            broken = whole | {"groups": {name: column for name, column in whole["groups"].items() if name != key}}
            path.write_text(json.dumps(broken), encoding="utf-8")
            with pytest.raises(BaselineError, match="damaged"):
                read_baseline(path)
    for odd, said in (
        ({"mean_ns": ["fast", "slow"]}, "has the wrong type$|of the wrong type$"),
        ({"mean_ns": [1.0, 2.0, 3.0]}, "columns of groups differ in length"),
    ):
        path.write_text(json.dumps(whole | {"groups": whole["groups"] | odd}), encoding="utf-8")
        with pytest.raises(BaselineError, match=f"the file is damaged: .*{said}"):
            read_baseline(path)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("groups",), None),
        (("groups", "mean_ns"), 1e6),  # one for all
        (("groups", "n_launches"), [0, 1]),
        (("groups", "n_launches"), [None, 1]),
        (("groups", "n_recorded"), [0, 1]),
        (("groups", "n_high"), [None, 0]),
        (("groups", "verdict"), ["memory", "fine"]),
        (("groups", "verdict"), [None, "memory"]),
        (("groups", "duration_ns"), [-1e6, 1e6]),
        (("groups", "duration_ns"), [float("inf"), 1e6]),
        (("groups", "work.flop"), [-1e6, 1e6]),
        (("groups", "traffic_bytes.dram"), [float("nan"), 1e6]),
        (("groups", "work.flop"), [1e308, 1e6]),
        (("groups", "work.flop"), [1e-308, 1e6]),
        (("groups", "utilisation.dram"), [1e31, 0.5]),
        (("groups", "mean_ns"), [1e308, 1e6]),
        (("groups", "mean_ns"), [1.1e18, 1e6]),
        (("groups", "sha256"), ["f" * 63, None]),
        (("groups", "sha256"), [1, None]),
        (("groups", "n_instructions"), [0, None]),
        (("groups", "is_whole"), ["yes", None]),
        (("groups", "n_launches"), [10**10, 1]),
        (("step_ns",), float("inf")),
        (("step_ns",), -1),
        (("step_ns",), 1e308),
        (("step_ns",), True),
        (("idle_frac",), 1e308),
        (("idle_frac",), 1.1),
        (("idle_frac",), -0.1),
        (("not_recorded_ns",), -1.0),
        (("not_recorded",), [{"name": "b", "grid": [1, 1], "block": [64, 1, 1], "n_launches": 1, "duration_ns": 1.0}]),
        (
            ("not_recorded",),
            [{"name": "b", "grid": [1, 1, 1], "block": [64, 1, 1], "n_launches": -1, "duration_ns": 1.0}],
        ),
        (
            ("not_recorded",),
            [{"name": "b", "grid": [1, 1, 1], "block": [64, 1, 1], "n_launches": 1, "duration_ns": -1.0}],
        ),
        (
            ("not_recorded",),
            [{"name": None, "grid": [1, 1, 1], "block": [64, 1, 1], "n_launches": 1, "duration_ns": 1.0}],
        ),
        (
            ("not_recorded",),
            [{"name": "b", "grid": [1, 1, 1], "block": [64, 1, 1], "n_launches": 1, "duration_ns": None}],
        ),
        (("not_recorded",), [{"name": "b"}]),
        (("not_recorded",), 3),
        (("steps",), 10),
        (("n_steps",), -1),
        (("n_steps",), "1"),
        (("is_counted",), "x"),
        (("is_counted",), 1),
        (("n_kernels",), -1),
        (("n_kernels",), 0),  # and one failed
        (("n_kernels",), 4.5),
        (("n_kernels",), "4"),
        (("n_failed",), 10**30),
        (("n_failed",), 2),  # and one name
        (("failed",), []),
        (("failed",), "x"),
        (("failed",), [3]),
        (("damage",), "x"),
        (("failed",), ["\ud800"]),
        (("label",), "\ud800"),
        (("recording",), None),
        (("recording", "gpus"), "NVIDIA H200"),
        (("recording", "drivers"), [580]),
        (("recording", "sections"), None),
        (("recording", "sm_clock_hz"), "fast"),
        (("recording", "sm_clock_hz"), 1e308),
        (("recording", "is_simulated"), "x"),
    ],
)
def test_a_baseline_with_values_that_no_run_has_is_damaged(tmp_path, place: tuple[str, ...], value: object) -> None:
    content = json.loads(baseline_json(RUN))
    folder = content
    for key in place[:-1]:
        folder = folder[key]
    folder[place[-1]] = value
    (tmp_path / "run.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(BaselineError, match="the file is damaged"):
        read_baseline(tmp_path / "run.json")
