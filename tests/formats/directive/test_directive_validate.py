"""What a directive or a knowledge file must be before it is signed."""

from __future__ import annotations

from pathlib import PurePath

import pytest
from tests.formats.directive.directives import METADATA, document

from quire.formats.directive.knowledge import knowledge_issues
from quire.formats.directive.validate import issues
from quire.source import Source

GOOD = document(METADATA)


def without(part: str) -> str:
    assert part in GOOD
    return GOOD.replace(part, "")


def with_metadata(more: str) -> str:
    return document(METADATA + more)


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        (GOOD, "team/greet.md", []),
        (GOOD.replace("<category>team</category>", "<category></category>"), "greet.md", []),
        (GOOD.replace("<category>team</category>", "<category>a/b</category>"), "a/b/greet.md", []),
        (GOOD, "team/hello.md", [("name", "greet", "hello")]),
        (GOOD, "a/greet.md", [("category", "team", "a")]),
        (GOOD, "greet.md", [("category", "team")]),
        (GOOD.replace('"greet"', '"Greet-it"'), "team/Greet-it.md", [("snake_case", "Greet-it")]),
        (GOOD.replace("1.0.0", "1.0.0-rc1"), "team/greet.md", [("version", "1.0.0-rc1")]),
        (without(' name="greet"'), "team/greet.md", [("missing", "name")]),
        (without(' version="1.0.0"'), "team/greet.md", [("missing", "version")]),
        (without("<category>team</category>"), "team/greet.md", [("missing", "category")]),
        (without("<author>me</author>"), "team/greet.md", [("missing", "author")]),
        (GOOD.replace("Greet somebody", " "), "team/greet.md", [("missing", "description")]),
        (without('<model tier="low" />'), "team/greet.md", [("missing", "model")]),
        (document(METADATA.partition("<permissions>")[0]), "team/greet.md", [("missing", "permissions")]),
        (
            document(METADATA.partition("<permissions>")[0]).replace('1.0.0"', '1.0.0" extends="base"'),
            "team/greet.md",
            [],
        ),
        (with_metadata('<limits max_turns="6" spend="1" spend_currency="usd" />'), "team/greet.md", []),
        (
            with_metadata('<limits turns="6.5" spend="x" depth="-1" turn="3" />'),
            "team/greet.md",
            [
                ("limits.turns", "integer"),
                ("limits.spend", "number"),
                ("limits.depth", "below"),
                ("limits.turn", "turns"),
            ],
        ),
        (
            with_metadata("<cost><duration>long</duration></cost>"),
            "team/greet.md",
            [("cost", "duration_seconds", "number")],
        ),
        (with_metadata('<limits duration_seconds="1.5" />'), "team/greet.md", []),
        (
            with_metadata('<limits turns="6" max_turns="7" /><cost><spend currency="JPY">50</spend></cost>'),
            "team/greet.md",
            [("max_turns", "turns", "6", "7"), ("cost", "spend_currency", "USD", "JPY")],
        ),
        (with_metadata('<limits tokens="1000000000000001" />'), "team/greet.md", [("tokens", "not be above")]),
        (GOOD.replace('tier="low"', 'tier="low" parallel="2"'), "team/greet.md", [("model.parallel", "2")]),
        (
            document(METADATA, "<inputs><input type='string' /><input name='a' /><input name='a' /></inputs>"),
            "team/greet.md",
            [("missing", "name", "inputs"), ("inputs", "'a'", "twice")],
        ),
        ("no fence", "team/greet.md", [("line 1", "xml fence")]),
        (with_metadata("<x>&</x>"), "team/greet.md", [("line 11", "xml")]),
    ],
)
def test_directives(text: str, path: str, expected: list[tuple[str, ...]]) -> None:
    found = issues(Source.of(text), PurePath(path))
    assert len(found) == len(expected), found
    for issue, words in zip(found, expected, strict=True):
        assert all(word.lower() in issue.lower() for word in words), (issue, words)


KNOWLEDGE = '```yaml\nname: names\ntitle: Names\nversion: "1.0.0"\nentry_type: reference\ncategory: team\n```\n\nAda.\n'


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        (KNOWLEDGE, "team/names.md", []),
        (KNOWLEDGE.replace("category: team\n", ""), "any/names.md", []),
        (KNOWLEDGE, "team/other.md", ["names", "other"]),
        (KNOWLEDGE, "names.md", ["category", "team"]),
        (KNOWLEDGE.replace("title: Names\n", ""), "team/names.md", ["missing", "title"]),
        (KNOWLEDGE.replace('"1.0.0"', "1.0"), "team/names.md", ["version", "1.0"]),
        (KNOWLEDGE.replace("title: Names", "title: 3"), "team/names.md", ["title", "text"]),
        ("---\nname: names\n---\n", "team/names.md", ["line 1", "frontmatter"]),
        ('name: names\ntitle: N\nversion: "1.0.0"\nentry_type: reference\n', "team/names.yaml", []),
    ],
)
def test_knowledge(text: str, path: str, words: list[str]) -> None:
    found = knowledge_issues(Source.of(text), PurePath(path))
    assert len(found) == bool(words), found
    assert not words or all(word.lower() in found[0].lower() for word in words), found


def test_knowledge_without_metadata_lacks_everything() -> None:
    assert len(knowledge_issues(Source.of("Ada."), PurePath("names.md"))) == 4
