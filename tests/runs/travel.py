"""A workspace with a document of each format, and runs of them on scripts: for what is done with runs afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tests.directives import directive
from tests.given import given
from tests.signed import SignedWorkspace

from quire.engine.driver.drive import DriveResult
from quire.engine.records import EffectRecord, Status
from quire.library.document import load
from quire.models.scripted import ScriptedModel
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.values import Value, encode

PLAYBOOK = """# Everything

A little of all that a playbook can do.

## SYSTEM

You are brief.

## INPUTS

- `topic` (string): What it is about
- `depth` (enum: quick, thorough): How far to go
- `size` (number: 3): How many points

## STEP 1: Notes

@tool(quire, file__read, {"path": "notes.txt"})
@output(notes)

## STEP 2: Gist

@prompt(library:style)

The gist of {{notes}} about {{topic}}, in {{size}} points.

@output(gist: string, extract:"gist")

## STEP 3: Agree

@elicit(select, "Is {{gist}} right?", "yes", "no", default:"yes")
@output(agreed)

## STEP 4: Go on

```if agreed == "yes"```

### STEP 4a: Deepen

Deepen {{gist}}, {{depth}}.

### STEP 4b: Shorten

Shorten it.

```else```

### STEP 4c: Anew

Think anew.

```endif```

## STEP 5: Double

@tool(quire, double, {"n": {{size}}})
@output(twice)

## STEP 6: End

All of it, {{twice}} times, about {{topic}}.

## ARTIFACTS

type: markdown
"""
CHOICES = """# Choices

What a playbook has only in Quire.

## INPUTS

- `kind` (enum: style, long): Which prompt

## STEP 1: Look

Look at notes.txt.

@output(seen)

## STEP 2: Sort

@context(none)
@model(cheap)

Sort it.

## STEP 3: Ask

@elicit(confirm, "## Look\\n\\n{{seen}}\\n\\nIs it \\"right\\"?", default:"yes")

## STEP 4: Write

@prompt(file:prompts/{{kind}}.md)
@context(seen, 3)

Write it down.

```if __elicit_step_3 == "yes"```

### STEP 4a: Check

@context(4)
@model(reader)

Check it.

```endif```

## STEP 5: Thank

@context(none)

Say thank you.

## ARTIFACTS

type: markdown
from: 4
"""
PIPELINE = """
schema: Mark
fields:
  grade: {type: enum, values: [poor, good]}
---
pipeline: board
description: Marks papers side by side.
steps:
- transform: {value: "map(ctx.papers, p -> p + '!')", output: loud}
- tool: {name: ask, args: {prompt: Who marks?, type: select, options: [Ann, Bo]}, output: marker}
- for_each:
    over: ctx.loud
    max_parallel: 2
    on_error: retry(1)
    do:
      agent: {prompt: "Mark {item} as {marker}.", schema: Mark}
    collect: {transform: {value: pipe}}
    output: marks
- parallel:
    on_error: continue
    branches:
      best: {agent: {prompt: "Which of {loud} is best?"}}
      lost: {agent: {prompt: "Which of {loud} is lost?"}}
    collect: {transform: {value: "{'found': pipe, 'errors': errors}"}}
    output: checks
- fold: {over: ctx.marks, init: "0", do: {transform: {value: "acc + 1"}}, output: count}
- match:
    on: ctx.count > 1
    cases: {"True": {pipeline: double, pass: {n: ctx.count}}}
    default: {pipeline: double, pass: {n: "0"}}
    output: twice
- agent: {prompt: "Sum up {checks} and {twice} for {marker}."}
"""
_DIRECTIVE = directive(
    "{name}",
    "",
    "{words} {input}.",
    description="Does what it is told.",
    meta="""<limits turns="20" tokens="100000" spend="5" spawns="4" />
<permissions>
  <execute><tool>rye.file-system.*</tool><tool>rye.agent.threads.*</tool></execute>
</permissions>""",
    more="""<inputs><input name="who" type="string" required="true">Whom</input></inputs>
<outputs><output name="said" required="true">What was said</output></outputs>""",
)
PAPERS: Sequence[Value] = ["one", "two"]
PLAYBOOK_SCRIPT: Sequence[Value] = [
    {"reply": 'So. {"gist": "rust"}', "usage": {"input_tokens": 20, "output_tokens": 5, "cost": 0.25}},
    "deeper",
    {"error": "busy"},
    "shorter",
    "the end",
]
PIPELINE_SCRIPT: Sequence[Value] = [
    {"contains": "Mark one!", "reply": '{"grade": "fine"}'},
    {"contains": "Mark one!", "reply": '{"grade": "good"}'},
    {"contains": "Mark two!", "reply": '{"grade": "poor"}'},
    {"contains": "is best?", "reply": "two"},
    {"contains": "is lost?", "error": "gone"},
    {"contains": "Sum up", "reply": "done"},
]


CHOICE_SETTINGS = """
[models]
default = "script:own.json"
[models.tiers]
small = "script:small.json"
[agents.reader]
model = "script:reader.json"
tools = ["file__read", "file__write"]
temperature = 0.5
[playbooks."choices"]
agent = "reader"
model = "script:own.json"
"""
CHOICE_SCRIPTS: dict[str, Sequence[Value]] = {
    "own": [
        {"step": "1", "tool_calls": [{"name": "file__read", "input": {"path": "notes.txt"}}]},
        {"step": "1", "tool_calls": [{"name": "file__write", "input": {"path": "x", "content": "x"}}]},
        {"step": "1", "reply": "**fast**"},
        {"step": "4", "reply": "It is fast."},
        {"step": "5", "reply": "Thank you."},
    ],
    "small": [{"default": "sorted"}],
    "reader": [{"default": "checked"}],
}


LETTERS = """
schema: Letter
fields:
  text: {type: string, max_length: 60, pattern: '^Dear', description: "One sentence."}
  lines: {type: number, minimum: 1, maximum: 3}
---
pipeline: letters
dialect: quire
input:
  readers: {type: list, of: {type: string}, max_items: 3, description: "Who gets one."}
  tone: {type: enum, values: [warm, dry], default: dry}
  motto: {type: string, required: false}
steps:
  - for_each:
      over: ctx.readers
      on_error: continue
      max_parallel: 1
      do: {agent: {prompt: "A {tone} letter to {item}.", schema: Letter}}
      collect: {transform: {value: "map(pipe, one -> one.text)"}}
      output: letters
  - call: {pipeline: signed, pass: {letters: letters, by: "get(ctx, 'motto')"}, output: bundle}
  - agent: {prompt: "Send {bundle}."}
"""
SIGNED = """
pipeline: signed
dialect: quire
input:
  letters: {type: list, of: {type: string}}
  by: {type: string, default: "the team"}
steps:
  - transform: {value: "join(letters, ' ') + ' By ' + by"}
"""
LETTERS_SCRIPT: Sequence[Value] = [
    '{"text": "Dear Ann.", "lines": 1}',
    '{"text": "Hello Bob.", "lines": 9}',
    '{"text": "Dear Bob.", "lines": 2}',
    "Sent.",
]


DIALECT = """
pipeline: dialect
description: The steps of the Quire dialect.
dialect: quire
input:
  texts: {type: list, of: {type: string}, max_items: 3}
  strict: {type: bool, default: false}
steps:
  - steps:
      output: draft
      do:
        - agent: {prompt: !file prompts/draft.md, output: first}
        - steps:
            - agent: {prompt: "Improve {first}", on_error: "retry(1), continue", default: "first + '?'", output: better}
            - transform: {value: "better", when: "errors.better == null", output: sure}
        - transform: {value: "[pipe, errors.better.message]"}
  - agent: {prompt: "Take your time", timeout: 1s, on_error: continue, default: "'no time'", output: slow}
  - match:
      on: "count(texts)"
      cases:
        "2":
          steps:
            - agent: {prompt: "Compare {texts}", timeout: 1h, output: compared}
            - fail: {message: "too strict", when: strict}
      default: "'alone'"
      output: handled
  - for_each:
      over: texts
      max_parallel: 1
      on_error: continue
      default: "'left out'"
      do:
        steps:
          - agent: {prompt: "Sum up {item}", output: short}
          - repeat: {init: short, max: 3, until: "round == 2", do: {agent: {prompt: "Shorten {acc}, round {round}"}}}
      collect: {transform: {value: pipe}}
      output: shorts
  - repeat:
      max: 4
      until: "acc == 'yes'"
      on_max: keep
      output: taken
      do:
        steps:
          - agent: {prompt: "Version {round}", output: version}
          - tool: {name: ask, args: {prompt: !expr "'Take ' + version + '?'", type: confirm}}
  - steps:
      on_error: retry(1)
      do:
        - agent: {prompt: "Once more", output: more}
        - fail: {message: "not enough", when: "more == 'little'"}
  - agent: {prompt: "Close with {more}"}
  - stop: {value: "{draft: draft, slow: slow, handled: handled, shorts: shorts, taken: taken, closed: pipe}"}
  - fail: {message: "never reached"}
"""
DIALECT_SCRIPT: Sequence[Value] = [
    {"contains": "Draft about two things", "reply": "a draft"},
    {"contains": "Improve", "error": "busy"},
    {"contains": "Improve", "error": "still busy"},
    {"contains": "Take your time", "reply": "late", "delay_ms": 30000},
    {"contains": "Compare", "reply": "alike"},
    {"contains": "Sum up two", "error": "gone"},
    {"contains": "Sum up", "reply": "long"},
    {"contains": "round 1", "reply": "shorter"},
    {"contains": "round 2", "reply": "shortest"},
    {"contains": "Version 1", "reply": "one"},
    {"contains": "Version 2", "reply": "two"},
    {"contains": "Once more", "reply": "little"},
    {"contains": "Once more", "reply": "plenty"},
    {"contains": "Close with plenty", "reply": "closed"},
]


def use(*calls: tuple[str, dict[str, Value]]) -> Value:
    return {"tool_calls": [{"name": name, "input": given} for name, given in calls]}


FORK, WATCH = "rye_agent_threads_thread_directive", "rye_agent_threads_orchestrator"
DOUBLE = "pipeline: double\nsteps:\n- transform: {value: 'ctx.n * 2', output: twice}\n"
SAYING = "pipeline: saying\nsteps:\n- agent: {prompt: 'Say {ctx.n}'}\n"
LAUNCHER = """# Launcher

```xml
<directive name="launcher" version="1.0.0">
  <metadata>
    <description>Launches.</description><category>demo</category><author>tests</author><model tier="low" />
    <permissions><execute><pipeline>*</pipeline></execute></permissions>
  </metadata>
  <inputs><input name="who" type="string" required="true">Whom</input></inputs>
  <outputs><output name="said" required="true">What was said</output></outputs>
</directive>
```

Launch for {input:who}.
"""
LAUNCHER_SCRIPT: Sequence[Value] = [
    {"tool_calls": [{"name": "run_pipeline", "input": {"name": "double", "input": {"n": 2}}}]},
    {"tool_calls": [{"name": "pipeline__double", "input": {"n": 3}}]},
    {"tool_calls": [{"name": "run_pipeline", "input": {"name": "nothing"}}]},
    {"tool_calls": [{"name": "run_pipeline", "input": {"name": "double", "input": {"n": "x"}}}]},
    {"tool_calls": [{"name": "pipeline__saying", "input": {"n": 4}}]},
    "four",
    {"tool_calls": [{"name": "directive_return", "input": {"said": "done"}}]},
]
CHILD: dict[str, Value] = {"directive_id": "demo/child", "inputs": {"who": "Cy"}}
DIRECTIVE_SCRIPT: Sequence[Value] = [
    {"contains": "Whisper to Cy", "tool_calls": [{"name": "directive_return", "input": {"said": "psst"}}]},
    use(("rye_file_system_read", {"path": "notes.txt"}), (FORK, CHILD)),
    use((FORK, {**CHILD, "async": True}), ("rye_file_system_nothing", {})),
    use((WATCH, {"operation": "wait_threads"})),
    use(("directive_return", {"said": "hello Bo"})),
]


class Travel(SignedWorkspace):
    """Each `runtime` is as good as another process."""

    def __init__(self, folder: Path) -> None:
        given({"quire.toml": "", "notes.txt": "Rust is fast.", "prompts/style.md": "Write in plain words."}, folder)
        given({"pipelines/double.yaml": DOUBLE, "everything.playbook.md": PLAYBOOK, "board.yaml": PIPELINE}, folder)
        super().__init__(folder)
        for name, words in (("parent", "Greet"), ("child", "Whisper to")):
            text = _DIRECTIVE.replace("{name}", name).replace("{words}", words).replace("{input}", "{input:who}")
            self.write(f".ai/directives/demo/{name}.md", text, sign=True)

    def runtime(self, script: Sequence[Value] = ()) -> AbstractAsyncContextManager[Runtime]:
        return self.opened(ScriptedModel(list(script)))

    async def run(
        self,
        document: str,
        inputs: dict[str, Value],
        script: Sequence[Value],
        options: RunOptions | None = None,
        *,
        run_id: str = "",
    ) -> tuple[str, DriveResult]:
        async with self.runtime(script) as runtime:
            run = await runtime.start(load(self.folder / document), inputs, options or RunOptions(), run_id=run_id)
            return run, await runtime.drive(run)

    async def everything(self, run_id: str = "") -> str:
        """A playbook that stopped, was changed, failed, was resumed and answered."""
        given: dict[str, Value] = {"topic": "speed", "depth": "thorough"}
        options = RunOptions(breakpoints=("2",))
        run, _ = await self.run("everything.playbook.md", given, PLAYBOOK_SCRIPT[:1], options, run_id=run_id)
        async with self.runtime(PLAYBOOK_SCRIPT[1:]) as runtime:
            await runtime.drive(run, overrides={"topic": "safety"})
            await runtime.answer(run, None, "yes")
            await runtime.drive(run)
            await runtime.drive(run)
        return run

    async def choices(self, run_id: str = "") -> str:
        """A playbook that chooses results, models and its artifact, and whose steps use a tool. Its models are scripts,
        named as they are from the current folder, which has to be that of the workspace."""
        home = Path(self.environ["QUIRE_HOME"])
        given({"quire.toml": CHOICE_SETTINGS}, home)
        self.write("choices.playbook.md", CHOICES)
        for name, replies in CHOICE_SCRIPTS.items():
            self.write(f"{name}.json", encode(replies))
        document = load(self.folder / "choices.playbook.md")
        async with self.opened() as runtime:
            run = await runtime.start(document, {"kind": "style"}, RunOptions(unattended=True), run_id=run_id)
            ended = await runtime.drive(run)
        assert ended.status is Status.COMPLETED, ended
        return run

    async def letters(self, run_id: str = "") -> str:
        """A pipeline that declares its inputs, calls another one that does, and has a reply corrected."""
        self.write("letters.yaml", LETTERS)
        self.write("pipelines/signed.yaml", SIGNED)
        run, ended = await self.run("letters.yaml", {"readers": ["Ann", "Bob"]}, LETTERS_SCRIPT, run_id=run_id)
        assert ended.status is Status.COMPLETED, ended
        return run

    async def dialect(self, run_id: str = "") -> str:
        """A pipeline with all steps of the Quire dialect: blocks, loops, survived failures, a limit in time, an end."""
        run = await self.dialect_waiting(run_id)
        async with self.runtime(DIALECT_SCRIPT[10:]) as runtime:
            await runtime.answer(run, None, "no")
            await runtime.drive(run)
            await runtime.answer(run, None, "yes")
            ended = await runtime.drive(run)
        assert ended.status is Status.COMPLETED, ended
        return run

    async def dialect_waiting(self, run_id: str = "") -> str:
        """The same, waiting for a person in the first round of a loop."""
        ended = await self._dialect(run_id, strict=False)
        assert ended.status is Status.AWAITING_INPUT, ended
        return run_id

    async def dialect_failed(self, run_id: str = "") -> str:
        """The same, failed in a block of a choice."""
        ended = await self._dialect(run_id, strict=True)
        assert ended.status is Status.FAILED and ended.position == "3.2.2", ended
        return run_id

    async def _dialect(self, run_id: str, *, strict: bool) -> DriveResult:
        self.write("dialect.yaml", DIALECT)
        self.write("prompts/draft.md", "Draft about two things.\n")
        inputs: dict[str, Value] = {"texts": ["one", "two"], "strict": strict}
        return (await self.run("dialect.yaml", inputs, DIALECT_SCRIPT, run_id=run_id))[1]

    async def board(self, run_id: str = "") -> str:
        run, _ = await self.run("board.yaml", {"papers": PAPERS}, PIPELINE_SCRIPT, run_id=run_id)
        async with self.runtime(PIPELINE_SCRIPT) as runtime:
            await runtime.answer(run, None, "Bo")
            await runtime.drive(run)
        return run

    async def parent(self, run_id: str = "") -> str:
        run, _ = await self.run(".ai/directives/demo/parent.md", {"who": "Bo"}, DIRECTIVE_SCRIPT, run_id=run_id)
        return run

    async def launcher(self, run_id: str = "") -> str:
        """A directive that launches pipelines and waits for them; one is not there, and one fails."""
        self.write("pipelines/double.yaml", DOUBLE)
        self.write("pipelines/saying.yaml", SAYING)
        self.write(".ai/directives/demo/launcher.md", LAUNCHER, sign=True)
        run, ended = await self.run(".ai/directives/demo/launcher.md", {"who": "Bo"}, LAUNCHER_SCRIPT, run_id=run_id)
        assert ended.status is Status.COMPLETED, ended
        return run

    async def effects(self, run: str) -> dict[str, EffectRecord]:
        async with self.runtime() as runtime:
            return {record.path: record for record in await runtime.store.effects(run)}
