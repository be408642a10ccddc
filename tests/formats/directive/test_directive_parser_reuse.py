"""The XML parser is used again for the next text: nothing of a text stays in it, and no text changes the next one."""

from __future__ import annotations

import gc
import random

import pytest

from quire.formats.directive import xml
from quire.formats.directive.xml import Element, read_xml
from quire.source import Source, Span

PIECES = (
    *("<a>", "</a>", "<b x='1'>", "</b>", "<c/>", "text", "&amp;", "&", "&foo;", "<", "]]>", "<![CDATA[x]]>", "é"),
    *("\n", "<!-- c -->", "<a x='1' x='2'>", "x='", '"', "<?pi?>", "<p:q>", "<a>" * 70),
)


def read(text: str) -> tuple[Element | None, list[str]]:
    root, found = read_xml(Source.of(text, "x.md"), Span(0, len(text)))
    return root, [f"{one.code.id} {one.message} {one.span}" for one in found]


def test_a_text_is_read_the_same_after_any_other() -> None:
    draw = random.Random(5)
    for _ in range(2_000):
        text = f"<r>{''.join(draw.choices(PIECES, k=draw.randrange(9)))}</r>"
        again = read(text)
        xml._IDLE.clear()
        assert read(text) == again, text
        if draw.random() < 0.5:
            read("<r><a>left open")  # the next text is read by a parser that has failed


@pytest.mark.parametrize("end", ["</directive>", "", "<p:q/></directive>"], ids=["whole", "broken", "stopped"])
def test_nothing_of_a_text_is_left(end: str) -> None:
    text = "<directive>" + "<step>x</step>" * 1_000 + end
    read(text)  # loads the library
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            read(text)
        assert gc.collect() < 500
    finally:
        gc.enable()
