"""Directives on the command line: found by name, run, stopped by limits, refused, answered, killed and resumed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Said, json_of
from tests.cli.directive_project import (
    LEAF,
    LEAF_FILE,
    PERMISSIONS_LINE,
    SCRIPT,
    call,
    put_script,
    sign_all,
    write_directives,
)
from tests.given import given
from tests.processes import started, wait_until

from quire.cli import main
from quire.engine.interpreter.thread.compose import Bundle
from quire.errors import Untrusted
from quire.runs.runtime import Runtime

SCRIPTED = ("--script", "replies.json")
OUTPUTS = {"path": "report.txt", "ok": True}
PATIENCE = 20.0


@pytest.fixture(autouse=True)
def project(workspace: Path) -> Path:
    write_directives(workspace)
    return workspace


def last_line(out: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", [LEAF_FILE, "project/deploy/deploy_staging", "deploy_staging"])
def test_by_file_by_id_and_by_its_name(said: Said, project: Path, name: str) -> None:
    assert main(["run", name, "-i", "target=eu", *SCRIPTED]) == 0
    out, err = said()
    assert json.loads(out) == OUTPUTS
    assert "model: script:" in err and "(--script)" in err
    assert err.splitlines()[-1] == "Deployed to eu."
    assert (project / "notes.txt").read_text() == "abc"


def test_a_file_wins_over_a_name(said: Said, project: Path) -> None:
    (project / "deploy_staging").write_text("# A file\n\n## STEP 1: A\n\nGo.\n")
    put_script(project, "the file")
    assert main(["run", "deploy_staging", "-q", *SCRIPTED]) == 0
    assert said()[0] == "the file\n"


def test_a_playbook_by_its_name(said: Said, project: Path) -> None:
    given({"playbooks/team/tea.playbook.md": "# Tea\n\n## STEP 1: A\n\nGo.\n"}, project)
    put_script(project, "brewed", "again")
    for name in ("tea", "team/tea"):
        assert main(["run", name, "-q", *SCRIPTED]) == 0
        assert said()[0] == "brewed\n"


def test_a_name_that_means_several_things_lists_them(said: Said, project: Path) -> None:
    (project / "deploy_staging.playbook.md").write_text("# P\n\n## STEP 1: A\n\nGo.\n")
    other = project / ".ai" / "directives" / "other" / "deploy_staging.md"
    other.parent.mkdir()
    other.write_text(LEAF.replace("project/deploy</category", "other</category"))
    assert main(["run", "deploy_staging"]) == 2
    err = said()[1]
    assert "deploy_staging means several things: the playbook deploy_staging (deploy_staging.playbook.md)" in err
    assert f"the directive project/deploy/deploy_staging ({LEAF_FILE})" in err
    assert "the directive other/deploy_staging (" in err


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("deploy_stagin", "did you mean project/deploy/deploy_staging?"),
        ("project/deploy/deploy_stging", "did you mean project/deploy/deploy_staging?"),
    ],
)
def test_a_name_that_is_nearly_right(said: Said, name: str, hint: str) -> None:
    assert main(["run", name]) == 2
    assert hint in said()[1]


@pytest.mark.parametrize(
    ("limit", "problem"),
    [
        ("turm=2", "unknown limit turm"),
        ("turns=x", '"x" is not an integer'),
        ("spend=-1", "is not between 0"),
        ("turns", "write NAME=VALUE"),
    ],
)
def test_a_wrong_limit_is_one_line(said: Said, limit: str, problem: str) -> None:
    assert main(["run", "deploy_staging", "--limit", limit, *SCRIPTED]) == 2
    err = said()[1]
    assert problem in err and err.count("\n") == 1


def test_limits_are_for_directives(said: Said, project: Path) -> None:
    (project / "p.playbook.md").write_text("# P\n\n## STEP 1: A\n\nGo.\n")
    assert main(["run", "p.playbook.md", "--limit", "turns=1", *SCRIPTED]) == 2
    assert "--limit is for directives" in said()[1]
    put_script(project, "x")
    assert main(["run", "p.playbook.md", "-q", *SCRIPTED, "--break", "1"]) == 4
    said()
    assert main(["resume", "last", "--limit", "turns=1"]) == 2
    assert "--limit is for directives" in said()[1]


def test_a_limit_that_is_reached_and_raised(said: Said, project: Path) -> None:
    assert main(["run", "deploy_staging", "-i", "target=eu", "-q", "--limit", "turns=2", *SCRIPTED]) == 5
    out, err = said()
    assert out == ""
    lines = err.splitlines()
    assert lines[-3:-1] == ["Could not deploy to eu.", "failed at turn 3: limit reached: turns 2 of 2"]
    command = lines[-1].removeprefix("to continue: quire ").split()
    assert command[0] == "resume" and command[2:] == ["--limit", "turns=4"]
    (project / "report.txt").write_text("changed since")
    assert main(["resume", "last"]) == 5
    assert main(command) == 0
    assert json.loads(said()[0]) == OUTPUTS
    assert (project / "report.txt").read_text() == "changed since"


def test_a_limit_that_is_given_later_holds_for_the_rest_of_the_run(said: Said, project: Path) -> None:
    assert main(["run", "deploy_staging", "-i", "target=eu", "-q", "--limit", "turns=1", *SCRIPTED]) == 5
    said()
    assert main(["resume", "last", "-q", "--limit", "turns=2", "--limit", "spawns=9"]) == 5
    assert "limit reached: turns 2 of 2" in said()[1]
    assert main(["resume", "last", "-q"]) == 5
    assert "limit reached: turns 2 of 2" in said()[1]
    assert json_of(said, "runs", "last")["limits"]["spawns"] == 9
    (terms,) = [one for one in json_of(said, "runs", "last", "--journal") if one["path"] == "terms"]
    assert (terms["kind"], terms["state"]) == ("terms", "ok")
    assert main(["resume", "last", "-q", "--limit", "turns=none"]) == 0
    assert json.loads(said()[0]) == OUTPUTS
    assert main(["runs", "export", "last", "-o", "run.jsonl"]) == 0
    assert main(["runs", "verify", "run.jsonl"]) == 0
    said()


def test_a_fork_has_the_limits_that_its_run_has_by_now(said: Said, project: Path) -> None:
    assert main(["run", "deploy_staging", "-i", "target=eu", "-q", "--limit", "turns=1", *SCRIPTED]) == 5
    assert main(["resume", "last", "-q", "--limit", "turns=2"]) == 5
    said()
    assert main(["fork", "last", "--from", "2", "-q"]) == 5
    assert "limit reached: turns 2 of 2" in said()[1]
    assert main(["fork", "last", "--from", "2", "-q", "--limit", "turns=6"]) == 0
    assert json.loads(said()[0]) == OUTPUTS


def test_a_budget_of_a_directive_that_is_used_up(said: Said) -> None:
    assert main(["run", "deploy_staging", "-i", "target=eu", "--limit", "spend=0.005", "--json", *SCRIPTED]) == 5
    result = last_line(said()[0])
    assert result["limit_type"] == "spend_exceeded"
    assert result["error"]["kind"] == "spend_exceeded"


def test_the_result_as_json(said: Said) -> None:
    assert main(["run", "deploy_staging", "-i", "target=eu", "--json", *SCRIPTED]) == 0
    result = last_line(said()[0])
    assert (result["outputs"], result["output"], result["result"]) == (OUTPUTS, OUTPUTS, "Done.")
    assert (result["closing_message"], result["limit_type"]) == ("Deployed to eu.", None)
    assert (result["cost"], result["used"]["turns"], result["used"]["spawns"]) == (0.01, 3, 1)
    assert list(result["steps"]) == [
        "turn 1",
        "turn 2",
        "project/notes/take_note turn 1",
        "project/notes/take_note turn 2",
        "turn 3",
    ]


def test_without_outputs_the_text_is_the_output(said: Said, project: Path) -> None:
    leaf = project / LEAF_FILE
    text = leaf.read_text()
    leaf.write_text(text[: text.index("<outputs>")] + text[text.index("</outputs>") + 10 :])
    sign_all(project)
    put_script(project, {"tool_calls": [call("rye_file_system_ls", path=".")]}, "all is well")
    assert main(["run", "deploy_staging", "-i", "target=eu", "-q", *SCRIPTED]) == 0
    assert said() == ("all is well\n", "")


def test_what_was_denied_says_where_and_how(said: Said) -> None:
    assert main(["run", "deploy_staging", "-i", "target=eu", *SCRIPTED]) == 0
    err = said()[1]
    assert "! rye/web/fetch denied: rye/web/fetch needs the capability rye.execute.tool.rye.web.fetch" in err
    assert f"rye.execute.tool.rye.web.fetch is not among the permissions at {LEAF_FILE}:{PERMISSIONS_LINE}" in err
    assert "write <execute><tool>rye.web.fetch</tool></execute> there" in err
    assert f"sign the file again: quire sign {LEAF_FILE}\n" in err


def test_an_unsigned_one_is_refused(said: Said, project: Path) -> None:
    leaf = project / LEAF_FILE
    leaf.write_text(leaf.read_text() + "\n")
    assert main(["run", "deploy_staging", "-i", "target=eu", *SCRIPTED]) == 6
    assert "was modified since it was signed" in said()[1]


@pytest.mark.parametrize(("folder", "up"), [(".", ""), ("src/deep", "../../")])
def test_a_refusal_says_what_to_sign_from_here(
    said: Said, project: Path, monkeypatch: pytest.MonkeyPatch, folder: str, up: str
) -> None:
    leaf = project / LEAF_FILE
    leaf.write_text(leaf.read_text() + "\n")
    (project / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(project / folder)
    assert main(["run", "deploy_staging", "-i", "target=eu", "--script", f"{up}replies.json"]) == 6
    assert said()[1].endswith(f"then sign it again: quire sign {up}{LEAF_FILE}\n")


def test_a_copy_that_is_refused_says_what_helps_a_directive(said: Said, project: Path) -> None:
    fetch = "</execute>\n      <fetch><directive>*</directive><knowledge>*</knowledge></fetch>"
    (project / LEAF_FILE).write_text(LEAF.replace("</execute>", fetch))
    sign_all(project)
    wanted = {"item_type": "directive", "item_id": "rye/core/create_directive", "destination": "project"}
    known = {"item_type": "knowledge", "item_id": "rye/agent/core/Identity"}
    copies = (wanted, {**known, "destination": "project"}, {**known, "destination": "user"})
    end = {"tool_calls": [call("directive_return", path="x")]}
    put_script(project, *({"tool_calls": [call("rye_fetch", **one)]} for one in copies), end)
    run = ["run", "deploy_staging", "-i", "target=eu", *SCRIPTED]
    assert main(run) == 0
    denied = [line for line in said()[1].splitlines() if line.startswith("denied: ")]
    place = f"{LEAF_FILE}:{PERMISSIONS_LINE}"
    element = "<sign><directive>rye/core/create_directive</directive></sign>"
    grant = "needs a grant for the folder .ai; grant it to a new run with --allow file__write=.ai"
    assert denied == [
        f"denied: writing .ai/directives/rye/core/create_directive.md {grant}, or write {element} into the permissions "
        f"at {place} and sign that again",
        f"denied: writing .ai/knowledge/rye/agent/core/Identity.md {grant}",
        "denied: copying into your user folder needs a grant; grant it to a new run with --allow file__write=user:.ai",
    ]
    assert main([*run, "--allow", "file__write=.ai", "--allow", "file__write=user:.ai"]) == 0
    assert "denied" not in said()[1]
    assert (project / ".ai" / "knowledge" / "rye" / "agent" / "core" / "Identity.md").is_file()
    (project / ".ai" / "directives" / "rye" / "core" / "create_directive.md").unlink()
    (project / LEAF_FILE).write_text(LEAF.replace("</execute>", f"{fetch}\n      {element}"))
    sign_all(project)
    put_script(project, {"tool_calls": [call("rye_fetch", **wanted)]}, end)
    assert main(run) == 0
    assert "denied" not in said()[1]


def test_missing_inputs_without_a_terminal(said: Said) -> None:
    assert main(["run", "deploy_staging", *SCRIPTED]) == 2
    assert "missing required input target (string): Where to" in said()[1]


def test_the_directive_chooses_its_model(said: Said, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "quire.toml").write_text('[models.tiers]\nsonnet = "script:replies.json"\n')
    assert main(["run", "deploy_staging", "-i", "target=eu"]) == 0
    assert "model: script:replies.json (the directive's tier sonnet: [models.tiers] sonnet)" in said()[1]


def test_a_directive_that_is_called_has_the_settings_of_its_tier(project: Path) -> None:
    tier = '[models.tiers.sonnet]\nmodel = "openai:m"\ntemperature = 0.5\nmax_tokens = 9\n'
    (project / "quire.toml").write_text(tier)
    bundle = Runtime.open(project).directives.gathering(one_model=False).gather("deploy_staging")
    assert bundle is not None
    assert (bundle.model, bundle.settings) == ("openai:m", {"temperature": 0.5, "max_tokens": 9})
    assert Bundle.of(bundle.encoded()) == bundle


@pytest.mark.parametrize("model", ["http://127.0.0.1:9/v1#m", "local:./evil.gguf"])
def test_a_directive_that_is_called_does_not_use_a_model_of_a_clone(project: Path, model: str) -> None:
    (project / "quire.toml").write_text(f'[models.tiers]\nsonnet = "{model}"\n')
    with pytest.raises(Untrusted, match="as the model sonnet"):
        Runtime.open(project).directives.gathering(one_model=False).gather("deploy_staging")


def test_turns_as_lines(said: Said) -> None:
    assert main(["run", "deploy_staging", "-i", "target=eu", *SCRIPTED]) == 0
    lines = [line.partition(" (")[0] for line in said()[1].splitlines()]
    assert lines[1:] == [
        "[turn 1] Writing the report.",
        '  > rye/file-system/write path="report.txt" content="hello"',
        '  > rye/web/fetch url="https://example.com"',
        '  < rye/file-system/write {"path":"report.txt","bytes":5,"created":true}',
        "  ! rye/web/fetch denied: rye/web/fetch needs the capability rye.execute.tool.rye.web.fetch",
        "[turn 2] A helper.",
        '  > rye/agent/threads/thread_directive directive_id="project/notes/take_note" inputs={"text":"abc"}',
        "  [turn 2 › project/notes/take_note turn 1]",
        '    > rye/file-system/write path="notes.txt" content="abc"',
        '    < rye/file-system/write {"path":"notes.txt","bytes":3,"created":true}',
        "  [turn 2 › project/notes/take_note turn 2]",
        '    > directive_return file="notes.txt"',
        *[line for line in lines if line.startswith('  < project/notes/take_note {"success":true')],
        "[turn 3] Done.",
        '  > directive_return path="report.txt" ok=true',
        *lines[-3:],
    ]


def test_a_turn_that_calls_a_playbook_is_shown_once(said: Said, project: Path) -> None:
    permissions = "<tool>ask</tool>\n      </execute>"
    text = LEAF.replace(permissions, "<playbook>*</playbook>" + permissions)
    given({LEAF_FILE: text, "hello.playbook.md": "# Hello\n\n## STEP 1: A\n\nSay hello.\n"}, project)
    sign_all(project)
    put_script(
        project,
        {"tool_calls": [call("rye_execute", item_type="playbook", item_id="hello", parameters={})]},
        "hello there",
        {"tool_calls": [call("directive_return", path="none")]},
    )
    assert main(["run", "deploy_staging", "-i", "target=eu", *SCRIPTED]) == 0
    err = said()[1]
    assert (err.count("[turn 1]"), err.count("> hello"), err.count('< hello "hello there"')) == (1, 1, 1)


def test_the_tool_ask_waits_in_the_inbox(said: Said, project: Path) -> None:
    put_script(
        project,
        {"tool_calls": [call("ask", prompt="Which colour?", type="select", options=["red", "blue"])]},
        {"tool_calls": [call("directive_return", path="x")]},
    )
    assert main(["run", "deploy_staging", "-i", "target=eu", "-q", *SCRIPTED]) == 4
    assert "turn 1 (ask) asks: Which colour?" in said()[1]
    assert main(["inbox"]) == 0
    assert "turn 1 (select): Which colour?" in said()[0]
    assert main(["answer", "last", "2", "-q"]) == 0
    assert json.loads(said()[0]) == {"path": "x"}
    assert main(["runs", "last", "--transcript", "json"]) == 0
    calls = json.loads(said()[0])["threads"][0]["turns"][0]["calls"]
    assert [one["result"] for one in calls] == ['"blue"']


def test_stopping_after_a_turn_and_answering_beforehand(said: Said, project: Path) -> None:
    assert main(["run", "deploy_staging", "-i", "target=eu", "-q", "--break", "2", *SCRIPTED]) == 2
    assert "2 is not a step of a directive: its steps are turn 1" in said()[1]
    assert main(["run", "deploy_staging", "-i", "target=eu", "-q", "--break", "turn 1", *SCRIPTED]) == 4
    assert "paused after turn 1" in said()[1]
    assert main(["resume", "last", "-q", "--set", "hint=be quick"]) == 0
    said()
    assert main(["runs", "last", "--transcript", "json"]) == 0
    assert json.loads(said()[0])["threads"][0]["turns"][1]["told"] == ["A person adds:\nhint: be quick"]
    asks = {"tool_calls": [call("ask", prompt="Sure?", type="confirm")]}
    put_script(project, asks, {"tool_calls": [call("directive_return", path="x")]})
    given = ["-i", "target=eu", "-q", "--answer", "turn 1=yes"]
    assert main(["run", "deploy_staging", *given, *SCRIPTED]) == 0


@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("no", 3)])
def test_a_hook_that_escalates_waits_for_a_person(said: Said, project: Path, answer: str, code: int) -> None:
    hooks = project / ".ai" / "config" / "agent" / "hooks.yaml"
    hooks.parent.mkdir(parents=True)
    hooks.write_text(
        "hooks:\n  - {id: halfway, event: after_step, condition: {path: directive, op: contains, value: deploy},\n"
        "     action: {primary: execute, item_type: tool, item_id: rye/agent/threads/internal/control,\n"
        "       params: {action: escalate, message: look here}}}\n"
    )
    put_script(project, SCRIPT[0], SCRIPT[-1])
    assert main(["run", "deploy_staging", "-i", "target=eu", "-q", *SCRIPTED]) == 6
    assert "add the hooks of .ai/config/agent/hooks.yaml" in said()[1]
    assert main(["trust", "workspace", "--yes"]) == 0
    assert main(["run", "deploy_staging", "-i", "target=eu", "-q", *SCRIPTED]) == 4
    assert main(["inbox", "--json"]) == 0
    out = said()[0]
    (question,) = json.loads(out[out.index("[") :])
    assert (question["step"], question["kind"], question["default"]) == ("turn 1", "confirm", "no")
    assert "look here" in question["prompt"]
    assert main(["answer", "last", answer, "-q"]) == code


def test_a_hook_that_ends_the_thread_over_a_denial(said: Said, project: Path) -> None:
    hook = (
        '<hook id="strict" event="error"><condition path="error.type" op="eq" value="permission_denied" />'
        '<action primary="execute" item_type="tool" item_id="rye/agent/threads/internal/control">'
        '<param name="action">fail</param></action></hook>'
    )
    given({LEAF_FILE: LEAF.replace("<permissions>", f"<hooks>{hook}</hooks><permissions>")}, project)
    sign_all(project)
    assert main(["run", "deploy_staging", "-i", "target=eu", "-q", *SCRIPTED]) == 6
    err = said()[1]
    assert f"rye.execute.tool.rye.web.fetch is not among the permissions at {LEAF_FILE}:{PERMISSIONS_LINE}" in err
    assert "failed at turn 1: permission denied: rye/web/fetch needs the capability" in err
    assert "quire resume" not in err


def test_killed_in_the_middle_no_call_is_made_again(said: Said, project: Path) -> None:
    (project / "log.txt").write_text("START")
    first = [
        {"tool_calls": [call("rye_file_system_edit", path="log.txt", old="START", new="START one")]},
        {"tool_calls": [call("rye_file_system_write", path="two.txt", content="2")]},
    ]
    last = {"tool_calls": [call("directive_return", path="two.txt")]}
    put_script(project, *first, {**last, "delay_ms": 600_000})
    quire = [sys.executable, "-m", "quire", "run", "deploy_staging", "-i", "target=eu", "-q", *SCRIPTED]
    with started(quire, stderr=subprocess.DEVNULL):
        wait_until(lambda: _turns_begun(said) >= 3, patience=PATIENCE)
    put_script(project, *first, last)
    assert main(["resume", "last", "-q"]) == 0
    assert json.loads(said()[0]) == {"path": "two.txt"}
    assert (project / "log.txt").read_text() == "START one"


def _turns_begun(said: Said) -> int:
    if main(["runs", "last", "--json"]) != 0:
        said()
        return 0
    return len(json.loads(said()[0])["steps"])
