"""What XML cannot be read, where that is said to be, and how quickly."""

from __future__ import annotations

import gc

import pytest
from tests.formats.directive.directives import document
from tests.growth import within

from quire.formats.directive.check import check
from quire.formats.directive.parse import parse
from quire.source import Source

BOMB = '<!DOCTYPE d [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>\n<directive name="d" version="1.0.0">&b;</directive>'


@pytest.mark.parametrize(
    ("xml", "code", "place", "words"),
    [
        ("<directive>\n<a>x & y</a>\n</directive>", "DR003", (4, 6), "&"),
        ("<directive>\n<a>äö & y</a>\n</directive>", "DR003", (4, 7), "&"),
        ("<directive>\n<a>&nbsp;</a>\n</directive>", "DR003", (4, 4), "&nbsp;"),
        ("<directive>\n<a>1 < 2</a>\n</directive>", "DR003", (4, 6), "<"),
        ("<directive>\n<a>\n</directive>", "DR003", (5, 1), "<a> of line 4"),
        ("<directive>\n<a></b></directive>", "DR003", (4, 4), "</b>"),
        ("<directive>\n<a>", "DR003", (4, 4), "<a> of line 4"),
        ('<directive>\n<a b="1" b="2"/>\n</directive>', "DR003", (4, 1), "twice"),
        ("<directive>\n<a b=1/>\n</directive>", "DR003", (4, 6), "attribute"),
        ('<directive>\n<a b="<"/>\n</directive>', "DR003", (4, 7), "attribute"),
        ("<directive/>\n<directive/>", "DR003", (4, 1), "after the root"),
        ("", "DR003", (3, 1), "no element"),
        ("text", "DR003", (3, 1), "no element"),
        ("<directive", "DR003", (3, 1), "tag"),
        (BOMB, "DR004", (3, 1), "DOCTYPE"),
        ("<directive/><!doctype x>", "DR004", (3, 13), "DOCTYPE"),
        ("<agent/>", "DR005", (3, 1), "<agent>"),
        ("<Directive/>", "DR005", (3, 1), "<Directive>"),
        ("<directive>\x00</directive>", "DR008", (3, 12), "U+0000"),
        ("<directive>\ud800</directive>", "DR008", (3, 12), "U+D800"),
        ("<x:directive/>", "DR009", (3, 1), "x:directive"),
        ('<directive xmlns="u"/>', "DR009", (3, 1), "namespaces"),
        ('<directive><metadata x:name="a"/></directive>', "DR009", (3, 12), "x:name"),
        (f"<directive>{'<a>' * 64}{'</a>' * 64}</directive>", "DR007", (3, 201), "deeper"),
    ],
)
def test_what_is_wrong_and_where(xml: str, code: str, place: tuple[int, int], words: str) -> None:
    source = Source.of(f"# T\n```xml\n{xml}\n```\n")
    reading = parse(source)
    (found,) = [one for one in reading.diagnostics if one.code.id.startswith("DR0")]
    at = source.position(found.span.start)
    assert (found.code.id, (at.line, at.column)) == (code, place)
    assert words in found.message and "xml" in found.message.lower()
    assert reading.directive is None and "\n" not in found.message


@pytest.mark.parametrize("reference", ["&foo;", "&foo"])
def test_a_reference_is_shown_without_what_follows(reference: str) -> None:
    reading = parse(Source.of(f"# T\n```xml\n<directive><a>{reference}</a></directive>\n```\n"))
    (found,) = [one for one in reading.diagnostics if one.code.id == "DR003"]
    assert found.message == f"the XML holds the unknown reference {reference}"


@pytest.mark.parametrize(
    "text",
    [
        "no fence",
        "```xml\n<directive/>",
        "````\n```xml\n<directive/>\n```",
        "```XML\n<directive/>\n```",
    ],
)
def test_without_a_fence(text: str) -> None:
    (found,) = parse(Source.of(text)).diagnostics
    assert found.code.id in ("DR001", "DR002") and "xml fence" in found.message and found.help


def hostile() -> dict[str, str]:
    """Texts of some 200 kB, each of which a careless reader takes minutes for."""
    n = 190_000
    xml = {
        "deep": "<a>" * 30_000,
        "wide": "<a/>" * 24_000,
        "attributes": "<limits " + " ".join(f'a{at}="x"' for at in range(9_000)) + " />",
        "root attributes": "",
        "comments": "<!--" * 24_000,
        "cdata": "<![CDATA[" * 10_000,
        "templates": "<template>" * 9_000,
        "closed templates": "<template></template>" * 4_500,
        "quotes": "<a b='" * 15_000,
        "references": "&a" * 45_000,
        "less": "<" * 95_000,
        "instructions": "<?a " * 24_000,
        "permissions": f"<metadata><permissions>{'<execute>a</execute>' * 4_500}</permissions></metadata>",
        "grants": f"<metadata><permissions><execute>{'<tool>a*b*c</tool>' * 4_500}</execute></permissions></metadata>",
        "hooks": f"<metadata><hooks>{'<hook><action><fetch/><x/></action></hook>' * 2_000}</hooks></metadata>",
        "one hook": f"<metadata><hooks><hook><action>{'<fetch/><x/>' * 7_000}</action></hook></hooks></metadata>",
        "inputs": "<inputs>" + "".join(f"<input name='n{at}'/>" for at in range(4_500)) + "</inputs>",
        "metadata": f"<metadata>{'<descriptio/>' * 7_000}</metadata>",
    }
    found = {name: f'```xml\n<directive name="d">\n{text}\n</directive>\n```\n' for name, text in xml.items()}
    attributes = " ".join(f"a{at}='x'" for at in range(9_000))
    found["root attributes"] = f"```xml\n<directive {attributes} />\n```\n"
    found["fences"] = "```\n" * (n // 4)
    found["unclosed fences"] = "````x\n" * (n // 6)
    found["backticks"] = "`" * n
    found["references in the body"] = document(body="{input:a:" * (n // 9))
    found["unknown inputs"] = document(
        root="<inputs>" + "".join(f'<input name="n{at}"/>' for at in range(150)) + "</inputs>",
        body="".join(f"{{input:m{at}}}" for at in range(10_000)),
    )
    found["calls"] = document(
        metadata=f"<permissions><execute>{'<tool>a</tool>' * 150}</execute></permissions>",
        body='rye_execute(item_id="x")\n' * 7_000,
    )
    found["open calls"] = document(body="rye_execute(" * (n // 12))
    found["criteria"] = document(body="<criterion>" * (n // 11))
    found["signature"] = "<!-- rye:signed:" * (n // 16)
    return found


@pytest.mark.parametrize("name", sorted(hostile()))
def test_hostile_texts_take_no_time(name: str) -> None:
    source = Source.of(hostile()[name])
    parse(Source.of(document()))
    gc.disable()
    with within(1.5):
        try:
            check(source)
        finally:
            gc.enable()


@pytest.mark.parametrize("size", [150_000, 50_000_000])
def test_what_is_too_large_is_refused_at_once(size: int) -> None:
    source = Source.of(f"```xml\n<directive name='d'>{'x' * size}</directive>\n```\n")
    with within(0.5):
        found = check(source)
    assert [one.code.id for one in found] == ["DR006"]
