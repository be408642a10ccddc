"""Tools about documents: check, list and test them. A client reaches nothing outside of the workspace with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.mcp_server.serving import MODES, TOPIC, Serving, envelope, text

from quire.plan.built_in_tools import BUILT_IN_TOOLS

Serve = Callable[..., Serving]
both = pytest.mark.parametrize("mode", MODES)
TOOLS = ("check_document", "list_documents", "list_tools", "test_document")
TEST = "cases:\n  - {name: one, inputs: {name: Ann}, expect: {output: 'Hello, Ann!'}}\n"
SECRET = "the secret of another folder"
DIRECTIVE = """# X

```xml
<!DOCTYPE directive [<!ENTITY a SYSTEM "file://OUTSIDE"><!ENTITY b "&a;&a;&a;&a;">]>
<directive name="x" version="1.0.0"><metadata><description>&a;&b;</description></metadata></directive>
```
"""


@pytest.fixture
def outside(folder: Path) -> Path:
    file = folder.parent / "outside.playbook.md"
    file.write_text(f"# {SECRET}\n\n## STEP 1: A\n\nSay {{{{{SECRET.replace(' ', '_')}}}}}.\n")
    (folder / "link.playbook.md").symlink_to(file)
    return file


@both
async def test_an_agent_checks_lists_and_tests(serve: Serve, folder: Path, mode: str) -> None:
    (folder / "topic.playbook.md").write_text(TOPIC)
    (folder / "pipelines/greet.test.yaml").write_text(TEST)
    serving = serve()
    async with serving.client(mode) as client:
        offered = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert all(offered[name].annotations.read_only_hint for name in TOOLS)  # type: ignore[union-attr]
        run = envelope(await client.call_tool("pipeline__greet", {"name": "Ann"}))["data"]["run_id"]

        async def call(name: str, **arguments: object) -> Any:
            result = await client.call_tool(name, arguments)
            assert not result.is_error, text(result)
            return envelope(result)

        listed = await call("list_documents", q="topic")
        assert [row["id"] for row in listed["items"]] == ["topic.playbook.md"]
        assert run not in json.dumps(await call("list_documents"))
        assert (await call("check_document", path="pipelines/greet.yaml"))["diagnostics"] == []
        for wrong, code, format in (
            ("# A\n\n## STEP 1: B\n\nSay {{x}}.\n", "PB201", "playbook"),
            ("pipeline: a\nsteps:\n  - transfrom: {value: '1'}\n", "PL009", "pipeline"),
            (
                "schema: A\nfields: {a: {type: strin}}\n---\npipeline: a\nsteps: [{transform: {value: '1'}}]\n",
                "",
                "pipeline",
            ),
            ("cases:\n  - {name: a, inptus: {}}\n", "", "test"),
        ):
            checked = await call("check_document", text=wrong)
            assert checked["format"] == format and code in str(checked["diagnostics"]) and checked["diagnostics"]
        (case,) = (await call("test_document", id="pipelines/greet.yaml"))["cases"]
        assert (case["case"], case["outcome"]) == ("one", "passed")
        tools = await call("list_tools")
        assert [tool["id"] for tool in tools["tools"]][: len(BUILT_IN_TOOLS)] == [tool.id for tool in BUILT_IN_TOOLS]
    assert len(await serving.runtime.store.list()) == 1


HOSTILE: dict[str, tuple[str, dict[str, object]]] = {
    "path up": ("check_document", {"path": "../outside.playbook.md"}),
    "path up again": ("check_document", {"path": "pipelines/../../outside.playbook.md"}),
    "absolute path": ("check_document", {"path": "OUTSIDE"}),
    "link": ("check_document", {"path": "link.playbook.md"}),
    "text at a place above": ("check_document", {"path": "../x.playbook.md", "text": "# A\n"}),
    "text at an absolute place": ("check_document", {"path": "OUTSIDE", "text": "# A\n"}),
    "test up": ("test_document", {"id": "../outside.playbook.md"}),
    "zero byte": ("check_document", {"path": "a\0b.yaml"}),
    "nothing": ("check_document", {}),
    "huge text": ("check_document", {"text": "x" * 1_000_001}),
    "not a text": ("check_document", {"text": ["# A"]}),
    "unknown argument": ("list_tools", {"connect": True}),
    "limit": ("list_documents", {"limit": -1}),
    "model": ("test_document", {"id": "pipelines/greet.yaml", "live": True}),
}


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_call_is_refused(serve: Serve, outside: Path, name: str) -> None:
    tool, arguments = HOSTILE[name]
    given = {key: str(outside) if value == "OUTSIDE" else value for key, value in arguments.items()}
    async with serve().client("auto") as client:
        result = await client.call_tool(tool, given)
    assert result.is_error and SECRET not in str(result.content) and len(text(result)) < 1_000


@pytest.mark.usefixtures("outside")
async def test_a_link_that_leads_out_is_not_read(serve: Serve) -> None:
    async with serve().client("auto") as client:
        tested = await client.call_tool("test_document", {"id": "link.playbook.md"})
        listed = await client.call_tool("list_documents", {})
    assert envelope(tested)["cases"] == [] and SECRET not in f"{tested}{listed}"


TEXTS = {
    "doctype": DIRECTIVE,
    "prompt file": "# A\n\n## STEP 1: B\n\n@prompt(file:../outside.playbook.md)\n\nGo.\n",
    "prompt file of pipeline": "pipeline: a\ndialect: quire\nsteps: [{agent: {prompt: !file ../outside.md}}]\n",
    "test of a document outside": "document: ../outside.playbook.md\ncases: [{name: a, inputs: {x: 1}}]\n",
    "aliases": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "deep": "pipeline: a\nsteps: " + "[" * 20_000,
    "many mistakes": "pipeline: a\nsteps:\n" + "  - transfrom: {value: '1'}\n" * 20_000,
    "hidden": "# \u202e\u200b\x1b[2J\n\n## STEP 1: A\n\nB\n",
}


@pytest.mark.parametrize("name", TEXTS)
async def test_a_hostile_text_is_only_read(serve: Serve, outside: Path, name: str) -> None:
    before = {*outside.parent.rglob("*")}
    async with serve().client("auto") as client:
        result = await client.call_tool("check_document", {"text": TEXTS[name].replace("OUTSIDE", str(outside))})
    assert SECRET not in str(result.content) and SECRET not in str(result.structured_content)
    assert result.is_error or name == "hidden" or envelope(result)["diagnostics"]
    assert {path.name for path in {*outside.parent.rglob("*")} - before} <= {
        "home",
        "mcp.key",
        ".quire",
        "quire.db",
        ".gitignore",
    }
