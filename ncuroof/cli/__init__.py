"""The command line: each command parses its options and calls the library."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `ncuroof.cli.program.main`, and exit without a traceback even if its import is interrupted."""
    try:
        from ncuroof.cli.program import main as run  # noqa: PLC0415
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("\nncuroof: interrupted\n")
        sys.exit(130)
    run(arguments)
