"""The control flow of machine code: recorded branches as nvdisasm shows them, and loops of graphs that are drawn by hand."""

from __future__ import annotations

import pytest

from ncuroof.ingest.code import sass
from ncuroof.ingest.code.control_flow import branch_offset, goes_on, loops, reached, successors
from tests.support.machine_code import ADD, EXIT, P0, branch, instruction

AMPERE, HOPPER = 80, 90


@pytest.mark.parametrize(
    ("low", "high", "goes"),
    [
        (0xFFFFFFF000007947, 0x000FC0000383FFFF, False),  # BRA, 8.9
        (0x000002E1000000947, 0x000FEA0003800000, True),  # @!P0 BRA, 7.5
        (0x0000477200007947, 0x000FEA0003800000, True),  # BRA.DIV, 7.5: lanes that have not parted go on
        (0x0000006300007947, 0x000FEA0003800000, True),  # BRA.CONV, 7.5
        (0x0000004100007947, 0x000FEA0003800000, False),  # BRA.U without a predicate, 8.0
        (0x0000000100087547, 0x000FEA000B800000, True),  # BRA.U UP0, 9.0
        (0x0000003000F47947, 0x000FEA0004000000, True),  # BRA !P0, 9.0: the predicate is an operand
        (0x0000002604B47947, 0x000FF6000B800000, True),  # BRA.DIV, 9.0
        (0x000000000000794D, 0x000FEA0003800000, False),  # EXIT
        (0x000000000000094D, 0x000FEA0003800000, True),  # @P0 EXIT
        (0x0000356E00007944, 0x0020FEA0003C00000, True),  # CALL.REL.NOINC, 8.6: it returns
    ],
)
def test_which_branches_can_fall_through(low: int, high: int, goes: bool) -> None:
    assert goes_on(low, high) == goes


def test_offsets_count_from_the_next_instruction() -> None:
    assert branch_offset(0xFFFFFFF000007947, 0x000FC0000383FFFF, 89) == -1  # a branch to itself
    assert branch_offset(0xFFFFFFFC00FC7947, 0x000FC0000383FFFF, 120) == -1


@pytest.mark.parametrize("target", [AMPERE, HOPPER])
def test_a_branch_leads_to_its_target_and_past_it(target: int) -> None:
    is_hopper = target == HOPPER
    code = (
        instruction(ADD),
        branch(1, predicate=P0, is_hopper=is_hopper),
        branch(-3, is_hopper=is_hopper),
        instruction(EXIT),
        branch(9, is_hopper=is_hopper),  # out of the function
    )
    found = successors(list(sass.words(b"".join(code), target)), target)
    assert found == [(1,), (2, 3), (0,), (), ()]


def test_loops_are_outermost_and_leave_out_what_only_leads_there() -> None:
    # 0 -> 1 <-> 2, 1 -> 3; 3 -> 3; 4 <-> 5 -> 6 -> 4 with 5 <-> 6 inside
    after = [(1,), (2, 3), (1,), (3, 4), (5,), (4, 6), (4, 5), ()]
    assert sorted(map(sorted, loops(after, range(8)))) == [[1, 2], [3], [4, 5, 6]]
    assert sorted(map(sorted, loops(after, {0, 1, 5, 6}))) == [[5, 6]]
    assert not list(loops(after, {0, 1, 4}))


@pytest.mark.long
def test_long_code_needs_no_deep_stack() -> None:
    n = 50_000
    after = [(number + 1,) for number in range(n)] + [(0,)]
    assert [len(each) for each in loops(after, range(n + 1))] == [n + 1]


def test_paths_end_before_their_ends() -> None:
    after = [(1, 2), (3,), (4,), (0,), ()]
    assert reached([0], after, lambda each: each == 2) == {0, 1, 3}
    assert reached([0], after, lambda each: each == 0) == set()
