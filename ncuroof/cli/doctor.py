"""`ncuroof doctor`: says whether this machine can profile, and how to fix it if not."""

from __future__ import annotations

import click

from ncuroof.cli.options import common
from ncuroof.cli.streams import echo
from ncuroof.collect.doctor import can_profile, examine, this_machine
from ncuroof.formatting import printable
from ncuroof.ncu.settings import load_settings


@click.command()
@common("quiet")
def doctor(*, quiet: bool) -> int:
    """Check whether this machine can profile: ncu, driver, GPUs, counter permission, other profilers.

    Exits with 1 if it cannot.
    """
    checks = examine(this_machine(), load_settings())
    from ncuroof.present.texts.layout import hung  # noqa: PLC0415  loads rich, which --help does not need

    width = max(len(check.name) for check in checks)
    for check in checks:
        lines = [*hung(f"{check.state:<8} {check.name:<{width}}  ", printable(check.found))]
        if check.fix and (check.state != "unknown" or not quiet):
            lines += hung(f"{'':<8} {'':<{width}}  → ", printable(check.fix))
        for line in lines:
            echo(line)
    works = can_profile(checks)
    echo("this machine can profile" if works else "this machine cannot profile yet")
    return 0 if works else 1
