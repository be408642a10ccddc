"""Running cases from the editor: the results come back as JSON, lenses, hints, hovers and changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import CAPABILITIES, Editor

VISIT = "visit.test.yaml"
TEXT = """\
defaults:
  inputs: {place: a market, mood: glad}
  model: {"1": A place., "2": '{"time": "morning"}', "3a": Hi}
  answers: {"4": "yes"}
cases:
  - name: early
    expect:
      named: {time: morning}
      prompts: {"1": {contains: a market}}
  - name: wrong
    expect:
      named: {time: evening}
"""


def run(editor: Editor, *arguments: str) -> list[dict[str, Any]]:
    given = [editor.uri(arguments[0]), *arguments[1:]]
    found: list[dict[str, Any]] = editor.ask("workspace/executeCommand", {"command": "quire.test", "arguments": given})
    return found


def labels(editor: Editor, name: str) -> list[str]:
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    found = editor.ask("textDocument/inlayHint", {"textDocument": {"uri": editor.uri(name)}, "range": whole})
    return [one["label"] for one in found]


def titles(editor: Editor, name: str) -> list[str]:
    found = editor.ask("textDocument/codeLens", {"textDocument": {"uri": editor.uri(name)}})
    return [one["command"]["title"] for one in found]


def test_the_answer_is_that_of_the_verb(house: Editor) -> None:
    house.open(VISIT, TEXT)
    found = run(house, VISIT)
    assert [(one["case"], one["outcome"]) for one in found if one["type"] == "case"] == [
        ("early", "passed"),
        ("wrong", "failed"),
    ]
    assert (found[-1]["type"], found[-1]["passed"], found[-1]["failed"]) == ("summary", 1, 1)


def test_results_are_shown_while_the_texts_are_the_same(house: Editor) -> None:
    house.open(VISIT, TEXT)
    assert titles(house, VISIT) == ["Run all", "Run case", "Run case"]
    assert labels(house, VISIT) == []
    run(house, VISIT)
    assert titles(house, VISIT) == ["Run all (1 ✓ 1 ✗)", "Run case ✓", "Run case ✗"]
    case, named, prompt, wrong, seen = labels(house, VISIT)
    assert case.startswith("✓ ") and case.endswith(" ms")
    assert (named, prompt, wrong, seen) == ("✓", "✓ What is a market?", "✗", "✗ morning")
    house.type(VISIT, 0, "# more\n")
    assert titles(house, VISIT) == ["Run all (1 ✓ 1 ✗, before the last change)", "Run case", "Run case"]
    assert labels(house, VISIT) == []


def test_results_are_old_once_the_document_has_changed(house: Editor) -> None:
    house.open(VISIT, TEXT)
    run(house, VISIT)
    path = house.folder / "visit.playbook.md"
    house.open("visit.playbook.md", path.read_text().replace("Explain", "Tell"))
    assert labels(house, VISIT) == []
    run(house, VISIT)
    assert len(labels(house, VISIT)) == 5


def test_one_case_can_be_run_and_the_others_keep_their_results(house: Editor) -> None:
    house.open(VISIT, TEXT)
    found = run(house, VISIT, "wrong")
    assert [one["case"] for one in found if one["type"] == "case"] == ["wrong"]
    assert titles(house, VISIT) == ["Run all (1 ✗)", "Run case", "Run case ✗"]
    run(house, VISIT, "early")
    assert titles(house, VISIT) == ["Run all (1 ✓ 1 ✗)", "Run case ✓", "Run case ✗"]


def test_results_of_tests_that_the_editor_has_run_are_shown(house: Editor) -> None:
    house.write(VISIT, TEXT)
    house.open(VISIT, TEXT)
    house.tell("quire/didRunTests", {"tests": [{"uri": house.uri(VISIT), "cases": ["wrong"]}]})
    assert titles(house, VISIT) == ["Run all (1 ✗)", "Run case", "Run case ✗"]
    house.replace(VISIT, TEXT + "    tags: [late]\n")
    house.tell("quire/didRunTests", {"tests": [{"uri": house.uri(VISIT)}]})
    assert titles(house, VISIT) == ["Run all (1 ✓ 1 ✗)", "Run case ✓", "Run case ✗"]
    assert not house._answers, "a notification is not answered"


@pytest.mark.parametrize(
    "tests", [None, "all", [1], [{}], [{"uri": "file:///nowhere.test.yaml"}], [{"uri": 1, "cases": 2}]]
)
def test_nothing_is_run_for_tests_that_are_not_known(house: Editor, tests: object) -> None:
    house.open(VISIT, TEXT)
    house.tell("quire/didRunTests", {"tests": tests})
    assert titles(house, VISIT) == ["Run all", "Run case", "Run case"]
    assert "window/logMessage" not in [one["method"] for one in house.messages]


def test_the_tests_of_a_document_are_found(house: Editor) -> None:
    house.write(VISIT, TEXT)
    house.write("other.test.yaml", TEXT.replace("defaults", "document: visit.playbook.md\ndefaults"))
    found = run(house, "visit.playbook.md")
    assert found[-1]["cases"] == 4
    house.open("visit.playbook.md", (house.folder / "visit.playbook.md").read_text())
    assert "Test (2 ✓ 2 ✗)" in titles(house, "visit.playbook.md")
    refused = house.refused("workspace/executeCommand", {"command": "quire.test", "arguments": [house.uri("sum.yaml")]})
    assert "no test" in refused["message"]


def test_a_hover_has_what_the_run_gave(house: Editor) -> None:
    house.open(VISIT, TEXT)
    run(house, VISIT)
    assert "morning" in house.hover(VISIT, TEXT.replace("evening", "even‸ing"))
    assert "✗ failed" in house.hover(VISIT, TEXT.replace("wrong", "wro‸ng"))
    assert "✓ passed" in house.hover(VISIT, TEXT.replace("early", "ear‸ly"))


def test_the_value_of_the_last_run_can_be_expected(house: Editor) -> None:
    place = house.open(VISIT, TEXT.replace("time: even", "time: even‸"))
    run(house, VISIT)
    assert changed(house, place, "Expect what the last run gave") == TEXT.replace("evening}", '"morning"}')


def test_a_case_for_an_arm_that_no_case_takes_is_offered(house: Editor) -> None:
    place = house.open(VISIT, TEXT)
    run(house, VISIT)
    text = changed(house, place, "Add a case: step 3: else")
    assert text.startswith(TEXT + "  - name: ")
    house.replace(VISIT, text)
    assert "TS001" not in house.codes(VISIT)
    assert run(house, VISIT)[-1]["cases"] == 3


def changed(editor: Editor, place: dict[str, Any], title: str) -> str:
    where = {"start": place["position"], "end": place["position"]}
    asked = {"textDocument": place["textDocument"], "range": where, "context": {"diagnostics": []}}
    found = {one["title"]: one for one in editor.ask("textDocument/codeAction", asked)}
    return editor.edited(found[title]["edit"])[VISIT]


def test_nothing_is_written(house: Editor) -> None:
    house.write(VISIT, TEXT.replace("{time: morning}", "!snapshot"))
    before = sorted(house.folder.rglob("*"))
    run(house, VISIT)
    assert sorted(house.folder.rglob("*")) == before


def test_a_case_with_a_snapshot_can_be_updated(house: Editor) -> None:
    house.open(VISIT, TEXT.replace("{time: morning}", "!snapshot"))
    found = house.ask("textDocument/codeLens", {"textDocument": {"uri": house.uri(VISIT)}})
    lens = next(one["command"] for one in found if one["command"]["title"] == "Update snapshot")
    assert lens == {
        "title": "Update snapshot",
        "command": "quire.updateSnapshots",
        "arguments": [house.uri(VISIT), "early"],
    }


def test_a_broken_test_has_a_result_too(house: Editor) -> None:
    house.open(VISIT, TEXT + "    no_key: 1\n")
    found = run(house, VISIT)
    assert found[0]["type"] == "file" and found[0]["problems"][0]["code"] == "TS002"
    assert titles(house, VISIT)[0] == "Run all (1 ✗)"


def test_editors_that_can_are_asked_to_look_again(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "quire.toml").write_text("")
    refreshes = {"codeLens": {"refreshSupport": True}, "inlayHint": {"refreshSupport": True}}
    able = {**CAPABILITIES, "workspace": {**CAPABILITIES["workspace"], **refreshes}}
    editor = Editor(folder, able)
    editor.write("a.playbook.md", "# A\n\n## STEP 1: Say\n\nSay it.\n")
    editor.open("a.test.yaml", 'cases:\n  - name: a\n    model: {"1": x}\n    expect: {output: x}\n')
    run(editor, "a.test.yaml")
    methods = [one["method"] for one in editor.messages]
    assert methods.count("workspace/codeLens/refresh") == 1
    assert methods.count("workspace/inlayHint/refresh") == 1
    run(editor, "a.test.yaml")
    asked = [one["id"] for one in editor.messages if one["method"].endswith("/refresh")]
    assert len(set(asked)) == len(asked) == 4


def test_the_proof_of_a_document_is_a_text(house: Editor) -> None:
    asked = {"command": "quire.showProof", "arguments": [house.uri("visit.playbook.md")]}
    told = house.ask("workspace/executeCommand", asked)
    assert "model calls" in told and "permissions it needs" in told and "\x1b" not in told
    house.open("bad.playbook.md", "# A\n")
    refused = house.refused(
        "workspace/executeCommand", {"command": "quire.showProof", "arguments": [house.uri("bad.playbook.md")]}
    )
    assert "errors" in refused["message"]


def test_the_difference_to_the_lock_is_shown(house: Editor) -> None:
    from click.testing import CliRunner

    from quire.cli.lock import command

    asked = {"command": "quire.lockDiff", "arguments": [house.uri("visit.playbook.md")]}
    assert "no quire.lock" in house.refused("workspace/executeCommand", asked)["message"]
    assert CliRunner().invoke(command, ["--no-tools"]).exit_code == 0
    assert "No document may do more" in house.ask("workspace/executeCommand", asked)
    text = (house.folder / "visit.playbook.md").read_text()
    house.open(
        "visit.playbook.md", text.replace("Say good evening.", "Say good evening.\n\n### STEP 3c: More\n\nGo on.")
    )
    assert "visit.playbook.md" in house.ask("workspace/executeCommand", asked)
