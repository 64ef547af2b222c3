"""Lists the functions that a script defines, as --step-of names them, without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def functions_in(script: Path) -> list[str] | None:
    """Return the functions in a script, nested ones as `Trainer.step` or `main.step`; None if it cannot be read or parsed."""
    try:
        return list(_functions(ast.parse(script.read_bytes()), ""))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def _functions(node: ast.AST, within: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        name = f"{within}{child.name}" if isinstance(child, _SCOPES) else ""
        if name and not isinstance(child, ast.ClassDef):
            yield name
        yield from _functions(child, f"{name}." if name else within)
