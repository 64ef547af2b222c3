"""`ncuroof explain`: says what a name in the output means."""

from __future__ import annotations

import click

from ncuroof.cli.options import common
from ncuroof.cli.streams import echo


@click.command()
@click.argument("name", nargs=-1, metavar="[NAME]")
@common()
def explain(*, name: tuple[str, ...]) -> None:
    """Explain NAME: a verdict, finding, caveat, quantity, column, limiter, term, kernel family, GPU or question of the path.

    NAME may also be as printed ("long scoreboard"). The last line says which file of the repository defines it.

    Without NAME, list every name.
    """
    from ncuroof.present.explanations.explain import explain as explained  # noqa: PLC0415
    from ncuroof.present.explanations.explain import listing  # noqa: PLC0415
    from ncuroof.present.texts.layout import screen_width, wrapped_lines  # noqa: PLC0415

    text = explained(" ".join(name)) if name else listing(screen_width())
    echo("".join(f"{line}\n" for line in wrapped_lines(text)), nl=False)
