"""Changes that are offered in directives, and formatting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.formats.trees import without_spans
from tests.lsp.directive.sample_workspace import FILES, GREET, xml
from tests.lsp.editor import Editor, apply, position

from quire.formats.directive.parse import parse
from quire.source import Source

NAME = ".ai/directives/team/new.md"
ROOT = Path(__file__).parents[3]
SHARED = Path(__file__).parents[4] / "shared" / "conformance" / "corpus" / "directive"
DOCUMENTS = [*sorted(ROOT.glob("examples/*/.ai/directives/**/*.md")), *sorted(SHARED.glob("*--*.md"))]
UNTIDY = """\
# T

```xml
   <directive   name = "a"  version='1.0.0'>
<metadata>
      <description>  Two
   lines </description>
<model tier="low"/>
  <!-- a comment -->
 <permissions>
<execute><tool>ask</tool></execute>
        </permissions>
</metadata>
   <process>
 <step  name="x" >
  Do.</step>
</process>
</directive>
```

   Prose   stays.
"""
TIDY = """\
# T

```xml
<directive name="a" version='1.0.0'>
  <metadata>
    <description>  Two
   lines </description>
    <model tier="low" />
    <!-- a comment -->
    <permissions>
      <execute><tool>ask</tool></execute>
    </permissions>
  </metadata>
  <process>
 <step  name="x" >
  Do.</step>
</process>
</directive>
```

   Prose   stays.
"""
ASKING = '`rye_execute(item_type="tool", item_id="ask")` {input:guest}'
ODD_HOOK = """\
<hooks>
      <hook id="a" event="error">
        <condition path="x" op="i‸s" />
      </hook>
    </hooks>"""
PERMISSIONS = "<permissions>\n      <execute>\n        <tool>{}</tool>\n      </execute>\n    </permissions>"


def actions(team: Editor, name: str, text: str) -> dict[str, dict[str, Any]]:
    """Return the actions at the cursor by their titles, after the document was checked."""
    place = team.open(name, text)
    team.pause()
    where = {"start": place["position"], "end": place["position"]}
    params = {"textDocument": place["textDocument"], "range": where, "context": {"diagnostics": []}}
    return {one["title"]: one for one in team.ask("textDocument/codeAction", params)}


def chosen(team: Editor, text: str, title: str) -> str:
    """Return the text after the action of a title."""
    found = actions(team, NAME, text)
    assert title in found, list(found)
    return team.edited(found[title]["edit"])[NAME]


def test_a_missing_grant_is_added(team: Editor) -> None:
    body = '`rye_exec‸ute(item_type="directive", item_id="team/base")`'
    new = chosen(team, xml(PERMISSIONS.format("ask"), body), "Grant <directive>team/base</directive> in <execute>")
    assert "        <tool>ask</tool>\n        <directive>team/base</directive>\n      </execute>" in new
    team.replace(NAME, new)
    assert "DR202" not in team.codes(NAME)


def test_a_grant_gets_its_element(team: Editor) -> None:
    body = '`rye_fet‸ch(item_type="knowledge", item_id="team/voice")`'
    new = chosen(team, xml(PERMISSIONS.format("ask"), body), "Grant <knowledge>team/voice</knowledge> in <fetch>")
    assert "      <fetch>\n        <knowledge>team/voice</knowledge>\n      </fetch>\n    </permissions>" in new


def test_a_grant_goes_into_an_empty_block(team: Editor) -> None:
    body = '`rye_exec‸ute(item_type="tool", item_id="rye/bash", parameters={})`'
    new = chosen(team, xml("<permissions />", body), "Grant <tool>rye.bash</tool> in <execute>")
    assert "<permissions>\n      <execute>\n        <tool>rye.bash</tool>\n      </execute>\n    </permissions>" in new


def test_a_wildcard_is_narrowed_to_the_calls(team: Editor) -> None:
    body = (
        '`rye_execute(item_type="tool", item_id="rye/file-system/read")` '
        '`rye_execute(item_type="tool", item_id="rye/file-system/fs_write")`'
    )
    text = xml(PERMISSIONS.format("rye.‸*"), body)
    found = actions(team, NAME, text)
    (title,) = [one for one in found if one.startswith("Narrow")]
    new = team.edited(found[title]["edit"])[NAME]
    assert "<tool>rye.file-system.read</tool>\n        <tool>rye.file-system.write</tool>\n" in new
    assert "rye.*" not in new


def test_a_wildcard_is_kept_where_a_call_is_open(team: Editor) -> None:
    text = xml(PERMISSIONS.format("rye.‸*"), '`rye_execute(item_type="tool", item_id="{input:guest}")`')
    assert not [one for one in actions(team, NAME, text) if one.startswith("Narrow")]


def test_a_risk_is_acknowledged(team: Editor) -> None:
    new = chosen(team, xml(PERMISSIONS.format("rye.ba‸sh")), "Acknowledge that it is elevated")
    assert '      <acknowledge risk="elevated">say why</acknowledge>\n    </permissions>' in new
    assert "Acknowledge that it is elevated" not in actions(team, NAME, new.replace("rye.bash", "rye.ba‸sh"))


def test_everything_is_acknowledged(team: Editor) -> None:
    found = actions(team, NAME, xml("<permissions>‸*</permissions>"))
    action = found["Acknowledge that it is unrestricted"]
    assert [one["code"] for one in action["diagnostics"]] == ["DR117"]
    team.replace(NAME, team.edited(action["edit"])[NAME])
    assert "DR117" not in team.codes(NAME)


def test_an_input_is_declared(team: Editor) -> None:
    new = chosen(team, xml(body="Ask {input:fri‸end}."), "Declare the input friend")
    assert '    <input name="friend" type="string" required="true"></input>\n  </inputs>' in new
    team.replace(NAME, new)
    assert "DR108" not in team.codes(NAME)


def test_missing_fields_are_added(team: Editor) -> None:
    new = chosen(team, xml().replace("<directive name", "<dir‸ective name"), "Add the fields that signing requires")
    assert "<category>team</category>" in new
    team.replace(NAME, new)
    assert "DR204" not in team.codes(NAME)


@pytest.mark.parametrize(
    ("version", "metadata"),
    [
        ("", ""),
        (' version=""', "<author></author>"),
        ("", "<description>x</description><category>team</category><author>a</author>"),
    ],
)
def test_a_missing_version_is_added(team: Editor, version: str, metadata: str) -> None:
    text = f"""\
# New

```xml
<dir‸ective name="new"{version}>
  <metadata>{metadata}
    <model tier="low" />
  </metadata>
</directive>
```

Do it.
"""
    new = chosen(team, text, "Add the fields that signing requires")
    assert '<directive name="new" version="1.0.0">' in new
    team.replace(NAME, new)
    assert not {"DR204"} & set(team.codes(NAME)), new
    assert not [one for one in team.findings(NAME) if one["severity"] == 1], new


def test_the_name_follows_the_file(team: Editor) -> None:
    new = chosen(team, xml().replace('name="new"', 'name="o‸ld"'), "Write new, as the place of the file is")
    assert '<directive name="new"' in new


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (xml(rest="").replace('<input name="guest"', '<inp‸ut name="guest"'), "DR201"),
        (xml(body="<proc‸ess>\n</process>"), "DR305"),
        (xml(PERMISSIONS.format("rye.web.fe‸tch"), ASKING), "DR302"),
        (xml(body="{input:gue‸sts}"), "DR108"),
        (xml(ODD_HOOK), "DR105"),
    ],
)  # fmt: skip
def test_a_finding_is_allowed(team: Editor, text: str, code: str) -> None:
    found = actions(team, NAME, text)
    before = team.codes(NAME)
    assert code in before
    new = team.edited(found[f"Allow {code} because …"]["edit"])[NAME]
    team.replace(NAME, new)
    after = team.codes(NAME)
    assert code not in after
    assert not [one for one in after if one.startswith("AL")]


def test_errors_cannot_be_allowed(team: Editor) -> None:
    assert not [one for one in actions(team, NAME, xml('<limits turns="m‸any" />')) if one.startswith("Allow DR02")]


def test_a_test_is_written(team: Editor) -> None:
    team.pause()
    found = actions(team, ".ai/directives/team/greet_guest.md", GREET.replace("# Greet", "# Gr‸eet"))
    edit = team.chosen(found["Write a test for this directive"])
    texts = team.edited(edit)
    text = texts[".ai/directives/team/greet_guest.test.yaml"]
    team.write(".ai/directives/team/greet_guest.test.yaml", text)
    team.open(".ai/directives/team/greet_guest.test.yaml", text)
    assert [one for one in team.findings(".ai/directives/team/greet_guest.test.yaml") if one["severity"] == 1] == []
    again = actions(team, ".ai/directives/team/greet_guest.md", GREET.replace("# Greet", "# Gr‸eet"))
    assert "Write a test for this directive" not in again


def formatted(team: Editor, text: str, name: str = NAME) -> str:
    team.open(name, text)
    edits = team.ask("textDocument/formatting", {"textDocument": {"uri": team.uri(name)}, "options": {}})
    return apply(team.texts[name], edits)


def test_indentation_and_attributes(team: Editor) -> None:
    assert formatted(team, UNTIDY) == TIDY


def messy(text: str) -> str:
    """Return a directive whose tags are indented at random."""
    start = text.index("```xml") + 7
    end = text.index("\n```", start)
    lines = [
        " " * (number * 7 % 5) + line.lstrip() if line.lstrip().startswith("<") else line
        for number, line in enumerate(text[start:end].split("\n"))
    ]
    return text[:start] + "\n".join(lines) + text[end:]


@pytest.mark.parametrize("path", [*DOCUMENTS, None], ids=lambda path: path.stem if path else "sample")
def test_the_tree_stays_the_same(team: Editor, path: Path | None) -> None:
    text = path.read_text(encoding="utf-8") if path else GREET
    if "```xml" not in text:
        pytest.skip("it has no fence")
    for one in (text, messy(text)):
        new = formatted(team, one)
        assert formatted(team, new) == new
        before, after = parse(Source.of(one)).partial, parse(Source.of(new)).partial
        assert without_spans(before) == without_spans(after)
        assert [part.raw for part in before.sections] == [part.raw for part in after.sections]
        assert [part.raw for part in before.extras] == [part.raw for part in after.extras]
        assert before.body == after.body


def test_the_samples_are_formatted(team: Editor) -> None:
    for name, text in FILES.items():
        assert formatted(team, text, name) == text


def test_broken_xml_is_left_alone(team: Editor) -> None:
    text = xml("   <permissions>")
    assert formatted(team, text) == text


def test_a_part_is_formatted(team: Editor) -> None:
    text = GREET.replace("    <limits", "<limits").replace("    <author", "<author")
    team.open(NAME, text)
    at = position(text, text.index("<limits"))
    params = {"textDocument": {"uri": team.uri(NAME)}, "range": {"start": at, "end": at}, "options": {}}
    assert apply(text, team.ask("textDocument/rangeFormatting", params)) == GREET.replace("    <author", "<author")
