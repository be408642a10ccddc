"""Documents of each format that between them have everything that can be in the middle of something."""

from __future__ import annotations

import json
from functools import cache

from tests.documents.directive import TEXT
from tests.simulator.case import calm_life
from tests.simulator.fakes import PROGRAM
from tests.simulator.lifecycle import Lived
from tests.simulator.scenario import Scenario

PLAYBOOK = """# Tea

## STEP 1: Choose

Choose a pot.

@output(pot)

## STEP 2: Ask

@elicit(select, "In {{pot}}?", "yes", "no")

## STEP 3: Fill

@tool(sim, write, {"pot": "{{pot}}"})

## STEP 4: Look

@tool(sim, down, {"pot": "{{pot}}"})

## STEP 5: Brew

```if __elicit_step_2 == "no"```

### STEP 5a: Stop

Say why not.

```else```

### STEP 5b: Pour

Pour it.

### STEP 5c: Sugar

@elicit(confirm, "Sugar?")

```endif```
"""

PIPELINE = """
pipeline: p
steps:
- tool: {name: write1, args: {}, output: begun}
- for_each: {items: [x, y, z], max_parallel: 2, on_error: "retry(1)", do: {call: {pipeline: both, pass: {i: "item"}}},
    collect: {transform: {value: "pipe"}}}
- for_each: {items: [x, y, z], max_parallel: 2, on_error: continue, do: {tool: {name: odd, args: {i: !expr item}}},
    collect: {agent: {prompt: "sum up {pipe}"}}}
- fold: {items: [1, 2], init: "pipe", output: sum, do: {tool: {name: same, args: {a: !expr acc, i: !expr item}}}}
- parallel: {branches: {a: {tool: {name: down, args: {}}}, b: {agent: {prompt: "beside"}}},
    collect: {transform: {value: "[a, b]"}}}
"""

BOTH = """
pipeline: both
steps:
- parallel: {branches: {
    a: {tool: {name: ask, args: {prompt: !expr 'join(["which ", i], "")'}}},
    b: {tool: {name: flaky, args: {i: !expr i}}}},
    collect: {transform: {value: "[a, b]"}}}
- tool: {name: write2, args: {i: !expr pipe}}
"""

FORK = "rye_agent_threads_thread_directive"
WAIT = "rye_agent_threads_orchestrator"
HOOK = (
    '<hook id="h" event="after_step"><action primary="execute" item_type="tool" item_id="sim/write">'
    '<param name="spent">${cost.spend}</param><param name="of">${limits.spend}</param></action></hook>'
)
ESCALATE = (
    '<hook id="e" event="error"><action primary="execute" item_type="tool" '
    'item_id="rye/agent/threads/internal/control"><param name="action">escalate</param></action></hook>'
)


def use(tool: str, /, **given: object) -> dict[str, object]:
    return {"name": tool, "input": given}


def fork(name: str, *, aside: bool = False) -> dict[str, object]:
    return {"name": FORK, "input": {"directive_id": f"sim/{name}", "async": aside}}


def wait() -> dict[str, object]:
    return use(WAIT, operation="wait_threads", timeout=100_000)


def run_pipeline(name: str) -> dict[str, object]:
    return use("rye_execute", item_type="pipeline", item_id=name, parameters={})


def directive(name: str, *turns: object, spend: float = 10, hooks: str = "") -> tuple[str, str]:
    """The file of a directive and its text."""
    limits = f'turns="20" spend="{spend}" duration_seconds="100000000"'
    text = TEXT.format(name=name, limits=limits, hooks=hooks, program=PROGRAM + json.dumps(turns))
    return f".ai/directives/sim/{name}.md", text


def threads() -> Scenario:
    files = dict(
        [
            directive(
                "top",
                [use("sim_write", at=1), use("sim_read", at=2), use("ask", prompt="well?")],
                [fork("beside", aside=True), fork("below"), use("sim_broken", at=3)],
                [wait(), run_pipeline("part")],
                hooks=HOOK + ESCALATE,
            ),
            directive("beside", [use("sim_same", at=4)], [use("ask", prompt="beside?")], hooks=HOOK),
            directive("below", [use("sim_write", at=5), use("sim_write", at=6)], "Just saying."),
        ]
    )
    part = "pipeline: part\nsteps:\n- agent: {prompt: part}\n- tool: {name: write7, args: {of: !expr pipe}}\n"
    return Scenario("threads", {**files, "pipelines/part.yaml": part}, ".ai/directives/sim/top.md")


SCENARIOS = {
    "playbook": Scenario("playbook", {"tea.playbook.md": PLAYBOOK}, "tea.playbook.md"),
    "pipeline": Scenario("pipeline", {"p.yaml": PIPELINE, "pipelines/both.yaml": BOTH}, "p.yaml", max_parallel=2),
    "directive": threads(),
}


@cache
def without_faults(name: str) -> Lived:
    """How a scenario goes without faults. These come to the same at any pace, so once is enough."""
    return calm_life(SCENARIOS[name])
