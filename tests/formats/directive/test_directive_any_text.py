"""Whatever the text: reading never raises, and every finding has a place in it."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.formats.trees import without_spans

from quire.formats.directive.check import check
from quire.formats.directive.lower import lower
from quire.formats.directive.parse import parse
from quire.formats.directive.write import directive_tree, write
from quire.source import Source
from quire.values import clean

NAMES = [
    *("directive", "metadata", "description", "model", "limits", "cost", "context", "permissions", "execute", "fetch"),
    *("sign", "acknowledge", "tool", "knowledge", "hooks", "hook", "condition", "any", "all", "not", "action", "param"),
    *("inputs", "input", "outputs", "output", "process", "step", "template", "raw", "x", "system"),
]
ATTRIBUTES = [
    "",
    ' name="a"',
    " event='error'",
    ' path="p" op="eq" value="1"',
    ' risk="write"',
    ' turns="6"',
    " a",
    ' b="<"',
]
PIECES = [
    "*",
    "text",
    " ",
    "\n",
    "&amp;",
    "&",
    "<",
    "<!-- c -->",
    "<!--",
    "<![CDATA[x]]>",
    "<?p?>",
    "```",
    "\x00",
    "ä",
    "\ud800",
]

tags = st.builds("<{}{}>".format, st.sampled_from(NAMES), st.sampled_from(ATTRIBUTES))
closing = st.builds("</{}>".format, st.sampled_from(NAMES))
empty = st.builds("<{}{} />".format, st.sampled_from(NAMES), st.sampled_from(ATTRIBUTES))
soup = st.lists(st.one_of(tags, closing, empty, st.sampled_from(PIECES)), max_size=25).map("".join)
nested = st.recursive(
    st.one_of(
        st.sampled_from(["*", "text", " ", "a/b", "&lt;"]),
        empty.filter(lambda one: '<"' not in one and " a " not in one),
    ),
    lambda inner: st.builds(
        lambda name, parts: f"<{name}>{''.join(parts)}</{name}>", st.sampled_from(NAMES), st.lists(inner, max_size=4)
    ),
    max_leaves=20,
)


def try_everything(text: str) -> None:
    source = Source.of(text, ".ai/directives/a.md")
    for found in check(source):
        assert 0 <= found.span.start <= found.span.end <= len(source.text) + 1, found
        assert found.message and "\n" not in found.message
    json.dumps(clean(json.dumps(directive_tree(source), ensure_ascii=False)))
    reading = parse(source)
    if reading.directive is not None:
        lower(reading.directive)


@settings(deadline=None)
@given(st.text())
def test_any_text(text: str) -> None:
    try_everything(text)
    try_everything(f"```xml\n{text}\n```\n{text}")


@settings(deadline=None, max_examples=depth(40, 200))
@given(soup, soup)
def test_any_soup_of_tags(inside: str, after: str) -> None:
    try_everything(f'# T\n```xml\n<directive name="d">{inside}</directive>\n```\n{after}')


@settings(deadline=None, max_examples=depth(40, 200))
@given(st.lists(nested, max_size=5).map("".join), st.booleans())
def test_well_formed_trees_come_back(inside: str, metadata: bool) -> None:
    inside = f"<metadata>{inside}</metadata>" if metadata else inside
    source = Source.of(f'```xml\n<directive name="d">{inside}</directive>\n```\nBody')
    try_everything(source.text)
    directive = parse(source).directive
    if directive is not None:
        again = parse(Source.of(write(directive))).directive
        assert again is not None
        assert without_spans(again) == without_spans(directive)
