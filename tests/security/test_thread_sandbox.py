"""Commands of a model: what they see of the machine, where they write, whom they reach."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.security.stage import SECRET, Played, Stage, completed
from tests.tools.test_builtin_shell import needs_sandbox
from tests.tools.web import Server

KNOWN = "<acknowledge risk='elevated'>x</acknowledge>"
BASH = f"<execute><tool>rye.bash</tool></execute>{KNOWN}"
WEB = f"<execute><tool>rye.bash</tool><tool>rye.web.*</tool></execute>{KNOWN}"


async def run(stage: Stage, command: str, permissions: str = BASH, **more: tuple[str, ...]) -> Played:
    stage.directive("main", permissions)
    played = await stage.play("main", [("rye_bash", {"command": command})], **more)  # type: ignore[arg-type]
    assert completed(played)
    return played


@needs_sandbox
@pytest.mark.parametrize(
    "command",
    [
        "cat {outside}/secret.txt",
        "ls {outside}",
        "cat /proc/1/root{outside}/secret.txt",
        "ln -s {outside} l && cat l/secret.txt",
        "cat ../outside/secret.txt",
        "cat {space}/keys/default.pem",
        "ls -A {home}",
        "cat /etc/shadow",
        "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep QUIRE_HOME",
    ],
)
async def test_a_command_sees_nothing_outside(stage: Stage, command: str) -> None:
    filled = command.format(outside=stage.outside, space=stage.space, home=Path.home())
    played = await run(stage, f"({filled}) 2>/dev/null | head -c 2000")
    told = played.told[0]
    assert SECRET not in told and "PRIVATE KEY" not in told and "root:" not in told and str(stage.space) not in told
    assert told in ('""', "null") or "error" in told, told


@needs_sandbox
@pytest.mark.parametrize(
    "command",
    [
        "echo x > {outside}/secret.txt",
        "rm -rf {outside}",
        "touch {outside}/new",
        "rm -rf {space}",
        "echo x > ../beside.txt",
        "rm -rf /",
        "touch /usr/bin/evil /etc/evil",
    ],
)
async def test_a_command_writes_nothing_outside(stage: Stage, command: str) -> None:
    await run(stage, "true")
    before = {name: text for name, text in stage.print().items() if not name.startswith(str(stage.work))}
    await run(stage, command.format(outside=stage.outside, space=stage.space) + " 2>/dev/null; true")
    after = {name: text for name, text in stage.print().items() if not name.startswith(str(stage.work))}
    assert after == before
    assert not (stage.base / "beside.txt").exists() and not Path("/usr/bin/evil").exists()


def reach(server: Server) -> str:
    code = f"import socket; socket.create_connection(('127.0.0.1', {server.port}), 5); print('reached')"
    return f'python3 -c "{code}" 2>/dev/null || echo refused'


@needs_sandbox
async def test_the_network_is_there_with_all_of_the_web_alone(stage: Stage, server: Server) -> None:
    assert (await run(stage, reach(server))).told == ['"refused"']
    one = f"<execute><tool>rye.bash</tool><tool>rye.web.fetch</tool></execute>{KNOWN}"
    assert (await run(stage, reach(server), one)).told == ['"refused"']
    assert (await run(stage, reach(server), BASH, allow=("http__get",))).told == ['"refused"']
    if Path("/usr/bin/python3").exists():
        assert (await run(stage, reach(server), WEB)).told == ['"reached"']


@needs_sandbox
async def test_a_child_without_the_web_has_no_network(stage: Stage, server: Server) -> None:
    stage.directive("main", WEB.replace("</execute>", "<tool>rye.agent.threads.*</tool></execute>"))
    stage.directive("child", BASH, "AS A CHILD")
    played = await stage.play(
        "main",
        [("rye_agent_threads_thread_directive", {"directive_id": "child"})],
        children={"AS A CHILD": [[("rye_bash", {"command": reach(server)})]]},
    )
    assert played.told[0] == '"refused"', played.told


@needs_sandbox
async def test_nothing_of_a_command_outlives_it(stage: Stage) -> None:
    played = await run(stage, "(while true; do date > beat; sleep 0.01; done) & echo started")
    assert played.told == ['"started"']
    beat = stage.work / "beat"
    before = beat.read_text() if beat.exists() else ""
    again = await run(stage, "sleep 0.2; ps -e 2>/dev/null | grep -c sleep; true")
    assert completed(again)
    assert (beat.read_text() if beat.exists() else "") == before


async def test_without_a_sandbox_there_is_no_shell(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.tools.sandbox.shutil.which", lambda name: None)
    played = await run(stage, "touch pwned.txt")
    assert played.kinds == ["denied"] and "bubblewrap" in played.told[0]
    assert not (stage.work / "pwned.txt").exists()
    wide = "*<acknowledge risk='unrestricted'>x</acknowledge>"
    played = await run(stage, "touch pwned.txt", wide)
    assert played.kinds == ["denied"], "no document can ask for a shell without a sandbox"
