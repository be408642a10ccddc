"""Pages that lead through commands are followed to the letter, in an empty folder; a script stands for the model."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

from tests.docs.pages import PAGES, blocks, commands
from tests.examples.command import Desk, calls, give

import quire
from quire.tools.python import GROUP
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace


def commands_of(page: str) -> list[list[str]]:
    return [shlex.split(command)[1:] for place, command in commands() if place.startswith(f"{page}:")]


def empty(folder: Path) -> Desk:
    (folder / "work").mkdir()
    return Desk(folder / "work", folder / "home")


def test_the_page_on_directives(tmp_path: Path) -> None:
    desk = empty(tmp_path)
    directive, _ = blocks("docs/reference/directives.md", "markdown")
    followed = commands_of("docs/reference/directives.md")
    while followed[0][0] in ("new", "check"):
        desk.fine(*followed.pop(0))
    desk.write(".ai/directives/team/greet_guest.md", directive.text)
    write = ("rye_file_system_write", {"path": "greeting.md", "content": "Hello, Ada."})
    script = desk.script(calls(write), give(path="greeting.md"))
    for command in followed[: followed.index(["run", "greet_guest", "-i", "guest=Ada"]) + 1]:
        match command[0]:
            case "show" if "--can" in command:
                assert desk.quire(*command).returncode == 6
            case "sign":
                # On a terminal it asks; here nobody can be asked.
                desk.fine(*command, "--yes")
            case "run":
                desk.fine(*command, "--script", script)
            case _:
                desk.fine(*command)
    assert (desk.folder / "greeting.md").read_text(encoding="utf-8") == "Hello, Ada."


def test_the_page_on_pipelines(tmp_path: Path) -> None:
    desk = empty(tmp_path)
    desk.write("review.yaml", blocks("docs/reference/pipelines.md", "yaml")[0].text)
    desk.write("draft.txt", "A draft.")
    (command,) = commands_of("docs/reference/pipelines.md")
    script = desk.script({"reply": '{"passed": true, "notes": "none"}'})
    desk.fine(*command, "--script", script)
    assert (desk.folder / "verdict.txt").read_text(encoding="utf-8") == "fine"


def test_the_expressions_of_their_page(tmp_path: Path) -> None:
    first, second = commands_of("docs/reference/expressions.md")
    desk = empty(tmp_path)
    assert [desk.fine(*first).strip(), desk.fine(*second).strip()] == ["3", '"BE TO"']


def test_the_function_of_the_page_on_tools(tmp_path: Path) -> None:
    """The module, the setting, and the call that the text shows for a playbook."""
    page = "docs/guides/tools.md"
    desk = empty(tmp_path)
    desk.write("my_tools.py", blocks(page, "python")[0].text)
    desk.write("quire.toml", next(block.text for block in blocks(page, "toml") if "modules" in block.text))
    shown = re.search(r"`(@tool\(python, word_count, .+?\))`", (Path(__file__).parents[2] / page).read_text("utf-8"))
    assert shown
    inputs = "## INPUTS\n\n- `text` (string): What to count\n\n"
    desk.write("count.playbook.md", f"# Count\n\n{inputs}## STEP 1: Count\n\n{shown[1]}\n")
    desk.fine("trust", "workspace", "--yes")
    assert desk.fine("run", "count.playbook.md", "-i", "text=a small word").strip() == '{"words":2}'


def test_the_page_on_extending(tmp_path: Path, home: Path) -> None:
    """The tool, its settings and its pipeline; the servers; the group of entry points."""
    page = "docs/guides/extending.md"
    desk = empty(tmp_path)
    module, pipeline = blocks(page, "python")[0], blocks(page, "yaml")[0]
    desk.write("price_tools.py", module.text)
    desk.write("quire.toml", next(block.text for block in blocks(page, "toml") if "modules" in block.text))
    desk.write("price.yaml", pipeline.text)
    desk.fine("trust", "workspace", "--yes")
    assert desk.fine("run", "price.yaml", "-i", "gross=119").strip() == "100.0"

    desk.write(".mcp.json", blocks(page, "json")[0].text)
    assert set(load_settings(Workspace(desk.folder)).servers) == {"time", "tickets"}

    (package,) = (block.text for block in blocks(page, "toml") if "[project." in block.text)
    assert set(tomllib.loads(package)["project"]["entry-points"]) == {GROUP}


SHORTENED = {"PB101", "PB104", "PB120", "PB121", "PB201", "PB203", "PB210", "PB305", "PB307"}
"""What is said of a fragment because the rest of its playbook is not there, and of what only Quire has."""


def test_the_fragments_of_the_page_on_playbooks() -> None:
    fragments = blocks("docs/reference/playbooks.md", "markdown")
    assert len(fragments) >= 8
    for fragment in fragments:
        text = fragment.text
        if not re.search(r"^## ", text, re.MULTILINE):
            text = f"## STEP 1: A\n\nText.\n\n{text}"
        if "## STEP" not in text:
            text += "\n## STEP 1: A\n\nText.\n"
        source = quire.Source.of(text if text.startswith("# ") else f"# T\n\n{text}", "page.playbook.md")
        findings = quire.check(source)
        assert {finding.code.id for finding in findings} <= SHORTENED, str(fragment)


def test_the_settings_of_all_pages_can_be_read(tmp_path: Path, home: Path) -> None:
    tables = [block for page in PAGES for block in blocks(page, "toml") if "[project." not in block.text]
    assert len(tables) >= 6
    (tmp_path / "home").mkdir()
    for block in tables:
        # Webhooks, headers, programs, people and trust in servers are read from the user's own file only.
        is_own = any(name in block.text for name in ("[webhooks.", "[http.", "[notify]", "[servers.", "[serve.people]"))
        own, theirs = (block.text, "") if is_own else ("", block.text)
        (tmp_path / "home" / "quire.toml").write_text(own, encoding="utf-8")
        (tmp_path / "quire.toml").write_text(theirs, encoding="utf-8")
        load_settings(Workspace(tmp_path))
