"""Search and the gallery of artifacts, on both stores: what is found, in how much time, and what is never found."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect
from tests.browser import Pages, check_looks
from tests.growth import within
from tests.server.served import Served, served
from tests.server.team_workspace import ordinary_day, write_documents

from quire.server import run_index
from quire.server.run_index import Artifact, RunIndex, RunText, match_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _search(server: Served, text: str, *places: str) -> Any:
    async with server.client() as client:
        answer = await client.get("/search", params={"q": text, "in": list(places)})
        assert answer.status_code == 200, answer.text
        return answer.json()


async def _artifacts(server: Served, **parameters: str) -> Any:
    async with server.client() as client:
        answer = await client.get("/artifacts", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()


async def test_everything_is_found_by_plain_words(tmp_path: Path, settings: str) -> None:
    async with served(tmp_path / "team", {}, settings=settings) as server:
        write_documents(server.folder)
        runs = await ordinary_day(server.site.runtime)
        found = (await _search(server, "incident"))["found"]
        assert [one["id"] for one in found["documents"]] == ["incident-report.playbook.md"]
        assert {one["id"] for one in found["runs"]} >= {runs["waiting"], runs["done"]}
        assert (await _search(server, "PB106", "codes"))["found"]["codes"][0]["id"] == "PB106"
        steps = (await _search(server, "review gate", "steps"))["found"]["steps"]
        assert steps[0] | {"path": ""} == {
            "document": "incident-report.playbook.md",
            "path": "",
            "label": "4",
            "title": "Review gate",
        }
        kinds = {hit["kind"] for hit in (await _search(server, "certificate", "texts"))["found"]["texts"]}
        assert kinds & {"reply", "prompt", "input"}
        answers = (await _search(server, "on thursday", "texts"))["found"]["texts"]
        assert ("answer", runs["done"]) in [(hit["kind"], hit["run"]) for hit in answers]
        hit = next(hit for hit in answers if hit["kind"] == "answer")
        assert [part["text"].lower() for part in hit["parts"] if part["found"]] == ["on", "thursday"]
        questions = (await _search(server, "counts as critical causes", "texts"))["found"]["texts"]
        assert "question" in {hit["kind"] for hit in questions}
        assert (await _search(server, "", "texts"))["found"] == {}

        gallery = await _artifacts(server)
        assert gallery["types"]["markdown"] >= 2
        assert {one["run"] for one in gallery["items"]} >= {runs["done"], runs["fork"], runs["release"]}
        first = await _artifacts(server, limit="1", type="markdown")
        second = await _artifacts(server, limit="1", type="markdown", after=first["next"])
        assert first["items"][0]["run"] != second["items"][0]["run"]
        assert first["items"][0]["at"] >= second["items"][0]["at"]


async def test_a_removed_run_and_a_changed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.server.run_index.SECONDS_BETWEEN", -1.0)
    async with served(tmp_path / "team", {}) as server:
        write_documents(server.folder)
        runs = await ordinary_day(server.site.runtime)
        before = (await _search(server, "certificate", "texts"))["found"]["texts"]
        assert before
        await server.site.runtime.answer(runs["waiting"], None, "yes")
        await server.site.runs.go_on(runs["waiting"])
        await server.site.runs.ended(runs["waiting"], 10)
        hits = (await _search(server, "yes", "texts"))["found"]["texts"]
        assert runs["waiting"] in [run for hit in hits if hit["kind"] == "answer" for run in (hit["run"], *hit["also"])]
        async with server.client() as client:
            answer = await client.request(
                "DELETE", f"/runs/{runs['done']}", headers={"Content-Type": "application/json"}
            )
            assert answer.status_code in (200, 204), answer.text
        gone = (await _search(server, "on thursday", "texts"))["found"]["texts"]
        assert runs["done"] not in [run for hit in gone for run in (hit["run"], *hit["also"])]
        assert runs["done"] not in [one["run"] for one in (await _artifacts(server))["items"]]


HOSTILE = (
    '"',
    '"" OR 1',
    "NEAR(a b)",
    "kind:answer",
    "a* AND NOT b",
    "'; DROP TABLE texts; --",
    "(((",
    "\x00\x01",
    "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    "^a",
    "{body} : x",
    "-" * 300,
    "a " * 150,
    "%_\\",
)


@pytest.mark.parametrize("text", HOSTILE)
async def test_no_query_is_more_than_its_words(text: str, tmp_path: Path) -> None:
    index = RunIndex(tmp_path / "user" / "i.db")
    index.put("r", "1", [RunText("reply", "1/model", "plain words")], None)
    hits, whole = index.find(text, 10)
    assert (hits, whole) == ([], True)
    assert len(index.find("pla", 10)[0]) == 1, "the table is there"
    index.close()


async def test_words_are_quoted() -> None:
    assert match_of('say "no" --') == '"say" """no"""*'
    assert match_of(" *** ") == ""


async def test_the_index_is_replaced_when_it_is_damaged_or_of_another_version(tmp_path: Path) -> None:
    path = tmp_path / "user" / "i.db"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(b"this is not a database" * 100)
    index = RunIndex(path)
    assert index.stamps() == {}
    index.put("r", "1", [RunText("reply", "1/model", "plain words")], Artifact("r", "t", "d", "text", 1, "x", 1.0))
    index.put("r", "2", [RunText("reply", "1/model", "other words")], None)
    assert (len(index.find("plain", 9)[0]), len(index.find("other", 9)[0]), index.artifacts()) == (0, 1, [])
    index.close()
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    index = RunIndex(path)
    assert index.stamps() == {}
    index.close()


async def test_a_query_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_index, "SECONDS", 0.05)
    monkeypatch.setattr(run_index, "_STEPS_BETWEEN_LOOKS", 100)
    index = RunIndex(tmp_path / "user" / "i.db")
    for run in range(20):
        index.put(f"r{run}", "1", [RunText("reply", str(at), "words of all kinds " * 200) for at in range(100)], None)
    with within(2):
        hits, whole = index.find("words of all kinds", 10)
    assert whole or len(hits) <= 10
    index.close()


async def test_the_pages_of_search_and_artifacts(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server:
        page = await pages.open(server.at("/artifacts"))
        await expect(page.get_by_text("No run has ended with an artifact yet.")).to_be_visible()
        write_documents(server.folder)
        runs = await ordinary_day(server.site.runtime)
        await page.keyboard.press("/")
        await page.get_by_label("Search").fill("certificate")
        await expect(page.get_by_role("heading", name="Texts of runs")).to_be_visible()
        await expect(page).to_have_url(f"http://{server.place}/search?q=certificate")
        await check_looks(page, "search")
        await page.get_by_label("Search").fill("incident")
        await expect(page.get_by_role("heading", name="Documents")).to_be_visible()
        await page.keyboard.press("ArrowDown")
        await expect(page.get_by_role("link", name="Incident report").first).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(f"http://{server.place}/documents/incident-report.playbook.md")
        await page.keyboard.press("Control+k")
        await page.get_by_label("Search").fill("zzzz <b>nothing</b>")
        await expect(page.get_by_text("Nothing holds all of these words.")).to_be_visible()
        await page.goto(server.at("/artifacts"))
        await expect(page.locator(".artifact")).to_have_count(4)
        await check_looks(page, "artifacts")
        await page.get_by_role("link", name="Versions of incident-report.playbook.md").first.click()
        await expect(page.get_by_role("heading", name="Versions")).to_be_visible()
        await expect(page.locator(".version")).to_have_count(2)
        await check_looks(page, "artifact-versions")
        async with page.expect_download() as download:
            await page.get_by_role("button", name="Download").first.click()
        assert (await download.value).suggested_filename.endswith(".md")
        assert runs["done"] in await page.content()
