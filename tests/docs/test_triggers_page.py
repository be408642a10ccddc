"""The page on triggers: its tables are enabled, its commands typed, and its services send to a real server."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import hmac
import json
import re
import shlex
import shutil
import subprocess
import time
import tomllib
from pathlib import Path
from typing import Any

import httpx2
import pytest
from standardwebhooks import Webhook
from tests.docs.pages import blocks, text_of
from tests.examples.command import desk
from tests.given import given
from tests.server.served import served

from quire.cli import main
from quire.runs.triggers import Triggers
from quire.workspace.tables import SOURCES

PAGE = "docs/guides/triggers.md"
TABLES = [block.text for block in blocks(PAGE, "toml")]
SECRET = "whsec_" + "c2VjcmV0LW9mLXRoZS1kb2NzLXBhZ2UtMzItYnl0ZXM="
ENVIRON = dict.fromkeys(("GITHUB_HOOK", "STRIPE_HOOK", "TEAM_HOOK", "BUILD_HOOK", "NEW_BUILD_HOOK"), SECRET)


def documents(text: str) -> dict[str, str]:
    """Return a pipeline for each trigger, whose result is its inputs."""
    made = {}
    for trigger in tomllib.loads(text)["triggers"].values():
        name = trigger["run"].removesuffix(".yaml")
        inputs = ", ".join(f"{key}: ctx.{key}" for key in trigger["inputs"])
        path = trigger["run"] if "." in trigger["run"] else f"pipelines/{name}.yaml"
        made[path] = f"pipeline: {name}\nsteps:\n  - transform: {{value: '{{{inputs}}}'}}\n"
    return made


@pytest.mark.asyncio(loop_scope="session")
async def test_the_services_of_the_page_start_runs(tmp_path: Path) -> None:
    text = "\n".join(TABLES[:2])
    async with served(tmp_path / "work", documents(text), settings=text, environ=ENVIRON) as server:
        triggers = Triggers(server.site.runtime)
        for name in tomllib.loads(text)["triggers"]:
            proposal = await triggers.propose(name)
            assert not proposal.problems
            await triggers.enable(name, proposal.digest, "ada")

        async def send(name: str, body: bytes, headers: dict[str, str]) -> Any:
            async with httpx2.AsyncClient() as client:
                answer = await client.post(f"http://{server.place}/hooks/{name}", content=body, headers=headers)
            return answer.status_code, answer.json()

        at, body = int(time.time()), b'{"id": "evt_1", "action": "opened", "issue": {"title": "It fails"}}'
        stripe = hmac.new(SECRET.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
        signed = {"X-Hub-Signature-256": "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}
        when = datetime.datetime.fromtimestamp(at, datetime.UTC)
        team = {"webhook-id": "msg_1", "webhook-timestamp": str(at)}
        team["webhook-signature"] = Webhook(SECRET).sign("msg_1", when, body.decode())
        runs = {}
        for name, headers in (
            ("issues", signed), ("paid", {"Stripe-Signature": f"t={at},v1={stripe}"}), ("team", team)
        ):  # fmt: skip
            status, runs[name] = await send(name, body, headers)
            assert (status, [*runs[name]]) == (202, ["run"])
            assert await send(name, body, headers) == (200, runs[name])
        row = await server.site.runtime.row(runs["issues"]["run"])
        assert row.pins["inputs"] == {"title": "It fails"}

        (script,) = blocks(PAGE, "bash")
        if shutil.which("openssl") is None or shutil.which("curl") is None:
            pytest.skip("openssl or curl is not on this machine")
        command = script.text.replace("127.0.0.1:8377", server.place)
        environ = {"PATH": "/usr/local/bin:/usr/bin:/bin", **ENVIRON}
        sender = await asyncio.create_subprocess_exec("bash", "-c", command, env=environ, stdout=subprocess.PIPE)
        printed, _ = await sender.communicate()
        row = await server.site.runtime.row(json.loads(printed)["run"])
        assert row.pins["inputs"] == {"commit": "4f2a91c"}


def test_the_commands_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line[2:] for block in blocks(PAGE, "console") for line in block.text.splitlines()]
    commands = [["quire", "triggers", "enable", name] for text in TABLES for name in tomllib.loads(text)["triggers"]]
    commands += [shlex.split(line, comments=True) for line in sorted(lines, key=lambda line: "disable" in line)]
    for name, secret in ENVIRON.items():
        monkeypatch.setenv(name, secret)
    for text in TABLES:
        place = desk(tmp_path / str(TABLES.index(text)))
        for name, document in documents(text).items():
            place.write(name, document)
        given({"quire.toml": text}, place.home)
        monkeypatch.setenv("QUIRE_HOME", str(place.home))
        monkeypatch.chdir(place.folder)
        for command in commands:
            name = command[3] if len(command) > 3 else "daily"
            if name in tomllib.loads(text)["triggers"]:
                asked = {"enable", "backfill"} & {*command}
                assert main([*command[1:], *(["--yes"] if asked else [])]) == 0, command


def test_the_tables_of_the_page_are_complete() -> None:
    text = text_of(PAGE)
    tables = [table for block in TABLES for table in tomllib.loads(block)["triggers"].values()]
    assert {source for table in tables for source in SOURCES if source in table} >= {*SOURCES} - {"every"}
    assert {*re.findall(r"^\| `(\w+)` \| `[Xw\w-]+", text, re.MULTILINE)} >= {"github", "stripe", "standard", "hmac"}
