"""The examples in the help of verbs that serve until their client ends, or until they are stopped."""

from __future__ import annotations

import re
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import started, wait_until

from quire.cli import main
from quire.cli.verbs import examples_of

ENDING = [example for name in ("mcp", "lsp") for example in examples_of(name) if "--tcp" not in example]


@pytest.fixture
def prepared(workspace: Path) -> None:
    assert main(["new", "playbook", "hello"]) == 0


@pytest.mark.parametrize("example", ENDING)
def test_an_example_that_serves_a_client_ends_with_it(example: str, prepared: None) -> None:
    with started(_command(example), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.communicate() == (b"", None)
        assert process.returncode == ("lsp" in example), "an editor ends its server by a request"


def test_the_example_of_a_language_server_at_a_port(prepared: None) -> None:
    with started(_command("quire lsp --tcp 0"), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        port = re.search(r"127\.0\.0\.1:(\d+)", process.stderr.readline())
        assert port is not None
        socket.create_connection(("127.0.0.1", int(port[1]))).close()
        assert process.wait() == 1


@pytest.mark.parametrize("example", examples_of("serve"))
def test_an_example_of_the_page_serves_until_it_is_stopped(example: str, prepared: None, home: Path) -> None:
    with started(_command(example), stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: list(home.glob("serve/*.json")))
        url = subprocess.run(_command("quire serve --url"), capture_output=True, text=True, check=True).stdout
        assert url.startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert process.communicate()[1].count("Traceback") == 0


def _command(example: str) -> list[str]:
    return [sys.executable, "-m", "quire", *shlex.split(example)[1:]]
