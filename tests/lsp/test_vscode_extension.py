"""The parts of the VS Code extension that need no window: the list of cases, the lines for shells, and the manifest."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quire import __version__
from quire.formats.test.parse import parse
from quire.lsp.protocol import COMMANDS
from quire.source import read_source

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"
DENO = Path(sys.executable).with_name("deno")
MANIFEST = json.loads((EXTENSION / "package.json").read_text())
FILES = sorted(ROOT.glob("examples/**/*.test.yaml"))
FORMS = """\
# every way to write a case
defaults: {inputs: {name: not a case}}
cases:
- name: plain # with a comment
  inputs: {name: not a case}
- skip: later
  name: "in \\"quotes\\": # no comment"
- {tags: [a], name: 'it''s in braces, really', model: [x]}
- model:
    - name: not a case
  expect:
    output: |
      name: not a case
  name: at the end
other:
- name: not a case
"""

pytestmark = pytest.mark.skipif(not DENO.exists(), reason="no deno in the environment")


def test_the_cases_of_every_example_are_found() -> None:
    """The extension reads names by lines; the reader of test files is right."""
    found = _evaluate("cases.js", "input.map((text) => casesOf(text))", [path.read_text() for path in FILES])
    for path, cases in zip(FILES, found, strict=True):
        reading = parse(read_source(path))
        assert reading.file is not None
        lines = [reading.source.position(case.span.start).line - 1 for case in reading.file.cases]
        names = [case.name for case in reading.file.cases]
        assert [(case["name"], case["line"]) for case in cases] == list(zip(names, lines, strict=True)), path


def test_cases_are_found_in_every_form() -> None:
    found = _evaluate("cases.js", "casesOf(input)", FORMS)
    names = ["plain", 'in "quotes": # no comment', "it's in braces, really", "at the end"]
    assert [case["name"] for case in found] == names
    assert [case["line"] for case in found] == [3, 5, 7, 8]


WORDS = ["a b", "it's", "$(x)", "`x`", "-x", "ü", "a;b", "*"]


def test_words_reach_a_shell_as_they_are() -> None:
    line = _evaluate("shell_words.js", 'commandLine(input, "/bin/sh", "linux")', ["printf", "%s\\n", *WORDS])
    shown = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines() == WORDS


@pytest.mark.parametrize("bad", ["a\nb", "a\x03b", "a\x1b[31mb", "a\x7f", "a\x9bb"])
def test_control_characters_never_reach_a_terminal(bad: str) -> None:
    """A name that ends the line would be carried out, although it was only to be shown."""
    attempt = 'try { commandLine(["quire", input], "/bin/sh", "linux") } catch (error) { return error.message }'
    refused = f"(() => {{ {attempt} }})()"
    assert "control characters" in _evaluate("shell_words.js", refused, bad)


def test_other_shells_have_quotes_of_their_own() -> None:
    powershell = _evaluate("shell_words.js", 'commandLine(input, "pwsh.exe", "win32")', ["C:\\a b\\quire.exe", "it's"])
    assert powershell == "& 'C:\\a b\\quire.exe' 'it''s'"
    prompt = _evaluate("shell_words.js", 'commandLine(input, "C:\\\\cmd.exe", "win32")', ["quire.exe", "a b"])
    assert prompt == 'quire.exe "a b"'


def test_every_command_of_the_server_and_of_a_lens_is_known() -> None:
    """A lens whose command is not registered is an error message."""
    sources = [path.read_text() for path in (ROOT / "src" / "quire" / "lsp").rglob("*.py")]
    named = {name for text in sources for name in re.findall(r'"(quire\.[A-Za-z]+)"', text)} - {"quire.toml"}
    registered = set(re.findall(r'(?:add|registerCommand)\(\s*"(quire\.[A-Za-z]+)"', _sources()))
    assert named <= registered | set(COMMANDS)
    declared = {entry["command"] for entry in MANIFEST["contributes"]["commands"]}
    assert declared <= registered


def test_the_manifest_is_that_of_this_version() -> None:
    assert MANIFEST["version"] == __version__
    assert "quire.path" in MANIFEST["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]


def test_the_extension_can_be_published_and_starts_only_where_quire_is_used() -> None:
    assert "private" not in MANIFEST
    assert (EXTENSION / MANIFEST["icon"]).read_bytes()[16:24] == b"\0\0\0\x80\0\0\0\x80", "the icon is not 128 x 128"
    assert f"## {__version__}" in (EXTENSION / "CHANGELOG.md").read_text()
    assert all(event.startswith("workspaceContains:") for event in MANIFEST["activationEvents"])


def test_the_steps_of_the_walkthrough_name_commands_and_pictures_that_exist() -> None:
    steps = MANIFEST["contributes"]["walkthroughs"][0]["steps"]
    declared = {entry["command"] for entry in MANIFEST["contributes"]["commands"]}
    assert len(steps) == 4
    for step in steps:
        assert set(re.findall(r"\(command:([\w.]+)\)", step["description"])) <= declared
        picture = Path(step["media"]["image"])
        assert (ROOT / "docs" / "pictures" / f"editor-{picture.name}").exists()


def test_the_schemas_are_those_that_the_build_writes() -> None:
    contributed = [*MANIFEST["contributes"]["yamlValidation"], *MANIFEST["contributes"]["tomlValidation"]]
    written = re.findall(
        r'"(\w+)"', re.findall(r"for \(const format of \[(.*?)\]", (EXTENSION / "build.js").read_text())[0]
    )
    assert {entry["url"] for entry in contributed} == {f"./schemas/quire-{format}.schema.json" for format in written}


def _sources() -> str:
    return "\n".join(path.read_text() for path in (EXTENSION / "src").glob("*.js"))


def _evaluate(module: str, expression: str, value: object) -> Any:
    """Evaluate an expression of JavaScript with the names of a module, and `input`."""
    program = f"""
      import {{ createRequire }} from "node:module";
      const {{ casesOf, commandLine }} = createRequire("{EXTENSION.as_uri()}/")("./src/{module}");
      const input = {json.dumps(value)};
      console.log(JSON.stringify({expression}));
    """
    done = subprocess.run(
        [DENO, "run", "--quiet", "--no-config", "--no-remote", "--allow-read", "--ext=mjs", "-"],
        input=program,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
