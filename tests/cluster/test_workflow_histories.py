"""Histories of workflows of both versions, replayed against the code as it is now: a run may wait for weeks.

One that fails here needs a workflow with another name beside the old one, not another history.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("temporalio", reason="temporalio is not there: pip install temporalio")

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from quire.cluster.workflow import RunWorkflow, WaitingRunWorkflow

HISTORIES = Path(__file__).with_name("histories")


@pytest.mark.parametrize("name", sorted(file.stem for file in HISTORIES.glob("*.json")))
async def test_replay(name: str) -> None:
    light = SandboxRestrictions.default.with_passthrough_modules("quire")
    versions = [RunWorkflow, WaitingRunWorkflow]
    replayer = Replayer(workflows=versions, workflow_runner=SandboxedWorkflowRunner(restrictions=light))
    history = WorkflowHistory.from_json("run", (HISTORIES / f"{name}.json").read_text())
    assert (await replayer.replay_workflow(history)).replay_failure is None
