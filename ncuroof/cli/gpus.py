"""`ncuroof gpus`: lists the data sheets that ncuroof knows, with their ridge points."""

from __future__ import annotations

import click

from ncuroof.cli.options import common, gpus_begun, wants_color


@click.command()
@click.argument("name", required=False, shell_complete=gpus_begun)
@common("no_color")
def gpus(*, name: str | None, no_color: bool) -> None:
    """List the GPUs whose data sheets ncuroof knows, or show everything about the GPU called NAME."""
    from ncuroof.present.texts.hardware import print_profile, print_profiles  # noqa: PLC0415  loads polars
    from ncuroof.roofline import load_profiles, profile_by_name  # noqa: PLC0415

    color = wants_color(no_color=no_color)
    if name is None:
        print_profiles(load_profiles(), color=color)
    else:
        print_profile(profile_by_name(name), color=color)
