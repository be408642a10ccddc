"""Launch cases of the kit: one call of one of the four tools, and what comes back."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conformance.pipeline_cases import Case, KitModel, KitPeople, KitTools

from quire.engine.driver.drive import Drive
from quire.engine.records import Event
from quire.formats.pipeline.parse import parse
from quire.runs.launch import Launcher, Launching
from quire.source import Source
from quire.trust.capabilities import Grants

LAUNCHER = "launcher"


def launch(given: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_launch(given, Path(folder)))


async def _launch(given: dict[str, Any], folder: Path) -> dict[str, Any]:
    (folder / "pipelines").mkdir()
    for number, text in enumerate(given["registered"]):
        (folder / "pipelines" / f"file{number}.yaml").write_text(text, encoding="utf-8")
    model, tools = KitModel(given.get("agent")), KitTools(given.get("tools"), bool(given.get("shell")), folder)
    case = Case({**given, "pipelines": []}, folder)
    texts = [*given["registered"], given["call"].get("arguments", {}).get("definition")]
    readings = [parse(Source.of(text, "named.yaml")) for text in texts if isinstance(text, str)]
    runtime = case.runtime(model, tools, [reading.file for reading in readings if reading.file is not None])
    launching = Launching(runtime, tools.scripted.names, shell=bool(given.get("shell")))
    flaws = given.get("launcher") or {}
    granted = ["rye.execute.pipeline.*"] if flaws.get("capability", True) else []
    launcher = Launcher(
        LAUNCHER,
        given.get("identity", "me"),
        Grants.of(granted),
        untrusted=bool(flaws.get("untrusted")),
        profile=flaws.get("profile", True),
    )
    answers: dict[str, str] = dict(given.get("answers") or {})
    stopper = _stopper(given.get("cancel_before_step"))
    call = given["call"]
    envelope = await launching.launch(
        call["tool"],
        call.get("arguments") or {},
        launcher,
        people=KitPeople(answers),
        listen=stopper[1],
        began=stopper[0],
    )
    await launching.settled()
    answers.update(given.get("late_answers") or {})
    rows = await runtime.store.list()
    for row in rows:
        if given.get("late_answers") and await runtime.store.questions(row.id):
            await runtime.drive(row.id, people=KitPeople(answers))
    letters = [letter.text for letter in await runtime.store.letters(LAUNCHER)]
    await runtime.close()
    return {
        "envelope": _hide(envelope.as_json(), rows),
        "inbox": [_hide(text, rows) for text in letters],
        "spawned": bool(rows),
        "tool_calls": tools.scripted.calls,
        "agent_prompts": model.agent.prompts,
        "agent_identities": model.identities,
    }


def _stopper(cancel_before: int | None) -> tuple[Callable[[Drive], None], Callable[[Event], None]]:
    drives: list[Drive] = []

    def began(drive: Drive) -> None:
        drives.append(drive)
        if cancel_before == 0:
            drive.stop()

    def hear(event: Event) -> None:
        if event.type == "step_completed" and event.path == str(cancel_before):
            drives[0].stop()

    return began, hear


def _hide(value: Any, rows: Any) -> Any:
    """The ids of runs are written as RUN."""
    if isinstance(value, dict):
        return {key: _hide(part, rows) for key, part in value.items()}
    if isinstance(value, str):
        for row in rows:
            value = value.replace(row.id, "RUN")
    return value
