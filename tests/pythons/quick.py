"""A pytest plugin for `make test-pythons`: fewer random examples, and no tests of time or of crashes at every write.

`make test` runs all of them on one interpreter. What differs between interpreters shows in a few examples as well.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

EXAMPLES = 20
TIMED = ("linear", "costs", "time", "quick", "quickly", "hostile", "proportion", "busy", "death")
_SETTINGS = "_hypothesis_internal_use_settings"


def pytest_configure(config: pytest.Config) -> None:
    # What an interpreter says it will take away, the next one has taken away.
    config.addinivalue_line("filterwarnings", r"error::DeprecationWarning:quire\..*")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    timed = [item for item in items if any(word in item.name.partition("[")[0].split("_") for word in TIMED)]
    config.hook.pytest_deselected(items=timed)
    items[:] = [item for item in items if item not in timed]
    for item in items:
        test: Any = getattr(item, "obj", None)
        if getattr(test, "is_hypothesis_test", False):
            own: Any = getattr(test, _SETTINGS, None) or settings.default
            setattr(test, _SETTINGS, settings(own, max_examples=min(own.max_examples, EXAMPLES), deadline=None))
