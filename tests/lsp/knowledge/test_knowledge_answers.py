"""Answers about knowledge files."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lsp.directive.sample_workspace import RULES, VOICE
from tests.lsp.editor import Editor

NAME = ".ai/knowledge/team/voice.md"
NEW = ".ai/knowledge/team/new.md"


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        ("```yaml\n‸\n```\n", {"name", "title", "version", "entry_type", "tags"}, set()),
        ("```yaml\nname: x\nti‸\n```\n", {"title"}, {"name"}),
        ("```yaml\nti‸", {"title"}, set()),
        ("```yaml\nname: ‸\n```\n", {"new"}, {"title"}),
        ("```yaml\ncategory: ‸", {"team"}, set()),
        ("```yaml\nversion: ‸", {"1.0.0"}, set()),
        ("```yaml\nentry_type: r‸", {"reference"}, set()),
        ("```yaml\ntags: [a, ‸", {"tone", "plain words"}, set()),
        ("```yaml\nreferences:\n  - ‸\n```\n", {"team/rules", "team/base"}, {"team/new"}),
        ("```yaml\nreferences: [‸]\n```\n", {"team/rules"}, set()),
        ("```yaml\ntitle: ‸\n```\n", set(), {"team/rules"}),
        ("```yaml\nname: x\n```\n\nText ‸", set(), {"name"}),
    ],
)
def test_completions(team: Editor, text: str, wanted: set[str], unwanted: set[str]) -> None:
    labels = set(team.completions(NEW, text))
    assert wanted <= labels
    assert not unwanted & labels


def test_an_empty_file_gets_its_metadata(team: Editor) -> None:
    from quire.lsp.wire import plain

    text = plain(team.completions(NEW, "‸")["knowledge"]["textEdit"]["newText"])
    team.replace(NEW, text + "Text.\n")
    assert team.codes(NEW) == []


@pytest.mark.parametrize(
    ("mark", "wanted"),
    [
        ("name: vo‸ice", ["**knowledge** `team/voice`", "not signed", "used by: team/base, team/greet_guest"]),
        ("tit‸le:", ["`title`"]),
        ("- team/ru‸les", ["**knowledge** `team/rules`", "House rules"]),
        ("`team/ru‸les`", ["House rules"]),
    ],
)
def test_hovers(team: Editor, mark: str, wanted: list[str]) -> None:
    found = team.hover(NAME, VOICE.replace(mark.replace("‸", ""), mark, 1))
    assert [text for text in wanted if text not in found] == []


def test_names_and_links(team: Editor) -> None:
    place = team.open(NAME, VOICE.replace("- team/rules", "- team/ru‸les"))
    (found,) = team.ask("textDocument/definition", place)
    assert found["uri"] == team.uri(".ai/knowledge/team/rules.md")
    links = team.ask("textDocument/documentLink", {"textDocument": {"uri": team.uri(NAME)}})
    assert team.words(NAME, [one["range"] for one in links]) == ["team/rules", "team/rules"]
    used = team.ask("textDocument/references", team.open(NAME, VOICE.replace("name: voice", "name: vo‸ice")))
    assert {one["uri"].rpartition("/")[2] for one in used} == {"voice.md", "base.md", "greet_guest.md"}


def test_outline_and_tokens(team: Editor) -> None:
    team.open(NAME, VOICE)
    params = {"textDocument": {"uri": team.uri(NAME)}}
    (root,) = team.ask("textDocument/documentSymbol", params)
    assert (root["name"], root["detail"]) == ("voice", "How we speak")
    assert [one["name"] for one in root["children"]] == [
        "name", "title", "version", "entry_type", "category", "tags", "references", "Voice",
    ]  # fmt: skip
    assert len(team.ask("textDocument/semanticTokens/full", params)["data"]) == 5 * 15


def test_lenses(team: Editor) -> None:
    team.open(NAME, VOICE)
    found = team.ask("textDocument/codeLens", {"textDocument": {"uri": team.uri(NAME)}})
    assert [one["command"]["title"] for one in found] == ["Sign (not signed)", "used by 2 directives"]
    team.open(".ai/knowledge/team/rules.md", RULES)
    found = team.ask("textDocument/codeLens", {"textDocument": {"uri": team.uri(".ai/knowledge/team/rules.md")}})
    assert found[1]["command"]["title"] == "used by 0 directives, 1 may fetch it"


def actions(team: Editor, text: str) -> dict[str, dict[str, Any]]:
    place = team.open(NEW, text)
    team.pause()
    where = {"start": place["position"], "end": place["position"]}
    params = {"textDocument": place["textDocument"], "range": where, "context": {"diagnostics": []}}
    return {one["title"]: one for one in team.ask("textDocument/codeAction", params)}


def test_calls_are_the_directives_that_use_it_and_the_knowledge_that_it_names(team: Editor) -> None:
    (item,) = team.ask("textDocument/prepareCallHierarchy", team.open(NAME, VOICE))
    incoming = team.ask("callHierarchy/incomingCalls", {"item": item})
    assert sorted(one["from"]["name"] for one in incoming) == ["base.md", "greet_guest.md"]
    outgoing = team.ask("callHierarchy/outgoingCalls", {"item": item})
    assert [one["to"]["name"] for one in outgoing] == ["team/rules"]


def test_missing_fields_are_added(team: Editor) -> None:
    found = actions(team, "``‸`yaml\nname: new\n```\n\nText.\n")
    team.replace(NEW, team.edited(found["Add the fields that signing requires"]["edit"])[NEW])
    assert team.codes(NEW) == []


@pytest.mark.parametrize(
    ("line", "title", "expected"),
    [
        ("name: o‸ld", "Write new, as the place of the file is", "name: new\n"),
        ("name: new\ncategory: el‸se", "Write team, as the place of the file is", "category: team\n"),
    ],
)
def test_the_place_counts(team: Editor, line: str, title: str, expected: str) -> None:
    found = actions(team, f'```yaml\n{line}\ntitle: T\nversion: "1.0.0"\nentry_type: reference\n```\n\nText.\n')
    text = team.edited(found[title]["edit"])[NEW]
    assert expected in text
    team.replace(NEW, text)
    assert team.codes(NEW) == []


def test_a_finding_is_allowed(team: Editor) -> None:
    found = actions(team, '```yaml\ntitle: T\nname: o‸ld\nversion: "1.0.0"\nentry_type: reference\n```\n\nText.\n')
    team.replace(NEW, team.edited(found["Allow KN104 because …"]["edit"])[NEW])
    assert team.codes(NEW) == []


def test_a_yaml_file(team: Editor) -> None:
    name = ".ai/knowledge/team/list.yaml"
    head = 'name: list\ntitle: A list\nversion: "1.0.0"\nentry_type: reference\n'
    text = head + "references: [team/rules]\nbody: |\n  Text.\n"
    team.open(name, text)
    (root,) = team.ask("textDocument/documentSymbol", {"textDocument": {"uri": team.uri(name)}})
    assert root["name"] == "list"
    (link,) = team.ask("textDocument/documentLink", {"textDocument": {"uri": team.uri(name)}})
    assert link["target"] == team.uri(".ai/knowledge/team/rules.md")
