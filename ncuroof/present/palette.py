"""The colours of charts, terminal and notebooks: those of the page, whose style sheet defines them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from ncuroof.enums import Verdict
from ncuroof.resources import folder

_STYLE = "page.css"
_VARIABLE = re.compile(r"--(\w+):\s*(#[0-9a-f]{6});")
_DARK = "prefers-color-scheme: dark"
"""The first place of the style sheet that says so begins the dark scheme, which follows the light one."""


@cache
def page_colours(*, is_dark: bool = False) -> Mapping[str, str]:
    """Return the colours of the page's light or dark scheme by variable: "ink" is "#1a1e22"."""
    light, _, dark = (folder("templates") / _STYLE).read_text(encoding="utf-8").partition(_DARK)
    found: dict[str, str] = {}
    for name, colour in _VARIABLE.findall(dark if is_dark else light):
        found.setdefault(name, colour)
    return found


def page_colour(name: str) -> str:
    """Return a colour of the page's light scheme."""
    return page_colours()[name]


@cache
def verdict_colours() -> Mapping[str, str]:
    """Return the colour of each verdict, as on the page in its light scheme: "memory" has "#0072b2".

    The light scheme's colours are dark enough for white paper and light enough for a black terminal.
    """
    return {verdict.value: page_colours()[verdict.value] for verdict in Verdict}
