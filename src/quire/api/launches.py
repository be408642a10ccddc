"""Pipelines that are launched from Python, with the envelope that all launch tools return."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NotRequired, TypeAlias, TypedDict, cast

from quire.api.runs import model_name, require_people
from quire.errors import QuireError
from quire.runs.options import RunOptions, name_list
from quire.runs.runtime import Runtime

if TYPE_CHECKING:
    from quire.engine.ports import Model, People
    from quire.runs.launch import Envelope, Launching
    from quire.values import Value


class OkData(TypedDict):
    """`warnings`, here and below, are what was found before the start that may not work; left out where there are
    none."""

    run_id: str
    output: Value
    named_stores: Mapping[str, Value]
    warnings: NotRequired[list[str]]


class ErrorData(TypedDict):
    """`run_id` is there unless the launch was refused before there was a run."""

    error: str
    run_id: NotRequired[str]
    warnings: NotRequired[list[str]]


class CancelledData(TypedDict):
    run_id: str
    error: str
    warnings: NotRequired[list[str]]


class StartedData(TypedDict):
    run_id: str
    warnings: NotRequired[list[str]]


class LaunchOk(TypedDict):
    status: Literal["ok"]
    data: OkData


class LaunchError(TypedDict):
    status: Literal["error"]
    data: ErrorData


class LaunchCancelled(TypedDict):
    status: Literal["cancelled"]
    data: CancelledData


class LaunchStarted(TypedDict):
    status: Literal["started"]
    data: StartedData


Launch: TypeAlias = LaunchOk | LaunchError | LaunchCancelled | LaunchStarted
"""The envelope of a launch. A type checker knows what `data` has once `status` was compared."""


async def launch(
    pipeline: str,
    *,
    input: Mapping[str, Value] | None = None,
    inline: bool = False,
    wait: bool = True,
    model: str | Model | None = None,
    people: People | None = None,
    allow: Collection[str] = (),
    recipient: str = "python",
    workspace: str | Path | None = None,
) -> Launch:
    """Launches a pipeline by its registered name, or with `inline` from its text, and returns the envelope.

    `{"status": "ok", "data": {"run_id", "output", "named_stores"}}`, or `error`, `cancelled`, `started`. What is wrong
    is told in the envelope and not raised. With `wait=False` it returns at once; the run goes on in this event loop for
    as long as that runs, and its end comes as a letter to `recipient` (`quire inbox`), as does that of a run that waits
    for a person. An inline definition has to pass the gate for definitions that are written at run time.
    """
    from quire.runs.launch import Envelope, KnownTools, Launcher, Launching
    from quire.trust.capabilities import Grants
    from quire.workspace.grants import default_grants

    given = model if not isinstance(model, str) else None
    try:
        require_people(people)
        options = RunOptions(model=model_name(model), allow=name_list("allow", allow))
        runtime = Runtime.open(Path(workspace) if workspace else None, model=given, shared=True)
    except QuireError as error:
        return _told(Envelope("error", {"error": str(error)}))
    known = KnownTools(runtime.settings, default_grants(runtime.settings, options.allow))
    launching = Launching(runtime, known, shell=known.shell, options=options)
    launcher = Launcher(recipient, runtime.identity, Grants.of(["rye.execute.pipeline.*"]))
    tool = "run_pipeline" + "_inline" * inline + "_async" * (not wait)
    arguments: dict[str, Value] = {"definition" if inline else "name": pipeline, "input": dict(input or {})}
    try:
        if inline:
            await known.learn(pipeline)
        envelope = await launching.launch(tool, arguments, launcher, people=people)
    except QuireError as error:
        envelope = Envelope("error", {"error": str(error)})
    except BaseException:
        await runtime.close()
        raise
    if envelope.status == "started" and not wait:
        task = asyncio.create_task(_close_when_settled(launching, runtime))
        _settling.add(task)
        task.add_done_callback(_settling.discard)
    else:
        await runtime.close()
    return _told(envelope)


_settling: set[asyncio.Task[None]] = set()
"""Held here, because an event loop alone does not keep its tasks."""


async def _close_when_settled(launching: Launching, runtime: Runtime) -> None:
    try:
        await launching.settled()
    finally:
        await runtime.close()


def _told(envelope: Envelope) -> Launch:
    return cast("Launch", envelope.as_json())
