"""Drafts of cases: what a scaffolded test gives to a document, as placeholders."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from quire.formats.test.syntax import Case, Entry, FileContent, GivenAnswer, Script, Setting, ToolScript
from quire.source import NOWHERE
from quire.values import Value, encode


class DraftReply(Struct, frozen=True):
    """A placeholder for a reply."""

    step: str
    value: Value
    """A text, or a value that is sent as JSON."""
    item: int | None = None
    calls: tuple[tuple[str, Mapping[str, Value]], ...] = ()
    any_times: bool = False

    @property
    def entry(self) -> Entry:
        sent = self.value if isinstance(self.value, str) else encode(self.value)
        times = None if self.any_times else 1
        return Entry(step=self.step, item=self.item, reply=sent, calls=self.calls, times=times)


class Draft(Struct):
    """A case that is being made."""

    name: str = ""
    inputs: Mapping[str, Value] = field(default_factory=dict)
    replies: dict[tuple[str, int | None], DraftReply] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    tools: dict[str, Value] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    allow: list[str] = field(default_factory=list)
    unattended: bool = False
    takes: tuple[str, ...] = ()
    """The ids of the arms and answers that it is there for."""
    expect: Mapping[str, Value] | None = None
    """Expectations that hold in a run of the draft; None if they are left to the author."""

    @property
    def size(self) -> tuple[int, ...]:
        """Grows with everything that is added."""
        again = sum(one.any_times for one in self.replies.values())
        return len(self.replies), again, len(self.answers), len(self.tools), len(self.files), len(self.allow)

    @property
    def case(self) -> Case:
        setting = Setting(
            inputs=self.inputs,
            model=Script(tuple(one.entry for one in self.replies.values()), by_step=True),
            tools={name: ToolScript(returns=value) for name, value in self.tools.items()},
            answers={way: (GivenAnswer(answer),) for way, answer in self.answers.items()},
            files={path: FileContent(text) for path, text in self.files.items()},
            allow=tuple(self.allow) or None,
            unattended=self.unattended or None,
        )
        return Case(self.name, NOWHERE, setting, None)
