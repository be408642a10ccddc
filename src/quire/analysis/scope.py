"""The place in a document that a walk has reached, with the conditions and questions that hold there, the names that a
step can read, and what is known about the value behind each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, final

from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.abstract_values import NO_PARTS, NULL, TEXT, AbstractValue, either, either_of, outside_value, sized
from quire.analysis.amounts import NOTHING, ONE, Amount, number, total
from quire.analysis.facts import Condition, Place, QuestionFact
from quire.analysis.labels import AUTHORED, CALLER, PUBLIC, Integrity, Label, Trace, chosen_by, joined, source_label
from quire.analysis.written_sizes import text_length
from quire.schema_types import Enum, FieldType, ListOf, Object, Ref

if TYPE_CHECKING:
    from quire.plan.nodes import Plan, Step
    from quire.schema import Schema


ENTRY = 200
"""Bytes around an earlier result in the system text, besides its label and its title."""
BETWEEN = 200
"""Bytes between the parts of a prompt: blank lines, the words before earlier results, and the note of those that are
left out."""


class Told(Struct, frozen=True, gc=False):
    """Of a playbook: everything that the next model call reads."""

    label: Label = AUTHORED
    length: Amount = NOTHING
    parts: Mapping[str, AbstractValue] = NO_PARTS
    """The results of earlier steps by label and name, for `@context`. Empty unless the document chooses among them."""

    def either(self, other: Told) -> Told:
        """Return what is known if one of both was told."""
        if other is self:
            return self
        parts = self.parts
        for name, value in other.parts.items() if other.parts is not parts else ():
            own = parts.get(name)
            if own is not value:
                parts = {**parts, name: value if own is None else either([own, value])}
        return Told(self.label.join(other.label), self.length.either(other.length), parts)


NOTHING_TOLD = Told()


class Saved(Struct, frozen=True, gc=False):
    """A scope as it was before a part of the document whose changes do not last."""

    last: AbstractValue | Perhaps
    bound: Mapping[str, AbstractValue]
    conditions: tuple[Condition, ...]
    asked: tuple[QuestionFact, ...]
    fans: tuple[Place, ...]
    often: Amount
    told: Told
    log: dict[str, tuple[AbstractValue | None, int]] | None


class Arm(Struct, frozen=True, gc=False):
    """The changes that a part of the document has made when it was walked."""

    stores: Mapping[str, tuple[AbstractValue, int]]
    """The stores that it wrote, with their versions."""
    last: AbstractValue | Perhaps
    asked: tuple[QuestionFact, ...]
    told: Told

    @property
    def pipe(self) -> AbstractValue:
        """The value of its last step."""
        return known(self.last)


class Scope:
    """The place in a document that the walk has reached, and everything that holds there.

    There is one for a whole document: a part whose changes may not last is walked between `enter` and `leave`, which
    takes them back. So the cost of a part depends on its own writes, not on the number of stores.
    """

    def __init__(self, plan: Plan, names: Names, document: str = "") -> None:
        self.plan = plan
        self.names = names
        self.document = document
        self.way = ""
        """The labels before that of a step, each followed by the joint."""
        self.conditions: tuple[Condition, ...] = ()
        self.asked: tuple[QuestionFact, ...] = ()
        self.fans: tuple[Place, ...] = ()
        self.often = ONE
        self.versions: dict[str, int] = {}
        """How often each name was written."""
        self.told = NOTHING_TOLD
        self.loops = 0
        """How many loops are around."""
        self.loop_labels: dict[str, tuple[Label, tuple[str, ...]]] = {}
        """Of loops by path whose values are not followed one by one: the label of all, and the stores among them."""
        self.keeps_parts = False
        """True for a playbook in which a step or the artifact chooses among earlier results."""
        self.around: tuple[str, ...] = ()
        """Of a playbook: the labels of the steps whose arms are under way."""
        self.ended: AbstractValue | None = None
        """The value with which an earlier step may have ended the document."""
        self.log: dict[str, tuple[AbstractValue | None, int]] | None = None
        """The values and versions of the stores that were written since `enter`, as they were before."""

    def place(self, step: Step, path: str) -> Place:
        return Place(step, path, self.way + step.label, self.document, self.plan.format)

    def enter(
        self,
        condition: Condition | None = None,
        bound: Mapping[str, AbstractValue] | None = None,
        fan: Place | None = None,
        often: Amount = ONE,
    ) -> Saved:
        """Begin a part whose changes are taken back by `leave`."""
        names = self.names
        saved = Saved(names.last, names.bound, self.conditions, self.asked, self.fans, self.often, self.told, self.log)
        self.log = {}
        if bound is not None:
            names.bound = bound
        if condition is not None:
            self.conditions = (*self.conditions, condition)
        if fan is not None:
            self.fans = (*self.fans, fan)
        if often is not ONE:
            self.often = self.often.times(often)
        return saved

    def leave(self, saved: Saved) -> Arm:
        """Take back what was changed since `enter`, and return it."""
        names, written = self.names, {}
        if self.log:
            stores, versions = names.stores, self.versions
            for name, (before, version) in self.log.items():
                written[name] = stores[name], versions[name]
                versions[name] = version
                if before is None:
                    del stores[name]
                else:
                    stores[name] = before
        arm = Arm(written, names.last, self.asked, self.told)
        names.last = saved.last
        names.bound = saved.bound
        self.conditions = saved.conditions
        self.asked = saved.asked
        self.fans = saved.fans
        self.often = saved.often
        self.told = saved.told
        self.log = saved.log
        return arm

    def keep(self, name: str, value: AbstractValue) -> int:
        """Write a store and return its version."""
        versions = self.versions
        if self.log is not None and name not in self.log:
            self.log[name] = self.names.stores.get(name), versions.get(name, 0)
        self.names.stores[name] = value
        versions[name] = version = versions.get(name, 0) + 1
        return version

    def version(self, name: str) -> str:
        return f"{name}#{self.versions.get(name, 0)}"

    def merge_optional(self, arm: Arm, decided: Label) -> None:
        """Continue after an arm that perhaps was not walked: a store has the value of before, or that of the arm."""
        for name, (written, version) in arm.stores.items():
            self.versions[name] = max(self.keep_optional(name, written, decided), version)
        if arm.told is not self.told:
            self.told = self.told.either(arm.told)

    def keep_optional(self, name: str, written: AbstractValue, decided: Label) -> int:
        """Write a store, or perhaps not: it has the value of before, or the new one. Return its version."""
        return self.keep(name, either_of(written, self.names.store(name) or NULL, decided))

    def merge(self, arms: list[Arm], decided: Label, *, or_none: bool = False) -> None:
        """Continue after one of several arms was walked, or none of them: a store has the value of any."""
        if or_none and len(arms) == 1:
            self.merge_optional(arms[0], decided)
            return
        is_chosen = or_none or len(arms) > 1
        for name, (values, version, untouched) in _written(arms).items():
            if untouched < len(arms) or or_none:
                values.insert(untouched, self.names.store(name) or NULL)
            value = either(values)
            if is_chosen:
                value = value.labelled(chosen_by(value.label, decided))
            self.versions[name] = max(self.keep(name, value), version)
        for arm in arms:
            self.told = self.told.either(arm.told)
        if arms and not or_none:
            # All arms begin with the questions that were asked before them.
            count = len(self.asked)
            others = [arm.asked[count:] for arm in arms[1:]]
            more = [fact for fact in arms[0].asked[count:] if all(fact in other for other in others)]
            self.asked = (*self.asked, *more)


def _written(arms: list[Arm]) -> dict[str, tuple[list[AbstractValue], int, int]]:
    """Return the stores that arms have written: the values in the order of the arms, the last version, and the first
    arm that has left the store as it was. There may be thousands of arms, each of which writes a store of its own."""
    stores: dict[str, tuple[list[AbstractValue], int, int]] = {}
    for position, arm in enumerate(arms):
        for name, (value, version) in arm.stores.items():
            values, last, untouched = stores.get(name, ([], 0, 0))
            values.append(value)
            stores[name] = values, max(last, version), untouched + 1 if untouched == position else untouched
    return stores


def tell(step: Step, value: AbstractValue, scope: Scope) -> None:
    """Add a result to those that the next model calls read."""
    told, entry = scope.told, entry_of(step, value)
    scope.told = Told(told.label.join(value.label), told.length.plus(entry.length), told.parts)
    for label in dict.fromkeys((step.label, *scope.around)):
        tell_part(label, entry, scope)


def entry_of(step: Step, value: AbstractValue) -> AbstractValue:
    """Return a result as later steps are sent it, with the label and the title of its step."""
    around = number(ENTRY + text_length(step.label) + text_length(step.title))
    return replace(value, length=value.length.plus(around))


def tell_part(name: str, value: AbstractValue, scope: Scope) -> None:
    """Add a result to those that later steps choose by a label, or by a name. All results of a step, and of those in
    its arms, have its label, and are sent together."""
    if scope.keeps_parts:
        told = scope.told
        before = told.parts.get(name)
        if before is not None:
            value = replace(either([before, value]), length=before.length.plus(value.length))
        scope.told = Told(told.label, told.length, {**told.parts, name: value})


def earlier_results(names: tuple[str, ...] | None, step: Step, scope: Scope) -> tuple[Label, Amount]:
    """Return the label and the bytes of the results that a step is sent: all, or those of these names and the answer to
    a question of the step itself."""
    told = scope.told
    if names is None:
        return told.label, told.length
    chosen = [told.parts[name] for name in dict.fromkeys((*names, step.label)) if name in told.parts]
    return joined(value.label for value in chosen), total(value.length for value in chosen)


PER_ITEM = 32
"""Bytes that an item can get around it, such as the keys of `entries` and `group`."""
_BINDINGS = frozenset({"ctx", "pipe", "item", "acc"})
"""First segments that are never stores."""


class Failures:
    """The label of the messages of all failures so far: texts of tools, of models, and values that functions quote."""

    def __init__(self) -> None:
        self.label = AUTHORED

    def add(self, label: Label) -> None:
        if label is not self.label:
            self.label = self.label.join(label)

    def begin(self) -> Label:
        """Begin a part whose failures may be survived; `end` takes the result."""
        before, self.label = self.label, AUTHORED
        return before

    def end(self, before: Label) -> Label:
        """Return the label of the failures since `begin`."""
        label = self.label
        self.label = before if label is AUTHORED else before.join(label)
        return label


class Answers:
    """Remembers whether a person may have answered a question so far. Until then no value is searched for answers."""

    def __init__(self, *, exist: bool = True) -> None:
        self.exist = exist


@final
class Perhaps(Struct, eq=False):
    """The value of a step that perhaps was left out: its own, or that of the step before it. Few steps read the value
    of the step before them, so both are put together when one does."""

    value: AbstractValue
    before: AbstractValue | Perhaps | None
    """None once both were put together in `value`."""
    decided: Label


def known(last: AbstractValue | Perhaps) -> AbstractValue:
    """Return what is known about the value of a step. Thousands that perhaps were left out may stand in a row."""
    if type(last) is not Perhaps:
        return last
    steps, at = [last], last.before
    while type(at) is Perhaps:
        steps.append(at)
        at = at.before
    for step in reversed(steps):
        if step.before is not None:
            step.value, step.before = either_of(step.value, known(step.before), step.decided), None
    return last.value


class Names:
    """The values that an expression can read. `stores` is changed as steps write.

    Every step changes it several times. A `Struct` would look for each field that is set, a class of its own does not.
    """

    def __init__(
        self,
        stores: dict[str, AbstractValue],
        pipe: AbstractValue = NULL,
        schemas: Mapping[str, Schema] | None = None,
        *,
        is_open: bool = False,
        otherwise: AbstractValue | None = None,
        answers: Answers | None = None,
    ) -> None:
        self.stores = stores
        self.last: AbstractValue | Perhaps = pipe
        """The value of the step before; read it as `pipe`."""
        self.bound: Mapping[str, AbstractValue] = {}
        """`item`, `acc`, `round`, branches and `errors`: they hide stores of the same name."""
        self.schemas: Mapping[str, Schema] = schemas or {}
        self.is_open = is_open
        """True if every name that no step has written is an input: of a pipeline that does not declare its inputs."""
        self.failures = Failures()
        """Shared by the whole document."""
        self.missed: set[str] = set()
        """The names that were read before a step has written them; `*` for all of them. Shared by the whole
        document."""
        self.otherwise = otherwise
        """Of a pipeline that a model calls with inputs of its choice: every name that no step has written."""
        self.answers = answers or Answers()
        """Shared by the whole proof."""

    @property
    def pipe(self) -> AbstractValue:
        """The value of the step before."""
        return known(self.last)

    def store(self, name: str) -> AbstractValue | None:
        value = self.stores.get(name)
        if value is not None:
            return value
        self.missed.add(name)
        if self.otherwise is not None:
            return self.otherwise
        if self.is_open:
            label = source_label(CALLER, PUBLIC, Trace(name))
            value = self.stores[name] = outside_value(name, None, label)
        return value

    def everything(self) -> AbstractValue:
        """Return `ctx`, the map of all stores. If inputs are not declared, a caller may have given any others."""
        self.missed.add("*")
        parts = list(self.stores.values())
        if self.is_open:
            parts.append(outside_value("ctx", None, source_label(CALLER, PUBLIC, Trace("ctx"))))
        elif self.otherwise is not None:
            parts.append(self.otherwise)
        return AbstractValue(
            None,
            total([number(len(self.stores)), *(part.items for part in parts[len(self.stores) :])]),
            total(part.length for part in parts).plus(number(PER_ITEM * len(parts))),
            joined(part.label for part in parts),
            dict(self.stores),
        )

    def resolved(self, type: FieldType | None) -> FieldType | None:
        if isinstance(type, Ref):
            schema = self.schemas.get(type.schema)
            return Object(schema.fields) if schema else None
        return type

    def path(self, segments: tuple[str, ...]) -> AbstractValue:
        """Return the value of a path. Nothing is known of a name that does not exist: the step fails."""
        first, used = segments[0], 1
        if not self.bound and first == "ctx" and len(segments) == 2:
            store = self.stores.get(segments[1])
            if store is not None:
                return store
        value = self.bound.get(first)
        if value is None:
            if first == "pipe":
                value = self.pipe
            elif first == "ctx":
                if len(segments) == 1:
                    return self.everything()
                name, used = segments[1], 2
                value = self.stores.get(name) or self.store(name)
            elif first not in _BINDINGS:
                value = self.stores.get(first) or self.store(first)
            if value is None:
                return NULL
        for segment in segments[used:]:
            value = self.entry(value, segment)
        return value

    def entry(self, value: AbstractValue, name: str) -> AbstractValue:
        if value.type is not None and isinstance(value.type, Ref):
            value = replace(value, type=self.resolved(value.type))
        return value.field(name)

    def item(self, value: AbstractValue) -> AbstractValue:
        """Return any item of a list."""
        if value.element is not None:
            return value.element
        type = value.type.of if value.type is not None and isinstance(value.type, ListOf) else None
        if value.name:
            return outside_value(f"{value.name}[]", type, value.label)
        return sized(type, value.length, value.label, value.parts)


def answer_value(question: QuestionFact, answers: Answers) -> AbstractValue:
    """Return the answer of a person: one of the words that were offered, or any text."""
    answers.exist = True
    place = question.place
    trace = Trace("answer", place.way, place.span, place.document)
    label = source_label(Integrity.PERSON, PUBLIC, trace)
    words = ("yes", "no") if question.kind == "confirm" else question.options if question.kind == "select" else ()
    if words:
        value = sized(Enum(words), number(max(map(len, words)) * 4), label.narrowed())
    else:
        value = sized(TEXT, number(1_000_000), label)
    return replace(value, answer=question)
