"""The grammars for models say what the readers accept, and stay short enough for a prompt."""

from __future__ import annotations

import re

import pytest

from quire.formats.grammars import GRAMMARS, NAMES, PIPELINE, Grammar, find
from quire.formats.pipeline.kinds import KEYS
from quire.plan.vocabulary import INTEGER_LIMITS, ITEM_TYPES, OPERATORS, PRIMARIES, SENT_EVENTS

MOST_CHARACTERS = 5_000

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


def test_it_names_no_other_kind() -> None:
    assert set(re.findall(r"^- `(\w+): \{", PIPELINE.text, re.MULTILINE)) == set(KEYS)


@each
def test_a_grammar_stands_by_itself(grammar: Grammar) -> None:
    assert grammar.text.startswith("# How to write a ") and grammar.text.endswith(".\n")
    assert {"## Rules"} <= set(grammar.text.splitlines())
    assert len(grammar.text) <= MOST_CHARACTERS
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


def test_the_names() -> None:
    assert NAMES == ("pipeline", "playbook", "directive")
    assert find("pipeline") is PIPELINE and find("pipeline", "nonsense") is None and find("") is None
    assert len({one.key for one in GRAMMARS}) == len(GRAMMARS)
