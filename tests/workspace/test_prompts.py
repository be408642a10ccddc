from __future__ import annotations

import os
from pathlib import Path

import pytest

from quire.engine.requests import Load
from quire.errors import StepFailed
from quire.library.texts import PromptLoader
from quire.source import MAX_DOCUMENT_BYTES
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace


@pytest.fixture
def loader(tmp_path: Path) -> PromptLoader:
    work, home = tmp_path / "work", tmp_path / "home"
    for folder in (work / "prompts", work / "more", work / "docs" / "sub", home / "prompts"):
        folder.mkdir(parents=True)
    (work / "quire.toml").write_text('[prompts]\nfolders = ["more"]\n')
    settings = load_settings(Workspace(work), {"QUIRE_HOME": str(home)})
    return PromptLoader(settings, work / "docs")


async def load(loader: PromptLoader, scheme: str, where: str) -> str | None:
    return await loader.load(Load("1/load", "1", scheme, where))


async def test_the_library_is_the_workspace_then_its_folders_then_the_user(
    loader: PromptLoader, tmp_path: Path
) -> None:
    places = [tmp_path / "home" / "prompts", tmp_path / "work" / "more", tmp_path / "work" / "prompts"]
    for number, place in enumerate(places):
        (place / "tone.md").write_text(f"number {number}\r\n")
        assert await load(loader, "library", "tone") == f"number {number}\n"


@pytest.mark.parametrize("name", ["none", "", "a/b", "../tone", "tone.md", "töne", "a b", "tone\n"])
async def test_a_library_prompt_that_is_not_there(loader: PromptLoader, tmp_path: Path, name: str) -> None:
    (tmp_path / "work" / "prompts" / "tone.md").write_text("x")
    assert await load(loader, "library", name) is None


async def test_a_file_beside_the_document(loader: PromptLoader, tmp_path: Path) -> None:
    (tmp_path / "work" / "docs" / "sub" / "a.md").write_text("ä")
    assert await load(loader, "file", "sub/a.md") == "ä"
    assert await load(loader, "file", "./sub/a.md") == "ä"


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("../prompts/x.md", "without .."),
        ("sub/../../x.md", "without .."),
        ("sub\\..\\..\\x.md", "without .."),
        ("/etc/passwd", "without .."),
        ("C:\\x", "without .."),
        ("", "without .."),
        ("none.md", "does not exist"),
        ("sub", "is a folder"),
        ("out.md", "leads out of its folder"),
        ("linked/x.md", "leads out of its folder"),
        ("loop.md", "loop"),
        ("latin.md", "is not UTF-8"),
        ("large.md", "is larger than"),
        ("pipe.md", "is not a regular file"),
        ("nul\0.md", "null"),
    ],
)
async def test_files_that_are_not_read(loader: PromptLoader, tmp_path: Path, where: str, reason: str) -> None:
    docs = tmp_path / "work" / "docs"
    (tmp_path / "work" / "x.md").write_text("secret")
    (docs / "out.md").symlink_to(tmp_path / "work" / "x.md")
    (docs / "linked").symlink_to(tmp_path / "work")
    (docs / "loop.md").symlink_to(docs / "loop.md")
    (docs / "latin.md").write_bytes(b"\xe4")
    (docs / "large.md").write_text("x" * (MAX_DOCUMENT_BYTES + 1))
    os.mkfifo(docs / "pipe.md")
    with pytest.raises(StepFailed) as failed:
        await load(loader, "file", where)
    assert reason in failed.value.message
    assert failed.value.path == "1/load"


async def test_a_link_inside_of_the_folder_is_fine(loader: PromptLoader, tmp_path: Path) -> None:
    docs = tmp_path / "work" / "docs"
    (docs / "a.md").write_text("here")
    (docs / "b.md").symlink_to(docs / "a.md")
    assert await load(loader, "file", "b.md") == "here"


async def test_a_library_of_a_workspace_leads_nowhere_else(loader: PromptLoader, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret")
    (tmp_path / "work" / "prompts" / "a.md").symlink_to(tmp_path / "key")
    with pytest.raises(StepFailed, match="leads out"):
        await load(loader, "library", "a")
    (tmp_path / "home" / "prompts" / "b.md").symlink_to(tmp_path / "key")
    assert await load(loader, "library", "b") == "secret"


async def test_mcp_prompts_come_through_the_function(loader: PromptLoader) -> None:
    async def prompt(server: str, name: str) -> str:
        return f"{server}|{name}"

    assert await load(PromptLoader(loader.settings, None, prompt), "mcp", "s/a/b") == "s|a/b"
    for where in ("s", "s/", "/p"):
        with pytest.raises(StepFailed, match="must be SERVER/PROMPT"):
            await load(PromptLoader(loader.settings, None, prompt), "mcp", where)
    with pytest.raises(StepFailed, match="no MCP servers"):
        await load(loader, "mcp", "s/p")


async def test_a_document_without_a_folder_has_no_files(loader: PromptLoader) -> None:
    with pytest.raises(StepFailed, match="no folder"):
        await load(PromptLoader(loader.settings, None), "file", "a.md")
