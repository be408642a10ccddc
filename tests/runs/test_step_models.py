"""The models and tools of playbook steps: the document asks, the settings of the user decide, the run pins it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quire.engine.driver.drive import DriveResult
from quire.engine.records import Status
from quire.engine.requests import ModelRequest, ToolRequest
from quire.errors import BadInputs, ToolFailed, Untrusted
from quire.library.callees import document_from_pin
from quire.library.document import load
from quire.library.foresight import Foresight
from quire.library.step_models import playbook_settings
from quire.models.choose import ModelSettings
from quire.models.scripted import ScriptedModel
from quire.models.tiers import step_model
from quire.plan.descriptions import written
from quire.plan.nodes import Think
from quire.runs.fork import Changes, fork
from quire.runs.options import RunOptions
from quire.runs.repair import repair
from quire.runs.runtime import Runtime
from quire.runs.workspace_gate import open_gate
from quire.source import Source
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm, requests
from quire.workspace.grants import default_grants
from quire.workspace.locate import find_workspace

PLAN = """\
# Plan

## STEP 1: Look

Look.

## STEP 2: Sort

Sort.
@model(cheap)

## STEP 3: Decide

```if __elicit_step_9 != "x"```

### STEP 3a: Deep

Decide.
@model(reader)

```endif```

## STEP 4: Write

Write.
@model(high)
"""

SETTINGS = """\
[models]
default = "script:{0}/own.json"

[models.tiers]
small = "script:{0}/small.json"

[agents.reader]
model = "script:{0}/reader.json"
system = "Not for playbooks."
tools = ["file__read", "file__write", "ask"]
turns = 4
temperature = 0.5
"""


class Place:
    """A workspace with a user's space; each model says its own name."""

    def __init__(self, folder: Path) -> None:
        self.work, self.home = folder / "work", folder / "home"
        for one in (self.work, self.home):
            one.mkdir()
        for name in ("own", "small", "reader", "other"):
            (self.home / f"{name}.json").write_text(json.dumps([{"default": f"by {name}"}]))
        self.settings(SETTINGS)
        self.plan = self.work / "plan.playbook.md"
        self.plan.write_text(PLAN)
        self.environ = {"QUIRE_HOME": str(self.home)}

    def settings(self, *parts: str) -> None:
        (self.home / "quire.toml").write_text("\n".join(parts).format(self.home))

    def runtime(self, **given: Any) -> Runtime:
        return Runtime.open(self.work, environ=self.environ, **given)

    async def start(self, options: RunOptions = RunOptions(), **given: Any) -> tuple[Runtime, str]:  # noqa: B008
        runtime = self.runtime(**given)
        return runtime, await runtime.start(load(self.plan), {}, options)

    async def models(self, options: RunOptions = RunOptions(), **given: Any) -> list[str]:  # noqa: B008
        """Return the replies of the steps that asked a model, in order."""
        runtime, run = await self.start(options, **given)
        ended = await runtime.drive(run)
        assert ended.status is Status.COMPLETED, ended
        view = await runtime.view(run)
        await runtime.close()
        return [str(one.value["text"]) for one in view.effects if isinstance(one.value, dict) and "text" in one.value]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-secret")
    return Place(tmp_path)


async def test_a_step_is_done_by_the_model_that_it_asks_for(place: Place) -> None:
    assert await place.models() == ["by own", "by small", "by reader", "by own"]


async def test_a_tier_that_is_not_here_is_a_warning_and_the_run_has_its_own_model(place: Place) -> None:
    runtime, run = await place.start()
    [warning] = await runtime.warnings(run)
    assert warning == "step 4: no tier and no profile is named high here, so another model does it"
    await runtime.close()


async def test_the_users_own_model_is_for_all_steps(place: Place) -> None:
    """Whoever says --model, to keep prompts on this machine or to save, is not overruled by a document."""
    spec = f"script:{place.home}/other.json"
    assert await place.models(RunOptions(model=spec)) == ["by other"] * 4
    assert await place.models(model=ScriptedModel([{"default": "given"}])) == ["given"] * 4


async def test_settings_of_a_playbook_and_its_steps(place: Place) -> None:
    place.settings(
        SETTINGS,
        '[playbooks."plan"]\nmodel = "script:{0}/other.json"\n[playbooks."plan".steps."2"]\nmodel = "reader"\n'
        '[playbooks."plan".steps."4"]\nmodel = "small"\n',
    )
    assert await place.models() == ["by other", "by reader", "by reader", "by small"]


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("plan.playbook.md", "plan"),
        ("playbooks/sub/plan.playbook.md", "sub/plan"),
        ("/w/playbooks/other/plan.md", "plan"),
        ("my-plan.playbook.md", ""),
        ("sub.playbook.md", ""),
        ("", ""),
    ],
)
def test_a_playbook_is_named_by_its_file(place: Place, file: str, key: str) -> None:
    place.settings('[playbooks."plan"]\nmodel = "a:b"\n[playbooks."sub/plan"]\nmodel = "c:d"\n')
    found, _ = playbook_settings(file, load_settings(find_workspace(place.work), place.environ))
    assert found == key


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('[playbooks."plan"]\nmodle = "x"\n', 'did you mean "model"?'),
        ('[playbooks."plan"]\nagent = 3\n', "must be text"),
        ('[playbooks]\nplan = "x"\n', "must be a table"),
        ('[playbooks."plan".steps."2"]\ntier = "x"\n', "is not a setting"),
        ('[playbooks."plan".steps]\n2 = "cheap"\n', "must be a table"),
    ],
)
def test_wrong_settings_are_named(place: Place, settings: str, said: str) -> None:
    place.settings(settings)
    with pytest.raises(Exception, match=r"quire\.toml") as wrong:
        place.runtime()
    assert said in str(wrong.value) and "\n" not in str(wrong.value)


async def test_an_agent_that_is_not_there_is_refused_before_anything_is_paid(place: Place) -> None:
    place.settings(SETTINGS, '[playbooks."plan"]\nagent = "raeder"\n')
    runtime = place.runtime()
    with pytest.raises(BadInputs, match='unknown agent raeder; did you mean "reader"'):
        await runtime.start(load(place.plan), {}, RunOptions())
    assert await runtime.store.list() == []
    await runtime.close()


async def test_a_step_of_the_settings_that_is_not_there_is_a_warning(place: Place) -> None:
    place.settings(SETTINGS, '[playbooks."plan".steps."9"]\nmodel = "small"\n')
    runtime, run = await place.start()
    assert 'quire.toml: [playbooks."plan".steps."9"]: the playbook has no step 9' in await runtime.warnings(run)
    await runtime.close()


async def drive(place: Place, *uses: dict[str, Any]) -> tuple[DriveResult, list[str], Runtime, str]:
    """Run a playbook of one step whose model uses tools; return what the tools said."""
    place.plan.write_text("# Plan\n\n## STEP 1: Look\n\nLook.\n")
    place.settings(SETTINGS, '[playbooks."plan"]\nagent = "reader"\n')
    calls = [{"step": "1", "tool_calls": [use]} for use in uses]
    (place.home / "reader.json").write_text(json.dumps([*calls, {"step": "1", "reply": "done"}]))
    (place.work / "notes.txt").write_text("tea")
    runtime, run = await place.start()
    ended = await runtime.drive(run)
    view = await runtime.view(run)
    last = next(one for path, one in reversed(view.replay.asked.items()) if isinstance(one, ModelRequest))
    return ended, [message.content for message in last.messages if message.role == "tool"], runtime, run


async def test_an_agent_lets_steps_use_its_tools_that_only_read(place: Place) -> None:
    use = {"name": "file__read", "input": {"path": "notes.txt"}}
    write = {"name": "file__write", "input": {"path": "x.txt", "content": "x"}}
    ended, told, runtime, run = await drive(place, use, write, {"name": "ask", "input": {"prompt": "?"}})
    assert ended.status is Status.COMPLETED and ended.result == {"output": "done", "artifact_type": "", "named": {}}
    assert "tea" in told[0]
    assert "there is no tool file__write (known: file__read)" in told[1] and "there is no tool ask" in told[2]
    assert not (place.work / "x.txt").exists()
    view = await runtime.view(run)
    first = view.replay.asked["1/model"]
    assert isinstance(first, ModelRequest)
    assert (first.identity, first.temperature, first.system) == ("reader", 0.5, "")
    await runtime.close()


async def test_a_pattern_offers_no_tool_that_writes(place: Place) -> None:
    place.plan.write_text("# Plan\n\n## STEP 1: Look\n\nLook.\n")
    place.settings(
        SETTINGS.replace('["file__read", "file__write", "ask"]', '["*"]'), '[playbooks."plan"]\nagent = "reader"\n'
    )
    runtime, run = await place.start(RunOptions(allow=("file__write=.", "shell")))
    await runtime.drive(run)
    view = await runtime.view(run)
    offered = next(one.value for one in view.effects if one.kind == "offer")
    assert isinstance(offered, list)
    names = [one[0] for one in offered]
    assert "file__read" in names and not {"file__write", "shell", "file__edit_lines"} & set(names)
    await runtime.close()


async def test_the_choice_is_pinned(place: Place) -> None:
    runtime, run = await place.start()
    await runtime.close()
    place.settings(SETTINGS.replace("small.json", "other.json").replace("[agents.reader]", "[agents.writer]"))
    again = place.runtime()
    ended = await again.drive(run)
    view = await again.view(run)
    replies = {
        one.path: one.value["text"] for one in view.effects if isinstance(one.value, dict) and "text" in one.value
    }
    # A tier is looked up when it is asked, like that of an agent; a profile is pinned whole.
    assert replies["2/model"] == "by other" and replies["3/case[1]/1/model"] == "by reader"
    assert ended.status is Status.COMPLETED
    await again.close()


async def test_a_fork_keeps_the_models_and_a_repair_chooses_again(place: Place) -> None:
    runtime, run = await place.start()
    await runtime.drive(run)
    made = await fork(runtime, run, "4", Changes())
    assert (await runtime.drive(made.run)).status is Status.COMPLETED
    assert sum(one.kind == "model" for one in (await runtime.view(made.run)).effects) == 4
    place.plan.write_text(PLAN.replace("@model(high)", "@model(cheap)"))
    repaired = await repair(runtime, run, str(place.plan), Changes())
    assert repaired.kept == 3 and repaired.misfit[1] == "4/model"
    assert (await runtime.drive(repaired.run)).status is Status.COMPLETED
    view = await runtime.view(repaired.run)
    assert [one.value["text"] for one in view.effects if isinstance(one.value, dict)][-1] == "by small"
    other = await fork(runtime, run, "2", Changes(model=f"script:{place.home}/other.json"))
    await runtime.drive(other.run)
    texts = [one.value["text"] for one in (await runtime.view(other.run)).effects if isinstance(one.value, dict)]
    assert texts == ["by own", "by other", "by other", "by other"]
    await runtime.close()


async def test_a_called_playbook_has_its_own_settings(place: Place) -> None:
    outer = place.work / "outer.playbook.md"
    outer.write_text("# Outer\n\n## STEP 1: Call\n\n@tool(quire, plan)\n")
    place.settings(SETTINGS, '[playbooks."plan"]\nmodel = "script:{0}/other.json"\n')
    place.plan = outer
    assert await place.models() == ["by other", "by small", "by reader", "by other"]


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ('[playbooks."plan"]\nmodel = "openai:gpt-6.1-sol"\n', None),
        ('[playbooks."plan"]\nagent = "reader"\n', None),
        ('[agents.reader]\nmodel = "openai:gpt-6.1-sol"\n', None),
        ('[models.tiers]\nhigh = "openai:gpt-6.1-sol"\n', None),
        ('[models.tiers]\nsmall = "openai:gpt-6.1-sol"\n', None),
    ],
)
async def test_a_workspace_may_only_ask_for_models(place: Place, settings: str, asked: str | None) -> None:
    """The user has a model that stays on this machine; a clone must not send the prompts elsewhere."""
    (place.work / "quire.toml").write_text(settings)
    place.environ |= {"OPENAI_API_KEY": "sk-secret-secret"}
    runtime = place.runtime()
    with pytest.raises(Untrusted):
        await runtime.start(load(place.plan), {}, RunOptions(model=asked))
    assert await runtime.store.list() == []
    await runtime.close()
    agreed = load_settings(find_workspace(place.work), place.environ)
    assert requests(agreed)
    confirm(agreed)
    runtime, _ = await place.start()
    await runtime.close()


async def test_a_workspace_that_chooses_for_another_playbook_asks_nothing(place: Place) -> None:
    (place.work / "quire.toml").write_text('[playbooks."other"]\nmodel = "openai:gpt-6.1-sol"\n')
    # An agent with tools opens the gate of the workspace, which asks in any case.
    place.settings(SETTINGS.replace("tools", "# tools"))
    assert await place.models() == ["by own", "by small", "by reader", "by own"]


@pytest.mark.parametrize(
    ("name", "tiers", "own", "model"),
    [
        ("cheap", {"cheap": "a:b"}, "openai:gpt-6.1-terra", "cheap"),
        ("cheap", {"fast": "a:b"}, "openai:gpt-6.1-terra", "fast"),
        ("cheap", {}, "openai:gpt-6.1-terra", "openai:gpt-5.4-mini"),
        ("cheap", {}, "openai:gpt-5.4-mini", ""),
        ("cheap", {}, "ollama:qwen", ""),
        ("general", {}, "openai:gpt-5.4-mini", ""),
        ("high", {}, "openai:gpt-5.4-mini", None),
        ("orchestrator", {"high": "a:b"}, "openai:gpt-5.4-mini", "high"),
        ("openai", {}, "openai:gpt-5.4-mini", None),
    ],
)
def test_a_document_alone_never_makes_a_step_dearer(
    name: str, tiers: dict[str, str], own: str, model: str | None
) -> None:
    assert step_model(name, ModelSettings(tiers=tiers), own) == model


def test_bounds_and_envelope_know_the_tools(place: Place) -> None:
    place.settings(SETTINGS, '[playbooks."plan"]\nagent = "reader"\n')
    foresight = Foresight(load_settings(find_workspace(place.work), place.environ))
    plan = load(place.plan).runnable()
    bounds, envelope = foresight.of(plan, str(place.plan))
    assert bounds.model_calls.most is not None and bounds.model_calls.most > 4
    assert bounds.tool_calls.most == 3_200 and bounds.questions.most == 0
    assert [need.capability for need in envelope.needs] == ["rye.execute.tool.rye.file-system.read"]
    without, _ = foresight.of(plan)
    assert without.model_calls.most == 4


async def test_a_budget_needs_the_prices_of_all_models(place: Place) -> None:
    place.settings(
        SETTINGS.replace("script:{0}/small.json", "house:small"),
        '[models.providers.house]\nbase_url = "http://127.0.0.1:9/v1"\n',
    )
    runtime = place.runtime()
    with pytest.raises(Exception, match="house:small"):
        await runtime.start(load(place.plan), {}, RunOptions(budget=1.0))
    await runtime.close()


async def test_the_gate_itself_holds_a_step_to_reading(place: Place) -> None:
    """Offers are recorded: after a resume a server may say something else about its tools."""
    settings = load_settings(find_workspace(place.work), place.environ)
    (place.work / "notes.txt").write_text("tea")
    async with open_gate(settings, default_grants(settings, ()), place.environ) as gate:
        write = {"path": "x.txt", "content": "x"}
        with pytest.raises(ToolFailed, match="changes something, and this step may only read"):
            await gate.call(ToolRequest("1/turn[1]/tool[0]", "1", "", "file__write", write, reads_only=True), "")
        assert not (place.work / "x.txt").exists()
        read = ToolRequest("1/turn[1]/tool[0]", "1", "", "file__read", {"path": "notes.txt"}, reads_only=True)
        assert "tea" in str(await gate.call(read, ""))


def test_a_run_of_older_rules_reads_its_document_as_it_was() -> None:
    text = "# T\n\n## STEP 1: A\n\nSay it.\n@model(cheap)\n@context(none)\n\n## ARTIFACTS\n\nfrom: 1\n"
    for rules, said in ((1, True), (2, True), (3, False)):
        plan = document_from_pin(Source.of(text, "t.playbook.md"), "playbook", "", "", rules).runnable()
        work = plan.body.steps[0].work
        assert isinstance(work, Think)
        assert ("@model(cheap)" in written(work.prompt)) is said
        assert (work.context is None) is (plan.artifact is None) is said
