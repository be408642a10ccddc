"""Eight stories of the page in a real Firefox: it reads, answers, follows, edits and draws there as in Chromium."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.firefox import PROGRAM, WITHOUT_FIREFOX, Firefox, firefox
from tests.server.served import Served, served
from tests.server.team_workspace import ordinary_day, write_documents
from tests.server.test_editor import NOTES, SOURCE
from tests.server.test_run_page import WAITS
from tests.server.test_stories import GATE

from quire.server.site import SiteOptions

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOOKS = """(({ scrollWidth, clientWidth }) =>
  [scrollWidth <= clientWidth, getComputedStyle(document.body).backgroundColor])(document.documentElement)"""
DOCUMENT = SOURCE.partition("?")[0]
CHOSEN = ".tree-row[aria-selected=true]"


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def fox(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Firefox]:
    if PROGRAM is None:
        pytest.skip(WITHOUT_FIREFOX)
    async with firefox(tmp_path_factory.mktemp("firefox")) as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def team(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Served, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("fox") / "team"
    folder.mkdir()
    write_documents(folder)
    async with served(folder, {}) as server:
        yield server, await ordinary_day(server.site.runtime)


async def test_faults_of_a_page_fail_its_test(fox: Firefox, team: tuple[Served, dict[str, str]]) -> None:
    with pytest.raises(AssertionError) as faults:
        async with fox.tab(team[0].url) as tab:
            await tab.find("h1", "Now")
            await tab.value("document.body.setAttribute('style', 'color: red')")
            await tab.value("setTimeout(() => { throw new Error('a bug') })")
            await tab.value("void (location = 'http://127.0.0.2/')")
            async with asyncio.timeout(10):
                while len(fox.faults) < 3:
                    await asyncio.sleep(0.01)
    style, bug, request = str(faults.value).splitlines()
    assert "an inline style" in style
    assert "a bug" in bug
    assert request == "a request left for http://127.0.0.2/"


async def _ask(server: Served, subject: str) -> str:
    model = server.script("gate.json", [{"default": "The report."}])
    return str((await server.start("gate.playbook.md", inputs={"subject": subject}, model=model))["id"])


async def _open(server: Served, count: int) -> None:
    """Wait until so many questions are open."""
    async with asyncio.timeout(20):
        while len(await server.site.runtime.store.questions()) != count:
            await asyncio.sleep(0.01)


async def test_now_shows_questions_with_their_subjects_as_they_come(fox: Firefox, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"gate.playbook.md": GATE}) as server, fox.tab(server.url) as tab:
        await tab.find("main", "Nothing waits for you.")
        for subject in ("search", "login"):
            await _ask(server, subject)
            await tab.find(".question", subject)
        await tab.find(".question", "Go on to the causes?")
        await tab.find(".question", "2 alike")
        async with asyncio.timeout(10):  # the number comes a moment after the questions
            while await tab.value("document.title") != "(2) Quire":
                await asyncio.sleep(0.03)
        assert await tab.value("location.href") == f"http://{server.place}/"


async def test_an_answer_is_undone_and_one_is_sent_after_a_while(fox: Firefox, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"gate.playbook.md": GATE}) as server:
        for subject in ("search", "login"):
            await _ask(server, subject)
        await _open(server, 2)
        async with fox.tab(server.url) as tab:
            await tab.click(".asked button", "Yes")
            await asyncio.sleep(0.5)  # a second click at once is part of a double click
            await tab.click(".held button", "Undo")
            await tab.gone(".held")
            await tab.click(".asked button", "Yes")
            await tab.find(".held button", "Undo")
            assert len(await server.site.runtime.store.questions()) == 2, "an answer is held before it is sent"
            await tab.click("nav a", "Documents")
            await _open(server, 1)


async def test_runs_are_listed_and_filtered(fox: Firefox, team: tuple[Served, dict[str, str]]) -> None:
    server, _ = team
    count = len(await server.site.runtime.store.list())
    async with fox.tab(server.at("/runs")) as tab:
        await tab.find(".run-row", "ticket")
        assert await tab.value("document.querySelectorAll('.run-row .run-link').length") == count
        await tab.click("input[type=search]")
        await tab.type("tickets")
        await tab.gone(".run-row", "Incident")
        await tab.find(".run-row", "ticket")
        assert await tab.value("document.querySelectorAll('.run-row .run-link').length") == 1
        assert await tab.value("location.search") == "?q=tickets"
        await tab.click(".run-row .run-link", "ticket")
        await tab.find("h1", "40 tickets")
        await tab.value("history.back()")
        await tab.find(".run-row", "ticket")
        assert await tab.value("document.querySelector('input[type=search]').value") == "tickets"


async def test_the_tree_of_a_run_is_read_by_keyboard(fox: Firefox, team: tuple[Served, dict[str, str]]) -> None:
    server, runs = team
    async with fox.tab(server.at(f"/runs/{runs['done']}")) as tab:
        await tab.find(".pane .markup h1", "Incident report: login")
        await tab.click(CHOSEN, "Result")
        for key, row in (("j", "Assess"), ("ArrowDown", "Reply"), ("ArrowLeft", "Assess"), ("Home", "Result")):
            await tab.press(key)
            await tab.find(CHOSEN, row)
        await tab.press("j")
        await tab.press("ArrowLeft")
        await tab.gone(".tree-row", "Message to the management")
        await tab.press("ArrowRight")
        await tab.find(".tree-row", "Message to the management")
        await tab.press("End")
        await tab.press("Enter")
        await tab.find("#pane-title:focus", "The report")
        await tab.find(".tabs [aria-current]", "Reply")
        await tab.find(".pane .markup", "certificate")
        await tab.click(".tabs a", "Raw")
        await tab.find(".pane-body", "/model")


async def test_a_run_is_followed_to_its_result(fox: Firefox, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"waits.playbook.md": WAITS}) as server:
        model = server.script("s.json", [{"default": "All is done.", "delay_ms": 700}])
        run = await server.start("waits.playbook.md", model=model)
        async with fox.tab(server.at(f"/runs/{run['id']}")) as tab:
            await tab.find("button[aria-pressed=true]", "Follow")
            for row in ("Second", "Third", "Result"):
                await tab.find(CHOSEN, row)
            await tab.find(".pane", "All is done.")
            await tab.gone("button", "Follow")


async def test_a_document_is_edited_in_its_source(fox: Firefox, tmp_path: Path) -> None:
    documents, options = {"notes.playbook.md": NOTES}, SiteOptions(edit=True)
    async with served(tmp_path / "team", documents, options=options) as server, fox.tab(server.at(DOCUMENT)) as tab:
        for name in ("Proof", "Runs & tests", "Source"):
            await tab.click(".tabs a", name)
            await tab.find(".tabs [aria-current]", name)
        await tab.find(".cm-lintRange-warning", "{{verson}}")
        assert await tab.value("document.querySelectorAll('.cm-content').length") == 0, "it is in a shadow root"
        await tab.click(".doc-finding-warn button", "Replace verson with version")
        await tab.find(".cm-content", "{{version}}")
        await tab.press("Control+End")
        await tab.type("Be brief about {{ver")
        await tab.click(".cm-tooltip-autocomplete [role=option]", "version")
        await tab.find(".cm-activeLine", "Be brief about {{version")
        await tab.press("Escape")
        await tab.press("Control+s")
        await tab.gone("aside", "not saved")
        await tab.find("aside", "saved ·")
        text = (server.folder / "notes.playbook.md").read_text()
        assert text.startswith(NOTES.replace("verson", "version") + "Be brief about {{version")


async def test_a_run_is_forked_with_another_input_and_done_again(
    fox: Firefox, team: tuple[Served, dict[str, str]]
) -> None:
    server, runs = team
    async with fox.tab(server.at(f"/runs/{runs['done']}/fork?from=1")) as tab:
        await tab.click("#field-customers")
        await tab.press("Control+a")
        await tab.type("7")
        await tab.find(".command", "--set customers=7")
        await tab.click("button", "Start the fork")
        await tab.click("button", "Run again")
        await tab.find("#input-customers", "7")
        await tab.click("button", "Start the run")
        await tab.gone("#input-customers")
        await tab.find(".tree-row", "Assess")
    newest, forked, *_ = await server.site.runtime.store.list()
    assert {newest.id, forked.id}.isdisjoint(runs.values())
    assert str(newest.pins["inputs"]["customers"]) == "7"  # type: ignore[call-overload, index]


async def test_screens_in_the_dark_on_a_phone_do_not_scroll_sideways(
    fox: Firefox, team: tuple[Served, dict[str, str]]
) -> None:
    server, runs = team
    screens = {
        "/": "The day",
        "/runs": "ticket",
        f"/runs/{runs['done']}": "Incident report: login",
        f"/runs/{runs['triage']}": "Failed 6",
        f"/runs/{runs['done']}/fork": "Start the fork",
        "/documents": "ticket-triage.yaml",
        "/documents/ticket-triage.yaml": "Sorts the tickets",
        "/documents/ticket-triage.yaml?tab=source": "max_parallel",
        "/documents/ticket-triage.yaml?tab=proof": "model calls",
    }
    async with fox.tab(server.url, width=390, height=844) as tab:
        await tab.click("button", "More")
        await tab.click("dialog button", "Dark theme")
        await tab.press("Escape")
        for path, text in screens.items():
            await tab.go(server.at(path))
            await tab.find("main, .cm-content", text)
            fits, colour = await tab.value(LOOKS)
            assert (path, fits, max(map(int, re.findall(r"\d+", colour))) < 60) == (path, True, True)
