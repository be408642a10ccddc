"""Playbooks and pipelines that call each other, with values that are texts in one and lists in the other."""

from __future__ import annotations

from tests.documents.draw import Draw
from tests.documents.pipeline import flow
from tests.simulator.scenario import Scenario

from quire.values import Value

_TOPICS = ("tea", "7", "[1, 2, 3]", '["a", ["b", "c"], "d"]', '{"list": ["a", "b", "c", "d"]}', "one two three")
_LISTS = ("ctx.rows", "get(ctx.rows, 'list', [])", "flatten([ctx.rows])", "values(ctx.rows)", "[ctx.rows, 1]")
_SAID = ("parse(get(said, 'words', '[]'), [])", "split(get(said, 'output', ''), ' ')", "keys(said)", "[said]")


class _Mixed:
    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self.files: dict[str, str] = {}
        self._parts: list[str] = []
        self._notes: list[str] = []

    def part(self) -> str:
        """Write a pipeline that goes through what it is given, and perhaps through what a playbook says of it."""
        draw, name = self._draw, f"part{len(self._parts)}"
        steps: list[object] = [self._fan(draw.pick(_LISTS))]
        if self._notes and draw.chance(70):
            given = draw.pick(["ctx.rows", "text(ctx.rows)", "'[1, 2]'", "ctx.topic"])
            steps.append({"call": {"pipeline": draw.pick(self._notes), "pass": {"topic": given}, "output": "said"}})
            steps.append(self._fan(draw.pick(_SAID)))
        body = "".join(f"- {flow(step)}\n" for step in steps)
        self.files[f"pipelines/{name}.yaml"] = f"pipeline: {name}\ndialect: quire\nsteps:\n{body}"
        self._parts.append(name)
        return f"pipelines/{name}.yaml"

    def _fan(self, over: str) -> object:
        work = self._draw.pick([{"agent": {"prompt": "of {item}"}}, {"tool": {"name": "read1", "args": {"of": 1}}}])
        on_error = self._draw.pick(["abort", "retry(1)", "continue"])
        kept = {"transform": {"value": "pipe"}}
        return {"for_each": {"over": over, "on_error": on_error, "do": work, "collect": kept}}

    def note(self) -> str:
        """Write a playbook that passes its texts to pipelines, as texts or as the values that they are the JSON of."""
        draw, name, names = self._draw, f"note{len(self._notes)}", ["topic"]
        default = draw.pick(["", ": [1, 2]", ": x"])
        lines = ["# Note", "", "## INPUTS", "", f"- `topic` (text{default}): What", ""]
        for number in range(1, draw.between(2, 5)):
            known = draw.pick(names)
            slot = draw.pick([f"{{{{{known}}}}}", f'"{{{{{known}}}}}"', f'["{{{{{known}}}}}", {{{{{known}}}}}]'])
            lines += [f"## STEP {number}: S{number}", ""]
            match draw.below(4):
                case 0 if self._parts:
                    given = draw.pick([slot, slot, "{{none:string:[1, 2, 3]}}"])
                    lines.append(f'@tool(quire, {draw.pick(self._parts)}, {{"rows": {given}, "topic": "x"}})')
                case 1:
                    lines.append(f'@tool(sim, read, {{"of": {slot}}})')
                case 2:
                    lines.append('@elicit(select, "Which?", "[1, 2, 3]", "tea")')
                case _:
                    lines.append(f"Think of {{{{{known}}}}}.")
            kept = draw.pick(["words", f"v{number}"])
            lines += ["", f"@output({kept})", ""]
            names.append(kept)
        self.files[f"playbooks/{name}.playbook.md"] = "\n".join(lines)
        self._notes.append(name)
        return f"playbooks/{name}.playbook.md"


def draw_mixed(draw: Draw) -> Scenario:
    made, top = _Mixed(draw), ""
    for _ in range(draw.between(2, 4)):
        top = made.part() if draw.chance(50) else made.note()
    topic = draw.pick(_TOPICS)
    if top.endswith(".md"):
        return Scenario("mixed", made.files, top, {"topic": topic})
    several: list[Value] = [["a", "b"], {"list": ["a", "b", "c"]}, topic]
    rows = draw.pick(several)
    return Scenario("mixed", made.files, top, {"rows": rows, "topic": topic})
