"""Every feature at every place of a test file, also of one that ends anywhere: no exception, and spans in the text."""

from __future__ import annotations

import pytest
from tests.depth import depth
from tests.lsp.editor import Editor
from tests.lsp.every_place import try_everything

VISIT = "visit.test.yaml"
TEXTS = [
    """\
document: visit.playbook.md
defaults:
  inputs: {place: "a market", mood: glad}
cases:
  - name: early
    model: {"1": a, 2: [x, {reply: {time: morning}, times: any}]}
    tools:
      file__read:
        when: [{args: {path: x}, returns: y}]
    expect:
      that: [!expr "inputs.place == 'a'", !expr named.time]
      output: {contains: [a, "b: c"]}
    then:
    - answer: {"4": yes}
""",
    "cases:\n- name: é👍\n  model:\n  - |\n    a: b\n  expect: &e !snapshot\n  files: {x: null}\n- *e\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_no_place_raises(house: Editor, text: str) -> None:
    try_everything(house, VISIT, text, range(0, len(text) + 1, depth(3, 1)))


@pytest.mark.parametrize("text", TEXTS)
def test_no_end_of_the_text_raises(house: Editor, text: str) -> None:
    for end in range(0, len(text), depth(4, 1)):
        try_everything(house, VISIT, text[:end], [end])
