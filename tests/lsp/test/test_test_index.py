"""Names, outline, links and renames of test files."""

from __future__ import annotations

from tests.lsp.editor import Editor

VISIT = "visit.test.yaml"
TEXT = """\
document: visit.playbook.md
defaults:
  inputs: {place: a market, mood: glad}
  model: {"1": A place., "2": '{"time": "morning"}'}
cases:
  - name: early
    model: {"3a": Hi}
    answers: {"4": yes}
    expect:
      named: {time: morning, place: a market}
      steps: {"3a": completed, "3b": skipped}
      that: [!expr "inputs.place == 'a market' and named.time == 'morning'"]
  - name: later
    then:
      - answer: {"4": no}
    expect: {status: awaiting_input}
"""


def test_the_cases_are_the_outline(house: Editor) -> None:
    house.open(VISIT, TEXT)
    found = house.ask("textDocument/documentSymbol", {"textDocument": {"uri": house.uri(VISIT)}})
    assert [one["name"] for one in found] == ["early", "later"]
    assert [one["name"] for one in found[1]["children"]] == ["then answer"]


def test_cases_of_a_broken_text_are_found_by_their_lines(house: Editor) -> None:
    house.open(VISIT, TEXT + "  - name: broken\n    model: {\n")
    found = house.ask("textDocument/documentSymbol", {"textDocument": {"uri": house.uri(VISIT)}})
    assert [one["name"] for one in found] == ["early", "later", "broken"]


def test_the_document_is_a_link_and_a_definition(house: Editor) -> None:
    place = house.open(VISIT, TEXT.replace("visit.play", "visit.‸play"))
    links = house.ask("textDocument/documentLink", place)
    assert [link["target"] for link in links] == [house.uri("visit.playbook.md")]
    found = house.ask("textDocument/definition", place)
    assert found[0]["uri"] == house.uri("visit.playbook.md")


def test_names_belong_to_the_document(house: Editor) -> None:
    house.open(VISIT, TEXT)
    view = house.session.desk.view(house.uri(VISIT))
    assert view is not None
    path = str(house.folder / "visit.playbook.md")
    found = {(name.kind, name.text) for name in view.index.names if name.document == path}
    assert found >= {("input", "place"), ("input", "mood"), ("step", "1"), ("step", "3a"), ("output", "time")}
    assert ("output", "place") not in found
    places = [name for name in view.index.names if (name.kind, name.text) == ("input", "place")]
    assert [TEXT[one.span.start : one.span.end] for one in places] == ["place"] * 3


def test_references_of_a_name_are_highlighted(house: Editor) -> None:
    place = house.open(VISIT, TEXT.replace("named: {ti", "named: {ti‸"))
    found = house.ask("textDocument/documentHighlight", place)
    assert house.words(VISIT, [one["range"] for one in found]) == ["time", "time"]


def test_a_case_can_be_renamed(house: Editor) -> None:
    place = house.open(VISIT, TEXT.replace("early", "ear‸ly"))
    edit = house.ask("textDocument/rename", {**place, "newName": "at dawn"})
    assert house.edited(edit)[VISIT] == TEXT.replace("early", "at dawn")
    taken = house.refused("textDocument/rename", {**place, "newName": "later"})
    assert "already" in taken["message"]
    quoted = house.refused("textDocument/rename", {**place, "newName": "a: b"})
    assert "quotes" in quoted["message"]


def test_a_file_that_is_renamed_is_followed(house: Editor) -> None:
    house.write(VISIT, TEXT)
    house.open(VISIT, TEXT)
    files = [{"oldUri": house.uri("visit.playbook.md"), "newUri": house.uri("trip.playbook.md")}]
    edit = house.ask("workspace/willRenameFiles", {"files": files})
    assert house.edited(edit)[VISIT].startswith("document: trip.playbook.md\n")


def test_files_beside_the_test_are_links(house: Editor) -> None:
    house.write("rows.csv", "a\n1\n")
    house.open(VISIT, TEXT.replace("  - name: later\n", "  - name: later\n    each: rows.csv\n"))
    links = house.ask("textDocument/documentLink", {"textDocument": {"uri": house.uri(VISIT)}})
    assert house.uri("rows.csv") in [link["target"] for link in links]


def test_outputs_that_a_scripted_model_returns_are_names_of_the_directive(house: Editor) -> None:
    name = ".ai/directives/house/greet.test.yaml"
    calls = "[{name: directive_return, input: {letter: x}}, {name: rye_fetch, input: {item_id: y}}]"
    house.open(name, f"cases:\n  - name: a\n    model: [{{turn: 1, tool_calls: {calls}}}]\n")
    view = house.session.desk.view(house.uri(name))
    assert view is not None
    assert [one.text for one in view.index.names if one.kind == "output"] == ["letter"]
