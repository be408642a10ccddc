"""What agents are told about the pipelines that they write."""

from __future__ import annotations

import pytest

from quire.formats.pipeline.inline import Mistake, definition_source, gate, listed, mistakes, told
from quire.formats.pipeline.parse import parse

MINIMAL = "pipeline: x\nsteps:\n  - transform: {value: '1'}"


@pytest.mark.parametrize("text", [f"```\n{MINIMAL}\n```", f"\n```yaml\n{MINIMAL}\n```\n", MINIMAL])
def test_a_fence_around_a_definition_is_taken_off(text: str) -> None:
    assert definition_source(text).text.rstrip("\n") == MINIMAL


def test_fences_inside_of_a_definition_stay() -> None:
    text = 'pipeline: x\nsteps:\n  - agent: {prompt: "```\\ncode\\n```"}\n'
    assert definition_source(text).text == text


def wrong_with(text: str) -> tuple[Mistake, ...]:
    """Everything that is wrong with a definition: what cannot be read, and what the gate refuses of the rest."""
    reading = parse(definition_source(text))
    file = reading.file or reading.partial
    hints = {"file__raed": 'did you mean "file__read"?'}
    refusal = gate(file, "me", ("file__read",), shell=False, hint=lambda name: hints.get(name, "")) if file else None
    return mistakes(reading, refusal)


def test_mistakes_have_a_place_and_a_suggestion() -> None:
    (found,) = wrong_with("pipeline: x\nsteps:\n  - transfrom: {value: '1'}\n")
    assert str(found).startswith("line 3, column 5: ") and "did you mean transform?" in str(found)
    assert found.as_json() == {
        "code": "PL009",
        "line": 3,
        "column": 5,
        "message": found.message,
        "help": "did you mean transform?",
        "text": "- transfrom: {value: '1'}",
        "fix": [{"line": 3, "column": 5, "old": "transfrom", "new": "transform"}],
    }


MANY = """\
schema: Review
fields: {passed: {type: bool}}
---
pipeline: x
steps:
  - tool: {name: file__raed}
  - for_each:
      items: [1]
      on_error: abort
      do:
        parallel:
          branches:
            a: {agent: {prompt: hi, identity: boss, schema: Reveiw}}
            b: {transform: {value: "1 +"}}
          collect: {tool: {name: pipeline__other}}
      collect: {shell: {command: ls}}
  - fold: {init: "0", do: {transform: {value: acc}}}
  - agnet: {prompt: hi}
"""


def test_everything_is_told_at_once_in_the_order_of_the_text() -> None:
    """What cannot be read does not hide what the gate refuses, at any depth."""
    found = wrong_with(MANY)
    assert [(one.code, one.line, one.column, one.step) for one in found] == [
        ("PL103", 6, 18, "1"),
        ("PL031", 13, 47, "2.for_each.do.parallel.a"),
        ("PL102", 13, 61, "2.for_each.do.parallel.a"),
        ("EX001", 14, 40, ""),
        ("PL030", 15, 34, "2.for_each.do.parallel.collect"),
        ("PL032", 16, 17, "2.for_each.collect"),
        ("PL012", 17, 5, ""),
        ("PL009", 18, 5, ""),
    ]
    assert all(one.help for one in found if one.code != "EX001")
    helps = {one.code: one.help for one in found}
    assert helps["PL103"] == 'did you mean "file__read"?'
    assert helps["PL102"] == "did you mean Review?"
    assert helps["PL030"] == "write call: {pipeline: other}"


def test_a_mistake_in_a_step_does_not_hide_what_is_forbidden_in_it() -> None:
    text = """\
pipeline: x
steps:
  - for_each:
      items: [1]
      do: {fold: {init: "0", do: {tool: {name: nope, outptu: a}}, output: b}}
      collect: {agent: {prompt: hi, identity: boss}}
  - tool: {name: run_pipeline, args: [], other: 1}
"""
    found = wrong_with(text)
    assert [(one.code, one.line) for one in found] == [
        ("PL012", 3),
        ("PL103", 5),
        ("PL011", 5),
        ("PL031", 6),
        ("PL030", 7),
        ("PL013", 7),
        ("PL011", 7),
    ]


def test_lines_count_inside_the_fence() -> None:
    assert [one.line for one in wrong_with(f"```yaml\n{MANY}```")] == [one.line for one in wrong_with(MANY)]


def test_many_mistakes_are_counted_and_their_list_ends() -> None:
    found = wrong_with("pipeline: x\nsteps:\n" + "".join("  - nonsense: {}\n" for _ in range(150)))
    assert len(found) == 150
    assert told(found).endswith("; and 130 more") and len(listed(found)) == 50


def test_long_names_and_lines_are_cut() -> None:
    (found,) = wrong_with("pipeline: x\nsteps:\n  - tool: {name: " + "x" * 10_000 + "}\n")
    assert len(str(found)) < 300 and len(found.written) <= 120


def test_a_text_that_is_not_yaml() -> None:
    (found,) = wrong_with("pipeline: x\nsteps: [")
    assert found.code.startswith("YM") and found.line == 2


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("agent: {prompt: hi}\n", "write the step below them as - agent: …"),
        ("PIPELINE greet:\n  steps: []\n", "write pipeline: greet, and steps: on a line of its own"),
        ("name: greet\nsteps:\n  - agent: {prompt: hi}\n", "begin with a line pipeline: NAME, before steps:"),
        ("schema: R\nfields: {a: {type: bool}}\npipeline: p\nsteps: [{agent: {prompt: hi}}]\n", "write a line ---"),
        ('pipeline: p\nsteps:\n  - transform: {value: "Hello, {ctx.name}!"}\n', "write 'Hello, ' + ctx.name + '!'"),
        ('pipeline: p\nsteps:\n  - fold: {init: "", do: {transform: {value: acc}}, output: a}\n', "is written ''"),
        ('pipeline: p\nsteps:\n  - transform: {value: "1"; output: a}\n', "parts are separated by a comma"),
        ("pipeline: p\nsteps:\n  - transform: {value: ctx.a | filter {b > 1}}\n", "into quotes"),
        ("pipeline: p\nsteps:\n  - agent: {prompt: hi, schema: Building}\n", '"schema: Building", "fields: '),
    ],
)  # fmt: skip
def test_what_models_write_instead(text: str, help: str) -> None:
    """Each was written by a small model, which repeated it until the help said what to write."""
    found = wrong_with(text)
    assert help in found[0].help
    assert "PL001" not in {one.code for one in found}


def test_guesses_about_expressions_end() -> None:
    steps = "".join(f'  - transform: {{value: "ctx.n{at} | sum"}}\n' for at in range(150))
    found = wrong_with(f"pipeline: x\nsteps:\n{steps}")
    assert sum(one.help.startswith("write sum(") for one in found) == 100 and len(found) == 150
