"""`ncuroof mcp`: serves the reports of a folder to agents, by the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path

import click

from ncuroof.cli.options import common
from ncuroof.errors import MissingExtraError


@click.command()
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    default=".",
    metavar="DIR",
    help="Folder whose files may be read; the working directory by default.",
)
@common()
def mcp(*, root: Path) -> None:
    """Serve the reports below DIR on standard input and output, read-only, by the Model Context Protocol.

    Tools: brief, kernel, evidence, compare, whatif, explain, gates and lines.
    """
    try:
        from ncuroof.agent.server import serve  # noqa: PLC0415  needs the extra
    except ImportError as error:
        if (error.name or "").split(".")[0] == "ncuroof":
            raise
        raise MissingExtraError(
            f"ncuroof mcp needs the package mcp: {error}", hint="pip install 'ncuroof[mcp]'"
        ) from error
    serve(root)
