"""Directives and tools as the analysis needs them: the model, the limits, the tools, directives and documents of a
thread; how far results of tools can be trusted, how private these are, and what tools send out.

Which directives a thread can start follows from its permissions alone: its model chooses among all existing ones. A
capability may be a pattern; then its labels are the worst of all tools that it covers. Results of child threads and of
launched documents need no label of their own: these run under the grants of the thread that starts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from urllib.parse import unquote

from msgspec import Struct

from quire.analysis.labels import Integrity, Privacy
from quire.analysis.world import AgentFact, ThreadFact
from quire.engine.interpreter.thread.budgets import Limits, resolve_limits
from quire.engine.interpreter.thread.hooks import is_composed
from quire.engine.premises import MAX_TURNS, THREAD_LIMITS, longest_call, longest_reply, usual_reply
from quire.errors import BadInputs
from quire.models.choose import NO_SETTINGS, CallSettings
from quire.plan.built_in_tools import ASK, BUILT_IN_TOOLS, FETCH, SEND, SHELL
from quire.plan.vocabulary import INTEGER_LIMITS
from quire.trust.capabilities import Grants, canonical, capability, fixed_head, grant_for, matches, may_begin_with

if TYPE_CHECKING:
    from quire.library.proof_world import WorkspaceWorld
    from quire.plan.nodes import Plan
    from quire.plan.thread import Thread
    from quire.workspace.mcp_config import McpServer
    from quire.workspace.settings import Settings


MOST_CHILDREN = 200
"""Directives that a thread may start and that are looked at. With more of them, nothing is known about those."""


class ThreadFacts:
    """The facts about the directives of one workspace."""

    def __init__(self, world: WorkspaceWorld) -> None:
        self._world = world
        self._foresight = world.foresight
        self._done: dict[int, tuple[Thread, ThreadFact]] = {}

    def of(self, thread: Thread) -> ThreadFact:
        """Return the facts about a directive that is composed with its ancestors."""
        # A directive is kept with its facts, so that no other one can have its identity.
        if id(thread) not in self._done:
            self._done[id(thread)] = thread, self._fact(thread)
        return self._done[id(thread)][1]

    def _fact(self, thread: Thread) -> ThreadFact:
        world, premises = self._world, self._world.premises
        capabilities = [permission.capability for permission in thread.permissions]
        grants = Grants.of(capabilities)
        limits, problem = _limits(thread)
        asks = capability("execute", "tool", ASK)
        calls = self._call_settings(thread)
        usual = usual_reply(premises.reply_tokens, short=True) or 0
        agent = AgentFact(
            world.thread_model(thread.model.get("id", "") or thread.model.get("tier", "")),
            tuple(world.tool_fact(name) for name in capabilities if name != asks),
            grants.covers(asks),
            MAX_TURNS if limits.turns is None else limits.turns,
            max(longest_reply(usual, call.max_tokens, call.reasoning) or usual for call in calls),
            max(longest_call(call.timeout or premises.timeout) for call in calls),
        )
        if thread.extends:
            problem = f"{thread.extends}, which it extends, is not known here"
        return ThreadFact(
            agent,
            limits,
            grants,
            self._children(grants),
            self._documents(grants),
            not thread.grants_itself(),
            any(_may_mean(pattern, "pipeline") for pattern in grants.patterns),
            world.launched_model,
            tuple(item for item in _knowledge(thread) if self._foresight.is_own_knowledge(item)),
            _prompt_length(thread),
            premises.tool_seconds.items,
            problem,
        )

    def _call_settings(self, thread: Thread) -> list[CallSettings]:
        """Return the settings that its model calls can have. Another tier may stand in for the one that it names."""
        if (own := self._world.own_settings) is not None:
            return [own]
        settings = self._world.settings
        if settings is None:
            return [NO_SETTINGS]
        tiers = settings.models.tier_settings
        named = thread.model.get("tier", "")
        if named in settings.models.tiers and not thread.model.get("id"):
            return [tiers.get(named, NO_SETTINGS)]
        return [NO_SETTINGS, *tiers.values()]

    def _children(self, grants: Grants) -> tuple[tuple[str, Thread], ...] | None:
        grants = grants.with_directives()
        if not any(_may_mean(pattern, "directive") for pattern in grants.patterns):
            return ()
        ids = self._foresight.directive_ids
        if ids is None:
            return None
        fitting = [item for item in ids if grants.covers(capability("execute", "directive", item))]
        if len(fitting) > MOST_CHILDREN:
            return None
        plans = [(item, self._foresight.called_directive(item)) for item in fitting]
        return tuple((item, plan.thread) for item, plan in plans if plan is not None and plan.thread is not None)

    def _documents(self, grants: Grants) -> tuple[tuple[str, Plan], ...] | None:
        kinds = [
            kind for kind in ("pipeline", "playbook") if any(_may_mean(pattern, kind) for pattern in grants.patterns)
        ]
        if not kinds:
            return ()
        documents = self._foresight.runnable_documents
        if documents is None:
            return None
        return tuple(
            (name, plan)
            for name, plan in documents
            if plan.format in kinds and grants.covers(capability("execute", plan.format, name))
        )


def _may_mean(pattern: str, item_type: str) -> bool:
    """Tell whether a pattern can cover an item of a type that is executed."""
    return may_begin_with(pattern, f"rye.execute.{item_type}")


def _limits(thread: Thread) -> tuple[Limits, str]:
    """Return the limits of a directive, and why they are wrong: then it does not start."""
    try:
        return resolve_limits(thread.limits, {}, None), ""
    except BadInputs as error:
        usual = {name: THREAD_LIMITS[name] for name in (*INTEGER_LIMITS, "spend", "duration_seconds")}
        return Limits(**usual), "; ".join(error.problems)  # type: ignore[arg-type]


def _knowledge(thread: Thread) -> list[str]:
    """Return the ids of the knowledge that goes into the prompt: those of the context, and those that hooks add."""
    context = thread.context
    added = (
        action.item_id
        for hook in thread.hooks
        if hook.id not in context.suppress
        for action in hook.actions
        if is_composed(hook, action) and action.item_id not in context.suppress
    )
    return list(dict.fromkeys((*context.system, *context.before, *context.after, *added)))


def _prompt_length(thread: Thread) -> int | None:
    """Return the bytes of the first message without inputs; None if it has texts that are not known here."""
    context = thread.context
    if context.system or context.before or context.after:
        return None
    texts = (thread.description, thread.permissions_text, thread.body, thread.inside)
    outputs = sum(len(output.name) + len(output.description) + 40 for output in thread.outputs)
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) + outputs + 500


_FROM_OUTSIDE = tuple(capability("execute", "tool", tool.id) for tool in BUILT_IN_TOOLS if tool.from_outside)
_SENDS = tuple(capability("execute", "tool", identity) for identity in (FETCH, SEND))
_SHELL = capability("execute", "tool", SHELL)
_WEB = capability("execute", "tool", "rye/web")
_MCP, _PROMPTS = "rye.execute.tool.mcp.", "rye.fetch.prompt.mcp."
_TOOL = "rye.execute.tool."
_OURS = (f"{_TOOL}rye.", f"{_TOOL}python.", f"{_TOOL}ask", f"{_TOOL}directive_return")
_KNOWLEDGE = ("rye.fetch.knowledge.item", "rye.execute.knowledge.item")
_READS = tuple(
    capability("execute", "tool", tool.id)
    for tool in BUILT_IN_TOOLS
    if tool.id.startswith("rye/file-system/") and tool.effect == "read"
)
_PUBLIC = frozenset(
    capability("execute", "tool", tool.id)
    for tool in BUILT_IN_TOOLS
    if tool.id in (FETCH, SEND, "rye/time/now") or (tool.effect != "read" and tool.id != SHELL)
)
"""Tools whose results have nothing of the workspace: they write only values that they were given."""


class ToolLabel(Struct, frozen=True):
    """The labels of the results of a tool, and whether its arguments leave the machine."""

    integrity: Integrity
    privacy: Privacy
    sends_out: bool


class ToolLabels:
    """The labels of all tools of one workspace. Without settings, no server is trusted and commands stay offline."""

    def __init__(self, settings: Settings | None) -> None:
        self._servers: Mapping[str, McpServer] = settings.servers if settings else {}
        self._settings = settings
        self.network = settings is not None and _network(settings)

    def of(self, capability: str) -> ToolLabel:
        """Return the labels of a tool, or the worst labels of all tools that a pattern covers."""
        server = server_of(capability)

        def wide(tools: tuple[str, ...]) -> bool:
            return any(capability == tool or matches(capability, tool) for tool in tools)

        outside = wide(_FROM_OUTSIDE) or (self.network and wide((_SHELL,)))
        sends_out = wide(_SENDS) or (self.network and wide((_SHELL,)))
        private = wide(_KNOWLEDGE) or capability.startswith(("rye.fetch.knowledge", "rye.execute.knowledge"))
        if server is not None:
            outside = outside or not self.trusts(server)
            private = private or self.is_private(server)
            sends_out = True
        elif may_begin_with(capability, _MCP) and (self._servers or self._settings is None):
            outside = outside or not all(self.trusts(name) for name in self._servers) or not self._servers
            sends_out = True
            private = private or any(self.is_private(name) for name in self._servers)
        elif _is_unknown(capability):
            outside = sends_out = True
        if self._settings is not None and self._settings.private_files:
            # A model reads any file, and a command too; a step that names its file is looked at in `reads_private`.
            private = private or wide((*_READS, _SHELL))
        privacy = Privacy.PRIVATE if private else Privacy.PUBLIC if capability in _PUBLIC else Privacy.WORKSPACE
        return ToolLabel(Integrity.OUTSIDE if outside else Integrity.WORKSPACE, privacy, sends_out)

    def trusts(self, server: str) -> bool:
        """Tell whether the user has marked a server as trusted, and it is still the one that was marked."""
        mark = self._settings.marks.get(server) if self._settings else None
        config = self._servers.get(server)
        return mark is not None and mark.trusted and config is not None and mark.at == config.line

    def reads_private(self, patterns: tuple[str, ...]) -> bool:
        """Tell whether a path of a call may be one of the private files. In both, `*` stands for any text."""
        private = self._settings.private_files if self._settings else ()
        return any(_may_meet(pattern, other) for pattern in patterns for other in private)

    def is_private(self, server: str) -> bool:
        mark = self._settings.marks.get(server) if self._settings else None
        return mark is not None and mark.private


def server_of(capability: str) -> str | None:
    """Return the server of a tool or a prompt; None for other tools, and for a pattern that may mean several."""
    for prefix in (_MCP, _PROMPTS):
        if capability.startswith(prefix):
            name, dot, _ = capability.removeprefix(prefix).partition(".")
            return unquote(name) if dot and not set(name) & set("*?[") else None
    return None


def _may_meet(path: str, private: str) -> bool:
    """Tell whether a path, which may contain `*`, can be matched by a pattern: by the texts before the first `*`. A
    path from the root of the disk may be any file of the workspace."""
    if path.startswith("/"):
        return True
    if "*" not in path:
        return fnmatchcase(path, private) or fnmatchcase(path, f"{private.rstrip('/')}/*")
    head, other = path.partition("*")[0], fixed_head(private)
    return head.startswith(other) or other.startswith(head)


def _is_unknown(capability: str) -> bool:
    """Tell whether tools are neither built in nor Python functions: then they may be those of a server."""
    is_wide = capability.removeprefix(_TOOL)[:1] in ("*", "?", "[", "")
    return capability.startswith(_TOOL) and not capability.startswith(_OURS) and not is_wide


def _network(settings: Settings) -> bool:
    """Tell whether commands may use the network: by a grant of the user, or one that the workspace asks for."""
    allowed = (*settings.granted, *settings.tools.allow)
    for name in allowed:
        tool, _, detail = name.partition("=")
        if canonical(tool) == SHELL and detail in ("network", "unsandboxed"):
            return True
    # All of `rye/web/*` opens the network to commands too.
    return Grants.of(grant_for(name) for name in allowed if "=" not in name).covers(_WEB)
