"""The table of built-in tools: one row decides the names, grants, risk and dispatch of a tool."""

from __future__ import annotations

import json
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

from quire.plan import built_in_tools
from quire.plan.built_in_tools import BUILT_IN_TOOLS, BuiltInTool
from quire.tools.builtin.connection import BuiltInConnection
from quire.trust.capabilities import Grants

MADE_UP = """
import asyncio, json, sys, types
from pathlib import Path

ROWS = '''
    BuiltInTool(
        name="clock__tell", id="rye/clock/tell", aliases=("rye/clock/say",), description="Tells.", effect="read",
        schema={"type": "object", "properties": {}}, function="clock.tell", risk="safe", granted="always",
        from_outside=True,
    ),
    BuiltInTool(
        name="bell", id="rye/bell", description="Rings.", effect="write", schema={}, function="ring", risk="safe",
        detail="place",
    ),
)
'''
head, _, tail = Path(sys.argv[2]).read_text().partition("BUILT_IN_TOOLS = (")
table = sys.modules["quire.plan.built_in_tools"] = types.ModuleType("quire.plan.built_in_tools")
exec(head + "BUILT_IN_TOOLS = (" + tail.replace("\\n)\\n", ROWS, 1), table.__dict__)

from quire.engine.interpreter.thread.tool_calls import OUTSIDE
from quire.tools.builtin import NAMES, SPECS
from quire.tools.builtin.connection import BuiltInConnection
from quire.trust.capabilities import Grants, canonical, from_flat_name
from quire.trust.risk import tier_of
from quire.workspace.configuration import load_settings
from quire.workspace.grants import default_grants
from quire.workspace.locate import Workspace


class Clock:
    def tell(self, arguments):
        return {"told": arguments}


async def ring(self, arguments):
    return "ding"


BuiltInConnection.clock = Clock()
BuiltInConnection.ring = ring
home = Path(sys.argv[1])
settings = load_settings(Workspace(home / "work"), {"QUIRE_HOME": str(home)})
granted = default_grants(settings)
connection = BuiltInConnection(home / "work", Grants(), {})
print(json.dumps({
    "alias": [canonical("clock__tell"), canonical("rye/clock/say"), from_flat_name("rye_clock_say")],
    "granted": [granted.allows("execute", "tool", name) for name in ("clock__tell", "bell")],
    "on request": default_grants(settings, ["bell"]).allows("execute", "tool", "rye/bell"),
    "detail": sorted(default_grants(settings, ["bell=docs"]).patterns - granted.patterns),
    "risk": [tier_of("rye.execute.tool.rye.clock.tell"), tier_of("rye.execute.tool.rye.bell")],
    "outside": ["rye/clock/tell".startswith(OUTSIDE), "rye/bell".startswith(OUTSIDE)],
    "named": NAMES["rye/clock/tell"],
    "dispatched": [
        asyncio.run(connection.call(SPECS[name], {"zone": "UTC"}, "e")) for name in ("clock__tell", "bell")
    ],
}))
"""


def test_a_new_row_is_all_that_a_tool_needs(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / "work").mkdir()
    table = str(built_in_tools.__file__)
    done = subprocess.run(
        [sys.executable, "-c", MADE_UP, str(home), table], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told == {
        "alias": ["rye/clock/tell"] * 3,
        "granted": [True, False],
        "on request": True,
        "detail": ["rye.execute.tool.rye.bell", "rye.reach.folder.docs"],
        "risk": ["safe", "safe"],
        "outside": [True, False],
        "named": "clock__tell",
        "dispatched": [{"told": {"zone": "UTC"}}, "ding"],
    }


@pytest.mark.parametrize("tool", [tool for tool in BUILT_IN_TOOLS if tool.function], ids=lambda tool: tool.name)
def test_the_function_of_a_row_exists(tool: BuiltInTool, tmp_path: Path) -> None:
    """Nothing else checks the reference: it is a text, so that no row imports the work of a tool."""
    assert callable(attrgetter(tool.function)(BuiltInConnection(tmp_path, Grants(), {})))


def test_ids_and_names_are_used_once() -> None:
    names = [name for tool in BUILT_IN_TOOLS for name in {tool.name, tool.id, *tool.aliases}]
    assert len(names) == len(set(names))
