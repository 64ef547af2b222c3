"""Kernel names as two tools write them: PyTorch's profiler demangles with the compiler's library, ncu with NVIDIA's."""

from __future__ import annotations

import re

_UNNAMED = re.compile(r"\(anonymous namespace\)::|<unnamed>::|_GLOBAL__N_\w+::|_NV_ANON_NAMESPACE::")
_CAST = re.compile(r"\((?:signed |unsigned )?(?:bool|char|short|int|long long|long|__int128)(?: int)?\)(?=[-\w(])")
_NUMBER = re.compile(r"(?<![\w.])(-?\d+)(?:ul|ull|ll|u|l)\b")
_TOKEN = re.compile(r"-?\w+")
_ALIASES = {"true": "1", "false": "0"}
_FILLERS = frozenset({"instance", "enum", "struct", "class"})
"""Words that only one of the two writes."""


def function_name(name: str) -> str:
    """Return the function's name without namespaces, template arguments and parameters: ncu's `--kernel-name-base function`.

    `void at::native::copy_kernel<float, 4>(int, float*)` is `copy_kernel`; a name that is not demangled stays as it is.
    """
    return re.split(r"::", _head(_UNNAMED.sub("", name)))[-1].strip()


def same_kernel_key(name: str) -> tuple[str, ...]:
    """Return what a kernel's name is told by, whichever tool wrote it: function and template arguments, word by word.

    Parameters are left out, for which NVIDIA's demangler writes `T1`; casts of constants, unnamed namespaces and spelling go.
    """
    plain = _CAST.sub("", _UNNAMED.sub("", name))
    plain = _NUMBER.sub(r"\1", _without_parameters(plain))
    tokens = (_ALIASES.get(token, token) for token in _TOKEN.findall(plain))
    return tuple(token for token in tokens if token not in _FILLERS)


def _head(name: str) -> str:
    """Return the name up to its template arguments or parameters, without what it returns."""
    depth, start = 0, 0
    for place, letter in enumerate(name):
        if letter in "<(" and depth == 0 and place > start and not name[start:place].endswith("operator"):
            return name[start:place]
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if letter == " " and depth == 0:
            start = place + 1
    return name[start:]


def _without_parameters(name: str) -> str:
    """Return function and template arguments, without what it returns and takes."""
    head = _head(name)
    begin = name.find(head)
    rest = name[begin + len(head) :]
    if not rest.startswith("<"):
        return head
    depth = 0
    for place, letter in enumerate(rest):
        is_arrow = letter == ">" and rest[place - 1 : place] == "-"
        depth += 0 if is_arrow else {"<": 1, ">": -1}.get(letter, 0)
        if depth == 0:
            return head + rest[: place + 1]
    return head + rest
