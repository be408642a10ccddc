"""Both of PyYAML's parsers: the one in C, which is used where it was built, and the one in Python."""

from __future__ import annotations

from typing import cast

import pytest
import yaml

from quire.formats.yaml import parser_events as yaml_events


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name = cast("str", request.param)
    if not hasattr(yaml, name):
        pytest.skip("the C parser was not built here")
    monkeypatch.setattr(yaml_events, "_LOADER", getattr(yaml, name))
    return name
