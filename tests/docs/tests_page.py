"""Prints `docs/reference/test-files.md`: every key of test files, from the schema that `quire test --schema` prints.

python -m tests.docs.tests_page > docs/reference/test-files.md
"""

from __future__ import annotations

import json
from typing import Any

from quire.formats.test.fields import schema_text

SCHEMA: dict[str, Any] = json.loads(schema_text())

MATCHERS = """\
A value must be equal. A mapping whose keys are all in this list is a matcher, and all its keys have to hold; a
mapping that mixes them with other keys is an error. `!expr "count(value) > 1"` is an [expression](expressions.md)
that has to be true; it can read `value`, `row`, `inputs`, `named`, `stores`, `outputs`, `output` and `calls`.
`!snapshot` is the value that is kept in `x.test.snap.yaml`. Lists and mappings may contain matchers."""

SECTIONS = (
    ("The file", "", ""),
    ("Cases", "definitions/case", "A case has these keys, and all keys of a setting."),
    ("Settings", "definitions/setting", "The keys of a case and of `defaults` that describe the world of the run."),
    ("Replies of the model", "definitions/entry", ""),
    ("Tools", "definitions/tool", ""),
    ("Answers", "definitions/answer/oneOf/1", "An answer is a text, or a mapping with these keys."),
    (
        "Acts",
        "definitions/act",
        "Each entry of `then` acts on a run that rests or has ended, and has its own expectations.",
    ),
    ("Expectations", "definitions/expect", ""),
    ("Matchers", "definitions/matcher", MATCHERS),
    ("Consumption", "definitions/expect/properties/used", "The keys of `used`."),
    ("Coverage", "properties/coverage", "The keys of `coverage`. Every value is a percentage."),
    ("Live runs", "definitions/case/properties/live", "The keys of `live`, for `quire test --live`."),
)

NAMES = {
    "object": "mapping",
    "array": "list",
    "string": "text",
    "integer": "whole number",
    "boolean": "true or false",
}

EXAMPLE = """\
document: tagline.playbook.md
defaults:
  inputs: {product: a bakery, tone: dry}
  model: {"1": 'Three of them. {"best": "Bread."}'}
cases:
  - name: a yes polishes it
    answers: {"2": "yes"}
    model: {"3a": "Bread, then."}
    expect:
      output: "Bread, then."
      steps: {"3a": completed, "3b": skipped}
      prompts: {"1": {contains: [a bakery, dry]}, "3a": {contains: "Bread."}}
"""

INTRODUCTION = """\
# Test files

A test file, `x.test.yaml` beside a document, holds its tests; `quire test` runs them without a model, a network or a
key ([testing](../guides/testing.md)). This page lists every key. It is made from the schema that `quire test
--schema` prints, which editors use to complete keys and mark mistakes. `quire new test DOCUMENT` writes a first test:
a case for each branch and each answer.

A misspelt key is an error. Paths stay below the folder of the test, except that of the document, which may be
anywhere in the project folder. A file has at most 2,000,000 bytes. Findings about tests have [codes](codes/TS.md)
that begin with `TS`.
"""


def tests_page() -> str:
    parts = [INTRODUCTION, f"```yaml\n{EXAMPLE}```\n"]
    for title, path, sentence in SECTIONS:
        part = at(path)
        shared = set(at("definitions/setting")["properties"]) if path == "definitions/case" else set()
        said = sentence or part["description"]
        rows = [_row(key, value) for key, value in part["properties"].items() if key not in shared]
        table = "\n".join(["| key | value | meaning |", "| --- | --- | --- |", *rows])
        parts.append(f"## {title}\n\n{said}\n\n{table}\n")
    return "\n".join(parts)


def at(path: str) -> Any:
    here: Any = SCHEMA
    for part in filter(None, path.split("/")):
        here = here[int(part)] if isinstance(here, list) else here[part]
    return here


def _row(key: str, value: dict[str, Any]) -> str:
    target = at(value["$ref"].removeprefix("#/")) if "$ref" in value else value
    meaning = value.get("description") or target.get("description", "")
    return f"| `{key}` | {_kind(value)} | {meaning} |"


def _kind(part: dict[str, Any]) -> str:
    """Say which values a part of the schema takes."""
    if part.get("$ref") == "#/definitions/match":
        return "[value or matcher](#matchers)"
    if part.get("description", "").startswith("`!expr"):
        return "tag"
    if "$ref" in part:
        return _kind(at(part["$ref"].removeprefix("#/")))
    if "const" in part:
        return f"`{json.dumps(part['const'])}`" if part["const"] is not True else "`true`"
    if "enum" in part:
        return ", ".join(f"`{one}`" for one in part["enum"])
    for choice in ("oneOf", "anyOf"):
        if choice in part and "properties" not in part:
            kinds = [_kind(one) for one in part[choice]]
            return " or ".join(dict.fromkeys(kind for one in kinds for kind in one.split(" or ")))
    types = part.get("type", "any value")
    listed = [types] if isinstance(types, str) else types
    return " or ".join(NAMES.get(one, one) for one in listed)


if __name__ == "__main__":
    print(tests_page(), end="")
