"""Secrets in what tools see: gone before anything is written down, shown, or told to a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.security.stage import Call, Stage, completed
from tests.tools.test_builtin_shell import needs_sandbox
from tests.tools.web import Server, serving

from quire.display.transcript import transcript_markdown
from quire.models.scripted import ScriptedModel
from quire.runs.transcript import transcripts

KEY = "sk-live-0123456789abcdef"
OTHER = "an-auth-value-without-a-telling-name"
KNOWN = "<acknowledge risk='elevated'>x</acknowledge>"
PERMISSIONS = f"<execute><tool>rye.file-system.*</tool><tool>rye.bash</tool><tool>rye.web.*</tool></execute>{KNOWN}"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as served:
        served.answers["/"] = (
            200,
            {"x-echo": KEY, "content-type": "application/json"},
            f'{{"{KEY}": ["{KEY}"]}}'.encode(),
        )
        yield served


@pytest.fixture
def house(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path, environ={"OPENAI_API_KEY": KEY, "COMPANY_AUTH": OTHER})
    (stage.space / "quire.toml").write_text(
        '[models.providers.mine]\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "COMPANY_AUTH"\n'
    )
    stage.write("leak.txt", f"the key is {KEY}, or {OTHER}\n")
    stage.write(f"{KEY}.txt", "x")
    stage.confirm()
    stage.directive("main", PERMISSIONS)
    return stage


async def kept(stage: Stage, run: str) -> str:
    """The journal, the transcript and the database itself."""
    runtime = stage.runtime(ScriptedModel([]))
    try:
        view = await runtime.view(run)
        shown = transcript_markdown(view, transcripts(view))
    finally:
        await runtime.close()
    stored = b"".join(file.read_bytes() for file in stage.base.glob("quire.db*"))
    return f"{shown}{view}{stored.decode('utf-8', 'replace')}"


async def test_no_secret_of_a_tool_is_kept_anywhere(house: Stage, server: Server) -> None:
    calls: list[Call] = [
        ("rye_file_system_read", {"path": "leak.txt"}),
        ("rye_file_system_read", {"path": "leak.txt", "line_ids": True}),
        ("rye_file_system_grep", {"pattern": "the key"}),
        ("rye_file_system_glob", {"pattern": "*.txt"}),
        ("rye_file_system_ls", {"path": "."}),
        ("rye_web_fetch", {"url": f"http://127.0.0.1:{server.port}/"}),
    ]
    played = await house.play("main", calls, allow=(f"http__get=127.0.0.1:{server.port}",))
    assert completed(played) and set(played.kinds) == {""}, played.told
    everything = played.everything() + await kept(house, played.id)
    assert KEY not in everything and OTHER not in everything
    assert "[redacted:OPENAI_API_KEY]" in everything and "[redacted:COMPANY_AUTH]" in everything


@needs_sandbox
async def test_nor_of_a_command_that_fails(house: Stage) -> None:
    calls: list[Call] = [
        ("rye_bash", {"command": "cat leak.txt"}),
        ("rye_bash", {"command": "cat leak.txt >&2; exit 3"}),
        ("rye_bash", {"command": "env; cat /proc/self/environ"}),
    ]
    played = await house.play("main", calls)
    assert played.kinds == ["", "exit", ""], played.told
    everything = played.everything() + await kept(house, played.id)
    assert KEY not in everything and OTHER not in everything


@pytest.mark.parametrize(
    "text", ["{env:OPENAI_API_KEY}", "${env.OPENAI_API_KEY}", "${OPENAI_API_KEY}", "$OPENAI_API_KEY"]
)
async def test_no_document_reads_the_environment(house: Stage, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    house.knowledge("k", text)
    hooks = (
        '<hooks><hook id="h" event="after_step"><action item_type="tool" primary="execute" '
        f'item_id="rye/file-system/write"><param name="path">out.txt</param><param name="content">[{text}]</param>'
        "</action></hook></hooks>"
    )
    inputs = '<inputs><input name="who" type="string" required="true">w</input></inputs>'
    house.directive(
        "main",
        PERMISSIONS,
        f"Greet {{input:who}} and {text}.",
        meta=f"<context><before>k</before></context>{hooks}",
        more=inputs + f"<outputs><success>{text}</success></outputs>",
    )
    played = await house.play("main", [("rye_file_system_ls", {})], inputs={"who": text})
    assert completed(played)
    assert KEY not in played.everything()
    assert KEY not in (house.work / "out.txt").read_text()
    assert text in played.model.calls[0].messages[0].content, "left as it is written"
