"""Scripted replies of a resumed run: skip the entries that the run has already used."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from quire.engine.ports import ModelCall
from quire.engine.requests import ModelRequest
from quire.models.scripted import NO_REPLY, ScriptedModel
from quire.patterns import late_pattern
from quire.runs.pins import PinnedState
from quire.runs.runtime import Runtime

if TYPE_CHECKING:
    from quire.runs.outcome import RunView

PREFIX = "script:"
# Match the message: an event does not store the kind of a failure, and its record may have been superseded and removed.
_NEVER_ASKED = late_pattern(
    rf"the run has made the \d+ model calls that it may make.*|{NO_REPLY} .*|limit reached: .*"
    r"|the next call may cost .*|the price of this model is not known, so the spend limit .*",
    re.DOTALL,
)
"""Matches the failure messages of recorded model calls that used no entry of the script."""


def pinned_spec(spec: str) -> str:
    """Return a model's name as a run stores it: files become absolute, so that they are found from another folder."""
    provider, colon, where = spec.partition(":")
    file = os.path.expanduser(where)  # noqa: PTH111  # an unknown user is not an exception here
    if colon and provider in ("script", "local") and os.path.isfile(file):  # noqa: PTH113  # nor is a long name
        return f"{provider}:{Path(file).resolve()}"
    return spec


async def with_script(runtime: Runtime, view: RunView, script: str | None) -> Runtime:
    """Return the runtime with the scripted model of the run, if it has one; `script` names a file to use instead."""
    spec = pinned_spec(f"{PREFIX}{script}") if script else view.pins.instead or view.pins.model
    if not spec.startswith(PREFIX):
        return runtime
    model = ScriptedModel.from_file(Path(spec.removeprefix(PREFIX)), keep_calls=False)
    for event in await runtime.store.events(view.row.id):
        if event.type != "effect" or event.data.get("kind") != "model":
            continue
        if _NEVER_ASKED.fullmatch(str(event.data.get("message", ""))):
            continue
        request = view.replay.asked.get(event.path)
        if isinstance(request, ModelRequest):
            model.pass_over(ModelCall(request.system, request.messages, request.closing, label=request.label))
    return Runtime(
        runtime.settings,
        runtime.store,
        model=model,
        queue=runtime.queue,
        hand_over=runtime.hand_over,
        notice=runtime.notice,
    )


async def reopened(runtime: Runtime, run: str) -> Runtime:
    """Return the runtime that continues a run of a server or a worker; its script continues at the entry where it
    was."""
    pins = PinnedState.of((await runtime.row(run)).pins)
    return await with_script(runtime, await runtime.view(run), None) if pins.model.startswith(PREFIX) else runtime
