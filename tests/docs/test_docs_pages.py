"""What the documentation claims is tried: links, commands, code, keys, the pages that are made from the program."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.docs.pages import PAGES, ROOT, Block, blocks, commands, text_of
from tests.given import given

from quire.cli.app import group
from quire.models.choose import MODEL_BY_KEY
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

HELP = ["-h", "--help"]
QUIRE = [(place, command) for place, command in commands() if command.startswith("quire ")]
PYTHON = [block for page in ("docs/guides/python.md", "docs/guides/extending.md") for block in blocks(page, "python")]
TAGLINE = blocks("docs/start/playbook.md", "markdown")[0]


def test_there_is_something_to_try() -> None:
    assert len(PAGES) >= 12
    assert len(QUIRE) >= 15
    assert len(PYTHON) >= 5


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^(`{3,}).*?^\1$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), f"{page} links to {target}"
        if anchor:
            assert anchor in _anchors(file.read_text(encoding="utf-8")), f"{page} links to {target}"


def _anchors(text: str) -> set[str]:
    """The anchors of the headings, made as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(("place", "command"), QUIRE, ids=[place for place, _ in QUIRE])
def test_commands_have_verbs_and_options_that_exist(place: str, command: str) -> None:
    context, arguments = (
        click.Context(group, info_name="quire", help_option_names=HELP),
        shlex.split(command.partition(" > ")[0])[1:],
    )
    verb: click.Command = group
    while isinstance(verb, click.Group) and not (
        verb.invoke_without_command and (not arguments or arguments[0][0] == "-")
    ):
        name, found, arguments = verb.resolve_command(context, arguments)
        assert name and found, f"{place}: {command}"
        verb, context = found, click.Context(found, context, name, help_option_names=HELP)
    verb.make_parser(context).parse_args(list(arguments))
    verb.parse_args(context, list(arguments))


@pytest.mark.parametrize("command", [command for _, command in commands() if command.startswith("make ")])
def test_make_targets_exist(command: str) -> None:
    target = command.split()[1]
    assert re.search(rf"^{target}:", text_of("Makefile"), re.MULTILINE)


@pytest.fixture
def folder(here: Path) -> Path:
    """A folder with the playbook of the first page, so that what is run here leaves nothing elsewhere."""
    return given({"tagline.playbook.md": TAGLINE.text}, here)


def test_the_playbook_of_the_first_page_is_clean(folder: Path) -> None:
    done = _python("-m", "quire", "check", "--strict", "tagline.playbook.md")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_blocks_run(block: Block, folder: Path) -> None:
    done = _python("-c", block.text)
    assert done.returncode == 0, done.stderr


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=60)


def test_the_page_of_commands_is_that_of_the_program() -> None:
    """In a process of its own: a command remembers the help option of the context that asked it first."""
    made = _python(str(ROOT / "tests" / "docs" / "cli_page.py"))
    assert made.returncode == 0, made.stderr
    assert text_of("docs/reference/cli.md") == made.stdout, "python tests/docs/cli_page.py > docs/reference/cli.md"


DOCUMENTED = re.findall(r"^\| `([a-z_]+\.[A-Za-z_.]+)` \|", text_of("docs/reference/configuration.md"), re.MULTILINE)


@pytest.mark.parametrize("key", DOCUMENTED)
def test_documented_keys_exist(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that does not exist would be named as unknown; a wrong value is named with its key."""
    problem = _problem_of(key, tmp_path, monkeypatch)
    assert "is not a setting" not in problem
    assert f"{key.rpartition('.')[2]} must be" in problem


def test_every_key_is_documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader lists the keys of a table when it meets one that it does not know: all of them must be on the page."""
    tables = {key.rpartition(".")[0] for key in DOCUMENTED} | {"models", "safety", "pipelines"}
    tables -= {"models.tiers", "assume", "serve.people"}  # their keys are names of the user
    below = {".".join(key.split(".")[: at + 1]) for key in DOCUMENTED for at in range(key.count(".") + 1)}
    for table in sorted(tables):
        problem = _problem_of(f"{table}.zzzz", tmp_path, monkeypatch)
        known = re.search(rf"\[{re.escape(table)}\] zzzz is not a setting; known are: (.+)", problem)
        assert known, problem
        assert {f"{table}.{name}" for name in known[1].split(", ")} <= below
    top = re.search(r'"zzzz" is not a setting; known are: (.+)', _problem_of("zzzz", tmp_path, monkeypatch))
    assert top and set(top[1].split(", ")) <= {key.partition(".")[0] for key in DOCUMENTED}


def _problem_of(key: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    from quire.errors import BadConfiguration

    monkeypatch.setenv("QUIRE_HOME", str(folder / "home"))
    table, _, name = key.rpartition(".")
    # A time is no value that any setting takes.
    (folder / "quire.toml").write_text((f"[{table}]\n" if table else "") + f"{name} = 12:30:00\n")
    with pytest.raises(BadConfiguration) as caught:
        load_settings(Workspace(folder))
    return str(caught.value)


def test_every_provider_key_is_documented() -> None:
    page = text_of("docs/guides/models.md")
    places = [page.index(f"`{variable}`") for variable in MODEL_BY_KEY]
    assert places == sorted(places)
