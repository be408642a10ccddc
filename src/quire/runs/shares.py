"""Shares: links with which another person reads one run, until they expire or are revoked.

Each is a file in the user's folder, which a cloned workspace cannot bring, with the hash of its token: a copy of the
file opens nothing. Each has a file of its own, so that no process writes back one that another process has revoked.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import DecodeError, Struct, json

from quire.errors import CannotStart, Refused
from quire.trust.private_files import names_in, read_private, write_new
from quire.values import sha256

if TYPE_CHECKING:
    from quire.workspace.settings import Settings

PREFIX = "share-"
"""The beginning of a token, by which it differs from that of a server."""
MOST, MOST_DAYS = 100, 90
"""Shares of a workspace, and days until one expires."""
_ID = re.compile(r"[0-9a-f]{16}")


class Share(Struct, frozen=True):
    run: str = ""
    hash: str = "0" * 64
    """The SHA-256 of the token, in hex."""
    by: str = ""
    created_at: float = 0.0
    expires_at: float = 0.0

    @property
    def id(self) -> str:
        return self.hash[:16]


class Shares:
    """The shares of the runs of one workspace."""

    def __init__(self, settings: Settings) -> None:
        workspace = sha256(os.fsencode(settings.workspace.folder))[:24]
        self._folder = settings.user / "shares" / workspace

    def make(self, run: str, days: int, by: str) -> tuple[Share, str]:
        """Return a new share with its token, which is not kept. Raises `CannotStart` if there are too many."""
        if len(self.all()) >= MOST:
            raise CannotStart(f"this workspace has {MOST} shares: revoke one first")
        token, now = PREFIX + secrets.token_urlsafe(32), time.time()
        share = Share(run, sha256(token.encode("utf-8", "surrogatepass")), by, now, now + days * 86_400)
        write_new(self._folder / f"{share.id}.json", json.encode(share).decode())
        return share, token

    def all(self, run: str = "") -> list[Share]:
        """Return the shares that have not expired, the newest first, and remove the others."""
        shares = {id: self._read(id) for id in names_in(self._folder, ".json")}
        for id, share in shares.items():
            if share.expires_at <= time.time():
                self.revoke(id)
        kept = [share for share in shares.values() if share.expires_at > time.time() and run in ("", share.run)]
        return sorted(kept, key=lambda share: -share.created_at)

    def revoke(self, id: str) -> bool:
        """Remove a share. Returns False if it does not exist."""
        with suppress(FileNotFoundError):
            if _ID.fullmatch(id):
                (self._folder / f"{id}.json").unlink()
                return True
        return False

    def opens(self, token: str, run: str) -> bool:
        """Tell whether a token opens a run now. A wrong token takes the same way as an expired or a revoked one."""
        hashed = sha256(token.encode("utf-8", "surrogatepass"))
        share = self._read(hashed[:16])
        return hmac.compare_digest(share.hash, hashed) and share.run == run and share.expires_at > time.time()

    def _read(self, id: str) -> Share:
        """Return a share; one that has expired if the file does not exist or is not one."""
        with suppress(CannotStart, Refused, DecodeError):
            return json.decode(read_private(self._folder / f"{id}.json", "share", "revoke it"), type=Share)
        return Share()
