"""Types of the JSON that operations return, for its schemas. The keys of runs and questions are those of `--json`.

A member that has a default may be missing. The functions of `display` make the values; tests compare both.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from quire.operations.field_types import Format, Name, Object, Seq, State, Text, words

Texts: TypeAlias = list[Text]
Counts: TypeAlias = dict[str, int]


class Run(Struct):
    """A run as a list shows it."""

    id: Name
    status: State
    title: Text
    format: Format
    document: Text
    step: Text
    way: Text
    created_at: float
    updated_at: float
    expires_at: float | None
    wake_at: float | None
    waits: str
    input_tokens: int
    output_tokens: int
    cost: float | None
    error: Object | None
    origin: Any
    imported: Any
    forced: list[Any]
    subject: Text
    name: str | None
    label: Text
    note: str | None
    seen_at: float | None
    until: str | None


class ListedRun(Run):
    """A run with its result, or the error or question at which it stands."""

    result: str | None
    steps: Counts | None
    took: float


class Removed(Struct):
    runs: list[Name]
    effects: Annotated[int, Meta(ge=0)]
    texts: Annotated[int, Meta(ge=0)]
    dry_run: bool


class OpenQuestion(Struct):
    run: Name
    path: Name
    prompt: Text
    hash: Name
    group: Annotated[Text, Meta(description="The same for questions that are alike.")]
    alone: Annotated[bool, Meta(description="Answer it by itself: it may stand before an effect on the world.")]


class ShownQuestion(Struct):
    run: Name
    path: Name
    open: bool
    prompt: Text | UnsetType = UNSET
    hash: Name | UnsetType = UNSET


class Number(Struct):
    """A proven number: how many at least and at most, and why."""

    formula: str | None
    most: float | None
    least: int
    unit: Annotated[str, words("count", "tokens", "dollars", "milliseconds")]
    sizes: Texts
    proven: bool
    premises: Texts
    reasons: Texts
    title: Text
    words: Text
    notes: Texts
    assumed: str | None
    seen: str | None


class Proof(Struct):
    model: str | None
    numbers: dict[str, Number]
    assumed: Counts
    assumed_words: str | None
    seen_runs: int
    unknown: Texts


class RunProof(Struct):
    """The numbers of a run with its inputs."""

    numbers: dict[str, Number]
    formulas: dict[str, Text]
    sizes: Counts


class GateQuestion(Struct):
    step: Text
    kind: Name


class Gate(Struct):
    """An effect, and whether a person is asked before it."""

    effect: Text
    step: Text
    tool: Text
    tier: Text
    by_model: bool
    words: Text
    verdict: Annotated[str, words("gated", "ignored", "open", "never")]
    gate: Text
    questions: list[GateQuestion]
    shown: Texts
    kind: Annotated[str, words("read", "idempotent", "write")] = field(name="class")


class FlowPlace(Struct):
    step: str | None
    what: Text
    document: str | None


class Flow(Struct):
    """A way of a value from outside or of a secret to where it acts."""

    kind: Annotated[str, words("argument", "decision", "prompt", "private")]
    text: Text
    acts: bool
    step: Text
    sink: Text
    places: list[FlowPlace]


class LockChange(Struct):
    kind: Name
    direction: Annotated[str, words("wider", "narrower", "other")]
    code: Name
    name: Text
    old: str | None
    new: str | None
    example: str | None
    words: Text


class Lock(Struct):
    """How a document stands to the lock file."""

    standing: Annotated[str, words("none", "unreadable", "new", "equal", "stale", "wider")]
    words: Text
    problem: str | None
    changes: list[LockChange]


class Document(Struct):
    """A document as a list shows it."""

    id: Name
    title: Text
    errors: Seq
    warnings: Seq


class ShownDocument(Document):
    proof: Proof | None | UnsetType = UNSET
    gates: list[Gate] | None | UnsetType = UNSET
    flows: list[Flow] | None | UnsetType = UNSET
    lock: Lock | None | UnsetType = UNSET


class Cases(Struct):
    """The cases of a document's test file."""

    file: str | None
    cases: list[Object]
    problems: list[Object]
    coverage: Object | None
    at: float | None
    old: bool
    make: str | None | UnsetType = UNSET


class Forecast(Struct):
    ready: bool
    bounds: Object
    command: Text
    line: str | None | UnsetType = UNSET
    proof: RunProof | None | UnsetType = UNSET
    gates: list[Gate] | None | UnsetType = UNSET
    flows: list[Flow] | None | UnsetType = UNSET
    lock: Lock | None | UnsetType = UNSET


class Chart(Struct):
    """A flowchart, placed and ready to draw."""

    width: float
    height: float
    folded: bool
    nodes: list[Object]
    edges: list[Object]
    groups: list[Object]
    title: Text | UnsetType = UNSET
    format: Format | UnsetType = UNSET
    command: Text | UnsetType = UNSET
    ways: list[Object] | UnsetType = UNSET
