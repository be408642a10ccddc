"""What a step would send, found by walking the real interpreter with stand-ins."""

from __future__ import annotations

import pytest

from quire.engine.interpreter.playbook.interpret import interpret
from quire.engine.interpreter.preview import find_step, preview, stand_in_inputs
from quire.engine.records import EffectRecord
from quire.engine.request_hashes import request_hash
from quire.engine.requests import Load, ModelRequest
from quire.errors import BadInputs, CannotStart, StepFailed
from quire.library.document import read
from quire.plan.nodes import Plan
from quire.source import Source


def plan(text: str) -> Plan:
    return read(Source.of(f"# T\n\n{text}", "page.md")).runnable()


def no_texts(request: Load) -> str | None:
    return None


BRANCHES = """## SYSTEM

Be brief.

## INPUTS

- `tier` (enum: low, high): Which

## STEP 1: Look

Look at {{tier}}.

@output(seen)

## STEP 2: Act

```if tier == "low"```

### STEP 2a: Little

Do little with {{seen}}.

```else```

### STEP 2b: Much

Do much with {{seen}}.

```endif```

## STEP 3: Ask

@elicit(input, "Why?")

## STEP 4: End

Because {{__elicit_step_3}}.
"""


@pytest.mark.parametrize(
    ("step", "user", "told", "untold", "notes"),
    [
        ("1", "Look at low.", ["Be brief."], ["Results"], 0),
        ("2a", "Do little with [output of step 1].", ["[Step 1: Look]\n[output of step 1]"], ["step 2"], 0),
        ("2B", "Do much with [output of step 1].", ["[output of step 1]"], ["[output of step 2a]"], 1),
        ("4", "Because [answer to step 3].", ["[output of step 2a]"], ["[output of step 2b]"], 0),
    ],
)
def test_what_stands_where(step: str, user: str, told: list[str], untold: list[str], notes: int) -> None:
    page = plan(BRANCHES)
    path, _ = find_step(page, step)
    found = preview(page, {"tier": "low"}, path, no_texts)
    assert found.request.messages[0].content == user
    assert [text for text in told if text not in found.request.system] == []
    assert [text for text in untold if text in found.request.system] == []
    assert len(found.notes) == notes


def test_it_is_what_the_interpreter_sends() -> None:
    page = plan(BRANCHES)
    walk = interpret(page, {"tier": "low"})
    request = next(walk)
    while not isinstance(request, ModelRequest):
        request = next(walk)
    assert preview(page, {"tier": "low"}, "1", no_texts).request == request


def test_records_are_used_before_stand_ins_and_only_for_the_same_request() -> None:
    page = plan(BRANCHES)
    first = preview(page, {"tier": "low"}, "1", no_texts).request
    right = EffectRecord("1/model", "model", "ok", request_hash(first), 0.0, {"text": "a real reply"})
    other = EffectRecord("1/model", "model", "ok", "another", 0.0, {"text": "of another request"})
    for record, expected in ((right, "a real reply"), (other, "[output of step 1]")):
        found = preview(page, {"tier": "low"}, "2/case[1]/1", no_texts, records=[record])
        assert found.request.messages[0].content == f"Do little with {expected}."


@pytest.mark.parametrize(
    ("text", "step", "said"),
    [
        ('## STEP 1: A\n\n@elicit(confirm, "Go?")\n', "1", "asks a person"),
        ("## STEP 1: A\n\n@tool(shop, buy, {})\n", "1", "calls the tool shop/buy"),
        (BRANCHES, "2", "its branches do (2a, 2b)"),
        (BRANCHES, "9", "the steps are 1, 2, 2a, 2b, 3, 4"),
        ("## STEP 1: A\n\nx\n\n## STEP 1: B\n\ny\n", "1", "say which by its place (1, 2)"),
        ("## STEP 1: A\n\n@prompt({{nobody}})\n\nx\n", "1", "step 1 would fail"),
        ("## STEP 1: A\n\n@prompt({{nobody}})\n\nx\n\n## STEP 2: B\n\ny\n", "2", "step 1 would fail"),
        ("## STEP 1: A\n\n@prompt(file:gone.md)\n\nx\n", "1", "step 1 would fail: it is gone"),
        ("## STEP 1: A\n\n@prompt(library:none)\n", "1", "its text is empty"),
    ],
)
def test_steps_without_a_prompt_say_why(text: str, step: str, said: str) -> None:
    def texts(request: Load) -> str | None:
        if request.scheme == "file":
            raise StepFailed("it is gone", path=request.path)
        return None

    page = plan(text)
    with pytest.raises(CannotStart) as caught:
        path, _ = find_step(page, step)
        preview(page, {"tier": "low"}, path, texts)
    assert said in str(caught.value)


def test_prompts_are_read_and_rendered_and_those_of_servers_stand_in() -> None:
    inputs = "## INPUTS\n\n- `who` (string): Who\n\n"
    page = plan(f"{inputs}## STEP 1: A\n\n@prompt(library:tone)\n\nGo.\n\n## STEP 2: B\n\n@prompt(mcp:s/p)\n")
    found = preview(page, {"who": "Ada"}, "1", lambda request: "Write to {{who}}.")
    assert found.request.messages[0].content == "Write to Ada.\n\nGo."
    served = preview(page, {"who": "Ada"}, "2", no_texts)
    assert served.request.messages[0].content == "[prompt mcp:s/p]"
    assert "fetched when the step runs" in served.notes[0]


def test_a_prompt_that_an_earlier_step_cannot_read_is_a_note() -> None:
    def gone(request: Load) -> str | None:
        raise StepFailed("it is gone", path=request.path)

    page = plan("## STEP 1: A\n\n@prompt(file:gone.md)\n\nx\n\n## STEP 2: B\n\ny\n")
    found = preview(page, {}, "2", gone)
    assert found.request.messages[0].content == "y"
    assert found.notes == ("step 1 would fail: it is gone",)


def test_tool_results_stand_in_even_where_the_arguments_would_not_fit() -> None:
    page = plan("## STEP 1: A\n\nx\n\n@output(x)\n\n## STEP 2: T\n\n@tool(c, t, {{x}})\n\n## STEP 3: B\n\ny\n")
    assert "[result of step 2]" in preview(page, {}, "3", no_texts).request.system


def test_a_step_that_would_be_skipped_shows_its_own_work() -> None:
    text = (
        "## INPUTS\n\n- `tier` (string): Which\n\n## STEP 1: A\n\nOwn text.\n\n"
        '```if tier == "low"```\n\n### STEP 1a: L\n\nLow.\n\n```endif```\n'
    )
    found = preview(plan(text), {"tier": "high"}, "1", no_texts)
    assert found.request.messages[0].content == "Own text."
    assert "would be skipped" in found.notes[0]


def test_missing_inputs_stand_as_their_placeholders() -> None:
    page = plan(
        "## INPUTS\n\n- `n` (number): N\n- `who` (string: Ada): Who\n- `tier` (enum: a, b): T\n\n## STEP 1: A\n\nx\n"
    )
    assert stand_in_inputs(page, {}) == ({"n": "{{n}}", "who": "Ada", "tier": "{{tier}}"}, ["n", "tier"])
    assert stand_in_inputs(page, {"n": 3, "tier": "b"}) == ({"n": "3", "who": "Ada", "tier": "b"}, [])
    with pytest.raises(BadInputs, match="did you mean tier"):
        stand_in_inputs(page, {"teir": "a"})
    with pytest.raises(BadInputs, match="not a number"):
        stand_in_inputs(page, {"n": "many"})
