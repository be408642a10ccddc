"""Estimates before a run: callees of all formats, directives with what they inherit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.directives import directive as directive_text

from quire.analysis.costs import SPAN
from quire.engine.premises import LONGEST_PYTHON, TOOL_SECONDS
from quire.library.document import load
from quire.library.foresight import Foresight
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace

DIRECTIVE = directive_text(
    "{name}",
    category="",
    tier="fast",
    extends="{extends}",
    meta="""<limits turns="3" />
{permissions}
{hooks}""",
)
PERMISSIONS = "<permissions><execute><tool>{tool}</tool></execute></permissions>"


@pytest.fixture
def work(workspace: Path) -> Path:
    (workspace / ".ai" / "directives").mkdir(parents=True)
    return workspace


def directive(work: Path, name: str, permissions: str = "", extends: str = "", hooks: str = "") -> None:
    parent = f' extends="{extends}"' if extends else ""
    text = DIRECTIVE.format(name=name, extends=parent, permissions=permissions, hooks=hooks)
    (work / ".ai" / "directives" / f"{name}.md").write_text(text, encoding="utf-8")


def foreseen(work: Path) -> Foresight:
    return Foresight(load_settings(find_workspace(work)))


def test_a_called_directive_counts_with_what_it_inherits(work: Path) -> None:
    directive(work, "base", PERMISSIONS.format(tool="rye.bash"))
    directive(work, "leaf", extends="base")
    file = work / "caller.yaml"
    file.write_text("pipeline: caller\nsteps:\n  - call: {pipeline: leaf}\n", encoding="utf-8")
    found = foreseen(work).envelope(load(file).runnable(), str(file))
    assert [(need.capability, need.steps) for need in found.needs] == [("rye.execute.tool.rye.bash", ("leaf thread",))]
    assert found.unknown == ()


def test_of_a_directive_itself(work: Path) -> None:
    directive(work, "base", PERMISSIONS.format(tool="rye.bash"))
    directive(work, "leaf", extends="base")
    file = work / ".ai" / "directives" / "leaf.md"
    found = foreseen(work).envelope(load(file).runnable(), str(file))
    assert (found.capabilities, found.unknown) == (("rye.execute.tool.rye.bash",), ())


@pytest.mark.parametrize("extends", ["gone", "leaf"])
def test_a_parent_that_cannot_be_followed_is_unknown(work: Path, extends: str) -> None:
    directive(work, "leaf", PERMISSIONS.format(tool="rye.bash"), extends=extends)
    file = work / ".ai" / "directives" / "leaf.md"
    found = foreseen(work).envelope(load(file).runnable(), str(file))
    assert (found.capabilities, found.unknown) == (("rye.execute.tool.rye.bash",), (extends,))


def test_hooks_of_the_project_count_for_every_directive(work: Path) -> None:
    directive(work, "leaf", PERMISSIONS.format(tool="rye.bash"))
    hooks = work / ".ai" / "config" / "agent" / "hooks.yaml"
    hooks.parent.mkdir(parents=True)
    hooks.write_text(
        "hooks:\n  - id: note\n    event: error\n    action: {primary: execute, item_type: tool, "
        "item_id: file__write, params: {path: a}}\n",
        encoding="utf-8",
    )
    file = work / ".ai" / "directives" / "leaf.md"
    found = foreseen(work).envelope(load(file).runnable(), str(file))
    assert found.capabilities == ("rye.execute.tool.rye.bash", "rye.execute.tool.rye.file-system.write")


def test_a_document_that_is_not_there_is_unknown(work: Path) -> None:
    file = work / "caller.yaml"
    file.write_text("pipeline: caller\nsteps:\n  - call: {pipeline: gone}\n", encoding="utf-8")
    foresight = foreseen(work)
    assert foresight.envelope(load(file).runnable(), str(file)).unknown == ("gone",)
    assert "gone" not in foresight.called
    assert list(foresight.called) == []


SLOW = {"mcpServers": {"slow": {"command": "slow", "timeout": 3600}, "quick": {"command": "quick", "timeout": 5}}}


@pytest.mark.parametrize(
    ("capability", "longest"),
    [
        ("rye.execute.tool.mcp.slow.look", TOOL_SECONDS.of("mcp", 3600)),
        ("rye.execute.tool.mcp.quick.look", TOOL_SECONDS.of("mcp", 5)),
        ("rye.execute.tool.mcp.*", TOOL_SECONDS.of("mcp", 3600)),
        ("rye.execute.tool.mcp.other.look", TOOL_SECONDS.of("mcp", 3600)),
        ("rye.execute.tool.python.look", TOOL_SECONDS.of("python", LONGEST_PYTHON)),
        ("rye.execute.tool.*", TOOL_SECONDS.of("python", LONGEST_PYTHON)),
        ("rye.execute.tool.rye.*", TOOL_SECONDS.shell),
        ("rye.execute.tool.rye.bash", TOOL_SECONDS.shell),
    ],
)
def test_a_tool_may_take_as_long_as_its_server_or_its_function_lets_it(
    work: Path, capability: str, longest: float
) -> None:
    (work / ".mcp.json").write_text(json.dumps(SLOW))
    assert foreseen(work).world().tool_fact(capability).seconds == longest


def test_the_prompt_of_a_server_takes_time_too(work: Path) -> None:
    (work / ".mcp.json").write_text(json.dumps(SLOW))
    spans = []
    for directive_line in ("", "@prompt(mcp:slow/greet)\n"):
        (work / "p.playbook.md").write_text(f"# P\n\n## STEP 1: Look\n{directive_line}Say hello.\n")
        plan = load(work / "p.playbook.md").runnable()
        spans.append(foreseen(work).proof(plan).cost.amount(SPAN).as_number or 0)
    assert spans[1] - spans[0] == TOOL_SECONDS.of("mcp", 3600) * 1000


MODELS = """[models]
default = "anthropic:claude-haiku-4-5"
[models.tiers]
big = "anthropic:claude-opus-4-1"
[agents.reviewer]
model = "anthropic:claude-opus-4-1"
"""


@pytest.mark.parametrize("name", ["big", "reviewer"])
def test_the_model_that_a_playbook_step_asks_for_counts(work: Path, name: str) -> None:
    (work / "quire.toml").write_text(MODELS, encoding="utf-8")
    file = work / "p.playbook.md"
    file.write_text(f"# P\n\n## STEP 1: A\n\n@model({name})\n\nThink.\n", encoding="utf-8")
    found = foreseen(work).proof(load(file).runnable(), str(file))
    assert [call.model for call in found.model_calls] == ["anthropic:claude-opus-4-1"]


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("pipeline: p\nsteps: [{agent: {identity: reviewer, prompt: hi}}]\n", "anthropic:claude-opus-4-1"),
        ("pipeline: p\ndialect: quire\nsteps: [{agent: {model: big, prompt: hi}}]\n", "anthropic:claude-haiku-5-5"),
        ("# P\n\n## STEP 1: A\n\n@model(big)\n\nThink.\n", "anthropic:claude-haiku-5-5"),
    ],
)
def test_a_model_of_the_command_line_replaces_all_but_those_of_profiles(work: Path, text: str, model: str) -> None:
    (work / "quire.toml").write_text(MODELS, encoding="utf-8")
    file = work / ("p.yaml" if text.startswith("pipeline") else "p.playbook.md")
    file.write_text(text, encoding="utf-8")
    foresight = foreseen(work)
    found = foresight.proof(load(file).runnable(), str(file), "anthropic:claude-haiku-5-5", one_model=True)
    assert [call.model for call in found.model_calls] == [model]


@pytest.mark.parametrize(
    ("tools", "asks"),
    [
        (["file__g*"], False),
        (["rye/file-system/*"], False),
        (["ask"], True),
        (["a*"], True),
        (["*"], True),
        (["rye/*", "as?", "*k"], True),
    ],
)
def test_a_pattern_of_tools_asks_only_if_it_covers_ask(work: Path, tools: list[str], asks: bool) -> None:
    """real-work M5: an agent with `file__g*` was said to ask 1,600 questions."""
    (work / "quire.toml").write_text(f"[agents.looker]\ntools = {tools}\n", encoding="utf-8")
    file = work / "p.yaml"
    file.write_text("pipeline: p\nsteps: [{agent: {identity: looker, prompt: hi}}]\n", encoding="utf-8")
    found = foreseen(work).proof(load(file).runnable(), str(file))
    assert found.bound("questions").most.is_nothing is not asks
