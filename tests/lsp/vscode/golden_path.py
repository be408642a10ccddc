"""One way through all that the extension gives, in a trusted folder. Each station begins without an open editor."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

from playwright.sync_api import expect
from tests.lsp.vscode.window import Window, eventually

PLAYBOOK, TEST = "reply.playbook.md", "reply.test.yaml"


def findings(window: Window) -> None:
    window.open(PLAYBOOK)
    window.press("Control+Shift+M")
    problems = window.page.locator(".markers-panel")
    expect(problems).to_contain_text("Nothing sets {{mesage}}")
    expect(problems).to_contain_text("PB201")
    expect(problems).to_contain_text("did you mean {{message}}?")
    window.press("Control+1")
    window.place("{{mesa")
    expect(window.editor.locator(".squiggly-warning")).to_be_visible()
    window.picture("problems", documented=True)


def hover(window: Window) -> None:
    window.open(PLAYBOOK)
    window.place("STEP 2: Dr")
    window.press("Control+k", "Control+i")
    shown = window.page.locator(".monaco-hover:not(.workbench-hover):visible").first
    expect(shown).to_contain_text("Sent to the model")
    # The prompt is composed: the instructions of another section, the label of an earlier step, its output.
    expect(shown).to_contain_text("You answer customers of a bookshop")
    expect(shown).to_contain_text("[Step 1: Classify]")
    expect(shown).to_contain_text("[output of step 1]")
    window.picture("hover", documented=True)
    window.press("Escape")


def completion(window: Window) -> None:
    window.open(PLAYBOOK)
    window.place("{{mesage}}")
    window.page.keyboard.type(" {{")
    offered = window.page.locator(".suggest-widget:visible")
    # Only what is known at this step: `draft` is kept by the step itself.
    options = offered.get_by_role("option")
    expect(options).to_contain_text(["kind", "message", "tone"])
    expect(options).to_have_count(3)
    window.picture("completion", documented=True)
    window.press("Enter")
    expect(window.editor.locator(".view-line", has_text="reply to this")).to_have_text(
        re.compile(r"\{\{mesage\}\}\s\{\{kind\}\}$")
    )
    window.command("File: Revert File")
    expect(window.editor).not_to_contain_text("{{mesage}} {{kind}}")


def quick_fix(window: Window) -> None:
    window.open(PLAYBOOK)
    window.place("{{mesa")
    expect(window.editor.locator(".squiggly-warning")).to_be_visible()
    window.press("Control+.")
    offered = window.page.locator(".action-widget")
    expect(offered.get_by_role("option").first).to_contain_text("Replace mesage with message")
    window.picture("quick-fix", documented=True)
    window.press("Enter")
    expect(window.editor).to_contain_text("{{kind}}: {{message}}")
    _saved(window, PLAYBOOK, "{{kind}}: {{message}}")
    window.press("Control+Shift+M")
    expect(window.page.locator(".markers-panel")).to_contain_text("No problems have been detected")


def lenses(window: Window) -> None:
    window.open(PLAYBOOK)
    window.press("Control+Home")
    lens = window.editor.locator(".codelens-decoration a")
    expect(lens.filter(has_text=re.compile(r"^Test \(3 cases\)$"))).to_be_visible()
    window.picture("lenses")
    lens.filter(has_text="Test (3 cases)").click()
    expect(window.messages).to_contain_text("1 of 3 cases passed; failed: a complaint gets an apology")
    expect(lens.filter(has_text="1 ✓ 1 ✗")).to_be_visible()
    window.command("Notifications: Clear All Notifications")
    lens.filter(has_text="Prompt").first.click()
    _text_beside(window, "Prompt of step 1 in reply.playbook.md", "--- user ---", "What kind of message is this?")


def rename(window: Window) -> None:
    """A rename of a kept result follows into the condition and the test, and leaves the word in the prose."""
    window.open(PLAYBOOK)
    texts = {name: (window.folder / name).read_text() for name in (PLAYBOOK, TEST)}
    window.place("@output(ki")
    window.press("F2")
    box = window.page.locator(".rename-box input")
    expect(box).to_have_value("kind")
    box.fill("category")
    window.press("End")
    window.picture("rename", documented=True)
    window.press("Enter")
    expect(window.editor).to_contain_text("{{category}}")
    window.press("Control+k", "s")
    eventually(lambda: all("category" in (window.folder / name).read_text() for name in texts), "not all was saved")
    changed = texts[PLAYBOOK].replace("(kind:", "(category:").replace("{{kind}}", "{{category}}")
    assert (window.folder / PLAYBOOK).read_text() == changed.replace("if kind ==", "if category ==")
    assert (window.folder / TEST).read_text() == texts[TEST].replace("{kind: question}", "{category: question}")


def formatting(window: Window) -> None:
    window.open(PLAYBOOK)
    text = (window.folder / PLAYBOOK).read_text()
    window.place("@output(draft: text")
    window.press("Home", "Shift+End")
    window.page.keyboard.insert_text("  @output(draft:TEXT)")
    window.command("Format Document")
    expect(window.editor).not_to_contain_text("draft:TEXT")
    _saved(window, PLAYBOOK, "@output(draft: text)")
    assert (window.folder / PLAYBOOK).read_text() == text


def tests(window: Window) -> None:
    window.open(TEST)
    window.command("Testing: Focus on Test Explorer View")
    row = window.page.locator(".test-explorer .monaco-list-row")
    row.filter(has_text=TEST).locator(".monaco-tl-twistie").click()
    expect(row.filter(has_text="a question is answered shortly")).to_be_visible()
    window.command("Test: Run All Tests")
    expect(row.filter(has_text="a question")).to_have_attribute("aria-label", re.compile("Passed"))
    expect(row.filter(has_text="a complaint")).to_have_attribute("aria-label", re.compile("Failed"))
    expect(row.filter(has_text="in French")).to_have_attribute("aria-label", re.compile("Skipped"))
    message = window.page.locator(".test-error-content-widget")
    expect(message).to_contain_text("Sorry! We send a new one.")
    beside = window.editor.locator(".view-line", has_text="output: We are sorry!").bounding_box()
    place = message.bounding_box()
    assert beside is not None and place is not None and abs(place["y"] - beside["y"]) < 10, (place, beside)
    window.picture("testing", documented=True)
    # The server knows the results too, which were older than the last changes of the files.
    window.press("Control+Home")
    lens = window.editor.locator(".codelens-decoration a")
    expect(lens.filter(has_text=re.compile(r"^Run all \(1 ✓ 1 ✗\)$"))).to_be_visible()


def colours(window: Window) -> None:
    """Ask VS Code for the scopes of the grammars and the kinds of the server's tokens."""
    window.open(PLAYBOOK)
    window.command("Developer: Inspect Editor Tokens and Scopes")
    for place, scope, kind in (
        ("## ST", "keyword.other.quire", "keyword"),
        ("{{mess", "variable.other.quire", "parameter"),
        ("@out", "entity.name.function.quire", "decorator"),
        ("```i", "keyword.control.conditional.quire", "keyword"),
        ('== "comp', "string.quoted.quire", "string"),
        ("### ST", "keyword.other.quire", "keyword"),
    ):
        _scopes(window, place, scope, kind)
    window.press("Escape")
    window.open("digest.yaml")
    window.command("Developer: Inspect Editor Tokens and Scopes")
    for place, scope, kind in (
        ("for {it", "variable.other.quire", "variable"),
        ("over: ct", "variable.language.quire", "parameter"),
        ("!exp", "storage.type.tag.quire", "macro"),
        ("!expr js", "support.function.quire", "function"),
    ):
        _scopes(window, place, scope, kind)
    window.press("Escape")
    window.picture("colours")


def run(window: Window) -> None:
    """The command stands in a terminal, once, and is not sent."""
    window.open(PLAYBOOK)
    window.command("Quire: Run This Document")
    expect(window.terminal).to_contain_text(".venv/bin/quire run reply.playbook.md")
    window.page.keyboard.type(" --budget 1")
    expect(window.terminal).to_contain_text("reply.playbook.md --budget 1")
    window.command("Quire: Run This Document")
    expect(window.terminal).not_to_contain_text("--budget")
    expect(window.terminal).to_contain_text(re.compile(r"[#$] \.venv/bin/quire run reply\.playbook\.md\s*$"))
    window.picture("run")
    expect(window.page.locator(".terminal-tabs-entry")).to_have_count(0)  # one terminal needs no list of them
    assert len(_json(window, "runs", "--json")) == 2, "the run was started"
    window.press("Enter")
    expect(window.terminal).to_contain_text("no model is configured")  # it offers one: now it was sent
    window.press("Control+c")


def test_command(window: Window) -> None:
    window.open(PLAYBOOK)
    window.command("Quire: Test This Document")
    expect(window.terminal).to_contain_text("1 failed, 1 passed, 1 skipped")
    window.picture("test-command")


def shown(window: Window) -> None:
    window.open(PLAYBOOK)
    window.place("STEP 2: Dr")
    window.command("Quire: Show the Prompt of a Step")
    box = window.page.locator(".quick-input-widget:visible input[type=text]")
    expect(box).to_have_value("2")
    window.press("Enter")
    _text_beside(window, "Prompt of step 2 in reply.playbook.md", "[output of step 1]", "--- user ---")
    window.command("Quire: Show What It Can Cost and Touch")
    _text_beside(window, "Bounds of reply.playbook.txt", "model calls")


def graph(window: Window) -> None:
    window.open(PLAYBOOK)
    window.command("Quire: Show the Graph")
    frame = window.page.frame_locator("iframe.webview").frame_locator("iframe#active-frame")
    image = frame.get_by_role("img", name="The graph of the document")
    expect(image).to_be_visible()
    width = image.evaluate("async image => { await image.decode(); return image.naturalWidth }")
    assert width > 100, "the graph is empty"
    window.picture("graph")


def inbox(window: Window) -> None:
    """A question is answered by a click on its row; its run continues, and is listed as completed."""
    window.command("Quire: Focus on Questions and Runs View")
    rows = window.page.locator(".pane-body .monaco-list-row")
    waiting = rows.filter(has_text="When do the replies go out?")
    expect(waiting).to_have_count(2)
    expect(rows.filter(has_text="awaiting input")).to_have_count(2)
    window.picture("inbox", documented=True)
    window.rest_mouse()
    waiting.first.click()
    window.answer("tomorrow")
    expect(waiting).to_have_count(1)
    expect(rows.filter(has_text="completed")).to_have_count(1)
    expect(window.page.locator(".statusbar-item[aria-label*='waiting for you']")).to_have_text(re.compile(r"^\s*1$"))
    assert len(_json(window, "inbox", "--json")) == 1
    window.rest_mouse()
    rows.filter(has_text="completed").click()
    _text_beside(window, "Run ", "completed", "tomorrow")


def answer(window: Window) -> None:
    window.command("Quire: Answer a Question")
    window.answer("When do the replies")
    window.answer("now")
    eventually(lambda: _json(window, "inbox", "--json") == [], "the answer did not arrive")
    window.picture("answer")
    window.command("Quire: Answer a Question")
    expect(window.messages).to_contain_text("no question is waiting for an answer")


def new_playbook(window: Window) -> None:
    window.command("Quire: New Playbook")
    window.answer("fresh")
    expect(window.page.locator(".tab.active", has_text="fresh.playbook.md")).to_be_visible()
    expect(window.editor.locator(".codelens-decoration a").first).to_be_visible()


STATIONS = (
    findings, hover, completion, quick_fix, lenses, rename, formatting, tests, colours, run, test_command, shown, graph,
    inbox, answer, new_playbook,
)  # fmt: skip


def golden_path(window: Window) -> None:
    for station in STATIONS:
        station(window)
        print(f"  {station.__name__}", flush=True)
        window.close_all()


def _saved(window: Window, name: str, text: str) -> None:
    window.press("Control+s")
    eventually(lambda: text in (window.folder / name).read_text(), f"{name} was not saved with {text}")


def _text_beside(window: Window, title: str, *parts: str) -> None:
    """Expect a text in an editor of its own that need not be saved."""
    tab = window.page.locator(".tab.active", has_text=title)
    expect(tab).to_be_visible()
    assert "dirty" not in str(tab.get_attribute("class"))
    for part in parts:
        expect(window.editor).to_contain_text(part)
    window.press("Control+w")
    expect(tab).to_be_hidden()


def _scopes(window: Window, place: str, scope: str, kind: str) -> None:
    window.place(place)
    shown = window.page.locator(".token-inspect-widget")
    expect(shown).to_contain_text(scope)
    expect(shown).to_contain_text(re.compile(rf"semantic token type\s*{kind}"))


def _json(window: Window, *arguments: str) -> Any:
    program = window.folder / ".venv" / "bin" / "quire"
    done = subprocess.run(
        [program, *arguments], cwd=window.folder, env=window.environment, capture_output=True, check=True
    )
    return json.loads(done.stdout)
