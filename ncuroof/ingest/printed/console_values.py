"""A line of a table that ncu printed for a terminal, as label, unit and value.

What was copied by hand has lost its rulers, its columns or its headers, or has gained remarks behind the values; labels that are
known tell such lines from the words around them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ncuroof.ingest.printed.labels import PrintedLabels

_UNIT = re.compile(
    r"%|SM|TPC|(?:[KMGTP]?(?:byte|hz)|cycle|inst|warp|block|thread|register|sector|request|wavefront|cluster|sample|[nuµμm]?s(?:ec(?:ond)?)?)(?:/\w+)?"
)
"""As ncu prints them; any other word before a number is the end of a label, or of somebody's sentence."""

_LONGEST = 500
"""Of a line that is looked through for words, in characters."""

_NUMBER = r"[-+]?\d[\d.,'\u00a0\u202f]*(?:e[-+]?\d+)?|[-+]?inf|nan|n/a|no data"
_BEHIND = r"(?:\s{2,}\S.*|\s+(?:<|#|//|[‹←⟵]).*)?"
"""A remark of who copied the line."""

_ENDS_WITH_UNIT = re.compile(rf"(\S.*?)\s+({_NUMBER})\s*({_UNIT.pattern}){_BEHIND}$")
"""As who tells of a table writes it; ncu prints the unit before the number."""

_ENDS_WITH_NUMBER = re.compile(rf"(\S.*?)\s+({_NUMBER}){_BEHIND}$")


class Cells(NamedTuple):
    """What a line of a table holds, as printed; the unit is empty where there is none."""

    label: str
    unit: str
    value: str


def below_rulers(line: str, columns: Sequence[tuple[int, int]]) -> Cells | None:
    """Return what stands below the rulers of a table; None where it does not stand so.

    Args:
        line: without what quotes it.
        columns: where the rulers of label, unit and value begin and end.
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
    """Return what a line holds that ends with a number, or a known label's number and unit; None where a unit was lost, and else.

    Args:
        text: the line without blanks around it.
        section: in which it stands, as printed.
        labels: which tell where a label ends: "Waves Per SM 2.37" has no unit, "# SMs SM 132" has one.
    """
    if len(text) > _LONGEST:
        return None
    if (told := _ENDS_WITH_UNIT.match(text)) and labels.is_label(section, told[1]) and labels.has_unit(told[1]):
        return Cells(told[1], told[3], told[2])
    found = _ENDS_WITH_NUMBER.match(text)
    if found is None:
        return None
    head, value = found.groups()
    label, _, unit = head.rpartition(" ")
    if label and _UNIT.fullmatch(unit) and not labels.is_label(section, head):
        return Cells(label.rstrip(), unit, value)
    return None if labels.has_unit(head) else Cells(head, "", value)
