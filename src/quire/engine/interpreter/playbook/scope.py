"""The state of a walk through a playbook: inputs, named results, and the results of earlier steps for the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.engine.earlier_results import Earlier, Entry, SystemText
from quire.engine.pure_work import PureWork
from quire.engine.requests import Emit
from quire.errors import StepFailed
from quire.plan.nodes import SEMANTICS_VERSION, Plan, Template
from quire.wording import first_of, pluralize

if TYPE_CHECKING:
    from quire.engine.interpreter.environment import Environment


MAX_RENDERED = 16_000_000
"""Most characters of one text with its values filled in."""


class PlaybookScope(Struct):
    """Values of one walk.

    Changed only by the interpreter that owns it, in document order; so a replay builds the same one.
    """

    plan: Plan
    inputs: dict[str, str]
    context_budget: int | None = None
    named: dict[str, str] = field(default_factory=dict)
    entries: Earlier = field(default_factory=Earlier)
    labels: list[tuple[str, str]] = field(default_factory=list)
    """For each entry, the label of its step and that of the step around it; empty if there is none."""
    labelled: dict[str, list[int]] = field(default_factory=dict)
    """The first entries by these labels; they are added when a step chooses."""
    indexed: int = 0
    """How many entries are in `labelled`."""
    captured: dict[str, int] = field(default_factory=dict)
    """The entries by the names that their results were kept under."""
    source: tuple[str, str] | None = None
    """The result of the step that the artifact comes from, and the part that a person is shown; None if it did not
    run."""
    around: str = ""
    """The label of the step whose arm is under way."""
    result: str = ""
    """Output of the last executed step."""
    shown: str = ""
    """The part of `result` that a person is shown."""
    cut: bool = False
    """True if the last reply broke off."""
    setting: Environment | None = None
    work: PureWork = field(default_factory=PureWork)
    rules: int = SEMANTICS_VERSION

    def lookup(self, name: str) -> str | None:
        """Return the input of that name, else the named result, else None."""
        value = self.inputs.get(name)
        return value if value is not None else self.named.get(name)

    def render(self, text: Template) -> str:
        out: list[str] = []
        room = MAX_RENDERED
        for part in text.parts:
            if isinstance(part, str):
                out.append(part)
            else:
                value = self.lookup(part.name)
                out.append(value if value is not None else part.raw if part.default is None else part.default)
            room -= len(out[-1])
            if room < 0:
                message = f"with its values filled in, a text has more than {MAX_RENDERED:,} characters"
                raise StepFailed(message, kind="prompt")
        self.work.add_text(MAX_RENDERED - room)
        return "".join(out)

    def name(self, path: str, label: str, name: str, value: str) -> Emit:
        """Keep a named result; the caller must yield the returned event."""
        self.named[name] = value
        return Emit("named", path, label, live={"name": name, "value": value}, kept=False)

    def override(self, path: str, label: str, name: str, value: str) -> Emit | None:
        """Set a value that a person gave at a stop. It replaces an input, or a named result until that is set again."""
        if any(declared.name == name for declared in self.plan.inputs):
            self.inputs[name] = value
            return None
        return self.name(path, label, name, value)

    def add_entry(self, entry: Entry) -> None:
        self.labels.append((entry.label, self.around))
        self.entries.append(entry)

    def drop_entries(self, length: int) -> None:
        """Remove all entries from this index on."""
        if length == len(self.entries):
            return
        for labels in self.labels[length : self.indexed]:
            for label in labels:
                self.labelled[label].pop()
        self.indexed = min(self.indexed, length)
        del self.labels[length:]
        self.captured = {name: at for name, at in self.captured.items() if at < length}
        self.entries.cut(length)

    def chosen(self, names: tuple[str, ...] | None, own: int) -> tuple[int, ...] | None:
        """Return the entries that these names choose; None for all. The step's own, from `own` on, are always among
        them."""
        if names is None:
            return None
        for at in range(self.indexed, len(self.labels)):
            for label in self.labels[at]:
                self.labelled.setdefault(label, []).append(at)
        self.indexed = len(self.labels)
        found = set(range(own, len(self.entries)))
        for name in names:
            found.update((self.captured[name],) if name in self.captured else self.labelled.get(name, ()))
        return tuple(sorted(found))

    def system_message(self, closing: str, chosen: tuple[int, ...] | None, budget: int | None) -> str | SystemText:
        if self.entries and chosen != ():
            return SystemText.of(self.plan.system, self.entries, budget, closing, self.rules, chosen)
        return "\n\n".join(part for part in (self.plan.system, closing) if part)

    def left_out(self, system: str | SystemText, chosen: tuple[int, ...] | None, budget: int | None) -> str:
        """Return the warning about earlier results that a message does not hold; empty if it holds all."""
        count = system.first if isinstance(system, SystemText) else 0
        if not count or budget is None:
            return ""
        labels = [self.labels[at][0] for at in (range(count) if chosen is None else chosen[:count])]
        steps = f"{count} earlier {pluralize('result', count)} (of {', '.join(first_of(labels, 8))})"
        return f"left out {steps}: more than {budget:,} characters ([runs] context_budget)"
