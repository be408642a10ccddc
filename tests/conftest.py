"""What holds for all tests: a module of tools that one of them has written is not there for the next."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _no_modules_of_others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = set(sys.modules)
    yield
    written = tmp_path_factory.getbasetemp()
    for name in sys.modules.keys() - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(written):
            del sys.modules[name]
