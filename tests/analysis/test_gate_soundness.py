"""Refusals in runs: an effect that was called gated does not happen after one, in any document."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.analysis.refuse import Refused, refuse_seed

HEAD = "pipeline: main\ndialect: quire\ninput: {text: {type: string, default: x}, flag: {type: string, default: x}}\n"
HEAD += "steps:\n"
ASK = "- tool: {name: ask, args: {prompt: Go?, type: confirm}, output: ok}\n"
OTHER = "- tool: {name: ask, args: {prompt: Sure?, type: confirm}, output: sure}\n"


def effect(when: str = "ok == 'yes'", number: int = 1) -> str:
    return f'- shell: {{when: "{when}", command: [run, e{number}]}}\n'


def keep(name: str, value: str) -> str:
    return f'- transform: {{value: "{value}", output: {name}}}\n'


def inside(steps: str) -> str:
    """Return steps as a flow, for a block or a loop."""
    return "[" + ", ".join(line.removeprefix("- ") for line in steps.splitlines()) + "]"


def playbook(*steps: str, inputs: str = "- `text` (string: no): A word\n- `flag` (string: no): A word\n") -> str:
    numbered = "".join(f"## STEP {at}: Part\n\n{text}\n\n" for at, text in enumerate(steps, 1))
    return f"# Main\n\n## SYSTEM\n\nYou help.\n\n## INPUTS\n\n{inputs}\n{numbered}"


RUN = '@tool(quire, shell, {"command": ["run", "e1"]})'
GATED_CALLEE = "pipeline: first\ndialect: quire\nsteps:\n" + effect("ctx.text.go == 'yes'")
OPEN_CALLEE = "pipeline: first\ndialect: quire\ninput: {text: {type: string, default: 'yes'}}\nsteps:\n"
OPEN_CALLEE += effect("ctx.text == 'yes'")
TRICKY: dict[str, dict[str, str]] = {
    "a failure that is survived ends nothing": {
        "main": HEAD
        + ASK
        + "- steps: {on_error: continue, do: [fail: {when: ok != 'yes', message: x}]}\n"
        + effect("true")
    },
    "an end that is survived": {
        "main": HEAD
        + ASK
        + "- steps: {when: ok != 'yes', on_error: continue, do: [fail: {message: x}]}\n"
        + effect("true")
    },
    "an input that a question replaces only sometimes": {
        "main": "pipeline: main\ndialect: quire\nsteps:\n"
        + ASK.replace("output: ok", "output: flag").replace("{name", "{when: text == 'yes', name")
        + effect("flag == 'x'")
    },
    "a failure takes back an answer": {
        "main": HEAD
        + keep("ok", "'yes'")
        + f"- steps: {{on_error: continue, do: {inside(ASK)[:-1]}, fail: {{message: x}}]}}\n"
        + effect()
    },
    "the value of a loop is an answer in its first round only": {
        "main": HEAD + ASK + f"- repeat: {{init: ok, max: 2, until: 'false', on_max: keep, do: {{steps: "
        f"{inside(effect('acc == ' + chr(39) + 'yes' + chr(39)) + keep('go', chr(39) + 'yes' + chr(39)))}}}}}\n"
    },
    "a store of the round before": {
        "main": HEAD
        + "- repeat: {init: \"'yes'\", max: 2, until: 'false', on_max: keep, do: {steps: "
        + inside(effect("get(ctx, 'go') == 'yes'") + keep("go", "'yes'"))
        + "}}\n"
    },
    "an input takes precedence": {
        "main": playbook(
            '@elicit(confirm, "Go?")\n@output(flag)',
            f'```if flag != "no"```\n\n### STEP 2a: Do\n\n{RUN}\n\n```endif```',
        )
    },
    "a choice before the answer is kept": {
        "main": playbook(
            "Say yes.\n\n@output(ok)",
            '@elicit(confirm, "Go?")\n@output(sure)\n\n```if ok != "no"```\n\n### STEP 2a: Do\n\n'
            + RUN
            + "\n\n```endif```",
        )
    },
    "the errors of a step": {
        "main": HEAD
        + ASK
        + "- shell: {command: [run, e2], on_error: continue, output: sure}\n"
        + effect("errors.sure != null")
    },
    "another answer in the same place of a map": {
        "main": HEAD
        + ASK
        + OTHER
        + keep("go", "'x'")
        + '- call: {pipeline: first, pass: {text: "{go: ok}"}}\n'
        + keep("go", "'x'")
        + '- call: {pipeline: first, pass: {text: "{go: sure}"}}\n',
        "first": GATED_CALLEE,
    },
    "a word of the author in the same place of a map": {
        "main": HEAD
        + ASK
        + "- call: {pipeline: first, pass: {text: \"{go: 'no '}\"}}\n"
        + "- call: {pipeline: first, pass: {text: \"{go: 'yes'}\"}}\n",
        "first": GATED_CALLEE,
    },
    "a blank answer becomes the default of an input": {
        "main": HEAD
        + "- tool: {name: ask, args: {prompt: Go?}, output: ok}\n"
        + "- call: {pipeline: first, pass: {text: ok}}\n",
        "first": playbook(f'```if text == "yes"```\n\n### STEP 1a: Do\n\n{RUN}\n\n```endif```').replace(
            "string: no", "string: yes"
        ),
    },
    "a null becomes the default of an input": {
        "main": HEAD
        + ASK
        + keep("go", "ok == 'yes' and 'yes' or null")
        + "- call: {pipeline: first, pass: {text: go}}\n",
        "first": OPEN_CALLEE,
    },
    "an answer that was not asked for becomes the default of an input": {
        "main": HEAD
        + ASK.replace("{name", "{when: \"ctx.text == 'yes'\", name")
        + "- call: {pipeline: first, pass: {text: \"get(ctx, 'ok')\"}}\n",
        "first": OPEN_CALLEE,
    },
    "a null of the author becomes the default of an input": {
        "main": HEAD + "- call: {pipeline: first, pass: {text: 'null'}}\n",
        "first": OPEN_CALLEE,
    },
    "a callee returns all that it has named": {
        "main": HEAD + "- call: {pipeline: first, output: ok}\n" + effect("ok != 'no'"),
        "first": playbook('@elicit(confirm, "Go?")\n@output(said)'),
    },
    "a callee returns text": {
        "main": playbook(
            "@tool(quire, first, {})\n@output(ok)", f'```if ok != "no"```\n\n### STEP 2a: Do\n\n{RUN}\n\n```endif```'
        ),
        "first": playbook('@elicit(confirm, "Go?")\n@output(said)'),
    },
    "a verdict becomes text": {
        "main": playbook(
            "@tool(quire, first, {})\n@output(ok)", f'```if ok == "false"```\n\n### STEP 2a: Do\n\n{RUN}\n\n```endif```'
        ),
        "first": "pipeline: first\ndialect: quire\nsteps:\n" + ASK + keep("go", "ok == 'yes'"),
    },
    "a callee that ends with a value of its own": {
        "main": HEAD + "- call: {pipeline: first, pass: {text: text}, output: ok}\n" + effect(),
        "first": "pipeline: first\ndialect: quire\nsteps:\n- stop: {when: ctx.text != 'yes', value: \"'yes'\"}\n" + ASK,
    },
    "a callee that ends before it asks": {
        "main": HEAD + "- call: {pipeline: first, pass: {text: text}}\n" + effect("true"),
        "first": "pipeline: first\ndialect: quire\nsteps:\n- stop: {when: ctx.text != 'yes'}\n"
        + ASK
        + "- fail: {when: ok != 'yes', message: x}\n",
    },
    "a callee that fails after a no": {
        "main": HEAD + "- call: {pipeline: first}\n" + effect("true"),
        "first": "pipeline: first\ndialect: quire\nsteps:\n" + ASK + "- fail: {when: ok != 'yes', message: x}\n",
    },
    "each call asks for itself": {
        "main": HEAD
        + "- call: {pipeline: first, output: ok}\n- call: {pipeline: first, output: sure}\n"
        + effect("ok != sure")
        + effect("ok == 'yes'", 2),
        "first": "pipeline: first\ndialect: quire\nsteps:\n" + ASK,
    },
    "a typed answer loses its blanks": {
        "main": playbook(
            '@elicit(select, "Go?", " no", "yes")\n@output(ok: string)',
            f'```if ok == "no"```\n\n### STEP 2a: Do\n\n{RUN}\n\n```endif```',
        )
    },
}


@pytest.mark.parametrize("texts", TRICKY.values(), ids=TRICKY)
def test_a_refusal_stops_what_is_called_gated(texts: dict[str, str]) -> None:
    case = Refused(texts)
    assert case.problems == []
    tally: Counter[str] = Counter()
    assert [problem for seed in range(12) for problem in case.broken(seed, tally)] == []


@pytest.mark.parametrize("name", ["a callee that fails after a no", "each call asks for itself"])
def test_gates_reach_over_calls(name: str) -> None:
    assert "gated" in {one.verdict for one in Refused(TRICKY[name]).gates}


@pytest.mark.parametrize("format", ["pipeline", "playbook"])
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_refusals_in_generated_documents(format: str, first: int) -> None:
    tally: Counter[str] = Counter()
    assert [problem for seed in range(first, first + 50) for problem in refuse_seed(seed, format, tally)] == []
    assert tally["unreadable"] == 0
    assert tally["gated"] > 3
    assert tally["seen"] > 50
