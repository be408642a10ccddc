"""Write a lock as YAML: sorted, one fact a line, the same bytes on every machine. A diff of its lines is a review."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache

from quire.analysis.lock.file import COUNTS, VERSION, Lock, LockedCapability, LockedDocument, LockedTool

HEADER = "# quire.lock · written by `quire lock` · review it like code"

NO_DOCUMENTS = "documents: {}"
"""The line of a lock without documents."""

_DIGITS = frozenset("0123456789")
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_FIRST = frozenset("_‖∞$≤") | _DIGITS | _LETTERS
_PLAIN = frozenset("./+|·*%=,@()→>~-: ") | _FIRST
"""Characters of a text without quotes. A colon is never before a space or at the end, and spaces are single ones."""
_NUMBER_LIKE = frozenset("ABCDEFabcdefxo_.:+-") | _DIGITS
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_MOST_DIGITS = 18
_IN_KEY = frozenset("_./#-") | _DIGITS | _LETTERS


def written(lock: Lock) -> str:
    """Return the text of a lock."""
    return "\n".join(_lines(lock)) + "\n"


def capability_line(one: LockedCapability) -> str:
    """Return a capability as it is written in a lock; the steps are last, because their names may contain anything."""
    words = [as_one_word(one.capability), f"tier={one.tier or 'none'}", f"class={one.effect}", *one.details]
    return " ".join([*words, f"steps={', '.join(one.steps)}"] if one.steps else words)


def tool_line(one: LockedTool) -> str:
    return f"{one.digest} class={one.effect}"


def as_one_word(text: str) -> str:
    """Return a text without spaces and control characters: each is written as `%XX`."""
    if text and " " not in text and text.isprintable():
        return text
    return "".join(letter if letter.isprintable() and letter != " " else _escaped(letter) for letter in text) or "%00"


def _escaped(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))


def _lines(lock: Lock) -> Iterator[str]:
    yield HEADER
    yield f"quire: {VERSION}"
    if lock.assumed:
        yield from _mapping("assume", lock.assumed, 0)
    if lock.prices:
        yield "prices:"
        if lock.price_source:
            yield f"  source: {scalar_line(lock.price_source)}"
        yield from _mapping("models", lock.prices, 1)
    yield "documents:" if lock.documents else NO_DOCUMENTS
    for key, document in sorted(lock.documents.items()):
        yield f"  {key_line(key)}:"
        yield from (f"    {line}" for line in document_lines(document))
    if lock.tools:
        yield from _mapping("tools", {name: tool_line(one) for name, one in lock.tools.items()}, 0)


def document_lines(one: LockedDocument) -> Iterator[str]:
    """Yield the facts of a document as lines. Two documents with the same lines do not differ in any fact."""
    yield f"plan: {scalar_line(one.plan)}"
    yield from _list("may", [capability_line(need) for need in one.may], 0)
    yield from _list("unknown", one.unknown, 0)
    asks = {"models": one.models, "servers": one.servers, "variables": one.variables}
    if any(asks.values()):
        yield "asks:"
        for name, listed in asks.items():
            yield from _list(name, listed, 1)
    most = {name: one.most[name] for name in COUNTS if name in one.most}
    if most:
        yield "most:"
        yield from (f"  {name}: {scalar_line(bound)}" for name, bound in most.items())
    yield from _mapping("gates", one.gates, 0)
    yield from _list("flows", one.flows, 0)
    yield from _list("allows", one.allows, 0)


def _list(name: str, items: Iterable[str], depth: int) -> Iterator[str]:
    listed = sorted(set(items))
    if listed:
        yield f"{'  ' * depth}{name}:"
        yield from (f"{'  ' * depth}  - {scalar_line(item)}" for item in listed)


def _mapping(name: str, items: Mapping[str, str], depth: int) -> Iterator[str]:
    if items:
        yield f"{'  ' * depth}{name}:"
        for key, value in sorted(items.items()):
            yield f"{'  ' * depth}  {key_line(key)}: {scalar_line(value)}"


def key_line(text: str) -> str:
    """Return a key as YAML; quoted unless it is a name or a path."""
    bare = text.removeprefix(".")
    plain = bare[:1] in _LETTERS and _IN_KEY.issuperset(_without_colons(bare)) and text.lower() not in _WORDS
    return text if plain else _quoted(text)


def are_plain_keys(texts: Collection[str]) -> bool:
    """Tell whether all of many keys are written without quotes. False may be wrong."""
    letters = {text[:1] for text in texts} <= _LETTERS
    return letters and _IN_KEY.issuperset("".join(texts)) and _WORDS.isdisjoint(map(str.lower, texts))


def _without_colons(text: str) -> str:
    """Return a text without the colons that stand before a letter or a digit."""
    if ":" not in text:
        return text
    first, *rest = text.split(":")
    return first + "".join(part if part[:1] in _DIGITS or part[:1] in _LETTERS else f":{part}" for part in rest)


@lru_cache(maxsize=4096)
def scalar_line(text: str) -> str:
    """Return a text as YAML; quoted if a reader of YAML could take it for something else."""
    first = text[:1]
    if first in _DIGITS and _NUMBER_LIKE.issuperset(text):
        is_count = _DIGITS.issuperset(text) and len(text) <= _MOST_DIGITS and (first != "0" or text == "0")
        return text if is_count else _quoted(text)
    plain = (
        first in _FIRST
        and _PLAIN.issuperset(text)
        and text[-1] not in ": "
        and ": " not in text
        and "  " not in text
        and text.lower() not in _WORDS
    )
    return text if plain else _quoted(text)


def _quoted(text: str) -> str:
    """Return a text in double quotes, in which YAML reads the escapes of JSON. Characters that are not printed are
    escaped, so that a line shows all that it says."""
    import json  # most facts need no quotes

    escaped = json.dumps(text, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else _unicode(letter) for letter in escaped)


def _unicode(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"
