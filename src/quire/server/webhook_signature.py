"""Signatures of webhooks, as Standard Webhooks describes them: HMAC-SHA256 over id, time and body."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.errors import CannotStart
from quire.trust.private_files import read_private

if TYPE_CHECKING:
    from quire.workspace.settings import WebhookSettings

PREFIX = "whsec_"
SHORTEST = 24


def secret_of(name: str, hook: WebhookSettings, environ: Mapping[str, str]) -> bytes:
    """Return the secret that signs the messages to an address. Raises `CannotStart`."""
    if hook.secret_env is not None:
        text, place = environ.get(hook.secret_env, ""), f"the variable {hook.secret_env}"
    else:
        assert hook.secret_file is not None  # noqa: S101  # the reader of the settings sees to it
        text, place = read_private(hook.secret_file, "secret of a webhook"), str(hook.secret_file)
    text = text.strip()
    if not text:
        raise CannotStart(f"[webhooks.{name}]: {place} has no secret")
    try:
        secret = (
            base64.b64decode(text.removeprefix(PREFIX), validate=True) if text.startswith(PREFIX) else text.encode()
        )
    except binascii.Error:
        raise CannotStart(f"[webhooks.{name}]: what follows {PREFIX} in {place} is not Base64") from None
    if len(secret) < SHORTEST:
        raise CannotStart(f"[webhooks.{name}]: the secret in {place} is shorter than {SHORTEST} bytes")
    return secret


def signed_headers(secret: bytes, id: str, at: int, body: bytes) -> dict[str, str]:
    """Return the headers of a message that is sent at a time, in seconds since 1970."""
    signature = hmac.new(secret, f"{id}.{at}.".encode() + body, hashlib.sha256).digest()
    return {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }
