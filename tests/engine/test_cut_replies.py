"""G8: a reply that reached the longest that the model may write is never taken for a complete one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.directive_project import call, write_directives

import quire
from quire.runs.adapters import Models
from quire.runs.stored import settings_of

CUT_OFF = "cut at 16,384 tokens ([runs] reply_tokens)"
CUT_TURN = "cut at 4,096 tokens ([runs] reply_tokens)"
REPEATED = "the reply was stopped: the model repeated itself"
PIPELINE = "pipeline: ask\nsteps:\n  - agent: {prompt: How?}\n"
SHAPED = "schema: mood\nfields:\n  mood: {type: string}\n---\npipeline: ask\nsteps:\n"
AGENT = "agent: {prompt: How?, schema: mood}"
COLLECT = "{transform: {value: pipe}}"
RETRIED = f"  - for_each: {{over: '[1]', do: {{{AGENT}}}, on_error: retry(1), collect: {COLLECT}}}\n"
PLAYBOOK = "# Ask\n\n## STEP 1: Ask\n\nHow?\n\n%s\n"
WHOLE = '{"mood": "good"}'


def cut(reply: str) -> dict[str, str]:
    return {"reply": reply, "finish_reason": "length"}


pytestmark = pytest.mark.usefixtures("here")


async def ran(tmp_path: Path, name: str, text: str, *replies: object) -> tuple[quire.Result, list[str], int]:
    """The result, the warnings, and how often the model was asked."""
    path = tmp_path / name
    path.write_text(text)
    model = quire.ScriptedModel(list(replies))  # type: ignore[arg-type]
    running = quire.run(path, model=model)
    warnings = [str(event.data["message"]) async for event in running if event.type == "warning"]
    return await running, warnings, len(model.calls)


async def test_without_a_shape_it_is_a_warning(tmp_path: Path) -> None:
    result, warnings, _ = await ran(tmp_path, "a.yaml", PIPELINE, cut("half a"))
    assert (result.output, warnings) == ("half a", [CUT_OFF])
    result, warnings, _ = await ran(tmp_path, "a.playbook.md", PLAYBOOK % "", cut("half a"))
    assert (result.output, warnings) == ("half a", [CUT_OFF])


async def test_a_reply_that_repeats_itself_is_a_warning(tmp_path: Path) -> None:
    """The model in this process stops there; nothing else would say so."""
    reply = {"reply": "tea tea tea", "finish_reason": "repetition"}
    for name, text in (("a.yaml", PIPELINE), ("a.playbook.md", PLAYBOOK % "")):
        result, warnings, _ = await ran(tmp_path, name, text, reply)
        assert (result.output, warnings) == ("tea tea tea", [REPEATED])


@pytest.mark.parametrize(("finish", "said"), [("length", CUT_TURN), ("repetition", REPEATED)])
async def test_it_is_a_warning_in_a_directive_too(tmp_path: Path, finish: str, said: str) -> None:
    write_directives(tmp_path)
    ended = {"tool_calls": [call("directive_return", path="report.txt", ok=True)]}
    model = quire.ScriptedModel([{"reply": "I began to", "finish_reason": finish}, ended])
    running = quire.run("deploy_staging", inputs={"target": "staging"}, model=model)
    warnings = [str(event.data["message"]) async for event in running if event.type == "warning"]
    assert ((await running).status, said in warnings) == ("completed", True)


async def test_under_a_schema_it_is_sent_back(tmp_path: Path) -> None:
    text = f"{SHAPED}  - {AGENT}\n"
    result, warnings, asked = await ran(tmp_path, "a.yaml", text, cut(f"{WHOLE} and then"), WHOLE)
    assert (json.loads(result.output), warnings, asked) == ({"mood": "good"}, [CUT_OFF], 2)


async def test_what_stays_cut_off_fails_the_step_and_retry_can_use_it(tmp_path: Path) -> None:
    result, _, asked = await ran(tmp_path, "a.yaml", f"{SHAPED}  - {AGENT}\n", *[cut(WHOLE)] * 9)
    assert (result.status, asked) == ("failed", 3) and "it was cut off" in result.error
    result, _, asked = await ran(tmp_path, "b.yaml", SHAPED + RETRIED, *[cut(WHOLE)] * 3, WHOLE)
    assert (result.status, asked) == ("completed", 4)


async def test_an_extract_takes_nothing_from_a_reply_that_broke_off(tmp_path: Path) -> None:
    reply = f"For example {WHOLE}, but then"
    text = PLAYBOOK % '@output(mood, extract:"mood")'
    result, warnings, _ = await ran(tmp_path, "a.playbook.md", text, cut(reply))
    assert (result.named["mood"], warnings[0]) == (reply, CUT_OFF) and "was cut off before its JSON" in warnings[1]


async def test_earlier_results_that_are_left_out_are_a_warning(tmp_path: Path) -> None:
    """Seeds P1; ruling 18 of playbooks."""
    (tmp_path / "quire.toml").write_text("[runs]\ncontext_budget = 100\n")
    steps = "".join(f"## STEP {at}: S\n\nSay {at}.\n\n" for at in range(1, 5))
    result, warnings, _ = await ran(tmp_path, "a.playbook.md", f"# A\n\n{steps}", *["x" * 60] * 4)
    assert warnings == [
        "left out 1 earlier result (of 1): more than 100 characters ([runs] context_budget)",
        "left out 2 earlier results (of 1, 2): more than 100 characters ([runs] context_budget)",
    ]
    assert result.warnings[0] == f"step 3: {warnings[0]}"


async def test_a_model_that_writes_less_than_it_may_is_named(tmp_path: Path) -> None:
    reply = {"reply": "half a", "finish_reason": "length", "usage": {"output_tokens": 300}}
    _, warnings, _ = await ran(tmp_path, "a.yaml", PIPELINE, reply)
    assert warnings == ["cut at 300 tokens (the most that script writes)"]


@pytest.mark.parametrize(
    ("prices", "characters"),
    [("", 400_000), ('[models.prices."ollama:tea"]\nwindow = 40000\n', (40_000 - 16_384) * 3)],
)
def test_earlier_results_fill_the_window_of_the_model(tmp_path: Path, prices: str, characters: int) -> None:
    """Ruling 18 of playbooks: the window that the settings name counts, also for a model without a price."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "quire.toml").write_text(prices)
    settings = settings_of(tmp_path, {"QUIRE_HOME": str(tmp_path / "home")})
    assert Models(settings, {}).context_budget("ollama:tea") == characters
