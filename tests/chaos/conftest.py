"""A few parents of processes for all tests here: each takes a second to import what they need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.chaos.stable import Stable


@pytest.fixture(scope="session")
def stable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stable]:
    with Stable(tmp_path_factory.mktemp("stable")) as stable:
        yield stable


@pytest.fixture(scope="session")
def stables(stable: Stable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Stable]]:
    """For what goes on side by side."""
    with Stable(tmp_path_factory.mktemp("stable")) as other:
        yield [stable, other]
