"""Webhooks: notice events of runs in the store, write them to the outbox, and send them until they have arrived.

Events are found by comparing the store with the last look, whichever process has made them, and also those of a time
in which no server ran. A message holds ids, status, title and link; texts of a run only if the settings include them.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import secrets
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.engine.records import Status
from quire.errors import CannotStart, Denied, QuireError, ToolFailed
from quire.server.address import file_of
from quire.server.webhook_outbox import Outbox, OutMessage, signed_headers
from quire.stores.contract import MOST_QUESTIONS
from quire.tools.builtin.http_request import Hosts, HttpFetch
from quire.trust.private_files import shared_secret
from quire.values import encode
from quire.workspace.grants import default_grants, reach_of
from quire.workspace.settings import ToolSettings

if TYPE_CHECKING:
    from quire.engine.records import Question, RunRow
    from quire.runs.runtime import Runtime
    from quire.values import Value
    from quire.workspace.settings import WebhookSettings

SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_BETWEEN_WHOLE_LOOKS = 3600.0
"""The time after which all open questions are read, not only those of runs that have changed."""
OVERLAP_SECONDS = 10.0
SECONDS_TO_ANSWER = 15.0
AT_ONCE = 8
EXPIRING_SECONDS = 86_400.0
"""A run that waits is `run.expiring` so long before it expires."""
LONGEST_TEXT = 200_000
GONE = 410
_LOOKED = "looked"
_ENDS = {Status.COMPLETED: "run.completed", Status.FAILED: "run.failed"}


class Webhooks:
    """The webhooks of one workspace. `link` is the address of the page, `allow` are grants of the command line."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        link: str,
        allow: Sequence[str] = (),
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        settings = runtime.settings
        self.hooks: Mapping[str, WebhookSettings] = settings.webhooks
        self._runtime = runtime
        self._link = link.rstrip("/")
        self._report = report
        # Only the user's own grants open private addresses, not those of a workspace.
        grants = default_grants(replace(settings, tools=ToolSettings()), allow)
        self._hosts = Hosts(reach_of(grants).hosts, anywhere=True)
        self.outbox = Outbox(file_of(settings, ".outbox.db"))
        self._secrets: dict[str, bytes] = {}
        self._next_whole_look = -inf
        self._sending: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Read the secrets and open the outbox. Raises `CannotStart` or `Refused`."""
        if not self.hooks:
            raise CannotStart(f"--webhooks: {self._runtime.settings.user}/quire.toml has no table [webhooks.NAME]")
        self._secrets = {
            name: shared_secret(f"[webhooks.{name}]", hook.secret_env, hook.secret_file, self._runtime.environ)
            for name, hook in self.hooks.items()
        }
        self.outbox.open()

    async def run(self) -> None:
        """Look for events and send messages until the task is cancelled."""
        try:
            while True:
                try:
                    await self.look()
                    await self.send_due()
                except (QuireError, sqlite3.Error) as error:
                    self._report(f"webhooks: {error}")
                    await asyncio.sleep(SECONDS_TO_ANSWER)
                await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
        finally:
            for task in self._sending:
                task.cancel()
            await asyncio.gather(*self._sending, return_exceptions=True)
            self.outbox.close()

    async def look(self) -> int:
        """Write the events since the last look to the outbox, and return the number of new messages."""
        now = time.time()
        since = await asyncio.to_thread(self.outbox.mark, _LOOKED)
        store = self._runtime.store
        events: list[tuple[str, list[OutMessage]]] = []
        rows = await store.written_since(now if since is None else since - OVERLAP_SECONDS)
        changed: set[str] | None = {row.id for row in rows} | {*await store.answered()}
        if now < self._next_whole_look:
            questions = [question for run in changed or () for question in await store.questions(run)]
        else:
            self._next_whole_look, questions, changed = now + SECONDS_BETWEEN_WHOLE_LOOKS, await self._every(), None
        before = await asyncio.to_thread(self.outbox.asked, changed)
        open_now = {(question.run, question.path): question for question in questions}
        opened = [question for key, question in open_now.items() if before.get(key) != question.hash]
        for question in opened:
            events.append(await self._opened(question, now))
        closed = [key for key in before if key not in open_now]
        for run, path in closed:
            events += await self._answered(run, path, before[run, path], now)
        # Runs that ended before the first look are not news.
        for row in rows:
            if row.status in _ENDS and (since is not None or row.updated_at >= now):
                events.append(await self._ended(_ENDS[row.status], row, now))
        for row in await store.named(await store.expiring(now, now + EXPIRING_SECONDS)):
            data: dict[str, Value] = {**self._about(row), "expires_at": row.expires_at}
            events.append(self._messages("run.expiring", f"{row.id} {row.expires_at!r}", data, now, _subject(row)))
        count = await asyncio.to_thread(self.outbox.add, events, [(_LOOKED, now)])
        if opened or closed:
            hashes = [(question.run, question.path, question.hash) for question in opened]
            await asyncio.to_thread(self.outbox.note_asked, hashes, closed)
        return count

    async def _every(self) -> list[Question]:
        questions: list[Question] = []
        place = None
        while page := (await self._runtime.store.oldest_questions(MOST_QUESTIONS, place))[0]:
            questions += page
            place = page[-1].asked_at, page[-1].run, page[-1].path
        return questions

    async def _opened(self, question: Question, now: float) -> tuple[str, list[OutMessage]]:
        run, path = question.run, question.path
        row = await self._runtime.store.get(run)
        data: dict[str, Value] = {
            "run": run,
            "path": path,
            "step": question.way,
            "title": row.title if row else "",
            "status": str(row.status) if row else "",
            "expires_at": question.expires_at,
            "link": f"{self._link}/q/{run}/{path}",
        }
        texts: dict[str, Value] = {"prompt": question.prompt, "options": list(question.options)}
        return self._messages(
            "question.opened", f"{run} {path} {question.hash}", data, now, {"prompt": texts, **_subject(row)}
        )

    async def _answered(self, run: str, path: str, hash: str, now: float) -> list[tuple[str, list[OutMessage]]]:
        """Return the event of a question that was answered. A question that was taken back has none."""
        waiting = [answer.by for answer in await self._runtime.store.answers(run) if answer.path == path]
        recorded = (
            [] if waiting else [effect.by for effect in await self._runtime.store.effects(run) if effect.path == path]
        )
        row = await self._runtime.store.get(run)
        if row is None or not (waiting or recorded):
            return []
        data: dict[str, Value] = {
            "run": run,
            "path": path,
            "title": row.title,
            "status": str(row.status),
            "by": (waiting or recorded)[-1] or None,
            "link": f"{self._link}/runs/{run}",
        }
        return [self._messages("question.answered", f"{run} {path} {hash}", data, now, _subject(row))]

    async def _ended(self, type: str, row: RunRow, now: float) -> tuple[str, list[OutMessage]]:
        texts = _subject(row)
        if type == "run.completed" and any("artifact" in hook.include for hook in self.hooks.values()):
            with contextlib.suppress(QuireError):
                view = await self._runtime.view(row.id)
                text = view.artifact
                shown: dict[str, Value] = {"artifact": text[:LONGEST_TEXT], "artifact_type": view.file_type or "text"}
                texts["artifact"] = {**shown, **({"artifact_cut": True} if len(text) > LONGEST_TEXT else {})}
        data: dict[str, Value] = {**self._about(row), "error": row.failure.kind if row.failure else None}
        return self._messages(type, f"{row.id} {row.updated_at!r}", data, now, texts)

    def _about(self, row: RunRow) -> dict[str, Value]:
        link = f"{self._link}/runs/{row.id}"
        return {"run": row.id, "title": row.title, "document": row.document, "status": str(row.status), "link": link}

    def _messages(
        self,
        type: str,
        key: str,
        data: Mapping[str, Value],
        now: float,
        texts: Mapping[str, Mapping[str, Value]] | None = None,
    ) -> tuple[str, list[OutMessage]]:
        """Return the key of an event, and its message to each address that wants it."""
        at = datetime.datetime.fromtimestamp(now, datetime.UTC).isoformat()
        workspace = self._runtime.settings.workspace.folder.name
        messages = []
        for name, hook in self.hooks.items():
            if type not in (*hook.events, "test"):
                continue
            more = {field: value for word in hook.include for field, value in (texts or {}).get(word, {}).items()}
            body = encode({"type": type, "timestamp": at, "data": {"workspace": workspace, **data, **more}})
            messages.append(OutMessage(f"msg_{secrets.token_hex(12)}", name, type, body, now, now))
        return f"{type} {key}", messages

    def test(self, name: str) -> None:
        """Write a message of the type `test` for one address."""
        now = time.time()
        key, messages = self._messages("test", secrets.token_hex(8), {"link": self._link}, now)
        self.outbox.add([(key, [message for message in messages if message.hook == name])], [])

    async def send_due(self) -> None:
        """Begin to send the messages that are due. A receiver that hangs holds up no other."""
        self._sending = {task for task in self._sending if not task.done()}
        room = AT_ONCE - len(self._sending)
        if room <= 0:
            return
        for message in await asyncio.to_thread(self.outbox.take, time.time(), room):
            self._sending.add(asyncio.create_task(self._send(message)))

    async def sent(self) -> None:
        """Wait until no message is on its way."""
        await asyncio.gather(*self._sending, return_exceptions=True)

    async def _send(self, message: OutMessage) -> None:
        hook = self.hooks.get(message.hook)
        if hook is None:
            await asyncio.to_thread(self.outbox.drop, message.hook)
            return
        body = message.body.encode()
        headers = signed_headers(self._secrets[message.hook], message.id, int(time.time()), body)
        fetch = HttpFetch(self._hosts)
        error, wait, final = "", 0.0, False
        try:
            async with asyncio.timeout(SECONDS_TO_ANSWER):
                status, retry = await asyncio.to_thread(fetch.post, hook.url, body, headers)
            if not 200 <= status < 300:
                error, final = f"answered {status}", status == GONE
                wait = float(retry) if retry.isdecimal() and len(retry) < 9 else 0.0
        except asyncio.CancelledError:
            self.outbox.give_back(message, time.time())
            raise
        except TimeoutError:
            error = f"did not answer in {SECONDS_TO_ANSWER:g} s"
        except (ToolFailed, Denied) as failure:
            error = str(failure)
        finally:
            fetch.stop()
        now = time.time()
        if not error:
            await asyncio.to_thread(self.outbox.arrived, message, now)
        elif not await asyncio.to_thread(lambda: self.outbox.failed(message, now, error[:500], wait=wait, final=final)):
            self._report(f"webhook {message.hook}: {message.type} is given up: {error}")


def _subject(row: RunRow | None) -> dict[str, dict[str, Value]]:
    """Return the label of a run, which is made of its inputs, as a text that is sent if the settings include it."""
    return {"subject": {"subject": row.label}} if row else {}
