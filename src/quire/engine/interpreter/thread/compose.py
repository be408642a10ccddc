"""Compose the start of a thread from a directive and its ancestors: messages, capabilities and hooks.

Ancestors give context and hooks, and their permissions to a leaf that has none; everything else is the leaf's own.
Texts are joined, never interpreted: neither knowledge nor the value of an input is searched for references. The texts
that Quire itself writes for the model, the frame around a directive and the later reminders, are here too.

A `Bundle` holds all texts that a directive is composed from, as they were when it was looked up. A run pins it; a
thread that is started in the middle of a run gets it by one journaled `Load`. Either way composing again gives the same
thread, even if the files change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Protocol, cast

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from quire.engine.inputs import resolve_inputs
from quire.engine.interpreter.thread.hooks import (
    condition_holds,
    in_order,
    is_composed,
    read_hooks_yaml,
    resolve_action,
)
from quire.engine.interpreter.thread.own_tools import escaped, returns_block
from quire.errors import BadDocument, CannotStart
from quire.plan.built_in_tools import RETURN
from quire.plan.templates import fill
from quire.plan.thread import THREAD_RULES, Acknowledgement, Hook, Parameter, Thread
from quire.source import NOWHERE, Source, Span
from quire.values import Value, decode, encode

START = "Carry out the directive above now: work through it step by step, with the tools that you are offered."
FINISH = f"When all of it is done, call {RETURN} with the outputs that it lists."


def directive_element(
    name: str, description: str, permissions: str, parts: Iterable[str], returns: str | None = None
) -> str:
    """Return the directive as its model reads it. `parts` are inserted unchanged; empty ones are left out."""
    written = escaped(name).replace('"', "&quot;")
    lines = [f'<directive name="{written}">']
    if description.strip():
        lines.append(f"<description>{escaped(description.strip())}</description>")
    lines += [part.strip("\n") for part in (permissions, *parts, returns or "") if part.strip()]
    return "\n".join([*lines, "</directive>"])


def joined(blocks: Iterable[str]) -> str:
    """Join blocks of text with a blank line between them."""
    return "\n\n".join(stripped for block in blocks if (stripped := block.strip("\n")).strip())


def nudge(outputs: Sequence[Parameter]) -> str:
    """Return the reminder for a model that wrote text although work was expected."""
    if outputs:
        names = ", ".join(output.name for output in outputs)
        return f"Nothing has been returned yet. When you are done, call {RETURN} with: {names}."
    return "Carry the directive out with the tools that you have. If there is nothing left to do, say so."


class Resolver(Protocol):
    """Items by id.

    Both methods return None for an item that does not exist, and raise `Refused` for one that is not trusted.
    """

    def directive(self, item_id: str) -> Thread | None: ...

    def knowledge(self, item_id: str) -> str | None:
        """Return the body alone, without metadata and signature."""
        ...


Chain = tuple[tuple[str, Thread], ...]
"""A directive and its ancestors with their ids, leaf first."""


class Granted(Struct, frozen=True):
    """A capability, and the directive that it comes from; `span` is a place in the text of that directive."""

    capability: str
    origin_id: str
    span: Span = NOWHERE


class Composed(Struct, frozen=True):
    """The messages, capabilities, hooks and inputs that a thread starts with."""

    item_id: str
    name: str
    system: str
    message: str
    capabilities: tuple[Granted, ...]
    """Empty if neither the directive nor an ancestor has any: then the thread has only those of its parent thread."""
    acknowledged: tuple[Acknowledgement, ...]
    limits_declared: Mapping[str, Value]
    hooks: tuple[Hook, ...]
    """In the order in which they act. The actions for which `is_composed` is true have been done already."""
    outputs: tuple[Parameter, ...]
    inputs: Mapping[str, Value]
    """Complete."""
    model: Mapping[str, str]
    success: str
    """With the inputs filled in, as in `failure`."""
    failure: str
    warnings: tuple[str, ...]
    chain: tuple[str, ...]
    """The ids from the leaf to the root."""
    grants_nothing: bool = False
    """True if a permissions block exists and is empty."""
    rules: int = THREAD_RULES
    """The version of the rules that the thread follows."""


def compose(
    item_id: str,
    resolver: Resolver,
    given: Mapping[str, Value],
    project_hooks: Iterable[Hook] = (),
    rules: int = THREAD_RULES,
) -> Composed:
    """Compose a directive.

    Raises `CannotStart` for a chain that is broken or circular, `BadInputs`, and `Refused` from the resolver.
    """
    chain = read_chain(item_id, resolver)
    leaf = chain[0][1]
    if leaf.problems and rules > 1:
        raise CannotStart("\n".join(f"{item_id}: {problem}" for problem in leaf.problems))
    inputs = resolve_inputs(leaf.inputs, given)
    hooks = in_order(*(thread.hooks for _, thread in reversed(chain)), project_hooks)
    granting_id, granting = next(((id, thread) for id, thread in chain if thread.grants_itself(rules)), chain[0])
    context = _Context(resolver, frozenset(id for _, thread in chain for id in thread.context.suppress), rules)
    facts = facts_before_start(chain, inputs)
    for hook in hooks:
        context.bring(hook, facts)
    for id, thread in reversed(chain):
        context.declare(id, thread)
    parts = fill(leaf.body, inputs, rules), fill(leaf.inside, inputs, rules)
    returns = returns_block(leaf.outputs)
    element = directive_element(leaf.name, leaf.description, granting.permissions_text, parts, returns)
    if not leaf.model:
        context.warnings.append(f"{item_id} has no <model>: the default model is used")
    return Composed(
        item_id=item_id,
        name=leaf.name,
        system=context.system(),
        message=context.message(element, f"{START} {FINISH}" if leaf.outputs else START),
        capabilities=tuple(
            Granted(permission.capability, granting_id, permission.span) for permission in granting.permissions
        ),
        acknowledged=leaf.acknowledged if granting is leaf else (*granting.acknowledged, *leaf.acknowledged),
        limits_declared=leaf.limits,
        hooks=hooks,
        outputs=leaf.outputs,
        inputs=inputs,
        model=leaf.model,
        success=fill(leaf.success, inputs, rules),
        failure=fill(leaf.failure, inputs, rules),
        warnings=tuple(context.warnings),
        chain=tuple(id for id, _ in chain),
        grants_nothing=not granting.permissions and granting.grants_itself(rules),
        rules=rules,
    )


def facts_before_start(chain: Chain, inputs: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return the values that the conditions of hooks can read before the first turn."""
    item_id, leaf = chain[0]
    return {
        "directive": item_id,
        "name": leaf.name,
        "category": leaf.category,
        "inputs": dict(inputs),
        "model": dict(leaf.model),
        "limits": dict(leaf.limits),
        "chain": [id for id, _ in chain],
    }


def read_chain(item_id: str, resolver: Resolver) -> Chain:
    """Return the directive and its ancestors, leaf first. Raises `CannotStart`."""
    chain: dict[str, Thread] = {}
    child = ""
    while item_id:
        if item_id in chain:
            raise CannotStart(f"Circular extends chain: {item_id} (chain: {' → '.join(chain)})")
        thread = resolver.directive(item_id)
        if thread is None:
            if not child:
                raise CannotStart(f"directive {item_id} not found in the project's, the user's and the built-in space")
            raise CannotStart(f"parent directive {item_id} not found: {child} extends it; correct its `extends`")
        chain[item_id] = thread
        item_id, child = thread.extends.strip(), item_id
    return tuple(chain.items())


class _Context:
    """The knowledge of a thread: texts from hooks stand around those that the chain declares.

    An id stands once, where the model reads it first; under older rules, once at each position.
    """

    def __init__(self, resolver: Resolver, suppressed: frozenset[str], rules: int) -> None:
        self._rules = rules
        self.warnings: list[str] = []
        self._resolver = resolver
        self._suppressed = suppressed
        self._loaded: dict[str, str | None] = {}
        self._wanted: dict[tuple[str, str], dict[str, str]] = {}
        self._sent: set[tuple[str, str]] = set()

    def bring(self, hook: Hook, facts: Mapping[str, Value]) -> None:
        if hook.id in self._suppressed or not any(is_composed(hook, action) for action in hook.actions):
            return
        if not condition_holds(hook.condition, facts):
            return
        position = hook.position if hook.position in ("system", "after") else "before"
        if hook.event == "build_system_prompt":
            position = "system"
        for action in hook.actions:
            if is_composed(hook, action) and action.item_id not in self._suppressed:
                item_id = resolve_action(action, facts, self._rules).item_id
                self._want("hooks", position, item_id, f"hook {hook.id or hook.event}")

    def declare(self, item_id: str, thread: Thread) -> None:
        context = thread.context
        for position, ids in (("system", context.system), ("before", context.before), ("after", context.after)):
            for knowledge_id in ids:
                self._want("chain", position, knowledge_id, f"<{position}> of {item_id}")

    def system(self) -> str:
        return joined([*self._texts("hooks", "system"), *self._texts("chain", "system")])

    def message(self, element: str, closing: str) -> str:
        """Return the first message: the directive with the texts around it."""
        before = [*self._texts("hooks", "before"), *self._texts("chain", "before")]
        after = [*self._texts("chain", "after"), *self._texts("hooks", "after")]
        return joined([*before, element, *after, closing])

    def _texts(self, layer: str, position: str) -> list[str]:
        origins = self._wanted.get((layer, position), {})
        once = "" if self._rules > 3 else position
        ids = [id for id in origins if (once, id) not in self._sent]
        self._sent.update((once, id) for id in ids)
        return [text for id in ids if (text := self._load(id, origins[id])) is not None]

    def _want(self, layer: str, position: str, item_id: str, who: str) -> None:
        if item_id not in self._suppressed:
            self._wanted.setdefault((layer, position), {}).setdefault(item_id, who)

    def _load(self, item_id: str, who: str) -> str | None:
        if item_id not in self._loaded:
            self._loaded[item_id] = self._resolver.knowledge(item_id) if item_id else None
            if self._loaded[item_id] is None:
                self.warnings.append(f"knowledge {item_id or '(no id)'} not found: {who} goes without it")
        return self._loaded[item_id]


class Bundle(Struct, frozen=True, dict=True):
    """Directives and the bodies of knowledge items, by the ids that refer to them.

    Items that were not found are not in it.
    """

    item_id: str
    directives: Mapping[str, str]
    knowledge: Mapping[str, str] = field(default_factory=dict)
    hooks: str = ""
    """Text of the project's own hooks."""
    model: str = ""
    """The model that the directive's `<model>` stood for; empty for the run's own."""
    warnings: tuple[str, ...] = ()
    """Messages from the verification of the items."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Where the permissions of each directive are written."""
    rules: int = THREAD_RULES
    """The version of the rules that the thread follows."""
    settings: Mapping[str, Value] = field(default_factory=dict)
    """Settings of the tier that the directive's `<model>` named, by the names of the fields of `ModelRequest`."""

    def encoded(self) -> str:
        return encode({name: value for name, value in asdict(self).items() if value or name != "settings"})

    @classmethod
    def of(cls, text: str) -> Bundle:
        stored = cast("Mapping[str, Value]", decode(text))
        return cls(
            str(stored["item_id"]),
            cast("Mapping[str, str]", stored["directives"]),
            cast("Mapping[str, str]", stored["knowledge"]),
            str(stored["hooks"]),
            str(stored["model"]),
            tuple(cast("list[str]", stored["warnings"])),
            cast("Mapping[str, str]", stored["places"]),
            cast("int", stored.get("rules", 1)),
            dict(cast("Mapping[str, Value]", stored.get("settings", {}))),
        )

    @cached_property
    def threads(self) -> dict[str, Thread]:
        """The directives that have been read from these texts."""
        return {}

    def with_warnings(self, warnings: Iterable[str]) -> Bundle:
        """Return the same texts with more warnings."""
        bundle = replace(self, warnings=(*self.warnings, *warnings))
        bundle.threads.update(self.threads)
        return bundle

    def project_hooks(self) -> tuple[Hook, ...]:
        return read_hooks_yaml(self.hooks, "hooks.yaml")[0] if self.hooks else ()


class BundleResolver:
    """Resolve items from the texts of a bundle, which have been verified."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle

    def directive(self, item_id: str) -> Thread | None:
        threads, text = self._bundle.threads, self._bundle.directives.get(item_id)
        if text is not None and item_id not in threads:
            # lxml is imported only when a directive is read.
            from quire.formats.directive.lower import thread
            from quire.formats.directive.parse import parse

            tree = parse(Source.of(text, f"{item_id}.md")).directive
            if tree is None:
                raise BadDocument(f"the directive {item_id} has errors: quire check shows them")
            threads[item_id] = thread(tree)
        return threads.get(item_id)

    def knowledge(self, item_id: str) -> str | None:
        return self._bundle.knowledge.get(item_id)
