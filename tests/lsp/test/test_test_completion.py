"""Completion in test files, also in texts that are not YAML yet."""

from __future__ import annotations

import pytest
from tests.lsp.editor import Editor, apply

HEAD = "cases:\n  - name: x\n    "
VISIT, SUM, GREET = "visit.test.yaml", "sum.test.yaml", ".ai/directives/house/greet.test.yaml"


@pytest.mark.parametrize(
    ("file", "text", "offered"),
    [
        (VISIT, "‸", ["document", "defaults", "cases"]),
        (VISIT, "doc‸\ncases: [", ["document"]),
        (VISIT, "document: ‸", ["visit.playbook.md", "sum.yaml", ".ai/directives/house/greet.md"]),
        (VISIT, "coverage: {‸", ["all", "arms"]),
        (VISIT, "defaults:\n  ‸", ["inputs", "model", "tools"]),
        (VISIT, HEAD + "‸", ["expect", "then", "inputs"]),
        (VISIT, HEAD + "inputs: {‸", ["place", "mood"]),
        (VISIT, HEAD + "inputs:\n      ‸\n    expect: {", ["place", "mood"]),
        (VISIT, HEAD + "inputs: {mood: ‸", ["glad", "sad"]),
        (VISIT, HEAD + "model: {‸", ["1", "2", "default"]),
        (VISIT, HEAD + "model:\n      - {step: ‸", ["1", "2", "3a"]),
        (VISIT, HEAD + "answers: {‸", ["4"]),
        (VISIT, HEAD + "answers: {4: ‸", ["yes", "no"]),
        (VISIT, HEAD + "expect: {status: ‸", ["completed", "awaiting_input"]),
        (VISIT, HEAD + "expect: {steps: {3: ‸", ["completed", "skipped"]),
        (VISIT, HEAD + "expect: {named: {‸", ["time"]),
        (VISIT, HEAD + "expect: {named: {time: ‸", ["morning", "evening", "contains", "!snapshot", "!expr"]),
        (VISIT, HEAD + "expect: {output: {‸", ["contains", "matches", "json"]),
        (VISIT, HEAD + 'expect:\n      that:\n        - !expr "inputs.‸', ["place", "mood"]),
        (VISIT, HEAD + 'expect:\n      that:\n        - !expr "‸', ["value", "inputs", "trim"]),
        (VISIT, HEAD + "expect:\n      that:\n        - ‸", ["!expr"]),
        (VISIT, HEAD + "then:\n      - ‸", ["answer", "resume", "fork"]),
        (VISIT, HEAD + "then:\n      - fork: {from: ‸", ["1", "3"]),
        (VISIT, HEAD + "unattended: ‸", ["true", "false"]),
        (VISIT, HEAD + "crash: ‸", ["everywhere"]),
        (VISIT, HEAD + "expect: ‸", ["todo"]),
        (VISIT, HEAD + "allow: [‸", ["shell", "http__get"]),
        (VISIT, HEAD + "config: {‸", ["runs", "models"]),
        (VISIT, "cases:\n  - {name: a, tags: [slow, net]}\n  - name: x\n    tags: [‸", ["slow", "net"]),
        (SUM, HEAD + "tools: {‸", ["file__write"]),
        (SUM, HEAD + "tools: {file__write: {‸", ["returns", "raises", "when"]),
        (SUM, HEAD + "tools: {file__write: {when: [{args: {‸", ["path", "content"]),
        (SUM, HEAD + "expect: {stores: {‸", ["summary", "written"]),
        (SUM, HEAD + "expect: {calls: {‸", ["file__write"]),
        (SUM, HEAD + "inputs: {‸", ["doc"]),
        (GREET, HEAD + "model:\n      - {turn: 1, tool_calls: [{name: ‸", ["directive_return", "rye_fetch"]),
        (GREET, HEAD + "model:\n      - {turn: 1, tool_calls: [{name: directive_return, input: {‸", ["letter"]),
        (GREET, HEAD + "expect: {outputs: {‸", ["letter"]),
        (GREET, HEAD + "expect: {prompts: {‸", ["turn 1"]),
        (GREET, HEAD + "limits: {‸", ["turns", "tokens"]),
    ],
)  # fmt: skip
def test_it_offers_what_can_stand_there(house: Editor, file: str, text: str, offered: list[str]) -> None:
    found = house.completions(file, text)
    assert [name for name in offered if name not in found] == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (HEAD + "‸\n    expect: {}", ["name", "expect"]),
        (HEAD + "model: {1: a, ‸, 2: b}", ["1", "2"]),
        (HEAD + "expect: {stores: {‸", ["time"]),
        (HEAD + "model:\n      1: |\n        ‸", ["1", "reply"]),
        ("defaults:\n  ‸", ["expect", "name"]),
    ],
)
def test_it_does_not_offer_what_is_there_or_wrong(house: Editor, text: str, missing: list[str]) -> None:
    found = house.completions(VISIT, text)
    assert [name for name in missing if name in found] == []


@pytest.mark.parametrize(
    ("text", "name", "after"),
    [
        ("model: {‸", "1", 'model: {"1": '),
        ('model: {"‸', "1", 'model: {"1": '),
        ('model: {"‸"', "1", 'model: {"1": '),
        ("model: {'‸'}", "2", "model: {'2': }"),
        ("expect: {sta‸", "status", "expect: {status: "),
        ("expect: {status: com‸", "completed", "expect: {status: completed"),
        ("answers: {4: ‸", "yes", 'answers: {4: "yes"'),
    ],
)
def test_a_name_is_written_with_quotes_where_yaml_needs_them(house: Editor, text: str, name: str, after: str) -> None:
    item = house.completions(VISIT, HEAD + text)[name]
    assert apply(house.texts[VISIT], [item["textEdit"]]) == HEAD + after


def test_the_documentation_of_a_step_has_its_prompt(house: Editor) -> None:
    item = house.completions(VISIT, HEAD + "model: {‸")["1"]
    told = house.ask("completionItem/resolve", item)["documentation"]["value"]
    assert "Explain" in told and "What is" in told


def test_names_of_an_unsaved_document_count(house: Editor) -> None:
    house.open("visit.playbook.md", "# V\n\n## INPUTS\n\n- `town` (string): Where\n\n## STEP 1: A\n\nGo to {{town}}.\n")
    assert "town" in house.completions(VISIT, HEAD + "inputs: {‸")


def test_without_a_document_the_keys_are_still_offered(house: Editor) -> None:
    assert "expect" in house.completions("nothing.test.yaml", HEAD + "‸")
    assert house.completions("nothing.test.yaml", HEAD + "inputs: {‸") == {}
