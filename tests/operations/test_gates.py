"""What an answer sets free: by the proof of the rest of the run, and as unknown where the proof does not know it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.server.served import Served, served

from quire.operations.gates import freed_by
from quire.operations.host import Host
from quire.server.site import SiteOptions

pytestmark = pytest.mark.asyncio(loop_scope="session")

GATE = """pipeline: gate
dialect: quire
input:
  version: {type: string}
steps:
  - tool: {name: ask, args: {type: confirm, prompt: "Publish it?"}, output: approved}
  - stop: {when: approved != 'yes', value: "'no'"}
  - shell: {command: !expr "['sh', 'publish.sh', ctx.version]"}
"""
CALLER = """pipeline: caller
dialect: quire
input:
  version: {type: string}
steps:
  - tool: {name: ask, args: {type: input, prompt: "Which one?"}, output: which}
  - call: {pipeline: gate, pass: {version: ctx.version}}
"""
FAN = """pipeline: fan
dialect: quire
input:
  version: {type: string}
steps:
  - for_each:
      over: "['a', 'b']"
      max_items: 5
      on_error: abort
      do:
        steps:
          - tool: {name: ask, args: {type: confirm, prompt: "Send it?"}, output: ok}
          - tool: {when: ok == 'yes', name: http__send, args: {url: "https://board.example.org", method: POST, body: x}}
      collect: {transform: {value: pipe}}
"""
DOCUMENTS = {"pipelines/gate.yaml": GATE, "caller.yaml": CALLER, "fan.yaml": FAN}
PUBLISH = {"name": "sh publish.sh ctx.version", "kind": "write", "world": True}
SEND = {"name": "http__send", "kind": "write", "world": True}


async def _group(server: Served, document: str) -> Any:
    run = await server.start(document, inputs={"version": "1"})
    return await _of(server, run["id"])


async def _of(server: Served, run: str, way: str = "") -> Any:
    async with asyncio.timeout(10):
        while True:
            for group in (await server.read("/now"))["questions"]["groups"]:
                if group["run"] == run and group["way"].startswith(way):
                    return group
            await asyncio.sleep(0.02)


async def test_a_gate_is_known_in_a_document_in_a_callee_and_in_a_fan_out(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS, options=SiteOptions(allow=("shell", "http"))) as server:
        gate = await _group(server, "pipelines/gate.yaml")
        assert (gate["alone"], gate["frees"]["red"], gate["frees"]["word"]) == (True, True, "publish")
        fan = await _group(server, "fan.yaml")
        assert (fan["alone"], fan["frees"]["effects"], fan["frees"]["word"], fan["fan"]) == (True, [SEND], "send", True)
        caller = await _group(server, "caller.yaml")
        # A text decides nothing; the effect behind the next question is told, and does not make it a gate.
        assert (caller["alone"], caller["frees"]["red"], caller["frees"]["effects"]) == (False, False, [PUBLISH])
        question = caller["items"][0]
        async with server.client() as client:
            body = {"value": "x", "hash": question["hash"]}
            await client.post(f"/questions/{question['run']}/{question['path']}/answer", json=body)
        within = await _of(server, caller["run"], "2")
        assert (within["alone"], within["frees"]["red"], within["frees"]["effects"]) == (True, True, [PUBLISH])


async def test_a_question_that_no_step_asks_is_answered_alone(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS, options=SiteOptions(allow=("shell",))) as server:
        await _group(server, "pipelines/gate.yaml")
        (question,) = await server.site.runtime.store.questions()
        row = await server.site.runtime.row(question.run)
        host = Host(server.site.runtime, server.site.caller)
        again = replace(question, path="3/tool/uncertain", way="3")
        assert (await freed_by(host, row, again)).data is None
        assert (await freed_by(host, row, again)).alone
        assert (await freed_by(host, None, question)).alone
