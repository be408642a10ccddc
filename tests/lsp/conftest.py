"""An editor for the tests of the language server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lsp.directive.sample_workspace import write_workspace
from tests.lsp.editor import Editor

from quire.source import OPEN_TEXTS


@pytest.fixture(autouse=True)
def no_model(no_model_here: None) -> None:
    """Show in the editor what a machine without models shows."""


@pytest.fixture
def editor(workspace: Path) -> Iterator[Editor]:
    """An editor with an empty workspace open."""
    yield Editor(workspace)
    OPEN_TEXTS.clear()


@pytest.fixture
def team(editor: Editor) -> Editor:
    """An editor with the sample workspace."""
    write_workspace(editor.folder)
    return editor
