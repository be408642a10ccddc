"""Answers about one place after edits anywhere are those about the same text when it is opened for the first time."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.depth import depth
from tests.lsp.editor import Editor
from tests.lsp.pipeline.edited_pipelines import HELPER, LOOSE, RICH, SLIPS, edited

from quire.diagnostics import Diagnostic
from quire.lsp.desk import Desk
from quire.lsp.document_text import EditorText
from quire.lsp.document_view import View
from quire.lsp.pipeline.actions import actions
from quire.lsp.pipeline.completion import complete
from quire.lsp.pipeline.decorations import hints
from quire.lsp.pipeline.hover import hover
from quire.lsp.pipeline.signature_help import signature
from quire.lsp.pipeline.tree import way_to
from quire.source import Span

LONG = "schema: Row\nfields: {id: {type: number}}\n---\npipeline: long\ndialect: quire\nsteps:\n" + "".join(
    f"  - agent: {{prompt: 'Look at {{s{n}}} and {{ctx.rows}}', schema: Row, output: s{n + 1}}}\n"
    f"  - transform: {{value: 's{n + 1}.id + 1', output: t{n % 7}, when: 's{n + 1}.id > {n}'}}\n"
    f"  - for_each: {{over: ctx.rows, on_error: abort, do: {{transform: {{value: 'item', output: x{n}}}}},"
    f" collect: {{transform: {{value: pipe}}}}, output: f{n}}}\n"
    for n in range(40)
)


def answers(view: View, offset: int) -> list[object]:
    found: list[Diagnostic] = []
    way = way_to(view, offset)
    return [
        hover(view, offset),
        complete(view, offset),
        signature(view, offset),
        actions(view, Span(offset, offset), found),
        hints(view, Span(max(offset - 200, 0), offset + 200)),
        (way.steps, way.number) if way is not None else None,
    ]


def opened_anew(editor: Editor, name: str, offset: int) -> list[object]:
    """Return the answers about a text of which nothing is known."""
    desk = Desk()
    desk.encoding, desk.roots = "utf-32", [editor.folder]
    path = str(editor.folder / name)
    document = editor.session.desk.documents[editor.uri(name)]
    view = View(path, EditorText(document.text.raw, "utf-32", path), desk.folder_of(path), (), document.format)
    return answers(view, offset)


@pytest.mark.parametrize("seed", range(depth(8, 120)))
def test_answers_at_random_places(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.chdir(tmp_path)
    editor = Editor(tmp_path)
    editor.write("pipelines/helper.yaml", HELPER)
    editor.write("quire.toml", "[agents.writer]\ntools = []\n")
    text = chance.choice([RICH, LOOSE, SLIPS, LONG, LONG])
    editor.open("main.yaml", text)
    for number in range(depth(12, 40)):
        new = edited(editor.texts["main.yaml"], chance)
        editor.replace("main.yaml", text if chance.random() < 0.3 else new)
        if chance.random() < 0.5:
            editor.pause(1.0)
        for _ in range(3):
            offset = chance.randrange(len(editor.texts["main.yaml"]) + 1)
            view = editor.session.desk.view(editor.uri("main.yaml"))
            assert view is not None
            if view.format != "pipeline":
                continue
            where = f"edit {number}, offset {offset}, seed {seed}:\n{view.source.text}"
            assert answers(view, offset) == opened_anew(editor, "main.yaml", offset), where
