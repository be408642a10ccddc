"""Find what is wrong with a lock that is not as `quire lock` writes it. Never raises because of its content.

Everything in it is a text with a limit on its length and number; a key that is not known, a value of another shape and
another version are findings with their lines, and then no lock is returned: half of a lock would count as less
authority than was agreed to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from quire.analysis.lock.file import (
    ASKED,
    CLASSES,
    COUNTS,
    FACTS,
    PARTS,
    TIERS,
    VERSION,
    Lock,
    LockedCapability,
    LockedDocument,
    LockedTool,
    is_bound,
    is_digest,
    is_pin,
    is_price,
    written,
)
from quire.analysis.lock.read import BAD_LOCK, LONGEST, MOST_BYTES, MOST_FACTS, OTHER_VERSION, LockReading
from quire.diagnostics import Diagnostic
from quire.formats.yaml import Mapping, Node, Scalar, Sequence, describe, read_yaml
from quire.patterns import late_pattern
from quire.source import NOWHERE, Source, Span
from quire.trust.signature_line import claims_signature
from quire.units import size_of
from quire.wording import cut

_AGAIN = "write it again with quire lock, and review what changes"
_CONFLICT = late_pattern(r"^(?:<{7}|>{7}|={7})(?: [^\n]*)?$", re.MULTILINE)


def read_strictly(source: Source) -> LockReading:
    """Read the text of a lock as YAML, with a finding for everything that is wrong."""
    if conflict := _CONFLICT.search(source.text):
        message = "the lock has marks of a merge that was not finished"
        help = "take either side, then write it again with quire lock"
        return LockReading(source, None, (Diagnostic(BAD_LOCK, message, Span(*conflict.span()), help=help),))
    reading = read_yaml(source, limit=MOST_BYTES, tags=())
    if reading.diagnostics:
        first = reading.diagnostics[0]
        finding = Diagnostic(BAD_LOCK, f"the lock cannot be read: {first.message}", first.span, help=_AGAIN)
        return LockReading(source, None, (finding,))
    reader = _Reader()
    lock = reader.lock(reading.documents)
    if lock is not None and not reader.findings:
        reader.findings += _edited(source.text, written(lock))
    return LockReading(source, None if reader.findings else lock, tuple(reader.findings))


def _edited(text: str, expected: str) -> Iterator[Diagnostic]:
    """Yield a finding for the first line that is not as it is written: nothing hides in anchors, spaces or an odd
    order."""
    start = text.find("\n") + 1 if claims_signature(text, "yaml") else 0
    if text[start:] == expected:
        return
    lines, wanted = text[start:].splitlines(keepends=True), expected.splitlines(keepends=True)
    same = next((at for at, (line, other) in enumerate(zip(lines, wanted, strict=False)) if line != other), None)
    at = min(len(lines), len(wanted)) if same is None else same
    begin = start + sum(map(len, lines[:at]))
    end = begin + len(lines[at].rstrip("\n")) if at < len(lines) else begin
    told = f"here it would write {_quoted(wanted[at].strip())}" if at < len(wanted) else "it would end before this line"
    yield Diagnostic(BAD_LOCK, f"the lock was edited by hand, or merged: {told}", Span(begin, end), help=_AGAIN)


class _Reader:
    def __init__(self) -> None:
        self.findings: list[Diagnostic] = []
        self._facts = 0

    def lock(self, documents: tuple[Node, ...]) -> Lock | None:
        top = documents[0] if len(documents) == 1 else None
        if not isinstance(top, Mapping):
            self._wrong("a lock is one mapping with the keys quire and documents", top.span if top else NOWHERE)
            return None
        version = top.find("quire")
        if version is None:
            self._wrong("it has no line quire: VERSION, so it is not a lock", top.span)
            return None
        if not isinstance(version.value, Scalar) or version.value.text != str(VERSION):
            shown = _quoted(version.value.text) if isinstance(version.value, Scalar) else describe(version.value)
            message = f"it is a lock of version {shown}; this Quire reads version {VERSION}"
            self.findings.append(Diagnostic(OTHER_VERSION, message, version.value.span, help=_AGAIN))
            return None
        parts = self._parts(top, PARTS)
        prices = self._parts(parts.get("prices"), ("source", "models"))
        price = "a price is two numbers and perhaps a window, such as 3 15 200000"
        size = "an assumed size is a number"
        return Lock(
            {
                key: document
                for key, node in self._entries(parts.get("documents"))
                if (document := self._document(node))
            },
            {key: pin for key, node in self._entries(parts.get("tools")) if (pin := self._tool(node))},
            {key: self._checked(node, is_price, price) for key, node in self._entries(prices.get("models"))},
            self._text(prices["source"]) if "source" in prices else "",
            {key: self._checked(node, _is_size, size) for key, node in self._entries(parts.get("assume"))},
        )

    def _document(self, node: Node) -> LockedDocument | None:
        if not isinstance(node, Mapping):
            self._wrong(f"the entry of a document is a mapping, not {describe(node)}", node.span)
            return None
        parts = self._parts(node, FACTS)
        asks = self._parts(parts.get("asks"), ASKED)
        most = self._parts(parts.get("most"), COUNTS)
        bound = "a bound is a number, a formula or ∞"
        plan = self._text(parts["plan"]) if "plan" in parts else ""
        if not is_digest(plan):
            self._wrong("the entry of a document has its plan as sha256: and 64 digits", node.span)
        return LockedDocument(
            plan=plan,
            may=tuple(self._capability(text, span) for text, span in self._list(parts.get("may"))),
            unknown=self._listed(parts.get("unknown")),
            models=self._listed(asks.get("models")),
            servers=self._listed(asks.get("servers")),
            variables=self._listed(asks.get("variables")),
            most={name: self._checked(node, partial(is_bound, name), bound) for name, node in most.items()},
            gates={key: self._text(value) for key, value in self._entries(parts.get("gates"))},
            flows=self._listed(parts.get("flows")),
            allows=self._listed(parts.get("allows")),
        )

    def _capability(self, text: str, span: Span) -> LockedCapability:
        line, _, steps = text.partition(" steps=")
        capability, *words = line.split(" ")
        named = dict(word.partition("=")[::2] for word in words[:2])
        if [*named] != ["tier", "class"] or not capability or not all("=" in word for word in words):
            self._wrong(f"a line of may is CAPABILITY tier=… class=… …, not {_quoted(text)}", span)
            return LockedCapability(capability)
        for name, known in (("tier", TIERS), ("class", CLASSES)):
            if named[name] not in known:
                self._wrong(f"{_quoted(named[name])} is not a {name}; known: {', '.join(known)}", span)
        return LockedCapability(
            capability,
            "" if named["tier"] == "none" else named["tier"],
            named["class"],
            tuple(words[2:]),
            tuple(steps.split(", ")) if steps else (),
        )

    def _tool(self, node: Node) -> LockedTool | None:
        text = self._text(node)
        digest, found, effect = text.rpartition(" class=")
        if not found:
            self._wrong(f"the pin of a tool is DIGEST class=…, not {_quoted(text)}", node.span)
            return None
        pin = LockedTool(digest, effect)
        if effect not in CLASSES:
            self._wrong(f"{_quoted(effect)} is not a class; known: {', '.join(CLASSES)}", node.span)
        elif not is_pin(pin):
            self._wrong(f"no tool has the digest and the class {_quoted(text)}", node.span)
        return pin

    def _checked(self, node: Node, is_right: Callable[[str], object], what: str) -> str:
        """Return a text, with a finding if it is not what stands here."""
        text = self._text(node)
        if not is_right(text):
            self._wrong(f"{what}, not {_quoted(text)}", node.span)
        return text

    def _parts(self, node: Node | None, known: tuple[str, ...]) -> dict[str, Node]:
        """Return the values of a mapping whose keys are known."""
        parts: dict[str, Node] = {}
        for key, value, span in self._pairs(node):
            if key in known:
                parts[key] = value
            else:
                self._wrong(f"{_quoted(key)} is not a key here; known: {', '.join(known)}", span)
        return parts

    def _entries(self, node: Node | None) -> Iterator[tuple[str, Node]]:
        return ((key, value) for key, value, _ in self._pairs(node))

    def _pairs(self, node: Node | None) -> Iterator[tuple[str, Node, Span]]:
        if node is None:
            return
        if not isinstance(node, Mapping):
            self._wrong(f"a mapping stands here, not {describe(node)}", node.span)
            return
        for entry in node.entries:
            yield self._text(entry.key), entry.value, entry.key.span

    def _listed(self, node: Node | None) -> tuple[str, ...]:
        return tuple(text for text, _ in self._list(node))

    def _list(self, node: Node | None) -> Iterator[tuple[str, Span]]:
        if node is None:
            return
        if not isinstance(node, Sequence):
            self._wrong(f"a list stands here, not {describe(node)}", node.span)
            return
        for item in node.items:
            yield self._text(item), item.span

    def _text(self, node: Node) -> str:
        """Return a scalar as it is written: a lock has texts only."""
        self._facts += 1
        if not isinstance(node, Scalar) or node.tag:
            self._wrong(f"a text stands here, not {describe(node)}", node.span)
            return ""
        if len(node.text) > LONGEST:
            self._wrong(f"a fact has at most {LONGEST:,} characters", node.span)
        if self._facts == MOST_FACTS:
            self._wrong(f"a lock has at most {MOST_FACTS:,} facts", node.span)
        return node.text

    def _wrong(self, message: str, span: Span) -> None:
        if len(self.findings) < 20:
            self.findings.append(Diagnostic(BAD_LOCK, message, span, help=_AGAIN))


def _is_size(text: str) -> bool:
    return size_of(text.replace(",", "")) is not None


def _quoted(text: str) -> str:
    return f'"{cut(text, 60)}"'
