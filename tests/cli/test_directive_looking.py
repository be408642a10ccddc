"""Looking at directives and at their runs: outline, prompt, what they may do, transcript, page, events, doctor."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Said, json_of
from tests.cli.directive_project import (
    BASE,
    LEAF,
    LEAF_FILE,
    PERMISSIONS_LINE,
    call,
    put_script,
    write_directives,
)
from tests.given import given

from quire.cli import main

RUN = ("run", "deploy_staging", "-i", "target=eu", "-q", "--script", "replies.json")


@pytest.fixture(autouse=True)
def project(workspace: Path) -> Path:
    write_directives(workspace)
    return workspace


def shown(said: Said, *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) in (0, 6)
    found: dict[str, Any] = json.loads(said()[0])
    return found


@pytest.mark.usefixtures("no_connections")
def test_the_outline(said: Said, project: Path) -> None:
    assert main(["show", "deploy_staging"]) == 0
    out = said()[0]
    lines = out.splitlines()
    assert lines[0].startswith("any number of calls · unpriced · writes ")
    assert lines[2:4] == ["deploy_staging 1.0.0", "Deploy the current build to staging"]
    assert '  <model tier="sonnet" />' in lines
    assert f"  rye.execute.tool.rye.file-system.*    write     {LEAF_FILE}:{PERMISSIONS_LINE}" in lines
    assert any(line.endswith(f"elevated  {LEAF_FILE}:{PERMISSIONS_LINE + 1}  acknowledged") for line in lines)
    assert "  turns             6          the directive" in lines
    assert "  spawns            50         default" in lines
    assert "third on after_step, if cost.turns is at least 3: execute tool rye/file-system/write with path=" in out
    assert "left out: suppressed by project/deploy/base_deploy" in out
    assert not (project / ".quire").exists()


def test_the_outline_as_json(said: Said) -> None:
    data = shown(said, "show", "deploy_staging")
    assert [(one["id"], one["space"]) for one in data["extends"]] == [
        ("project/deploy/deploy_staging", "project"),
        ("project/deploy/base_deploy", "project"),
        ("rye/agent/core/base", "system"),
    ]
    assert [(one["position"], one["item_id"], one["suppressed_by"]) for one in data["context"]] == [
        ("system", "rye/agent/core/Identity", "project/deploy/base_deploy"),
        ("system", "rye/agent/core/Behavior", None),
        ("before", "project/deploy/rules", None),
    ]
    assert [one["verdict"] for one in data["signatures"]] == ["signed", "signed", "built in", "built in", "signed"]
    assert data["limits"]["declared"] == {"turns": 6, "tokens": 20000}
    assert data["limits"]["effective"]["duration_seconds"] == 1800
    assert data["hooks"][0]["line"] == 2 + BASE[: BASE.index("<hook id")].count("\n")
    assert data["bounds"]["model_calls"]["least"] >= 0


def test_what_is_not_signed_is_shown_and_not_refused(said: Said, project: Path) -> None:
    leaf = project / LEAF_FILE
    leaf.write_text(leaf.read_text() + "\n")
    (project / ".ai" / "knowledge" / "project" / "deploy" / "rules.md").unlink()
    data = shown(said, "show", "deploy_staging")
    assert [one["verdict"] for one in data["signatures"]] == ["modified", "signed", "built in", "built in", "missing"]


def test_a_risk_that_nobody_acknowledged(said: Said, project: Path) -> None:
    given({LEAF_FILE: LEAF.replace('<acknowledge risk="elevated">Starts a helper</acknowledge>', "")}, project)
    data = shown(said, "show", LEAF_FILE)
    assert [(one["risk"], one["acknowledged"]) for one in data["capabilities"]] == [
        ("write", True),
        ("elevated", False),
        ("safe", True),
    ]


def test_the_exact_messages_of_the_first_call(said: Said, project: Path) -> None:
    assert main(["show", "deploy_staging", "--prompt", "-i", "target=eu", "-i", "retries=7"]) == 0
    out, err = said()
    assert err == ""
    assert not (project / ".quire").exists()
    assert main(list(RUN)) == 0
    said()
    foreseen = json_of(said, "show", "deploy_staging", "--prompt", "-i", "target=eu")
    sent = json_of(said, "runs", "last", "--prompt", "turn 1")
    assert (foreseen["system"], foreseen["messages"]) == (sent["system"], sent["messages"])
    assert "Write the report for eu, 7 times at most." in out


def test_inputs_that_are_missing_have_stand_ins(said: Said, project: Path) -> None:
    leaf = project / LEAF_FILE
    leaf.write_text(leaf.read_text().replace('type="string" required="true"', 'type="integer" required="true"'))
    assert main(["show", "deploy_staging", "--prompt"]) == 0
    out, err = said()
    assert "Write the report for [target], 2 times at most." in out
    assert "note: no value for target" in err


def test_a_step_of_a_playbook_has_to_be_named(said: Said, project: Path) -> None:
    (project / "p.playbook.md").write_text("# P\n\n## STEP 1: A\n\nGo.\n")
    assert main(["show", "p.playbook.md", "--prompt"]) == 2
    assert "--prompt needs the STEP" in said()[1]


@pytest.mark.parametrize(
    ("asked", "code", "why"),
    [
        ("execute tool rye/file-system/write", 0, f"is covered by rye.execute.tool.rye.file-system.* at {LEAF_FILE}:"),
        ("execute tool file__write", 0, f"{LEAF_FILE}:{PERMISSIONS_LINE}"),
        ("execute tool spawn_thread", 0, f"{LEAF_FILE}:{PERMISSIONS_LINE + 1}"),
        ("execute tool directive_return", 0, "is always allowed to a thread"),
        (
            "execute tool rye/bash",
            6,
            f"is not covered by the permissions at {LEAF_FILE}:{PERMISSIONS_LINE}; to grant it",
        ),
        ("fetch knowledge", 6, "write <fetch><knowledge>*</knowledge></fetch> there"),
        (
            "sign directive project/x",
            6,
            f"<sign><directive>project.x</directive></sign> there and sign it: quire sign {LEAF_FILE}\n",
        ),
    ],
)
@pytest.mark.usefixtures("no_connections")
def test_what_a_directive_can(said: Said, asked: str, code: int, why: str) -> None:
    assert main(["can", "deploy_staging", *asked.split()]) == code
    out, err = said()
    assert out.startswith("allow: " if code == 0 else "deny: ") and why in out
    assert err == ""
    data = shown(said, "can", "deploy_staging", *asked.split())
    assert data["allowed"] is (code == 0)


@pytest.mark.parametrize(
    ("asked", "code", "why"),
    [
        ("tool rye/*", 6, "rye.execute.tool.rye.* is not covered by the permissions at"),
        ("tool rye/*", 6, "granted of it: rye.execute.tool.rye.agent.threads.*, rye.execute.tool.rye.file-system.*;"),
        ("tool rye/*", 6, "write <execute><tool>rye.*</tool></execute> there"),
        ("tool rye/file-system/*", 0, "is covered by rye.execute.tool.rye.file-system.* at"),
        ("tool rye.file-system.*", 0, "is covered by rye.execute.tool.rye.file-system.* at"),
        ("tool rye.file-system.write", 0, "rye.execute.tool.rye.file-system.write is covered by"),
        ("tool rye/file-system/w*", 0, "rye.execute.tool.rye.file-system.w* is covered by"),
        ("tool rye/file-system*", 6, "rye.execute.tool.rye.file-system* is not covered"),
        ("tool rye/agent/threads/internal/*", 0, "rye.execute.tool.rye.agent.threads.internal.* is always allowed"),
        ("tool *", 6, "rye.execute.tool.* is not covered"),
        ("playbook team/*", 6, "<execute><playbook>team.*</playbook></execute>"),
    ],
)
def test_a_pattern_asks_for_all_that_it_matches(said: Said, asked: str, code: int, why: str) -> None:
    assert main(["can", "deploy_staging", "execute", *asked.split()]) == code
    out, _ = said()
    assert why in out and "%2A" not in out and "%2E" not in out


def test_a_pattern_of_what_playbooks_can(said: Said, project: Path) -> None:
    (project / "p.playbook.md").write_text("# P\n\n## STEP 1: A\n\nGo.\n")
    assert main(["can", "p.playbook.md", "execute", "tool", "rye/*"]) == 6
    out = said()[0]
    assert (
        "rye.execute.tool.rye.* is not granted as a whole; granted of it: rye.execute.tool.rye.file-system.edit" in out
    )
    assert "grant it with --allow rye.execute.tool.rye.*" in out
    assert main(["can", "p.playbook.md", "execute", "tool", "rye/*", "--allow", "rye.execute.tool.rye.*"]) == 0
    (project / "quire.toml").write_text('[tools]\ndeny = ["shell"]\n')
    assert main(["can", "p.playbook.md", "execute", "tool", "rye/*", "--allow", "rye.execute.tool.rye.*"]) == 6
    assert "takes some of it away from everybody" in said()[0]
    assert main(["can", "p.playbook.md", "execute", "tool", "rye/file-system/w*", "--allow", "rye/file-system/*"]) == 0


def test_what_inherits_its_permissions_says_from_where(said: Said, project: Path) -> None:
    leaf = project / LEAF_FILE
    text = leaf.read_text()
    leaf.write_text(text[: text.index("<permissions>")] + text[text.index("</permissions>") + 14 :])
    assert main(["can", "deploy_staging", "execute", "tool", "rye/file-system/read"]) == 0
    out, err = said()
    assert ".ai/directives/project/deploy/base_deploy.md:" in out
    assert "was modified since it was signed" in err


def test_what_other_documents_can(said: Said, project: Path) -> None:
    (project / "p.playbook.md").write_text("# P\n\n## STEP 1: A\n\nGo.\n")
    assert main(["can", "p.playbook.md", "execute", "tool", "file__write"]) == 0
    assert "(on by default)" in said()[0]
    assert main(["can", "p.playbook.md", "execute", "tool", "shell"]) == 6
    assert "grant it with --allow shell" in said()[0]
    assert main(["can", "p.playbook.md", "execute", "tool", "shell", "--allow", "shell"]) == 0
    assert "(--allow)" in said()[0]
    assert main(["can", "deploy_staging", "execute", "tool", "shell", "--allow", "shell"]) == 2
    (project / "quire.toml").write_text('[tools]\ndeny = ["file__write"]\n')
    assert main(["can", "p.playbook.md", "execute", "tool", "file__write"]) == 6
    assert "[tools] deny" in said()[0]


def test_the_transcript(said: Said) -> None:
    assert main(list(RUN)) == 0
    said()
    assert main(["runs", "last", "--transcript"]) == 0
    text = said()[0]
    for part in (
        "## thread project/deploy/deploy_staging",
        "### system",
        "Never on Fridays.",
        "### turn 1\n\n> Writing the report.\n\n**calls** `rye_file_system_write`",
        '**denied**\n\n```json\n{\n  "error": "permission denied',
        "#### thread project/notes/take_note",
        "##### end\n\n- status: completed",
        "### end\n\n- status: completed\n- closing message: Deployed to eu.\n- used: 3 turns",
    ):
        assert part in text, part
    assert main(["runs", "last", "--transcript", "json"]) == 0
    (thread,) = json.loads(said()[0])["threads"]
    assert [turn["text"] for turn in thread["turns"]] == ["Writing the report.", "A helper.", "Done."]
    first, helper, last = (turn["calls"] for turn in thread["turns"])
    assert [(one["name"], one["error"]) for one in first] == [
        ("rye_file_system_write", None),
        ("rye_web_fetch", "denied"),
    ]
    (child,) = helper[0]["threads"]
    assert (child["thread"], [turn["turn"] for turn in child["turns"]]) == ("project/notes/take_note", [1, 2])
    assert child["turns"][0]["calls"][0]["result"] == '{"path":"notes.txt","bytes":3,"created":true}'
    assert last == [
        {"name": "directive_return", "arguments": {"path": "report.txt", "ok": True}}
        | {"result": None, "error": None, "threads": []}
    ]
    assert thread["ended"]["outputs"] == {"path": "report.txt", "ok": True}


def test_the_transcript_of_one_that_stopped_has_nudges_hooks_and_what_was_not_sent(said: Said, project: Path) -> None:
    write = {"tool_calls": [call("rye_file_system_write", path="a", content="b")]}
    put_script(project, "I think.", write, write)
    assert main([*RUN, "--limit", "turns=3"]) == 5
    said()
    assert main(["runs", "last", "--transcript", "json"]) == 0
    (thread,) = json.loads(said()[0])["threads"]
    assert [len(turn["told"]) for turn in thread["turns"]] == [0, 1, 0]
    assert [turn["calls"][0]["result"] is not None for turn in thread["turns"][1:]] == [True, True]
    assert [hook["item_id"] for hook in thread["turns"][2]["hooks"]] == ["rye/file-system/write"]
    assert thread["ended"]["limit_type"] == "turns_exceeded"


def test_a_transcript_needs_a_thread(said: Said, project: Path) -> None:
    (project / "p.playbook.md").write_text("# P\n\n## STEP 1: A\n\nGo.\n")
    put_script(project, "x")
    assert main(["run", "p.playbook.md", "-q", "--script", "replies.json"]) == 0
    assert main(["runs", "last", "--transcript"]) == 2
    assert "has no thread" in said()[1]


def test_a_directive_that_a_playbook_calls(said: Said, project: Path) -> None:
    (project / "caller.playbook.md").write_text(
        '# C\n\n## STEP 1: Note\n\n@tool(quire, take_note, {"text": "abc"})\n\n## STEP 2: Say\n\nSay.\n'
    )
    put_script(
        project,
        {"tool_calls": [call("rye_file_system_write", path="notes.txt", content="abc")]},
        {"tool_calls": [call("directive_return", file="notes.txt")]},
        "the end",
    )
    assert main(["run", "caller", "--script", "replies.json", "--json"]) == 0
    assert json.loads(said()[0].splitlines()[-1])["steps"] == {"1": "completed", "2": "completed"}
    assert main(["runs", "last", "--state"]) == 0
    assert list(json.loads(said()[0])["step_outputs"]) == ["1", "2"]
    assert main(["runs", "last"]) == 0
    assert "    1 › turn 1  completed\n        rye/file-system/write path=" in said()[0]
    assert main(["runs", "last", "--transcript", "json"]) == 0
    (thread,) = json.loads(said()[0])["threads"]
    assert (thread["thread"], len(thread["turns"])) == ("project/notes/take_note", 2)


def test_the_page_of_a_run(said: Said) -> None:
    assert main(list(RUN)) == 0
    said()
    assert main(["runs", "last"]) == 0
    lines = said()[0].splitlines()
    assert "  turns   3 of 6" in lines and "  tokens  120 of 20,000" in lines and "  spend   $0.0100 of $1" in lines
    assert any(line.startswith("  turn 1 ") and "Writing the report." in line for line in lines)
    assert any(line.startswith("      rye/web/fetch url=") and "→ denied: " in line for line in lines)
    assert any(line.startswith("    turn 2 › project/notes/take_note turn 1") for line in lines)
    assert "  Deployed to eu." in lines


def test_the_events_of_a_run(said: Said) -> None:
    assert main(list(RUN)) == 0
    said()
    assert main(["runs", "last", "--follow"]) == 0
    text = "\n".join(line.split("  ", 1)[1] for line in said()[0].splitlines())
    assert "thread project/deploy/deploy_staging started\n" in text
    assert "Writing the report. → rye/file-system/write path=" in text
    assert re.search(r'tool ok [0-9.]+s \[0\] \{"path":"notes.txt"', text)
    assert "thread project/notes/take_note completed" in text


def test_the_prompt_of_a_turn(said: Said) -> None:
    assert main(list(RUN)) == 0
    said()
    assert main(["runs", "last", "--prompt", "2"]) == 0
    assert '[calls rye_web_fetch {"url":"https://example.com"}]' in said()[0]
    for named in ("project/notes/take_note turn 1", "turn 2 > project/notes/take_note turn 1"):
        assert main(["runs", "last", "--prompt", named]) == 0
        assert "Write abc into notes.txt." in said()[0]
        assert main(["runs", "why", "last", named]) == 0
        assert said()[0].startswith("turn 2 › project/notes/take_note turn 1")
    assert main(["runs", "last", "--prompt", "9"]) == 2
    assert "turn 9 does not exist" in said()[1]


def test_doctor_knows_spaces_signatures_and_keys(said: Said, project: Path) -> None:
    found = {one["what"]: (one["state"], one["detail"]) for one in json_of(said, "doctor")}
    assert found["documents of the project folder"][1].startswith("3 directives, 1 knowledge item (")
    assert found["signatures"] == ("ok", "all 4 are signed by keys that you trust")
    assert found["keys"][0] == "ok" and found["keys"][1].startswith("default (")
    given({LEAF_FILE: LEAF}, project)
    found = {one["what"]: (one["state"], one["detail"]) for one in json_of(said, "doctor")}
    assert found["signatures"][0] == "missing"
    assert "directive project/deploy/deploy_staging (unsigned)" in found["signatures"][1]


@pytest.mark.parametrize("name", ["file__read", "rye/file-system/read", "rye.file-system.fs_read"])
def test_every_name_of_a_tool_is_one_capability(said: Said, project: Path, name: str) -> None:
    """newcomer M7: `show`, `can` and the start agree about a permission that is written as `file__read`."""
    leaf = project / LEAF_FILE
    leaf.write_text(leaf.read_text().replace("rye.file-system.*", name))
    assert main(["show", "deploy_staging"]) == 0
    line = f"  rye.execute.tool.rye.file-system.read  safe      {LEAF_FILE}:{PERMISSIONS_LINE}"
    assert line in said()[0].splitlines()
    assert main(["can", "deploy_staging", "execute", "tool", "file__read"]) == 0
    assert main(["can", "deploy_staging", "execute", "tool", "file__write"]) == 6
