"""Find parts of documents without an effect: arms that are never taken, steps after the end, conditions that always
turn out the same (DD101 to DD103), and stores that are not read (DD104, in `stores.py`).

`KnownConditions` are the facts that hold at a place of a pipeline because of the conditions around it. A value counts
as the same only if it is read from the same version of the same store: an item or an accumulator is another value in
the next loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from quire.analysis.rules import codes
from quire.analysis.rules.stores import unread_stores
from quire.diagnostics import Diagnostic
from quire.expr import EvalError, python_text
from quire.expr.syntax import RESERVED, Compare, Constant, Logic, Node, Not, Path
from quire.plan.descriptions import condition as condition_words
from quire.plan.pipeline_work import Agent, Block, Fail, Formula, Invoke, Repeat, Select, Stop, Transform
from quire.schema_types import Enum, Kind, Simple
from quire.wording import listed

if TYPE_CHECKING:
    from quire.analysis.facts import ChoiceFact, Condition
    from quire.analysis.proof import Proof
    from quire.analysis.rules import RuleContext
    from quire.plan.nodes import Plan, Sequence, Step


_LONGEST_TRIED = 1_000
"""Characters of an expression that is evaluated to see whether it is constant."""
_SHOWN = 8


def check(proof: Proof, context: RuleContext) -> Iterator[Diagnostic]:
    """Yield findings about steps that never run, conditions that never decide, and values that are never read."""
    plan = proof.plan
    yield from _chains(plan)
    if plan.format != "pipeline":
        return
    yield from _after_the_end(plan.body)
    for _, step in plan.steps():
        if type(step.work) is Repeat:
            yield from _until(step.work)
    conditions = KnownConditions()
    for choice in proof.choices:
        if choice.place.document:
            continue
        step = choice.place.step
        if type(step.work) is Select and choice.condition.subject is not None:
            yield from _match(step.work, choice, conditions)
        elif step.guard is not None and step.guard.when is not None:
            yield from _when(step.guard.when, choice, conditions)
    yield from unread_stores(plan)


def _after_the_end(sequence: Sequence) -> Iterator[Diagnostic]:
    """Yield a finding for the first step that cannot be reached in each sequence of a pipeline."""
    waiting = [sequence]
    while waiting:
        steps = waiting.pop().steps
        ended: Step | None = None
        for at, step in enumerate(steps):
            if ended is not None:
                more = len(steps) - at - 1
                others = (
                    f", and neither do the {more} after it" if more > 1 else ", nor the one after it" if more else ""
                )
                message = f"step {step.label} never runs{others}: step {ended.label} always ends the pipeline"
                yield Diagnostic(codes.UNREACHABLE, message, step.span, help="leave it out, or give the other a when")
                break
            if type(step.work) not in _ALONE:
                waiting += _sequences(step)
                ended = step if type(step.work) in _ENDING and _always_ends(step) else None


_ALONE = frozenset((Transform, Invoke, Agent))
"""Work of most steps: it has no steps inside, and never ends the pipeline."""


_ENDING = frozenset((Stop, Fail, Block, Select))
"""Work that may end the pipeline."""


def _sequences(step: Step) -> list[Sequence]:
    """Return the sequences inside of a step, at any depth in other kinds of steps."""
    match step.work:
        case None:
            return []
        case Block(body=body):
            return [body]
        case Select():
            return [target.body for target in step.work.targets() if isinstance(target, Block)]
    return [inner for _, part in step.work.parts() if type(part.work) not in _ALONE for inner in _sequences(part)]


def _always_ends(step: Step) -> bool:
    """Tell whether no step after this one runs. The depth of documents bounds the recursion."""
    if step.guard is not None and (step.guard.when is not None or step.guard.goes_on):
        return False
    match step.work:
        case Stop() | Fail():
            return True
        case Block(body=body):
            return any(map(_always_ends, body.steps))
        case Select(default=default) as work:
            arms = work.targets()
            is_closed = default is None or isinstance(default, Block)
            return is_closed and all(isinstance(arm, Block) and any(map(_always_ends, arm.body.steps)) for arm in arms)
    return False


def _when(when: Formula, choice: ChoiceFact, conditions: KnownConditions) -> Iterator[Diagnostic]:
    outcome, why = _outcome(when)
    if outcome is None and not any(is_bound(path) for path in choice.condition.reads):
        outcome = conditions.outcome(choice.within, when.text, choice.condition.versions)
        why = "a condition around it decides the same"
        root = when.compiled.expression.root
        if outcome is None and isinstance(root, Compare) and root.operator in ("==", "!="):
            outcome = _by_known(root, choice, conditions)
    if outcome is not None:
        word = "true" if outcome else "false"
        message = f"the when of step {choice.place.step.label} is always {word}: {why}"
        help = "leave the when out" if outcome else "the step never runs: leave it out, or correct the condition"
        yield Diagnostic(codes.CONSTANT_CONDITION, message, when.span, help=help)


def _by_known(node: Compare, choice: ChoiceFact, conditions: KnownConditions) -> bool | None:
    read, text = compared(node, choice.condition)
    if read is None or text is None:
        return None
    equal = conditions.equal(choice.within, read)
    if equal is not None and equal != text:
        # The known text may be that of a number or a truth value, so that it is equal is not certain.
        return node.operator == "!="
    return node.operator == "!=" if text in conditions.different(choice.within, read) else None


def _until(work: Repeat) -> Iterator[Diagnostic]:
    outcome, why = _outcome(work.until)
    if outcome is None or (not outcome and work.keeps_last):
        return
    means = "there is only one round" if outcome else "the step always fails after its last round"
    message = f"the until of this loop is always {'true' if outcome else 'false'}, so {means}: {why}"
    yield Diagnostic(codes.CONSTANT_CONDITION, message, work.until.span)


def _outcome(formula: Formula) -> tuple[bool | None, str]:
    """Return how a condition always turns out, None if that depends on the run, and why."""
    if not formula.compiled.reads() and len(formula.text) <= _LONGEST_TRIED:
        try:
            return bool(formula.compiled.evaluate({}, {})), "it reads nothing"
        except EvalError:
            return None, ""
    return _decided(formula.compiled.expression.root, formula.text)


def _decided(node: Node, text: str) -> tuple[bool | None, str]:
    if type(node) is Compare and type(node.left) is not Path:
        return None, ""  # as most conditions are
    match node:
        case Constant(value=value):
            return bool(value), f"{python_text(value)} decides it"
        case Not(operand=operand, times=times):
            outcome, why = _decided(operand, text)
            return (outcome if outcome is None or times % 2 == 0 else not outcome), why
        case Logic(operator=operator, operands=operands):
            for operand in operands:
                outcome, why = _decided(operand, text)
                if outcome is not None and outcome == (operator == "or"):
                    return outcome, why
        case Compare(left=Path() as left, right=Path() as right, operator=operator) if left.segments == right.segments:
            # `<` fails for values without an order, so only a comparison that succeeds counts.
            return operator in ("==", "<=", ">="), "it compares a value with itself"
    return None, ""


def _match(work: Select, choice: ChoiceFact, conditions: KnownConditions) -> Iterator[Diagnostic]:
    subject, place = choice.condition.subject, choice.place
    if subject is None:
        return
    labels = [label for label, _ in work.cases]
    if not work.on.compiled.reads():
        outcome = _constant_label(work.on)
        if outcome is not None:
            message = f"the match of step {place.step.label} always chooses {outcome}: it reads nothing"
            yield Diagnostic(codes.CONSTANT_CONDITION, message, work.on.span)
        return
    read = read_of(work.on.compiled.expression.root, choice.condition)
    dead: list[str] = []
    if read is not None and not any(is_bound(path) for path in choice.condition.reads):
        equal = conditions.equal(choice.within, read)
        excluded = conditions.different(choice.within, read) if equal is None else set()
        dead = [label for label in labels if (label in excluded if equal is None else label != equal)]
    if dead:
        message = f"no run of step {place.step.label} takes {listed(dead, _SHOWN)}: a choice around it excludes that"
        yield Diagnostic(codes.DEAD_ARM, message, work.on.span)
    possible = _texts(subject.type)
    if work.default is not None and possible is not None and possible <= set(labels):
        message = f"the default of step {place.step.label} is never chosen: the cases name every value there can be"
        yield Diagnostic(codes.DEAD_ARM, message, work.on.span, help="leave the default out")


def _constant_label(formula: Formula) -> str | None:
    try:
        return python_text(formula.compiled.evaluate({}, {})) if len(formula.text) <= _LONGEST_TRIED else None
    except EvalError:
        return None


def _texts(type: object) -> set[str] | None:
    match type:
        case Enum(values=values):
            return {python_text(value) for value in values}
        case Simple(kind=Kind.BOOL):
            return {"True", "False"}
    return None


def _chains(plan: Plan) -> Iterator[Diagnostic]:
    """Yield the arms of a playbook that the arms before them leave nothing for."""
    options = _options(plan)
    for _, step in plan.steps():
        if step.match is None:
            continue
        excluded: dict[str, set[str]] = {}
        certain: dict[str, str] = {}
        closed = False
        for case in step.match.cases:
            test, dead = case.test, closed
            if test is not None:
                name, value = test.variable, test.value
                gone, only = excluded.setdefault(name, set()), certain.get(name)
                if test.operator == "==":
                    dead = dead or value in gone or (only is not None and only != value)
                    closed = closed or only == value
                    gone.add(value)
                else:
                    dead = dead or only == value
                    closed = closed or value in gone or (only is not None and only != value)
                    certain.setdefault(name, value)
                closed = closed or bool(options.get(name) and gone >= options[name])
            if dead:
                arm = f"if {condition_words(test)}" if test else "else"
                span = case.body.steps[0].span if case.body.steps else step.span
                message = f"the branch {arm} of step {step.label} is never taken: those before it take every case"
                yield Diagnostic(codes.DEAD_ARM, message, span)


def _options(plan: Plan) -> Mapping[str, set[str]]:
    """Return all values of the variables whose values are enforced: inputs with options, and chosen answers."""
    options = {
        declared.name: set(declared.options) for declared in plan.inputs if declared.type == "enum" and declared.options
    }
    writers: dict[str, list[Step]] = {}
    for _, step in plan.steps():
        if step.capture is not None:
            writers.setdefault(step.capture.name, []).append(step)
    for name, (first, *others) in writers.items():
        if name in options or others or first.ask is None or first.work is not None or first.match is not None:
            continue
        if first.ask.kind == "confirm":
            options[name] = {"yes", "no"}
        elif first.ask.kind == "select" and not any(True for option in first.ask.options for _ in option.references()):
            options[name] = {"".join(map(str, option.parts)) for option in first.ask.options}
    return options


ReadValue: TypeAlias = tuple[str, str]
"""A path and the version of the store in which it begins."""


class Known(Struct):
    """The facts that hold because of one condition."""

    tests: dict[tuple[str, tuple[str, ...]], bool] = field(default_factory=dict)
    """Expressions, with the versions of the stores that they read, and how they turned out."""
    equal: dict[ReadValue, str] = field(default_factory=dict)
    """Values whose text is known."""
    different: dict[ReadValue, set[str]] = field(default_factory=dict)
    """Texts that values do not have."""


class KnownConditions:
    """Facts by the conditions that imply them. Each condition is looked at once, however many choices it is around."""

    def __init__(self) -> None:
        self._facts: dict[int, Known] = {}
        """By the identity of a condition, which lives as long as the proof."""

    def outcome(self, around: tuple[Condition, ...], text: str, versions: tuple[str, ...]) -> bool | None:
        """Return how an expression turned out in a condition around; None if it is in none."""
        key = (text, versions)
        return next((facts.tests[key] for facts in self._all(around) if key in facts.tests), None)

    def equal(self, around: tuple[Condition, ...], read: ReadValue) -> str | None:
        """Return the text of a value if a condition around says it."""
        return next((facts.equal[read] for facts in self._all(around) if read in facts.equal), None)

    def different(self, around: tuple[Condition, ...], read: ReadValue) -> set[str]:
        """Return the texts that a value does not have."""
        return {text for facts in self._all(around) for text in facts.different.get(read, ())}

    def _all(self, around: tuple[Condition, ...]) -> Iterator[Known]:
        for condition in reversed(around):
            if id(condition) not in self._facts:
                self._facts[id(condition)] = _known(condition)
            yield self._facts[id(condition)]


def _known(condition: Condition) -> Known:
    """Return what is known by a condition that holds."""
    facts = Known()
    if any(is_bound(path) for path in condition.reads):
        return facts
    work = condition.place.step.work
    if condition.subject is not None and isinstance(work, Select):
        read = read_of(work.on.compiled.expression.root, condition)
        if read is None:
            return facts
        if isinstance(condition.test, str):
            facts.equal[read] = condition.test
        else:
            facts.different[read] = {label for label in condition.others if isinstance(label, str)}
    elif condition.place.step.guard is not None and condition.place.step.guard.when is not None:
        when = condition.place.step.guard.when
        facts.tests[when.text, condition.versions] = condition.holds
        _learn(when.compiled.expression.root, condition, condition.holds, facts)
    return facts


def _learn(node: Node, condition: Condition, holds: bool, facts: Known) -> None:
    if isinstance(node, Logic) and (node.operator == "and") == holds:
        for operand in node.operands:
            _learn(operand, condition, holds, facts)
    elif isinstance(node, Compare) and node.operator in ("==", "!="):
        read, text = compared(node, condition)
        if read is None or text is None:
            return
        if (node.operator == "==") == holds:
            facts.equal[read] = text
        else:
            facts.different.setdefault(read, set()).add(text)


def is_bound(path: str) -> bool:
    """Tell whether a path begins at a binding, which is another value in the next loop."""
    first = path.partition(".")[0]
    return first in ("round", "errors") or (first in RESERVED and first != "ctx") or path == "ctx"


def read_of(node: Node, condition: Condition) -> ReadValue | None:
    if not isinstance(node, Path):
        return None
    path = node.segments[1:] if node.segments[0] == "ctx" else node.segments
    version = next((known for known in condition.versions if path and known.rpartition("#")[0] == path[0]), None)
    return (".".join(path), version) if version is not None else None


def compared(node: Compare, condition: Condition) -> tuple[ReadValue | None, str | None]:
    """Return the value and the text that are compared. Other constants than texts can be equal in other spellings."""
    for read, constant in ((node.left, node.right), (node.right, node.left)):
        if isinstance(constant, Constant) and isinstance(constant.value, str):
            return read_of(read, condition), constant.value
    return None, None
