"""A stage of its own for each attack."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.security.stage import Stage
from tests.tools.built_in import house
from tests.tools.web import server

__all__ = ["house", "server", "stage"]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)
