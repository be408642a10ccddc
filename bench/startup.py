"""The cost of short commands beside a Python that does nothing: processor time, and instructions where valgrind is.

python -m bench.startup
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.parse import PAGE
from bench.rows import Row, show

ROUNDS = 11
STEP = "# One step\n\n## STEP 1: Say\n\nSay hello.\n"
BARE = "python -c pass"
LIMITS: Mapping[str, tuple[Sequence[str], float]] = {
    "--version": (["--version"], 3),
    "--help": (["--help"], 6),
    "run --help": (["run", "--help"], 7),
    "check of a page": (["check", "page.playbook.md"], 8),
    "show": (["show", "step.playbook.md"], 10),
    "runs": (["runs"], 10),
    "inbox": (["inbox"], 10),
    "run of one step": (["run", "step.playbook.md", "--script", "script.json", "--unattended", "--quiet"], 15),
}
"""Arguments of `quire`, and how many times a bare Python it may cost."""


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "page.playbook.md").write_text(PAGE)
        (folder / "step.playbook.md").write_text(STEP)
        (folder / "script.json").write_text('[{"default": "Hello."}]')
        (folder / "quire.toml").write_text("")
        quire = str(Path(sys.executable).with_name("quire"))
        commands = {BARE: [sys.executable, "-c", "pass"]}
        commands |= {verb: [quire, *arguments] for verb, (arguments, _) in LIMITS.items()}
        environ = {**os.environ, "QUIRE_HOME": str(folder / "home"), "PYTHONHASHSEED": "0"}
        times: dict[str, list[float]] = {verb: [] for verb in commands}
        for _ in range(ROUNDS):
            for verb, command in commands.items():
                times[verb].append(_processor_time(command, folder, environ))
        rows = _ratios("processor", {verb: statistics.median(taken) for verb, taken in times.items()})
        if valgrind := shutil.which("valgrind"):
            counted = {verb: _instructions(valgrind, command, folder, environ) for verb, command in commands.items()}
            rows += _ratios("instructions", counted)
    return rows


def _ratios(unit: str, costs: Mapping[str, float]) -> list[Row]:
    rows = []
    for verb, (_, limit) in LIMITS.items():
        ratio = costs[verb] / costs[BARE]
        rows.append(Row(f"quire {verb}: {unit}, times a bare Python", ratio, "x", f"<= {limit}", ratio <= limit))
    return rows


def _processor_time(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _instructions(valgrind: str, command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> float:
    # The script `quire` names its interpreter in the first line; valgrind follows it.
    counting = [valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", "--trace-children=yes", *command]
    done = subprocess.run(counting, check=True, capture_output=True, text=True, cwd=folder, env=environ)
    return float(sum(map(int, re.findall(r"Collected : (\d+)", done.stderr))))


if __name__ == "__main__":
    show("start-up", measure())
