"""Turn a plan into a flowchart: a flat list of items in document order, independent of how it is drawn.

Boxes surround steps that repeat or run in parallel; rows hold the arms of a choice. A printer that arranges the chart
itself (Mermaid) can ignore rows and lanes; a printer that does not (`layout`) finds everything it needs. Texts are
copied from the document as they are: escaping them is the printer's task. Nodes and boxes carry the path of their step,
so that a display can colour them by the state of a run. `flowchart_folds` decides which steps of a long document are
drawn as one node.
"""

from __future__ import annotations

import typing
from collections.abc import Collection
from typing import TypeAlias, assert_never

from msgspec import Struct, field

from quire.plan.descriptions import (
    QUESTIONS,
    condition_in_words,
    guarded_text,
    on_error_text,
    source_text,
    step_name,
    tool_name,
    written,
)
from quire.plan.flowchart_folds import Folding, Part, Piece
from quire.plan.nodes import Match, Plan, Sequence, Step, Think, UseTool
from quire.plan.pipeline_work import (
    Agent,
    Block,
    Call,
    Fail,
    Fold,
    ForEach,
    Formula,
    Invoke,
    Parallel,
    Repeat,
    Select,
    Stop,
    Transform,
)
from quire.plan.thread import Thread
from quire.wording import cut_line, pluralize

Shape = typing.Literal["model", "tool", "ask", "choice", "pure", "call", "end", "fold"]
BoxKind = typing.Literal["box", "row", "arm"]
LABEL_LIMIT = 80
MOST_NODES = 150
"""Nodes that a display shows without folding: a picture of more of them cannot be read."""


class Node(Struct, frozen=True):
    """One shape of the chart."""

    name: str
    shape: Shape
    head: str
    """The label and title of the step; may be empty."""
    what: str = ""
    """The work of the step in words; may be empty."""
    path: str = ""
    """The path of the step, as in `Plan.steps`, or of the first folded one; empty for the start and the end."""
    folds: int = 0
    """The number of steps that a folded node stands for."""
    until: str = ""
    """The path of the last one of several folded steps."""


class Line(Struct, frozen=True):
    """A line between two nodes."""

    start: str
    end: str
    label: str = ""
    lane: str = ""
    """Name of the lane in which the line passes the other arms of a row."""
    back: str = ""
    """Name of the box inside which the line leads back to the start."""


class Open(Struct, frozen=True):
    """Start of a box, of a row of arms, or of one arm. An arm begins with the label of the line that leads into it."""

    kind: BoxKind
    name: str = ""
    head: str = ""
    what: str = ""
    path: str = ""
    """The path of the step, for a box."""


class Close(Struct, frozen=True):
    """End of the box, row or arm that was opened last."""


class Lane(Struct, frozen=True):
    """Empty space in an arm, for a line that passes the other arms."""

    name: str


Item: TypeAlias = Node | Line | Open | Close | Lane


class _Exit(Struct, frozen=True):
    """An open end of the drawing, to which the next node is connected with a line."""

    node: str
    label: str = ""
    lane: str = ""


class _Drawing(Struct):
    folding: Folding | None = None
    items: list[Item] = field(default_factory=list)
    catching: list[list[_Exit]] = field(default_factory=list)
    """For each step around that survives failures, the `fail` steps in it."""

    def node(self, name: str, shape: Shape, head: str, what: str, joined: list[_Exit], path: str = "") -> list[_Exit]:
        return self.add(Node(name, shape, head, what, path), joined)

    def add(self, node: Node, joined: list[_Exit]) -> list[_Exit]:
        self.items.append(node)
        self.items += (Line(end.node, node.name, end.label, end.lane) for end in joined)
        return [_Exit(node.name)]

    def open(self, kind: BoxKind, name: str = "", head: str = "", what: str = "", path: str = "") -> None:
        self.items.append(Open(kind, name, head, what, path))

    def close(self) -> None:
        self.items.append(Close())

    def catch(self, goes_on: bool) -> None:
        """Begin the steps of a step; `goes_on` says whether it survives their failures."""
        if goes_on:
            self.catching.append([])

    def caught(self, ends: list[_Exit], goes_on: bool) -> list[_Exit]:
        """Return the ends of these steps. Their failures are ends only without another end: lines are crowded."""
        failures = self.catching.pop() if goes_on else []
        return ends or failures

    def lane(self, end: _Exit, name: str) -> _Exit:
        """Add an arm that contains only a lane, and return the same end, led through that lane."""
        self.open("arm", head=end.label)
        self.items.append(Lane(name))
        self.close()
        return _Exit(end.node, end.label, name)


def graph(plan: Plan, most: int | None = None, opened: Collection[str] = ()) -> tuple[Item, ...]:
    """Return the flowchart of a plan. With more than `most` nodes, some steps are folded into one node each, except
    those in `opened`, which are named by `Piece.id`."""
    items = _drawn(plan, None)
    nodes = [item.path for item in items if isinstance(item, Node)]
    if most is None or len(nodes) <= most:
        return items
    return _drawn(plan, Folding(nodes, [path for path, _ in plan.steps()], most, frozenset(opened)))


def _drawn(plan: Plan, folding: Folding | None) -> tuple[Item, ...]:
    drawing = _Drawing(folding)
    ends = drawing.node("start", "end", plan.title if plan.title.split() else "start", "", [])
    ends = _sequence(drawing, plan.body, "s", "", ends)
    made = written(plan.artifact.type) if plan.artifact else ""
    if ends:  # otherwise its last step ends it
        drawing.node("done", "end", f"done, gives {made}" if made else "done", "", ends)
    return tuple(drawing.items)


def shortened(text: str, limit: int = LABEL_LIMIT) -> str:
    """Return a text on one line, cut to `limit` characters."""
    return cut_line(" ".join(text.split()), limit)


def _sequence(drawing: _Drawing, sequence: Sequence, prefix: str, above: str, ends: list[_Exit]) -> list[_Exit]:
    parts = [Part(f"{above}{step.position}", f"{prefix}{step.position}", step) for step in sequence.steps]
    for piece in _pieces(drawing, parts):
        ends = _piece(drawing, piece, ends)
    return ends


def _pieces(drawing: _Drawing, parts: list[Part]) -> list[Piece]:
    return drawing.folding.pieces(parts) if drawing.folding else [Piece((part,)) for part in parts]


def _piece(drawing: _Drawing, piece: Piece, ends: list[_Exit]) -> list[_Exit]:
    first, last = piece.parts[0], piece.parts[-1]
    if not piece.folded:
        return _step(drawing, first.step, first.name, first.path, ends)
    head = _head(first.step) if first is last else f"Steps {first.step.label} to {last.step.label}"
    what = f"{piece.steps} {pluralize('step', piece.steps)}, folded"
    return drawing.add(Node(f"{first.name}more", "fold", head, what, first.path, piece.steps, last.path), ends)


def _step(drawing: _Drawing, step: Step, name: str, path: str, ends: list[_Exit]) -> list[_Exit]:
    """Draw a question, the work and the branch of a step. A branch that may skip the work is drawn before it."""
    head, match = _head(step), step.match
    if step.ask:
        asks = "asks" if step.ask.kind == "input" else QUESTIONS[step.ask.kind]
        ends = drawing.node(f"{name}ask", "ask", head, asks, ends, path)
    skips = bool(match and match.decide_first and step.work and all(case.test for case in match.cases))
    if step.guard is not None and step.guard.when is not None:
        choice = drawing.node(f"{name}when", "choice", head, step.guard.when.text, ends, path)[0].node
    elif match and skips:
        tests = " or ".join(condition_in_words(case.test) for case in match.cases if case.test)
        choice = drawing.node(f"{name}if", "choice", head, tests, ends, path)[0].node
    else:
        return _rest(drawing, step, name, path, ends, may_fall_through=True)
    drawing.open("row")
    drawing.open("arm", head="yes")
    ends = _rest(drawing, step, name, path, [_Exit(choice, "yes")], may_fall_through=not skips)
    drawing.close()
    skip = drawing.lane(_Exit(choice, "no"), f"{name}no")
    drawing.close()
    return [*ends, skip]


def _rest(
    drawing: _Drawing, step: Step, name: str, path: str, ends: list[_Exit], *, may_fall_through: bool
) -> list[_Exit]:
    ends = _work(drawing, step, name, path, ends)
    return _branch(drawing, step, step.match, name, path, ends, may_fall_through) if step.match else ends


def _work(drawing: _Drawing, step: Step, name: str, path: str, ends: list[_Exit]) -> list[_Exit]:
    head = _head(step)
    match step.work:
        case Think():
            return drawing.node(f"{name}model", "model", head, "model", ends, path)
        case Transform(value=value):
            return drawing.node(f"{name}value", "pure", head, value.text, ends, path)
        case Invoke(tool="ask"):
            return drawing.node(f"{name}ask", "ask", head, "asks", ends, path)
        case UseTool() | Invoke():
            return drawing.node(
                f"{name}tool", "tool", head, guarded_text(f"tool {tool_name(step.work)}", step), ends, path
            )
        case Agent(identity=identity):
            what = f"model, as {identity}" if identity else "model"
            return drawing.node(f"{name}model", "model", head, guarded_text(what, step), ends, path)
        case Thread():
            return drawing.node(f"{name}model", "model", head, "a thread: model and tools in turn", ends, path)
        case Call(document=document):
            return drawing.node(f"{name}call", "call", head, guarded_text(f"runs {document}", step), ends, path)
        case Select():
            return _select(drawing, step, step.work, name, path, ends)
        case Block():
            return _block(drawing, step, step.work, name, path, ends)
        case Fold():
            return _fold(drawing, step, step.work, name, path, ends)
        case Repeat():
            return _repeat(drawing, step, step.work, name, path, ends)
        case Fail():
            survived = bool(drawing.catching)
            ends = drawing.node(f"{name}fail", "end", head, "fails, survived" if survived else "fails here", ends, path)
            if survived:
                drawing.catching[-1] += ends
            return []
        case Stop():
            drawing.node(f"{name}stop", "end", head, "ends here, well", ends, path)
            return []
        case ForEach():
            return _for_each(drawing, step, step.work, name, path, ends)
        case Parallel():
            return _parallel(drawing, step, step.work, name, path, ends)
        case None:
            idle = not step.ask and not step.match
            return drawing.node(f"{name}empty", "model", head, "nothing to do", ends, path) if idle else ends
        case _:
            assert_never(step.work)


def _branch(
    drawing: _Drawing, step: Step, match: Match, name: str, path: str, ends: list[_Exit], may_fall_through: bool
) -> list[_Exit]:
    choice = drawing.node(f"{name}case", "choice", _head(step), "which case", ends, path)[0].node
    after: list[_Exit] = []
    drawing.open("row")
    for number, case in enumerate(match.cases, 1):
        entry = _Exit(choice, shortened(condition_in_words(case.test)))
        if not case.body.steps:
            after.append(drawing.lane(entry, f"{name}l{number}"))
            continue
        drawing.open("arm", head=entry.label)
        after += _sequence(drawing, case.body, f"{name}c{number}_", f"{path}/case[{number}]/", [entry])
        drawing.close()
    if may_fall_through and all(case.test for case in match.cases):
        after.append(drawing.lane(_Exit(choice, "otherwise"), f"{name}l0"))
    drawing.close()
    return after


def _select(drawing: _Drawing, step: Step, work: Select, name: str, path: str, ends: list[_Exit]) -> list[_Exit]:
    """Draw one called document or block for each case.

    Without a default, a value that matches no case fails, so no line leads past the branches.
    """
    choice = drawing.node(f"{name}match", "choice", _head(step), work.on.text, ends, path)[0].node
    arms = [(shortened(label), target) for label, target in work.cases]
    if isinstance(work.default, Call | Block):
        arms.append(("otherwise", work.default))
    after: list[_Exit] = []
    drawing.open("row")
    for number, (label, target) in enumerate(arms, 1):
        drawing.open("arm", head=label)
        entry = [_Exit(choice, label)]
        if isinstance(target, Block):
            after += _sequence(drawing, target.body, f"{name}m{number}_", f"{path}/match[{number}]/", entry)
        else:
            head = f"Step {step.label} runs {target.document}"
            after += drawing.node(f"{name}m{number}", "call", head, "", entry, path)
        drawing.close()
    if isinstance(work.default, Formula):
        after.append(drawing.lane(_Exit(choice, "otherwise"), f"{name}m0"))
    drawing.close()
    return after


def _block(drawing: _Drawing, step: Step, work: Block, name: str, path: str, ends: list[_Exit]) -> list[_Exit]:
    """Draw the steps of a block; in a box if the block catches their failures."""
    if step.guard is None or step.guard.on_error is None:
        return _sequence(drawing, work.body, f"{name}s", f"{path}/steps/", ends)
    drawing.open("box", f"{name}steps", _head(step), guarded_text("", step), path)
    drawing.catch(step.guard.goes_on)
    after = _sequence(drawing, work.body, f"{name}s", f"{path}/steps/", ends)
    drawing.close()
    return drawing.caught(after, step.guard.goes_on)


def _fold(drawing: _Drawing, step: Step, work: Fold, name: str, path: str, ends: list[_Exit]) -> list[_Exit]:
    most = f", the first {work.max_items}" if work.max_items is not None else ""
    drawing.open("box", f"{name}fold", _head(step), f"one by one over {source_text(work.source)}{most}", path)
    return _again(drawing, work.do, f"{name}do", f"{path}/fold", ends, "next item", f"{name}fold")


def _repeat(drawing: _Drawing, step: Step, work: Repeat, name: str, path: str, ends: list[_Exit]) -> list[_Exit]:
    says = f"until {work.until.text}, at most {work.max} {pluralize('round', work.max)}"
    drawing.open("box", f"{name}repeat", _head(step), says, path)
    return _again(drawing, work.do, f"{name}do", f"{path}/repeat", ends, "next round", f"{name}repeat")


def _again(drawing: _Drawing, do: Step, name: str, path: str, ends: list[_Exit], label: str, box: str) -> list[_Exit]:
    """Draw the step of a loop with lines back to its start, and close the box of the loop."""
    at = len(drawing.items)
    after = _step(drawing, do, name, path, ends)
    first = next(item.name for item in drawing.items[at:] if isinstance(item, Node))
    drawing.items += (Line(end.node, first, label, back=box) for end in after)
    drawing.close()
    return after


def _for_each(drawing: _Drawing, step: Step, work: ForEach, name: str, path: str, ends: list[_Exit]) -> list[_Exit]:
    says = f"each of {source_text(work.source)}, {work.max_parallel} at once, {on_error_text(work.on_error)}"
    drawing.open("box", f"{name}each", _head(step), says, path)
    drawing.catch(work.on_error.goes_on)
    after = _step(drawing, work.do, f"{name}do", f"{path}/for_each", ends)
    drawing.close()
    after = drawing.caught(after, work.on_error.goes_on)
    return _step(drawing, work.collect, f"{name}collect", f"{path}/collect", after)


def _parallel(drawing: _Drawing, step: Step, work: Parallel, name: str, path: str, ends: list[_Exit]) -> list[_Exit]:
    drawing.open("box", f"{name}par", _head(step), f"side by side, {on_error_text(work.on_error)}", path)
    drawing.catch(work.on_error.goes_on)
    drawing.open("row")
    after: list[_Exit] = []
    parts = [
        Part(f"{path}/parallel[{branch}]", f"{name}b{number}", inner, branch)
        for number, (branch, inner) in enumerate(work.branches, 1)
    ]
    for piece in _pieces(drawing, parts):
        label = shortened(piece.parts[0].branch if len(piece.parts) == 1 else f"{len(piece.parts)} branches")
        drawing.open("arm", head=label)
        entering = [_Exit(end.node, end.label or label, end.lane) for end in ends]
        after += _piece(drawing, piece, entering)
        drawing.close()
    after = drawing.caught(after, work.on_error.goes_on)
    drawing.close()
    drawing.close()
    return _step(drawing, work.collect, f"{name}collect", f"{path}/collect", after)


def _head(step: Step) -> str:
    return f"Step {step.label} - {step_name(step)}"
