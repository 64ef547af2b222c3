"""Lines end between words, and columns stand beneath each other, also where characters are wide."""

from __future__ import annotations

from ncuroof.present.texts.layout import aligned, filled, fitting


def test_lines_are_filled_to_the_width_and_end_between_words() -> None:
    assert list(filled("> ", ["ab", "cd", "efg"], 7)) == ["> ab cd", "  efg"]
    assert list(filled("> ", ["ab", "cd", "efg"], 6)) == ["> ab", "  cd", "  efg"]
    assert list(filled("", ["ab", "cd"], 4, hanging="   ")) == ["ab", "   cd"]
    assert list(filled("- ", ["longer", "a"], 5)) == ["- longer", "  a"]
    assert list(filled("- ", [], 5)) == ["- "]


def test_what_stands_together_is_not_parted() -> None:
    assert list(filled("", ["a", "b c d"], 6)) == ["a", "b c d"]


def test_a_unit_stays_beside_its_number() -> None:
    assert list(filled("", ["it", "takes", "61.2", "%,", "or", "(1.5", "GB/s)", "and", "12", "s."], 14)) == [
        "it takes",
        "61.2 %, or",
        "(1.5 GB/s) and",
        "12 s.",
    ]
    assert list(filled("", ["of", "3", "kernels", "×8", "2.83", "ms"], 7)) == ["of 3", "kernels", "×8", "2.83 ms"]
    assert list(filled("", ["of", "3", "µs"], 3)) == ["of", "3", "µs"]  # both together do not fit
    assert list(filled("", ["1", "2", "3"], 9)) == ["1 2 3"]


def test_what_is_wider_than_the_line_is_parted_and_stays_whole() -> None:
    assert list(fitting(["(up to 5 %)", "ab", "abcdefg", "核心a"], 3)) == [
        *("(up", "to", "5", "%)"),
        "ab",
        *("abc", "def", "g"),
        *("核", "心a"),
    ]
    assert list(fitting(["(up to 5 %)"], 11)) == ["(up to 5 %)"]


def test_wide_characters_take_two_cells() -> None:
    assert list(filled("", ["核心", "a"], 6)) == ["核心 a"]
    assert list(filled("", ["核心", "ab"], 6)) == ["核心", "ab"]
    assert aligned([("核心", "1"), ("kernel", "23")], left=[True, False]) == ["核心     1", "kernel  23"]


def test_columns_stand_to_the_left_or_to_the_right() -> None:
    rows = [("name", "n"), ("a", "100"), ("bc", "")]
    assert aligned(rows, left=[True, False]) == ["name    n", "a     100", "bc"]
    assert aligned(rows, left=[True, True]) == ["name  n", "a     100", "bc"]
