"""Compare kernel names of different tools: PyTorch's profiler demangles with the compiler's library, ncu and nsys with NVIDIA's."""

from __future__ import annotations

import re

UNNAMED = re.compile(r"\(anonymous namespace\)::|<unnamed>::|_GLOBAL__N_\w+::|_NV_ANON_NAMESPACE::")
"""Spellings of unnamed namespaces, whose brackets enclose neither parameters nor template arguments."""

_CAST = re.compile(r"\((?:signed |unsigned )?(?:bool|char|short|int|long long|long|__int128)(?: int)?\)(?=[-\w(])")
_NUMBER = re.compile(r"(?<![\w.])(-?\d+)(?:ul|ull|ll|u|l)\b")
_TOKEN = re.compile(r"-?\w+")
_ALIASES = {"true": "1", "false": "0"}
_FILLERS = frozenset({"instance", "enum", "struct", "class", "void", "const"})
"""Words that only one of the two demanglers writes, or that they write in different places."""

_DEPTH = {"<": 1, "(": 1, ">": -1, ")": -1}
"""Change of the nesting depth by each bracket."""

_NESTED = re.compile(r"_Z(?:N[rVK]*[RO]?)?")
_PART = re.compile(r"(?:St)?L?(\d{1,5})")
"""What precedes an identifier in a mangled name: `St` for `std::`, `L` for internal linkage, its length."""


def function_name(name: str) -> str:
    """Return the function's name without namespaces, template arguments and parameters, as `--kernel-name-base function` of ncu.

    `void at::native::copy_kernel<float, 4>(int, float*)` is `copy_kernel`, and so is `_ZN2at6native11copy_kernelIfLi4EEEviPT_`:
    PyTorch's profiler does not demangle names of more than 1024 characters, which CUTLASS kernels often have
    (Kineto, Demangle.cpp: `kMaxSymbolSize`).
    """
    return _function_of_mangled(name) or _head(UNNAMED.sub("", name)).rpartition("::")[2]


def template_arguments(name: str) -> str:
    """Return the template arguments of the function, in their brackets and without its parameters; "" if it has none."""
    declared = _declared(UNNAMED.sub("", name))
    start = len(_head(UNNAMED.sub("", name)))
    return declared[start : _end_of_bracket(declared, start)] if declared[start : start + 1] == "<" else ""


def same_kernel_key(name: str) -> tuple[str, ...]:
    """Return a key that is equal for all names of a kernel by different tools: the words of function and template arguments.

    It leaves out parameters, for which NVIDIA's demangler writes `T1`, including those of function templates that enclose a lambda,
    and casts of constants, unnamed namespaces and differences of spelling.
    """
    plain = _CAST.sub("", UNNAMED.sub("", name))
    plain = _NUMBER.sub(r"\1", _without_parameters_within(_without_parameters(plain)))
    tokens = (_ALIASES.get(token, token) for token in _TOKEN.findall(plain))
    return tuple(token for token in tokens if token not in _FILLERS)


def _function_of_mangled(name: str) -> str:
    """Return the function of a mangled name; empty if the name is not mangled.

    It is the last identifier before template arguments, parameters or the end of the nested name: a kernel is never a member of a
    class, which could have template arguments of its own (CUDA C++ Programming Guide, "__global__"; Itanium C++ ABI, "Mangling").
    """
    prefix = _NESTED.match(name)
    if prefix is None:
        return ""
    function, end = "", prefix.end()
    while (part := _PART.match(name, end)) and (not function or prefix[0] != "_Z"):  # not nested: only one part
        end = part.end() + int(part[1])
        function = name[part.end() : end]
    return function


def _declared(name: str) -> str:
    """Return the declaration without its return type: the last word outside of brackets."""
    depth, start = 0, 0
    for place, letter in enumerate(name):
        depth += _DEPTH.get(letter, 0)
        if letter == " " and depth == 0:
            start = place + 1
    return name[start:]


def _head(name: str) -> str:
    """Return the function with its namespaces, without template arguments and parameters."""
    declared = _declared(name)
    depth = 0
    for place, letter in enumerate(declared):
        if letter in "<(" and depth == 0 and not declared[:place].endswith("operator"):
            following = declared[_end_of_bracket(declared, place) :]
            if not following.startswith("::"):  # otherwise these are the arguments of a class, and the function follows
                return declared[:place]
        depth += _DEPTH.get(letter, 0)
    return declared


def _end_of_bracket(text: str, start: int) -> int:
    """Return the index after the bracket that closes the one at `start`; the end of the text if it is not closed."""
    depth = 0
    for place in range(start, len(text)):
        depth += _DEPTH.get(text[place], 0)
        if depth == 0:
            return place + 1
    return len(text)


def _without_parameters(name: str) -> str:
    """Return function and template arguments, without return type and parameters."""
    declared, head = _declared(name), _head(name)
    if declared[len(head) :].startswith("<"):
        return declared[: _end_of_bracket(declared, len(head))]
    return head


def _without_parameters_within(name: str) -> str:
    """Return a name without the parameters of function templates that enclose something in it: `f<int>(T1)::[lambda]`."""
    place = name.find(">(")
    while place >= 0:
        end = _end_of_bracket(name, place + 1)
        if name.startswith("::", end):
            name = name[: place + 1] + name[end:]
        place = name.find(">(", place + 1)
    return name
