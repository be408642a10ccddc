"""A thousand runs at once in one process, and one playbook of many small steps: processor time, wall time and memory.

    python -m bench.many [FOLDER]

The folder decides which disk is measured. Each measurement is a fresh process, and beside each the same number of bare
SQLite commits and JSON encodings is made, which is the least that a run with a journal can cost.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.rows import Row, show

RUNS = 1_000
STEPS = 5
LONG = 6_300
"""Steps of a playbook of about 171 KB."""
ROUNDS = 3

COMMON = """
import asyncio, json, resource, sqlite3, sys, time
from pathlib import Path

def page(steps):
    parts = "\\n\\n".join(f"## STEP {n}: S\\n\\nSay {n}." for n in range(1, steps + 1))
    return f"# Page\\n\\n{parts}\\n"

def measured(work):
    usage = resource.getrusage(resource.RUSAGE_SELF)
    before, started = usage.ru_utime + usage.ru_stime, time.perf_counter()
    work()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    processor = usage.ru_utime + usage.ru_stime - before
    return {"processor": processor, "wall": time.perf_counter() - started, "memory": usage.ru_maxrss / 1024}
"""
RUN = """
import quire
from quire.models.scripted import ScriptedModel

runs, steps = map(int, sys.argv[1:])
Path("page.playbook.md").write_text(page(steps))

async def main():
    model = ScriptedModel([{"default": "fine"}], keep_calls=False)
    return await asyncio.gather(*(quire.run("page.playbook.md", model=model, unattended=True) for _ in range(runs)))

def work():
    assert all(result.status == "completed" for result in asyncio.run(main()))

print(json.dumps(measured(work)))
"""
BARE = """
runs, steps = map(int, sys.argv[1:])

def work():
    raw = sqlite3.connect("raw.db", isolation_level=None)
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("PRAGMA synchronous = FULL")
    raw.execute("CREATE TABLE small (id INTEGER PRIMARY KEY, text TEXT)")
    for number in range(runs * steps):
        text = json.dumps({"path": f"{number}/model", "state": "ok", "value": "fine", "usage": [0, 0, 0.0]})
        raw.execute("INSERT INTO small (text) VALUES (?)", (text,))

print(json.dumps(measured(work)))
"""


def measure(folder: Path | None = None) -> list[Row]:
    many, bare = _least(RUN, RUNS, STEPS, folder), _least(BARE, RUNS, STEPS, folder)
    half, long = _least(RUN, 1, LONG // 2, folder), _least(RUN, 1, LONG, folder)
    raw = _least(BARE, 1, LONG, folder)
    name, page = f"{RUNS:,} runs of {STEPS} steps at once", f"a playbook of {LONG:,} steps"
    ratio, growth = many["processor"] / bare["processor"], long["wall"] / half["wall"]
    memory = long["memory"] / half["memory"]
    return [
        Row(f"{name}: processor", many["processor"], "s", "at most 2.5", many["processor"] <= 2.5),
        Row(f"{name}: wall", many["wall"], "s", "", True),
        Row(f"{name}: peak memory", many["memory"], "MB", "at most 150", many["memory"] <= 150),
        Row(f"{name}: processor / as many commits and encodings", ratio, "×", "at most 10", ratio <= 10),
        Row(f"{page}: processor", long["processor"], "s", "", True),
        Row(f"{page}: wall", long["wall"], "s", "at most 3", long["wall"] <= 3),
        Row(f"{LONG:,} bare commits and encodings: wall", raw["wall"], "s", "the measure", True),
        Row(f"{page}: wall / bare", long["wall"] / raw["wall"], "×", "", True),
        Row(f"{page} / one of half as many: wall", growth, "×", "at most 2.3", growth <= 2.3),
        Row(f"{page} / one of half as many: memory", memory, "×", "at most 2.3", memory <= 2.3),
    ]


def _least(script: str, runs: int, steps: int, folder: Path | None) -> dict[str, float]:
    """The least of each number in some rounds, because a machine with other work only ever adds to them."""
    rounds = [_measured(script, runs, steps, folder) for _ in range(ROUNDS)]
    return {name: min(one[name] for one in rounds) for name in rounds[0]}


def _measured(script: str, runs: int, steps: int, folder: Path | None) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=folder) as here:
        Path(here, "quire.toml").write_text("")
        environ = {**os.environ, "QUIRE_HOME": str(Path(here, "home"))}
        command = [sys.executable, "-c", COMMON + script, str(runs), str(steps)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=here, env=environ)
        measured: dict[str, float] = json.loads(done.stdout)
        return measured


if __name__ == "__main__":
    show("many", measure(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
