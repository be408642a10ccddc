"""Load texts that are named while a step runs: prompts, and the documents and knowledge that a thread asks for.

A prompt (`@prompt` of a playbook) comes from the library, a file beside the document, or an MCP server. Prompt files of
pipelines (`!file`) are read when a run starts, and kept with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.interpreter.callees import Opened
from quire.engine.requests import Load
from quire.errors import CannotStart, QuireError, Refused, StepFailed, Unreadable
from quire.library.callees import Callees, callee_from_pin, pinned
from quire.patterns import late_pattern
from quire.plan.pipeline_work import Agent
from quire.source import read_source
from quire.values import Value, decode, encode

if TYPE_CHECKING:
    from quire.engine.interpreter.callees import Environment
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.engine.ports import Loader, Store
    from quire.library.directives import BundleBuilder
    from quire.plan.nodes import Plan
    from quire.workspace.settings import Settings


class ItemLoader(Struct, frozen=True):
    """Loads items of the workspace by id and verifies them; other requests go to the loader of prompts."""

    store: Store
    run: str
    prompts: Loader
    gathering: Callable[[], BundleBuilder]
    callees: Callable[[], Callees]
    files: Mapping[str, str] = {}
    """The prompt files of pipelines, as they were when the run started."""

    async def load(self, request: Load) -> str | None:
        if request.scheme == "letters":
            letters = [letter for letter in await self.store.letters(self.run) if letter.sealed]
            return encode([letter.text for letter in letters[int(request.where) :]])
        if request.scheme == "file" and request.where in self.files:
            return self.files[request.where]
        if request.scheme == "leave":
            return ""  # nothing to load: the request only asks whether another thread may start
        if request.scheme not in ("directive", "knowledge", "document"):
            return await self.prompts.load(request)
        try:
            match request.scheme:
                case "directive":
                    bundle = self.gathering().called(request.where)
                    return bundle.encoded() if bundle else None
                case "knowledge":
                    return self.gathering().knowledge(request.where)
            return self._document(request.where)
        except Refused as error:
            raise StepFailed(str(error), kind="denied", path=request.path) from None
        except QuireError as error:
            raise StepFailed(str(error), kind="load", path=request.path) from None

    def _document(self, where: str) -> str | None:
        """Return a document with everything that it can call, as one text."""
        kind, _, name = where.partition(":")
        callees = self.callees()
        root = callees.find(name, kind)
        if root is None:
            return None
        all_of_them = {name: root, **callees.reachable(root.plan)}
        texts = {key: callee.text for key, callee in all_of_them.items()}
        return encode({"name": name, "documents": pinned(all_of_them), "texts": texts})


def open_document(text: str, setting: Environment) -> Opened:
    """Read a document loaded like this, ready to be called in the same setting."""
    loaded = cast("Mapping[str, Value]", decode(text))
    texts = cast("Mapping[str, str]", loaded["texts"])
    documents: dict[str, Plan] = {}
    bundles: dict[str, Bundle] = {}
    for name, stored in cast("Mapping[str, Mapping[str, Value]]", loaded["documents"]).items():
        plan, bundle = callee_from_pin(stored, texts[name], setting.rules)
        documents[name] = plan
        if bundle is not None:
            bundles[name] = bundle
    return Opened(str(loaded["name"]), replace(setting, documents=documents, bundles=bundles))


_ID = late_pattern(r"[A-Za-z0-9-]+")


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
                return read_file(request, self.folder)
            case "mcp":
                return await self._mcp(request)
        raise StepFailed(f"prompts of the kind {request.scheme}: are not known", kind="prompt", path=request.path)

    def _library(self, request: Load) -> str | None:
        if not _ID.fullmatch(request.where):
            return None
        workspace, user = self.settings.workspace.folder, self.settings.user
        # Each with the folder that its files must not leave; the user's own links may lead anywhere.
        folders: list[tuple[Path, Path | None]] = [(workspace / "prompts", workspace)]
        folders += ((folder, folder) for folder in self.settings.prompt_folders)
        for folder, home in (*folders, (user / "prompts", None)):
            file = folder / f"{request.where}.md"
            if file.is_file():
                return _read(file, home, request)
        return None

    async def _mcp(self, request: Load) -> str:
        server, _, prompt = request.where.partition("/")
        if not server or not prompt:
            raise _failed(request, "must be SERVER/PROMPT")
        if self.mcp_prompt is None:
            raise _failed(request, "no MCP servers are available here")
        return await self.mcp_prompt(server, prompt)


MOST_PROMPT_FILES = 1_000_000
"""Characters that all prompt files of a run have together, at most."""


def read_prompt_files(plans: Iterable[Plan], folder: Path | None) -> dict[str, str]:
    """Return the prompt files that agents of these plans name, by name. One that cannot be read is left out: its step
    says why, if it is ever reached. Raises `CannotStart` if they are too large to be kept with a run."""
    texts: dict[str, str] = {}
    for plan in plans:
        for path, step in plan.steps():
            where = step.work.file if isinstance(step.work, Agent) else ""
            if where and where not in texts:
                with contextlib.suppress(StepFailed):
                    texts[where] = read_file(Load(path, step.label, "file", where), folder)
    if (size := sum(map(len, texts.values()))) > MOST_PROMPT_FILES:
        raise CannotStart(f"the prompt files have {size:,} characters together, of at most {MOST_PROMPT_FILES:,}")
    return texts


def read_file(request: Load, folder: Path | None) -> str:
    """Return the text of a file below the document's folder. Raises `StepFailed`."""
    where = request.where
    if folder is None:
        raise _failed(request, "the document has no folder, so a file beside it cannot be read")
    if leads_out(where):
        raise _failed(request, "must be a path below the document's folder, without ..")
    return _read(folder / PurePosixPath(where.replace("\\", "/")), folder, request)


def leads_out(where: str) -> bool:
    """Tell whether a path cannot be below a document's folder, for any content of the disk."""
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
