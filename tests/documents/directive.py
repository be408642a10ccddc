"""Directives: a tree of threads, each with the program that its model follows, hooks, limits and tools side by side.

Every directive is started at one place only, so no two calls of a model read the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from tests.documents.draw import Draw
from tests.documents.pipeline import Pipelines
from tests.documents.playbook import UNCERTAIN
from tests.simulator.fakes import PRICE, PROGRAM
from tests.simulator.scenario import Scenario

from quire.engine.interpreter.thread.setup import ORCHESTRATE
from quire.plan.built_in_tools import FORK
from quire.plan.vocabulary import CONTROL
from quire.trust.capabilities import flat_name
from quire.values import Value

LONG = 100_000
"""Seconds for which a thread waits for its children: as good as for ever."""

TEXT = """# Simulated

Follows its program.

```xml
<directive name="{name}" version="1.0.0">
  <metadata>
    <description>Simulated.</description>
    <category>sim</category>
    <author>nobody</author>
    <model tier="fast" />
    <limits {limits} />
    <hooks>{hooks}</hooks>
    <permissions>*<acknowledge risk="unrestricted">nothing here is real</acknowledge></permissions>
  </metadata>
  <inputs><input name="tag" type="string" required="false">A mark</input></inputs>
  <outputs><output name="out" type="string" required="true">All that came back</output></outputs>
</directive>
```

<process>
  <step name="s">
{program}
  </step>
</process>
"""

Call = dict[str, Value]


@dataclass(slots=True)
class _Forest:
    """`exact` turns false as soon as something is drawn that depends on who is faster."""

    draw: Draw
    files: dict[str, str] = field(default_factory=dict)
    count: int = 0
    sites: int = 0
    exact: bool = True
    limits: dict[str, Value] = field(default_factory=dict)

    def thread(self, depth: int) -> str:
        """Writes a directive and those that it starts; its id."""
        name = f"d{self.count}"
        self.count += 1
        turns: list[Value] = [self._turn(depth) for _ in range(self.draw.between(1, 4))]
        limits = {"turns": 30, "duration_seconds": 10**9, "spend": 10, **(self.limits if name == "d0" else {})}
        text = TEXT.format(
            name=name,
            limits=" ".join(f'{key}="{value}"' for key, value in limits.items()),
            hooks="".join(self._hooks()),
            program=f"{PROGRAM}{json.dumps(turns)}",
        )
        self.files[f".ai/directives/sim/{name}.md"] = text
        return f"sim/{name}"

    def _turn(self, depth: int) -> Value:
        if self.draw.chance(8):
            return f"Just saying {self._site()}."
        calls: list[Value] = []
        for _ in range(self.draw.between(1, 4)):
            calls += self._calls(depth)
        return calls

    def _site(self) -> int:
        self.sites += 1
        return self.sites

    def _calls(self, depth: int) -> list[Call]:
        kinds = ["tool", "tool", "ask", "odd", "broken", "pipeline"]
        kinds += ["fork", "fork", "aside", "wait", "halt", "status"] if depth else ["wait"]
        match self.draw.pick(kinds):
            case "tool":
                name = self.draw.pick(["sim_write", "sim_read", "sim_same"])
                return [{"name": name, "input": {"site": self._site()}}]
            case "odd":
                return [{"name": "sim_odd", "input": {"site": self._site()}}]
            case "broken":
                return [{"name": "sim_broken", "input": {"site": self._site()}}]
            case "ask":
                return [{"name": "ask", "input": {"prompt": f"site {self._site()}?"}}]
            case "pipeline":
                return [self._pipeline()]
            case "fork":
                return [self._fork(depth, aside=False)]
            case "aside":
                return [self._fork(depth, aside=True)]
            case "halt":
                self.exact = False
                return [self._orchestrate("cancel_thread")]
            case "status":
                self.exact = False
                timeout = self.draw.pick([LONG, 1, 0])
                return [self._orchestrate("wait_threads" if timeout else "get_status", timeout=timeout)]
        return [self._orchestrate("wait_threads", timeout=LONG)]

    def _fork(self, depth: int, *, aside: bool) -> Call:
        given: Call = {"directive_id": self.thread(depth - 1), "inputs": {"tag": str(self._site())}, "async": aside}
        return {"name": flat_name(FORK), "input": given}

    def _orchestrate(self, operation: str, **more: Value) -> Call:
        return {"name": flat_name(ORCHESTRATE), "input": {"operation": operation, **more}}

    def _pipeline(self) -> Call:
        name = f"part{self._site()}"
        made = Pipelines(self.draw, 2, forgiving=True)
        text = made.document(name, self.draw.below(2), ("ctx.topic",))
        renamed = {f"pipelines/{name}_{one.rpartition('/')[2]}": body for one, body in made.files.items()}
        for old in made.files:
            callee = old.rpartition("/")[2].removesuffix(".yaml")
            text = text.replace(f'"{callee}"', f'"{name}_{callee}"')
            renamed = {
                one: body.replace(f"pipeline: {callee}\n", f"pipeline: {name}_{callee}\n").replace(
                    f'"{callee}"', f'"{name}_{callee}"'
                )
                for one, body in renamed.items()
            }
        self.files |= {f"pipelines/{name}.yaml": text, **renamed}
        given: Call = {"item_type": "pipeline", "item_id": name, "parameters": {"topic": name}}
        return {"name": "rye_execute", "input": given}

    def _hooks(self) -> list[str]:
        hooks = []
        for number in range(self.draw.below(3)):
            event = self.draw.pick(["after_step", "error", "directive_return", "after_complete", "thread_started"])
            if event == "error" and self.draw.chance(60):
                what = self.draw.pick(["continue", "retry", "escalate", "skip"])
                action = _action(CONTROL, {"action": what})
            elif event == "after_step" and self.draw.chance(15):
                action = _action(CONTROL, {"action": self.draw.pick(["suspend", "continue"])})
            else:
                of = self.draw.pick(["turn", "cost.spend", "cost.turns", "limits.spend", "cost.spawns"])
                tool = self.draw.pick(["sim/write", "sim/read", "sim/broken"])
                action = _action(tool, {"hook": str(number), "of": f"${{{of}}}"})
            hooks.append(f'<hook id="h{number}" event="{event}">{action}</hook>')
        return hooks


def _action(item_id: str, given: dict[str, str]) -> str:
    params = "".join(f'<param name="{name}">{value}</param>' for name, value in given.items())
    return f'<action primary="execute" item_type="tool" item_id="{item_id}">{params}</action>'


def draw_directive(draw: Draw) -> Scenario:
    forest = _Forest(draw)
    tight = draw.chance(25)
    if tight:
        forest.exact = False
        forest.limits = {
            "turns": draw.between(1, 6),
            "spend": round(PRICE * draw.between(2, 12), 4),
            "spawns": draw.between(1, 3),
        }
    top = forest.thread(draw.below(3))
    policy = draw.pick(UNCERTAIN)
    limits = forest.limits
    return Scenario(
        "directive",
        forest.files,
        f".ai/directives/{top}.md",
        {},
        exact=forest.exact and policy != "fail",
        max_turns=int(str(limits.get("turns", 0))),
        max_spend=float(str(limits.get("spend", 0.0))),
        max_spawns=int(str(limits.get("spawns", 0))),
        on_uncertain=policy,
    )
