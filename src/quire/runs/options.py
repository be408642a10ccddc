"""Options of a new run, besides its inputs, and the check of the steps that breakpoints, answers and scripts name: by
labels, or by ways into called documents."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.engine.interpreter.playbook.steps import WrongAnswer, checked_answer
from quire.errors import BadInputs, CannotStart
from quire.patterns import late_pattern
from quire.plan.nodes import Ask, Plan, Step, UseTool
from quire.plan.pipeline_work import Agent, Call, Formula, Invoke, Literal, Select
from quire.plan.uses import OWN
from quire.plan.vocabulary import CALLS, JOINT, LARGEST_LIMIT, typed_way
from quire.runs.adapters import option_by_number
from quire.wording import did_you_mean, first_of, nearest

if TYPE_CHECKING:
    from quire.engine.proven_bounds import ProvenBounds
    from quire.trust.capabilities import Grants
    from quire.values import Value


KEY = late_pattern(r"[\x21-\x7e]{1,200}")
"""The key of a request, with which the caller may send it again."""


class RunOptions(Struct, frozen=True):
    """The options with which a run is started."""

    model: str | None = None
    breakpoints: tuple[str, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    """Answers by the label of a step."""
    unattended: bool = False
    says_yes: bool = False
    """True if an unattended run says yes also where that may write something (`--unattended=yes`)."""
    allow: tuple[str, ...] = ()
    budget: float | None = None
    reply_to: str = ""
    limits: Mapping[str, Value] = field(default_factory=dict)
    """Limits of the thread, and of the model calls of the run (`calls`)."""
    within: Grants | None = None
    """The upper bound of the run's grants, if another run launches it."""
    door: str = ""
    """The door through which a program started the run; `serve` continues its own after a crash."""
    reuse: str = ""
    """A run, or `last`, whose model replies are taken where the new run asks the same."""
    out: str = ""
    """The file, or the folder with a slash at its end, into which the command line writes the output."""
    proven: ProvenBounds | None = None
    """The most that the run can do with its inputs, as far as that was proven. The driver compares it with what it
    sees."""
    force: bool = False
    """True to start although a document has findings that stop a run. Only a person, or a person's program, sets it."""
    accepted: tuple[str, ...] = ()
    """Codes of such findings that the user has accepted for an earlier run."""
    key: str = ""
    """The caller's name for this request: sent again, it means the run of the first time."""
    source: str = ""
    """See `PinnedState`."""
    trace: str = ""
    """The `traceparent` of the work that starts the run; ignored if it is malformed."""

    def __post_init__(self) -> None:
        checked_budget(self.budget)
        call_limit(self.limits)
        if self.key and not KEY.fullmatch(self.key):
            raise CannotStart("the key of a request has 1 to 200 characters of ASCII without spaces")
        _check_names("allow", self.allow)
        _check_names("breakpoints", self.breakpoints)
        if not isinstance(self.reuse, str):
            raise CannotStart(f"reuse is the id of a run, or last, and {self.reuse!r} is not")
        for label, answer in self.answers.items():
            if not isinstance(label, str) or not isinstance(answer, str):
                raise CannotStart(f"answers are texts by the label of their step, and {label!r}: {answer!r} is not")


def name_list(what: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the names of any collection as a tuple; those of a set are sorted. Raises `CannotStart` for anything
    else."""
    _check_names(what, names)
    if not isinstance(names, Iterable):
        raise CannotStart(f"{what} is a list of names, not {names!r}")
    return tuple(sorted(names) if isinstance(names, Set) else names)


def _check_names(what: str, names: object) -> None:
    """Raise `CannotStart` unless `names` is a list of texts. A single text is rejected explicitly, because it is a
    sequence of texts too."""
    if isinstance(names, str):
        raise CannotStart(f"{what} is a list of names, not a text: [{names!r}]")
    for name in names if isinstance(names, Iterable) else [names]:
        if not isinstance(name, str):
            raise CannotStart(f"{what} is a list of names, and {name!r} is not a text")


def call_limit(limits: Mapping[str, Value]) -> int | None:
    """Return how many model calls the user allows a run, 0 for any number; None if the user says nothing about it.
    Raises `CannotStart` for anything else."""
    if CALLS not in limits:
        return None
    from quire.engine.inputs import converted

    limit = limits[CALLS]
    try:
        calls = 0 if limit is None else converted("integer", limit)
    except ValueError:
        calls = None
    if not isinstance(calls, int) or not 0 <= calls <= LARGEST_LIMIT:
        raise CannotStart(f"the limit of calls is a whole number, 0 for no limit, and {limit!r} is not")
    return calls


def checked_budget(budget: float | None) -> float | None:
    """Return the budget. Raises `CannotStart` if it is not a finite amount of 0 or more."""
    if budget is None:
        return None
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not math.isfinite(budget) or budget < 0:
        raise CannotStart(f"a budget is an amount in dollars, 0 or more, and {budget!r} is not")
    return budget


Documents = Mapping[str, Plan]

_TURN = late_pattern(r"\bturn (?:[1-9]\d*$)|turn\[\d+\]")
"""A turn of a thread by its label, or by its path."""
_BEFORE = late_pattern(r"(?:.* )?start|(?:.*/)?thread/start/.*")
"""A question of a thread before its first turn. It can be answered, but the thread cannot stop there."""
_TURNS = "its steps are turn 1, turn 2, …"
_MOST_NAMED = 20


def check_step_labels(
    plan: Plan, breakpoints: Collection[str], answers: Mapping[str, str], documents: Documents | None = None
) -> None:
    """Check the steps that breakpoints and answers name. Raises `BadInputs` with everything that is wrong. `documents`
    are all that the plan can call, by name."""
    problems: list[str] = []
    for name in breakpoints:
        if JOINT in (way := typed_way(name)):
            problems += (
                f"breakpoint {name}: {problem}" for problem in way_problems(plan, way, documents or {}, stop=True)
            )
        elif plan.thread:
            problems += [] if _TURN.search(name) else [f"{name} is not a step of a directive: {_TURNS}"]
        elif name not in (labels := _stops(plan)):
            problems.append(f"breakpoint {name}: {_no_stop(plan, name)}{_instead(name, labels)}")
    for name, answer in answers.items():
        if JOINT in (way := typed_way(name)):
            problems += (
                f"answer {name}: {problem}" for problem in way_problems(plan, way, documents or {}, answer=answer)
            )
        elif plan.thread:
            match = _TURN.search(name) or _BEFORE.fullmatch(name)
            problems += [] if match else [f"{name} is not a step of a directive: {_TURNS}"]
        else:
            problems += (f"answer {name}: {problem}" for problem in _own(plan, name, answer, documents))
    if problems:
        raise BadInputs(problems)


def way_problems(
    plan: Plan, way: str, documents: Documents, *, answer: str | None = None, stop: bool = False
) -> list[str]:
    """Return the reasons why no run of this plan reaches the step at a way, or why it cannot stop there or take the
    answer."""
    return _follow(plan, way.split(JOINT), "", documents, answer, stop)


def _follow(
    plan: Plan, parts: Sequence[str], above: str, documents: Documents, answer: str | None, stop: bool
) -> list[str]:
    label, *rest = parts
    if plan.thread:
        # Only the run can tell which turns there will be, what they call and whether one of them asks.
        is_turn = _TURN.search(label) or (_BEFORE.fullmatch(label) and not stop)
        return [] if is_turn else [f"{above}{label} is not a turn of a directive: {_TURNS}"]
    steps = {step.label: step for _, step in plan.steps()}
    step = steps.get(label)
    if step is None:
        return [f"unknown step {above}{label}{_instead(label, steps, above)}"]
    here = f"{above}{label}"
    if not rest:
        if stop and label not in _stops(plan):
            return [f"a run does not stop after {here}{_instead(label, _stops(plan), above)}"]
        return [] if answer is None else list(_asks(step, here, answer))
    names = _called(step, documents)
    if not names:
        return [f"step {here} calls no document, so step {here}{JOINT}{JOINT.join(rest)} does not exist"]
    tried = [
        _follow(documents[name], rest, f"{here}{JOINT}", documents, answer, stop) for name in names if name in documents
    ]
    # A missing called document fails the run when it is reached, so its steps need no check.
    return [] if not tried or not all(tried) else tried[0]


def _called(step: Step, documents: Documents) -> list[str]:
    match step.work:
        case UseTool(connection=place, tool=tool) if place == OWN and tool in documents:
            return [tool]
    return [call.document for call in step.calls()]


def _no_stop(plan: Plan, name: str) -> str:
    for path, step in plan.steps():
        if step.label == name:
            return f"a run does not stop inside of step {path.partition('/')[0]}"
    return f"unknown step {name}"


def _stops(plan: Plan) -> list[str]:
    return [step.label for step in plan.stops().values()]


def _instead(label: str, labels: Collection[str], above: str = "") -> str:
    if close := nearest(label, labels):
        return did_you_mean(f"{above}{close}", lead=": ")
    listed = ", ".join(first_of([f"{above}{name}" for name in labels], _MOST_NAMED))
    return f": the steps are {listed}" if listed else ""


def _own(plan: Plan, label: str, answer: str, documents: Documents | None) -> Iterator[str]:
    """Check an answer that is named by a label alone. In a pipeline the question may come from a called document or an
    agent; paths of items are known only when they run."""
    labels = {step.label: step for _, step in plan.steps()}
    if plan.format == "playbook":
        if label in labels:
            yield from _asks(labels[label], label, answer)
        else:
            yield f"unknown step {label}{_instead(label, labels)}"
        return
    head = label.partition("/")[0]
    calls = any(step.calls() for step in labels.values())
    if "/" in label:
        if head not in labels and not calls:
            yield f"unknown step {head}"
    elif label in labels:
        yield from _asks(labels[label], label, answer)
    elif not calls or not _somewhere(label, documents):
        yield f"unknown step {label}{_instead(label, labels)}"


def _somewhere(label: str, documents: Documents | None) -> bool:
    """Tell whether a step of a called document has this label; True if that cannot be known."""
    if documents is None:
        return True
    threads = any(plan.thread for plan in documents.values())
    return threads or any(step.label == label for plan in documents.values() for _, step in plan.steps())


def _asks(step: Step, name: str, answer: str) -> Iterator[str]:
    """Yield the reason why a step does not take this answer, if there is one."""
    if step.ask is not None:
        if problem := _misfit(step.ask, answer):
            yield problem
        return
    match step.work:
        case Invoke(tool="ask", arguments=arguments):
            if problem := _misfit_of_tool(dict(arguments), answer):
                yield problem
        case Agent() | Call() | Select():
            return
        case _:
            yield f"step {name} asks nothing"


def _misfit_of_tool(arguments: Mapping[str, Literal | Formula], answer: str) -> str:
    """Return the reason why the tool `ask` does not take this answer; empty if it does, or if its arguments are
    computed."""
    if any(isinstance(arguments.get(name), Formula) for name in ("type", "options")):
        return ""
    literal = {name: argument.value for name, argument in arguments.items() if isinstance(argument, Literal)}
    kind, options = literal.get("type", "input"), literal.get("options", [])
    if not isinstance(kind, str) or not isinstance(options, list | tuple):
        return ""
    return _problem(kind, [str(option) for option in options], answer)


def _misfit(ask: Ask, answer: str) -> str:
    """Return the reason why a question does not take this answer; empty if it does, or if only the run can tell."""
    if any(True for option in ask.options for _ in option.references()):
        return ""
    return _problem(ask.kind, ["".join(map(str, option.parts)) for option in ask.options], answer)


def _problem(kind: str, options: Sequence[str], answer: str) -> str:
    try:
        checked_answer(kind, options, option_by_number(kind, options, answer))
    except WrongAnswer as wrong:
        return str(wrong)
    return ""
