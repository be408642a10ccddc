"""Parse a directive into a syntax tree and findings. Never raises because of the content of a text.

All mistakes are reported, not only the first one. The readable parts are returned even if there are errors. Hooks are
read in `hooks`.

`<permissions>` are turned into capabilities: `<execute><tool>rye/bash</tool></execute>` is `rye.execute.tool.rye.bash`.
A text directly in `<execute>` is everything after `rye.execute.`. A star directly in `<permissions>` grants everything,
regardless of the elements beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from quire.formats.directive import codes, syntax
from quire.formats.directive.hooks import read_actions, read_hooks, readable
from quire.formats.directive.syntax import Directive, DirectiveFindings, Text, shown
from quire.formats.directive.xml import Element, read_xml
from quire.formats.markdown import Missing, find_fence, signature_line
from quire.plan.vocabulary import CONTEXT, ITEM_TYPES, OPAQUE, PARAMETER_TYPES, PRIMARIES, TIERS
from quire.source import MAX_DOCUMENT_BYTES, NOWHERE, Source, Span, is_open_text
from quire.wording import did_you_mean

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic


_TAGS = ("acknowledge", *PRIMARIES)


class _PermissionsReader:
    def __init__(self, findings: DirectiveFindings) -> None:
        self._findings = findings
        self._grants: list[syntax.Grant] = []
        self._bare_texts: set[tuple[str, str]] = set()
        self._acknowledged: list[syntax.Acknowledge] = []

    def read(self, element: Element) -> syntax.Permissions:
        for part in element.parts:
            if isinstance(part, str):
                self._bare(part.strip(), element, "rye")
            elif part.tag in PRIMARIES:
                self._primary(part)
            elif part.tag == "acknowledge":
                self._acknowledge(part)
            else:
                self._unknown(part)
        raw = element.raw(self._findings.source)
        return syntax.Permissions(tuple(self._grants), tuple(self._acknowledged), raw, element.opening)

    def _primary(self, element: Element) -> None:
        prefix = f"rye.{element.tag}"
        for part in element.parts:
            if isinstance(part, str):
                self._bare(part.strip(), element, prefix)
                continue
            if part.tag not in ITEM_TYPES:
                meant = self._findings.suggestions.nearest(part.tag, ITEM_TYPES)
                help = did_you_mean(meant, f"item types are {', '.join(ITEM_TYPES)}", form="<{}>")
                message = f"<{shown(part.tag)}> in <{element.tag}> is not a type of item, so this grants nothing useful"
                self._findings.report(codes.ITEM_TYPE, message, part.opening, help)
            for child in part.children:
                self._findings.stray(child, part.tag, ())
            pattern = part.own_text
            if pattern:
                self._grant(f"{prefix}.{part.tag}", pattern, part.text_span(self._findings.source))
            else:
                self._nothing(f"an empty <{shown(part.tag)}> in <{element.tag}>", part.opening)

    def _bare(self, text: str, element: Element, prefix: str) -> None:
        """Read a text beside elements.

        A star grants everything; below a primary the text may also be the rest of a capability.
        """
        if not text:
            return
        # With children around it, finding the exact position is not worth a search.
        span = element.opening if element.children else element.text_span(self._findings.source)
        is_grant = text == "*" or (prefix != "rye" and not any(sign.isspace() for sign in text))
        if is_grant and (prefix, text) in self._bare_texts:
            return
        if is_grant:
            self._bare_texts.add((prefix, text))
            self._grant(prefix, text, span)
        if not is_grant or (text.partition(".")[0] not in ITEM_TYPES and not set(text) & set("*?[")):
            self._nothing(f'the text "{shown(text)}" in <{element.tag}>', span)

    def _nothing(self, what: str, span: Span) -> None:
        self._findings.report(codes.IGNORED_TEXT, f"{what} grants nothing", span, _SHAPE)

    def _grant(self, prefix: str, pattern: str, span: Span) -> None:
        if any(sign.isspace() for sign in pattern):
            message = f'the pattern "{shown(pattern)}" has a space in it and so matches no item'
            self._findings.report(codes.IGNORED_TEXT, message, span, "write one element for each pattern")
        self._grants.append(syntax.Grant(f"{prefix}.{pattern.replace('/', '.')}", span))

    def _acknowledge(self, element: Element) -> None:
        risk = element.attributes.get("risk", "").strip()
        if risk in TIERS:
            self._acknowledged.append(syntax.Acknowledge(risk, element.all_text, element.opening))
            return
        meant = self._findings.suggestions.nearest(risk, TIERS) if risk else None
        help = did_you_mean(meant, f"the risks are {', '.join(TIERS)}")
        if "risk" not in element.attributes:
            self._findings.report(codes.RISK, "<acknowledge> does not say which risk it means", element.opening, help)
            return
        span = element.attribute_span(self._findings.source, "risk")
        message = f'the risk "{shown(risk)}" of <acknowledge> is not a tier of risk'
        self._findings.report(codes.RISK, message, span, help)

    def _unknown(self, element: Element) -> None:
        meant = self._findings.suggestions.nearest(element.tag, _TAGS)
        help = did_you_mean(meant, f"known there: {', '.join(_TAGS)}", form="<{}>")
        if element.tag in ("search", "load"):
            help = "it is called fetch now"
        message = f"<{shown(element.tag)}> is not known inside <permissions>"
        self._findings.report(codes.PERMISSION_TAG, message, element.opening, help)


_SHAPE = "write <execute><tool>rye.file-system.*</tool></execute>, or * for everything"


def read_text(element: Element, findings: DirectiveFindings) -> Text:
    return Text(element.all_text, element.text_span(findings.source))


def read_attributes(element: Element, findings: DirectiveFindings) -> syntax.Attributes:
    """Read an element that has only attributes."""
    if element.all_text or element.children:
        message = f"<{element.tag}> is read from its attributes only: its content has no effect"
        form = 'model tier="low" /> or <model id="NAME"' if element.tag == "model" else f'{element.tag} name="value"'
        findings.report(codes.IGNORED_TEXT, message, element.opening, f"write <{form} />")
    return _attributes(element, findings)


def read_cost(element: Element, findings: DirectiveFindings) -> syntax.Cost:
    cost = syntax.Cost(span=element.opening)
    for child in findings.known_children(element, ("context", "duration", "spend")):
        text = Text(child.own_text, child.text_span(findings.source)) if child.own_text else None
        if child.tag == "context":
            cost.context, cost.tokens = _attributes(child, findings), text
        elif child.tag == "duration":
            cost.duration = text
        else:
            cost.spend = text
            currency = child.attributes.get("currency", "").strip()
            cost.currency = Text(currency, child.attribute_span(findings.source, "currency")) if currency else None
    return cost


def read_context(element: Element, findings: DirectiveFindings) -> syntax.Context:
    children = findings.known_children(element, CONTEXT)
    return syntax.Context(
        tuple((child.tag, read_text(child, findings)) for child in children if child.all_text), element.opening
    )


def read_inputs(element: Element, findings: DirectiveFindings) -> tuple[syntax.Parameter, ...]:
    return tuple(_parameter(child, findings) for child in findings.known_children(element, ("input",)))


def read_outputs(element: Element, findings: DirectiveFindings) -> tuple[tuple[syntax.Parameter, ...], Text, Text]:
    """Read the outputs, and the messages that close the thread. A child of any other name is an output of that name."""
    outputs: list[syntax.Parameter] = []
    closing = {"success": Text("", element.opening), "failure": Text("", element.opening)}
    for child in element.children:
        if child.tag == "output":
            outputs.append(_parameter(child, findings))
        elif child.tag in closing:
            closing[child.tag] = read_text(child, findings)
        else:
            outputs.append(syntax.Parameter(child.tag, description=child.all_text, keyed=True, span=child.opening))
    return tuple(outputs), closing["success"], closing["failure"]


def _parameter(element: Element, findings: DirectiveFindings) -> syntax.Parameter:
    attributes = element.attributes
    type = attributes.get("type", "").strip() or "string"
    if type not in PARAMETER_TYPES:
        message = f'values of the type "{shown(type)}" are not checked'
        help = f"types are {', '.join(PARAMETER_TYPES[:6])}"
        span = element.attribute_span(findings.source, "type")
        findings.unknown_word(codes.PARAMETER_TYPE, message, type, PARAMETER_TYPES, span, help)
    return syntax.Parameter(
        name=attributes.get("name", "").strip(),
        type=type,
        required=findings.truth(element, "required"),
        default=attributes.get("default"),
        description=element.all_text,
        span=element.opening,
    )


def _attributes(element: Element, findings: DirectiveFindings) -> syntax.Attributes:
    spans = element.attribute_spans(findings.source)
    return tuple(
        (name, Text(value.strip(), spans.get(name, element.opening))) for name, value in element.attributes.items()
    )


_READERS: Mapping[str, Callable[[Element, DirectiveFindings], object]] = {
    **dict.fromkeys(("description", "category", "author"), read_text),
    **dict.fromkeys(("model", "limits"), read_attributes),
    "cost": read_cost,
    "permissions": lambda element, findings: _PermissionsReader(findings).read(element),
    "context": read_context,
    "hooks": read_hooks,
}
"""Readers of the elements of `<metadata>`, by the names of their fields in the tree."""
METADATA = tuple(_READERS)
ROOT = ("metadata", "inputs", "outputs", "process", "success_criteria", "description")
_ATTRIBUTES = ("name", "version", "extends")


def parse(source: Source, *, limit: int = MAX_DOCUMENT_BYTES) -> syntax.ParseResult:
    """Parse the text of a directive."""
    if source.exceeds(limit):
        findings = DirectiveFindings(source)
        message = f"the file is larger than {limit:,} bytes"
        findings.report(codes.TOO_LARGE, message, NOWHERE, "move texts to knowledge files")
        return syntax.ParseResult(source, Directive(), tuple(findings.diagnostics))
    return syntax.ParseResult(source, *(_open_parsed if is_open_text(source.text) else _parsed)(source.text))


def _parse_text(text: str) -> tuple[Directive, tuple[Diagnostic, ...]]:
    findings = DirectiveFindings(Source("", text))
    directive = Directive()
    _read(directive, findings)
    return directive, tuple(sorted(findings.diagnostics, key=lambda finding: finding.span.start))


_parsed = lru_cache(maxsize=64)(_parse_text)
"""Parses a text. Cached, because a run asks for its directives when they are found, verified, started and driven.
Only the parse is cached: each of these decides anew whether it trusts the text."""
_open_parsed = lru_cache(maxsize=2)(_parse_text)


def _read(directive: Directive, findings: DirectiveFindings) -> None:
    text = findings.source.text
    directive.signature = signature_line(text)
    fence = find_fence(text, "xml")
    if isinstance(fence, Missing):
        directive.preamble = text[len(directive.signature) :].strip()
        _report_missing(fence, findings)
        return
    directive.fence = fence.whole
    directive.preamble = text[len(directive.signature) : fence.whole.start].strip()
    after = text[fence.whole.end :]
    directive.body = after.strip()
    start = fence.whole.end + len(after) - len(after.lstrip())
    directive.body_span = Span(start, start + len(directive.body))
    root, wrong = read_xml(findings.source, fence.content)
    findings.diagnostics += wrong
    if root is None:
        return
    if root.tag != "directive":
        message = f"the root of the XML is <{shown(root.tag)}>, not <directive>"
        findings.report(codes.ROOT, message, root.opening, "the first xml fence of the file holds the directive")
        return
    _RootReader(directive, findings).read(root)


def _report_missing(missing: Missing, findings: DirectiveFindings) -> None:
    near = missing.near or NOWHERE
    line = findings.source.position(near.start).line
    if missing.reason == "unclosed":
        findings.report(codes.UNCLOSED, "the xml fence is never closed", near, "close it with a line of ```")
    elif missing.reason == "hidden":
        message = f"no xml fence outside of the fence that line {line} opens and that is never closed"
        findings.report(codes.NO_FENCE, message, near, "close that fence")
    elif missing.reason == "other":
        message = "no xml fence: this line opens another kind of fence"
        findings.report(codes.NO_FENCE, message, near, "write ```xml at the start of the line, and nothing after it")
    else:
        message = "this file has no xml fence, so it is not a directive"
        help = "put the <directive> element between a line ```xml and a line ```"
        findings.report(codes.NO_FENCE, message, near, help)


class _RootReader:
    def __init__(self, directive: Directive, findings: DirectiveFindings) -> None:
        self._directive = directive
        self._findings = findings

    def read(self, root: Element) -> None:
        directive, findings = self._directive, self._findings
        directive.root = root.opening
        spans = root.attribute_spans(findings.source)
        texts = {
            name: Text(value.strip(), spans.get(name, root.opening))
            for name, value in root.attributes.items()
            if value.strip()
        }
        for name, value in texts.items():
            if name not in _ATTRIBUTES:
                self._unknown_attribute(name, value.span)
        directive.name, directive.version, directive.extends = (texts.get(name) for name in _ATTRIBUTES)
        elements = {child.tag: child for child in reversed(root.children)}
        self._repeated(root.children, elements, (*ROOT[:3], "description"))
        if metadata := elements.get("metadata"):
            self._metadata(metadata)
        if inputs := elements.get("inputs"):
            directive.inputs = read_inputs(inputs, findings)
        if outputs := elements.get("outputs"):
            directive.outputs, success, failure = read_outputs(outputs, findings)
            directive.success, directive.failure = success.text, failure.text
            directive.success_span, directive.failure_span = success.span, failure.span
        if directive.description is None and (description := elements.get("description")):
            directive.description = read_text(description, findings)
        rest = [child for child in root.children if child.tag not in ("metadata", "inputs", "outputs", "description")]
        directive.sections = tuple(self._section(element) for element in rest)
        directive.actions = tuple(action for element in rest for action in read_actions(element))
        if root.own_text:
            message = "text directly in <directive> is not sent to the model"
            findings.report(codes.IGNORED_TEXT, message, root.opening, "instructions go after the fence")

    def _metadata(self, element: Element) -> None:
        directive, findings = self._directive, self._findings
        elements = {child.tag: child for child in reversed(element.children)}
        self._repeated(element.children, elements, METADATA)
        for name, read in _READERS.items():
            if name in elements:
                setattr(directive, name, read(elements[name], findings))
        directive.extras = tuple(self._extra(child) for child in element.children if child.tag not in METADATA)

    def _extra(self, element: Element) -> syntax.Extra:
        findings = self._findings
        meant = findings.suggestions.nearest(element.tag, (*METADATA, "inputs", "outputs"))
        if meant in ("inputs", "outputs"):
            message = f"<{shown(element.tag)}> has no meaning in <metadata>"
            findings.report(codes.STRAY, message, element.opening, f"<{meant}> goes below </metadata>")
        elif meant:
            message = f"<{shown(element.tag)}> is not metadata that has an effect"
            # Only the author grants permissions; a fix must not guess them.
            fix = None if meant == "permissions" else findings.tag_fix(element, METADATA)
            findings.report(codes.STRAY, message, element.opening, did_you_mean(meant, form="<{}>"), fix)
        else:
            message = f"<{shown(element.tag)}> has no effect: it is kept as text"
            findings.report(codes.EXTRA, message, element.opening)
        return syntax.Extra(element.tag, element.own_text, element.raw(findings.source), element.opening)

    def _section(self, element: Element) -> syntax.Section:
        findings = self._findings
        text = readable(element, findings.source)
        if element.tag in METADATA:
            message = f"<{element.tag}> has no effect outside of <metadata>"
            findings.report(codes.STRAY, message, element.opening, "move it into <metadata>")
        elif element.tag not in (*ROOT, *OPAQUE):
            findings.stray(element, "directive", ROOT)
        return syntax.Section(element.tag, element.raw(findings.source), text, element.opening)

    def _repeated(self, children: Iterable[Element], first: dict[str, Element], names: Iterable[str]) -> None:
        for child in children:
            if child.tag in names and first[child.tag] is not child:
                line = self._findings.source.position(first[child.tag].start).line
                message = f"a second <{child.tag}> has no effect"
                self._findings.report(codes.REPEATED, message, child.opening, f"the one on line {line} counts")

    def _unknown_attribute(self, name: str, span: Span) -> None:
        meant = self._findings.suggestions.nearest(name, _ATTRIBUTES)
        help = did_you_mean(meant, "known there: name, version, extends")
        self._findings.report(codes.STRAY, f"the attribute {shown(name)} of <directive> has no effect", span, help)
