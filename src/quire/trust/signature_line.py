"""The signature line, the first line of a signed file: write it, and read it strictly.

    <!-- rye:signed:2026-02-10T02:00:00Z:HASH:SIGNATURE:KEYID -->            a directive
    <!-- rye:signed:2026-02-10T02:00:00Z:HASH:SIGNATURE:KEYID|KIND:ID -->    any other Markdown
    # rye:signed:2026-02-10T02:00:00Z:HASH:SIGNATURE:KEYID|KIND:ID           YAML

The line is the one part of a file that the signature does not cover, so it must not contain anything else. A line that
only looks like a signature is distinguished from one that is not a signature at all.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal

from msgspec import Struct

from quire.patterns import late_pattern
from quire.values import sha256

Syntax = Literal["markdown", "yaml"]

_COMMENT: dict[Syntax, tuple[str, str]] = {"markdown": ("<!-- rye:signed:", " -->"), "yaml": ("# rye:signed:", "")}
_FIELDS = late_pattern(
    r"(?P<time>\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z):(?P<hash>[0-9a-f]{64}):(?P<signature>[A-Za-z0-9_-]+={0,2})"
    r":(?P<key>[0-9a-f]{16})(?:\|(?P<label>[a-z]+:[A-Za-z0-9/._~%-]+)|\|[A-Za-z0-9._-]{1,64}@[A-Za-z0-9._-]{1,64})?",
    re.ASCII,
)
"""The key is followed by the item, or by the account of an owner, which is ignored."""
_PLACEHOLDER = late_pattern(r"TIMESTAMP:HASH:SIGNATURE:KEYID|[^|\s]*:placeholder:unsigned:unsigned")
_LIKE: dict[Syntax, re.Pattern[str]] = {
    "markdown": late_pattern(r"[\W_]*<!--\W*(?:rye|ryeos):signed\b"),
    "yaml": late_pattern(r"[\W_]*#\W*(?:rye|ryeos):signed\b"),
}
_WITHIN = 200
"""Characters of a line within which a signature must begin: the patterns above are not linear."""
_LINE = late_pattern(r"([^\r\n]*+)(?:\r\n|\r|\n|\Z)")


def digest_of(text: str) -> str:
    """Return the hash of a text. Its line ends are LF, also if a checkout changes them."""
    return sha256(text.encode("utf-8", "surrogatepass"))


class SignatureLine(Struct, frozen=True):
    """A parsed signature line."""

    time: str
    digest: str
    signature: str
    key_id: str
    label: str = ""
    """The item that was signed; empty for a directive, which names itself."""

    def write(self, syntax: Syntax) -> str:
        opening, closing = _COMMENT[syntax]
        after = f"|{self.label}" if self.label else ""
        return f"{opening}{self.time}:{self.digest}:{self.signature}:{self.key_id}{after}{closing}"

    def raw_signature(self) -> bytes | None:
        """Return exactly the 64 bytes of the signature, or None.

        A signature that is not in its canonical spelling was changed and is invalid.
        """
        import base64  # not for a file that is not signed

        text = self.signature
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except ValueError:
            return None
        return raw if len(raw) == 64 and spelled(raw).rstrip("=") == text.rstrip("=") else None


Placeholder = Literal["placeholder"]
Malformed = Literal["malformed"]


def read_line(text: str, syntax: Syntax) -> SignatureLine | Placeholder | Malformed | None:
    """Return the signature that a normalised text begins with; None if its first line is something else."""
    line = text.partition("\n")[0]
    opening, closing = _COMMENT[syntax]
    if not looks_signed(text, syntax):
        return None
    if not line.startswith(opening) or not line.endswith(closing) or len(line) < len(opening) + len(closing):
        return "malformed"
    inner = line[len(opening) : len(line) - len(closing)]
    if _PLACEHOLDER.fullmatch(inner):
        return "placeholder"
    match = _FIELDS.fullmatch(inner)
    if match is None or not _is_time(match["time"]):
        return "malformed"
    return SignatureLine(match["time"], match["hash"], match["signature"], match["key"], match["label"] or "")


def looks_signed(text: str, syntax: Syntax) -> bool:
    """Tell whether a person or a lenient reader would take the first line for a signature."""
    end = text.find("\n", 0, _WITHIN)
    if ":signed" not in text[: _WITHIN if end < 0 else end]:
        return False  # and no pattern is compiled
    return _LIKE[syntax].match(text, 0, _WITHIN if end < 0 else end) is not None


def claims_signature(text: str, syntax: Syntax) -> bool:
    """Tell whether the first line claims to be a signature, good or not: such a text is verified."""
    return looks_signed(with_lf(text[:1024]), syntax)


def with_lf(text: str) -> str:
    """Return the text with every line ended by a line feed."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def without_signatures(text: str, syntax: Syntax) -> str:
    """Remove the signature lines that a text begins with, also below blank lines, which stay."""
    blank, at = [], 0
    while at < len(text) and (line := _LINE.match(text, at)):
        if not looks_signed(line[1], syntax):
            if line[1].strip():
                break
            blank.append(line[0])
        at = line.end()
    return "".join(blank) + text[at:]


def line_end(text: str) -> str:
    """Return the line ending of the first line of a text."""
    at = text.find("\n")
    if at > 0 and text[at - 1] == "\r":
        return "\r\n"
    return "\r" if at < 0 and "\r" in text else "\n"


def spelled(signature: bytes) -> str:
    import base64

    return base64.urlsafe_b64encode(signature).decode("ascii")


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
