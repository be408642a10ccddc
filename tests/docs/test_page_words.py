"""Each page that is written by hand keeps to its number of words (page_words.toml), and all of docs/ to their sum."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, text_of

with Path(__file__).with_name("page_words.toml").open("rb") as file:
    TABLE = tomllib.load(file)
MOST: dict[str, int] = {page: most for part in TABLE.values() if isinstance(part, dict) for page, most in part.items()}
STRICT: bool = TABLE["strict"]
WRITTEN = {
    page
    for path in (ROOT / "docs").rglob("*.md")
    if (page := path.relative_to(ROOT).as_posix()) not in TABLE["made"] and "/codes/" not in page
}

_CODE = re.compile(r"^(`{3,}).*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
_MADE = re.compile(r"^<!-- (?:made: |The tables are ).*?^<!-- (?:end: |The end of ).*?-->$", re.MULTILINE | re.DOTALL)


def words_of(text: str) -> int:
    """Count the words of the prose: what has a letter or a digit."""
    return sum(any(map(str.isalnum, word)) for word in _MADE.sub("", _CODE.sub("", text)).split())


@pytest.mark.parametrize(("page", "most"), MOST.items(), ids=list(MOST))
def test_a_page_keeps_to_its_number_of_words(page: str, most: int) -> None:
    count = words_of(text_of(page)) if (ROOT / page).is_file() else None
    if not STRICT and (count is None or count > most):
        pytest.skip("not in its new form yet")
    assert count is not None and count <= most


def test_the_sum_of_the_pages() -> None:
    count = sum(words_of(text_of(page)) for page in WRITTEN)
    if not STRICT and count > TABLE["sum"]:
        pytest.skip("not all pages are in their new form yet")
    assert count <= TABLE["sum"]


def test_every_page_has_a_number() -> None:
    if not STRICT:
        pytest.skip("not all pages are in their new form yet")
    assert WRITTEN - set(MOST) == set()


@pytest.mark.parametrize("page", ["README.md", *TABLE["start"]])
def test_the_first_pages_are_short_with_their_code_too(page: str) -> None:
    assert len(text_of(page).split()) <= MOST[page]


def test_the_readme_is_one_screen_with_one_picture() -> None:
    text = text_of("README.md")
    assert len(text.splitlines()) <= 60
    assert text.count("![") == 1
    assert text.startswith("# Quire\n\n**Write the steps in Markdown. They are really followed.**\n")


def test_what_is_counted() -> None:
    text = "One *two* - | three |\n\n```text\nfour\n```\n\n<!-- made: x -->\nfive\n<!-- end: x -->\nsix `seven`\n"
    assert words_of(text) == 5
