"""Runs that `quire serve` drives are told to the program of `[notify]`, while the server goes on."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from tests.server.served import served

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASKS = '# Ask\n\n## STEP 1: Decide\n\n@elicit(confirm, "Is it good?")\n\n## STEP 2: Write\n\nWrite a line.\n'
TELL = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')"


async def test_a_server_tells_of_a_question_and_of_the_end(tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    command = json.dumps([sys.executable, "-c", TELL, str(told)])
    settings = f"[notify]\ncommand = {command}\n"

    async def types(number: int) -> list[str]:
        async with asyncio.timeout(30):
            while not told.exists() or told.read_text().count("\n") < number:
                await asyncio.sleep(0.01)
        return [json.loads(line)["type"] for line in told.read_text().splitlines()]

    async with served(tmp_path / "work", {"ask.playbook.md": ASKS}, settings=settings) as server:
        model = server.script("replies.json", [{"default": "fine"}])
        run = (await server.start("ask.playbook.md", model=model))["id"]
        assert await types(1) == ["run.waiting"]
        async with server.client() as client:
            path = json.loads(told.read_text())["questions"][0]["path"]
            question = (await client.get(f"/questions/{run}/{path}")).json()
            given = {"value": "yes", "hash": question["hash"]}
            answer = await client.post(f"/questions/{run}/{path}/answer", json=given)
            assert answer.is_success, answer.text
        assert await types(2) == ["run.waiting", "run.completed"]
