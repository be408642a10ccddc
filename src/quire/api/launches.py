"""Launch pipelines from Python, with the envelope that all launch tools return."""

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
    from quire.runs.launch import Launching
    from quire.values import Value


class OkData(TypedDict):
    """Data of a launch that succeeded."""

    run_id: str
    output: Value
    named_stores: Mapping[str, Value]
    warnings: NotRequired[list[str]]
    """Problems found before the start that may affect the run, here and in the other data; left out if there are
    none."""


class ErrorData(TypedDict):
    """Data of a launch that failed."""

    error: str
    run_id: NotRequired[str]
    """Left out if the launch was refused before there was a run."""
    errors: NotRequired[list[Mapping[str, Value]]]
    """All errors of a definition that was refused, each with `code`, `line`, `column`, `message` and `help`."""
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
"""The envelope of a launch. A type checker knows the keys of `data` once `status` was compared."""


async def launch(
    pipeline: str,
    *,
    input: Mapping[str, Value] | None = None,
    inline: bool = False,
    wait: bool = True,
    model: str | Model | None = None,
    people: People | None = None,
    allow: Collection[str] = (),
    force: bool = False,
    recipient: str = "python",
    workspace: str | Path | None = None,
) -> Launch:
    """Launch a pipeline by its registered name, or with `inline` from its text, and return the envelope.

    `{"status": "ok", "data": {"run_id", "output", "named_stores"}}`, or `error`, `cancelled`, `started`. Errors are
    returned in the envelope and not raised. With `wait=False` it returns at once; the run continues in this event loop
    for as long as the loop runs, and its end is reported in a letter to `recipient` (`quire inbox`), like that of a
    run that waits for a person. An inline definition has to pass the checks for definitions that are written at run
    time.
    """
    from quire.runs.launch import KnownTools, Launcher, Launching, LaunchResult
    from quire.trust.capabilities import Grants
    from quire.workspace.grants import default_grants

    own_model = model if not isinstance(model, str) else None
    try:
        require_people(people)
        options = RunOptions(model=model_name(model), allow=name_list("allow", allow), force=force)
        runtime = Runtime.open(Path(workspace) if workspace else None, model=own_model, shared=True)
    except QuireError as error:
        return cast("Launch", LaunchResult("error", {"error": str(error)}).as_json())
    tools = KnownTools(runtime.settings, default_grants(runtime.settings, options.allow))
    launching = Launching(runtime, tools, shell=tools.shell, hint=tools.hint, options=options)
    launcher = Launcher(recipient, runtime.identity, Grants.of(["rye.execute.pipeline.*"]))
    tool = "run_pipeline" + "_inline" * inline + "_async" * (not wait)
    arguments: dict[str, Value] = {"definition" if inline else "name": pipeline, "input": dict(input or {})}
    try:
        if inline:
            await tools.learn(pipeline)
        envelope = await launching.launch(tool, arguments, launcher, people=people)
    except QuireError as error:
        envelope = LaunchResult("error", {"error": str(error)})
    except BaseException:
        await runtime.close()
        raise
    if envelope.status == "started" and not wait:
        task = asyncio.create_task(_close_when_settled(launching, runtime))
        _settling.add(task)
        task.add_done_callback(_settling.discard)
    else:
        await runtime.close()
    return cast("Launch", envelope.as_json())


_settling: set[asyncio.Task[None]] = set()
"""Keeps a reference to the tasks, because an event loop alone does not."""


async def _close_when_settled(launching: Launching, runtime: Runtime) -> None:
    try:
        await launching.settled()
    finally:
        await runtime.close()
