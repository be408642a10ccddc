"""HTML of texts that models, tools and people wrote. No other module makes HTML from such a text.

Markdown comes out without any HTML of its own, without images from elsewhere, and with links that say where they lead.
Code comes out as spans with classes. Large and slow texts end as plain text: the cap is what a browser can use.

The server renders in one helper process, `python -m quire.server.markup`, which is killed at a deadline: lexers and
parsers have patterns that take quadratic time, and the event loop must not wait for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import html
import json
import re
import sys
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from quire.python_process import start_helper

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import OptionsDict
    from pygments.lexer import Lexer  # type: ignore[import-untyped]

LONGEST = 400_000
"""Characters of a text that become HTML; the rest is left out, and the reader is told."""
PIECE = 20_000
"""Number of characters, about, of a piece of Markdown. The time is checked between two pieces."""
MOST_SECONDS = 1.5
"""Markdown that takes longer continues as plain text."""
DEADLINE_SECONDS = 2.0
"""Time for all texts of a request; then the helper process is killed, and the other texts stay plain."""
START_SECONDS = 20.0
LONGEST_CODE, LONGEST_LINE = 4096, 2000
"""Longer code stays without colours: some patterns of lexers take quadratic time."""
KEPT = 40_000_000
"""Characters of texts and their HTML that are kept."""

_OWN_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+", re.ASCII)
_ANCHOR = re.compile(r'<a href="([^"]*)"[^>]*>(.*?)</a> <span class="link-host">[^<]*</span>', re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_LINK = re.compile(r"(?:https?://|mailto:)\S+", re.IGNORECASE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LANGUAGES = frozenset(
    re.findall(
        r"\w+",
        """bash c cpp css diff go html ini java javascript js json kotlin markdown md php python py ruby rust sh shell
        sql swift toml ts tsx typescript xml yaml yml""",
    )
)

Job = tuple[str, str]
"""The kind of a text, which is `markdown`, `question` or the language of code; and the text."""


class Renderer:
    """Makes HTML of texts in a helper process, which is started when it is first needed."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._turn = asyncio.Lock()
        self._kept: OrderedDict[Job, str | None] = OrderedDict()

    async def render(self, jobs: Iterable[Job]) -> dict[Job, str | None]:
        """Return the HTML of each text. A text that cannot be made in time is plain; a question has none then."""
        done = {
            (kind, text): None if kind == "question" else f"<pre>{html.escape(text[:LONGEST])}</pre>{_left_out(text)}"
            for kind, text in jobs
        }
        if any(job not in self._kept for job in done if needs_rendering(job)):
            async with self._turn:  # meanwhile another request may have made some of them
                missing = [job for job in done if job not in self._kept and needs_rendering(job)]
                try:
                    await self._make(missing, done)
                except BaseException:  # also a client that left: the helper would answer a question that is gone
                    await self.close()
                    raise
        return {job: self._kept.get(job, html) for job, html in done.items()}

    async def _make(self, jobs: Sequence[Job], done: dict[Job, str | None]) -> None:
        job: Job | None = None
        try:
            process = self._process
            if process is None or process.returncode is not None:
                process = await self._start()
            until = asyncio.get_running_loop().time() + DEADLINE_SECONDS
            for job in jobs:
                async with asyncio.timeout_at(until):
                    done[job] = json.loads(await _ask(process, job))
                self._keep(job, done[job])
        except (OSError, EOFError, ValueError, TimeoutError):
            await self.close()
            if job == jobs[0]:
                self._keep(job, done[job])  # it had the whole time; a later text may have better luck next time

    async def _start(self) -> Process:
        self._process = process = await start_helper("quire.server.markup")
        async with asyncio.timeout(START_SECONDS):
            await _ask(process, ("markdown", ""))
        return process

    def _keep(self, job: Job, made: str | None) -> None:
        self._kept[job] = made
        self._kept.move_to_end(job)
        while len(self._kept) > 1 and sum(len(job[1]) + len(html or "") for job, html in self._kept.items()) > KEPT:
            self._kept.popitem(last=False)

    async def close(self) -> None:
        """End the helper process at once."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def needs_rendering(job: Job) -> bool:
    from quire.display.question_text import is_markdown

    return job[0] != "question" or is_markdown(job[1])


async def _ask(process: Process, job: Job) -> bytes:
    if process.stdin is None or process.stdout is None:
        raise EOFError
    process.stdin.write(json.dumps(job).encode() + b"\n")
    await process.stdin.drain()
    return await process.stdout.readline()


def made(job: Job) -> str | None:
    """Return the HTML of a text, in the helper process."""
    kind, text = job
    if kind == "question":
        return render_question(text)
    return render_markdown(text) if kind == "markdown" else highlight(text, kind)


def render_question(prompt: str) -> str | None:
    """Return a question as HTML; None if it is plain text, or if a part of it would not be seen."""
    from quire.display.question_text import hard_breaks, loses_nothing

    if not needs_rendering(("question", prompt)):
        return None
    rendered = render_markdown(hard_breaks(prompt))
    visible = _TAG.sub(" ", _ANCHOR.sub(lambda link: f"{link[2]} {link[1]} ", rendered))
    return rendered if loses_nothing(prompt, html.unescape(visible)) else None


def highlight(code: str, language: str) -> str:
    """Return code as HTML with a class for each kind of token; without colours if the language is not known."""
    return f'<pre class="code"><code>{_code(code, language)}</code></pre>'


def render_markdown(text: str) -> str:
    """Return Markdown as HTML that can be shown as it is."""
    until = time.monotonic() + MOST_SECONDS
    out: list[str] = []
    pieces = list(_pieces(text[:LONGEST]))
    for at, piece in enumerate(pieces):
        if time.monotonic() > until:
            out.append(f"<pre>{html.escape(''.join(pieces[at:]))}</pre>")
            break
        out.append(_parser().render(piece))
    return "".join(out) + _left_out(text)


def _left_out(text: str) -> str:
    more = len(text) - LONGEST
    return f'<p class="left-out">{more:,} more characters are not shown here.</p>' if more > 0 else ""


def _pieces(text: str) -> Iterator[str]:
    """Split Markdown at blank lines outside of code. A list that is split continues as a list of its own."""
    piece: list[str] = []
    size, fence = 0, ""
    for line in text.splitlines(keepends=True):
        if match := _FENCE.match(line):
            mark = match[1]
            if not fence:
                fence = mark
            elif mark[0] == fence[0] and len(mark) >= len(fence) and not line.strip().strip(mark[0]):
                fence = ""
        piece.append(line)
        size += len(line)
        if size > PIECE and not fence and not line.strip():
            yield "".join(piece)
            piece, size = [], 0
    yield "".join(piece)


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt(
        "commonmark", {"html": False, "highlight": lambda code, language, _: highlight(code, language)}
    ).enable(["table", "strikethrough"])
    # Other addresses stay text: `//host`, `javascript:`, files.
    parser.validateLink = lambda address: bool(_LINK.fullmatch(address) or _OWN_IMAGE.fullmatch(address))  # type: ignore[method-assign, assignment]
    parser.add_render_rule("image", _image)
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("link_close", _link_close)
    parser.add_render_rule("th_open", _cell)
    parser.add_render_rule("td_open", _cell)
    return parser


def _image(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    address = str(tokens[at].attrs.get("src", ""))
    label = html.escape(tokens[at].content)
    if _OWN_IMAGE.fullmatch(address):
        return f'<img src="{html.escape(address)}" alt="{label}">'
    place = html.escape(_host(address) or "elsewhere")
    blocked = f"image from {place} — not loaded: {label} <code>{html.escape(address)}</code>"
    return f'<span class="blocked-image">{blocked}</span>'


def _link_open(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    address = str(tokens[at].attrs.get("href", ""))
    env.setdefault("links", []).append(address)
    if not _LINK.fullmatch(address):
        return "<span>"
    return f'<a href="{html.escape(address)}" rel="noopener noreferrer nofollow" target="_blank">'


def _link_close(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    address = env["links"].pop() if env.get("links") else ""
    if not _LINK.fullmatch(address):
        return "</span>"
    return f'</a> <span class="link-host">({html.escape(_host(address))})</span>'


def _cell(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    """Align a cell by a class: the policy of the page forbids the style attribute."""
    side = str(tokens[at].attrs.get("style", "")).removeprefix("text-align:")
    return f'<{tokens[at].tag} class="{side}">' if side in ("left", "right", "center") else f"<{tokens[at].tag}>"


def _host(address: str) -> str:
    """Return the host of an address in ASCII, so that no letter looks like another; for mail the recipient."""
    try:
        parts = urlsplit(address)
        if parts.scheme.lower() == "mailto":
            return parts.path
        host = parts.hostname or ""
        return host.encode("idna").decode("ascii") if not host.isascii() else host
    except (ValueError, UnicodeError):
        return "an unreadable address"


def _code(code: str, language: str) -> str:
    lexer = _lexer(language.lower())
    if lexer is None or len(code) > LONGEST_CODE or any(len(line) > LONGEST_LINE for line in code.splitlines()):
        return html.escape(code[:LONGEST])
    from pygments import highlight as coloured  # type: ignore[import-untyped]

    return str(coloured(code, lexer, _formatter()))


@functools.cache
def _lexer(language: str) -> Lexer | None:
    if language not in _LANGUAGES:
        return None
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]

    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


@functools.cache
def _formatter() -> Any:
    from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]

    return HtmlFormatter(nowrap=True, classprefix="hl-")


if __name__ == "__main__":
    for line in sys.stdin.buffer:
        sys.stdout.write(json.dumps(made(tuple(json.loads(line)))) + "\n")
        sys.stdout.flush()
