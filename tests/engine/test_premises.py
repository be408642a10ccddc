"""The premises of proofs are the limits that hold elsewhere."""

from typing import Any

from quire.engine.interpreter.callees import Environment
from quire.engine.premises import (
    HTTP_SECONDS,
    LONGEST_HTTP,
    LONGEST_SHELL,
    SHELL_SECONDS,
    Premises,
    ToolSeconds,
    longest_call,
)
from quire.models.choose import ModelSettings
from quire.plan.built_in_tools import BUILT_IN_TOOLS, FETCH, SEND, SHELL
from quire.workspace.mcp_config import McpServer
from quire.workspace.settings import SpawnSettings


def test_defaults_are_those_of_empty_settings() -> None:
    premises = Premises()
    assert premises.timeout == ModelSettings().timeout
    assert premises.spawns == SpawnSettings().max_pipeline_spawns
    assert premises.repairs == Environment().repairs
    assert longest_call(premises.timeout) == 3600.0


def test_time_outs_of_built_in_tools_are_those_of_their_schemas() -> None:
    http, shell = (HTTP_SECONDS, LONGEST_HTTP), (SHELL_SECONDS, LONGEST_SHELL)
    known = {FETCH: http, SEND: http, SHELL: shell}
    found = {}
    for tool in BUILT_IN_TOOLS:
        properties: Any = tool.schema["properties"]
        if "timeout" in properties:
            schema = properties["timeout"]
            usual = known[tool.id][0]
            assert f"{usual:g} by default" in schema["description"]
            found[tool.id] = (usual, schema["maximum"])
    assert found == known


def test_no_call_of_a_tool_takes_longer_than_its_own_limit_and_grace() -> None:
    seconds = ToolSeconds()
    assert seconds.of("shell") == seconds.of("shell", LONGEST_SHELL)
    assert seconds.of("http", HTTP_SECONDS) < seconds.of("http")
    assert seconds.of("mcp") == seconds.of("mcp", McpServer("one").timeout)
    assert seconds.of("mcp", 10.0) < seconds.of("mcp")
