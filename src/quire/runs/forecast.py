"""Predict a run before its start: the most that it would do, its model, its cost, and the problems that still stop it.

Everything is found without starting a process and without asking a server: tools of MCP servers are looked at when the
run starts. Nothing is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as replace_call
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from quire.engine.conversation import Message
from quire.engine.declared_inputs import defaults_of
from quire.engine.inputs import run_inputs
from quire.engine.interpreter.pipeline.agent import agent_tools
from quire.engine.interpreter.thread.budgets import resolve_limits
from quire.engine.ports import ModelCall, Priced
from quire.errors import BadInputs, Denied, QuireError
from quire.library.foresight import Foresight
from quire.library.verify import require_accepted
from quire.models.choose import CHARACTERS_A_TOKEN, price_key
from quire.models.prices import PICODOLLARS, rounded_dollars
from quire.plan.pipeline_work import Agent
from quire.plan.uses import asks_a_model, has_threads, step_tools
from quire.runs.options import check_step_labels
from quire.runs.preflight import Start, built_in_gate, look_ahead
from quire.runs.proven import RunProof, prove_run, with_cap
from quire.runs.start import NO_BUNDLES, Parts, all_models, with_step_models_of
from quire.runs.static_failures import call_cap, check_prices
from quire.values import encode
from quire.workspace.grants import default_grants

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.models.choose import Choice
    from quire.plan.bounds import PlanBounds
    from quire.plan.nodes import Plan
    from quire.runs.options import RunOptions
    from quire.runs.runtime import Runtime
    from quire.values import Value

_SAMPLE = 300_000
"""Characters of the text by which the price of reading is measured."""
_MOST_CALLS = 100_000


class PriceBound(Struct, frozen=True):
    """The most that a run may cost in dollars; None if that is not known, and `why` says the reason."""

    most: float | None = None
    why: str = ""


class Forecast(Struct):
    """A run that is not started yet: its bounds, its model and its price, and the problems that stop it."""

    bounds: PlanBounds
    model: Choice | None = None
    """None for a document that asks no model, and if none can be chosen."""
    price: PriceBound = PriceBound()
    limits: Mapping[str, Value] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    """Problems of single inputs by name. They stop the run."""
    missing: list[str] = field(default_factory=list)
    """Inputs of a pipeline that are not given. A step that reads one fails."""
    problems: dict[str, None] = field(default_factory=dict)
    """Other problems that stop the run."""
    denied: dict[str, None] = field(default_factory=dict)
    """Missing permissions. They stop the run."""
    warnings: dict[str, None] = field(default_factory=dict)
    proof: RunProof | None = None
    """The bounds of the run with its inputs; None if they could not be found."""

    @property
    def ready(self) -> bool:
        return not (self.inputs or self.problems or self.denied)

    def attempt(self, check: Callable[[], None]) -> None:
        """Run a check, and keep what it refuses."""
        try:
            check()
        except BadInputs as error:
            self.inputs |= error.inputs
            own = set(error.inputs.values())
            self.problems |= dict.fromkeys(problem for problem in error.problems if problem not in own)
        except Denied as error:
            self.denied[str(error)] = None
        except QuireError as error:
            self.problems[str(error)] = None


async def forecast(runtime: Runtime, document: Document, inputs: Mapping[str, Value], options: RunOptions) -> Forecast:
    """Return the forecast of a run. Raises `BadDocument` for a document that cannot run at all."""
    plan = document.runnable()
    counted = Foresight(runtime.settings).bounds(plan, document.name, {**defaults_of(plan), **inputs})
    outlook = Forecast(counted)
    look = _Looking(runtime, document, inputs, options, outlook)
    # Opening a model may import its library, and looking for one may ask a local Ollama.
    await asyncio.to_thread(look.at_everything)
    if options.reuse:
        from quire.runs.reuse import find_earlier

        try:
            await find_earlier(runtime, options.reuse, document, document.folder)
        except QuireError as error:
            outlook.problems[str(error)] = None
    start = Start(
        look.parts.plan,
        look.parts.documents,
        NO_BUNDLES,
        look.parts.granted,
        document_folder(document),
        "",
        options.limits,
        bool(options.reuse),
        inputs={**{own.name: own.default for own in plan.inputs if own.default is not None}, **inputs},
        calls=look.calls,
    )
    try:
        gate = built_in_gate(runtime.settings, start.grants, None if runtime.queue else runtime.environ)
        ahead = await look_ahead(runtime.library, start, gate, None)
    except QuireError as error:
        outlook.problems[str(error)] = None
        return outlook
    outlook.problems |= ahead.wrong
    outlook.denied |= ahead.denied
    outlook.warnings |= ahead.warnings
    return outlook


def document_folder(document: Document) -> Path | None:
    path = Path(document.name)
    return path.parent if path.is_file() else None


class _Looking:
    """One look at a run. `parts` are gathered on the way, as far as that is possible."""

    def __init__(
        self, runtime: Runtime, document: Document, inputs: Mapping[str, Value], options: RunOptions, outlook: Forecast
    ) -> None:
        granted, one_model = default_grants(runtime.settings, options.allow), runtime.models.replaces_all(options.model)
        self.parts = Parts(document, {}, None, False, granted, one_model)
        self.calls = 0
        self._runtime = runtime
        self._document = document
        self._inputs = inputs
        self._options = options
        self._outlook = outlook

    def at_everything(self) -> None:
        outlook = self._outlook
        for check in (self._check_inputs, self._check_signature, self._gather, self._check_names, self._check_limits):
            outlook.attempt(check)
        if asks_a_model(self.parts.plans):
            outlook.attempt(self._choose_model)
        outlook.attempt(self._prove)

    def _prove(self) -> None:
        """Prove the bounds, and warn of caps and budgets that the run may reach."""
        runtime, options, outlook = self._runtime, self._options, self._outlook
        outlook.proof = proof = prove_run(
            self._document,
            with_cap(runtime.settings, self.calls),
            self._inputs,
            model=outlook.model.spec if outlook.model else "",
            one_model=self.parts.one_model,
            limits=outlook.limits if self.parts.plan.thread else None,
            environ=runtime.environ,
            own=outlook.model.settings if outlook.model else None,
        )
        if outlook.model is not None and runtime.models.given is None:
            outlook.price = _proven_price(proof)
        calls, cost = proof.quantity("model_calls"), proof.most("money")
        count = calls.most.with_sizes(proof.sizes).as_number if calls else None
        if calls is not None and calls.ceiling is not None and count is not None and count > calls.ceiling.most:
            cap = calls.ceiling.most
            # Where even the fewest are too many, the look ahead refuses the run.
            if max(calls.least, outlook.bounds.model_calls.least) <= cap:
                outlook.warnings[
                    f"it may stop midway: up to {count:,} model calls, and a run may make {cap:,} "
                    "(--limit calls=N; max_pipeline_spawns under [safety.spawn] in quire.toml)"
                ] = None
        if options.budget is not None and cost is not None and cost > options.budget * PICODOLLARS:
            amounts = f"up to ${rounded_dollars(cost, 2):,}, and the budget is ${options.budget:,.2f}"
            outlook.warnings[f"it may stop midway: it costs {amounts}"] = None

    def _check_inputs(self) -> None:
        if not self.parts.plan.infers_inputs:
            run_inputs(self.parts.plan, self._inputs)
        else:
            from quire.formats.pipeline.inputs import inferred_inputs
            from quire.library.lookup import tree_of

            names = inferred_inputs(tree_of(self._document))
            self._outlook.missing = [name for name in names if name not in self._inputs]

    def _check_signature(self) -> None:
        require_accepted(self._runtime.settings, self._document)

    def _gather(self) -> None:
        runtime, options, one_model = self._runtime, self._options, self.parts.one_model
        callees = runtime.callees(one_model=one_model, allow=options.allow).reachable(self.parts.plan)
        self.parts = replace(self.parts, callees=callees)
        if not self.parts.plan.thread:
            return
        if self._outlook.inputs:
            # Composing would only repeat what is wrong with the inputs; signatures are verified all the same.
            leaf = runtime.library.directive_at(self._document.name)
            runtime.directives.gathering(one_model=one_model).gathered(leaf)
            return
        granted = self.parts.granted
        started = runtime.directives.start(self._document, self._inputs, options.limits, granted, one_model=one_model)
        self.parts = replace(self.parts, started=started, granted=started.grants)

    def _check_names(self) -> None:
        options = self._options
        check_step_labels(self.parts.plan, options.breakpoints, options.answers, self.parts.documents)

    def _check_limits(self) -> None:
        if thread := self.parts.plan.thread:
            self._outlook.limits = resolve_limits(thread.limits, self._options.limits, None).as_value()
        self._set_cap()

    def _set_cap(self, budget: float | None = None, models: Sequence[str] = ()) -> None:
        self.calls = call_cap(self._runtime, self.parts.plan, self._options.limits, budget, lambda: models)
        if self.parts.plan.has_call_cap:
            self._outlook.limits = {"model_calls": self.calls or None}

    def _choose_model(self) -> None:
        runtime, options, outlook = self._runtime, self._options, self._outlook
        outlook.model = runtime.choose_model(options.model, self.parts.plan)
        self.parts = with_step_models_of(runtime, self.parts, outlook.model.spec)
        outlook.warnings |= dict.fromkeys(self.parts.warnings)
        parts = self.parts
        specs = all_models(runtime, outlook.model.spec, parts.plans, parts.bundles, one_model=parts.one_model)
        if runtime.models.given is not None:
            outlook.price = self._given_price(specs, parts.plans)
        check_prices(runtime.models, specs, options.budget)
        self._set_cap(options.budget, specs)

    def _given_price(self, specs: Sequence[str], plans: Sequence[Plan]) -> PriceBound:
        """Return the price of a run with a model that the caller gives. No list has its rate: its own estimates say
        it."""
        models, calls = self._runtime.models, self._outlook.bounds.model_calls.most
        rates, reply = [], self._runtime.settings.runs.reply_tokens
        for spec in specs:
            opened = models.open(spec)
            rate = _rate(opened, reply) if isinstance(opened, Priced) else None
            if rate is None:
                return PriceBound(None, f"the price of {price_key(spec, models.settings.models)} is not known")
            rates.append(rate)
        if not any(map(sum, rates)):
            return PriceBound(0.0, "the model costs nothing")
        if calls is None or calls > _MOST_CALLS:
            return PriceBound(None, "the model calls are not bounded")
        if has_threads(plans) or self._agents_have_tools(plans):
            return PriceBound(None, "an agent reads what its tools return, and that has no bound")
        if self._outlook.bounds.tool_calls.most != 0:
            return PriceBound(None, "a model may read what tools return, and that has no bound")
        longest = models.context_budget(specs[0])
        own = len(self._document.source.text) + len(encode(dict(self._inputs)))
        earlier = reply * CHARACTERS_A_TOKEN
        read = sum(own + min(call * earlier, longest) for call in range(calls))
        most = max(fixed * calls + each * read for fixed, each in rates)
        return PriceBound(most, f"if each call reads at most {longest:,} characters of earlier results")

    def _agents_have_tools(self, plans: Sequence[Plan]) -> bool:
        profiles = self._runtime.agents()
        agents = [step.work for plan in plans for _, step in plan.steps() if isinstance(step.work, Agent)]
        settings = (profiles.get(agent.identity or self._runtime.identity) for agent in agents)
        if any(step_tools(step) for plan in plans for _, step in plan.steps()):
            return True
        return any(
            profile is None or agent_tools(agent, profile.tools)
            for agent, profile in zip(agents, settings, strict=True)
        )


def _proven_price(proof: RunProof) -> PriceBound:
    """Return the proven price of a run that asks a model."""
    money = proof.quantity("money")
    if money is None:
        return PriceBound(0.0, "no model is asked")
    if money.unpriced:
        return PriceBound(None, f"the price is not known: {'; '.join(money.unpriced)}")
    most = proof.most("money")
    if most is None:
        reasons = "; ".join(reason.text for reason in money.most.reasons)
        return PriceBound(None, reasons or "the tokens that the models read and write are not bounded")
    why = list(money.premises)
    if money.ceiling is not None and most == money.ceiling.most:
        why.append(money.ceiling.why)
    return PriceBound(float(Decimal(most) / PICODOLLARS), "; ".join(why))


def _rate(model: Priced, reply: int) -> tuple[float, float] | None:
    """Return the most that a call costs without what it reads, and the price of reading one character."""
    empty = ModelCall("", (), max_tokens=reply, usual_tokens=True)
    long = replace_call(empty, messages=(Message("user", "x" * _SAMPLE),))
    least, most = model.estimate(empty), model.estimate(long)
    return None if least is None or most is None else (least, (most - least) / _SAMPLE)
