"""The tree of a test file: the settings, cases and acts of a document test, each with its position.

`formats/test/expected.py` has the other half of a case, the expectations.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from msgspec import UNSET, Struct, UnsetType, field

from quire.formats.test.fields import keys_of
from quire.source import NOWHERE, Span

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.formats.test.expected import Expect
    from quire.formats.yaml import Node
    from quire.plan.pipeline_work import Formula
    from quire.source import Source
    from quire.values import Value

COVERAGE_KINDS = keys_of("coverage")

When = Literal["before", "after"]
"""A process dies before an effect is performed, or after it and before it is recorded."""


class Text(Struct, frozen=True):
    """A text with its position."""

    text: str
    span: Span = NOWHERE


class ScriptedError(Struct, frozen=True):
    """A failure of a model or a tool."""

    kind: str
    message: str
    transient: bool = False


class Entry(Struct, frozen=True):
    """One entry of a scripted model: the calls that it answers, and the answer."""

    span: Span = NOWHERE
    step: str = ""
    """The label of a step, or the way to it in a called document; empty for any."""
    path: str = ""
    contains: str = ""
    turn: int | None = None
    thread: str = ""
    item: int | None = None
    """The number of an item of a fan, from 0."""
    is_default: bool = False
    reply: str = ""
    is_json: bool = False
    """True if the reply was written as a value, not as a text."""
    calls: tuple[tuple[str, Mapping[str, Value]], ...] = ()
    """Names and arguments of tools that the model wants called."""
    error: ScriptedError | None = None
    crash: When | None = None
    delay: float = 0.0
    """In seconds."""
    usage: Mapping[str, float] = field(default_factory=dict)
    """Any of `input_tokens`, `output_tokens` and `cost`."""
    finish_reason: str = ""
    times: int | None = 1
    """How many calls it answers; None for any number."""
    shared: bool = False
    """True for an entry of the defaults: a case does not have to use it."""

    @property
    def in_order(self) -> bool:
        """Tell whether it answers the next call, whichever that is."""
        named = self.step or self.path or self.contains or self.thread
        return not named and self.turn is None and self.item is None and not self.is_default


class Script(Struct, frozen=True):
    """The replies of the model, in the order of the file."""

    entries: tuple[Entry, ...] = ()
    by_step: bool = False
    """True for the mapping form, which a case merges with that of the defaults, step by step."""
    span: Span = NOWHERE


class ToolScript(Struct, frozen=True):
    """How a tool behaves in a case. Exactly one of the answers is given, unless the tool is real."""

    span: Span = NOWHERE
    real: bool = False
    returns: Value | UnsetType = UNSET
    echo: bool = False
    """Returns its arguments."""
    raises: ScriptedError | None = None
    sequence: tuple[ToolScript, ...] = ()
    """One for each call; a call after the last one has no answer."""
    when: tuple[tuple[Mapping[str, Value], ToolScript], ...] = ()
    """Answers for calls whose arguments contain the given ones."""
    otherwise: ToolScript | None = None
    """The answer if no `when` fits."""
    delay: float = 0.0
    """In seconds."""
    crash: When | None = None
    times: int | None = None
    """How many calls it answers; None for any number."""
    effect: Literal["read", "idempotent", "write"] | None = None
    """The class of a tool that is not known otherwise."""
    shared: bool = False
    """As in `Entry`."""


class GivenAnswer(Struct, frozen=True):
    """An answer of a person."""

    value: str
    after: float | None = None
    """Seconds after the question; None if the person is present and answers at once."""
    by: str = ""
    span: Span = NOWHERE
    shared: bool = False
    """As in `Entry`."""


class FileContent(Struct, frozen=True):
    """A file of the case's folder: a text, or a copy of a file beside the test. Neither for a file that is removed."""

    text: str | None = None
    copy_of: str = ""
    span: Span = NOWHERE


class Setting(Struct, frozen=True):
    """The world of a case. A field that is None, or not a key of a mapping, is taken from the defaults."""

    inputs: Mapping[str, Value] = field(default_factory=dict)
    model: Script | None = None
    tools: Mapping[str, ToolScript] = field(default_factory=dict)
    answers: Mapping[str, tuple[GivenAnswer, ...]] = field(default_factory=dict)
    """By the label of the step, the way to it, or the path of the question."""
    files: Mapping[str, FileContent] = field(default_factory=dict)
    allow: tuple[str, ...] | None = None
    limits: Mapping[str, Value] = field(default_factory=dict)
    config: Mapping[str, Value] = field(default_factory=dict)
    """The settings of the workspace, as in `quire.toml`."""
    unattended: bool | None = None
    clock: str = ""
    """The moment at which the case begins, in ISO 8601."""
    cassette: str | bool | None = None
    spans: Mapping[str, Span] = field(default_factory=dict)
    """Positions by dotted name: `inputs`, `inputs.tone`, `answers.2`, `files.notes.txt`."""


class Judge(Struct, frozen=True):
    """A judge of live runs: the file of its rubric."""

    rubric: str
    span: Span = NOWHERE


class Live(Struct, frozen=True):
    """The terms of a case with real models."""

    passes: float | None = None
    """The share of repeats that has to pass."""
    repeat: int | None = None
    judge: Judge | None = None
    similar: Mapping[str, Value] = field(default_factory=dict)
    cost: float | None = None
    seconds: float | None = None
    tools: Literal["scripted", "real"] = "scripted"
    span: Span = NOWHERE


class ActKind(StrEnum):
    """An action on a run that rests."""

    ANSWER = "answer"
    RESUME = "resume"
    FORK = "fork"
    CANCEL = "cancel"
    ADVANCE = "advance"
    EDIT = "edit"


class Act(Struct, frozen=True):
    """One entry of `then`."""

    kind: ActKind
    span: Span = NOWHERE
    answers: Mapping[str, tuple[GivenAnswer, ...]] = field(default_factory=dict)
    options: Mapping[str, Value] = field(default_factory=dict)
    """Of `resume` (`set`, `limit`, `budget`, `model`) and `fork` (`from`, `set`)."""
    seconds: float = 0.0
    """Of `advance`."""
    edits: Mapping[str, FileContent] = field(default_factory=dict)
    """Files that change on disk under the run, the document itself among them."""
    model: Script | None = None
    tools: Mapping[str, ToolScript] = field(default_factory=dict)
    expect: Expect | None = None


class Rows(Struct, frozen=True):
    """The rows of a case: written in the test, or in a CSV or JSONL file beside it, or a product of lists."""

    rows: tuple[Mapping[str, Value], ...] = ()
    file: str = ""
    matrix: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    span: Span = NOWHERE


class Case(Struct, frozen=True):
    """One case. `setting` is already completed with the defaults."""

    name: str
    span: Span
    """The span of its name."""
    setting: Setting
    expect: Expect | None
    """None if the case has none."""
    draft: bool = False
    """True for `expect: todo`: the case fails until its author writes expectations."""
    then: tuple[Act, ...] = ()
    rows: Rows | None = None
    crash_everywhere: bool = False
    live: Live | None = None
    tags: tuple[str, ...] = ()
    todo: str | None = None
    """The reason why it is expected to fail."""
    skip: str | None = None
    flaky: str | None = None


class TestFile(Struct, frozen=True):
    """A test file that has no errors."""

    __test__ = False
    document: Text | None
    """A path beside the file, or a name; None for the document with the file's own name."""
    cases: tuple[Case, ...]
    about: str = ""
    always: tuple[Formula, ...] = ()
    """Properties that hold after every case and every explored run."""
    coverage: Mapping[str, float] = field(default_factory=dict)
    """The least percentage by kind of decision."""
    coverage_span: Span = NOWHERE


class TestReading(Struct, frozen=True):
    """The result of reading a test file."""

    __test__ = False
    source: Source
    file: TestFile | None
    """None if the diagnostics contain an error."""
    diagnostics: tuple[Diagnostic, ...] = ()
    tree: Node | None = None
    """The YAML of the file, also if it is not a valid test; None if the text is not YAML."""
