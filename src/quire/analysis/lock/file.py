"""The content of `quire.lock`: all that documents may touch, ask for and cost at most, as texts that people review.

A lock has only facts that are the same on every machine. They are texts and not amounts or plans, so that a lock of an
older version can still be compared. It is written as YAML: sorted, one fact a line, so that a diff of its lines is a
review.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct, field
from msgspec.structs import replace

from quire.patterns import late_pattern
from quire.plan.vocabulary import LOCK_FILE
from quire.values import percent_encoded, sha256

VERSION = 1
FILE_NAME = LOCK_FILE
NOT_ASKED = "not asked"
"""The pin of a tool whose server has never been asked."""
UNUSABLE = "sha256:unusable"
"""The pin of a tool that tells nothing of itself of which a digest can be made."""

COUNTS = ("model_calls", "tool_calls", "questions", "threads", "input_tokens", "output_tokens", "money", "minutes")
"""The bounds of a document, in the order in which they are written."""

PARTS = ("quire", "assume", "prices", "documents", "tools")
FACTS = ("plan", "may", "unknown", "asks", "most", "gates", "flows", "allows")
ASKED = ("models", "servers", "variables")
"""The keys of a lock, of a document and of its requests, in the order in which they are written."""

ENDLESS, UNPRICED = "∞", "unpriced"
OPENS, OPENS_WITHOUT, STAYS_SHUT = "opens unattended", "opens unattended without a default", "stays shut unattended"
"""Notes of an approval: its effect if no person answers. It opens because of a default, or because a question without a
default is answered with yes; or it stays shut where a question without a default could open it. A gate without a note
stays shut."""
LONGEST_FACT = 1_000
"""Characters of one text of a fact; a longer text is written by its beginning and a digest."""

_SIZES = frozenset("|‖")
_HEX, _COUNT_DIGITS = frozenset("0123456789abcdef"), frozenset("0123456789,")
_COUNT, _SIZE = r"[0-9][0-9,]{0,60}(?:\.[0-9]{1,12})?", r"[|‖][^|‖]+[|‖][⁰¹²³⁴⁵⁶⁷⁸⁹]?"
_TERM = rf"(?:{_COUNT}|{_SIZE})(?:·{_SIZE})*"
_BOUND = late_pattern(rf"{_TERM}(?: \+ {_TERM})*")
_PRICE = late_pattern(r"[0-9]{1,12}(?:\.[0-9]{1,30})? [0-9]{1,12}(?:\.[0-9]{1,30})?(?: [0-9]{1,12})?")
CLASSES = ("read", "idempotent", "write", "unknown")
"""Classes of effects, as they are written."""
TIERS = ("none", "safe", "write", "elevated", "unrestricted")
"""Tiers of risk, as they are written; `none` for a capability that is in no tier."""


class LockedCapability(Struct, frozen=True):
    """A capability that a document needs at most."""

    capability: str
    """A capability or a pattern of several."""
    tier: str = ""
    effect: str = "unknown"
    details: tuple[str, ...] = ()
    """How far it goes, such as `path=reports/*`; empty if it has no such detail."""
    steps: tuple[str, ...] = ()
    """The steps that need it. They do not count in a comparison."""


class LockedDocument(Struct, frozen=True):
    """The facts of one document."""

    plan: str
    """The digest of its plan."""
    may: tuple[LockedCapability, ...] = ()
    unknown: tuple[str, ...] = ()
    """Documents that it calls and that were not found: they may do anything."""
    models: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    """Names of variables that the servers are given."""
    most: Mapping[str, str] = field(default_factory=dict)
    """Bounds as formulas, by the names of `COUNTS`."""
    gates: Mapping[str, str] = field(default_factory=dict)
    """The question before each effect, by the effect; `none` if there is none."""
    flows: tuple[str, ...] = ()
    allows: tuple[str, ...] = ()
    """Findings that the document suppresses, with the reasons."""


class LockedTool(Struct, frozen=True):
    """A tool as it was when it was locked."""

    digest: str
    """Of its schemas and hints; `NOT_ASKED` if its server has never been asked."""
    effect: str = "unknown"


class Lock(Struct, frozen=True):
    """A whole lock. The keys of documents are their paths from the workspace's folder, with `#NAME` after that of a
    file of several pipelines; tools are known as `SERVER/TOOL`."""

    documents: Mapping[str, LockedDocument] = field(default_factory=dict)
    tools: Mapping[str, LockedTool] = field(default_factory=dict)
    prices: Mapping[str, str] = field(default_factory=dict)
    """Dollars per million tokens read and written and the tokens of a call at most, by model: `3 15 200000`."""
    price_source: str = ""
    assumed: Mapping[str, str] = field(default_factory=dict)
    """The sizes of `[assume]`, such as `20` or `40 KB`: formulas are shown with them, and never bounded by them."""


@lru_cache(maxsize=4096)
def pinned_capability(key: str) -> str:
    """Return the capability of a pinned tool, `SERVER/TOOL`; empty for a built-in one."""
    server, _, tool = key.partition("/")
    if server == "quire":
        return ""
    from quire.trust.capabilities import capability, mcp_tool, python_tool

    return capability("execute", "tool", python_tool(tool) if server == "python" else mcp_tool(server, tool))


def kept_entries(old: Lock, new: Lock, updated: Iterable[str]) -> Lock:
    """Return the old lock with the entries of the updated documents, the tools and the prices of the new one."""
    changed = set(updated)
    documents = {key: document for key, document in old.documents.items() if key not in changed}
    documents |= {key: document for key, document in new.documents.items() if key in changed}
    return Lock(
        documents,
        {**old.tools, **new.tools},
        {**old.prices, **new.prices},
        new.price_source or old.price_source,
        new.assumed,
    )


def is_signed(text: str) -> bool:
    """Tell whether the first line of a lock claims to be a signature. Few locks have one, and only for those the
    patterns of signatures are loaded."""
    if ":signed" not in text[:1024]:
        return False
    from quire.trust.signature_line import claims_signature

    return claims_signature(text, "yaml")


def is_digest(text: str) -> bool:
    kind, _, figures = text.partition(":")
    return kind == "sha256" and len(figures) == 64 and _HEX.issuperset(figures)


def is_bound(name: str, text: str) -> bool:
    """Tell whether a text can be the bound of a name: a number, a formula, `∞`, or `unpriced` for money."""
    if text == ENDLESS or (name == "money" and text == UNPRICED):
        return True
    # A pattern takes as long to compile as a small lock to read.
    return all(map(_is_term, text.split(" + "))) or bool(_BOUND.fullmatch(text))


def _is_term(text: str) -> bool:
    """Tell whether a text is a number, a size, or a number of a size: the terms of most formulas."""
    count, product, size = text.partition("·")
    if text[:1] in _SIZES:
        return _is_size(text)
    return (
        _COUNT_DIGITS.issuperset(count)
        and count[:1] not in ("", ",")
        and len(count) <= 61
        and (not product or _is_size(size))
    )


def _is_size(text: str) -> bool:
    name = text[1:-1]
    return bool(name) and text[0] in _SIZES and text[-1] in _SIZES and _SIZES.isdisjoint(name)


def is_price(text: str) -> bool:
    """Tell whether a text has two prices, and perhaps a window."""
    return bool(_PRICE.fullmatch(text))


def is_pin(pin: LockedTool) -> bool:
    """Tell whether a pin can have been written: the class of a tool that was not asked about is not known."""
    if pin.digest == NOT_ASKED:
        return pin.effect == "unknown"
    return pin.effect in CLASSES and (pin.digest == UNUSABLE or is_digest(pin.digest))


def shortened(text: str) -> str:
    """Return a text that fits into a fact: the beginning of a long one, and a digest by which two are told apart."""
    if len(text) <= LONGEST_FACT:
        return text
    return f"{text[:LONGEST_FACT]}…{sha256(text.encode('utf-8', 'surrogatepass'))[:16]}"


def fitting(need: LockedCapability) -> Iterator[LockedCapability]:
    """Yield a capability as one fact, or as several with a part of the details each. Of many steps the first ones are
    written: they only help a reader."""
    steps = _up_to(need.steps)
    short = replace(
        need, capability=shortened(need.capability), steps=(*steps, "…") if len(steps) < len(need.steps) else steps
    )
    details = [*map(shortened, need.details)]
    while True:
        part = _up_to(details)
        yield replace(short, details=part)
        details = details[len(part) :]
        if not details:
            return


def _up_to(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the first texts that have room in a fact: at least one, if there is one."""
    length = 0
    for at, text in enumerate(texts):
        length += len(text) + 2
        if at and length > LONGEST_FACT:
            return tuple(texts[:at])
    return tuple(texts)


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


def as_one_word(text: str) -> str:
    """Return a text without spaces and control characters: each is written as `%XX`."""
    if text and " " not in text and text.isprintable():
        return text
    letters = (letter if letter.isprintable() and letter != " " else percent_encoded(letter) for letter in text)
    return "".join(letters) or "%00"


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
        yield from _mapping(
            "tools", {name: f"{tool.digest} class={tool.effect}" for name, tool in lock.tools.items()}, 0
        )


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
