"""Find and read the data that ships with ncuroof: `profiles/`, `templates/`, `demo/` and `skills/`.

A wheel contains them under `ncuroof/_data/`; a checkout (or editable install) has them beside the package.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import tomli

from ncuroof.errors import ProfileError

_PACKAGE = Path(__file__).resolve().parent

_Value = TypeVar("_Value")
_Entry = TypeVar("_Entry")

_FAULTS = (AttributeError, KeyError, TypeError, ValueError, re.error)
"""Exceptions that occur while reading a file in which a key is missing or has the wrong type."""

_LINE_END = re.compile(r"\s*\n\s*")

_HINT = "reinstall, or fix your change"


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
    """Return the folder of packaged data called `name` ("profiles", "templates", "demo" or "skills").

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
    except _FAULTS as error:
        raise ProfileError(f"{name}: {_key_error_text(error)}", hint=_HINT) from error


def read_entries(
    name: str, table: str, entries: Mapping[str, _Entry], read: Callable[[str, _Entry], _Value]
) -> dict[str, _Value]:
    """Convert each entry of a table with `read`; errors name the entry and its file.

    Args:
        name: name of the file, as for `read_profile`.
        table: name of the table in the file.
        entries: entries of the table, perhaps already changed.
        read: converts an entry, given its name and content.

    Raises:
        ProfileError: `read` raised it, or failed on a key that is missing or has the wrong type.
    """

    def made(key: str, entry: _Entry) -> _Value:
        try:
            return read(key, entry)
        except (ProfileError, *_FAULTS) as error:
            found = str(error).removeprefix(f"{name}: ") if isinstance(error, ProfileError) else _key_error_text(error)
            file = next(iter(files_with(name, table, [key])), name)
            raise ProfileError(f"{file}: {table}.{key}: {found}", hint=_HINT) from error

    return {key: made(key, entry) for key, entry in entries.items()}


def _key_error_text(error: Exception) -> str:
    return f"a key is missing or of the wrong type: {error!r}"


def _files(name: str) -> dict[str, Path]:
    """Return the file `name` of `profiles/` and the files of its folder, by their names in messages."""
    first = folder("profiles") / name
    more = sorted(first.with_suffix("").glob("*.toml"))
    return {name: first, **{f"{path.parent.name}/{path.name}": path for path in more}}


def files_with(name: str, table: str, entries: Iterable[str]) -> list[str]:
    """Return the files that have some of a table's entries, of those that `read_profile` reads, by their names in messages.

    Args:
        name: name of the file, as for `read_profile`.
        table: name of a table with entries by name, or of a list of entries with an `id` or a `name`.
        entries: names of the entries.
    """
    wanted = set(entries)
    return [each for each, path in _files(name).items() if wanted & _names_in(read_toml(path).get(table, {}))]


def _names_in(table: Mapping[str, Any] | list[Mapping[str, Any]]) -> set[str]:
    if isinstance(table, Mapping):
        return set(table)
    return {entry[key] for entry in table for key in ("id", "name") if key in entry}


def read_profile(name: str) -> dict[str, Any]:
    """Return the parsed file `name` of `profiles/`. A long file continues in a folder: `rules.toml` in `rules/*.toml`.

    A text of several lines becomes one paragraph: a line break and the whitespace around it become one space, or nothing at the
    begin and the end of the text.

    Raises:
        ProfileError: a file is not valid TOML, or two have the same entry.
    """
    first, *more = _files(name).items()
    content = read_toml(first[1])
    for where, path in more:
        _join(content, read_toml(path), where=where)
    return {name: _folded(value) for name, value in content.items()}


def _folded(value: Any) -> Any:
    """Return a value of a TOML file with each text on one line."""
    if isinstance(value, str):
        return _LINE_END.sub(" ", value).strip() if "\n" in value else value
    if isinstance(value, dict):
        return {key: _folded(each) for key, each in value.items()}
    return [_folded(each) for each in value] if isinstance(value, list) else value


def _join(content: dict[str, Any], more: Mapping[str, Any], *, where: str) -> None:
    """Add the tables of a file to the content of earlier files, and merge the entries of tables that exist already.

    Raises:
        ProfileError: an entry is in two files.
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
