"""`@prompt(file:…)` with values in its path: the path rules hold for what comes out, whoever chose the value."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given
from tests.play import Play

from quire.engine.records import Status
from quire.errors import BadInputs
from quire.library.check import DocumentCheck
from quire.source import read_source

CHOSEN = "# T\n\n## STEP 1: Pick\n\nPick.\n@output(kind)\n\n## STEP 2: Write\n\n@prompt(file:prompts/{{kind}}.md)\n"
GIVEN = "# T\n\n## INPUTS\n\n- `kind` ({}): x\n\n## STEP 1: Write\n\n@prompt(file:prompts/{{{{kind}}}}.md)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    given({"prompts/short.md": "Be short, {{kind}}.", "prompts/deep/long.md": "Be long."}, tmp_path / "work")
    given({"work/prompts/.secret.md": "SECRET", "outside.md": "SECRET", "work/quire.toml": ""}, tmp_path)
    prompts = tmp_path / "work" / "prompts"
    (prompts / "link.md").symlink_to(tmp_path / "outside.md")
    (prompts / "out").symlink_to(tmp_path)
    (prompts / "folder.md").mkdir()
    return tmp_path / "work"


@pytest.fixture
def play(play: Play, folder: Path) -> Play:
    play.folder = folder
    return play


async def asked(play: Play, reply: str) -> tuple[str, str]:
    """Let a model choose the file; return what the next step was asked, and why it failed."""
    given({"page.playbook.md": CHOSEN}, play.folder)
    ended = (await play("page.playbook.md", [{"step": "1", "reply": reply}, {"default": "done"}])).ended
    assert not any("SECRET" in message.content for call in play.model.calls for message in call.messages)
    if ended.status is Status.COMPLETED:
        return play.model.calls[-1].messages[0].content, ""
    return "", ended.failure.message if ended.failure else ""


@pytest.mark.parametrize(
    ("reply", "text"), [("short", "Be short, short."), ("deep/long", "Be long."), ("deep\\long", "Be long.")]
)
async def test_a_reply_chooses_among_the_prompts(play: Play, reply: str, text: str) -> None:
    assert await asked(play, reply) == (text, "")


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
async def test_a_hostile_reply_reads_nothing_else(play: Play, reply: str, why: str) -> None:
    text, failed = await asked(play, reply)
    assert text == "" and failed and why in failed and len(failed) < 6_000


async def test_a_value_that_is_known_is_looked_at_before_the_start(play: Play) -> None:
    given({"page.playbook.md": GIVEN.format("string")}, play.folder)
    await play.start("page.playbook.md", {"kind": "short"})
    with pytest.raises(BadInputs, match=r"step 1: prompt file:prompts/shrot\.md"):
        await play.start("page.playbook.md", {"kind": "shrot"})
    with pytest.raises(BadInputs, match="leads out of the document's folder"):
        await play.start("page.playbook.md", {"kind": "../../outside"})


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("enum: short", []),
        ("enum: short, deep/long", []),
        ("enum: short, long", ["the file prompts/long.md does not exist beside the playbook"]),
        ("string", []),
        ("string: nope", []),
    ],
)
def test_a_check_tries_all_options(folder: Path, kind: str, found: list[str]) -> None:
    page = folder / "page.playbook.md"
    page.write_text(GIVEN.format(kind))
    findings = DocumentCheck().of(read_source(page))
    assert [one.message for one in findings if one.code.id == "PB223"] == found
