"""`quire check` looks at the tools that documents call, as a run does before it starts (G4, G11)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke
from tests.given import given

from quire.cli import main
from quire.cli.check import command
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import find_workspace

MODULE = """import pathlib, quire

pathlib.Path("imported").write_text("yes")
print("talk")

class Figure:
    def __init__(self, a, *, b): ...

@quire.tool
def checked_draw(width: int) -> str:
    return "x"

@quire.tool
def checked_plot(figure: Figure) -> str:
    return "x"
"""


def found(invoke: Invoke, file: Path) -> list[tuple[str, str]]:
    result = invoke(command, str(file), "--json")
    return [(one["code"], one["message"]) for one in json.loads(result.stdout)]


def page(folder: Path, *calls: str) -> Path:
    file = folder / "page.playbook.md"
    steps = "\n\n".join(f"## STEP {number}: S\n\n{call}" for number, call in enumerate(calls, 1))
    file.write_text(f"# Page\n\n## INPUTS\n\n- `x` (string: a): X\n\n## STEP 0: Z\n\nSay {{{{x}}}}.\n\n{steps}\n")
    return file


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ('@tool(quire, file__read, {"path": "{{x}}", "limit": 3})', []),
        ('@tool(quire, file__read, {"pth": "{{x}}"})',
         ["path is missing", "unknown argument pth; did you mean path?"]),
        ('@tool(quire, file__read, {"path": "{{x}}", "limit": "3"})', ['limit: "3" is not of type "integer"']),
        ('@tool(quire, "rye/file-system/read", {"path": 3})', ['path: 3 is not of type "string"']),
        ('@tool(quire, file__write, {"files": [{"path": "a", "content": "{{x}}"}]})', []),
        ("@tool(quire, file__read, {{x}})", []),
        ('@tool(quire, ask, {"promt": "Who?"})',
         ["prompt is missing", "unknown argument promt; did you mean prompt?"]),
    ],
)  # fmt: skip
def test_arguments_of_built_in_tools(workspace: Path, invoke: Invoke, call: str, said: list[str]) -> None:
    told = [message.partition(": ")[2] for code, message in found(invoke, page(workspace, call)) if code == "PB232"]
    assert told == said


def test_a_connection_that_is_not_there(workspace: Path, invoke: Invoke) -> None:
    """seeds G4, the rest: known from `.mcp.json`, which is only read."""
    (workspace / ".mcp.json").write_text(
        '{"mcpServers": {"travel": {"command": "/nothing"}, "off": {"command": "x", "disabled": true}}}'
    )
    calls = ("@tool(travle, book)", "@tool(travel, book)", "@tool(off, x)", "@tool(nosuch, t)")
    told = [(code, message) for code, message in found(invoke, page(workspace, *calls)) if code == "PB225"]
    ends = ".mcp.json has no server of that name"
    assert told == [("PB225", f'Unknown connection "{name}": {ends}') for name in ("travle", "nosuch")]


def test_python_tools_are_imported_only_in_a_workspace_that_the_user_agreed_to(
    workspace: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "checked_tools", raising=False)
    given({"checked_tools.py": MODULE, "quire.toml": '[tools]\nmodules = ["checked_tools"]\n'}, workspace)
    called = page(workspace, '@tool(python, checked_plot, {"figure": 1})', '@tool(python, checked_draw, {"wdth": 1})')
    pipeline = workspace / "p.yaml"
    names = ("python__checked_plot", "checked_plot", "checked_draw")
    pipeline.write_text("pipeline: p\nsteps:\n" + "".join(f"- tool: {{name: {name}, args: {{}}}}\n" for name in names))
    assert [code for code, _ in found(invoke, called) if code == "PB233"] == []
    assert [code for code, _ in found(invoke, pipeline) if code == "PL119"] == []
    assert not (workspace / "imported").exists()
    confirm(load_settings(find_workspace(workspace)))
    quiet = page(workspace, '@tool(quire, file__read, {"path": "a"})')
    found(invoke, quiet)
    assert not (workspace / "imported").exists()
    called = page(workspace, '@tool(python, checked_plot, {"figure": 1})', '@tool(python, checked_draw, {"wdth": 1})')
    told = [message for code, message in found(invoke, called) if code == "PB233"]
    assert "the type Figure of figure cannot be given as JSON" in told[0]
    assert told[1:] == [
        "checked_draw: width is missing",
        "checked_draw: unknown argument wdth; did you mean width?",
    ]
    assert [code for code, _ in found(invoke, pipeline) if code == "PL119"] == ["PL119"] * 2


def test_a_module_that_is_named_like_its_file_is_an_error(
    workspace: Path, invoke: Invoke, capsys: pytest.CaptureFixture[str]
) -> None:
    """Newcomer M12."""
    given({"own_tools.py": "", "quire.toml": '[tools]\nmodules = ["own_tools.py"]\n'}, workspace)
    confirm(load_settings(find_workspace(workspace)))
    file = page(workspace, "@tool(python, draw, {})")
    assert main(["check", str(file), "--format", "concise"]) == 1
    assert "PB233 error: draw: the module own_tools.py cannot be loaded: write own_tools, without .py" in (
        capsys.readouterr().out
    )


def test_a_module_that_cannot_be_loaded_is_said(workspace: Path, invoke: Invoke) -> None:
    given({"broken_tools.py": "1 / 0\n", "quire.toml": '[tools]\nmodules = ["broken_tools"]\n'}, workspace)
    confirm(load_settings(find_workspace(workspace)))
    told = found(invoke, page(workspace, "@tool(python, draw, {})"))
    assert ("PB233", "draw: the module broken_tools cannot be loaded: ZeroDivisionError: division by zero") in told


def test_caps_of_the_workspace_are_held_against_pipelines(workspace: Path, invoke: Invoke) -> None:
    (workspace / "quire.toml").write_text("[safety.spawn]\nmax_pipeline_spawns = 1\nmax_pipeline_fan_out_depth = 1\n")
    inner = "{transform: {value: pipe}}"
    fan = f"parallel: {{branches: {{a: {inner}}}, on_error: abort, collect: {inner}}}"
    file = workspace / "p.yaml"
    nested = fan.replace(inner, f"{{{fan}}}", 1)
    file.write_text(f"pipeline: p\nsteps:\n- agent: {{prompt: a}}\n- agent: {{prompt: b}}\n- {nested}\n")
    assert [code for code, _ in found(invoke, file) if code[:3] == "PL1"] == ["PL116", "PL117"]
