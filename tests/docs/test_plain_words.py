"""Texts and docstrings are plain English: `plain_words.toml` lists words with a better one, with exceptions."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import PAGES, ROOT, text_of

SOURCE = ROOT / "src/quire"
TABLE = tomllib.loads((ROOT / "tests/docs/plain_words.toml").read_text(encoding="utf-8"))
KEPT = (*TABLE["hashed"], *TABLE["made"])
COMMENT = re.compile(r"/\*.*?\*/|(?<![:\w\"'])//[^\n]*", re.DOTALL)
_SHOWN = r"[^\n<>\"`{}=;()\[\]]*\w [^\n<>\"`{}=;()\[\]]*\w[^<>\"`{}=;()\[\]]*"
SHOWN = re.compile(rf"(?<=[>\"`])\s*{_SHOWN}|(?<=}}){_SHOWN}")
"""Texts of a script: inside quotes, behind a tag or behind a value."""

CODE = re.compile(r"^( *)(`{3,})[^`\n]*$.*?^ *\2$|`[^`\n]+`|\]\([^)\n]*\)", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("word", TABLE["word"], ids=lambda word: word["pattern"])
def test_plain_words(word: dict[str, Any]) -> None:
    kept = (*KEPT, *word.get("allowed", ()))
    pattern = word["pattern"]
    searches = [(pattern, [*_messages(), *_scripts()]), (word.get("pages", pattern), _pages())]
    if explanations := word.get("docstrings", pattern):
        searches.append((explanations, [*_docstrings(), *_comments()]))
    found = [
        f"{place}: {text[max(0, match.start() - 70) : match.end() + 50]!r}"
        for pattern, texts in searches
        for place, text in texts
        if not place.startswith(kept)
        for match in re.finditer(pattern, text, re.IGNORECASE | re.MULTILINE)
    ]
    assert found == [], f"write: {word['better']}"


def test_places_that_keep_their_words_exist() -> None:
    places = {place for word in TABLE["word"] for place in word.get("allowed", ())} | set(KEPT)
    assert {place for place in places if not (ROOT / place.partition(":")[0]).exists()} == set()


@cache
def _messages() -> list[tuple[str, str]]:
    """Return the place and the text of each string in the source, with `{}` for a computed part; without docstrings."""
    schema = (SOURCE / "formats/test/schema.json").relative_to(ROOT)
    described = [(str(schema), text) for text in re.findall(r'"description": "(.*)"', text_of(schema))]
    return described + [(place, text) for place, text, docstring in _strings() if not docstring and " " in text.strip()]


@cache
def _docstrings() -> list[tuple[str, str]]:
    return [(place, text) for place, text, docstring in _strings() if docstring]


@cache
def _comments() -> list[tuple[str, str]]:
    return [
        (f"{path.relative_to(ROOT)}:{token.start[0]}", token.string.lstrip("#: "))
        for path in SOURCE.rglob("*.py")
        for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
        if token.type == tokenize.COMMENT
    ]


@cache
def _strings() -> list[tuple[str, str, bool]]:
    return [
        (f"{path.relative_to(ROOT)}:{line}", text, is_docstring)
        for path in SOURCE.rglob("*.py")
        for line, text, is_docstring in _of(path)
    ]


def _of(path: Path) -> Iterator[tuple[int, str, bool]]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            texts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield node.lineno, "".join(map(str, texts)), False
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.lineno, node.value, id(node) in docstrings


@cache
def _scripts() -> list[tuple[str, str]]:
    files = [path for folder in ("app", "frames") for path in (SOURCE / "server/page" / folder).rglob("*.js")]
    return [
        (f"{path.relative_to(ROOT)}", text)
        for path in files
        for text in SHOWN.findall(COMMENT.sub("", path.read_text(encoding="utf-8")))
    ]


@cache
def _pages() -> list[tuple[str, str]]:
    grammars = [path.relative_to(ROOT) for path in (SOURCE / "formats/grammars").glob("*.md")]
    return [(str(page), CODE.sub("", text_of(page))) for page in (*PAGES, *grammars)]
