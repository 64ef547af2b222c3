"""The colours of verdicts. The page's style sheet defines them; charts, the terminal and notebooks read them from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from ncuroof.enums import Verdict
from ncuroof.resources import folder

_STYLE = "page.css"
_VARIABLE = re.compile(r"--(\w+):\s*(#[0-9a-f]{6});")


@cache
def verdict_colours() -> Mapping[str, str]:
    """Return the colour of each verdict, as on the page in its light scheme: "memory" has "#0072b2".

    The light scheme's colours are dark enough for white paper and light enough for a black terminal.
    """
    sheet = (folder("templates") / _STYLE).read_text(encoding="utf-8")
    light: dict[str, str] = {}
    for name, colour in _VARIABLE.findall(sheet):
        light.setdefault(name, colour)  # the dark scheme follows the light one
    return {verdict.value: light[verdict.value] for verdict in Verdict}
