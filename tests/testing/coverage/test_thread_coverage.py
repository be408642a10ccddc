"""Decisions of directives, and the walks that take them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.engine.thread.crew import directive, give, ls
from tests.testing.coverage.measured import Case, decisions, labels, missing, taken
from tests.testing.scripted import Scripted, start_of
from tests.walks.pure_walk import run_pure

from quire.engine.interpreter.callees import Environment
from quire.engine.interpreter.thread.compose import Bundle
from quire.source import Source
from quire.testing.coverage.taken import watch
from quire.testing.coverage.watched_documents import watched

CONTROL = (
    '<action primary="execute" item_type="tool" item_id="rye/agent/threads/internal/control">'
    '<param name="action">%s</param></action>'
)
HOOKS = """
<hooks>
<hook id="dear" event="directive_return">
<condition path="outputs.price" op="gt" value="9.5" />
<condition path="outputs.note" op="exists" />
<action primary="execute" item_type="tool" item_id="rye/agent/threads/internal/control">
<param name="action">retry</param><param name="message">${outputs.price} is too much</param></action>
</hook>
<hook id="style" event="thread_started">
<condition path="inputs.who" op="eq" value="ada" />
<action primary="fetch" item_type="knowledge" item_id="style" />
</hook>
</hooks>
"""
TEXT = directive(
    "main",
    permissions="<execute><tool>rye.file-system.read</tool><tool>rye.file-system.write</tool></execute>",
    meta=f'<limits turns="3" spend="1" />{HOOKS}',
    more="<inputs><input name='who' type='string' required='false'>w</input></inputs>"
    "<outputs><output name='price' type='number'>p</output><output name='note' type='string'>n</output></outputs>",
)
DEAR, CHEAP = ([give(price=price, note="n")] for price in (10, 1))
QUIET = ({"who": "bob"}, Scripted({"turn 1": CHEAP}))


def test_decisions_have_the_words_and_places_of_the_author() -> None:
    assert labels(TEXT, "steps") == ["thread main"]
    assert labels(TEXT, "prompts") == ["a prompt of the thread is looked at"]
    assert labels(TEXT, "errors") == ["a call is refused"]
    assert labels(TEXT, "grants") == [
        "rye.execute.tool.rye.file-system.read is used",
        "rye.execute.tool.rye.file-system.write is used",
    ]
    assert labels(TEXT, "hooks") == [
        "the limit turns is reached",
        "the limit spend is reached",
        "hook dear at directive_return: retry",
        "hook style at thread_started: fetch knowledge style",
    ]
    assert labels(TEXT, "conditions") == [
        f"{hook}: `{test}` {way}"
        for hook, test in (
            ("hook dear at directive_return", "all"),
            ("hook dear at directive_return", "outputs.price gt 9.5"),
            ("hook dear at directive_return", "outputs.note exists"),
            ("hook style at thread_started", 'inputs.who eq "ada"'),
        )
        for way in ("true", "false")
    ]
    source = Source.of(TEXT)
    lines = {one.label: source.line(source.position(one.span.start).line) for one in decisions(TEXT)}
    assert lines["hook style at thread_started: fetch knowledge style"].startswith("<action")
    assert 'turns="3"' in lines["the limit turns is reached"]


def test_tests_of_a_condition_have_places_of_their_own() -> None:
    text = directive(
        "main",
        meta=f"""<hooks><hook id="h" event="after_step">
<any>
<condition path="a" op="eq" value="1" />
<not>
<condition path="b" op="exists" />
<condition path="c" op="exists" />
</not>
</any>
<condition path="d" op="exists" />
{CONTROL % "continue"}</hook></hooks>""",
    )
    source = Source.of(text)
    found = {one.label: source.position(one.span.start).line for one in decisions(text) if one.label.endswith("true")}
    lines = {label.partition("`")[2].rpartition("`")[0]: line for label, line in found.items()}
    first = text[: text.index("<any>")].count("\n") + 1
    assert lines["any"] == first
    assert (lines["a eq 1"], lines["b exists"], lines["c exists"]) == (first + 1, first + 3, first + 4)
    assert lines["d exists"] == first + 7


def test_grants_are_used_and_calls_are_refused() -> None:
    reads: Case = ({}, Scripted({"turn 1": [ls()], "turn 2": CHEAP}))
    assert missing(TEXT, "grants", reads) == ["rye.execute.tool.rye.file-system.write is used"]
    assert missing(TEXT, "errors", reads) == ["a call is refused"]
    assert missing(TEXT, "errors", ({}, Scripted({"turn 1": [("rye_bash", {"command": "rm"})], "turn 2": CHEAP}))) == []


def test_a_limit_that_is_reached() -> None:
    case: Case = ({}, Scripted({f"turn {number}": [ls()] for number in range(1, 5)}))
    assert "the limit turns is reached" not in missing(TEXT, "hooks", case)
    assert "the limit spend is reached" in missing(TEXT, "hooks", case)


def test_hooks_act_and_each_part_of_a_condition_is_seen_both_ways() -> None:
    retried = ({"who": "ada"}, Scripted({"turn 1": DEAR, "turn 2": CHEAP}))
    assert "hook dear" in " ".join(missing(TEXT, "hooks", QUIET))
    left = [one for one in missing(TEXT, "hooks", retried) if one.startswith("hook")]
    assert left == []
    assert missing(TEXT, "conditions", QUIET) == [
        "hook dear at directive_return: `all` true",
        "hook dear at directive_return: `outputs.price gt 9.5` true",
        "hook dear at directive_return: `outputs.note exists` false",
        'hook style at thread_started: `inputs.who eq "ada"` true',
    ]
    without: Case = ({}, Scripted({"turn 1": [give(price=1)]}))
    assert missing(TEXT, "conditions", QUIET, retried, without) == []


ASKING = directive(
    "main",
    meta=f"""<limits turns="1" /><hooks>
<hook id="sure" event="directive_return">
<condition path="outputs.price" op="gt" value="9" />{CONTROL % "suspend"}</hook>
<hook id="more" event="limit">{CONTROL % "escalate"}</hook>
</hooks>""",
    permissions="<execute><tool>rye.file-system.read</tool></execute>",
    more="<outputs><output name='price' type='number'>p</output></outputs>",
)


@pytest.mark.parametrize(
    ("answers", "left"),
    [
        ({"turn 1": "yes"}, ["sure answered no", "more answered with a higher limit", "more answered no"]),
        ({"turn 1": "no"}, ["sure answered yes", "more answered with a higher limit", "more answered no"]),
        ({"turn 2": "5"}, ["sure answered yes", "sure answered no", "more answered no"]),
        ({"turn 2": "no"}, ["sure answered yes", "sure answered no", "more answered with a higher limit"]),
    ],
)
def test_a_hook_may_ask_a_person(answers: dict[str, str], left: list[str]) -> None:
    replies = {"turn 1": [give(price=10)] if "turn 1" in answers else [ls()], "turn 2": [give(price=1)]}
    assert missing(ASKING, "answers", ({}, Scripted(replies, people=answers))) == [f"hook {one}" for one in left]


def test_hooks_of_an_ancestor_belong_to_its_own_file() -> None:
    base = directive("base", meta=HOOKS.replace("dear", "base_dear").replace("gt", "lt"))
    child = TEXT.replace('tier="low" />', 'tier="low" /><extends>base</extends>')
    start = start_of(child)
    start = replace(start, setting=Environment(bundles={"": Bundle("main", {"main": child, "base": base})}))
    document = watched(start.plan)
    document.begin()
    run_pure(lambda work: watch(document, document.walk(start, work)), Scripted({"turn 1": CHEAP}))
    assert "hooks:thread:hook[1]/action[1]=done" not in document.taken  # the ancestor's hook has acted, not this one
    assert {one for one in document.taken if one.startswith("conditions:thread:hook[1]/if[2]")} == {
        "conditions:thread:hook[1]/if[2]=false"
    }


def test_a_thread_that_ran_is_a_step_that_was_taken() -> None:
    assert "steps:thread" in taken(TEXT, QUIET)
