"""Documents that are made to be dear: twice the size takes about twice the work, in checks and in runs.

Sizes are so large that a square would show.
"""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.growth import assert_linear

from quire.display.diagnostics import Findings, printer
from quire.engine.driver.drive import Drive
from quire.engine.driver.journal import Journal
from quire.engine.driver.walker import DriveLimits
from quire.engine.interpreter.playbook.interpret import interpret
from quire.engine.ports import Ports
from quire.engine.records import Batch, NewRun, RunUpdate, Status
from quire.engine.requests import Walk
from quire.formats import check
from quire.library.check import DocumentCheck
from quire.models.scripted import ScriptedModel
from quire.runs.adapters import Nobody, WallClock
from quire.source import Source
from quire.stores import open_store
from quire.tools.gate import Gate
from quire.tools.registry import Connections
from quire.trust.capabilities import Grants
from quire.trust.secrets import Redactor


def steps(line: str) -> Callable[[int], str]:
    return lambda n: "pipeline: p\nsteps:\n" + "".join(line.replace("@", str(number)) for number in range(n))


DECLARED = "pipeline: p\ndialect: quire\ninput: {%s}\nsteps:\n"
"""A pipeline that declares inputs."""


def _inputs(line: str, *, declared: bool = True) -> Callable[[int], str]:
    def make(n: int) -> str:
        inputs = ", ".join(f"n{at}: {{type: list, of: {{type: string}}, max_items: 3}}" for at in range(n))
        return DECLARED % (inputs if declared else "") + "".join(line.replace("@", str(at)) for at in range(n))

    return make


EACH = "  - for_each: {over: n@, on_error: abort, do: {agent: {prompt: x}}, collect: {transform: {value: pipe}}}\n"
DOCUMENTS: dict[str, tuple[str, Callable[[int], str]]] = {
    "unknown calls": ("x.yaml", steps("  - call: {pipeline: nope@}\n")),
    "unknown tools": ("x.yaml", steps("  - tool: {name: nope@, args: {}}\n")),
    "unknown names": ("x.yaml", steps("  - transform: {value: nam@, output: nem@}\n")),
    "unknown keys": ("x.yaml", steps("  - transform: {value: '1', outptu@: x}\n")),
    "unread inputs": ("x.yaml", _inputs("  - transform: {value: '@'}\n")),
    "undeclared inputs": ("x.yaml", _inputs("  - transform: {value: m@}\n")),
    "bounds of inputs": ("x.yaml", _inputs(EACH)),
    "calls with inputs": ("x.yaml", _inputs("  - call: {pipeline: p, pass: {n@: n@, m@: n@}}\n")),
    "unknown tools of a playbook": (
        "x.md",
        lambda n: "# T\n\n" + "".join(f"## STEP {at}: s\n\n@tool(quire, nope{at}, {{}})\n\n" for at in range(1, n)),
    ),
    "unknown placeholders": (
        "x.md",
        lambda n: "# T\n\n## STEP 1: a\n\n" + " ".join(f"{{{{nme{number}}}}}" for number in range(n)) + "\n",
    ),
    "headings that are nearly steps": ("x.md", lambda n: "# T\n\n" + "## Step 1: A\n\nDo\n\n" * (5 * n)),
    "arms that call tools": (
        "x.md",
        lambda n: (
            '# T\n\n## STEP 1: a\n\n```if m == "x"```\nGo.\n'
            + "".join(f'```elif m{at} == "x"```\nGo.\n@tool(files, read)\n' for at in range(n))
            + "```endif```\n"
        ),
    ),
    "comments that allow": (
        "x.yaml",
        steps('  # quire: allow PL210 because "x"\n  - transform: {value: "1"} # quire: allow PL210 because "x"\n'),
    ),
    "comments before everything": (
        "x.yaml",
        lambda n: '# quire: allow PL210 because "x"\n' * n + "pipeline: p\nsteps:\n  - transform: {value: '1'}\n",
    ),
    "comments of a playbook": (
        "x.md",
        lambda n: (
            '<!-- quire: allow PB201 in step 1 because "x" -->\n' * n + "# T\n\n" + "## STEP 1: a\n\n{{x}}\n\n" * n
        ),
    ),
    "openings of comments on one line": ("x.md", lambda n: "<!-- quire: " * (9 * n) + "\n# T\n\n## STEP 1: a\n\nGo.\n"),
    "comments of a directive": (
        "x.md",
        lambda n: (
            "# T\n\n```xml\n<directive>\n" + '<!-- quire: allow DR107 because "x" -->\n<a>\n' * n + "```\n\nGo.\n"
        ),
    ),
    "one long line": (
        "x.yaml",
        lambda n: "pipeline: p\nsteps: [" + ", ".join("{transfom: {value: '1'}}" for _ in range(n)) + "]\n",
    ),
}


@pytest.mark.parametrize("name, make", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_check_takes_twice_as_long_for_twice_as_much(
    name: str, make: Callable[[int], str], tmp_path: Path, here: Path
) -> None:

    def checked(size: int) -> Callable[[], object]:
        source = Source.of(make(size), name)
        return lambda: DocumentCheck().of(source)

    checked(10)()  # imports
    assert_linear(checked, 700)


def test_a_check_lists_the_folders_of_directives_once(
    tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted: 300 unknown names among 50 directives are not looked for in 50 files each."""
    import os

    folder = tmp_path / ".ai" / "directives"
    folder.mkdir(parents=True)
    for number in range(50):
        (folder / f"d{number}.md").write_text("x")
    walks: list[str] = []
    walk = os.walk

    def counted(top: str) -> Iterator[tuple[str, list[str], list[str]]]:
        walks.append(top)
        return walk(top)

    monkeypatch.setattr(os, "walk", counted)
    DocumentCheck().of(Source.of(steps("  - call: {pipeline: nope@}\n")(300), "x.yaml"))
    assert len(walks) < 20


@pytest.mark.parametrize("form", ["full", "concise", "json", "sarif", "github"])
def test_printing_findings_is_linear(form: str) -> None:
    def printed(size: int) -> Callable[[], object]:
        names = ", ".join(f"name{number}" for number in range(size))
        source = Source.of(f"# T\n\n## STEP 1: a\n\nGo.\n@context({names})\n", "x.md")
        found = [Findings(source, check(source))]
        assert len(found[0].diagnostics) > size
        return lambda: printer(form)(found, False)  # type: ignore[arg-type]

    assert_linear(printed, 4_000)


class _Playbook:
    """One of so many small steps, run against a script in a store of its own."""

    def __init__(self, size: int, folder: Path) -> None:
        from quire.library.document import read

        text = "# T\n\n" + "".join(f"## STEP {number}: s\n\nDo\n\n" for number in range(1, size + 1))
        self.plan = read(Source.of(text, "x.playbook.md")).runnable()
        self._store = open_store(folder / f"{size}.db", durability="process")

    def walk(self) -> Walk:
        return interpret(self.plan, {}, context_budget=400_000)

    def run(self) -> tuple[float, int]:
        """Seconds and the most bytes that were held at once."""
        tracemalloc.start()
        started = time.process_time()
        asyncio.run(self._drive())
        seconds, (_, most) = time.process_time() - started, tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return seconds, most

    async def _drive(self) -> None:
        store = self._store
        await store.create(NewRun("r", "t", "playbook", "x", 0.0, {}, {}))
        model = ScriptedModel([{"default": "done, and this is what came out"}], keep_calls=False)
        gate = Gate(Connections({}), Grants.of(()), Redactor({}))
        ports = Ports(store, model, gate, None, Nobody(), WallClock())  # type: ignore[arg-type]
        lease = await store.acquire("r")
        drive = Drive(lease, Journal(()), ports, DriveLimits())
        ended = await drive.until_rest(self.walk(), Batch(update=RunUpdate(status=Status.RUNNING)))
        assert ended.status is Status.COMPLETED
        await store.release(lease)
        await store.close()


def test_a_playbook_of_many_small_steps_is_linear(tmp_path: Path) -> None:
    _, little = _Playbook(400, tmp_path).run()
    _, much = _Playbook(800, tmp_path).run()
    # What each step was told is not kept: 800 steps that were told 20 KB on the average would be 16 MB.
    assert much < little * 2.6
    assert much < 12_000_000
