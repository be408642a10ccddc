"""A test case of a run passes: its replies, answers and tools are those of the run, in each format."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest
from tests.runs.travel import DIRECTIVE_SCRIPT, Travel

from quire.formats.test.parse import parse
from quire.library.document import load
from quire.runs.step_tries import TryChanges, make_tries, prepare_try
from quire.source import Source
from quire.testing.discovery import bench_for
from quire.testing.drafts import Draft, added_text, file_text
from quire.testing.file_run import FileOptions, run_file
from quire.testing.recorded_case import recorded_case


@pytest.fixture
def travel(tmp_path: Path) -> Travel:
    return Travel(tmp_path / "work")


async def greeted(travel: Travel) -> str:
    run, _ = await travel.run(".ai/directives/demo/parent.md", {"who": "Bo"}, DIRECTIVE_SCRIPT)
    return run


T = TypeVar("T")
RUNS: dict[str, Callable[[Travel], Awaitable[str]]] = {
    "board.yaml": lambda travel: travel.board(),
    "letters.yaml": lambda travel: travel.letters(),
    ".ai/directives/demo/parent.md": greeted,
}


@pytest.mark.parametrize("document", RUNS)
async def test_the_case_of_a_run_passes(travel: Travel, document: str) -> None:
    run = await RUNS[document](travel)
    async with travel.runtime() as runtime:
        view = await runtime.view(run)
    draft = _apart(lambda: recorded_case(bench_for(load(travel.folder / document)), view, view))
    assert draft.replies and draft.expect
    text = file_text((travel.folder / document).name, [draft], recorded=True)
    at = (travel.folder / document).parent / "own.test.yaml"
    reading = parse(Source.of(text, str(at)))
    assert reading.file, reading.diagnostics
    result = _apart(lambda: run_file(reading, FileOptions()))
    assert [(case.outcome, case.problems) for case in result.cases] == [("passed", ())], text


async def test_the_case_of_a_try_has_its_reply(travel: Travel) -> None:
    run = await travel.letters()
    async with travel.runtime(["Off it goes."]) as runtime:
        prepared = await prepare_try(runtime, run, "3", TryChanges())
        [made] = await make_tries(runtime, prepared, 1)
        await runtime.drive(made)
        tried, view = await runtime.view(made), await runtime.view(run)
    draft = _apart(lambda: recorded_case(bench_for(load(travel.folder / "letters.yaml")), tried, view))
    assert draft.name.startswith("try 1 of 3")
    assert draft.expect == {"output": "Off it goes."}


def test_a_case_is_added_after_the_last_one() -> None:
    text = "document: x\ncases:\n  - name: a\n    expect: todo\nsettings: {}\n"
    at, new = added_text(text, Draft("b", expect={"output": "x"}))
    assert text[:at] + new + text[at:] == (
        'document: x\ncases:\n  - name: a\n    expect: todo\n  - name: "b"\n    expect: {output: "x"}\nsettings: {}\n'
    )


def _apart(work: Callable[[], T]) -> T:
    """Do work that has a loop of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()
