"""Shares: a link opens exactly one run, read-only, until it expires or is revoked."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from playwright.async_api import expect
from tests.browser import Pages, axe
from tests.server.served import Served, served

from quire.operations import OPERATIONS
from quire.runs.shares import PREFIX, Shares

pytestmark = pytest.mark.asyncio(loop_scope="session")

HELLO = "# Hello\n\n## STEP 1: Greet\n\nSay hello. A secret of the prompt.\n"
ASKS = '# Ask\n\n## STEP 1: Decide\n\n@elicit(confirm, "Go on?")\n'
SHARED = {"show_run", "show_tree", "read_text", "show_artifact", "run_events"}


class Guest(httpx2.AsyncClient):
    """A client with the token of a share."""

    def __init__(self, server: Served, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        super().__init__(base_url=f"http://{server.place}/api/v1", headers=headers, timeout=30)


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder = tmp_path_factory.mktemp("shared") / "team"
    async with served(folder, {"hello.playbook.md": HELLO, "ask.playbook.md": ASKS}) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def runs(server: Served) -> list[str]:
    """Two runs that have ended."""
    model = server.script("hello.json", ["Hello, Ann."])
    ids = [(await server.start("hello.playbook.md", model=model))["id"] for _ in range(2)]
    for run in ids:
        while (await server.read(f"/runs/{run}"))["status"] != "completed":
            await asyncio.sleep(0.02)
    return ids


async def share(server: Served, run: str, **body: Any) -> dict[str, Any]:
    async with server.client() as client:
        answer = await client.post(f"/runs/{run}/shares", json=body)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made


async def test_the_operations_that_a_share_opens() -> None:
    shared = [operation for operation in OPERATIONS if operation.shared]
    assert {operation.name for operation in shared} == SHARED
    assert all(operation.cost == "FREE" and operation.http.startswith("GET /runs/{run}") for operation in shared)


async def test_a_share_opens_its_run_and_says_no_prompt(server: Served, runs: list[str]) -> None:
    made = await share(server, runs[0], days=3)
    assert made["token"].startswith(PREFIX) and made["expires_at"] - made["created_at"] == 3 * 86_400
    assert made["by"] == "web" and made["path"] == f"s/{runs[0]}#{made['token']}"
    async with Guest(server, made["token"]) as guest:
        answers = [
            await guest.get(f"/runs/{runs[0]}{rest}") for rest in ("", "/tree", "/text/1", "/artifact", "/events")
        ]
    assert [answer.status_code for answer in answers] == [200] * 5
    assert answers[2].json()["text"] == "Hello, Ann."
    assert not any("secret of the prompt" in answer.text for answer in answers)


async def test_it_opens_nothing_else(server: Served, runs: list[str]) -> None:
    """Every operation with another run, and every one that is not shared, is the same 404."""
    token = (await share(server, runs[0]))["token"]
    async with Guest(server, token) as guest:
        for operation in OPERATIONS:
            if not operation.http:
                continue
            method, path = operation.http.split(" ")
            for run in (runs[0], runs[1], "last", runs[0][:12]):
                at = re.sub(r"\{\w+(:path)?\}", "1", path.replace("{run}", run).replace("{a}", run).replace("{b}", run))
                answer = await guest.request(method, at, content="{}" if method != "GET" else None)
                opened = operation.shared and run == runs[0]
                assert (answer.status_code == 200) == opened, (operation.name, at, answer.text)
                if not opened:
                    assert answer.status_code == 404 and answer.json()["code"] == "no-such-share"
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert (await guest.request(method, f"/runs/{runs[0]}", content="{}")).status_code == 404
        for at in (f"/runs/{runs[0]}/", f"/runs/{runs[0]}/../{runs[1]}", f"/runs/{runs[1]}%2f..%2f{runs[0]}", "/none"):
            assert (await guest.get(at)).status_code == 404


def _made_old(server: Served, id: str) -> None:
    (file,) = server.site.runtime.settings.user.glob(f"shares/*/{id}.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "expires_at": time.time() - 1}))


async def test_wrong_expired_and_revoked_are_the_same(server: Served, runs: list[str]) -> None:
    expired, revoked, whole = [await share(server, runs[0]) for _ in range(3)]
    async with server.client() as client:
        answer = await client.delete(f"/shares/{revoked['id']}", headers={"Content-Type": "application/json"})
        assert answer.json() == {"revoked": revoked["id"]}
        assert (await client.delete("/shares/..%2f..", headers={"Content-Type": "application/json"})).status_code == 404
    _made_old(server, expired["id"])
    tokens = [PREFIX + "x" * 43, expired["token"], revoked["token"], whole["token"][:-1] + "~"]
    bodies: set[bytes] = set()
    times: list[float] = []
    for token in tokens:
        async with Guest(server, token) as guest:
            await guest.get("/runs/none")
            took: list[float] = []
            for _ in range(60):
                began = time.perf_counter()
                answer = await guest.get(f"/runs/{runs[0]}")
                took.append(time.perf_counter() - began)
            times.append(min(took))  # what else the machine does makes single requests longer
            assert answer.status_code == 404
            bodies.add(answer.content)
    assert len(bodies) == 1
    assert max(times) < 2 * min(times), times
    listed = await server.read(f"/runs/{runs[0]}/shares")
    ids = {one["id"] for one in listed["items"]}
    assert whole["id"] in ids and not ids & {expired["id"], revoked["id"]}
    assert not any("token" in one or "hash" in one for one in listed["items"])


async def test_the_file_opens_nothing_and_lies_in_the_users_folder(server: Served, runs: list[str]) -> None:
    made = await share(server, runs[0])
    (file,) = server.site.runtime.settings.user.glob(f"shares/*/{made['id']}.json")
    text = file.read_text()
    assert made["token"] not in text and file.stat().st_mode & 0o077 == 0
    assert not any(made["id"] in str(path) for path in server.folder.rglob("*"))
    for token in (json.loads(text)["hash"], PREFIX + json.loads(text)["hash"]):
        async with Guest(server, token) as guest:
            assert (await guest.get(f"/runs/{runs[0]}")).status_code in (401, 404)
    assert not Shares(server.site.runtime.settings).opens("share-\udcff", runs[0])


@pytest.mark.parametrize("days", [0, 91, 1.5, "7", -1])
async def test_days_are_from_1_to_90(server: Served, runs: list[str], days: object) -> None:
    async with server.client() as client:
        assert (await client.post(f"/runs/{runs[0]}/shares", json={"days": days})).status_code == 422


async def test_a_stream_ends_when_its_share_is_revoked(server: Served) -> None:
    run = (await server.start("ask.playbook.md"))["id"]
    made = await share(server, run)
    async with Guest(server, made["token"]) as guest:
        stream = guest.stream("GET", f"/runs/{run}/events", headers={"Accept": "text/event-stream"})
        async with stream as answer:
            assert answer.status_code == 200
            pieces = answer.aiter_bytes()
            assert b"retry" in await anext(pieces)
            assert Shares(server.site.runtime.settings).revoke(made["id"])
            rest = b""
            async with server.client() as client:
                await client.patch(f"/runs/{run}", json={"name": "Not for guests"})
                question = (await server.read("/questions"))["items"][0]
                answer_at = f"/questions/{run}/{question['path']}/answer"
                assert (await client.post(answer_at, json={"value": "yes", "hash": question["hash"]})).is_success
            async for piece in pieces:
                rest += piece
    assert b"run_completed" not in rest


async def test_a_link_from_the_page_shows_the_run_to_a_guest(server: Served, runs: list[str], pages: Pages) -> None:
    page = await pages.open(server.at(f"/runs/{runs[1]}"))
    await page.get_by_role("button", name="Share").click()
    await page.get_by_label("Days").fill("2")
    await page.get_by_role("button", name="Make a link").click()
    link = await page.get_by_label("Link").input_value()
    assert re.fullmatch(rf"http://{server.place}/s/{runs[1]}#{PREFIX}[\w-]{{43}}", link)
    await expect(page.get_by_text("Only this machine can open this address")).to_be_visible()
    assert await axe(page) == []
    async with page.expect_download() as download:
        await page.get_by_role("button", name="HTML file").click()
    assert (await download.value).suggested_filename == f"{runs[1]}.html"

    guest = await pages.open(link)
    asked: list[str] = []
    guest.on("request", lambda request: asked.append(request.url))
    await expect(guest.get_by_role("heading", level=1)).to_be_visible()
    await expect(guest.get_by_role("treeitem")).to_have_count(2)
    await guest.get_by_role("treeitem").nth(1).click()
    await expect(guest.get_by_role("region", name="Text")).to_contain_text("Hello, Ann.")
    assert PREFIX not in guest.url and await guest.evaluate("localStorage.length") == 0
    assert await guest.get_by_role("button", name=re.compile("Fork|Resume|Answer|Cancel|Share|Name")).count() == 0
    assert await axe(guest) == []
    await guest.reload()
    await expect(guest.get_by_role("treeitem")).to_have_count(2)

    await page.get_by_role("button", name="Revoke").first.click()
    await expect(page.get_by_role("button", name="Revoke")).to_have_count(0)
    await guest.reload()
    await expect(guest.get_by_role("heading", name="This link shows nothing")).to_be_visible()
    assert not any(re.search("/events|/steps/|/values|/document|/questions|/now", url) for url in asked)
    pages.expect_fault("404")
    pages.expect_fault("404")
