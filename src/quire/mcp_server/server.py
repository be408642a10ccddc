"""The server itself: the tools, resources and prompts that an MCP client can list, call and read.

`serve_stdio` serves stdin and stdout, for a client that starts the server as its own process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from mcp.server import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from msgspec import Struct, field
from msgspec.structs import replace

from quire import __version__
from quire.errors import NoSuchRun
from quire.mcp_server.catalogue import (
    PROMPTS,
    RESOURCES,
    Catalogue,
    Client,
    Context,
    Offered,
    connection_of,
    grammar_resource,
    written_prompt,
)
from quire.mcp_server.client_calls import Calls, Reopen, Result
from quire.mcp_server.launch_tools import (
    ANSWER,
    ENVELOPE,
    RUN_SCHEME,
    TOOLS,
    LaunchedRuns,
    ToolHost,
    call_operation,
    launch_tool,
    operation_tool,
)
from quire.python_process import EndingSignals
from quire.runs.options import RunOptions

if TYPE_CHECKING:
    from mcp.server.models import InitializationOptions
    from mcp.server.session import ServerSession

    from quire.runs.runtime import Runtime

T = TypeVar("T")

NAME = "quire"
INSTRUCTIONS = (
    "Each pipeline__NAME, playbook__NAME and directive__NAME tool runs a document of this workspace and waits for its "
    "result. A run that asks a person, or that was launched with run_pipeline_async, continues later: pipeline_result "
    "returns its state, pipeline_resume continues it, pipeline_inbox lists notices of ended runs. Only people "
    "answer its questions. The resources quire://grammar/NAME say how documents are written; check_document checks one."
)
LONGEST_WAIT = 30 * 24 * 3600.0
WATCH_SECONDS = 2.0
MAX_SESSIONS = 100


class Offer(Struct, frozen=True):
    """The options that the user starts the server with."""

    documents: Sequence[Path] = ()
    inline: bool = False
    answers: bool = False
    """Clients may answer questions for a text or a choice by a tool call."""
    options: RunOptions = field(default_factory=RunOptions)
    report: Callable[[str], None] = lambda text: None
    """Gets messages for people; it must never write to stdout."""
    watch_seconds: float = WATCH_SECONDS


async def as_it_is(runtime: Runtime, run: str) -> Runtime:
    return runtime


class ChangingServer(Server[Any]):
    """A server that announces that its tools can change; over HTTP the library offers no other place to announce it."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        changing = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(changing, experimental_capabilities, extensions)


class Host:
    """One workspace as one server, for any number of connections."""

    def __init__(
        self,
        runtime: Runtime,
        offer: Offer,
        *,
        reopen: Reopen = as_it_is,
        hand_over: Callable[[str], None],
        takes_over: bool = True,
    ) -> None:
        self._offer = offer
        self._catalogue = Catalogue(runtime.settings, offer.documents, offer.report)
        self._late = LaunchedRuns(runtime)
        self._different_approver = runtime.settings.serve.different_approver
        self._bus = InMemorySubscriptionBus()
        self._sessions: dict[str, ServerSession] = {}
        self._wants_log: dict[str, bool] = {}
        self._takes_over = takes_over
        self.calls = Calls(
            runtime, offer.options, inline=offer.inline, report=offer.report, reopen=reopen, hand_over=hand_over
        )
        self.server: Server[Any] = ChangingServer(
            NAME,
            version=__version__,
            instructions=INSTRUCTIONS,
            lifespan=self._lifespan,
            on_list_tools=self._tools,
            on_call_tool=self._call,
            on_list_resources=self._resources,
            on_list_resource_templates=self._templates,
            on_read_resource=self._read,
            on_list_prompts=self._prompts,
            on_get_prompt=self._prompt,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._level)
        expiry = runtime.settings.runs.expiry
        security = RequestStateSecurity(keys=[secret(runtime.settings.user)], ttl=expiry or LONGEST_WAIT)
        # The state of a waiting call names its run: it is sealed, and valid only for the same call in this workspace.
        audience = f"{NAME}:{runtime.settings.workspace.folder}"
        self.server.middleware.append(RequestStateBoundary(security, default_audience=audience))

    @contextlib.asynccontextmanager
    async def _lifespan(self, server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        aside = [asyncio.create_task(self._watch())]
        if self._takes_over:
            self._takes_over = False  # once, not for each connection
            aside.append(asyncio.create_task(self.calls.take_over()))
        try:
            yield {}
        finally:
            for task in aside:
                task.cancel()
            await self.calls.close()

    async def _watch(self) -> None:
        """Notify clients when the list of tools has changed. It only checks the files of the documents, every two
        seconds by default."""
        before = self._catalogue.stamp()
        while True:
            await asyncio.sleep(self._offer.watch_seconds)
            now = self._catalogue.stamp()
            if now == before:
                continue
            before = now
            await self._bus.publish(ToolsListChanged())
            for connection, session in list(self._sessions.items()):
                try:
                    await session.send_tool_list_changed()
                except Exception:  # a closed connection may raise anything
                    self._sessions.pop(connection, None)

    async def _tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        if not Client.of(context).modern:
            _remember(self._sessions, connection_of(context), context.session)
        listing = await asyncio.to_thread(self._catalogue.load)
        tools = [_tool(offered) for offered in listing.tools.values()]
        launchers = [launch_tool(name) for name in self.calls.launchers()]
        others = [operation_tool(name) for name in TOOLS if self._offers(name)]
        return types.ListToolsResult(tools=[*tools, *launchers, *others])

    def _offers(self, tool: str) -> bool:
        return tool in TOOLS and (tool != ANSWER or self._offer.answers)

    async def _call(self, context: Context, params: types.CallToolRequestParams) -> Result:
        caller, arguments = Client.of(context), params.arguments or {}
        caller = replace(caller, logs=self._wants_log.get(connection_of(context), caller.logs))
        if context.request is not None and self._different_approver:
            caller = replace(caller, elicits=False)  # The clients of one token are one user.
        if params.request_state is not None:
            return await self.calls.go_on(caller, params.request_state, params.input_responses)
        if params.name in self.calls.launchers():
            return await self.calls.launch(caller, params.name, arguments)
        if self._offers(params.name):
            return await call_operation(params.name, arguments, ToolHost(caller, self.calls, self._late))
        listing = await asyncio.to_thread(self._catalogue.load)
        offered = listing.tools.get(params.name)
        if offered is None:
            raise MCPError(types.INVALID_PARAMS, f"unknown tool {params.name}")
        return await self.calls.run(caller, offered, arguments)

    async def _resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        rows = await self._late.runs()
        return types.ListResourcesResult(
            resources=[
                *RESOURCES,
                *(
                    types.Resource(
                        uri=f"{RUN_SCHEME}{row.id}",
                        name=row.id,
                        title=row.title,
                        description=f"A run of {row.title}: {row.status.words}",
                        mime_type="application/json",
                    )
                    for row in rows
                ),
            ]
        )

    async def _templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=f"{RUN_SCHEME}{{run_id}}",
            name="run",
            description="A run that was launched from here, as it is now",
            mime_type="application/json",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read(self, context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        if (grammar := grammar_resource(uri)) is not None:
            return grammar
        try:
            text = await self._late.page(uri)
        except NoSuchRun as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        page = types.TextResourceContents(uri=uri, text=text, mime_type="application/json")
        return types.ReadResourceResult(contents=[page])

    async def _prompts(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=list(PROMPTS))

    async def _prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return written_prompt(params.name, params.arguments or {})

    async def _level(self, context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        """Set the log level of a connection. Our messages have the level `info`, so a client gets all of them or
        none."""
        _remember(self._wants_log, connection_of(context), params.level in ("debug", "info"))
        return types.EmptyResult()


def _remember(values: dict[str, T], connection: str, value: T) -> None:
    """Keep the last value of each connection, for at most `MAX_SESSIONS` of them: connections do not report when they
    end."""
    values.pop(connection, None)
    values[connection] = value
    while len(values) > MAX_SESSIONS:
        del values[next(iter(values))]


def secret(user: Path) -> bytes:
    """Return the key that seals the states held by clients. It is created once, so that a restarted server accepts its
    own states."""
    path = user / "mcp.key"
    try:
        user.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        stored = path.read_bytes()
        return stored if len(stored) >= 32 else os.urandom(32)
    except OSError:
        return os.urandom(32)
    key = os.urandom(32)
    with os.fdopen(handle, "wb") as file:
        file.write(key)
    return key


def _tool(offered: Offered) -> types.Tool:
    return types.Tool(
        name=offered.tool,
        title=offered.title,
        description=offered.description,
        input_schema=dict(offered.schema),
        output_schema=dict(ENVELOPE),
    )


INTERRUPTED = 130


async def serve_stdio(host: Host) -> None:
    """Serve until the client closes stdin. Meanwhile everything else written to stdout goes to stderr."""
    loop = asyncio.get_running_loop()
    ending: list[asyncio.Task[None]] = []

    def end() -> None:
        if not ending:
            ending.append(loop.create_task(_end_at_once(host)))

    options = host.server.create_initialization_options()
    with EndingSignals(loop, end):
        async with stdio_server() as (incoming, outgoing):
            await host.server.run(incoming, outgoing, options)


async def _end_at_once(host: Host) -> None:
    """Stop all runs and end the process. The thread that reads stdin cannot be interrupted and would keep the process
    alive, so the process exits without it."""
    try:
        await host.calls.stop()
    finally:
        os._exit(INTERRUPTED)
