"""The names, cases and linked files of a test file, and the rules for new names.

Names of inputs, steps and values belong to the document that is tested, so they follow when they are renamed there. All
features ask the same table for them, so a name that is completed is also shown, found and renamed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from quire.formats.test.fields import HIDDEN
from quire.formats.test.parse import LONGEST_NAME
from quire.formats.yaml.nodes import EXPR, Node, Scalar, Sequence, Style, text_of
from quire.formats.yaml.nodes import Mapping as YamlMapping
from quire.lsp.answers import Index, Link, Name, NameKind, Symbol
from quire.lsp.languages import function
from quire.lsp.name_targets import pipeline_names
from quire.lsp.test.tested import tested
from quire.plan.built_in_tools import RETURN
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.document_view import View


Role: TypeAlias = Literal[
    "input", "model step", "person step", "step", "tool", "argument", "named", "store", "output", "hook", "limit",
    "config", "case", "document", "file", "rows", "rubric", "grant", "tag", "answer", "input value", "made value",
]  # fmt: skip

ITEM = "-"
_ANY = "*"
_WORLDS: Final = (("cases", ITEM), ("defaults",))

_KEYS: Final[dict[tuple[str, ...], Role]] = {
    ("inputs",): "input",
    ("model",): "model step",
    ("tools",): "tool",
    ("answers",): "person step",
    ("answer",): "person step",
    ("limits",): "limit",
    ("config",): "config",
    ("resume", "set"): "input",
    ("fork", "set"): "input",
    ("expect", "steps"): "step",
    ("expect", "prompts"): "model step",
    ("expect", "asked"): "person step",
    ("expect", "calls"): "tool",
    ("expect", "named"): "named",
    ("expect", "stores"): "store",
    ("expect", "outputs"): "output",
    ("expect", "hooks"): "hook",
}
"""The mappings whose keys are names, by their path below a case, an act or the defaults."""

_VALUES: Final[dict[tuple[str, ...], Role]] = {
    ("name",): "case",
    ("model", ITEM, "step"): "model step",
    ("fork", "from"): "step",
    ("allow", ITEM): "grant",
    ("tags", ITEM): "tag",
    ("each",): "rows",
    ("cassette",): "file",
    ("live", "judge"): "rubric",
    ("live", "judge", "rubric"): "rubric",
    ("files", _ANY, "file"): "file",
    ("edit", _ANY, "file"): "file",
    ("inputs", _ANY): "input value",
    ("answers", _ANY): "answer",
    ("answers", _ANY, ITEM): "answer",
    ("answers", _ANY, "answer"): "answer",
    ("answer", _ANY): "answer",
    ("answer", _ANY, "answer"): "answer",
    ("expect", "named", _ANY): "made value",
    ("expect", "stores", _ANY): "made value",
    ("expect", "outputs", _ANY): "made value",
}
"""The values that are names, by their path."""


def below_world(path: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return a path as it is below a case, an act or the defaults; None if it is outside of them."""
    for world in _WORLDS:
        if path[: len(world)] == world:
            rest = path[len(world) :]
            return rest[2:] if rest[:2] == ("then", ITEM) else rest
    return None


def key_role(path: tuple[str, ...]) -> Role | None:
    """Return the kind of thing that the keys of the mapping at a path mean; None for keys of the format."""
    below = below_world(path)
    if below is None:
        return None
    if below[-2:] == ("tool_calls", ITEM) or not below:
        return None
    if (below[-1] == "input" and "tool_calls" in below) or (below[-1] == "args" and "when" in below):
        return "argument"
    return _KEYS.get(below)


def value_role(path: tuple[str, ...]) -> Role | None:
    """Return the kind of thing that the value at a path means; None for a plain value."""
    if path == ("document",):
        return "document"
    below = below_world(path)
    if not below:
        return None
    if below[-3:] == ("tool_calls", ITEM, "name"):
        return "tool"
    if below in _VALUES:
        return _VALUES[below]
    return next(
        (
            role
            for pattern, role in _VALUES.items()
            if (
                len(pattern) == len(below)
                and all(part in (_ANY, other) for part, other in zip(pattern, below, strict=True))
            )
        ),
        None,
    )


_KINDS: Final[dict[Role, NameKind]] = {
    "input": "input",
    "model step": "step",
    "person step": "step",
    "step": "step",
    "named": "output",
    "store": "store",
    "output": "output",
    "hook": "hook",
}
"""The kinds of names that belong to the document of the test."""
_FILES: Final = frozenset({"rows", "file", "rubric"})
_READ = re.compile(r"\b(inputs|named|stores|outputs)\.([A-Za-z_][A-Za-z0-9_]*)")
_READ_ROLES: Final[dict[str, Role]] = {"inputs": "input", "named": "named", "stores": "store", "outputs": "output"}
_CASE_NAME = re.compile(r"^[ \t]*-[ \t]+name:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_DEFAULT = "default"
"""The key of `model` that is not a step."""


def index(view: View) -> Index:
    """Return the names of a test file. In a text that is not YAML only the cases are found."""
    tree = view.reading.tree
    if not isinstance(tree, YamlMapping):
        return Index(symbols=tuple(_cases_by_lines(view.source.text)))
    walk = _Walk(view)
    walk.node(tree, ())
    return Index(tuple(walk.names), tuple(walk.symbols), tuple(walk.links))


class _Walk:
    """Collects names along the tree."""

    def __init__(self, view: View) -> None:
        self._text = view.source.text
        self._folder = Path(view.path).parent
        self._tested = tested(view)
        self.names: list[Name] = []
        self.symbols: list[Symbol] = []
        self.links: list[Link] = []
        self._path = self._tested.path
        document = self._tested.document
        self._scope = document.declared if document and document.declared != document.id else ""
        """The pipeline that is tested, in a file of several."""

    def node(self, node: Node, path: tuple[str, ...]) -> None:
        if isinstance(node, YamlMapping):
            self._mapping(node, path)
        elif isinstance(node, Sequence):
            for item in node.items:
                self.node(item, (*path, ITEM))
                if path == ("cases",) and isinstance(item, YamlMapping):
                    self._case(item)
        else:
            self._scalar(node, path)

    def _mapping(self, node: YamlMapping, path: tuple[str, ...]) -> None:
        role = key_role(path)
        if path[-2:] == ("tool_calls", ITEM):
            self._returned(node)
        for entry in node.entries:
            key = entry.key.text
            if role is not None and not (path[-1] == "model" and key == _DEFAULT):
                self._name(role, key, entry.key)
            self.node(entry.value, (*path, key))

    def _returned(self, call: YamlMapping) -> None:
        """Add the outputs that a scripted model returns from a directive."""
        outputs = call.get("input")
        if text_of(call.get("name")) == RETURN and isinstance(outputs, YamlMapping):
            for entry in outputs.entries:
                self._name("output", entry.key.text, entry.key)

    def _scalar(self, node: Scalar, path: tuple[str, ...]) -> None:
        if node.tag == EXPR:
            self._expression(node)
            return
        role = value_role(path)
        if role is None or node.tag or not node.text:
            return
        if role == "document":
            self._document(node)
        elif role in _FILES:
            self._file(node)
        else:
            self._name(role, node.text, node)

    def _name(self, role: Role, text: str, node: Scalar) -> None:
        span = inner_span(self._text, node)
        if role == "case":
            self.names.append(Name("case", text, span, "declares", renames=_is_verbatim(self._text, span, text)))
        elif role == "tool":
            self.names.append(Name("tool", text, span, "reads", renames=False))
        elif (kind := self._kind(role, text)) is not None and self._path:
            if kind == "step":  # the first label of a way to a step of a callee (`2>1`) is the document's own
                text = re.split("[>›]", text, maxsplit=1)[0].rstrip()
                span = Span(span.start, span.start + len(text))
            verbatim = _is_verbatim(self._text, span, text)
            self.names.append(Name(kind, text, span, "reads", self._scope, self._path, verbatim))

    def _kind(self, role: Role, text: str) -> NameKind | None:
        """Return the kind of a name. Inputs are among the values of a run, and win over others of their name."""
        if role in ("named", "store") and text in self._tested.inputs:
            return "input"
        return _KINDS.get(role)

    def _expression(self, node: Scalar) -> None:
        """Add the inputs and values that an expression reads."""
        if not self._path:
            return
        for match in _READ.finditer(self._text, node.body.start, node.body.end):
            kind = self._kind(_READ_ROLES[match[1]], match[2])
            if kind is not None:
                self.names.append(Name(kind, match[2], Span(*match.span(2)), "reads", self._scope, self._path))

    def _document(self, node: Scalar) -> None:
        path = self._path
        if not path:
            return
        span = inner_span(self._text, node)
        document = self._tested.document
        if document is not None and document.declared and document.id == node.text:
            verbatim = _is_verbatim(self._text, span, node.text)
            self.names += pipeline_names(node.text, span, document.declared, path, renames=verbatim)
        else:
            self.names.append(Name("document", node.text, span, "reads", self._scope, path, renames=False))
        self.links.append(Link(span, path, "the document that is tested"))

    def _file(self, node: Scalar) -> None:
        path = os.path.abspath(self._folder / node.text)  # noqa: PTH100
        if isinstance(node.value, str) and os.path.isfile(path):  # noqa: PTH113
            span = inner_span(self._text, node)
            self.names.append(Name("file", node.text, span, "reads", document=path, renames=False))
            self.links.append(Link(span, path))

    def _case(self, node: YamlMapping) -> None:
        named = node.get("name")
        name = named.text if isinstance(named, Scalar) else ""
        selection = inner_span(self._text, named) if isinstance(named, Scalar) else node.span
        tags = node.get("tags")
        words = [item.text for item in tags.items if isinstance(item, Scalar)] if isinstance(tags, Sequence) else []
        acts = node.get("then")
        children = tuple(
            Symbol(f"then {item.entries[0].key.text}", "step", item.span, item.entries[0].key.span)
            for item in (acts.items if isinstance(acts, Sequence) else ())
            if isinstance(item, YamlMapping) and item.entries
        )
        whole = Span(min(node.span.start, selection.start), max(node.span.end, selection.end))
        self.symbols.append(Symbol(name, "case", whole, selection, ", ".join(words), children))


def inner_span(text: str, node: Scalar) -> Span:
    """Return the place of a scalar without its quotes."""
    body = node.body if node.body.start < node.body.end else node.span
    if node.style in (Style.SINGLE, Style.DOUBLE) and body.end - body.start >= 2:
        return Span(body.start + 1, body.end - 1)
    return body


def _is_verbatim(text: str, span: Span, name: str) -> bool:
    """Tell whether the characters at a place are the name itself, without escapes."""
    return span.of(text) == name


def _cases_by_lines(text: str) -> Iterator[Symbol]:
    """Yield the cases of a text that is not YAML, by the lines with their names."""
    matches = list(_CASE_NAME.finditer(text))
    for at, match in enumerate(matches):
        end = matches[at + 1].start() if at + 1 < len(matches) else len(text)
        yield Symbol(match[1].strip("\"'"), "case", Span(match.start(), end), Span(*match.span(1)))


def name_problem(view: View, name: Name, new: str) -> str:
    """Return why a name must not become another one; empty if it may. A name of the document is judged by the rules of
    the document, and has to exist."""
    if name.kind == "case":
        if not new.strip() or len(new) > LONGEST_NAME or HIDDEN.search(new):
            return f"the name of a case is one line of at most {LONGEST_NAME} characters"
        if _needs_quotes(view, name, new):
            return f"{new} needs quotes in YAML here: put the name in quotes first"
        others = {other.text for other in view.index.names if other.kind == "case" and other.text != name.text}
        return f"there is a case {new} already" if new in others else ""
    if not name.document:
        return ""
    document = view.folder.view(name.document)
    if document is None:
        return "the document of the test cannot be read"
    key = name.kind, name.text, name.scope
    declared = next((one for one in document.index.names if (one.kind, one.text, one.scope) == key), None)
    if declared is None:
        return f"{Path(name.document).name} has no {name.kind} {name.text}"
    if not declared.renames:
        return f"{name.text} cannot be renamed: it follows from the order of the steps"
    judge = function(document.format, "naming", "name_problem")
    return str(judge(document, declared, new) or "") if judge else ""


def _needs_quotes(view: View, name: Name, new: str) -> bool:
    """Tell whether a new name cannot stand where the old one stands without quotes."""
    before = view.source.text[name.span.start - 1 : name.span.start]
    if before in ("'", '"'):
        return before in new or "\\" in new
    return new[0] in "!&*-?{}[],#|>@`\"'%" or ": " in new or " #" in new or new.endswith(":") or new != new.strip()
