"""Random edits: the findings after each are those of a check of the whole text, and no request raises."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.depth import depth
from tests.given import given
from tests.lsp.editor import Editor
from tests.lsp.pipeline.edited_pipelines import HELPER, RICH, edited

from quire.lsp import checks, findings, wire
from quire.lsp.desk import Desk
from quire.lsp.document_text import EditorText
from quire.lsp.document_view import View
from quire.lsp.languages import REQUESTS

EXAMPLES = Path(__file__).parents[2] / "examples"
SETTINGS = "[agents.writer]\ntools = []\n\n[pipelines.more]\npath = 'main.yaml'\n"
PIECES = [
    "\n", " ", "  ", "{{", "}}", "@", "@output(", ")", "- ", ":", '"', "'", "#", "## STEP 2: ", "```", "<", "/>", "ä",
    "𝄞", "\t", "\r", "\r\n", "ctx.", "{", "}", "[", "!expr ", "&a ", "*a", "steps:\n", "x", "1", "|\n", "=", "\ud834",
    "\x00",
]  # fmt: skip
PLACED = [name for name in REQUESTS if name.startswith("textDocument/") and "rename" not in name]


def documents() -> list[Path]:
    found = [path for path in sorted(EXAMPLES.rglob("*")) if path.suffix in (".md", ".yaml", ".toml")]
    return [path for path in found if path.name != "README.md"]


@pytest.mark.parametrize("seed", range(depth(6, 60)))
def test_edits_one_after_the_other(editor: Editor, seed: int) -> None:
    chance = random.Random(seed)
    paths = documents()
    for path in chance.sample(paths, 4):
        name = str(path.relative_to(EXAMPLES))
        (editor.folder / name).parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text()
        editor.open(name, text)
        for _ in range(depth(12, 170)):
            text = editor.texts[name]
            at = chance.randrange(len(text) + 1)
            editor.type(name, at, _new(chance, text), min(chance.choice([0, 0, 1, 3, 30]), len(text) - at))
            _ask_anything(editor, name, chance)
            editor.pause(0.4)
            assert _told(editor, name) == _checked_whole(editor, name), f"{name} after an edit at {at}, seed {seed}"
        logged = [one["params"]["message"] for one in editor.messages if one["method"] == "window/logMessage"]
        assert logged == [], f"seed {seed}"
        editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri(name)}})


@pytest.mark.parametrize("forks", [False, True])
@pytest.mark.parametrize("seed", range(depth(4, 40)))
def test_edits_of_a_pipeline_and_of_all_that_it_depends_on(
    tmp_path: Path, seed: int, forks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps are moved, copied and taken out, names change, the callee and the settings change, and the YAML breaks."""
    chance = random.Random(seed)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checks, "QUICK_SECONDS", chance.choice([-1.0, 0.01]))
    monkeypatch.setattr(checks, "SLOW_SECONDS", chance.choice([-1.0, 1.0, 1.0]))
    texts = {"main.yaml": RICH, "pipelines/helper.yaml": HELPER, "quire.toml": SETTINGS}
    given(texts, tmp_path)
    editor = Editor(tmp_path)
    editor.session._forks = forks
    editor.session._checks = None
    editor.tell("initialized", {})
    for name, text in texts.items():
        editor.open(name, text)
    for number in range(depth(20, 130)):
        name = chance.choice(["main.yaml"] * 6 + list(texts))
        new = edited(editor.texts[name], chance)
        if chance.random() < 0.1:
            new = new.replace("\r\n", "\n").replace("\n", "\r\n" if chance.random() < 0.5 else "\n")
        if chance.random() < 0.3:
            new = texts[name]
        editor.replace(name, new)
        editor.pause(chance.choice([0.0, 0.02, 0.1]))
        if chance.random() < 0.5:
            continue  # the next edit comes before the check has ended
        editor.pause(1.0)
        for one in texts:
            assert _told(editor, one) == _checked_whole(editor, one), f"{one}, edit {number}, seed {seed}:\n{new}"
    logged = [one["params"]["message"] for one in editor.messages if one["method"] == "window/logMessage"]
    assert logged == [], f"seed {seed}"


def _new(chance: random.Random, text: str) -> str:
    if chance.random() < 0.3 and text:
        start = chance.randrange(len(text))
        return text[start : start + chance.randrange(60)]
    return "".join(chance.choice(PIECES) for _ in range(chance.randrange(4)))


def _ask_anything(editor: Editor, name: str, chance: random.Random) -> None:
    """Ask for something at a random place. `Editor.ask` fails on an error and on an answer of the wrong form."""
    method = chance.choice(PLACED)
    place = editor.place(name, chance.randrange(len(editor.texts[name]) + 1))
    end = {"line": 10**6, "character": 10**6}
    params = {
        **place,
        "range": {"start": place["position"], "end": end},
        "positions": [place["position"], end],
        "context": {"diagnostics": [], "includeDeclaration": True},
        "options": {"tabSize": 2, "insertSpaces": True},
        "previousResultId": "1",
    }
    editor.ask(method, params)


def _told(editor: Editor, name: str) -> list[tuple[str, int, int, str]]:
    return [_key(one) for one in editor.findings(name)]


def _checked_whole(editor: Editor, name: str) -> list[tuple[str, int, int, str]]:
    """Return the findings of a check that knows nothing of the edits before, but that the file is a document."""
    desk = Desk()
    desk.encoding, desk.roots = "utf-32", [editor.folder]
    path = str(editor.folder / name)
    document = editor.session.desk.documents[editor.uri(name)]
    view = View(path, EditorText(document.text.raw, "utf-32", path), desk.folder_of(path), (), document.format)
    return [_key(wire.diagnostic(view.text, one, desk)) for one in findings.findings_of(view)]


def _key(one: dict[str, object]) -> tuple[str, int, int, str]:
    start = one["range"]["start"]  # type: ignore[index]
    return str(one["code"]), start["line"], start["character"], str(one["message"])
