"""`quire lock` of 100 documents, and how much longer `quire check` takes with `--locked`.

    python -m bench.lock

The documents are those of the examples, each with a comment of its own, so that none is found in a cache: about 2 KB
each. Processor time is measured, in processes of their own. The speed of a machine changes from minute to minute; the
start of a bare Python shows how fast it was.

A check and one with `--locked` are measured in turns, and the shortest of each are compared: the mean of several of
them, because a single one may be short by chance, and two long times are subtracted.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean

from bench.rows import Row, show

DOCUMENTS = 100
ROUNDS = 20
SHORTEST = 4
PLAIN = "hello.playbook.md"
"""A document of the examples that calls no tool and no other document."""
_EXAMPLES = Path(__file__).parents[1] / "examples"


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        os.environ["QUIRE_HOME"] = str(Path(name, "home"))
        size = _write(Path("many"), DOCUMENTS)
        with contextlib.chdir("many"):
            locked = _least("lock", "--no-tools")
            one = _added(next(str(file) for file in sorted(Path("docs").glob("*.yaml"))))
            plain = _added(next(str(file) for file in sorted(Path("docs").glob(f"*-{PLAIN}"))))
            every = _added()
            bare = min(_processor_time("-I", "-c", "pass") for _ in range(ROUNDS))
    name = f"quire lock of {DOCUMENTS} documents of {size / 1000:.1f} KB"
    return [
        Row(name, locked, "s", "at most 1", locked <= 1),
        Row(f"check --locked of a pipeline, in a lock of {DOCUMENTS}: added", one, "ms", "at most 60", one <= 60),
        Row("check --locked of a playbook that calls nothing: added", plain, "ms", "at most 60", plain <= 60),
        Row(f"check --locked of {DOCUMENTS} documents: added for each", every / DOCUMENTS, "ms", "", True),
        Row("a bare Python, to compare with", bare * 1000, "ms", "", True),
    ]


def _write(folder: Path, count: int) -> float:
    """Write the documents, and return how long they are on average."""
    (folder / "docs").mkdir(parents=True)
    (folder / "quire.toml").write_text("[assume]\nreaders = 20\n")
    patterns = ("*/*.yaml", "*/*.playbook.md")
    files = sorted(one for pattern in patterns for one in _EXAMPLES.glob(pattern) if ".test." not in one.name)
    files = [one for one in files if one.name != "compose.yaml"]
    total = 0
    for number in range(count):
        file = files[number % len(files)]
        text = file.read_text(encoding="utf-8")
        is_yaml = file.suffix == ".yaml"
        text = text.replace("steps:", f"# {number}\nsteps:", 1) if is_yaml else f"{text}\n<!-- {number} -->\n"
        (folder / "docs" / f"{number:03}-{file.name}").write_text(text, encoding="utf-8")
        total += len(text.encode())
    return total / count


def _added(*paths: str) -> float:
    """Return by how many milliseconds a check takes longer with `--locked`, measured in turns."""
    plain, held = [], []
    for _ in range(ROUNDS):
        plain.append(_seconds("check", *paths))
        held.append(_seconds("check", "--locked", *paths))
    return (_short(held) - _short(plain)) * 1000


def _short(times: list[float]) -> float:
    return fmean(sorted(times)[:SHORTEST])


def _least(*arguments: str) -> float:
    return min(_seconds(*arguments) for _ in range(ROUNDS))


def _seconds(*arguments: str) -> float:
    """Return the processor time of one command of Quire."""
    return _processor_time("-m", "quire", *arguments)


def _processor_time(*arguments: str) -> float:
    before = _children()
    command = [sys.executable, *arguments]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    show("lock", measure())
