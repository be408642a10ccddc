"""Completion, hover, outline and names in quire.toml."""

from __future__ import annotations

import pytest
from tests.lsp.editor import Editor, apply

FILE = "quire.toml"
NAMES = """\
[agents.reviewer]
model = "low"

[models.tiers]
low = {model = "openai:x"}

[playbooks.notes]
agent = "reviewer"

[pipelines.entries.billing]
path = "billing.yaml"

[prompts]
folders = ["texts"]
"""


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("[‸", ["runs", "models.tiers", "agents.NAME"]),
        ("[runs]\n[mod‸", ["models"]),
        ("ru‸", ["[runs]", "[models]"]),
        ("[runs]\n‸", ["expiry", "durability"]),
        ("[runs]\nex‸", ["expiry"]),
        ("[runs]\non_uncertain = ‸", ["rerun", "ask"]),
        ('[runs]\non_uncertain = "a‸', ["rerun", "ask"]),
        ("[trust]\nlocked = ‸", ["true", "false"]),
        ('[tools]\nallow = ["‸', ["shell", "http__get"]),
        ('[tools]\nallow = [\n  "shell",\n  "‸\n', ["shell", "http__get"]),
        ('[models.tiers]\nlow = "x"\n[agents.a]\nmodel = "‸', ["low", "anthropic:claude-sonnet-5-5"]),
        ('[agents.a]\nmodel = "x"\n[playbooks.p]\nagent = "‸"', ["a"]),
        ("[models.tiers]\nlow = {‸", ["model", "reasoning"]),
        ('[models.tiers]\nlow = {model = "x", reasoning = "‸', ["low", "high"]),
        ("[models.tiers.low]\n‸", ["model", "temperature"]),
        ('[pipelines.entries.x]\npath = "‸', ["billing.yaml"]),
        ('[prompts]\nfolders = ["‸', ["texts"]),
        ("[broken\n[runs]\nex‸", ["expiry"]),
    ],
)
def test_it_offers_what_can_stand_there(editor: Editor, text: str, offered: list[str]) -> None:
    editor.write("billing.yaml", "pipeline: billing\nsteps:\n  - agent: {prompt: Hi., output: a}\n")
    editor.write("texts/a.md", "Hi.\n")
    found = editor.completions(FILE, text)
    assert [name for name in offered if name not in found] == []


def test_keys_that_are_there_are_not_offered(editor: Editor) -> None:
    assert "expiry" not in editor.completions(FILE, '[runs]\nexpiry = "7d"\n‸')


@pytest.mark.parametrize(
    ("text", "name", "after"),
    [
        ("[mo‸", "models", "[models]"),
        ("[mo‸]", "models", "[models]"),
        ("[runs]\non_uncertain = ‸", "ask", '[runs]\non_uncertain = "ask"'),
        ('[runs]\non_uncertain = "a‸"', "ask", '[runs]\non_uncertain = "ask"'),
    ],
)
def test_a_word_is_written_as_toml_needs_it(editor: Editor, text: str, name: str, after: str) -> None:
    item = editor.completions(FILE, text)[name]
    assert apply(editor.texts[FILE], [item["textEdit"]]) == after


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[ru‸ns]\n", "how long a run may wait"),
        ('[runs]\nexp‸iry = "7d"\n', 'Default: `"30d"`'),
        ('[runs]\nexpiry = "7‸d"\n', "How long a run may wait"),
        ('[tools]\nallow = ["she‸ll=network"]\n', "Runs a command"),
        ("[models.tiers]\nlow = {temp‸erature = 0}\n", "0 to 2"),
        ("[agents.rev‸iewer]\n", "`identity`"),
    ],
)
def test_a_hover_says_what_a_key_means(editor: Editor, text: str, told: str) -> None:
    assert told in editor.hover(FILE, text)


def test_every_key_is_explained(editor: Editor) -> None:
    told = editor.hover(FILE, "[agents.‸reader]\nsystem = 'x'\n")
    assert "- `max_tokens`: the longest reply, in tokens" in told
    assert "- `reasoning`: how much it thinks" in told
    assert "- `timeout`: how long the service may be silent" in told
    assert "a table" not in told
    assert "- `tiers`: a table" in editor.hover(FILE, "[mod‸els]\ndefault = 'x'\n")
    assert "How much it thinks" in editor.hover(FILE, "[agents.reader]\nreasoning = 'lo‸w'\n")


def test_a_hover_never_shows_a_secret(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_KEY", "sk-123")
    text = '[models.providers.house]\nbase_url = "http://x"\napi_key_env = "HOUSE‸_KEY"\n'
    told = editor.hover(FILE, text)
    assert told and "sk-123" not in told


def test_tables_are_the_outline_and_files_are_links(editor: Editor) -> None:
    editor.write("billing.yaml", "pipeline: billing\nsteps: []\n")
    place = editor.open(FILE, NAMES)
    found = editor.ask("textDocument/documentSymbol", place)
    assert [one["name"] for one in found][:2] == ["agents.reviewer", "models.tiers"]
    links = editor.ask("textDocument/documentLink", place)
    assert [link["target"] for link in links] == [editor.uri("billing.yaml")]


def test_an_agent_can_be_renamed(editor: Editor) -> None:
    place = editor.open(FILE, NAMES.replace("agents.rev", "agents.rev‸"))
    edit = editor.ask("textDocument/rename", {**place, "newName": "critic"})
    assert editor.edited(edit)[FILE] == NAMES.replace("reviewer", "critic")
    assert "quotes" in editor.refused("textDocument/rename", {**place, "newName": "a b"})["message"]


def test_a_tier_is_found_from_its_use(editor: Editor) -> None:
    place = editor.open(FILE, NAMES.replace('model = "lo', 'model = "lo‸', 1))
    (found,) = editor.ask("textDocument/definition", place)
    assert found["range"]["start"] == {"line": 4, "character": 0}
