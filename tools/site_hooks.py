"""Hooks of MkDocs: pages that are made from the program and its data, and links that lead out of `docs/`.

README and the other documents of the root become pages of the site. A link to another file of the repository leads to a copy of it;
of a link to a folder, the words are left.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from ncuroof.present.explanations.meanings import load_terms
from tools.command_pages import commands, page

ROOT = Path(__file__).resolve().parents[1]
_ROOT_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
_COPIES = "repository"
"""Folder of the site with the files of the repository that pages link to."""

_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")
_IMAGE = re.compile(r"(!\[[^\]]*\]\()([^)\s]+)(\))")
_ALL_OPTIONS = re.compile(r"All options: `ncuroof (\w+) --help`")
_FENCED = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made, and the files to which pages link."""
    for name, place in _ROOT_PAGES.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text(encoding="utf-8")))
    files.append(File.generated(config, "glossary.md", content=glossary()))
    for command in commands():
        files.append(File.generated(config, f"commands/{command.name}.md", content=page(command)))
    linked = {target for file in files.documentation_pages() for target in _linked(file.content_string, _source(file))}
    for path in sorted(linked):
        if _place(path) == f"{_COPIES}/{path}":
            files.append(File.generated(config, f"{_COPIES}/{path}", abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the page with links as they are on the site."""
    source, here = _source(page.file), posixpath.dirname(page.file.src_uri)
    if page.file.src_uri == "commands.md":
        markdown = _ALL_OPTIONS.sub(r"[All options](commands/\1.md)", markdown)

    def led(path: str) -> str | None:
        place = _place(_resolved(path, source))
        return None if place is None else posixpath.relpath(place, here or ".")

    def link(found: re.Match[str]) -> str:
        if not found[2]:
            return found[0]
        place = led(found[2])
        return found[1] if place is None else f"[{found[1]}]({place}{found[3] or ''})"

    def image(found: re.Match[str]) -> str:
        return f"{found[1]}{led(found[2]) or found[2]}{found[3]}"

    parts = _FENCED.split(markdown)
    return "".join(
        part if number % 2 else _IMAGE.sub(image, _LINK.sub(link, part)) for number, part in enumerate(parts)
    )


def glossary() -> str:
    """Return the page of terms, from the file that `ncuroof explain` reads."""
    lines = [
        "# Glossary",
        "",
        "What `ncuroof explain WORD` prints of the terms; it also knows verdicts, findings, quantities and columns.",
        "",
    ]
    for name, term in sorted(load_terms().items()):
        also = f" (also: {', '.join(term.printed)})" if term.printed else ""
        lines += [f"**{name.replace('_', ' ')}**{also}", "", term.doc, ""]
    return "\n".join(lines)


def _source(file: File) -> str:
    """Return the path in the repository of what a page is made from, or would lie at."""
    made = {place: name for name, place in _ROOT_PAGES.items()}
    if file.src_uri.startswith(f"{_COPIES}/"):
        return str(file.src_uri).removeprefix(f"{_COPIES}/")
    return made.get(file.src_uri) or f"docs/{file.src_uri}"


def _resolved(path: str, source: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path))


def _linked(text: str, source: str) -> Iterator[str]:
    """Yield the paths in the repository to which a text links."""
    unfenced: Iterable[str] = _FENCED.split(text)[::2]
    yield from (_resolved(found[2], source) for part in unfenced for found in _LINK.finditer(part) if found[2])


def _place(path: str) -> str | None:
    """Return the place on the site of a path in the repository; None for a folder."""
    if path in _ROOT_PAGES:
        return _ROOT_PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return None if (ROOT / path).is_dir() else f"{_COPIES}/{path}"
