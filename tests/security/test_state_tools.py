"""What a workspace keeps between runs belongs to the user: no clone brings it, and no thread writes it unasked."""

from __future__ import annotations

import json
from pathlib import Path

from tests.security.stage import Call, Stage
from tests.tools.built_in import House

from quire.tools.builtin.state import State
from quire.trust.capabilities import capability
from quire.workspace.configuration import load_settings
from quire.workspace.grants import default_grants
from quire.workspace.locate import Workspace

PLANTED = json.dumps({"version": 1, "values": {"approved": True}})


async def test_a_clone_brings_no_state(tmp_path: Path) -> None:
    """Neither at the name that the file has in the user's space, nor in a folder that looks like that space."""
    house = House(tmp_path)
    file = State.of(Path(house.environ["QUIRE_HOME"]), house.folder).file
    for place in ("", ".quire/", ".quire/state/", "state/", ".config/quire/state/", ".ai/state/"):
        house.write(f"{place}{file.name}", PLANTED)
        house.write(f"{place}state.json", PLANTED)
    assert await house.call("state__get", name="approved") is None
    await house.call("state__set", name="approved", value=False)
    assert await house.call("state__get", name="approved") is False
    assert (house.folder / file.name).read_text() == PLANTED


async def test_a_thread_keeps_nothing_without_a_permission(stage: Stage) -> None:
    calls: list[Call] = [("rye_state_set", {"name": "approved", "value": True})]
    stage.directive("main", "<execute><tool>rye.file-system.*</tool></execute>")
    played = await stage.play("main", calls)
    assert not any("state" in one for one in played.offered)
    assert not State.of(stage.space, stage.work).file.exists()
    stage.directive("main", "<execute><tool>rye.state.set</tool></execute>")
    await stage.play("main", calls)
    assert State.of(stage.space, stage.work).values() == {"approved": True}


def test_the_home_folder_keeps_nothing_without_a_grant(tmp_path: Path) -> None:
    """There every document of the user, wherever it lies, would share one state."""
    needed = capability("execute", "tool", "state__set")
    environ = {"QUIRE_HOME": str(tmp_path)}
    assert not default_grants(load_settings(Workspace(Path.home()), environ)).covers(needed)
    assert default_grants(load_settings(Workspace(tmp_path), environ)).covers(needed)
