"""`@prompt(file:…)` with values in its path: the path rules hold for what comes out, whoever chose the value."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.engine.records import Status
from quire.errors import BadInputs
from quire.library.check import DocumentCheck
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.source import read_source

CHOSEN = "# T\n\n## STEP 1: Pick\n\nPick.\n@output(kind)\n\n## STEP 2: Write\n\n@prompt(file:prompts/{{kind}}.md)\n"
GIVEN = "# T\n\n## INPUTS\n\n- `kind` ({}): x\n\n## STEP 1: Write\n\n@prompt(file:prompts/{{{{kind}}}}.md)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "prompts" / "deep").mkdir(parents=True)
    (work / "prompts" / "short.md").write_text("Be short, {{kind}}.")
    (work / "prompts" / "deep" / "long.md").write_text("Be long.")
    (work / "prompts" / ".secret.md").write_text("SECRET")
    (tmp_path / "outside.md").write_text("SECRET")
    (work / "prompts" / "link.md").symlink_to(tmp_path / "outside.md")
    (work / "prompts" / "out").symlink_to(tmp_path)
    (work / "prompts" / "folder.md").mkdir()
    (work / "quire.toml").write_text("")
    return work


async def asked(folder: Path, reply: str) -> tuple[str, str]:
    """Let a model choose the file; return what the next step was asked, and why it failed."""
    page = folder / "page.playbook.md"
    page.write_text(CHOSEN)
    model = ScriptedModel([{"step": "1", "reply": reply}, {"default": "done"}])
    runtime = Runtime.open(folder, environ={"QUIRE_HOME": str(folder.parent / "home")}, model=model)
    run = await runtime.start(load(page), {}, RunOptions())
    ended = await runtime.drive(run)
    await runtime.close()
    assert not any("SECRET" in message.content for call in model.calls for message in call.messages)
    if ended.status is Status.COMPLETED:
        return model.calls[-1].messages[0].content, ""
    return "", ended.failure.message if ended.failure else ""


@pytest.mark.parametrize(
    ("reply", "text"), [("short", "Be short, short."), ("deep/long", "Be long."), ("deep\\long", "Be long.")]
)
async def test_a_reply_chooses_among_the_prompts(folder: Path, reply: str, text: str) -> None:
    assert await asked(folder, reply) == (text, "")


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("../outside", "without .."),
        ("..\\outside", "without .."),
        ("deep/../../outside", "without .."),
        ("link", "a link that leads out of its folder"),
        ("out/outside", "a link that leads out of its folder"),
        (".secret", "hidden file"),
        ("missing", "prompt file:prompts/missing.md"),
        ("folder", ""),
        ("short\x00", ""),
        ("x" * 5000, ""),
        ("short.md\n", ""),
        ("{{kind}}", "prompt file:prompts/{{kind}}.md"),
    ],
)
async def test_a_hostile_reply_reads_nothing_else(folder: Path, reply: str, why: str) -> None:
    text, failed = await asked(folder, reply)
    assert text == "" and failed and why in failed and len(failed) < 6_000


async def start(folder: Path, kind: str) -> None:
    page = folder / "page.playbook.md"
    page.write_text(GIVEN.format("string"))
    environ = {"QUIRE_HOME": str(folder.parent / "home")}
    runtime = Runtime.open(folder, environ=environ, model=ScriptedModel([{"default": "done"}]))
    try:
        await runtime.start(load(page), {"kind": kind}, RunOptions())
    finally:
        await runtime.close()


async def test_a_value_that_is_known_is_looked_at_before_the_start(folder: Path) -> None:
    await start(folder, "short")
    with pytest.raises(BadInputs, match=r"step 1: prompt file:prompts/shrot\.md"):
        await start(folder, "shrot")
    with pytest.raises(BadInputs, match="leads out of the document's folder"):
        await start(folder, "../../outside")


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("enum: short", []),
        ("enum: short, deep/long", []),
        ("enum: short, long", ["there is no file prompts/long.md beside the playbook"]),
        ("string", []),
        ("string: nope", []),
    ],
)
def test_a_check_tries_all_options(folder: Path, kind: str, found: list[str]) -> None:
    page = folder / "page.playbook.md"
    page.write_text(GIVEN.format(kind))
    findings = DocumentCheck().of(read_source(page))
    assert [one.message for one in findings if one.code.id == "PB223"] == found
