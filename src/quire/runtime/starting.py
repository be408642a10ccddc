"""Before there is a run: all that can be checked is checked, and what it needs is pinned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quire.documents import Document
from quire.engine.inputs import complete_inputs
from quire.engine.ports import Scripted
from quire.engine.thread.bundle import Bundle
from quire.errors import BadInputs
from quire.models.choose import Choice
from quire.plan.nodes import Agent, Plan
from quire.plan.uses import asks_a_model, has_agents
from quire.runtime.callees import pinned
from quire.runtime.labels import check_labels, way_problems
from quire.runtime.options import RunOptions
from quire.runtime.pinned import pinned_profiles
from quire.runtime.pins import Pins
from quire.runtime.preflight import Start
from quire.runtime.preflight_limits import check_prices
from quire.runtime.signed import require_signed
from quire.source import Source
from quire.values import InvalidValue, Value, encode
from quire.workspace.grants import default_grants
from quire.workspace.requests import require_trusted

if TYPE_CHECKING:
    from quire.runtime.directives import Started
    from quire.runtime.runtime import Runtime

NO_BUNDLES: Mapping[str, Bundle] = {}


async def prepare(
    runtime: Runtime, document: Document, inputs: Mapping[str, Value], options: RunOptions, choice: Choice | None
) -> tuple[Pins, dict[str, str]]:
    """The pins of the new run, and the texts that they name by their hash. Raises `CannotStart` and `Refused`."""
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
        if isinstance(opened, Scripted):
            _check_script(opened, plan, documents)
        check_prices(runtime.models, asked_models(runtime, model, plans, bundles), options.budget)
    folder = _folder_of(document)
    warnings = await runtime.preflight(
        Start(plan, documents, bundles, granted, Path(folder) if folder else None, model, options.limits)
    )
    context_budget = runtime.models.context_budget(model)
    pins = Pins(
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
    """Raises `BadInputs` for entries that name steps of callees which there are not."""
    problems = [f"script, step {way}: {one}" for way in model.ways for one in way_problems(plan, way, documents)]
    if problems:
        raise BadInputs(problems)


def asked_models(
    runtime: Runtime, model: str, plans: Sequence[Plan], bundles: Mapping[str, Bundle] = NO_BUNDLES
) -> list[str]:
    """The model of the run, those of the identities that its agents have, and those of its directives."""
    profiles = runtime.agents()
    agents = [step.work for plan in plans for _, step in plan.steps() if isinstance(step.work, Agent)]
    named = (profiles.get(agent.identity or runtime.identity) for agent in agents)
    of_agents = (profile.model for profile in named if profile is not None and profile.model)
    return [model, *of_agents, *(one.model for one in bundles.values())]


def _require_json(inputs: Mapping[str, Value]) -> None:
    """From Python anything may come. Raises `BadInputs` with every input that is no value."""
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
    """The inputs as the run gets them."""
    if started is not None:
        return started.inputs
    return dict(inputs) if plan.format == "pipeline" else complete_inputs(plan, inputs)


def _folder_of(document: Document) -> str | None:
    path = Path(document.name)
    return str(path.resolve().parent) if path.exists() else None
