"""Questions as Markdown: rendered where nothing of them is lost, plain where something would be."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import within

from quire.display.question_text import loses_nothing, question_block, question_lines
from quire.server.markup import render_question

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def plain(prompt: str) -> str | None:
    block = question_block(prompt)
    return None if block is None else "\n".join(line.strip() for line in ANSI.sub("", block).split("\n"))


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        ("**Send** it?", "Send it?"),
        ("One\n**two**\nthree", "One\ntwo\nthree"),
        ("- one\n- two", "• one\n• two"),
        ("1. one\n2. two", "1 one\n2 two"),
        ("`rm -r x` <all of it>?", "rm -r x <all of it>?"),
        ("[here](http://example.org/x)", "here (http://example.org/x)"),
        ("```python\nx = 1\n```\nRun it?", "\nx = 1\n\n\nRun it?"),
    ],
)
def test_a_question_is_rendered(prompt: str, shown: str) -> None:
    assert plain(prompt) == shown


@pytest.mark.parametrize("prompt", ["Send it?", "One\nTwo", "2 + 2 = 4", "Dr. Who? (yes)"])
def test_a_plain_question_stays_plain(prompt: str) -> None:
    assert question_block(prompt) is None and render_question(prompt) is None
    assert question_lines("step 1 asks:", prompt, styled=True) == f"step 1 asks: {prompt}"


HIDING = [
    "Pay *one*?\n\n[//]: # (and one thousand more)",
    'Pay *one*?\n\n[x]: mailto:e.org "and more"',
    "Pay *one*?\n\n" + "> " * 40 + "and more",
    "Pay *one*?\n\n```and more of it\nx\n```",
    "Pay *one*?\n\n```delete\nx\n```",
    "|a|b|\n|-|-|\n|1|2|and more|",
    "Pay *one*? ![all](http://e.org/x.png)",
    "Pay *one*? &#97;&#98;",
]


@pytest.mark.parametrize("prompt", HIDING)
def test_a_question_that_would_hide_something_is_shown_as_it_is(prompt: str) -> None:
    assert question_block(prompt) is None
    if "![" not in prompt and "//" not in prompt:  # the page shows these
        assert render_question(prompt) is None
    said = question_lines("step 1 asks:", prompt, styled=True)
    assert all(word in said for word in re.findall(r"\w+", prompt))


def test_nothing_reaches_the_terminal_but_styles() -> None:
    hostile = "**x** \x1b]0;owned\x07\x1b[2J\x9b31m [red]y[/red] \u202eevil"
    said = question_lines("step 1 asks:", hostile, styled=True)
    assert "\x1b]" not in said and "\x07" not in said and "\x9b" not in said and "\u202e" not in said
    assert not re.sub(r"\x1b\[[0-9;]*m", "", said).count("\x1b")
    assert "[red]y[/red]" in ANSI.sub("", said)


def test_a_pipe_gets_no_styles() -> None:
    assert question_lines("step 1 asks:", "**x**", styled=False) == "step 1 asks: **x**"


def test_the_page_gets_no_html_of_the_question() -> None:
    made = render_question("**x** <script>alert(1)</script> <img src=x onerror=y> [a](javascript:b)")
    assert made is not None and "<strong>x</strong>" in made
    assert "<script" not in made and "<img" not in made and "href" not in made


def test_line_breaks_are_line_breaks_on_the_page() -> None:
    made = render_question("One\n**two**")
    assert made is not None and "<br" in made
    link = render_question("See [the text](https://example.org/a?b=1&c=2).\n\n1. *one*")
    assert link is not None and 'href="https://example.org/a?b=1&amp;c=2"' in link


@given(st.text(alphabet="ab1 \n*_`#>|[]()<&!-", max_size=60))
def test_whatever_is_rendered_has_every_letter(prompt: str) -> None:
    block = question_block(prompt)
    assert block is None or loses_nothing(prompt, ANSI.sub("", block))
    render_question(prompt)


def test_a_long_question_takes_no_time() -> None:
    for prompt in ("*" * 100_000, "> " * 50_000, "- a\n" * 4_000, "[" * 15_000):
        with within(5):
            question_lines("step 1 asks:", prompt, styled=True)
