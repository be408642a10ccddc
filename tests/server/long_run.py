"""A run with 10,000 effects, made by a real drive, and bursts of events, for tests of what the page does with them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quire.engine.records import Event
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.runs.scripts import reopened

if TYPE_CHECKING:
    from tests.server.served import Served

    from quire.values import Value

COUNT = 10_000
MANY = """pipeline: many
steps:
  - for_each:
      over: ctx.items
      max_items: 20000
      max_parallel: 50
      on_error: continue
      do: {agent: {prompt: "Say {item}"}}
      collect: {transform: {value: pipe}}
      output: said
"""


async def ten_thousand(server: Served, count: int = COUNT) -> str:
    """Run `many.yaml` in this process and return the id of the run."""
    runtime = server.site.runtime
    model = server.script("many.json", [{"default": "x" * 120, "usage": {"input_tokens": 20, "output_tokens": 9}}])
    document = load(str(server.folder / "many.yaml"))
    run = await runtime.start(document, {"items": list(range(count))}, RunOptions(model=model, limits={"calls": 0}))
    await (await reopened(runtime, run)).drive(run)
    return run


async def burst(server: Served, run: str, count: int) -> None:
    """Tell the page of so many items of a run, each with an effect and an end, as a drive would."""
    last = (await server.site.views.head(run)).version.seq
    used: dict[str, Value] = {"kind": "model", "state": "ok", "elapsed": 0.01, "cost": 0.001}
    used |= {"input_tokens": 1, "output_tokens": 1}
    for at in range(count):
        seq, path = last + 2 * at + 1, f"1/for_each[{at + 1}]/model"
        effect = Event("effect", run, 1.0, seq, path, "1", used)
        item = Event("fan_item", run, 1.0, seq + 1, "1", "1", {"index": at + 1, "state": "ok"})
        server.site.hub.listen(effect)
        server.site.hub.listen(item)
        server.site.hub.written([effect, item])
        if at % 100 == 0:
            await asyncio.sleep(0)


async def stream(server: Served, run: str, count: int) -> None:
    """Tell the page of so many pieces of a reply, as a drive would while the model still writes."""
    for at in range(count):
        text = {"text": f"word {at} "}
        server.site.hub.listen(Event("delta", run, 1.0, 0, "1/for_each[0]/model", "1", {}, text))
        if at % 100 == 0:
            await asyncio.sleep(0)
