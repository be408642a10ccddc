"""The pictures of the documentation: each is made by tests/server/pictures.py, and shown with a text beside it."""

from __future__ import annotations

import re
import struct

import pytest
from tests.docs.pages import ROOT
from tests.server.pictures import FOLDER, PICTURES, Picture

SHOWN = re.compile(r"!\[([^\]]*)\]\((?:docs/)?pictures/([\w-]+)\.png\)")


@pytest.mark.parametrize(("name", "picture"), PICTURES.items())
def test_the_picture_is_there_in_its_size(name: str, picture: Picture) -> None:
    head = (FOLDER / f"{name}.png").read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", head[16:24]) == (picture.width, picture.height)


def test_every_picture_is_shown_and_described() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    shown = [found for page in pages for found in SHOWN.findall(page.read_text(encoding="utf-8"))]
    assert {name for _, name in shown} == set(PICTURES) == {path.stem for path in FOLDER.iterdir()}
    assert [name for text, name in shown if len(text) < 20] == []
