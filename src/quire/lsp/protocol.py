"""Numbers and names of the protocol, and the errors that a request can end with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quire.errors import QuireError

if TYPE_CHECKING:
    from quire.lsp.texts import Encoding

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

    def __init__(self, message: str, code: int = REQUEST_FAILED) -> None:
        super().__init__(message)
        self.code = code


class ClientCapabilities:
    """The capabilities of the editor, as it has stated them in `initialize`."""

    def __init__(self, said: object) -> None:
        self._said = said

    def can(self, way: str) -> bool:
        """Tell whether a capability is there: `textDocument.completion.completionItem.snippetSupport`."""
        return bool(self.value(way))

    def value(self, way: str) -> Any:
        found: Any = self._said
        for part in way.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        return found

    @property
    def encoding(self) -> Encoding:
        """The positions that are used: those of the editor's that are counted the fastest."""
        offered = self.value("general.positionEncodings")
        offered = offered if isinstance(offered, list) else []
        wanted: tuple[Encoding, ...] = ("utf-32", "utf-8")
        return next((one for one in wanted if one in offered), "utf-16")

    @property
    def pulls(self) -> bool:
        """True if the editor asks for findings itself, and need not be told."""
        return isinstance(self.value("textDocument.diagnostic"), Mapping)
