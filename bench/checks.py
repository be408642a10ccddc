"""`quire check` of 500 documents: the rules of the formats alone, with the analysis, and with comments that hide; and
of 1,400 playbooks with 6 MB.

    python -m bench.checks

The documents are playbooks, pipelines and directives of about 2 KB, one folder with one workspace. Each number is
measured in this process, in turns; the last two are fresh processes.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.rows import Row, show
from quire import formats
from quire.diagnostics import Diagnostic
from quire.library.check import DocumentCheck
from quire.source import Source, read_source

Check = Callable[[Source], tuple[Diagnostic, ...]]

DOCUMENTS = 500
PLAYBOOKS = 1_400
ROUNDS = 5
_PROSE = "Write what a reader needs, in short sentences, and leave out what does not help. "


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        os.environ["QUIRE_HOME"] = str(Path(name, "home"))
        Path("quire.toml").write_text("")
        plain, commented = _written(Path("plain"), comment=False), _written(Path("commented"), comment=True)
        least = _least(
            {
                "formats": (plain, _of_format),
                "all": (plain, DocumentCheck().of),
                "commented": (commented, DocumentCheck().of),
            }
        )
        whole = min(_process("plain") for _ in range(ROUNDS))
        total = _write_playbooks(Path("playbooks"))
        many = min(_processor_time("playbooks") for _ in range(ROUNDS))
    size = sum(len(one.text) for one in plain) / len(plain)
    ratio = least["all"] / least["formats"]
    added = (least["all"] - least["formats"]) / DOCUMENTS * 1e3
    with_comments = least["commented"] / least["all"]
    name = f"check of {DOCUMENTS} documents of {size / 1000:.1f} KB"
    return [
        Row(f"{name}: rules of the formats", least["formats"], "s", "the measure", True),
        Row(f"{name}: all rules", least["all"], "s", "", True),
        Row(f"{name}: all rules / rules of the formats", ratio, "×", "at most 2", ratio <= 2),
        Row("added by the analysis for each document", added, "ms", "at most 1", added <= 1),
        Row(
            f"{name}: each with a comment that hides / without", with_comments, "×", "at most 1.3", with_comments <= 1.3
        ),
        Row(f"quire check of {DOCUMENTS} documents, a process of its own", whole, "s", "", True),
        Row(
            f"quire check of {PLAYBOOKS:,} playbooks, {total / 1e6:.1f} MB: processor", many, "s", "<= 1.2", many <= 1.2
        ),
    ]


def _least(works: dict[str, tuple[list[Source], Check]]) -> dict[str, float]:
    """Return the least processor time of each work, measured in turns."""
    times: dict[str, list[float]] = {name: [] for name in works}
    turn = 0
    for _ in range(ROUNDS):
        for name, (sources, check) in works.items():
            turn += 1
            # A text that was read before would be found in a cache.
            fresh = [Source(source.name, source.text + "\n" * turn) for source in sources]
            started = time.process_time()
            for source in fresh:
                check(source)
            times[name].append(time.process_time() - started)
    return {name: min(several) for name, several in times.items()}


_FORMATS = DocumentCheck()


def _of_format(source: Source) -> tuple[Diagnostic, ...]:
    match formats.format_of(source):
        case "pipeline":
            return _FORMATS.pipeline(source)
        case "directive":
            return _FORMATS.directive(source)
    return formats.check(source)


def _process(folder: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "quire", "check", folder], check=False, capture_output=True)
    return time.perf_counter() - started


def _processor_time(folder: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _process(folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _write_playbooks(folder: Path) -> int:
    """Write many playbooks, and return how long all of them are."""
    folder.mkdir()
    total = 0
    for number in range(PLAYBOOKS):
        name, text = _playbook(number, comment=False, sentences=8)
        (folder / name).write_text(text)
        total += len(text)
    return total


def _written(folder: Path, *, comment: bool) -> list[Source]:
    folder.mkdir()
    sources = []
    for number in range(DOCUMENTS):
        kind = number % 5
        name, text = _pipeline(number, comment) if kind in (1, 3) else _playbook(number, comment)
        if kind == 4:
            name, text = _directive(number, comment)
        (folder / name).write_text(text)
        sources.append(read_source(folder / name))
    return sources


def _playbook(number: int, comment: bool, sentences: int = 3) -> tuple[str, str]:
    steps = "".join(
        f"## STEP {at}: Part {at}\n\n{_PROSE * sentences}On {{{{topic}}}}.\n\n@output(part{at})\n\n"
        for at in range(1, 7)
    )
    first = '<!-- quire: allow PB201 because "the reader fills it in" -->\n' if comment else ""
    end = "## STEP 7: Join\n\nJoin {{part1}} to {{part6}} for {{reader}}.\n"
    return f"p{number}.playbook.md", f"{first}# Page {number}\n\n## INPUTS\n\n- `topic` (string): x\n\n{steps}{end}"


def _pipeline(number: int, comment: bool) -> tuple[str, str]:
    steps = "".join(
        f"  - agent: {{prompt: '{_PROSE * 2}On {{ctx.topic}}.', schema: report, output: r{at}}}\n" for at in range(5)
    )
    line = '  # quire: allow PL209 because "every report has a note"\n' if comment else ""
    end = f"{line}  - transform: {{value: ctx.r0.note, output: last}}\n"
    end += "  - tool: {name: file__write, args: {path: note.md, content: !expr ctx.last}}\n"
    schema = "---\nschema: report\nfields:\n  text: {type: string}\n  note: {type: string, required: false}\n"
    return f"p{number}.yaml", f"pipeline: p{number}\ndescription: x\nsteps:\n{steps}{end}{schema}"


def _directive(number: int, comment: bool) -> tuple[str, str]:
    line = '    <!-- quire: allow DR107 because "the type is ours" -->\n' if comment else ""
    return f"d{number}.md", (
        f'# D\n\n```xml\n<directive name="d{number}" version="1.0.0">\n'
        "  <metadata>\n    <description>x</description>\n"
        "    <category>c</category>\n    <author>a</author>\n"
        '    <model tier="low" />\n'
        '    <limits turns="6" />\n'
        "    <permissions><execute><tool>rye.file-system.read</tool></execute></permissions>\n"
        f'  </metadata>\n  <inputs>\n{line}    <input name="topic" type="ours">x</input>\n  </inputs>\n'
        "</directive>\n```\n\n"
        f"{_PROSE * 16}\n\nWrite on {{input:topic}}.\n"
    )


if __name__ == "__main__":
    show("checks", measure())
