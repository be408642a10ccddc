"""How dangerous a grant is, and what a project may say about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.trust.risk import NO_RULES, ProjectRisk, Rule, Tier, assess, project_risk, read_risk, tier_of

BASH = "rye.execute.tool.rye.bash"
SECRET = "rye.fetch.knowledge.secret.*"


@pytest.mark.parametrize(
    ("capability", "tier"),
    [
        ("rye.*", "unrestricted"),
        ("rye.unknown.x", "unrestricted"),
        ("rye.execute", "unrestricted"),
        ("rye.execute.*", "elevated"),
        ("rye.execute.tool.*", "elevated"),
        ("rye.execute.directive.demo.x", "elevated"),
        ("rye.execute.pipeline.nightly", "elevated"),
        (BASH, "elevated"),
        (f"{BASH}.*", "elevated"),
        ("rye.execute.tool.rye.web.fetch", "elevated"),
        ("rye.execute.tool.rye.file-system.*", "write"),
        # newcomer M7, ruling 20 of directives: every name of a tool means that tool; reading tools are safe.
        ("rye.execute.tool.rye.file-system.read", "safe"),
        ("rye.execute.tool.rye/file-system/fs_read", "safe"),
        ("rye.execute.tool.file__read", "safe"),
        ("rye.execute.tool.file__glob", "safe"),
        ("rye.execute.tool.state__get", "safe"),
        ("rye.execute.tool.file__write", "write"),
        ("rye.execute.tool.shell", "elevated"),
        ("rye.execute.tool.http__get", "elevated"),
        ("rye.execute.tool.rye.file-system*", "elevated"),
        ("rye.execute.tool.ask", "safe"),
        ("rye.execute.tool.ask*", "elevated"),
        ("rye.execute.tool.asks", "elevated"),
        ("rye.fetch.directive.*", "safe"),
        ("rye.fetch.knowledge.rye/core/*", "safe"),
        ("rye.fetch*", "unrestricted"),
        ("rye.sign.directive.demo.x", "safe"),
        ("other.thing", None),
        ("other.*", None),
        # Wider than every pattern of the table.
        ("*", "unrestricted"),
        ("r*", "unrestricted"),
        ("*.tool.*", "unrestricted"),
        ("rye*", "unrestricted"),
    ],
)
def test_built_in_tiers(capability: str, tier: str | None) -> None:
    assert tier_of(capability) == (Tier(tier) if tier else None)


@pytest.mark.parametrize(
    ("capability", "rules", "tier"),
    [
        ("rye.*", [("rye.*", "safe")], "unrestricted"),
        (BASH, [(f"{BASH}.*", "safe"), (BASH, "safe"), ("rye.execute.tool.rye.bash*", "write")], "elevated"),
        ("rye.fetch.knowledge.secret.a", [(SECRET, "elevated")], "elevated"),
        ("rye.fetch.knowledge.open.a", [(SECRET, "elevated")], "safe"),
        # The more specific of a project's own words counts, above what is built in.
        (
            "rye.fetch.knowledge.secret.a",
            [(SECRET, "elevated"), ("rye.fetch.knowledge.secret.a.*", "safe")],
            "elevated",
        ),
        ("rye.fetch.knowledge.secret.a", [(SECRET, "unrestricted"), ("rye.*.*.*.*", "write")], "unrestricted"),
        ("rye.fetch.x", [("rye.fetch.*", "elevated")], "elevated"),
        ("other.thing", [("other.*", "elevated")], "elevated"),
        ("rye.execute.tool.file__read", [("rye.execute.tool.rye.file-system.*", "elevated")], "elevated"),
        ("rye.execute.tool.file__read", [("rye.execute.tool.rye.file-system.write", "elevated")], "safe"),
    ],
)
def test_a_project_raises_and_never_lowers(capability: str, rules: list[tuple[str, str]], tier: str) -> None:
    project = ProjectRisk(tuple(Rule(pattern, Tier(name)) for pattern, name in rules))
    assert tier_of(capability, project) == Tier(tier)


@pytest.mark.parametrize(
    ("capabilities", "acknowledged", "outcome", "messages"),
    [
        (["rye.fetch.*"], [], "allow", 0),
        ([], [], "allow", 0),
        (["rye.execute.tool.rye.file-system.*"], [], "allow", 0),
        ([BASH], [], "warn", 1),
        ([BASH], ["elevated"], "allow", 0),
        ([BASH], ["unrestricted"], "warn", 1),
        (["rye.*"], [], "block", 1),
        (["rye.*"], ["elevated"], "block", 1),
        (["rye.*", BASH, "rye.fetch.*"], ["unrestricted"], "warn", 1),
        (["rye.*", BASH], [], "block", 2),
        (["other.thing"], [], "allow", 0),
    ],
)
def test_outcomes(capabilities: list[str], acknowledged: list[str], outcome: str, messages: int) -> None:
    found = assess(capabilities, acknowledged)
    assert (found.outcome, len(found.messages), list(found.tiers)) == (outcome, messages, capabilities)


def test_messages_say_what_to_write() -> None:
    (message,) = assess(["rye.*"], []).messages
    for part in ("rye.*", "unrestricted", "keeps the directive from starting", '<acknowledge risk="unrestricted">'):
        assert part in message


@pytest.mark.parametrize(
    "text",
    [
        f"patterns:\n  - {{pattern: {SECRET}, tier: elevated}}\n",
        f"- pattern: {SECRET}\n  tier: elevated\n",
        "patterns:\n  - pattern: rye/fetch/knowledge/secret/*\n    tier: elevated\n".replace(
            "rye/fetch/k", "rye.fetch.k"
        ),
    ],
)
def test_a_table(text: str) -> None:
    assert read_risk(text, "x") == ProjectRisk((Rule(SECRET, Tier.ELEVATED),))


@pytest.mark.parametrize(
    "text",
    [
        "tiers: [unclosed",
        "just text",
        "patterns: rye.*",
        "patterns:\n  - rye.*",
        "patterns:\n  - {pattern: rye.*, tier: dangerous}",
        "patterns:\n  - {pattern: rye.*}",
        "patterns:\n  - {pattern: '', tier: safe}",
        "patterns: []\nother: 1",
        "patterns: []\n---\npatterns: []",
        "patterns: &a [*a]",
        "patterns: []\npatterns: []",
    ],
)
def test_a_table_that_is_not_understood_blocks_everything(text: str) -> None:
    project = read_risk(text, "risk.yaml")
    assert project.problem.startswith("risk.yaml")
    found = assess(["rye.fetch.*"], ["safe", "write", "elevated", "unrestricted"], project)
    assert found.outcome == "block"
    assert "correct or remove it" in found.messages[0]


def test_the_file_of_a_project(tmp_path: Path) -> None:
    assert project_risk(tmp_path) == NO_RULES
    file = tmp_path / ".ai" / "config" / "capability_risk.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(f"patterns:\n  - {{pattern: {SECRET}, tier: elevated}}\n")
    assert project_risk(tmp_path).rules == (Rule(SECRET, Tier.ELEVATED),)
    for data in (b"\xff\xfe", b"", b"a: \0"):
        file.write_bytes(data)
        assert project_risk(tmp_path).problem
    file.unlink()
    file.symlink_to(tmp_path / "nowhere")
    assert project_risk(tmp_path).problem
    file.unlink()
    file.mkdir()
    assert project_risk(tmp_path).problem


def test_a_table_may_use_any_name_of_a_tool() -> None:
    """newcomer M7: a rule for `file__read` is a rule for `rye.file-system.read`."""
    project = read_risk("patterns:\n  - {pattern: rye.execute.tool.file__read, tier: elevated}\n", "risk.yaml")
    assert tier_of("rye.execute.tool.rye.file-system.read", project) is Tier.ELEVATED
