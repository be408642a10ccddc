"""What `check` says about a directive that can be read."""

from __future__ import annotations

import pytest
from tests.formats.directive.directives import METADATA, Around, codes_in, document

from quire.diagnostics import fix_of
from quire.formats.directive.check import check
from quire.source import Source

INPUTS = '<inputs><input name="who" /></inputs>'
WRITE = '`rye_execute(item_type="tool", item_id="rye/file-system/write")`'
SIGN = '`rye_sign(item_type="directive", item_id="a")`'
STEPS = '<process>\n<step name="a">Do it.</step>\n</process>'


def found(metadata: str = METADATA, root: str = "", body: str = "Do it.") -> list[tuple[str, int]]:
    return codes_in(document(metadata, root, body))


def only(more: str = "", root: str = "", body: str = "Do it.") -> list[str]:
    return [code for code, _ in found(METADATA + more, root, body)]


def test_nothing_to_say() -> None:
    assert found() == []


def _hook(*paths: str) -> str:
    tests = "".join(f'<any><condition path="{path}" op="exists" /></any>' for path in paths)
    return (
        f'<hooks><hook event="error">{tests}<action primary="fetch" item_type="knowledge" item_id="a" /></hook></hooks>'
    )


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ('<limits turns="many" />', ["DR020"]),
        ('<limits turns="1.5" spend="x" depth="-1" />', ["DR020", "DR020", "DR020"]),
        ("<cost><context turns='x'>y</context></cost>", ["DR020", "DR020"]),
        ('<limits turn="6" />', ["DR021"]),
        ("<limit turns='6' />", ["DR101"]),
        ("<inputs />", ["DR101"]),
        ("<tags>a</tags>", ["DR301"]),
        ("<author>you</author>", ["DR102"]),
        ("<limits>6</limits>", ["DR103"]),
        ("<limits turns='0' spawns='0' />", ["DR118"]),
        ("<limits spend='0' max_turns='0' />", ["DR118", "DR118"]),
        ("<limits spawns='0' depth='0' />", []),
        ("<context><sytem>a</sytem></context>", ["DR101"]),
        ("<cost><money>1</money></cost>", ["DR101"]),
        ("<hooks><hok /></hooks>", ["DR101"]),
        ('<hooks><hook event="error"><when /><action primary="fetch" /></hook></hooks>', ["DR101"]),
        ('<hooks><hook event="error" /></hooks>', ["DR112"]),
        ('<hooks><hook><action primary="do" /></hook></hooks>', ["DR112", "DR112"]),
        (
            '<hooks><hook event="eror" position="top"><condition path="turn" op="is" /><condition path="turn" />'
            '<action primary="fetch" item_type="knowledge" item_id="a" /></hook></hooks>',
            ["DR105", "DR105", "DR105", "DR112"],
        ),
        (
            '<hooks><hook event="error"><condition path="turn" op="regex" value="(a" />'
            '<condition path="turn" op="regex" value="a(?=b)" /><condition path="turn" op="regex" value="^a+$" />'
            '<action primary="fetch" item_type="knowledge" item_id="a" /></hook></hooks>',
            ["DR105", "DR105"],
        ),
        # seeds section 6: a path that no event has.
        (_hook("cost.nosuch", "error.kind", "nosuch", "limits.turn"), ["DR105"] * 4),
        (_hook("cost.spend", "error.type", "outputs.a.b", "inputs.x", "limit_code", "limits.turns"), []),
    ],
)
def test_metadata(metadata: str, expected: list[str]) -> None:
    assert only(metadata) == expected


@pytest.mark.parametrize(
    ("permissions", "expected"),
    [
        ("rye.bash", ["DR103"]),
        ("<execute><tool>a b</tool></execute>", ["DR103"]),
        ("<execute>all of it</execute>", ["DR103"]),
        # seeds section 6: permissions that grant nothing.
        ("<execute>rye.bash</execute>", ["DR103"]),
        ("<execute><tool></tool></execute>", ["DR103"]),
        ("<execute>tool.rye.file-system.read</execute><fetch>*</fetch>", []),
        ("<execute><tools>a</tools></execute>", ["DR104"]),
        ("<execute><tool>a<b /></tool></execute>", ["DR101"]),
        ("<load />", ["DR010"]),
        ("<acknowledge>x</acknowledge>", ["DR011"]),
        ('<acknowledge risk="elevate" /><grant />', ["DR011", "DR010"]),
    ],
)
def test_permissions(permissions: str, expected: list[str]) -> None:
    metadata = METADATA.partition("<permissions>")[0] + f"<permissions>{permissions}</permissions>"
    assert [code for code, _ in found(metadata)] == expected


@pytest.mark.parametrize(
    ("root", "body", "expected"),
    [
        (INPUTS, "Greet {input:who}.", []),
        (INPUTS, "Greet who.", []),
        (INPUTS, "Do it.", ["DR201"]),
        (INPUTS, "Greet {input:whom}.", ["DR201", "DR108"]),
        ("", "Greet {input:who?} {input:a:b} ${inputs.c}.", ["DR108"]),
        ("<outputs><success>{input:x}</success></outputs>", "Do it.", ["DR108"]),
        ("<inputs><input /><input name='a' /><input name='a' /></inputs>", "a", ["DR023", "DR023"]),
        ("<outputs><output /></outputs>", "a", ["DR023"]),
        # seeds D2: a name that {input:…} cannot hold.
        ("<inputs><input name='a-b' /><input name='ä_1' /></inputs>", "a-b {input:ä_1}", ["DR119"]),
        ("<inputs><input name='a-b' /></inputs>", "{input:a-b}", ["DR121"]),
        ("<inputs><inpt name='a' /></inputs>", "a", ["DR101"]),
        ("<inputs><input name='a' required='yes' type='intager' /></inputs>", "a", ["DR107", "DR106"]),
        ("<limits turns='6' />", "a", ["DR101"]),
        ("<steps />", "a", ["DR101"]),
        ("stray", "a", ["DR103"]),
        ("<inputs />", "", ["DR111"]),
        ("<process><step>Do it.</step></process>", "", ["DR307", "DR305"]),
    ],
)
def test_inputs_and_instructions(root: str, body: str, expected: list[str]) -> None:
    assert sorted(only("", root, body)) == sorted(expected)


def test_a_closing_message_is_blamed_where_it_stands() -> None:
    root = "<outputs>\n<success>Good.</success>\n<failure>{input:x}</failure>\n</outputs>"
    text = document(METADATA, root, "Do it.")
    (line,) = (number for number, one in enumerate(text.splitlines(), 1) if "{input:x}" in one)
    assert codes_in(text) == [("DR108", line)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (WRITE + ' `rye_fetch(query="a", scope="knowledge")`', []),
        (WRITE + ' `rye_fetch(query="{input:a?}")`', []),
        (WRITE + " Look into the knowledge.", []),
        (WRITE, ["DR302"]),
        (WRITE + ' `rye_fetch(item_type="tool", item_id="a")`', ["DR302", "DR202"]),
        ('knowledge `rye_execute(item_type="tool", item_id="rye/bash")`', ["DR302", "DR202"]),
        ('knowledge file-system `rye_execute(item_type="tool", item_id="rye/agent/threads/internal/x")`', []),
        ('knowledge <execute item_type="tool" item_id="file__write" />', []),
        ('knowledge `rye_execute(item_type="tool", item_id="directive_return")` <execute item_id="file__write" />', []),
        ('knowledge <execute item_type="tool" item_id="rye/file-system/fs_write" />', []),
        ('knowledge <execute item_type="tool" item_id="rye/web/fetch" />', ["DR302", "DR202"]),
        (f"```xml\n<directive />\n```\n{STEPS}\nsuccess_criteria", ["DR203"]),
        ("````\n```xml\n<directive />\n```\n````", []),
        (STEPS, ["DR305"]),
        (
            f"{STEPS}\n<success_criteria>\n<criterion>It is nice</criterion>\n<criterion></criterion>",
            ["DR304", "DR304"],
        ),
        (f"{STEPS}\n<success_criteria>\n<criterion>The file has 3 lines</criterion>", []),
        (f"knowledge .ai/directives/a.md {WRITE}", ["DR306"]),
        (f"knowledge .ai/directives/a.md {WRITE} {SIGN}", ["DR202"]),
        (f"knowledge .ai/directives/a.md {SIGN} {WRITE}", ["DR202", "DR306"]),
        (f"knowledge a.md {WRITE}", []),
    ],
)
def test_good_practice(body: str, expected: list[str]) -> None:
    assert sorted(only("", "", body)) == sorted(expected)


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("deploy_staging", True),
        ("render_page", True),
        ("create_directive", True),
        ("discover", True),
        ("staging", False),
        ("deployment_handler", False),
        ("validation", False),
        ("user_manager", False),
        ("_", True),
    ],
)
def test_names_begin_with_a_verb(name: str, good: bool) -> None:
    text = document(METADATA).replace('name="greet"', f'name="{name}"')
    assert [one for one in codes_in(text) if one[0] != "DR206"] == ([] if good else [("DR303", 4)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (document(), ["DR109", "DR110", "DR204"]),
        (document().replace('version="1.0.0"', 'extends="base"'), ["DR109", "DR204"]),
        (document(body=""), ["DR204"]),
        (document(METADATA).replace(' name="greet"', ""), ["DR022"]),
        ("no fence", ["DR001"]),
        ("```xml\n<directive>", ["DR002"]),
    ],
)
def test_what_is_missing(text: str, expected: list[str]) -> None:
    assert [code for code, _ in codes_in(text)] == expected


def test_everything_is_said_at_once() -> None:
    text = document('<permissions><load /><acknowledge /></permissions><limits turn="1" />', INPUTS, "{input:x}")
    assert {"DR010", "DR011", "DR021", "DR108", "DR109", "DR201"} <= {code for code, _ in codes_in(text)}


def test_findings_are_in_the_order_of_the_text() -> None:
    lines = [line for _, line in found(METADATA + '<limits turn="1" />', INPUTS, "{input:x}\n\n{input:y}")]
    assert lines == sorted(lines) and len(set(lines)) > 2


@pytest.mark.parametrize(
    ("written", "meant"),
    [("{{who}}", "{input:who}"), ("${who}", "{input:who}"), ("{input:a-b}", "{input:a_b}"), ("{{a-b}}", "{input:a_b}")],
)
def test_inputs_in_the_syntax_of_other_formats(written: str, meant: str) -> None:
    """Newcomer G2; seeds D2."""
    inputs = '<inputs><input name="who" /><input name="a-b" /></inputs>'
    text = document(METADATA, inputs, f"Greet {{input:who}} and a-b: {written}.")
    source = Source.of(text, ".ai/directives/greet.md")
    (found,) = [one for one in check(source) if one.stops]
    assert (found.code.id, text[found.span.start : found.span.end]) == ("DR121", written)
    fix = fix_of(source, found)
    assert fix is not None and fix.edits[0].new == meant
    assert [edit.new for edit in fix.edits[1:]] == (["a_b"] if "-" in written else [])


def test_braces_in_code_and_around_other_names_are_text() -> None:
    inputs = '<inputs><input name="who" /></inputs>'
    body = "Greet {input:who} ${inputs.who} {{other}} ${HOME} `{{who}}`.\n\n```sh\necho ${who}\n```"
    assert codes_in(document(METADATA, inputs, body), Around()) == []
