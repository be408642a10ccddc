"""The limit of model calls over HTTP: `limits` of the bodies that start, forecast, resume and fork a run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.runs.test_call_limit import FAN
from tests.server.served import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="session")
FILES = {"fan.yaml": FAN, "s.json": '[{"default": "ok"}]'}
ROWS = 120


async def ended(server: Served, run: str) -> dict[str, Any]:
    async with server.client() as client:
        for _ in range(500):
            head: dict[str, Any] = (await client.get(f"/runs/{run}")).json()
            if head["status"] in ("completed", "failed"):
                return head
            await asyncio.sleep(0.02)
    raise AssertionError(head)


async def test_the_limit_is_a_field_of_the_body(tmp_path: Path) -> None:
    async with served(tmp_path / "team", FILES) as server, server.client() as client:
        options: dict[str, Any] = {"inputs": {"rows": list(range(ROWS))}, "model": f"script:{server.folder / 's.json'}"}
        run = (await server.start("fan.yaml", **options))["id"]
        assert (await ended(server, run))["error"]["kind"] == "too_many_calls"
        wrong = await client.post(f"/runs/{run}/resume", json={"limits": {"calls": -1}})
        assert wrong.status_code == 422, wrong.text
        again = await client.post(f"/runs/{run}/resume", json={"limits": {"calls": ROWS}})
        assert again.status_code == 202, again.text
        await asyncio.sleep(0.1)
        assert (await ended(server, run))["status"] == "completed"
        for body, status in (({"limits": {"calls": "many"}}, 422), ({"limits": {"calls": 0}}, 201)):
            answer = await client.post("/runs", json={"document": "fan.yaml", **options, **body})
            assert answer.status_code == status, answer.text
        assert (await ended(server, answer.json()["id"]))["status"] == "completed"
        fork = await client.post(f"/runs/{run}/fork", json={"from": "1", "limits": {"calls": 5}})
        assert (await ended(server, fork.json()["id"]))["error"]["kind"] == "too_many_calls"
        seen = (await client.post("/documents/fan.yaml/preflight", json={**options, "limits": {"calls": 50}})).json()
        assert seen["limits"] == {"model_calls": 50} and any("a run may make 50" in one for one in seen["warnings"])


async def test_a_day_without_money_answers_with_its_numbers(tmp_path: Path) -> None:
    files = {**FILES, "quire.toml": "[budgets]\nday = 0.5\n"}
    async with served(tmp_path / "team", files) as server, server.client() as client:
        body = {"document": "fan.yaml", "inputs": {"rows": [1]}, "model": f"script:{server.folder / 's.json'}"}
        refused = await client.post("/runs", json={**body, "budget": 0.6})
        assert (refused.status_code, refused.json()["code"]) == (409, "limit-reached"), refused.text
        assert refused.json()["detail"].startswith("not started: [budgets] day = $0.5 has no room")
        assert (await client.get("/runs")).json()["items"] == []
        assert (await client.post("/runs", json={**body, "budget": 0.5})).status_code == 201
