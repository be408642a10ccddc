"""Declared inputs of pipelines on the page and over HTTP: a field for each type, all problems under their fields."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.browser import Pages, axe
from tests.server.served import served

pytestmark = pytest.mark.asyncio(loop_scope="session")

LETTER = """\
schema: Person
fields: {name: {type: string, max_length: 9}}
---
pipeline: letter
dialect: quire
input:
  readers: {type: list, of: {type: string}, max_items: 3, description: "Who reads it."}
  tone: {type: enum, values: [warm, dry, 2], default: dry}
  times: {type: number, minimum: 1}
  loud: {type: bool, default: true}
  sure: {type: bool}
  code: {type: string, pattern: '^[a-z]+$'}
  story: {type: string, required: false}
  person: {type: ref, schema: Person, default: {name: Ann}}
  constructor: {type: number, default: 1}
  __proto__: {type: string, max_length: 3, default: abc}
steps:
  - transform: {value: ctx}
"""
WHOLE = {
    "readers": ["Ann", "Bob, Jr."],
    "tone": 2,
    "times": 2,
    "loud": False,
    "sure": True,
    "code": "x",
    "story": "one\ntwo",
    "person": {"name": "Ann"},
    "constructor": 7,
    "__proto__": "xyz",
}


async def test_every_type_has_its_field(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"letter.yaml": LETTER}) as server:
        page = await pages.open(server.at("/documents/letter.yaml?run=1"))
        start = page.get_by_role("button", name="Start the run")
        problems = page.locator(".field .input-problem")
        await expect(page.locator(".forecast-line")).to_be_visible()
        assert await problems.count() == 0
        await start.click()
        await expect(problems).to_have_text(
            [
                "missing input readers (list of string (at most 3)): Who reads it.",
                "missing input times (number (at least 1))",
                "missing input sure (bool)",
                "missing input code (string (matches ^[a-z]+$))",
            ]
        )
        assert await axe(page) == []
        await page.locator("#input-readers").fill("Ann\nBob, Jr.\n\n")
        await expect(page.get_by_text("2 items")).to_be_visible()
        await page.get_by_role("group", name="tone").get_by_label("2", exact=True).check()
        await page.locator("#input-times").fill("0")
        await expect(page.get_by_text("input times must be at least 1, not 0")).to_be_visible()
        await page.locator("#input-times").fill("many")
        await expect(page.get_by_text("many is not a number")).to_be_visible()
        await page.locator("#input-times").fill("2")
        loud = page.get_by_role("checkbox", name="loud")
        await expect(loud).to_be_checked()
        await loud.uncheck()
        await page.get_by_role("group", name="sure").get_by_label("true").check()
        await page.locator("#input-code").fill("x")
        await page.locator("#input-story").fill("one\ntwo")
        await page.locator("#input-person").fill('{"name": 3}')
        await expect(page.get_by_text("input person.name must be text, not 3")).to_be_visible()
        await page.locator("#input-person").fill('{"name": "Ann"}')
        await page.locator("#input-constructor").fill("7")
        await page.locator("#input-__proto__").fill("toolong")
        await expect(page.get_by_text("input __proto__ must have at most 3 characters, not 7")).to_be_visible()
        await page.locator("#input-__proto__").fill("xyz")
        await expect(problems).to_have_count(0)
        await expect(page.locator(".forecast .command")).to_contain_text("-i code=x")
        await start.click()
        await expect(page.get_by_text("completed").first).to_be_visible()
        async with server.client() as client:
            [row] = (await client.get("/runs")).json()["items"]
            assert json.loads((await client.get(f"/runs/{row['id']}/artifact")).json()["text"]) == WHOLE
        await page.goto(server.at(f"/runs/{row['id']}/fork"))
        tone = page.get_by_role("group", name="tone")
        await expect(tone.get_by_label("2", exact=True)).to_be_checked()
        await tone.get_by_label("warm").check()
        await page.locator("#field-constructor").fill("8")
        await page.get_by_role("button", name="Start the fork").click()
        await expect(page.get_by_text("completed").first).to_be_visible()
        async with server.client() as client:
            newest = (await client.get("/runs")).json()["items"][0]
            found = json.loads((await client.get(f"/runs/{newest['id']}/artifact")).json()["text"])
        assert found == {**WHOLE, "tone": "warm", "constructor": 8}


async def test_wrong_inputs_start_nothing_over_http(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {"letter.yaml": LETTER}) as server, server.client() as client:
        inputs = {"readers": ["a", 1], "tone": "x", "times": "2", "sure": True, "code": "x", "extra": 1}
        answer = await client.post("/runs", json={"document": "letter.yaml", "inputs": inputs})
        assert answer.status_code == 422
        told = {one["pointer"]: one["message"] for one in answer.json()["fields"]}
        assert told["/inputs/readers"] == "input readers[1] must be text, not 1"
        assert told["/inputs/times"] == 'input times must be a number, not "2"'
        assert set(told) == {"/inputs/readers", "/inputs/tone", "/inputs/times", "/inputs/extra"}
        assert (await client.get("/runs")).json()["items"] == []
        looked = await client.post("/documents/letter.yaml/preflight", json={"inputs": inputs})
        assert looked.json()["ready"] is False
        assert set(looked.json()["inputs"]) == {"readers", "tone", "times", "extra"}
        schema = (await client.get("/documents/letter.yaml?fields=inputs")).json()["inputs"]
        assert schema["required"] == ["readers", "times", "sure", "code"]
        assert schema["properties"]["story"]["x-lines"] is True
        assert "x-lines" not in schema["properties"]["code"]
