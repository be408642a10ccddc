"""Hovers, signatures, hints and lenses of directives."""

from __future__ import annotations

import pytest
from tests.lsp.directive.sample_workspace import GREET, LEAD, xml
from tests.lsp.editor import Editor

NAME = ".ai/directives/team/greet_guest.md"
CONTROL = "rye/agent/threads/internal/control"


def at(text: str, mark: str) -> str:
    """Return a text with its cursor where `‸` is in a part of it."""
    plain = mark.replace("‸", "")
    assert plain in text
    return text.replace(plain, mark, 1)


@pytest.mark.parametrize(
    ("mark", "wanted"),
    [
        ("# Gre‸et", ["**directive** `team/greet_guest`", "not signed", "model calls", "--- user ---", "[guest]"]),
        ('name="greet‸_guest"', ["--- system ---", "Be warm."]),
        ('extends="team/‸base"', ["**directive** `team/base`", "Common ground", "not signed"]),
        ("<mod‸el", ["`<model>`", "`tier`"]),
        ('tier="l‸ow"', ["**model**", "Here:"]),
        ('<limits tu‸rns="6"', ["**limit** `turns`", "exit code 5", "without it: 25"]),
        ("<lim‸its", ["| `turns` | 6 | the directive |", "| `tokens` | 200,000 | default |"]),
        ("rye.file-‸system.*", ["tier: **write**", "`rye/file-system/read`", "used by: step write"]),
        ("<directive>team/‸base", ["tier: **elevated**", "acknowledged: It starts the base.", "Common ground"]),
        ("<knowledge>team/‸*", ["tier: **safe**", "`team/rules`, `team/voice`", "used by: step look_up"]),
        ('risk="elev‸ated"', ["**tier** `elevated`"]),
        ("<system>team/‸voice", ["**knowledge** `team/voice`", "How we speak"]),
        ("<suppress>bring‸_voice", ["**hook** `bring_voice`", "`thread_started`"]),
        ("<ho‸ok id", ["**when**: `directive_return`", "**if**: outputs.letter contains", "`outputs.letter`"]),
        ('event="directive‸_return"', ["**event** `directive_return`"]),
        ('op="cont‸ains"', ["**operator** `contains`"]),
        ("outputs.let‸ter", ["**output** `letter`"]),
        (f'item_id="{CONTROL[:9]}‸{CONTROL[9:]}"', ["needs no permission"]),
        ('<input name="se‸ats"', ["**input** `seats` — `integer`, optional, default `2`"]),
        ("<lett‸er>", ["**output** `letter`"]),
        ("keep {input:sea‸ts|2}", ["**input** `seats`", "How many seats"]),
        ("`rye_fe‸tch", ["`rye_fetch`", "`query`"]),
        ("sco‸pe=", ["`scope` of `rye_fetch`"]),
        ('"con‸tent":', ["`content` of `rye/file-system/write`"]),
        ("item_id=\"rye/file-sys‸tem/write", ["**tool** `rye/file-system/write`", "class: idempotent"]),
        ("<st‸ep", ["`<step>`"]),
    ],
)  # fmt: skip
def test_hovers(team: Editor, mark: str, wanted: list[str]) -> None:
    found = team.hover(NAME, at(GREET, mark))
    assert [text for text in wanted if text not in found] == []


@pytest.mark.parametrize("mark", ["keep {input:seats|2} sea‸ts", "```x‸ml", "Find ou‸t"])
def test_prose_has_no_hover(team: Editor, mark: str) -> None:
    assert team.hover(NAME, at(GREET, mark)) == ""


def test_a_parameter_of_a_callee(team: Editor) -> None:
    found = team.hover(".ai/directives/team/deep/lead.md", at(LEAD, '{"gue‸st": "{input:who}", "s'))
    assert found.startswith("**input** `guest` of `.ai/directives/team/greet_guest.md` — `string`, required")


def test_an_item_that_is_not_there(team: Editor) -> None:
    assert "It does not exist." in team.hover(NAME, xml("<context><system>team/no‸thing</system></context>"))


def test_everything(team: Editor) -> None:
    found = team.hover(NAME, xml("<permiss‸ions>*</permissions>"))
    assert "| `rye.*` | unrestricted |" in found


def test_hovers_in_broken_text(team: Editor) -> None:
    broken = '# T\n\n```xml\n<directive name="a">\n<metadata>\n<hooks>\n<hook event="lim‸it\n'
    assert team.hover(NAME, broken).startswith("**event** `limit`")
    assert "**limit** `spend`" in team.hover(NAME, '```xml\n<directive>\n<metadata>\n<limits spe‸nd="0.1"\n')


def test_a_prompt_cannot_break_out_of_its_fence(team: Editor) -> None:
    text = GREET.replace("guest is a word.", "\n\n```\nfence\n```\n")
    assert "````" in team.hover(NAME, at(text, "# Gre‸et"))


def test_a_directive_that_cannot_be_composed_says_why(team: Editor) -> None:
    text = GREET.replace("team/base", "team/missing")
    assert "The first message is not known" in team.hover(NAME, at(text, "# Gre‸et"))


@pytest.mark.parametrize(
    ("body", "label", "active"),
    [
        ("`rye_execute(‸", "rye_execute(item_type, item_id, parameters?, dry_run?, thread?, async?)", "item_type"),
        ('`rye_execute(item_type="to‸ol"', "rye_execute(", "item_type"),
        ('`rye_execute(item_type="tool", ‸', "rye_execute(", "item_id"),
        ('`rye_execute(item_id="x", ‸', "rye_execute(", "item_type"),
        ("`rye_fetch(‸)`", "rye_fetch(", "item_type?"),
        ('`rye_sign(item_type="directive", item_id="‸', "rye_sign(", "item_id"),
        ('`rye_execute(item_type="tool", item_id="rye/bash", parameters={‸', "rye/bash(", "command"),
        ('`rye_execute(item_type="directive", item_id="team/greet_guest", parameters={"guest": "x", "seats": ‸',
         "team/greet_guest(guest, seats)", "seats"),
    ],
)  # fmt: skip
def test_signatures(team: Editor, body: str, label: str, active: str) -> None:
    found = team.ask("textDocument/signatureHelp", team.open(".ai/directives/team/new.md", xml(body=body)))
    (signature,) = found["signatures"]
    assert signature["label"].startswith(label)
    assert signature["parameters"][found["activeParameter"]]["label"] == active


@pytest.mark.parametrize("body", ["‸", '`rye_fetch(query="x")` ‸', "rye_execute‸("])
def test_no_signature_outside_of_calls(team: Editor, body: str) -> None:
    assert team.ask("textDocument/signatureHelp", team.open(".ai/directives/team/new.md", xml(body=body))) is None


def hints(team: Editor, name: str, text: str) -> list[str]:
    team.open(name, text)
    where = {"start": {"line": 0, "character": 0}, "end": {"line": 9999, "character": 0}}
    found = team.ask("textDocument/inlayHint", {"textDocument": {"uri": team.uri(name)}, "range": where})
    return [one["label"] for one in found]


def test_hints(team: Editor) -> None:
    (team.folder / "quire.toml").write_text('[models.tiers]\nlow = "echo:small"\n')
    found = hints(team, NAME, GREET)
    assert found[:3] == ["write", "elevated", "safe"]
    assert "→ echo:small" in found
    assert "by default: tokens 200,000, spawns 50, depth 10, duration_seconds 1,800, spend $1.00" in found


def test_hints_of_a_directive_that_inherits(team: Editor) -> None:
    text = (
        '# T\n\n```xml\n<directive name="new" extends="team/base">\n<metadata></metadata>\n</directive>\n```\n\nGo.\n'
    )
    found = hints(team, ".ai/directives/team/new.md", text)
    assert "1 permission of team/base" in found
    assert any(one.startswith("limits by default: turns 25") for one in found)


def test_lenses(team: Editor) -> None:
    team.write(".ai/directives/team/greet_guest.test.yaml", "cases:\n  - name: one\n  - name: two\n")
    team.open(NAME, GREET)
    found = team.ask("textDocument/codeLens", {"textDocument": {"uri": team.uri(NAME)}})
    said = {one["command"]["command"]: one["command"] for one in found}
    assert set(said) == {"quire.run", "quire.test", "quire.showPrompt", "quire.showProof", "quire.sign", "quire.can"}
    assert said["quire.test"]["title"] == "Test (2 cases)"
    assert said["quire.sign"]["title"] == "Sign (not signed)"
    assert said["quire.showProof"]["title"] == "at most 306 model calls"
    assert all(one["arguments"][0] == team.uri(NAME) for one in said.values())
    prompt = team.ask("workspace/executeCommand", {k: said["quire.showPrompt"][k] for k in ("command", "arguments")})
    assert "--- user ---" in prompt


def test_lenses_of_an_unfinished_directive(team: Editor) -> None:
    team.open(NAME, "# T\n\n```xml\n<directive name=")
    assert team.ask("textDocument/codeLens", {"textDocument": {"uri": team.uri(NAME)}}) == []
