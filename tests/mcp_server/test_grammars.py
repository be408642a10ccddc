"""The grammars as resources and prompts of a real client, and what a client is told about a wrong definition."""

from __future__ import annotations

from collections.abc import Callable

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from tests.mcp_server.serving import MODES, Serving, envelope, text

from quire.formats.grammars import GRAMMARS, PIPELINE

Serve = Callable[..., Serving]
both = pytest.mark.parametrize("mode", MODES)
WRONG = """\
pipeline: x
steps:
  - tool: {name: file__raed, args: {path: quire.toml}}
  - transform: {value: "1 +"}
  - agent: {prompt: hi, identity: boss, schema: Nothing}
"""


@both
async def test_every_grammar_is_a_resource(serve: Serve, mode: str) -> None:
    async with serve().client(mode) as client:
        resources = (await client.list_resources()).resources
        contents = [(await client.read_resource(one.uri)).contents for one in resources]
        with pytest.raises(MCPError, match=r"did you mean quire://grammar/pipeline\?"):
            await client.read_resource("quire://grammar/pipelin")
    assert [one.uri for one in resources] == [f"quire://grammar/{one.key}" for one in GRAMMARS]
    assert {one.mime_type for one in resources} == {"text/markdown"}
    for (content,), grammar in zip(contents, GRAMMARS, strict=True):
        assert isinstance(content, types.TextResourceContents)
        assert (content.text, content.mime_type) == (grammar.text, "text/markdown")


@both
async def test_a_prompt_asks_for_a_document(serve: Serve, mode: str) -> None:
    async with serve().client(mode) as client:
        prompts = (await client.list_prompts()).prompts
        asked = await client.get_prompt("write_pipeline", {"task": "Count the {words} of a text."})
        for name, arguments, message in (
            ("write_pipelines", {"task": "x"}, "did you mean write_pipeline?"),
            ("write_playbook", {}, "write_playbook needs task"),
            ("write_playbook", {"task": "  "}, "write_playbook needs task"),
            ("write_directive", {"taks": "x"}, "did you mean task?"),
        ):
            with pytest.raises(MCPError, match=message):
                await client.get_prompt(name, arguments)
    assert [one.name for one in prompts] == [f"write_{one.key.replace('/', '_')}" for one in GRAMMARS]
    assert all(one.arguments and one.arguments[0].required for one in prompts)
    (sent,) = asked.messages
    assert sent.role == "user" and isinstance(sent.content, types.TextContent)
    assert sent.content.text.startswith(PIPELINE.text) and "Count the {words} of a text." in sent.content.text


@both
async def test_the_launch_tools_say_how_a_definition_is_written(serve: Serve, mode: str) -> None:
    async with serve(inline=True).client(mode) as client:
        tools = {tool.name: tool.description or "" for tool in (await client.list_tools()).tools}
    assert tools["run_pipeline_inline"].endswith(PIPELINE.text)
    assert "run_pipeline_inline describes" in tools["run_pipeline_inline_async"]
    assert len(tools["run_pipeline_inline"]) < 6_000 and len(tools["run_pipeline_inline_async"]) < 400
    assert PIPELINE.text not in tools["run_pipeline"]


@both
@pytest.mark.parametrize("tool", ["run_pipeline_inline", "run_pipeline_inline_async"])
async def test_all_errors_of_a_definition_come_back_with_their_places(serve: Serve, mode: str, tool: str) -> None:
    serving = serve(inline=True)
    async with serving.client(mode) as client:
        result = await client.call_tool(tool, {"definition": WRONG})
    found = envelope(result)
    assert result.is_error and found["status"] == "error" and "run_id" not in found["data"]
    errors = found["data"]["errors"]
    assert [(one["code"], one["line"], one["column"]) for one in errors] == [
        ("PL103", 3, 18),
        ("EX001", 4, 28),
        ("PL031", 5, 35),
        ("PL102", 5, 49),
    ]
    assert errors[0]["help"].startswith('did you mean "file__read"?') and errors[0]["step"] == "1"
    assert errors[3]["text"] == "- agent: {prompt: hi, identity: boss, schema: Nothing}"
    told = text(result).splitlines()
    assert told[0].startswith("the inline definition is invalid; nothing was started")
    assert told[1].startswith(
        "- line 3, column 18, in `- tool: {name: file__raed, args: {path: quire.toml}}`: the tool "
    )
    assert told[2].startswith('  help: did you mean "file__read"?')
    assert len(told) == 1 + len(errors) + sum(bool(one["help"]) for one in errors)
    for one in errors:
        assert f"line {one['line']}, column {one['column']}: {one['message']}" in found["data"]["error"]
    assert await serving.runtime.store.list() == []
