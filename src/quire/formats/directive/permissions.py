"""Read `<permissions>`: turn nested elements into capability strings, in the order of the file.

`<execute><tool>rye/bash</tool></execute>` is `rye.execute.tool.rye.bash`. A text directly in `<execute>` is everything
after `rye.execute.`. A star directly in `<permissions>` grants everything, regardless of the elements beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.formats.directive.codes import errors, warnings
from quire.formats.directive.findings import DirectiveFindings, shown
from quire.formats.directive.syntax import Acknowledge, Grant, Permissions
from quire.plan.vocabulary import ITEM_TYPES, PRIMARIES, TIERS
from quire.wording import did_you_mean

if TYPE_CHECKING:
    from quire.formats.directive.xml import Element
    from quire.source import Span

_TAGS = ("acknowledge", *PRIMARIES)


def read_permissions(element: Element, found: DirectiveFindings) -> Permissions:
    return _Reader(found).read(element)


class _Reader:
    def __init__(self, found: DirectiveFindings) -> None:
        self._found = found
        self._grants: list[Grant] = []
        self._bare_texts: set[tuple[str, str]] = set()
        self._acknowledged: list[Acknowledge] = []

    def read(self, element: Element) -> Permissions:
        for part in element.parts:
            if isinstance(part, str):
                self._bare(part.strip(), element, "rye")
            elif part.tag in PRIMARIES:
                self._primary(part)
            elif part.tag == "acknowledge":
                self._acknowledge(part)
            else:
                self._unknown(part)
        raw = element.raw(self._found.source)
        return Permissions(tuple(self._grants), tuple(self._acknowledged), raw, element.opening)

    def _primary(self, element: Element) -> None:
        prefix = f"rye.{element.tag}"
        for part in element.parts:
            if isinstance(part, str):
                self._bare(part.strip(), element, prefix)
                continue
            if part.tag not in ITEM_TYPES:
                meant = self._found.suggestions.nearest(part.tag, ITEM_TYPES)
                help = did_you_mean(meant, f"item types are {', '.join(ITEM_TYPES)}", form="<{}>")
                message = f"<{shown(part.tag)}> in <{element.tag}> is not a type of item, so this grants nothing useful"
                self._found.report(warnings.ITEM_TYPE, message, part.opening, help)
            for child in part.children:
                self._found.stray(child, part.tag, ())
            pattern = part.own_text
            if pattern:
                self._grant(f"{prefix}.{part.tag}", pattern, part.text_span(self._found.source))
            else:
                self._nothing(f"an empty <{shown(part.tag)}> in <{element.tag}>", part.opening)

    def _bare(self, text: str, element: Element, prefix: str) -> None:
        """Read a text beside elements.

        A star grants everything; below a primary the text may also be the rest of a capability.
        """
        if not text:
            return
        # With children around it, finding the exact position is not worth a search.
        span = element.opening if element.children else element.text_span(self._found.source)
        if text == "*" or (prefix != "rye" and not any(sign.isspace() for sign in text)):
            if (prefix, text) not in self._bare_texts:
                self._bare_texts.add((prefix, text))
                self._grant(prefix, text, span)
                if text.partition(".")[0] not in ITEM_TYPES and not set(text) & set("*?["):
                    self._nothing(f'the text "{shown(text)}" in <{element.tag}>', span)
        else:
            self._nothing(f'the text "{shown(text)}" in <{element.tag}>', span)

    def _nothing(self, what: str, span: Span) -> None:
        self._found.report(warnings.IGNORED_TEXT, f"{what} grants nothing", span, _SHAPE)

    def _grant(self, prefix: str, pattern: str, span: Span) -> None:
        if any(sign.isspace() for sign in pattern):
            message = f'the pattern "{shown(pattern)}" has a space in it and so matches no item'
            self._found.report(warnings.IGNORED_TEXT, message, span, "write one element for each pattern")
        self._grants.append(Grant(f"{prefix}.{pattern.replace('/', '.')}", span))

    def _acknowledge(self, element: Element) -> None:
        risk = element.attributes.get("risk", "").strip()
        if risk in TIERS:
            self._acknowledged.append(Acknowledge(risk, element.all_text, element.opening))
            return
        meant = self._found.suggestions.nearest(risk, TIERS) if risk else None
        help = did_you_mean(meant, f"the risks are {', '.join(TIERS)}")
        if "risk" not in element.attributes:
            self._found.report(errors.RISK, "<acknowledge> does not say which risk it means", element.opening, help)
            return
        span = element.attribute_span(self._found.source, "risk")
        self._found.report(errors.RISK, f'the risk "{shown(risk)}" of <acknowledge> is not a tier of risk', span, help)

    def _unknown(self, element: Element) -> None:
        meant = self._found.suggestions.nearest(element.tag, _TAGS)
        help = did_you_mean(meant, f"known there: {', '.join(_TAGS)}", form="<{}>")
        if element.tag in ("search", "load"):
            help = "it is called fetch now"
        message = f"<{shown(element.tag)}> is not known inside <permissions>"
        self._found.report(errors.PERMISSION_TAG, message, element.opening, help)


_SHAPE = "write <execute><tool>rye.file-system.*</tool></execute>, or * for everything"
