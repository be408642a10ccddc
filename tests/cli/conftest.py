"""A workspace of its own for each test of a verb, and runs in it that a script has answered."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from quire.cli import main
from quire.errors import QuireError
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.values import Value

Invoke = Callable[..., Result]
MakeRun = Callable[..., str]
Said = Callable[[], tuple[str, str]]
"""What stdout and stderr got since the last time."""


class Door(click.Group):
    """Turns an error of ours into its exit code and its text, as the front door does."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except QuireError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(error.exit_code)


@pytest.fixture
def invoke(workspace: Path) -> Invoke:
    def call(command: click.Command, *arguments: str) -> Result:
        return CliRunner().invoke(Door("quire", commands=[command]), [str(command.name), *arguments])

    return call


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def read() -> tuple[str, str]:
        out, err = capsys.readouterr()
        return out, err

    return read


@pytest.fixture
def make_run(workspace: Path) -> MakeRun:
    """Writes a playbook, runs it against scripted replies until it rests, and gives back the run's id."""

    def make(
        text: str,
        replies: Sequence[Value] = (),
        inputs: dict[str, Value] | None = None,
        options: RunOptions | None = None,
        *,
        drive: bool = True,
        name: str = "page.playbook.md",
    ) -> str:
        file = workspace / name
        file.write_text(text)

        async def work() -> str:
            runtime = Runtime.open(workspace, model=ScriptedModel(list(replies)))
            try:
                run = await runtime.start(load(file.name), inputs or {}, options or RunOptions())
                if drive:
                    await runtime.drive(run)
                return run
            finally:
                await runtime.close()

        return asyncio.run(work())

    return make


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verbs that look for a run by themselves find a terminal; runs are still driven without one."""
    monkeypatch.setattr("quire.cli.terminal.somebody_is_here", lambda: True)


@pytest.fixture
def no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refused)
    monkeypatch.setattr(socket, "create_connection", refused)


def json_of(output: Said | pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Return the JSON that a command line prints, which ends with 0."""
    read = output.readouterr if isinstance(output, pytest.CaptureFixture) else output
    assert main([*arguments, "--json"]) == 0
    return json.loads(read()[0])
