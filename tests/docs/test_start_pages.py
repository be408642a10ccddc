"""The pages for beginners are followed word for word, in an empty folder; a script stands for the model."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from mcp import Client, StdioServerParameters
from tests.docs.pages import blocks, commands, text_of
from tests.examples.command import Desk, calls, give
from tests.server.serve_process import server

from quire.values import Value

START = "docs/start/"
PAGES = ("playbook", "pipeline-in-ci", "agent-with-permissions", "share-and-serve")
INSTALL = "uv tool install 'quire-run[standard]'"
URGENT: Value = {"kind": "bug", "urgent": True, "summary": "The shop is down"}
CALM: Value = {"kind": "question", "urgent": False, "summary": "Asks for a dark theme"}


class Reader(Desk):
    """A person with a page, who runs its commands in their order."""

    def begin(self, page: str) -> list[list[str]]:
        """Return what the page says to type after the installation."""
        self.folder.mkdir()
        first, *others = _typed(page)
        assert first == INSTALL
        return [shlex.split(command)[1:] for command in others]

    def save(self, page: str, language: str, at: int, name: str) -> None:
        """Save a block of the page under a name that the page says."""
        assert f"`{name}`" in text_of(page)
        self.write(name, blocks(page, language)[at].text)


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path / "work", tmp_path / "home")


def _typed(page: str) -> list[str]:
    return [command for place, command in commands() if place.startswith(f"{page}:")]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_at_most_eight_commands(page: str) -> None:
    assert 4 <= len(_typed(f"{START}{page}.md")) <= 8


def test_the_readme_begins_as_the_pages_do(reader: Reader) -> None:
    """The installation, then four commands. The other commands are for work on Quire itself."""
    install, *typed = [command for command in _typed("README.md") if not command.startswith("make ")]
    assert install == INSTALL
    new, check, run, runs = (shlex.split(command)[1:] for command in typed)
    reader.folder.mkdir()
    reader.fine(*new)
    reader.fine(*check)
    script = reader.script({"step": "1", "reply": '{"difficulty": "simple"}'}, {"step": "3b", "reply": "Nobody knows."})
    assert reader.fine(*run, "-i", "question=why?", "--answer", "2=short", "--script", script) == "Nobody knows.\n"
    assert "completed" in reader.fine(*runs)


def test_the_playbook(reader: Reader) -> None:
    page = f"{START}playbook.md"
    new, hello, check, show, run, resume, test = reader.begin(page)
    reader.fine(*new)
    script = reader.script({"step": "1", "reply": '{"difficulty": "simple"}'}, {"step": "3a", "reply": "Because."})
    assert reader.fine(*hello, "-i", "question=why?", "--answer", "2=thorough", "--script", script) == "Because.\n"
    reader.save(page, "markdown", 0, "tagline.playbook.md")
    assert "nothing found" in reader.quire(*check, "--strict").stderr
    assert "Polish this tagline without making it longer: " in reader.fine(*show)
    ideas = reader.script({"step": "1", "reply": '{"best": "Bread."}'}, {"step": "3a", "error": "the network is gone"})
    assert reader.quire(*run, "--answer", "2=yes", "--script", ideas).returncode == 3
    reader.fine(*resume, "--script", reader.script({"step": "3a", "reply": "Bread, then."}))
    assert (reader.folder / "tagline.md").read_text(encoding="utf-8").strip() == "Bread, then."
    reader.save(page, "yaml", 0, "tagline.test.yaml")
    assert "1 passed" in reader.quire(*test).stderr
    text = reader.folder / "tagline.playbook.md"
    text.write_text(text.read_text(encoding="utf-8").replace("Take this one", "Keep this one"), encoding="utf-8")
    changed = reader.quire(*test)
    assert changed.returncode == 1 and "Take this one" in changed.stdout and "Keep this one" in changed.stdout


def test_the_pipeline_in_ci(reader: Reader) -> None:
    page, document = f"{START}pipeline-in-ci.md", "pipelines/tickets.yaml"
    check, show, run, test, lock, locked = reader.begin(page)
    reader.save(page, "yaml", 0, document)
    reader.fine(*check)
    assert "for each of" in reader.fine(*show)
    script = reader.script({"contains": "shop", "reply": URGENT}, {"contains": "theme", "reply": CALM})
    reader.fine(*run, "--script", script)
    assert json.loads((reader.folder / "urgent.json").read_text(encoding="utf-8")) == [URGENT]
    reader.save(page, "yaml", 1, "pipelines/tickets.test.yaml")
    assert "2 passed" in reader.quire(*test).stderr
    reader.fine(*lock)
    reader.save(page, "yaml", 3, ".github/workflows/documents.yml")
    job = yaml.safe_load((reader.folder / ".github/workflows/documents.yml").read_text(encoding="utf-8"))
    steps = [step["run"] for step in job["jobs"]["documents"]["steps"] if "run" in step]
    assert steps[0] == "pipx install quire-run"
    for step in steps[1:]:
        reader.fine(*shlex.split(step)[1:])
    text = blocks(page, "yaml")[0].text
    reader.write(document, text.replace("  - transform:\n", blocks(page, "yaml")[2].text + "  - transform:\n"))
    wider = reader.quire(*locked)
    assert wider.returncode == 1 and blocks(page, "text")[0].text in wider.stdout
    assert "GA101" in reader.quire("check", "pipelines").stdout


def test_the_agent_with_permissions(reader: Reader) -> None:
    page = f"{START}agent-with-permissions.md"
    keys, sign, run, transcript, check, can = reader.begin(page)
    reader.save(page, "markdown", 0, ".ai/directives/team/tidy_notes.md")
    reader.write("notes.txt", "bread\nkeys\n")
    script = reader.script(
        calls(("rye_file_system_read", {"path": "notes.txt"})),
        calls(("rye_bash", {"command": "date"})),
        calls(("rye_file_system_write", {"path": "notes.txt", "content": "# Food\nbread\n"})),
        give(topics=1),
    )
    assert reader.quire(*run, "--script", script).returncode == 6
    reader.fine(*keys)
    # On a terminal it asks; here nobody can be asked.
    reader.fine(*sign, "--yes")
    assert json.loads(reader.fine(*run, "--script", script)) == {"topics": 1}
    assert (reader.folder / "notes.txt").read_text(encoding="utf-8") == "# Food\nbread\n"
    assert blocks(page, "text")[0].text.strip() in reader.fine(*transcript)
    reader.fine(*check)
    assert reader.quire(*can).returncode == 6
    reader.save(page, "yaml", 0, ".ai/directives/team/tidy_notes.test.yaml")
    assert "1 passed" in reader.quire("test").stderr


async def test_share_and_serve(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = f"{START}share-and-serve.md"
    new, serve, keys, sign, export, trust, verify = reader.begin(page)
    reader.fine(*new)
    monkeypatch.setenv("QUIRE_HOME", str(reader.home))
    assert serve == ["serve"]
    with server(reader.folder, "--port", "0") as served, served.client() as client:
        assert "hello" in client.get("documents").text
    entry = json.loads(blocks(page, "json")[0].text)["mcpServers"]["quire"]
    await _is_a_tool(entry["command"], entry["args"], reader)
    reader.fine(*keys)
    reader.fine(*sign)
    assert export[-2] == ">"
    key = reader.write(export[-1], reader.fine(*export[:-2]))
    colleague = Desk(reader.folder, tmp_path / "home of a colleague")
    assert "untrusted" in colleague.quire(*verify).stdout
    assert trust[-1] == key.name
    colleague.fine(*trust)
    assert colleague.fine(*verify).startswith("ok")
    document = reader.folder / "hello.playbook.md"
    document.write_text(document.read_text(encoding="utf-8") + "\nMore.\n", encoding="utf-8")
    changed = colleague.quire(*verify)
    assert changed.returncode == 6 and "modified" in changed.stdout


async def _is_a_tool(command: str, arguments: list[str], reader: Reader) -> None:
    program = shutil.which(command, path=str(Path(sys.executable).parent))
    assert program
    environ = {**reader.environ, "QUIRE_MCP_TOKEN": ""}
    started = StdioServerParameters(command=program, args=arguments, cwd=str(reader.folder), env=environ)
    async with Client(started) as client:
        assert "playbook__hello" in [tool.name for tool in (await client.list_tools()).tools]


def test_the_docs_are_found_without_a_browser(reader: Reader) -> None:
    """The commands that `docs/index.md` names in its last paragraph."""
    assert "`quire docs testing`" in text_of("docs/index.md")
    reader.folder.mkdir()
    for arguments in (["docs"], ["docs", "testing"], ["docs", "exit", "code"]):
        assert reader.fine(*arguments)
