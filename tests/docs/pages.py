"""The pages of the documentation, and the fenced blocks in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT)
    for pattern in ("*.md", "docs/**/*.md", "examples/*.md", "examples/*/README.md")
    for path in ROOT.glob(pattern)
)

_FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<language>\w+)\n(?P<text>.*?)^(?P=ticks)$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def text_of(page: Path | str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def section(page: Path | str, heading: str) -> str:
    """The text from a heading, such as `## Mutants`, to the next heading of the same level."""
    marks = heading.partition(" ")[0]
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^{marks} |\Z)", text_of(page), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{page} has no heading {heading!r}"
    return found[1]


def blocks(page: Path | str, language: str) -> list[Block]:
    text = text_of(page)
    return [
        Block(str(page), text.count("\n", 0, found.start()) + 1, language, found["text"])
        for found in _FENCE.finditer(text)
        if found["language"] == language
    ]


def commands() -> list[tuple[str, str]]:
    """Every `$ …` line of every console block, without its comment, with the place where it stands."""
    found = []
    for page in PAGES:
        for block in blocks(page, "console"):
            for offset, line in enumerate(block.text.splitlines(), 1):
                if line.startswith("$ "):
                    found.append((f"{page}:{block.line + offset}", line[2:].split("  #")[0].strip()))
    return found
