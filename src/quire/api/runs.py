"""Documents and runs from Python: find the document that a caller means, check it, and run it.

A document is a `Document`, a `Source`, a text, a file, or a name in the workspace. A run is started by awaiting it or
iterating over it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import warnings
from collections.abc import AsyncIterator, Callable, Collection, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar, cast

from msgspec import Struct, field

from quire import formats
from quire.engine.progress import Progress
from quire.errors import BadDocument, BadInputs, CannotStart, RunState, WrongResult
from quire.library.document import Document, load, read
from quire.library.lookup import document_of
from quire.runs.options import RunOptions, name_list
from quire.runs.runtime import Runtime
from quire.runs.stored import settings_of_turn
from quire.source import Source
from quire.values import InvalidValue, decode

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.engine.driver.drive import Drive, DriveResult
    from quire.engine.events import Listener
    from quire.engine.ports import Model, People
    from quire.engine.records import Event, Status
    from quire.runs.outcome import RunView
    from quire.values import Value

P = ParamSpec("P")
T = TypeVar("T")
_STEP = re.compile(r"^## STEP", re.MULTILINE)
_YAML_KEY = re.compile(r"(?:pipeline|schema|description|steps)[ \t]*:")


def check(document: str | Path | Source | Document) -> tuple[Diagnostic, ...]:
    """Return every finding about a document, lints included, in the order of the text. Nothing is run.

    Takes what `run` takes, except names: a `str` without a line break is a file. Raises `Unreadable` without a document
    to read.
    """
    if isinstance(document, str | Path) and not _is_text(document):
        source = load(document).source
    else:
        source = find(document, None).source
    findings = formats.check(source)
    if "quire:" not in source.text:
        return findings
    from quire.formats.suppressions import applied

    # Findings that need the workspace are not among these, so a comment may hide nothing here.
    return applied(source, findings, formats.all_codes, lambda _: False).diagnostics


def find(document: str | Path | Source | Document, workspace: Path | None) -> Document:
    """Read the document that the caller gave. A `str` with a line break is a text; otherwise it is a file, or else a
    name.

    Raises `Unreadable`, or `CannotStart` if a name is unknown or ambiguous.
    """
    match document:
        case Document():
            return document
        case Source():
            return read(document)
        case Path():
            return load(document)
        case str() if _is_text(document):
            if not document.strip("\ufeff \t\r\n"):
                raise BadDocument("the text of the document is empty")
            # The name shows the format.
            source = Source.of(document, "<text>.md")
            return read(Source.of(document, "<text>.yaml") if _is_pipeline(source.text) else source)
        case str():
            return document_of(document, workspace)
    raise CannotStart(f"{document!r} is not a document: give a path, a text, a name, a Source or a Document")


def _is_text(document: object) -> bool:
    return isinstance(document, str) and ("\n" in document or "\r" in document)


def _is_pipeline(text: str) -> bool:
    """Return True if the text is a pipeline: its first line is a key of one, and no line is a `## STEP` heading.

    Empty lines, `---`, and lines with `#` (comments of YAML, titles of Markdown) are skipped.
    """
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and line != "---" and not line.startswith("#")), "")
    return _YAML_KEY.match(first) is not None and _STEP.search(text) is None


class Result(Struct, frozen=True):
    """How a run ended or where it waits."""

    run: str
    """The id of the run, as `quire resume` and `quire answer` take it."""
    status: Status
    output: str
    """The output of the last executed step, as text."""
    artifact: str
    """The output as it is written to a file."""
    artifact_type: str
    named: Mapping[str, str]
    steps: Mapping[str, str]
    """The status of each step, by label."""
    questions: Mapping[str, str]
    """The prompts that wait for a person, by label."""
    error: str
    """Empty unless the run failed."""
    input_tokens: int
    output_tokens: int
    cost: float | None
    value: Value = None
    """The output itself: for a pipeline any JSON value, for a directive its outputs, for a playbook the text."""
    stores: Mapping[str, Value] = field(default_factory=dict)
    """The variables of a pipeline so far, its inputs included; empty for other formats."""
    outputs: Mapping[str, Value] = field(default_factory=dict)
    """The declared outputs of a directive that has ended; empty for other formats."""
    warnings: tuple[str, ...] = ()
    """Problems found before the start that may affect the run, and warnings of the run itself."""

    def parse(self, shape: type[T]) -> T:
        """Return `value` as the given type: a Struct, a dataclass, a TypedDict, a plain type such as `list[int]`, or a
        class with `model_validate`.

        A text that is JSON, also in a code fence, is read as JSON first. Types are compared strictly: "1" is not a
        number. Raises `WrongResult`, whose `path` is the place that does not fit.
        """
        from quire.engine.capture import unfenced

        if self.status != "completed":
            raise WrongResult(f"run {self.run} has no result to parse: it is {self.status}")
        if isinstance(self.value, str) and shape is not str:
            with contextlib.suppress(InvalidValue):
                return _converted(decode(unfenced(self.value.strip())), shape)
        return _converted(self.value, shape)


def _converted(value: Value, shape: type[T]) -> T:
    import msgspec

    try:
        if validate := getattr(shape, "model_validate", None):
            return cast("T", validate(value))
        return msgspec.convert(value, shape, strict=True)
    except ValueError as error:
        reason, _, place = str(error).partition(" - at `$")
        path = f"${place.rstrip('`')}"
        if problems := getattr(error, "errors", None):  # of pydantic, whose text has several lines
            first = problems()[0]
            reason = first["msg"]
            path += "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])
        name = shape.__name__ if isinstance(shape, type) else str(shape)
        raise WrongResult(f"the result does not fit {name}: {reason} (at {path})", path) from None


def result_of(view: RunView, ended: DriveResult) -> Result:
    value = view.value
    return Result(
        run=view.row.id,
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
        value=value,
        stores=dict(view.stores),
        outputs=dict(value) if view.thread and isinstance(value, Mapping) else {},
        warnings=tuple(f"step {label}: {text}" if label else text for label, text in view.warnings),
    )


def run(
    document: str | Path | Source | Document,
    *,
    inputs: Mapping[str, Value] | None = None,
    model: str | Model | None = None,
    answers: Mapping[str, str] | None = None,
    people: People | None = None,
    unattended: bool | Literal["yes"] = False,
    breakpoints: Collection[str] = (),
    allow: Collection[str] = (),
    budget: float | None = None,
    limits: Mapping[str, Value] | None = None,
    reuse: str = "",
    force: bool = False,
    id: str = "",
    workspace: str | Path | None = None,
) -> Running:
    """Prepare a run: await it for its `Result`, or iterate over it for its events (and then await it, if you like).

    `document` is a path, a document or a `Source` that was read, a text (any `str` with a line break), or the name of
    a pipeline, playbook or directive of the workspace; a file wins over a name.

    Without `model` it is chosen as on the command line. `answers` are by step label; a question without an answer
    leaves the run waiting (`status` is `awaiting_input`). `limits` are those of `--limit`: `{"calls": 500}`. With
    `reuse`, the id of an earlier run of the document or `last`, replies of its model are taken where the same is asked.
    A document with findings that stop a run raises `NearMisses`, unless `force` is set. With `id`, a key that the
    caller chooses, the same call made again means the run that it has started the first time. The workspace is that of
    the current folder, as on the command line, or of the given folder. Raises `CannotStart` or a related `QuireError`
    before anything has run; a run that fails is a result, not an exception.
    """
    start = Path(workspace) if workspace else None
    read = find(document, start)
    if inputs is not None and not isinstance(inputs, Mapping):
        raise BadInputs([f"inputs are a mapping of names to values, not {inputs!r}"])
    options = RunOptions(
        model=model_name(model),
        breakpoints=name_list("breakpoints", breakpoints),
        answers=answers or {},
        unattended=bool(unattended),
        says_yes=unattended == "yes",
        allow=name_list("allow", allow),
        budget=budget,
        limits=limits or {},
        reuse=reuse,
        force=force,
        key=id,
    )
    require_people(people)
    own_model = model if not isinstance(model, str) else None
    return Running(read, inputs or {}, options, own_model, people, start)


def model_name(model: str | Model | None) -> str | None:
    """Return the name of a model that is yet to be opened; None for a model object, or if no model is given. Raises
    `CannotStart` for anything else."""
    if isinstance(model, str):
        return model
    if model is not None and not hasattr(model, "complete"):
        raise CannotStart(f"model is a name or a model, not {model!r}")
    return None


def require_people(people: object) -> None:
    """Raise `CannotStart` for an object that cannot ask a person, before anything is paid for."""
    if people is not None and not callable(getattr(people, "ask", None)):
        raise CannotStart(f"people is an object with `async def ask(question, problem)`, not {people!r}")


class Running:
    """A run that is started by awaiting it or iterating over it, and only once: awaiting it later, or again, gives the
    same `Result`.

    It is stopped when no caller iterates over it or waits for it any more.
    """

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
        self._used = False
        self._task: asyncio.Task[Result] | None = None
        self._attached = 0

    def __del__(self) -> None:
        if not getattr(self, "_used", True):
            warnings.warn("quire.run(…) was never awaited: nothing ran", RuntimeWarning, stacklevel=2, source=self)

    def __await__(self) -> Generator[object, None, Result]:
        self._used = True
        return self.ended().__await__()

    async def start(self, *, cluster: bool = False) -> str:
        """Make the run and return its id, without driving it here. With `cluster` it is handed to the workers of the
        workspace's cluster; otherwise `quire resume` drives it. Raises `CannotStart`, also if Temporal is away."""
        from quire.cluster.client import Cluster, require_cluster

        self._used = True
        if self._task is not None or self._id:
            raise RunState(f"run {self._id} was started already")
        if self._model is not None or self._people is not None:
            raise CannotStart("a model or people of this program cannot continue in another process: name a model")
        settings = settings_of_turn(self._workspace, os.environ)
        runtime = Runtime.open(self._workspace, shared=True, settings=settings)
        try:
            handed = await Cluster.connect(require_cluster(settings)) if cluster else None
            runtime.queue = handed.queue if handed else ""
            self._id = await runtime.start(self._document, self._inputs, self._options)
            if handed:
                with contextlib.suppress(CannotStart):  # it is stored, and the workers find it
                    await handed.look(self._id)
            return self._id
        finally:
            await runtime.close()

    async def __aiter__(self) -> AsyncIterator[Event]:
        if self._task is not None:
            raise RunState("a run is started once, and its events are read as they happen: `await` has its result")
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        task = self._begin(queue.put_nowait)
        task.add_done_callback(lambda done: queue.put_nowait(None))
        self._attached += 1
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            await self._let_go(task)
        task.result()

    def _begin(self, listen: Listener) -> asyncio.Task[Result]:
        self._used = True
        if self._id:
            raise RunState(f"run {self._id} is driven by another process: quire runs {self._id}")
        self._task = asyncio.create_task(self._run(listen))
        return self._task

    async def ended(self) -> Result:
        """Drive the run, if no other caller does, until it ends or waits."""
        task = self._task or self._begin(lambda event: None)
        self._attached += 1
        try:
            # Unlike awaiting the task itself, this can be cancelled for one of several waiting callers.
            if not task.done():
                await asyncio.wait([task])
        finally:
            await self._let_go(task)
        if task.cancelled():
            further = f"quire resume {self._id}" if self._id else "nothing has run"
            raise RunState(f"the run was stopped before its end: {further}")
        return task.result()

    async def _let_go(self, task: asyncio.Task[Result]) -> None:
        """Stop a run when the last caller that waits for it is cancelled."""
        self._attached -= 1
        if self._attached:
            return
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        elif not task.cancelled():
            task.exception()  # no other caller will retrieve it

    async def _run(self, listen: Listener) -> Result:
        from quire.cluster.dispatch import follow
        from quire.runs.pins import starts_now

        settings = settings_of_turn(self._workspace, os.environ)
        runtime = Runtime.open(self._workspace, model=self._model, shared=True, settings=settings)
        try:
            self._id = await runtime.start(self._document, self._inputs, self._options)
            if self._options.key and not starts_now(await runtime.row(self._id)):
                await follow(runtime, self._id, listen)
                view = await runtime.view(self._id)
                self.result = result_of(view, view.rest)
                return self.result
            drives: list[Drive] = []

            def began(drive: Drive) -> None:
                drive.follow(Progress.of(self._document.runnable()))
                drives.append(drive)

            ended = await runtime.drive(self._id, people=self._people, listen=listen, began=began)
            while await runtime.has_waited(self._id):
                ended = await runtime.drive(self._id, people=self._people, listen=listen, began=began)
            self.result = result_of(await runtime.view_after(drives[-1], self._id, ended), ended)
            return self.result
        finally:
            await runtime.close()


def _until_the_end(start: Callable[P, Running]) -> Callable[P, Result]:
    def run_sync(*args: P.args, **named: P.kwargs) -> Result:
        """Run a document to its end or to a question, and return its `Result`: `run` for programs without an event
        loop, with the same arguments.

        Raises `RunState` in a running event loop, as notebooks have one.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(start(*args, **named).ended())
        raise RunState("an event loop is running here (as in a notebook): use `await quire.run(…)` instead")

    return run_sync


run_sync = _until_the_end(run)


@contextlib.asynccontextmanager
async def open_workspace(path: str | Path | None = None, *, model: Model | None = None) -> AsyncIterator[Runtime]:
    """Open the workspace around `path` (the current folder) and close it at the end.

    All `quire.run`s of the same workspace and event loop use its store meanwhile: one connection, whose commits are
    grouped. `model` answers in place of the configured one."""
    runtime = Runtime.open(Path(path) if path is not None else None, model=model, shared=True)
    try:
        yield runtime
    finally:
        await runtime.close()
