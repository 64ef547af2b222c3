"""Results of gates for CI systems: JUnit XML, and annotations for GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from ncuroof import wording
from ncuroof.present.analysed import Record


def to_junit(document: Record) -> bytes:
    """Return the gates as JUnit XML, a test case each; a failed gate's reasons are its message."""
    gates = document["gates"]
    failed = [gate for gate in gates if not gate["has_passed"]]
    suite = ET.Element("testsuite", name="ncuroof compare", tests=str(len(gates)), failures=str(len(failed)))
    for gate in gates:
        case = ET.SubElement(suite, "testcase", classname="ncuroof.gates", name=wording.printable(gate["gate"]))
        reasons = wording.printable("; ".join(gate["reasons"]))
        if gate["has_passed"]:
            ET.SubElement(case, "system-out").text = reasons
        else:
            ET.SubElement(case, "failure", message=reasons)
    ET.indent(suite)
    written: bytes = ET.tostring(suite, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def to_annotations(document: Record) -> Iterator[str]:
    """Yield workflow commands for GitHub Actions: an error per failed gate, or one notice where all passed.

    Source: GitHub Docs, "Workflow commands for GitHub Actions" (escapes for %, carriage return and line feed).
    """
    failed = [gate for gate in document["gates"] if not gate["has_passed"]]
    for gate in failed:
        yield f"::error title=ncuroof gate failed::{_escaped(gate['gate'])}: {_escaped('; '.join(gate['reasons']))}"
    if document["gates"] and not failed:
        yield f"::notice title=ncuroof::{len(document['gates'])} gates passed"


def _escaped(value: str) -> str:
    return wording.printable(value).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
