"""The extension in VS Code itself: `make test-vscode`, or `python -m tests.lsp.vscode` once the extension is built.

VS Code runs as `code-server` from npm, in `editors/vscode/.code-server` (`QUIRE_CODE_SERVER` names another folder); its
window is a page in Chromium. Seen are findings in the Problems panel, a hover, a completion, a rename that follows into
the test, and a case that is run from the Testing view. `QUIRE_SCREENSHOTS` names a folder for pictures.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Page, async_playwright, expect
from tests.browser import find_browser

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"
VERSION = "4.100.3"
PORT = 8973
PLAYBOOK = """# Note

## INPUTS

- `topic` (string): what it is about

## STEP 1: Say

Say something about {{topic}} and {{nothing}}.

@output(said)

## STEP 2: Again

Say {{said}} again.
"""
TEST = """cases:
  - name: two replies
    inputs: {topic: tea}
    model: [one, two]
    expect: {status: completed}
"""


def main() -> int:
    program = _code_server()
    package = next(iter(sorted((EXTENSION / "dist").glob("*.vsix"))), None)
    if package is None:
        print("the extension is not built: make vscode", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        _tried(program, package, Path(name))
    print("the extension works")
    return 0


def _code_server() -> Path:
    """Return the program, which is installed from npm if it is not there yet."""
    folder = Path(os.environ.get("QUIRE_CODE_SERVER", EXTENSION / ".code-server"))
    program = folder / "node_modules" / ".bin" / "code-server"
    if not program.exists():
        folder.mkdir(exist_ok=True)
        npm = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run([*npm, "--prefix", str(folder), f"code-server@{VERSION}"], check=True)
        inside = folder / "node_modules" / "code-server" / "lib" / "vscode"
        # Its own script would install these; the native parts are compiled here.
        for below in (inside, inside / "extensions"):
            subprocess.run([*npm, "--omit=dev", "--legacy-peer-deps"], cwd=below, check=True)
        subprocess.run(["npm", "rebuild", "@vscode/spdlog", "native-watchdog", "node-pty"], cwd=inside, check=True)
        subprocess.run(["npm", "rebuild", "argon2"], cwd=folder, check=True)
    return program


def _tried(program: Path, package: Path, place: Path) -> None:
    folder = place / "work"
    folder.mkdir()
    (folder / "quire.toml").write_text("")
    (folder / "note.playbook.md").write_text(PLAYBOOK)
    (folder / "note.test.yaml").write_text(TEST)
    program_of_folder = folder / ".venv" / "bin" / "quire"
    program_of_folder.parent.mkdir(parents=True)
    program_of_folder.symlink_to(Path(sys.executable).with_name("quire"))
    data = ["--user-data-dir", str(place / "data"), "--extensions-dir", str(place / "extensions")]
    environment = {**os.environ, "HOME": str(place)}
    subprocess.run([program, *data, "--install-extension", str(package)], check=True, env=environment)
    settings = place / "data" / "User" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('{"workbench.startupEditor": "none", "editor.hover.delay": 50}')
    options = ["--auth", "none", "--bind-addr", f"127.0.0.1:{PORT}", "--disable-workspace-trust", "--disable-telemetry"]
    server = subprocess.Popen([program, *data, *options, str(folder)], env=environment)
    try:
        asyncio.run(_looked_at(folder))
    finally:
        server.terminate()
        server.wait(20)


async def _looked_at(folder: Path) -> None:
    async with _window(f"http://127.0.0.1:{PORT}/?folder={folder}") as page:
        await _golden_path(page, folder)


@asynccontextmanager
async def _window(url: str) -> AsyncIterator[Page]:
    browser = find_browser()
    if browser is None:
        raise SystemExit("no browser: install chromium-headless-shell")
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = await launched.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(60_000)
        for _ in range(60):
            try:
                await page.goto(url)
                break
            except Exception:  # the server is not there yet
                await asyncio.sleep(1)
        yield page
        await launched.close()


async def _golden_path(page: Page, folder: Path) -> None:
    expect.set_options(timeout=60_000)
    await page.get_by_role("treeitem", name="note.playbook.md").dblclick()
    editor = page.locator(".monaco-editor").first
    await expect(editor).to_be_visible()
    await page.keyboard.press("Control+Shift+M")
    problems = page.locator(".markers-panel")
    await expect(problems).to_contain_text("{{nothing}}")
    await expect(problems).to_contain_text("PB201")
    await _picture(page, "vscode-problems")

    await editor.get_by_text("topic}} and", exact=False).first.hover()
    await expect(page.locator(".monaco-hover:visible").first).to_contain_text("topic")
    await _picture(page, "vscode-hover")

    await editor.locator(".view-line", has_text="Say something about").click()
    await page.keyboard.press("End")
    await page.keyboard.type(" {{")
    await page.keyboard.press("Control+Space")
    await expect(page.locator(".suggest-widget:visible")).to_contain_text("topic")
    await _picture(page, "vscode-completion")
    await page.keyboard.press("Escape")
    for _ in range(3):
        await page.keyboard.press("Backspace")
    await page.keyboard.press("Control+S")

    await page.keyboard.press("Control+Home")
    await editor.locator(".view-line", has_text="Say something about").click(position={"x": 190, "y": 8})
    await page.keyboard.press("F2")
    box = page.locator(".rename-box input")
    await expect(box).to_be_visible()
    await _picture(page, "vscode-rename")
    await box.fill("subject")
    await page.keyboard.press("Enter")
    await expect(editor).to_contain_text("{{subject}}")
    await page.keyboard.press("Control+K")
    await page.keyboard.press("s")
    for _ in range(600):
        if "{{subject}}" in (folder / "note.playbook.md").read_text():
            break
        await asyncio.sleep(0.1)
    assert "`subject`" in (folder / "note.playbook.md").read_text()
    assert "subject: tea" in (folder / "note.test.yaml").read_text()


async def _picture(page: Page, name: str) -> None:
    if folder := os.environ.get("QUIRE_SCREENSHOTS"):
        await page.screenshot(path=str(Path(folder) / f"{name}.png"))


if __name__ == "__main__":
    if shutil.which("npm") is None:
        raise SystemExit("VS Code comes from npm, which is not installed")
    sys.exit(main())
