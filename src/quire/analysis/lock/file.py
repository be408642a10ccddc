"""The content of `quire.lock`: all that documents may touch, ask for and cost at most, as texts that people review.

A lock has only facts that are the same on every machine. They are texts and not amounts or plans, so that a lock of an
older version can still be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from quire.patterns import late_pattern
from quire.plan.vocabulary import LOCK_FILE
from quire.values import sha256

VERSION = 1
FILE_NAME = LOCK_FILE
NOT_ASKED = "not asked"
"""The pin of a tool whose server has never been asked."""
UNUSABLE = "sha256:unusable"
"""The pin of a tool that tells nothing of itself of which a digest can be made."""

COUNTS = (
    "model_calls",
    "tool_calls",
    "questions",
    "threads",
    "input_tokens",
    "output_tokens",
    "money",
    "minutes",
)
"""The bounds of a document, in the order in which they are written."""

ENDLESS, UNPRICED = "∞", "unpriced"
OPENS, OPENS_WITHOUT, STAYS_SHUT = "opens unattended", "opens unattended without a default", "stays shut unattended"
"""Notes of a gate: what it does if no person answers. It opens because of a default, or because a question without a
default is answered with yes; or it stays shut where a question without a default could open it. A gate without a note
stays shut."""
LONGEST_FACT = 1_000
"""Characters of one text of a fact; a longer text is written by its beginning and a digest."""

_SIZES = frozenset("|‖")
_HEX, _DIGITS = frozenset("0123456789abcdef"), frozenset("0123456789,")
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


def kept_entries(old: Lock, new: Lock, updated: Iterable[str]) -> Lock:
    """Return the old lock with the entries of the updated documents, the tools and the prices of the new one."""
    changed = set(updated)
    documents = {key: one for key, one in old.documents.items() if key not in changed}
    documents |= {key: one for key, one in new.documents.items() if key in changed}
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
        _DIGITS.issuperset(count)
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
