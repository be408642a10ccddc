"""A whole suite: 1,000 small cases in 200 test files, with the start of the process, by `quire test`.

python -m bench.document_suite

`PROMPTFOO=/path/to/promptfoo` also measures `promptfoo eval` with as many cases on its echo provider. That does less:
one prompt is rendered and compared, and no workflow runs.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.rows import Row, show

FILES, CASES, ROUNDS = 200, 5, 5
MOST = 1.5
DOCUMENT = """\
# Tea

## INPUTS

- `kind` (string): Which tea

## STEP 1: Describe

Describe {{kind}} in one line.

## STEP 2: Shorten

Shorten it.
"""
CASE = """\
  - name: case {number}
    inputs: {{kind: tea {number}}}
    model: {{"1": "Long {number}.", "2": "Short {number}."}}
    expect:
      output: "Short {number}."
      prompts: {{"1": {{contains: tea {number}}}, "2": {{contains: "Long {number}."}}}}
"""


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder)
        environ = {**os.environ, "QUIRE_HOME": str(folder / "home")}
        command = [str(Path(sys.executable).with_name("quire")), "test"]
        wall, processor = _best(command, folder, environ)
        count = f"{FILES * CASES:,} cases in {FILES} files"
        rows = [
            Row(f"{count}, with the start", wall, "s", f"<= {MOST}", wall <= MOST),
            Row(f"{count}, processor time", processor, "s", "", True),
        ]
        if peer := os.environ.get("PROMPTFOO"):
            rows += _peer(peer, folder, environ, wall, processor)
    return rows


def write_suite(folder: Path) -> None:
    (folder / "quire.toml").write_text("")
    cases = "cases:\n" + "".join(CASE.format(number=number) for number in range(CASES))
    for number in range(FILES):
        (folder / f"tea{number}.playbook.md").write_text(DOCUMENT)
        (folder / f"tea{number}.test.yaml").write_text(cases)


def _peer(program: str, folder: Path, environ: Mapping[str, str], wall: float, processor: float) -> list[Row]:
    tests = [
        {"vars": {"kind": kind}, "assert": [{"type": "contains", "value": kind}]}
        for kind in (f"tea {number}" for number in range(FILES * CASES))
    ]
    config = {"prompts": ["Describe {{kind}} in one line."], "providers": ["echo"], "tests": tests}
    (folder / "peer.json").write_text(json.dumps(config))
    command = [program, "eval", "-c", "peer.json", "--no-cache", "--no-table", "--no-write", "--no-progress-bar"]
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_CONFIG_DIR": str(folder)}
    other_wall, other_processor = _best(command, folder, {**environ, **quiet})
    return [
        Row(
            "promptfoo eval, echo provider, as many cases", other_wall, "s", f"{other_wall / wall:.1f} times ours", True
        ),
        Row(
            "promptfoo eval, processor time",
            other_processor,
            "s",
            f"{other_processor / processor:.1f} times ours",
            True,
        ),
    ]


def _best(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> tuple[float, float]:
    """Return the shortest wall and processor time in seconds: other rounds have shared the cores."""
    walls, processors = [], []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        subprocess.run(command, cwd=folder, env=environ, check=True, capture_output=True)
        walls.append(time.perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processors.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(walls), min(processors)


if __name__ == "__main__":
    show("document suite", measure())
