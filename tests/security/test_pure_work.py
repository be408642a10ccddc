"""Documents that compute for ever: the run fails, the loop keeps its turn, and whoever looks is not held up either."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.given import given
from tests.processes import started
from tests.warm import run_quire

from quire.engine.driver.replay import replay
from quire.engine.interpreter.callees import Environment
from quire.engine.interpreter.pipeline.interpret import interpret_pipeline
from quire.engine.premises import PureWork
from quire.engine.progress import Progress
from quire.engine.records import Status
from quire.errors import LimitReached
from quire.expr import compile, parse
from quire.library.document import read
from quire.runs.export import export_lines, write_export
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.source import Source

LIMIT = 2_000_000
FOLDS = """\
pipeline: nest
steps:
  - fold:
      over: ctx.items
      init: "0"
      output: a
      do:
        fold:
          over: ctx.items
          init: "0"
          output: b
          do:
            fold:
              over: ctx.items
              init: "0"
              output: c
              do: {fold: {over: ctx.items, init: "0", output: d, do: {transform: {value: acc + 1}}}}
"""
"""A million of millions of steps over a thousand items."""

DROPPED = """\
pipeline: dropped
steps:
  - for_each:
      over: ctx.few
      on_error: continue
      do: {fold: {over: ctx.items, init: "0", output: a, do: {transform: {value: "count(map(ctx.items, x -> x + 1))"}}}}
      collect: {transform: {value: "{'done': count(pipe), 'lost': count(errors)}"}}
      output: end
"""
ITEMS: dict[str, object] = {"items": list(range(1000)), "few": [1, 2, 3]}


@pytest.fixture
def folder(workspace: Path, home: Path) -> Path:
    given({"quire.toml": f"[runs]\npure_work = {LIMIT}\n"}, home)
    return given({"nest.yaml": FOLDS, "inputs.json": ITEMS}, workspace)


@pytest.fixture
def runtime(folder: Path) -> Iterator[Runtime]:
    opened = Runtime.open(folder)
    yield opened
    asyncio.run(opened.close())


async def _run(runtime: Runtime, text: str) -> str:
    run = await runtime.start(read(Source.of(text, "x.yaml")), ITEMS, RunOptions())  # type: ignore[arg-type]
    await runtime.drive(run)
    return run


def test_nested_folds_fail_their_step_and_the_loop_has_its_turns_meanwhile(runtime: Runtime) -> None:
    async def work() -> None:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        beside = asyncio.create_task(other())
        run = await _run(runtime, FOLDS)
        beside.cancel()
        row = await runtime.row(run)
        assert row.status is Status.FAILED and row.failure is not None
        assert row.failure.kind == "pure_work"
        assert (
            f"{LIMIT:,} units of pure work" in row.failure.message and "pure_work under [runs]" in row.failure.message
        )
        assert turns > LIMIT / 200_000

        # Looked at, and driven again under the same limit, it comes to the same end.
        view = await runtime.view(run)
        assert view.replay.failure is not None and view.replay.failure.path == row.ended_by[0]
        ended = await runtime.drive(run)
        assert ended.failure is not None and ended.failure.kind == "pure_work"

    asyncio.run(work())


def test_a_refusal_that_a_policy_consumed_is_replayed_under_any_limit(
    runtime: Runtime, folder: Path, tmp_path: Path
) -> None:
    async def work() -> None:
        run = await _run(runtime, DROPPED)
        row = await runtime.row(run)
        # The limit is used up, so that the step which collects is not begun either: that failure ends the run.
        assert (row.status, row.failure and row.failure.kind) == (Status.FAILED, "pure_work")
        refused = [record.path for record in await runtime.store.effects(run) if record.kind == "work"]
        assert [path for path in refused if "for_each[" in path] and row.ended_by[0] in refused
        (tmp_path / "home" / "quire.toml").write_text("[runs]\npure_work = 900000000\n")
        larger = Runtime.open(folder)
        await larger.drive(run)
        view = await larger.view(run)
        await larger.close()
        assert view.row.status is Status.COMPLETED
        lost = sum("for_each[" in path for path in refused)
        assert view.value == {"done": 3 - lost, "lost": lost}

    asyncio.run(work())


def test_a_run_under_a_larger_limit_is_bounded_for_whoever_looks(runtime: Runtime) -> None:
    """What is recorded is not contradicted: looking says that it takes too much, and nothing is written."""
    plan = read(Source.of(FOLDS, "x.yaml")).runnable()

    async def work() -> None:
        counts: list[PureWork] = []

        def begin(work: PureWork):  # type: ignore[no-untyped-def]
            counts.append(work)
            return interpret_pipeline(plan, ITEMS, Environment(work=work))  # type: ignore[arg-type]

        seen = await replay(begin, [], Progress.of(plan), lambda boundary: False, pure_work=LIMIT)
        assert not seen.finished and "units of pure work" in seen.exhausted
        assert LIMIT < counts[0].used < LIMIT * 1.2

    asyncio.run(work())


def test_a_workspace_may_lower_the_limit_and_not_raise_it(folder: Path) -> None:
    def limit(text: str) -> int:
        (folder / "quire.toml").write_text(text)
        return Runtime.open(folder).settings.runs.pure_work

    assert limit("[runs]\npure_work = 1000\n") == 1000
    assert limit("[runs]\npure_work = 999999999999\n") == LIMIT


def test_what_a_fresh_run_could_compute_is_not_computed_to_look_at_it(runtime: Runtime) -> None:
    async def work() -> None:
        run = await runtime.start(read(Source.of(FOLDS, "x.yaml")), ITEMS, RunOptions())  # type: ignore[arg-type]
        view = await runtime.view(run)
        assert view.replay.exhausted and not view.replay.finished

    asyncio.run(work())


def test_an_export_that_takes_too_much_to_follow_is_refused(runtime: Runtime, folder: Path) -> None:
    """`runs verify` and `runs import` walk the document of a stranger."""
    small = FOLDS.replace("ctx.items", "ctx.few")

    async def work() -> None:
        run = await _run(runtime, small)
        assert (await runtime.row(run)).status is Status.COMPLETED
        write_export(await export_lines(runtime, run), folder / "small.jsonl")

    asyncio.run(work())
    text = (folder / "small.jsonl").read_text()
    assert '"few":[1,2,3]' in text
    hostile = text.replace('"few":[1,2,3]', f'"few":{json.dumps(list(range(1000)))}')
    (folder / "hostile.jsonl").write_text(_chained(hostile))
    for verb in ("verify", "import"):
        done = _quire("runs", verb, "hostile.jsonl", cwd=folder)
        assert done.returncode in (1, 2), done
        assert "units of pure work" in done.stderr and "Traceback" not in done.stderr


def _chained(text: str) -> str:
    """An export whose lines were changed, with the hashes that its forger gives it."""
    from quire.values import decode, encode, sha256

    lines: list[str] = []
    prev = ""
    for line in text.splitlines():
        entry = {**decode(line), "prev": prev}  # type: ignore[dict-item]
        if entry["type"] == "end":
            entry["head"] = prev
        lines.append(encode(entry))
        prev = sha256(lines[-1].encode())
    return "\n".join(lines) + "\n"


def _quire(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_quire(arguments, cwd=cwd, env=os.environ, timeout=60)


def test_ctrl_c_pauses_a_run_that_computes(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "home" / "quire.toml").write_text("[runs]\npure_work = 900000000000\n")
    command = [sys.executable, "-m", "quire", "run", "nest.yaml", "--inputs", "inputs.json"]
    with started(command, cwd=folder, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        said = b""
        while b"[1/1]" not in said and (more := os.read(process.stderr.fileno(), 1000)):
            said += more
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=30)
    assert b"paused" in said + rest


EVALUATIONS = {
    "maps in maps": ("map(ctx.l, x -> map(ctx.l, y -> x + y))", {"l": [1] * 10_000}),
    "any in map": ("map(ctx.l, x -> any(ctx.l, y -> y == 2))", {"l": [1] * 10_000}),
    "long texts compared": (
        "map(ctx.l, x -> ctx.a == ctx.b)",
        {"l": [1] * 9_999, "a": "a" * 10**7, "b": "a" * 10**7 + "b"},
    ),
    "long texts joined": ("map(ctx.l, x -> count([join(ctx.m, ',')]))", {"l": [1] * 9_999, "m": ["abc"] * 100_000}),
    "long lists joined": ("map(ctx.l, x -> count(ctx.m + ctx.m))", {"l": [1] * 9_999, "m": [[1]] * 100_000}),
    "long numbers": ("map(ctx.l, x -> ctx.a * ctx.a)", {"l": [1] * 99_999, "a": 10**2_000}),
    "sums": ("map(ctx.l, x -> sum(ctx.m))", {"l": [1] * 9_999, "m": [10**4_000] * 1_000}),
}


@pytest.mark.parametrize("text, stores", EVALUATIONS.values(), ids=EVALUATIONS)
def test_one_evaluation_is_bounded_and_counted(text: str, stores: dict[str, object]) -> None:
    count = PureWork()
    with pytest.raises(Exception, match="steps"):
        compile(parse(text)).evaluate({"ctx": stores, "pipe": None}, {}, count)  # type: ignore[dict-item]
    assert 4_000_000 < count.used < 8_000_000


def test_calls_that_double_at_each_level_are_counted(runtime: Runtime, folder: Path) -> None:
    """Forty pipelines, each of which calls the next one twice: 2^40 steps of a file of 3 KB."""
    pipelines = [f"pipeline: p{level}\nsteps:\n" + f"  - call: {{pipeline: p{level + 1}}}\n" * 2 for level in range(30)]
    last = "pipeline: p30\nsteps:\n  - transform: {value: '1'}\n"
    given({"pipelines/s.yaml": "---\n".join([*pipelines, last])}, folder)
    done = _quire("run", "s.p0", cwd=folder)
    assert done.returncode == 3 and "units of pure work" in done.stderr


def test_the_limit_of_a_drive_that_replays_does_not_contradict_the_journal(runtime: Runtime) -> None:
    """Behind the pure work there is a recorded answer: no step that was done is recorded as failed."""
    from msgspec.structs import replace

    text = FOLDS + "  - tool: {name: ask, args: {prompt: 'Go on?'}}\n"
    small = {"items": list(range(15)), "few": []}

    async def work() -> None:
        run = await runtime.start(read(Source.of(text, "x.yaml")), small, RunOptions())
        runtime.settings = replace(runtime.settings, runs=replace(runtime.settings.runs, pure_work=10**9))
        await runtime.drive(run)
        await runtime.answer(run, None, "yes")
        await runtime.drive(run)
        assert (await runtime.row(run)).status is Status.COMPLETED
        runtime.settings = replace(runtime.settings, runs=replace(runtime.settings.runs, pure_work=200_000))
        with pytest.raises(LimitReached, match="units of pure work"):
            await runtime.view(run)
        assert not [record for record in await runtime.store.effects(run) if record.kind == "work"]

    asyncio.run(work())
