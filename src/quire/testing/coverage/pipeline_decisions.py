"""Decisions of a pipeline: steps, labels of `match`, items of loops, failures, answers, parts of expressions.

The boolean parts of an expression are comparisons, and everything whose truth decides. The value of
`get(a, 'b') or 'none'` is a text, so only its first part decides something; in a `when`, both would. A part that is
always true or always false decides nothing: of `a and 'yes' or 'no'`, which is how a choice between two texts is
written, only `a` is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, assert_never, cast

from msgspec import Struct

from quire.expr.functions import FUNCTIONS
from quire.expr.syntax import (
    Arithmetic,
    Compare,
    Constant,
    Each,
    FunctionCall,
    ListOf,
    Logic,
    MapOf,
    Node,
    Not,
    children,
)
from quire.formats.yaml import Entry, label_of, read_yaml
from quire.formats.yaml import Mapping as YamlMapping
from quire.formats.yaml import Node as YamlNode
from quire.formats.yaml import Sequence as YamlSequence
from quire.patterns import late_pattern
from quire.plan.built_in_tools import ASK
from quire.plan.descriptions import QUESTIONS, step_name
from quire.plan.nodes import Think, UseTool
from quire.plan.parts import formulas
from quire.plan.pipeline_work import (
    Agent,
    Block,
    Call,
    Fail,
    Fold,
    ForEach,
    Formula,
    Invoke,
    OnError,
    Parallel,
    Repeat,
    Select,
    Stop,
    Transform,
)
from quire.plan.pipeline_work import Literal as LiteralValue
from quire.plan.thread import Thread
from quire.schema_types import Enum
from quire.source import Source, Span
from quire.testing.coverage.decisions import Decision, Kind, answers
from quire.testing.plan_facts import QUANTIFIERS, declared_type, is_boolean, is_never_empty
from quire.wording import cut

if TYPE_CHECKING:
    from quire.expr import Expression
    from quire.plan.nodes import Plan, Step


class YamlPositions(Struct, frozen=True):
    """The entries of all mappings of a file, by the place of their key."""

    entries: dict[Span, Entry]

    @classmethod
    def of(cls, source: Source) -> YamlPositions:
        entries: dict[Span, Entry] = {}
        stack: list[YamlNode] = list(read_yaml(source).documents)
        while stack:
            node = stack.pop()
            if isinstance(node, YamlSequence):
                stack.extend(node.items)
            elif isinstance(node, YamlMapping):
                for entry in node.entries:
                    if entry.key.span not in entries:  # an alias leads to the same node again
                        entries[entry.key.span] = entry
                        stack.append(entry.value)
        return cls(entries)

    def find(self, step: Span, *keys: str) -> Span:
        """Return the place of a key in the body of the step whose kind stands at a place.

        Each further key is looked for in the value of the one before; if it is missing, in the same mapping. Returns
        the last place that was found, at least that of the step.
        """
        entry = self.entries.get(step)
        place, node = step, entry.value if entry else None
        for key in keys:
            entries = node.entries if isinstance(node, YamlMapping) else ()
            inner = next((entry for entry in entries if label_of(entry.key) == key), None)
            if inner is not None:
                place = inner.key.span
                node = inner.value if isinstance(inner.value, YamlMapping) else node
        return place


CONDITIONS = ("when", "until")
"""The roles of expressions that are conditions as a whole."""

_PLACE = late_pattern(r"\{[^{}]*\}")
_TESTED = ("filter", "all", "any", "find")


def boolean_parts(expression: Expression, role: str) -> tuple[Node, ...]:
    """Return the boolean parts of the expression of a step, in the order of the text."""
    parts = _parts(expression.root, role in CONDITIONS)
    return tuple(sorted(parts, key=lambda node: (node.span.start, -node.span.end)))


def _parts(node: Node, decides: bool) -> Iterator[Node]:
    """Yield the parts of a node. `decides` says that only the truth of its value matters."""
    match node:
        case Logic(operands=operands):
            if decides and sum(1 for operand in operands if _truth(operand) is None) > 1:
                yield node
            *first, last = operands
            for operand in first:
                yield from _parts(operand, True)
            yield from _parts(last, decides)
            return
        case Not(operand=operand):
            yield from _parts(operand, True)
            return
        case Each(name=name, source=source, body=body):
            if decides or name in QUANTIFIERS:
                yield node
            yield from _parts(source, False)
            yield from _parts(body, name in _TESTED)
            return
        case Compare():
            yield node
        case FunctionCall(name=name) if FUNCTIONS[name].gives == "boolean":
            yield node
        case _ if decides and _truth(node) is None:
            yield node
    for part in children(node):
        yield from _parts(part, False)


def _truth(node: Node) -> bool | None:
    """Return whether the value of a node is always true or always false, as far as its text tells; None if not."""
    match node:
        case Constant(value=value):
            return bool(value)
        case ListOf(items=parts) | MapOf(entries=parts):
            return bool(parts)
        case Not(operand=operand, times=times):
            truth = _truth(operand)
            return None if truth is None else truth != bool(times % 2)
        case Arithmetic(first=first, rest=rest) if any(map(_is_words, (first, *(term for _, term in rest)))):
            return True  # a sum of texts, one of which is not empty
        case FunctionCall(name="format", arguments=(Constant(value=str() as text), *_)):
            return True if _PLACE.sub("", text) else None
        case Logic(operator="or", operands=operands) if any(_truth(operand) for operand in operands):
            return True
        case Logic(operator="and", operands=operands) if any(_truth(operand) is False for operand in operands):
            return False
    return None


def _is_words(node: Node) -> bool:
    return isinstance(node, Constant) and isinstance(node.value, str) and node.value != ""


MANY = "many"


def pipeline_decisions(plan: Plan, source: Source, prefix: str = "") -> Iterator[Decision]:
    """Yield the decisions of a pipeline. `prefix` is as in `decisions_of`."""
    positions = YamlPositions.of(source)
    booleans = _boolean_stores(plan)
    for path, step in plan.steps():
        yield from _Step(plan, prefix, path, step, source, positions, booleans).decisions()


def _boolean_stores(plan: Plan) -> frozenset[str]:
    """Return the stores that are true or false, as far as the expressions of the steps that write them tell."""
    booleans: dict[str, bool] = {}
    for _, step in plan.steps():
        if step.capture is not None:
            work, name = step.work, step.capture.name
            boolean = isinstance(work, Transform) and is_boolean(work.value.compiled.expression.root)
            booleans[name] = boolean and step.guard is None and booleans.get(name, True)
    return frozenset(name for name, boolean in booleans.items() if boolean)


class _Step(Struct, frozen=True):
    plan: Plan
    prefix: str
    path: str
    step: Step
    source: Source
    positions: YamlPositions
    booleans: frozenset[str]

    @property
    def place(self) -> str:
        return f"{self.prefix}{self.path}"

    @property
    def way(self) -> str:
        return f"{self.prefix}{self.step.label}"

    def decisions(self) -> Iterator[Decision]:
        step, work = self.step, self.step.work
        yield self._decision("steps", "", "", f"({step_name(step)})")
        if step.guard is not None and step.guard.on_error is not None:
            yield from self._errors(step.guard.on_error, "on_error", "a failure")
        match work:
            case Select():
                yield from self._labels(work)
            case ForEach():
                yield from self._items(work.source, work.max_items)
                yield from self._errors(work.on_error, "items_on_error", "an item")
            case Parallel():
                yield from self._errors(work.on_error, "items_on_error", "a branch")
            case Fold():
                yield from self._items(work.source, work.max_items)
            case Repeat():
                yield self._decision("fans", "ended", "until", "until holds", self._at("until"))
                rounds = "1 round is" if work.max == 1 else f"{work.max} rounds are"
                yield self._decision("fans", "ended", "max", f"{rounds} used up", self._at("max"))
            case Agent():
                yield from self._agent(work)
            case Invoke():
                if work.tool == ASK:
                    yield from self._question(work)
            case Transform() | Call() | Block() | Fail() | Stop() | Think() | UseTool() | Thread() | None:
                pass
            case _:
                assert_never(work)
        yield from self._conditions()

    def _decision(self, kind: Kind, choice: str, way: str, words: str, span: Span | None = None) -> Decision:
        joint = " " if words.startswith("(") else ": "
        return Decision(kind, self.place, choice, way, f"step {self.way}{joint}{words}", span or self.step.span)

    def _at(self, *keys: str) -> Span:
        return self.positions.find(self.step.span, *keys)

    def _labels(self, work: Select) -> Iterator[Decision]:
        for number, (label, _) in enumerate(work.cases, 1):
            yield self._decision("arms", "match", str(number), f"case {label}", self._at("cases", label))
        if work.default is not None:
            yield self._decision("arms", "match", "default", "default", self._at("default"))
        elif not self._has_all_values(work):
            yield self._decision("arms", "match", "none", "none of the cases (without default)", self._at("cases"))

    def _has_all_values(self, work: Select) -> bool:
        """Tell whether a choice has a case for true and for false, or for each value that a schema allows."""
        labels = {label for label, _ in work.cases}
        if labels >= {"True", "False"} and is_boolean(work.on.compiled.expression.root, self.booleans):
            return True
        type = declared_type(self.plan, work.on)
        return isinstance(type, Enum) and set(map(str, type.values)) <= labels

    def _items(self, source: LiteralValue | Formula | None, most: int | None) -> Iterator[Decision]:
        if isinstance(source, LiteralValue):
            return  # the number of items is written down, so nothing is decided
        at = self._at("items", "over")
        for way, words in (("0", "0 items"), ("1", "1 item"), (MANY, "several items")):
            if way == MANY and most == 1:
                continue
            if way != "0" or source is None or not is_never_empty(self.plan, self.path, source):
                yield self._decision("fans", "items", way, words, at)

    def _errors(self, on_error: OnError, choice: str, failed: str) -> Iterator[Decision]:
        at = self._at("on_error")
        if on_error.policy == "continue":
            yield self._decision("errors", choice, "dropped", f"{failed} is dropped", at)
        elif on_error.policy == "retry":
            yield self._decision("errors", choice, "again", f"a retry of {failed} succeeds", at)
            yield self._decision("errors", choice, "used_up", f"{failed} fails after all retries", at)

    def _agent(self, work: Agent) -> Iterator[Decision]:
        at = self._at("prompt")
        yield self._decision("prompts", "", "", "its prompt is looked at", at)
        if work.schema is not None:
            schema = self._at("schema")
            yield self._decision("errors", "reply", "repaired", "a reply that does not fit is sent back", schema)
        tools = self._at("capabilities", "tools")
        for number, tool in enumerate(work.tools or (), 1):
            yield self._decision("grants", f"tool[{number}]", "used", f"{tool} is used", tools)

    def _question(self, work: Invoke) -> Iterator[Decision]:
        arguments = dict(work.arguments)
        kind, options = arguments.get("type", LiteralValue("input")), arguments.get("options", LiteralValue([]))
        at = self._at("args", "prompt")
        listed: list[tuple[str, Span]] = []
        if isinstance(options, LiteralValue) and isinstance(options.value, list | tuple):
            listed = [(str(option), self._at("args", "options")) for option in options.value]
        # A value of any kind may be written there.
        written = kind.value if isinstance(kind, LiteralValue) and kind.value in tuple(QUESTIONS) else "input"
        question = cast("Literal['input', 'confirm', 'select']", written)
        yield from answers(self.place, self.way, question, listed, "default" in arguments, at)

    def _conditions(self) -> Iterator[Decision]:
        for role, formula in formulas(self.step):
            for number, node in enumerate(boolean_parts(formula.compiled.expression, role), 1):
                text = formula.text[node.span.start : node.span.end]
                words = f"`{cut(' '.join(text.split()), 60, 57)}`"
                # The place is exact if the part stands in the file as it is.
                at = self.source.text.find(text, formula.span.start, formula.span.end)
                span = Span(at, at + len(text)) if at >= 0 else formula.span
                for way in ("true", "false"):
                    yield self._decision("conditions", f"{role}[{number}]", way, f"{words} {way}", span)
