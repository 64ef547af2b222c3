"""The flat table: what spreadsheets and programs read back is what was there, and no name runs as a formula."""

from __future__ import annotations

import csv
import io

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import ncuroof
from ncuroof.present.kernel_rows import to_csv, to_parquet
from tests.support import demo


@pytest.fixture(scope="module")
def kernels() -> pl.DataFrame:
    return ncuroof.read(demo.REPORT).analyse().kernels


def _rows(table: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.decode(), newline="")))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "  =", "\u3000@", "＝", "＋", "－", "＠"])
@pytest.mark.parametrize("rest", ["cmd|' /C calc'!A0", "SUM(A1:A9)", "1+1", ""])
def test_text_that_a_spreadsheet_would_run_is_quoted(start: str, rest: str) -> None:
    text = start + rest
    (row,) = _rows(to_csv(pl.DataFrame({"name": [text], "nvtx": [[text, "b", text]], "other": [f"f;{text}"]})))
    quoted = "'" + (" " if start in "\t\r\n" else start) + rest
    assert row == {"name": quoted, "nvtx": f"{quoted};b;{quoted}", "other": f"f;{quoted}"}


def test_negative_numbers_stay_numbers() -> None:
    (row,) = _rows(to_csv(pl.DataFrame({"x": [-1.5], "n": [-2], "many": [[-1.5, None, -2.0]], "text": ["a=b-c"]})))
    assert row == {"x": "-1.5", "n": "-2", "many": "-1.5;;-2.0", "text": "a=b-c"}


@pytest.mark.parametrize(
    "name", ["a,b", 'say "a"', ";", "漢字", "f<int, (int)4>(T*)", " a ", "'", "👩\u200d💻", "a\u00a0b"]
)
def test_any_name_is_read_back(name: str) -> None:
    names = [name, "next"]
    read = pl.read_csv(io.BytesIO(to_csv(pl.DataFrame({"name": names, "x": [1, 2]}))))
    assert read["name"].to_list() == names
    assert read["x"].to_list() == [1, 2]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a\nb", "a b"),
        ("a\r\nb", "a  b"),
        ("\0", "\\u0000"),
        ("\x1b]52;c;QQ==\x07", "\\u001b]52;c;QQ==\\u0007"),
        ("\x9b31m\x7f", "\\u009b31m\\u007f"),
        ("a\u202eb\u2028", "a\\u202eb\\u2028"),
    ],
)
def test_what_a_terminal_would_obey_is_made_visible(name: str, written: str) -> None:
    assert to_csv(pl.DataFrame({"name": [name], "nvtx": [[name]]})).decode() == f"name,nvtx\n{written},{written}\n"


def test_lists_are_joined_and_the_unknown_is_empty() -> None:
    table = pl.DataFrame(
        {"grid": [[1, 2, 3], None, []], "x": [None, 0.0, 2.5], "ok": [True, None, False]},
        schema={"grid": pl.List(pl.Int64), "x": pl.Float64, "ok": pl.Boolean},
    )
    assert _rows(to_csv(table)) == [
        {"grid": "1;2;3", "x": "", "ok": "true"},
        {"grid": "", "x": "0.0", "ok": ""},
        {"grid": "", "x": "2.5", "ok": "false"},
    ]


def test_csv_has_a_row_per_kernel_and_a_column_per_quantity(kernels: pl.DataFrame) -> None:
    rows = _rows(to_csv(kernels))
    assert [row["name"] for row in rows] == kernels["name"].to_list()
    assert list(rows[0]) == kernels.columns
    for row, duration in zip(rows, kernels["duration_ns"], strict=True):
        assert (float(row["duration_ns"]) if row["duration_ns"] else None) == duration


def test_parquet_keeps_columns_types_and_values(kernels: pl.DataFrame) -> None:
    assert_frame_equal(pl.read_parquet(io.BytesIO(to_parquet(kernels))), kernels, check_exact=True)


def test_tables_without_rows_are_tables(kernels: pl.DataFrame) -> None:
    nothing = kernels.clear()
    assert _rows(to_csv(nothing)) == []
    assert pl.read_parquet(io.BytesIO(to_parquet(nothing))).columns == kernels.columns
