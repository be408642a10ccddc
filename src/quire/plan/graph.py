"""A plan as a Mermaid flowchart.

Labels come from documents, so every character that means something to Mermaid, to its Markdown or to HTML is written as
an entity: no title can end its box, start a directive or bring a tag.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quire.plan.nodes import Ask, Case, Comparison, Match, Plan, Sequence, Step, Think, UseTool

LABEL_LIMIT = 80
_PLAIN = frozenset(" .,!?()/+=-")
_SHAPES = {
    "model": ('["', '"]'),
    "tool": ('[["', '"]]'),
    "ask": ('[/"', '"/]'),
    "choice": ('{"', '"}'),
    "end": ('(["', '"])'),
}


@dataclass(frozen=True, slots=True)
class _Exit:
    """An open end of the drawing: where the next node is joined, and what stands at the line."""

    node: str
    label: str = ""


@dataclass(slots=True)
class _Drawing:
    lines: list[str] = field(default_factory=list)

    def node(self, name: str, shape: str, label: str, joined: list[_Exit]) -> list[_Exit]:
        before, after = _SHAPES[shape]
        self.lines.append(f"    {name}{before}{label}{after}")
        for end in joined:
            said = f'|"{end.label}"|' if end.label else ""
            self.lines.append(f"    {end.node} -->{said} {name}")
        return [_Exit(name)]


def mermaid(plan: Plan) -> str:
    """The text of a flowchart, without a fence and with a last newline."""
    drawing = _Drawing()
    ends = drawing.node("start", "end", escaped(plan.title) or "start", [])
    ends = _sequence(drawing, plan.body, "s", ends)
    made = plan.artifact and "".join(part if isinstance(part, str) else part.raw for part in plan.artifact.type.parts)
    drawing.node("done", "end", escaped(f"done, gives {made}") if made else "done", ends)
    return "\n".join(["flowchart TD", *drawing.lines]) + "\n"


def escaped(text: str, limit: int = LABEL_LIMIT) -> str:
    """Any text as the inside of a quoted label. Letters and digits of all scripts stay readable."""
    line = " ".join(text.split())
    if len(line) > limit:
        line = line[: limit - 1].rstrip() + "…"
    return "".join(_entity(char) for char in line)


def _entity(char: str) -> str:
    if char in _PLAIN or char.isalnum():
        return char
    return "#65533;" if char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff" else f"#{ord(char)};"


def _sequence(drawing: _Drawing, sequence: Sequence, prefix: str, ends: list[_Exit]) -> list[_Exit]:
    for step in sequence.steps:
        ends = _step(drawing, step, f"{prefix}{step.position}", ends)
    return ends


def _step(drawing: _Drawing, step: Step, name: str, ends: list[_Exit]) -> list[_Exit]:
    """A question, the work, the branch; a branch that may skip the work stands before it."""
    if step.ask:
        ends = drawing.node(f"{name}ask", "ask", _label(step, _asks(step.ask)), ends)
    skips: list[_Exit] = []
    match = step.match
    if match and match.decide_first and step.work and all(case.test for case in match.cases):
        tests = " or ".join(condition(case.test) for case in match.cases if case.test)
        ends = drawing.node(f"{name}if", "choice", _label(step, tests), ends)
        skips, ends = [_Exit(ends[0].node, "no")], [_Exit(ends[0].node, "yes")]
    match step.work:
        case Think():
            ends = drawing.node(f"{name}model", "model", _label(step, "model"), ends)
        case UseTool(connection=connection, tool=tool):
            ends = drawing.node(f"{name}tool", "tool", _label(step, f"tool {connection}/{tool}"), ends)
        case None if not step.ask and not match:
            ends = drawing.node(f"{name}empty", "model", _label(step, "nothing to do"), ends)
    if match:
        ends = _branch(drawing, step, match, name, ends, may_fall_through=not skips)
    return ends + skips


def _branch(
    drawing: _Drawing, step: Step, match: Match, name: str, ends: list[_Exit], *, may_fall_through: bool
) -> list[_Exit]:
    choice = drawing.node(f"{name}case", "choice", _label(step, "which case"), ends)[0].node
    after: list[_Exit] = []
    for number, case in enumerate(match.cases, 1):
        after += _sequence(drawing, case.body, f"{name}c{number}_", [_Exit(choice, escaped(_case(case)))])
    if may_fall_through and all(case.test for case in match.cases):
        after.append(_Exit(choice, "otherwise"))
    return after


def _case(case: Case) -> str:
    return condition(case.test) if case.test else "else"


def condition(test: Comparison) -> str:
    """A condition as it stands in a document."""
    return f'{test.variable} {test.operator} "{test.value}"'


def _asks(ask: Ask) -> str:
    return {"input": "asks", "confirm": "asks yes or no", "select": "asks to choose"}[ask.kind]


def _label(step: Step, what: str) -> str:
    """Begins with a word of ours: Mermaid takes a label that begins like a Markdown list for one."""
    title = f" - {step.title}" if step.title else ""
    return f"{escaped(f'Step {step.label}{title}')} ({escaped(what)})"
