"""What the pages about pipelines show is tried: every document is read, every expression has the value beside it."""

from __future__ import annotations

import re

import pytest
from tests.docs.functions_page import functions_page
from tests.docs.pages import Block, blocks, text_of

from quire.diagnostics import Severity
from quire.expr import compile, parse
from quire.formats.pipeline.check import check_reading
from quire.formats.pipeline.language import DIALECT_KEYS, DIALECT_KINDS, KEYS
from quire.formats.pipeline.parse import parse as parse_file
from quire.source import Source
from quire.values import Value, decode

YAML = blocks("docs/reference/pipelines.md", "yaml")
ROWS = re.findall(r"^\| `(.+)` \| `(.+)` \|$", text_of("docs/reference/expressions.md"), re.MULTILINE)


@pytest.mark.parametrize("block", YAML, ids=str)
def test_documents_are_clean(block: Block) -> None:
    findings = check_reading(parse_file(Source.of(block.text, "page.yaml")))
    assert [found.message for found in findings if found.severity is not Severity.NOTE] == []


def test_there_is_something_to_try() -> None:
    assert len(YAML) >= 8 and len(ROWS) >= 30
    assert [kind for kind in KEYS | DIALECT_KINDS if not any(f"{kind}:" in block.text for block in YAML)] == []


def keys_in(block: Block) -> dict[str, set[str]]:
    """The keys that a grammar names, by the kind of the step."""
    steps = re.findall(r"^  (\w+): +\{(.*?)\}(?: \| \[STEP, …\])?$", block.text, re.MULTILINE | re.DOTALL)
    flat = {kind: re.sub(r"\{[^{}]*\}", "", body) for kind, body in steps}
    return {kind: set(re.findall(r"(\w+):", body)) for kind, body in flat.items()}


def test_the_grammars_at_a_glance_name_every_key() -> None:
    added, seed = (block for block in blocks("docs/reference/pipelines.md", "text") if "STEP " in block.text)
    assert keys_in(seed) == {kind: set(keys) for kind, keys in KEYS.items()}
    expected = {kind: set(keys) for kind, keys in (DIALECT_KEYS | DIALECT_KINDS).items()}
    expected["steps"] |= set(DIALECT_KEYS["steps"])
    assert keys_in(added) == expected


@pytest.mark.parametrize(("expression", "value"), ROWS, ids=[expression for expression, _ in ROWS])
def test_expressions_have_the_value_beside_them(expression: str, value: str) -> None:
    (context,) = blocks("docs/reference/expressions.md", "json")
    bindings = decode(context.text)
    assert isinstance(bindings, dict)
    stores: Value = bindings["ctx"]
    assert isinstance(stores, dict)
    assert compile(parse(expression)).evaluate(bindings, stores) == decode(value)


def test_the_tables_of_functions_are_those_of_the_code() -> None:
    assert functions_page() == text_of("docs/reference/expressions.md")
