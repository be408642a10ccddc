"""Find steps that fail for every reply of the model, and caps and budgets that cannot be kept, before a run pays.

A step in a branch counts as well, like a tool that does not exist: the document is wrong either way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.engine.ports import ModelCall, Priced
from quire.errors import LimitReached, PriceUnknown, Refused
from quire.library.texts import leads_out
from quire.models.choose import members_of, price_key
from quire.plan.built_in_tools import ALIASES, BUILT_IN_TOOLS, FETCH, SEND
from quire.plan.nodes import Plan, PromptSource, Think, UseTool, remembered
from quire.plan.pipeline_work import Agent, Invoke, Literal
from quire.plan.reach import reached_steps
from quire.plan.thread import Thread
from quire.plan.uses import OWN, is_built_in, tool_call_problem
from quire.plan.vocabulary import shell_way, typed_way
from quire.runs.options import call_limit
from quire.trust.capabilities import canonical

if TYPE_CHECKING:
    from quire.runs.adapters import Models
    from quire.runs.runtime import Runtime
    from quire.values import Value


@remembered
def static_failures(plan: Plan) -> Sequence[str]:
    """Return a line for each step of a playbook that would fail if it were reached, and for each failing top-level step
    of a pipeline. Directives are not checked here."""
    problems = [
        f"step {step.label}: {problem}" for step in plan.stops().values() for problem in _refused_headers(step.work)
    ]
    for _, step in plan.steps():
        if isinstance(step.work, UseTool) and (problem := tool_call_problem(step.work)):
            problems.append(f"step {step.label}: {problem}")
    problems += [
        f"step {label}: prompt file:{source.where}: must be a path below the document's folder, without .."
        for label, source in _prompts(plan, "file")
        if leads_out(source.where)
    ]
    return tuple(problems)


def _refused_headers(work: object) -> list[str]:
    """Return the headers written in the document that `http__get` and `http__send` would not send."""
    headers: object = None
    match work:
        case UseTool(connection=place, tool=tool, arguments={"headers": given}) if place == OWN and _fetches(tool):
            headers = given
        case Invoke(tool=tool) if _fetches(tool):
            given = dict(work.arguments).get("headers")
            headers = given.value if isinstance(given, Literal) else None
    if not isinstance(headers, Mapping):
        return []
    from quire.tools.builtin.http_request import header_problem

    plain = ((str(name), text if isinstance(text, str) else "") for name, text in headers.items())
    return [problem for name, text in plain if (problem := header_problem(name, text))]


def _fetches(tool: str) -> bool:
    return canonical(tool) in (FETCH, SEND)


@remembered
def server_prompts(plan: Plan) -> Sequence[tuple[str, str, str]]:
    """Return the label of each step that begins with a prompt of a server, the server, and the prompt."""
    places = ((label, source.where.partition("/")) for label, source in _prompts(plan, "mcp"))
    return tuple((label, server, name) for label, (server, _, name) in places)


def _prompts(plan: Plan, scheme: str) -> list[tuple[str, PromptSource]]:
    return [
        (step.label, step.work.preamble)
        for _, step in plan.steps()
        if isinstance(step.work, Think) and step.work.preamble is not None and step.work.preamble.scheme == scheme
    ]


def check_cap(plan: Plan, documents: Mapping[str, Plan], most: int, inputs: Mapping[str, Value]) -> None:
    """Raise `LimitReached` if a run needs more model calls than it may make, even at the fewest. 0 means no limit."""
    if not plan.has_call_cap:
        return
    from quire.plan.reach import cap_problem

    if problem := cap_problem(plan, documents, most, inputs):
        raise LimitReached(problem)


def call_cap(
    runtime: Runtime, plan: Plan, limits: Mapping[str, Value], budget: float | None, specs: Callable[[], Iterable[str]]
) -> int:
    """Return how many model calls a run may make, 0 for any number: as many as the user says for this run, else, for a
    pipeline, as the settings say. The default number gives way to a budget if each of the models has its price."""
    own, spawn = call_limit(limits), runtime.settings.spawn
    if own is not None or not plan.has_call_cap:
        return own or 0
    if budget is None or spawn.is_set:
        return spawn.max_pipeline_spawns
    # For a queue, the worker that has the models looks again.
    priced = runtime.queue or all(least_price(runtime.models, spec) for spec in specs())
    return 0 if priced else spawn.max_pipeline_spawns


def least_price(models: Models, spec: str) -> float | None:
    """Return the estimated price of an empty call; 0 for a model without prices, None if its price is not known."""
    model = models.open(spec)
    return model.estimate(ModelCall("", ())) if isinstance(model, Priced) else 0.0


def check_prices(models: Models, specs: Sequence[str], budget: float | None) -> None:
    """Raise `PriceUnknown` if there is a budget and the price of a model is unknown."""
    if budget is None:
        return
    settings = models.settings.models
    for key in dict.fromkeys(key for spec in specs for key in members_of(price_key(spec, settings)) if key):
        if least_price(models, key) is None:
            raise PriceUnknown(
                f"the price of {key} is not known, so a budget cannot be kept; two ways on:\n"
                f"--budget none without [budgets], or its prices in the quire.toml of your user folder:\n"
                f'[models.prices."{key}"] with input and output, in dollars per million tokens'
            )


def check_unattended(
    plan: Plan, documents: Mapping[str, Plan], answers: Iterable[str], recorded: Collection[str] = ()
) -> None:
    """Raise `Refused` if an unattended run would say yes to a confirm without a default, and may write after it.
    `recorded` are the paths of its effects so far."""
    reached = reached_steps(plan, documents)
    named = {typed_way(name) for name in answers}
    named.update(step.label for path, step in plan.steps() if f"{path}/ask" in recorded)
    problems = []
    for at, place in enumerate(reached):
        ask = place.step.ask
        if ask is None or ask.kind != "confirm" or ask.default is not None or place.name in named:
            continue
        if (written := next((later for later in reached[at:] if _may_write(later.step.work)), None)) is not None:
            help = f"give it a default, answer it beforehand (--answer {shell_way(place.name)}=no), or --unattended=yes"
            problems.append(f"step {place.place}: this confirm has no default, and step {written.place} writes: {help}")
    if problems:
        raise Refused("\n".join(problems))


_READS = frozenset(tool.id for tool in BUILT_IN_TOOLS if tool.effect == "read")


def _may_write(work: object) -> bool:
    """Tell whether a step may change something. A document that it calls has steps of its own."""
    match work:
        case UseTool(connection=place, tool=tool):
            return place != OWN or (is_built_in(tool) and ALIASES.get(tool, tool) not in _READS)
        case Invoke(tool=tool):
            return ALIASES.get(tool, tool) not in _READS
        case Agent(tools=tools):
            return any(ALIASES.get(tool, tool) not in _READS for tool in tools or ())
    return isinstance(work, Thread)
