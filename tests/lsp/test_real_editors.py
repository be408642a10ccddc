"""The golden path in real editors: findings appear, a hover is asked for, an edit mends them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.docs.pages import blocks
from tests.given import given
from tests.lsp.language_server import COMMAND

HERE = Path(__file__).parent
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
def test_neovim_starts_one_server_for_all_files_of_a_folder(environment: dict[str, str], tmp_path: Path) -> None:
    (settings,) = [block.text for block in blocks("docs/guides/editors.md", "lua") if "start_client" in block.text]
    program = tmp_path / "bin" / "quire"
    given(
        {"settings.lua": settings, "bin/quire": f'#!/bin/sh\necho started >>{tmp_path}/log\nexec {COMMAND[0]} "$@"\n'},
        tmp_path,
    )
    program.chmod(0o755)
    pipeline = "pipeline: p\nsteps:\n- transfrom: {value: '1'}\n"
    files = ("work/note.playbook.md", "work/parts/other.playbook.md", "work/p.yaml", "second/note.playbook.md")
    given({files[1]: TEXT, files[2]: pipeline, files[3]: TEXT, "second/quire.toml": ""}, tmp_path)
    done = subprocess.run(
        ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", f"luafile {HERE / 'neovim_servers.lua'}"],
        env={
            **environment,
            "PATH": f"{program.parent}{os.pathsep}{environment['PATH']}",
            "QUIRE_TEST_SETTINGS": str(tmp_path / "settings.lua"),
            "QUIRE_TEST_FILES": ":".join(str(tmp_path / file) for file in files),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    said = (done.stdout + done.stderr).replace("\r", "")
    assert done.returncode == 0, said
    assert [line for line in said.split("\n") if line.startswith("servers")] == [
        *["servers 1"] * 3,
        "servers 2",
    ], said
    assert (tmp_path / "log").read_text() == "started\n" * 2


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
