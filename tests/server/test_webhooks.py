"""Webhooks against a real receiver that fails, hangs and comes back; signatures checked by a second implementation."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.given import given
from tests.server.served import Served, served
from tests.stores.postgres_server import shared_server

from quire.errors import BadConfiguration, CannotStart
from quire.runs.runtime import Runtime
from quire.server import webhooks
from quire.server.site import Site, SiteOptions
from quire.server.webhook_outbox import DELAYS, KEPT_SECONDS, Outbox, OutMessage
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASKS = (
    '# Ask\n\n## STEP 1: Write\n\nWrite a line.\n\n## STEP 2: Decide\n\n@elicit(confirm, "Is the secret plan good?")\n'
)
SECRET = base64.b64encode(b"a secret of thirty-two characters").decode()


@dataclass
class Receiver:
    """An HTTP server of this machine. `mode` says what it does with a message: a status to answer, or `hang`."""

    mode: str = "204"
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    tries: int = 0
    port: int = 0
    hung: asyncio.Event = field(default_factory=asyncio.Event)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
        cased = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        body = await reader.readexactly(int(headers["content-length"]))
        self.tries += 1
        if self.mode == "hang":
            self.hung.set()
            await asyncio.sleep(30)
        if self.mode.startswith("2"):
            self.got.append(({name.lower(): value for name, value in cased.items()}, body))
        more = "Location: http://127.0.0.1:1/\r\n" if self.mode.startswith("3") else ""
        writer.write(f"HTTP/1.1 {self.mode} X\r\n{more}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    def types(self) -> list[str]:
        return [json.loads(body)["type"] for _, body in self.got]


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver._serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()


def settings_for(port: int, more: str = "", store: str = "") -> str:
    return (
        f'[webhooks.team]\nurl = "http://127.0.0.1:{port}/hook"\nsecret_env = "TEAM_HOOK"\n{more}'
        f'[tools]\nallow = ["http__get=127.0.0.1:{port}"]\n{store}'
    )


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "SECONDS_BETWEEN_LOOKS", 0.05)
    monkeypatch.setattr("quire.server.webhook_outbox.DELAYS", (0.05, 0.05, 3600))


@asynccontextmanager
async def serving(folder: Path, settings: str) -> AsyncIterator[Served]:
    """A server with webhooks, whose user has the secret in the environment."""
    options = SiteOptions(webhooks=True, place="http://127.0.0.1:8377/")
    async with served(folder, {"ask.playbook.md": ASKS}, settings=settings, options=options, environ=ENVIRON) as server:
        yield server


ENVIRON = {"TEAM_HOOK": f"whsec_{SECRET}"}


async def until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def is_signed(headers: dict[str, str], body: bytes, secret: bytes) -> bool:
    """Check a signature by RFC 2104 and the text of Standard Webhooks, without the modules of the sender."""
    block = secret.ljust(64, b"\0")
    content = headers["webhook-id"].encode() + b"." + headers["webhook-timestamp"].encode() + b"." + body
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block) + content).digest()
    outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block) + inner).digest()
    return headers["webhook-signature"] == "v1," + base64.b64encode(outer).decode()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_events_arrive_signed_and_without_texts(tmp_path: Path, kind: str) -> None:
    store = ""
    if kind == "postgresql":
        database = shared_server()
        store = f'[store]\nurl = "{database.url(schema=database.new_schema())}"\n'
    async with receiving() as receiver, serving(tmp_path / "team", settings_for(receiver.port, store=store)) as server:
        model = server.script("s.json", ["The secret plan is to win."])
        run = await server.start("ask.playbook.md", model=model)
        failing = await server.start("ask.playbook.md", model=server.script("f.json", [{"error": "lost"}]))
        await until(lambda: {"question.opened", "run.failed"} <= set(receiver.types()))
        other = server.other()
        await other.answer(run["id"], "2/ask", "yes", by="ada")
        await other.drive(run["id"])
        await other.close()
        await until(lambda: len(receiver.got) >= 4)
        assert sorted(receiver.types()) == ["question.answered", "question.opened", "run.completed", "run.failed"]
        by_type = {}
        for headers, body in receiver.got:
            assert is_signed(headers, body, base64.b64decode(SECRET))
            assert not is_signed(headers, body + b" ", base64.b64decode(SECRET))
            assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
            assert b"secret plan" not in body and SECRET.encode() not in body
            message = json.loads(body)
            by_type[message["type"]] = message["data"]
        assert by_type["question.opened"]["link"] == f"http://127.0.0.1:8377/q/{run['id']}/2/ask"
        assert by_type["question.answered"]["by"] == "ada"
        assert (by_type["run.completed"]["run"], by_type["run.failed"]["run"]) == (run["id"], failing["id"])
        assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 4


async def test_a_receiver_that_fails_and_hangs_gets_the_same_message_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "SECONDS_TO_ANSWER", 0.3)
    monkeypatch.setattr("quire.server.webhook_outbox.DELAYS", (0.05,))
    async with receiving() as receiver, serving(tmp_path / "team", settings_for(receiver.port)) as server:
        receiver.mode = "500"
        await server.start("ask.playbook.md", model=server.script("s.json", ["A line."]))
        await until(lambda: receiver.tries >= 2)
        receiver.mode = "302"
        tries = receiver.tries
        await until(lambda: receiver.tries > tries)
        receiver.mode = "hang"
        await asyncio.wait_for(receiver.hung.wait(), 10)
        async with server.client() as client:
            (hook,) = (await client.get("/webhooks")).json()["items"]
            assert (hook["waiting"], hook["arrived"]) == (1, 0)
            assert hook["last_error"]
            assert "127.0.0.1" in hook["host"] and "hook" not in hook["host"]
        receiver.mode = "204"
        await until(lambda: receiver.got)
        assert receiver.types() == ["question.opened"]
        await until(lambda: server.site.webhooks and server.site.webhooks.outbox.state("team")[0] == 0)


async def test_what_a_stopped_server_has_not_sent_is_sent_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.server.webhook_outbox.DELAYS", (0.05,))
    async with receiving() as receiver:
        settings = settings_for(receiver.port)
        receiver.mode = "503"
        async with serving(tmp_path / "team", settings) as server:
            run = await server.start("ask.playbook.md", model=server.script("s.json", ["A line."]))
            await until(lambda: receiver.tries >= 1)
            await server.site.runs.ended(run["id"], 10)
        # No server runs while another process answers: the next one notices that too.
        other = Runtime.open(tmp_path / "team", environ=server.environ)
        await other.answer(run["id"], "2/ask", "yes", by="ada")
        await other.drive(run["id"])
        await other.close()
        receiver.mode = "200"
        async with serving(tmp_path / "team", settings):
            await until(lambda: len(receiver.got) >= 3)
        assert sorted(receiver.types()) == ["question.answered", "question.opened", "run.completed"]
        async with serving(tmp_path / "team", settings) as server:
            assert server.site.webhooks is not None
            await server.site.webhooks.look()
            await server.site.webhooks.send_due()
            await server.site.webhooks.sent()
        assert len(receiver.got) == 3, "nothing is sent again that has arrived"


async def test_texts_are_sent_only_if_the_settings_include_them(tmp_path: Path) -> None:
    async with receiving() as receiver:
        settings = settings_for(
            receiver.port, 'include = ["prompt", "artifact"]\nevents = ["question.opened", "run.completed"]\n'
        )
        async with serving(tmp_path / "team", settings) as server:
            run = await server.start("ask.playbook.md", model=server.script("s.json", ["A line."]))
            await until(lambda: receiver.got)
            async with server.client() as client:
                question = (await client.get(f"/questions/{run['id']}/2/ask")).json()
                await client.post(
                    f"/questions/{run['id']}/2/ask/answer", json={"value": "yes", "hash": question["hash"]}
                )
            await until(lambda: len(receiver.got) >= 2)
            opened, completed = (json.loads(body)["data"] for _, body in receiver.got)
            assert opened["prompt"] == "Is the secret plan good?"
            assert completed["artifact_type"]
            async with server.client() as client:
                answer = await client.post("/webhooks/team/test", json={})
                assert answer.status_code == 202
                await until(lambda: receiver.types()[-1] == "test")
                assert (await client.post("/webhooks/other/test", json={})).status_code == 404


async def test_a_run_that_expires_soon_is_told_once(tmp_path: Path) -> None:
    async with receiving() as receiver:
        settings = settings_for(receiver.port, store='[runs]\nexpiry = "1h"\n')
        async with serving(tmp_path / "team", settings) as server:
            run = await server.start("ask.playbook.md", model=server.script("s.json", ["A line."]))
            await until(lambda: len(receiver.got) >= 2)
            for _ in range(3):
                assert server.site.webhooks is not None
                assert await server.site.webhooks.look() == 0
        assert sorted(receiver.types()) == ["question.opened", "run.expiring"]
        expiring = next(json.loads(body)["data"] for _, body in receiver.got if b"run.expiring" in body)
        assert expiring["run"] == run["id"]
        assert 0 < expiring["expires_at"] - time.time() <= 3600


async def test_an_answer_of_another_process_is_noticed_without_reading_every_question(tmp_path: Path) -> None:
    async with receiving() as receiver, serving(tmp_path / "team", settings_for(receiver.port)) as server:
        runs = [await server.start("ask.playbook.md", model=server.script("s.json", ["A line."])) for _ in range(3)]
        await until(lambda: len(receiver.got) >= 3)
        other, webhooks = server.other(), server.site.webhooks
        assert webhooks is not None
        (question,) = await other.store.questions(runs[0]["id"])
        await other.answer(runs[0]["id"], question.path, "yes", by="Ann")
        await other.store.request_cancel(runs[1]["id"])
        await until(lambda: receiver.types()[3:] == ["question.answered"])
        assert {run for run, _ in webhooks.outbox.asked(None)} == {runs[2]["id"]}
        await other.close()


async def test_private_addresses_need_a_grant_of_the_user(tmp_path: Path) -> None:
    async with receiving() as receiver:
        settings = settings_for(receiver.port).replace("[tools]\nallow", "[tools]\ndeny = []\n#")
        async with serving(tmp_path / "team", settings) as server:
            await server.start("ask.playbook.md", model=server.script("s.json", ["A line."]))
            outbox = server.site.webhooks.outbox if server.site.webhooks else None
            assert outbox is not None
            await until(lambda: outbox.state("team")[4])
            assert "not a public address" in outbox.state("team")[4]
            async with server.client() as client:
                body = {"Content-Type": "application/json"}
                dropped = (await client.request("DELETE", "/webhooks/team/messages", headers=body)).json()
            assert (dropped["dropped"], dropped["waiting"]) == (1, 0)
        assert receiver.tries == 0


async def test_without_the_flag_nothing_is_sent(tmp_path: Path) -> None:
    async with (
        receiving() as receiver,
        served(tmp_path / "team", {"ask.playbook.md": ASKS}, settings=settings_for(receiver.port)) as server,
    ):
        async with server.client() as client:
            answer = await client.get("/webhooks")
        assert (answer.status_code, answer.json()["code"]) == (403, "webhooks-off")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[webhooks.a]\nsecret_env = "X"\n', "needs a url"),
        ('[webhooks.a]\nurl = "https://h/"\n', "either secret_env or secret_file"),
        ('[webhooks.a]\nurl = "https://h/?key=1"\nsecret_env = "X"\n', "no secret is in it"),
        ('[webhooks.a]\nurl = "https://me:pw@h/"\nsecret_env = "X"\n', "no secret is in it"),
        ('[webhooks.a]\nurl = "ftp://h/"\nsecret_env = "X"\n', "http or https"),
        ('[webhooks.a]\nurl = "https://h/"\nsecret_env = "X"\nevents = ["run.ended"]\n', "'run.ended' is unknown"),
        ('[webhooks.a]\nurl = "https://h/"\nsecret_env = "X"\nincldue = []\n', "include"),
    ],
)
async def test_wrong_settings_are_said(tmp_path: Path, text: str, problem: str) -> None:
    given({"home/quire.toml": text, "team/quire.toml": ""}, tmp_path)
    with pytest.raises(BadConfiguration, match=problem.replace("(", "\\(")):
        load_settings(find_workspace(tmp_path / "team"), {"QUIRE_HOME": str(tmp_path / "home")})


async def test_a_workspace_cannot_name_an_address(tmp_path: Path) -> None:
    given({"team/quire.toml": '[webhooks.a]\nurl = "https://evil.example/"\nsecret_env = "X"\n'}, tmp_path)
    with pytest.raises(BadConfiguration, match="of your user folder"):
        load_settings(find_workspace(tmp_path / "team"), {"QUIRE_HOME": str(tmp_path / "home")})


@pytest.mark.parametrize(
    ("environ", "problem"),
    [({}, "has no secret"), ({"TEAM_HOOK": "short"}, "shorter than"), ({"TEAM_HOOK": "whsec_???"}, "not Base64")],
)
async def test_a_secret_that_cannot_be_used_is_said_at_the_start(
    tmp_path: Path, environ: dict[str, str], problem: str
) -> None:
    home = tmp_path / "home"
    given({"quire.toml": settings_for(1)}, home)
    (tmp_path / "team").mkdir()
    runtime = Runtime.open(tmp_path / "team", environ={"QUIRE_HOME": str(home), **environ})
    site = Site(runtime, SiteOptions(webhooks=True), hand_over=lambda run: None, report=lambda text: None)
    assert site.webhooks is not None
    with pytest.raises(CannotStart, match=problem):
        site.webhooks.open()
    await runtime.close()


async def test_waits_grow_to_a_day_and_end_after_a_week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.server.webhook_outbox.DELAYS", DELAYS)
    outbox = Outbox(tmp_path / "user" / "o.db")
    outbox.open()
    outbox.add([("k", [OutMessage("m", "team", "test", "{}", 0.0, 0.0)])], [])
    outbox.add([("k", [OutMessage("n", "team", "test", "{}", 0.0, 0.0)])], [])
    now, waits = 0.0, []
    while taken := outbox.take(now, 10):
        (message,) = taken
        assert outbox.take(now, 10) == [], "another server does not send it at the same time"
        outbox.failed(message, now, "answered 500")
        later = next((at for at in (now + wait for wait in DELAYS) if outbox.take(at, 10)), None)
        if later is None:
            break
        waits.append(later - now)
        now = later + 60  # The look above has taken it for so long.
    assert waits[: len(DELAYS)] == list(DELAYS)
    assert set(waits[len(DELAYS) :]) == {86_400}
    assert now < KEPT_SECONDS + 2 * 86_400
    assert outbox.state("team")[:3] == (0, 0, 1)
    outbox.close()


async def test_a_message_that_a_killed_server_had_taken_is_sent_by_another(tmp_path: Path) -> None:
    killed, other = Outbox(tmp_path / "user" / "o.db"), Outbox(tmp_path / "user" / "o.db")
    killed.open()
    killed.add([("k", [OutMessage("m", "team", "test", "{}", 0.0, 0.0)])], [("looked", 1.0)])
    assert [one.id for one in killed.take(0.0, 10)] == ["m"]
    other.open()
    assert other.mark("looked") == 1.0
    assert other.take(59.0, 10) == []
    assert [one.id for one in other.take(61.0, 10)] == ["m"]
    other.close()
    killed.close()
