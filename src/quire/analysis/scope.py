"""The place in a document that a walk has reached, with the stores, conditions and questions that hold there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.abstract_values import NO_PARTS, NULL, AbstractValue, either, either_of
from quire.analysis.amounts import NOTHING, ONE, Amount, number, total
from quire.analysis.facts import Condition, Place, QuestionFact
from quire.analysis.labels import AUTHORED, Label, chosen_by, joined
from quire.analysis.names import Perhaps, known
from quire.analysis.written_sizes import text_length

if TYPE_CHECKING:
    from quire.analysis.names import Names
    from quire.plan.nodes import Plan, Step


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
            known = parts.get(name)
            if known is not value:
                parts = {**parts, name: value if known is None else either([known, value])}
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
    takes them back. So a part costs as much as it writes, however many stores there are.
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
        """Of a playbook: whether a step or the artifact chooses among earlier results."""
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
        """Go on after an arm that perhaps was not walked: a store has the value of before, or that of the arm."""
        for name, (written, version) in arm.stores.items():
            self.versions[name] = max(self.keep_optional(name, written, decided), version)
        if arm.told is not self.told:
            self.told = self.told.either(arm.told)

    def keep_optional(self, name: str, written: AbstractValue, decided: Label) -> int:
        """Write a store, or perhaps not: it has the value of before, or the new one. Return its version."""
        return self.keep(name, either_of(written, self.names.store(name) or NULL, decided))

    def merge(self, arms: list[Arm], decided: Label, *, or_none: bool = False) -> None:
        """Go on after one of several arms was walked, or none of them: a store has the value of any."""
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
            known = len(self.asked)
            others = [arm.asked[known:] for arm in arms[1:]]
            more = [one for one in arms[0].asked[known:] if all(one in asked for asked in others)]
            self.asked = (*self.asked, *more)


def _written(arms: list[Arm]) -> dict[str, tuple[list[AbstractValue], int, int]]:
    """Return the stores that arms have written: the values in the order of the arms, the last version, and the first
    arm that has left the store as it was. There may be thousands of arms, each of which writes a store of its own."""
    found: dict[str, tuple[list[AbstractValue], int, int]] = {}
    for position, arm in enumerate(arms):
        for name, (value, version) in arm.stores.items():
            values, last, untouched = found.get(name, ([], 0, 0))
            values.append(value)
            found[name] = values, max(last, version), untouched + 1 if untouched == position else untouched
    return found


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
    chosen = [told.parts[one] for one in dict.fromkeys((*names, step.label)) if one in told.parts]
    return joined(one.label for one in chosen), total(one.length for one in chosen)
