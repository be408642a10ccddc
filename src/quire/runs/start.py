"""Prepare a run: check everything that can be checked before it exists, pin what it needs, and make an id that people
can type.

Breakpoints and answers name steps by label, or by the way into a callee; each name must match a possible step.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quire.engine.inputs import complete_inputs
from quire.engine.interpreter.playbook.steps import WrongAnswer, checked_answer
from quire.engine.ports import Scripted
from quire.errors import BadInputs
from quire.library.callees import pinned
from quire.library.document import Document
from quire.library.verify import require_signed
from quire.models.choose import Choice
from quire.plan.nodes import Agent, Ask, Call, Formula, Invoke, Literal, Plan, Select, Step, UseTool, calls_of
from quire.plan.uses import OWN, asks_a_model, has_agents
from quire.plan.ways import JOINT, typed_way
from quire.runs.adapters import option_by_number
from quire.runs.pins import PinnedState, pinned_profiles
from quire.runs.preflight import Start
from quire.runs.preflight_limits import check_prices
from quire.source import Source
from quire.values import InvalidValue, Value, encode
from quire.wording import nearest
from quire.workspace.grants import default_grants

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.library.directives import Started
    from quire.library.document import Document
    from quire.models.choose import Choice
    from quire.runs.options import RunOptions
    from quire.runs.runtime import Runtime


_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_run_id(now: float) -> str:
    """Return a new id that sorts by time and is easy to type: seven characters of the second, five random ones."""
    number, text = int(now), ""
    for _ in range(7):
        number, digit = divmod(number, 32)
        text = _ALPHABET[digit] + text
    return text + "-" + "".join(secrets.choice(_ALPHABET) for _ in range(5))


Documents = Mapping[str, Plan]

_TURN = re.compile(r"\bturn (?:[1-9]\d*$)|turn\[\d+\]")
"""A turn of a thread by its label, or by its path."""
_BEFORE = re.compile(r"(?:.* )?start|(?:.*/)?thread/start/.*")
"""A question of a thread before its first turn. It can be answered, but the thread cannot stop there."""
_TURNS = "its steps are turn 1, turn 2, …"
_MOST_NAMED = 20


def check_labels(
    plan: Plan, breakpoints: Collection[str], answers: Mapping[str, str], documents: Documents | None = None
) -> None:
    """Check the steps that breakpoints and answers name. Raises `BadInputs` with everything that is wrong. `documents`
    are all that the plan can call, by name."""
    problems: list[str] = []
    for name in breakpoints:
        if JOINT in (way := typed_way(name)):
            problems += (f"breakpoint {name}: {one}" for one in way_problems(plan, way, documents or {}, stop=True))
        elif plan.format == "directive":
            problems += [] if _TURN.search(name) else [f"{name} is not a step of a directive: {_TURNS}"]
        elif name not in (labels := _stops(plan)):
            problems.append(f"breakpoint {name}: there is no step {name}{_instead(name, labels)}")
    for name, answer in answers.items():
        if JOINT in (way := typed_way(name)):
            problems += (f"answer {name}: {one}" for one in way_problems(plan, way, documents or {}, answer=answer))
        elif plan.format == "directive":
            known = _TURN.search(name) or _BEFORE.fullmatch(name)
            problems += [] if known else [f"{name} is not a step of a directive: {_TURNS}"]
        else:
            problems += (f"answer {name}: {one}" for one in _own(plan, name, answer, documents))
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
    if plan.format == "directive":
        # Only the run can tell which turns there will be, what they call and whether one of them asks.
        known = _TURN.search(label) or (_BEFORE.fullmatch(label) and not stop)
        return [] if known else [f"{above}{label} is not a turn of a directive: {_TURNS}"]
    steps = {step.label: step for _, step in plan.steps()}
    step = steps.get(label)
    if step is None:
        return [f"there is no step {above}{label}{_instead(label, steps, above)}"]
    here = f"{above}{label}"
    if not rest:
        if stop and label not in _stops(plan):
            return [f"a run does not stop after {here}{_instead(label, _stops(plan), above)}"]
        return [] if answer is None else list(_asks(step, here, answer))
    names = _called(step, documents)
    if not names:
        return [f"step {here} calls no document, so there is no step {here}{JOINT}{JOINT.join(rest)}"]
    tried = [
        _follow(documents[name], rest, f"{here}{JOINT}", documents, answer, stop) for name in names if name in documents
    ]
    # A missing callee fails the run when it is reached, whatever is said about its steps.
    return [] if not tried or not all(tried) else tried[0]


def _called(step: Step, documents: Documents) -> list[str]:
    match step.work:
        case UseTool(connection=place, tool=tool) if place == OWN and tool in documents:
            return [tool]
    return [call.document for call in calls_of(step.work)]


def _stops(plan: Plan) -> list[str]:
    """Return the labels after which a run can stop: in a pipeline between its steps, not inside one."""
    return [step.label for step in (plan.body.steps if plan.format == "pipeline" else dict(plan.steps()).values())]


def _instead(label: str, known: Collection[str], above: str = "") -> str:
    if close := nearest(label, known):
        return f": did you mean {above}{close}?"
    listed = ", ".join(f"{above}{one}" for one in list(known)[:_MOST_NAMED])
    return f": the steps are {listed}{', …' if len(known) > _MOST_NAMED else ''}" if listed else ""


def _own(plan: Plan, label: str, answer: str, documents: Documents | None) -> Iterator[str]:
    """Check an answer that is named by a label alone. In a pipeline the question may come from a callee or an agent;
    paths of items are known only when they run."""
    labels = {step.label: step for _, step in plan.steps()}
    if plan.format == "playbook":
        if label in labels:
            yield from _asks(labels[label], label, answer)
        else:
            yield f"there is no step {label}{_instead(label, labels)}"
        return
    head = label.partition("/")[0]
    calls = any(calls_of(step.work) for step in labels.values())
    if "/" in label:
        if head not in labels and not calls:
            yield f"there is no step {head}"
    elif label in labels:
        yield from _asks(labels[label], label, answer)
    elif not calls or not _somewhere(label, documents):
        yield f"there is no step {label}{_instead(label, labels)}"


def _somewhere(label: str, documents: Documents | None) -> bool:
    """Tell whether a step of a callee has this label; True if that cannot be known."""
    if documents is None:
        return True
    threads = any(plan.format == "directive" for plan in documents.values())
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
    literal = {name: one.value for name, one in arguments.items() if isinstance(one, Literal)}
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


NO_BUNDLES: Mapping[str, Bundle] = {}


async def prepare(
    runtime: Runtime, document: Document, inputs: Mapping[str, Value], options: RunOptions, choice: Choice | None
) -> tuple[PinnedState, dict[str, str]]:
    """Return the pins of a new run, and the texts that they name by hash. Raises `CannotStart` and `Refused`."""
    from quire.workspace.consent import require_trusted

    plan, settings = document.runnable(), runtime.settings
    _require_json(inputs)
    if any(one.kind == "limit" for one in settings.excess):
        require_trusted(settings)
    require_signed(settings, document.source, document.format)
    one_model = runtime.models.given is not None or options.model is not None
    callees = runtime.callees(one_model=one_model, allow=options.allow).reachable(plan)
    plans = (plan, *(callee.plan for callee in callees.values()))
    granted = default_grants(settings, options.allow)
    started: Started | None = None
    if plan.format == "directive":
        started = runtime.directives.start(document, inputs, options.limits, granted, one_model=one_model)
        granted = started.grants
    if options.within is not None:
        granted = granted.narrow(options.within)
    values = _values(plan, inputs, started)
    documents = {name: callee.plan for name, callee in callees.items()}
    check_labels(plan, options.breakpoints, options.answers, documents)
    if "agents" in settings.requested and has_agents(plans):
        require_trusted(settings)
    model = ""
    if choice is not None or asks_a_model(plans):
        model = (choice or runtime.choose_model(options.model, plan)).spec
    bundles = {name: one.bundle for name, one in callees.items() if one.bundle is not None}
    if started is not None:
        bundles[""] = started.bundle
    if not runtime.queue:
        opened = runtime.models.open(model)
        if hasattr(opened, "ways") and isinstance(opened, Scripted):  # Python takes long over a protocol
            _check_script(opened, plan, documents)
        check_prices(runtime.models, asked_models(runtime, model, plans, bundles), options.budget)
    folder = _folder_of(document)
    warnings = await runtime.preflight(
        Start(plan, documents, bundles, granted, Path(folder) if folder else None, model, options.limits)
    )
    context_budget = runtime.models.context_budget(model)
    pins = PinnedState(
        document=document.sha256,
        folder=folder,
        model=model,
        inputs=values,
        breakpoints=options.breakpoints,
        answers=dict(options.answers),
        unattended=options.unattended,
        allow=options.allow,
        grants=tuple(sorted(granted.patterns)),
        budget=options.budget,
        context_budget=context_budget,
        callee_context_budget=context_budget,
        callees=pinned(callees),
        reply_to=options.reply_to,
        declared=document.declared,
        key=document.key,
        identity=runtime.identity,
        profiles=pinned_profiles(runtime.agents()),
        bundle=started.source.sha256 if started else "",
        keys=started.keys if started else (),
        one_model=one_model,
        limits=dict(options.limits),
        queue=runtime.queue,
        out=options.out,
        warnings=warnings,
    )
    try:
        encode(values)
    except InvalidValue as error:
        raise BadInputs([f"the inputs are not JSON: {error}"]) from None
    sources = [document.source, *(Source.of(one.text, name) for name, one in callees.items())]
    texts = {source.sha256: source.text for source in (*sources, *([started.source] if started else ()))}
    return pins, texts


def _check_script(model: Scripted, plan: Plan, documents: Mapping[str, Plan]) -> None:
    """Raise `BadInputs` for entries of a script that name missing steps of callees."""
    problems = [f"script, step {way}: {one}" for way in model.ways for one in way_problems(plan, way, documents)]
    if problems:
        raise BadInputs(problems)


def asked_models(
    runtime: Runtime, model: str, plans: Sequence[Plan], bundles: Mapping[str, Bundle] = NO_BUNDLES
) -> list[str]:
    """Return the model of the run, those of the identities of its agents, and those of its directives."""
    profiles = runtime.agents()
    agents = [step.work for plan in plans for _, step in plan.steps() if isinstance(step.work, Agent)]
    named = (profiles.get(agent.identity or runtime.identity) for agent in agents)
    of_agents = (profile.model for profile in named if profile is not None and profile.model)
    return [model, *of_agents, *(one.model for one in bundles.values())]


def _require_json(inputs: Mapping[str, Value]) -> None:
    """Raise `BadInputs` with every input that is not a JSON value; Python callers may pass any object."""
    problems = []
    for name, value in inputs.items():
        if not isinstance(name, str):
            problems.append(f"input {name!r}: a name is a text")
            continue
        try:
            encode(value)
        except InvalidValue as error:
            problems.append(f"input {name}: not a JSON value: {error}")
    if problems:
        raise BadInputs(problems)


def _values(plan: Plan, inputs: Mapping[str, Value], started: Started | None) -> Mapping[str, Value]:
    """Return the inputs as the run gets them."""
    if started is not None:
        return started.inputs
    return dict(inputs) if plan.format == "pipeline" else complete_inputs(plan, inputs)


def _folder_of(document: Document) -> str | None:
    name = document.name or "."
    return os.path.dirname(os.path.realpath(name)) if os.path.exists(name) else None  # noqa: PTH110, PTH120
