"""Streams of events: each kept event reaches a client once and in order, whatever happens to connection and server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from tests.depth import depth
from tests.given import given
from tests.server.serve_process import server as process
from tests.server.served import Served, served

from quire.engine.records import Status
from quire.server import hub as hub_module

pytestmark = pytest.mark.asyncio(loop_scope="session")

FAN = """pipeline: fan
steps:
  - for_each:
      over: ctx.items
      max_items: 2000
      max_parallel: 8
      on_error: continue
      do: {agent: {prompt: "Say {item}"}}
      collect: {transform: {value: pipe}}
      output: said
"""
TWO = "# Two\n\n## STEP 1: One\n\nSay one.\n\n## STEP 2: Two\n\nSay two.\n"
ASKS = '# Ask\n\n## STEP 1: Decide\n\n@elicit(confirm, "Go on?")\n'
SSE = {"accept": "text/event-stream"}


class Received(NamedTuple):
    event: str
    data: Any
    id: str


async def received(stream: httpx2.Response) -> AsyncGenerator[Received, None]:
    fields: dict[str, str] = {}
    async for line in stream.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield Received(fields.get("event", "message"), json.loads(fields["data"]), fields.get("id", ""))
            fields = {}
        else:
            fields = {}


@asynccontextmanager
async def following(client: httpx2.AsyncClient, path: str, last: str = "", **query: Any) -> AsyncIterator[Any]:
    headers = {**SSE, **({"last-event-id": last} if last else {})}
    async with client.stream("GET", path, headers=headers, params=query) as stream:
        assert stream.status_code == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        frames = received(stream)
        try:
            yield frames
        finally:
            await frames.aclose()


async def kept(server: Served, run: str) -> list[int]:
    return [event.seq for event in await server.site.runtime.store.events(run)]


async def test_a_client_that_reconnects_at_random_points_gets_each_event_once(tmp_path: Path) -> None:
    chance = random.Random(seed := random.randrange(10**9))
    async with served(tmp_path / "team", {"fan.yaml": FAN}) as server, server.client() as client:
        items = list(range(depth(250, 2000)))
        model = server.script("s.json", [{"default": "said", "delay_ms": 1}])
        run = (await server.start("fan.yaml", inputs={"items": items}, model=model, limits={"calls": 0}))["id"]
        seqs: list[int] = []
        last, ended = "", False
        async with asyncio.timeout(120):
            while not ended:
                patience = chance.randrange(1, 120)
                async with following(client, f"/runs/{run}/events", last) as frames:
                    async for frame in frames:
                        if frame.event == "end":
                            ended = True
                        if frame.id:
                            assert frame.data["seq"] == int(frame.id)
                            seqs.append(frame.data["seq"])
                            last = frame.id
                        patience -= 1
                        if patience < 0:
                            break
        assert len(seqs) >= len(items)
        assert seqs == await kept(server, run), f"seed {seed}"


async def test_a_number_that_is_not_known_resets_and_a_final_run_ends(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"two.playbook.md": TWO}) as server, server.client() as client:
        model = server.script("s.json", ["one", "two"])
        body = {"document": "two.playbook.md", "model": model}
        run = (await client.post("/runs", json=body, headers={"prefer": "wait=30"})).json()["id"]
        async with following(client, f"/runs/{run}/events", "999999") as frames:
            events = [frame async for frame in frames]
        assert (events[0].event, events[-1].event) == ("reset", "end")
        assert [frame.data["seq"] for frame in events if frame.id] == await kept(server, run)
        async with following(client, f"/runs/{run}/events", last := events[-2].id) as frames:
            assert [frame.event async for frame in frames] == ["end"], last
        async with following(client, "/events", run=f"{run}:999999") as frames:
            assert (await anext(frames)).event == "reset"
            hello = await anext(frames)
            assert (hello.event, hello.data["runs"]) == ("hello", [run])


async def test_the_stream_of_the_page_goes_on_with_all_its_runs(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"two.playbook.md": TWO, "ask.playbook.md": ASKS}) as server:
        model = server.script("s.json", [{"default": "said"}])
        runs = [(await server.start("two.playbook.md", model=model))["id"] for _ in range(3)]
        for run in runs:
            await server.site.runs.ended(run, 30)
        async with server.client() as client:
            seen: dict[str, list[int]] = {run: [] for run in runs}
            wanted = {run: await kept(server, run) for run in runs}
            last = ""
            async with asyncio.timeout(30):
                while seen != wanted:
                    async with following(client, "/events", last, run=[f"{run}:0" for run in runs]) as frames:
                        for _ in range(4):
                            frame = await anext(frames)
                            if frame.id:
                                last = frame.id
                                seen[frame.data["run"]].append(frame.data["seq"])
            many = await client.get("/events", params={"run": [f"r{at}:0" for at in range(51)]})
            assert (many.status_code, many.json()["code"]) == (429, "too-many")
            async with following(client, "/events", run="no-such-run:3") as frames:
                assert (await anext(frames)).data["runs"] == []


async def test_a_slow_client_is_let_go_and_comes_back_without_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "MOST_WAITING", 10)
    async with served(tmp_path / "team", {"fan.yaml": FAN}) as server, server.client() as client:
        model = server.script("s.json", [{"default": "said"}])
        body = {"document": "fan.yaml", "inputs": {"items": list(range(30))}, "model": model}
        run = (await client.post("/runs", json=body, headers={"prefer": "wait=30"})).json()["id"]
        seqs: list[int] = []
        wanted, last = await kept(server, run), ""
        async with asyncio.timeout(30):
            while seqs != wanted:
                async with following(client, f"/runs/{run}/events", last) as frames:
                    async for frame in frames:
                        if frame.id:
                            seqs.append(int(frame.id))
                            last = frame.id
                assert seqs == wanted[: len(seqs)]


async def test_many_runs_at_once_with_every_event_delivered_once(tmp_path: Path) -> None:
    count = depth(100, 1000)
    async with served(tmp_path / "team", {"two.playbook.md": TWO}) as server:
        model = server.script("s.json", [{"default": "said", "delay_ms": 100}])
        async with httpx2.AsyncClient(
            base_url=f"http://{server.place}/api/v1", headers=server.client().headers, timeout=120
        ) as client:
            room = asyncio.Semaphore(20)

            async def begin() -> str:
                async with room:
                    answer = await client.post("/runs", json={"document": "two.playbook.md", "model": model})
                    assert answer.status_code == 201, answer.text
                    return str(answer.json()["id"])

            runs = await asyncio.gather(*(begin() for _ in range(count)))
            seen: dict[str, list[int]] = {run: [] for run in runs}

            async def follow(part: list[str]) -> None:
                waiting = set(part)
                async with following(client, "/events", run=[f"{run}:0" for run in part]) as frames:
                    async for frame in frames:
                        if frame.id:
                            seen[frame.data["run"]].append(frame.data["seq"])
                        if frame.id and frame.event == "run_completed":
                            waiting.discard(frame.data["run"])
                            if not waiting:
                                return

            async with asyncio.timeout(300):
                await asyncio.gather(*(follow(list(runs[at : at + 50])) for at in range(0, count, 50)))
        for run in runs:
            assert seen[run] == await kept(server, run)
            row = await server.site.runtime.row(run)
            assert row.status is Status.COMPLETED


async def test_a_server_that_is_killed_in_the_middle_of_a_stream(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    given({"quire.toml": "", "fan.yaml": FAN, "s.json": [{"default": "said", "delay_ms": 20}]}, folder)
    seqs: list[int] = []
    last, run = "", ""
    for turn in range(3):
        with process(folder, "--port", "0") as one:
            headers = {"authorization": one.client().headers["authorization"]}  # a new token at each start
            async with httpx2.AsyncClient(base_url=f"{one.url}api/v1", headers=headers, timeout=30) as client:
                if not run:
                    body = {
                        "document": "fan.yaml",
                        "inputs": {"items": list(range(60))},
                        "model": f"script:{folder / 's.json'}",
                    }
                    answer = await client.post("/runs", json=body)
                    assert answer.status_code == 201, answer.text
                    run = answer.json()["id"]
                try:
                    async with following(client, f"/runs/{run}/events", last) as frames:
                        async for frame in frames:
                            assert frame.event != "reset"
                            if frame.id:
                                seqs.append(int(frame.id))
                                last = frame.id
                            if turn < 2 and len(seqs) > 30 * (turn + 1):
                                os.kill(one.process.pid, signal.SIGKILL)
                except httpx2.TransportError:
                    assert turn < 2
                if turn == 2:
                    events = (await client.get(f"/runs/{run}/events", params={"limit": 500})).json()["items"]
    assert seqs == [event["seq"] for event in events]
    assert events[-1]["type"] == "run_completed"


SLOW = """pipeline: slow
steps:
  - for_each:
      over: ctx.items
      max_items: 200
      max_parallel: 2
      on_error: continue
      do: {agent: {prompt: "Say {item}"}}
      collect: {transform: {value: pipe}}
      output: said
  - agent: {prompt: "Sum up"}
"""


async def test_frames_with_an_id_are_the_journal_after_kills_and_late_returns(tmp_path: Path, home: Path) -> None:
    """reliability G2: listeners come back long after the server that was killed; contents are compared, not numbers."""
    folder, kills, runs = tmp_path / "work", depth(2, 6), dict[str, list[Any]]()
    folder.mkdir()
    given({"quire.toml": "", "slow.yaml": SLOW, "s.json": [{"default": "said", "delay_ms": 100}]}, folder)
    whole: dict[str, list[Any]] = {}
    place, provisional = "", 0

    async def listen(client: httpx2.AsyncClient, run: str) -> None:
        nonlocal provisional
        last = str(runs[run][-1]["seq"]) if runs[run] else ""
        with contextlib.suppress(httpx2.TransportError):
            async with following(client, f"/runs/{run}/events", last) as frames:
                async for frame in frames:
                    assert frame.event != "reset"
                    assert bool(frame.id) == ("seq" in frame.data)
                    provisional += frame.data.get("provisional", False)
                    if frame.id:
                        runs[run].append(frame.data)

    async def listen_to_all(client: httpx2.AsyncClient) -> None:
        nonlocal place
        with contextlib.suppress(httpx2.TransportError):
            async with following(client, "/events", place, run=[f"{run}:0" for run in runs]) as frames:
                async for frame in frames:
                    assert frame.event != "reset"
                    if frame.id:
                        place = frame.id
                        whole.setdefault(frame.data["run"], []).append(frame.data)
                    if sum(one[-1]["type"] == "run_completed" for one in whole.values()) == len(runs):
                        return

    for turn in range(kills + 1):
        with process(folder, "--port", "0") as one:
            made = one.client()
            async with httpx2.AsyncClient(base_url=made.base_url, headers=made.headers, timeout=60) as client:
                while len(runs) < 6:
                    body = {"document": "slow.yaml", "inputs": {"items": list(range(60))}}
                    answer = await client.post("/runs", json={**body, "model": f"script:{folder / 's.json'}"})
                    runs[answer.json()["id"]] = []
                # The runs go on before the listeners are back.
                await asyncio.sleep(0.7 if turn else 0)
                listening = asyncio.gather(listen_to_all(client), *(listen(client, run) for run in runs))
                if turn < kills:
                    await asyncio.sleep(0.6)
                    os.kill(one.process.pid, signal.SIGKILL)
                async with asyncio.timeout(120):
                    await listening
                if turn == kills:
                    for run, told in runs.items():
                        items = (await client.get(f"/runs/{run}/events", params={"limit": 500})).json()["items"]
                        assert told == items
                        assert whole[run] == items
    assert provisional
