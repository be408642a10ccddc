"""The estimates that `show` prints for a run before it begins: how many requests it can make, and which permissions it
needs.

Only the workspace is read; no server is asked, so a tool of a server is known by the server's name alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

from quire.errors import BadConfiguration, BadInputs, CannotStart, QuireError
from quire.plan.nodes import Think
from quire.source import Source, real_path
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace
from quire.workspace.settings import AgentSettings, Settings

if TYPE_CHECKING:
    from quire.analysis.proof import Proof
    from quire.library.capability_words import Words
    from quire.library.items import ItemIndex
    from quire.library.library import Library
    from quire.library.proof_world import WorkspaceWorld
    from quire.library.snapshot import Snapshot
    from quire.models.choose import CallSettings
    from quire.plan.bounds import PlanBounds
    from quire.plan.envelope import CapabilityEnvelope, Vocabulary
    from quire.plan.nodes import Plan
    from quire.plan.pipeline_work import Agent
    from quire.plan.thread import Hook
    from quire.values import Value


class _LateWords:
    """The words of a workspace, made when the first is asked for: a document without tools needs none, nor the tables
    of risks behind them."""

    def __init__(self, make: Callable[[], Words]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> object:
        words = self._make()
        self.__dict__.update({key: getattr(words, key) for key in ("tool", "prompt", "hook", "effect", "tier")})
        return self.__dict__[name]


class Foresight:
    """Bounds and permissions of plans in one workspace, whose documents are read once. Without settings, because they
    are broken, nothing of the workspace counts."""

    def __init__(
        self,
        settings: Settings | None,
        documents: Mapping[str, Plan] | None = None,
        library: Snapshot | None = None,
    ) -> None:
        """`documents` are the called documents of a run, which are then not looked up; `library` has the documents of
        the workspace, if they were looked at before."""
        self._settings = settings
        self._callees = documents
        self._looked_at = library
        self._profiles = {"default": AgentSettings(), **(settings.agents if settings else {})}
        self._read_directives: dict[str, Plan | None] = {}
        self._worlds: dict[tuple[str, CallSettings | None, bool], WorkspaceWorld] = {}

    @classmethod
    def here(cls, file: str) -> Foresight:
        """Return the foresight of the workspace around the current folder, for a document of this file."""
        from quire.library.library import Library

        try:
            return cls(Library(load_settings(find_workspace(Path.cwd()))).of(file).settings)
        except BadConfiguration:
            return cls(None)

    def of(self, plan: Plan, name: str = "") -> tuple[PlanBounds, CapabilityEnvelope]:
        """Return the bounds and permissions of a plan. `name` is its file, by which the settings know a
        playbook."""
        return self.bounds(plan, name), self.envelope(plan, name)

    def bounds(
        self, plan: Plan, name: str = "", inputs: Mapping[str, Value] | None = None, *, is_rest: bool = False
    ) -> PlanBounds:
        """Return how often a plan calls models and tools, asks people and starts threads; with its inputs, if they are
        known. `is_rest` tells that the plan has only the last steps of a document."""
        from quire.analysis.quantities import without_end
        from quire.plan.bounds import PlanBounds, Range

        proof = self.proof(plan, name, inputs=inputs, is_rest=is_rest)
        counts = {}
        for kind, bound in proof.bounds.items():
            most = without_end(proof, bound.most)
            counts[kind] = Range(bound.least, most.as_number, most.formula)
        return PlanBounds(**counts, unknown=proof.unknown)

    def envelope(self, plan: Plan, name: str = "", classes: Mapping[str, str] | None = None) -> CapabilityEnvelope:
        """Return the envelope of a plan, with the directives that it calls. `classes` are classes of effects that are
        known by capability, of tools that are not built in."""
        from quire.plan.envelope import envelope

        words = cast("Vocabulary", _LateWords(lambda: self._words(classes or {})))
        return envelope(self.whole(plan, name), words, self.called, self.tools_of)

    def whole(self, plan: Plan, name: str = "") -> Plan:
        """Return a plan with everything that it runs with: the tools of its steps, or the inherited parts."""
        if not plan.thread or self._settings is None:
            return self._with_tools(plan, name)
        from quire.library.directive_preview import composed_plan

        return composed_plan(plan, self._library.spaces, self._hooks)

    @cached_property
    def called(self) -> Mapping[str, Plan]:
        """The documents that plans may call, directives included, by name. Each is read when it is first asked for."""
        return CalledDocuments(self) if self._callees is None else self._callees

    def directive(self, name: str) -> Plan | None:
        """Return the directive of a name with what it inherits; None if there is none that can be read."""
        from quire.library.callees import read_directive

        try:
            item = self._library.named_directive(name)
            return None if item is None else self.whole(read_directive(Source.of(item.text, str(item.path))))
        except QuireError:
            return None

    @cached_property
    def directive_ids(self) -> tuple[str, ...] | None:
        """The ids of all directives that a thread can find; None if the settings cannot be read."""
        if self._settings is None:
            return None
        return tuple(entry.id for entry in self._library.spaces.entries("directive"))

    def is_own_knowledge(self, item_id: str) -> bool:
        """Tell whether knowledge is that of the project or of the user, and not one that comes with Quire. An id that
        only a run knows, and an item that cannot be read, may be any."""
        from quire.plan.templates import is_static

        if self._settings is None or not is_static(item_id):
            return True
        try:
            item = self._knowledge.find(item_id)
        except QuireError:
            return True
        return item is not None and item.space != "system"

    @cached_property
    def _knowledge(self) -> ItemIndex:
        from quire.library.items import ItemIndex

        return ItemIndex(self._library.spaces, "knowledge")

    def called_directive(self, item_id: str) -> Plan | None:
        """Return a directive with what it inherits, read once; None if it cannot be read."""
        if item_id not in self._read_directives:
            self._read_directives[item_id] = self.directive(item_id)
        return self._read_directives[item_id]

    @cached_property
    def runnable_documents(self) -> tuple[tuple[str, Plan], ...] | None:
        """The pipelines and playbooks that a thread can run, by name; None if the settings cannot be read."""
        if self._settings is None:
            return None
        return *self._library.plans().items(), *self._playbooks

    def proof(
        self,
        plan: Plan,
        name: str = "",
        model: str = "",
        inputs: Mapping[str, Value] | None = None,
        *,
        is_rest: bool = False,
        own: CallSettings | None = None,
        one_model: bool = False,
        outside: Iterable[str] = (),
    ) -> Proof:
        """Prove the most that a plan can cost, touch and pass on. `model` is the run's own, and `inputs` are those of a
        run, where they are known; text from outside comes in by the inputs `outside`. `is_rest` tells that the plan has
        only the last steps of a document; `own` and `one_model` are those of `WorkspaceWorld`."""
        from quire.analysis.abstract_values import NULL
        from quire.analysis.proof import earlier_value, given_values, outside_values, prove

        whole = self.whole(plan, name)
        values = {**given_values(whole, inputs or {}), **outside_values(whole, outside)}
        world = self.world(model, own, one_model=one_model)
        return prove(whole, world, values, earlier_value() if is_rest else NULL)

    def world(self, model: str = "", own: CallSettings | None = None, *, one_model: bool = False) -> WorkspaceWorld:
        """Return the workspace as the analysis needs it, read once for each model."""
        from quire.library.proof_world import WorkspaceWorld

        key = model, own, one_model
        if key not in self._worlds:
            self._worlds[key] = WorkspaceWorld(self, self._settings, model, own, one_model=one_model)
        return self._worlds[key]

    @cached_property
    def words(self) -> Words:
        """The capabilities behind names in this workspace."""
        return self._words({})

    def registered(self, source: Source) -> list[Plan]:
        """Return the pipelines of a registered file as they are called; none if the file is not registered."""
        if self._settings is None:
            return []
        pipelines = self._library.registry().pipelines.values()
        same = [pipeline for pipeline in pipelines if pipeline.source.text == source.text]
        here = real_path(Path(source.name)) if same else None
        return [pipeline.plan for pipeline in same if real_path(Path(pipeline.source.name)) == here]

    def source_of(self, name: str) -> Source | None:
        """Return the text of a called document, to show places in it; None if it is not found."""
        if self._settings is None:
            return None
        try:
            document = self._library.find(name, ("pipeline", "playbook"))
            if document is not None:
                return document.source
            item = self._library.named_directive(name)
            return Source.of(item.text, str(item.path)) if item else None
        except QuireError:
            return None

    def _words(self, classes: Mapping[str, str]) -> Words:
        from quire.library.capability_words import Words
        from quire.trust.risk import project_risk

        if self._settings is None:
            return Words({})
        return Words(self._settings.servers, project_risk(self._settings.workspace.folder), classes)

    @cached_property
    def _library(self) -> Snapshot:
        if self._settings is None:
            raise BadConfiguration("the settings cannot be read, so no document can be listed")
        if self._looked_at is not None:
            return self._looked_at
        from quire.library.library import Library

        return Library(self._settings).snapshot()

    @cached_property
    def _hooks(self) -> tuple[Hook, ...]:
        from quire.library.directive_preview import read_project_hooks

        try:
            return read_project_hooks(self._settings)[0] if self._settings else ()
        except QuireError:
            return ()

    def _with_tools(self, plan: Plan, name: str) -> Plan:
        """Return a playbook with the models that its steps ask for and the tools that they may use. A run that has
        started has them already."""
        if not self._settings or not name:
            return plan
        # Not `asks_for_models`, whose module knows the tables of tools too.
        asks = any(isinstance(step.work, Think) and step.work.model for _, step in plan.steps())
        if not self._settings.playbooks and not asks:
            return plan
        from quire.library.step_models import choose_step_models, with_step_models

        try:
            own = self._settings.models.default or ""
            return with_step_models(plan, choose_step_models(plan, name, self._settings, own).steps)
        except BadInputs:
            return plan

    @cached_property
    def documents(self) -> Mapping[str, Plan]:
        """The registered pipelines, and the playbooks that can be read, by name."""
        return {} if self._settings is None else {**dict(self._playbooks), **self._library.plans()}

    @cached_property
    def _playbooks(self) -> list[tuple[str, Plan]]:
        return [(name, self._with_tools(plan, path)) for name, (plan, path) in _playbooks(self._library).items()]

    def tools_of(self, agent: Agent) -> tuple[str, ...]:
        """Return the tools that an agent may use: those of its profile, narrowed by its step."""
        from quire.engine.interpreter.pipeline.agent import agent_tools

        return agent_tools(agent, self._profiles.get(agent.identity or "default", AgentSettings()).tools)


class CalledDocuments(Mapping[str, "Plan"]):
    """The documents of a workspace by the names that callers use: registered pipelines, playbooks, then directives."""

    def __init__(self, foresight: Foresight) -> None:
        self._foresight = foresight
        self._directives: dict[str, Plan] = {}

    def __getitem__(self, name: str) -> Plan:
        plan = self._foresight.documents.get(name) or self._foresight.called_directive(name)
        if plan is None:
            raise KeyError(name)
        if name not in self._foresight.documents:
            self._directives[name] = plan
        return plan

    def __iter__(self) -> Iterator[str]:
        return iter((*self._foresight.documents, *self._directives))

    def __len__(self) -> int:
        return len(self._foresight.documents) + len(self._directives)


def _playbooks(library: Library) -> dict[str, tuple[Plan, str]]:
    """Return the playbooks that can be read with their files, by their names and by the last parts of these."""
    from quire.library.document import load

    playbooks: dict[str, tuple[Plan, str]] = {}
    for name, path in library.playbooks().paths.items():
        try:
            plan = load(path).plan
        except CannotStart:
            continue
        if plan is not None:
            playbooks[name] = playbooks[name.rpartition("/")[2]] = plan, str(path)
    return playbooks
