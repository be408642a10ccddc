"""Signatures: a comment on the first line of a file that binds all the rest of it to a key.

The signed data is the SHA-256 of the text below that line, as every reader sees it: CRLF and CR are read as LF. The
signature is Ed25519 over that hash as it is written, in hex.

A signature also says *which* item it is for, so that a validly signed file cannot be put in the place of another. A
directive names itself, and a name or a category that does not match its place is refused. Other files do not contain
their name: for them `KIND:ID` is written after the key, and signed together with the hash. The time is for people: it
is not signed and proves nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from msgspec import Struct

from quire.source import Source
from quire.trust.signature_line import (
    SignatureLine,
    Syntax,
    claims_signature,
    digest_of,
    line_end,
    looks_signed,
    read_line,
    spelled,
    with_lf,
    without_signatures,
)

if TYPE_CHECKING:
    from quire.trust.keys import SigningKey
    from quire.trust.trusted_keys import TrustedKeys

Kind = Literal["directive", "knowledge", "playbook", "pipeline", "lock"]
_LOOKED_AT = 20


class Verification(StrEnum):
    """Result of a verification. Only `ok` accepts the item. The checks are made in the order listed."""

    OK = "ok"
    UNSIGNED = "unsigned"
    MALFORMED = "malformed"
    STACKED = "stacked"
    MODIFIED = "modified"
    REVOKED = "revoked"
    UNTRUSTED = "untrusted"
    BAD_SIGNATURE = "bad_signature"
    MISPLACED = "misplaced"


_SENTENCES = {
    Verification.UNSIGNED: "{name} is unsigned{detail}; sign it: {sign}",
    Verification.MALFORMED: "{name} counts as unsigned: its signature line is malformed; sign it again: {sign}",
    Verification.STACKED: "{name} has a second signature line under the first; look at it, then sign it again: {sign}",
    Verification.MODIFIED: "{name} was modified since it was signed; look at what changed, then sign it again: {sign}",
    Verification.REVOKED: "{name} is signed with the key {key}, which is revoked; look at it, then sign it again: "
    "{sign}",
    Verification.UNTRUSTED: "{name} is signed with the key {key}, which is untrusted; if you trust its owner: "
    "{trust}, else look at it and sign it yourself: {sign}",
    Verification.BAD_SIGNATURE: "{name} has a signature that the key {key} did not make, so it is forged or damaged; "
    "look at it, then sign it again: {sign}",
    Verification.MISPLACED: "{name} was signed as {detail}, so it is in a wrong place; move it back, or sign it as "
    "what it is here: {sign}",
}


class Verdict(Struct, frozen=True):
    """The outcome of a verification with its message."""

    outcome: Verification
    key_id: str = ""
    """The key that the line names; empty if it names none."""
    message: str = ""
    """One sentence for people."""

    @property
    def ok(self) -> bool:
        return self.outcome is Verification.OK


def sign_text(
    text: str, kind: Kind, item_id: str, key: SigningKey, now: datetime, *, syntax: Syntax | None = None
) -> str:
    """Return the text with a signature as its first line, in place of any that it began with. All other bytes stay.

    The caller must check that the item may be signed, and that a directive has the name of its place.
    """
    syntax = syntax or _usual_syntax(kind)
    mark, body = ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
    body = without_signatures(body, syntax)
    digest, label = digest_of(with_lf(body)), _label(kind, item_id)
    signature = spelled(key.sign(_message(digest, label)))
    time = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    line = SignatureLine(time, digest, signature, key.key_id, label).write(syntax)
    return f"{mark}{line}{line_end(text)}{body}"


def verify_text(
    text: str, kind: Kind, item_id: str, trusted: TrustedKeys, *, syntax: Syntax | None = None, path: str = ""
) -> Verdict:
    """Verify that this text was signed, as this item, by a trusted key. Never raises.

    `text` is that of a `Source`: a byte order mark is gone, and a second one would count as text before the signature.
    `syntax` decides between the two forms of knowledge; without it either is accepted. `path` is the name of the file
    in messages.
    """
    text = with_lf(text)
    syntax = syntax or ("yaml" if kind == "knowledge" and text.startswith("#") else _usual_syntax(kind))
    outcome, key_id, detail = _judge(text, kind, item_id, trusted, syntax)
    if outcome is Verification.OK:
        return Verdict(outcome, key_id)
    sign = f"quire sign {path or _usual_path(kind, item_id, syntax)}" if kind != "lock" else "quire sign --lock"
    trust = trusted.how_to_trust(key_id) if outcome is Verification.UNTRUSTED else ""
    name = f"the {kind} {item_id}"
    message = _SENTENCES[outcome].format(name=name, key=key_id, detail=detail, sign=sign, trust=trust)
    return Verdict(outcome, key_id, message)


def _judge(text: str, kind: Kind, item_id: str, trusted: TrustedKeys, syntax: Syntax) -> tuple[Verification, str, str]:
    """Return the outcome, the key, and details for the message."""
    line = read_line(text, syntax)
    if line is None:
        return Verification.UNSIGNED, "", _further_down(text, syntax)
    if line == "placeholder":
        return Verification.UNSIGNED, "", ": its signature line is a placeholder"
    if line == "malformed":
        return Verification.MALFORMED, "", ""
    rest = text.partition("\n")[2]
    if looks_signed(rest.lstrip("\n"), syntax):
        return Verification.STACKED, line.key_id, ""
    if digest_of(rest) != line.digest:
        return Verification.MODIFIED, line.key_id, ""
    if line.key_id in trusted.revoked:
        return Verification.REVOKED, line.key_id, ""
    key, signature = trusted.find(line.key_id), line.raw_signature()
    if key is None:
        return Verification.UNTRUSTED, line.key_id, ""
    if signature is None or not key.public.verifies(signature, _message(line.digest, line.label)):
        return Verification.BAD_SIGNATURE, line.key_id, ""
    signed_as = line.label or f"directive:{_declared(rest) if kind == 'directive' else ''}"
    if signed_as != (_label(kind, item_id) or f"directive:{item_id}"):
        return Verification.MISPLACED, line.key_id, signed_as.rstrip(":").replace(":", " ", 1)
    return Verification.OK, line.key_id, ""


def is_signed(text: str, kind: Kind) -> bool:
    """Tell whether the first line claims to be a signature, valid or not: a file that has one is verified."""
    forms: tuple[Syntax, ...] = ("markdown", "yaml") if kind == "knowledge" else (_usual_syntax(kind),)
    return any(claims_signature(text, form) for form in forms)


def key_of(text: str, syntax: Syntax) -> str | None:
    """Return the id of the key that the first line of a text names, without verifying anything."""
    line = read_line(with_lf(text), syntax)
    return line.key_id if isinstance(line, SignatureLine) else None


def _further_down(text: str, syntax: Syntax) -> str:
    lines = text.split("\n", _LOOKED_AT)[:_LOOKED_AT]
    later = next((at for at, line in enumerate(lines, 1) if looks_signed(line, syntax)), 0)
    return f": a signature counts on line 1 only, and there is one on line {later}" if later else ""


def _usual_syntax(kind: Kind) -> Syntax:
    return "yaml" if kind in ("pipeline", "lock") else "markdown"


def _usual_path(kind: Kind, item_id: str, syntax: Syntax) -> str:
    if kind in ("playbook", "pipeline", "lock"):
        return item_id
    folder = "directives" if kind == "directive" else "knowledge"
    return f".ai/{folder}/{item_id}{'.yaml' if syntax == 'yaml' else '.md'}"


def _label(kind: Kind, item_id: str) -> str:
    return "" if kind == "directive" else f"{kind}:{quote(item_id, safe='/._-~', errors='surrogatepass')}"


def _message(digest: str, label: str) -> bytes:
    return (f"{digest}|{label}" if label else digest).encode("ascii")


@lru_cache(maxsize=64)
def _declared(text: str) -> str:
    """Return the name that a directive gives itself, with its category. Errors elsewhere in it do not matter here."""
    from quire.formats.directive.parse import parse

    directive = parse(Source("<signed>", text)).partial
    name = directive.name.text if directive.name else ""
    category = directive.category.text.strip("/") if directive.category else ""
    return f"{category}/{name}" if category else name
