"""What the extension does when something is missing: no program, a server that dies, a folder that is not trusted."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from playwright.sync_api import expect
from tests.given import given
from tests.lsp.vscode.code_server import CodeServer, link_program
from tests.lsp.vscode.window import Window, eventually, window

NOTE = "# Note\n\n## STEP 1: Say\n\nSay {{name}}.\n"
TEST = "cases:\n  - name: says it\n    model: [Yes]\n    expect: {output: No}\n"
STRANGE = "#!/bin/sh\ntouch '{marker}'\nexec '{program}' \"$@\"\n"


def without_a_program(server: CodeServer) -> None:
    """One message says what to do; once that is done, the server starts."""
    folder = _folder(server, "bare")
    with server.running(trusts=True) as url, window(url, folder, server.environment) as opened:
        opened.open("note.playbook.md", served=False)
        message = opened.messages.filter(has_text="the program quire was not found")
        expect(message).to_contain_text("install it into the folder's .venv or on the PATH")
        expect(message).to_contain_text("quire.path")
        opened.picture("no-program")
        message.get_by_role("button", name="Try Again").click()
        expect(message).to_have_count(1)
        opened.open("note.test.yaml", served=False)  # it was said, and is not said again
        opened.command("Notifications: Clear All Notifications")
        opened.open("note.playbook.md", served=False)
        opened.command("Quire: Run This Document")
        expect(message).to_have_count(1)  # the answer to the command
        opened.command("Notifications: Clear All Notifications")
        link_program(folder)
        opened.open("note.test.yaml")  # the next document that is looked at
        _expect_finding(opened)
        _dies(opened)


def _dies(opened: Window) -> None:
    """A server that is killed is started again with a message; one that always dies is not."""
    opened.command("Notifications: Clear All Notifications")
    for _ in range(4):
        _kill_server(opened.folder)
        expect(opened.messages.filter(has_text="the language server ended and is started again")).to_be_visible()
        eventually(lambda: len(_servers(opened.folder)) == 1, "it was not started again")
        opened.picture("died")
        opened.command("Notifications: Clear All Notifications")
    _expect_finding(opened)
    _kill_server(opened.folder)
    last = opened.messages.filter(has_text="ended 5 times in 3 minutes and is not started again")
    expect(last).to_be_visible()
    opened.picture("given-up")
    expect(opened.page.locator(".markers-panel")).to_contain_text("No problems have been detected")
    last.get_by_role("button", name="Restart").click()
    _expect_finding(opened)


def without_trust(server: CodeServer) -> None:
    """A program of the folder is not started, not even when it is on the path, until the user trusts the folder."""
    folder = _folder(server, "stranger")
    marker = server.place / "was-started"
    link_program(folder)
    program = folder / ".venv" / "bin" / "quire"
    real = program.readlink()
    program.unlink()
    program.write_text(STRANGE.format(marker=marker, program=real))
    program.chmod(0o755)
    server.put_on_path(program.parent)
    with server.running(trusts=False) as url, window(url, folder, server.environment) as opened:
        opened.open("note.playbook.md", served=False)
        message = opened.messages.filter(has_text="is not started before you trust the folder")
        expect(message).to_be_visible()
        opened.picture("restricted")
        message.get_by_role("button", name="Manage Workspace Trust").click()
        expect(opened.page.get_by_role("button", name="Trust", exact=True)).to_be_visible()
        opened.open("note.playbook.md", served=False)
        opened.command("Quire: Show the Graph")
        expect(opened.messages.filter(has_text="is not started before you trust the folder")).to_be_visible()
        opened.command("Test: Run All Tests")
        dialog = opened.page.get_by_role("dialog", name="Do you trust the authors")
        expect(dialog).to_be_visible()  # VS Code itself asks before tests are run
        opened.picture("restricted-tests")
        assert not marker.exists(), "a program of a folder that is not trusted was started"
        dialog.get_by_role("button", name="Trust Folder & Continue").click()
        eventually(marker.exists, "the program was not started after the folder was trusted")
        opened.open("note.playbook.md")
        _expect_finding(opened)
        opened.picture("trusted")


def trusted_elsewhere(server: CodeServer) -> None:
    """In a folder that is not trusted, a program from elsewhere checks documents."""
    folder = _folder(server, "guest")
    elsewhere = server.place / "elsewhere"
    link_program(elsewhere)
    server.put_on_path(elsewhere / ".venv" / "bin")
    with server.running(trusts=False) as url, window(url, folder, server.environment) as opened:
        expect(opened.page.get_by_role("button", name="Restricted Mode")).to_be_visible()
        opened.open("note.playbook.md")
        _expect_finding(opened)
        opened.picture("restricted-with-program")


def _folder(server: CodeServer, name: str) -> Path:
    folder = server.place / name
    return given({"quire.toml": "", "note.playbook.md": NOTE, "note.test.yaml": TEST}, folder)


def _expect_finding(opened: Window) -> None:
    if not opened.page.locator(".markers-panel").is_visible():
        opened.press("Control+Shift+M")
    expect(opened.page.locator(".markers-panel")).to_contain_text("Nothing sets {{name}}")


def _servers(folder: Path) -> list[int]:
    """Return the processes of the language server of a folder's own program."""
    program = str(folder / ".venv" / "bin" / "quire").encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if program in words and b"lsp" in words:
                found.append(int(entry.name))
    return found


def _kill_server(folder: Path) -> None:
    eventually(lambda: len(_servers(folder)) == 1, "there is not one server")
    process = _servers(folder)[0]
    os.kill(process, signal.SIGKILL)
    eventually(lambda: process not in _servers(folder), "the server did not end")


def beside_other_files(server: CodeServer) -> None:
    """A folder that has nothing of Quire starts no server, until the user asks for a check of a file."""
    folder = given({"readme.md": NOTE, "values.yaml": "a: 1\n"}, server.place / "other")
    link_program(folder)
    with server.running(trusts=True) as url, window(url, folder, server.environment) as opened:
        opened.open("values.yaml", served=False)
        opened.open("readme.md", served=False)
        opened.page.wait_for_timeout(3000)
        assert _servers(folder) == []
        opened.command("Quire: Check This File")
        expect(opened.page.locator(".markers-panel")).to_contain_text("Nothing sets {{name}}")
        assert len(_servers(folder)) == 1
