"""The four complete directives of the guide that the format comes from, as they stand there: signed, then run to their
ends by the command line, with real files, real signatures and a real shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.examples.command import Desk, calls, desk, give, need_sandbox

from quire.values import Value

GUIDES = sorted((Path(__file__).parents[3] / "shared" / "seeds").glob("002*.txt"))
pytestmark = pytest.mark.skipif(not GUIDES, reason="the guide to directives is not here: ../shared/seeds/002*.txt")

PLACES = {
    "directive_name": ("<!-- rye:signed:TIMESTAMP", "Key Rules", "category/path/directive_name"),
    "create_directive": ("# Create Directive\n", "What to notice", "rye/core/create_directive"),
    "create_threaded_directive": ("<!-- rye:signed:2026-02-10", "What to notice", "rye/core/create_threaded_directive"),
    "deploy_staging": ("<!-- rye:signed:2026-02-24", "What to notice", "project/deploy/deploy_staging"),
}
"""How each of them begins in the guide, what comes after it, and its id."""


def made(name: str, category: str, permissions: str) -> str:
    """What a model would write that was asked for a directive."""
    return (
        f'# {name}\n\n```xml\n<directive name="{name}" version="1.0.0">\n<metadata><description>Say hello</description>'
        f"<category>{category}</category><author>model</author>"
        f'<model tier="low" /><limits turns="6" tokens="4096" spend="0.05" /><permissions>{permissions}</permissions>'
        "</metadata>\n</directive>\n```\n\nSay hello.\n"
    )


@pytest.fixture
def printed(tmp_path: Path) -> Desk:
    """A workspace with all four as the guide has them, and the two knowledge items that one of them names."""
    found = desk(tmp_path)
    guide = GUIDES[0].read_text(encoding="utf-8")
    for begins, ends, item_id in PLACES.values():
        at = guide.index(begins)
        found.write(f".ai/directives/{item_id}.md", guide[at : guide.index(ends, at)].rstrip() + "\n")
    for name in ("environment-rules", "completion-checklist"):
        head = f'```yaml\nname: {name}\ntitle: T\nversion: "1.0.0"\nentry_type: reference\n```\n'
        found.write(f".ai/knowledge/project/deploy/{name}.md", f"{head}\nMind the {name}.\n")
    return found


@pytest.fixture
def signed(printed: Desk) -> Desk:
    printed.sign()
    return printed


def path_of(name: str) -> str:
    return f".ai/directives/{PLACES[name][2]}.md"


@pytest.mark.parametrize("name", PLACES)
def test_none_of_them_runs_as_it_is_printed(name: str, printed: Desk) -> None:
    refused = printed.quire("run", path_of(name), "--script", printed.script("Done."), *_inputs(name))
    assert refused.returncode == 6, refused.stderr
    assert "is unsigned" in refused.stderr
    assert "quire sign" in refused.stderr


def _inputs(name: str) -> list[str]:
    given = {
        "directive_name": ["param_name=x"],
        "create_directive": ["name=greet_team", "category=workflows", "description=Say hello"],
        "create_threaded_directive": [
            "name=tidy_notes",
            "category=project/notes",
            "description=Tidy",
            "complexity=simple",
            "permissions_needed=rye.execute.tool.rye.file-system.*",
        ],
        "deploy_staging": ["target=staging-us-east-1"],
    }
    return [part for one in given[name] for part in ("-i", one)]


def test_the_anatomy(signed: Desk) -> None:
    script = signed.script(
        calls(("rye_execute", _write("notes/x.txt", "value"))),
        give(result_name="notes/x.txt"),
    )
    done = signed.fine("run", "directive_name", "--script", script, *_inputs("directive_name"))
    assert json.loads(done) == {"result_name": "notes/x.txt"}
    assert (signed.folder / "notes/x.txt").read_text() == "value"
    (thread,) = signed.transcript()
    assert '<output name="result_name">Description</output>' in thread["message"]
    assert "<criterion>Measurable success condition</criterion>" in thread["message"]
    assert {"rye/file-system/write", "rye/fetch", "rye/sign", "directive_return"} <= set(thread["tools"])
    assert "rye/bash" not in thread["tools"]


def test_create_directive_with_its_process_inside_the_fence(signed: Desk) -> None:
    path, text = ".ai/directives/workflows/greet_team.md", made("greet_team", "workflows", "<fetch>directive.*</fetch>")
    script = signed.script(
        calls(("rye_fetch", {"scope": "directive", "query": "greet_team"})),
        calls(("rye_execute", {**_write(path, text), "item_id": "rye/file-system/fs_write"})),
        calls(("rye_sign", {"item_type": "directive", "item_id": "greet_team"})),
        "It is there.",
    )
    done = signed.quire("run", path_of("create_directive"), "--script", script, *_inputs("create_directive"))
    assert (done.returncode, done.stdout) == (0, "It is there.\n"), done.stderr
    assert "Created directive: greet_team at .ai/directives/workflows/greet_team.md (v1.0.0)." in done.stderr
    signed.fine("verify", path)
    (thread,) = signed.transcript()
    told = thread["message"]
    assert '`rye_fetch(query="greet_team", scope="directive")`' in told
    assert '`rye_sign(item_type="directive", item_id="greet_team")`' in told
    assert "Directive file created at .ai/directives/workflows/greet_team.md" in told
    found, written, sealed = (json.loads(turn["calls"][0]["result"]) for turn in thread["turns"][:3])
    assert found["mode"] == "query" and found["status"] == "success"
    assert written["created"] is True
    assert sealed["status"] == "signed" and sealed["item_id"] == "workflows/greet_team"
    assert signed.fine("run", "greet_team", "--script", signed.script("Hello.", "Hello.")) == "Hello.\n"


def test_create_threaded_directive(signed: Desk) -> None:
    path = ".ai/directives/project/notes/tidy_notes.md"
    text = made("tidy_notes", "project/notes", "<execute><tool>rye.file-system.*</tool></execute>")
    script = signed.script(
        calls(("rye_fetch", {"query": "tidy_notes project/notes", "scope": "directive"})),
        calls(("rye_fetch", {"item_type": "directive", "item_id": "rye/core/create_threaded_directive"})),
        calls(("rye_file_system_write", {"path": path, "content": text})),
        calls(("rye_sign", {"item_type": "directive", "item_id": "project/notes/tidy_notes"})),
        give(directive_path=path, signed=True),
    )
    run = ("run", path_of("create_threaded_directive"), "--script", script)
    assert json.loads(signed.fine(*run, *_inputs("create_threaded_directive"))) == {
        "directive_path": path,
        "signed": True,
    }
    signed.fine("verify", path)
    (thread,) = signed.transcript()
    itself = json.loads(thread["turns"][1]["calls"][0]["result"])
    assert itself["source"] == "project" and "Create Threaded Directive" in itself["content"]
    assert "Map simple to default limits" in thread["message"]


def test_what_it_creates_may_not_do_more_than_it_may(signed: Desk) -> None:
    path = ".ai/directives/project/notes/tidy_notes.md"
    text = made("tidy_notes", "project/notes", "<execute><tool>rye.bash</tool></execute>")
    script = signed.script(
        calls(("rye_file_system_write", {"path": path, "content": text})),
        calls(("rye_sign", {"item_type": "directive", "item_id": "project/notes/tidy_notes"})),
        give(directive_path=path, signed=False),
    )
    run = ("run", path_of("create_threaded_directive"), "--script", script)
    signed.fine(*run, *_inputs("create_threaded_directive"))
    (thread,) = signed.transcript()
    refused = thread["turns"][1]["calls"][0]
    assert "it may do what this run may not: rye.execute.tool.rye.bash" in refused["result"] + refused["error"]
    assert signed.quire("verify", path).returncode == 6


def test_deploy_staging_in_a_real_shell(signed: Desk) -> None:
    need_sandbox()
    signed.write(".ai/config/deploy/staging-us-east-1.yaml", "region: us-east-1\n")
    script = signed.write("scripts/deploy.sh", '#!/bin/sh\nset -eu\necho "$1" >> deployed.txt\necho "deployed to $1"\n')
    script.chmod(0o755)
    config = ".ai/config/deploy/staging-us-east-1.yaml"
    shell = {"command": "./scripts/deploy.sh staging-us-east-1"}
    replies = signed.script(
        calls(
            ("rye_execute", {"item_type": "tool", "item_id": "rye/file-system/read", "parameters": {"path": config}})
        ),
        calls(("rye_execute", {"item_type": "tool", "item_id": "rye/bash", "parameters": shell})),
        "Deployed.",
    )
    assert signed.fine("run", "deploy_staging", "--script", replies, *_inputs("deploy_staging")) == "Deployed.\n"
    assert (signed.folder / "deployed.txt").read_text() == "staging-us-east-1\n"
    (thread,) = signed.transcript()
    read, ran = (turn["calls"][0]["result"] for turn in thread["turns"][:2])
    assert "region: us-east-1" in read
    assert "deployed to staging-us-east-1" in ran
    assert "one written document" in thread["system"]  # the Identity of the built-in base
    told = thread["message"]
    assert told.index("Mind the environment-rules.") < told.index("<directive") < told.index("completion-checklist.")
    assert 'parameters={"command": "./scripts/deploy.sh staging-us-east-1"}' in told


def _write(path: str, content: str) -> dict[str, Value]:
    parameters: Value = {"path": path, "content": content}
    return {"item_type": "tool", "item_id": "rye/file-system/write", "parameters": parameters}
