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

Row = tuple[str, float, str, bool]

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
    rows: list[Row] = [("python -c pass: milliseconds", bare * 1000, "", True)]
    for (name, taken), limit in zip(middle.items(), (5, 10), strict=True):
        rows.append((f"{name}: times a bare Python", taken / bare, f"<= {limit}", taken / bare <= limit))
    return rows


def main() -> None:
    for name, value, target, ok in measure():
        print(f"{'ok  ' if ok else 'MISS'} {name:62} {value:8.2f}   {target}")


if __name__ == "__main__":
    main()
