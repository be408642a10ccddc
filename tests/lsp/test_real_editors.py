"""The golden path in real editors: findings appear, a hover is asked for, an edit mends them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.given import given
from tests.lsp.language_server import COMMAND

HERE = Path(__file__).parent
COUNT = """
local function served()
  return vim.tbl_filter(function(buffer)
    return #vim.lsp.buf_get_clients(buffer) == 1 and #vim.diagnostic.get(buffer) > 0
  end, vim.api.nvim_list_bufs())
end
vim.wait(40000, function() return #served() == 3 end, 50)
print("served " .. #served() .. " servers " .. #vim.lsp.get_active_clients())
vim.cmd("qall!")
"""
"""Lua that waits for three served files, and counts the servers."""
TEXT = "# Note\n\n## STEP 1: Say\n\nSay {{name}}.\n"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "work"
    given({"quire.toml": "", "note.playbook.md": TEXT}, folder)
    return {
        **os.environ,
        "HOME": str(tmp_path),
        "QUIRE_HOME": str(tmp_path / "home"),
        "QUIRE_TEST_FILE": str(folder / "note.playbook.md"),
        "QUIRE_TEST_COMMAND": COMMAND[0],
    }


@pytest.mark.skipif(shutil.which("nvim") is None, reason="no Neovim: install neovim")
def test_neovim(environment: dict[str, str], tmp_path: Path) -> None:
    command = ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", f"luafile {HERE / 'neovim.lua'}"]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path / "work", capture_output=True, text=True, timeout=120, check=False
    )
    said = (done.stdout + done.stderr).replace("\r", "")
    assert done.returncode == 0, said
    assert "finding PB201 line 4" in said
    assert "hover " in said
    assert "mended" in said


@pytest.mark.skipif(shutil.which("nvim") is None, reason="no Neovim: install neovim")
def test_the_settings_of_the_page_start_one_server_for_a_root(environment: dict[str, str], tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "guides" / "editors.md").read_text()
    settings = re.findall(r"```lua\n(.*?)```", page, re.DOTALL)[1]
    folder = tmp_path / "work"
    given({f"below/{name}.playbook.md": TEXT for name in ("a", "b")}, folder)
    command = json.dumps(environment["QUIRE_TEST_COMMAND"])
    given({"init.lua": settings.replace('cmd = { "quire", "lsp" }', f'cmd = {{ {command}, "lsp" }}')}, tmp_path)
    given({"count.lua": COUNT}, tmp_path)
    opened = ["note.playbook.md", "below/a.playbook.md", "below/b.playbook.md"]
    base = ["nvim", "--headless", "-i", "NONE", "-n", "-u", str(tmp_path / "init.lua"), "-c", "filetype on"]
    done = subprocess.run(
        [*base, "-c", "argdo edit", "-c", f"luafile {tmp_path / 'count.lua'}", *opened],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "served 3 servers 1" in done.stdout + done.stderr, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("emacs") is None, reason="no Emacs: install emacs-nox and elpa-eglot")
def test_emacs(environment: dict[str, str], tmp_path: Path) -> None:
    has_eglot = subprocess.run(
        ["emacs", "--batch", "--eval", "(progn (package-initialize) (require 'eglot))"],
        capture_output=True,
        check=False,
    )
    if has_eglot.returncode != 0:
        pytest.skip("Emacs has no eglot: install elpa-eglot")
    command = ["emacs", "--batch", "--eval", "(package-initialize)", "-l", str(HERE / "emacs.el")]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path / "work", capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "finding PB201" in done.stdout or "Nothing sets {{name}}" in done.stdout
    assert "mended" in done.stdout
