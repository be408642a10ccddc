"""`quire docs`: print a page of the documentation, which comes with the package, or search all pages."""

from __future__ import annotations

from pathlib import Path

import click

from quire.cli.stdio import write_lines
from quire.errors import CannotStart
from quire.installed import docs_folder
from quire.wording import did_you_mean, nearest

MOST_PLACES = 20


@click.command("docs")
@click.argument("words", nargs=-1, metavar="[PAGE|WORDS…]")
def command(words: tuple[str, ...]) -> None:
    """Print a page of the documentation or the entry of a code such as PB106, or search all pages.

    Without an argument, list the pages.
    """
    folder = docs_folder()
    pages = {_name(file, folder): file for file in sorted(folder.rglob("*.md"))}
    if not pages:
        raise CannotStart("the documentation is not installed here")
    if not words:
        width = max(map(len, pages))
        write_lines(f"{name:{width}}  {_title(file)}" for name, file in pages.items())
        return
    asked = " ".join(words).removesuffix(".md").strip("/")
    short = {name.rpartition("/")[2]: file for name, file in pages.items()}
    if file := pages.get(asked) or short.get(asked):
        click.echo(file.read_text(encoding="utf-8"), nl=False)
        return
    if entry := _code_entry(pages, asked.upper()):
        click.echo(entry)
        return
    places = [place for name, file in pages.items() for place in _places(name, file, asked.casefold().split())]
    if not places:
        close = did_you_mean(nearest(asked, short), lead="; ", form="quire docs {}")
        raise CannotStart(f"no page has {asked!r}{close}")
    write_lines(places[:MOST_PLACES])
    if len(places) > MOST_PLACES:
        click.echo(f"… and {len(places) - MOST_PLACES} more places", err=True)


def _name(file: Path, folder: Path) -> str:
    return file.relative_to(folder).with_suffix("").as_posix()


def _code_entry(pages: dict[str, Path], code: str) -> str:
    """Return the entry of a code on the page of its prefix; empty if there is none."""
    file = pages.get(f"reference/codes/{code.rstrip('0123456789')}")
    text = file.read_text(encoding="utf-8") if file else ""
    start = text.find(f"\n### {code} ") + 1
    return text[start:].partition("\n### ")[0].partition("\n## ")[0].rstrip() if start else ""


def _title(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return next(lines, "").lstrip("# ").strip()


def _places(name: str, file: Path, words: list[str]) -> list[str]:
    """Return the paragraphs of a page that have all words, each under its heading."""
    places, heading = [], ""
    for paragraph in file.read_text(encoding="utf-8").split("\n\n"):
        if paragraph.startswith("#"):
            heading = paragraph.partition("\n")[0].lstrip("# ")
        text = " ".join(paragraph.split())
        if all(word in text.casefold() for word in words):
            places.append(f"{name} · {heading}: {_around(text, words[0])}")
    return places


def _around(text: str, word: str, most: int = 100) -> str:
    """Return the part of a text in which a word stands."""
    start = max(0, text.casefold().find(word) - most // 2)
    part = text[start : start + most]
    return f"{'…' if start else ''}{part}{'…' if start + most < len(text) else ''}"
