"""The workspace as the analysis needs it: tools with their classes and labels, agents with their limits, callees.

Only settings and documents are read. The user alone decides which servers are trusted and which hold private data, in
the user's own file: a clone cannot call its own server trustworthy.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from quire.analysis.world import AgentFact, Kind, ThreadFact, ToolFact
from quire.engine.premises import (
    DIALECT_TURNS,
    LONGEST_PYTHON,
    MAX_RESULT_BYTES,
    MAX_TURNS,
    MCP_SECONDS,
    Premises,
    ToolKind,
    longest_call,
    longest_reply,
    smallest,
)
from quire.models.choose import NO_SETTINGS
from quire.plan.vocabulary import ITEM_TYPES
from quire.workspace.settings import AgentSettings

if TYPE_CHECKING:
    from quire.library.foresight import Foresight
    from quire.library.proof_inputs import ThreadFacts, ToolLabels
    from quire.models.choose import CallSettings
    from quire.plan.nodes import Plan, StepModel
    from quire.plan.pipeline_work import Agent
    from quire.plan.thread import HookAction, Thread
    from quire.workspace.settings import Settings

_SHELL = "rye.execute.tool.rye.bash"
_HTTP = ("rye.execute.tool.rye.web.", "rye.execute.tool.rye.http.")
_MCP, _PYTHON = "rye.execute.tool.mcp.", "rye.execute.tool.python."
_ITEMS = ("rye.fetch.", "rye.sign.", *(f"rye.execute.{item_type}" for item_type in ITEM_TYPES if item_type != "tool"))
_BEGINNINGS: Mapping[str | tuple[str, ...], Kind] = {_HTTP: "http", _MCP: "mcp", _PYTHON: "python", _ITEMS: "item"}
_SECONDS: Mapping[Kind, ToolKind] = {
    "built-in": "files",
    "shell": "shell",
    "http": "http",
    "mcp": "mcp",
    "python": "python",
    "item": "items",
    "own": "items",
}
_TOOLS_OF_OTHERS: Mapping[Kind, str] = {"mcp": _MCP, "python": _PYTHON}
"""Beginnings of the capabilities of tools that are not built in."""


class WorkspaceWorld:
    """The `World` of a workspace. Without settings nothing but the built-in tools is known."""

    def __init__(
        self,
        foresight: Foresight,
        settings: Settings | None,
        model: str = "",
        own: CallSettings | None = None,
        *,
        one_model: bool = False,
    ) -> None:
        """`model` is the run's own, where it is known, and `own` are the settings of its tier. With `one_model` it is
        asked in place of every other that documents name; profiles keep their own."""
        self.foresight = foresight
        self.settings = settings
        self._named = model
        self._own = own
        self._one_model = one_model
        self.model = model or (settings.models.default if settings else "") or ""
        self._profiles = {"default": AgentSettings(), **(settings.agents if settings else {})}
        self._facts: dict[tuple[str, str], tuple[ToolFact, ...]] = {}
        self._agents: dict[object, AgentFact] = {}

    @cached_property
    def premises(self) -> Premises:
        if self.settings is None:
            return Premises()
        settings = self.settings
        return Premises(
            reply_tokens=settings.runs.reply_tokens,
            timeout=settings.models.longest_timeout,
            spawns=settings.spawn.max_pipeline_spawns or None,
        )

    @property
    def context_budget(self) -> int | None:
        return self.settings.runs.context_budget if self.settings else None

    @cached_property
    def labels(self) -> ToolLabels:
        from quire.library.proof_inputs import ToolLabels

        return ToolLabels(self.settings)

    def trusts(self, server: str) -> bool:
        return self.labels.trusts(server)

    def reads_private(self, patterns: tuple[str, ...]) -> bool:
        return self.labels.reads_private(patterns)

    def document(self, name: str) -> Plan | None:
        return self.foresight.called.get(name)

    def tools(self, connection: str, name: str) -> tuple[ToolFact, ...]:
        key = (connection, name)
        if key not in self._facts:
            capabilities = self.foresight.words.tool(connection, name)
            self._facts[key] = tuple(self.tool_fact(capability, name) for capability in capabilities)
        return self._facts[key]

    def tool_fact(self, capability: str, name: str = "") -> ToolFact:
        """Return what is known of the tool, or of all tools, that a capability stands for."""
        words = self.foresight.words
        kind, effect = _kind(capability), words.effect(capability)
        label = self.labels.of(capability)
        return ToolFact(
            name or capability,
            capability,
            effect if effect in ("read", "idempotent", "write") else "write",  # type: ignore[arg-type]
            words.tier(capability) or "elevated",
            kind,
            label.integrity,
            label.privacy,
            label.sends_out,
            self._seconds(capability, kind),
            MAX_RESULT_BYTES * 3 // 2,  # a prompt has a space after each comma and colon of a result
            effect != "unknown",
        )

    def _seconds(self, capability: str, kind: Kind) -> float:
        """Return the longest that a call takes; of a pattern, that of the slowest tool that it may mean."""
        from quire.trust.capabilities import may_begin_with

        kinds = {kind, *(other for other, head in _TOOLS_OF_OTHERS.items() if may_begin_with(capability, head))}
        return max(self._seconds_of(each, capability) for each in kinds)

    def _seconds_of(self, kind: Kind, capability: str) -> float:
        seconds = self.premises.tool_seconds
        if kind == "mcp":
            from quire.library.proof_inputs import server_of

            return self.server_seconds(server_of(capability) or "")
        # Functions are not loaded here, and each may set a time of its own.
        return seconds.of("python", LONGEST_PYTHON) if kind == "python" else seconds.of(_SECONDS[kind])

    def server_seconds(self, name: str) -> float:
        servers = self.settings.servers if self.settings else {}
        any_of_them = (MCP_SECONDS, *(server.timeout for server in servers.values()))
        return self.premises.tool_seconds.of("mcp", servers[name].timeout if name in servers else max(any_of_them))

    def agent(self, work: Agent) -> AgentFact:
        key = (work.identity, work.tools, work.settings)
        if key not in self._agents:
            self._agents[key] = self._agent(work)
        return self._agents[key]

    def _agent(self, work: Agent) -> AgentFact:
        profile = self._profiles.get(work.identity or "default", AgentSettings())
        settings = work.settings
        names = self.foresight.tools_of(work)
        turns = profile.turns or MAX_TURNS
        if settings is not None:
            turns = min(
                settings.turns or profile.turns or DIALECT_TURNS, profile.turns or settings.turns or DIALECT_TURNS
            )
        return self._called(
            profile,
            self._model_of(profile, settings.model if settings else ""),
            names,
            turns,
            smallest(settings.max_tokens if settings else None, profile.call.max_tokens),
        )

    def thinker(self, cast: StepModel | None) -> AgentFact:
        if cast is None:
            return self._plain
        profile = self._profiles.get(cast.profile, AgentSettings())
        agent = self._profiles.get(cast.agent, AgentSettings())
        model = "" if self._one_model else cast.model
        return self._called(profile, model, cast.tools, agent.turns or MAX_TURNS, profile.call.max_tokens, reads=True)

    def _model_of(self, profile: AgentSettings, model: str) -> str:
        """Return the model of an agent; empty for that of the run. A model that the run is started with takes the place
        of that of the step, but not of that of the profile, which only a script replaces."""
        if not self._one_model:
            return model or profile.model or ""
        return "" if self.model.startswith("script:") else profile.model or ""

    @cached_property
    def _plain(self) -> AgentFact:
        return self._called(AgentSettings(), "", (), MAX_TURNS, None)

    def _called(
        self,
        profile: AgentSettings,
        model: str,
        names: tuple[str, ...],
        turns: int,
        tokens: int | None,
        *,
        reads: bool = False,
    ) -> AgentFact:
        facts: list[ToolFact] = []
        asks = False
        if names:
            from quire.plan.uses import OWN_TOOLS  # most agents have no tools, and load no table of them

            facts = [tool for name in names if name not in OWN_TOOLS for tool in self.tools("", name)]
            asks = not reads and any(name in OWN_TOOLS or ("*" in name and _may_ask(name)) for name in names)
        if reads:
            facts = [tool for tool in facts if tool.effect == "read" or not tool.certain]
        if not model and self._own is not None:
            tier = self._own
        else:
            tier = self.settings.models.settings_of(model or self.model) if self.settings else NO_SETTINGS
        reasoning = profile.call.reasoning or tier.reasoning
        return AgentFact(
            self._spec(model),
            tuple(facts),
            asks,
            turns,
            longest_reply(self.premises.reply_tokens, smallest(tokens, tier.max_tokens), reasoning),
            longest_call(profile.call.timeout or self.premises.timeout),
            len(profile.system.encode()),
        )

    def _spec(self, model: str) -> str:
        model = model or self.model
        return self.settings.models.tiers.get(model, model) if self.settings else model

    def thread(self, thread: Thread) -> ThreadFact:
        return self._threads.of(thread)

    @cached_property
    def _threads(self) -> ThreadFacts:
        from quire.library.proof_inputs import ThreadFacts

        return ThreadFacts(self)

    @property
    def own_settings(self) -> CallSettings | None:
        """The settings of the model that all threads use; None if each has its own."""
        return self._own if self._one_model else None

    @property
    def launched_model(self) -> str:
        """The model of runs that threads launch: that of the settings, not the model of the run itself."""
        default = (self.settings.models.default if self.settings else "") or ""
        return self._spec(self._profiles["default"].model or default) if default else ""

    def thread_model(self, model: str) -> str:
        """Return the model of a thread. A model that the run is started with counts for all of its threads."""
        return self._spec(self._named or model)

    def hook_tool(self, action: HookAction) -> ToolFact | None:
        needed = self.foresight.words.action(action)
        return self.tool_fact(needed, action.item_id) if needed else None


def _kind(capability: str) -> Kind:
    from quire.trust.capabilities import matches

    if capability == _SHELL or matches(capability, _SHELL):
        return "shell"
    for beginning, kind in _BEGINNINGS.items():
        if capability.startswith(beginning):
            return kind
    return "built-in" if capability.startswith("rye.execute.tool.rye.") or capability.count(".") < 4 else "mcp"


def _may_ask(pattern: str) -> bool:
    """Tell whether a pattern of tools has `ask` among them, as a run matches it: by the name or by the id."""
    from fnmatch import fnmatchcase

    from quire.plan.built_in_tools import ASK
    from quire.trust.capabilities import Grants, capability, grant_for

    return fnmatchcase(ASK, pattern) or Grants.of([grant_for(pattern)]).covers(capability("execute", "tool", ASK))
