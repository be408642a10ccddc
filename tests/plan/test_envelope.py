"""What documents have to be allowed, at most: named tools, what agents are left, prompts of servers, callees."""

from __future__ import annotations

import pytest
from tests.plan.test_bounds import pipeline, playbook

from quire.library.capability_words import Words
from quire.library.foresight import Foresight
from quire.plan.bounds import Range
from quire.plan.envelope import CapabilityEnvelope, envelope
from quire.plan.nodes import Plan, Sequence, Step
from quire.plan.thread import Hook, HookAction, Permission, Thread
from quire.trust.risk import ProjectRisk, Rule, Tier

WORDS = Words({"travel": None})
FILES = "rye.execute.tool.rye.file-system"


@pytest.mark.parametrize(
    ("step", "found"),
    [
        ("transform: {value: '1'}", []),
        ("tool: {name: ask, args: {prompt: hi}}", []),
        ("tool: {name: file__read}", [f"{FILES}.read"]),
        ("tool: {name: rye/file-system/fs_write}", [f"{FILES}.write"]),
        ("shell: {command: ls}", ["rye.execute.tool.rye.bash"]),
        ("tool: {name: shell, args: {command: ls}}", ["rye.execute.tool.rye.bash"]),
        ("tool: {name: travel__book}", ["rye.execute.tool.mcp.travel.book"]),
        ("tool: {name: mcp/travel/book}", ["rye.execute.tool.mcp.travel.book"]),
        ("tool: {name: python__add}", ["rye.execute.tool.python.add"]),
        ("tool: {name: somewhere}", ["rye.execute.tool.somewhere"]),
        ("agent: {prompt: a, capabilities: {tools: [http__get, ask]}}",
         ["rye.execute.tool.ask", "rye.execute.tool.rye.web.fetch"]),
        ("agent: {prompt: a, capabilities: {tools: ['file__g*']}}", [f"{FILES}.glob", f"{FILES}.grep"]),
        ("agent: {prompt: a, capabilities: {tools: ['travel__*']}}", ["rye.execute.tool.mcp.travel.*"]),
        ("agent: {prompt: a}", []),
    ],
)  # fmt: skip
def test_of_a_step(step: str, found: list[str]) -> None:
    assert list(envelope(pipeline(step), WORDS).capabilities) == found


def test_of_a_playbook() -> None:
    found = envelope(
        playbook(
            "## STEP 1: A\n\n@prompt(mcp:travel/tone)\n\nThink.",
            "## STEP 2: B\n\n@tool(travel, book, {})",
            "## STEP 3: C\n\n@tool(quire, file__read, {})",
            "## STEP 4: D\n\n@tool(travel, book, {})",
        ),
        WORDS,
    )
    assert {need.capability: need.steps for need in found.needs} == {
        "rye.fetch.prompt.mcp.travel.tone": ("1",),
        "rye.execute.tool.mcp.travel.book": ("2", "4"),
        f"{FILES}.read": ("3",),
    }


def test_callees_are_followed_once_and_missing_ones_are_named() -> None:
    callees = {
        "a": pipeline("tool: {name: file__read}", "call: {pipeline: b}"),
        "b": pipeline("shell: {command: ls}", "match: {on: x, cases: {n: {pipeline: gone}}, default: {pipeline: a}}"),
    }
    found = envelope(pipeline("call: {pipeline: a}", "call: {pipeline: b}", "tool: {name: file__read}"), WORDS, callees)
    assert {need.capability: need.steps for need in found.needs} == {
        f"{FILES}.read": ("3", "a 1"),
        "rye.execute.tool.rye.bash": ("b 1",),
    }
    assert found.unknown == ("gone",)


def test_of_a_thread() -> None:
    thread = Thread("d", extends="base", permissions=(Permission("rye.execute.tool.*"), Permission("rye.fetch.*")))
    plan = Plan("d", "directive", (), Sequence((Step(1, "thread", "d", work=thread),)))
    found = envelope(plan, WORDS)
    assert found.capabilities == ("rye.execute.tool.*", "rye.fetch.*") and found.unknown == ("base",)
    assert envelope(Plan("d", "directive", (), Sequence(())), WORDS) == CapabilityEnvelope()


def test_a_playbook_that_runs_other_documents() -> None:
    runs = playbook("## STEP 1: A\n\n@tool(quire, report, {})", "## STEP 2: B\n\n@tool(quire, file__read, {})")
    callees = {"report": pipeline("shell: {command: ls}", "agent: {prompt: a, capabilities: {tools: []}}")}
    found = envelope(runs, WORDS, callees)
    assert found.capabilities == ("rye.execute.tool.rye.bash", f"{FILES}.read") and found.unknown == ()
    counted = Foresight(None, callees).bounds(runs)
    assert (counted.tool_calls, counted.model_calls) == (Range(2, 2), Range(1, 1))


def test_a_tool_of_quire_is_one_even_if_a_document_has_its_name() -> None:
    runs = playbook("## STEP 1: A\n\n@tool(quire, file__write, {})")
    found = envelope(runs, WORDS, {"file__write": pipeline("transform: {value: '1'}")})
    assert found.capabilities == (f"{FILES}.write",)


@pytest.mark.parametrize(
    ("capability", "effect", "tier"),
    [
        (f"{FILES}.read", "read", "safe"),
        (f"{FILES}.write", "idempotent", "write"),
        (f"{FILES}.edit", "write", "write"),
        (f"{FILES}.*", "write", "write"),
        ("rye.execute.tool.rye.web.fetch", "read", "elevated"),
        ("rye.execute.tool.*", "unknown", "elevated"),
        ("rye.execute.tool.mcp.travel.book", "unknown", "elevated"),
        ("rye.execute.tool.mcp.travel.look", "read", "elevated"),
        ("rye.fetch.knowledge.*", "read", "safe"),
        ("rye.sign.*", "write", "safe"),
        ("other.thing", "unknown", ""),
    ],
)
def test_effect_and_tier(capability: str, effect: str, tier: str) -> None:
    words = Words({"travel": None}, classes={"rye.execute.tool.mcp.travel.look": "read"})
    assert (words.effect(capability), words.tier(capability)) == (effect, tier)


def test_the_tier_is_that_of_the_projects_table() -> None:
    words = Words({}, ProjectRisk((Rule("rye.fetch.knowledge.secret.*", Tier.ELEVATED),)))
    assert words.tier("rye.fetch.knowledge.secret.keys") == "elevated"


def test_hooks_need_what_they_do() -> None:
    actions = (
        HookAction("execute", "tool", "shell"),
        HookAction("fetch", "knowledge", "notes/${inputs.topic}"),
        HookAction("execute", "tool", "rye/agent/threads/internal/control"),
        HookAction("odd", "tool", "shell"),
    )
    plan = Plan("d", "directive", (), Sequence((Step(1, "thread", "d", work=Thread("d", hooks=(
        Hook("guard", "error", {}, actions),))),)))  # fmt: skip
    assert [(need.capability, need.steps, need.details) for need in envelope(plan, WORDS).needs] == [
        ("rye.execute.tool.rye.bash", ("hook guard",), ("command=*",)),
        ("rye.fetch.knowledge.notes.*", ("hook guard",), ()),
    ]
