"""Decisions of a pipeline: steps, labels of `match`, items of loops, failures, answers, parts of expressions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, assert_never, cast

from quire.plan.built_in_tools import ASK
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
from quire.testing.coverage.decisions import Decision, Kind
from quire.testing.coverage.expression_parts import boolean_parts, is_boolean
from quire.testing.coverage.question_ways import answers
from quire.testing.coverage.yaml_positions import YamlPositions
from quire.testing.plan_facts import declared_type, is_never_empty
from quire.wording import cut

if TYPE_CHECKING:
    from quire.plan.nodes import Plan, Step

MANY = "many"


def pipeline_decisions(plan: Plan, source: Source, prefix: str = "") -> Iterator[Decision]:
    """Yield the decisions of a pipeline. `prefix` begins their places, in a file of several pipelines."""
    positions = YamlPositions.of(source)
    booleans = _boolean_stores(plan)
    for path, step in plan.steps():
        yield from _Step(plan, prefix, path, step, source, positions, booleans).decisions()


def _boolean_stores(plan: Plan) -> frozenset[str]:
    """Return the stores that are true or false, as far as the expressions of the steps that write them tell."""
    found: dict[str, bool] = {}
    for _, step in plan.steps():
        if step.capture is not None:
            work, name = step.work, step.capture.name
            boolean = isinstance(work, Transform) and is_boolean(work.value.compiled.expression.root)
            found[name] = boolean and step.guard is None and found.get(name, True)
    return frozenset(name for name, boolean in found.items() if boolean)


class _Step:
    def __init__(
        self,
        plan: Plan,
        prefix: str,
        path: str,
        step: Step,
        source: Source,
        positions: YamlPositions,
        booleans: frozenset[str],
    ) -> None:
        self._plan = plan
        self._own_path = path
        self._path = f"{prefix}{path}"
        self._step = step
        self._source = source
        self._positions = positions
        self._booleans = booleans
        self._way = f"{prefix}{step.label}"
        self._name = f"step {self._way}"

    def decisions(self) -> Iterator[Decision]:
        step, work = self._step, self._step.work
        yield self._decision("steps", "", "", f"({step.title})")
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
        return Decision(kind, self._path, choice, way, f"{self._name}{joint}{words}", span or self._step.span)

    def _at(self, *keys: str) -> Span:
        return self._positions.find(self._step.span, *keys)

    def _labels(self, work: Select) -> Iterator[Decision]:
        for number, (label, _) in enumerate(work.cases, 1):
            yield self._decision("arms", "match", str(number), f"case {label}", self._at("cases", label))
        if work.default is not None:
            yield self._decision("arms", "match", "default", "default", self._at("default"))
        elif not self._has_both(work) and not self._has_all_values(work):
            yield self._decision("arms", "match", "none", "none of the cases (there is no default)", self._at("cases"))

    def _has_both(self, work: Select) -> bool:
        """Tell whether the value is true or false, and there is a case for each."""
        labels = {label for label, _ in work.cases}
        return labels >= {"True", "False"} and is_boolean(work.on.compiled.expression.root, self._booleans)

    def _has_all_values(self, work: Select) -> bool:
        """Tell whether a choice has a case for each value that the schema of its subject allows."""
        type = declared_type(self._plan, work.on)
        return isinstance(type, Enum) and set(map(str, type.values)) <= {label for label, _ in work.cases}

    def _items(self, source: LiteralValue | Formula | None, most: int | None) -> Iterator[Decision]:
        if isinstance(source, LiteralValue):
            return  # the number of items is written down, so there is nothing to decide
        at = self._at("items", "over")
        for way, words in (("0", "0 items"), ("1", "1 item"), (MANY, "several items")):
            if way == MANY and most == 1:
                continue
            if way != "0" or source is None or not is_never_empty(self._plan, self._own_path, source):
                yield self._decision("fans", "items", way, words, at)

    def _errors(self, on_error: OnError, choice: str, failed: str) -> Iterator[Decision]:
        at = self._at("on_error")
        if on_error.policy == "continue":
            yield self._decision("errors", choice, "dropped", f"{failed} is dropped", at)
        elif on_error.policy == "retry":
            yield self._decision("errors", choice, "again", f"{failed} is tried again, and well", at)
            yield self._decision("errors", choice, "used_up", f"{failed} has used up its tries", at)

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
        given = dict(work.arguments)
        kind, options = given.get("type", LiteralValue("input")), given.get("options", LiteralValue([]))
        at = self._at("args", "prompt")
        listed: list[tuple[str, Span]] = []
        if isinstance(options, LiteralValue) and isinstance(options.value, list | tuple):
            listed = [(str(one), self._at("args", "options")) for one in options.value]
        written = kind.value if isinstance(kind, LiteralValue) else "input"
        known = cast("Literal['input', 'confirm', 'select']", written if written in _KINDS else "input")
        yield from answers(self._path, self._way, known, listed, "default" in given, at)

    def _conditions(self) -> Iterator[Decision]:
        for role, formula in formulas(self._step):
            for number, node in enumerate(boolean_parts(formula.compiled.expression, role), 1):
                text = formula.text[node.span.start : node.span.end]
                words = f"`{cut(' '.join(text.split()), 60, 57)}`"
                span = self._inside(formula.span, text)
                for way in ("true", "false"):
                    label = f"{self._name}: {words} {way}"
                    yield Decision("conditions", self._path, f"{role}[{number}]", way, label, span)

    def _inside(self, span: Span, text: str) -> Span:
        """Return the place of a part of an expression: exactly, if it stands in the file as it is."""
        at = self._source.text.find(text, span.start, span.end)
        return Span(at, at + len(text)) if at >= 0 else span


_KINDS = ("input", "confirm", "select")
