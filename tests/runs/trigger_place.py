"""A workspace with triggers, for tests: a clock that they set, and runtimes that share one store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from quire.engine.ports import Store
from quire.engine.records import RunRow
from quire.runs.runtime import Runtime
from quire.runs.triggers import Triggers
from quire.stores import open_store
from quire.trust.seal import user_seal
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace

HELLO = """# Hello

## INPUTS

- `day` (string): the day

## STEP 1: Say

Say hello for {{day}}.
"""
ASKING = """# Asking

## STEP 1: Ask

@elicit(input, "Which one?")

## STEP 2: Say

Say hello.
"""
DAY = 'inputs = { day = {expr = "due"} }'
NOON = 1_800_014_400.0
"""2027-01-15T12:00:00Z."""


class Clock:
    def __init__(self, time: float = NOON) -> None:
        self.time = time

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


class Place:
    """`work` is the workspace, `home` the folder of its user."""

    def __init__(self, base: Path) -> None:
        self.base, self.work, self.home = base, base / "work", base / "home"
        self.clock = Clock()
        for folder in (self.work, self.home):
            folder.mkdir(parents=True)
        (self.work / "quire.toml").write_text("")
        (self.work / "hello.playbook.md").write_text(HELLO)
        (self.work / "asking.playbook.md").write_text(ASKING)
        (self.work / "script.json").write_text(json.dumps([{"default": "Hello."}]))
        self.environ = {"QUIRE_HOME": str(self.home), "PATH": "/usr/bin:/bin", "SHORT": "x" * 23, "LONG": "x" * 24}

    def configure(self, **triggers: str) -> None:
        """Write tables of triggers. Each has the scripted model, and the document of its first line."""
        script = self.work / "script.json"
        model = f'model = "script:{script}"'
        hello = f'run = "hello"\n{DAY}\n'
        tables = [
            "\n".join(
                [f"[triggers.{name}]", "" if "model =" in text else model, "" if "run =" in text else hello, text]
            )
            for name, text in triggers.items()
        ]
        (self.home / "quire.toml").write_text("\n".join(tables))

    def runtime(self, store: Store | None = None) -> Runtime:
        settings = load_settings(find_workspace(self.work, self.environ), self.environ)
        seal = user_seal(self.home, self.environ)
        opened = store or open_store(self.work / ".quire" / "quire.db", seal=seal, now=self.clock.now)
        return Runtime(settings, opened, environ=self.environ, clock=self.clock)

    async def enabled(self, runtime: Runtime, *names: str) -> Triggers:
        """Enable triggers as they are, and return all of them."""
        triggers = Triggers(runtime)
        for name in names:
            await triggers.enable(name, (await triggers.propose(name)).digest, "ada")
        return triggers


async def nothing(run: str) -> None:
    """Drive no run."""


def day_of(row: RunRow) -> str:
    """Return the input `day` of a run."""
    inputs = cast("Mapping[str, Value]", row.pins["inputs"])
    return str(inputs["day"])
