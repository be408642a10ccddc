"""Deliveries to a real server, signed by other implementations: what opens the door, and what keeps it shut."""

from __future__ import annotations

import asyncio
import base64
import datetime
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from standardwebhooks import Webhook
from tests.server.served import Served, served

from quire.runs.triggers import Triggers
from quire.server import hooks
from quire.server.guard import MAX_DELIVERY

pytestmark = pytest.mark.asyncio(loop_scope="session")

HELLO = "# Hello\n\n## INPUTS\n\n- `event` (text): the event\n\n## STEP 1: Say\n\nSay hello to {{event}}.\n"
OLD, NEW = "an old secret of 24 bytes", "another secret of 24 bytes"
STANDARD = "whsec_" + base64.b64encode(b"a secret of thirty-two characters").decode()
GITHUB = "It's a Secret to Everybody"
STRIPE = "whsec_5WbX5kEWLlfzsGNjH64I8lOOqUB6e8FH"
ENVIRON = {"OLD": OLD, "NEW": NEW, "STANDARD": STANDARD, "GITHUB": GITHUB, "STRIPE": STRIPE}


def hook(scheme: str, variable: str, more: str = "") -> str:
    return (
        f'webhook = {{scheme = "{scheme}", secret_env = "{variable}"}}\ninputs = {{event = {{expr = "body"}}}}\n{more}'
    )


ALL = {
    "plain": hook("hmac", "OLD"),
    "standard": hook("standard", "STANDARD"),
    "github": hook("github", "GITHUB"),
    "stripe": hook("stripe", "STRIPE"),
}


@asynccontextmanager
async def serving(folder: Path, tables: Mapping[str, str]) -> AsyncIterator[Served]:
    """A server with enabled triggers."""
    documents = {"hello.playbook.md": HELLO, "script.json": '[{"default": "Hello."}]'}
    async with served(folder / "work", documents, settings=settings(folder, tables), environ=ENVIRON) as server:
        await enable(server, *tables)
        yield server


def settings(folder: Path, tables: Mapping[str, str]) -> str:
    common = f'run = "hello"\nmodel = "script:{folder}/work/script.json"\n'
    return "\n".join(f"[triggers.{name}]\n{common}{text}" for name, text in tables.items())


async def enable(server: Served, *names: str) -> None:
    triggers = Triggers(server.site.runtime)
    for name in names:
        proposal = await triggers.propose(name)
        assert not proposal.problems, proposal.problems
        await triggers.enable(name, proposal.digest, "ada")


async def post(server: Served, name: str, body: bytes, headers: Mapping[str, Any] | None = None) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=60) as client:
        return await client.post(f"http://{server.place}/hooks/{name}", content=body, headers=headers or {})


def plain(body: bytes, secret: str = OLD) -> dict[str, str]:
    return {"X-Signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


def standard(id: str, body: bytes, at: float | None = None) -> dict[str, str]:
    when = datetime.datetime.fromtimestamp(int(at or time.time()), datetime.UTC)
    signature = Webhook(STANDARD).sign(id, when, body.decode())
    return {"webhook-id": id, "webhook-timestamp": str(int(when.timestamp())), "webhook-signature": signature}


def stripe(body: bytes, at: float | None = None, secret: str = STRIPE) -> dict[str, str]:
    """As Stripe's documentation describes it: the secret is the whole text, the time comes before the body."""
    at = int(at or time.time())
    signature = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return {"Stripe-Signature": f"t={at},v1={'0' * 64}, v1={signature},v0=6ffbb59b2300aae63f272406069a9788"}


async def inputs(server: Served, run: str) -> Any:
    return (await server.site.runtime.row(run)).pins["inputs"]


async def test_what_each_service_signs_starts_one_run(tmp_path: Path) -> None:
    async with serving(tmp_path, ALL) as server:
        body = b'{"id": "evt_1", "type": "invoice.paid"}'
        github = {
            "X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        runs = set()
        for name, content, first, again in (
            ("plain", body, plain(body), plain(body)),
            ("standard", body, standard("msg_1", body), standard("msg_1", body, time.time() - 60)),
            ("github", b"Hello, World!", github, github | {"X-GitHub-Delivery": "another"}),
            ("stripe", body, stripe(body), stripe(body, time.time() - 200)),
        ):
            answer = await post(server, name, content, first)
            assert answer.status_code == 202, answer.text
            repeated = await post(server, name, content, again)
            assert (repeated.status_code, repeated.json()) == (200, answer.json())
            runs.add(answer.json()["run"])
            row = await server.site.runtime.row(answer.json()["run"])
            assert (row.source, row.pins["door"]) == (f"trigger:{name}", "serve")
            if content == body:
                assert json.loads(await value(server, row.id)) == json.loads(body)
        assert len(runs) == 4 == len(await server.site.runtime.store.list())
        keys = {start.source: start.key for start in await server.site.runtime.store.starts()}
        assert keys["trigger:standard"] == "msg_1" and keys["trigger:stripe"] == "evt_1"
        assert keys["trigger:github"] == hashlib.sha256(b"Hello, World!").hexdigest()
        ids = list(runs)
        async with asyncio.timeout(30):  # and they are driven
            while not all([(await server.site.runtime.row(run)).status == "completed" for run in ids]):
                await asyncio.sleep(0.05)


async def value(server: Served, run: str) -> str:
    text: str = (await inputs(server, run))["event"]
    return text


async def test_the_door_stays_shut_and_tells_no_names(tmp_path: Path) -> None:
    async with serving(tmp_path, {**ALL, "clock": 'every = "24h"\ninputs = {event = "x"}'}) as server:
        body, at = b'{"id": "evt_1"}', time.time()
        right = standard("msg_1", body)
        wrong: list[tuple[str, Mapping[str, str]]] = [
            ("plain", {}),
            ("plain", plain(body, NEW)),
            ("plain", plain(b"other")),
            ("plain", {"X-Signature-256": "sha256="}),
            ("plain", {"X-Signature-256": "\u00e9"}),
            ("github", plain(body, GITHUB)),  # that of another scheme
            ("standard", standard("msg_1", body, at - 301)),
            ("standard", standard("msg_1", body, at + 330)),
            ("standard", right | {"webhook-id": "msg_2"}),
            ("standard", right | {"webhook-timestamp": "\u00b2" + "9" * 400}),
            ("standard", right | {"webhook-signature": right["webhook-signature"].replace("v1,", "v1a,")}),
            ("stripe", stripe(body, at - 301)),
            ("stripe", stripe(body, secret=OLD)),
            ("stripe", {"Stripe-Signature": stripe(body)["Stripe-Signature"].replace("v1=", "v0=")}),
            ("clock", plain(body)),
            ("nowhere", plain(body)),
            ("nowhere", right),
        ]
        answers = {
            (answer.status_code, answer.text.replace(f"/hooks/{name}", ""))
            for name, headers in wrong
            for answer in [await post(server, name, body, {k: v.encode("latin-1") for k, v in headers.items()})]
        }
        assert len(answers) == 1 and answers.pop()[0] == 401
        triggers = await server.site.runtime.store.triggers()
        assert {trigger.name for trigger in triggers} == {*ALL, "clock"}
        await server.site.runtime.store.disable("plain")
        assert (await post(server, "plain", body, plain(body))).status_code == 401
        assert not await server.site.runtime.store.starts()


async def test_a_page_of_another_site_can_do_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, ALL) as server:
        body = b"{}"
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            assert (await post(server, "plain", body, plain(body) | headers)).status_code == 403
        assert (await post(server, "plain", body, plain(body) | {"Host": "evil.example"})).status_code == 421
        async with httpx2.AsyncClient() as client:
            asked = await client.options(
                f"http://{server.place}/hooks/plain", headers={"Origin": "https://evil.example"}
            )
            assert "access-control-allow-origin" not in asked.headers
            # The door has no other use: a signature is not a token.
            for path in ("/api/v1/runs", "/api/v1/triggers/plain/fire"):
                assert (
                    await client.post(f"http://{server.place}{path}", content=body, headers=plain(body))
                ).status_code == 401


async def test_a_secret_is_replaced_without_a_gap(tmp_path: Path) -> None:
    inputs = 'inputs = {event = {expr = "body"}}'
    both = f'webhook = [{{scheme = "hmac", secret_env = "NEW"}}, {{scheme = "hmac", secret_env = "OLD"}}]\n{inputs}'
    async with serving(tmp_path, {"plain": both}) as server:
        for number, secret in enumerate((OLD, NEW)):
            body = f'{{"number": {number}}}'.encode()
            assert (await post(server, "plain", body, plain(body, secret))).status_code == 202
        user = Path(server.environ["QUIRE_HOME"]) / "quire.toml"
        user.write_text(settings(tmp_path, {"plain": hook("hmac", "NEW")}))
        # Changed settings open nothing until they are enabled.
        assert (await post(server, "plain", b"3", plain(b"3", NEW))).status_code == 401
        await enable(server, "plain")
        assert (await post(server, "plain", b"3", plain(b"3", OLD))).status_code == 401
        assert (await post(server, "plain", b"3", plain(b"3", NEW))).status_code == 202


async def test_a_secret_file_is_read_at_each_delivery(tmp_path: Path) -> None:
    secret = tmp_path / "hook.key"
    secret.write_text(OLD + "\n")
    secret.chmod(0o600)
    table = f'webhook = {{scheme = "hmac", secret_file = "{secret}"}}\ninputs = {{event = {{expr = "body"}}}}'
    async with serving(tmp_path, {"plain": table}) as server:
        assert (await post(server, "plain", b"1", plain(b"1"))).status_code == 202
        secret.write_text(NEW)
        assert (await post(server, "plain", b"2", plain(b"2"))).status_code == 401
        assert (await post(server, "plain", b"2", plain(b"2", NEW))).status_code == 202
        secret.chmod(0o644)
        assert (await post(server, "plain", b"3", plain(b"3", NEW))).status_code == 401


async def test_a_body_has_one_megabyte(tmp_path: Path) -> None:
    small = 'webhook = {scheme = "hmac", secret_env = "OLD"}\ninputs = {event = "fixed"}'
    async with serving(tmp_path, {"plain": small}) as server:
        most = b"x" * MAX_DELIVERY
        assert (await post(server, "plain", most, plain(most))).status_code == 202
        for name in ("plain", "nowhere"):
            assert (await post(server, name, most + b"x", plain(most + b"x"))).status_code == 413

        async def pieces() -> AsyncIterator[bytes]:
            yield most
            yield b"x"

        async with httpx2.AsyncClient() as client:
            address = f"http://{server.place}/hooks/plain"
            answer = await client.post(address, content=pieces(), headers=plain(most + b"x"))
        assert answer.status_code == 413
        assert len(await server.site.runtime.store.starts()) == 1


async def test_a_delivery_a_hundred_times_at_once_is_one_run(tmp_path: Path) -> None:
    async with serving(tmp_path, {"plain": hook("hmac", "OLD", "rate = 100")}) as server:
        answers = await asyncio.gather(*(post(server, "plain", b"{}", plain(b"{}")) for _ in range(100)))
        assert len({answer.text for answer in answers}) == 1
        assert sorted(answer.status_code for answer in answers) == [200] * 99 + [202]
        assert len(await server.site.runtime.store.list()) == 1


async def test_more_than_the_rate_is_told_to_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path, {"plain": hook("hmac", "OLD", "rate = 2"), "other": hook("hmac", "OLD")}) as server:
        assert [(await post(server, "plain", body, {})).status_code for body in (b"1", b"2", b"3")] == [401] * 3
        answers = [await post(server, "plain", body, plain(body)) for body in (b"1", b"2", b"3")]
        assert [answer.status_code for answer in answers] == [202, 202, 429]
        assert 58 <= int(answers[2].headers["retry-after"]) <= 61
        assert (await post(server, "other", b"3", plain(b"3"))).status_code == 202
        now = time.time()
        monkeypatch.setattr(server.site.runtime.clock, "now", lambda: now + 61)
        assert (await post(server, "plain", b"3", plain(b"3"))).status_code == 202


async def test_conditions_keys_and_headers(tmp_path: Path) -> None:
    some = 'when = "body.action == \'opened\'"\nkey = "body.number"'
    shown = hook("hmac", "OLD").replace('expr = "body"', 'expr = "headers"')
    async with serving(tmp_path, {"some": hook("hmac", "OLD", some), "shown": shown}) as server:
        for number, (action, status, member) in enumerate(
            [("closed", 202, "skipped"), ("opened", 202, "run"), ("opened", 200, "run")]
        ):
            body = json.dumps({"action": action, "number": min(number, 1), "time": number}).encode()
            answer = await post(server, "some", body, plain(body))
            assert (answer.status_code, [*answer.json()]) == (status, [member])
        (skipped,) = await server.site.runtime.store.starts(state="skipped")
        assert (skipped.key, skipped.reason) == ("0", "when is false")
        secrets = {"Authorization": "Bearer x", "Cookie": "x", "X-Gitlab-Token": "x", "X-Api-Key": "x"}
        answer = await post(server, "shown", b"{}", plain(b"{}") | secrets | {"X-GitHub-Event": "push"})
        headers = json.loads(await value(server, answer.json()["run"]))
        assert headers["x-github-event"] == "push"
        assert not {"authorization", "cookie", "x-gitlab-token", "x-api-key", "x-signature-256"} & headers.keys()


async def test_a_long_key_is_kept_as_its_hash(tmp_path: Path) -> None:
    """PostgreSQL has no index of long texts: the delivery would get 503 for ever."""
    async with serving(tmp_path, {"some": hook("hmac", "OLD", 'key = "body.id"')}) as server:
        for id in ("k" * 200, "é" * 300, "é" * 301):
            body = json.dumps({"id": id}).encode()
            answers = [await post(server, "some", body + end, plain(body + end)) for end in (b"", b"\n")]
            assert [answer.status_code for answer in answers] == [202, 200]
        keys = [start.key for start in await server.site.runtime.store.starts()]
        assert [len(key) for key in keys] == [64, 64, 200] and len({*keys}) == 3


async def test_nothing_is_claimed_where_nothing_can_start(tmp_path: Path) -> None:
    async with serving(tmp_path, ALL) as server:
        document = tmp_path / "work" / "hello.playbook.md"
        document.rename(tmp_path / "away.md")
        answer = await post(server, "plain", b"1", plain(b"1"))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
        assert "hello" not in answer.text and "hello" in server.reports[-1]
        assert not await server.site.runtime.store.starts()
        (tmp_path / "away.md").rename(document)
        assert (await post(server, "plain", b"1", plain(b"1"))).status_code == 202
        document.write_text(HELLO + "\n## STEP 2: More\n\nThink again.\n")
        answer = await post(server, "plain", b"2", plain(b"2"))
        assert (answer.status_code, answer.json()) == (202, {"skipped": "refused"})


async def test_the_ticker_of_a_server_takes_files_that_rest(tmp_path: Path) -> None:
    files = 'files = "inbox/*"\ninputs = {event = {expr = "file.name"}}'
    async with serving(tmp_path, {"drop": files}) as server:
        inbox = tmp_path / "work" / "inbox"
        inbox.mkdir()
        for name in ("first", "second"):  # at the second one the server knows that files are to be looked for
            (inbox / name).write_text(name)
            async with asyncio.timeout(60):
                done = ["completed"] * len([*inbox.iterdir()])
                while [row.status for row in await server.site.runtime.store.list()] != done:
                    await asyncio.sleep(0.05)
        assert {start.source for start in await server.site.runtime.store.starts()} == {"trigger:drop"}


async def test_broken_settings_are_told_to_the_owner_alone(tmp_path: Path) -> None:
    async with serving(tmp_path, ALL) as server:
        (Path(server.environ["QUIRE_HOME"]) / "quire.toml").write_text("[triggers.plain]\nrun = 'hello'\n")
        for name in ("plain", "nowhere"):
            answer = await post(server, name, b"{}")
            assert answer.status_code == 503 and "triggers" not in answer.text
        assert "[triggers.plain] needs" in server.reports[-1]


async def test_a_signature_of_nothing_opens_nothing() -> None:
    for scheme in ("standard", "github", "stripe", "hmac", "unknown"):
        assert not hooks.is_signed(scheme, b"secret", {}, b"", 0.0)
