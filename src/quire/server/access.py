"""Access of the users of a server: their roles, the tokens with a name, and the documents that a token is limited to.

Each token is a file in the user's folder with the hash of the token: a copy of the file opens nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

from quire.errors import CannotStart, QuireError, Refused
from quire.library.collect import document_at
from quire.operations.problems import Problem
from quire.server.address import file_of
from quire.trust.private_files import NAME, names_in, read_private, write_new
from quire.workspace.settings import ROLES, Role

if TYPE_CHECKING:
    from quire.engine.records import RunRow
    from quire.operations.host import Caller
    from quire.server.endpoints import Call, Endpoint
    from quire.server.site import Site
    from quire.workspace.settings import Settings

PREFIX = "quire-"
"""The beginning of a token with a name."""
LEAVES_OUT = (
    *("root", "openapi", "docs", "explain_code", "list_tools", "now", "list_documents", "list_runs", "list_questions"),
    *("list_actions", "diff_runs", "start_run", "answer_questions", "page_events"),
)
"""Operations without a run or a document in their path for limited tokens too: they leave out all other documents."""
_RUNS = ("run", "a", "b", "like", "reuse", "origin", "runs", "answers")
"""Members of requests that name runs."""


class Access(Struct, frozen=True):
    """The permissions of one user of a server. Without a source it is the user who has started it."""

    role: Role = "administer"
    source: str = ""
    """`token:NAME` or `person:NAME`."""
    documents: str = ""
    """A pattern of the ids of documents; only they and their runs exist for the user. Empty for all."""

    def covers(self, document: str) -> bool:
        return not self.documents or (document != "" and fnmatchcase(document, self.documents))

    def caller(self, door: Caller) -> Caller:
        """Return a door as this user passes it: with the user's name, and without the editing of others."""
        by = self.source.partition(":")[2] or door.by
        return replace(door, by=by, source=self.source, edits=door.edits and self.role == "administer")

    def require(self, endpoint: Endpoint) -> None:
        """Raise `Problem` unless the user may call an endpoint."""
        if ROLES.index(self.role) < ROLES.index(endpoint.role):
            raise Problem.of("no-role", f"{endpoint.name} needs the role {endpoint.role}, and yours is {self.role}")
        if self.documents and endpoint.name not in LEAVES_OUT and not {"run", "id"} & {*endpoint.path_names}:
            raise Problem.of("no-role", f"{endpoint.name} is about all documents, and yours are {self.documents}")

    async def check(self, site: Site, call: Call) -> None:
        """Raise `Problem` if a request names a document that the user does not see, or a run of one."""
        if not self.documents:
            return
        for id in filter(None, (call.path.get("id"), call.body.get("document"))):
            # A name may stand for any document, so only ids are taken.
            if not self.covers(str(id)) or document_at(site.folder, str(id)) is None:
                raise Problem.of("no-such-document", f"unknown document {id}")
        for name in _runs_in({**call.path, **call.query, **call.body}):
            row: RunRow | None = None
            with suppress(QuireError):
                row = await site.runtime.row(await site.runtime.find(name))
            if row is None or not self.covers(site.shelf.id_of(row)):
                raise Problem.of("no-such-run", f"unknown run {name}")


def _runs_in(request: Mapping[str, object]) -> Iterator[str]:
    for value in map(request.get, _RUNS):
        # The answers of a start are a mapping by labels, which names no run.
        for entry in value if isinstance(value, list | tuple) else [value] if isinstance(value, str) else []:
            run = entry.get("run") if isinstance(entry, Mapping) else entry
            if isinstance(run, str) and run:
                yield run.partition(":")[0]  # `RUN:SEQ` in the stream of the page


class NamedToken(Struct, frozen=True):
    name: str
    role: Role
    documents: str
    hash: str
    """The SHA-256 of the token, in hex."""
    created_at: float

    @property
    def access(self) -> Access:
        return Access(self.role, f"token:{self.name}", self.documents)


class NamedTokens:
    """The named tokens of one workspace."""

    def __init__(self, settings: Settings) -> None:
        self._folder = file_of(settings, ".tokens")

    def make(self, name: str, role: Role, documents: str = "") -> str:
        """Return a new token, which is not kept. Raises `CannotStart` for a name that is taken or not a name."""
        if not NAME.fullmatch(name):
            raise CannotStart(f"{name!r} is not a name: use letters, digits, dots, hyphens")
        if any(token.name == name for token in self.all()):
            raise CannotStart(f"a token {name} exists already: quire serve token revoke {name}")
        secret = PREFIX + secrets.token_urlsafe(32)
        token = NamedToken(name, role, documents, _hash(secret), time.time())
        write_new(self._folder / f"{token.hash[:16]}.json", json.encode(token).decode())
        return secret

    def all(self) -> list[NamedToken]:
        tokens = filter(None, map(self._read, names_in(self._folder, ".json")))
        return sorted(tokens, key=lambda token: token.name)

    def revoke(self, name: str) -> None:
        """Remove a token. Raises `CannotStart` if it does not exist."""
        names = {token.name: token.hash[:16] for token in self.all()}
        if name not in names:
            raise CannotStart(f"no token is named {name}: quire serve token list shows them")
        (self._folder / f"{names[name]}.json").unlink(missing_ok=True)

    def access(self, secret: str) -> Access | None:
        """Return the access that a token gives now; None for one that is wrong or was revoked."""
        token = self._read(_hash(secret)[:16])
        return token.access if token and hmac.compare_digest(token.hash, _hash(secret)) else None

    def _read(self, id: str) -> NamedToken | None:
        with suppress(CannotStart, Refused, DecodeError):
            return json.decode(read_private(self._folder / f"{id}.json", "token", "revoke it"), type=NamedToken)
        return None


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
