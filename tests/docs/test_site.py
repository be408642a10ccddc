"""The site of the documentation: what the navigation has, and what `make docs` looks at after it has built the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.pages import ROOT
from tests.docs.site import DOCS, llms_text, loads_elsewhere, navigation
from tests.docs.test_page_words import STRICT
from tests.given import given

LISTED = [entry.page for entry in navigation()]
THERE = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}


def test_no_page_is_listed_twice() -> None:
    assert len(LISTED) == len(set(LISTED)) > 50
    assert list(dict.fromkeys(entry.section for entry in navigation())) == ["Start", "Guides", "Reference", "Internals"]


def test_the_navigation_has_every_page() -> None:
    if not STRICT:
        pytest.skip("not all pages are in their new form yet")
    assert set(LISTED) == THERE


def test_pages_link_to_pages_only() -> None:
    """The site and the wheel have nothing else of the repository: the path of a file is written as code."""
    outside = []
    for path in DOCS.rglob("*.md"):
        text = re.sub(r"^(`{3,}).*?^\1$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)\s#]+)", text):
            if "://" not in target and not (path.parent / target).resolve().is_relative_to(DOCS):
                outside.append(f"{path.relative_to(ROOT)}: {target}")
    assert outside == []


def test_the_list_for_language_models() -> None:
    lines = llms_text().splitlines()
    assert lines[:3] == ["# Quire", "", "> Runs AI workflows that are written as documents."]
    assert "- [A playbook](start/playbook.md): A playbook is a Markdown file with steps." in lines
    assert "- [Deployment](guides/deployment.md): Choose the smallest setup that does what you need." in lines
    pages = [line for line in lines if line.startswith("- [")]
    assert len(pages) == len([page for page in LISTED if page in THERE])
    assert [page for page in pages if not page.endswith((".", "?", "!"))] == []


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.html", '<script src="assets/a.js"></script><a href="https://example.org">x</a>', []),
        ("a.html", '<script src="https://cdn.example.org/a.js"></script>', ["https://cdn.example.org/a.js"]),
        ("a.html", '<img src="//example.org/a.png">', ["//example.org/a.png"]),
        ("a.html", '<link rel="stylesheet" href="https://example.org/a.css">', ["https://example.org/a.css"]),
        ("a.html", '<link rel="canonical" href="https://example.org/">', []),
        ("a.html", "<style>@import 'https://example.org/a.css';</style>", ["https://example.org/a.css"]),
        ("a.html", '<p style="background: url(https://example.org/a.png)">', ["https://example.org/a.png"]),
        ("a.css", "@font-face { src: url(https://example.org/a.woff2) }", ["https://example.org/a.woff2"]),
        ("a.css", 'a { background: url("data:image/png;base64,AA") } b { background: url(../b.svg) }', []),
        ("a.svg", '<svg xmlns="http://www.w3.org/2000/svg"><image href="https://example.org/a.png"/></svg>', ["https://example.org/a.png"]),
    ],
)  # fmt: skip
def test_what_a_page_loads_from_another_host(tmp_path: Path, name: str, text: str, found: list[str]) -> None:
    assert loads_elsewhere(given({name: text}, tmp_path) / name) == found
