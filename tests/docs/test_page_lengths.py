"""Pages stay short: each page of reference and internals keeps to a number of words of prose, outside of code and made
tables."""

from __future__ import annotations

import re

import pytest
from tests.docs.pages import ROOT, text_of

MOST_WORDS = {
    "CONTRIBUTING.md": 1_000,
    "SECURITY.md": 250,
    "docs/internals/benchmarks.md": 1_750,
    "docs/internals/design.md": 1_000,
    "docs/internals/extending-the-code.md": 2_400,
    "docs/internals/guarantees.md": 1_800,
    "docs/internals/how-it-works.md": 1_200,
    "docs/internals/security.md": 2_400,
    "docs/reference/codes.md": 350,
    "docs/reference/configuration.md": 1_400,
    "docs/reference/directives.md": 2_400,
    "docs/reference/expressions.md": 1_800,
    "docs/reference/glossary.md": 900,
    "docs/reference/http.md": 2_200,
    "docs/reference/limits.md": 1_450,
    "docs/reference/pipelines.md": 3_000,
    "docs/reference/playbooks.md": 2_500,
    "docs/reference/stores.md": 800,
    "docs/reference/threads.md": 1_500,
}
MADE = {
    "docs/reference/cli.md",
    "docs/reference/test-files.md",
    "docs/reference/tools-list.md",
    "docs/reference/versions.md",
}
"""Pages that are made from the program as a whole; those about codes are too."""

_CODE = re.compile(r"^(`{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_MADE = re.compile(r"<!-- (?:made: |The tables are).*?<!-- (?:end: |The end of).*?-->", re.DOTALL)


def words_of(page: str) -> int:
    text = _MADE.sub("", _CODE.sub("", text_of(page)))
    return sum(bool(re.search(r"\w", word)) for word in text.split())


PAGES = sorted(
    {
        path.relative_to(ROOT).as_posix()
        for room in ("reference", "internals")
        for path in ROOT.glob(f"docs/{room}/*.md")
    }
    - MADE
    | {"CONTRIBUTING.md", "SECURITY.md"}
)


def test_every_number_belongs_to_a_page() -> None:
    assert set(MOST_WORDS) <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_keeps_to_its_number_of_words(page: str) -> None:
    assert words_of(page) <= MOST_WORDS.get(page, 900)
