"""Walk over a directive: an agent that chooses its own steps, under permissions, limits and hooks (`thread_hooks.py`).

The calls of its model are not known, so everything that it may read counts as read before everything that it may do,
and every turn counts as one that uses all the calls it may make.

The cost of the threads that it starts, and that these start, is counted level by level. A child has at most the limits
of its parent, even where its own are higher or a model overrides them, and never more permissions. So every thread of a
tree is one that the outermost one may start, and the limit of depth ends the tree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from quire.analysis.abstract_values import AbstractValue, reply_value
from quire.analysis.amounts import NOTHING, ONE, Amount, endless, number
from quire.analysis.costs import (
    ASKED,
    BYTES_OF,
    CALLS_OF,
    LAUNCHED_MONEY,
    LAUNCHES_OF,
    MODEL_CALLS,
    OUTPUT_OF,
    QUESTIONS,
    SPAN,
    SURE_INPUT_OF,
    THREADS,
    TOOL_CALLS,
    TOOLS_OF,
    WINDOW_OF,
    WORK,
    Cost,
    either,
    unbounded,
)
from quire.analysis.facts import Condition
from quire.analysis.labels import Integrity, Label, Privacy, Trace, joined, source_label
from quire.analysis.model_costs import StepCalls
from quire.analysis.thread_hooks import acting, asks, firings, note_hooks, raised_limits, tries_again
from quire.engine.premises import FAILURES_IN_A_ROW, MOST_CALLS, PARALLEL
from quire.models.choose import PICODOLLARS

if TYPE_CHECKING:
    from quire.analysis.facts import Place
    from quire.analysis.scope import Scope
    from quire.analysis.walk import Walk
    from quire.analysis.world import AgentFact, ThreadFact
    from quire.engine.interpreter.thread.budgets import Limits
    from quire.plan.nodes import Plan, Step
    from quire.plan.thread import Thread


_ROUNDS = -(-MOST_CALLS // PARALLEL)
"""How many calls of one turn stand one after the other."""


def walk_directive(walk: Walk, scope: Scope, cost: Cost) -> AbstractValue:
    """Walk over the thread of a directive, and return its outputs."""
    from quire.plan.thread import Thread

    for step in scope.plan.body.steps:
        if isinstance(step.work, Thread):
            scope.names.last = _thread(walk, step, step.work, scope.place(step, str(step.position)), scope, cost)
    return scope.names.pipe


def _thread(walk: Walk, step: Step, thread: Thread, place: Place, scope: Scope, cost: Cost) -> AbstractValue:
    fact = walk.world.thread(thread)
    given = joined(value.label for value in scope.names.stores.values()).join(_knowledge(walk, fact, place))
    label = walk.told(given, fact.agent.tools, place)
    output = label.made_by(Integrity.MODEL, "model", place.way, place.span, place.document)
    own = ThreadCosts(walk, step, place, scope, output, fact)
    below = _children(fact, thread, own, lambda fact, thread: Cost()).amount(THREADS)
    turns, attempts = own.turns(thread), own.attempts(thread)
    own.often = turns.times(number(MOST_CALLS)).times(ONE.plus(below))
    if walk.is_called:
        cost.count(THREADS, 1, 1)
    cost.add(own.of(fact, thread))
    cost.add(_children(fact, thread, own, own.of))
    if fact.launches:
        cost.spend(LAUNCHED_MONEY, own.launched_money(thread))
    calls = turns.times(number(attempts)).as_number or 0
    first, windows = own.read(thread, calls)
    agent = replace(fact.agent, reply_tokens=own.longest_reply)
    step_calls = StepCalls(calls, first, windows, (turns.as_number or 0) * MOST_CALLS)
    walk.note_model(agent, label, step_calls, place, scope, used=own.often)
    events = {hook.event: firings(hook.event, turns, attempts) for hook in thread.hooks}
    note_hooks(walk, thread, place, scope, output, events)
    problem = fact.problem
    if fact.inherits and walk.is_called:
        problem = f"{thread.name} has no permissions of its own, but those of the thread that it is called from"
    if problem:
        walk.miss(thread.extends or thread.name)
        cost.add(unbounded(place.reason(problem)))
    return reply_value(None, fact.agent.reply_tokens, output)


def _knowledge(walk: Walk, fact: ThreadFact, place: Place) -> Label:
    """Return the label of the knowledge in the prompt of a thread, and in those of the threads that it may start: these
    tell it their results."""
    threads = [fact, *(walk.world.thread(thread) for _, thread in fact.children or ())]
    several = dict.fromkeys(item for thread in threads for item in thread.knowledge)
    traces = (Trace(f"knowledge {item}", place.way, place.span, place.document) for item in several)
    return joined(source_label(Integrity.WORKSPACE, Privacy.PRIVATE, trace) for trace in traces)


class ThreadCosts(Struct):
    """The cost of threads in one tree: of the outermost one, and of those that it starts, which have at most its
    limits, also where a model overrides their own."""

    walk: Walk
    step: Step
    place: Place
    scope: Scope
    output: Label
    root: ThreadFact
    """The outermost one."""
    often: Amount = ONE
    """How many calls all of them can make."""
    documents: dict[tuple[str, str], Cost] = field(default_factory=dict)
    """The cost of running each document once, by format and name."""
    any_of: dict[tuple[tuple[str, str], ...], Cost] = field(default_factory=dict)
    """The cost of running one of several documents once."""

    @property
    def limits(self) -> Limits:
        return self.root.limits

    def turns(self, thread: Thread) -> Amount:
        most = self.limits.turns
        if most is not None and "turns" not in raised_limits(thread.hooks):
            return number(most)
        why = "has no limit of turns" if most is None else "has a hook that asks a person to raise the limit of turns"
        remedy = '<limits turns="25"/>' if most is None and thread is self.step.work else ""
        return endless(self.place.reason(f"{thread.name} {why}", remedy))

    @property
    def longest_reply(self) -> int | None:
        """The tokens of the longest reply of all threads; None if it is not known."""
        if self.root.children is None:
            return None
        facts = [self.root, *(self.walk.world.thread(thread) for _, thread in self.root.children)]
        tokens = [fact.agent.reply_tokens for fact in facts]
        return None if None in tokens else max(count or 0 for count in tokens)

    def attempts(self, thread: Thread) -> int:
        """Return the model calls of one turn."""
        return FAILURES_IN_A_ROW if tries_again(thread.hooks) else 1

    def spawns(self, thread: Thread) -> Amount:
        """Return how many threads it can start: by each call of a turn and by hooks, up to its limit."""
        turns, attempts = self.turns(thread), self.attempts(thread)
        amount = turns.times(number(MOST_CALLS))
        for hook, action in acting(thread.hooks):
            if action.item_type == "directive":
                amount = amount.plus(firings(hook.event, turns, attempts))
        return amount if self.limits.spawns is None else amount.at_most(self.limits.spawns)

    def of(self, fact: ThreadFact, thread: Thread) -> Cost:
        """Return the cost of a thread without those that it starts."""
        if fact.inherits:
            held = self.root.agent
            agent = replace(fact.agent, tools=held.tools, asks=held.asks)
            fact = replace(fact, agent=agent, documents=self.root.documents, launches=self.root.launches)
        cost, agent = Cost(), fact.agent
        turns, attempts = self.turns(thread), self.attempts(thread)
        self._model_calls(cost, agent, turns.times(number(attempts)), thread, fact)
        calls = turns.times(number(MOST_CALLS))
        # A call that is not permitted counts too: it is refused, and recorded.
        cost.spend(TOOL_CALLS, calls)
        for effect in dict.fromkeys(tool.effect for tool in agent.tools):
            cost.spend(f"{TOOLS_OF}{effect}", calls)
        if agent.asks:
            cost.spend(QUESTIONS, calls)
        self._time(cost, fact, thread, turns, attempts)
        self._hooks(cost, thread, turns, attempts)
        self._documents(cost, fact, calls, turns)
        if fact.launches:
            self._launches(cost, fact, thread, calls)
        return cost

    def _model_calls(self, cost: Cost, agent: AgentFact, calls: Amount, thread: Thread, fact: ThreadFact) -> None:
        model, most = agent.model, self.limits.tokens
        if calls.as_number != 0:
            cost.count(MODEL_CALLS, 0, 1)
            if thread is self.step.work:
                cost.count(ASKED, 1)
        cost.spend(MODEL_CALLS, calls)
        cost.spend(f"{CALLS_OF}{model}", calls)
        if agent.reply_tokens is None:
            why = "the length of a reply is not limited"
            written = endless(self.place.reason(why, "[runs] reply_tokens = 4096"))
        else:
            written = calls.times(number(agent.reply_tokens))
        if fact.prompt_length is not None:
            cost.spend(f"{BYTES_OF}{model}", calls.times(number(fact.prompt_length)))
        if most is None or "tokens" in raised_limits(thread.hooks):
            cost.spend(f"{WINDOW_OF}{model}", calls)
        else:
            # The limit is looked at before each call, and no reply is longer than what is left of it: so only the
            # input of the last call passes it.
            written = written.at_most(most)
            cost.count(f"{WINDOW_OF}{model}", 1)
            if calls.as_number != 1:
                cost.count(f"{SURE_INPUT_OF}{model}", most)
        cost.spend(f"{OUTPUT_OF}{model}", written)

    def read(self, thread: Thread, calls: int) -> tuple[Amount, int]:
        """Return the tokens that a thread reads within its limit, and how many calls only the window bounds."""
        most = self.limits.tokens
        if most is None or "tokens" in raised_limits(thread.hooks):
            return NOTHING, calls
        return NOTHING if calls == 1 else number(most), 1

    def _time(self, cost: Cost, fact: ThreadFact, thread: Thread, turns: Amount, attempts: int) -> None:
        """Add the time of model calls and tools. The limit of time is looked at before each model call, so the last
        turn may pass it. Waiting for threads and documents is part of their own cost."""
        longest = [tool.seconds for tool in fact.agent.tools]
        if fact.agent.seconds is None or None in longest:
            why = f"nothing bounds how long a call of a model or a tool of {thread.name} takes"
            cost.spend_time(endless(self.place.reason(why)))
            return
        call, tool = fact.agent.seconds, max((seconds or 0.0 for seconds in longest), default=0.0)
        most = None if "duration_seconds" in raised_limits(thread.hooks) else self.limits.duration_seconds
        for kind, rounds in ((WORK, MOST_CALLS), (SPAN, _ROUNDS)):
            whole = turns.times(number(_milliseconds(attempts * call + rounds * tool)))
            if most is not None:
                whole = whole.at_most(_milliseconds(most + call + rounds * tool))
            cost.spend(kind, whole.plus(number(_milliseconds(fact.load_seconds))))

    def _hooks(self, cost: Cost, thread: Thread, turns: Amount, attempts: int) -> None:
        for event in dict.fromkeys(hook.event for hook in thread.hooks):
            if event != "after_complete" and asks(thread.hooks, event):
                cost.spend(QUESTIONS, firings(event, turns, attempts))
        if raised_limits(thread.hooks):
            why = f"{thread.name} asks a person to raise a limit, again and again until a number is given"
            cost.spend(QUESTIONS, endless(self.place.reason(why)))
        for hook, action in acting(thread.hooks):
            tool = self.walk.world.hook_tool(action)
            if tool is None or action.item_type in ("directive", "knowledge"):
                continue
            often = firings(hook.event, turns, attempts)
            cost.spend(TOOL_CALLS, often)
            cost.spend(f"{TOOLS_OF}{tool.effect}", often)
            if tool.seconds is None:
                cost.spend_time(endless(self.place.reason(f"nothing bounds how long the hook {hook.id} takes")))
            else:
                cost.spend_time(often.times(number(_milliseconds(tool.seconds))))

    def _documents(self, cost: Cost, fact: ThreadFact, calls: Amount, turns: Amount) -> None:
        """Add the pipelines and playbooks that the thread may run, with inputs that its model chooses. No thread of the
        tree may run others than the outermost one."""
        if fact.documents is None or self.root.documents is None:
            cost.add(unbounded(self.place.reason("the documents that the thread may run are not known")))
            return
        if not self.documents:
            self.documents = {(plan.format, name): self._document(name, plan) for name, plan in self.root.documents}
        keys = tuple((plan.format, name) for name, plan in fact.documents)
        if keys not in self.any_of:
            parts = [self.documents[key] for key in keys if key in self.documents]
            self.any_of[keys] = either(parts) if parts else Cost()
        cost.add(self.any_of[keys].times(calls, 0, turns.times(number(_ROUNDS))))

    def _launches(self, cost: Cost, fact: ThreadFact, thread: Thread, calls: Amount) -> None:
        """Add the runs that the thread may launch. It may wait for one that its model writes, and nothing bounds how
        long that takes."""
        cost.spend(f"{LAUNCHES_OF}{fact.launched_model}", calls)
        why = f"nothing bounds how long a run takes that {thread.name} launches"
        cost.spend_time(endless(self.place.reason(why)))

    def launched_money(self, thread: Thread) -> Amount:
        """Return the picodollars that all runs of the tree which are launched may spend: they are paid from the purse
        of the outermost thread."""
        spend = self.limits.spend
        if spend is not None and "spend" not in raised_limits(thread.hooks):
            return number(round(spend * PICODOLLARS))
        return endless(self.place.reason(f"nothing limits the money of runs that {thread.name} launches"))

    def _document(self, name: str, plan: Plan) -> Cost:
        """Walk over a document that threads may run, and return its cost."""
        chosen = reply_value(None, self.longest_reply, self.output)
        condition = Condition(self.place, "rye/execute", True, {}, self.output.narrowed(), span=self.place.span)
        saved, part = self.scope.enter(condition, fan=self.place, often=self.often), Cost()
        inputs = {declared.name: chosen for declared in plan.declared or plan.inputs}
        self.walk.call(name, inputs, self.step, self.scope, part, plan, chosen)
        self.scope.leave(saved)
        part.take(_milliseconds(self.root.load_seconds))
        part.drop(ASKED)
        return part


def _milliseconds(seconds: float) -> int:
    return -int(-seconds * 1000 // 1)


CostOf = Callable[["ThreadFact", "Thread"], Cost]
"""Returns the cost of a thread without those that it starts."""
Names = tuple[str, ...]


def _children(root: ThreadFact, thread: Thread, costs: ThreadCosts, cost_of: CostOf) -> Cost:
    """Return the cost of all threads that the outermost thread of a tree starts, directly or not."""
    if root.limits.spawns == 0 or root.limits.depth == 0 or root.children == ():
        return Cost()
    if root.children is None:
        return unbounded(costs.place.reason("the directives that it may start are not known"))
    tree = _Tree(root, costs, cost_of)
    return tree.one_of(tuple(tree.threads), root.limits.depth).times(costs.spawns(thread), 0)


class _Tree:
    def __init__(self, root: ThreadFact, costs: ThreadCosts, cost_of: CostOf) -> None:
        self.threads = dict(root.children or ())
        self._place = costs.place
        facts = {name: costs.walk.world.thread(thread) for name, thread in self.threads.items()}
        self._costs = {name: cost_of(facts[name], thread) for name, thread in self.threads.items()}
        self._spawns = {name: costs.spawns(thread) for name, thread in self.threads.items()}
        self._below = {name: self._may_start(fact) for name, fact in facts.items()}
        self._done: dict[tuple[Names, int | None], Cost] = {}
        self._under_way: set[Names] = set()

    def one_of(self, names: Names, depth: int | None) -> Cost:
        """Return the cost of one thread that is any of these, and of all below it. `depth` is the limit of its
        parent."""
        if not names or (depth is not None and depth < 1):
            return Cost()
        key = (names, depth)
        if key in self._done:
            return self._done[key]
        if depth is None and names in self._under_way:
            why = "threads start threads, and nothing limits how deep"
            return unbounded(self._place.reason(why, '<limits depth="3"/>'))
        self._under_way.add(names)
        self._done[key] = either([self._thread(name, None if depth is None else depth - 1) for name in names])
        self._under_way.discard(names)
        return self._done[key]

    def _thread(self, name: str, depth: int | None) -> Cost:
        cost = Cost()
        cost.add(self._costs[name])
        cost.count(THREADS, 1)
        cost.add(self.one_of(self._below[name], depth).times(self._spawns[name], 0))
        return cost

    def _may_start(self, fact: ThreadFact) -> Names:
        """Return the threads of the tree that a thread may start."""
        if fact.inherits or fact.children is None:
            return tuple(self.threads)
        return tuple(name for name, _ in fact.children if name in self.threads)
