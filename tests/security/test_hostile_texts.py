"""Texts that are made to hurt whoever reads them: bombs, depth, size, letters that are none. Refused, and at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.growth import within
from tests.security.stage import Stage, directive, knowledge

from quire.errors import QuireError
from quire.formats import check
from quire.formats.directive.knowledge import read_knowledge
from quire.formats.directive.parse import parse
from quire.source import Source

MOST = 2.0
"""Seconds of this process that one text may take, whatever else the machine does; most take a small part of it."""


@contextmanager
def quickly(most: float = MOST) -> Iterator[None]:
    with within(most):
        yield


def fenced(xml: str) -> str:
    return f"# x\n\n```xml\n{xml}\n```\n\nDo it.\n"


def inside(xml: str) -> str:
    return fenced(f'<directive name="x" version="1.0.0"><metadata>{xml}</metadata></directive>')


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
XML: dict[str, Callable[[], str]] = {
    "laughs": lambda: fenced(f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]><directive name="&l9;" version="1.0.0"/>'),
    "a file": lambda: fenced(
        '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><directive name="x" version="1">&f;</directive>'
    ),
    "an address": lambda: fenced('<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd"><directive name="x" version="1.0.0"/>'),
    "a parameter entity": lambda: fenced(
        '<!DOCTYPE x [<!ENTITY % p SYSTEM "http://127.0.0.1:9/">%p;]><directive name="x" version="1.0.0"/>'
    ),
    "a doctype behind a comment": lambda: fenced('<!-- x --><!DOCTYPE x><directive name="x" version="1.0.0"/>'),
    "a doctype in lower case": lambda: fenced('<!doctype x><directive name="x" version="1.0.0"/>'),
    "an unknown entity": lambda: inside("<description>&evil;</description>"),
    "another encoding": lambda: fenced('<?xml version="1.0" encoding="UTF-7"?>+ADw-directive+AD4-'),
    "an include": lambda: inside('<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="/etc/passwd"/>'),
    "a namespace": lambda: inside('<description xmlns="x">d</description>'),
    "50 MB in the fence": lambda: inside("<description>" + "x" * 50_000_000 + "</description>"),
    "50 MB after the fence": lambda: directive("x") + "x" * 50_000_000,
    "50 MB of lines": lambda: directive("x") + "```xml\n" * 7_000_000,
    "a large fence": lambda: inside("<description>" + "x" * 150_000 + "</description>"),
    "depth": lambda: inside("<a>" * 20_000 + "</a>" * 20_000),
    "depth left open": lambda: inside("<a>" * 30_000),
    "a huge attribute": lambda: inside(f'<model tier="{"x" * 180_000}"/>'),
    "many attributes": lambda: inside("<model " + " ".join(f'a{n}="1"' for n in range(15_000)) + "/>"),
    "the same attribute twice": lambda: inside('<limits turns="1" turns="999"/>'),
    "a NUL": lambda: inside("<description>a\0b</description>"),
    "a surrogate": lambda: inside("<description>a\ud800b</description>"),
    "control letters": lambda: inside("<description>a\x1bb</description>"),
    "a reference to NUL": lambda: inside("<description>&#0;</description>"),
    "a reference to a surrogate": lambda: inside("<description>&#xD800;</description>"),
    "comments left open": lambda: inside("<!--" * 40_000),
    "templates left open": lambda: inside("<template>" * 19_000),
    "quotes left open": lambda: inside('<a b="' * 30_000),
    "fences": lambda: "```x\n" * 39_000,
    "tildes": lambda: "~" * 190_000,
    "nothing but openings": lambda: fenced("<" * 90_000),
}


@pytest.mark.parametrize("name", XML)
def test_no_xml_is_read_that_should_not_be(name: str) -> None:
    text = XML[name]()
    source = Source.of(text, ".ai/directives/x.md")
    with quickly():
        reading = parse(source)
        assert reading.directive is None, [one.message for one in reading.diagnostics]
        check(source)
    assert "root:" not in str([one.message for one in reading.diagnostics])


@pytest.mark.parametrize("name", ["laughs", "a file", "50 MB in the fence", "depth", "a NUL"])
async def test_nor_does_it_start(stage: Stage, name: str) -> None:
    stage.write(".ai/directives/x.md", XML[name]())
    before = stage.print()
    with quickly(), pytest.raises(QuireError):
        await stage.play("x")
    assert stage.print() == before


@pytest.mark.parametrize("name", ["laughs", "50 MB in the fence", "depth"])
async def test_nor_is_it_signed_or_fetched_by_a_run(stage: Stage, name: str) -> None:
    stage.directive("main", "<fetch>*</fetch><sign>*</sign>")
    stage.write(".ai/directives/x.md", XML[name]())
    calls = [
        ("rye_sign", {"item_type": "directive", "item_id": "x"}),
        ("rye_sign", {"item_type": "directive", "item_id": "x*"}),
        ("rye_fetch", {"item_type": "directive", "item_id": "x"}),
        ("rye_fetch", {"query": "x", "scope": "directive"}),
    ]
    before = stage.print()
    with quickly(1.5):
        played = await stage.play("main", calls)  # type: ignore[arg-type]
    assert all('"status":"signed"' not in one and '"signed":["x"' not in one for one in played.told), played.told
    assert stage.print() == before


@pytest.mark.parametrize(
    "permissions",
    [
        "<execute><tool>x" + "*" * 50_000 + "</tool></execute>",
        "<execute>" + "<tool>a*b*c*d*e*f</tool>" * 3_000 + "</execute>",
        "<execute><tool>" + "a.*" * 20_000 + "z</tool></execute>",
    ],
)
async def test_many_and_long_grants_take_no_time(stage: Stage, permissions: str) -> None:
    stage.directive("x", permissions + "<acknowledge risk='elevated'>x</acknowledge>")
    with quickly(1.5):
        played = await stage.play("x", [("rye_bash", {"command": "id"}), ("a" * 20_000, {})])
    assert all(played.kinds)


def yaml(text: str) -> str:
    return f"```yaml\nname: k\ntitle: t\nversion: 1.0.0\nentry_type: note\n{text}\n```\n\nBody.\n"


BOMBS: dict[str, Callable[[], str]] = {
    "laughs": lambda: yaml("a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 12))),
    "a circle": lambda: yaml("a: &a [*a]"),
    "a long text again and again": lambda: yaml(f"a: &a {'x' * 50_000}\nb: [{'*a, ' * 20_000}]"),
    "merging again and again": lambda: yaml(
        "m0: &m0 {x: 1}\n" + "".join(f"m{n}: &m{n} {{<<: *m{n - 1}, k{n}: 1}}\n" for n in range(1, 5_000))
    ),
    "merging itself": lambda: yaml("a: &a {b: 1, <<: *a}"),
    "an object": lambda: yaml("a: !!python/object/apply:os.system ['touch pwned']"),
    "a name": lambda: yaml("a: !!python/name:os.system"),
    "a duplicate": lambda: yaml("name: other"),
    "depth": lambda: yaml("a: " + "[" * 50_000),
    "depth of maps": lambda: yaml("a: " + "{a: " * 30_000),
    "indentation": lambda: yaml("".join(" " * n + "a:\n" for n in range(600))),
    "50 MB": lambda: knowledge("k", "x" * 50_000_000),
    "50 MB of metadata": lambda: yaml("a: " + "x" * 50_000_000),
    "a NUL": lambda: yaml('a: "\0"'),
    "quotes left open": lambda: yaml('a: "' + "x" * 100_000),
    "front matter": lambda: "---\nname: k\n---\nBody.\n",
    "not closed": lambda: "```yaml\nname: k\n",
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_yaml_is_read_that_should_not_be(name: str) -> None:
    text = BOMBS[name]()
    with quickly():
        assert read_knowledge(Source.of(text, "k.md")).errors


@pytest.mark.parametrize("name", ["laughs", "an object", "50 MB", "depth"])
async def test_nor_does_a_thread_start_with_it(stage: Stage, name: str) -> None:
    text = BOMBS[name]()
    stage.directive("main", meta="<context><before>k</before></context>")
    if len(text) < 1_000_000:
        stage.sign(".ai/knowledge/k.md", text)
    else:
        stage.write(".ai/knowledge/k.md", text)
    with quickly(), pytest.raises(QuireError):
        await stage.play("main")
    assert not (stage.work / "pwned").exists()
