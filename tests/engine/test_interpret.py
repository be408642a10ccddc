"""The interpreter alone: driven by hand, request by request, with no store and no loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quire.engine.interpreter.callees import Environment
from quire.engine.interpreter.playbook.interpret import interpret
from quire.engine.requests import Boundary, Effect, Emit, HumanRequest, Load, ModelRequest, Request, ToolRequest
from quire.errors import StepFailed
from quire.plan.nodes import (
    Artifact,
    Ask,
    Capture,
    Case,
    Comparison,
    Input,
    Match,
    Plan,
    PromptSource,
    Sequence,
    Step,
    Think,
    UseTool,
)
from quire.plan.templates import template
from quire.values import Value

Answer = Callable[[Effect], Any]


def step(position: int, label: str = "", **parts: Any) -> Step:
    label = label or str(position)
    return Step(position, label, f"Title {label}", number=label.rstrip("abc"), **parts)


def plan(*steps: Step, system: str = "SYS", artifact: str = "") -> Plan:
    inputs = (Input("x", "string", None, (), "", False),)
    return Plan(
        "T", "playbook", inputs, Sequence(steps), system, artifact=Artifact(template(artifact)) if artifact else None
    )


def think(text: str, **parts: Any) -> Think:
    return Think(template(text), **parts)


def replies(request: Effect) -> Any:
    match request:
        case ModelRequest():
            return {"text": f"<{request.messages[0].content}>"}
        case ToolRequest():
            return f"<{request.tool}>"
        case HumanRequest():
            return "answer"
        case Boundary():
            return {}
    return None


def run(
    plan: Plan, answer: Answer = replies, inputs: dict[str, str] | None = None, **settings: Any
) -> tuple[list[Effect], list[Emit], Value]:
    """What was asked for (boundaries left out), what was said, what came back."""
    asked: list[Effect] = []
    said: list[Emit] = []
    walk = interpret(plan, inputs or {}, **settings)
    reply: Any = None
    error: StepFailed | None = None
    while True:
        try:
            request: Request = walk.send(reply) if error is None else walk.throw(error)
        except StopIteration as stop:
            return asked, said, stop.value
        reply = error = None
        if isinstance(request, Emit):
            said.append(request)
            continue
        assert not isinstance(request, tuple)
        if not isinstance(request, Boundary):
            asked.append(request)  # type: ignore[arg-type]
        try:
            reply = answer(request)  # type: ignore[arg-type]
        except StepFailed as failed:
            error = failed


def prompts(asked: list[Effect]) -> list[tuple[str, str, str]]:
    return [(one.path, one.system, one.messages[0].content) for one in asked if isinstance(one, ModelRequest)]


def test_each_step_sees_the_system_prompt_and_what_came_before() -> None:
    asked, said, result = run(plan(step(1, work=think("one")), step(2, work=think("two {{x}}"))), inputs={"x": "tea"})
    assert prompts(asked) == [
        ("1/model", "SYS", "one"),
        ("2/model", "SYS\n\nResults of the earlier steps, oldest first:\n\n[Step 1: Title 1]\n<one>", "two tea"),
    ]
    assert result == {"output": "<two tea>", "artifact_type": "", "named": {}}
    assert [(one.type, one.label) for one in said] == [
        ("step_started", "1"),
        ("step_completed", "1"),
        ("step_started", "2"),
        ("step_completed", "2"),
    ]


@pytest.mark.parametrize(("reason", "warned"), [("stop", False), ("length", True)])
def test_a_reply_that_was_cut_off_is_warned_about(reason: str, warned: bool) -> None:
    def answer(request: Effect) -> Any:
        return {"text": "half a", "finish_reason": reason} if isinstance(request, ModelRequest) else {}

    _, said, result = run(plan(step(1, work=think("x"))), answer)
    assert any(one.type == "warning" and "cut off" in str(one.data["message"]) for one in said) == warned
    assert isinstance(result, dict)
    assert result["output"] == "half a"


def test_values_are_put_in_once() -> None:
    asked, _, _ = run(plan(step(1, work=think("{{a}} {{b:string:dflt}} {{c:number}}"))), inputs={"a": "{{b}}"})
    assert prompts(asked)[0][2] == "{{b}} dflt {{c:number}}"


def test_the_oldest_results_are_cut_first_and_visibly() -> None:
    steps = [step(number, work=think(f"t{number}")) for number in range(1, 5)]
    asked, _, _ = run(
        plan(*steps),
        lambda request: replies(request) if not isinstance(request, ModelRequest) else {"text": "x" * 50},
        context_budget=150,
    )
    system = prompts(asked)[3][1]
    assert "[The result of 1 earlier step is left out: it does not fit.]" in system
    assert "[Step 1" not in system
    assert "[Step 2" in system


def test_a_capture_names_the_result_and_tells_the_model_how_to_end() -> None:
    capture = Capture("level", "enum", ("low", "high"), "lvl")
    document = plan(
        step(1, work=think("judge", closing=(capture,)), capture=capture), step(2, work=think("<{{level}}>"))
    )
    asked, said, _ = run(
        document, lambda request: {"text": 'Well.\n{"lvl": "high"}'} if isinstance(request, ModelRequest) else {}
    )
    first, second = [one for one in asked if isinstance(one, ModelRequest)]
    asking = first.messages[0].content
    assert asking.startswith(
        "judge\n\nFirst do all that is asked above, in full. Then end the reply with one JSON object"
    )
    assert '"lvl" (one of low, high)' in asking and "JSON" not in first.system
    assert first.closing == {
        "type": "object",
        "properties": {"lvl": {"type": "string", "enum": ["low", "high"]}},
        "required": ["lvl"],
        "additionalProperties": False,
    }
    assert second.messages[0].content == "<high>"
    assert second.closing is None
    assert '{"lvl": "high"}' in second.system
    (done, _) = [one for one in said if one.type == "step_completed"]
    assert done.live == {"output": 'Well.\n{"lvl": "high"}', "displayed": "Well."}


@pytest.mark.parametrize(
    ("value", "ran", "skipped"),
    [
        ("a", ["1/case[1]/1/model", "2/model"], False),
        ("b", ["1/case[2]/1/model", "2/model"], False),
        ("z", ["2/model"], True),
    ],
)
def test_the_first_case_that_holds_runs(value: str, ran: list[str], skipped: bool) -> None:
    cases = tuple(
        Case(Comparison("m", "==", name), Sequence((step(1, f"1{name}", work=think(name)),))) for name in ("a", "b")
    )
    document = plan(step(1, work=None, match=Match(cases, True)), step(2, work=think("last")))
    asked, said, _ = run(document, inputs={"m": value})
    assert [one.path for one in asked] == ran
    assert any(one.type == "step_skipped" for one in said) == skipped


def test_no_match_skips_the_step_with_its_own_work_and_its_answer() -> None:
    cases = (Case(Comparison("m", "==", "a"), Sequence((step(1, "1a", work=think("sub")),))),)
    document = plan(
        step(1, ask=Ask("input", template("q")), work=think("own"), match=Match(cases, True)),
        step(2, work=think("last")),
    )
    asked, _, _ = run(document)
    assert [one.path for one in asked] == ["1/ask", "2/model"]
    assert prompts(asked)[0][1] == "SYS"


def test_a_condition_on_the_own_result_comes_after_the_work() -> None:
    capture = Capture("v", None, (), None)
    cases = (
        Case(Comparison("v", "==", "<own>"), Sequence((step(1, "1a", work=think("yes")),))),
        Case(None, Sequence((step(1, "1b", work=think("no")),))),
    )
    asked, _, result = run(plan(step(1, work=think("own"), capture=capture, match=Match(cases, False))))
    assert [one.path for one in asked] == ["1/model", "1/case[1]/1/model"]
    assert isinstance(result, dict)
    assert (result["output"], result["named"]) == ("<yes>", {"v": "<own>"})


def test_without_own_work_the_last_sub_step_is_captured() -> None:
    cases = (Case(None, Sequence((step(1, "1a", work=think("x")), step(2, "1b", work=think("y"))))),)
    _, _, result = run(plan(step(1, capture=Capture("v", None, (), None), match=Match(cases, True))))
    assert isinstance(result, dict)
    assert result["named"] == {"v": "<y>"}


def test_an_answer_is_named_and_stands_in_the_system_message() -> None:
    document = plan(step(2, "2a", ask=Ask("input", template("why {{x}}?")), work=think("go on")))
    asked, _, result = run(document, inputs={"x": "tea"})
    question = asked[0]
    assert isinstance(question, HumanRequest)
    assert question.prompt == "why tea?"
    assert "answer" in prompts(asked)[0][1]
    assert prompts(asked)[0][2] == "go on"
    assert isinstance(result, dict)
    assert result["named"] == {"__elicit_step_2": "answer", "__elicit_step_2a": "answer"}


def test_an_empty_step_asks_for_nothing() -> None:
    asked, said, result = run(plan(step(1, work=think("x")), step(2, capture=Capture("v", None, (), None))))
    assert len(asked) == 1
    assert [one.label for one in said if one.type == "step_completed"] == ["1", "2"]
    assert isinstance(result, dict)
    assert result["output"] == ""
    assert result["named"] == {"v": ""}


def test_an_empty_step_leaves_nothing_for_later_ones() -> None:
    asked, _, result = run(plan(step(1, work=think("x")), step(2), step(3, work=think("y"))))
    assert "Step 2" not in prompts(asked)[1][1]
    assert isinstance(result, dict)
    assert result["output"] == "<y>"


@pytest.mark.parametrize(
    ("found", "sent", "warned"), [("LIB {{x}}", "LIB tea\n\nown", False), (None, "own", True), ("", "own", False)]
)
def test_a_prompt_is_prepended_and_rendered(found: str | None, sent: str, warned: bool) -> None:
    document = plan(step(1, work=think("own", preamble=PromptSource("library", "id"))))
    asked, said, _ = run(
        document, lambda request: found if isinstance(request, Load) else replies(request), {"x": "tea"}
    )
    assert prompts(asked)[0][2] == sent
    assert any(one.type == "warning" for one in said) == warned


@pytest.mark.parametrize(("rules", "output"), [(4, "answer"), (3, "")])
def test_a_missing_prompt_leaves_a_question_alone(rules: int, output: str) -> None:
    """seeds P2, ruling 17 of playbooks: the step is elicit-only, and the answer is its output."""
    work = think("", preamble=PromptSource("library", "nope"))
    question = Ask("input", template("Who?"), (), None)
    document = plan(
        step(1, work=work, ask=question, capture=Capture("o", None, (), None)), step(2, work=think("{{o}}"))
    )

    def answer(request: Effect) -> Any:
        return None if isinstance(request, Load) else replies(request)

    asked, said, result = run(document, answer, setting=Environment({}, rules=rules))
    assert isinstance(result, dict) and isinstance(result["named"], dict)
    assert result["named"]["o"] == output
    assert [one.messages[0].content for one in asked if isinstance(one, ModelRequest)] == [output] * bool(output)
    assert any(one.type == "warning" for one in said)
    assert all(system.count("[Step 1") == 1 for _, system, _ in prompts(asked))


def test_a_prompt_from_a_variable_is_a_value_and_not_rendered_again() -> None:
    document = plan(step(1, work=think("own", preamble=PromptSource("variable", "p"))))
    asked, _, _ = run(document, inputs={"p": "FROM {{x}}", "x": "tea"})
    assert prompts(asked)[0][2] == "FROM {{x}}\n\nown"
    with pytest.raises(StepFailed, match="nothing has set p"):
        run(document)


def test_tool_arguments_are_values() -> None:
    from quire.formats.playbook.lower import arguments

    given = arguments('{"q": "say {{q}}", "n": {{n}}, "t": {{q}}, "l": [1, {"d": "{{q}}"}], "f": 1.50}')
    asked, _, _ = run(plan(step(1, work=UseTool("s", "t", given))), inputs={"q": 'x", "evil": "', "n": "5"})
    (call,) = asked
    assert isinstance(call, ToolRequest)
    assert call.arguments == {
        "q": 'say x", "evil": "',
        "n": 5,
        "t": 'x", "evil": "',
        "l": [1, {"d": 'x", "evil": "'}],
        "f": 1.5,
    }


@pytest.mark.parametrize(
    ("rules", "given", "sent"),
    [
        (4, '{"{{k}}": "z", "a": {"{{k}}-{{x}}": 1}}', {"key": "z", "a": {"key-tea": 1}}),
        (4, '{"{{nothing}}": 1, "{{d:string:e}}": 2}', {"{{nothing}}": 1, "e": 2}),
        (4, '{"{{k}}": 1, "key": 2}', None),
        (3, '{"{{k}}": "z"}', {"{{k}}": "z"}),
    ],
)
def test_keys_of_tool_arguments_are_rendered(rules: int, given: str, sent: Value) -> None:
    """seeds P3, ruling 17 of playbooks. Two keys that become one fail the step: none of the two is dropped."""
    from quire.formats.playbook.lower import arguments

    document = plan(step(1, work=UseTool("s", "t", arguments(given))))
    setting = Environment({}, rules=rules)
    if sent is None:
        with pytest.raises(StepFailed, match="two keys of the arguments become the same: key"):
            run(document, inputs={"k": "key", "x": "tea"}, setting=setting)
        return
    ((call,), _, _) = run(document, inputs={"k": "key", "x": "tea"}, setting=setting)
    assert isinstance(call, ToolRequest)
    assert call.arguments == sent


def test_no_shell_reads_a_value_under_a_key_with_a_value() -> None:
    from quire.formats.playbook.lower import arguments

    document = plan(step(1, work=UseTool("quire", "shell", arguments('{"{{k}}": "ls {{x}}"}'))))
    with pytest.raises(StepFailed, match="is a list"):
        run(document, inputs={"k": "command", "x": "; rm -rf /"})


@pytest.mark.parametrize("problem", ["the arguments are not JSON: Expecting value", ""])
def test_arguments_that_can_never_be_built_fail_the_step(problem: str) -> None:
    from quire.formats.playbook.lower import arguments

    work = UseTool("s", "t", {}, problem) if problem else UseTool("s", "t", arguments("{{whole}}"))
    with pytest.raises(StepFailed, match="arguments"):
        run(plan(step(1, work=work)), inputs={"whole": "[1]"})


@pytest.mark.parametrize(
    ("command", "sent"),
    [
        ('"ls"', "ls"),
        ('["ls", "{{x}}"]', ["ls", "; rm -rf /"]),
        ('"ls {{x}}"', None),
        ("{{x}}", None),
    ],
)
@pytest.mark.parametrize("tool", ["shell", "rye/bash"])
def test_no_shell_reads_a_value(command: str, sent: Value, tool: str) -> None:
    from quire.formats.playbook.lower import arguments

    document = plan(step(1, work=UseTool("quire", tool, arguments(f'{{"command": {command}}}'))))
    if sent is None:
        with pytest.raises(StepFailed, match="is a list"):
            run(document, inputs={"x": "; rm -rf /"})
    else:
        ((call,), _, _) = run(document, inputs={"x": "; rm -rf /"})
        assert isinstance(call, ToolRequest)
        assert call.arguments == {"command": sent}


def test_overrides_apply_from_the_boundary_on() -> None:
    def answer(request: Effect) -> Any:
        if isinstance(request, Boundary) and request.label == "1":
            return {"x": "new", "v": "set"}
        return replies(request)

    document = plan(
        step(1, work=think("{{x}}"), capture=Capture("v", None, (), None)),
        step(2, work=think("{{x}} {{v}}"), capture=Capture("v", None, (), None)),
        step(3, work=think("{{v}}")),
    )
    asked, _, _ = run(document, answer, {"x": "old"})
    assert [text for _, _, text in prompts(asked)] == ["old", "new set", "<new set>"]


def test_a_failure_is_told_and_goes_up() -> None:
    said: list[str] = []

    def answer(request: Effect) -> Any:
        raise StepFailed("down", path=request.path)

    walk = interpret(plan(step(1, work=think("x"))), {})
    request = next(walk)
    while not isinstance(request, ModelRequest):
        request = walk.send(None)
    told = walk.throw(StepFailed("down", path="1/model"))
    assert isinstance(told, Emit)
    said.append(told.type)
    with pytest.raises(StepFailed, match="down"):
        walk.send(None)
    assert said == ["step_failed"]
    with pytest.raises(StepFailed):
        run(plan(step(1, work=think("x"))), answer)


@pytest.mark.parametrize(
    ("declared", "inputs", "type", "warned"),
    [
        ("markdown", {}, "markdown", False),
        ("{{fmt}}", {"fmt": " JSON "}, "json", False),
        ("{{fmt}}", {"fmt": "pdf"}, "pdf", True),
    ],
)
def test_the_artifact_type_is_resolved_at_the_end(
    declared: str, inputs: dict[str, str], type: str, warned: bool
) -> None:
    page = plan(step(1, work=think("x")), artifact=declared)
    _, said, result = run(page, lambda request: {} if isinstance(request, Boundary) else {"text": "{}"}, inputs=inputs)
    assert isinstance(result, dict)
    assert result["artifact_type"] == type
    assert any(one.type == "warning" for one in said) == warned


def test_a_run_that_was_started_under_the_first_rules_keeps_them() -> None:
    """What 0.1.0 recorded has to answer the same requests: `extract`, the note, `@prompt(file:…)`, fences."""
    capture = Capture("level", "json", (), None)
    extract = Capture("best", None, (), "best")
    document = plan(
        step(1, work=think("one"), capture=capture),
        step(2, work=think("two", closing=(extract,), preamble=PromptSource("file", "{{x}}.md")), capture=extract),
    )
    fenced = "```json\n[1]\n```"

    def answer(request: Effect) -> Any:
        return {"text": fenced} if isinstance(request, ModelRequest) else replies(request)

    asked, _, result = run(document, answer, inputs={"x": "kind"}, setting=Environment(rules=1), context_budget=5)
    last = [one for one in asked if isinstance(one, ModelRequest)][-1]
    assert last.messages[0].content == "two"
    assert last.system.endswith("Write nothing after it.") and "Write the answer freely." in last.system
    assert "[The results of 1 earlier steps are left out: they do not fit.]" in last.system
    assert [one.where for one in asked if isinstance(one, Load)] == ["{{x}}.md"]
    assert isinstance(result, dict) and result["named"]["level"] == fenced


def test_the_path_of_a_prompt_file_is_rendered() -> None:
    """S9."""
    document = plan(
        step(1, work=think("pick"), capture=Capture("kind", None, (), None)),
        step(2, work=think("go", preamble=PromptSource("file", "prompts/{{x}}/{{kind}}.{{end:string:md}}"))),
    )
    asked, _, _ = run(
        document, lambda one: {"text": "short"} if isinstance(one, ModelRequest) else replies(one), inputs={"x": "a"}
    )
    assert [one.where for one in asked if isinstance(one, Load)] == ["prompts/a/short.md"]


def test_a_prompt_file_whose_name_is_not_known_fails_before_any_call() -> None:
    document = plan(step(1, work=think("go", preamble=PromptSource("file", "prompts/{{kind}}.md"))))
    with pytest.raises(StepFailed, match="nothing has set kind"):
        run(document, replies)


@pytest.mark.parametrize("tool", ["file__write", "rye/file-system/write"])
def test_a_playbook_that_ends_by_writing_a_file_gives_what_it_wrote(tool: str) -> None:
    write = UseTool("quire", tool, {"path": template("a.md"), "content": template("# {{x}}")})
    _, _, result = run(plan(step(1, work=write), artifact="markdown"), replies, inputs={"x": "Title"})
    assert isinstance(result, dict) and (result["output"], result["artifact"]) == (f"<{tool}>", "# Title")


def test_any_other_tool_gives_its_result() -> None:
    asked, _, result = run(plan(step(1, work=UseTool("web", "file__write", {"content": template("x")}))), replies)
    assert isinstance(result, dict) and result["output"] == "<file__write>" and "artifact" not in result
    assert [one.form for one in asked if isinstance(one, ToolRequest)] == ["text"]
