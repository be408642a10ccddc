"""What cannot work is said before anything is paid for; what fails all the same says at which step."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.documents import load
from quire.engine.records import Status
from quire.errors import BadInputs
from quire.models.scripted import ScriptedModel
from quire.runtime import RunOptions, Runtime

BAD = {
    "arguments": (
        "@tool(quire, file__read, {path: 1})",
        "step 2: @tool(quire, file__read): the arguments are not JSON",
    ),
    "shell": ('@tool(quire, shell, {"command": "ls {{x}}"})', "a command with values in it is a list"),
    "server": ("@prompt(mcp:nope/x)\n\nGo.", 'step 2: prompt mcp:nope/x: there is no connection "nope"'),
    "header": (
        '@tool(quire, http__get, {"url": "https://example.com", "headers": {"Authorization": "Bearer {{x}}"}})',
        "step 2: the header Authorization cannot be set, because http__get sends no secrets: use an MCP server",
    ),
    "file": ("@prompt(file:../x.md)\n\nGo.", "step 2: prompt file:../x.md: must be a path below"),
}


@pytest.fixture(autouse=True)
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "home"))
    (tmp_path / "quire.toml").write_text("")


def page(folder: Path, *steps: str) -> Path:
    written = "\n\n".join(f"## STEP {at}: S\n\n{text}" for at, text in enumerate(("Say.", *steps), 1))
    file = folder / "page.playbook.md"
    file.write_text(f"# Page\n\n## INPUTS\n\n- `x` (string: a): X\n\n{written}\n")
    return file


@pytest.mark.parametrize("name", BAD)
async def test_it_is_refused_before_the_first_call(tmp_path: Path, name: str) -> None:
    step, said = BAD[name]
    model = ScriptedModel([{"default": "fine"}])
    runtime = Runtime.open(tmp_path, model=model)
    with pytest.raises(BadInputs) as caught:
        await runtime.start(load(page(tmp_path, step)), {}, RunOptions(allow=("shell", "http__get")))
    assert said in str(caught.value)
    assert await runtime.store.list() == []
    await runtime.close()


async def test_all_of_it_is_said_at_once(tmp_path: Path) -> None:
    runtime = Runtime.open(tmp_path, model=ScriptedModel([{"default": "fine"}]))
    with pytest.raises(BadInputs) as caught:
        await runtime.start(
            load(page(tmp_path, *(step for step, _ in BAD.values()))), {}, RunOptions(allow=("shell", "http__get"))
        )
    assert len(caught.value.problems) == len(BAD)
    await runtime.close()


async def test_a_cluster_refuses_what_the_document_alone_tells(tmp_path: Path) -> None:
    opened = Runtime.open(tmp_path, model=ScriptedModel([{"default": "fine"}]))
    runtime = Runtime(opened.settings, opened.store, model=ScriptedModel([{"default": "fine"}]), queue="q")
    with pytest.raises(BadInputs, match="are not JSON"):
        await runtime.start(load(page(tmp_path, BAD["arguments"][0])), {}, RunOptions())
    await runtime.close()


@pytest.mark.parametrize(
    ("step", "kind"),
    [("@prompt({{unset}})\n\nGo.", "undefined"), ("@tool(quire, file__read, {{x}})", "arguments")],
)
async def test_a_failure_before_the_first_effect_of_its_step_has_its_label(
    tmp_path: Path, step: str, kind: str
) -> None:
    runtime = Runtime.open(tmp_path, model=ScriptedModel([{"default": "fine"}]))
    run = await runtime.start(load(page(tmp_path, step)), {}, RunOptions())
    ended = await runtime.drive(run)
    assert ended.failure is not None
    assert (ended.status, ended.position, ended.failure.kind) == (Status.FAILED, "2", kind)
    row = await runtime.row(run)
    assert (row.position, row.ended_by) == ("2", ("2",))
    await runtime.close()


async def test_a_sub_step_has_its_own(tmp_path: Path) -> None:
    arm = '```if x == "a"```\n\n### STEP 2a: A\n\n@prompt({{unset}})\n\nGo.\n\n```endif```'
    runtime = Runtime.open(tmp_path, model=ScriptedModel([{"default": "fine"}]))
    run = await runtime.start(load(page(tmp_path, arm)), {}, RunOptions())
    assert (await runtime.drive(run)).position == "2a"
    await runtime.close()


async def test_a_pipeline_is_refused_for_a_header_too(tmp_path: Path) -> None:
    file = tmp_path / "fetch.yaml"
    file.write_text(
        "pipeline: fetch\nsteps:\n  - agent: {prompt: Say.}\n  - tool: {name: rye/web/fetch, args: "
        "{url: 'https://example.com', headers: {authorization: x, Accept: text/html}}}\n"
    )
    model = ScriptedModel([{"default": "fine"}])
    runtime = Runtime.open(tmp_path, model=model)
    with pytest.raises(BadInputs, match="step 2: the header authorization cannot be set"):
        await runtime.start(load(file), {}, RunOptions(allow=("http__get",)))
    assert model.calls == []
    await runtime.close()
