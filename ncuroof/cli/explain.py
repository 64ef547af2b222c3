"""`ncuroof explain`: what a name in the output means."""

from __future__ import annotations

import click

from ncuroof.cli.options import common


@click.command()
@click.argument("name")
@common
def explain(*, name: str, quiet: bool, verbose: bool, no_color: bool) -> None:  # noqa: ARG001
    """Say what NAME means: a verdict, a finding, a caveat, or a quantity of the JSON document."""
    from ncuroof.present.explain import explain as explained  # noqa: PLC0415

    click.echo(explained(name), nl=False)
