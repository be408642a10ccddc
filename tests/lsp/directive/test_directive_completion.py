"""Completions in directives, in whole and in broken text."""

from __future__ import annotations

import pytest
from tests.lsp.directive.sample_workspace import xml
from tests.lsp.editor import Editor

NAME = ".ai/directives/team/new.md"
HOOK = '<hooks><hook id="a" event="directive_return">'
CONTROL = '<action primary="execute" item_type="tool" item_id="rye/agent/threads/internal/control">'


@pytest.mark.parametrize(
    ("metadata", "wanted", "unwanted"),
    [
        ("<‸", {"permissions", "hooks", "limits"}, {"input", "step"}),
        ("<per‸>", {"permissions"}, {"input"}),
        ("<permissions><‸", {"execute", "fetch", "sign", "acknowledge"}, {"tool"}),
        ("<permissions><execute><‸", {"tool", "directive"}, {"execute"}),
        ("<permissions><execute><tool>‸", {"rye.file-system.write", "rye.file-system.*", "ask", "*"}, {"team/base"}),
        ("<permissions><execute><tool>rye/‸</tool></execute></permissions>", {"rye/file-system/*"}, set()),
        ("<permissions><execute><directive>‸", {"team/base", "team/*"}, {"team/voice"}),
        ("<permissions><fetch><knowledge>te‸</knowledge></fetch></permissions>", {"team/voice", "team/*"}, set()),
        ('<permissions><acknowledge risk="‸', {"elevated", "unrestricted"}, set()),
        ("<hooks></‸", {"hooks", "metadata", "directive"}, set()),
        ("<hooks><hook ‸", {"id", "event", "position"}, set()),
        ('<hooks><hook id="a" ‸>', {"event"}, {"id"}),
        ('<hooks><hook ‸ id="a">', {"event"}, {"id"}),
        ('<hooks><hook id="a" event="‸', {"error", "limit"}, {"thread_continued"}),
        ('<hooks><hook id="a" event="‸" position="before">', {"error", "limit"}, set()),
        (f'{HOOK}<condition path="‸', {"outputs.menu", "outputs.price", "inputs.guest", "cost.spend"}, {"limit_code"}),
        ('<hooks><hook event="limit"><condition path="‸" op="eq" />', {"limit_code"}, {"outputs.menu"}),
        (f'{HOOK}<condition path="a" op="‸', {"gte", "regex"}, set()),
        (f'{HOOK}<action primary="‸', {"execute", "fetch", "sign"}, set()),
        (f'{HOOK}<action item_type="directive" item_id="‸', {"team/greet_guest"}, {"team/voice"}),
        (f'{HOOK}<action item_type="directive" item_id="team/greet_guest"><param name="‸', {"guest", "seats"}, set()),
        (f'{HOOK}{CONTROL}<param name="action">‸', {"retry", "escalate"}, set()),
        (f'{HOOK}<action item_type="tool" item_id="x"><param name="y">a ${{‸', {"outputs.menu"}, set()),
        ('<model tier="‸', {"low", "general", "orchestrator"}, set()),
        ("<limits ‸", {"turns", "spend", "duration_seconds"}, set()),
        ('<limits turns="3" ‸ />', {"tokens"}, {"turns"}),
        ("<context><system>‸", {"team/voice", "rye/agent/core/Identity"}, {"team/base"}),
        ("<category>‸", {"team"}, set()),
        ("‸", {"<description", "<permissions"}, set()),
        ("<cost><context ‸", {"turns", "spawn_threshold"}, {"tier"}),
    ],
)
def test_in_the_fence(team: Editor, metadata: str, wanted: set[str], unwanted: set[str]) -> None:
    labels = set(team.completions(NAME, xml(metadata)))
    assert wanted <= labels
    assert not unwanted & labels


@pytest.mark.parametrize(
    ("body", "wanted", "unwanted"),
    [
        ("Ask {‸", {"{input:guest}"}, set()),
        ("Ask {input:‸", {"guest"}, set()),
        ("Ask {input:g‸}", {"guest"}, set()),
        ("Ask ${inputs.‸", {"inputs.guest"}, {"outputs.menu"}),
        ("`ry‸", {"rye_execute", "rye_fetch", "rye_sign"}, set()),
        ("`rye_execute(‸", {"item_type", "item_id", "parameters"}, set()),
        ('`rye_execute(item_type="tool", ‸)`', {"item_id"}, {"item_type"}),
        ('`rye_execute(item_type="‸', {"tool", "directive"}, set()),
        ('`rye_execute(item_type="directive", item_id="‸', {"team/base"}, {"rye/bash"}),
        ('`rye_execute(item_type="tool", item_id="‸")`', {"rye/bash"}, {"team/base"}),
        ('`rye_execute(item_type="directive", item_id="team/greet_guest", parameters={‸', {"guest", "seats"}, set()),
        ('`rye_execute(item_type="tool", item_id="rye/bash", parameters={"‸', {"command"}, set()),
        ('`rye_execute(item_type="tool", item_id="rye/agent/threads/thread_directive", parameters={"directive_id": "‸',
         {"team/greet_guest"}, set()),
        ('`rye_execute(item_type="tool", item_id="rye/bash")` ‸', set(), {"item_type"}),
        ("<‸", {"process", "step", "success_criteria"}, {"permissions"}),
        ("<process><step name=\"a\"></‸", {"step", "process"}, set()),
        ("Plain words ‸", set(), {"guest"}),
    ],
)  # fmt: skip
def test_in_the_instructions(team: Editor, body: str, wanted: set[str], unwanted: set[str]) -> None:
    labels = set(team.completions(NAME, xml(body=body)))
    assert wanted <= labels
    assert not unwanted & labels


@pytest.mark.parametrize(
    ("text", "label", "inserted"),
    [
        ("```xml\n<dir‸", "directive", 'directive name="${1}" version="${2}">${3}</directive>'),
        ('```xml\n<directive name="‸', "new", "new"),
        ('```xml\n<directive extends="‸', "team/base", "team/base"),
        ("```xml\n<directive>\n<inputs>\n<‸", "input", 'input name="${1}" type="${2}" required="${3}">${4}</input>'),
        ("```xml\n<directive>\n</‸", "directive", "directive>"),
        ("```xml\n<directive>\n</d‸>", "directive", "directive"),
        ("```xml\n<directive>\n<metadata><limits ‸=\"3\"", "turns", "turns"),
    ],
)  # fmt: skip
def test_inserted_texts(team: Editor, text: str, label: str, inserted: str) -> None:
    assert team.completions(NAME, text)[label]["textEdit"]["newText"] == inserted


def test_an_empty_file_gets_a_whole_directive(team: Editor) -> None:
    item = team.completions(NAME, "‸")["directive"]
    assert '<directive name="new" version="1.0.0">' in item["textEdit"]["newText"]
    assert "<category>team</category>" in item["textEdit"]["newText"]


def test_the_whole_directive_has_no_errors(team: Editor) -> None:
    from quire.lsp.wire import plain

    text = plain(team.completions(NAME, "‸")["directive"]["textEdit"]["newText"])
    team.replace(NAME, text)
    assert [one for one in team.findings(NAME) if one["severity"] == 1] == []


def test_a_completion_is_explained_when_it_is_looked_at(team: Editor) -> None:
    item = team.completions(NAME, xml("<permissions><execute><tool>‸"))["rye.bash"]
    assert item["detail"] == "elevated"
    explained = team.ask("completionItem/resolve", item)["documentation"]["value"]
    assert "starts programs" in explained
    item = team.completions(NAME, xml("<context><system>‸"))["team/voice"]
    assert "How we speak" in team.ask("completionItem/resolve", item)["documentation"]["value"]


def test_values_of_the_environment_are_not_shown(team: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-value")
    found = team.completions(NAME, xml('<model id="‸'))
    assert any(label.startswith("anthropic:") for label in found)
    assert "sk-secret-value" not in str(found)
