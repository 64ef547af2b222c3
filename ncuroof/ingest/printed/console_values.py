"""Splits a line of a table that ncu printed for a terminal into label, unit and value.

Manually copied text may have lost rulers, column alignment or headers, or gained remarks after the values; known labels distinguish
such lines from the text around them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ncuroof.ingest.printed.labels import PrintedLabels

_UNIT = re.compile(
    r"%|SM|TPC|(?:[KMGTP]?(?:byte|hz)|cycle|inst|warp|block|thread|register|sector|request|wavefront|cluster|sample|[nuµμm]?s(?:ec(?:ond)?)?)(?:/\w+)?"
)
"""Units as ncu prints them; any other word before a number is the end of a label or of ordinary text."""

_LONGEST = 500
"""Longest line that is split by words, in characters."""

_NUMBER = r"[-+]?\d{1,3}(?: \d{3})+(?:,\d+)?|[-+]?\d[\d.,'\u00a0\u202f]*(?:e[-+]?\d+)?|[-+]?inf|nan|n/a|no data"
"""Blanks between groups of three digits are thousands separators, in locales whose decimal separator is a comma."""
_BEHIND = r"(?:\s{2,}\S.*|\s+(?:<|#|//|[‹←⟵]).*)?"
"""A remark by the person who copied the line."""

_ENDS_WITH_UNIT = re.compile(rf"(\S.*?)\s+({_NUMBER})\s*({_UNIT.pattern}){_BEHIND}$")
"""A line as people retype it, with the unit after the number; ncu prints the unit before it."""

_ENDS_WITH_NUMBER = re.compile(rf"(\S.*?)\s+({_NUMBER}){_BEHIND}$")


class Cells(NamedTuple):
    """The cells of a line, as printed; the unit is empty if there is none."""

    label: str
    unit: str
    value: str


def below_rulers(line: str, columns: Sequence[tuple[int, int]]) -> Cells | None:
    """Return the cells of a line that is aligned with the rulers of a table; None if it is not.

    Args:
        line: the line, without quoting prefixes.
        columns: start and end of the rulers of label, unit and value, in characters.
    """
    if len(columns) != 3:
        return None
    gaps = [start - 1 for start, _ in columns[1:]] + [columns[-1][1]]
    if any(line[gap : gap + 1].strip() for gap in gaps):
        return None
    label, unit, value = (line[start:end].strip() for start, end in columns)
    is_row = label and " " not in unit and (value or _UNIT.fullmatch(unit))
    return Cells(label, unit, value) if is_row else None


def by_words(text: str, section: str, labels: PrintedLabels) -> Cells | None:
    """Return the cells of a line that ends with a number, or with the number and unit of a known label.

    None for any other line, and if a value that needs a unit has lost it.

    Args:
        text: the line, stripped.
        section: the section that contains it, as printed.
        labels: known labels, to find where a label ends: "Waves Per SM 2.37" has no unit, "# SMs SM 132" has one.
    """
    if len(text) > _LONGEST:
        return None
    if (match := _ENDS_WITH_UNIT.match(text)) and labels.is_label(section, match[1]) and labels.has_unit(match[1]):
        return Cells(match[1], match[3], match[2])
    found = _ENDS_WITH_NUMBER.match(text)
    if found is None:
        return None
    head, value = found.groups()
    label, _, unit = head.rpartition(" ")
    if label and _UNIT.fullmatch(unit) and not labels.is_label(section, head):
        return Cells(label.rstrip(), unit, value)
    return None if labels.has_unit(head) else Cells(head, "", value)
