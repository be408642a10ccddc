"""Signs a file on disk: reads it once, validates, and puts the signed one in its place whole or not at all."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from quire.errors import Refused, Unreadable
from quire.source import MAX_DOCUMENT_BYTES, file_identity, normalise, read_source, replace_file
from quire.trust.keys import SigningKey
from quire.trust.signable import Signable, refuse_system
from quire.trust.signature_line import digest_of
from quire.trust.signing import sign_text
from quire.trust.trusted import TrustedKey, TrustedKeys
from quire.trust.validators import issues


def sign_file(item: Signable, key: SigningKey, now: datetime, digest: str = "") -> list[str]:
    """What keeps the file from being signed; empty when it is signed now. `digest` is that of the text that was agreed
    to; empty where the file itself was.

    Raises `Refused` for a file that is not the user's to sign, `Unreadable` for one that cannot be read or written.
    """
    path = item.path
    refuse_system(path)
    if path.is_symlink():
        raise Refused(f"{path} is a link; sign the file that it leads to, under its own name")
    source = read_source(path)
    before, text = file_identity(path), _bytes(path).decode("utf-8")
    if normalise(text) != source.text:
        raise Unreadable(path, "was changed while it was read")
    if digest and digest_of(source.text) != digest:
        return ["it was changed after it was looked at; look at it again"]
    if found := issues(item, source):
        return found
    signed = sign_text(text, item.kind, item.id, key, now, syntax=item.syntax)
    data = signed.encode("utf-8")
    if len(data) > MAX_DOCUMENT_BYTES:
        return [f"with a signature it is larger than {MAX_DOCUMENT_BYTES:,} bytes"]
    # Whoever reads the file next must find what was meant here.
    verdict = item.verify(normalise(signed), TrustedKeys.of([TrustedKey(key.public)]))
    if not verdict.ok:
        return [verdict.message]
    replace_file(path, data, before, "signed; sign it again")
    return []


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(path, f"cannot be read: {error.strerror or error}") from None
