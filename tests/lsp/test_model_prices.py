"""The price of a document in lens and hover: read in another process, the same as in `quire show`, never guessed."""

from __future__ import annotations

import datetime
import time
from pathlib import Path

import pytest
from tests.given import given
from tests.lsp.editor import CAPABILITIES, Editor
from tests.lsp.language_server import language_server

from quire.cli import main
from quire.lsp.desk import uri_of
from quire.lsp.last_runs import ModelPrices

ASKS = """\
pipeline: asks
dialect: quire
steps:
  - agent: {prompt: Say something., model: "MODEL", capabilities: {tools: []}}
"""
OWN = """\
[models.prices."openai:gpt-4o-mini"]
input = 2
output = 3
"""


def asks(model: str) -> str:
    return ASKS.replace("MODEL", model)


def bound(editor: Editor, name: str) -> str:
    """Return the lens with the bound of a document."""
    found = editor.ask("textDocument/codeLens", {"textDocument": {"uri": editor.uri(name)}})
    return next(one["command"]["title"] for one in found if one["command"]["command"] == "quire.showProof")


def test_a_listed_price_is_shown_once_it_was_read(editor: Editor) -> None:
    editor.open("a.yaml", asks("openai:gpt-4o-mini"))
    request = editor.begin("textDocument/codeLens", {"textDocument": {"uri": editor.uri("a.yaml")}})
    editor.session.work()
    assert editor.session.desk.prices.is_due, "the first answer does not wait for the list"
    titles = [one["command"]["title"] for one in editor.answer(request)["result"]]
    assert "1 call" in titles
    shown = bound(editor, "a.yaml")
    assert shown.startswith(("1 call, ~ $0.0", "1 call, ≤ $0.0")), shown


def test_the_editor_is_told_to_ask_again(editor: Editor) -> None:
    able = {**CAPABILITIES, "workspace": {**CAPABILITIES["workspace"], "codeLens": {"refreshSupport": True}}}
    other = Editor(editor.folder, able)
    other.open("a.yaml", asks("openai:gpt-4o-mini"))
    bound(other, "a.yaml")
    assert [one["method"] for one in other.messages].count("workspace/codeLens/refresh") == 1
    bound(other, "a.yaml")
    assert [one["method"] for one in other.messages].count("workspace/codeLens/refresh") == 1, "nothing is new"


def test_a_real_server_reads_prices_although_a_copy_of_it_makes_the_lenses(editor: Editor) -> None:
    path = editor.folder / "a.yaml"
    request = {"textDocument": {"uri": uri_of(str(path))}}
    with language_server(editor.folder) as server:
        server.begin(editor.folder, {"workspace": {"codeLens": {"refreshSupport": True}}})
        server.open(path, asks("openai:gpt-4o-mini"))
        titles: list[str] = []
        until = time.monotonic() + 30
        while not any(one.startswith("1 call, ") for one in titles) and time.monotonic() < until:
            titles = [one["command"]["title"] for one in server.ask("textDocument/codeLens", request)]
        assert any(one.startswith("1 call, ") and "$0.0" in one for one in titles), titles
        assert "workspace/codeLens/refresh" in [one.get("method") for one in server.told]


def test_prices_that_are_being_read_are_not_read_twice(editor: Editor) -> None:
    editor.open("a.yaml", asks("openai:gpt-4o-mini"))
    view = editor.session.desk.view(editor.uri("a.yaml"))
    assert view is not None
    prices = ModelPrices()
    prices.words(view)
    wanted = dict(prices.wanted)
    job = prices.next()
    assert job is not None
    prices.want(wanted)
    job.done(job.run())
    prices.want(wanted)
    assert not prices.is_due


def test_prices_of_the_user_follow_their_file(editor: Editor, tmp_path: Path) -> None:
    home = tmp_path / "home"
    given({"quire.toml": OWN}, home)
    editor.open("a.yaml", asks("openai:gpt-4o-mini"))
    bound(editor, "a.yaml")
    before = bound(editor, "a.yaml")
    assert before.startswith("1 call, ≤ $0.06"), before
    (home / "quire.toml").write_text(OWN.replace("input = 2", "input = 200").replace("output = 3", "output = 300"))
    editor.session.desk.forget_places()
    bound(editor, "a.yaml")
    assert bound(editor, "a.yaml") != before


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("house:unheard-of", "1 call, unpriced"),
        ("local:small", "1 call, free"),
        ("openai:gpt-0-that-never-was", "1 call, unpriced"),
    ],
)
def test_a_price_that_is_not_known_is_not_a_number(editor: Editor, model: str, words: str) -> None:
    editor.open("a.yaml", asks(model))
    bound(editor, "a.yaml")
    assert bound(editor, "a.yaml") == words


def test_a_document_without_a_model_is_unpriced(editor: Editor) -> None:
    editor.open("a.playbook.md", "# A\n\n## STEP 1: Say\n\nSay it.\n")
    assert bound(editor, "a.playbook.md") == "1 call, unpriced"
    assert not editor.session.desk.prices.is_due


DIRECTIVE = """\
# Greet

```xml
<directive name="greet" version="1.0.0">
  <metadata>
    <description>Greets.</description>
    <category>team</category>
    <author>t</author>
    <model tier="low" />
    <limits turns="4" tokens="8000" spend="0.05" />
    <permissions></permissions>
  </metadata>
  <process>
    <step name="a"><action>Say hello.</action></step>
  </process>
</directive>
```
"""


@pytest.mark.parametrize(
    ("settings", "money"),
    [
        pytest.param("", "unpriced", id="no model"),
        pytest.param('[models.tiers]\nlow = "house:unheard-of"\n', "unpriced", id="a model without a price"),
        pytest.param('[models.tiers]\nlow = "openai:gpt-4o-mini"\n', "≤ $0.05", id="the limit of spend"),
        pytest.param('[models.tiers]\nlow = "local:small"\n', "free", id="a model of this machine"),
    ],
)
def test_lens_hover_and_show_say_the_same_of_a_directive(
    editor: Editor, tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: str, money: str
) -> None:
    name = ".ai/directives/team/greet.md"
    home = tmp_path / "home"
    given({"quire.toml": settings + OWN.replace("= 2", "= 2000").replace("= 3", "= 3000")}, home)
    path = editor.write(name, DIRECTIVE)
    editor.open(name, DIRECTIVE)
    bound(editor, name)
    assert bound(editor, name) == f"at most 4 model calls, {money}"
    assert f"- at most 4 model calls, {money}\n" in editor.hover(name, DIRECTIVE.replace("# G", "# G‸"))
    assert main(["show", "--bounds", str(path)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  money ")]
    assert line.removeprefix("  money ").lstrip().startswith(money)


def test_a_reader_that_dies_leaves_no_price_and_is_not_asked_again_today(editor: Editor) -> None:
    day = datetime.date(2026, 11, 17)
    prices = ModelPrices(lambda: day)
    editor.open("a.yaml", asks("openai:gpt-4o-mini"))
    view = editor.session.desk.view(editor.uri("a.yaml"))
    assert view is not None and prices.words(view) == ""
    job = prices.next()
    assert job is not None and not prices.is_due and prices.next() is None
    job.done(None)
    assert prices.words(view) == "" and not prices.is_due
    day += datetime.timedelta(days=1)
    assert prices.words(view) == "" and prices.is_due
