"""Playbooks and pipelines that carry a signature are verified before they run, whoever names them.

A line that promises a signature and is not looked at is worse than none. Directives and knowledge are the business of
`quire.library.directives`.

Items with the word of their signatures: nothing that a run reads by an id goes unverified.

Directives and knowledge have to be signed; playbooks and pipelines are verified where they carry a signature, or all of
them where `[trust] documents` says so. What comes with Quire is known by its hash. In `require` mode what does not hold
is refused, with the way to mend it; in `warn` mode it is used, and said.

Directives and knowledge as a thread needs them: verified, and read into what they say.

This is the `Resolver` that `quire.engine.interpreter.thread.compose` asks.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.diagnostics import Severity
from quire.errors import BadDocument, Refused
from quire.library import built_in
from quire.library.spaces import Spaces
from quire.source import Source
from quire.trust.signature_line import claims_signature

if TYPE_CHECKING:
    from quire.library.items import Item, ItemType, SpaceName
    from quire.plan.thread import Thread
    from quire.trust.sign_file import Signable
    from quire.trust.signature_line import Syntax
    from quire.trust.signatures import Verdict
    from quire.trust.trusted_keys import TrustedKeys
    from quire.workspace.settings import Settings, TrustMode


def require_signed(settings: Settings, source: Source, format: str) -> None:
    """Raises `Refused` for a document whose signature does not hold; for one without any only where `[trust]
    documents` asks for it. In warn mode, once the user has confirmed that mode, nothing is refused."""
    syntax: Syntax = "yaml" if format == "pipeline" else "markdown"
    if format == "directive" or not (settings.trust.documents or claims_signature(source.text, syntax)):
        return
    from quire.trust.sign_file import signable
    from quire.trust.trusted_keys import TrustedKeys
    from quire.workspace.consent import is_trusted

    path = Path(source.name)
    if path.is_file():
        message = signable(path, settings.workspace.folder).verify(source.text, TrustedKeys.load(settings)).message
    elif settings.trust.documents:
        message = f"{source.name} is in no file, so nobody has signed it, and [trust] documents asks for signatures"
    else:
        return  # A text that was handed over has no place that a signature could be for.
    if message and (settings.trust.mode == "require" or not is_trusted(settings)):
        raise Refused(message)


class Verified(Struct, frozen=True):
    """An item that may be used; `verdict` is not ok only in warn mode."""

    item: Item
    verdict: Verdict


class VerifiedItems(Struct):
    """`warnings` are the verdicts that were let pass, each once."""

    spaces: Spaces
    trusted: TrustedKeys
    mode: TrustMode = "require"
    documents: bool = False
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, settings: Settings) -> VerifiedItems:
        """Raises `CannotStart` for a damaged key file."""
        from quire.trust.trusted_keys import TrustedKeys

        return cls(Spaces(settings), TrustedKeys.load(settings), settings.trust.mode, settings.trust.documents)

    def find(self, item_type: ItemType, item_id: str, source: SpaceName | None = None) -> Verified | None:
        """As `Spaces.find`; in require mode also raises `Refused` for an item whose signature does not hold."""
        item = self.spaces.find(item_type, item_id, source)
        return None if item is None else self.require(item)

    def require(self, item: Item) -> Verified:
        """The item with its verdict. Raises `Refused` in require mode, else remembers a warning."""
        verdict = self.verdict(item)
        if not verdict.ok:
            if self.mode == "require":
                raise Refused(verdict.message)
            if verdict.message not in self.warnings:
                self.warnings.append(verdict.message)
        return Verified(item, verdict)

    def verdict(self, item: Item) -> Verdict:
        """What the signature of an item says; refuses nothing."""
        from quire.trust.signatures import Outcome, Verdict, is_signed

        if item.space == "system":
            if built_in.is_genuine(item.path, item.text):
                return Verdict(Outcome.OK)
            return Verdict(
                Outcome.MODIFIED,
                "",
                f"the built-in {item.type} {item.id} was changed since it was installed; install Quire again, or copy "
                "it to your project and sign it there",
            )
        found = as_signable(item, self.spaces.settings.workspace.folder)
        if not found.required and not self.documents and not is_signed(item.text, found.kind):
            return Verdict(Outcome.OK)
        return found.verify(item.text, self.trusted)


def as_signable(item: Item, workspace: Path) -> Signable:
    """The item as signatures know it. Not by its path where it has an id: it need not lie below an `.ai` folder."""
    from quire.trust.sign_file import Signable, signable

    if item.type not in ("directive", "knowledge"):
        return signable(item.path, workspace)
    syntax: Syntax = "yaml" if item.path.suffix == ".yaml" else "markdown"
    return Signable(item.path, item.type, item.id, syntax, PurePosixPath(item.id + item.path.suffix))


class Library(Struct, frozen=True):
    """Both raise `Refused` for an item that is not trusted, and what `Spaces.find` raises."""

    items: VerifiedItems

    def directive(self, item_id: str) -> Thread | None:
        """Raises `BadDocument` for one that cannot be read."""
        found = self.items.find("directive", item_id)
        return None if found is None else read_thread(found.item)

    def knowledge(self, item_id: str) -> str | None:
        """The body alone. Raises `BadDocument` for one that cannot be read."""
        found = self.items.find("knowledge", item_id)
        return None if found is None else read_body(found.item)


def read_thread(item: Item) -> Thread:
    # lxml is imported by whoever reads a directive, and by nobody else.
    from quire.formats.directive.lower import thread
    from quire.formats.directive.parse import parse

    source = Source.of(item.text, str(item.path))
    reading = parse(source)
    if reading.directive is None:
        raise BadDocument(_listed(item, source, [(one.span.start, one.message) for one in reading.of(Severity.ERROR)]))
    return thread(reading.directive)


def read_body(item: Item) -> str:
    from quire.formats.directive.knowledge import read_knowledge

    source = Source.of(item.text, str(item.path))
    knowledge = read_knowledge(source)
    if knowledge.errors:
        raise BadDocument(_listed(item, source, [(one.span.start, one.message) for one in knowledge.errors]))
    return knowledge.body


def _listed(item: Item, source: Source, problems: list[tuple[int, str]]) -> str:
    lines = "; ".join(f"line {source.position(at).line}: {message}" for at, message in problems)
    return f"the {item.type} {item.id} cannot be read: {lines}"
