"""Users of a server: tokens with a name, people whom a proxy names, and their permissions.

Each token is a file in the user's folder with the hash of the token: a copy of the file opens nothing.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec import DecodeError, Struct, json

from quire.display.visible import visible
from quire.errors import CannotStart, QuireError, Refused
from quire.library.collect import document_at
from quire.operations.problems import Problem
from quire.runs.shares import Shares
from quire.server.address import file_of
from quire.trust.private_files import names_in, read_private, write_new
from quire.values import sha256
from quire.wording import cut
from quire.workspace.settings import ROLES, Role, Settings

if TYPE_CHECKING:
    from starlette.requests import Request

    from quire.server.endpoints import Call, Endpoint
    from quire.server.site import Site

LONGEST_NAME = 200
_TOKEN = re.compile(r"quire-([A-Za-z0-9_-]{1,64})-[0-9a-f]{48}")
_BY_HAND = ("fire_trigger", "backfill_trigger")
"""Their runs are those of the trigger, so nothing tells later which user started them."""


class Access(Struct, frozen=True):
    """The permissions of one user of a server. Without a source it is the user who has started it."""

    role: Role = "administer"
    source: str = ""
    """`token:NAME` or `person:NAME`."""
    documents: str = ""
    """A pattern of the ids of documents; only they and their runs exist for the user. Empty for all."""
    hash: str = ""
    """The SHA-256 of a token with a name, in hex."""

    async def call_of(self, site: Site, endpoint: Endpoint, request: Request) -> Call:
        """Read a request. Raises `Problem` if the user may not call the endpoint, or not with these values."""
        if ROLES.index(self.role) < ROLES.index(endpoint.role):
            raise Problem.of("no-role", f"{endpoint.name} needs the role {endpoint.role}, and yours is {self.role}")
        if self.documents and not {"run", "id"} & {*endpoint.path_names} and endpoint.name not in ("root", "start_run"):
            raise Problem.of("no-role", f"{endpoint.name} is about all documents, and yours are {self.documents}")
        call = await endpoint.call_of(request)
        for id in filter(None, (call.path.get("id"), call.body.get("document")) if self.documents else ()):
            # Only ids are taken: a name may stand for any document.
            if not fnmatchcase(str(id), self.documents) or document_at(site.folder, str(id)) is None:
                raise Problem.of("no-such-document", f"unknown document {id}")
        runs = (call.path.get("run"), call.body.get("like"), call.body.get("reuse"))
        for run in filter(None, runs if self.documents else ()):
            id = ""
            with suppress(QuireError):
                id = site.shelf.id_of(await site.runtime.row(await site.runtime.find(str(run))))
            if not fnmatchcase(id, self.documents):
                raise Problem.of("no-such-run", f"unknown run {run}")
        if endpoint.role == "run":
            await self._require_own(site, endpoint, call)
        if endpoint.name in _BY_HAND and site.runtime.settings.serve.different_approver:
            raise Problem.of("same-user", "[serve] different_approver: only `quire triggers` starts them by hand")
        return call

    async def _require_own(self, site: Site, endpoint: Endpoint, call: Call) -> None:
        """Raise if a run would get permissions that this server does not grant, from the run of another user that it
        copies or changes, or an answer before its question."""
        early = any(map(call.body.get, ("answers", "unattended", "set")))
        copies = endpoint.name in ("fork_run", "preview_fork", "try_step")
        if named := call.path.get("run") if copies or call.body.get("set") else call.body.get("like"):
            view = (await site.views.of(await site.runtime.find(str(named)))).view
            pins = view.pins
            early = early or bool(pins.answers or pins.unattended)
            # A fork does again what another user has approved once.
            early = early or (copies and any(record.kind == "ask" for record in view.effects))
            if self.source:
                site.caller.granted(pins.allow)
        if early and endpoint.name != "try_step" and site.runtime.settings.serve.different_approver:
            raise Problem.of(
                "same-user", "[serve] different_approver: answers, unattended, set and old answers need another user"
            )


class Users:
    """The users of a server. Without `has_tokens` no named token opens it. A proxy names people in the `header`."""

    def __init__(self, settings: Settings, *, has_tokens: bool = True, header: str = "") -> None:
        self._folder, self._people = file_of(settings, ".tokens"), settings.serve.people
        self._has_tokens, self.header, self.shares = has_tokens, header, Shares(settings)

    def add(self, name: str, role: Role, documents: str = "") -> str:
        """Return a new token, which is not kept. Raises `CannotStart` for a name that is taken or not a name."""
        secret = f"quire-{name}-{secrets.token_hex(24)}"
        if not _TOKEN.fullmatch(secret):
            raise CannotStart(f"{name!r} is not a name: use letters, digits, hyphens")
        token = Access(role, f"token:{name}", documents, sha256(secret.encode()))
        try:
            write_new(self._folder / f"{name}.json", json.encode(token).decode())
        except FileExistsError:
            raise CannotStart(f"a token {name} exists already: quire serve token revoke {name}") from None
        return secret

    def tokens(self) -> dict[str, Access]:
        return {name: token for name in names_in(self._folder, ".json") if (token := self._read(name))}

    def revoke(self, name: str) -> None:
        """Remove a token. Raises `CannotStart` if it does not exist."""
        if name not in names_in(self._folder, ".json"):
            raise CannotStart(f"no token is named {name}: quire serve token list shows them")
        (self._folder / f"{name}.json").unlink(missing_ok=True)

    def bearer(self, secret: str) -> Access | None:
        """Return the access that a token gives now; None for one that is wrong or was revoked."""
        match = _TOKEN.fullmatch(secret) if self._has_tokens else None
        token = self._read(match[1]) if match else None
        return token if token and hmac.compare_digest(token.hash, sha256(secret.encode())) else None

    def person(self, names: Sequence[str]) -> Access:
        """Return the access of the person that a proxy names. Raises `Problem` unless it is one with a role."""
        if len(names) != 1 or names[0] not in self._people:
            person = visible(cut(", ".join(names), LONGEST_NAME)) or "missing"
            raise Problem.of("unknown-person", f"{self.header} is {person}, and [serve.people] has no role for that")
        return Access(self._people[names[0]], f"person:{names[0]}")

    def _read(self, name: str) -> Access | None:
        with suppress(CannotStart, Refused, DecodeError):
            return json.decode(read_private(self._folder / f"{name}.json", "token", "revoke it"), type=Access)
        return None
