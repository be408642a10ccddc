"""Answers about one place after edits anywhere are those about the same text when it is opened for the first time."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.depth import depth
from tests.formats.pipeline.test_incremental_check import HELPER, LOOSE, RICH, SLIPS, edited
from tests.lsp.editor import Editor

from quire.diagnostics import Diagnostic
from quire.formats.pipeline.shifted import shifted_step
from quire.lsp.desk import Desk
from quire.lsp.pipeline import flow, scopes
from quire.lsp.pipeline.actions import actions
from quire.lsp.pipeline.completion import complete
from quire.lsp.pipeline.decorations import hints
from quire.lsp.pipeline.hover import hover
from quire.lsp.pipeline.signatures import signature
from quire.lsp.pipeline.tree import file_of, step_lists, way_to
from quire.lsp.texts import EditorText
from quire.lsp.views import View
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


def opened_anew(editor: Editor, name: str, offset: int, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the answers about a text of which nothing is known."""
    desk = Desk()
    desk.encoding, desk.roots = "utf-32", [editor.folder]
    path = str(editor.folder / name)
    document = editor.session.desk.documents[editor.uri(name)]
    view = View(path, EditorText(document.text.raw, "utf-32", path), desk.folder_of(path), (), document.format)
    with monkeypatch.context() as patched:
        patched.setattr(flow, "_KEPT", {})
        scopes._WRITERS.clear()
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
    cut = 0
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
            cut += view.cut is not None
            where = f"edit {number}, offset {offset}, seed {seed}:\n{view.source.text}"
            assert answers(view, offset) == opened_anew(editor, "main.yaml", offset, monkeypatch), where
    assert cut > 5, "almost all texts had to be read as a whole"


def test_each_step_is_moved_to_its_place(editor: Editor) -> None:
    editor.open("main.yaml", RICH)
    view = editor.session.desk.view(editor.uri("main.yaml"))
    assert view is not None and view.cut is not None
    steps = step_lists(view)[0]
    assert [steps.step(at) for at in range(len(steps.texts))] == list(file_of(view).pipelines[0].steps)
    assert [steps.start(at) for at in range(len(steps.texts))] == [
        one.span.start for one in file_of(view).pipelines[0].steps
    ]


def test_an_edit_above_leaves_the_types_below_as_they_are(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the steps since the last types that were kept are walked through, and only the one asked for is moved."""
    walked, moved = [], []
    step = flow.QuietWalker.step

    def watched(self: flow.QuietWalker, one: object, scope: object) -> object:
        walked.append(one)
        return step(self, one, scope)  # type: ignore[arg-type]

    def shifted(one: object, by: int) -> object:
        moved.append(one)
        return shifted_step(one, by)  # type: ignore[arg-type]

    editor.open("main.yaml", LONG)
    at = LONG.rindex("{ctx.rows}") + 6
    assert "no step has written it" in str(editor.ask("textDocument/hover", editor.place("main.yaml", at)))
    monkeypatch.setattr(flow.QuietWalker, "step", watched)
    monkeypatch.setattr("quire.lsp.pipeline.tree.shifted_step", shifted)
    editor.type("main.yaml", 0, "# above\n")
    at += len("# above\n")
    assert "no step has written it" in str(editor.ask("textDocument/hover", editor.place("main.yaml", at)))
    assert 0 < len(walked) <= 2 * flow._EVERY
    assert len(moved) == 1
