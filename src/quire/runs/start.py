"""Prepare a run: check everything that can be checked before it exists, pin what it needs, and make an id that people
can type."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.inputs import run_inputs
from quire.engine.ports import Scripted
from quire.errors import BadInputs, NearMisses
from quire.library.callees import Callee, pinned
from quire.library.document import Document, near_misses
from quire.library.texts import read_prompt_files
from quire.library.verify import require_accepted
from quire.models.choose import Choice
from quire.plan.pipeline_work import Agent
from quire.plan.uses import asks_a_model, asks_for_models, has_agents, has_step_tools, step_models_of, tool_calls
from quire.plan.vocabulary import CALLS
from quire.runs.adapters import check_agent_models
from quire.runs.options import check_step_labels, way_problems
from quire.runs.pins import PinnedState, pinned_profiles
from quire.runs.preflight import Start
from quire.runs.static_failures import call_cap, check_prices, check_unattended
from quire.source import Source
from quire.telemetry import trace_of
from quire.values import InvalidValue, Value, encode
from quire.workspace.grants import default_grants
from quire.workspace.locate import is_on_shelf
from quire.workspace.settings import BudgetSettings

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.library.directives import Started
    from quire.library.document import Document
    from quire.models.choose import Choice
    from quire.plan.nodes import Plan
    from quire.runs.options import RunOptions
    from quire.runs.runtime import Runtime
    from quire.trust.capabilities import Grants


Written: TypeAlias = tuple[Source, str, str]
"""The text of a document, its format, and the name of the pipeline in a file of several."""
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_run_id(now: float) -> str:
    """Return a new id that sorts by time and is easy to type: seven characters of the second, five random ones."""
    number, text = int(now), ""
    for _ in range(7):
        number, digit = divmod(number, 32)
        text = _ALPHABET[digit] + text
    return text + "-" + "".join(_ALPHABET[byte % 32] for byte in os.urandom(5))


NO_BUNDLES: Mapping[str, Bundle] = {}


async def prepare(
    runtime: Runtime, document: Document, inputs: Mapping[str, Value], options: RunOptions, choice: Choice | None
) -> tuple[PinnedState, dict[str, str]]:
    """Return the pins of a new run, and the texts that they name by hash. Raises `CannotStart` and `Refused`."""
    from quire.workspace.consent import require_trusted

    settings = runtime.settings
    if options.budget is None:
        options = replace(options, budget=settings.budgets.run)
    # Where a day has a budget, each price has to be known.
    budget = 0.0 if options.budget is None and settings.budgets != BudgetSettings() else options.budget
    _require_json(inputs)
    own = {"safety.spawn.max_pipeline_spawns"} if CALLS in options.limits else set()
    if any(request.kind == "limit" and request.key not in own for request in settings.excess):
        require_trusted(settings)
    require_accepted(settings, document)
    parts = _gather(runtime, document, inputs, options)
    forced = require_meant(parts.written, force=options.force, accepted=(*options.accepted, *runtime.accepted))
    values = parts.started.inputs if parts.started else run_inputs(parts.plan, inputs)
    check_step_labels(parts.plan, options.breakpoints, options.answers, parts.documents)
    if options.unattended and not options.says_yes:
        check_unattended(parts.plan, parts.documents, options.answers)
    if "agents" in settings.requested and has_agents(parts.plans):
        require_trusted(settings)
    choice = _model(runtime, parts, options, choice)
    if settings.playbooks or any(map(asks_for_models, parts.plans)):
        parts = with_step_models_of(runtime, parts, choice.spec)
    _check_models(runtime, parts, budget, choice.spec)
    plan, documents, bundles = parts.plan, parts.documents, parts.bundles
    folder = document.folder
    if options.reuse:
        from quire.runs.reuse import find_earlier

        options = replace(options, reuse=await find_earlier(runtime, options.reuse, document, folder))
    at = Path(folder) if folder else None
    limits, reuses = options.limits, bool(options.reuse)
    specs = partial(all_models, runtime, choice.spec, parts.plans, bundles, one_model=parts.one_model)
    calls = call_cap(runtime, plan, limits, options.budget, specs)
    start = Start(plan, documents, bundles, parts.granted, at, choice.spec, limits, reuses, parts.shelf, values, calls)
    warnings = await runtime.preflight(start)
    try:
        encode(values)
    except InvalidValue as error:
        raise BadInputs([f"the inputs are not JSON: {error}"]) from None
    files = read_prompt_files(parts.plans, at)
    if options.proven is None:
        options = _with_bounds(runtime, parts, options, choice, values, calls)
    pins = _pins(runtime, parts, options, choice, values, folder, warnings, files)
    return replace(pins, forced=forced), parts.texts


def require_meant(written: Iterable[Written], *, force: bool, accepted: Collection[str] = ()) -> tuple[str, ...]:
    """Return the codes of the findings that would stop a run of some documents. Raises `NearMisses` unless all are
    accepted."""
    findings = {source: near_misses(source, format, declared) for source, format, declared in written}
    codes = {finding.code.id for several in findings.values() for finding in several}
    if not force and not codes <= set(accepted):
        raise NearMisses([(source, several) for source, several in findings.items() if several])
    return tuple(sorted(codes))


def written_directives(bundle: Bundle | None) -> list[Written]:
    """Return the texts of the directives that one is composed from."""
    texts = bundle.directives if bundle else {}
    return [(Source.of(text, f"{id}.md"), "directive", "") for id, text in texts.items()]


def _with_bounds(
    runtime: Runtime, parts: Parts, options: RunOptions, choice: Choice, values: Mapping[str, Value], calls: int
) -> RunOptions:
    """Prove what the run can do at most, and let the driver hold the run to it."""
    is_counted = options.budget is None and runtime.settings.budgets != BudgetSettings()
    if not runtime.tells_bounds and not is_counted and not _reaches_out(parts):
        # It takes longer to load the analysis than to run a playbook that only asks: once for each step at most.
        return options
    from quire.runs.proven import bounds_of_run

    model, instead = choice.spec, runtime.models.given
    is_scripted = model.startswith("script:") or isinstance(instead, Scripted)
    try:
        bounds = bounds_of_run(
            parts.plan,
            parts.document.name,
            runtime.proven_with,
            parts.documents,
            model,
            values,
            options.limits,
            calls=calls,
            priced=instead is None and not is_scripted,
            one_model=parts.one_model,
            own=choice.settings,
            measured=not is_scripted and not runtime.settings.rehearsal,
        )
    except RecursionError:
        return options  # an analysis that fails must not keep a run from starting
    runtime.bounds = bounds
    return replace(options, proven=bounds.proven)


def _reaches_out(parts: Parts) -> bool:
    """Tell whether a run may do more than ask a model and people."""
    plan = parts.plan
    return plan.format != "playbook" or bool(parts.documents) or bool(tool_calls([plan])) or has_step_tools(plan)


class Parts(Struct, frozen=True):
    """The documents of a run that is to start, and its grants."""

    document: Document
    callees: Mapping[str, Callee]
    started: Started | None
    """The directive, if it is one."""
    shelf: bool
    granted: Grants
    one_model: bool
    steps: Mapping[str, Value] = {}
    """The models of the steps of its playbooks, as they are pinned."""
    warnings: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan:
        return self.document.runnable()

    @property
    def documents(self) -> dict[str, Plan]:
        return {name: callee.plan for name, callee in self.callees.items()}

    @property
    def plans(self) -> tuple[Plan, ...]:
        return (self.plan, *self.documents.values())

    @property
    def bundles(self) -> dict[str, Bundle]:
        """The texts of all directives, by name; those of the document itself have the empty name."""
        of_callees = {name: callee.bundle for name, callee in self.callees.items() if callee.bundle is not None}
        return {**of_callees, "": self.started.bundle} if self.started else of_callees

    @property
    def written(self) -> Iterator[Written]:
        """The texts of all documents."""
        document = self.document
        yield document.source, document.format, document.declared
        for bundle in self.bundles.values():
            yield from written_directives(bundle)
        for callee in self.callees.values():
            if callee.bundle is None:
                yield callee.source, callee.plan.format, callee.declared

    @property
    def texts(self) -> dict[str, str]:
        """The texts to pin, by hash."""
        sources = [self.document.source, *(Source.of(callee.text, name) for name, callee in self.callees.items())]
        return {source.sha256: source.text for source in (*sources, *([self.started.source] if self.started else ()))}


def _gather(runtime: Runtime, document: Document, inputs: Mapping[str, Value], options: RunOptions) -> Parts:
    plan = document.runnable()
    one_model = runtime.models.replaces_all(options.model)
    shelf = is_on_shelf(document.name, runtime.settings.user)
    callees = runtime.callees(one_model=one_model, allow=options.allow, shelf=shelf).reachable(plan)
    granted = default_grants(runtime.settings, options.allow)
    started: Started | None = None
    if plan.thread:
        started = runtime.directives.start(document, inputs, options.limits, granted, one_model=one_model)
        granted = started.grants
    if options.within is not None:
        granted = granted.narrow(options.within)
    return Parts(document, callees, started, shelf, granted, one_model)


def _model(runtime: Runtime, parts: Parts, options: RunOptions, choice: Choice | None) -> Choice:
    """Return the run's model, without a name if none is asked."""
    if choice is not None:
        return choice
    asks = asks_a_model(parts.plans)
    return runtime.choose_model(options.model, parts.plan) if asks else Choice("", "no step asks a model")


def with_step_models_of(runtime: Runtime, parts: Parts, model: str) -> Parts:
    """Return the parts with the models that the steps of their playbooks get."""
    from quire.library.step_models import choose_all, pinned_step_models, with_step_models

    files = {"": (parts.plan, parts.document.name)}
    files |= {name: (callee.plan, callee.source.name) for name, callee in parts.callees.items()}
    budget = runtime.models.context_budget
    chosen = choose_all(files, runtime.settings, model, one_model=parts.one_model, budget=budget)
    document, callees = parts.document, dict(parts.callees)
    for name, models in chosen.items():
        plan = with_step_models(files[name][0], models.steps)
        if name:
            callees[name] = replace(callees[name], plan=plan)
        else:
            document = replace(document, plan=plan)
    return replace(
        parts,
        document=document,
        callees=callees,
        steps={name: pinned_step_models(models.steps) for name, models in chosen.items() if models.steps},
        warnings=tuple(dict.fromkeys(warning for models in chosen.values() for warning in models.warnings)),
    )


def _check_models(runtime: Runtime, parts: Parts, budget: float | None, model: str) -> None:
    """Check that the models of the run, with those that pipelines name for their agents, are available and can do what
    the run needs."""
    is_named = not parts.one_model and has_agents(parts.plans)
    named = check_agent_models(parts.plans, runtime.settings, model) if is_named else ()
    if runtime.queue:
        return
    opened = runtime.models.open(model)
    # Python takes long over a protocol.
    if getattr(opened, "ways", None) and isinstance(opened, Scripted):
        _check_script(opened, parts.plan, parts.documents)
    for spec in (*step_models_of(parts.plans), *named):
        runtime.models.open(spec)
    check_prices(runtime.models, (*asked_models(runtime, model, parts.plans, parts.bundles), *named), budget)


def _pins(
    runtime: Runtime,
    parts: Parts,
    options: RunOptions,
    choice: Choice,
    values: Mapping[str, Value],
    folder: str | None,
    warnings: tuple[str, ...],
    files: Mapping[str, str],
) -> PinnedState:
    document, started = parts.document, parts.started
    context_budget = runtime.models.context_budget(choice.spec)
    return PinnedState(
        document=document.sha256,
        folder=folder,
        model=choice.spec,
        model_settings=choice.settings.as_value(),
        inputs=values,
        breakpoints=options.breakpoints,
        answers=dict(options.answers),
        unattended=options.unattended,
        allow=options.allow,
        grants=tuple(sorted(parts.granted.patterns)),
        budget=options.budget,
        context_budget=context_budget,
        callee_context_budget=context_budget,
        callees=pinned(parts.callees),
        reply_to=options.reply_to,
        declared=document.declared,
        key=document.key,
        identity=runtime.identity,
        profiles=pinned_profiles(runtime.agents()),
        bundle=started.source.sha256 if started else "",
        keys=started.keys if started else (),
        one_model=parts.one_model,
        limits=dict(options.limits),
        queue=runtime.queue,
        out=options.out,
        warnings=(*parts.warnings, *warnings),
        steps=parts.steps,
        door=options.door,
        source=options.source,
        trace=options.trace if trace_of("", options.trace)[1] else "",
        reuse=options.reuse,
        shelf=parts.shelf,
        files=files,
        reply_tokens=runtime.settings.runs.reply_tokens,
        proven=options.proven.as_value() if options.proven is not None else {},
    )


def _check_script(model: Scripted, plan: Plan, documents: Mapping[str, Plan]) -> None:
    """Raise `BadInputs` for entries of a script that name missing steps of called documents."""
    problems = [
        f"script, step {way}: {problem}" for way in model.ways for problem in way_problems(plan, way, documents)
    ]
    if problems:
        raise BadInputs(problems)


def asked_models(
    runtime: Runtime, model: str, plans: Sequence[Plan], bundles: Mapping[str, Bundle] = NO_BUNDLES
) -> list[str]:
    """Return the model of the run, those of the identities of its agents, of its steps, and of its directives."""
    profiles = runtime.agents()
    agents = [step.work for plan in plans for _, step in plan.steps() if isinstance(step.work, Agent)]
    named = (profiles.get(agent.identity or runtime.identity) for agent in agents)
    of_agents = (profile.model for profile in named if profile is not None and profile.model)
    return [model, *of_agents, *step_models_of(plans), *(bundle.model for bundle in bundles.values())]


def all_models(
    runtime: Runtime, model: str, plans: Sequence[Plan], bundles: Mapping[str, Bundle], *, one_model: bool
) -> list[str]:
    """Return the same, and the models that pipelines name for their agents, each once. Raises `Refused`."""
    specs = asked_models(runtime, model, plans, bundles)
    if not one_model and has_agents(plans):
        specs += check_agent_models(plans, runtime.settings, model)
    return list(dict.fromkeys(filter(None, specs)))


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
