"""What LangGraph takes for the same work, where it is installed: a step, a step that a crash does not lose, a fan.

    python -m bench.langgraph_peer [FOLDER]

Both sides keep what they did in a SQLite file with `synchronous=NORMAL`, which survives the death of the process, and
have written a step before the next one begins (LangGraph calls that durability "sync"). They take turns.
"""

from __future__ import annotations

import asyncio
import importlib
import operator
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, TypedDict

from bench import engine, pipeline
from bench.rows import Row, show
from quire.stores import open_store
from quire.values import Value

ROUNDS = 5
STEPS = 500
ITEMS = 1_000
NEEDED = {"langgraph": "langgraph", "langgraph.checkpoint.sqlite": "langgraph-checkpoint-sqlite"}
TEXT = "x" * 200


class Counted(TypedDict):
    n: int
    text: str


class Item(TypedDict):
    n: int


class Gathered(TypedDict):
    texts: Annotated[list[str], operator.add]


# LangGraph need not be there for the type checker either: what comes out of it here is untyped.
def _loop(saver: Any) -> Any:
    graph = importlib.import_module("langgraph.graph")
    builder = graph.StateGraph(Counted)
    builder.add_node("step", lambda state: {"n": state["n"] + 1, "text": TEXT})
    builder.add_edge(graph.START, "step")
    builder.add_conditional_edges("step", lambda state: "step" if state["n"] < STEPS else graph.END)
    return builder.compile(checkpointer=saver)


def _fan(saver: Any) -> Any:
    graph, types = importlib.import_module("langgraph.graph"), importlib.import_module("langgraph.types")
    builder = graph.StateGraph(Gathered)
    builder.add_node("begin", lambda state: {})
    builder.add_node("work", lambda item: {"texts": [TEXT]}, input_schema=Item)
    builder.add_edge(graph.START, "begin")
    builder.add_conditional_edges("begin", lambda state: [types.Send("work", {"n": n}) for n in range(ITEMS)], ["work"])
    return builder.compile(checkpointer=saver)


def _their_steps(path: Path | None) -> float:
    """Seconds of one run; with a path, of one that is kept there."""
    took, ended = _timed(_loop, {"n": 0, "text": ""}, path)
    assert ended["n"] == STEPS
    return took


def _their_fan(path: Path) -> float:
    took, ended = _timed(_fan, {"texts": []}, path)
    assert len(ended["texts"]) == ITEMS
    return took


def _timed(make: Callable[[Any], Any], given: object, path: Path | None) -> tuple[float, Any]:
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": STEPS + 10}
    if path is None:
        graph = make(None)
        started = time.perf_counter()
        ended = graph.invoke(given, config)
        return time.perf_counter() - started, ended
    saver = importlib.import_module("langgraph.checkpoint.sqlite").SqliteSaver
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        connection.execute("PRAGMA synchronous = NORMAL")
        kept = saver(connection)
        kept.setup()
        graph = make(kept)
        started = time.perf_counter()
        ended = graph.invoke(given, config, durability="sync")
        return time.perf_counter() - started, ended


async def _our_steps(path: Path, tool: bool) -> float:
    store = open_store(path, durability="process")
    took, _ = await engine.drive(store, "run", engine.document(STEPS, tool))
    await store.close()
    return took


async def _our_fan(path: Path) -> float:
    store = open_store(path, durability="process")
    items: dict[str, Value] = {"items": list(range(ITEMS))}
    took, _ = await pipeline.drive(store, "run", pipeline.fan(), items)
    await store.close()
    return took


def _compare(name: str, times: int, ours: Callable[[int], float], theirs: Callable[[int], float]) -> list[Row]:
    pairs = [(ours(number), theirs(number)) for number in range(ROUNDS)]
    ratio = statistics.median(theirs / ours for ours, theirs in pairs)
    mine, other = (statistics.median(side) for side in zip(*pairs, strict=True))
    return [
        Row(name, mine * 1e3, "ms", "", True),
        Row(f"{name}, LangGraph", other * 1e3, "ms", "the peer", True),
        Row(f"{name}: times faster", ratio, "×", f"at least {times}", ratio >= times),
    ]


def measure(folder: Path | None = None) -> list[Row]:
    missing = [package for module, package in NEEDED.items() if not _importable(module)]
    if missing:
        return [Row("LangGraph beside us", 0.0, "", f"not installed: pip install {' '.join(missing)}", True)]
    with tempfile.TemporaryDirectory(dir=folder) as here:
        return _measure(Path(here))


def _measure(here: Path) -> list[Row]:
    return [
        *_compare(
            f"{STEPS} pure steps",
            15,
            lambda number: asyncio.run(_our_steps(here / f"pure-{number}.db", False)),
            lambda number: _their_steps(None),
        ),
        *_compare(
            f"{STEPS} journaled steps, process-crash durable",
            6,
            lambda number: asyncio.run(_our_steps(here / f"steps-{number}.db", True)),
            lambda number: _their_steps(here / f"their-steps-{number}.db"),
        ),
        *_compare(
            f"for_each of {ITEMS:,}, journaled",
            8,
            lambda number: asyncio.run(_our_fan(here / f"fan-{number}.db")),
            lambda number: _their_fan(here / f"their-fan-{number}.db"),
        ),
    ]


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it would be in
        return False


if __name__ == "__main__":
    show("langgraph", measure(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
