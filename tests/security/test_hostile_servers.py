"""An MCP server that is up to no good: what it says is capped, redacted, and never a reason to launch anything."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from tests.security import misbehaving
from tests.security.stage import Call, Stage, completed

from quire.errors import Untrusted

pytest.importorskip("mcp")

TOKEN = "token-of-the-environment"
SERVER = {
    "command": sys.executable,
    "args": ["-I", str(misbehaving.__file__), "gossip"],
    "env": {"SERVED_TOKEN": "${A_TOKEN}"},
}
PERMISSIONS = (
    "<execute><tool>mcp.served.*</tool><pipeline>*</pipeline></execute><acknowledge risk='elevated'>x</acknowledge>"
)
LAUNCH: Call = ("rye_execute", {"item_type": "pipeline", "item_id": "p"})


@pytest.fixture
def house(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path, environ={**os.environ, "A_TOKEN": TOKEN, "QUIRE_HOME": str(tmp_path / "space")})
    stage.write(".mcp.json", json.dumps({"mcpServers": {"served": SERVER}}))
    stage.write("pipelines/p.yaml", "pipeline: p\nsteps:\n- transform: {value: '1 + 1'}\n")
    stage.directive("main", PERMISSIONS)
    return stage


async def test_no_server_is_started_before_the_user_agrees(house: Stage) -> None:
    with pytest.raises(Untrusted, match="served"):
        await house.play("main")


@pytest.mark.parametrize("name", ["mcp_served_environment", "served__environment", "mcp/served/environment"])
async def test_by_whatever_name_its_words_are_from_outside(house: Stage, name: str) -> None:
    house.confirm()
    played = await house.play("main", [(name, {"name": "SERVED_TOKEN"})], [LAUNCH])
    assert completed(played) and played.kinds == ["", "denied"], played.told
    assert "launches no pipeline" in played.told[1]
    assert TOKEN not in played.everything() and "[redacted:" in played.told[0]


async def test_what_it_complains_about_is_cut_and_redacted(house: Stage) -> None:
    house.confirm()
    played = await house.play("main", [("mcp_served_fail", {"key": TOKEN + "x" * 2_000_000}), ("mcp_served_large", {})])
    assert played.kinds == ["tool", "result"] and all(len(one) < 10_000 for one in played.told), played.kinds
    assert TOKEN not in str(played.told) + str([one.failure for one in played.effects])
    assert all(len(one.failure.message) < 10_000 for one in played.effects if one.failure), "nor is more of it kept"
