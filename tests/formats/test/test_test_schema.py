"""The schema and the reader agree: the same keys everywhere, the same files are right and wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.formats.test.readings import SAMPLES, case_of, file_of
from tests.formats.test.test_test_findings import IN_CASE, IN_FILE
from tests.formats.test.test_test_parse import DEFAULTS, EXPECTED, REPLIES

from quire.formats.test import acts, expected, model_script, parse, script_parts, settings, syntax, tool_scripts
from quire.formats.test.schema import schema_text
from quire.formats.yaml import EXPR, TEST_TAGS, Mapping, Node, Scalar, read_yaml
from quire.source import Source

SCHEMA: dict[str, Any] = json.loads(schema_text())
VALIDATOR = jsonschema_rs.Draft202012Validator(SCHEMA)

KEYS = {
    "": parse.FILE_KEYS,
    "$defs/setting": settings.SETTING_KEYS,
    "$defs/case": parse.CASE_KEYS,
    "$defs/step_entry": model_script.STEP_KEYS,
    "$defs/entry": model_script.ENTRY_KEYS,
    "$defs/entry/properties/usage": model_script.USAGE_KEYS,
    "$defs/entry/properties/tool_calls/items": model_script.TOOL_CALL_KEYS,
    "$defs/error/oneOf/1": script_parts.ERROR_KEYS,
    "$defs/tool": tool_scripts.TOOL_KEYS,
    "$defs/when": tool_scripts.WHEN_KEYS,
    "$defs/answer/oneOf/1": settings.ANSWER_KEYS,
    "$defs/files/additionalProperties/oneOf/1": settings.FILE_KEYS,
    "$defs/act": acts.ACT_KEYS,
    "$defs/act/properties/resume/oneOf/2": acts.RESUME_KEYS,
    "$defs/act/properties/fork": acts.FORK_KEYS,
    "$defs/case/properties/live": acts.LIVE_KEYS,
    "$defs/case/properties/live/properties/judge/oneOf/1": acts.JUDGE_KEYS,
    "$defs/case/properties/live/properties/similar": acts.SIMILAR_KEYS,
    "$defs/expect": expected.SUBJECTS,
    "$defs/expect/properties/used": expected.USED,
    "$defs/matcher": expected.TESTS,
    "properties/coverage": syntax.COVERAGE_KINDS,
}

WORDS = {
    "$defs/expect/properties/status/enum": expected.STATUSES,
    "$defs/expect/properties/steps/additionalProperties/enum": expected.STEP_STATUSES,
    "$defs/match/anyOf/1/propertyNames/not/enum": expected.TESTS,
    "$defs/entry/properties/crash/enum": script_parts.MOMENTS,
    "$defs/entry/properties/finish_reason/enum": model_script.FINISH_REASONS,
    "$defs/tool/properties/class/enum": tool_scripts.EFFECTS,
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


def at(path: str) -> Any:
    here: Any = SCHEMA
    for part in filter(None, path.split("/")):
        here = here[int(part)] if isinstance(here, list) else here[part]
    return here


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
    assert set(part["properties"]) == set(KEYS[path])
    assert part["additionalProperties"] is False


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
