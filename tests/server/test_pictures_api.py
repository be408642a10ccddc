"""The API of pictures: flowcharts with folds, timelines as columns, pages of items, past runs; sizes and times."""

from __future__ import annotations

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


async def test_a_timeline_has_columns_and_waits(tmp_path: Path) -> None:
    async with team(tmp_path / "team") as (server, runs):
        waits = {"4/ask": 7860.0, "6/case[1]/1/ask": 5400.0}
        run = await retold(server.site.runtime, runs["done"], "retold", waits)
        data = await server.read(f"/runs/{run}/timeline")
        assert [lane["label"] for lane in data["lanes"]] == [
            "1",
            "1a",
            "1b",
            "2",
            "3",
            "4",
            "5a",
            "5b",
            "6a",
            "6b",
            "7",
        ]
        effects = data["effects"]
        assert effects["path"][5] == "4/ask"
        assert {len(column) for column in effects.values()} == {11}
        assert [data["lanes"][lane]["path"] for lane in effects["lane"][:3]] == ["1", "1/case[1]/1", "1/case[1]/2"]
        assert [(one["kind"], one["path"], round(one["until"] - one["at"])) for one in data["waits"]] == [
            ("question", "4/ask", 7860),
            ("question", "6/case[1]/1/ask", 5400),
        ]
        open_wait = (await server.read(f"/runs/{runs['waiting']}/timeline"))["waits"]
        assert [(one["kind"], one["path"], one["until"]) for one in open_wait] == [("question", "4/ask", None)]
        paused = (await server.read(f"/runs/{runs['paused']}/timeline"))["waits"]
        assert [(one["kind"], one["until"]) for one in paused] == [("paused", None)]
        forked = (await server.read(f"/runs/{runs['fork']}/timeline"))["waits"]
        assert [one["kind"] for one in forked] == ["forked"]
        async with server.client() as client:
            first = await client.get(f"/runs/{run}/timeline")
            again = await client.get(f"/runs/{run}/timeline", headers={"If-None-Match": first.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")


async def test_pages_of_the_items_of_a_fan(tmp_path: Path) -> None:
    async with team(tmp_path / "team") as (server, _):
        run = await triage(server.site.runtime, 1000)
        path = f"/runs/{run}/fans/2"
        await server.read(path)
        fan = await server.read(f"{path}?limit=200")
        assert fan["total"] == len(fan["letters"]) == fan["fitting"] == 1000
        assert fan["counts"] == {"pending": 0, "running": 0, "waiting": 0, "done": 834, "failed": 166}
        assert fan["letters"][:6] == "dddddf"
        assert [item["state"] for item in fan["items"]] == ["failed"] * 166 + ["done"] * 34
        assert fan["items"][0]["text"].startswith("T-4105 · Northwind · free · Payments by card")
        assert fan["items"][0]["message"] == "the connection was lost"
        seen, following = [item["index"] for item in fan["items"]], fan["next"]
        while following:
            page = await server.read(f"{path}?limit=500&after={following}")
            seen += [item["index"] for item in page["items"]]
            following = page["next"]
        assert len(seen) == 1000
        assert set(seen) == set(range(1000))
        assert (await server.read(f"{path}?q=t-4999 baltic"))["fitting"] == 0
        assert [item["index"] for item in (await server.read(f"{path}?q=t-4999"))["items"]] == [899]
        assert (await server.read(f"{path}?state=failed"))["fitting"] == 166
        in_order = await server.read(f"{path}?order=document&after=0.99&limit=3")
        assert [item["index"] for item in in_order["items"]] == [100, 101, 102]
        assert (await server.read(f"/runs/{run}/fans/1", 404))["code"] == "no-such-step"


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
