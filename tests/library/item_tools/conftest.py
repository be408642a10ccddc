"""A shelf of signed items for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.library.item_tools.shelf import Shelf


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)
