"""Changes that a test file offers: names that were meant, missing inputs and replies, values of the last run, and cases
for arms that no case takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.diagnostics import Edit
from quire.formats.yaml.nodes import Entry, Mapping, Node, Scalar
from quire.formats.yaml.nodes import Sequence as YamlSequence
from quire.lsp.answers import Action, change, insertion
from quire.lsp.test.completion import names_at
from quire.lsp.test.cursor_places import place_at
from quire.lsp.test.index import key_role, value_role
from quire.lsp.test.tested import TestedDocument, tested
from quire.source import Span, line_end, line_start
from quire.values import encode
from quire.wording import nearest

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.lsp.document_view import View

_NAMES = ("TS005", "TS006", "TS007", "TS014")
"""Codes of names that the document does not have."""
_TODO = "TODO"


def actions(view: View, span: Span, findings: Sequence[Diagnostic]) -> list[Action]:
    """Return the changes that are offered at a place."""
    actions = [*_meant_names(view, findings), *_seen_values(view, span)]
    tree = view.reading.tree
    cases = tree.get("cases") if isinstance(tree, Mapping) else None
    items = cases.items if isinstance(cases, YamlSequence) else ()
    case = next((item for item in items if isinstance(item, Mapping) and item.span.meets(span)), None)
    if case is not None:
        document = tested(view)
        missing = _missing_inputs(view, document, tree, case), _missing_replies(view, document, tree, case)
        actions += filter(None, missing)
    return [*actions, *_missing_cases(view, tree)]


def _meant_names(view: View, findings: Sequence[Diagnostic]) -> Iterator[Action]:
    """Yield the nearest name of the document for each one that it does not have."""
    text = view.source.text
    for finding in findings:
        if finding.code.id not in _NAMES:
            continue
        place = place_at(text, finding.span.start + 1, whole=True)
        role = value_role(place.path) if place.kind == "value" else key_role(place.path)
        word = place.word.of(text)
        meant = nearest(word, names_at(view, role, place)) if role is not None and word else None
        if meant is not None:
            edit, codes = Edit(place.word, word, meant), (finding.code.id,)
            yield replace(change(view.path, f"Replace {word} with {meant}", edit, codes=codes), preferred=True)


def _seen_values(view: View, span: Span) -> Iterator[Action]:
    """Yield the value that the last run gave, for an expectation that did not hold."""
    record = view.folder.test_memory.of_test(view)
    for case in record.cases if record else ():
        for mark in case.marks:
            if not mark.literal or mark.start > span.end or span.start > mark.end:
                continue
            entry = _entry_at(view.reading.tree, mark.start)
            if entry is not None and isinstance(entry.value, Scalar) and not entry.value.tag:
                place = entry.value.body
                old = place.of(view.source.text)
                if "\n" not in old and old:
                    yield change(view.path, "Expect what the last run gave", Edit(place, old, mark.literal))


def _missing_inputs(view: View, document: TestedDocument, tree: Mapping, case: Mapping) -> Action | None:
    """Return the change that adds the inputs without which a run of the case does not start."""
    present = {name for node in _settings(tree, case, "inputs") for name in _keys(node)}
    missing = [name for name in document.required if name not in present]
    if not missing or case.get("each") is not None or case.get("matrix") is not None:
        return None
    pairs = [f'{_key(name)}: "{_TODO}: {name}"' for name in missing]
    edit = _added(view.source.text, case, "inputs", pairs)
    title = f"Add the missing {'input' if len(missing) == 1 else 'inputs'} {', '.join(missing)}"
    return change(view.path, title, edit, kind="refactor.rewrite") if edit else None


def _missing_replies(view: View, document: TestedDocument, tree: Mapping, case: Mapping) -> Action | None:
    """Return the change that adds placeholders for the replies and the answers that a case does not script."""
    if document.steps is None or document.steps.plan.thread:
        return None
    text = view.source.text
    replies = _unscripted(document, tree, case)
    answers = _unanswered(document, tree, case)
    replied = [f'{_key(label)}: "{_TODO}: a reply to step {label}"' for label in replies]
    first = {label: next(iter(document.answers(label)), f"{_TODO}: an answer to step {label}") for label in answers}
    answered = [f"{_key(label)}: {encode(answer)}" for label, answer in first.items()]
    edits: dict[str, Edit] = {}
    if replied and (edit := _added(text, case, "model", replied)):
        edits[f"replies for {_steps(replies)}"] = edit
    if answered and (edit := _added(text, case, "answers", answered)):
        edits[f"answers for {_steps(answers)}"] = edit
    title = f"Add {' and '.join(edits)}"
    return change(view.path, title, *edits.values(), kind="refactor.rewrite") if edits else None


def _unscripted(document: TestedDocument, tree: Mapping, case: Mapping) -> list[str]:
    """Return the steps that ask a model and have no reply in a case."""
    scripts = _settings(tree, case, "model")
    if any(isinstance(script, YamlSequence) for script in scripts) or case.get("cassette") is not None:
        return []
    present = {name for script in scripts for name in _keys(script)}
    return [] if "default" in present else _own(document.labels("model step"), present)


def _unanswered(document: TestedDocument, tree: Mapping, case: Mapping) -> list[str]:
    """Return the steps that certainly ask a person and have no answer in a case. Acts may answer later, and a case
    without a person takes the defaults."""
    alone = any(isinstance(node, Scalar) and node.value is True for node in _settings(tree, case, "unattended"))
    if alone or case.get("then") is not None:
        return []
    present = {name for node in _settings(tree, case, "answers") for name in _keys(node)}
    return [label for label in _own(document.labels("person step"), present) if document.asks(label)]


def _settings(tree: Mapping, case: Mapping, key: str) -> list[Node | None]:
    """Return a setting of a case and of the defaults."""
    defaults = tree.get("defaults")
    return [case.get(key), defaults.get(key) if isinstance(defaults, Mapping) else None]


def _own(labels: list[str], present: set[str]) -> list[str]:
    """Return the labels of the document's own steps that are missing."""
    return [label for label in labels if label not in present and ">" not in label and "›" not in label]


def _steps(labels: list[str]) -> str:
    return f"step {labels[0]}" if len(labels) == 1 else f"steps {', '.join(labels)}"


def _missing_cases(view: View, tree: Node | None) -> Iterator[Action]:
    """Yield the cases that the last run of the whole file has found missing."""
    record = view.folder.test_memory.of_test(view)
    cases = tree.get("cases") if isinstance(tree, Mapping) else None
    if record is None or not isinstance(cases, YamlSequence) or not cases.items:
        return
    text = view.source.text
    last = cases.items[-1]
    first = cases.items[0].span.start
    line = line_start(text, first)
    mark = text.rfind("-", line, first)
    if mark < 0 or text[line:mark].strip():
        return
    end = text.find("\n", max(last.span.start, last.span.end - 1))
    at, begin = (len(text), "\n") if end < 0 else (end + 1, "")
    for draft in record.drafts:
        lines = "".join(text[line:mark] + row[2:] + "\n" for row in draft.text.splitlines())
        edit = insertion(at, begin + lines)
        yield change(view.path, f"Add a case: {draft.name}", edit, kind="refactor.rewrite")


def _added(text: str, case: Mapping, key: str, pairs: list[str]) -> Edit | None:
    """Return the edit that adds pairs to a mapping of a case, or the mapping itself behind the case's name."""
    entry = case.find(key)
    named = case.find("name")
    column = _column(text, case)
    if entry is None:
        if named is None or column is None:
            return None
        at = line_end(text, named.value.span.end)
        return insertion(at, f"\n{' ' * column}{key}: {{{', '.join(pairs)}}}")
    node = entry.value
    if not isinstance(node, Mapping) or not node.entries:
        return None
    last = node.entries[-1].value.span.end
    if text[node.span.start] == "{":
        return insertion(last, "".join(f", {pair}" for pair in pairs))
    first = node.entries[0].key.span.start
    indent = first - line_start(text, first)
    return insertion(first, "".join(f"{pair}\n{' ' * indent}" for pair in pairs))


def _column(text: str, case: Mapping) -> int | None:
    """Return the column of the keys of a case; None if it is written in braces."""
    start = case.entries[0].key.span.start if case.entries else case.span.start
    return None if text[case.span.start] == "{" else start - line_start(text, start)


def _entry_at(node: Node | None, offset: int) -> Entry | None:
    """Return the entry whose key begins at an offset."""
    if isinstance(node, YamlSequence):
        return next((entry_there for item in node.items if (entry_there := _entry_at(item, offset))), None)
    for entry in node.entries if isinstance(node, Mapping) else ():
        if entry.key.span.start == offset:
            return entry
        if entry.key.span.start < offset and (entry_there := _entry_at(entry.value, offset)) is not None:
            return entry_there
    return None


def _keys(node: Node | None) -> list[str]:
    return [entry.key.text for entry in node.entries] if isinstance(node, Mapping) else []


def _key(name: str) -> str:
    return name if name.isidentifier() else f'"{name}"'
