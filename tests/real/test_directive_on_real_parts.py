"""A directive on real parts: an MCP server, the shell in its sandbox and out of it, a process that dies, a model file.

Everything is signed with a real key and run by the command line in processes of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.depth import depth
from tests.directives import directive as directive_text
from tests.examples.command import Desk, calls, desk, give, need_sandbox
from tests.given import given
from tests.processes import started

from quire.models.downloads import pulled_model
from quire.values import Value

LARGER = "qwen2.5-coder-1.5b"


@pytest.fixture
def work(tmp_path: Path) -> Desk:
    return desk(tmp_path)


def directive(name: str, body: str, *, permissions: str, meta: str = "", outputs: str = "") -> str:
    return directive_text(name, permissions, body, description=name, category="desk", meta=meta, more=outputs)


def add(work: Desk, name: str, body: str, *, permissions: str, meta: str = "", outputs: str = "") -> None:
    text = directive(name, body, permissions=permissions, meta=meta, outputs=outputs)
    work.write(f".ai/directives/desk/{name}.md", text)


def tools(*names: str, acknowledge: bool = False) -> str:
    """Permissions to execute tools."""
    held = "".join(f"<tool>{name}</tool>" for name in names)
    known = '<acknowledge risk="elevated">It is a test.</acknowledge>' if acknowledge else ""
    return f"<execute>{held}</execute>{known}"


TIME = {"mcpServers": {"time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]}}}
NOW: tuple[str, Value] = ("mcp_time_get_current_time", {"timezone": "UTC"})
CONVERT: tuple[str, Value] = (
    "mcp_time_convert_time",
    {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
)


def test_tools_of_a_real_mcp_server(work: Desk) -> None:
    work.write(".mcp.json", json.dumps(TIME))
    add(work, "tell_time", "Say what time it is.", permissions=tools("mcp/time/*", acknowledge=True))
    work.sign()
    run = ("run", "tell_time", "--script", work.script(calls(NOW, CONVERT), "It is noon."))
    refused = work.quire(*run)
    assert refused.returncode == 6 and "quire trust workspace" in refused.stderr
    work.fine("trust", "workspace", "--yes")
    assert work.fine(*run) == "It is noon.\n"
    (thread,) = work.transcript()
    assert {"mcp/time/get_current_time", "mcp/time/convert_time"} <= set(thread["tools"])
    now, tokyo = (call["result"] for call in thread["turns"][0]["calls"])
    assert "UTC" in now and "21:00" in tokyo


def test_one_tool_of_a_server_is_not_the_other(work: Desk) -> None:
    work.write(".mcp.json", json.dumps(TIME))
    add(work, "tell_time", "Say it.", permissions=tools("mcp/time/get_current_time", acknowledge=True))
    work.sign()
    work.fine("trust", "workspace", "--yes")
    by_id = ("mcp/time/convert_time", CONVERT[1])
    done = work.quire("run", "tell_time", "--script", work.script(calls(NOW, by_id), "It is noon."))
    assert done.returncode == 0
    assert "denied: rye.execute.tool.mcp.time.convert_time" in done.stderr
    (thread,) = work.transcript()
    assert "mcp/time/convert_time" not in thread["tools"]
    now, refused = thread["turns"][0]["calls"]
    assert "UTC" in now["result"] and not now["error"]
    assert "21:00" not in refused["result"] and "permission denied" in refused["result"]


LOOKING = """
touch written.txt
test -e "$SECRET_FOLDER/key.txt" && echo "sees the other folder" || echo "does not see it"
touch "$SECRET_FOLDER/added.txt" 2>/dev/null && echo "wrote there" || echo "cannot write there"
(echo "x" > quire.toml) 2>/dev/null && echo "changed the settings" || echo "cannot change the settings"
"""


def test_bash_in_the_sandbox(work: Desk, tmp_path: Path) -> None:
    need_sandbox()
    secret = _secret(tmp_path)
    add(work, "look_around", "Look.", permissions=tools("rye.bash", acknowledge=True))
    work.sign()
    look = LOOKING.replace("$SECRET_FOLDER", str(secret))
    work.fine("run", "look_around", "--script", work.script(calls(("rye_bash", {"command": look})), "Done."))
    (thread,) = work.transcript()
    told = thread["turns"][0]["calls"][0]["result"]
    assert "does not see it" in told and "cannot write there" in told and "cannot change the settings" in told
    assert (work.folder / "written.txt").exists()
    assert not (secret / "added.txt").exists()
    assert (work.folder / "quire.toml").read_text() == ""


def test_bash_without_a_sandbox_only_where_the_user_says_so(work: Desk, tmp_path: Path) -> None:
    secret = _secret(tmp_path)
    add(work, "look_around", "Look.", permissions=tools("rye.bash", acknowledge=True))
    work.sign()
    look = LOOKING.replace("$SECRET_FOLDER", str(secret)).partition("(echo")[0]
    script = work.script(calls(("rye_bash", {"command": look})), "Done.")
    work.fine("run", "look_around", "--script", script, "--allow", "shell=unsandboxed")
    (thread,) = work.transcript()
    told = thread["turns"][0]["calls"][0]["result"]
    assert "sees the other folder" in told and "wrote there" in told
    assert (secret / "added.txt").exists()


def test_no_sandbox_no_bash(work: Desk, tmp_path: Path) -> None:
    """Where bubblewrap does not work, the call is refused and the model is told; nothing runs."""
    add(work, "look_around", "Look.", permissions=tools("rye.bash", acknowledge=True))
    work.sign()
    broken = tmp_path / "bin" / "bwrap"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho no namespaces >&2; exit 1\n")
    broken.chmod(0o755)
    script = work.script(calls(("rye_bash", {"command": "touch ran.txt"})), "Done.")
    command = [sys.executable, "-m", "quire", "run", "look_around", "--script", script]
    path = f"{broken.parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(command, cwd=work.folder, env={**work.environ, "PATH": path}, check=False, capture_output=True)
    (thread,) = work.transcript()
    assert "not available here" in thread["turns"][0]["calls"][0]["result"]
    assert not (work.folder / "ran.txt").exists()


def _secret(folder: Path) -> Path:
    secret = folder / "elsewhere"
    return given({"key.txt": "secret"}, secret)


COUNTING = """import quire


@quire.tool
def count(word: str) -> str:
    with open("counted.txt", "a") as file:
        file.write(word + "\\n")
    return word
"""


def test_kill_9_in_a_thread_and_no_call_is_made_again(work: Desk) -> None:
    """Two turns are done and the third is being thought about when the process dies. One turn had two calls at once."""
    work.write("counting.py", COUNTING)
    work.write("quire.toml", '[tools]\nmodules = ["counting"]\n')
    outputs = '<outputs><output name="last" type="string" required="true" /></outputs>'
    add(work, "count_words", "Count.", permissions=tools("python/count", acknowledge=True), outputs=outputs)
    work.sign()
    work.fine("trust", "workspace", "--yes")
    script = work.script(
        {"step": "turn 1", "tool_calls": [_count("one")]},
        {"step": "turn 2", "tool_calls": [_count("two"), _count("three")]},
        {"step": "turn 3", "delay_ms": 600_000, "reply": "Never said."},
    )
    command = [sys.executable, "-m", "quire", "run", "count_words", "--script", script, "--json"]
    with started(command, cwd=work.folder, env=work.environ, stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout or ():
            event = json.loads(line)
            if event["type"] == "step_started" and event["step"] == "turn 3":
                break
    counted = work.folder / "counted.txt"
    before_the_kill = counted.read_text().split()
    assert before_the_kill in (["one", "two", "three"], ["one", "three", "two"]), "calls of one turn end in any order"
    assert [row["status"] for row in json.loads(work.fine("runs", "--json"))] == ["interrupted"]
    before = work.effects()
    assert {"thread/turn[1]/tool[0]/tool", "thread/turn[2]/tool[0]/tool", "thread/turn[2]/tool[1]/tool"} <= set(before)
    later = work.script(
        {"step": "turn 3", "tool_calls": [_count("four")]}, {"step": "turn 4", **give(last="four")}, name="later.json"
    )
    assert json.loads(work.fine("resume", "last", "--script", later)) == {"last": "four"}
    assert counted.read_text().split() == [*before_the_kill, "four"]
    after = work.effects()
    assert {path: after[path] for path in before} == before


def _count(word: str) -> dict[str, Value]:
    return {"name": "python_count", "input": {"word": word}}


NOTE = "The bakery opens at seven and has fresh rye bread.\n"
AGAIN = (
    '<hooks><hook id="again" event="error"><condition path="error.type" op="eq" value="bad_reply" />'
    '<action primary="execute" item_type="tool" item_id="rye/agent/threads/internal/control">'
    '<param name="action">retry</param></action></hook></hooks><limits turns="6" tokens="60000" />'
)
"""A small model now and then says one thing for ever: it is asked once more."""


def _copying(work: Desk) -> None:
    outputs = '<outputs><output name="path" type="string" required="true">The file you wrote</output></outputs>'
    body = "1. Read the file note.txt.\n2. Write one sentence about it into answer.txt.\n3. Return the path."
    files = tools("rye.file-system.read", "rye.file-system.write")
    add(work, "copy_note", body, permissions=files, meta=AGAIN, outputs=outputs)
    work.write("note.txt", NOTE)
    work.sign()


def test_the_smallest_model_file_uses_tools_under_permissions(work: Desk) -> None:
    """It is too small to follow three steps, but whatever it calls it was offered, and the arguments fit."""
    if pulled_model("smollm2") is None:
        pytest.skip("the model is not here: quire model pull smollm2")
    _copying(work)
    run = ("run", "copy_note", "--model", "local:smollm2", "--limit", f"turns={depth(1, 2)}")
    for _ in range(4):  # all tries of a turn may be replies without an end
        done = work.quire(*run, timeout=300)
        assert done.returncode in (0, 3, 5), done.stderr
        (thread,) = work.transcript()
        made = [call for turn in thread["turns"] for call in turn["calls"]]
        if made or "is a loop" not in done.stderr:
            break
    assert made, done.stderr
    assert {call["name"] for call in made} <= {"rye_file_system_read", "rye_file_system_write", "directive_return"}
    assert not [call for call in made if "argument" in str(call["error"]) or "not both" in str(call["result"])]
    for call in made:
        if call["name"] == "rye_file_system_read" and call["arguments"]["path"] == "note.txt":
            assert "bakery" in call["result"]
        if call["name"] == "rye_file_system_write" and not call["error"]:
            assert (work.folder / call["arguments"]["path"]).is_file()


def test_a_larger_model_file_reads_writes_and_returns(work: Desk) -> None:
    model = os.environ.get("QUIRE_TEST_MODEL") or (f"local:{LARGER}" if pulled_model(LARGER) else "")
    if not model:
        pytest.skip(f"no larger model is here: quire model pull {LARGER}, or QUIRE_TEST_MODEL=local:FILE.gguf")
    _copying(work)
    done = work.quire("run", "copy_note", "--model", model, timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"path": "answer.txt"}
    assert re.search("bakery|bread|seven", (work.folder / "answer.txt").read_text())
    (thread,) = work.transcript()
    names = [call["name"] for turn in thread["turns"] for call in turn["calls"]]
    assert names[0] == "rye_file_system_read" and names[-1] == "directive_return"
    assert "rye_file_system_write" in names
