"""Read a project's file of hooks, with positions: `hooks:` and a list, in the words of a directive's `<hook>`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.formats import yaml
from quire.plan.templates import as_text
from quire.plan.thread import Hook, HookAction
from quire.plan.vocabulary import OPERATORS, POSITIONS, PRIMARIES, SENT_EVENTS, judges
from quire.safe_regex import compiled
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.source import Source
    from quire.values import Value


class HooksFile:
    """Reads one file and keeps all problems with their positions."""

    _KEYS = ("id", "event", "condition", "action", "actions", "position", "description", "layer", "wrap")
    _ACTION_KEYS = ("primary", "item_type", "item_id", "params", "parameters")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._problems: list[tuple[int, str]] = []
        self._remarks: list[tuple[int, str]] = []
        self.loses_a_gate = False
        """True if a hook is left out that would judge outputs, or whose event is not known."""

    def read(self) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
        """Return the valid hooks, and all problems and remarks as lines of text."""
        reading = yaml.read_yaml(self._source)
        self._note(reading.diagnostics)
        hooks: list[Hook] = []
        # A part that could not be read appears as null, so no hook of such a file may be used.
        self.loses_a_gate = bool(self._problems)
        for node in () if self._problems else self._entries(reading.documents):
            before = len(self._problems)
            hook = self._hook(node)
            if hook is not None and len(self._problems) == before:
                hooks.append(hook)
            elif hook is None or judges(hook.event) or hook.event not in SENT_EVENTS:
                self.loses_a_gate = True
        place = self._source.position
        lines = ((place(at), what) for at, what in sorted([*self._problems, *self._remarks]))
        return tuple(hooks), tuple(f"{self._source.name}:{at.line}:{at.column}: {what}" for at, what in lines)

    def _entries(self, documents: Sequence[yaml.Node]) -> Sequence[yaml.Node]:
        if not documents:
            return ()
        if len(documents) > 1:
            self._wrong(documents[1], "a second document; one file holds one list of hooks")
        top: yaml.Node | None = documents[0]
        if isinstance(top, yaml.Mapping):
            self._known(top, ("hooks",))
            top = top.get("hooks")
        if isinstance(top, yaml.Sequence):
            return top.items
        if top is not None and not (isinstance(top, yaml.Scalar) and top.value is None):
            self._wrong(top, f"expected `hooks:` and a list, not {yaml.describe(top)}")
        return ()

    def _hook(self, node: yaml.Node) -> Hook | None:
        if not isinstance(node, yaml.Mapping):
            self._wrong(node, f"a hook is a mapping, not {yaml.describe(node)}")
            return None
        self._known(node, self._KEYS)
        event = self._text(node, "event", SENT_EVENTS, required=True)
        position = self._text(node, "position", POSITIONS) or "before"
        condition: Mapping[str, Value] = {}
        written = node.get("condition")
        if written is not None:
            value = self._literal(written)
            if isinstance(value, Mapping):
                condition = value
            elif value is not None:
                self._wrong(written, f"a condition is a mapping, not {yaml.describe(written)}")
            for problem in condition_problems(condition):
                self._wrong(written, problem)
            self._remarks += ((written.span.start, remark) for remark in condition_remarks(condition))
        actions = tuple(self._actions(node))
        name = self._text(node, "id")
        return Hook(name, event, condition, actions, position, self._source.name, node.span)

    def _actions(self, hook: yaml.Mapping) -> list[HookAction]:
        nodes: list[yaml.Node] = []
        for key in ("action", "actions"):
            written = hook.get(key)
            if written is not None:
                nodes += written.items if isinstance(written, yaml.Sequence) else [written]
        if not nodes:
            self._wrong(hook, "the hook has no action")
        return [action for action in map(self._action, nodes) if action is not None]

    def _action(self, node: yaml.Node) -> HookAction | None:
        if not isinstance(node, yaml.Mapping):
            self._wrong(node, f"an action is a mapping, not {yaml.describe(node)}")
            return None
        self._known(node, self._ACTION_KEYS)
        primary = self._text(node, "primary", PRIMARIES) or "execute"
        item_type = self._text(node, "item_type") or "tool"
        item_id = self._text(node, "item_id", required=True)
        parameters: list[tuple[str, Value]] = []
        for key in ("params", "parameters"):
            written = node.get(key)
            value = None if written is None else self._literal(written)
            if isinstance(value, Mapping):
                parameters += value.items()
            elif written is not None and value is not None:
                self._wrong(written, f"{key} is a mapping, not {yaml.describe(written)}")
        return HookAction(primary, item_type, item_id, tuple(parameters))

    def _text(self, node: yaml.Mapping, key: str, choices: Sequence[str] = (), *, required: bool = False) -> str:
        written = node.get(key)
        if written is None:
            if required:
                self._wrong(node, f"{key} is missing")
            return ""
        text = yaml.text_of(written)
        if text is None or not text.strip():
            self._wrong(written, f"{key} must be text, not {yaml.describe(written)}")
            return ""
        if choices and text not in choices:
            self._wrong(written, f"{key} {text} is not known: {_hint(text, choices)}")
        return text

    def _known(self, node: yaml.Mapping, keys: Sequence[str]) -> None:
        for entry in node.entries:
            name = yaml.label_of(entry.key)
            if name not in keys:
                self._wrong(entry.key, f"the key {name} is not known: {_hint(name, keys)}")

    def _literal(self, node: yaml.Node) -> Value:
        findings: list[Diagnostic] = []
        value = yaml.literal(node, findings)
        self._note(findings)
        return value

    def _note(self, findings: Iterable[Diagnostic]) -> None:
        self._problems += ((finding.span.start, finding.message) for finding in findings)

    def _wrong(self, node: yaml.Node, problem: str) -> None:
        self._problems.append((node.span.start, problem))


def condition_problems(condition: Value) -> list[str]:
    """Return what is wrong with a condition, in the form in which it was read from a file."""
    if not isinstance(condition, Mapping):
        return ["a condition must be a mapping"]
    problems: list[str] = []
    for name, value in condition.items():
        match name:
            case "any" | "all" if isinstance(value, list | tuple):
                problems += [problem for part in value for problem in condition_problems(part)]
            case "any" | "all":
                problems.append(f"{name} must be a list of conditions")
            case "not":
                problems += condition_problems(value)
            case "path" if not isinstance(value, str):
                problems.append("path must be text")
            case "op" if not isinstance(value, str) or value not in OPERATORS:
                problems.append(f"the operator {as_text(value)} is not known: {_hint(as_text(value), list(OPERATORS))}")
            case "path" | "op" | "value":
                pass
            case _:
                keys = ["path", "op", "value", "any", "all", "not"]
                problems.append(f"the key {name} of a condition is not known: {_hint(name, keys)}")
    pattern = condition.get("value") if condition.get("op") == "regex" else None
    if isinstance(pattern, str) and compiled(pattern) is None:
        problems.append(f"the pattern {pattern} is not valid RE2")
    return problems


def condition_remarks(condition: Value) -> list[str]:
    """Return why a valid condition can never hold.

    Such a hook keeps its position among the others, because the records of runs count hooks.
    """
    if not isinstance(condition, Mapping):
        return []
    lists = [value for name in ("any", "all") if isinstance(value := condition.get(name), list | tuple)]
    parts = [*(part for value in lists for part in value), condition.get("not")]
    remarks = [remark for part in parts for remark in condition_remarks(part)]
    if condition.get("op") == "in" and not isinstance(condition.get("value"), list | tuple):
        remarks.append("the value of the operator in is not a list, so the condition never holds")
    return remarks


def _hint(name: str, known: Sequence[str]) -> str:
    return did_you_mean(nearest(name, known), f"there are {', '.join(known)}")
