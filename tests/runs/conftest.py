"""A workspace with runs of each format."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.travel import Travel


@pytest.fixture
def travel(tmp_path: Path) -> Travel:
    return Travel(tmp_path / "work")
