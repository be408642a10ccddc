"""Items with the word of their signatures: nothing that a run reads by an id goes unverified.

Directives and knowledge have to be signed; playbooks and pipelines are verified where they carry a signature, or all of
them where `[trust] documents` says so. What comes with Quire is known by its hash. In `require` mode what does not hold
is refused, with the way to mend it; in `warn` mode it is used, and said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from quire.errors import Refused
from quire.trust.signable import Signable, signable
from quire.trust.signature_line import Syntax
from quire.trust.signing import Outcome, Verdict, is_signed
from quire.trust.trusted import TrustedKeys
from quire.workspace import built_in
from quire.workspace.items import Item, ItemType, SpaceName
from quire.workspace.settings import Settings, TrustMode
from quire.workspace.spaces import Spaces


@dataclass(frozen=True, slots=True)
class Verified:
    """An item that may be used; `verdict` is not ok only in warn mode."""

    item: Item
    verdict: Verdict


@dataclass(slots=True)
class VerifiedItems:
    """`warnings` are the verdicts that were let pass, each once."""

    spaces: Spaces
    trusted: TrustedKeys
    mode: TrustMode = "require"
    documents: bool = False
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, settings: Settings) -> VerifiedItems:
        """Raises `CannotStart` for a damaged key file."""
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
    if item.type not in ("directive", "knowledge"):
        return signable(item.path, workspace)
    syntax: Syntax = "yaml" if item.path.suffix == ".yaml" else "markdown"
    return Signable(item.path, item.type, item.id, syntax, PurePosixPath(item.id + item.path.suffix))
