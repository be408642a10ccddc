"""Load the texts that a playbook's `@prompt` names: from the library, a file beside the document, or an MCP server."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import StepFailed, Unreadable
from quire.source import read_source

if TYPE_CHECKING:
    from quire.engine.requests import Load
    from quire.workspace.settings import Settings

_ID = re.compile(r"[A-Za-z0-9-]+")


class PromptLoader(Struct, frozen=True):
    """The `Loader` port. `folder` is that of the document; None if it came by stdin.

    `mcp_prompt(server, prompt)` gets a prompt of a server (`Gate.prompt`); None if there are no servers.
    """

    settings: Settings
    folder: Path | None
    mcp_prompt: Callable[[str, str], Awaitable[str]] | None = None

    async def load(self, request: Load) -> str | None:
        match request.scheme:
            case "library":
                return self._library(request)
            case "file":
                return self._file(request)
            case "mcp":
                return await self._mcp(request)
        raise StepFailed(f"prompts of the kind {request.scheme}: are not known", kind="prompt", path=request.path)

    def _library(self, request: Load) -> str | None:
        if not _ID.fullmatch(request.where):
            return None
        for folder, home in self._folders():
            file = folder / f"{request.where}.md"
            if file.is_file():
                return _read(file, home, request)
        return None

    def _folders(self) -> Iterator[tuple[Path, Path | None]]:
        """Yield each folder of prompts with the folder that its files must not leave; the user's own links may lead
        anywhere."""
        workspace, user = self.settings.workspace.folder, self.settings.user
        yield workspace / "prompts", workspace
        for folder in self.settings.prompt_folders:
            yield folder, folder
        yield user / "prompts", None

    def _file(self, request: Load) -> str:
        where = request.where
        if self.folder is None:
            raise _failed(request, "the document has no folder, so a file beside it cannot be read")
        if leads_out(where):
            raise _failed(request, "must be a path below the document's folder, without ..")
        return _read(self.folder / PurePosixPath(where.replace("\\", "/")), self.folder, request)

    async def _mcp(self, request: Load) -> str:
        server, _, prompt = request.where.partition("/")
        if not server or not prompt:
            raise _failed(request, "must be SERVER/PROMPT")
        if self.mcp_prompt is None:
            raise _failed(request, "no MCP servers are available here")
        return await self.mcp_prompt(server, prompt)


def leads_out(where: str) -> bool:
    """Tell whether a path cannot be below a document's folder, whatever is on the disk."""
    parts = PurePosixPath(where.replace("\\", "/"))
    return not where.strip() or parts.is_absolute() or bool(PureWindowsPath(where).drive) or ".." in parts.parts


def _read(file: Path, home: Path | None, request: Load) -> str:
    """Read a file. The path is resolved first and the resolved path is opened, so that the checked file is the one that
    is read."""
    try:
        real = file.resolve()
        inside = home is None or real.is_relative_to(home.resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise _failed(request, str(error)) from None
    if not inside:
        raise _failed(request, "is a link that leads out of its folder")
    try:
        return read_source(real).text
    except (Unreadable, ValueError) as error:
        reason = error.reason if isinstance(error, Unreadable) else str(error)
        raise _failed(request, reason) from None


def _failed(request: Load, reason: str) -> StepFailed:
    return StepFailed(f"prompt {request.scheme}:{request.where}: {reason}", kind="prompt", path=request.path)
