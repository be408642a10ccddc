"""Findings about quire.toml, at their places and in the words of the verbs."""

from __future__ import annotations

import pytest
from tests.lsp.editor import Editor

from quire.errors import BadConfiguration
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace

FILE = "quire.toml"
GOOD = '[models]\ndefault = "low"\n\n[models.tiers]\nlow = {model = "openai:x", temperature = 0}\n'


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ('[runs]\nexpires = "7d"\n', "CF002", "expires"),
        ("[run]\na = 1\n", "CF002", "run"),
        ("top = 1\n", "CF002", "top"),
        ('[runs]\nexpiry = "7x"\n', "CF003", "expiry"),
        ('[trust]\nmode = "maybe"\n', "CF003", "mode"),
        ("[models.tiers]\nlow = {temperature = 1}\n", "CF003", "low"),
        ('[models.tiers.low]\nmodel = "x"\ntemperature = 9\n', "CF003", "temperature"),
        ('[models.providers.house]\ntimeout = "3s"\n', "CF003", "house"),
        ('[playbooks."release-notes"]\nagents = "x"\n', "CF002", "agents"),
        ("models.default = 3\n", "CF003", "default"),
        ("[sandbox]\nmemory = 5\n", "CF004", "sandbox"),
        ('[trust]\nsafe_folders = ["x"]\n', "CF004", "safe_folders"),
        ('[tools]\nallow = [\n  "http__send", # no host\n]\n', "CF005", "http__send"),
        ('[tools]\ndeny = ["http__get=a/b"]\n', "CF005", "http__get=a/b"),
        ("[models]\ndefault = low\n", "CF001", "low"),
        ("[models\n", "CF001", "[models"),
    ],
)
def test_a_finding_stands_at_its_key(editor: Editor, text: str, code: str, words: str) -> None:
    editor.open(FILE, text)
    found = editor.findings(FILE)
    assert [(one["code"], editor.words(FILE, [one["range"]])[0]) for one in found] == [(code, words)]


def test_good_settings_have_no_findings(editor: Editor) -> None:
    editor.open(FILE, GOOD)
    assert editor.codes(FILE) == []
    editor.open(FILE, "")
    assert editor.codes(FILE) == []


def test_the_words_are_those_of_the_verbs(editor: Editor) -> None:
    text = '[runs]\nexpiry = 7\nfoo = 1\n[agents.a]\nturns = "many"\n[notify]\n'
    editor.open(FILE, text)
    with pytest.raises(BadConfiguration) as raised:
        load_settings(find_workspace(editor.folder))
    told = [line.partition(": ")[2].partition("; ")[0] for line in str(raised.value).splitlines()]
    assert sorted(one["message"].partition("\n")[0] for one in editor.findings(FILE)) == sorted(told)


def test_a_misspelled_key_has_a_fix(editor: Editor) -> None:
    place = editor.open(FILE, '[runs]\nexpi‸ri = "7d"\n')
    editor.pause()
    where = {"start": place["position"], "end": place["position"]}
    asked = {"textDocument": place["textDocument"], "range": where, "context": {"diagnostics": []}}
    (found,) = editor.ask("textDocument/codeAction", asked)
    assert editor.edited(found["edit"])[FILE] == '[runs]\nexpiry = "7d"\n'


def test_unsaved_settings_count_for_documents(editor: Editor) -> None:
    text = "pipeline: a\nsteps:\n  - agent: {prompt: Say it., identity: reviewer, output: x}\n"
    editor.open("a.yaml", text)
    before = editor.codes("a.yaml")
    editor.open(FILE, '[agents.reviewer]\nmodel = "openai:x"\n')
    assert list(load_settings(find_workspace(editor.folder)).agents) == ["reviewer"]
    assert len(editor.codes("a.yaml")) == len(before) - 1


def test_settings_that_are_not_open_are_checked_as_well(editor: Editor) -> None:
    editor.write(FILE, "[runs]\nfoo = 1\n")
    editor.tell("workspace/didChangeWatchedFiles", {"changes": []})
    assert editor.codes(FILE) == ["CF002"]


def test_the_users_own_file_may_have_more(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIRE_HOME", str(editor.folder))
    editor.open(FILE, "[sandbox]\nmemory = 5\n")
    assert editor.codes(FILE) == []
    editor.replace(FILE, '[tools]\nmodules = ["x"]\n')
    assert editor.codes(FILE) == ["CF004"]
