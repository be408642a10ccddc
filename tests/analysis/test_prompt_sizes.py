"""No call reads more than is proven of its step: the prompts that runs really send are measured and compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.given import given
from tests.play import Play

from quire.engine.ports import ModelCall, ModelReply
from quire.formats.test.parse import parse
from quire.library.document import read
from quire.library.foresight import Foresight
from quire.models.tokens import call_tokens_at_most
from quire.plan.nodes import Plan
from quire.plan.vocabulary import last_label
from quire.source import Source, read_source
from quire.testing.case_run import CaseRun
from quire.testing.file_run import OpenTest, open_test
from quire.testing.world.model import CaseModel
from quire.values import Value

EXAMPLES = Path(__file__).parents[2] / "examples"
TESTS = sorted(EXAMPLES.rglob("*.test.yaml"))


class Compared:
    """Compares the first calls of steps with the proof of their document."""

    def __init__(self, foresight: Foresight, plan: Plan, name: str, inputs: dict[str, Value]) -> None:
        self._proof = foresight.proof(plan, name, inputs=inputs)
        self.count = 0

    def larger(self, calls: list[ModelCall]) -> Iterator[str]:
        for call in calls:
            if "/turn[" in call.path or "/repair[" in call.path:
                continue
            label = last_label(call.label)
            facts = [one.first.as_number for one in self._proof.model_calls if one.place.step.label == label]
            if not facts or None in facts:
                continue
            seen, most = call_tokens_at_most(dataclasses.replace(call, tools=())), max(one or 0 for one in facts)
            self.count += 1
            if seen > most:
                yield f"step {call.label} reads up to {seen:,} tokens, and at most {most:,} are proven"


@pytest.mark.slow
def test_the_prompts_of_the_examples_are_not_larger_than_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[ModelCall] = []
    complete = CaseModel.complete

    async def kept(self: CaseModel, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        calls.append(call)
        return await complete(self, call, on_delta)

    monkeypatch.setattr(CaseModel, "complete", kept)
    compared = 0
    for path in TESTS:
        opened = open_test(parse(read_source(path)))
        assert isinstance(opened, OpenTest)
        for wanted in opened.rows:
            calls.clear()
            run = CaseRun(opened.bench, replace(wanted.case, then=(), crash_everywhere=False))
            run.play()
            start = CaseRun(opened.bench, wanted.case).prepare()
            if start is None or start.run.plan.format == "directive":
                continue
            pinned = start.run
            foresight = Foresight(run._settings, pinned.setting.documents)
            found = Compared(foresight, pinned.plan, pinned.document.name, dict(pinned.pins.inputs))
            assert list(found.larger(calls)) == [], f"{path}: {wanted.name}"
            compared += found.count
    assert compared > 100


async def sent(play: Play, name: str, text: str, inputs: dict[str, Value]) -> tuple[Compared, list[ModelCall]]:
    """Run a document with short replies; return its proof, and the calls that it made."""
    document = read(Source.of(text, str(play.folder / name)))
    assert not document.diagnostics
    await play(document, [{"default": '{"a": "b"}'}], inputs, unattended=True)
    foresight = Foresight(play.runtime.settings)
    return Compared(foresight, document.runnable(), document.name, inputs), play.model.calls


LONG = "word " * 4_000
SCHEMA = f"""schema: Long
fields:
  a: {{type: string, description: "{LONG}"}}
---
pipeline: p
dialect: quire
steps:
  - agent: {{prompt: "Hi {{ctx.doc}}", schema: Long, capabilities: {{tools: []}}}}
"""
NESTED = f"""schema: Part
fields:
  b: {{type: string, description: "é\\n{LONG}"}}
---
schema: Whole
fields:
  a: {{type: string}}
  parts: {{type: list, of: {{type: ref, schema: Part}}, required: false}}
---
pipeline: p
dialect: quire
steps:
  - agent: {{prompt: Hi, schema: Whole, capabilities: {{tools: []}}}}
"""
WORDS = ", ".join(f'"{LONG[:80]}{at}"' for at in range(100))
ENUM = f'# P\n\n## STEP 1: One\n\nSay.\n\n@output(x: enum, {WORDS}, extract:"a")\n'
SYSTEM = f"# P\n\n## SYSTEM\n\n{LONG}\n\n## INPUTS\n\n- `doc` (string): D\n\n## STEP 1: One\n\nSay {{{{doc}}}}.\n"
ASKED = """# P

## INPUTS

- `doc` (string): the text

## STEP 1: One

@elicit(input, "Well?", default:"{{doc}}")

## STEP 2: Two

@elicit(input, "And?", default:"{{doc}}")

Say it.

@context(%s)
"""


@pytest.mark.parametrize(
    ("name", "text", "inputs", "settings"),
    [
        ("p.yaml", SCHEMA, {"doc": "x" * 500}, ""),
        ("p.yaml", SCHEMA, {"doc": ["é\n", {"a": 1}] * 50}, f'[agents.default]\nsystem = "{LONG}"\n'),
        ("p.yaml", NESTED, {}, ""),
        ("p.playbook.md", ENUM, {}, ""),
        ("p.playbook.md", ASKED % "1", {"doc": "x" * 3000}, ""),
        ("p.playbook.md", ASKED % "none", {"doc": "x" * 3000}, ""),
        ("p.playbook.md", SYSTEM, {"doc": "é" * 500}, ""),
    ],
)
async def test_everything_that_is_sent_is_counted(
    play: Play, name: str, text: str, inputs: dict[str, Value], settings: str
) -> None:
    given({"home/quire.toml": settings})
    compared, calls = await sent(play, name, text, inputs)
    assert list(compared.larger(calls)) == []
    assert compared.count
