"""Recognize secret values and remove them from texts.

A secret is a value, not a pattern: it is found literally, in the encodings that tools use most (URL, JSON, Base64,
hexadecimal), and line by line if it has several lines. A value that a program changed in another way is not found.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from quire.patterns import late_pattern

if TYPE_CHECKING:
    from quire.values import Value

MIN_LENGTH = 8
SHORTEST = 4
"""A value between `SHORTEST` and `MIN_LENGTH` counts only if its name leaves no doubt, and is removed only as a whole
word."""

LONGEST = 100_000
_ENCODED = 12
_LINE = 16
_MOST_LINES = 500

_PARTS = late_pattern(r"key(_id)?$|token|secret|passw(or)?d|passphrase|credential|authorization|cookie|apikey", re.I)
_WORDS = frozenset(
    {"KEY", "KEYS", "PAT", "PATS", "DSN", "AUTH", "WEBHOOK", "WEBHOOKS", "PASS", "PWD", "PEM", "PRIVATE", "JWT"}
)
_ABOUT = frozenset(
    {
        *("PATH", "FILE", "DIR", "FOLDER", "SOCK", "SOCKET", "NAME", "TYPE", "METHOD", "MODE", "ALGORITHM", "FORMAT"),
        *("TTL", "TIMEOUT", "LENGTH", "SIZE", "COUNT", "LIMIT", "ENABLED", "DISABLED", "REQUIRED", "PROVIDER"),
    }
)
_PUBLIC = frozenset({"PWD", "OLDPWD"})
_CAMEL = late_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_IN_WORDS = late_pattern(r"[^A-Za-z0-9]+")
_TRIVIAL = frozenset(
    {
        *("disabled", "enabled", "required", "optional", "localhost", "undefined", "anonymous", "unlimited"),
        *(
            "automatic",
            "password",
            "changeme",
            "username",
            "keychain",
            "osxkeychain",
            "development",
            "production",
            "127.0.0.1",
        ),
    }
)


@lru_cache(maxsize=1024)
def looks_secret(name: str) -> bool:
    """Tell whether a variable, or a header, of this name holds a secret."""
    if name in _PUBLIC:
        return False
    if _PARTS.search(name):
        return True
    words = _NOT_IN_WORDS.split(_CAMEL.sub("_", name).upper())
    return not _WORDS.isdisjoint(words) and words[-1] not in _ABOUT


def secrets_of(environ: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
    """Return the secrets of an environment: variables with secret names, those in `named`, and addresses with a
    password."""
    names = frozenset(named)
    return {
        name: value for name, value in environ.items() if looks_secret(name) or name in names or any(_inside(value))
    }


class Redactor:
    """Replace each secret with `[redacted:NAME]`."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._names: dict[str, str] = {}
        self._whole_words: set[str] = set()
        for name, value in secrets.items():
            for part in (value, *_inside(value)):
                self._add(name, part)
        self._longest = max(map(len, self._names), default=0)
        self._begins = {needle[:size] for needle in self._names for size in range(1, SHORTEST)}

    def text(self, text: str) -> str:
        return self._without(text, [needle for needle in self._names if needle in text])

    def value(self, value: Value) -> Value:
        """Redact all texts of a value, names of fields too; return the same value if it contains no secret."""
        texts = "\0".join(_texts(value))
        present = [needle for needle in self._names if needle in texts]
        return self._part(value, present) if present else value

    def stream(self) -> Stream:
        return Stream(self)

    def _add(self, name: str, value: str) -> None:
        value = value.strip()
        if len(value) > LONGEST or value.lower() in _TRIVIAL:
            return
        if len(value) >= MIN_LENGTH:
            for form in _forms(value):
                self._names.setdefault(form, name)
        elif len(value) >= SHORTEST and looks_secret(name) and _kinds(value) > 1:
            self._names.setdefault(value, name)
            self._whole_words.add(value)

    def _part(self, value: Value, present: list[str]) -> Value:
        if isinstance(value, str):
            return self._without(value, present)
        if isinstance(value, Mapping):
            return {
                self._without(key, present) if isinstance(key, str) else key: self._part(item, present)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._part(item, present) for item in value]
        return value

    def _without(self, text: str, present: list[str], before: str = "") -> str:
        return _replaced(text, self._spans(text, present, before)) if present else text

    def _spans(self, text: str, present: Iterable[str], before: str = "") -> list[tuple[int, int, str]]:
        """Return where secrets are; overlapping ones are merged under the name of the longest."""
        places: list[tuple[int, int, str]] = []
        for needle in present:
            start = text.find(needle)
            while start >= 0:
                end = start + len(needle)
                if needle not in self._whole_words or _is_word(text, start, end, before):
                    places.append((start, end, self._names[needle]))
                start = text.find(needle, start + 1)
        merged: list[tuple[int, int, str, int]] = []
        for start, end, name in sorted(places, key=lambda place: (place[0], -place[1])):
            if merged and start < merged[-1][1]:
                first, last, other, size = merged[-1]
                longest = (name, end - start) if end - start > size else (other, size)
                merged[-1] = (first, max(last, end), *longest)
            else:
                merged.append((start, end, name, end - start))
        return [(start, end, name) for start, end, name, _ in merged]


class Stream:
    """Redact a text that comes in pieces: a possible beginning of a secret is held back until it is decided."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""
        self._before = ""

    def add(self, piece: str) -> str:
        """Return as much of the text as can be shown now."""
        redactor, text = self._redactor, self._held + piece
        if not redactor._names:
            return text
        present = [needle for needle in redactor._names if needle in text]
        cut = self._open_end(text)
        # Searched in the whole text: the following characters decide whether a word ends.
        spans = redactor._spans(text, present, self._before)
        for start, end, _ in spans:
            if start < cut < end:
                cut = start
        shown, self._held = text[:cut], text[cut:]
        self._before = shown[-1:] or self._before
        return _replaced(shown, [span for span in spans if span[1] <= cut])

    def end(self) -> str:
        held, self._held = self._held, ""
        return self._redactor._without(held, [name for name in self._redactor._names if name in held], self._before)

    def _open_end(self, text: str) -> int:
        """Return the start of the first possible secret whose end has not arrived yet."""
        redactor = self._redactor
        first = max(0, len(text) - redactor._longest)
        cut = next((len(text) - size for size in (3, 2, 1) if text[len(text) - size :] in redactor._begins), len(text))
        for needle in redactor._names:
            start = text.find(needle[:SHORTEST], first)
            while 0 <= start < cut:
                whole = needle in redactor._whole_words and text[start:] == needle
                if whole or (len(text) - start < len(needle) and needle.startswith(text[start:])):
                    cut = start
                    break
                start = text.find(needle[:SHORTEST], start + 1)
        return cut


def _replaced(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    pieces, at = [], 0
    for start, end, name in spans:
        pieces += [text[at:start], f"[redacted:{name}]"]
        at = end
    return "".join([*pieces, text[at:]])


def _texts(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        # A provider may pass a value that is not JSON; that is reported later.
        yield from (key for key in value if isinstance(key, str))
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _inside(value: str) -> Iterator[str]:
    """Yield the passwords within an address."""
    if "://" not in value:
        return
    try:
        parts = urlsplit(value.strip())
        user, password = parts.username, parts.password
    except ValueError:
        return
    # Without a password the user name may be the token, as in addresses of repositories.
    secret = password or (user if user and len(user) >= 2 * MIN_LENGTH else None)
    if secret:
        yield from {secret, unquote(secret)}
    yield from (text for name, text in parse_qsl(parts.query) if len(text) >= MIN_LENGTH and looks_secret(name))


def _forms(value: str) -> Iterator[str]:
    yield value
    lines = [line.strip() for line in value.splitlines()] if "\n" in value else []
    yield from (line for line in lines[:_MOST_LINES] if len(line) >= _LINE and not line.startswith("-----"))
    yield from (quote(value, safe=""), quote(value), quote_plus(value))
    yield from (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    data = value.encode("utf-8", "replace")
    if len(data) < _ENCODED:
        return
    yield from (data.hex(), data.hex().upper())
    for shift in range(3):
        # The characters that depend on the secret alone, at any offset in the encoded data.
        text = base64.b64encode(b"\0" * shift + data).decode()[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6]
        yield from (text, text.replace("+", "-").replace("/", "_"))


def _kinds(value: str) -> int:
    """Count the kinds of characters: a single word or a number may occur anywhere."""
    tests = (str.islower, str.isupper, str.isdigit, lambda letter: not letter.isalnum())
    return sum(any(test(letter) for letter in value) for test in tests)


def _is_word(text: str, start: int, end: int, before: str) -> bool:
    left = text[start - 1 : start] or (before if start == 0 else "")
    right = text[end : end + 1]
    return not any(letter.isalnum() or letter == "_" for letter in (left, right) if letter)
