"""Quire from Python: check a document, run it, watch it. No part of the command line is imported."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quire import formats
from quire.diagnostics import Diagnostic
from quire.documents import Document, load
from quire.engine.drive import Ended
from quire.engine.events import Listener
from quire.engine.ports import Model, People
from quire.engine.records import Event, Status
from quire.errors import BadInputs, CannotStart, QuireError, RunState
from quire.runtime import RunOptions, Runtime
from quire.values import Value

if TYPE_CHECKING:
    from quire.runtime.launch import Launching


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended or where it waits. `run` is its id: `quire resume` and `quire answer` take it.

    `output` is the last executed step's, `artifact` that as it is written to a file. `steps` has the status of each
    step by label; `questions` are the prompts that wait for a person, by label; `error` is empty unless the run failed.
    """

    run: str
    status: Status
    output: str
    artifact: str
    artifact_type: str
    named: Mapping[str, str]
    steps: Mapping[str, str]
    questions: Mapping[str, str]
    error: str
    input_tokens: int
    output_tokens: int
    cost: float | None


def check(document: str | Path | Document) -> tuple[Diagnostic, ...]:
    """Every finding about a document, lints included, in the order of the text. Nothing is run.

    Raises `Unreadable` where there is no document to read.
    """
    read = document if isinstance(document, Document) else load(document)
    return formats.check(read.source)


def run(
    document: str | Path | Document,
    *,
    inputs: Mapping[str, Value] | None = None,
    model: str | Model | None = None,
    answers: Mapping[str, str] | None = None,
    people: People | None = None,
    unattended: bool = False,
    breakpoints: tuple[str, ...] = (),
    allow: tuple[str, ...] = (),
    budget: float | None = None,
    workspace: str | Path | None = None,
) -> Running:
    """Starts a run: await it for its `Result`, or iterate over it for its events (and await it then, if you like).

    Without `model` it is chosen as on the command line. `answers` are by step label; a question that nobody
    answers leaves the run waiting (`status` is `awaiting_input`). The workspace is that of the current folder, as on
    the command line, or of the one that is given. Raises `CannotStart` and its kin before
    anything has run; a run that fails is a result, not an exception.
    """
    read = document if isinstance(document, Document) else load(document)
    if inputs is not None and not isinstance(inputs, Mapping):
        raise BadInputs([f"inputs are a mapping of names to values, not {inputs!r}"])
    options = RunOptions(
        model=_spec(model),
        breakpoints=breakpoints,
        answers=answers or {},
        unattended=unattended,
        allow=allow,
        budget=budget,
    )
    start = Path(workspace) if workspace else None
    given = model if not isinstance(model, str) else None
    return Running(read, inputs or {}, options, given, people, start)


def _spec(model: str | Model | None) -> str | None:
    """The name of a model that is yet to be found; None where it is there already, or where nobody says which."""
    if isinstance(model, str):
        return model
    if model is not None and not hasattr(model, "complete"):
        raise CannotStart(f"model is a name or a model, not {model!r}")
    return None


class Running:
    """A run that is started by awaiting it or iterating over it, and only once: who awaits it later, or again, gets the
    same `Result`. It is stopped when nobody iterates over it or waits for it any more."""

    def __init__(
        self,
        document: Document,
        inputs: Mapping[str, Value],
        options: RunOptions,
        model: Model | None,
        people: People | None,
        workspace: Path | None,
    ) -> None:
        self.result: Result | None = None
        self._document = document
        self._inputs = inputs
        self._options = options
        self._model = model
        self._people = people
        self._workspace = workspace
        self._id = ""
        self._task: asyncio.Task[Result] | None = None
        self._attached = 0

    def __await__(self) -> Generator[object, None, Result]:
        return self._ended().__await__()

    async def __aiter__(self) -> AsyncIterator[Event]:
        if self._task is not None:
            raise RunState("a run is started once, and its events are read as they happen: `await` has its result")
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        task = self._begin(queue.put_nowait)
        task.add_done_callback(lambda done: queue.put_nowait(None))
        async with self._holding(task):
            while (event := await queue.get()) is not None:
                yield event
        task.result()

    def _begin(self, listen: Listener) -> asyncio.Task[Result]:
        self._task = asyncio.create_task(self._run(listen))
        return self._task

    async def _ended(self) -> Result:
        task = self._task or self._begin(lambda event: None)
        async with self._holding(task):
            # Unlike the task itself, this can be cancelled for one of several who wait.
            if not task.done():
                await asyncio.wait([task])
        if task.cancelled():
            further = f"quire resume {self._id}" if self._id else "nothing has run"
            raise RunState(f"the run was stopped before its end: {further}")
        return task.result()

    @contextlib.asynccontextmanager
    async def _holding(self, task: asyncio.Task[Result]) -> AsyncIterator[None]:
        """Whoever is the last to leave a run that goes on stops it."""
        self._attached += 1
        try:
            yield
        finally:
            self._attached -= 1
            if not self._attached and not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _run(self, listen: Listener) -> Result:
        runtime = Runtime.open(self._workspace, model=self._model)
        try:
            self._id = await runtime.start(self._document, self._inputs, self._options)
            ended = await runtime.drive(self._id, people=self._people, listen=listen)
            self.result = await _result(runtime, self._id, ended)
            return self.result
        finally:
            await runtime.close()


async def launch(
    pipeline: str,
    *,
    input: Mapping[str, Value] | None = None,
    inline: bool = False,
    wait: bool = True,
    model: str | Model | None = None,
    people: People | None = None,
    allow: tuple[str, ...] = (),
    recipient: str = "python",
    workspace: str | Path | None = None,
) -> dict[str, Value]:
    """Launches a pipeline by its registered name, or with `inline` from its text, and returns the envelope.

    `{"status": "ok", "data": {"run_id", "output", "named_stores"}}`, or `error`, `cancelled`, `started`. What is wrong
    is told in the envelope and not raised. With `wait=False` it returns at once; the run goes on in this event loop for
    as long as that runs, and its end comes as a letter to `recipient` (`quire inbox`), as does that of a run that waits
    for a person. An inline definition has to pass the gate for definitions that are written at run time.
    """
    from quire.runtime.known_tools import KnownTools
    from quire.runtime.launch import Envelope, Launcher, Launching
    from quire.trust.capabilities import Grants
    from quire.workspace.grants import default_grants

    given = model if not isinstance(model, str) else None
    try:
        options = RunOptions(model=_spec(model), allow=allow)
        runtime = Runtime.open(Path(workspace) if workspace else None, model=given)
    except QuireError as error:
        return Envelope("error", {"error": str(error)}).as_json()
    known = KnownTools(runtime.settings, default_grants(runtime.settings, allow))
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
    return envelope.as_json()


_settling: set[asyncio.Task[None]] = set()
"""Held here, because an event loop alone does not keep its tasks."""


async def _close_when_settled(launching: Launching, runtime: Runtime) -> None:
    try:
        await launching.settled()
    finally:
        await runtime.close()


async def _result(runtime: Runtime, run: str, ended: Ended) -> Result:
    view = await runtime.view(run)
    return Result(
        run=run,
        status=ended.status,
        output=view.output,
        artifact=view.artifact,
        artifact_type=view.artifact_type,
        named=dict(view.named),
        steps={step.label: step.status for step in view.replay.progress.steps.values()},
        questions={question.label: question.prompt for question in view.questions},
        error=ended.failure.message if ended.failure else "",
        input_tokens=view.row.input_tokens,
        output_tokens=view.row.output_tokens,
        cost=view.row.cost,
    )
