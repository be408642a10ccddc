"""The API of pictures: flowcharts with folds, waits and items in the tree of a run, past runs; sizes and times."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.server.retold import retold
from tests.server.served import Served, served, write
from tests.server.team_workspace import ordinary_day, triage, write_documents

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONG = "# Long\n\n" + "".join(f"## STEP {at}: Do number {at}\n\nWrite line {at}.\n\n" for at in range(1, 801))
MANY_CALLS = "[safety.spawn]\nmax_pipeline_spawns = 20000\n"


@asynccontextmanager
async def team(folder: Path) -> AsyncIterator[tuple[Served, dict[str, str]]]:
    folder.mkdir()
    write_documents(folder)
    write(folder.parent / f"{folder.name}-home", "quire.toml", MANY_CALLS)
    async with served(folder, {"long.playbook.md": LONG}) as server:
        yield server, await ordinary_day(server.site.runtime)


async def test_charts_of_runs_and_documents(tmp_path: Path) -> None:
    async with team(tmp_path / "team") as (server, runs):
        chart = await server.read(f"/runs/{runs['triage']}/graph")
        assert {node["path"] for node in chart["nodes"]} == {None, "1", "2/for_each", "2/collect", "3"}
        assert [group["path"] for group in chart["groups"]] == ["2"]
        drawn = await server.read("/documents/ticket-triage.yaml/graph")
        assert drawn["command"] == "quire show ticket-triage.yaml --graph svg"
        assert {**drawn, "command": ""} == {**chart, "command": ""}
        async with server.client() as client:
            picture = await client.get("/documents/ticket-triage.yaml/graph.svg")
        assert picture.headers["content-type"].startswith("image/svg+xml")
        assert "sandbox" in picture.headers["content-security-policy"]
        assert picture.text.startswith("<svg ")
        # The run keeps the document that it was started with.
        server.write("ticket-triage.yaml", "pipeline: other\nsteps:\n- agent: {prompt: hi}\n")
        assert chart == await server.read(f"/runs/{runs['triage']}/graph")
        assert (await server.read("/documents/ticket-triage.yaml/graph"))["title"] == "other"
        server.write("broken.yaml", "pipeline: [\n")
        assert (await server.read("/documents/broken.yaml/graph", 422))["code"] == "bad-document"


async def test_a_chart_of_800_steps_is_folded_and_small(tmp_path: Path) -> None:
    async with team(tmp_path / "team") as (server, _):
        chart = await server.read("/documents/long.playbook.md/graph")
        assert chart["folded"]
        assert len(chart["nodes"]) <= 150
        assert len(gzip.compress(str(chart).encode())) <= 25_000
        fold = next(node for node in chart["nodes"] if node.get("fold"))
        opened = await server.read(f"/documents/long.playbook.md/graph?open={quote(fold['fold'])}")
        assert len(opened["nodes"]) > len(chart["nodes"])
        assert fold["path"] in {node["path"] for node in opened["nodes"] if not node.get("fold")}


async def test_waits_for_people_are_no_part_of_the_time(tmp_path: Path) -> None:
    async with team(tmp_path / "team") as (server, runs):
        asked = {"4/ask": 7860.0, "6/case[1]/1/ask": 5400.0}
        run = await retold(server.site.runtime, runs["done"], "retold", asked)
        rows = (await server.read(f"/runs/{run}/tree"))["rows"]
        waited = {path: round(seconds) for path, seconds in zip(rows["path"], rows["waited"], strict=True) if seconds}
        assert waited == {"4": 7860, "6": 5400, "6/case[1]": 5400, "6/case[1]/1": 5400}
        assert max(rows["took"]) < 300
        waiting = (await server.read(f"/runs/{runs['waiting']}/tree"))["rows"]
        assert [path for path, state in zip(waiting["path"], waiting["state"], strict=True) if state == "waits"] == [
            "4"
        ]
        paused = (await server.read(f"/runs/{runs['paused']}/tree"))["rows"]
        assert set(paused["state"]) <= {"done", "pending", "skipped"}
        forked = await server.read(f"/runs/{runs['fork']}/tree")
        assert max(forked["rows"]["took"]) < 300


async def test_the_items_of_a_fan_are_grouped_and_paged(tmp_path: Path) -> None:
    async with team(tmp_path / "team") as (server, _):
        run = await triage(server.site.runtime, 1000)
        path = f"/runs/{run}/tree"
        while (tree := await server.read(path))["partial"]:
            await asyncio.sleep(0.05)
        labels = dict(zip(tree["rows"]["path"], tree["rows"]["label"], strict=True))
        assert (labels["2#failed"], labels["2#done"]) == ("Failed 166", "Done 834")
        buckets = next(filter(None, tree["rows"]["buckets"]))
        assert [sum(column) for column in zip(*buckets, strict=True)] == [834, 166]
        page = (await server.read(f"{path}?under=2%23failed"))["rows"]
        assert page["hint"][0].startswith("T-4105 · Northwind · free · Payments by card")
        assert page["hint"][0].endswith(" · the connection was lost")
        seen, following = list[str](), "0"
        while following:
            some = await server.read(f"{path}?under=2%23done&limit=500&after={following}")
            seen, following = seen + some["rows"]["path"], some["next"]
        assert len(set(seen)) == len(seen) == some["total"] == 834


async def test_the_past_runs_of_a_document(tmp_path: Path) -> None:
    async with team(tmp_path / "team") as (server, runs):
        past = (await server.read("/documents/incident-report.playbook.md/history"))["items"]
        assert [one["id"] for one in past] == [runs[name] for name in ("fork", "paused", "done", "waiting")]
        assert [one["status"] for one in past] == ["completed", "paused", "completed", "awaiting_input"]
        assert all(one["elapsed"] >= 0 and one["cost"] > 0 for one in past)
        assert len((await server.read("/documents/incident-report.playbook.md/history?limit=2"))["items"]) == 2
        # A document of the same name in another folder is another one.
        server.write("old/incident-report.playbook.md", (server.folder / "incident-report.playbook.md").read_text())
        assert (await server.read("/documents/old/incident-report.playbook.md/history"))["items"] == []
        assert (await server.read("/documents/none.yaml/history", 404))["code"] == "no-such-document"
