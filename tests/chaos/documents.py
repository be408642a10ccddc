"""What the killed processes run: a document of each format, its scripted model, and tools that leave a trace.

Nothing here depends on who is faster: replies are found by words of the prompt, answers by the question, and a tool
that fails at first goes by its effect id, not by how often it was called. So every way through ends with the same
output and the same journal.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tests.given import given

TOOLS = '''"""Tools that write down who called them, and are in no hurry."""

import os
import time

import quire


def _performed(name, effect_id):
    with open(os.environ["CHAOS_LEDGER"], "ab", buffering=0) as ledger:
        ledger.write(f"{os.environ['CHAOS_LIFE']} {name} {effect_id}\\n".encode())
        os.fsync(ledger.fileno())
    time.sleep(0.004)


@quire.tool
def note(site: str, effect_id: str) -> str:
    """Changes the world."""
    _performed("note", effect_id)
    return f"noted {site}"


@quire.tool(effect="read")
def look(site: str, effect_id: str) -> str:
    """Only looks."""
    _performed("look", effect_id)
    return f"saw {site}"


@quire.tool
def flaky(site: str, effect_id: str) -> str:
    """The first attempt at a place fails, however often it is made; the next one goes well."""
    _performed("flaky", effect_id)
    try:
        with open(f"first-{site}", "x") as first:
            first.write(effect_id)
    except FileExistsError:
        pass
    with open(f"first-{site}") as first:
        before = first.read()
    # A process that died between making the file and writing to it was making the first attempt.
    if before in ("", effect_id):
        with open(f"first-{site}", "w") as first:
            first.write(effect_id)
        raise RuntimeError(f"not yet at {site}")
    return f"did {site}"


@quire.tool
def never(site: str, effect_id: str) -> str:
    """Fails."""
    _performed("never", effect_id)
    raise RuntimeError(f"no way at {site}")
'''

PLAYBOOK = """# Tea for a guest

## STEP 1: Choose

Choose a pot.

@output(pot)

## STEP 2: Ask

@elicit(select, "In the {{pot}}?", "yes", "no")

## STEP 3: Fill

@tool(python, note, {"site": "fill {{pot}}"})

## STEP 4: Look

@tool(python, look, {"site": "{{pot}}"})

## STEP 5: Brew

```if __elicit_step_2 == "no"```

### STEP 5a: Stop

Say why not.

```else```

### STEP 5b: Pour

Pour it.

### STEP 5c: Sugar

@elicit(confirm, "Sugar?")

### STEP 5d: Serve

@tool(python, note, {"site": "serve"})

```endif```

## STEP 6: End

Sum up.
"""
PLAYBOOK_SCRIPT: list[dict[str, object]] = [
    {"step": "1", "reply": "the blue pot on the upper shelf", "delay_ms": 8},
    {"step": "5b", "reply": "It is poured, slowly, and it smells of bergamot.", "delay_ms": 12},
    {"step": "5a", "reply": "Nobody comes here."},
    {"step": "6", "reply": "Tea was made and served.", "delay_ms": 8},
]

PIPELINE = """
pipeline: rooms
steps:
- tool: {name: note, args: {site: begin}, output: begun}
- for_each:
    items: [desk, chair, lamp]
    max_parallel: 2
    on_error: retry(2)
    do: {call: {pipeline: move, pass: {what: item}}}
    collect: {transform: {value: pipe}}
    output: moved
- for_each:
    items: [north, south, west]
    max_parallel: 3
    on_error: continue
    do: {call: {pipeline: paint, pass: {wall: item}}}
    collect: {parallel: {branches: {seen: {transform: {value: pipe}}, said: {agent: {prompt: "walls: {pipe}"}}},
      collect: {transform: {value: "{seen: seen, said: said}"}}}}
    output: walls
- for_each:
    items: [roof]
    on_error: continue
    do: {tool: {name: never, args: {site: !expr item}}}
    collect: {transform: {value: errors}}
    output: lost
- tool: {name: ask, args: {prompt: "Which day?", type: select, options: [Monday, Friday]}, output: day}
- fold: {items: [one, two], init: "''", do: {tool: {name: note, args: {site: !expr "acc + item"}}}, output: folded}
- transform: {value: "{moved: moved, walls: walls, lost: lost, day: day, folded: folded}"}
"""
MOVE = """
pipeline: move
steps:
- parallel:
    branches:
      sure: {tool: {name: ask, args: {prompt: !expr "'Move the ' + what + '?'", type: confirm}}}
      packed: {tool: {name: note, args: {site: !expr "'pack ' + what"}}}
      said: {agent: {prompt: "describe the {what}"}}
    collect: {transform: {value: "{sure: sure, packed: packed, said: said}"}}
- transform: {value: pipe, output: packing}
- tool: {name: note, args: {site: !expr "'carry ' + what"}}
- transform: {value: "{what: what, carried: pipe, packing: packing}"}
"""
PAINT = """
pipeline: paint
steps:
- parallel:
    on_error: retry(1)
    branches:
      coat: {tool: {name: flaky, args: {site: !expr "'coat-' + wall"}}}
      check: {tool: {name: look, args: {site: !expr "'check-' + wall"}}}
    collect: {transform: {value: "join([coat, check], '+')"}}
"""
PIPELINE_SCRIPT: list[dict[str, object]] = [
    {"contains": "describe the desk", "reply": "oak, heavy", "delay_ms": 10},
    {"contains": "describe the chair", "reply": "with three legs", "delay_ms": 6},
    {"contains": "describe the lamp", "reply": "bright, as lamps are", "delay_ms": 8},
    {"contains": "walls:", "reply": "all walls are white", "delay_ms": 10},
]

_DIRECTIVE = """# Chaos

Is killed.

```xml
<directive name="{name}" version="1.0.0">
  <metadata>
    <description>Is killed.</description>
    <category>chaos</category>
    <author>nobody</author>
    <model tier="low" />
    <limits turns="20" tokens="900000" spend="5" duration_seconds="100000" />
    <hooks>{hooks}</hooks>
    <permissions>*<acknowledge risk="unrestricted">nothing here is real</acknowledge></permissions>
  </metadata>
  <outputs><output name="out" type="string" required="true">What came of it</output></outputs>
</directive>
```

<process><step name="one">Follow the program of {marker}.</step></process>
"""
_HOOKS = """
<hook id="watch" event="after_step"><action primary="execute" item_type="tool" item_id="python/note">
  <param name="site">hook ${turn}</param></action></hook>
<hook id="done" event="after_complete"><action primary="execute" item_type="tool" item_id="python/look">
  <param name="site">the end</param></action></hook>
"""
FORK, ORCHESTRATE = "rye_agent_threads_thread_directive", "rye_agent_threads_orchestrator"


def _call(name: str, /, **given: object) -> dict[str, object]:
    return {"name": name, "input": given}


def _fork(name: str, *, aside: bool = False) -> dict[str, object]:
    return _call(FORK, **{"directive_id": f"chaos/{name}", "async": aside})


def _turns(marker: str, *turns: list[dict[str, object]]) -> list[dict[str, object]]:
    return [
        {"contains": f"program of {marker}.", "text": "Next.", "tool_calls": list(turn), "delay_ms": 4 + 3 * (n % 3)}
        for n, turn in enumerate(turns)
    ]


def _return(text: str) -> list[dict[str, object]]:
    return [_call("directive_return", out=text)]


DIRECTIVES = {
    f".ai/directives/chaos/{name}.md": _DIRECTIVE.replace("{name}", name)
    .replace("{marker}", name.upper())
    .replace("{hooks}", hooks)
    for name, hooks in (("top", _HOOKS), ("beside", ""), ("inner", ""), ("deep", ""))
}
LAUNCHED = """
pipeline: NAME
steps:
- tool: {name: note, args: {site: launched}}
- for_each: {items: [x, y], on_error: abort, do: {tool: {name: look, args: {site: !expr item}}},
    collect: {transform: {value: pipe}}}
"""
LAUNCHES = {f"pipelines/{name}.yaml": LAUNCHED.replace("NAME", name) for name in ("aside", "later")}
DIRECTIVE_SCRIPT: list[dict[str, object]] = [
    *_turns(
        "TOP",
        [_call("python_note", site="a"), _call("python_look", site="b"), _call("python_flaky", site="c")],
        [_fork("beside", aside=True), _call("python_note", site="d")],
        [_fork("inner"), _call("python_flaky", site="c")],
        [_call("ask", prompt="Go on?", type="confirm"), _call("python_note", site="e")],
        [_call("run_pipeline", name="aside", input={}), _call("run_pipeline_async", name="later", input={})],
        [_call(ORCHESTRATE, operation="wait_threads", timeout=100_000)],
        _return("all is done"),
    ),
    *_turns(
        "BESIDE",
        [_call("python_note", site="f"), _call("python_note", site="g")],
        [_call("ask", prompt="Beside?")],
        [_call("python_never", site="h"), _call("python_look", site="i")],
        _return("beside is done"),
    ),
    *_turns("INNER", [_call("python_look", site="j"), _fork("deep")], _return("inner is done")),
    *_turns("DEEP", [_call("python_note", site="k")], _return("deep is done")),
]

_ANSWERS = {"Sugar?": "yes", "Which day?": "Friday", "Go on?": "yes", "Beside?": "beside the point"}


def answer_to(prompt: str) -> str:
    """What the person says, always the same to the same question."""
    return _ANSWERS.get(prompt, "no" if "chair" in prompt else "yes")


@dataclass(frozen=True, slots=True)
class Story:
    """One document with all that it needs. `document` is what `quire run` is told; no more than `side_by_side` of its
    tools can be at work at once."""

    name: str
    document: str
    files: dict[str, str]
    script: list[dict[str, object]]
    side_by_side: int = 1
    titles: tuple[str, ...] = ()
    """Those of its runs."""

    @property
    def script_file(self) -> str:
        return f"{self.name}.script.json"

    @property
    def ledger(self) -> str:
        return f"{self.name}.ledger.txt"


STORIES = (
    Story("playbook", "tea.playbook.md", {"tea.playbook.md": PLAYBOOK}, PLAYBOOK_SCRIPT, titles=("Tea for a guest",)),
    Story(
        "pipeline",
        "rooms.yaml",
        {"rooms.yaml": PIPELINE, "pipelines/move.yaml": MOVE, "pipelines/paint.yaml": PAINT},
        PIPELINE_SCRIPT,
        side_by_side=6,
        titles=("rooms",),
    ),
    Story(
        "directive",
        "chaos/top",
        {**DIRECTIVES, **LAUNCHES},
        DIRECTIVE_SCRIPT,
        side_by_side=8,
        titles=("top", "aside", "later"),
    ),
)


def write_story(story: Story, folder: Path) -> None:
    files = {
        **story.files,
        "chaos_tools.py": TOOLS,
        story.script_file: json.dumps(story.script),
        "quire.toml": '[tools]\nmodules = ["chaos_tools"]\n',
    }
    given(files, folder)
