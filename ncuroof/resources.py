"""Finds and reads the data that ships with ncuroof: `profiles/` and `templates/`.

A wheel contains them under `ncuroof/_data/`; a checkout (or editable install) has them beside the package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import tomli

from ncuroof.errors import ProfileError

_PACKAGE = Path(__file__).resolve().parent

_Value = TypeVar("_Value")


class FrozenMapping(Mapping[str, _Value]):
    """A read-only mapping, for cached data that all callers share; unlike a `MappingProxyType` it can be pickled."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, _Value]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> _Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __or__(self, other: Mapping[str, _Value]) -> dict[str, _Value]:
        return {**self, **other}

    def __repr__(self) -> str:
        return repr(self._values)


@cache
def folder(name: str) -> Path:
    """Return the folder of packaged data called `name` ("profiles" or "templates").

    Raises:
        ProfileError: neither a wheel's `_data` nor a checkout contains it: the installation is broken.
    """
    for root in (_PACKAGE / "_data", _PACKAGE.parent):
        candidate = root / name
        if candidate.is_dir():
            return candidate
    raise ProfileError(
        f"packaged data folder {name!r} not found beside {_PACKAGE}",
        hint="reinstall ncuroof: the installation is incomplete",
    )


@contextmanager
def profile_file(name: str) -> Iterator[dict[str, Any]]:
    """Yield the content of `name` of `profiles/` (see `read_profile`); errors that it causes in the `with` block name the file.

    Raises:
        ProfileError: the content cannot be read, or the block failed on a key that is missing or of the wrong type.
    """
    try:
        yield read_profile(name)
    except ProfileError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, re.error) as error:
        hint = "reinstall, or fix your change"
        raise ProfileError(f"{name}: a key is missing or of the wrong type: {error!r}", hint=hint) from error


def read_profile(name: str) -> dict[str, Any]:
    """Return the parsed file `name` of `profiles/`; a long one goes on in a folder: `rules.toml` in `rules/*.toml`.

    Raises:
        ProfileError: a file is not valid TOML, or two have the same entry.
    """
    first = folder("profiles") / name
    content = read_toml(first)
    for path in sorted(first.with_suffix("").glob("*.toml")):
        _join(content, read_toml(path), where=f"{path.parent.name}/{path.name}")
    return content


def _join(content: dict[str, Any], more: Mapping[str, Any], *, where: str) -> None:
    """Add the tables of one more file to those of the files before it, and their entries to tables that these have already.

    Raises:
        ProfileError: an entry stands in another file as well.
    """
    for name, value in more.items():
        known = content.setdefault(name, value)
        if known is value:
            continue
        if not (isinstance(known, dict) and isinstance(value, dict)):
            raise ProfileError(f"{where}: another file has {name} as well")
        if twice := known.keys() & value.keys():
            raise ProfileError(f"{where}: another file has {name}.{min(twice)} as well")
        known.update(value)


def read_toml(path: Path) -> dict[str, Any]:
    """Return the parsed TOML file at `path`.

    It uses tomli, which is compiled and takes a third of the time of Python's `tomllib`.

    Raises:
        ProfileError: the file is not valid TOML.
    """
    try:
        content: dict[str, Any] = tomli.loads(path.read_text(encoding="utf-8"))
    except tomli.TOMLDecodeError as error:
        raise ProfileError(f"{path.name}: {error}", hint="fix the TOML syntax") from error
    return content
