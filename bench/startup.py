"""What a short command costs beside a Python that does nothing.

python -m bench.startup
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.parse import PAGE
from bench.rows import Row, show

ROUNDS = 21


def measure() -> list[Row]:
    quire = str(Path(sys.executable).with_name("quire"))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.playbook.md")
        page.write_text(PAGE)
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "quire --version": [quire, "--version"],
            "quire check page": [quire, "check", str(page)],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                times[name].append(time.perf_counter() - start)
    middle = {name: statistics.median(taken) for name, taken in times.items()}
    bare = middle.pop("python -c pass")
    rows = [Row("python -c pass", bare * 1000, "ms", "", True)]
    for (name, taken), limit in zip(middle.items(), (5, 10), strict=True):
        rows.append(Row(f"{name}: times a bare Python", taken / bare, "x", f"<= {limit}", taken / bare <= limit))
    return rows


if __name__ == "__main__":
    show("start-up", measure())
