"""What is written is read back as the same tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.formats.directive.directives import METADATA, document
from tests.formats.trees import without_spans

from quire.formats.directive.parse import parse
from quire.formats.directive.write import write
from quire.source import Source

SHARED = Path(__file__).parents[4] / "shared"
CORPUS = sorted((SHARED / "conformance" / "corpus" / "directive").glob("*--*.md"))
EVERYTHING = document(
    METADATA
    + """
    <limits max_turns="6" spend="0.5" />
    <tags>a <b>c</b></tags>
    <cost><context turns="3" spawn_threshold="2">100</context><duration>9</duration>
      <spend currency="EUR">1</spend></cost>
    <context><system>k/a</system><suppress>k/b</suppress><system>k/c</system></context>
    <hooks>
      <hook id="h" event="error" position="after">
        <condition path="a" op="in" value="[1, 2]" />
        <not><any><condition path="b" op="eq" value="1.5" /><condition path="c" op="eq">x &lt; y</condition></any></not>
        <action primary="execute" item_type="tool" item_id="t"><param name="p">${error.resource}</param></action>
      </hook>
      <hook event="limit">
        <action><fetch query="q" scope="knowledge" /><sign item_type="directive" item_id="d" /></action></hook>
    </hooks>""",
    """
  <inputs><input name="a" type="integer" required="true" default="&quot;&#10;&amp;">Two
    lines of ```</input></inputs>
  <outputs><output name="o" /><score>0 to 9</score><success>Yes &amp; so</success></outputs>
  <process>
    <step name="s"><fetch query="{input:a}" /></step>
  </process>
  <template>a & b</template>""",
)


def assert_the_same(text: str) -> None:
    reading = parse(Source.of(text))
    assert reading.directive is not None, reading.diagnostics
    written = write(reading.directive)
    again = parse(Source.of(written))
    assert again.directive is not None, written
    assert without_spans(again.directive) == without_spans(reading.directive)
    assert write(again.directive) == written


def test_everything_there_is() -> None:
    assert_the_same(EVERYTHING)


@pytest.mark.parametrize(
    "permissions",
    [
        "*",
        '*<acknowledge risk="unrestricted" />*',
        "<execute>*</execute><execute>a</execute><execute>b</execute>",
        "<execute>tool.a<tool>b c</tool>d<x.y>z</x.y></execute>",
        "<fetch><tool>a/b</tool></fetch>*<fetch>*</fetch>",
        "",
    ],
)
def test_permissions(permissions: str) -> None:
    assert_the_same(document(f"<permissions>{permissions}</permissions>"))


@pytest.mark.skipif(not CORPUS, reason="the shared corpus is not beside this checkout")
def test_the_corpus() -> None:
    read = 0
    for path in CORPUS:
        text = path.read_text()
        if parse(Source.of(text)).directive is not None:
            assert_the_same(text)
            read += 1
    assert read > 20


def test_the_examples_of_the_seed() -> None:
    seeds = list((SHARED / "seeds").glob("002*.txt"))
    if not seeds:
        pytest.skip("the shared seeds are not beside this checkout")
    seed = seeds[0].read_text()
    for title in ("# Directive Title\n", "# Create Directive\n", "# Create Threaded Directive\n", "# Deploy Staging\n"):
        assert_the_same(seed[seed.index(title) :].partition("\nWhat to notice")[0])


texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"), max_size=20
).map(str.strip)


@settings(max_examples=depth(25, 80), deadline=None)
@given(st.lists(texts, min_size=6, max_size=6))
def test_any_texts(parts: list[str]) -> None:
    """Texts of a tree come out as they went in, whatever they hold."""
    directive = parse(Source.of(EVERYTHING)).directive
    assert directive is not None and directive.description is not None
    directive.description.text, directive.success, directive.failure = parts[0], parts[1], parts[2]
    directive.inputs[0].default, directive.inputs[0].description = parts[3], parts[4]
    directive.hooks[0].actions[0].parameters = (("p", parts[5]),)
    again = parse(Source.of(write(directive))).directive
    assert again is not None
    assert without_spans(again) == without_spans(directive)
