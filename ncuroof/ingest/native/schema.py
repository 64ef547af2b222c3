"""Protobuf schema of the report messages that the native reader decodes: only the fields it needs; all others are skipped.

Text is declared as bytes, because damaged text need not be UTF-8; it is decoded where it is used. Counters, sections and NVTX
states are declared as bytes too and decoded only when wanted: a kernel stores thousands of values that nobody needs. No field is
required, so that older and damaged messages can be read.

Source: Nsight Compute Customization Guide, "Report File Format": numbers and meanings of the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

_PACKAGE = "ncuroof"

_COMMON = {"metrics": "4 bytes*", "sections": "7 bytes*", "nvtx": "10 bytes", "thread": "1 uint64"}
"""Fields that ranges, command lists and graphs have in common."""

_FIELDS_BY_MESSAGE: Mapping[str, Mapping[str, str]] = {
    "Header": {"string_table": "4 StringTable"},
    "StringTable": {"strings": "1 bytes*"},
    "Kernel": {
        "thread": "1 uint64",
        "mangled": "5 bytes",
        "name": "6 bytes",
        "demangled": "7 bytes",
        "metrics": "13 bytes*",
        "sections": "17 bytes*",
        "rules": "19 Rule*",
        "nvtx": "21 bytes",
    },
    "KernelSource": {"mangled": "5 bytes", "source": "15 Source"},
    "Source": {"reference": "1 uint64", "code": "4 bytes", "files": "8 bytes", "loaded": "9 Loaded"},
    "SourceFiles": {"files": "1 SourceFile*"},
    "SourceFile": {"name": "1 bytes", "content": "2 bytes"},
    "Loaded": {"functions": "1 Function*"},
    "Function": {"name": "1 bytes", "address": "2 uint64"},
    "Range": _COMMON,
    "CommandList": {**_COMMON, "name": "18 bytes", "rules": "21 Rule*"},
    "Graph": _COMMON,
    "Metric": {"name_id": "1 uint32", "value": "2 bytes"},
    "Instances": {"elements": "3 Instance*"},
    "Instance": {"name": "1 Value", "value": "2 Value"},
    "Value": {
        "text": "1 bytes",
        "single": "2 float",
        "double": "3 double",
        "short": "4 uint32",
        "long": "5 uint64",
    },
    "Section": {"identifier": "1 bytes"},
    "Rule": {"identifier": "1 bytes", "body": "3 RuleBody", "section": "4 bytes"},
    "RuleBody": {"items": "1 RuleItem*"},
    "RuleItem": {"message": "1 RuleMessage", "speedup": "10 Speedup"},
    "RuleMessage": {"text": "1 bytes", "type": "2 int32", "title": "4 bytes"},
    "Speedup": {"scope": "1 int32", "percent": "2 double"},
    "Nvtx": {"domains": "1 Domain*", "threads": "2 Thread*", "started": "3 Started*"},
    "Domain": {"id": "1 uint64"},
    "Thread": {"id": "1 uint64", "pushed": "2 Pushed*"},
    "Pushed": {"domain": "1 uint64", "ranges": "3 PushedRange*"},
    "PushedRange": {"name": "1 bytes"},
    "Started": {"domain": "1 uint64", "ranges": "3 StartedRange*"},
    "StartedRange": {"name": "2 bytes"},
}
"""By message and field: field number and type, with * for a repeated field. A capitalised type is a message."""


@cache
def messages() -> Mapping[str, Any]:
    """Return the protobuf message classes by name.

    Each has `FromString(encoded)`, which raises `google.protobuf.message.DecodeError` if a message is malformed or nested too deep.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415  only reading needs them

    file = descriptor_pb2.FileDescriptorProto(name="ncuroof_report", package=_PACKAGE, syntax="proto2")
    for message, fields in _FIELDS_BY_MESSAGE.items():
        declared = file.message_type.add(name=message)
        for name, described in fields.items():
            _declare(declared.field.add(name=name), described)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _FIELDS_BY_MESSAGE
    }


def _declare(field: Any, described: str) -> None:
    number, kind = described.split()
    field.number = int(number)
    field.label = field.LABEL_REPEATED if kind.endswith("*") else field.LABEL_OPTIONAL
    kind = kind.rstrip("*")
    if kind[0].isupper():
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    else:
        field.type = getattr(field, f"TYPE_{kind.upper()}")
