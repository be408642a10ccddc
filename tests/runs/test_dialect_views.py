"""Runs with blocks, loops and survived failures, as they are looked at: progress, stores, origins, the plain log."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from tests.runs.travel import Travel

from quire.display.run_json import step_data
from quire.display.run_views import PlainView
from quire.display.text import fan_words
from quire.engine.progress import Progress
from quire.engine.records import Event, Status
from quire.errors import BadInputs, RunState
from quire.library.document import load, read
from quire.runs.diff import diff
from quire.runs.options import RunOptions, check_step_labels
from quire.runs.outcome import RunView
from quire.runs.why import traced, why
from quire.source import Source
from quire.values import Value

RICH = """
pipeline: rich
dialect: quire
input:
  early: {type: bool, default: false}
steps:
  - steps:
      output: draft
      do:
        - agent: {prompt: "Draft it", output: first}
        - steps:
            - agent: {prompt: "Improve {first}", output: better}
            - transform: {value: "better", when: "false", output: never}
        - transform: {value: "pipe + '!'"}
  - match:
      on: "'bug'"
      cases:
        bug: {steps: [{agent: {prompt: "Find it in {draft}", on_error: "retry(1), continue", output: cause}},
                      {transform: {value: "errors.cause.message"}}]}
        wish: {steps: [{steps: [{agent: {prompt: "Rate it"}}]}]}
      output: handled
  - for_each:
      items: [one, two]
      on_error: continue
      do:
        steps:
          - agent: {prompt: "Sum up {item}", output: s}
          - repeat: {init: s, max: 9, until: "round == 2", do: {agent: {prompt: "Shorten {acc}, {round}, {s}"}}}
      collect: {transform: {value: pipe}}
      output: shorts
  - repeat:
      max: 9
      until: "acc == 3"
      output: count
      do: {steps: [{transform: {value: "get(ctx, 'seen', 0) + 1", output: seen}}, {transform: {value: "round"}}]}
  - stop: {value: "'early'", when: early}
  - steps:
      on_error: continue
      default: "'default'"
      output: last
      do:
        - agent: {prompt: "The last word", output: word}
        - fail: {message: "not {word}", when: "word != 'amen'"}
  - steps:
      - steps: [{transform: {value: "errors.last.message + get(ctx, 'word', '')"}}]
"""
SCRIPT: list[Value] = [
    {"contains": "Draft it", "reply": "a draft"},
    {"contains": "Improve a draft", "reply": "better"},
    {"contains": "Find it", "error": "busy"},
    {"contains": "Find it", "error": "busy still"},
    {"default": "words"},
]


async def _seen(folder: Path, **inputs: Value) -> RunView:
    travel = Travel(folder / "work")
    travel.write("rich.yaml", RICH)
    run, ended = await travel.run("rich.yaml", inputs, SCRIPT)
    assert ended.status is Status.COMPLETED, ended
    async with travel.runtime() as runtime:
        return await traced(runtime, run)


async def test_steps_of_blocks_and_survived_failures_are_seen(tmp_path: Path) -> None:
    view = await _seen(tmp_path)
    steps = {step.label: step for step in view.replay.progress.steps.values()}
    assert {label: step.status for label, step in steps.items() if step.status != "completed"} == {
        "1.2.2": "skipped",
        "2.wish.1": "skipped",
        "2.wish.1.1": "skipped",
        "5": "skipped",
        "6.2": "failed",
    }
    assert {label: step.survived for label, step in steps.items() if step.survived} == {
        "2.bug.1": "busy still",
        "6": "not {word}",
        "6.2": "not {word}",
    }
    assert step_data(steps["6"])["survived"] == "not {word}" and "survived" not in step_data(steps["1"])
    assert [steps[label].depth for label in ("1", "1.2", "1.2.1", "2.bug.1")] == [0, 1, 2, 1]


async def test_a_loop_that_ended_has_as_many_rounds_as_it_needed(tmp_path: Path) -> None:
    fan = (await _seen(tmp_path)).replay.progress.steps["4"].fan
    assert fan is not None and fan_words(fan) == "3 rounds"
    fan.total = 9
    assert fan_words(fan) == "3 of at most 9 rounds"


async def test_a_failed_attempt_leaves_no_stores(tmp_path: Path) -> None:
    view = await _seen(tmp_path)
    assert "word" not in view.stores and view.stores["last"] == "default"
    assert [(one.name, one.source) for one in why(view, "7.1.1").values] == [
        ("errors.last", "step 6"),
        ("word", "no step"),
    ]


async def test_after_a_stop_the_rest_is_skipped(tmp_path: Path) -> None:
    view = await _seen(tmp_path, early=True)
    statuses = {step.label: step.status for step in view.replay.progress.steps.values()}
    assert statuses["5"] == "completed" and view.row.status is Status.COMPLETED
    assert {statuses[label] for label in ("6", "6.1", "6.2", "7", "7.1", "7.1.1")} == {"skipped"}


READS = {
    "1": [],
    "1.2": [("first", "step 1.1")],
    "1.2.1": [("first", "step 1.1")],
    "1.3": [("pipe", "step 1.2")],
    "2": [("draft", "step 1")],
    "2.bug.2": [("errors.cause", "step 2.bug.1")],
    "3.do.2": [("s", "step 3.do.1, in each round or item")],
    "3.do.2.do": [("s", "step 3.do.1, in each round or item")],
    "3.collect": [],
    "4.do.1": [("seen", "step 4.do.1, in each round or item")],
    "6.2": [("word", "step 6.1")],
}


async def test_origins_name_the_writer_inside_of_blocks_and_loops(tmp_path: Path) -> None:
    view = await _seen(tmp_path)
    found = {label: [(one.name, one.source) for one in why(view, label).values] for label in READS}
    assert found == READS
    assert why(view, "3.do.2").title == "Repeat" and why(view, "4.do.2").label == "4.do.2"


async def test_a_step_that_was_not_reached_is_not_explained(tmp_path: Path) -> None:
    travel = Travel(tmp_path / "work")
    travel.write("rich.yaml", RICH)
    run, ended = await travel.run("rich.yaml", {}, [{"error": "gone"}])
    async with travel.runtime() as runtime:
        view = await traced(runtime, run)
    assert ended.status is Status.FAILED and view.row.position == "1.1"
    with pytest.raises(RunState, match=r"has not come to 4\.do\.1"):
        why(view, "4.do.1")


async def test_the_plain_log_says_what_was_survived_and_how_many_rounds(tmp_path: Path) -> None:
    travel = Travel(tmp_path / "work")
    travel.write("rich.yaml", RICH)
    document = load(travel.folder / "rich.yaml")
    text = io.StringIO()
    progress = Progress.of(document.runnable())
    view = PlainView(progress, text)
    async with travel.runtime(SCRIPT) as runtime:
        run = await runtime.start(document, {}, RunOptions())

        def listen(event: Event) -> None:
            progress.apply(event)
            view.show(event)

        await runtime.drive(run, listen=listen)
    assert "  [2.bug.1] cause … done 0.0s, survived: busy still\n" in text.getvalue()
    assert "[4/7] count … done 0.0s (3 rounds)\n" in text.getvalue()
    assert "[6/7] last … done 0.0s, survived: not {word}\n" in text.getvalue()


@pytest.mark.parametrize(
    ("step", "position"),
    [
        ("{steps: [{steps: [{fail: {message: no}}]}]}", "2.1.1"),
        ("{fail: {message: no}}", "2"),
        ("{match: {on: \"'a'\", cases: {a: {steps: [{fail: {message: no}}]}}}}", "2.a.1"),
        ("{repeat: {max: 1, until: 'false', do: {transform: {value: '1'}}}}", "2"),
    ],
)
async def test_a_failure_without_an_effect_is_at_its_step(step: str, position: str, tmp_path: Path) -> None:
    travel = Travel(tmp_path / "work")
    travel.write("no.yaml", f"pipeline: no\ndialect: quire\nsteps:\n  - agent: {{prompt: hello}}\n  - {step}\n")
    run, ended = await travel.run("no.yaml", {}, ["hi"])
    async with travel.runtime() as runtime:
        view = await runtime.view(run)
    assert (ended.position, view.row.position) == (position, position)


AGAIN = """
pipeline: again
dialect: quire
steps:
  - steps:
      on_error: retry(1)
      do:
        - agent: {prompt: "Say it"}
        - fail: {message: no, when: "pipe == 'no'"}
"""


async def test_effects_of_a_retried_block_belong_to_its_steps(tmp_path: Path) -> None:
    travel = Travel(tmp_path / "work")
    travel.write("again.yaml", AGAIN)
    usage: Value = {"input_tokens": 1, "output_tokens": 2, "cost": 0.5}
    script: list[Value] = [{"reply": "no", "usage": usage}, {"reply": "fine", "usage": usage}]
    run, _ = await travel.run("again.yaml", {}, script)
    other, _ = await travel.run("again.yaml", {}, [script[0], {"reply": "well", "usage": usage}])
    async with travel.runtime() as runtime:
        view, changed = await traced(runtime, run), await traced(runtime, other)
    steps = view.replay.progress.steps
    assert (steps["1"].cost, steps["1/steps/1"].cost, steps["1/steps/2"].status) == (0.0, 1.0, "skipped")
    # The change of the reply stands at the step that asked for it, and not at the block as well.
    differences = {one.path: [change.what for change in one.changes] for one in diff(view, changed).steps}
    assert differences == {"1": ["output"], "1/steps/1": ["reply", "output"], "1/steps/2": []}


def test_a_run_does_not_stop_inside_of_a_block(tmp_path: Path) -> None:
    plan = read(Source.of(AGAIN, "again.yaml")).runnable()
    with pytest.raises(BadInputs, match=r"breakpoint 1\.2: a run does not stop inside of step 1"):
        check_step_labels(plan, ("1.2",), {})
