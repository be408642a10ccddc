"""What looks like a question, a branch, a step or a value and is read as text stops a run before it pays, whoever
starts it, unless it is forced (law 15; newcomer G1; ruling 15 of playbooks)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.formats.directive.directives import METADATA
from tests.formats.directive.directives import document as directive
from tests.given import given
from tests.play import Play
from tests.runs.test_preflight_doors import model

import quire
from quire.api.launches import launch
from quire.engine.records import Status
from quire.errors import BadDocument, NearMisses
from quire.library.document import load
from quire.runs.fork import Changes, fork
from quire.runs.pins import PinnedState
from quire.runs.repair import repair

IF = '```if x == "a"```\n\n### STEP 2a: B\n\nb\n\n'
MISSES = {
    "PB102": "Say {{x}}.\n\n## INPUTS\n\n* topic: what",
    "PB105": '@elicit(slider, "How much?")\n\nSay.',
    "PB106": "@elicit(confirm, Publish this?)",
    "PB107": "``` if x == 'a' ```\n\nb",
    "PB110": '```if x > "a"```\n\nb',
    "PB113": IF,
    "PB115": "b\n\n```endif```",
    "PB118": f'{IF}```else```\n\n### STEP 2b: C\n\nc\n\n```elif x == "c"```\n\n### STEP 2c: D\n\nd\n\n```endif```',
    "PB119": "Say.\n\n## Step 3: Lost\n\nLost.",
    "PB214": f"{IF}### Step 2b: Lost\n\nLost.\n\n```endif```",
    "PB236": "Say {x}.",
}
PIPELINE = "pipeline: p\nsteps:\n- agent: {prompt: 'Say {{pipe}}'}\n"


@pytest.fixture(autouse=True)
def space(here: Path) -> None:
    given({"home/quire.toml": '[trust]\nmode = "warn"\n'})


def page(step: str, comment: str = "") -> str:
    return f"{comment}# Page\n\n## INPUTS\n\n- `x` (string: a): X\n\n## STEP 1: A\n\nSay.\n\n## STEP 2: S\n\n{step}\n"


def documents() -> dict[str, tuple[str, str]]:
    written = {code: ("page.playbook.md", page(step)) for code, step in MISSES.items()}
    written["PL211"] = ("p.yaml", PIPELINE)
    inputs = '<inputs><input name="who" type="string" default="x" /></inputs>'
    written["DR121"] = (".ai/directives/team/greet.md", directive(METADATA, inputs, "Greet {{who}}."))
    return written


def write(name: str, text: str) -> Path:
    return given({name: text}) / name


@pytest.mark.parametrize("code", documents())
async def test_every_code_stops_a_run_and_force_starts_it(code: str, play: Play) -> None:
    document = load(write(*documents()[code]))
    assert document.plan is not None
    with pytest.raises(NearMisses, match=rf":\d+:\d+: {code} ") as stopped:
        await play.start(document)
    assert code in stopped.value.codes and isinstance(stopped.value, BadDocument) and stopped.value.exit_code == 2
    assert (await play.runtime.store.list(), play.model.calls) == ([], [])
    run = await play.start(document, force=True, allow=("*",))
    assert code in PinnedState.of((await play.runtime.row(run)).pins).forced


async def test_python_programs_and_launches_are_stopped_too() -> None:
    write("pipelines/p.yaml", PIPELINE)
    with pytest.raises(NearMisses):
        await quire.run("pipelines/p.yaml", model=model())
    assert (await quire.run("pipelines/p.yaml", model=model(), force=True)).status == "completed"
    told = await launch("p", model=model())
    assert told["status"] == "error" and "PL211" in told["data"]["error"] and "run_id" not in told["data"]
    assert (await launch("p", model=model(), force=True))["status"] == "ok"
    assert (await launch(PIPELINE, inline=True, model=model()))["status"] == "error"


async def test_documents_that_are_called_count(play: Play) -> None:
    write("playbooks/ask.playbook.md", page(MISSES["PB106"]))
    caller = write("pipelines/p.yaml", 'pipeline: p\nsteps:\n- call: {pipeline: "ask"}\n')
    with pytest.raises(NearMisses, match=r"ask\.playbook\.md:13:1: PB106"):
        await play.start(caller)


async def test_an_allow_comment_is_the_yes_of_the_author(play: Play) -> None:
    allow = '<!-- quire: allow PB106 because "a page about questions" -->\n'
    run = await play.start(write("page.playbook.md", page(MISSES["PB106"], allow)))
    assert PinnedState.of((await play.runtime.row(run)).pins).forced == ()


async def test_only_the_pipeline_that_runs_counts(tmp_path: Path) -> None:
    write("pipelines/two.yaml", f"{PIPELINE}---\npipeline: q\nsteps:\n- transform: {{value: '1'}}\n")
    assert (await launch("two.q", model=model()))["status"] == "ok"
    assert (await launch("two.p", model=model()))["status"] == "error"


async def test_a_fork_is_stopped_unless_the_user_has_accepted_the_same(play: Play) -> None:
    runtime = play.runtime
    file = write("page.playbook.md", page("Say {{x}}."))
    clean = await play.start(file)
    assert (await runtime.drive(clean)).status is Status.COMPLETED
    file.write_text(page(MISSES["PB236"]))
    with pytest.raises(NearMisses):
        await repair(runtime, clean, "", Changes())
    forced = (await repair(runtime, clean, "", Changes(force=True))).run
    assert (await runtime.drive(forced)).status is Status.COMPLETED
    again = await fork(runtime, forced, "2", Changes())
    assert PinnedState.of((await runtime.row(again.run)).pins).forced == ("PB236",)
    file.write_text(page(f"{MISSES['PB236']}\n\n{MISSES['PB106']}"))
    with pytest.raises(NearMisses):
        await repair(runtime, forced, "", Changes())
