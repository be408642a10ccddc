"""A model writes pipelines from the grammar, is told its errors and corrects them: `bench/authoring.py` on a real file.

The other tests here let a script be the author, so that what is measured is known.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bench.authoring import LEAD, MODEL, TASKS, UNSEEN, Attempt, attempt, author, measure, rows_of

from quire.formats.grammars import PIPELINE
from quire.models.scripted import ScriptedModel

BY_NAME = {task.name: task for task in (*TASKS, *UNSEEN)}
SUM = "pipeline: add\nsteps:\n  - transform: {value: 'sum(ctx.numbers)'}\n"
RIGHT = {
    "all above": 'pipeline: p\nsteps:\n  - transform: {value: "all(ctx.numbers, n -> n > ctx.least)"}\n',
    "names in a line": "pipeline: p\nsteps:\n  - transform: {value: \"join(map(ctx.people, p -> p.name), ', ')\"}\n",
    "one after the other": 'pipeline: p\nsteps:\n  - agent: {prompt: "French: {ctx.text}"}\n'
    '  - agent: {prompt: "Correct {pipe}"}\n',
    "several files": "pipeline: p\nsteps:\n  - for_each:\n      over: ctx.paths\n      on_error: abort\n"
    "      do: {tool: {name: file__read, args: {path: !expr item}}}\n      collect: {transform: {value: pipe}}\n",
    "one of two": "schema: K\nfields: {kind: {type: enum, values: [question, complaint]}}\n---\npipeline: p\nsteps:\n"
    '  - agent: {prompt: "What is {ctx.mail}?", schema: K, output: k}\n  - transform: {value: k.kind}\n',
    "sum": SUM,
    "greet": "pipeline: p\nsteps:\n  - transform: {value: \"'Hello, ' + ctx.name + '!'\"}\n",
    "large orders": "pipeline: p\nsteps:\n"
    '  - transform: {value: "map(filter(ctx.orders, o -> o.amount > 100), o -> o.customer)"}\n',
    "summary file": 'pipeline: p\nsteps:\n  - agent: {prompt: "Sum up {ctx.text}", output: s}\n'
    "  - tool: {name: file__write, args: {path: summary.txt, content: !expr s}}\n",
    "typed review": "schema: R\nfields: {passed: {type: bool}, notes: {type: string}}\n---\npipeline: p\nsteps:\n"
    '  - agent: {prompt: "Review {ctx.doc}", schema: R, output: r}\n'
    "  - transform: {value: \"r.passed and 'publish' or 'rewrite'\"}\n",
    "one each": "pipeline: p\nsteps:\n  - for_each:\n      over: ctx.cities\n      on_error: abort\n"
    '      do: {agent: {prompt: "A building in {item}"}}\n      collect: {transform: {value: pipe}}\n',
    "side by side": "pipeline: p\nsteps:\n  - parallel:\n      branches:\n"
    '        facts: {agent: {prompt: "Facts of {ctx.doc}"}}\n        tone: {agent: {prompt: "Tone of {ctx.doc}"}}\n'
    '      collect: {transform: {value: "{facts: facts, tone: tone}"}}\n',
    "read a file": "pipeline: p\nsteps:\n  - tool: {name: file__read, args: {path: notes.txt}, output: notes}\n"
    '  - agent: {prompt: "The tasks in {notes}"}\n',
    "ask first": 'pipeline: p\nsteps:\n  - tool: {name: ask, args: {prompt: "Publish it?", type: confirm}}\n',
    "running text": "pipeline: p\nsteps:\n"
    "  - fold: {over: ctx.words, init: \"''\", do: {transform: {value: acc + item}}, output: text}\n",
}


@pytest.mark.parametrize("name", BY_NAME)
async def test_every_task_can_be_done(name: str) -> None:
    done = await attempt(RIGHT[name], BY_NAME[name])
    assert (done.valid, done.right, done.error) == (True, True, "")


@pytest.mark.parametrize("name", BY_NAME)
async def test_a_valid_definition_need_not_be_right(name: str) -> None:
    other = await attempt("pipeline: p\nsteps:\n  - transform: {value: '0'}\n", BY_NAME[name])
    assert (other.valid, other.right) == (True, False)


async def test_the_author_is_told_its_errors_until_they_are_gone() -> None:
    model = ScriptedModel(["pipeline: add\nsteps:\n  - transfrom: {value: '1'}\n", "no yaml: [", f"```yaml\n{SUM}```"])
    heard: list[str] = []
    tries = await author(model, PIPELINE.text, BY_NAME["sum"], heard.append)
    assert [(one.valid, one.right) for one in tries] == [(False, False), (False, False), (True, True)]
    assert "did you mean transform?" in tries[0].error and len(heard) == 3
    first, second = model.calls[0], model.calls[1]
    assert first.system.startswith(LEAD) and PIPELINE.text in first.system
    assert tries[0].error in second.messages[-1].content


async def test_after_two_repairs_it_is_over() -> None:
    tries = await author(ScriptedModel(["nonsense"] * 5), PIPELINE.text, BY_NAME["sum"])
    assert [one.valid for one in tries] == [False] * 3


def test_the_shares() -> None:
    bad, failed = Attempt("", False, False, False, ""), Attempt("", True, False, False, "")
    right = Attempt("", True, True, True, "")
    rows = rows_of([[right], [bad, failed, failed], [bad, bad, right], [bad, bad, bad]])
    assert [row.value for row in rows] == [25, 50, 75, 50, 50]


def test_without_a_model_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv(MODEL, raising=False)
    assert measure() == [] and MODEL in capsys.readouterr().err


@pytest.mark.skipif(not os.environ.get(MODEL), reason=f"{MODEL} does not name a model file")
async def test_a_real_model_writes_some_that_run() -> None:
    from quire.models.local import LocalModel

    model = LocalModel(Path(os.environ[MODEL]), name="author")
    names = ("sum", "greet", "summary file")
    tries = {name: await author(model, PIPELINE.text, BY_NAME[name]) for name in names}
    assert sum(one[-1].right for one in tries.values()) >= 2, tries
