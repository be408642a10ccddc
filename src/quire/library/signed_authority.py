"""The authority of a directive: its capabilities, its limits, and the risks that it acknowledges.

A run signs only an item that has no more authority than the run itself, and no more than when it was last signed.

The last signed authority is kept in the user folder, where no tool can write. A run may overwrite a directive and then
sign it; the old text is gone by then, so its authority is recorded beforehand: when a run that may sign begins, and
when a tool is about to overwrite the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.interpreter.thread.budgets import Limits, resolve_limits
from quire.engine.interpreter.thread.compose import Resolver, read_chain
from quire.errors import CannotStart, QuireError
from quire.library.verify import VerifiedItems, read_thread
from quire.source import written_beside
from quire.trust.capabilities import Grants
from quire.trust.private_files import make_folder
from quire.trust.risk import ProjectRisk, Tier, tier_of
from quire.trust.signature_line import digest_of

if TYPE_CHECKING:
    from quire.library.items import Item
    from quire.plan.thread import Thread

NUMBERS = ("turns", "tokens", "spend", "spawns", "depth", "duration_seconds")
DEFAULT_LIMITS = resolve_limits({}, {}, None)
"""The limits of a directive that declares none."""


class Authority(Struct, frozen=True):
    """The authority of a directive or a run: its capabilities, limits and risk."""

    grants: Grants
    limits: Limits
    risk: Tier | None = None
    """The highest tier among granted or acknowledged risks; None if nothing has a tier."""
    origin: str = ""
    """The ancestor from which the capabilities come; empty if they are the directive's own."""

    def excess(self, held: Authority) -> list[str]:
        """Return everything that goes beyond `held`, each in a few words."""
        more = sorted(self.grants.patterns - self.grants.narrow(held.grants).patterns)
        if more and self.origin:
            more[-1] += f" (from {self.origin}, which it extends)"
        for name in NUMBERS:
            mine, most = getattr(self.limits, name), getattr(held.limits, name)
            if most is not None and (mine is None or mine > most):
                more.append(f"{name} {'without a limit' if mine is None else f'{mine:g}'} (at most {most:g})")
        if self.risk is not None and (held.risk is None or self.risk.rank > held.risk.rank):
            more.append(f"the acknowledged risk {self.risk.value}")
        return more


def authority_of_run(grants: Grants, limits: Limits | None, project: ProjectRisk) -> Authority:
    """Return the authority of a run. `limits` are those with which its thread was started; a run without a thread has
    the defaults."""
    tiers = [tier_of(pattern, project) for pattern in grants.patterns]
    return Authority(grants, limits or DEFAULT_LIMITS, _highest(tiers))


def authority_of(thread: Thread, ancestors: Resolver) -> Authority:
    """Return the authority of a directive, with inherited permissions. Raises what `read_chain` and `resolve_limits`
    raise."""
    granting, origin = thread, ""
    if not thread.grants_itself() and thread.extends.strip():
        for ancestor_id, ancestor in read_chain(thread.extends.strip(), ancestors):
            if ancestor.grants_itself():
                granting, origin = ancestor, ancestor_id
                break
    grants = Grants.of(permission.capability for permission in granting.permissions)
    acknowledged = [
        Tier(acknowledgement.risk) for acknowledgement in thread.acknowledged if acknowledgement.risk in tuple(Tier)
    ]
    return Authority(grants, resolve_limits(thread.limits, {}, None), _highest(acknowledged), origin)


def _highest(tiers: Sequence[Tier | None]) -> Tier | None:
    return max((tier for tier in tiers if tier), key=lambda tier: tier.rank, default=None)


FOLDER = "signed"


class SignedAuthority(Struct, frozen=True):
    items: VerifiedItems

    def find(self, item: Item) -> Authority | None:
        """Return the authority that a changed item had when it was last seen signed. None if it is signed as it is now,
        or if no record exists. Raises `CannotStart` for a record that cannot be read."""
        if self.items.verdict(item).ok:
            return None
        noted = _read(self._file(item))
        return noted[1] if noted else None

    def note(self, item: Item) -> None:
        """Record the authority of a directive that is signed as it is now; for any other the record stays. Raises
        `CannotStart`."""
        if item.type != "directive" or item.space == "system" or not self.items.verdict(item).ok:
            return
        file, digest = self._file(item), digest_of(item.text)
        if (noted := _read(file)) is not None and noted[0] == digest:
            return
        try:
            authority = authority_of(read_thread(item), self.items)
        except QuireError:
            return  # It cannot run either: one of its ancestors is missing or refused.
        _write(
            file,
            {
                "path": str(item.path),
                "digest": digest,
                "capabilities": sorted(authority.grants.patterns),
                "limits": authority.limits.as_value(),
                "risk": authority.risk.value if authority.risk else "",
            },
        )

    def note_directive(self, item_id: str) -> None:
        """Record the directive of the project that a tool is about to overwrite, if it exists."""
        try:
            item = self.items.spaces.find("directive", item_id, "project")
        except QuireError:
            return  # Not a file that could be signed.
        if item is not None and item.id == item_id:
            self.note(item)

    def note_all(self) -> None:
        """Record all directives of the project and of the user folder."""
        for entry in self.items.spaces.entries("directive"):
            if entry.space != "system":
                with contextlib.suppress(QuireError):
                    self.note(self.items.spaces.read(entry))

    def _file(self, item: Item) -> Path:
        return _file(self.items.spaces.settings.user, item.path)


def forget(user: Path, path: Path) -> None:
    """Remove the record of a file that the user has signed by hand. Runs may then sign it as wide as the user did."""
    with contextlib.suppress(OSError):
        _file(user, path).unlink()


def _file(user: Path, path: Path) -> Path:
    return user / FOLDER / f"{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]}.json"


def _read(file: Path) -> tuple[str, Authority] | None:
    """Return the digest of the recorded text, and its authority."""
    try:
        noted = json.loads(file.read_text(encoding="utf-8"))
        risk = Tier(noted["risk"]) if noted["risk"] else None
        return noted["digest"], Authority(Grants.of(noted["capabilities"]), Limits(**noted["limits"]), risk)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotStart(f"{file} cannot be read ({error}): remove it, and sign the directive by hand") from None


def _write(file: Path, noted: dict[str, object]) -> None:
    make_folder(file.parent)
    try:
        with written_beside(file, json.dumps(noted).encode()) as new:
            new.replace(file)
    except OSError as error:
        raise CannotStart(f"{file} cannot be written: {error.strerror or error}") from None
