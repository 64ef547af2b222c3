"""Extracts records from what ncu prints for a terminal, in a file that may contain other text: a log, or a note about it.

A launch begins with a line that has the kernel's name and its context. Below it come tables of labels, units and values, each under
the name of its section, and the messages of NVIDIA's rules. The records are those of the same page printed as CSV, one per value
or rule. In a text that names no launch, the sections show where one begins.

Manually copied text may have lost rulers, column alignment or headers, or gained remarks after the values; known labels distinguish
such lines from the text around them.

Source: output of ncu 2024.1 for 138 recorded reports with `--page details` and `--page raw`, and output of ncu 2020 to 2026 in
published logs; Nsight Compute CLI documentation, "Console Output".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ncuroof.ingest.printed.console_parts import PrintedContext, RepeatedSections, Rule, Value
from ncuroof.ingest.printed.labels import COUNTER_MARK, PrintedLabels
from ncuroof.ingest.printed.launch_lines import LaunchLine, LaunchLines, may_be_launch
from ncuroof.ingest.printed.records import INVOCATIONS, Header

_CONTAINER = r"[\w.-]{1,60}[-_]\d{1,4} +\|(?=\s|$)"
_QUOTING = re.compile(rf"(?:\s*(?:>|//|#(?! (?!Section: )[A-Z])|│|\d+[:|](?=\s)|{_CONTAINER}))*")
"""Prefixes of quoted lines: marks of e-mail, notes and comments, line or rank numbers, names of containers. "# SMs" is a label, not
a comment."""

_NUMBERED = re.compile(r"\s*(\d{1,18})[:|]\s")
_CONTAINED = re.compile(_CONTAINER)
_MOST_RESTARTS = 3
"""How often the numbers before lines may decrease: line numbers restart where notes are joined, rank numbers alternate."""

_OUTSIDE = re.compile(r"==[A-Z]+==|```")
_FENCE = "```"
_TOOLS = ("ncu", "nv-nsight-cu-cli")
_TOOL = re.compile(r"(?:^|\s)(?:\S*/)?(?:" + "|".join(_TOOLS) + r")\s+(-)?")
_PROMPT = re.compile(r".*[$#>%]\s*$|.*[$#]\s+\S+(?:\s+\S+){0,7}$")
"""What precedes ncu in a command line: a shell's prompt, and launchers with their options."""

_NEXT_RUN = re.compile(r"==PROF==(?!\s+\d+: )")
"""Beginning of ncu's progress messages, which come after the last table of a run, and among tables where several processes of ncu
write one log; its warnings come anywhere, and so do the NVTX ranges that versions of 2020 list below a kernel's name."""

_PROCESS = re.compile(r"\[(\d+)\] (\S.*)@\S+$")
_GPU = re.compile(r"(?:.* )?Device (\d+), CC (\d+\.\d+)$")
"""The line above the kernels of a GPU, in a summary."""

_SECTION = re.compile(r"Section: (.+)")
_TABLE = re.compile(r"Metric Name\s+Metric Unit\s+Metric Value$")
_SUMMARY = re.compile(r"Metric Name\s+Metric Unit\s+Minimum\s+Maximum\s+Average$")
_N_COLUMNS, _N_COLUMNS_OF_SUMMARY = 3, 5
_INDENT = 4
"""Indent of what ncu prints below a kernel's name."""
_RULER = re.compile(r"-{3,}(?:\s+-{3,})*$")
_RULE = re.compile(r"(OPT|INF|WRN|ERR|OK(?=\s{2}))\s+(\S.*)")

_UNIT = re.compile(
    r"%|SM|TPC|(?:[KMGTP]?(?:byte|hz)|cycle|inst|warp|block|thread|register|sector|request|wavefront|cluster|sample|[nuµμm]?s(?:ec(?:ond)?)?)(?:/\w+)?"
)
"""Units as ncu prints them; any other word before a number is the end of a label or of ordinary text."""

_LONGEST = 500
"""Longest line that is split by words, in characters."""

_NUMBER = (
    r"[-+]?\d{1,3}(?: \d{3})+(?:[.,]\d+)?|[-+]?\d[\d.,'\u2019\u00a0\u202f]*(?:e[-+]?\d+)?|[-+]?inf|nan|n/a|no data"
)
"""A number as printed. Blanks between groups of three digits are thousands separators."""
_BEHIND = r"(?:\s{2,}\S.*|\s+(?:<|#|//|[‹←⟵]).*)?"
"""A remark by the person who copied the line."""

_ENDS_WITH_UNIT = re.compile(rf"(\S.*?)\s+({_NUMBER})\s*({_UNIT.pattern}){_BEHIND}$")
"""A line as people retype it, with the unit after the number; ncu prints the unit before it."""

_ENDS_WITH_NUMBER = re.compile(rf"(\S.*?)\s+({_NUMBER}){_BEHIND}$")


class ConsoleRecords:
    """Reads the records of a file.

    Args:
        lines: the lines of the file.
        labels: labels by which values are recognised outside of tables with a header.
        is_unnamed: whether the file names no launch. Then the first section begins a launch, and each section that the current
            launch already has begins the next one.

    Attributes:
        n_lost: number of lines so far with a known label but no value, plus the values in sections without a launch.
        n_empty: number of launches so far, apart from the last one while its lines are read, without any value or rule.
        is_cut: whether the text read so far ends within the table of a section; that of the raw page has no last ruler.
        n_tables: number of launches so far.
        has_sections: whether the file contains a known section.
        has_other_names: whether a line names a launch in another form than ncu's pages do.
        is_unnamed: the argument of this name.
    """

    def __init__(self, lines: Iterable[str], labels: PrintedLabels, *, is_unnamed: bool = False) -> None:
        self.n_lost = self.n_empty = self.n_tables = 0
        self.is_cut = False
        self.has_sections = self.has_other_names = False
        self.is_unnamed = is_unnamed
        self._sections: set[str] = set()
        self._orphan = ""
        self._number, self._container, self._n_restarts = 0, "", 0
        self._lines = lines
        self._labels = labels
        self._process: dict[str, str] = {}
        self._place: PrintedContext | None = None
        self._interrupted: PrintedContext | None = None
        self._n_headings = 0
        self._launches = RepeatedSections()
        self._launch_lines = LaunchLines()
        self._gpu: dict[str, str] = {}
        self._columns: Sequence[tuple[int, int]] = ()
        self._is_table = self._has_values = self._is_empty = self._awaits_table = False
        self._open: Rule | Value | None = None

    @property
    def is_mixed(self) -> bool:
        """Whether lines of several ranks or containers, each with the prefix of its rank or container, are interleaved."""
        return self._n_restarts > _MOST_RESTARTS

    @property
    def n_apart(self) -> Counter[str]:
        """See `RepeatedSections`."""
        return self._launches.n_apart

    @property
    def n_unnamed(self) -> int:
        """See `RepeatedSections`."""
        return self._launches.n_unnamed

    def __iter__(self) -> Iterator[tuple[Header, list[str]]]:
        """Yield a row per value and per rule."""
        yield from self._launches.rows(self._parts())

    def _parts(self) -> Iterator[Rule | Value]:
        for line in self._lines:
            self._watch_ranks(line)
            quoting = _QUOTING.match(line)
            before = self._open
            self._take(line[quoting.end() if quoting else 0 :].rstrip())
            if before is not None and self._open is not before:
                yield before
        self.n_empty += self._is_empty
        if self._open is not None:
            yield self._open

    def _watch_ranks(self, line: str) -> None:
        """Count how often the numbers before lines decrease, or the names of containers alternate within a launch."""
        if numbered := _NUMBERED.match(line):
            self._n_restarts += int(numbered[1]) < self._number
            self._number = int(numbered[1])
        elif contained := _CONTAINED.match(line):
            self._n_restarts += self._place is not None and contained[0] != self._container
            self._container = contained[0]

    def _take(self, shown: str) -> None:
        text = shown.strip()
        self._take_text(shown, text)
        if text:
            is_section = self._place is not None and self._place.heading != ""
            self.is_cut = is_section and self._is_table and bool(self._columns)

    def _take_text(self, shown: str, text: str) -> None:
        before = self._open
        if _NEXT_RUN.match(text) and not self.is_unnamed:
            self._interrupt()
            return
        if self._interrupted is not None and self._resumes(text, shown):
            self._place, self._interrupted = self._interrupted, None
        if self._begins(text, shown):
            self._open = None if self._open is before else self._open
        elif isinstance(before, Rule) and len(shown) - len(text) > before.indent:
            before.lines.append(text)
        elif self._place is not None:
            self._take_value(self._place, shown, text)
        elif self._orphan:
            cells = by_words(text, self._orphan, self._labels)
            self.n_lost += cells is not None and self._labels.knows(self._orphan, cells.label)

    def _interrupt(self) -> None:
        """Note an interruption by ncu's progress: the current launch may be complete, or its table may continue later."""
        self._launch_lines.clear()
        if not self.is_cut:
            self._interrupted, self._place, self._orphan = self._place or self._interrupted, None, ""

    def _resumes(self, text: str, shown: str) -> bool:
        """Return whether a line continues the launch that ncu's progress interrupted, as no other program prints such lines."""
        is_indented = len(shown) - len(text) >= _INDENT
        if _SECTION.match(text) or (is_indented and (_RULE.match(text) or _RULER.match(text))):
            return True
        row = below_rulers(shown, self._columns)
        return row is not None and COUNTER_MARK in row.label

    def _begins(self, text: str, shown: str) -> bool:
        """Return whether a line ends the open rule or value, and start the launch, section, rule or table that it begins.

        Args:
            text: the line, stripped.
            shown: the line with its indent.
        """
        is_apart = _is_apart(text)
        if is_apart:
            self._place, self._orphan = self._place and replace(self._place, is_apart=True), ""
        if not text or is_apart or _OUTSIDE.match(text):
            self._is_table = False
            if _NEXT_RUN.match(text):
                self._end_launch()
        elif found := _PROCESS.match(text):
            self._process, self._gpu = {"Process ID": found[1], "Process Name": found[2]}, {}
            self._end_launch()
        elif launch := self._launch_lines.take(shown, is_in_table=self._is_table):
            self._take_launch(launch)
            return True
        elif "Device " in text and (found := _GPU.match(text)):
            self._gpu = {"Device": found[1], "CC": found[2]}
            self._end_launch()
        elif may_be_launch(text):
            self.has_other_names = True
            self._end_launch()
            return True
        else:
            if found := _SECTION.match(text):
                self._meet_section(found[1])
            is_part = self._place is not None and self._begins_part(self._place, text, shown)
            if is_part:
                self._launch_lines.clear()
            return is_part
        self._launch_lines.clear()
        return True

    def _take_launch(self, found: LaunchLine) -> None:
        """Begin a launch, or complete the current one with the rest of its wrapped line."""
        if found.is_continued and self._place is not None:
            self._place = replace(self._place, launch={**self._place.launch, **found.identity})
        else:
            self._begin_launch({**self._gpu, **found.identity})

    def _meet_section(self, name: str) -> None:
        """Record the begin of a section, which belongs to the current launch, to a new unnamed launch, or to no launch."""
        if name not in self._labels.identifier_by_section:
            return
        self.has_sections = True
        if self.is_unnamed and (not self._place or name in self._sections):
            self._begin_launch({})
        self._orphan = "" if self._place else name
        self._sections.add(name)

    def _end_launch(self) -> None:
        self._place, self._interrupted, self._orphan = None, None, ""

    def _begins_part(self, place: PrintedContext, text: str, shown: str) -> bool:
        """Return whether a line begins a section, rule, table or ruler of the current launch, and start it."""
        if found := _SECTION.match(text):
            self._n_headings += 1
            self._place = replace(place, heading=found[1], table=self._n_headings)
            self._is_table, self._awaits_table = False, True
        elif found := _RULE.match(text):
            self._open = Rule(place, found[1], len(shown) - len(text), [found[2]])
            self._is_table = self._is_empty = False
        elif _SUMMARY.match(text) and INVOCATIONS not in place.launch:
            self._end_launch()  # a table of several launches, which are not the current one
        elif _TABLE.match(text) or _SUMMARY.match(text):
            self._columns, self._is_table, self._has_values = (), True, False
        elif _RULER.match(text):
            self._columns = [found.span() for found in re.finditer("-+", shown)]
            if self._awaits_table and len(self._columns) == _N_COLUMNS:  # in 2020, without a header
                self._is_table, self._has_values = True, False
            self._is_table &= not self._has_values
            self._awaits_table = False
        else:
            return False
        return True

    def _begin_launch(self, identity: Mapping[str, str]) -> None:
        self._n_headings += 1
        launch = {"ID": str(self.n_tables), "Process ID": "", **self._process, **identity}
        self._place, self._interrupted = PrintedContext(launch, "", self._n_headings), None
        self.n_empty += self._is_empty
        self.n_tables, self._is_empty = self.n_tables + 1, True
        self._columns, self._is_table, self._awaits_table, self._orphan, self._sections = (), False, True, "", set()

    def _take_value(self, place: PrintedContext, shown: str, text: str) -> None:
        columns, before = self._columns, self._open
        start, end = columns[-1] if len(columns) >= _N_COLUMNS else (0, 0)
        if self._is_table and isinstance(before, Value) and start and not shown[:start].strip():
            before.lines.append(text)
            return
        self._open = None
        if cells := self._cells(place.heading, shown, text):
            section = self._labels.section_of(place.heading, cells.label)
            self._is_empty, self._has_values = False, True
            self._open = Value(place, section, cells.label, cells.unit, [cells.value], end - start, cells.ends)

    def _cells(self, section: str, shown: str, text: str) -> Cells | None:
        """Return the cells of a line, or None. In a table, it must be aligned like the rows; elsewhere, its label must be known."""
        if self._is_table and (cells := below_rulers(shown, self._columns)):
            return cells
        if self._place is not None and INVOCATIONS in self._place.launch:
            return None  # without rulers, the mean among three numbers is unknown
        cells = by_words(text, section, self._labels)
        if cells and (self._labels.knows(section, cells.label) or (self._is_table and not self._columns)):
            return cells
        label, _, rest = text.partition("  ")
        # count as lost: in a table without rulers any lone label, elsewhere one that a number follows
        is_row = (self._is_table and not self._columns) or rest.lstrip()[:1].isdecimal()
        self.n_lost += is_row and self._labels.knows(section, label)
        return None


def _is_apart(text: str) -> bool:
    """Return whether a line separates pieces of a note: a table after it without a name may belong to another kernel.

    It is a code fence, or a command line with ncu.
    """
    if text.startswith(_FENCE):
        return True
    tool = _TOOL.search(text) if any(name in text for name in _TOOLS) else None  # most lines have neither
    if tool is None:
        return False
    before = text[: tool.start()]
    return _PROMPT.match(before) is not None if before else tool[1] is not None


class Cells(NamedTuple):
    """The cells of a line, as printed; the unit is empty if the line has no unit.

    In a summary over launches, the value is the average, and `ends` are the least and the greatest value.
    """

    label: str
    unit: str
    value: str
    ends: tuple[str, str] = ("", "")


def below_rulers(line: str, columns: Sequence[tuple[int, int]]) -> Cells | None:
    """Return the cells of a line that is aligned with the rulers of a table; None if it is not.

    Args:
        line: the line, without quoting prefixes.
        columns: start and end of the rulers of label, unit and value, in characters; in a summary of label, unit, minimum, maximum
            and average.
    """
    if len(columns) not in (_N_COLUMNS, _N_COLUMNS_OF_SUMMARY):
        return None
    gaps = [start - 1 for start, _ in columns[1:]] + [columns[-1][1]]
    if any(line[gap : gap + 1].strip() for gap in gaps):
        return None
    label, unit, *ends, value = (line[start:end].strip() for start, end in columns)
    is_row = label and " " not in unit and (value or _UNIT.fullmatch(unit))
    return Cells(label, unit, value, (ends[0], ends[-1]) if ends else ("", "")) if is_row else None


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
