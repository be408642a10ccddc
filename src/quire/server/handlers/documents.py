"""Documents of the page: save one that a user has edited, and only over the version that was read; run its tests."""

from __future__ import annotations

import asyncio
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from quire.errors import Denied, ToolFailed
from quire.library.collect import would_be_document
from quire.operations.documents import OfDocument, etag, shown
from quire.operations.field_types import Text, operation
from quire.operations.problems import Problem
from quire.operations.results import Document
from quire.runs.workspace_gate import document_writer
from quire.source import MAX_DOCUMENT_BYTES, Source, read_bytes

if TYPE_CHECKING:
    from quire.server.routes import RequestHost
    from quire.server.site import Site
    from quire.values import Value

MARK = "\ufeff"


def save(site: Site, id: str, text: str, tag: str) -> None:
    """Replace the text of a document whose ETag was `tag`. Raises `Problem`.

    The file keeps its line ends. It is replaced whole, unless another program has written it since it was read.
    """
    if not site.options.edit:
        raise Problem.of("editing-off", f"{id} is not saved: this server was started without --edit")
    state = site.shelf.one(id)
    if state.source is None:
        raise Problem.of("cannot-start", state.error)
    read = tag.strip().strip('"').partition(".")[0]
    if not read or tag.strip() == "*":
        raise Problem.of("no-etag", f"{id} is not saved: If-Match does not say which version you have read")
    try:
        before = read_bytes(state.path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Problem.of("cannot-start", f"{id} cannot be read: {error}") from None
    if Source.of(before).sha256[:32] != read:
        raise _stale(id)
    _require_document(site, id, text)
    try:
        writer = document_writer(site.runtime.settings, site.runtime.environ)
        writer.swap(id, before, _with_ends(text, before))
    except Denied as error:
        raise Problem.of("denied", str(error), exit_code=6) from None
    except ToolFailed as error:
        if "in the meantime" in error.message:
            raise _stale(id) from None
        raise Problem.of("cannot-start", f"{id} is not saved: {error.message}") from None


def _stale(id: str) -> Problem:
    return Problem.of("stale", f"{id} was changed by another program since you read it")


def _require_document(site: Site, id: str, text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_DOCUMENT_BYTES:
        raise Problem.of("unfit-body", f"{id} is not saved: a document may have {MAX_DOCUMENT_BYTES:,} bytes")
    if not text.strip() or "\0" in text:
        raise Problem.of("unfit-body", f"{id} is not saved: a document is a text, and is not empty")
    if not would_be_document(site.folder / PurePosixPath(id), text):
        raise Problem.of("unfit-body", f"{id} is not saved: with this text it would not be a document any more")


def _with_ends(text: str, before: str) -> str:
    """Return a text with the line ends and the byte order mark of the file that it replaces."""
    text = Source.of(text).text
    ended = text.replace("\n", "\r\n") if "\r\n" in before else text
    return MARK + ended if before.startswith(MARK) else ended


class SaveDocument(OfDocument, frozen=True, kw_only=True):
    text: Text


@operation(
    "Save a text over the version that `If-Match` names. Only with `quire serve --edit`.", SaveDocument, Document
)
async def save_document(host: RequestHost, given: SaveDocument) -> Value:
    await asyncio.to_thread(save, host.site, given.id, given.text, host.request.headers.get("if-match", ""))
    state = await asyncio.to_thread(host.shelf.one, given.id)
    data = await asyncio.to_thread(shown, host, state, ["source", "diagnostics"])
    host.headers["ETag"] = etag(state, data)
    return data
