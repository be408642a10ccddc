"""Tell the editor about findings: unasked, or as the answer to a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quire.lsp.framing import framed
from quire.lsp.protocol import ClientCapabilities

if TYPE_CHECKING:
    from quire.lsp.framing import Message
    from quire.lsp.wire import Json


class Publisher:
    """Sends findings to one editor."""

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send
        self.client = ClientCapabilities({})

    @property
    def pulls(self) -> bool:
        """True if the editor asks for findings itself."""
        return self.client.pulls

    @property
    def can_refresh(self) -> bool:
        """True if an editor that asks can be told to ask again."""
        return self.client.can("workspace.diagnostics.refreshSupport")

    def publish(self, uri: str, version: int | None, items: list[Json]) -> None:
        params: dict[str, object] = {"uri": uri, "diagnostics": items}
        if version is not None:
            params["version"] = version
        self._send({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params})

    def refresh(self) -> None:
        if self.can_refresh:
            self._send({"jsonrpc": "2.0", "id": "quire-refresh", "method": "workspace/diagnostic/refresh"})

    def answer(self, request: object, result: object) -> None:
        self._send({"jsonrpc": "2.0", "id": request, "result": result})

    def log(self, problem: str) -> None:
        """Report a mistake of the server itself."""
        params = {"type": 1, "message": problem}
        self._send({"jsonrpc": "2.0", "method": "window/logMessage", "params": params})


def report(items: list[Json], known: str) -> dict[str, Any]:
    """Return a report, or only that nothing has changed since the result that the editor knows."""
    import hashlib  # only editors that ask need it

    result = hashlib.sha256(framed({"items": items})).hexdigest()[:16]
    if known == result:
        return {"kind": "unchanged", "resultId": result}
    return {"kind": "full", "resultId": result, "items": items}


def problem_of(doing: str, error: BaseException) -> str:
    """Describe a mistake of the server itself in one line, with its place."""
    import traceback

    places = traceback.extract_tb(error.__traceback__)
    place = f" ({places[-1].filename.rpartition('/')[2]}:{places[-1].lineno})" if places else ""
    return f"{doing}: {type(error).__name__}: {error}{place}"
