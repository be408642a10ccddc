"""What the pages on threads and on calls show is read, checked against the schemas, and run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.docs.pages import blocks, text_of
from tests.examples.command import calls, desk, give

from quire.engine.interpreter.thread.hooks import read_hooks_yaml
from quire.engine.interpreter.thread.loop import SAME_TURNS, SAME_TURNS_TOLD
from quire.engine.interpreter.thread.setup import FORKING, ORCHESTRATING
from quire.engine.interpreter.thread.tool_results import LONGEST_RESULT
from quire.engine.premises import FAILURES_IN_A_ROW, MOST_CALLS
from quire.formats.directive.parse import parse
from quire.library.item_tools.connection import ACTIONS
from quire.plan.vocabulary import DECISIONS, SENT_EVENTS
from quire.source import Source

THREADS, CALLS = "docs/reference/threads.md", "docs/guides/calls.md"
SCHEMAS = {f"rye_{name}": spec.schema for name, spec in ACTIONS.items()} | {
    tool.name: tool.schema for tool in (FORKING, ORCHESTRATING)
}
SHOWN = [call for block in blocks(THREADS, "json") for call in json.loads(block.text)]


@pytest.mark.parametrize("call", SHOWN, ids=lambda call: json.dumps(call["input"])[:60])
def test_calls_fit_the_schemas_of_their_tools(call: dict[str, dict[str, object]]) -> None:
    import jsonschema_rs

    jsonschema_rs.validate(SCHEMAS[str(call["name"])], call["input"])  # type: ignore[arg-type]


def test_every_tool_is_shown() -> None:
    assert {call["name"] for call in SHOWN} == set(SCHEMAS)


def test_hooks_can_be_read() -> None:
    (hook,) = blocks(THREADS, "xml")
    metadata = f"<metadata><hooks>{hook.text}</hooks></metadata>"
    reading = parse(Source.of(f'```xml\n<directive name="a" version="1.0.0">{metadata}</directive>\n```\n'))
    assert reading.diagnostics == ()
    (project,) = blocks(THREADS, "yaml")
    hooks, problems = read_hooks_yaml(project.text, "hooks.yaml")
    assert problems == () and [one.id for one in hooks] == ["keep_a_log"]


def test_the_tables_have_every_event_and_every_decision() -> None:
    text = text_of(THREADS)
    rows = re.findall(r"^\| (`[^|]+`) \|", text.partition("## Hooks")[2], re.MULTILINE)
    named = re.findall(r"`(\w+)`", " ".join(rows))
    assert set(named[: len(SENT_EVENTS)]) == set(SENT_EVENTS)
    assert set(named[len(SENT_EVENTS) :]) == set(DECISIONS)


def test_the_numbers_are_those_of_the_program() -> None:
    text = text_of(THREADS)
    assert f"told after {SAME_TURNS_TOLD} turns, stopped after {SAME_TURNS}" in text
    assert f"more than {MOST_CALLS} calls" in text
    assert f"more than {LONGEST_RESULT:,} characters" in text
    assert f"{FAILURES_IN_A_ROW} times in a row at most" in text


def test_documents_that_call_each_other_run(tmp_path: Path) -> None:
    work = desk(tmp_path)
    arrival, price = (block.text for block in blocks(CALLS, "yaml"))
    (letter,) = (block.text for block in blocks(CALLS, "markdown"))
    greet = next(
        block.text for block in blocks("docs/reference/directives.md", "markdown") if "greet_guest" in block.text
    )
    work.write("pipelines/arrival.yaml", arrival)
    work.write("pipelines/room_price.yaml", price)
    work.write("welcome-letter.playbook.md", letter)
    work.write(".ai/directives/team/greet_guest.md", greet)
    work.sign()
    script = work.script(
        {"contains": "two nights cost 120", "reply": 'Dear Ada.\n{"mood": "glad"}'},
        {"step": "turn 1", **calls(("rye_file_system_write", {"path": "greeting.md", "content": "Hello Ada"}))},
        {"step": "turn 2", **give(path="greeting.md")},
    )
    done = json.loads(work.fine("run", "arrival", "-i", "guest=Ada", "--script", script))
    assert done["mood"] == "glad" and done["path"] == "greeting.md" and "Dear Ada." in done["letter"]
    assert (work.folder / "greeting.md").read_text() == "Hello Ada"
