"""The JSON Schemas and the readers agree: every file without findings is valid, a misspelt key is refused by both."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.documents import draw_scenario
from tests.documents.draw import Draw
from tests.formats.test.test_test_schema import plain

from quire.analysis.lock.file import Lock, LockedCapability, LockedDocument, LockedTool, written
from quire.analysis.lock.strict_read import read_strictly
from quire.diagnostics import Severity
from quire.display.json_schemas import SCHEMAS, json_schema
from quire.formats import format_of
from quire.formats.grammars import GRAMMARS
from quire.formats.pipeline.parse import parse
from quire.formats.test import parse as tests
from quire.formats.yaml import EXPR, FILE, TEST_TAGS, Mapping, Node, Scalar, read_yaml
from quire.source import Source, read_source
from quire.workspace.configuration import problems_in
from quire.workspace.locate import Workspace
from quire.workspace.setting_keys import SETTING_KEYS

ROOT = Path(__file__).parents[2]
VALIDATORS = {name: jsonschema_rs.Draft7Validator(json_schema(name)) for name in SCHEMAS}
WRONG_KEY = ("not a key", "not a kind of step", "key pipeline or the key schema", "belongs to the Quire dialect")


@cache
def sources() -> tuple[Source, ...]:
    """The YAML files of the examples, the examples of the grammars, and generated pipelines."""
    files = [read_source(path) for path in sorted(ROOT.glob("examples/**/*.yaml")) if "knowledge" not in path.parts]
    texts = [(example, f"x{'.test' * (one.name == 'test')}.yaml") for one in GRAMMARS for example in one.examples
             if one.name in ("pipeline", "test")]  # fmt: skip
    for kind in ("pipeline", "dialect"):
        drawn = (draw_scenario(Draw.seeded(seed), kind).files["simulated.yaml"] for seed in range(60))
        texts += [(text, "x.yaml") for text in drawn]
    return (*files, *(Source.of(text, name) for text, name in texts))


def of_format(format: str) -> tuple[Source, ...]:
    return tuple(source for source in sources() if format_of(source) == format)


def problems(source: Source) -> list[str]:
    reading = tests.parse(source) if format_of(source) == "test" else parse(source, registered=True)
    return [finding.message for finding in reading.diagnostics if finding.severity is Severity.ERROR]


def is_valid(format: str, text: str) -> bool:
    nodes = read_yaml(Source.of(text), tags=(*TEST_TAGS, FILE)).documents
    return all(VALIDATORS[format].is_valid(with_tags(node)) for node in nodes)


def with_tags(node: Node) -> Any:
    """A node as an editor sees it, with the text of a tagged value."""
    if isinstance(node, Scalar):
        return node.text if node.tag in (EXPR, FILE) else plain(node)
    if isinstance(node, Mapping):
        return {entry.key.text: with_tags(entry.value) for entry in node.entries}
    return [with_tags(item) for item in node.items]


def misspelt(source: Source) -> Iterator[str]:
    """The text once for each of its keys, with a letter more in that key."""

    def keys(node: Node) -> Iterator[Scalar]:
        if isinstance(node, Scalar):
            return
        for entry in node.entries if isinstance(node, Mapping) else ():
            yield entry.key
            yield from keys(entry.value)
        for item in () if isinstance(node, Mapping) else node.items:
            yield from keys(item)

    for document in read_yaml(source, tags=(*TEST_TAGS, FILE)).documents:
        for key in keys(document):
            if key.text.isidentifier():
                end = key.body.end - (key.body.end - key.body.start > len(key.text))
                yield f"{source.text[:end]}x{source.text[end:]}"


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_is_a_schema(name: str) -> None:
    schema = json_schema(name)
    jsonschema_rs.meta.validate(schema)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize("format", ["pipeline", "test"])
def test_a_file_without_errors_is_valid(format: str) -> None:
    clean = [source for source in of_format(format) if not problems(source)]
    assert len(clean) > 30
    assert [source.name for source in clean if not is_valid(format, source.text)] == []


@pytest.mark.parametrize("format", ["pipeline", "test"])
def test_a_misspelt_key_is_refused_by_both(format: str) -> None:
    refused = 0
    for source in of_format(format)[:: 1 if format == "pipeline" else 4]:
        for text in misspelt(source):
            found = problems(Source.of(text, source.name))
            if any(words in message for message in found for words in WRONG_KEY):
                refused += 1
                assert not is_valid(format, text), (source.name, found, text)
            elif not found:
                assert is_valid(format, text), (source.name, text)
    assert refused > 300


VALUES = {
    "pipeline: p\nsteps: [{agent: {prompt: a, KEY: VALUE}}]": ("turns: 3", "timeout: 5m", "on_error: retry(2)"),
    "pipeline: p\ndialect: quire\nsteps: [{agent: {prompt: a, KEY: VALUE}}]": (
        *("turns: 3", "turns: 0", "turns: many", "timeout: 5m", "timeout: 5", "on_error: retry", "temperature: 0.5"),
        *("on_error: retry(2)", 'on_error: "retry(2), continue"', "temperature: 3", "capabilities: {tools: [a]}"),
        *("capabilities: [a]", "model: ''", "output: a b", "when: 1", "default: 1"),
    ),
    "pipeline: p\ndialect: quire\nsteps: [{repeat: {do: {stop: {}}, until: 'true', KEY: VALUE}}]": (
        *("max: 3", "max: 10001", "max: 3.5", "on_max: keep", "on_max: stay"),
    ),
    "schema: S\nfields: {a: {KEY: VALUE}}\n---\npipeline: p\nsteps: [{transform: {value: '1'}}]": (
        *("type: string", "type: text", "type: [string]", "types: string"),
    ),
}


@pytest.mark.parametrize(
    ("text", "pair"), [(text, pair) for text, pairs in VALUES.items() for pair in pairs], ids=lambda one: one[-40:]
)
def test_the_schema_refuses_no_value_that_the_reader_takes(text: str, pair: str) -> None:
    document = text.replace("KEY: VALUE", pair)
    if not problems(Source.of(document, "x.yaml")):
        assert is_valid("pipeline", document)


@pytest.mark.parametrize(
    "pair",
    ["turns: 0", "turns: many", "timeout: 5", "on_error: retry", "temperature: 3", "capabilities: [a]", "when: 1"],
)
def test_values_that_both_refuse(pair: str) -> None:
    document = f"pipeline: p\ndialect: quire\nsteps: [{{agent: {{prompt: a, {pair}}}}}]"
    assert problems(Source.of(document, "x.yaml")) and not is_valid("pipeline", document)


FORMS = (
    '"a text"',
    '"http://a/b"',
    '""',
    "5",
    "0",
    "-1",
    "1.5",
    "true",
    '["a"]',
    "[1]",
    '"30s"',
    '"2 weeks"',
    '{a = "b"}',
    "{a = 1}",
    '{scheme = "hmac", secret_env = "A"}',
    '[{scheme = "hmac", secret_env = "A"}]',
)


def settings_problems(text: str, folder: Path) -> list[str]:
    """What is wrong with a text for every reader: a few keys stand in the user's own settings only, others never."""
    workspace = Workspace(folder)
    several = [
        problems_in(place / "quire.toml", text, workspace, folder / "home") for place in (folder, folder / "home")
    ]
    return min(several, key=len)


def test_the_settings_of_the_examples_are_valid(tmp_path: Path) -> None:
    for path in ROOT.glob("examples/**/quire.toml"):
        assert settings_problems(path.read_text(), tmp_path) == []
        VALIDATORS["settings"].validate(tomllib.loads(path.read_text()))


@pytest.mark.parametrize("key", SETTING_KEYS, ids=lambda key: key.key)
def test_settings_have_the_forms_of_their_readers(key: Any, tmp_path: Path) -> None:
    """A value that its reader takes is valid, and one of another type is not."""
    *path, last = (part.lower() if part.isupper() else part for part in key.parts)
    forms = (*FORMS, *(f'"{word}"' for word in key.words), *(f'["{word}"]' for word in key.words), "2026-11-17")
    beside = [one.parts[-1] for one in SETTING_KEYS if one.default == "needed" and one.parts[:-1] == key.parts[:-1]]
    needed = "".join(f'{name} = "a"\n' for name in beside if name != last)
    taken = set()
    for value in forms:
        text = f"[{'.'.join(path)}]\n{needed}{last} = {value}\n"
        found = [one for one in settings_problems(text, tmp_path) if " needs " not in one]
        errors = list(VALIDATORS["settings"].iter_errors(tables_as_json(tomllib.loads(text))))
        if not found:
            assert not errors, (value, errors)
            taken.add(value)
        elif "must be a list" in found[0] or "true or false" in found[0] or "a whole number, " in found[0]:
            assert errors, (value, found)
    assert taken
    text = f"[{'.'.join(path)}]\n{last}x = true\n"
    if not key.parts[-1].isupper():
        assert any("is not a setting" in one for one in settings_problems(text, tmp_path))
        assert not VALIDATORS["settings"].is_valid(tomllib.loads(text))


def tables_as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: tables_as_json(inner) for name, inner in value.items()}
    return value if isinstance(value, str | int | float | bool | list) else str(value)


LOCK = Lock(
    {
        "a.yaml": LockedDocument(
            f"sha256:{'0' * 64}",
            (LockedCapability("rye.execute.tool.rye.bash", "elevated", "write", ("command=ls",), ("1",)),),
            ("other",),
            ("5", "a:b"),
            ("s",),
            ("TOKEN",),
            {"model_calls": "4", "money": "∞"},
            {"1": "none"},
            ("a → b",),
            ("PL100 because",),
        )
    },
    {"s/t": LockedTool(f"sha256:{'1' * 64}", "read")},
    {"a:b": "3 15 200000"},
    "list",
    {"topic": "20"},
)


def test_a_lock_is_valid_and_a_misspelt_key_is_refused_by_both() -> None:
    source = Source.of(written(LOCK), "quire.lock")
    assert not read_strictly(source).diagnostics and is_valid("lock", source.text)
    refused = [
        text for text in misspelt(source) if "is not a key here" in str(read_strictly(Source.of(text)).diagnostics)
    ]
    assert len(refused) > 15
    assert not any(is_valid("lock", text) for text in refused)
