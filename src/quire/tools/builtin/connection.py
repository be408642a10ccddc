"""The connection `quire` with the built-in tools, each made when it is first called; and web pages as text or Markdown
for models, without scripts, styles and the like."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, cast

from quire.engine.premises import HTTP_SECONDS, SHELL_SECONDS, TOOL_SECONDS
from quire.errors import Denied, ToolFailed
from quire.plan.built_in_tools import BUILT_IN_TOOLS, FETCH, SEND, SHELL, STATE
from quire.tools.blocking import OutOfTime, in_thread
from quire.tools.builtin import NAMES, SPECS
from quire.trust.capabilities import Grants, canonical, capability
from quire.workspace.grants import reach_of
from quire.workspace.locate import user_space
from quire.workspace.settings import SandboxSettings

if TYPE_CHECKING:
    from quire.tools.builtin.file_search import Finder
    from quire.tools.builtin.files import Files
    from quire.tools.builtin.http_request import Hosts, HttpFetch, OriginHeaders
    from quire.tools.builtin.paths import Places, Protection
    from quire.tools.builtin.shell import Shell
    from quire.tools.builtin.state import State
    from quire.tools.registry import ToolSpec
    from quire.values import Value
    from quire.workspace.host_headers import HostHeaders


_FUNCTIONS = {tool.name: tool.function for tool in BUILT_IN_TOOLS}
_PERHAPS_DONE = "; the request may have been carried out"


class BuiltInConnection:
    """The built-in tools of one workspace, with the grants of the caller.

    `private` are folders that no tool sees, `asking` paths that tools write only with an explicit grant, `closed` files
    and folders that confirmed servers and tool modules load. `replacing` is called with the id of a directive before it
    is overwritten.
    """

    def __init__(
        self,
        folder: Path,
        grants: Grants,
        environ: Mapping[str, str],
        *,
        private: Sequence[Path] = (),
        asking: Sequence[str] = (),
        closed: Sequence[str] = (),
        sandbox: SandboxSettings | None = None,
        replacing: Callable[[str], None] = lambda directive: None,
        redact: Callable[[str], str] = lambda text: text,
        withheld: frozenset[str] = frozenset(),
        headers: Sequence[HostHeaders] = (),
        space: Path | None = None,
        clock: Callable[[], float] = time.time,
        is_document: Callable[[str, str], bool] = lambda path, text: False,
    ) -> None:
        """`withheld` are variables that commands get only if they are granted by name. `redact` removes secrets from
        texts before a tool cuts them: half a secret would not be found afterwards. `headers` are those that the user
        adds to requests. `space` is the user's own folder, which holds the state of the workspace. `is_document` tells
        whether a text at a path would be a document of the workspace."""
        self._is_document = is_document
        self._space = space
        self._clock = clock
        self._headers = headers
        self._redact = redact
        self._withheld = withheld
        self._folder = folder
        self._grants = grants
        self._reach = reach_of(grants)
        self._environ = environ
        self._private = tuple(private)
        self._asking = frozenset(asking)
        self._closed = frozenset(closed)
        self._sandbox = sandbox or SandboxSettings()
        self._resolving = threading.Lock()
        self._replacing = replacing

    def tool_id(self, tool: str) -> str:
        return canonical(tool)

    def known(self, tool: str) -> ToolSpec | None:
        return SPECS.get(NAMES.get(canonical(tool), tool))

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]:
        return SPECS

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value:
        function = _FUNCTIONS[tool.name]
        if not function:
            raise ToolFailed(f"{tool.name} is a question to a person; only an agent can ask it", kind="ask")
        find = attrgetter(function)
        if tool.id == SEND:
            return await self.send(arguments, effect_id)
        if "." not in function:
            return cast("Value", await find(self)(arguments))
        return await in_thread(lambda: cast("Value", find(self)(arguments)))

    def longest(self, tool: ToolSpec, arguments: Mapping[str, Value]) -> float:
        own = arguments.get("timeout")
        if tool.id not in (SHELL, FETCH, SEND):
            return TOOL_SECONDS.files
        usual = SHELL_SECONDS if tool.id == SHELL else HTTP_SECONDS
        seconds = float(own) if isinstance(own, int | float) else usual
        return TOOL_SECONDS.of("shell" if tool.id == SHELL else "http", seconds)

    def foreseen(self, tool: ToolSpec, arguments: Mapping[str, Value]) -> ToolFailed | Denied | None:
        if tool.id == SHELL and arguments.get("env"):
            return self._shell.problem_with(arguments)
        try:
            if tool.id in STATE:
                self.state.values()
            if tool.id in (FETCH, SEND):
                from quire.tools.builtin.http_request import HttpFetch

                hosts = self._hosts if tool.id == FETCH else self._receivers
                HttpFetch(hosts, own=self._own_headers).prepare(arguments)
        except (ToolFailed, Denied) as error:
            return error
        return None

    async def prompt(self, name: str) -> str:
        raise ToolFailed("the built-in tools have no prompts")

    async def close(self) -> None:
        pass

    async def run_command(self, arguments: Mapping[str, Value]) -> Value:
        folder = arguments.get("working_dir")
        inside = await in_thread(lambda: self.finder.folder(str(folder))) if folder is not None else ""
        return await self._shell.run(arguments, inside)

    async def now(self, arguments: Mapping[str, Value]) -> Value:
        from quire.tools.builtin.state import moment_of

        return moment_of(self._clock(), arguments)

    async def fetch(self, arguments: Mapping[str, Value]) -> Value:
        from quire.tools.builtin.http_request import HttpFetch

        fetch = HttpFetch(self._hosts, own=self._own_headers)
        return await _in_time(
            fetch, "http__get", arguments, lambda: in_format(fetch.get(arguments), arguments.get("format"))
        )

    async def send(self, arguments: Mapping[str, Value], effect_id: str) -> Value:
        from quire.tools.builtin.http_request import HttpFetch

        fetch = HttpFetch(self._receivers, own=self._own_headers)
        try:
            return await _in_time(fetch, "http__send", arguments, lambda: fetch.send(arguments, effect_id))
        except ToolFailed as error:
            if not fetch.sent:
                raise
            raise ToolFailed(f"{error.message}{_PERHAPS_DONE}", kind=error.kind) from None
        except Denied as error:
            # A redirect to a host that is not granted.
            raise Denied(f"{error}{_PERHAPS_DONE}" if fetch.sent else str(error)) from None

    @cached_property
    def _hosts(self) -> Hosts:
        from quire.tools.builtin.http_request import Hosts

        return Hosts(self._reach.hosts, self._grants.covers(capability("execute", "tool", FETCH)))

    @cached_property
    def _receivers(self) -> Hosts:
        from quire.tools.builtin.http_request import Hosts

        return Hosts(self._reach.receivers, anywhere=False, tool="http__send")

    @cached_property
    def _own_headers(self) -> OriginHeaders:
        from quire.tools.builtin.http_request import OriginHeaders

        return OriginHeaders(self._headers, self._environ)

    @cached_property
    def _protection(self) -> Protection:
        from quire.tools.builtin.paths import Protection

        def signs(directive: str) -> bool:
            return self._grants.allows("sign", "directive", directive)

        return Protection(
            self._reach.folders, self._asking, signs, self._grants.place, self._closed, replacing=self._replacing
        )

    @cached_property
    def _places(self) -> Places:
        from quire.tools.builtin.paths import Places

        return Places(self._folder, self._private)

    @cached_property
    def reader(self) -> Files:
        from quire.tools.builtin.files import Files

        return Files(self._places, self._protection, self._redact)

    @property
    def writer(self) -> Files:
        """Return the files with all paths that protected names lead to, found by a survey of the workspace at the first
        write.

        Concurrent steps share one instance, because it holds the lock of all writers.
        """
        with self._resolving:
            return self._files

    @cached_property
    def _files(self) -> Files:
        from quire.tools.builtin.files import Files
        from quire.tools.builtin.protected_places import ProtectedPlaces

        protection = ProtectedPlaces.of(self._places.root, self._protection).protection
        return Files(self._places, protection, is_document=self._is_document)

    @cached_property
    def finder(self) -> Finder:
        from quire.tools.builtin.file_search import Finder

        return Finder(self._places, self._redact)

    @cached_property
    def state(self) -> State:
        from quire.tools.builtin.state import State

        return State.of(user_space(self._environ) if self._space is None else self._space, self._folder)

    @cached_property
    def _shell(self) -> Shell:
        from quire.tools.builtin.shell import Shell

        return Shell(
            self._folder,
            self._protection,
            self._environ,
            private=self._private,
            network=self._reach.network,
            redact=self._redact,
            sandbox=not self._reach.unsandboxed,
            limits=self._sandbox,
            variables=self._reach.variables,
            withheld=self._withheld,
        )


async def _in_time(fetch: HttpFetch, tool: str, arguments: Mapping[str, Value], work: Callable[[], Value]) -> Value:
    """Do the work in a thread, and end it when its time is over."""
    seconds = float(arguments.get("timeout", HTTP_SECONDS))  # type: ignore[arg-type]  # the schema says integer
    try:
        return await in_thread(work, seconds=seconds)
    except OutOfTime:
        raise ToolFailed(f"{tool} took longer than {seconds:g} s", kind="timeout") from None
    finally:
        fetch.stop()


HTML = ("text/html", "application/xhtml+xml")

_LEFT_OUT = frozenset({"script", "style", "noscript", "template", "svg", "head", "iframe", "object", "canvas"})
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
# fmt: off
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "dd", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer",
    "form", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul", *_HEADINGS,
})
# fmt: on
_LONG_TAG = re.compile(r"<(\w{1,20})\s[^<>]{100000,}>")
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "code": "`"}


def in_format(value: Value, form: Value) -> Value:
    """Return the result of a fetch with its text in the requested format; without one, and for a result that is not a
    page, as it is."""
    if form in (None, "html") or not isinstance(value, dict):
        return value
    headers, text = value.get("headers"), value.get("text")
    kind = str(headers.get("content-type", "")) if isinstance(headers, Mapping) else ""
    if not isinstance(text, str) or not kind.lower().startswith(HTML):
        return value
    return {**value, "text": to_text(text, markdown=form == "markdown")}


def to_text(page: str, *, markdown: bool) -> str:
    from lxml import etree

    parser = etree.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False, remove_comments=True, remove_pis=True)
    # The parser compares each attribute with all before it.
    page = _LONG_TAG.sub(r"<\1>", page)
    root = etree.fromstring(page.encode("utf-8", "replace") or b"<p/>", parser)
    if root is None:
        return ""
    writing = _Writing(markdown)
    left_out = 0
    # Without recursion: a page may be nested to any depth.
    for event, element in etree.iterwalk(root, events=("start", "end")):
        tag = element.tag if isinstance(element.tag, str) else ""
        if event == "start":
            left_out += tag in _LEFT_OUT
            if not left_out:
                writing.start(tag, element.get)
                writing.text(element.text or "")
        else:
            if not left_out:
                writing.end(tag, element.get)
            left_out -= tag in _LEFT_OUT
            if not left_out:
                writing.text(element.tail or "")
    return writing.result()


class _Writing:
    def __init__(self, markdown: bool) -> None:
        self._markdown = markdown
        self._parts: list[str] = []
        self._verbatim = 0
        self._lists: list[int | None] = []

    def start(self, tag: str, get: Callable[[str], str | None]) -> None:
        if tag in ("li", "tr"):
            self._parts.append("\n")
        elif tag in _BLOCKS and not (tag in ("ol", "ul") and self._lists):
            self._parts.append("\n\n")
        if tag in ("ol", "ul"):
            self._lists.append(0 if tag == "ol" else None)
        elif tag == "li":
            self._parts.append(self._bullet())
        elif tag == "br":
            self._parts.append("\n")
        elif tag == "pre":
            self._verbatim += 1
            self._mark("```\n")
        elif tag in ("td", "th"):
            self._parts.append(" ")
        elif tag == "a" and get("href"):
            self._mark("[")
        elif tag in _HEADINGS:
            self._mark(_HEADINGS[tag])
        elif tag in _MARKS and not self._verbatim:
            self._mark(_MARKS[tag])

    def end(self, tag: str, get: Callable[[str], str | None]) -> None:
        if tag in ("ol", "ul") and self._lists:
            self._lists.pop()
        elif tag == "pre":
            self._verbatim -= 1
            self._mark("\n```")
        elif tag == "a" and (target := get("href")):
            self._mark(f"]({target.strip()})")
        elif tag in _MARKS and not self._verbatim:
            self._mark(_MARKS[tag])
        if tag in _BLOCKS and tag not in ("li", "tr") and not (tag in ("ol", "ul") and self._lists):
            self._parts.append("\n\n")

    def text(self, text: str) -> None:
        if not self._verbatim:
            text = re.sub(r"\s+", " ", text)
            if not self._parts or self._parts[-1].endswith(("\n", " ")):
                text = text.lstrip(" ")
        if text:
            self._parts.append(text)

    def result(self) -> str:
        # Not by a pattern, which would scan a run of blanks from each of its characters on.
        text = "\n".join(line.rstrip(" \t") for line in "".join(self._parts).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", text).strip()

    def _bullet(self) -> str:
        depth = "  " * max(0, len(self._lists) - 1)
        if self._lists and self._lists[-1] is not None:
            self._lists[-1] += 1
            return f"{depth}{self._lists[-1]}. "
        return f"{depth}- "

    def _mark(self, mark: str) -> None:
        if self._markdown:
            self._parts.append(mark)
