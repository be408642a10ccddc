"""Servers are closed when their test is over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.mcp_server.serving import APPROVE, GREET, Serving, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return write(folder, greet=GREET, approve=APPROVE)


@pytest.fixture
async def serve(folder: Path) -> AsyncIterator[Callable[..., Serving]]:
    serving: list[Serving] = []

    def open_one(**options: Any) -> Serving:
        serving.append(Serving(folder, **options))
        return serving[-1]

    yield open_one
    for one in serving:
        await one.runtime.close()
