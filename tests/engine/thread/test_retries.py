"""§3: a directive waits out a provider's bad moment as every other document does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.directive_project import call, write_directives

import quire
from quire.engine.ports import ModelCall, ModelReply
from quire.models.retry import Retrying, TransportFailed

BROKEN = TransportFailed("the stream ended before its first event", kind="connection")


class Moody:
    """Fails so many times, then does as its script says."""

    def __init__(self, failures: int) -> None:
        self.left = failures
        self.script = quire.ScriptedModel([{"tool_calls": [call("directive_return", path="report.txt", ok=True)]}])

    @property
    def name(self) -> str:
        return "moody"

    async def complete(self, request: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        if self.left:
            self.left -= 1
            raise TransportFailed(BROKEN.message, kind=BROKEN.kind)
        return await self.script.complete(request, on_delta)


@pytest.mark.parametrize(("failures", "status"), [(4, "completed"), (9, "failed")])
async def test_a_thread_waits_as_long_as_any_document(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, failures: int, status: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_directives(tmp_path)
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    model = Retrying(Moody(failures), sleep=wait)
    result = await quire.run("deploy_staging", inputs={"target": "staging"}, model=model)
    assert result.status == status, result.error
    assert waits == [1.0, 2.0, 4.0, 8.0]
