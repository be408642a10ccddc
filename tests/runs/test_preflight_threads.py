"""The look before the start goes into directives: the one that is run, and those that documents call (G4)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.test_across_formats import DIRECTIVE, FILES, House
from tests.runs.test_certain import Unpriced

from quire.errors import BadInputs, CannotStart
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.stores import open_store
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import Workspace

CALLS = 'pipeline: p\nsteps:\n- agent: {prompt: Pay.}\n- call: {pipeline: greeter, pass: {who: "ctx.n"}}\n'
ARM = '# Page\n\n## INPUTS\n\n- `x` (string: a)\n\n## STEP 1: S\n\nSay.\n\n```if x == "b"```\n\n### STEP 1a: A\n\n'
MAYBE = ARM + '@tool(quire, greeter, {"who": "Ada"})\n\n```endif```\n'
BROKEN = '{"mcpServers": {"gone": {"command": "/nowhere/at-all"}}}'


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "workspace")


def opened(house: House, model: ScriptedModel | None) -> Runtime:
    settings = load_settings(Workspace(house.folder), house.environ)
    confirm(settings)
    store = open_store(house.folder / ".quire" / "quire.db", durability="process")
    return Runtime(settings, store, environ=house.environ, model=model)


async def warnings_of(house: House, file: Path, options: RunOptions | None = None) -> list[str]:
    runtime = opened(house, ScriptedModel([{"default": "fine"}]))
    inputs = {"who": "Ada"} if file.suffix == ".md" and "directives" in file.parts else {}
    try:
        return list(await runtime.warnings(await runtime.start(load(file), inputs, options or RunOptions())))
    finally:
        await runtime.close()


REFUSED = {
    "turns": (FILES, '<limits turns="0" />', "", "demo/greeter: limit reached: turns 0 of 0"),
    "server": ("<tool>mcp.gone.*</tool>", "", BROKEN, "demo/greeter: .*gone"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("door", ["itself", "pipeline", "playbook"])
async def test_what_ends_a_thread_before_its_first_turn_is_refused(house: House, name: str, door: str) -> None:
    permissions, limits, servers, said = REFUSED[name]
    directive = house.directive(permissions, limits)
    if servers:
        house.write(".mcp.json", servers)
    file = directive
    if door == "pipeline":
        file = house.write("p.yaml", CALLS)
    elif door == "playbook":
        call = '@tool(quire, greeter, {"who": "Ada"})'
        file = house.write("p.playbook.md", f"# P\n\n## STEP 1: A\n\nPay.\n\n## STEP 2: B\n\n{call}\n")
    model = ScriptedModel([{"default": "fine"}])
    runtime = opened(house, model)
    with pytest.raises(BadInputs, match=said):
        await runtime.start(load(file), {"who": "Ada"} if door == "itself" else {}, RunOptions())
    assert (await runtime.store.list(), model.calls) == ([], [])
    await runtime.close()


async def test_in_an_arm_it_only_warns(house: House) -> None:
    house.directive(FILES, '<limits turns="0" />')
    (warning,) = await warnings_of(house, house.write("p.playbook.md", MAYBE))
    assert "may fail, if the run comes to it: demo/greeter: limit reached: turns 0 of 0" in warning


async def test_a_server_that_is_not_there_and_a_child_that_is_not_are_warnings(house: House) -> None:
    """The model decides what it calls, so neither is certain."""
    text = DIRECTIVE.replace("{permissions}", "<tool>mcp.tickets.*</tool><directive>*</directive>").replace(
        "{limits}", ""
    )
    text = text.replace("{{", "{").replace("}}", "}")
    call = '\nRun `rye_execute(item_type="directive", item_id="demo/nobody")`.\n'
    file = house.write(".ai/directives/demo/greeter.md", text + call, sign=True)
    told = await warnings_of(house, file)
    assert 'demo/greeter: its permissions name the MCP server "tickets", which is not in .mcp.json' in told
    assert "demo/greeter: its instructions run demo/nobody, which does not exist as a directive" in told


async def test_a_spend_that_cannot_be_held_is_a_warning_and_a_budget_a_refusal(house: House) -> None:
    directive = house.directive(FILES, '<limits spend="1" />')
    runtime = opened(house, Unpriced([{"default": "fine"}]))
    with pytest.raises(CannotStart, match=r"the price of .* is not known"):
        await runtime.start(load(directive), {"who": "Ada"}, RunOptions(budget=1.0))
    assert await runtime.store.list() == []
    run = await runtime.start(load(directive), {"who": "Ada"}, RunOptions(limits={"tokens": None}))
    (warning,) = await runtime.warnings(run)
    assert "is not known, so its spend limit of 1 cannot be held: set a limit of tokens" in warning
    await runtime.close()


async def test_a_directive_that_has_all_it_needs_is_not_talked_about(house: House) -> None:
    directive = house.directive(FILES)
    assert await warnings_of(house, directive) == []
    assert await warnings_of(house, house.write("p.yaml", CALLS)) == []


async def test_a_model_that_a_called_directive_cannot_have_is_refused(house: House) -> None:
    house.directive(FILES)
    script = house.write("r.json", "[]")
    house.write(
        "../home/quire.toml", f'[models]\ndefault = "script:{script}"\n[models.tiers]\nlow = "script:nope.json"\n'
    )
    file = house.write("p.yaml", CALLS)
    runtime = opened(house, None)
    with pytest.raises(CannotStart, match=r"nope\.json"):
        await runtime.start(load(file), {}, RunOptions())
    assert await runtime.store.list() == []
    await runtime.close()
