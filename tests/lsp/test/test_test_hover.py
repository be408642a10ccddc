"""Hovers in test files."""

from __future__ import annotations

import pytest
from tests.lsp.editor import Editor

HEAD = "cases:\n  - name: x\n    "
VISIT, SUM, GREET = "visit.test.yaml", "sum.test.yaml", ".ai/directives/house/greet.test.yaml"


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        (VISIT, "def‸aults: {}", "setting that every case begins with"),
        (VISIT, HEAD + "ex‸pect: {}", "expectations"),
        (VISIT, HEAD + "expect: {status: compl‸eted}", "How the run ends"),
        (VISIT, HEAD + "expect: {steps: {3: skip‸ped}}", "status of steps"),
        (VISIT, HEAD + 'model: {"‸1": a}', "What is"),
        (VISIT, HEAD + 'model: {"1‸": a}', "Explain"),
        (VISIT, HEAD + "inputs: {mo‸od: glad}", "`glad`, `sad`"),
        (VISIT, HEAD + "inputs: {pl‸ace: x}", "Where to go"),
        (VISIT, HEAD + "expect: {named: {ti‸me: x}}", "`morning`, `evening`"),
        (VISIT, HEAD + "expect: {output: {con‸tains: x}}", "part of a text"),
        (VISIT, HEAD + 'expect: {that: [!expr "inputs.pla‸ce == 1"]}', "Where to go"),
        (VISIT, "document: visit.play‸book.md\ncases: [", "playbook"),
        (SUM, HEAD + "tools: {file__wr‸ite: {returns: x}}", "`content`"),
        (SUM, HEAD + "expect: {stores: {summ‸ary: x}}", "step `1`"),
        (GREET, HEAD + "model: [{turn: 1, tool_calls: [{name: directive_re‸turn}]}]", "the letter"),
        (GREET, HEAD + "inputs: {gu‸est: x}", "who comes"),
    ],
)
def test_it_says_what_stands_there(house: Editor, file: str, text: str, told: str) -> None:
    assert told in house.hover(file, text)


@pytest.mark.parametrize("text", ["‸", HEAD + "model:\n      1: |\n        expe‸ct", "# com‸ment", HEAD + "exp‸ct: 1"])
def test_it_says_nothing_where_nothing_is_known(house: Editor, text: str) -> None:
    assert house.hover(VISIT, text) == ""


def test_a_fence_in_a_prompt_does_not_end_the_hover(house: Editor) -> None:
    house.write("fence.playbook.md", "# F\n\n## STEP 1: A\n\nUse this:\n\n~~~\n```\nx\n```\n~~~\n")
    told = house.hover("fence.test.yaml", HEAD + 'model: {"1‸": a}')
    assert "````\n" in told
