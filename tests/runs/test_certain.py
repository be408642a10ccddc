"""What cannot work is said before anything is paid for; what fails all the same says at which step."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given
from tests.play import Play

from quire.engine.ports import ModelCall
from quire.engine.records import Status
from quire.errors import BadConfiguration, BadInputs, CannotStart, Denied, LimitReached
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.drives import Given
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.values import Value

BAD = {
    "arguments": (
        "@tool(quire, file__read, {path: 1})",
        "step 2: @tool(quire, file__read): the arguments are not JSON",
    ),
    "shell": ('@tool(quire, shell, {"command": "ls {{x}}"})', "a command with values in it is a list"),
    "server": ("@prompt(mcp:nope/x)\n\nGo.", 'step 2: prompt mcp:nope/x: unknown connection "nope"'),
    "header": (
        '@tool(quire, http__get, {"url": "https://example.com", "headers": {"Authorization": "Bearer {{x}}"}})',
        "step 2: the header Authorization cannot be set by a document, which would hold a secret: put it under [http.",
    ),
    "file": ("@prompt(file:../x.md)\n\nGo.", "step 2: prompt file:../x.md: must be a path below"),
}


pytestmark = pytest.mark.usefixtures("here")


def page(folder: Path, *steps: str) -> Path:
    written = "\n\n".join(f"## STEP {at}: S\n\n{text}" for at, text in enumerate(("Say.", *steps), 1))
    file = folder / "page.playbook.md"
    file.write_text(f"# Page\n\n## INPUTS\n\n- `x` (string: a): X\n\n{written}\n")
    return file


@pytest.mark.parametrize("name", BAD)
async def test_it_is_refused_before_the_first_call(play: Play, tmp_path: Path, name: str) -> None:
    step, said = BAD[name]
    with pytest.raises(BadInputs) as caught:
        await play.start(page(tmp_path, step), allow=("shell", "http__get"))
    assert said in str(caught.value)
    assert await play.runtime.store.list() == []


async def test_all_of_it_is_said_at_once(play: Play, tmp_path: Path) -> None:
    # A machine without a sandbox has one problem more for a plain grant of shell.
    with pytest.raises(BadInputs) as caught:
        await play.start(page(tmp_path, *(step for step, _ in BAD.values())), allow=("shell=unsandboxed", "http__get"))
    assert len(caught.value.problems) == len(BAD)


async def test_a_cluster_refuses_what_the_document_alone_tells(play: Play, tmp_path: Path) -> None:
    runtime = Runtime(play.runtime.settings, play.runtime.store, model=play.model, queue="q")
    with pytest.raises(BadInputs, match="are not JSON"):
        await runtime.start(load(page(tmp_path, BAD["arguments"][0])), {}, RunOptions())


@pytest.mark.parametrize(
    ("step", "kind"),
    [("@prompt({{unset}})\n\nGo.", "undefined"), ("@tool(quire, file__read, {{x}})", "arguments")],
)
async def test_a_failure_before_the_first_effect_of_its_step_has_its_label(
    play: Play, tmp_path: Path, step: str, kind: str
) -> None:
    played = await play(page(tmp_path, step))
    ended = played.ended
    assert ended.failure is not None
    assert (ended.status, ended.position, ended.failure.kind) == (Status.FAILED, "2", kind)
    assert (played.row.position, played.row.ended_by) == ("2", ("2",))


async def test_a_sub_step_has_its_own(play: Play, tmp_path: Path) -> None:
    arm = '```if x == "a"```\n\n### STEP 2a: A\n\n@prompt({{unset}})\n\nGo.\n\n```endif```'
    assert (await play(page(tmp_path, arm))).ended.position == "2a"


PIPELINE_STEPS = {
    "grant": ("shell: {command: ls}", (), Denied, "--allow shell"),
    "name": ("tool: {name: file__read, args: {pth: x}}", (), BadInputs, "did you mean path?"),
    "literal": ("tool: {name: file__read, args: {path: 3}}", (), BadInputs, "does not take these arguments"),
    "ask": ("tool: {name: ask, args: {promt: x}}", (), BadInputs, "did you mean prompt?"),
    "tool": ("tool: {name: nope__x, args: {}}", (), BadInputs, 'unknown tool "nope__x"'),
    "agent": ("agent: {prompt: x, identity: helper}", (), BadInputs, 'unknown tool "nope"'),
    "fan": (
        "parallel: {branches: {a: {shell: {command: ls}}}, collect: {transform: {value: pipe}}}",
        (),
        Denied,
        "--allow shell",
    ),
    "callee": ("call: {pipeline: sub}", (), Denied, "--allow shell"),
}


@pytest.mark.parametrize("name", PIPELINE_STEPS)
async def test_a_pipeline_is_refused_before_the_first_call(play: Play, tmp_path: Path, name: str) -> None:
    """G4: whatever every run comes to."""
    step, allow, error, said = PIPELINE_STEPS[name]
    given({"home/quire.toml": '[agents.helper]\ntools = ["nope"]\n'})
    given({"pipelines/sub.yaml": "pipeline: sub\nsteps:\n- shell: {command: ls}\n"})
    given({"p.yaml": f"pipeline: p\nsteps:\n- agent: {{prompt: Pay.}}\n- {step}\n"})
    with pytest.raises(error) as caught:
        await play.start("p.yaml", allow=allow)
    assert said in str(caught.value)
    assert (await play.runtime.store.list(), play.model.calls) == ([], [])


MAYBE = """pipeline: p
steps:
- for_each: {over: "[1]", on_error: continue, do: {shell: {command: ls}}, collect: {transform: {value: pipe}}}
"""


async def test_what_only_some_path_needs_is_a_warning_that_names_the_flag(play: Play, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(MAYBE)
    first = await play.start("p.yaml")
    arm = '```if x == "b"```\n\n### STEP 2a: S\n\n@tool(quire, shell, {"command": "ls"})\n\n```endif```'
    second = await play.start(page(tmp_path, arm))
    told = [*await play.runtime.warnings(first), *await play.runtime.warnings(second)]
    assert [("may fail" in line, "--allow shell" in line) for line in told] == [(True, True)] * 2


@pytest.mark.parametrize("format", ["playbook", "pipeline"])
async def test_a_missing_sandbox_is_found_first(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    def none(program: str | None) -> tuple[str, frozenset[str]]:
        raise OSError("bubblewrap is not installed")

    monkeypatch.setattr("quire.tools.sandbox._probe", none)
    (tmp_path / "p.yaml").write_text("pipeline: p\nsteps:\n- agent: {prompt: Pay.}\n- shell: {command: ls}\n")
    file = tmp_path / "p.yaml" if format == "pipeline" else page(tmp_path, '@tool(quire, shell, {"command": "ls"})')
    with pytest.raises(Denied, match="shell=unsandboxed"):
        await play.start(file, allow=("shell",))
    await play.start(file, allow=("shell=unsandboxed",))


async def test_a_file_of_a_prompt_that_is_not_there_and_wrong_names_are_found_first(play: Play, tmp_path: Path) -> None:
    steps = ("@prompt(file:nope.md)\n\nGo.", '@tool(quire, file__read, {"pth": "{{x}}"})')
    with pytest.raises(BadInputs) as caught:
        await play.start(page(tmp_path, *steps))
    assert "step 2: prompt file:nope.md: the file does not exist" in caught.value.problems
    assert "did you mean path?" in str(caught.value)
    (tmp_path / "nope.md").write_text("Now it is.")
    await play.start(page(tmp_path, steps[0]))


async def test_a_cap_below_the_least_bound_is_found_first(play: Play, tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_text("[safety.spawn]\nmax_pipeline_spawns = 1\n")
    (tmp_path / "p.yaml").write_text("pipeline: p\nsteps:\n- agent: {prompt: A.}\n- agent: {prompt: B.}\n")
    with pytest.raises(LimitReached, match="at least 2 model calls"):
        await play.start("p.yaml")
    assert await play.runtime.store.list() == []


class Unpriced(ScriptedModel):
    def estimate(self, call: ModelCall) -> float | None:
        return None


async def test_a_budget_without_a_price_is_refused_first_and_says_the_two_ways_on(play: Play, tmp_path: Path) -> None:
    play.open(model=Unpriced([{"default": "fine"}]))
    with pytest.raises(CannotStart) as caught:
        await play.start(page(tmp_path), budget=1.0)
    assert "--budget none" in str(caught.value)
    assert "[models.prices." in str(caught.value)
    await play.start(page(tmp_path))


async def test_own_prices_are_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    script = tmp_path / "replies.json"
    script.write_text('[{"reply": "x", "usage": {"input_tokens": 1000000, "output_tokens": 100000}}]')
    prices = f'[models.prices."script:{script}"]\ninput = 2\noutput = 10.0\n'
    (tmp_path / "home" / "quire.toml").write_text(prices)
    runtime = Runtime.open(tmp_path)
    run = await runtime.start(load(page(tmp_path)), {}, RunOptions(model=f"script:{script}"))
    await runtime.drive(run)
    assert (await runtime.row(run)).cost == 3.0
    await runtime.close()
    (tmp_path / "quire.toml").write_text(prices)
    with pytest.raises(BadConfiguration, match="of your user folder"):
        Runtime.open(tmp_path)


async def test_calls_side_by_side_do_not_spend_more_than_the_budget(play: Play, tmp_path: Path) -> None:
    steps = """pipeline: p
steps:
- for_each:
    over: "[1, 2, 3, 4, 5]"
    on_error: abort
    do: {agent: {prompt: "A {item}."}}
    collect: {transform: {value: pipe}}
"""
    (tmp_path / "p.yaml").write_text(steps)
    dear: Value = {"default": "fine", "usage": {"input_tokens": 1, "output_tokens": 1, "cost": 0.1}}
    played = await play("p.yaml", [dear] * 5, budget=0.35)
    assert played.ended.failure is not None and played.ended.failure.kind == "limit"
    assert played.row.cost is not None and played.row.cost <= 0.35
    ended = await play.runtime.drive(played.run, given=Given(unlimited=True))
    assert ended.status is Status.COMPLETED


async def test_a_pipeline_is_refused_for_a_header_too(play: Play, tmp_path: Path) -> None:
    file = tmp_path / "fetch.yaml"
    file.write_text(
        "pipeline: fetch\nsteps:\n  - agent: {prompt: Say.}\n  - tool: {name: rye/web/fetch, args: "
        "{url: 'https://example.com', headers: {authorization: x, Accept: text/html}}}\n"
    )
    with pytest.raises(BadInputs, match="step 2: the header authorization cannot be set"):
        await play.start(file, allow=("http__get",))
    assert play.model.calls == []
