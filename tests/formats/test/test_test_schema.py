"""The schema and the reader agree: the same keys everywhere, the same files are right and wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import jsonschema_rs
import pytest
from tests.docs.tests_page import at
from tests.formats.test.readings import SAMPLES, case_of, file_of
from tests.formats.test.test_test_findings import IN_CASE, IN_FILE
from tests.formats.test.test_test_parse import DEFAULTS, EXPECTED, REPLIES

from quire.formats.test import codes, expected, fields, parse, scripts
from quire.formats.test.fields import keys_of, schema_text
from quire.formats.yaml import EXPR, TEST_TAGS, Mapping, Node, Scalar, read_yaml
from quire.source import Source

SCHEMA: dict[str, Any] = json.loads(schema_text())
VALIDATOR = jsonschema_rs.Draft7Validator(SCHEMA)

KEYS = {
    "": "KEY: 1",
    "definitions/setting": "defaults: {KEY: 1}",
    "definitions/case": "cases: [{name: a, KEY: 1}]",
    "definitions/step_entry": "cases: [{name: a, model: {a: {reply: b, KEY: 1}}}]",
    "definitions/entry": "cases: [{name: a, model: [{reply: b, KEY: 1}]}]",
    "definitions/entry/properties/usage": "cases: [{name: a, model: [{reply: a, usage: {KEY: 1}}]}]",
    "definitions/entry/properties/tool_calls/items": "cases: [{name: a, model: [{tool_calls: [{name: b, KEY: 1}]}]}]",
    "definitions/error/oneOf/1": "cases: [{name: a, model: [{error: {KEY: 1}}]}]",
    "definitions/tool": "cases: [{name: a, tools: {a: {returns: 1, KEY: 1}}}]",
    "definitions/when": "cases: [{name: a, tools: {a: {when: [{args: {}, returns: 1, KEY: 1}]}}}]",
    "definitions/answer/oneOf/1": "cases: [{name: a, answers: {a: {answer: b, KEY: 1}}}]",
    "definitions/files/additionalProperties/oneOf/1": "cases: [{name: a, files: {a: {KEY: 1}}}]",
    "definitions/act": "cases: [{name: a, then: [{cancel: true, KEY: 1}]}]",
    "definitions/act/properties/resume/oneOf/2": "cases: [{name: a, then: [{resume: {KEY: 1}}]}]",
    "definitions/act/properties/fork": "cases: [{name: a, then: [{fork: {KEY: 1}}]}]",
    "definitions/case/properties/live": "cases: [{name: a, live: {KEY: 1}}]",
    "definitions/case/properties/live/properties/judge/oneOf/1": "cases: [{name: a, live: {judge: {KEY: 1}}}]",
    "definitions/case/properties/live/properties/similar": "cases: [{name: a, live: {similar: {to: b, KEY: 1}}}]",
    "definitions/expect": "cases: [{name: a, expect: {KEY: 1}}]",
    "definitions/expect/properties/used": "cases: [{name: a, expect: {used: {KEY: 1}}}]",
    "definitions/matcher": "cases: [{name: a, expect: {output: {contains: a, KEY: 1}}}]",
    "properties/coverage": "coverage: {KEY: 1}",
}
"""A file with a key at each place of the schema that has keys of its own, beside those that it needs."""

WORDS = {
    "definitions/expect/properties/status/enum": expected.STATUSES,
    "definitions/expect/properties/steps/additionalProperties/enum": expected.STEP_STATUSES,
    "definitions/match/anyOf/1/propertyNames/not/enum": expected.TESTS,
    "definitions/entry/properties/crash/enum": scripts.MOMENTS,
    "definitions/entry/properties/finish_reason/enum": scripts.FINISH_REASONS,
    "definitions/tool/properties/class/enum": scripts.EFFECTS,
}

NOT_IN_THE_SCHEMA = ("YM", "EX", "TS004", "TS012")
"""A JSON Schema cannot say these: broken YAML, expressions, names that are there twice, paths."""
ALSO_NOT = (
    "the pattern",
    "the path",
    "the schema",
    "nothing stands after",
    "is not a name",
    "needs the step",
    "is empty, so",
    "must be a moment",
    "a name must be text",
    "is here twice",
    "one YAML document",
)


def plain(node: Node) -> Any:
    """A node as editors see it: a tag is not known to them, and its text is text."""
    if isinstance(node, Scalar):
        return (node.text if node.tag == EXPR else None) if node.tag else node.value
    if isinstance(node, Mapping):
        return {entry.key.text: plain(entry.value) for entry in node.entries}
    return [plain(item) for item in node.items]


def is_valid(text: str) -> bool:
    (document,) = read_yaml(Source.of(text), tags=TEST_TAGS).documents
    return VALIDATOR.is_valid(plain(document))


def in_case(lines: str) -> str:
    return "cases:\n  - name: one\n" + "".join(f"    {line}\n" for line in lines.splitlines())


def test_the_schema_is_a_schema() -> None:
    jsonschema_rs.meta.validate(SCHEMA)


@pytest.mark.parametrize("path", KEYS)
def test_the_same_keys(path: str) -> None:
    part = at(path)
    assert not [key for key in part["properties"] if unknown_keys(KEYS[path].replace("KEY", key))]
    assert unknown_keys(KEYS[path].replace("KEY", "xyzzy"))
    assert part["additionalProperties"] is False


@pytest.mark.parametrize("path", KEYS)
def test_every_key_is_read(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that no reader takes would have no effect, whatever its value is."""
    unread = []
    for key in at(path)["properties"]:
        other = "z" * len(key)
        monkeypatch.setattr(fields, "keys_of", lambda place, other=other: (*keys_of(place), other))
        texts = [KEYS[path].replace("KEY: 1", f"KEY: {value}") for value in ("1", "text", "[]", "{}", "true")]
        if all(effect(one.replace("KEY", key)) == effect(one.replace("KEY", other)) for one in texts):
            unread.append(key)
    assert unread == []


def effect(text: str) -> tuple[object, list[str]]:
    reading = parse.parse(Source.of(text if "cases" in text else f"{text}\ncases: [{{name: a}}]"))
    return reading.file, [one.message for one in reading.diagnostics]


def unknown_keys(text: str) -> list[str]:
    found = parse.parse(Source.of(text)).diagnostics
    return [one.message for one in found if one.code is codes.UNKNOWN_KEY or "stands beside the matcher" in one.message]


def test_subjects_and_matchers_are_those_of_the_schema() -> None:
    assert get_args(expected.Subject) == keys_of("cases.-.expect")
    assert keys_of("cases.-.expect.output") == expected.TESTS


@pytest.mark.parametrize("path", WORDS)
def test_the_same_words(path: str) -> None:
    assert set(at(path)) == set(WORDS[path])


def test_every_object_with_keys_is_compared() -> None:
    found: set[str] = set()

    def walk(part: Any, path: str) -> None:
        if isinstance(part, dict):
            if isinstance(part.get("properties"), dict) and "$ref" not in part:
                found.add(path.strip("/"))
            for key, value in part.items():
                walk(value, f"{path}/{key}")
        elif isinstance(part, list):
            for number, value in enumerate(part):
                walk(value, f"{path}/{number}")

    walk(SCHEMA, "")
    assert found == set(KEYS)


def test_every_key_is_described() -> None:
    for path in KEYS:
        for key, value in at(path)["properties"].items():
            target = at(value["$ref"].removeprefix("#/")) if "$ref" in value else value
            assert value.get("description") or target.get("description"), f"{path} {key}"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_samples_are_valid(path: Path) -> None:
    assert is_valid(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("lines", [*(f"expect: {one}" for one in EXPECTED), *REPLIES])
def test_right_cases_are_valid(lines: str) -> None:
    case_of(lines)
    assert is_valid(in_case(lines))


def test_defaults_are_valid() -> None:
    file_of(DEFAULTS)
    assert is_valid(DEFAULTS)


WRONG = [
    text
    for text, (code, message, *_) in [
        *((in_case(lines), wanted) for lines, wanted in IN_CASE.items()),
        *((text, wanted) for text, wanted in IN_FILE.items() if text),
    ]
    if not code.startswith(NOT_IN_THE_SCHEMA) and not any(one in message for one in ALSO_NOT)
]


@pytest.mark.parametrize("text", WRONG)
def test_wrong_files_are_invalid(text: str) -> None:
    assert not is_valid(text)


def test_most_wrong_files_are_compared() -> None:
    assert len(WRONG) > 0.7 * (len(IN_CASE) + len(IN_FILE))
