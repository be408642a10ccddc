"""Offer changes in a directive: allow a finding, grant, narrow, acknowledge, declare, write a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from quire.diagnostics import Edit, Severity
from quire.formats.directive import codes as all_codes
from quire.lsp.answers import Action, change, insertion
from quire.lsp.directive.grants import calls_of_view, permissions, tier
from quire.lsp.directive.item_words import id_of
from quire.lsp.directive.tags import scan
from quire.lsp.document_tests import test_action
from quire.plan.templates import references
from quire.source import Span, line_start
from quire.testing.discovery import own_test

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.formats.directive.item_references import Call
    from quire.lsp.directive.tags import Scan, Tagged
    from quire.lsp.document_view import View

_STEP = "  "


def indent_of(text: str, offset: int) -> str:
    """Return the white space at the start of the line of an offset."""
    start = line_start(text, offset)
    line = text[start:offset]
    return line[: len(line) - len(line.lstrip())] if line.strip() else line


def begins_line(text: str, offset: int) -> bool:
    return not text[line_start(text, offset) : offset].strip()


def with_child(text: str, parent: Tagged, *children: str) -> Edit | None:
    """Return the edit that puts elements at the end of another one; None if that is not whole."""
    indent = indent_of(text, parent.start)
    inner = "".join(f"{indent}{_STEP}{line}\n" for child in children for line in child.split("\n"))
    if parent.empty:
        start = parent.start
        old = text[start : parent.end]
        opening = old[:-2].rstrip() + ">"
        return Edit(Span(start, parent.end), old, f"{opening}\n{inner}{indent}</{parent.tag}>")
    if parent.closing is None:
        return None
    at = parent.inner_end
    if begins_line(text, at):
        line = line_start(text, at)
        return insertion(line, inner)
    return insertion(at, f"\n{inner}{indent}")


def with_grant(text: str, scanned: Scan, primary: str, element: str) -> Edit | None:
    """Return the edit that adds a permission; the elements around it are made if they are missing."""
    permissions = scanned.below("metadata", "permissions")
    if permissions is None:
        metadata = scanned.below("metadata")
        block = f"<permissions>\n{_STEP}<{primary}>\n{_STEP * 2}{element}\n{_STEP}</{primary}>\n</permissions>"
        return with_child(text, metadata, block) if metadata else None
    above = permissions.child(primary)
    if above is None or not above.finished:
        return with_child(text, permissions, f"<{primary}>\n{_STEP}{element}\n</{primary}>")
    return with_child(text, above, element)


def replaced(text: str, tag: Tagged, elements: Sequence[str]) -> Edit:
    """Return the edit that replaces an element with others; without any, its line is taken away."""
    if elements:
        indent = indent_of(text, tag.start)
        return Edit(tag.span, tag.span.of(text), f"\n{indent}".join(elements))
    start, end = tag.start, tag.end
    if begins_line(text, start):
        start = line_start(text, start)
        rest = text.find("\n", end)
        end = rest + 1 if rest >= 0 and not text[end:rest].strip() else end
    return Edit(Span(start, end), text[start:end], "")


COMMENTED = ("directive", "metadata", "inputs", "outputs", "hooks", "context", "cost")
"""Elements in which the format skips comments."""
_REASON = "say why"


def actions(view: View, span: Span, findings: Sequence[Diagnostic]) -> list[Action]:
    return list(dict.fromkeys(_Actions(view, span, findings).all()))


class _Actions:
    def __init__(self, view: View, span: Span, findings: Sequence[Diagnostic]) -> None:
        self._view = view
        self._text = view.source.text
        self._span = span
        self._findings = findings
        self._scan = scan(self._text)

    def all(self) -> Iterator[Action]:
        for finding in self._findings:
            yield from self._for_finding(finding)
        for pattern, span, tag in permissions(self._view):
            if span.meets(self._span):
                yield from self._acknowledge(pattern)
                if "*" in pattern and tag.tag != "permissions":
                    yield from self._narrow(pattern, tag)
        yield from self._tests()
        for finding in self._findings:
            yield from self._allow(finding)

    def _for_finding(self, finding: Diagnostic) -> Iterator[Action]:
        match finding.code:
            case all_codes.UNGRANTED:
                yield from self._grant(finding)
            case all_codes.LEAST_PRIVILEGE:
                tags = (tag for _, span, tag in permissions(self._view) if span.holds(finding.span.start))
                if (tag := next(tags, None)) is not None:
                    yield self._one("Remove the permission that no step uses", replaced(self._text, tag, ()), finding)
            case all_codes.UNKNOWN_INPUT:
                yield from self._declare(finding)
            case all_codes.UNSIGNABLE:
                yield from self._missing(finding)
            case all_codes.MISPLACED:
                yield from self._move_name(finding)
            case all_codes.NO_MODEL:
                metadata = self._scan.below("metadata")
                if metadata and (edit := with_child(self._text, metadata, '<model tier="low" />')):
                    yield self._one("Ask for a small model", edit, finding)

    # Permissions

    def _grant(self, finding: Diagnostic) -> Iterator[Action]:
        call = next((call for call in calls_of_view(self._view) if call.span == finding.span), None)
        element = _element_for(call) if call else ""
        if call is None or not element:
            return
        edit = with_grant(self._text, self._scan, call.primary, element)
        if edit is not None:
            yield self._one(f"Grant {element} in <{call.primary}>", edit, finding)

    def _acknowledge(self, pattern: str) -> Iterator[Action]:
        risk = tier(self._view, pattern)
        block = self._scan.below("metadata", "permissions")
        if block is None or risk is None or risk.value not in ("elevated", "unrestricted"):
            return
        if any(child.tag == "acknowledge" and child.value("risk") == risk.value for child in block.children):
            return
        edit = with_child(self._text, block, f'<acknowledge risk="{risk.value}">{_REASON}</acknowledge>')
        if edit is not None:
            codes = [finding for finding in self._findings if finding.code is all_codes.UNACKNOWLEDGED]
            yield self._one(f"Acknowledge that it is {risk.value}", edit, *codes)

    def _narrow(self, pattern: str, tag: Tagged) -> Iterator[Action]:
        """Offer the items that the calls name in place of a wildcard. A call whose item is not known keeps it."""
        calls = [call for call in calls_of_view(self._view) if call.covered_by(pattern) and not call.always_allowed]
        needed = dict.fromkeys(_element_for(call) for call in calls)
        if not calls or any(call.open for call in calls) or "" in needed:
            return
        elements = list(needed)
        if tag.parent is None or tag.parent.tag == "permissions":
            return
        shown = ", ".join(elements[:3]) + (" …" if len(elements) > 3 else "")
        title = f"Narrow to what the steps use: {shown}"
        yield change(self._view.path, title, replaced(self._text, tag, elements), kind="refactor.rewrite")

    # Inputs and fields

    def _declare(self, finding: Diagnostic) -> Iterator[Action]:
        written = finding.span.of(self._text)
        name = next((reference.name for reference in references(written)), "")
        root = self._scan.root
        if not name or root is None:
            return
        element = f'<input name="{name}" type="string" required="true"></input>'
        inputs = root.child("inputs")
        parent, child = (inputs, element) if inputs else (root, f"<inputs>\n  {element}\n</inputs>")
        if (edit := with_child(self._text, parent, child)) is not None:
            yield self._one(f"Declare the input {name}", edit, finding)

    def _missing(self, finding: Diagnostic) -> Iterator[Action]:
        from quire.formats.directive.validate import missing_fields

        metadata, root = self._scan.below("metadata"), self._scan.root
        missing = missing_fields(self._view.reading.partial)
        texts = {
            "description": f"<description>{_REASON.replace('why', 'what it does')}</description>",
            "category": f"<category>{id_of(self._view.path).rpartition('/')[0]}</category>",
            "author": "<author>who to ask</author>",
        }
        if root is None:
            return
        edits = [self._version(root)] if "version" in missing else []
        children = []
        for name, text in texts.items():
            child = metadata.child(name) if metadata is not None else None
            if name in missing and child is not None:
                edits.append(replaced(self._text, child, (text,)))
            elif name in missing:
                children.append(text)
        if children and metadata is not None:
            edits.append(with_child(self._text, metadata, *children))
        elif children and not root.empty:
            inner = "\n".join(f"  {child}" for child in children)
            edits.append(with_child(self._text, root, f"<metadata>\n{inner}\n</metadata>"))
        if written := [edit for edit in edits if edit is not None]:
            title = "Add the fields that signing requires"
            yield change(self._view.path, title, *written, codes=(finding.code.id,))

    def _version(self, root: Tagged) -> Edit | None:
        """Return the edit that gives the directive its first version."""
        written = next((attribute for attribute in root.attributes if attribute.name == "version"), None)
        if written is not None:
            old = written.value_span.of(self._text)
            return Edit(written.value_span, old, "1.0.0") if written.quoted else None
        named = next(
            (attribute for attribute in root.attributes if attribute.name == "name" and attribute.quoted), None
        )
        at = named.value_span.end + 1 if named is not None else root.name_span.end
        return insertion(at, ' version="1.0.0"')

    def _move_name(self, finding: Diagnostic) -> Iterator[Action]:
        """Offer the name of the file, or its folder, where the directive says another."""
        own = id_of(self._view.path)
        directive = self._view.reading.partial
        if directive.name is not None and directive.name.span == finding.span:
            new = PurePath(own).name
        elif directive.category is not None and directive.category.span == finding.span:
            new = own.rpartition("/")[0]
        else:
            return
        old = finding.span.of(self._text)
        title = f"Write {new or 'no category'}, as the place of the file is"
        yield self._one(title, Edit(finding.span, old, new), finding)

    # Tests and comments

    def _tests(self) -> Iterator[Action]:
        root = self._scan.root
        at_head = self._span.start <= (root.inner_start if root else 0)
        if not at_head or root is None or self._view.folder.view(own_test(self._view.path)) is not None:
            return
        action = test_action(self._view, "", "Write a test for this directive")
        if action is not None:
            yield action

    def _allow(self, finding: Diagnostic) -> Iterator[Action]:
        """Offer the comment that hides a finding, at the nearest place where the format skips comments."""
        if finding.severity is Severity.ERROR or finding.code.id.startswith("AL") or self._scan.opening is None:
            return
        comment = f'<!-- quire: allow {finding.code.id} because "{_REASON}" -->'
        at, indent = self._scan.opening.start, ""
        tag = self._scan.at(finding.span.start) if self._scan.holds(finding.span.start) else None
        while tag is not None:
            above = tag.parent.tag if tag.parent else ""
            if (
                (not above or above in COMMENTED)
                and not tag.inside("permissions")
                and begins_line(self._text, tag.start)
            ):
                indent = indent_of(self._text, tag.start)
                at = tag.start - len(indent)
                break
            tag = tag.parent
        yield self._one(f"Allow {finding.code.id} because …", insertion(at, f"{indent}{comment}\n"), finding)

    def _one(self, title: str, edit: Edit, *findings: Diagnostic) -> Action:
        return change(self._view.path, title, edit, codes=tuple(finding.code.id for finding in findings))


def _element_for(call: Call) -> str:
    """Return the element that grants a call; empty if its capability is not spelled out."""
    parts = call.needs.split(".", 3)
    if len(parts) < 3:
        return ""
    pattern = parts[3] if len(parts) == 4 else "*"
    if parts[2] != "tool":
        pattern = pattern.replace(".", "/")
    return f"<{parts[2]}>{pattern}</{parts[2]}>"
