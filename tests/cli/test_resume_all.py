"""`quire resume --all`: the runs that wait for no person continue together, after a crash or a reboot."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Said, json_of
from tests.cli.test_resume import document, script
from tests.processes import wait_until

from quire.cli import main
from quire.engine.records import Batch, RunUpdate, Status
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime

__all__ = ["document"]

ASKS = '# Ask\n\n## STEP 1: Decide\n\n@elicit(confirm, "Go on?")\n'


def statuses(said: Said) -> dict[str, str]:
    said()
    return {row["id"]: row["status"] for row in json_of(said, "runs")}


def pending(file: str, age: float = 60.0, **options: str) -> str:
    """Create a run so many seconds ago, and do not drive it."""

    class Clock:
        def now(self) -> float:
            return time.time() - age

        async def sleep(self, seconds: float) -> None:
            raise AssertionError

    async def create() -> str:
        runtime = Runtime.open(Path.cwd())
        runtime.clock = Clock()
        try:
            return await runtime.start(load(file), {}, RunOptions(**options))  # type: ignore[arg-type]
        finally:
            await runtime.close()

    return asyncio.run(create())


def parked(run: str, wake_at: float) -> None:
    async def park() -> None:
        runtime = Runtime.open(Path.cwd())
        lease = await runtime.store.acquire(run)
        await runtime.store.write(lease, Batch(update=RunUpdate(status=Status.PAUSED, wake_at=wake_at)))
        await runtime.store.release(lease)
        await runtime.close()

    asyncio.run(park())


def test_all_that_waits_for_no_person_continues(document: str, said: Said) -> None:
    replies = script({"default": "x"})
    Path("ask.playbook.md").write_text(ASKS)
    assert main(["run", document, "-q", "--break", "1", "--script", replies]) == 4
    assert main(["run", document, "-q", "--script", script({"error": "no"}, name="bad.json")]) == 3
    for _ in range(2):
        assert main(["run", "ask.playbook.md", "-q"]) == 4
    said()
    waits, answered, failed, paused = statuses(said)
    assert main(["answer", answered, "yes", "--hold"]) == 0
    model = f"script:{Path(replies).resolve()}"
    lost, young = pending(document, model=model), pending(document, age=0.0, model=model)
    due, later = pending(document, model=model), pending(document, model=model)
    parked(due, time.time() - 1)
    parked(later, time.time() + 1000)
    said()
    planned = json_of(said, "resume", "--all", "--dry-run")
    assert {row["run"] for row in planned} == {answered, lost, due}
    assert main(["resume", "--all"]) == 0
    out, err = said()
    lines = err.splitlines()
    assert (out, lines[3]) == ("", "continues 3 runs")
    assert set(lines[4:]) == {f"{run}: completed" for run in (answered, lost, due)}
    after = statuses(said)
    assert [after[run] for run in (answered, lost, due)] == ["completed"] * 3
    assert [after[run] for run in (waits, failed, paused, young, later)] == [
        "awaiting_input",
        "failed",
        "paused",
        "pending",
        "paused",
    ]
    assert main(["resume", "--all"]) == 0
    assert said()[1] == "continues 0 runs\n"


def test_runs_are_chosen_by_status_document_and_age_and_the_worst_exit_counts(document: str, said: Said) -> None:
    Path("other.md").write_text(Path(document).read_text())
    bad = script({"error": "no"}, {"error": "again"}, name="bad.json")
    for name in (document, "other.md"):
        assert main(["run", name, "-q", "--script", bad]) == 3
    said()
    other, first = statuses(said)
    chosen = json_of(said, "resume", "--status", "failed", "--document", "other.md", "--dry-run")
    assert [row["run"] for row in chosen] == [other]
    assert [row["run"] for row in json_of(said, "resume", "--status", "failed", "--dry-run")] == [first, other]
    assert json_of(said, "resume", "--status", "failed", "--since", "1ms", "--dry-run") == []
    script("one", "two", "end", name="good.json")
    Path("bad.json").write_text(json.dumps([{"error": "no"}, "one", "two", "end"]))
    assert main(["resume", "--status", "failed", "--document", "other.md", "-q"]) == 0
    assert statuses(said) == {other: "completed", first: "failed"}
    Path("bad.json").write_text(json.dumps([{"error": "no"}, {"error": "again"}]))
    assert main(["resume", "--status", "failed", "--json", "-j", "1"]) == 3
    assert json.loads(said()[0]) == [{"run": first, "exit_code": 3, "detail": "failed: again"}]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGKILL, "interrupted"), (signal.SIGTERM, "paused")])
def test_a_run_that_ended_with_its_detached_process_continues(
    document: str, said: Said, number: signal.Signals, status: str
) -> None:
    replies = script("one", {"reply": "never said", "delay_ms": 60_000})
    assert main(["run", document, "--detach", "--script", replies]) == 0
    run = said()[0].strip()
    wait_until(lambda: (main(["runs", run, "--journal"]), "1/model" in said()[0])[1])
    (process,) = [
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdigit() and run.encode() in (folder / "cmdline").read_bytes()
    ]

    def has_ended() -> bool:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)
        return statuses(said)[run] == status

    wait_until(has_ended)
    Path(replies).write_text(json.dumps(["one", "two", "end"]))
    assert main(["resume", "--all", "-q"]) == 0
    assert statuses(said)[run] == "completed"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--all", "last"], "do not take RUN, or options for one run"),
        (["--all", "--break", "1"], "do not take RUN, or options for one run"),
        (["--all", "--budget", "1"], "do not take RUN, or options for one run"),
        (["--since", "yesterday"], "--since yesterday: write a number and s, m, h or d"),
        (["--status", "completed"], "is not one of"),
    ],
)
def test_wrong_usage(workspace: Path, said: Said, arguments: list[str], problem: str) -> None:
    assert main(["resume", *arguments]) == 2
    assert problem in said()[1]
