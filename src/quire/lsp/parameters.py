"""Read the parameters of messages, of which nothing is certain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quire.lsp.protocol import INVALID_PARAMS, RequestFailed

if TYPE_CHECKING:
    from pathlib import Path

_LARGEST_PROCESS = 2**31 - 1
"""The largest number of a process on any system; asking for a larger one is an error, not an answer."""


def uri_in(params: Mapping[str, Any]) -> str:
    """Return the URI of the document that a request is about. Raises `RequestFailed` without one."""
    document = params.get("textDocument")
    uri = document.get("uri") if isinstance(document, Mapping) else None
    if not isinstance(uri, str):
        raise RequestFailed("the request names no document", INVALID_PARAMS)
    return uri


def version_in(said: object) -> int:
    """Return the version of a document; 0 if it has none."""
    version = said.get("version") if isinstance(said, Mapping) else None
    return version if isinstance(version, int) and abs(version) < 1 << 31 else 0


def process_in(params: Mapping[str, Any]) -> int | None:
    """Return the number of the editor's process; None if it gives none that can be one."""
    process = params.get("processId")
    return process if isinstance(process, int) and 0 < process <= _LARGEST_PROCESS else None


def tokens_in(params: Mapping[str, Any]) -> tuple[()] | tuple[int | str]:
    """Return the token under which a request wants to see its progress, if it has one."""
    token = params.get("workDoneToken")
    return (token,) if isinstance(token, int | str) and not isinstance(token, bool) else ()


def known_results(said: object) -> dict[str, str]:
    """Return the results that an editor knows, by the address of their document."""
    known = said if isinstance(said, list) else []
    return {
        one["uri"]: one["value"]
        for one in known
        if isinstance(one, Mapping) and isinstance(one.get("uri"), str) and isinstance(one.get("value"), str)
    }


def roots_in(params: Mapping[str, Any]) -> list[Path]:
    """Return the folders that the editor has open."""
    from pathlib import Path

    from quire.lsp.desk import path_of

    if found := folders_in(params.get("workspaceFolders")):
        return found
    uri, path = params.get("rootUri"), params.get("rootPath")
    if isinstance(uri, str) and uri.startswith("file:"):
        return [Path(path_of(uri))]
    return [Path(path)] if isinstance(path, str) and path else []


def folders_in(said: object) -> list[Path]:
    """Return the folders of a list of the editor."""
    from pathlib import Path

    from quire.lsp.desk import path_of

    folders = said if isinstance(said, list) else []
    uris = [one.get("uri") for one in folders if isinstance(one, Mapping)]
    return [Path(path_of(uri)) for uri in uris if isinstance(uri, str) and uri.startswith("file:")]
