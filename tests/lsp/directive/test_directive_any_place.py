"""Every feature answers at every place of a directive or a knowledge file, however much of it exists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.depth import depth
from tests.growth import within
from tests.lsp.directive.sample_workspace import FILES, GREET, LEAD, RULES, VOICE, write_workspace

from quire.lsp.desk import Desk, uri_of
from quire.lsp.document_view import View
from quire.lsp.features.semantic_tokens import flat_tokens
from quire.lsp.languages import function
from quire.source import OPEN_TEXTS, Span

STEP = depth(11, 1)
BROKEN = {
    "odd quotes": GREET.replace('event="directive_return">', 'event="directive_return'),
    "no fence end": GREET.replace("\n```\n\n<process>", "\n\n<process>"),
    "crossed": GREET.replace("</hook>", "</hooks>").replace("</permissions>", ""),
    "signs": "```xml\n<<<a b=<c d='\"><![CDATA[<!-- </ <x <y/> &&& ${ {input: }\n" + "{input:a?}${x || inputs.}" * 3,
    "nothing": "",
    "fences": "````\n```xml\n<directive>\n```\n````\n```xml\n",
    "astral": GREET.replace("guest", "g𝒖é"),
}


@pytest.fixture
def desk(tmp_path: Path, home: Path) -> Iterator[Desk]:
    (tmp_path / "quire.toml").write_text("")
    write_workspace(tmp_path)
    found = Desk()
    found.roots = [tmp_path]
    yield found
    OPEN_TEXTS.clear()


def opened(desk: Desk, name: str, text: str) -> View:
    uri = uri_of(str(desk.roots[0] / name))
    desk.open(uri, 1, text)
    view = desk.view(uri)
    assert view is not None
    return view


def ask(view: View, module: str, name: str, *arguments: object) -> object:
    found = function(view.format, module, name)
    return found(view, *arguments) if found else None


def look_at(view: View, offset: int) -> None:
    """Ask everything that is asked at a cursor, and see that every place is in the text."""
    size = len(view.source.text)
    for module, name in (("hover", "hover"), ("completion", "complete"), ("signatures", "signature")):
        answer = ask(view, module, name, offset)
        for one in answer if isinstance(answer, list) else [answer]:
            span = getattr(one, "span", None)
            assert span is None or 0 <= span.start <= span.end <= size
            if module == "completion" and span is not None:
                assert span.end == offset


def look_over(view: View) -> None:
    """Ask everything that is asked about a document, and see that every place is in the text."""
    text = view.source.text
    size = len(text)
    found = view.index
    spans = [name.span for name in found.names] + [link.span for link in found.links]
    spans += [span for pair in found.pairs for span in pair]
    waiting = list(found.symbols)
    while waiting:
        symbol = waiting.pop()
        waiting += symbol.children
        spans += [symbol.span, symbol.selection]
        assert symbol.span.start <= symbol.selection.start <= symbol.selection.end <= symbol.span.end
    last = 0
    for token in flat_tokens(text, ask(view, "decorations", "tokens") or []):  # type: ignore[arg-type]
        assert token.span.start >= last
        assert "\n" not in text[token.span.start : token.span.end]
        last = token.span.end
        spans.append(token.span)
    for hint in ask(view, "decorations", "hints", Span(0, size)) or ():  # type: ignore[attr-defined]
        assert 0 <= hint.offset <= size
    for action in ask(view, "actions", "actions", Span(0, size), view.findings) or ():  # type: ignore[attr-defined]
        spans += [edit.span for file in action.edits for edit in file.edits if file.path == view.path]
    for edit in ask(view, "formatting", "format", Span(0, size)) or ():  # type: ignore[attr-defined]
        assert text[edit.span.start : edit.span.end] == edit.old
        spans.append(edit.span)
    ask(view, "decorations", "folds")
    assert all(0 <= span.start <= span.end <= size for span in spans)


@pytest.mark.parametrize("name", FILES)
def test_every_offset(desk: Desk, name: str) -> None:
    view = opened(desk, name, FILES[name])
    look_over(view)
    for offset in range(0, len(view.source.text) + 1, STEP):
        look_at(view, offset)


@pytest.mark.parametrize(("name", "text"), [("directives", GREET), ("directives", LEAD), ("knowledge", VOICE)])
def test_every_beginning(desk: Desk, name: str, text: str) -> None:
    for end in range(0, len(text) + 1, STEP):
        view = opened(desk, f".ai/{name}/team/cut.md", text[:end])
        look_over(view)
        look_at(view, end)


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("folder", ["directives", "knowledge"])
def test_broken_texts(desk: Desk, folder: str, what: str) -> None:
    view = opened(desk, f".ai/{folder}/team/broken.md", BROKEN[what])
    look_over(view)
    for offset in range(0, len(BROKEN[what]) + 1, STEP):
        look_at(view, offset)


@pytest.mark.parametrize(
    "text",
    [
        "```xml\n" + "<a>" * 20_000 + "</b>" * 20_000,
        "```xml\n" + "<raw>" * 20_000,
        "```xml\n" + "<a b='" * 20_000,
        "```xml\n" + "<!-- " * 20_000,
        "```xml\n<x/>\n```\n" + "<step>" * 20_000 + "</criterion>" * 5_000,
        "```xml\n<x/>\n```\n" + "rye_execute(" * 10_000,
        "```xml\n<x/>\n```\n" + "rye_execute(parameters={" * 5_000,
        "```xml\n<x/>\n```\n" + "{input:" * 20_000 + "${" * 20_000,
        "```xml\n<x/>\n```\n" + "# a\n## b\n" * 10_000,
    ],
    ids=["nested", "opaque", "values", "comments", "body", "calls", "parameters", "references", "headings"],
)
def test_hostile_texts_take_no_longer(desk: Desk, text: str) -> None:
    with within(20):
        view = opened(desk, ".ai/directives/team/hostile.md", text)
        look_over(view)
        for offset in (0, len(text) // 2, len(text)):
            look_at(view, offset)


def test_without_settings(desk: Desk) -> None:
    (desk.roots[0] / "quire.toml").write_text("[models\n")
    for name, text in ((".ai/directives/team/greet_guest.md", GREET), (".ai/knowledge/team/rules.md", RULES)):
        view = opened(desk, name, text)
        assert view.folder.settings is None
        look_over(view)
        for offset in range(0, len(text) + 1, STEP):
            look_at(view, offset)
        ask(view, "decorations", "lenses")


def test_lenses_of_whole_documents(desk: Desk) -> None:
    for name, text in FILES.items():
        assert ask(opened(desk, name, text), "decorations", "lenses")
