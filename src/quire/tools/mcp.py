"""The tools and prompts of one MCP server, over stdio or streamable HTTP.

A session is opened on first use and kept for the run: a call over it costs milliseconds, a new session a second. The
look before the start leaves its sessions to the run. A session lives in its own task, because the cancel scopes inside
belong to the task that opened them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

from quire import values
from quire.engine.premises import TOOL_SECONDS
from quire.errors import QuireError, ToolFailed
from quire.installed import add_extra
from quire.patterns import late_pattern
from quire.telemetry import traceparent_of
from quire.tools.arguments import Check, Unusable, check_or_reason
from quire.tools.blocking import OutOfTime, within
from quire.tools.mcp_session import CannotOpen, Session, Stopped, keep_session, reason, take_session
from quire.tools.registry import Answer, ToolSpec
from quire.trust.capabilities import mcp_tool
from quire.wording import cut_line
from quire.workspace.server_code import ServerCode, server_code

if TYPE_CHECKING:
    import asyncio

    from mcp import types
    from mcp.types import RequestParamsMeta

    from quire.engine.ports import EffectClass
    from quire.tools.mcp_session import Inspection
    from quire.values import Value
    from quire.workspace.mcp_config import McpServer

EFFECT_ID_META: Final = "quire/effect-id"
MAX_TOOLS: Final = 50_000
LATE_SECONDS: Final = 3.0
_LAST_WORDS: Final = "; its last words:"
_HINT: Final = "it was started in an empty folder"
_LONGEST_WORDS: Final = 200
"""Characters of the last words in one line."""
_MISSING = late_pattern(r"(?i)no such file|enoent|not found|cannot find|can't open|no module named|does not exist")
"""Last words of a server that may have been started in the wrong folder."""

T = TypeVar("T")


class McpConnection:
    """One server of `.mcp.json`. Used from one event loop only."""

    def __init__(
        self,
        server: McpServer,
        folder: Path,
        environ: Mapping[str, str],
        notice: Callable[[str], None] = lambda line: None,
        confirmed: Mapping[str, str] | None = None,
        redact: Callable[[str], str] = lambda text: text,
    ) -> None:
        """`notice` receives a line when the server takes long to start. `confirmed` are the files of the workspace that
        it may load, with their hashes; None for the files that exist when it starts. `redact` removes secrets from its
        output."""
        self._notice = notice
        self._confirmed = confirmed
        self._redact = redact
        self._server = server
        self._folder = folder
        self._environ = environ
        self._session: Session | None = None
        self._opening: asyncio.Lock | None = None
        self._tools: dict[str, ToolSpec] = {}
        self._outputs: dict[str, Check | str] = {}
        self._listing: asyncio.Lock | None = None
        self._listed = 0

    def tool_id(self, tool: str) -> str:
        return mcp_tool(self._server.name, tool)

    def known(self, tool: str) -> ToolSpec | None:
        return self._tools.get(tool)

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]:
        if refresh or not self._listed:
            await self._list_once()
        return self._tools

    async def _list_once(self) -> None:
        """List the tools, once at a time; callers that arrive meanwhile share the next listing."""
        import asyncio

        if self._listing is None:
            self._listing = asyncio.Lock()
        listed = self._listed
        async with self._listing:
            if self._listed == listed:
                self._tools = await self._do(self._list, repeat=True)
                self._listed += 1

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Answer:
        traced = {"traceparent": parent} if (parent := traceparent_of(effect_id)) else {}
        # The protocol allows any names; the type knows only those of the protocol itself.
        meta = cast("RequestParamsMeta", {EFFECT_ID_META: effect_id, **traced})

        async def send(session: Session) -> types.CallToolResult:
            return await session.client.call_tool(tool.name, dict(arguments), meta=meta)

        result = await self._do(send, repeat=tool.effect != "write")
        if result.is_error:
            raise ToolFailed(f"{tool.id} failed: {text_of_parts(result.content) or 'it did not say why'}")
        self._check_output(tool, result)
        return tool_answer(result)

    def _check_output(self, tool: ToolSpec, result: types.CallToolResult) -> None:
        """Check structured content against the output schema of the server."""
        check = self._outputs.get(tool.name)
        if check is None:
            return
        if isinstance(check, str):
            raise ToolFailed(f"{tool.id} cannot be used: {check}", kind="schema")
        if result.structured_content is None:
            raise ToolFailed(f"{tool.id} has an output schema and returned no structured content", kind="result")
        try:
            problems = check(values.copy(result.structured_content))
        except (Unusable, values.InvalidValue) as error:
            raise ToolFailed(f"the result of {tool.id} cannot be checked: {error}", kind="result") from None
        if problems:
            raise ToolFailed(f"the result of {tool.id} does not fit its own schema: {problems[0]}", kind="result")

    async def prompt(self, name: str) -> str:
        result = await self._do(lambda session: session.client.get_prompt(name), repeat=True)
        return "\n\n".join(text for message in result.messages if (text := text_of_parts([message.content])))

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def keep(self) -> None:
        """Leave the session to the next connection to the same server."""
        if self._session is not None:
            keep_session(self._session)
            self._session = None

    async def _list(self, session: Session) -> dict[str, ToolSpec]:
        specs: dict[str, ToolSpec] = {}
        cursors: set[str] = set()
        cursor: str | None = None
        inspection = session.inspection
        inspection.begin_listing()
        while True:
            page = await session.client.list_tools(cursor=cursor, cache_mode="refresh")
            specs.update((tool.name, self._spec(tool, inspection)) for tool in page.tools)
            cursor = page.next_cursor
            if cursor is None:
                break
            if cursor in cursors:
                raise ToolFailed(f"MCP server {self._server.name} lists its tools in a circle", kind="server")
            cursors.add(cursor)
            if len(inspection.schemas) > MAX_TOOLS or len(cursors) > MAX_TOOLS:
                raise ToolFailed(f"MCP server {self._server.name} lists more than {MAX_TOOLS:,} tools", kind="server")
        self._outputs = {name: check_or_reason(schema, "output schema") for name, schema in inspection.outputs.items()}
        return specs

    def _spec(self, tool: types.Tool, inspection: Inspection) -> ToolSpec:
        hints = tool.annotations
        effect: EffectClass = "write"
        if hints and hints.read_only_hint:
            effect = "read"
        elif hints and hints.idempotent_hint:
            effect = "idempotent"
        return ToolSpec(
            self.tool_id(tool.name),
            tool.name,
            tool.description or "",
            inspection.schemas[tool.name],
            effect,
            inspection.problems.get(tool.name, ""),
            output=inspection.outputs.get(tool.name),
        )

    def longest(self, tool: ToolSpec, arguments: Mapping[str, Value]) -> float:
        return TOOL_SECONDS.of("mcp", self._server.timeout)

    async def _do(self, send: Callable[[Session], Awaitable[T]], *, repeat: bool) -> T:
        """Send a request. If the session is gone and repeating is harmless, send it once more over a new session."""
        session = await self._open()
        try:
            return await self._send(session, send)
        except Stopped:
            await self._discard(session)
            if not repeat:
                raise ToolFailed(
                    self._said(session, "stopped; it may still have done the call"), kind="server_stopped"
                ) from None
        session = await self._open()
        try:
            return await self._send(session, send)
        except Stopped:
            await self._discard(session)
            raise ToolFailed(self._said(session, "stopped again after a restart"), kind="server_stopped") from None

    async def _send(self, session: Session, send: Callable[[Session], Awaitable[T]]) -> T:
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED

        try:
            return await within(send(session), self._server.timeout)
        except OutOfTime:
            unreadable = f"; a message that it sent cannot be read: {session.unreadable}" if session.unreadable else ""
            raise ToolFailed(
                f"MCP server {self._server.name} took longer than {self._server.timeout:g} s{unreadable}",
                kind="timeout",
            ) from None
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                raise ToolFailed(f"MCP server {self._server.name}: {error.message or reason(error)}") from None
            if not session.problem:
                raise Stopped from None
        except ToolFailed:
            raise
        except Exception as error:
            # Transport errors, results against the protocol, groups of both: all of them are failures of the server.
            raise ToolFailed(f"MCP server {self._server.name}: {reason(error)}") from None
        await self._discard(session)
        raise ToolFailed(f"MCP server {self._server.name} was stopped: it {session.problem}", kind="server_stopped")

    async def _open(self) -> Session:
        import asyncio

        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._session is None:
                line = f"starting MCP server {self._server.name} …"
                late = asyncio.get_running_loop().call_later(LATE_SECONDS, self._notice, line)
                try:
                    self._session = await self._start()
                finally:
                    late.cancel()
            return self._session

    async def _start(self) -> Session:
        name = self._server.name
        if find_spec("mcp") is None:
            raise ToolFailed(f"MCP server {name} needs the package mcp: {add_extra('mcp')}", kind="server")
        if missing := self._server.missing(self._environ):
            raise ToolFailed(f"MCP server {name} needs the environment variable {', '.join(missing)}", kind="server")
        server = self._server.expanded(self._environ)
        code = self._code(server)
        if (waiting := await take_session(server, self._folder, code)) is not None:
            return waiting
        # Some servers end when the first message is not the handshake they know: then try again with the legacy one.
        for mode in ("auto", "legacy"):
            session = Session(server, self._folder, code)
            try:
                await session.open(mode)
                return session
            except Stopped:
                if session.problem:
                    what = f"was stopped: it {session.problem}"
                    raise ToolFailed(self._said(session, what), kind="server") from None
                continue
            except CannotOpen as error:
                does = "cannot be reached" if server.url else "cannot be started"
                raise ToolFailed(self._said(session, f"{does}: {error}"), kind="server") from None
        raise ToolFailed(self._said(session, "stopped while starting"), kind="server")

    def _code(self, server: McpServer) -> ServerCode:
        """Return how the server is started. Raises `ToolFailed` if a file has changed since the user agreed."""
        if server.url:
            return ServerCode(())
        code = server_code(server, self._folder)
        if self._confirmed is not None and code.files != self._confirmed:
            names = {*code.files, *self._confirmed}
            changed = sorted(name for name in names if code.files.get(name) != self._confirmed.get(name))
            raise ToolFailed(
                f"MCP server {server.name} is not started: {', '.join(changed[:5])} changed since you agreed to it; "
                "look at it, then run: quire trust workspace",
                kind="server",
            )
        return code

    async def _discard(self, session: Session) -> None:
        if self._session is session:
            self._session = None
        await session.close()

    def _said(self, session: Session, what: str) -> str:
        last = session.stderr(self._redact)
        message = f"MCP server {self._server.name} {what}" + (f"{_LAST_WORDS}\n{last}" if last else "")
        if self._server.url or self._server.cwd or session.opened or (last and not _MISSING.search(last)):
            return message
        return f'{message}\n{_HINT}: "cwd": "." in .mcp.json starts it in the workspace'


def in_one_line(error: QuireError) -> str:
    """Return the error of a server as one line, for a list: with the end of its last words, and without hints."""
    first, _, rest = str(error).partition("\n")
    problem, mark, _ = first.partition(_LAST_WORDS)
    words = [line.strip() for line in rest.split("\n") if line.strip() and not line.startswith(_HINT)]
    return f"{problem}{mark} {cut_line(words[-1], _LONGEST_WORDS)}" if mark and words else problem


def tool_answer(result: types.CallToolResult) -> Answer:
    """Return a result as text for a playbook or a model, and as data for a pipeline.

    The data is the structured content, else the text decoded as a JSON object or list, else the text. A result without
    any text is kept as the server sent it.
    """
    structured: Value = result.structured_content
    text: Value = text_of_parts(result.content)
    if result.content and not any(map(_is_text, result.content)):
        text = [part.model_dump(mode="json", by_alias=True, exclude_none=True) for part in result.content]
    if structured is not None:
        # An empty text beside structured content has no meaning.
        return Answer(text if isinstance(text, str) and text else structured, structured)
    return Answer(text, _decoded(text) if isinstance(text, str) else text)


def text_of_parts(parts: Sequence[types.ContentBlock]) -> str:
    """Return the parts as one text, in their order. A part that is neither text nor a link is named in its place, so
    that it does not seem absent."""
    return "\n".join(text for part in parts if (text := _part(part)))


def _is_text(part: types.ContentBlock) -> bool:
    return part.type in ("text", "resource_link") or (part.type == "resource" and hasattr(part.resource, "text"))


def _part(part: types.ContentBlock) -> str:
    if part.type == "text":
        return part.text
    if part.type == "resource_link":
        return f"[{part.name}]({part.uri})"
    if part.type == "resource":
        text: str | None = getattr(part.resource, "text", None)
        if text is not None:
            return text
        kind = f", {part.resource.mime_type}" if part.resource.mime_type else ""
        return f"[resource {part.resource.uri}{kind}, left out]"
    return f"[{part.type}, {part.mime_type}, left out]"


def _decoded(text: str) -> Value:
    """Decode objects and lists only: a number or a word that happens to be JSON stays text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return values.decode(text)
    except values.InvalidValue:
        return text
