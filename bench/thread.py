"""What a turn of a thread costs beside its model and the disk, and what it takes to get one started.

    python -m bench.thread

The turns are driven against a database that never waits for its disk, and only processor time is counted; the model
and the tool answer at once with two kilobytes each. Composing reads five directives and twenty knowledge items from
files, verifies each signature and puts the first message together, as `quire run` does.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.rows import Row, show
from quire.engine.conversation import Offered, ToolUse
from quire.engine.driver.drive import Drive
from quire.engine.driver.journal import Journal
from quire.engine.driver.walker import DriveLimits
from quire.engine.interpreter.thread.compose import Bundle
from quire.engine.interpreter.thread.loop import interpret_directive
from quire.engine.interpreter.thread.setup import set_up
from quire.engine.ports import EffectClass, ModelCall, ModelReply, Ports
from quire.engine.records import Batch, NewRun, RunUpdate, Status, Usage
from quire.engine.requests import Load, ToolRequest, Walk
from quire.library.directives import Directives
from quire.library.document import load
from quire.library.library import Library
from quire.plan.thread import THREAD_PATH
from quire.runs.adapters import Nobody, WallClock
from quire.stores import open_store
from quire.trust.keys import SigningKey
from quire.trust.sign_file import sign_file, signable
from quire.trust.trusted_keys import keep, own_key
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

TURNS = 200
ROUNDS = 5
CHAIN = 5
KNOWLEDGE = 20

DIRECTIVE = """# Step {name}

```xml
<directive name="{name}" version="1.0.0"{extends}>
  <metadata>
    <description>Does its part</description>
    <category>demo</category>
    <author>bench</author>
    <model tier="low" />
    <limits turns="{turns}" tokens="100000000" duration_seconds="100000" />
    <context>{context}</context>
    <permissions><execute><tool>rye.file-system.*</tool></execute></permissions>
  </metadata>
</directive>
```

Do it.
"""
ITEM = """```yaml
name: {name}
title: {name}
version: 1.0.0
entry_type: reference
category: demo
```

{text}
"""


class Instant:
    """A model that calls one tool in each turn, and the tool."""

    name = "instant"

    def effect_class(self, request: ToolRequest) -> EffectClass:
        return "read"

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        return {"text": "x" * 2000}

    async def offers(self, names: Sequence[str]) -> Sequence[Offered]:
        return []

    async def offers_under(self, grants: Sequence[str]) -> Sequence[Offered]:
        return [Offered("rye_file_system_read", "Reads.", {"type": "object"}, "rye/file-system/read")]

    async def prompt(self, server: str, name: str) -> str:
        return ""

    async def load(self, request: Load) -> str | None:
        return None

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        turn = len(call.messages)
        if turn >= 2 * TURNS:
            return ModelReply("done", self.name, Usage(1, 1, 0.0))
        uses = (ToolUse(f"u{turn}", "rye_file_system_read", {"path": f"f{turn}"}),)
        return ModelReply("y" * 2000, self.name, Usage(1, 1, 0.0), uses=uses)


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        turn = min(asyncio.run(_turns(Path(folder) / f"{number}.db")) for number in range(ROUNDS))
        composing = _composing(Path(folder) / "work")
    return [
        Row(f"turn of a thread of {TURNS}, beside model and disk", turn * 1000, "ms", "<= 1", turn <= 0.001),
        Row(
            f"compose and verify {CHAIN} directives, {KNOWLEDGE} knowledge items",
            composing * 1000,
            "ms",
            "<= 20",
            composing <= 0.02,
        ),
    ]


async def _turns(file: Path) -> float:
    """Processor seconds for one turn; writing to a database that never waits for its disk is part of it."""
    text = DIRECTIVE.format(name="main", extends="", context="", turns=10 * TURNS)
    store = open_store(file, durability="process")
    await store.create(NewRun("r", "t", "directive", "t", 0.0, {}, {}))
    parts = Instant()
    ports = Ports(store, parts, parts, parts, Nobody(), WallClock())
    lease = await store.acquire("r")
    drive = Drive(lease, Journal([]), ports, DriveLimits())
    walk: Walk = interpret_directive(set_up(Bundle("main", {"main": text}), {}, THREAD_PATH))
    started = time.process_time()
    ended = await drive.until_rest(walk, Batch(update=RunUpdate(status=Status.RUNNING)))
    spent = time.process_time() - started
    assert ended.status is Status.COMPLETED, ended
    await store.release(lease)
    await store.close()
    return spent / TURNS


def _composing(folder: Path) -> float:
    environ = {"QUIRE_HOME": str(folder.parent / "home")}
    (folder / ".ai").mkdir(parents=True)
    settings = load_settings(Workspace(folder), environ)
    keep(settings, SigningKey.generate("default"), datetime.now(UTC))
    files = {}
    for number in range(KNOWLEDGE):
        name = f"k{number}"
        files[f"knowledge/demo/{name}.md"] = ITEM.format(name=name, text=f"Knows {number}. " * 100)
    for number in range(CHAIN):
        extends = f' extends="demo/d{number + 1}"' if number + 1 < CHAIN else ""
        context = "".join(f"<before>demo/k{at}</before>" for at in range(number, KNOWLEDGE, CHAIN))
        files[f"directives/demo/d{number}.md"] = DIRECTIVE.format(
            name=f"d{number}", extends=extends, context=context, turns=9
        )
    for name, text in files.items():
        file = folder / ".ai" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        assert sign_file(signable(file, folder), own_key(settings), datetime.now(UTC)) == []
    document = load(folder / ".ai" / "directives" / "demo" / "d0.md")
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        _, setup = Directives(Library(settings), environ).compose(document, {})
        times.append(time.perf_counter() - started)
    assert "Knows 19." in setup.composed.message
    return min(times)


if __name__ == "__main__":
    show("thread", measure())
