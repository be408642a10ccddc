"""Cancelling: at once where nobody drives, by asking where somebody does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from quire.cli.resume import cancel_command
from quire.runs.runtime import Runtime

Invoke = Callable[..., Result]
MakeRun = Callable[..., str]

ASKS = '# Ask\n\n## STEP 1: A\n\n@elicit(input, "Well?")\n'
DONE = "# Done\n\n## STEP 1: A\n\nGo.\n"


async def status_of(workspace: Path, run: str) -> str:
    runtime = Runtime.open(workspace)
    try:
        return str((await runtime.row(run)).status)
    finally:
        await runtime.close()


def test_a_waiting_run_is_cancelled_at_once_with_its_question(
    invoke: Invoke, make_run: MakeRun, workspace: Path
) -> None:
    from quire.cli.inbox import command as inbox

    run = make_run(ASKS)
    result = invoke(cancel_command, "last")
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"cancelled {run}" in result.stderr
    assert asyncio.run(status_of(workspace, run)) == "cancelled"
    assert json.loads(invoke(inbox, "--json").stdout) == []


def test_a_live_owner_is_asked(invoke: Invoke, make_run: MakeRun, workspace: Path) -> None:
    run = make_run(ASKS, drive=False)
    owned, ended = threading.Event(), threading.Event()

    async def own() -> None:
        runtime = Runtime.open(workspace)
        lease = await runtime.store.acquire(run)
        owned.set()
        await asyncio.to_thread(ended.wait)
        await runtime.store.release(lease)
        await runtime.close()

    owner = threading.Thread(target=lambda: asyncio.run(own()))
    owner.start()
    try:
        assert owned.wait(10)
        result = invoke(cancel_command, run, "--json")
    finally:
        ended.set()
        owner.join()
    assert json.loads(result.stdout) == {"run": run, "cancelled": False, "asked_owner": True}
    assert asyncio.run(status_of(workspace, run)) == "cancelled"


@pytest.mark.parametrize(
    ("page", "replies", "state"), [(DONE, ["ok"], "completed"), (DONE, [{"error": "no"}], "failed")]
)
def test_what_has_ended_cannot_be_cancelled(
    invoke: Invoke, make_run: MakeRun, page: str, replies: list[object], state: str
) -> None:
    run = make_run(page, replies)
    result = invoke(cancel_command, run)
    assert result.exit_code == 2
    assert f"run {run} is {state} already" in result.stderr


def test_no_such_run(invoke: Invoke) -> None:
    assert invoke(cancel_command, "nobody").exit_code == 2
