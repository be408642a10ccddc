"""The door of webhook triggers: `POST /hooks/NAME`, which a signature opens instead of a token.

A name that is not that of an enabled webhook trigger gets the answer of a wrong signature, after the same work.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections import defaultdict, deque
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from quire.display.visible import visible
from quire.errors import CannotStart, QuireError, Refused
from quire.operations.problems import Problem
from quire.server.endpoints import Call, Reply
from quire.server.webhook_outbox import signed_headers
from quire.values import sha256, value_of

if TYPE_CHECKING:
    from quire.server.site import Site

TOLERANCE_SECONDS = 300
LONGEST_KEY = 200
"""A longer one is kept as its hash: PostgreSQL has no index of long texts."""
_HEADERS = {"github": "x-hub-signature-256", "hmac": "x-signature-256"}
_SECRET = ("signature", "auth", "cookie", "token", "secret", "password", "api-key", "apikey")
"""Parts of the names of headers that expressions do not get."""
_NO_SECRET = os.urandom(32)


def is_signed(scheme: str, secret: bytes, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Tell whether a delivery is signed with a secret, and just now if its scheme signs a time."""
    at, signed, prefix = str(int(now)), body, "sha256="
    if scheme == "standard":
        at, signatures = headers.get("webhook-timestamp", ""), headers.get("webhook-signature", "").split()
        right = signed_headers(secret, headers.get("webhook-id", ""), at, body)["webhook-signature"]
    else:
        signatures = [headers.get(_HEADERS.get(scheme, ""), "")]
        if scheme == "stripe":
            signatures, prefix = headers.get("stripe-signature", "").replace(" ", "").split(","), "v1="
            at = next((part[2:] for part in signatures if part.startswith("t=")), "")
            signed = f"{at}.".encode() + body
        right = prefix + hmac.new(secret, signed, hashlib.sha256).hexdigest()
    same = [hmac.compare_digest(right.encode(), signature.encode()) for signature in signatures]
    return any(same) and at.isdecimal() and abs(now - float(at)) <= TOLERANCE_SECONDS


class Hooks:
    """The deliveries to one server, with the times of those of the last minute."""

    def __init__(self) -> None:
        self._lately = defaultdict[str, deque[float]](deque)

    async def receive(self, site: Site, call: Call) -> Reply:
        """Start the run of a delivery. Raises `Problem`, which tells nothing of the settings."""
        name = call.path["name"]
        try:
            return await self._receive(site, name, await call.request.body(), dict(call.request.headers))
        except QuireError as error:
            site.report(f"/hooks/{visible(name)}: nothing was started: {error}")
            raise Problem.of("not-started", "nothing was started", headers={"Retry-After": "30"}) from None

    async def _receive(self, site: Site, name: str, raw: bytes, headers: Mapping[str, str]) -> Reply:
        from quire.runs.triggers import Triggers, hook_secret, key_of  # it loads the analysis of documents

        triggers, now = Triggers(site.runtime, site.report, site.caller.door), site.runtime.clock.now()
        _, trigger, why = (await triggers.rows()).get(name, (None, None, ""))
        secrets = []
        for hook in trigger.webhook if trigger and not why else ():
            with suppress(CannotStart, Refused):  # while a secret is replaced, one of them may be missing
                secrets.append((hook.scheme, hook_secret(name, hook, site.runtime.environ)))
        tries = [(is_signed(*secret, headers, raw, now), secret[0]) for secret in secrets or [("standard", _NO_SECRET)]]
        signed, scheme = max(tries)
        if trigger is None or not signed:
            raise Problem.of("wrong-signature", "no trigger takes this delivery", exit_code=6)
        self._count(name, trigger.rate, now)
        body, key = value_of(raw.decode("utf-8", "replace")), ""
        if trigger.key or scheme == "stripe":
            key = key_of(trigger.key or "body.id", body)
        elif scheme == "standard":
            key = headers.get("webhook-id", "")
        shown = {header: headers[header] for header in headers if not any(word in header for word in _SECRET)}
        key = key if 0 < len(key) <= LONGEST_KEY else sha256(key.encode() or raw)
        start, is_new = await triggers.fire(name, key, facts={"body": body, "headers": shown})
        await triggers.begin(site.drive)
        why = start.reason if start.state == "skipped" else start.state
        return Reply({"run": start.run} if start.run else {"skipped": why}, 202 if is_new else 200)

    def _count(self, name: str, rate: int, now: float) -> None:
        lately = self._lately[name]
        while lately and lately[0] <= now - 60:
            lately.popleft()
        if len(lately) >= rate:
            wait = str(int(lately[0] + 61 - now))
            raise Problem.of("too-many", f"more than {rate} deliveries a minute", headers={"Retry-After": wait})
        lately.append(now)
