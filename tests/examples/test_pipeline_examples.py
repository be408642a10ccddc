"""Every pipeline among the examples runs to its end under its script, and together they use all of the language."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from quire.engine.ports import Model
from quire.engine.records import Event, Status
from quire.formats.pipeline.language import KEYS
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.syntax import (
    AgentBody,
    Argument,
    CallBody,
    ExpressionText,
    FoldBody,
    ForEachBody,
    Literal,
    MatchBody,
    ParallelBody,
    PipelineFile,
    ShellBody,
    Step,
    ToolBody,
    TransformBody,
)
from quire.formats.pipeline.walks import (
    parts,
    targets,
    walk,
)
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.schema import Enum, Field, FieldType, Kind, ListOf, Object, Ref, Simple
from quire.source import read_source
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import find_workspace

EXAMPLES = Path(__file__).parents[2] / "examples"
ELSEWHERE = {".quire", "guest-house", "cluster"}
"""What runs leave behind; the example of directives, which has tests of its own; and no pipeline at all."""

FILES = sorted(
    path
    for path in EXAMPLES.rglob("*.yaml")
    if not ELSEWHERE & set(path.parts)
    and not path.name.endswith(".test.yaml")
    and "\ndialect: quire\n" not in path.read_text(encoding="utf-8")
)
"""The pipelines of the seed's language; those of the dialect are workflows, which have tests of their own."""

READERS = {"Ada": "clarity", "Ben": "brevity", "Cleo": "an address"}


def readers(*names: str) -> Value:
    return [{"name": name, "wants": READERS[name]} for name in names]


@dataclass(frozen=True, slots=True)
class Case:
    """`warned` are the warnings that the run gives, and `dropped` the items that it goes on without."""

    example: str
    output: Value
    inputs: Mapping[str, Value] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    allow: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    dropped: tuple[Value, ...] = ()
    written: Mapping[str, str] = field(default_factory=dict)


LOST = {"tone": "too busy"}
MOVE = {"1": "Long Street 1", "2": "Friday", "3.helper": "Kim", "3/parallel[things]/for_each[0]/ask": "yes"}
NO = {f"3/parallel[things]/for_each[{number}]/ask": "no" for number in range(3)}
CASES = [
    Case(
        "review-board",
        {
            "accepted": True,
            "grades": ["good", "fair"],
            "tone": "unknown",
            "lost": LOST,
            "letter": "# draft.txt\n\nAccepted: Clear\n\n> opens at nine",
        },
        {"file": "draft.txt", "readers": readers("Ada", "Ben")},
        dropped=("tone",),
        written={"verdict.md": "# draft.txt\n\nAccepted: Clear\n\n> opens at nine"},
    ),
    Case(
        "review-board",
        {
            "accepted": False,
            "grades": ["good", "poor"],
            "tone": "unknown",
            "lost": LOST,
            "letter": "# draft.txt\n\nTo change: Add the address.\n",
        },
        {"file": "draft.txt", "readers": readers("Ada", "Cleo")},
        dropped=("tone",),
    ),
    Case(
        "expenses",
        {
            "heading": "Expenses in GBP",
            "sums": {"all": 109.5, "approved": 102.5},
            "first_two": 102.5,
            "bad": ["e4: receipts/lost.txt: no such file or directory"],
        },
        {"currency": "GBP"},
        # Its commands are its own, and the machine of a test need not have a sandbox.
        allow=("shell=unsandboxed",),
        warned=("the fold goes through the first 2 of 3 items",),
        dropped=(3,),
    ),
    Case("office-move", "Dear movers, please come on Friday.", answers={**NO, **MOVE}),
    Case("office-move", "Dear movers, stay at home.", answers={**MOVE, **NO}),
]


@pytest.fixture
def examples(tmp_path: Path, home: Path) -> Path:
    copy = tmp_path / "examples"
    shutil.copytree(EXAMPLES, copy, ignore=shutil.ignore_patterns(".quire", "__pycache__", "verdict.md"))
    confirm(load_settings(find_workspace(copy / "review-board")))
    return copy


@pytest.mark.parametrize("case", CASES, ids=[f"{case.example}-{at}" for at, case in enumerate(CASES)])
def test_runs_to_its_end(case: Case, examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = examples / case.example
    monkeypatch.chdir(home)
    script = home / f"{case.example}.script.json"
    model: Model | None = ScriptedModel.from_file(script) if script.exists() else None
    events: list[Event] = []

    async def run() -> tuple[Status, Value, str]:
        runtime = Runtime.open(home, model=model)
        try:
            options = RunOptions(answers=case.answers, allow=case.allow)
            started = await runtime.start(load(f"{case.example}.yaml"), case.inputs, options)
            ended = await runtime.drive(started, listen=events.append)
            result = ended.result if isinstance(ended.result, Mapping) else {}
            return ended.status, result.get("output"), ended.failure.message if ended.failure else ""
        finally:
            await runtime.close()

    assert asyncio.run(run()) == (Status.COMPLETED, case.output, "")
    assert tuple(event.data["message"] for event in events if event.type == "warning") == case.warned
    failed = [one.data for one in events if one.type == "fan_item" and one.data["state"] == "failed"]
    assert tuple(data.get("name", data.get("index")) for data in failed) == case.dropped
    assert {name: (home / name).read_text(encoding="utf-8") for name in case.written} == case.written


@cache
def _files() -> tuple[PipelineFile, ...]:
    readings = [parse(read_source(path), registered=True) for path in FILES]
    return tuple(reading.file for reading in readings if reading.file)


@cache
def _steps() -> tuple[Step, ...]:
    return tuple(step for file in _files() for pipeline in file.pipelines for _, step in walk(pipeline))


def _bodies(kind: type[object]) -> list[object]:
    return [step.body for step in _steps() if isinstance(step.body, kind)]


def test_all_of_them_are_read_and_run() -> None:
    assert len(_files()) == len(FILES) >= 8
    assert {case.example for case in CASES} == {
        path.parent.name for path in FILES if path.parent.name != "pipelines" and path.parent.name == path.stem
    }
    assert any(len(file.pipelines) > 1 for file in _files()), "a registered file of several"


def test_they_use_every_kind_of_step_with_and_without_output() -> None:
    assert {step.kind for step in _steps()} == set(KEYS)
    assert {step.kind for step in _steps() if step.output} == set(KEYS)
    assert {"transform", "agent", "tool"} <= {step.kind for step in _steps() if not step.output}


def test_they_nest_primitives_in_primitives() -> None:
    inside = {(step.kind, part.kind) for step in _steps() for _, part in parts(step)}
    assert {("parallel", "for_each"), ("for_each", "match"), ("fold", "call"), ("for_each", "agent")} <= inside


def test_they_go_through_lists_from_everywhere() -> None:
    for kind, needed in ((FoldBody, {ExpressionText, type(None)}), (ForEachBody, {ExpressionText, Literal})):
        found = {type(body.source) for body in _bodies(kind) if isinstance(body, FoldBody | ForEachBody)}
        assert found >= needed
    folds = [body for body in _bodies(FoldBody) if isinstance(body, FoldBody)]
    assert {body.max_items is None for body in folds} == {True, False}


def test_they_meet_failures_in_every_way() -> None:
    each = [body for body in _bodies(ForEachBody) if isinstance(body, ForEachBody)]
    assert {body.on_error.policy for body in each} == {"continue", "abort", "retry"}
    assert {body.max_parallel is None for body in each} == {True, False}
    assert {body.max_items is None for body in each} == {True, False}
    side = [body for body in _bodies(ParallelBody) if isinstance(body, ParallelBody)]
    assert {body.on_error.policy if body.on_error else None for body in side} == {"continue", None}
    collects = [*(body.collect for body in each), *(body.collect for body in side)]
    read = [one.text for collect in collects for one in _values(collect) if "errors" in one.text]
    assert len(read) >= 2, "a collect that looks at errors, for each kind"


def _values(step: Step) -> Iterator[ExpressionText]:
    if isinstance(step.body, TransformBody):
        yield step.body.value


def test_they_call_in_every_way() -> None:
    assert _bodies(CallBody)
    forms = {
        None if not target.passes else any(one.value for one in target.passes)
        for step in _steps()
        for target in targets(step)
    }
    assert forms == {None, True, False}, "nothing, a list, a mapping"
    matches = [body for body in _bodies(MatchBody) if isinstance(body, MatchBody)]
    assert {body.default is None for body in matches} == {True, False}
    assert any("." in target.pipeline.text for step in _steps() for target in targets(step)), "KEY.NAME"


def test_they_use_tools_and_commands_in_every_way() -> None:
    tools = [body for body in _bodies(ToolBody) if isinstance(body, ToolBody)]
    assert {"ask", "file__read", "file__write"} <= {body.name.text for body in tools}
    arguments: list[Argument] = [value for body in tools for _, value in body.args]
    assert {type(value) for value in arguments} == {Literal, ExpressionText}
    asked = [{key.text: value for key, value in body.args} for body in tools if body.name.text == "ask"]
    kinds = [one["type"].value for one in asked if isinstance(one.get("type"), Literal)]  # type: ignore[union-attr]
    assert {"confirm", "select"} <= set(kinds) and any("type" not in one for one in asked)
    commands = [body for body in _bodies(ShellBody) if isinstance(body, ShellBody)]
    assert {type(body.command) for body in commands} == {Literal, ExpressionText}
    assert {body.schema is None for body in commands} == {True, False}


def test_their_agents_have_everything() -> None:
    agents = [body for body in _bodies(AgentBody) if isinstance(body, AgentBody)]
    assert {body.identity is None for body in agents} == {True, False}
    assert {body.schema is None for body in agents} == {True, False}
    assert {None if body.tools is None else bool(body.tools) for body in agents} == {None, True, False}
    prompts = "\n".join(body.prompt.text for body in agents)
    for form in ("{ctx.", "{item.", "{pipe}", "{page}", "{{ctx.", '{"'):
        assert form in prompts, form


def test_their_schemas_have_every_type_of_field() -> None:
    fields = [one for file in _files() for schema in file.schemas for one in _all_fields(schema.fields)]
    assert {one.required for one in fields} == {True, False}
    types = [one.type for one in fields]
    assert {type(one) for one in types} == {Simple, Enum, ListOf, Object, Ref}
    assert {one.kind for one in types if isinstance(one, Simple)} == set(Kind)
    assert {type(one.of) for one in types if isinstance(one, ListOf)} == {Simple, Ref}


def _all_fields(fields: tuple[Field, ...]) -> Iterator[Field]:
    for one in fields:
        yield one
        inner: FieldType = one.type
        if isinstance(inner, Object):
            yield from _all_fields(inner.fields)


def test_expressions_use_every_combinator() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
    for name in ("map(", "filter(", "all(", "count(", "sum(", "join(", "get(", "any(", "find("):
        assert name in text, name
