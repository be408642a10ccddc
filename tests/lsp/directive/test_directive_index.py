"""Names, outline, links, linked tags and tokens of directives."""

from __future__ import annotations

import pytest
from tests.lsp.directive.sample_workspace import GREET, LEAD
from tests.lsp.editor import Editor

from quire.lsp.protocol import TOKEN_MARKS, TOKEN_TYPES

NAME = ".ai/directives/team/greet_guest.md"
DEEP = ".ai/directives/team/deep/lead.md"


def places(team: Editor, found: list[dict[str, object]]) -> list[tuple[str, str]]:
    """Return (file, text) of locations; files that are not open are opened first."""
    result = []
    for one in found:
        name = str(one["uri"]).removeprefix(team.uri("x")[:-1])
        if name not in team.texts:
            team.open(name, (team.folder / name).read_text())
        result.append((name.rpartition("/")[2], team.words(name, [one["range"]])[0]))  # type: ignore[list-item]
    return sorted(result)


def cursor(team: Editor, name: str, text: str, mark: str) -> dict[str, object]:
    assert mark.replace("‸", "") in text
    return team.open(name, text.replace(mark.replace("‸", ""), mark, 1))


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        ('extends="team/ba‸se"', [("base.md", "base")]),
        ("<system>team/voi‸ce", [("voice.md", "voice")]),
        ("about {input:gue‸st}", [("greet_guest.md", "guest")]),
        ("${outputs.lett‸er", [("greet_guest.md", "letter")]),
        ("<suppress>bring_vo‸ice", [("base.md", "bring_voice")]),
        ("<directive>team/ba‸se", [("base.md", "base")]),
    ],
)
def test_definitions(team: Editor, mark: str, expected: list[tuple[str, str]]) -> None:
    found = team.ask("textDocument/definition", cursor(team, NAME, GREET, mark))
    assert places(team, found) == expected


def test_references_of_an_input_in_all_documents(team: Editor) -> None:
    found = team.ask("textDocument/references", cursor(team, NAME, GREET, 'name="gue‸st"'))
    listed = places(team, found)
    assert listed == [("greet_guest.md", "guest")] * 7 + [("lead.md", "guest")] * 3


def test_a_tool_is_marked_in_permissions_and_calls(team: Editor) -> None:
    text = GREET.replace("rye.file-system.*", "rye.file-system.write")
    found = team.ask("textDocument/documentHighlight", cursor(team, NAME, text, "rye.file-system.wr‸ite"))
    assert team.words(NAME, [one["range"] for one in found]) == ["rye.file-system.write", "rye/file-system/write"]


def test_links(team: Editor) -> None:
    team.open(DEEP, LEAD)
    found = team.ask("textDocument/documentLink", {"textDocument": {"uri": team.uri(DEEP)}})
    assert {one["target"] for one in found} == {team.uri(NAME)}
    assert team.words(DEEP, [one["range"] for one in found])[0] == "team.greet_guest"


def test_calls_of_documents(team: Editor) -> None:
    (item,) = team.ask("textDocument/prepareCallHierarchy", cursor(team, DEEP, LEAD, "# Le‸ad"))
    outgoing = team.ask("callHierarchy/outgoingCalls", {"item": item})
    assert [one["to"]["uri"] for one in outgoing] == [team.uri(NAME)]
    incoming = team.ask("callHierarchy/incomingCalls", {"item": outgoing[0]["to"]})
    assert [one["from"]["uri"] for one in incoming] == [team.uri(DEEP)]


def test_tags_are_edited_together(team: Editor) -> None:
    found = team.ask("textDocument/linkedEditingRange", cursor(team, NAME, GREET, "<lett‸er>"))
    assert team.words(NAME, found["ranges"]) == ["letter", "letter"]
    found = team.ask("textDocument/linkedEditingRange", cursor(team, NAME, GREET, "</ho‸oks>"))
    assert team.words(NAME, found["ranges"]) == ["hooks", "hooks"]


def test_outline(team: Editor) -> None:
    team.open(NAME, GREET)
    (root,) = team.ask("textDocument/documentSymbol", {"textDocument": {"uri": team.uri(NAME)}})
    assert (root["name"], root["detail"]) == ("greet_guest", "Write a greeting")
    tops = {one["name"]: one for one in root["children"]}
    assert list(tops) == ["metadata", "inputs", "outputs", "process", "success_criteria"]
    assert [one["name"] for one in tops["inputs"]["children"]] == ["guest", "seats"]
    assert [one["name"] for one in tops["outputs"]["children"]] == ["letter", "path", "success"]
    assert [one["name"] for one in tops["process"]["children"]] == ["look_up", "write"]
    metadata = {one["name"]: one for one in tops["metadata"]["children"]}
    (hook,) = metadata["hooks"]["children"]
    assert (hook["name"], hook["detail"]) == ("too_long", "directive_return")


def test_outline_of_instructions_with_headings(team: Editor) -> None:
    text = GREET.partition("<process>")[0] + "## Look\n\nLook.\n\n### Closely\n\nYes.\n\n## Write\n\nWrite.\n"
    team.open(NAME, text)
    (root,) = team.ask("textDocument/documentSymbol", {"textDocument": {"uri": team.uri(NAME)}})
    assert [one["name"] for one in root["children"]][-3:] == ["Look", "Closely", "Write"]


def test_folding(team: Editor) -> None:
    team.open(NAME, GREET)
    found = team.ask("textDocument/foldingRange", {"textDocument": {"uri": team.uri(NAME)}})
    lines = GREET.split("\n")
    folded = {lines[one["startLine"]].strip(): lines[one["endLine"]].strip() for one in found}
    assert folded["<permissions>"] == "</permissions>"
    assert folded["```xml"] == "</directive>"
    assert folded['<step name="write">'] == "</step>"


def tokens(team: Editor, name: str, text: str) -> list[tuple[str, str, list[str]]]:
    team.open(name, text)
    data = team.ask("textDocument/semanticTokens/full", {"textDocument": {"uri": team.uri(name)}})["data"]
    lines = text.split("\n")
    found, line, column = [], 0, 0
    for ahead, after, length, kind, marks in zip(*[iter(data)] * 5, strict=True):
        line, column = line + ahead, after + (0 if ahead else column)
        said = [mark for number, mark in enumerate(TOKEN_MARKS) if marks & 1 << number]
        found.append((lines[line][column : column + length], TOKEN_TYPES[kind], said))
    return found


def test_tokens(team: Editor) -> None:
    found = tokens(team, NAME, GREET)
    wanted: list[tuple[str, str, list[str]]] = [
        ("directive", "type", []),
        ("extends", "property", []),
        ("team/base", "namespace", []),
        ("6", "number", []),
        ("rye.file-system.*", "namespace", []),
        ("directive_return", "enumMember", []),
        ("contains", "operator", []),
        ("outputs.", "variable", []),
        ("letter", "parameter", []),
        ("{input:", "macro", []),
        ("guest", "parameter", []),
        ("rye_fetch", "function", []),
        ("query", "parameter", []),
        ("content", "property", []),
    ]
    assert [one for one in wanted if one not in found] == []
    assert not any(kind == "variable" and "deprecated" in marks for _, kind, marks in found)


def test_an_input_that_is_not_declared_is_struck_out(team: Editor) -> None:
    found = tokens(team, NAME, GREET.replace("{input:guest}, and", "{input:gest}, and"))
    assert ("gest", "variable", ["deprecated"]) in found


def test_names_of_settings(team: Editor) -> None:
    """A tier that `quire.toml` declares is found there, if the settings are indexed."""
    from quire.lsp.languages import function

    if function("settings", "index", "index") is None:
        pytest.skip("the settings have no index")
    (team.folder / "quire.toml").write_text('[models.tiers]\nlow = "echo:small"\n')
    found = team.ask("textDocument/definition", cursor(team, NAME, GREET, 'tier="l‸ow"'))
    assert [one["uri"] for one in found] == [team.uri("quire.toml")]
