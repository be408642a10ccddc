"""The content of `quire.lock`: all that documents may touch, ask for and cost at most, as texts that people review.

A lock has only facts that are the same on every machine. They are texts and not amounts or plans, so that a lock of an
older version can still be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from quire.plan.vocabulary import LOCK_FILE

VERSION = 1
FILE_NAME = LOCK_FILE
NOT_ASKED = "not asked"
"""The pin of a tool whose server has never been asked."""

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
