"""`quire …` in a process of its own, as a user runs it, in a workspace with an empty user's space beside it."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.given import given
from tests.warm import run_quire

from quire.errors import Denied
from quire.tools.sandbox import sandboxed
from quire.values import Value


@dataclass(frozen=True, slots=True)
class Desk:
    """A workspace and who sits before it. No key of a provider is seen."""

    folder: Path
    home: Path

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        return {**kept, "QUIRE_HOME": str(self.home)}

    def quire(self, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        return run_quire(arguments, cwd=self.folder, env=self.environ, timeout=timeout)

    def fine(self, *arguments: str, timeout: float = 120) -> str:
        """What the command prints; it must end with 0."""
        done = self.quire(*arguments, timeout=timeout)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def sign(self) -> None:
        """With a key that is made for it: everything below the workspace."""
        self.fine("keys", "new")
        self.fine("sign", ".", "--yes")

    def write(self, name: str, text: str) -> Path:
        return given({name: text}, self.folder) / name

    def script(self, *entries: Value, name: str = "script.json") -> str:
        self.write(name, json.dumps(entries))
        return name

    def transcript(self, run: str = "last") -> list[dict[str, Any]]:
        """The outermost threads of a run."""
        found: list[dict[str, Any]] = json.loads(self.fine("runs", run, "--transcript", "json"))["threads"]
        return found

    def effects(self, run: str = "last") -> dict[str, float]:
        """When each recorded effect was done, by its path."""
        return recorded(self.fine("runs", run, "--json"))


def recorded(shown: str) -> dict[str, float]:
    """When each effect was done of a run that was shown as JSON, by its path."""
    return {effect["path"]: effect["at"] for effect in json.loads(shown)["effects"] if effect["state"] == "ok"}


def desk(folder: Path) -> Desk:
    """A new, empty workspace in a folder."""
    work = folder / "work"
    given({"quire.toml": ""}, work)
    return Desk(work, folder / "home")


def need_sandbox() -> None:
    """Skips a test of the shell where there is no sandbox for it."""
    try:
        sandboxed(["true"], Path(__file__).parent)
    except Denied as problem:
        pytest.skip(str(problem))


def calls(*uses: tuple[str, Value], text: str = "") -> dict[str, Value]:
    """An entry of a script: the model calls tools."""
    entry: dict[str, Value] = {"tool_calls": [{"name": name, "input": given} for name, given in uses]}
    return {**entry, "text": text} if text else entry


def give(**outputs: Value) -> dict[str, Value]:
    return calls(("directive_return", outputs))
