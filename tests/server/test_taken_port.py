"""security N1: another account takes the port of a server that has stopped while its page is open in a browser."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.browser import Pages
from tests.processes import wait_until
from tests.server.serve_process import server

from quire.server.address import names_of
from quire.server.serving import open_listeners

pytestmark = pytest.mark.asyncio(loop_scope="session")

TAKER = """
import encodings.idna, http.server, os, sys
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
class Taker(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.path, self.headers.get("Authorization") or "nothing", flush=True)
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"{}")
    do_POST = do_HEAD = do_GET
    def log_message(self, *words): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Taker).serve_forever()
"""


@contextmanager
def taker(port: int, seen: Path) -> Iterator[None]:
    """A server on the port, of a second account if this one may become another."""
    with seen.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-I", "-c", TAKER, str(port)], stdout=file, cwd="/")
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
async def test_no_token_that_the_next_program_on_the_port_gets_still_works(
    workspace: Path, pages: Pages, end: signal.Signals
) -> None:
    seen = workspace.parent / "seen.txt"
    with server(workspace, "--port", "0") as one:
        address = str(one.client().base_url)
        port = int(address.split("/")[2].rpartition(":")[2])
        token = one.client().headers["authorization"]
        page = await pages.open(f"http://127.0.0.1:{port}/#token={token.removeprefix('Bearer ')}", guarded=False)
        await expect(page.get_by_text("has no documents yet")).to_be_visible()
        await asyncio.to_thread(one.end, end)
    with taker(port, seen), socket.socket() as probe:
        await asyncio.to_thread(wait_until, lambda: probe.connect_ex(("127.0.0.1", port)) == 0)
        await asyncio.sleep(8)  # the page tried again every few seconds
        if end is signal.SIGINT:
            assert "Bearer" not in seen.read_text()
        with server(workspace) as two, two.client() as client:
            assert client.headers["authorization"] != token
            received = {line.partition(" ")[2] for line in seen.read_text().splitlines()} | {token}
            answers = [client.get("/", headers={"authorization": one}).status_code for one in received]
            assert set(answers) == {401}
            assert client.get("/").status_code == 200


async def test_a_name_with_two_addresses_is_ours_only_if_both_are() -> None:
    """security N1: browsers ask ::1 first when they look up localhost."""
    with socket.socket(socket.AF_INET6) as other:
        try:
            other.bind(("::1", 0))
        except OSError:
            pytest.skip("no IPv6 on this machine")
        other.listen()
        port = other.getsockname()[1]
        (alone,) = open_listeners("127.0.0.1", port, anywhere=False)
        alone.close()
    both = open_listeners("127.0.0.1", port, anywhere=False)
    assert [one.getsockname()[:2] for one in both] == [("127.0.0.1", port), ("::1", port)]
    for one in both:
        one.close()
    assert "localhost:1" not in names_of("127.0.0.1:1", [], "", "").hosts
    assert names_of("127.0.0.1:1", [], "", "", localhost=True).hosts == ("127.0.0.1:1", "localhost:1")


async def test_localhost_is_served_where_both_addresses_are_held(workspace: Path) -> None:
    with server(workspace, "--port", "0") as one, one.client() as client:
        port = one.url.rpartition(":")[2].strip("/")
        answer = client.get("/", headers={"host": f"localhost:{port}"})
        with socket.socket(socket.AF_INET6) as probe:
            held = probe.connect_ex(("::1", int(port))) == 0
        assert answer.status_code == (200 if held else 421)
