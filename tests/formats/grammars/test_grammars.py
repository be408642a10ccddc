"""The grammars for models say what the readers accept, and stay short enough for a prompt."""

from __future__ import annotations

import re

import pytest

from quire.expr.functions import FUNCTIONS
from quire.formats.grammars import GRAMMARS, NAMES, PIPELINE, Grammar, find
from quire.formats.pipeline.language import ALL_KINDS, KEYS, kinds
from quire.formats.pipeline.schemas import OF_DIALECT
from quire.formats.test import fields
from quire.plan.built_in_tools import BUILT_IN_TOOLS
from quire.plan.vocabulary import INTEGER_LIMITS, ITEM_TYPES, OPERATORS, PRIMARIES, SENT_EVENTS

MOST_CHARACTERS = {"": 5_900, "quire": 7_450}

found = find("pipeline", "quire")
assert found is not None
QUIRE = found
each = pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda one: one.key)


def keys_of(text: str, kind: str) -> set[str]:
    """The keys that the line of a kind of step names, without those of the steps inside."""
    found = re.search(rf"^- `{kind}: {{(.*?)}}`\s", text, re.MULTILINE | re.DOTALL)
    assert found, kind
    flat = re.sub(r"\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", found[1]))
    return set(re.findall(r"(\w+):", flat))


@pytest.mark.parametrize("kind", KEYS)
def test_the_pipeline_grammar_names_every_key_of_every_step(kind: str) -> None:
    """S4: an agent that generates pipelines is handed the grammar."""
    assert keys_of(PIPELINE.text, kind) == set(KEYS[kind])


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_the_dialect_grammar_names_every_key_of_every_step(kind: str) -> None:
    """Every kind has `when` and `title`, which the text says once."""
    assert keys_of(QUIRE.text, kind) | {"when", "title"} == {*ALL_KINDS[kind]}
    assert "Every kind also takes `when: EXPR`" in QUIRE.text


def test_they_name_no_other_kind() -> None:
    for grammar, dialect in ((PIPELINE, False), (QUIRE, True)):
        assert set(re.findall(r"^- `(\w+): \{", grammar.text, re.MULTILINE)) == set(kinds(dialect))


def test_they_name_every_function() -> None:
    seed = ("map", "filter", "find", "any", "all", "count", "sum", "join", "get")
    for grammar, names in ((PIPELINE, seed), (QUIRE, (*seed, *FUNCTIONS))):
        values = grammar.text.partition("## Values")[2].partition("## Rules")[0]
        assert [name for name in names if not re.search(rf"[`\"]{name}[(`]", values)] == []


def test_the_dialect_grammar_names_every_key_of_a_field() -> None:
    assert [key for key in OF_DIALECT if f"`{key}`" not in QUIRE.text] == []


@pytest.mark.parametrize("key", ["pipeline", "pipeline/quire", "playbook", "directive"])
def test_it_names_every_argument_of_the_built_in_tools(key: str) -> None:
    text = next(grammar.text for grammar in GRAMMARS if grammar.key == key)
    for tool in BUILT_IN_TOOLS:
        name = tool.id.replace("/", ".") if key == "directive" else tool.name
        call = re.search(rf"`{re.escape(name)}\((.*?)\)`", text, re.DOTALL)
        properties = tool.schema["properties"]
        assert call and isinstance(properties, dict)
        assert set(re.findall(r"(\w+)(?=[,\]:]|\Z)", re.sub(r":\s[\w|\n]+", ":", call[1]))) == set(properties)
    assert "file__read(path, [offset" in text or "rye.file-system.read(path, [offset" in text


@each
def test_a_grammar_ends_with_the_command_that_checks(grammar: Grammar) -> None:
    assert "`quire check - --json`" in grammar.text.splitlines()[-1]


@each
def test_a_grammar_stands_by_itself(grammar: Grammar) -> None:
    assert grammar.text.startswith("# How to write a ") and grammar.text.endswith(".\n")
    assert {"## Rules"} <= set(grammar.text.splitlines())
    assert len(grammar.text) <= MOST_CHARACTERS[grammar.dialect]
    assert max(map(len, grammar.text.splitlines())) <= 120
    assert grammar.examples and all(grammar.examples)


def test_the_directive_grammar_has_the_words_of_the_reader() -> None:
    found = find("directive")
    assert found is not None
    lines = dict(re.findall(r"^([A-Z]+) +(.*)$", found.text, re.MULTILINE))
    assert set(lines["EVENT"].split(" | ")) == set(SENT_EVENTS)
    assert lines["OP"].split(" | ") == list(OPERATORS)
    assert lines["PERMISSIONS"].startswith(f"<{'|'.join(PRIMARIES)}>, in it <{'|'.join(ITEM_TYPES)}>")
    assert [
        name for name in (*INTEGER_LIMITS, "spend", "duration_seconds") if f' {name}="' not in lines["LIMITS"]
    ] == []


def test_the_grammar_of_tests_names_every_key() -> None:
    found = find("test")
    assert found is not None
    parts = ("model.-", "tools.NAME", "then.-", "expect", "expect.output")
    places = ("", "cases.-", *(f"cases.-.{part}" for part in parts))
    keys = [key for place in places for key in fields.keys_of(place)]
    assert [key for key in keys if key not in ("real",) and not re.search(rf"\b{key}\b", found.text)] == []


def test_the_names() -> None:
    assert NAMES == ("pipeline", "playbook", "directive", "test")
    assert find("pipeline") is PIPELINE and find("pipeline", "nonsense") is None and find("") is None
    assert QUIRE.key == "pipeline/quire" and not any(one.dialect for one in GRAMMARS if one.name != "pipeline")
    assert len({one.key for one in GRAMMARS}) == len(GRAMMARS)
