"""The page about the methods of the language server: its list of methods is that of the server."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.editor_methods import lines

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "editor-methods.md"


@pytest.mark.slow
def test_the_list_of_methods_is_that_of_the_server(tmp_path: Path, home: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    listed = text.partition("<!-- methods -->")[2].partition("<!-- end of methods -->")[0]
    assert listed.strip() == "\n".join(lines())
