"""Which effects a person's yes stands before, and which refusals come through."""

from __future__ import annotations

import pytest

from quire.analysis.approvals import Gate, gates_of
from quire.library.document import read
from quire.library.foresight import Foresight
from quire.source import Source

HEAD = """
pipeline: p
dialect: quire
input: {text: {type: string}}
steps:
"""
CONFIRM = "  - tool: {name: ask, args: {prompt: Go on?, type: confirm}, output: ok}\n"
SELECT = "  - tool: {name: ask, args: {prompt: Which?, type: select, options: [send, keep]}, output: ok}\n"
INPUT = "  - tool: {name: ask, args: {prompt: Say DELETE}, output: ok}\n"
OTHER = "  - tool: {name: ask, args: {prompt: Really?, type: confirm}, output: sure}\n"
SEND = """  - shell: {command: !expr "['send', text]"}\n"""


def gates(text: str, name: str = "p.yaml") -> tuple[Gate, ...]:
    plan = read(Source.of(text, name)).plan
    assert plan is not None
    return gates_of(Foresight(None).proof(plan))


def verdict(steps: str) -> str:
    (gate,) = gates(HEAD + steps)
    return gate.verdict


def when(condition: str) -> str:
    return f"""  - shell: {{when: "{condition}", command: !expr "['send', text]"}}\n"""


def stop(condition: str, kind: str = "stop") -> str:
    more = ", message: no" if kind == "fail" else ""
    return f'  - {kind}: {{when: "{condition}"{more}}}\n'


GATED = {
    "when": CONFIRM + when("ok == 'yes'"),
    "when not no": CONFIRM + when("not (ok == 'no')"),
    "unequal": CONFIRM + when("ok != 'no'"),
    "and": CONFIRM + when("ok == 'yes' and text != ''"),
    "or of two": CONFIRM + OTHER + when("ok == 'yes' or sure == 'yes'"),
    "through ctx": CONFIRM + when("ctx.ok == 'yes'"),
    "get with a default": CONFIRM + when("get(ctx, 'ok', 'yes') == 'yes'"),
    "functions": CONFIRM + when("contains(['yes', 'sure'], lower(trim(ok)))"),
    "stop": CONFIRM + stop("ok != 'yes'") + SEND,
    "fail": CONFIRM + stop("ok == 'no'", "fail") + SEND,
    "the pipe": CONFIRM.replace(", output: ok", "") + when("pipe == 'yes'"),
    "a transform": CONFIRM + "  - transform: {value: \"ok == 'yes'\", output: go}\n" + when("go"),
    "a map": CONFIRM + '  - transform: {value: "{go: ok, n: 1}", output: plan}\n' + when("plan.go == 'yes'"),
    "asked only sometimes": CONFIRM.replace("{name", "{when: text != '', name") + when("ok == 'yes'"),
    "an option": SELECT + when("ok == 'send'"),
    "a word": INPUT + when("ok == 'DELETE'"),
    "an arm": CONFIRM + "  - match: {on: ok, cases: {'yes': {steps: [shell: {command: ls}]}}, default: 'null'}\n",
    "the other arm": CONFIRM
    + "  - match: {on: ok, cases: {'no': {steps: [transform: {value: pipe}]}}, "
    + "default: {steps: [shell: {command: ls}]}}\n",
    "an arm of a comparison": CONFIRM
    + "  - match: {on: ok == 'yes', cases: {'True': {steps: [shell: {command: ls}]}}, default: 'null'}\n",
    "a block": CONFIRM + "  - steps: {when: ok == 'yes', do: [shell: {command: ls}]}\n",
    "a loop that asks until a yes": """
  - repeat:
      do: {tool: {name: ask, args: {prompt: Now?, type: confirm}}}
      until: acc == 'yes'
      max: 3
"""
    + SEND,
    "each item of a fan": """
  - for_each:
      items: [a, b]
      on_error: abort
      do:
        steps:
          - tool: {name: ask, args: {prompt: !expr "'Send ' + item", type: confirm}, output: ok}
          - shell: {when: ok == 'yes', command: !expr "['send', item]"}
      collect: {transform: {value: pipe}}
""",
    "a default that is a no": CONFIRM.replace("{name", "{on_error: continue, default: \"'no'\", name")
    + when("ok == 'yes'"),
}
IGNORED = {
    "no condition": CONFIRM + SEND,
    "another word": CONFIRM + when("ok != 'No'"),
    "or": CONFIRM + when("ok == 'yes' or text == 'x'"),
    "any text": INPUT + when("ok != 'no'"),
    "any text without a letter": INPUT + when("ok != '' and not contains(lower(ok), 'n')"),
    "both options": SELECT + when("ok == 'send' or ok == 'keep'"),
    "another arm": CONFIRM
    + "  - match: {on: text, cases: {a: {steps: [stop: {when: ok != 'yes'}]}}, default: 'null'}\n"
    + SEND,
    "a failure that is survived": CONFIRM
    + "  - steps: {on_error: continue, do: [fail: {when: ok != 'yes', message: x}]}\n"
    + SEND,
    "a store that is written again": CONFIRM + "  - transform: {value: \"'yes'\", output: ok}\n" + when("ok == 'yes'"),
    "an answer that a failure takes back": "  - transform: {value: \"'yes'\", output: ok}\n"
    + "  - steps: {on_error: continue, do: [tool: {name: ask, args: {prompt: Go?, type: confirm}, output: ok}, "
    + "shell: {command: ls, on_error: abort}]}\n"
    + when("ok == 'yes'"),
    "a default that is a yes": CONFIRM.replace("{name", "{on_error: continue, default: \"'yes'\", name")
    + when("ok == 'yes'"),
    "a loop that keeps the last answer": """
  - repeat:
      do: {tool: {name: ask, args: {prompt: Now?, type: confirm}}}
      until: acc == 'yes'
      max: 3
      on_max: keep
"""
    + SEND,
}


@pytest.mark.parametrize("steps", GATED.values(), ids=GATED)
def test_a_refusal_keeps_the_effect_from_happening(steps: str) -> None:
    assert verdict(steps) == "gated"


@pytest.mark.parametrize("steps", IGNORED.values(), ids=IGNORED)
def test_a_refusal_comes_through(steps: str) -> None:
    assert gates(HEAD + steps)[-1].verdict in ("ignored", "open")
