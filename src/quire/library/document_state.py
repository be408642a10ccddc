"""The state of a document as its file is now: readable or not, its findings, its bounds and its signature."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import QuireError
from quire.formats import format_of
from quire.library.check import DocumentCheck, FileFindings, is_alone
from quire.library.document import Document, read
from quire.library.foresight import Foresight
from quire.source import Source, read_source, real_path
from quire.trust.signature_line import claims_signature

if TYPE_CHECKING:
    from quire.plan.bounds import PlanBounds
    from quire.trust.signatures import Verdict
    from quire.trust.trusted_keys import TrustedKeys
    from quire.workspace.settings import Settings


class Signature(Struct, frozen=True):
    """The signature of a document, and the verdict on it."""

    verdict: Verdict | None
    """None if it cannot be verified; `message` then says why."""
    message: str = ""
    claimed: bool = False
    """True if the file has a signature line, valid or not."""
    required: bool = False
    """True if the document cannot be used without a signature that holds."""
    by: str = ""
    """The name of the key's owner, as the user knows it."""


class DocumentState(FileFindings, frozen=True):
    """A document of the workspace. `id` is its path in the workspace; `error` says why it cannot be read at all."""

    id: str
    path: Path
    document: Document | None
    source: Source | None = None
    format: str = ""
    """Also `knowledge`, which has no document: directives read it, and it does not run."""
    bounds: PlanBounds | None = None
    signature: Signature = Signature(None)
    alone: bool = False
    """True if neither its findings nor its bounds depend on other files."""

    @property
    def title(self) -> str:
        plan = self.document.plan if self.document else None
        return plan.title if plan else self.id.rpartition("/")[2]


def trusted_keys(settings: Settings) -> TrustedKeys | str:
    """Return the keys that the user trusts, or the reason why they cannot be read."""
    from quire.trust.trusted_keys import TrustedKeys

    try:
        return TrustedKeys.load(settings)
    except QuireError as error:
        return str(error)


class DocumentStates:
    """Reads documents, all of them with one look at the workspace around them."""

    def __init__(self, settings: Settings, keys: TrustedKeys | str) -> None:
        self._settings = settings
        self._keys = keys
        self._check = DocumentCheck()
        self._foresight = Foresight(settings)
        self._folder = settings.workspace.folder
        self._real = real_path(self._folder)

    def at(self, id: str, path: Path) -> DocumentState:
        try:
            if not real_path(path).is_relative_to(self._real):
                return DocumentState(
                    id, path, None, error=f"{id} is a link that leads out of the workspace: it is not read"
                )
            source = read_source(path)
            findings = self._check.of(source)
            format = format_of(source)
            document = None if format == "knowledge" else read(source)
        except QuireError as wrong:
            return DocumentState(id, path, None, error=str(wrong).replace(str(path), id))
        except OSError as wrong:
            return DocumentState(id, path, None, error=os.strerror(wrong.errno or 0))
        plan = document.plan if document else None
        return DocumentState(
            id,
            path,
            document,
            source,
            format,
            findings=findings,
            bounds=self._foresight.bounds(plan, str(path)) if plan else None,
            signature=self._signature(source, path),
            alone=is_alone(source),
        )

    def _signature(self, source: Source, path: Path) -> Signature:
        from quire.trust.sign_file import signable

        try:
            item = signable(path, self._folder)
        except QuireError as error:
            return Signature(None, str(error))
        claimed = claims_signature(source.text, item.syntax)
        required = item.required or self._settings.trust.documents
        if isinstance(self._keys, str):
            return Signature(None, self._keys, claimed, required)
        verdict = item.verify(source.text, self._keys)
        key = self._keys.find(verdict.key_id) if verdict.ok else None
        return Signature(verdict, verdict.message, claimed, required, key.name if key else "")
