"""Programs of users pass `mypy --strict`: those of the documentation, and one that uses everything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.pages import blocks

CONFIGURATION = """[mypy]
strict = true
follow_imports = skip

[mypy-quire,quire.api.*,quire.library.document,quire.source,quire.values,quire.diagnostics,quire.errors,quire.engine.records]
follow_imports = silent

[mypy-quire.engine.ports,quire.models.scripted,quire.runs,quire.runs.runtime]
follow_imports = silent
"""
"""Only the modules whose types a program sees are read: the whole package with its libraries takes minutes."""

PROGRAM = """
import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import quire


@dataclass
class Line:
    name: str


class Row(TypedDict):
    name: str


class Me:
    async def ask(self, question: object, problem: str) -> str | None:
        return None


async def main() -> None:
    allow: list[str] = ["shell"]
    text: quire.Source = quire.Source.of("pipeline: a")
    for document in ("name", Path("file.yaml"), text, quire.load("file.yaml")):
        result = await quire.run(document, allow=allow, breakpoints={"1"}, people=Me(), inputs={"a": [1, {"b": None}]})
        value: quire.Value = result.value
        stores: Mapping[str, quire.Value] = result.stores
        print(value, stores["a"], result.outputs.get("b"))
        line: Line = result.parse(Line)
        row: Row = result.parse(Row)
        numbers: list[int] = result.parse(list[int])
        print(line.name.upper(), row["name"].upper(), numbers[0] + 1, result.parse(str).upper())
    launched: quire.Launch = await quire.launch("x", allow={"shell"}, people=Me())
    if launched["status"] == "ok":
        print(launched["data"]["output"], launched["data"]["named_stores"]["x"])
    elif launched["status"] == "error":
        print(launched["data"]["error"].upper(), launched["data"].get("run_id"))
    else:
        print(launched["data"]["run_id"])


ended: quire.Result = quire.run_sync("name", inputs={"a": 1}, allow=["shell"], unattended="yes")
print(ended.output.upper())
wrong = quire.run_sync("name", inputs=1)  # type: ignore[arg-type]
unknown = quire.run_sync("name", input={})  # type: ignore[call-arg]
problem: str = quire.WrongResult("x").path
asyncio.run(main())
"""


def test_programs_pass_mypy_strict(tmp_path: Path) -> None:
    programs = {f"block_{block.line}": block.text for block in blocks("docs/guides/python.md", "python")}
    programs["program"] = PROGRAM
    for name, text in programs.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(CONFIGURATION, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir=cache", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
