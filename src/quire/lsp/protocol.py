"""Messages of the Language Server Protocol: their numbers and names, frames, parameters, and the errors of requests.

Nothing is certain about the parameters of a message, so each is read with a default.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from quire.errors import QuireError

if TYPE_CHECKING:
    from pathlib import Path

    from quire.lsp.document_text import Encoding


PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_INITIALIZED = -32002
REQUEST_CANCELLED = -32800
REQUEST_FAILED = -32803

INCREMENTAL = 2

TOKEN_TYPES = (
    "keyword", "variable", "parameter", "property", "function", "method", "type", "enumMember", "string", "number",
    "operator", "comment", "macro", "decorator", "namespace",
)  # fmt: skip
TOKEN_MARKS = ("declaration", "readonly", "deprecated", "modification")
TRIGGERS = ("{", "@", ".", '"', "<", "/", "(", ":", "!", " ")
COMMANDS = ("quire.test", "quire.showPrompt", "quire.showProof", "quire.fixAll", "quire.lockDiff", "quire.writeTest")
"""Commands that the server carries out itself. All of them are free and start nothing."""


class RequestFailed(QuireError):
    """A request that cannot be answered, with the code of the protocol."""

    def __init__(self, message: str, number: int = REQUEST_FAILED) -> None:
        super().__init__(message)
        self.number = number


class ClientCapabilities:
    """The capabilities of the editor, as it has stated them in `initialize`."""

    def __init__(self, capabilities: object) -> None:
        self._capabilities = capabilities

    def can(self, way: str) -> bool:
        """Tell whether a capability exists: `textDocument.completion.completionItem.snippetSupport`."""
        return bool(self.value(way))

    def value(self, way: str) -> Any:
        value: Any = self._capabilities
        for part in way.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    @property
    def encoding(self) -> Encoding:
        """The positions that are used: those of the editor's that are counted the fastest."""
        offered = self.value("general.positionEncodings")
        offered = offered if isinstance(offered, list) else []
        fastest: tuple[Encoding, ...] = ("utf-32", "utf-8")
        return next((encoding for encoding in fastest if encoding in offered), "utf-16")

    @property
    def pulls(self) -> bool:
        """True if the editor asks for findings itself, and need not be told."""
        return isinstance(self.value("textDocument.diagnostic"), Mapping)


Message: TypeAlias = dict[str, object]

MOST_BYTES = 64_000_000
"""The largest body that is read. A longer one is passed over and reported."""
MOST_HEADER = 8_192
_END = b"\r\n\r\n"


class BadFraming(QuireError):
    """The bytes are not framed messages, so it is not known where the next one begins."""


class Malformed:
    """A body that is not a message."""

    __slots__ = (
        "reason",
    )  # not a Struct: importing msgspec takes longer than all that an editor waits for at the start

    def __init__(self, reason: str) -> None:
        self.reason = reason


class FrameReader:
    """Collects the bytes of a connection and yields the messages in them."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._missing = 0
        """Bytes of an oversized body that are still to be passed over."""

    def feed(self, data: bytes) -> Iterator[Message | Malformed]:
        """Take the next bytes and yield each message that they complete. Raises `BadFraming`."""
        self._data += data
        while True:
            if self._missing:
                passed = min(self._missing, len(self._data))
                del self._data[:passed]
                self._missing -= passed
                if self._missing:
                    return
            end = self._data.find(_END)
            if end < 0:
                if len(self._data) > MOST_HEADER:
                    raise BadFraming(f"no header of a message within {MOST_HEADER:,} bytes")
                return
            length = _length(bytes(self._data[:end]))
            body = end + len(_END)
            if length > MOST_BYTES:
                del self._data[:body]
                self._missing = length
                yield Malformed(f"the message has {length:,} bytes, of at most {MOST_BYTES:,}")
                continue
            if len(self._data) < body + length:
                return
            content = bytes(self._data[body : body + length])
            del self._data[: body + length]
            yield _decoded(content)


def framed(message: Message) -> bytes:
    """Return the bytes of a message."""
    body = _encoded(message)
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def _encoded(message: Message) -> bytes:
    """Return a message as JSON. Half a character, which UTF-8 does not have, is escaped."""
    if "msgspec" in sys.modules:  # several times as fast, but not worth loading for the first answer
        from msgspec.json import encode

        with contextlib.suppress(UnicodeEncodeError):
            return encode(message)
    return json.dumps(message, separators=(",", ":")).encode()


def _length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            text = value.strip()
            if text.isdigit() and len(text) < 16:
                return int(text)
    raise BadFraming(f"the header of a message has no length: {header[:80]!r}")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _decoded(body: bytes) -> Message | Malformed:
    try:
        message = _DECODER.decode(body.decode())
    except (ValueError, RecursionError) as error:
        return Malformed(f"the message is not JSON: {error}")
    return message if isinstance(message, dict) else Malformed("the message is not an object")


_WATCHED = "**/{quire.toml,pyproject.toml,.mcp.json,quire.lock,*.md,*.markdown,*.yaml,*.yml}"


class Outbox:
    """The messages of one session, in their order."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._requests = 0
        """Counts the requests to the editor, so that each has a number of its own."""

    def send(self, message: Message) -> None:
        self._messages.append(message)

    def take(self) -> list[Message]:
        """Return the messages since the last call."""
        messages = list(self._messages)
        self._messages.clear()
        return messages

    def answer(self, request: object, result: object) -> None:
        self.send({"jsonrpc": "2.0", "id": request, "result": result})

    def notify(self, method: str, params: Mapping[str, object]) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def fail(self, request: object, code: int, message: str) -> None:
        self.send({"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": message}})

    def log(self, doing: str, error: Exception) -> None:
        """Report a mistake of the server itself."""
        from quire.lsp.findings import problem_of

        self.notify("window/logMessage", {"type": 1, "message": problem_of(doing, error)})

    def refresh(self, client: ClientCapabilities, *parts: str) -> None:
        """Ask the editor to ask again for `codeLens`, `inlayHint` or `semanticTokens`, if it can."""
        for part in parts:
            if client.can(f"workspace.{part}.refreshSupport"):
                self._requests += 1
                message = {"id": f"quire-{part}-{self._requests}", "method": f"workspace/{part}/refresh"}
                self.send({"jsonrpc": "2.0", **message})

    def apply(self, label: str, edit: Mapping[str, Any]) -> None:
        """Ask the editor to make an edit."""
        self._requests += 1
        request = {"id": f"quire-edit-{self._requests}", "method": "workspace/applyEdit"}
        self.send({"jsonrpc": "2.0", **request, "params": {"label": label, "edit": edit}})

    def watch_files(self, client: ClientCapabilities) -> None:
        """Ask the editor to tell of files that change, if it can."""
        if client.can("workspace.didChangeWatchedFiles.dynamicRegistration"):
            registration = {
                "id": "quire-files",
                "method": "workspace/didChangeWatchedFiles",
                "registerOptions": {"watchers": [{"globPattern": _WATCHED}]},
            }
            params = {"registrations": [registration]}
            request = {"id": "quire-watch", "method": "client/registerCapability", "params": params}
            self.send({"jsonrpc": "2.0", **request})


_LARGEST_PROCESS = 2**31 - 1
"""The largest number of a process on any system; asking for a larger one is an error, not an answer."""


def uri_in(params: Mapping[str, Any]) -> str:
    """Return the URI of the document that a request is about. Raises `RequestFailed` without one."""
    document = params.get("textDocument")
    uri = document.get("uri") if isinstance(document, Mapping) else None
    if not isinstance(uri, str):
        raise RequestFailed("the request names no document", INVALID_PARAMS)
    return uri


def version_in(document: object) -> int:
    """Return the version of a document; 0 if it has none."""
    version = document.get("version") if isinstance(document, Mapping) else None
    return version if isinstance(version, int) and abs(version) < 1 << 31 else 0


def process_in(params: Mapping[str, Any]) -> int | None:
    """Return the number of the editor's process; None if it gives none that can be one."""
    process = params.get("processId")
    return process if isinstance(process, int) and 0 < process <= _LARGEST_PROCESS else None


def tokens_in(params: Mapping[str, Any]) -> tuple[()] | tuple[int | str]:
    """Return the token under which a request wants to see its progress, if it has one."""
    token = params.get("workDoneToken")
    return (token,) if isinstance(token, int | str) and not isinstance(token, bool) else ()


def known_results(results: object) -> dict[str, str]:
    """Return the results that an editor knows, by the address of their document."""
    pairs = results if isinstance(results, list) else []
    return {
        pair["uri"]: pair["value"]
        for pair in pairs
        if isinstance(pair, Mapping) and isinstance(pair.get("uri"), str) and isinstance(pair.get("value"), str)
    }


def roots_in(params: Mapping[str, Any]) -> list[Path]:
    """Return the folders that the editor has open."""
    from pathlib import Path

    from quire.lsp.desk import path_of

    if paths := folders_in(params.get("workspaceFolders")):
        return paths
    uri, path = params.get("rootUri"), params.get("rootPath")
    if isinstance(uri, str) and uri.startswith("file:"):
        return [Path(path_of(uri))]
    return [Path(path)] if isinstance(path, str) and path else []


def folders_in(listed: object) -> list[Path]:
    """Return the folders of a list of the editor."""
    from pathlib import Path

    from quire.lsp.desk import path_of

    folders = listed if isinstance(listed, list) else []
    uris = [folder.get("uri") for folder in folders if isinstance(folder, Mapping)]
    return [Path(path_of(uri)) for uri in uris if isinstance(uri, str) and uri.startswith("file:")]
