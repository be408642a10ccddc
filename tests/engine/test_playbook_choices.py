"""Playbooks that choose: which results a model sees (`@context`), which of them is the artifact (`from:`), which prompt
file is read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.test_interpret import prompts, replies, run

from quire.engine.interpreter.callees import Environment, Profile
from quire.engine.requests import Effect, HumanRequest, Load, ModelRequest, Offer, ToolRequest
from quire.errors import StepFailed
from quire.formats.playbook.lower import lower
from quire.formats.playbook.parse import parse
from quire.plan.nodes import Plan, StepModel, Think
from quire.source import Source

OPENING = "Results of the earlier steps, oldest first:\n\n"


def read(text: str) -> Plan:
    found = parse(Source.of("# T\n\n" + text)).playbook
    assert found is not None
    return lower(found)


def seen(text: str, at: str, inputs: dict[str, str] | None = None, **settings: Any) -> str:
    """Return the system text of the model call at a path."""
    asked, _, _ = run(read(text), inputs=inputs or {}, **settings)
    return {path: system for path, system, _ in prompts(asked)}[at]


THREE = """\
## STEP 1: A

one
@output(first)

## STEP 2: B

@elicit(input, "Q?")

## STEP 3: C

three
{}
"""


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "[Step 1: A]\n<one>\n\n[Step 2: B, answer of the user]\nanswer"),
        ("@context(first)", "[Step 1: A]\n<one>"),
        ("@context(1)", "[Step 1: A]\n<one>"),
        ("@context(2)", "[Step 2: B, answer of the user]\nanswer"),
        ("@context(__elicit_step_2)", "[Step 2: B, answer of the user]\nanswer"),
        ("@context(2, first)", "[Step 1: A]\n<one>\n\n[Step 2: B, answer of the user]\nanswer"),
    ],
)
def test_a_model_sees_the_results_that_are_named(line: str, told: str) -> None:
    assert seen(THREE.format(line), "3/model") == OPENING + told


@pytest.mark.parametrize("line", ["@context(none)", "@context(nothing_of_that_name)"])
def test_it_may_see_nothing(line: str) -> None:
    assert seen(THREE.format(line), "3/model") == ""
    assert seen("## SYSTEM\n\nBe brief.\n\n" + THREE.format(line), "3/model") == "Be brief."


def test_its_own_answer_is_not_an_earlier_result() -> None:
    text = THREE.format('@context(none)\n@elicit(input, "More?")')
    assert seen(text, "3/model") == OPENING + "[Step 3: C, answer of the user]\nanswer"


BRANCH = """\
## INPUTS

- `x` (string): x

## STEP 1: A

one

## STEP 2: B

two

```if x == "a"```

### STEP 2a: P

deep
@output(deep)

### STEP 2b: Q

deeper
{}

```else```

### STEP 2c: R

flat
@output(deep)

```endif```

## STEP 3: C

three
{}
"""


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        ("@context(2)", ["2", "2a", "2b"]),
        ("@context(2b)", ["2b"]),
        ("@context(deep)", ["2a"]),
        ("@context(2c, 1)", ["1"]),
    ],
)
def test_a_step_with_branches_stands_for_its_sub_steps_too(line: str, labels: list[str]) -> None:
    told = seen(BRANCH.format("", line), "3/model", {"x": "a"})
    assert [part.split(":")[0] for part in told.split("[Step ")[1:]] == labels


def test_the_arm_that_ran_gives_the_name() -> None:
    assert seen(BRANCH.format("", "@context(deep)"), "3/model", {"x": "b"}) == OPENING + "[Step 2c: R]\n<flat>"


def test_a_sub_step_chooses_for_itself() -> None:
    told = seen(BRANCH.format("@context(2a)", ""), "2/case[1]/2/model", {"x": "a"})
    assert told == OPENING + "[Step 2a: P]\n<deep>"


def test_a_skipped_step_leaves_nothing_to_choose() -> None:
    text = (
        '## STEP 1: A\n\none\n\n## STEP 2: B\n\n@elicit(input, "Q?")\n\n```if none == "x"```\nwords\n```endif```\n\n'
        "## STEP 3: C\n\nthree\n@context(2, __elicit_step_2)\n\n## STEP 4: D\n\nfour\n@context(1, 3)\n"
    )
    assert seen(text, "3/model") == ""
    assert seen(text, "4/model") == OPENING + "[Step 1: A]\n<one>\n\n[Step 3: C]\n<three>"


def test_the_budget_holds_for_chosen_results_too() -> None:
    told = seen(THREE.format("@context(1, 2)"), "3/model", context_budget=45)
    assert told == OPENING + (
        "[The result of 1 earlier step is left out: it does not fit.]\n\n[Step 2: B, answer of the user]\nanswer"
    )


def result(text: str, inputs: dict[str, str] | None = None, answer: Any = replies) -> tuple[Any, list[str]]:
    _, said, found = run(read(text), answer, inputs=inputs or {})
    return found, [str(one.data["message"]) for one in said if one.type == "warning"]


def test_the_artifact_is_the_named_output() -> None:
    found, warned = result(THREE.format("") + "\n## ARTIFACTS\n\nfrom: first\n")
    assert (found["output"], found["artifact_type"], warned) == ("<one>", "", [])
    assert "artifact" not in found


def test_the_artifact_of_a_step_is_what_a_person_is_shown_of_it() -> None:
    text = '## STEP 1: A\n\none\n@output(x, extract:"x")\n\n## STEP 2: B\n\ntwo\n\n## OUTPUT\n\ntype: json\nfrom: {}\n'

    def answer(request: Effect) -> Any:
        return {"text": '[1]\n{"x": "picked"}'} if isinstance(request, ModelRequest) else replies(request)

    found, _ = result(text.format("1"), answer=answer)
    assert (found["output"], found["artifact"]) == ('[1]\n{"x": "picked"}', "[1]")
    found, _ = result(text.format("x"), answer=answer)
    assert found["output"] == "picked" and "artifact" not in found


def test_the_artifact_of_a_step_that_wrote_a_file_is_the_content() -> None:
    text = (
        '## STEP 1: A\n\n@tool(quire, file__write, {"path": "x.md", "content": "# {{y:string:Tea}}"})\n\n'
        "## STEP 2: B\n\ntwo\n\n## ARTIFACTS\n\ntype: markdown\nfrom: 1\n"
    )
    found, _ = result(text)
    assert (found["output"], found["artifact"]) == ("<file__write>", "# Tea")


@pytest.mark.parametrize(("x", "artifact", "warned"), [("a", "<deeper>", 0), ("b", "<three>", 1)])
def test_a_source_that_did_not_run_is_a_warning_and_nothing_is_lost(x: str, artifact: str, warned: int) -> None:
    found, warnings = result(BRANCH.format("", "") + "\n## ARTIFACTS\n\nfrom: 2b\n", {"x": x})
    assert found["output"] == artifact
    assert len(warnings) == warned
    assert all("the artifact comes from 2b, which has no result in this run" in one for one in warnings)


def test_a_step_of_branches_alone_has_the_result_of_its_last_sub_step() -> None:
    text = BRANCH.format("", "").replace("\ntwo\n", "") + "\n## ARTIFACTS\n\nfrom: 2\n"
    assert result(text, {"x": "a"})[0]["output"] == "<deeper>"


def test_an_output_wins_over_a_step_of_the_same_name() -> None:
    text = "## STEP 1: A\none\n@output(2)\n## STEP 2: B\ntwo\n## STEP 3: C\nthree\n@context(2)\n## OUTPUT\nfrom: 2"
    assert result(text)[0]["output"] == "<one>"
    assert seen(text, "3/model") == OPENING + "[Step 1: A]\n<one>"


PICKED = "## STEP 1: A\n\none\n@output(kind)\n\n## STEP 2: B\n\n@prompt(file:{})\n"


@pytest.mark.parametrize("kind", [".env", "x/.git/config", "../.quire/quire.db", "a\\.ssh\\id"])
def test_a_reply_cannot_choose_a_hidden_file(kind: str) -> None:
    def answer(request: Effect) -> Any:
        return {"text": kind} if isinstance(request, ModelRequest) else replies(request)

    with pytest.raises(StepFailed, match="a value must not lead to a hidden file or folder"):
        run(read(PICKED.format("prompts/{{kind}}")), answer)


@pytest.mark.parametrize("path", [".prompts/{{kind}}.md", "./{{kind}}.md"])
def test_a_document_may_name_a_hidden_folder_itself(path: str) -> None:
    def answer(request: Effect) -> Any:
        return {"text": "short"} if isinstance(request, ModelRequest) else "words"

    asked, _, _ = run(read(PICKED.format(path)), lambda one: {} if one.path.endswith("/break") else answer(one))
    assert [one.where for one in asked if isinstance(one, Load)] == [path.replace("{{kind}}", "short")]


def cast(plan: Plan, model: StepModel) -> Plan:
    from msgspec.structs import replace

    steps = [
        replace(step, work=replace(step.work, cast=model)) if isinstance(step.work, Think) else step
        for step in plan.body.steps
    ]
    return replace(plan, body=replace(plan.body, steps=tuple(steps)))


def test_a_step_may_have_a_model_of_its_own() -> None:
    plan = cast(read("## STEP 1: A\n\none\n"), StepModel("house:small", budget=5))
    asked, _, _ = run(plan)
    assert [one.model for one in asked if isinstance(one, ModelRequest)] == ["house:small"]


def test_a_step_may_use_tools_that_only_read() -> None:
    plan = cast(read('## STEP 1: A\n\none\n@output(x, extract:"x")\n'), StepModel(agent="reader", tools=("file__*",)))
    turns = iter(
        [
            {"text": "", "uses": [["1", "file__read", {"path": "a"}], ["2", "file__write", {}], ["3", "ask", {}]]},
            {"text": 'done\n{"x": "y"}'},
        ]
    )

    def answer(request: Effect) -> Any:
        match request:
            case Offer():
                return [["file__read", "Reads.", {"type": "object"}], ["ask", "Asks.", {}]]
            case ModelRequest():
                return next(turns)
            case HumanRequest():
                raise AssertionError("the model must not ask a person")
        return replies(request)

    setting = Environment(profiles={"reader": Profile(tools=("file__*",), turns=3)})
    asked, said, found = run(plan, answer, setting=setting)
    assert [one.path for one in asked] == ["1/offer", "1/model", "1/turn[1]/tool[0]", "1/turn[2]/model"]
    offer, first, call, last = asked
    assert isinstance(offer, Offer) and offer.reads_only and offer.names == ("file__*",)
    assert isinstance(first, ModelRequest) and [one.name for one in first.tools] == ["file__read"]
    assert isinstance(call, ToolRequest) and call.reads_only
    assert isinstance(last, ModelRequest) and last.closing == first.closing is not None
    refused = [message.content for message in last.messages[3:]]
    assert all("there is no tool" in content for content in refused) and len(refused) == 2
    assert isinstance(found, dict) and found["named"] == {"x": "y"}
    told = [one.data["kind"] for one in said if one.type == "agent_told"]
    assert told == ["", "unknown_tool", "unknown_tool"]


def test_a_step_that_never_stops_using_tools_fails() -> None:
    plan = cast(read("## STEP 1: A\n\none\n"), StepModel(agent="reader", tools=("file__read",)))

    def answer(request: Effect) -> Any:
        if isinstance(request, Offer):
            return [["file__read", "", {}]]
        return (
            {"text": "", "uses": [["1", "file__read", {}]]} if isinstance(request, ModelRequest) else replies(request)
        )

    with pytest.raises(StepFailed, match="used tools for 2 turns") as failed:
        run(plan, answer, setting=Environment(profiles={"reader": Profile(turns=2)}))
    assert failed.value.kind == "turns"
