"""`ncuroof explain`: what a name in the output means."""

from __future__ import annotations

import click

from ncuroof.cli.options import common


@click.command()
@click.argument("name", required=False)
@common
def explain(*, name: str | None, quiet: bool, verbose: bool, no_color: bool) -> None:  # noqa: ARG001
    """Say what NAME means: a verdict, finding, caveat, quantity, column or limiter. Without NAME: what there is."""
    from ncuroof.present.explain import explain as explained  # noqa: PLC0415
    from ncuroof.present.explain import listing  # noqa: PLC0415

    click.echo(listing() if name is None else explained(name), nl=False)
