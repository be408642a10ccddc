"""Every name that completion offers at places of the examples is one that the check accepts there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.lsp.editor import Editor, apply

EXAMPLES = Path(__file__).parents[2] / "examples"
HOUSE = "guest-house"
GREET = ".ai/directives/house/greet_guest.md"
PREPARE = ".ai/directives/house/prepare_arrival.md"
BOARD = "review-board.yaml"
PLACES = [
    (HOUSE, "pipelines/arrivals.yaml", "pipeline: ‸arrival,"),
    (HOUSE, "pipelines/arrival.yaml", "pipeline: ‸welcome-letter,"),
    ("expenses", "expenses.yaml", "default: {pipeline: ‸without_receipts,"),
    ("expenses", "expenses.yaml", "schema: ‸Report\n      output"),
    ("expenses", "expenses.yaml", "type: ref, schema: ‸Person}"),
    ("review-board", BOARD, "name: ‸file__read\n"),
    ("review-board", BOARD, "capabilities: {tools: [‸file__read]}"),
    ("review-board", BOARD, "identity: ‸reviewer"),
    ("review-board", BOARD, "schema: ‸Review\n          prompt"),
    ("review-board", "quire.toml", 'tools = ["‸file__read", "file__grep"]'),
    ("post-mortem", "post-mortem.playbook.md", "@tool(quire, ‸timeline,"),
    ("rfc-review", "rfc-review.playbook.md", "@prompt(library:‸review-criteria)"),
    ("rfc-review", "rfc-review.playbook.md", "@model(‸cheap)"),
    (HOUSE, "playbooks/welcome-letter.playbook.md", "@tool(quire, ‸room_price"),
    (HOUSE, GREET, 'extends="‸house/base"'),
    (HOUSE, GREET, 'item_type="knowledge", item_id="‸house/rules"'),
    (HOUSE, GREET, 'item_type="tool", item_id="‸rye/file-system/write"'),
    (HOUSE, GREET, 'tier="‸low"'),
    (HOUSE, PREPARE, "<tool>‸rye.file-system.write</tool>"),
    (HOUSE, PREPARE, "<pipeline>‸room_price</pipeline>"),
    (HOUSE, PREPARE, "<playbook>‸welcome-letter</playbook>"),
    (HOUSE, PREPARE, 'item_type="knowledge" item_id="‸house/hurry"'),
    (HOUSE, PREPARE, '"directive_id": "‸house/greet_guest"'),
    (HOUSE, ".ai/directives/house/base.md", "<system>‸house/voice</system>"),
    (HOUSE, "pipelines/arrival.test.yaml", "‸coverage"),
]
NAME = re.compile(r"[^\s,\"\]})<:]*")
SNIPPET = re.compile(r"\$\{[0-9]+:([^}]*)\}|\$[0-9]+")
ACCEPTED = (
    "BD",
    "EV",
    "GA",
    "TA",
    "PL106",
    "PL109",
    "PL113",
    "PL114",
    "PL206",
    "PL208",
    "PL209",
    "PB226",
    "PB227",
    "PB232",
    "DR202",
    "DR302",
    "TS009",
)
"""Codes about something else than the name itself: what a run costs and touches, the inputs, arguments, fields and
permissions that stand beside it, and circles that a model decides about."""


@pytest.mark.parametrize(("example", "file", "place"), PLACES)
def test_an_offered_name_is_accepted(editor: Editor, example: str, file: str, place: str) -> None:
    shutil.copytree(EXAMPLES / example, editor.folder, dirs_exist_ok=True)
    text = (editor.folder / file).read_text()
    start = text.index(place.replace("‸", "")) + place.index("‸")
    editor.open(file, text)
    before = {*editor.codes(file)}
    if file.endswith(".test.yaml") and place == "‸coverage":
        text, start = f"{text[:start]}document: \n{text[start:]}", start + len("document: ")
    found = NAME.match(text, start)
    without = text[:start] + text[found.end() if found else start :]
    editor.replace(file, without)
    offered = editor.ask("textDocument/completion", editor.place(file, start))["items"]
    assert offered
    for one in offered:
        edit = one["textEdit"]
        editor.replace(file, apply(without, [{**edit, "newText": SNIPPET.sub(r"\1", edit["newText"])}]))
        wrong = [code for code in editor.codes(file) if code not in before and not code.startswith(ACCEPTED)]
        assert wrong == [], one["label"]
