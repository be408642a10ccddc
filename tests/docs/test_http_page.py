"""`docs/reference/http.md` is that of the program, and its curl lines work against a served workspace."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import httpx2
import pytest
from tests.docs.http_page import PAGE, curl, written
from tests.docs.pages import blocks, text_of
from tests.server.served import TOKEN, served

from quire.server.routes import ENDPOINTS
from quire.server.site import SiteOptions

pytestmark = pytest.mark.asyncio(loop_scope="session")

RELEASE = """# Release notes

## INPUTS

- `version` (string): The version that is released

## STEP 1: Draft

Write release notes for {{version}}.

## STEP 2: Decide

@elicit(confirm, "Publish the notes?")
"""


async def test_the_page_is_that_of_the_program() -> None:
    assert PAGE.read_text(encoding="utf-8") == written(), "python -m tests.docs.http_page"


async def test_every_endpoint_is_in_the_page() -> None:
    text = text_of("docs/reference/http.md")
    assert [one.name for one in ENDPOINTS if f"**`{one.method} {one.template}`**" not in text] == []
    assert [one.name for one in ENDPOINTS if f"$ {curl(one)}\n" not in text] == []


LINES = [
    line[2:]
    for block in blocks("docs/reference/http.md", "console")
    for line in block.text.splitlines()
    if line.startswith("$ curl ")
]

REFUSED = {
    "run-state",
    "no-artifact",
    "no-such-step",
    "already-answered",
    "stale",
    "not-a-fan",
    "cannot-start",
    "webhooks-off",
    "no-such-share",
}
"""Problems of a request that is well formed, but does not fit the state of the example's run."""


async def test_the_curl_lines_of_the_page_work(tmp_path: Path) -> None:
    options = SiteOptions(edit=True)
    settings = f'[models]\ndefault = "script:{tmp_path / "team" / "s.json"}"\n'
    documents = {"release.playbook.md": RELEASE}
    async with served(tmp_path / "team", documents, options=options, settings=settings) as server:
        model = server.script("s.json", [{"default": "Notes."}])
        runs = [
            (await server.start("release.playbook.md", inputs={"version": "1"}, model=model))["id"] for _ in range(2)
        ]
        async with server.client() as client:
            for run in runs:
                await server.site.runs.ended(run, 30)
            question = (await client.get("/questions", params={"run": runs[0]})).json()["items"][0]
            export = (await client.get(f"/runs/{runs[0]}/export")).text
        words = {
            "$AUTH": f"Authorization: Bearer {TOKEN}",
            "$QUIRE": f"http://{server.place}/api/v1",
            "DOCUMENT": "release.playbook.md",
            "OTHER": runs[1],
            "HASH": question["hash"],
            "ETAG": '"x"',
            "EXPORT": json.dumps(export)[1:-1],
        }
        wrong: list[str] = []
        async with httpx2.AsyncClient(timeout=30) as client:
            # What ends or removes the run of the examples comes last.
            for line in sorted(LINES, key=lambda line: ("DELETE" in line, "/cancel" in line)):
                answer = await _performed(client, line, words, runs[0])
                code = answer.json()["code"] if answer.status_code >= 400 else ""
                if answer.status_code >= 400 and code not in REFUSED:
                    wrong.append(f"{line}: {answer.status_code} {answer.text[:200]}")
        assert wrong == []


async def _performed(client: httpx2.AsyncClient, line: str, words: dict[str, str], run: str) -> httpx2.Response:
    """Do what curl would do with this line."""
    arguments = shlex.split(line.replace("RUN", run))[1:]
    for name, value in words.items():
        arguments = [one.replace(name, value) for one in arguments]
    method, headers, body, url = "", {}, None, ""
    while arguments:
        match arguments.pop(0):
            case "-H":
                name, _, value = arguments.pop(0).partition(": ")
                headers[name.lower()] = value
            case "-X":
                method = arguments.pop(0)
            case "--json":
                body = arguments.pop(0)
                headers["content-type"] = "application/json"
            case "-N":
                pass
            case option if option.startswith("-"):
                raise AssertionError(f"{option} in {line}")
            case url:
                pass
    content = body.encode() if body is not None else None
    request = client.build_request(method or ("POST" if body else "GET"), url, headers=headers, content=content)
    answer = await client.send(request, stream=True)
    if answer.headers["content-type"].startswith("text/event-stream"):
        await answer.aclose()
        return answer
    await answer.aread()
    return answer
