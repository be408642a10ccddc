"""Finish the site that `make docs` has built, and look at it: `python -m tests.docs.site`.

Each page gets its Markdown beside it, and `llms.txt` lists all of them in the order of the navigation. The site must
load nothing from another host: no script, style, font or picture.
"""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS, SITE = ROOT / "docs", ROOT / ".site"

LOADING = {"script": ("src",), "img": ("src", "srcset"), "iframe": ("src",), "source": ("src", "srcset")}
LOADING |= {"video": ("src", "poster"), "audio": ("src",), "object": ("data",), "embed": ("src",), "image": ("href",)}
"""Elements that load something, with the attributes that say from where. A `link` does too, by its `rel`."""
LOADING_LINKS = {"stylesheet", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "icon", "manifest"}
ELSEWHERE = re.compile(r"(?:https?:)?//\S")
IN_STYLE = re.compile(r"(?:url\(\s*|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)")


@dataclass(frozen=True, slots=True)
class Entry:
    """A page of the navigation."""

    section: str
    page: str
    title: str


def navigation(docs: Path = DOCS) -> Iterator[Entry]:
    """Yield the pages of `zensical.toml` in their order."""
    with (docs.parent / "zensical.toml").open("rb") as file:
        nav = tomllib.load(file)["project"]["nav"]
    for part in nav:
        ((section, entries),) = part.items()
        yield from _entries(section, entries, docs)


def _entries(section: str, entries: list[Any], docs: Path) -> Iterator[Entry]:
    for entry in entries:
        named = entry.items() if isinstance(entry, dict) else [("", entry)]
        for title, value in named:
            if isinstance(value, list):
                yield from _entries(section, value, docs)
            else:
                yield Entry(section, value, title or _title(docs / value))


def _title(page: Path) -> str:
    if not page.is_file():
        return page.stem
    found = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else page.stem


def llms_text(docs: Path = DOCS) -> str:
    """Return the list of pages for language models, with the first sentence of each."""
    parts, section = ["# Quire\n\n> Runs AI workflows that are written as documents.\n"], ""
    for entry in navigation(docs):
        if not (docs / entry.page).is_file():
            continue
        if entry.section != section:
            section = entry.section
            parts.append(f"\n## {section}\n\n")
        parts.append(f"- [{entry.title}]({entry.page}){_about(docs / entry.page)}\n")
    return "".join(parts)


def _about(page: Path) -> str:
    """Return the first sentence of the first paragraph, as plain text."""
    text = re.sub(r"^(`{3,}).*?^\1$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    paragraph = next((part for part in re.split(r"\n{2,}", text.strip()) if part[0] not in "#|!->"), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[*]{2}", r"\1", " ".join(paragraph.split()))
    sentence = re.match(r"(.+?)([.?!](?= |$)|:$)", plain)
    return f": {sentence[1]}{sentence[2].replace(':', '.')}" if sentence else ""


class _Loads(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        wanted = LOADING.get(tag, ())
        if tag == "link" and LOADING_LINKS & set(given.get("rel", "").split()):
            wanted = ("href",)
        self.found += [given[name] for name in wanted if ELSEWHERE.match(given.get(name, ""))]


def loads_elsewhere(file: Path) -> list[str]:
    """Return what a page or a style of the site loads from another host."""
    text = file.read_text(encoding="utf-8")
    page = _Loads()
    if file.suffix in (".html", ".svg"):
        page.feed(text)
    return page.found + IN_STYLE.findall(text)


def main() -> int:
    for page in DOCS.rglob("*.md"):
        shutil.copyfile(page, SITE / page.relative_to(DOCS))
    (SITE / "llms.txt").write_text(llms_text(), encoding="utf-8")
    files = (file for file in SITE.rglob("*") if file.suffix in (".html", ".css", ".svg"))
    found = [f"{file.relative_to(SITE)} loads {address}" for file in files for address in loads_elsewhere(file)]
    print("\n".join(found) or f"{SITE.name}: {len(list(SITE.rglob('*.html')))} pages, nothing from another host")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
