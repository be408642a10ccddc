"""Text from outside that a step puts into a file or a server comes back from there as text from outside."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.rules.test_secrets import findings_of_file
from tests.given import given

GET = '- {tool: {name: http__get, args: {url: "https://example.org/x"}, output: page}}\n'
RUN = "- {tool: {name: shell, args: {stdin: \"\", command: !expr \"['sh', '-c', note]\"}}}\n"
SERVER = {"mcpServers": {name: {"command": name} for name in ("tickets", "mail")}}
TRUSTED = "".join(f'[servers.{name}]\nat = "{name}"\ntrusted = true\n' for name in ("tickets", "mail"))
FETCH = "pipeline: fetch\nsteps:\n" + GET + "- {tool: {name: file__write, args: {path: a.md, content: !expr page}}}\n"


@pytest.fixture(autouse=True)
def own_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "user"))
    given({"quire.toml": "", "user/quire.toml": TRUSTED, ".mcp.json": SERVER}, tmp_path)


def found(folder: Path, text: str, name: str = "p.yaml") -> set[str]:
    return {one.code.id for one in findings_of_file(folder, text, name, "TA")}


def write_and_read(written: str, read: str) -> str:
    return (
        f"pipeline: p\nsteps:\n{GET}"
        f"- {{tool: {{name: file__write, args: {{path: {written}, content: !expr page}}}}}}\n"
        f"- {{tool: {{name: file__read, args: {{path: {read}}}, output: note}}}}\n{RUN}"
    )


@pytest.mark.parametrize(
    ("written", "read", "fires"),
    [
        ("a.md", "a.md", True),
        ("a.md", "./a.md", True),
        ("b/./a.md", "b//a.md", True),
        ("b/a.md", "b/a.md/", True),
        ("/home/ada/team/a.md", "a.md", True),
        ("a.md", "/home/ada/team/a.md", True),
        ("a.md", "b.md", False),
    ],
)
def test_a_file_is_the_same_in_every_spelling(tmp_path: Path, written: str, read: str, *, fires: bool) -> None:
    assert ("TA101" in found(tmp_path, write_and_read(written, read))) is fires


@pytest.mark.parametrize(("server", "fires"), [("tickets", True), ("mail", False)])
def test_a_trusted_server_gives_back_what_it_was_given(tmp_path: Path, server: str, *, fires: bool) -> None:
    text = (
        f"pipeline: p\nsteps:\n{GET}- {{tool: {{name: tickets__create, args: {{text: !expr page}}}}}}\n"
        f"- {{tool: {{name: {server}__list, output: note}}}}\n{RUN}"
    )
    assert ("TA101" in found(tmp_path, text)) is fires


@pytest.mark.parametrize("prompt", ["file:a.md", "library:a"])
@pytest.mark.parametrize(("called", "fires"), [(FETCH, True), (FETCH.replace("!expr page", "x"), False)])
def test_a_prompt_is_read_from_a_file_that_a_callee_has_written(
    tmp_path: Path, prompt: str, called: str, *, fires: bool
) -> None:
    given({"pipelines/fetch.yaml": called, "a.md": "Be brief."}, tmp_path)
    text = (
        "# P\n\n## STEP 1: Fetch\n@tool(quire, fetch)\n\n"
        f"## STEP 2: Work\n@context(none)\n@prompt({prompt})\nGo on.\n@output(note)\n\n"
        '## STEP 3: Run\n@tool(quire, shell, {"command": ["sh", "-c", "{{note}}"]})\n'
    )
    assert ("TA101" in found(tmp_path, text, "p.playbook.md")) is fires
