"""Build the `Gate` of a workspace: its connections, its secrets, and the paths that commands may not change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from quire.models.choose import MODEL_BY_KEY
from quire.source import real_path
from quire.tools.gate import Gate
from quire.tools.registry import Connection, Connections
from quire.trust.secrets import Redactor
from quire.workspace.grants import denied_tools, reach_of
from quire.workspace.mcp_config import BUILT_IN, ITEMS, PYTHON
from quire.workspace.secrets import PUBLIC, find_secrets

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.budgets import Limits
    from quire.tools.builtin.connection import BuiltInConnection
    from quire.tools.builtin.files import Files
    from quire.trust.capabilities import Grants
    from quire.workspace.settings import Settings


def open_gate(
    settings: Settings,
    grants: Grants,
    environ: Mapping[str, str] | None = None,
    *,
    run: str = "",
    others: Callable[[Grants], Mapping[str, Connection]] = lambda grants: {},
    notice: Callable[[str], None] = lambda line: None,
    clock: Callable[[], float] = time.time,
) -> Gate:
    """Open the `Gate` of a workspace. Nothing is started or imported before it is needed. Raises `Untrusted`.

    `others` returns further connections of the caller for given grants. `notice` receives a line about slow work.
    `clock` returns the seconds since 1970 that the tool `now` reads.
    """
    from quire.library.collect import is_document
    from quire.library.item_tools.connection import ItemsConnection
    from quire.tools.builtin.connection import BuiltInConnection
    from quire.tools.python import PythonConnection
    from quire.workspace.consent import require_trusted
    from quire.workspace.server_code import loaded_files

    code = require_trusted(settings)
    environ = os.environ if environ is None else environ
    folder = settings.workspace.folder
    redactor = redactor_of(settings, environ, reach_of(grants).variables)
    connections: dict[str, Connection] = {}
    for name, server in settings.servers.items():
        from quire.tools.mcp import McpConnection  # takes longer to import than everything else here

        files = code.servers[name].files if server.command else None
        connections[name] = McpConnection(server, folder, environ, notice, files, redactor.text)
    if settings.trust.locked and connections:
        connections = _held_to_lock(settings, connections)
    connections[PYTHON] = PythonConnection(settings.tools.modules, folder, installed=True, files=code.module_files)
    closed = sorted(loaded_files(settings, code))

    def scoped(grants: Grants, limits: Limits | None = None) -> dict[str, Connection]:
        items = ItemsConnection(settings, grants, limits=limits, run_id=run)
        built_in = BuiltInConnection(
            folder,
            grants,
            environ,
            private=[settings.user],
            asking=_documents(settings),
            closed=closed,
            sandbox=settings.sandbox,
            replacing=items.replacing,
            redact=redactor.text,
            withheld=_keys(settings),
            headers=settings.http,
            space=settings.user,
            clock=clock,
            is_document=lambda path, text: is_document(folder / path, text),
        )
        return {BUILT_IN: built_in, ITEMS: items, **others(grants)}

    if grants.has_any("sign"):
        # A server's tool can overwrite a directive as well, and Quire would not notice.
        ItemsConnection(settings, grants).note_signed()

    registry = Connections({**connections, **scoped(grants)}, settings.disabled_servers)
    return Gate(registry, grants, redactor, scoped=scoped, denied=denied_tools(settings))


def _held_to_lock(settings: Settings, connections: Mapping[str, Connection]) -> dict[str, Connection]:
    """Return connections whose tools must be those of the lock. Raises `Refused` without a lock."""
    from quire.library.lock_state import locked_lock
    from quire.runs.connections import PinnedConnection

    pins = locked_lock(settings).tools
    return {name: PinnedConnection(name, connection, pins) for name, connection in connections.items()}


def built_in_connection(settings: Settings, grants: Grants, environ: Mapping[str, str]) -> BuiltInConnection:
    """Return the built-in tools for a look at calls before they are made."""
    from quire.tools.builtin.connection import BuiltInConnection

    return BuiltInConnection(
        settings.workspace.folder, grants, environ, withheld=_keys(settings), headers=settings.http, space=settings.user
    )


def document_writer(settings: Settings, environ: Mapping[str, str]) -> Files:
    """Return the writer of files for a user who edits documents: the same path checks as `file__write`, with all places
    open that a grant can open. Closed places stay closed. Raises `Untrusted`."""
    from quire.tools.builtin.connection import BuiltInConnection
    from quire.workspace.consent import require_trusted
    from quire.workspace.grants import default_grants
    from quire.workspace.server_code import loaded_files

    closed = sorted(loaded_files(settings, require_trusted(settings)))
    grants = default_grants(settings, ("file__write=.",))
    return BuiltInConnection(settings.workspace.folder, grants, environ, private=[settings.user], closed=closed).writer


def redactor_of(settings: Settings, environ: Mapping[str, str] | None = None, granted: Iterable[str] = ()) -> Redactor:
    """Return a redactor for all secrets of a workspace, its servers and its environment. `granted` are variables passed
    to commands, whose output is recorded."""
    environ = os.environ if environ is None else environ
    named = frozenset((*_keys(settings, own=True), *(name for name in granted if name not in PUBLIC)))
    if settings.servers or settings.http:
        return Redactor(find_secrets(environ, settings.servers.values(), named, settings.http))
    return _redactor(tuple(environ.items()), named)


@lru_cache(maxsize=2)
def _redactor(environ: tuple[tuple[str, str], ...], named: frozenset[str]) -> Redactor:
    return Redactor(find_secrets(dict(environ), (), named))


def _keys(settings: Settings, *, own: bool = False) -> frozenset[str]:
    """Return the variables that hold keys of models and of the cluster; with `own` only those named in the settings."""
    named = [
        settings.cluster.access.api_key_env,
        *(provider.api_key_env for provider in settings.models.providers.values()),
    ]
    return frozenset(name for name in (*named, *(() if own else MODEL_BY_KEY)) if name)


def _documents(settings: Settings) -> list[str]:
    """Return the paths of documents outside the usual folders: text written there runs later.

    Each entry is listed by its name and by its real path, because a command could replace a link.
    """
    folder = settings.workspace.folder.resolve()
    named = [Path(os.path.normpath(folder / entry.path)) for entry in settings.pipelines.values()]
    real = [real_path(place) for place in (*settings.prompt_folders, *settings.knowledge_folders, *named)]
    return [place.relative_to(folder).as_posix() for place in (*named, *real) if folder in place.parents]
