"""The hooks of a project act in every directive: the user agrees to them, as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.errors import Untrusted
from quire.workspace.configuration import load_settings
from quire.workspace.consent import HOOKS, confirm, is_trusted, requests, require_trusted
from quire.workspace.locate import find_workspace


def test_any_change_of_the_hooks_asks_again(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / HOOKS).parent.mkdir(parents=True)
    settings = load_settings(find_workspace(folder), {"QUIRE_HOME": str(tmp_path / "home")})
    assert requests(settings) == ()
    (folder / HOOKS).write_text("hooks: []\n")
    (line,) = requests(settings)
    assert line.startswith(f"add the hooks of {HOOKS} to every directive (content ")
    with pytest.raises(Untrusted, match="add the hooks"):
        require_trusted(settings)
    confirm(settings)
    assert is_trusted(settings)
    (folder / HOOKS).write_text("hooks: []\n\n")
    assert not is_trusted(settings)
    (folder / HOOKS).unlink()
    assert is_trusted(settings)
    (folder / HOOKS).symlink_to(tmp_path / "nowhere")
    assert not is_trusted(settings)
