"""A workspace with documents of a test, served over HTTP as `quire serve` does, in the loop of the test."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from tests.given import given

from quire.loopback import listening, place_of
from quire.runs.runtime import Runtime
from quire.server.access import Users
from quire.server.app import application
from quire.server.serving import configuration
from quire.server.site import Site, SiteOptions

TOKEN = "a-token-for-tests-0123456789"


@dataclass(slots=True)
class Served:
    """A running server. `reports` are the lines that it printed for its user, `handed_over` the runs that it left."""

    folder: Path
    site: Site
    place: str
    base: str = ""
    reports: list[str] = field(default_factory=list)
    handed_over: list[str] = field(default_factory=list)
    environ: Mapping[str, str] = field(default_factory=dict)
    """The environment that another process of the same user would have."""
    token: str = TOKEN

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        return f"http://{self.place}{self.base}/#token={self.token}"

    def at(self, path: str) -> str:
        """The address of a screen, with the token."""
        return f"http://{self.place}{self.base}{path}#token={self.token}"

    def client(self) -> httpx2.AsyncClient:
        """A client of the API."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx2.AsyncClient(base_url=f"http://{self.place}{self.base}/api/v1", headers=headers, timeout=30)

    def write(self, name: str, text: str) -> None:
        write(self.folder, name, text)

    def script(self, name: str, replies: Sequence[object] | Mapping[str, object]) -> str:
        """Write scripted replies, and return the name of the model that gives them."""
        self.write(name, json.dumps(replies))
        return f"script:{self.folder / name}"

    async def read(self, path: str, status: int = 200) -> Any:
        async with self.client() as client:
            answer = await client.get(path)
            assert answer.status_code == status, answer.text
            return answer.json()

    def other(self) -> Runtime:
        """The workspace as another process of the same user opens it."""
        return Runtime.open(self.folder, environ=self.environ)

    async def start(self, document: str, **body: Any) -> dict[str, Any]:
        """Start a run through the API and return its row."""
        async with self.client() as client:
            answer = await client.post("/runs", json={"document": document, **body})
            assert answer.status_code == 201, answer.text
            return answer.json()


def write(folder: Path, name: str, text: str) -> None:
    given({name: text}, folder)


@asynccontextmanager
async def served(
    folder: Path,
    documents: Mapping[str, str],
    *,
    port: int = 0,
    options: SiteOptions | None = None,
    names: Sequence[str] = (),
    settings: str = "",
    environ: Mapping[str, str] | None = None,
    token: str = TOKEN,
    has_tokens: bool = False,
    header: str = "",
) -> AsyncIterator[Served]:
    """Serve a workspace of these documents until the block ends. The user's space lies beside it, and no model file of
    this machine is used.

    With `has_tokens` tokens with names open it; `header` is that in which a proxy names people.

    `names` are other names of the server, with their ports, as `--allow-host` gives them; `settings` is the user's own
    quire.toml.
    """
    for name, text in {"quire.toml": "", **documents}.items():
        write(folder, name, text)
    home = folder.parent / f"{folder.name}-home"
    environ = {"QUIRE_HOME": str(home), "QUIRE_MODELS": str(home / "models"), **(environ or {})}
    if settings:
        write(Path(environ["QUIRE_HOME"]), "quire.toml", settings)
    runtime = Runtime.open(folder, environ=environ)
    listener = listening("127.0.0.1", port)
    reports: list[str] = []
    handed_over: list[str] = []
    options = options or SiteOptions()
    site = Site(runtime, options, hand_over=handed_over.append, report=reports.append)
    try:
        users = Users(runtime.settings, has_tokens=has_tokens, header=header)
        async with _running(site, listener, reports, names, token, users) as place:
            yield Served(folder, site, place, options.base, reports, handed_over, environ, token)
    finally:
        await runtime.close()


@asynccontextmanager
async def _running(
    site: Site,
    listener: socket.socket,
    reports: list[str],
    names: Sequence[str],
    token: str,
    users: Users,
) -> AsyncIterator[str]:
    place = place_of(listener)
    hosts = [place, f"localhost:{place.rpartition(':')[2]}", *names]
    origins = [f"http://{host}" for host in hosts]
    app = application(site, token=token, hosts=hosts, origins=origins, report=reports.append, users=users)
    server = uvicorn.Server(configuration(app, site.runtime.settings.serve.listeners))
    server.config.timeout_graceful_shutdown = 5
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not task.done():
        await asyncio.sleep(0.01)
    try:
        yield place
    finally:
        site.leave()
        server.should_exit = True
        await task
