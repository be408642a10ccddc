"""The pictures of the documentation: each is made by a command, small enough, and shown with a text beside it."""

from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path

import pytest
from tests.docs import terminal_picture
from tests.docs.pages import ROOT
from tests.lsp.vscode.window import HEIGHT, WIDTH
from tests.server.pictures import FOLDER, PICTURES, Picture

SHOWN = re.compile(r"!\[([^\]]*)\]\((?:\.\./|docs/)?pictures/([\w-]+)\.(?:png|svg)\)")
# Those of VS Code are made on the way through it (tests/lsp/vscode/golden_path.py), with the names that it gives.
WAY = (ROOT / "tests" / "lsp" / "vscode" / "golden_path.py").read_text(encoding="utf-8")
OF_EDITOR = {f"editor-{name}" for name in re.findall(r'picture\("([\w-]+)", documented=True\)', WAY)}
MOST_BYTES = 150_000


@pytest.mark.parametrize(("name", "picture"), PICTURES.items())
def test_the_picture_is_there_in_its_size(name: str, picture: Picture) -> None:
    assert _size(name) == (picture.width, picture.height)


@pytest.mark.parametrize("name", sorted(OF_EDITOR))
def test_the_picture_of_an_editor_is_there_in_its_size(name: str) -> None:
    assert _size(name) == (WIDTH, HEIGHT)
    assert (FOLDER / f"{name}.png").stat().st_size <= MOST_BYTES


def test_every_picture_is_shown_and_described() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = [found for page in pages for found in SHOWN.findall(page.read_text(encoding="utf-8"))]
    names = {*PICTURES, *OF_EDITOR, terminal_picture.PICTURE.stem}
    assert {name for _, name in shown} == names == {path.stem for path in FOLDER.iterdir()}
    assert [name for text, name in shown if len(text) < 20] == []


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_the_run_in_a_terminal_is_as_drawn(tmp_path: Path) -> None:
    made = terminal_picture.draw(terminal_picture.record(tmp_path))
    shown = terminal_picture.PICTURE.read_text(encoding="utf-8")
    assert terminal_picture.words_of(shown) == terminal_picture.words_of(made), "python -m tests.docs.terminal_picture"
    assert re.findall(r"(?:href|src|url)\s*[=(]\s*[\"']?(?!#)(\w+:[^\"')]*)", shown) == []


def _size(name: str) -> tuple[int, int]:
    head = (FOLDER / f"{name}.png").read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:24])
    return width, height
