"""Documents that call documents of other formats, threads that launch pipelines: real files, keys and gate."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.directives import directive
from tests.engine.test_pipeline import output
from tests.signed import SignedWorkspace

from quire.engine.driver.drive import DriveResult
from quire.engine.records import Event, NewRun, Status
from quire.errors import Refused
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.drives import Given
from quire.runs.options import RunOptions
from quire.values import Value

DIRECTIVE = directive(
    "greeter",
    "",
    "Greet {{input:who}}.",
    meta="{limits}<permissions><execute>{permissions}</execute></permissions>",
    more="""<inputs><input name="who" type="string" required="true">Whom</input></inputs>
<outputs><output name="greeting" required="true">What was said</output></outputs>""",
)
FILES = "<tool>rye.file-system.*</tool>"
PIPELINES = "<tool>rye.file-system.*</tool><pipeline>*</pipeline><playbook>*</playbook>"
DOUBLE = """
pipeline: double
description: Doubles a number.
steps:
- transform: {value: "ctx.n * 2"}
"""
SHOUT = """# Shout

## INPUTS

- `word` (string)

## STEP 1: Shout

Shout {{word}}.

@output(loud)
"""


class House(SignedWorkspace):
    """A workspace with a key, and runs on a script."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.events: list[Event] = []

    def directive(self, permissions: str = FILES, limits: str = "") -> Path:
        text = DIRECTIVE.replace("{permissions}", permissions).replace("{limits}", limits)
        text = text.replace("{{", "{").replace("}}", "}")
        return self.write(".ai/directives/demo/greeter.md", text, sign=True)

    async def run(
        self, file: Path, inputs: Mapping[str, Value], script: list[Any], allow: tuple[str, ...] = ()
    ) -> tuple[DriveResult, ScriptedModel]:
        model = ScriptedModel(script)
        async with self.opened(model) as runtime:
            run = await runtime.start(load(file), inputs, RunOptions(allow=allow))
            return await runtime.drive(run, listen=self.events.append), model

    async def go_on(self, answer: str, script: list[Any], limits: Mapping[str, Value]) -> DriveResult:
        """Answers what the only run asks, and drives it further, as another process would."""
        async with self.opened(ScriptedModel(script)) as runtime:
            (row,) = await runtime.store.list()
            await runtime.answer(row.id, None, answer)
            return await runtime.drive(row.id, given=Given(limits=limits))

    def told(self) -> list[Any]:
        return [json.loads(str(event.data["result"])) for event in self.events if event.type == "tool_told"]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    yield House(tmp_path / "work")


def use(tool: str, /, **given: Value) -> dict[str, Value]:
    return {"tool_calls": [{"name": tool, "input": given}]}


async def test_a_pipeline_calls_a_playbook_and_a_directive(house: House) -> None:
    house.directive()
    house.write("playbooks/shout.playbook.md", SHOUT)
    file = house.write(
        "both.yaml",
        """
pipeline: both
steps:
- call: {pipeline: shout, pass: {word: "ctx.name"}, output: said}
- call: {pipeline: greeter, pass: {who: "said.loud"}}
""",
    )
    ended, model = await house.run(
        file, {"name": "hey"}, ["HEY!", use("rye_file_system_ls"), use("directive_return", greeting="hello HEY!")]
    )
    assert output(ended) == {"greeting": "hello HEY!"}
    assert "Shout hey." in model.calls[0].messages[0].content
    assert "Greet HEY!." in model.calls[1].messages[0].content


LONG = "# Long\n\n" + "".join(f"## STEP {n}: Say\n\nSay {n}.\n\n" for n in (1, 2, 3))


@pytest.mark.parametrize("started_by", ["this version", "0.1.0"])
async def test_a_playbook_that_is_called_keeps_to_the_context_budget(house: House, started_by: str) -> None:
    """A run of 0.1.0 told a callee all of its earlier results: the hashes in its journal are those of such requests."""
    house.write("quire.toml", "[runs]\ncontext_budget = 30\n")
    house.write("playbooks/long.playbook.md", LONG)
    file = house.write("p.yaml", "pipeline: p\nsteps:\n- call: {pipeline: long}\n")
    model = ScriptedModel(["alpha", "beta", "gamma"])
    async with house.opened(model) as runtime:
        run = await runtime.start(load(file), {}, RunOptions())
        if started_by == "0.1.0":
            row = await runtime.row(run)
            pins = {name: value for name, value in row.pins.items() if name != "callee_context_budget"}
            run = "old"
            await runtime.store.create(NewRun(run, row.title, row.format, row.document, row.created_at, pins, {}))
        assert (await runtime.drive(run)).status is Status.COMPLETED
        assert (await runtime.view(run)).replay.finished
    left_out = "left out" in model.calls[2].system
    assert (left_out, "alpha" in model.calls[2].system) == ((True, False) if started_by != "0.1.0" else (False, True))


async def test_a_playbook_runs_a_pipeline_and_a_directive_as_tools(house: House) -> None:
    house.directive()
    house.write("pipelines/double.yaml", DOUBLE)
    file = house.write(
        "p.playbook.md",
        '# P\n\n## STEP 1: Double\n\n@tool(quire, double, {"n": 21})\n\n@output(twice)\n\n'
        '## STEP 2: Greet\n\n@tool(quire, greeter, {"who": "{{twice}}"})\n',
    )
    ended, model = await house.run(file, {}, [use("directive_return", greeting="hi 42")])
    assert json.loads(str(output(ended))) == {"greeting": "hi 42"}
    assert "Greet 42." in model.calls[0].messages[0].content


CALLS = 'pipeline: p\nsteps:\n- call: {pipeline: greeter, pass: {who: "\\"Ada\\""}}\n'
TABLE = "patterns:\n- {pattern: rye.execute.tool.rye.file-system.*, tier: unrestricted}\n"


async def test_a_directive_that_is_called_answers_for_its_risks(house: House) -> None:
    house.directive()
    house.write(".ai/config/capability_risk.yaml", TABLE)
    with pytest.raises(Refused, match=r"is unrestricted .* at .ai/directives/demo/greeter.md:11"):
        await house.run(house.write("p.yaml", CALLS), {}, [])


async def test_a_directive_that_is_called_warns_of_its_risks(house: House) -> None:
    house.directive("<tool>rye.bash</tool>")
    ended, _ = await house.run(
        house.write("p.yaml", CALLS), {}, [use("rye_bash", command="ls"), use("directive_return", greeting="no")]
    )
    assert output(ended) == {"greeting": "no"}
    before, warned = (str(event.data["message"]) for event in house.events if event.type == "warning")
    assert before == (
        "demo/greeter: it goes without rye.execute.tool.rye.bash, which this run is not allowed: "
        "--allow rye.execute.tool.rye.bash"
    )
    assert "rye.execute.tool.rye.bash is elevated" in warned
    assert "greeter.md:11, within what the run was allowed (--allow), do not cover" in house.told()[0]["error"]


async def test_a_child_answers_for_its_risks_too(house: House) -> None:
    house.directive("<tool>rye.file-system.read</tool>")
    house.write(
        ".ai/directives/demo/leader.md",
        DIRECTIVE.replace("greeter", "leader")
        .replace("{permissions}", "*")
        .replace("</execute></p", '</execute><acknowledge risk="elevated">Leads</acknowledge></p'),
        sign=True,
    )
    house.write(".ai/config/capability_risk.yaml", TABLE.replace("*", "read"))
    ended, _ = await house.run(
        house.folder / ".ai/directives/demo/leader.md",
        {"who": "Ada"},
        [
            use("rye_agent_threads_thread_directive", directive_id="demo/greeter", inputs={"who": "Ben"}),
            use("directive_return", greeting="none"),
        ],
    )
    assert output(ended) == {"greeting": "none"}
    assert "read is unrestricted" in house.told()[0]["error"]


async def test_a_thread_launches_runs_and_calls_documents_in_its_own(house: House) -> None:
    """seeds L1: a launch is a run of its own; `rye_execute` is a call."""
    house.write("pipelines/double.yaml", DOUBLE)
    house.write("playbooks/shout.playbook.md", SHOUT)
    file = house.directive(PIPELINES)
    ended, model = await house.run(
        file,
        {"who": "Bo"},
        [
            use("pipeline__double", n=4),
            use("run_pipeline", name="double", input={"n": 5}),
            use("rye_execute", item_type="pipeline", item_id="double", parameters={"n": 6}),
            use("rye_execute", item_type="playbook", item_id="shout", parameters={"word": "x"}),
            "X!",
            use("directive_return", greeting="done"),
        ],
    )
    assert output(ended) == {"greeting": "done"}
    told = house.told()
    first, second = (one["data"]["run_id"] for one in told[:2])
    assert first != second and told == [
        {"status": "ok", "data": {"run_id": first, "output": 8, "named_stores": {"n": 4}}},
        {"status": "ok", "data": {"run_id": second, "output": 10, "named_stores": {"n": 5}}},
        12,
        {"loud": "X!", "output": "X!"},
    ]
    assert {"pipeline__double", "run_pipeline", "run_pipeline_async"} <= {one.name for one in model.calls[0].tools}


async def test_what_a_thread_launched_aside_comes_as_a_message(house: House) -> None:
    house.write("pipelines/double.yaml", DOUBLE)
    file = house.directive(PIPELINES)
    ended, model = await house.run(
        file,
        {"who": "Bo"},
        [
            use("run_pipeline_async", name="double", input={"n": 4}),
            use("rye_file_system_ls"),
            use("directive_return", greeting="done"),
        ],
    )
    assert output(ended) == {"greeting": "done"}
    assert house.told()[0]["status"] == "started"
    said = [message.content for message in model.calls[-1].messages if message.role == "user"]
    assert any(one.startswith("[pipeline]") and one.endswith("8") for one in said)


@pytest.mark.parametrize("tool", ["pipeline__double", "run_pipeline", "run_pipeline_async", "run_pipeline_inline"])
async def test_a_thread_without_the_capability_launches_nothing(house: House, tool: str) -> None:
    house.write("pipelines/double.yaml", DOUBLE)
    file = house.directive(FILES)
    given: dict[str, Value] = {"name": "double", "definition": DOUBLE, "input": {"n": 1}}
    ended, model = await house.run(file, {"who": "Bo"}, [use(tool, **given), use("directive_return", greeting="no")])
    assert output(ended) == {"greeting": "no"}
    assert "permission denied" in json.dumps(house.told()[0])
    assert not any("pipeline" in one.name for one in model.calls[0].tools)


async def test_a_launched_pipeline_has_no_more_than_its_launcher(house: House) -> None:
    """The user's own default would let it write; the thread may only read."""
    house.write(
        "pipelines/write.yaml",
        'pipeline: write\nsteps:\n- tool: {name: file__write, args: {path: "x.txt", content: "x"}}\n',
    )
    file = house.directive("<tool>rye.file-system.read</tool><pipeline>*</pipeline>")
    inline = 'pipeline: mine\nsteps:\n- tool: {name: file__write, args: {path: "x.txt", content: "x"}}\n'
    ended, _ = await house.run(
        file,
        {"who": "Bo"},
        [
            use("pipeline__write"),
            use("run_pipeline_inline", definition=inline),
            use("rye_execute", item_type="pipeline", item_id="write"),
            use("directive_return", greeting="no"),
        ],
    )
    assert output(ended) == {"greeting": "no"}
    assert not (house.folder / "x.txt").exists()
    assert all("needs the capability" in json.dumps(one) for one in house.told())


async def test_who_has_read_the_network_launches_nothing(house: House) -> None:
    house.write("pipelines/double.yaml", DOUBLE)
    file = house.directive("<tool>rye.web.*</tool><pipeline>*</pipeline>")
    ended, _ = await house.run(
        file,
        {"who": "Bo"},
        [
            use("rye_web_fetch", url="http://127.0.0.1:1/"),
            use("pipeline__double", n=4),
            use("run_pipeline_inline", definition=DOUBLE, input={"n": 4}),
            use("directive_return", greeting="no"),
        ],
    )
    assert output(ended) == {"greeting": "no"}
    assert all("launches no pipeline" in json.dumps(one) for one in house.told()[1:])


@pytest.mark.parametrize(("allow", "status"), [((), Status.FAILED), (("shell",), Status.COMPLETED)])
async def test_what_is_elevated_in_an_unsigned_callee_the_user_has_to_allow(
    house: House, allow: tuple[str, ...], status: Status
) -> None:
    """In warn mode: nobody vouches for it, wherever it is called from."""
    (house.folder.parent / "home" / "quire.toml").write_text('[trust]\nmode = "warn"\n', encoding="utf-8")
    text = DIRECTIVE.replace("{permissions}", "<tool>rye.bash</tool>").replace("{{", "{").replace("}}", "}")
    house.write(".ai/directives/demo/greeter.md", text)
    file = house.write("p.yaml", 'pipeline: p\nsteps:\n- call: {pipeline: greeter, pass: {who: "ctx.name"}}\n')
    script = [use("directive_return", greeting="hi")]
    if status is Status.FAILED:
        with pytest.raises(Refused, match=r"not signed by anybody you trust, and rye\.execute\.tool\.rye\.bash"):
            await house.run(file, {"name": "Bo"}, script)
    else:
        ended, _ = await house.run(file, {"name": "Bo"}, script, allow)
        assert output(ended) == {"greeting": "hi"}


async def test_an_unsigned_child_is_told_the_same(house: House) -> None:
    (house.folder.parent / "home" / "quire.toml").write_text('[trust]\nmode = "warn"\n', encoding="utf-8")
    parent = "<tool>rye.bash</tool><tool>rye.agent.threads.*</tool>"
    file = house.directive(parent)
    child = DIRECTIVE.replace("greeter", "child").replace("{permissions}", "<tool>rye.bash</tool>")
    house.write(".ai/directives/demo/child.md", child.replace("{{", "{").replace("}}", "}"))
    ended, _ = await house.run(
        file,
        {"who": "Bo"},
        [
            use("rye_agent_threads_thread_directive", directive_id="demo/child", inputs={"who": "Cy"}),
            use("directive_return", greeting="no"),
        ],
    )
    assert output(ended) == {"greeting": "no"}
    assert "not signed by anybody you trust" in json.dumps(house.told()[0])
