"""What is read from a directive, and what is said about what cannot be."""

from __future__ import annotations

import pytest
from tests.formats.directive.directives import document, read

from quire.diagnostics import Severity
from quire.formats.directive.parse import parse
from quire.formats.directive.write import directive_tree, fields
from quire.source import Source
from quire.values import Value

ACTION = '<action primary="execute" item_type="directive" item_id="warn" />'


def field(name: str, metadata: str = "", root: str = "") -> Value:
    reading = read(metadata, root)
    assert reading.directive is not None, reading.diagnostics
    return fields(reading).get(name)


@pytest.mark.parametrize(
    ("permissions", "capabilities"),
    [
        ("<execute><tool>rye/bash</tool></execute>", ["rye.execute.tool.rye.bash"]),
        ("*", ["rye.*"]),
        ('*<acknowledge risk="unrestricted">Yes.</acknowledge>', ["rye.*"]),
        ('<acknowledge risk="unrestricted">Yes.</acknowledge>\n*\n', ["rye.*"]),
        ("<execute>*</execute><fetch>*</fetch>", ["rye.execute.*", "rye.fetch.*"]),
        ("<execute>tool.rye.bash</execute>", ["rye.execute.tool.rye.bash"]),
        ("<execute>*<tool>a</tool></execute>", ["rye.execute.*", "rye.execute.tool.a"]),
        (
            "<sign><directive>*</directive></sign><fetch><tool> a/b </tool></fetch>",
            ["rye.sign.directive.*", "rye.fetch.tool.a.b"],
        ),
        ("<execute><tool><!-- none --></tool></execute>", []),
        ("<execute><tool>a<!-- x -- y -->b</tool></execute>", ["rye.execute.tool.ab"]),
        ("<execute><widget>a</widget></execute>", ["rye.execute.widget.a"]),
        ("", []),
    ],
)
def test_permissions(permissions: str, capabilities: list[str]) -> None:
    assert field("capabilities", f"<permissions>{permissions}</permissions>") == capabilities


def test_a_grant_knows_its_place() -> None:
    text = document("<permissions><execute>\n  <tool> rye.bash </tool></execute></permissions>")
    directive = parse(Source.of(text)).directive
    assert directive is not None and directive.permissions is not None
    (grant,) = directive.permissions.grants
    assert text[grant.span.start : grant.span.end] == "rye.bash"
    assert directive.permissions.raw.startswith("<permissions>") and directive.permissions.raw.endswith(
        "</permissions>"
    )


@pytest.mark.parametrize(
    ("tests", "condition"),
    [
        ('<condition path="a.b" op="gte" value="0.9" />', {"path": "a.b", "op": "gte", "value": 0.9}),
        ('<condition path="a" op="eq" value="TRUE" />', {"path": "a", "op": "eq", "value": True}),
        ('<condition path="a" op="eq" value="12" />', {"path": "a", "op": "eq", "value": 12}),
        ('<condition path="a" op="eq">some text</condition>', {"path": "a", "op": "eq", "value": "some text"}),
        ('<condition path="a" op="eq" value="nan" />', {"path": "a", "op": "eq", "value": "nan"}),
        ('<condition path="a" op="exists" />', {"path": "a", "op": "exists"}),
        ('<condition path="a" op="in" value="[1, &quot;b&quot;]" />', {"path": "a", "op": "in", "value": [1, "b"]}),
        (
            '<any><condition path="a" op="exists" /><not><condition path="b" op="eq" value="1" /></not></any>',
            {"any": [{"path": "a", "op": "exists"}, {"not": {"path": "b", "op": "eq", "value": 1}}]},
        ),
        (
            '<condition path="a" op="exists" /><condition path="b" op="exists" />',
            {"all": [{"path": "a", "op": "exists"}, {"path": "b", "op": "exists"}]},
        ),
        (
            '<condition><all><condition path="a" op="exists" /></all></condition>',
            {"all": [{"path": "a", "op": "exists"}]},
        ),
        ("", None),
    ],
)
def test_conditions_of_hooks(tests: str, condition: Value) -> None:
    hooks = field("hooks", f'<hooks><hook id="h" event="error">{tests}{ACTION}</hook></hooks>')
    expected: dict[str, Value] = {"id": "h", "event": "error"}
    expected |= {} if condition is None else {"condition": condition}
    expected["action"] = {"primary": "execute", "item_type": "directive", "item_id": "warn"}
    assert hooks == [expected]


def test_several_actions_of_a_hook() -> None:
    inner = (
        '<fetch item_type="knowledge" item_id="k" />'
        '<execute item_type="tool" item_id="t"><param name="a">1</param></execute>'
    )
    (hook,) = read(f'<hooks><hook id="h" event="error"><action>{inner}</action></hook></hooks>').partial.hooks
    assert [(one.primary, one.attribute("item_id"), one.parameters) for one in hook.actions] == [
        ("fetch", "k", ()),
        ("execute", "t", (("a", "1"),)),
    ]


@pytest.mark.parametrize("context", ["<context></context>", "<context><system> </system></context>"])
def test_a_context_that_names_nothing_is_no_field(context: str) -> None:
    assert field("context", context) is None


def test_cost() -> None:
    cost = (
        '<cost><context estimated_usage="high" turns="20" spawn_threshold="5">\n 100000\n</context>'
        '<duration>900</duration><spend currency="USD">30.00</spend></cost>'
    )
    assert field("cost", cost) == {
        "context": {"estimated_usage": "high", "turns": 20, "spawn_threshold": 5, "max_tokens": 100000},
        "duration": 900,
        "spend": {"currency": "USD", "amount": 30.0},
    }


def test_actions_inside_the_fence() -> None:
    process = (
        '<process><step><fetch scope="directive" query="q" />'
        '<execute item_id="t"><param name="a" value="b" /></execute></step></process>'
    )
    assert field("actions", root=process) == [
        {"primary": "fetch", "scope": "directive", "query": "q"},
        {"primary": "execute", "item_id": "t", "params": {"a": "b"}},
    ]


def test_outputs_in_all_forms() -> None:
    closing = "<success>Yes</success><failure>No</failure>"
    outputs = f'<outputs><output name="a" required="true" /><score>0 to 9</score>{closing}</outputs>'
    directive = read(root=outputs).partial
    assert [(one.name, one.required, one.description) for one in directive.outputs] == [
        ("a", True, ""),
        ("score", False, "0 to 9"),
    ]
    assert (directive.success, directive.failure) == ("Yes", "No")


def test_references_are_resolved_in_texts_and_in_attributes() -> None:
    metadata = '<description>a &amp; b &lt; &#38;</description><model id="a &amp; b &#38;amp; &lt;" />'
    assert field("description", metadata) == "a & b < &"
    assert field("model", metadata) == {"id": "a & b &amp; <"}


def test_the_description_of_metadata_wins() -> None:
    assert field("description", "<description>inner</description>", "<description>outer</description>") == "inner"
    assert field("description", "", "<description>outer</description>") == "outer"


def test_what_is_opaque_may_hold_anything() -> None:
    root = "<template>a & b < c <!DOCTYPE x> </directive></template><process>\n<step>ok</step>\n</process>"
    directive = read(root=root).directive
    assert directive is not None
    assert [one.tag for one in directive.sections] == ["template", "process"]
    assert directive.sections[0].raw == "<template>a & b < c <!DOCTYPE x> </directive></template>"


def test_comments_and_instructions_are_harmless() -> None:
    text = (
        '```xml\n<?xml version="1.0" encoding="latin-1"?>\n<!-- <directive name="x"> -- -->\n'
        '<directive rename="b" name="ä" version="1.0.0"><?php x ?></directive>\n```\n'
    )
    reading = parse(Source.of(text))
    assert reading.directive is not None and reading.directive.name is not None
    assert reading.directive.name.text == "ä"


def test_the_signature_is_in_no_text() -> None:
    line = "<!-- rye:signed:2026-02-10T02:00:00Z:placeholder:unsigned:unsigned -->"
    reading = parse(Source.of(f"{line}\n\n{document()}"))
    assert (reading.partial.signature, reading.partial.preamble, reading.partial.body) == (line, "# T", "Do it.")
    assert fields(reading)["preamble"] == f"{line}\n\n# T"
    assert parse(Source.of(f"\n{line}\n{document()}")).partial.signature == ""


def test_the_rest_is_read_although_one_thing_is_wrong() -> None:
    text = document("<description>Greet</description><limits turns='6' /><permissions><load /></permissions>")
    reading = parse(Source.of(text))
    assert reading.directive is None
    assert fields(reading)["limits"] == {"turns": 6} and fields(reading)["description"] == "Greet"


def test_what_stands_before_a_mistake_is_read() -> None:
    reading = read("<description>Greet</description>\n<author>a & b</author>")
    assert [found.code.id for found in reading.of(Severity.ERROR)] == ["DR003"]
    assert fields(reading)["name"] == "greet" and fields(reading)["description"] == "Greet"


def test_the_tree_that_is_printed() -> None:
    tree = directive_tree(Source.of(document("<permissions><load /></permissions>")))
    assert tree["valid"] is False
    assert tree["errors"] == [
        {"code": "DR010", "message": "<load> is not known inside <permissions>", "line": 6, "column": 14}
    ]
