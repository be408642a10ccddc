"""Idempotency keys: a request that is sent twice is done once, on every endpoint that starts or changes something."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sqlite3
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.server.served import Served, served

from quire.errors import CannotStart

pytestmark = pytest.mark.asyncio(loop_scope="session")

DOCUMENTS = {
    "ask.playbook.md": '# Ask\n\n## STEP 1: Decide\n\n@elicit(confirm, "Publish?")\n',
    "replies.json": "[]",
}


async def start(server: Served, client: httpx2.AsyncClient, key: str, **body: Any) -> httpx2.Response:
    whole = {"document": "ask.playbook.md", "model": f"script:{server.folder / 'replies.json'}", **body}
    return await client.post("/runs", json=whole, headers={"Idempotency-Key": key})


def forget_replies(server: Served) -> None:
    """Do what a day does."""
    with contextlib.closing(sqlite3.connect(server.folder / ".quire" / "quire.db")) as database, database:
        assert database.execute("DELETE FROM http_replies").rowcount


async def test_the_same_request_gets_the_same_reply(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        first, again = await start(server, client, "k1"), await start(server, client, "k1")
        assert (first.status_code, again.status_code) == (201, 201)
        assert again.content == first.content
        assert again.headers["location"] == first.headers["location"]
        assert "idempotency-replayed" not in first.headers
        assert again.headers["idempotency-replayed"] == "true"
        assert len((await client.get("/runs")).json()["items"]) == 1
        other = await start(server, client, "k1", unattended=True)
        assert (other.status_code, other.json()["code"]) == (422, "key-reused")
        elsewhere = await client.post("/runs/prune", json={"older_than": 1}, headers={"Idempotency-Key": "k1"})
        assert elsewhere.json()["code"] == "key-reused"
        assert (await start(server, client, "k2")).json()["id"] != first.json()["id"]
    # The replies are in the store: another server gives them too.
    async with served(tmp_path / "team", {}) as server, server.client() as client:
        assert (await start(server, client, "k1")).content == first.content


async def test_a_start_is_done_once_also_after_its_reply_is_forgotten(tmp_path: Path) -> None:
    """A server that is killed between the start of a run and its reply, and a client that sends again days later."""
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        first = await start(server, client, "k")
        await server.site.runs.ended(first.json()["id"], 30)
        forget_replies(server)
        again = await start(server, client, "k")
        assert (again.status_code, again.json()["id"]) == (201, first.json()["id"])
        assert again.json()["status"] == "awaiting_input" and "idempotency-replayed" not in again.headers
        forget_replies(server)
        other = await start(server, client, "k", unattended=True)
        assert (other.status_code, other.json()["code"]) == (422, "key-reused")
        assert len((await client.get("/runs")).json()["items"]) == 1


async def test_of_many_at_once_one_starts_a_run(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        answers = await asyncio.gather(*(start(server, client, "k") for _ in range(8)))
        assert len((await client.get("/runs")).json()["items"]) == 1
        assert {(one.status_code, one.json().get("code")) for one in answers} <= {(201, None), (409, "in-progress")}
        assert any(one.status_code == 201 for one in answers)


async def test_a_request_that_started_nothing_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """real-work M7: a 404 was replayed for a day, also after the document existed."""
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        wrong = {"late.playbook.md": 404, "ask.playbook.md": 422}
        for name, status in wrong.items():
            refused = await start(server, client, name, document=name, answers={"9": "yes"})
            assert refused.status_code == status, refused.text
        server.write("late.playbook.md", DOCUMENTS["ask.playbook.md"].replace("STEP 1", "STEP 9"))
        server.write("ask.playbook.md", DOCUMENTS["ask.playbook.md"].replace("STEP 1", "STEP 9"))
        for name in wrong:
            done = await start(server, client, name, document=name, answers={"9": "yes"})
            assert done.status_code == 201, done.text
        # A run that was created and could not go on is not created again.
        before = len((await client.get("/runs")).json()["items"])

        async def go_on(run: str, **options: Any) -> None:
            raise CannotStart("nothing drives it")

        monkeypatch.setattr(server.site.runs, "go_on", go_on)
        answers = [await start(server, client, "k") for _ in range(2)]
        assert [one.status_code for one in answers] == [422, 422]
        assert answers[1].headers["idempotency-replayed"] == "true"
        assert len((await client.get("/runs")).json()["items"]) == before + 1


async def test_a_request_under_way_is_said_and_errors_are_kept(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        store = server.site.runtime.store
        run = (await start(server, client, "r")).json()["id"]
        await server.site.runs.ended(run, 30)
        pause = f"/runs/{run}/pause"
        missing = await client.post(pause, json={}, headers={"Idempotency-Key": "e"})
        assert missing.status_code == 409, missing.text
        again = await client.post(pause, json={}, headers={"Idempotency-Key": "e"})
        assert again.content == missing.content and again.headers["idempotency-replayed"] == "true"
        assert again.headers["content-type"] == "application/problem+json"
        # What is wrong with the body itself is found before the key counts.
        assert (await start(server, client, "b", nothing=1)).json()["code"] == "unfit-body"
        assert (await start(server, client, "b")).status_code == 201
        body = b'{"document":"ask.playbook.md"}'
        request = hashlib.sha256(b"POST /api/v1/runs?\n" + body).hexdigest()
        assert isinstance(await store.claim_key("busy", request), str)
        headers = {"Idempotency-Key": "busy", "Content-Type": "application/json"}
        busy = await client.post("/runs", content=body, headers=headers)
        assert (busy.status_code, busy.json()["code"]) == (409, "in-progress")
        for key in ("", "ü", "two words", "x" * 201):
            raw = [(b"idempotency-key", key.encode())]
            wrong = await client.post("/runs", json={"document": "ask.playbook.md"}, headers=raw)
            assert (wrong.status_code, wrong.json()["code"]) == (422, "unfit-parameters")
