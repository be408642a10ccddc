"""A plan as a Mermaid flowchart, with boxes around what is done again and again, or side by side.

Labels come from documents, so every character that means something to Mermaid, to its Markdown or to HTML is written as
an entity: no title can end its box, start a directive or bring a tag.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from quire.plan.nodes import (
    Agent,
    Ask,
    Call,
    Case,
    Comparison,
    Fold,
    ForEach,
    Formula,
    Invoke,
    Literal,
    Match,
    OnError,
    Parallel,
    Plan,
    Select,
    Sequence,
    Step,
    Think,
    Transform,
    UseTool,
)

LABEL_LIMIT = 80
_PLAIN = frozenset(" .,!?()/+=-")
_SHAPES = {
    "model": ('["', '"]'),
    "tool": ('[["', '"]]'),
    "ask": ('[/"', '"/]'),
    "choice": ('{"', '"}'),
    "pure": ('("', '")'),
    "call": ('{{"', '"}}'),
    "end": ('(["', '"])'),
}


@dataclass(frozen=True, slots=True)
class _Exit:
    """An open end of the drawing: where the next node is joined, and what stands at the line."""

    node: str
    label: str = ""


@dataclass(slots=True)
class _Drawing:
    """Lines inside of a box are held until it is closed: Mermaid draws what they name inside of the box as well."""

    lines: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    depth: int = 0

    def node(self, name: str, shape: str, label: str, joined: list[_Exit]) -> list[_Exit]:
        before, after = _SHAPES[shape]
        self.lines.append(f"{self._indent}{name}{before}{label}{after}")
        for end in joined:
            self.line(end, name)
        return [_Exit(name)]

    def line(self, end: _Exit, to: str) -> None:
        said = f'|"{end.label}"|' if end.label else ""
        (self.held if self.depth else self.lines).append(f"    {end.node} -->{said} {to}")

    def begin(self, name: str, label: str) -> None:
        self.lines.append(f'{self._indent}subgraph {name}["{label}"]')
        self.depth += 1

    def end(self) -> None:
        self.depth -= 1
        self.lines.append(f"{self._indent}end")
        if not self.depth:
            self.lines += self.held
            self.held.clear()

    @property
    def _indent(self) -> str:
        return "    " * (self.depth + 1)


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
        case Transform(value=value):
            ends = drawing.node(f"{name}value", "pure", _label(step, value.text), ends)
        case Invoke(tool="ask"):
            ends = drawing.node(f"{name}ask", "ask", _label(step, "asks"), ends)
        case Invoke(tool=tool):
            ends = drawing.node(f"{name}tool", "tool", _label(step, f"tool {tool}"), ends)
        case Agent(identity=identity):
            ends = drawing.node(
                f"{name}model", "model", _label(step, f"model, as {identity}" if identity else "model"), ends
            )
        case Call(document=document):
            ends = drawing.node(f"{name}call", "call", _label(step, f"runs {document}"), ends)
        case Select():
            ends = _select(drawing, step, step.work, name, ends)
        case Fold():
            ends = _fold(drawing, step, step.work, name, ends)
        case ForEach():
            ends = _for_each(drawing, step, step.work, name, ends)
        case Parallel():
            ends = _parallel(drawing, step, step.work, name, ends)
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


def _select(drawing: _Drawing, step: Step, work: Select, name: str, ends: list[_Exit]) -> list[_Exit]:
    """One callee for each case. Without a default a value that has no case fails: there is no way past."""
    choice = drawing.node(f"{name}match", "choice", _label(step, work.on.text), ends)[0].node
    calls = [(escaped(label), call) for label, call in work.cases]
    if work.default:
        calls.append(("otherwise", work.default))
    after: list[_Exit] = []
    for number, (label, call) in enumerate(calls, 1):
        said = escaped(f"Step {step.label} runs {call.document}")
        after += drawing.node(f"{name}m{number}", "call", said, [_Exit(choice, label)])
    return after


def _fold(drawing: _Drawing, step: Step, work: Fold, name: str, ends: list[_Exit]) -> list[_Exit]:
    most = f", the first {work.max_items}" if work.max_items is not None else ""
    drawing.begin(f"{name}fold", _label(step, f"one by one over {source_text(work.source)}{most}"))
    after, first = _inside(drawing, work.do, f"{name}do", ends)
    for end in after:
        drawing.line(_Exit(end.node, "next item"), first)
    drawing.end()
    return after


def _for_each(drawing: _Drawing, step: Step, work: ForEach, name: str, ends: list[_Exit]) -> list[_Exit]:
    says = f"each of {source_text(work.source)}, {work.max_parallel} at once, {on_error_text(work.on_error)}"
    drawing.begin(f"{name}each", _label(step, says))
    after, _ = _inside(drawing, work.do, f"{name}do", ends)
    drawing.end()
    return _step(drawing, work.collect, f"{name}collect", after)


def _parallel(drawing: _Drawing, step: Step, work: Parallel, name: str, ends: list[_Exit]) -> list[_Exit]:
    drawing.begin(f"{name}par", _label(step, f"side by side, {on_error_text(work.on_error)}"))
    after: list[_Exit] = []
    for number, (branch, inner) in enumerate(work.branches, 1):
        entering = [_Exit(end.node, end.label or escaped(branch)) for end in ends]
        after += _inside(drawing, inner, f"{name}b{number}", entering)[0]
    drawing.end()
    return _step(drawing, work.collect, f"{name}collect", after)


def _inside(drawing: _Drawing, step: Step, name: str, ends: list[_Exit]) -> tuple[list[_Exit], str]:
    """The open ends of a step, and the node that it begins with."""
    at = len(drawing.lines)
    after = _step(drawing, step, name, ends)
    nodes = (line.split()[0] for line in drawing.lines[at:])
    first = next(re.split(r"\W", node)[0] for node in nodes if node != "subgraph")
    return after, first


def source_text(source: Formula | Literal | None) -> str:
    """What a step goes through, in words."""
    match source:
        case Formula(text=text):
            return text
        case Literal(value=value):
            count = len(value) if isinstance(value, list | tuple) else 0
            return f"{count} given item{'' if count == 1 else 's'}"
    return "the value before"


def on_error_text(on_error: OnError) -> str:
    match on_error.policy:
        case "continue":
            return "failures dropped"
        case "retry":
            return f"failures tried {on_error.times} times more"
    return "a failure ends it"


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
