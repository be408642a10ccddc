"""Proofs over HTTP: numbers, gates, flows and the lock of a document, and the same of a run before it starts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.display.test_preflight_line import BOARD
from tests.server.served import Served, served

from quire.library.lock_check import lock_path, save_lock
from quire.library.lock_facts import LockFacts
from quire.server.routes import ENDPOINTS
from quire.workspace.locate import find_workspace

DIGEST = """pipeline: digest
dialect: quire
steps:
  - tool: {name: http__get, args: {url: "https://example.org/feed"}, output: page}
  - agent: {prompt: "Sum up: {ctx.page}", output: summary, capabilities: {tools: []}}
  - tool: {name: ask, args: {type: confirm, prompt: "Publish?"}, output: ok}
  - shell: {when: ctx.ok == 'yes', command: !expr "['publish', ctx.summary]"}
"""
DOCUMENTS = {"digest.yaml": DIGEST, "board.yaml": BOARD, "broken.yaml": "pipeline: p\nsteps: 3\n"}


def fits(operation: str, answer: Any) -> None:
    endpoint = next(one for one in ENDPOINTS if one.name == operation)
    jsonschema_rs.validate(dict(endpoint.response), answer)


async def shown(server: Served, id: str, fields: str = "proof,gates,flows,lock") -> Any:
    async with server.client() as client:
        answer = await client.get(f"/documents/{id}", params={"fields": fields})
        assert answer.status_code == 200, answer.text
        fits("show_document", answer.json())
        return answer.json()


async def ahead(server: Served, id: str, **body: Any) -> Any:
    async with server.client() as client:
        answer = await client.post(f"/documents/{id}/preflight", json=body)
        assert answer.status_code == 200, answer.text
        fits("preflight", answer.json())
        return answer.json()


async def test_a_document_has_numbers_gates_and_flows(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        found = await shown(server, "digest.yaml")
        assert found["proof"]["numbers"]["model_calls"]["words"] == "1"
        assert [(one["effect"], one["verdict"]) for one in found["gates"]] == [("4 shell", "gated")]
        assert found["gates"][0]["gate"] == "after a yes in step 3 (confirm)"
        assert [(one["text"], one["acts"]) for one in found["flows"]] == [
            ("1 http__get → page → 2 model (no tools)", False),
            ("1 http__get → page → 2 model → summary → 4 shell argv[1]", True),
        ]
        board = await shown(server, "board.yaml")
        calls = board["proof"]["numbers"]["model_calls"]
        assert (calls["formula"], calls["words"]) == ("|readers|", "0 to |readers|, stopped at 100")
        assert calls["notes"] == ["[safety.spawn] max_pipeline_spawns = 100: a run stops there"]
        assert calls["seen"] is None and board["proof"]["seen_runs"] == 0
        broken = await shown(server, "broken.yaml")
        assert [broken[one] for one in ("proof", "gates", "flows", "lock")] == [None] * 4


async def test_runs_that_were_are_seen(tmp_path: Path) -> None:
    hello = "pipeline: p\nsteps:\n  - agent: {prompt: Hello, capabilities: {tools: []}}\n"
    async with served(tmp_path / "team", {"hello.yaml": hello}) as server:
        row = await server.start("hello.yaml", model=server.script("s.json", ["Hi"]))
        async with server.client() as client:
            while (await client.get(f"/runs/{row['id']}")).json()["status"] != "completed":
                await asyncio.sleep(0)
        found = await shown(server, "hello.yaml", "proof")
        assert found["proof"]["seen_runs"] == 1
        assert found["proof"]["numbers"]["model_calls"]["seen"] == "1"


async def test_a_graph_has_gates_and_flows(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        chart = (await client.get("/documents/digest.yaml/graph")).json()
        fits("document_graph", chart)
        assert [(one["kind"], one["from"], one["to"]) for one in chart["ways"]] == [
            ("guard", "s3ask", "s4tool"),
            ("flow", "s1tool", "s2model"),
            ("flow", "s2model", "s4tool"),
        ]
        assert "ways" not in (await client.get("/documents/board.yaml/graph")).json()
        assert 'class="way flow"' in (await client.get("/documents/digest.yaml/graph.svg")).text


async def test_the_sizes_of_inputs_go_into_the_formulas(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        model = server.script("s.json", [])
        inputs = {"readers": ["a", "b"], "doc": "ä" * 100}
        found = await ahead(server, "board.yaml", inputs=inputs, model=model)
        assert found["line"] == "2 model calls, at a price that is not known"
        assert found["proof"]["sizes"] == {"‖doc‖": 200}
        assert found["proof"]["formulas"]["input_tokens"].startswith("2·‖doc‖ + ")
        none = await ahead(server, "board.yaml", model=model)
        assert none["line"].startswith("at most |readers| model calls, stopped at 100")


@pytest.mark.parametrize(("count", "problems", "warnings"), [(99, 0, 0), (101, 1, 0)])
async def test_a_run_that_is_certain_to_fail_is_refused_before_it_starts(
    tmp_path: Path, count: int, problems: int, warnings: int
) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        inputs, model = {"readers": ["a"] * count, "doc": "x"}, server.script("s.json", [])
        found = await ahead(server, "board.yaml", inputs=inputs, model=model)
        assert len([one for one in found["problems"] if "max_pipeline_spawns" in one]) == problems
        assert len([one for one in found["warnings"] if "max_pipeline_spawns" in one]) == warnings
        if problems:
            async with server.client() as client:
                body = {"document": "board.yaml", "inputs": inputs, "model": model}
                refused = await client.post("/runs", json=body)
                assert refused.status_code >= 400 and "at least 101 model calls" in refused.text
                assert (await client.get("/runs")).json()["items"] == []


MAYBE = BOARD.replace("on_error: abort", "on_error: abort\n      max_items: 500").replace(
    "do: {agent: {", "do: {agent: {when: ctx.doc == 'go', "
)


async def test_caps_and_budgets_that_may_be_reached_are_said_before_the_run(tmp_path: Path) -> None:
    script, home = tmp_path / "team" / "s.json", tmp_path / "team-home"
    home.mkdir()
    (home / "quire.toml").write_text(f'[models.prices."script:{script}"]\ninput = 3.0\noutput = 15.0\n')
    async with served(tmp_path / "team", {"maybe.yaml": MAYBE}) as server:
        model, inputs = server.script("s.json", []), {"readers": ["a"] * 120, "doc": "x"}
        found = await ahead(server, "maybe.yaml", inputs=inputs, model=model)
        assert found["ready"]
        (first,) = (one for one in found["warnings"] if one.startswith("it may stop midway"))
        assert first.startswith("it may stop midway: up to 120 model calls, and a run may make 100")
        # A budget takes the place of the default limit of calls.
        found = await ahead(server, "maybe.yaml", inputs=inputs, model=model, budget=1.5)
        (second,) = (one for one in found["warnings"] if one.startswith("it may stop midway"))
        assert second == "it may stop midway: it costs up to $29.90, and the budget is $1.50"
        enough = await ahead(server, "maybe.yaml", inputs={"readers": ["a"], "doc": "x"}, model=model, budget=1.5)
        assert not [one for one in enough["warnings"] if "midway" in one]


async def test_the_lock_and_what_is_new_beyond_it(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        assert (await shown(server, "digest.yaml"))["lock"]["standing"] == "none"
        folder = tmp_path / "team"
        workspace = find_workspace(folder)
        facts = LockFacts(workspace)
        save_lock(lock_path(workspace), facts.lock(facts.documents([folder / "digest.yaml"])))
        assert (await shown(server, "digest.yaml"))["lock"]["standing"] == "equal"
        assert (await shown(server, "board.yaml"))["lock"]["standing"] == "new"
        more = DIGEST + "  - tool: {name: file__write, args: {path: !expr ctx.summary, content: x}}\n"
        (folder / "digest.yaml").write_text(more)
        lock = (await shown(server, "digest.yaml"))["lock"]
        assert lock["standing"] == "wider"
        wider = [one for one in lock["changes"] if one["direction"] == "wider" and one["kind"] == "may"]
        assert wider[0]["code"] == "LK103" and "file-system.write" in wider[0]["words"]
        assert (await ahead(server, "digest.yaml"))["lock"]["standing"] == "wider"
