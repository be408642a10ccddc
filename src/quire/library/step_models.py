"""Choose the model of each step of a playbook, and the tools that it may use, when a run starts.

The document asks (`@model`), the settings decide: `[playbooks."NAME"]` and its steps, profiles (`[agents.NAME]`) and
tiers. A document can only name models of the settings. The choice is pinned with the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.errors import BadInputs
from quire.models.tiers import step_model
from quire.plan.built_in_tools import ASK, BUILT_IN_TOOLS
from quire.plan.nodes import Case, Plan, Sequence, Step, StepModel, Think
from quire.plan.uses import asks_for_models
from quire.trust.capabilities import canonical
from quire.wording import did_you_mean, nearest
from quire.workspace.settings import PlaybookSettings

if TYPE_CHECKING:
    from quire.values import Value
    from quire.workspace.settings import Settings

Budget: TypeAlias = Callable[[str], int]
"""Returns the characters of earlier results that a model is given."""

_SUFFIXES = (".playbook.md", ".md")
_NOTHING = PlaybookSettings()
_WRITING = frozenset(canonical(tool.name) for tool in BUILT_IN_TOOLS if tool.effect != "read") | {ASK}


class StepModels(Struct, frozen=True):
    """The models of the steps of one playbook, by path; steps without a choice are left out."""

    steps: Mapping[str, StepModel]
    warnings: tuple[str, ...] = ()
    from_settings: bool = False
    """True if `[playbooks."NAME"]` is about this playbook."""

    @property
    def profiles(self) -> set[str]:
        """The profiles that the steps use."""
        return {name for step in self.steps.values() for name in (step.profile, step.agent) if name}

    @property
    def models(self) -> list[str]:
        return [step.model for step in self.steps.values() if step.model]


def playbook_settings(name: str, settings: Settings) -> tuple[str, PlaybookSettings]:
    """Return the settings of the playbook in a file, with the name that they have in `quire.toml`; of several names
    that fit, the longest."""
    path = PurePath(name).as_posix()
    path = next((path.removesuffix(suffix) for suffix in _SUFFIXES if path.endswith(suffix)), path)
    fitting = [key for key in settings.playbooks if key and f"/{path}".endswith(f"/{key}")]
    longest = max(fitting, key=len, default="")
    return longest, settings.playbooks.get(longest, _NOTHING)


def choose_step_models(
    plan: Plan,
    name: str,
    settings: Settings,
    own: str = "",
    *,
    one_model: bool = False,
    budget: Budget | None = None,
) -> StepModels:
    """Choose for all steps of the playbook in a file. `own` is the run's model; with `one_model`, the user's own choice
    for all steps, only tools are chosen. `budget` returns the characters of earlier results that a model is given.

    Raises `BadInputs` if the settings name a profile that does not exist.
    """
    if plan.format != "playbook":
        return StepModels({})
    key, chosen = playbook_settings(name, settings)
    _check_agent(key, chosen, settings)
    labels = {step.label for _, step in plan.steps()}
    warnings = [
        f'quire.toml: [playbooks."{key}".steps."{label}"]: the playbook has no step {label}'
        for label in chosen.steps
        if label not in labels
    ]
    models: dict[str, StepModel] = {}
    for path, step in plan.steps():
        if not isinstance(step.work, Think):
            continue
        model, profile, unknown = ("", "", "") if one_model else _model(step, step.work, chosen, settings, own)
        if unknown:
            close = nearest(unknown, sorted({*settings.agents, *settings.models.tiers}))
            meant = did_you_mean(close, lead="; ", form='"{}"')
            instead = f"no tier and no profile is named {unknown} here, so another model does it"
            warnings.append(f"step {step.label}: {instead}{meant}")
        most = budget(model) if budget and model else None
        agent = settings.agents.get(chosen.agent)
        cast = StepModel(
            model,
            profile,
            chosen.agent,
            readable_tools(agent.tools) if agent else (),
            None if most is None or not budget or most == budget(own) else most,
        )
        if cast != StepModel():
            models[path] = cast
    return StepModels(models, tuple(dict.fromkeys(warnings)), bool(key))


def choose_all(
    documents: Mapping[str, tuple[Plan, str]], settings: Settings, own: str, *, one_model: bool, budget: Budget
) -> dict[str, StepModels]:
    """Choose for all documents of a run, each with its file, by name; those that ask for nothing are left out.

    Raises `Untrusted` if settings of the workspace choose, and the user has not agreed to them.
    """
    if not settings.playbooks and not any(asks_for_models(plan) for plan, _ in documents.values()):
        return {}
    chosen: dict[str, StepModels] = {}
    for name, (plan, file) in documents.items():
        models = choose_step_models(plan, file, settings, own, one_model=one_model, budget=budget)
        requested = settings.requested
        if (models.from_settings and "playbooks" in requested) or (models.profiles and "agents" in requested):
            from quire.workspace.consent import require_trusted

            require_trusted(settings)
        if models.steps or models.warnings:
            chosen[name] = models
    return chosen


def readable_tools(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tools of a profile without those of Quire that change something, and without `ask`. The gate decides
    about patterns and other tools, when it knows them."""
    return tuple(name for name in names if canonical(name) not in _WRITING)


def with_step_models(plan: Plan, steps: Mapping[str, StepModel]) -> Plan:
    """Return a plan whose steps have these models."""
    return replace(plan, body=_cast(plan.body, "", steps)) if steps else plan


def pinned_step_models(steps: Mapping[str, StepModel]) -> dict[str, Value]:
    """Return the models of steps in the form in which a run pins them."""
    return {
        path: [model.model, model.profile, model.agent, list(model.tools), model.budget]
        for path, model in steps.items()
    }


def read_step_models(stored: Value) -> dict[str, StepModel]:
    """Return the models of steps that a run has pinned."""
    entries = cast("Mapping[str, tuple[str, str, str, list[str], int | None]]", stored)
    return {path: StepModel(*entry[:3], tuple(entry[3]), entry[4]) for path, entry in entries.items()}


def _check_agent(key: str, chosen: PlaybookSettings, settings: Settings) -> None:
    if chosen.agent and chosen.agent not in settings.agents:
        close = nearest(chosen.agent, settings.agents)
        meant = did_you_mean(close, f"write [agents.{chosen.agent}]", form='"{}"')
        raise BadInputs([f'quire.toml: [playbooks."{key}"] agent: unknown agent {chosen.agent}; {meant}'])


def _model(step: Step, work: Think, chosen: PlaybookSettings, settings: Settings, own: str) -> tuple[str, str, str]:
    """Return the model and the profile of a step, and the name that its document asked for in vain."""
    unknown = ""
    if name := chosen.steps.get(step.label):
        return (*_by_settings(name, settings, own), "")
    if work.model:
        if work.model in settings.agents:
            return settings.agents[work.model].model or "", work.model, ""
        model = step_model(work.model, settings.models, own)
        if model is not None:
            return model, "", ""
        unknown = work.model
    if chosen.model:
        return (*_by_settings(chosen.model, settings, own), unknown)
    agent = settings.agents.get(chosen.agent)
    return (agent.model, chosen.agent, unknown) if agent and agent.model else ("", "", unknown)


def _by_settings(name: str, settings: Settings, own: str) -> tuple[str, str]:
    """Return the model and the profile that the settings name. They may name a model itself; a document may not."""
    if name in settings.agents:
        return settings.agents[name].model or "", name
    model = step_model(name, settings.models, own)
    return name if model is None else model, ""


def _cast(sequence: Sequence, prefix: str, steps: Mapping[str, StepModel]) -> Sequence:
    made = []
    for step in sequence.steps:
        path = f"{prefix}{step.position}"
        if isinstance(step.work, Think) and path in steps:
            step = replace(step, work=replace(step.work, cast=steps[path]))
        if step.match:
            cases = tuple(
                Case(case.test, _cast(case.body, f"{path}/case[{at}]/", steps))
                for at, case in enumerate(step.match.cases, 1)
            )
            step = replace(step, match=replace(step.match, cases=cases))
        made.append(step)
    return Sequence(tuple(made))
