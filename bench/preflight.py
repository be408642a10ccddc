"""What the look before the first step costs, in a fresh process each time.

python -m bench.preflight
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.rows import Row, show

ROUNDS = 11
MOST = 5.0
STEPS = 20

READ = '@tool(quire, file__read, {"path": "page.playbook.md", "limit": 5})'
DOCUMENTS = {
    "20 steps without tools": "Say {{x}}.",
    "20 steps with built-in tools": READ,
}
CHILD = """
import asyncio, sys, time
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.runtime import Runtime
from quire.runs.preflight import Start
from quire.workspace.grants import default_grants

async def main():
    runtime = Runtime.open(model=ScriptedModel([{"default": "fine"}]))
    document = load(sys.argv[1])
    plan, grants = document.runnable(), default_grants(runtime.settings)
    start = time.perf_counter()
    warnings = await runtime.preflight(Start(plan, {}, {}, grants, None))
    print((time.perf_counter() - start) * 1000)
    assert not warnings
    await runtime.close()

asyncio.run(main())
"""


def measure() -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "quire.toml").write_text("")
        environ = {**os.environ, "QUIRE_HOME": str(Path(folder, "home"))}
        for name, text in DOCUMENTS.items():
            steps = "\n\n".join(f"## STEP {number}: S\n\n{text}" for number in range(1, STEPS + 1))
            page = Path(folder, "page.playbook.md")
            page.write_text(f"# Page\n\n## INPUTS\n\n- `x` (string: a)\n\n{steps}\n")
            command = [sys.executable, "-c", CHILD, str(page)]
            times = [
                float(subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environ).stdout)
                for _ in range(ROUNDS)
            ]
            middle = statistics.median(times)
            rows.append(Row(f"preflight, {name}", middle, "ms", f"<= {MOST:.0f}", middle <= MOST))
    return rows


if __name__ == "__main__":
    show("preflight", measure())
