"""A workspace with directives for each test."""

from __future__ import annotations

import pytest
from tests.lsp.directive.sample_workspace import write_workspace
from tests.lsp.editor import Editor


@pytest.fixture
def team(editor: Editor) -> Editor:
    """An editor with the sample workspace."""
    write_workspace(editor.folder)
    return editor
