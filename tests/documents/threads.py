"""Directives with few permissions and low limits, so that their proofs are close to what can happen: named children,
named documents, hooks of every event, and pipelines that call directives."""

from __future__ import annotations

from tests.documents.draw import Draw
from tests.documents.pipeline import Pipelines, flow
from tests.simulator.scenario import Scenario

from quire.plan.built_in_tools import FORK
from quire.plan.vocabulary import CONTROL

_TEXT = """# Limited

```xml
<directive name="{name}" version="1.0.0"{extends}>
  <metadata>
    <description>Limited.</description>
    <category>sim</category>
    <author>nobody</author>
    <model tier="fast" />
    <limits {limits} />
    <hooks>{hooks}</hooks>
    {permissions}
  </metadata>
  <inputs><input name="tag" type="string" required="false">A mark</input></inputs>
  {outputs}
</directive>
```

<process><step name="s">Do it with {{input:tag?}}.</step></process>
"""

_EVENTS = ("after_step", "error", "directive_return", "after_complete", "thread_started", "limit")
_DECISIONS = ("continue", "retry", "escalate", "skip", "suspend", "fail", "abort")


class _Threads:
    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self.files: dict[str, str] = {}
        self._names: list[str] = []
        self._documents: list[str] = []

    def write(self, name: str) -> str:
        """Write a directive that may start those that were written before it, or itself; return its id."""
        draw = self._draw
        limits: dict[str, object] = {"turns": draw.pick([3, 2, 1, 4, 0]), "duration_seconds": 10**9, "spend": 100}
        limits["tokens"] = draw.pick([10**6, 5_000, 500])
        limits["spawns"] = draw.between(0, 3)
        limits["depth"] = draw.between(0, 3)
        self._names.append(f"sim/{name}")
        text = _TEXT.format(
            name=name,
            extends=f' extends="{self._names[0]}"' if len(self._names) > 1 and draw.chance(20) else "",
            limits=" ".join(f'{key}="{value}"' for key, value in limits.items()),
            hooks="".join(self._hook(number) for number in range(draw.below(3))),
            permissions=self._permissions(),
            outputs='<outputs><output name="out" type="string">x</output></outputs>' if draw.chance(60) else "",
        )
        self.files[f".ai/directives/sim/{name}.md"] = text
        return f"sim/{name}"

    def _permissions(self) -> str:
        draw = self._draw
        if draw.chance(10) and len(self._names) > 1:
            return ""
        held = ["<tool>sim/read</tool>"]
        for tool in ("sim/write", "ask"):
            if draw.chance(40):
                held.append(f"<tool>{tool}</tool>")
        if draw.chance(30):
            held.append(f"<tool>{FORK.replace('/', '.')}</tool><tool>rye.agent.threads.orchestrator</tool>")
        if draw.chance(50):
            held.append(f"<directive>{draw.pick(self._names)}</directive>")
        if self._documents and draw.chance(50):
            held.append(f"<pipeline>{draw.pick(self._documents)}</pipeline>")
        if draw.chance(15):
            pattern = draw.pick(["direct?ve", "[d]irective"])
            held.append(f"</execute><execute>{pattern}.{draw.pick(self._names).replace('/', '.')}")
        if self._documents and draw.chance(15):
            held.append(f"</execute><execute>{draw.pick(['pipel*', 'pipe[l-m]ine'])}.{draw.pick(self._documents)}")
        risk = '<acknowledge risk="unrestricted">nothing here is real</acknowledge>'
        return f"<permissions><execute>{''.join(held)}</execute>{risk}</permissions>"

    def _hook(self, number: int) -> str:
        draw, event = self._draw, self._draw.pick(_EVENTS)
        match draw.below(4):
            case 0:
                action = _action("tool", CONTROL, {"action": draw.pick(_DECISIONS)})
            case 1:
                action = _action("directive", draw.pick(self._names), {"tag": "${inputs.tag}"})
            case 2:
                action = _action("tool", "sim/read", {"of": "${error.message || outputs.out}", "by": "{input:tag?}"})
            case _:
                action = _action("tool", draw.pick(["sim/write", "sim/broken"]), {"of": "${turn}"})
        return f'<hook id="h{number}" event="{event}">{action}</hook>'

    def pipeline(self, name: str, calls: str = "") -> str:
        """Write a registered pipeline that may call a directive."""
        made = Pipelines(self._draw, 2, forgiving=True)
        text = made.document(name, 0, ("ctx.topic",))
        if calls:
            given = {"pipeline": calls.rpartition("/")[2], "pass": {"tag": "'x'"}}
            text += f"- {flow({'call': given})}\n"
        self.files[f"pipelines/{name}.yaml"] = text
        self._documents.append(name)
        return name


def _action(kind: str, item_id: str, given: dict[str, str]) -> str:
    params = "".join(f'<param name="{name}">{value}</param>' for name, value in given.items())
    return f'<action primary="execute" item_type="{kind}" item_id="{item_id}">{params}</action>'


def draw_threads(draw: Draw) -> Scenario:
    """A directive with a few others below it, or a pipeline that calls one."""
    made = _Threads(draw)
    top = ""
    for number in range(draw.between(1, 3)):
        if draw.chance(40):
            made.pipeline(f"part{number}", top if draw.chance(50) else "")
        top = made.write(f"t{number}")
    if draw.chance(25):
        name = made.pipeline("simulated", top)
        return Scenario("directive", made.files, f"pipelines/{name}.yaml", {"topic": "tea"})
    return Scenario("directive", made.files, f".ai/directives/{top}.md", {"tag": "a mark"})
