"""EV101 to EV104: permissions that are unused, wide or unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.analysis.rules.rule_cases import findings_of, proof_of

from quire.analysis.facts import EffectFact
from quire.analysis.rules import RuleContext, permissions
from quire.analysis.world import Class, ToolFact
from quire.library.check import DocumentCheck
from quire.source import Source

SETTINGS = """
[agents.reader]
tools = ["file__read", "file__grep"]

[agents.clerk]
tools = ["tickets__*", "file__*"]
"""
SERVERS = '{"mcpServers": {"tickets": {"command": "tickets"}}}'


def checked(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch, **others: str) -> list[tuple[str, str]]:
    """Return the EV findings about a pipeline in a workspace with two identities and a server."""
    monkeypatch.chdir(folder)
    (folder / "quire.toml").write_text(SETTINGS)
    (folder / ".mcp.json").write_text(SERVERS)
    (folder / "pipelines").mkdir(exist_ok=True)
    for name, document in others.items():
        (folder / "pipelines" / f"{name}.yaml").write_text(document)
    path = folder / "pipelines" / "main.yaml"
    path.write_text(text)
    found = DocumentCheck().of(Source.of(text, str(path)))
    return [(one.code.id, one.message) for one in found if one.code.id.startswith("EV")]


def agent(identity: str, tools: str) -> str:
    return (
        f"pipeline: main\nsteps:\n  - agent: {{identity: {identity}, prompt: hi, capabilities: {{tools: {tools}}}}}\n"
    )


@pytest.mark.parametrize(
    ("identity", "tools", "found"),
    [
        ("reader", "[file__read]", []),
        ("reader", "[]", []),
        ("reader", "[file__read, file__write]", ["EV101"]),
        ("reader", "[file__read, file__read]", ["EV101"]),
        ("reader", '["file__*", file__read]', ["EV101"]),
        ("reader", '["file__*"]', []),
        ("nobody", "[file__write]", []),
        ("clerk", "[file__read, tickets__list]", []),
        ("clerk", '["tickets__*"]', ["EV102"]),
        ("clerk", '["*"]', ["EV102"]),
    ],
)
def test_tools_of_agents(
    identity: str, tools: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = checked(tmp_path, agent(identity, tools), monkeypatch)
    assert [code for code, _ in codes] == found, codes


@pytest.mark.parametrize(("effect", "found"), [("read", []), ("write", ["EV102"])])
def test_a_pattern_of_tools_that_only_read(effect: Class, found: list[str]) -> None:
    text = agent("clerk", "[a]").replace("capabilities: {tools: [a]}", "capabilities: {tools: []}")
    proof = proof_of(text)
    tool = ToolFact("tickets__*", "rye.execute.tool.mcp.tickets.*", effect)
    fact = EffectFact(proof.model_calls[0].place, tool, {}, by_model=True)
    rules = permissions.check(replace(proof, facts=(*proof.facts, fact)), RuleContext(Source.of(text, "p.yaml")))
    assert [one.code.id for one in rules] == found


CALL = "pipeline: main\nsteps:\n  - call: {pipeline: report}\n"


@pytest.mark.parametrize(("callee", "found"), [("mial", ["EV103"]), ("mail", [])])
def test_a_callee_that_leads_nowhere(
    callee: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = f"pipeline: report\nsteps:\n  - call: {{pipeline: {callee}}}\n"
    mail = "pipeline: mail\nsteps:\n  - transform: {value: '1'}\n"
    codes = checked(tmp_path, CALL, monkeypatch, report=report, mail=mail)
    assert [code for code, _ in codes] == found
    assert all("report leads to mial" in message for _, message in codes)


def test_a_document_that_the_document_itself_misses_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checked(tmp_path, CALL, monkeypatch) == []


def test_a_proof_that_gave_up_says_so() -> None:
    text = "pipeline: p\nsteps:\n  - transform: {value: '1'}\n"
    proof = replace(proof_of(text), incomplete=True)
    assert [one.code.id for one in permissions.check(proof, RuleContext(Source.of(text, "p.yaml")))] == ["EV103"]


SHELL = "pipeline: p\nsteps:\n  - shell: {command: %s}\n"


@pytest.mark.parametrize(
    ("command", "granted", "found"),
    [
        ("!expr ctx.command", ("shell=network",), ["EV104"]),
        ("!expr ctx.command", ("shell=unsandboxed",), ["EV104"]),
        ("!expr ctx.command", ("shell",), []),
        ("git fetch", ("shell=network",), []),
    ],
)
def test_commands_with_the_network(command: str, granted: tuple[str, ...], found: list[str]) -> None:
    text = SHELL % command
    assert [one.code.id for one in findings_of("permissions", text, granted=granted)] == found
