"""Calls of playbooks and directives from a pipeline, as far as `check` can tell: what they take, what they give."""

from __future__ import annotations

import pytest
from tests.formats.pipeline.reading import Workspace, checked, steps

from quire.formats.resolver import DocumentInterface
from quire.schema import Field, Kind, Object, Ref, Simple
from quire.values import Value

GIVES = Object((Field("path", Simple(Kind.STRING)), Field("words", Ref(""), required=False)))


def _wrong(name: str, value: Value) -> str:
    return "it is not a number" if name == "nights" and not isinstance(value, int) else ""


DOCUMENTS = [
    DocumentInterface("directive", "greet", ("guest",), ("guest", "nights"), GIVES, _wrong),
    DocumentInterface("playbook", "any"),
]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (["call: {pipeline: greet, pass: [guest]}"], []),
        (["call: {pipeline: any, pass: [whatever]}"], []),
        (["call: {pipeline: greet}"], [("PL114", "greet")]),
        (["call: {pipeline: greet, pass: [guest, night]}"], [("PL114", "night")]),
        (["call: {pipeline: greet, pass: {guest: ctx.a, nights: \"'two'\"}}"], [("PL114", "nights")]),
        (['call: {pipeline: greet, pass: {guest: ctx.a, nights: "2"}}'], []),
        (["match: {on: ctx.a, cases: {x: {pipeline: greet}}}"], [("PL114", "greet")]),
        (["call: {pipeline: gret, pass: [guest]}"], [("PL101", "gret")]),
        (["call: {pipeline: greet, pass: [guest], output: done}", "transform: {value: done.path}"], []),
        (
            ["call: {pipeline: greet, pass: [guest], output: done}", "transform: {value: done.pth}"],
            [("PL109", "pth")],
        ),
        (
            ["call: {pipeline: greet, pass: [guest], output: done}", 'transform: {value: "done.path > 3"}'],
            [("PL110", "done.path > 3")],
        ),
        # What may be missing is read with care; of what is in it, nothing is known.
        (
            ["call: {pipeline: greet, pass: [guest], output: done}", "transform: {value: done.words.first}"],
            [("PL209", "words")],
        ),
        (["call: {pipeline: any, output: done}", "transform: {value: done.anything.at.all}"], []),
    ],
)
def test_calls(written: list[str], found: list[tuple[str, str]]) -> None:
    assert checked(steps(*written), Workspace(documents=DOCUMENTS)) == found


def test_a_registered_pipeline_of_the_name_comes_first() -> None:
    greet = 'pipeline: greet\nsteps:\n- transform: {value: "1"}\n'
    workspace = Workspace(greet, documents=DOCUMENTS)
    text = steps("call: {pipeline: greet, output: done}", "transform: {value: done.anything}")
    assert checked(text, workspace) == []
