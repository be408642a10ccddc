"""The messages for the editor, until they are sent: answers, errors, and requests of the server's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quire.lsp.framing import Message
    from quire.lsp.protocol import ClientCapabilities

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

    def fail(self, request: object, code: int, message: str) -> None:
        self.send({"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": message}})

    def log(self, doing: str, error: Exception) -> None:
        """Report a mistake of the server itself."""
        from quire.lsp.publisher import problem_of

        params = {"type": 1, "message": problem_of(doing, error)}
        self.send({"jsonrpc": "2.0", "method": "window/logMessage", "params": params})

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
