"""A directive as the analysis needs it: its model and limits, and the tools, directives and documents that it may use.

Which directives a thread can start follows from its permissions alone: its model chooses among all that there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from quire.analysis.world import AgentFact, ThreadFact, ToolFact
from quire.engine.interpreter.thread.hooks import is_composed
from quire.engine.interpreter.thread.limits import Limits, resolve_limits
from quire.engine.premises import MAX_TURNS, THREAD_LIMITS, longest_call, longest_reply, usual_reply
from quire.errors import BadInputs
from quire.models.choose import NO_SETTINGS, CallSettings
from quire.plan.built_in_tools import ASK
from quire.plan.vocabulary import INTEGER_LIMITS
from quire.trust.capabilities import Grants, capability, may_begin_with

if TYPE_CHECKING:
    from quire.engine.premises import Premises
    from quire.library.foresight import Foresight
    from quire.plan.nodes import Plan
    from quire.plan.thread import Thread
    from quire.workspace.settings import Settings

MOST_CHILDREN = 200
"""Directives that a thread may start and that are looked at. With more of them, nothing is known about those."""


class ThreadFacts:
    """The facts about the directives of one workspace."""

    def __init__(
        self,
        foresight: Foresight,
        settings: Settings | None,
        premises: Premises,
        tool_fact: Callable[[str], ToolFact],
        spec: Callable[[str], str],
        own: CallSettings | None = None,
        launched: str = "",
    ) -> None:
        """`own` are the settings of the model that all threads use; None if each has its own. `launched` is the model
        of runs that threads launch, if it is known."""
        self._foresight = foresight
        self._settings = settings
        self._premises = premises
        self._tool_fact = tool_fact
        self._spec = spec
        self._own = own
        self._launched = launched
        self._done: dict[int, tuple[Thread, ThreadFact]] = {}

    def of(self, thread: Thread) -> ThreadFact:
        """Return the facts about a directive that is composed with its ancestors."""
        # A directive is kept with its facts, so that no other one can have its identity.
        if id(thread) not in self._done:
            self._done[id(thread)] = thread, self._fact(thread)
        return self._done[id(thread)][1]

    def _fact(self, thread: Thread) -> ThreadFact:
        grants = Grants.of(one.capability for one in thread.permissions)
        limits, problem = _limits(thread)
        asks = capability("execute", "tool", ASK)
        tools = tuple(self._tool_fact(one.capability) for one in thread.permissions if one.capability != asks)
        calls = self._call_settings(thread)
        usual = usual_reply(self._premises.reply_tokens, short=True) or 0
        agent = AgentFact(
            self._spec(thread.model.get("id", "") or thread.model.get("tier", "")),
            tools,
            grants.covers(asks),
            MAX_TURNS if limits.turns is None else limits.turns,
            max(longest_reply(usual, one.max_tokens, one.reasoning) or usual for one in calls),
            max(longest_call(one.timeout or self._premises.timeout) for one in calls),
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
            any(_may_mean(one, "pipeline") for one in grants.patterns),
            self._launched,
            tuple(item for item in _knowledge(thread) if self._foresight.is_own_knowledge(item)),
            _prompt_length(thread),
            self._premises.tool_seconds.items,
            problem,
        )

    def _call_settings(self, thread: Thread) -> list[CallSettings]:
        """Return the settings that its model calls can have. Another tier may stand in for the one that it names."""
        if self._own is not None:
            return [self._own]
        if self._settings is None:
            return [NO_SETTINGS]
        tiers = self._settings.models.tier_settings
        named = thread.model.get("tier", "")
        if named in self._settings.models.tiers and not thread.model.get("id"):
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
        plans = [(one, self._foresight.called_directive(one)) for one in fitting]
        return tuple((one, plan.thread) for one, plan in plans if plan is not None and plan.thread is not None)

    def _documents(self, grants: Grants) -> tuple[tuple[str, Plan], ...] | None:
        kinds = [kind for kind in ("pipeline", "playbook") if any(_may_mean(one, kind) for one in grants.patterns)]
        if not kinds:
            return ()
        known = self._foresight.runnable_documents
        if known is None:
            return None
        return tuple(
            (name, plan)
            for name, plan in known
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
    outputs = sum(len(one.name) + len(one.description) + 40 for one in thread.outputs)
    return sum(len(one.encode("utf-8", "surrogatepass")) for one in texts) + outputs + 500
