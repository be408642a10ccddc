"""Launches of pipelines: registered or inline, with or without waiting.

A launch is a run of its own, with an id derived from the call: a thread that is killed and resumed finds the run that
it launched before, and does not launch a second one. A refusal before a run exists is an `error` without a run id, and
leaves nothing behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.records import FINAL, Status
from quire.errors import BadDefinition, PriceUnknown, QuireError, Refused, ToolFailed
from quire.formats.grammars import PIPELINE
from quire.formats.pipeline.inline import LAUNCHING, definition_source, gate, listed, mistakes, told
from quire.formats.pipeline.lower import lower
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.walks import in_role, walk_file
from quire.library.document import Document
from quire.runs.options import RunOptions
from quire.runs.outcome import returned
from quire.runs.pins import starts_now
from quire.runs.workspace_gate import open_gate
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.engine.driver.drive import Drive, DriveResult
    from quire.engine.events import Listener
    from quire.engine.ports import People
    from quire.runs.runtime import Runtime
    from quire.trust.capabilities import Grants
    from quire.values import Value
    from quire.workspace.settings import Settings

ASYNC, INLINE = "_async", "_inline"
SUBJECTS = ("name", "definition")
"""Some callers pass both; each tool reads its own."""


class LaunchResult(Struct, frozen=True):
    status: Literal["ok", "error", "cancelled", "started"]
    data: Mapping[str, Value]

    def as_json(self) -> dict[str, Value]:
        return {"status": self.status, "data": dict(self.data)}


class Launcher(Struct, frozen=True):
    """The caller of a launch. If it has read content from outside in its run, or has no profile, it may not launch."""

    recipient: str
    identity: str
    grants: Grants
    run_id: str = ""
    """The id of the new run, if it is fixed; a run that exists under this id is continued."""
    within: Grants | None = None
    """The upper bound of the run's grants, if the launcher is itself a run."""
    untrusted: bool = False
    profile: bool = True
    options: RunOptions | None = None
    """Options of the new run in place of those of all launches."""

    def check(self, name: str) -> None:
        """Raise `Refused` if this caller may not launch the document of this name, `Denied` if it has no grant for
        it."""
        if self.untrusted:
            raise Refused("content from the network or from an MCP server was read in this run: it cannot launch")
        if not self.profile:
            raise Refused("an identity without a profile cannot launch a pipeline")
        self.grants.require("execute", "pipeline", name)


class Launching:
    """Launch runs for one runtime.

    `known_tools` returns all tool names that resolve, for definitions that an agent wrote, and `hint` what may be meant
    by another name. `options` apply to every launched run. `hand_over` gets those that wait for a service and continue
    by themselves; without it a caller that waits for the run waits for the service too.
    """

    def __init__(
        self,
        runtime: Runtime,
        known_tools: Callable[[], Collection[str]],
        *,
        shell: bool = False,
        hint: Callable[[str], str] = lambda name: "",
        options: RunOptions | None = None,
        hand_over: Callable[[str], None] | None = None,
    ) -> None:
        self._runtime = runtime
        self._hand_over = hand_over
        self._known_tools = known_tools
        self._hint = hint
        self._shell = shell
        self._options = options or RunOptions()
        self._driving: set[asyncio.Task[None]] = set()

    async def launch(
        self,
        tool: str,
        arguments: Mapping[str, Value],
        launcher: Launcher,
        *,
        people: People | None = None,
        listen: Listener = lambda event: None,
        began: Callable[[Drive], None] = lambda drive: None,
    ) -> LaunchResult:
        """Perform one call of one of the four tools. Errors of the caller or of the pipeline are returned, never
        raised."""
        if tool not in LAUNCHING:
            return LaunchResult("error", {"error": f"unknown tool {tool}"})
        names = ["definition" if INLINE in tool else "name", "input"]
        if unknown := unknown_argument(tool, arguments, names, SUBJECTS):
            return LaunchResult("error", {"error": unknown})
        try:
            document, inputs = self._document(tool, arguments, launcher), _input(arguments)
        except BadDefinition as error:
            return LaunchResult("error", {"error": str(error), "errors": error.mistakes})
        except QuireError as error:
            return LaunchResult("error", {"error": str(error)})
        wait = not tool.endswith(ASYNC)
        return await self.launch_document(
            document, inputs, launcher, wait=wait, people=people, listen=listen, began=began
        )

    async def launch_document(
        self,
        document: Document,
        inputs: Mapping[str, Value],
        launcher: Launcher,
        *,
        wait: bool = True,
        people: People | None = None,
        listen: Listener = lambda event: None,
        began: Callable[[Drive], None] = lambda drive: None,
    ) -> LaunchResult:
        """Launch a document of any format that the caller has already read."""
        try:
            launcher.check(document.runnable().title)
            run = launcher.run_id
            row = await self._runtime.store.get(run) if run else None
            options = launcher.options or self._options
            if row is None:
                options = replace(options, reply_to=launcher.recipient, within=launcher.within)
                run = await self._start(document, inputs, options, run)
                row = await self._runtime.store.get(run) if options.key else None
            started = LaunchResult("started", {"run_id": run})
            if row is not None and row.status in (*FINAL, Status.FAILED, Status.CANCELLED):
                # A caller that did not wait was told that the run has started, and learns of its end by the letter.
                ended = envelope_of(run, (await self._runtime.view(run)).rest) if wait else started
                return await self.warned(run, ended)
            if row is not None and options.key and not starts_now(row):
                return await self.warned(run, started)
        except QuireError as error:
            return LaunchResult("error", {"error": str(error)})
        if not wait:
            if self._runtime.hand_over is None:
                self.go_on(run, began, people=people)
            else:
                await self._runtime.hand_over(run)
            return await self.warned(run, started)
        drive = partial(self._runtime.drive, run, people=people, listen=listen, began=began, attached=True)
        rested = await drive()
        while self._hand_over is None and await self._runtime.has_waited(run):
            rested = await drive()
        return await self.warned(run, await self.envelope(run, rested))

    async def envelope(self, run: str, rested: DriveResult) -> LaunchResult:
        """Return the result of a drive. A run that continues by itself has only started, and is handed over."""
        if rested.status is not Status.PAUSED or (await self._runtime.row(run)).wake_at is None:
            return envelope_of(run, rested)
        if self._hand_over is not None:
            self._hand_over(run)
        return LaunchResult("started", {"run_id": run})

    async def _start(self, document: Document, inputs: Mapping[str, Value], options: RunOptions, run: str) -> str:
        """Start a run with the part of its launcher's money that it is allotted."""
        dollars, strictly = self._runtime.allotted.pop(run, (None, True))
        limited = options if dollars is None else replace(options, budget=dollars)
        try:
            return await self._runtime.start(document, inputs, limited, run_id=run, admitted=dollars is not None)
        except PriceUnknown:
            if strictly:
                raise
        # As for the model of a thread: other limits bound calls without a price.
        return await self._runtime.start(document, inputs, options, run_id=run)

    async def warned(self, run: str, envelope: LaunchResult) -> LaunchResult:
        """Add the warnings of the check before the start, if there are any."""
        warnings = await self._runtime.warnings(run)
        return replace(envelope, data={**envelope.data, "warnings": list(warnings)}) if warnings else envelope

    async def settled(self) -> None:
        """Wait for the runs that were launched without waiting."""
        while self._driving:
            await asyncio.gather(*self._driving)

    async def interrupt(self) -> None:
        """Stop those runs at once; they can be resumed."""
        driving = list(self._driving)
        for task in driving:
            task.cancel()
        await asyncio.gather(*driving, return_exceptions=True)

    def go_on(
        self,
        run: str,
        began: Callable[[Drive], None],
        *,
        people: People | None = None,
        runtime: Runtime | None = None,
        failed: Callable[[str], None] | None = None,
    ) -> asyncio.Task[None]:
        """Drive a run that no caller waits for; its end is announced by letter. `failed` receives the error if it
        cannot be driven, which `settled` raises otherwise."""

        async def drive() -> None:
            try:
                await (runtime or self._runtime).drive(run, people=people, began=began)
            except QuireError as error:
                if failed is None:
                    raise
                failed(f"the run {run} cannot continue: {error}")

        task = asyncio.create_task(drive())
        self._driving.add(task)
        task.add_done_callback(self._driving.discard)
        return task

    def _document(self, tool: str, arguments: Mapping[str, Value], launcher: Launcher) -> Document:
        if INLINE in tool:
            return self._inline(arguments.get("definition"), launcher)
        name = arguments.get("name")
        if not isinstance(name, str) or not name:
            raise Refused("name is required: which registered pipeline?")
        launcher.check(name)
        registry = self._runtime.registry()
        registered = registry.pipelines.get(name)
        if registered is None:
            problems = "".join(f"; {problem}" for problem in registry.problems)
            raise Refused(f"pipeline {name!r} is not registered{problems}")
        return registered.document

    def _inline(self, definition: Value, launcher: Launcher) -> Document:
        if definition is not None and not isinstance(definition, str):
            raise Refused("definition must be one text, a pipeline written in YAML or JSON, not a JSON object or list")
        if definition is None or not definition.strip():
            raise Refused("definition is required: a pipeline as YAML text")
        source = definition_source(definition)
        reading = parse(source)
        file = reading.file or reading.partial
        for pipeline in file.pipelines if file else ():
            launcher.check(pipeline.name.text)
        refusal = gate(file, launcher.identity, self._known_tools(), self._shell, hint=self._hint) if file else None
        if reading.file is None or refusal is not None:
            verdict = "invalid" if reading.file is None else "refused"
            errors = mistakes(reading, refusal)
            raise BadDefinition(f"the inline definition is {verdict}: {told(errors)}", listed(errors))
        (pipeline,) = reading.file.pipelines
        return Document(source, "pipeline", lower(reading.file, pipeline), reading.diagnostics)


def definition_help(tool: str) -> str:
    """Return the part of a description that says how a definition is written.

    The two inline tools are always offered together, so the grammar stands in one of them.
    """
    if tool.endswith(ASYNC):
        return f"The definition is written as {tool.removesuffix(ASYNC)} describes it."
    return f"A definition with errors is not launched; all errors are returned, to be corrected.\n\n{PIPELINE.text}"


def unknown_argument(
    tool: str, arguments: Mapping[str, Value], names: Sequence[str], ignored: Collection[str] = ()
) -> str:
    """Return a message about the first argument that a tool does not take, or the empty text. A misspelt input would be
    lost silently."""
    for name in arguments:
        if name not in names and name not in ignored:
            takes = f"it takes {' and '.join(names)}"
            meant = did_you_mean(nearest(name, names))
            return f"{tool} has no argument {name!r}: {f'{meant} ' if meant else ''}{takes}"
    return ""


def _input(arguments: Mapping[str, Value]) -> Mapping[str, Value]:
    inputs = arguments.get("input")
    if inputs is None:
        return {}
    if not isinstance(inputs, Mapping):
        raise Refused("input must be a mapping, if it is given")
    return inputs


def envelope_of(run: str, ended: DriveResult) -> LaunchResult:
    """Return the result of a drive in the form that a waiting caller gets."""
    match ended.status:
        case Status.COMPLETED:
            result = returned(ended)
            data = {
                "run_id": run,
                "output": result.get("output"),
                "named_stores": result.get("stores", result.get("named", {})),
            }
            return LaunchResult("ok", data)
        case Status.PAUSED | Status.CANCELLED:
            return LaunchResult(
                "cancelled", {"run_id": run, "error": f"stopped at step {ended.position}; it can be resumed"}
            )
        case Status.AWAITING_INPUT:
            return LaunchResult("started", {"run_id": run})
    return LaunchResult("error", {"run_id": run, "error": ended.failure.message if ended.failure else "it failed"})


_MOST_HINTS = 1_000


class KnownTools:
    """The tool names of inline definitions that resolve, among those looked up so far. Used by `Launching`."""

    def __init__(self, settings: Settings, grants: Grants, environ: Mapping[str, str] | None = None) -> None:
        self._settings = settings
        self._grants = grants
        self._environ = environ
        self._known: set[str] = set()
        self._hints: dict[str, str] = {}

    def __call__(self) -> frozenset[str]:
        return frozenset(self._known)

    def hint(self, name: str) -> str:
        """Return what may be meant by a name that does not resolve, among those asked for so far."""
        return self._hints.get(name, "")

    @property
    def shell(self) -> bool:
        return self._grants.allows("execute", "tool", "shell")

    async def learn(self, definition: object) -> None:
        """Resolve the tool names of a definition. A text that is not a definition has none. Raises `Untrusted`."""
        names = _tools(definition) - self._known if isinstance(definition, str) else set()
        if not names:
            return
        if len(self._hints) > _MOST_HINTS:
            self._hints.clear()
        async with open_gate(self._settings, self._grants, self._environ) as gate:
            for name in sorted(names):
                try:
                    await gate.offers([name])
                except ToolFailed as error:
                    # "unknown tool X; did you mean Y?": the permission check says the first part itself.
                    self._hints[name] = error.message.partition("; ")[2] or error.message
                    continue
                self._known.add(name)
            gate.keep_servers()


def _tools(definition: str) -> set[str]:
    reading = parse(definition_source(definition))
    file = reading.file or reading.partial
    if file is None:
        return set()
    names = {name.text for _, step in walk_file(file) for name in in_role(step, "tool")}
    # A `*` would match all tools that fit; as the name of one tool it does not resolve.
    return {name for name in names if "*" not in name}
