"""A run with 10,000 effects, made once by a real drive, for tests of what the page does with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.library.document import load
from quire.runs.options import RunOptions
from quire.runs.scripts import reopened

if TYPE_CHECKING:
    from tests.server.served import Served

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
    run = await runtime.start(document, {"items": list(range(count))}, RunOptions(model=model))
    await (await reopened(runtime, run)).drive(run)
    return run
