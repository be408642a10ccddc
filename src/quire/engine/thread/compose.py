"""From a directive and its ancestors to what a thread starts with: messages, capabilities, hooks.

Ancestors give context and hooks, and their permissions to a leaf that has none; everything else is the leaf's own.
Texts are put together, never read: neither knowledge nor the value of an input is searched for references.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from quire.engine.thread.hooks import filled_action, holds, injects, ordered
from quire.engine.thread.inputs import resolve_inputs
from quire.engine.thread.messages import closing_words, directive_element, joined
from quire.engine.thread.returns import returns_block
from quire.errors import CannotStart
from quire.formats.directive.interpolate import fill
from quire.plan.thread import THREAD_RULES, Acknowledgement, Hook, Parameter, Thread
from quire.source import NOWHERE, Span
from quire.values import Value


class Resolver(Protocol):
    """Items by id. Both raise `Refused` for one that is not trusted; None is one that is not there."""

    def directive(self, item_id: str) -> Thread | None: ...

    def knowledge(self, item_id: str) -> str | None:
        """The body alone, without metadata and signature."""
        ...


@dataclass(frozen=True, slots=True)
class Granted:
    """A capability, and the directive that it comes from: `span` is a place in the text of that one."""

    capability: str
    origin_id: str
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Composed:
    """What a thread starts with. `inputs` are complete; `success` and `failure` have them filled in.

    `capabilities` are empty where neither the directive nor an ancestor has any: only those of a parent thread are left
    then; `grants_nothing` says that a block is there and is empty. `hooks` are in the order in which they act; what
    `injects` says of an action has been done. `chain` are the
    ids from the leaf to the root, `rules` those that the thread follows.
    """

    item_id: str
    name: str
    system: str
    message: str
    capabilities: tuple[Granted, ...]
    acknowledged: tuple[Acknowledgement, ...]
    limits_declared: Mapping[str, Value]
    hooks: tuple[Hook, ...]
    outputs: tuple[Parameter, ...]
    inputs: Mapping[str, Value]
    model: Mapping[str, str]
    success: str
    failure: str
    warnings: tuple[str, ...]
    chain: tuple[str, ...]
    grants_nothing: bool = False
    rules: int = THREAD_RULES


def compose(
    item_id: str,
    resolver: Resolver,
    given: Mapping[str, Value],
    project_hooks: Iterable[Hook] = (),
    rules: int = THREAD_RULES,
) -> Composed:
    """Raises `CannotStart` for a chain that is broken or goes round, `BadInputs`, and `Refused` from the resolver."""
    chain = read_chain(item_id, resolver)
    leaf = chain[0][1]
    if leaf.problems and rules > 1:
        raise CannotStart("\n".join(f"{item_id}: {problem}" for problem in leaf.problems))
    inputs = resolve_inputs(leaf.inputs, given)
    granting_id, granting = next(((one, thread) for one, thread in chain if thread.grants_itself(rules)), chain[0])
    acknowledged = leaf.acknowledged if granting is leaf else (*granting.acknowledged, *leaf.acknowledged)
    hooks = ordered(*(thread.hooks for _, thread in reversed(chain)), project_hooks)
    facts: dict[str, Value] = {
        "directive": item_id,
        "name": leaf.name,
        "category": leaf.category,
        "inputs": inputs,
        "model": dict(leaf.model),
        "limits": dict(leaf.limits),
        "chain": [one for one, _ in chain],
    }
    context = _Context(resolver, frozenset(one for _, thread in chain for one in thread.context.suppress), rules)
    for hook in hooks:
        context.bring(hook, facts)
    for one, thread in reversed(chain):
        context.declare(one, thread)
    element = directive_element(
        leaf.name,
        leaf.description,
        granting.permissions_text,
        (fill(leaf.body, inputs, rules), fill(leaf.inside, inputs, rules)),
        returns_block(leaf.outputs),
    )
    if not leaf.model:
        context.warnings.append(f"{item_id} has no <model>: the default model is used")
    texts = context.texts
    return Composed(
        item_id=item_id,
        name=leaf.name,
        system=joined([*texts("hooks", "system"), *texts("chain", "system")]),
        message=joined(
            [
                *texts("hooks", "before"),
                *texts("chain", "before"),
                element,
                *texts("chain", "after"),
                *texts("hooks", "after"),
                closing_words(leaf.outputs),
            ]
        ),
        capabilities=tuple(Granted(one.capability, granting_id, one.span) for one in granting.permissions),
        acknowledged=acknowledged,
        limits_declared=leaf.limits,
        hooks=hooks,
        outputs=leaf.outputs,
        inputs=inputs,
        model=leaf.model,
        success=fill(leaf.success, inputs, rules),
        failure=fill(leaf.failure, inputs, rules),
        warnings=tuple(context.warnings),
        chain=tuple(one for one, _ in chain),
        grants_nothing=not granting.permissions and granting.grants_itself(rules),
        rules=rules,
    )


def read_chain(item_id: str, resolver: Resolver) -> tuple[tuple[str, Thread], ...]:
    """The directive and its ancestors, leaf first. Raises `CannotStart`."""
    chain: dict[str, Thread] = {}
    wanted, child = item_id, ""
    while wanted:
        if wanted in chain:
            raise CannotStart(f"Circular extends chain: {wanted} (chain: {' → '.join(chain)})")
        thread = resolver.directive(wanted)
        if thread is None:
            if not child:
                raise CannotStart(f"directive {wanted} not found in the project's, the user's and the built-in space")
            raise CannotStart(f"parent directive {wanted} not found: {child} extends it; correct its `extends`")
        chain[wanted] = thread
        wanted, child = thread.extends.strip(), wanted
    return tuple(chain.items())


class _Context:
    """The knowledge of a thread: what hooks bring stands around what the chain declares.

    One id stands once at each position, where the model reads it first; so what hooks bring `after` comes last.
    """

    def __init__(self, resolver: Resolver, suppressed: frozenset[str], rules: int) -> None:
        self._rules = rules
        self.warnings: list[str] = []
        self._resolver = resolver
        self._suppressed = suppressed
        self._loaded: dict[str, str | None] = {}
        self._wanted: dict[tuple[str, str], dict[str, str]] = {}

    def bring(self, hook: Hook, facts: Mapping[str, Value]) -> None:
        if hook.id in self._suppressed or not any(injects(hook, action) for action in hook.actions):
            return
        if not holds(hook.condition, facts):
            return
        position = hook.position if hook.position in ("system", "after") else "before"
        if hook.event == "build_system_prompt":
            position = "system"
        for action in hook.actions:
            if injects(hook, action) and action.item_id not in self._suppressed:
                item_id = filled_action(action, facts, self._rules).item_id
                self._want("hooks", position, item_id, f"hook {hook.id or hook.event}")

    def declare(self, item_id: str, thread: Thread) -> None:
        context = thread.context
        for position, ids in (("system", context.system), ("before", context.before), ("after", context.after)):
            for one in ids:
                self._want("chain", position, one, f"<{position}> of {item_id}")

    def texts(self, layer: str, position: str) -> list[str]:
        wanted = self._wanted.get((layer, position), {})
        other = self._wanted.get(("hooks" if layer == "chain" else "chain", position), {})
        comes_second = layer == ("hooks" if position == "after" else "chain")
        ids = [one for one in wanted if not (comes_second and one in other)]
        return [text for one in ids if (text := self._load(one, wanted[one])) is not None]

    def _want(self, layer: str, position: str, item_id: str, who: str) -> None:
        if item_id not in self._suppressed:
            self._wanted.setdefault((layer, position), {}).setdefault(item_id, who)

    def _load(self, item_id: str, who: str) -> str | None:
        if item_id not in self._loaded:
            self._loaded[item_id] = self._resolver.knowledge(item_id) if item_id else None
            if self._loaded[item_id] is None:
                self.warnings.append(f"knowledge {item_id or '(no id)'} not found: {who} goes without it")
        return self._loaded[item_id]
