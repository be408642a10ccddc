"""Verify items when they are read by id, and playbooks and pipelines before they run.

Every directive and knowledge file that a run uses passes through here and has to be signed. Playbooks and pipelines are
verified if they carry a signature, because an unchecked signature line is worse than none; with `[trust] documents` all
of them are. Items that come with Quire are verified by hash. In `require` mode an item that does not verify is refused,
with the way to fix it; in `warn` mode it is used, with a warning.

`VerifiedItems` is a `Resolver` that `quire.engine.interpreter.thread.compose` can ask.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.diagnostics import Severity
from quire.errors import BadDocument, Refused
from quire.source import Source
from quire.trust.signature_line import claims_signature

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.library.items import Item, ItemType, SpaceName, Spaces
    from quire.plan.thread import Thread
    from quire.trust.sign_file import Signable
    from quire.trust.signature_line import Syntax
    from quire.trust.signatures import Verdict
    from quire.trust.trusted_keys import TrustedKeys
    from quire.workspace.settings import Settings, TrustMode


def require_signed(settings: Settings, source: Source, format: str) -> None:
    """Raise `Refused` for a playbook or pipeline whose signature does not hold; for an unsigned one only if `[trust]
    documents` requires signatures. In warn mode, once the user has confirmed that mode, nothing is refused."""
    syntax: Syntax = "yaml" if format == "pipeline" else "markdown"
    if (
        settings.rehearsal
        or format == "directive"
        or not (settings.trust.documents or claims_signature(source.text, syntax))
    ):
        return
    from quire.trust.sign_file import signable
    from quire.trust.trusted_keys import TrustedKeys
    from quire.workspace.consent import is_trusted

    path = Path(source.name)
    if path.is_file():
        message = signable(path, settings.workspace.folder).verify(source.text, TrustedKeys.load(settings)).message
    elif settings.trust.documents:
        message = f"{source.name} is not in a file, so it is not signed, and [trust] documents asks for signatures"
    else:
        return  # A text without a file has no place that a signature could be for.
    if message and (settings.trust.mode == "require" or not is_trusted(settings)):
        raise Refused(message)


def require_accepted(settings: Settings, document: Document) -> None:
    """Raise `Refused` for a document that the settings do not let run: for its signature, or for its lock."""
    require_signed(settings, document.source, document.format)
    if settings.trust.locked:
        from quire.library.lock_state import require_locked

        require_locked(settings, document)


class Verified(Struct, frozen=True):
    """An item that may be used; `verdict` is not ok only in warn mode."""

    item: Item
    verdict: Verdict


class VerifiedItems(Struct):
    """Finds items and verifies them. `warnings` are the verdicts that were accepted in warn mode, each once."""

    spaces: Spaces
    trusted: TrustedKeys
    mode: TrustMode = "require"
    documents: bool = False
    rehearsal: bool = False
    """True if signatures are not asked for: see `Settings`."""
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, settings: Settings) -> VerifiedItems:
        """Load the trusted keys. Raises `CannotStart` for a damaged key file."""
        from quire.library.items import Spaces
        from quire.trust.trusted_keys import TrustedKeys

        trust = settings.trust
        return cls(Spaces(settings), TrustedKeys.load(settings), trust.mode, trust.documents, settings.rehearsal)

    def find(self, item_type: ItemType, item_id: str, source: SpaceName | None = None) -> Verified | None:
        """Find an item like `Spaces.find`; in require mode also raises `Refused` if its signature does not hold."""
        item = self.spaces.find(item_type, item_id, source)
        return None if item is None else self.require(item)

    def directive(self, item_id: str) -> Thread | None:
        """Read a directive. Raises what `find` raises, and `BadDocument` for one that cannot be read."""
        verified = self.find("directive", item_id)
        return None if verified is None else read_thread(verified.item)

    def knowledge(self, item_id: str) -> str | None:
        """Return the body of a knowledge item. Raises as `directive` does."""
        verified = self.find("knowledge", item_id)
        return None if verified is None else read_body(verified.item)

    def require(self, item: Item) -> Verified:
        """Return the item with its verdict. If it is not ok, raises `Refused` in require mode, and otherwise remembers
        a warning."""
        verdict = self.verdict(item)
        if not verdict.ok:
            if self.mode == "require":
                raise Refused(verdict.message)
            if verdict.message not in self.warnings:
                self.warnings.append(verdict.message)
        return Verified(item, verdict)

    def verdict(self, item: Item) -> Verdict:
        """Return the verdict on the signature of an item, without refusing it."""
        from quire.trust.signatures import Verdict, Verification, is_signed

        if self.rehearsal:
            return Verdict(Verification.OK)
        if item.space == "system":
            from quire.library.items import is_genuine

            if is_genuine(item.path, item.text):
                return Verdict(Verification.OK)
            return Verdict(
                Verification.MODIFIED,
                "",
                f"the built-in {item.type} {item.id} was changed since it was installed; install Quire again, or copy "
                "it to your project and sign it there",
            )
        signable = as_signable(item, self.spaces.settings.workspace.folder)
        if not signable.required and not self.documents and not is_signed(item.text, signable.kind):
            return Verdict(Verification.OK)
        return signable.verify(item.text, self.trusted)


def as_signable(item: Item, workspace: Path) -> Signable:
    """Return the item in the form that signatures use. Its id counts and not its path, which need not be below an `.ai`
    folder."""
    from quire.trust.sign_file import Signable, signable

    if item.type not in ("directive", "knowledge"):
        return signable(item.path, workspace)
    syntax: Syntax = "yaml" if item.path.suffix == ".yaml" else "markdown"
    return Signable(item.path, item.type, item.id, syntax, PurePosixPath(item.id + item.path.suffix))


def read_thread(item: Item) -> Thread:
    # lxml is imported only to read a directive.
    from quire.formats.directive.lower import thread
    from quire.formats.directive.parse import parse

    source = Source.of(item.text, str(item.path))
    reading = parse(source)
    if reading.directive is None:
        raise BadDocument(
            _listed(item, source, [(finding.span.start, finding.message) for finding in reading.of(Severity.ERROR)])
        )
    return thread(reading.directive)


def read_body(item: Item) -> str:
    from quire.formats.directive.knowledge import read_knowledge

    source = Source.of(item.text, str(item.path))
    knowledge = read_knowledge(source)
    if knowledge.errors:
        raise BadDocument(_listed(item, source, [(error.span.start, error.message) for error in knowledge.errors]))
    return knowledge.body


def _listed(item: Item, source: Source, problems: list[tuple[int, str]]) -> str:
    lines = "; ".join(f"line {source.position(at).line}: {message}" for at, message in problems)
    return f"the {item.type} {item.id} cannot be read: {lines}"
