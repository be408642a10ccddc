"""Walk over a playbook: each model call reads the results of all steps before it, unless the step says which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.analysis.abstract_values import (
    BOOL,
    EMPTY,
    NULL,
    NUMBER,
    TEXT,
    AbstractValue,
    either,
    literal,
    reply_value,
    sized,
)
from quire.analysis.amounts import Amount, number, total
from quire.analysis.costs import Cost
from quire.analysis.costs import either as either_cost
from quire.analysis.facts import Condition, Place, QuestionFact, StoreFact
from quire.analysis.labels import AUTHORED, MODEL, Integrity, Label, Privacy, Trace, chosen_by, joined, source_label
from quire.analysis.model_costs import model_calls
from quire.analysis.scope import BETWEEN, ENTRY, earlier_results, entry_of, tell, tell_part
from quire.analysis.walk import Walk, sequence
from quire.analysis.written_sizes import PARSED, closing_lengths, text_length
from quire.plan.nodes import Arguments, Match, Reference, Step, Template, Think, UseTool, ValueSlot
from quire.plan.templates import key_references, template

if TYPE_CHECKING:
    from quire.analysis.scope import Scope
    from quire.analysis.world import AgentFact
    from quire.plan.nodes import PromptSource

_PROMPT_TOKENS = 1_000_000
"""The longest text that a prompt of a library, a file or a server has."""


def walk_playbook(walk: Walk, scope: Scope, cost: Cost) -> AbstractValue:
    """Walk over the steps of a playbook, and return its result."""
    stores = scope.names.stores
    for declared in scope.plan.inputs:
        value = stores.get(declared.name)
        if value is None:
            stores[declared.name] = literal(declared.default or "")
        elif declared.type not in ("string", "text") or not (_is_verdict(value) or _is_text(value)):
            # It is turned into text, and a blank one into the default.
            stores[declared.name] = replace(value.unanswered(), is_constant=False, constant=None)
    scope.names.last = EMPTY
    source = scope.plan.artifact.source if scope.plan.artifact else ""
    scope.keeps_parts = bool(source) or any(
        isinstance(step.work, Think) and step.work.context is not None for _, step in scope.plan.steps()
    )
    sequence(walk, scope.plan.body, "", scope, cost, _step)
    result = scope.names.pipe
    if source in scope.told.parts:
        result = either([result, scope.told.parts[source]])
    named = {name: stores[name] for name in scope.versions if name in stores}
    if not scope.document or not named:
        return result
    # A caller gets all named results.
    parts = {**named, "output": result}
    length = total(value.length for value in parts.values()).plus(number(ENTRY * len(parts)))
    return AbstractValue(None, number(len(parts)), length, joined(value.label for value in parts.values()), parts)


def _step(walk: Walk, step: Step, path: str, scope: Scope, cost: Cost) -> None:
    """Walk over one step: its question, a choice before its work, the work, a choice after it, and the arms."""
    place = scope.place(step, path)
    own: AbstractValue | None = None
    if step.ask is not None:
        own = _ask(walk, step, place, scope, cost)
    match = step.match
    if match is None:
        worked = _work(walk, step, place, scope, cost)
        _capture(walk, step, place, worked or own, scope)
        return
    from quire.analysis.conditions import any_arm, arm_conditions  # many playbooks have no arms

    if match.decide_first:
        # If no case holds, the work is left out with the arms.
        conditions = arm_conditions(match, place, scope)
        is_open = all(case.test for case in match.cases)
        part, saved = Cost(), scope.enter(any_arm(match, conditions) if is_open else None)
        worked = _work(walk, step, place, scope, part)
        _capture(walk, step, place, worked or own, scope)
        _arms(walk, match, conditions, place, scope, part)
        decided = joined(condition.label for condition in conditions)
        arm = scope.leave(saved)
        scope.merge([arm], decided, or_none=is_open)
        scope.names.last = either([arm.pipe, scope.names.pipe]) if is_open else arm.last
        cost.add(part.may_be_left_out() if is_open else part)
    else:
        worked = _work(walk, step, place, scope, cost)
        _capture(walk, step, place, worked or own, scope)
        _arms(walk, match, arm_conditions(match, place, scope), place, scope, cost)
    if worked is None and own is None and step.capture is not None:
        # If no arm is chosen, the name keeps the value that it has.
        before = scope.names.stores.get(step.capture.name)
        _capture(walk, step, place, scope.names.pipe if before is None else either([before, scope.names.pipe]), scope)


def _arms(walk: Walk, match: Match, conditions: list[Condition], place: Place, scope: Scope, cost: Cost) -> None:
    costs, arms = [], []
    around = scope.around
    scope.around = (*around, place.step.label)
    for position, (case, condition) in enumerate(zip(match.cases, conditions, strict=True), 1):
        saved, part = scope.enter(condition), Cost()
        sequence(walk, case.body, f"{place.path}/case[{position}]/", scope, part, _step)
        costs.append(part)
        arms.append(scope.leave(saved))
    scope.around = around
    if not arms:
        return
    is_open = all(case.test for case in match.cases)
    cost.add(either_cost([*costs, *([Cost()] if is_open else [])]))
    decided = joined(condition.label for condition in conditions)
    pipes = [arm.pipe for arm in arms] + ([scope.names.pipe] if is_open else [])
    scope.merge(arms, decided, or_none=is_open)
    value = either(pipes)
    scope.names.last = value.labelled(chosen_by(value.label, decided))


def rendered(template: Template, scope: Scope) -> AbstractValue:
    """Return what is known about a text with its values filled in."""
    if len(template.parts) == 1 and isinstance(template.parts[0], Reference):
        value = scope.names.stores.get(template.parts[0].name)
        if value is not None:
            return value
    length: list[Amount] = []
    labels: list[Label] = []
    constant: list[str] | None = []
    for part in template.parts:
        if isinstance(part, str):
            value = literal(part)
        else:
            unfilled = part.raw if part.default is None else part.default
            value = scope.names.stores.get(part.name) or literal(unfilled)
        length.append(value.length)
        labels.append(value.label)
        if constant is not None and value.is_constant and isinstance(value.constant, str):
            constant.append(value.constant)
        else:
            constant = None
    whole = AbstractValue(TEXT, number(1), total(length), joined(labels))
    if constant is not None:
        return replace(whole, constant="".join(constant), is_constant=True)
    return whole


def read_names(template: Template) -> list[str]:
    return [reference.name for reference in template.references()]


def _ask(walk: Walk, step: Step, place: Place, scope: Scope, cost: Cost) -> AbstractValue:
    ask = step.ask
    assert ask is not None  # noqa: S101  the caller has looked
    default = rendered(ask.default, scope).constant if ask.default is not None else None
    words = [rendered(option, scope) for option in ask.options]
    options = tuple(str(word.constant) for word in words) if all(word.is_constant for word in words) else ()
    question = QuestionFact(
        place,
        ask.kind,
        (rendered(ask.prompt, scope), *words),
        tuple(scope.version(name) for name in read_names(ask.prompt)),
        options,
        default if isinstance(default, str) else None,
        scope.fans,
        scope.often,
        bool(scope.conditions),
    )
    answer = walk.ask(question, scope, cost)
    for name in dict.fromkeys((step.number, step.label)):
        scope.keep(f"__elicit_step_{name}", answer)
        tell_part(f"__elicit_step_{name}", entry_of(step, answer), scope)
    tell(step, answer, scope)
    scope.names.last = answer
    return answer


def _work(walk: Walk, step: Step, place: Place, scope: Scope, cost: Cost) -> AbstractValue | None:
    match step.work:
        case Think():
            value = _think(walk, step.work, place, scope, cost)
        case UseTool():
            value = _use_tool(walk, step, step.work, place, scope, cost)
        case _:
            return None
    tell(step, value, scope)
    scope.names.last = value
    return value


def _capture(walk: Walk, step: Step, place: Place, value: AbstractValue | None, scope: Scope) -> None:
    """Keep a result under its name. A type only warns, so it does not narrow what the value can contain."""
    if step.capture is None or value is None:
        return
    name = step.capture.name
    label = value.label.through(name, "", step.span, scope.document)
    stored = replace(value, type=None, label=label)
    if step.capture.field is not None or (step.capture.type is not None and not _is_verdict(value)):
        stored = stored.unanswered()
    if any(declared.name == name for declared in scope.plan.inputs):
        # An input takes precedence over a result of the same name.
        stored = either([scope.names.stores.get(name, stored), stored])
    tell_part(name, entry_of(step, stored), scope)
    walk.note(StoreFact(place, name, scope.keep(name, stored), stored))


def _is_verdict(value: AbstractValue) -> bool:
    """Tell whether the value is a yes or a no, which no type changes."""
    return value.answer is not None and value.answer.kind == "confirm"


def _is_text(value: AbstractValue) -> bool:
    """Tell whether the value is a text that is known and not blank."""
    return value.is_constant and isinstance(value.constant, str) and bool(value.constant.strip())


def _as_text(value: AbstractValue) -> AbstractValue:
    """Return the text that a value of a callee becomes: that of an answer is the answer."""
    if value.answer is not None or (value.is_constant and isinstance(value.constant, str)):
        return value
    return replace(value.unanswered(), fields={}, element=None, is_constant=False, constant=None)


def _think(walk: Walk, work: Think, place: Place, scope: Scope, cost: Cost) -> AbstractValue:
    agent: AgentFact = walk.world.thinker(work.cast)
    prompt = rendered(work.prompt, scope)
    label, length = prompt.label, prompt.length
    if work.preamble is not None:
        before = _preamble(walk, work.preamble, place, scope)
        label, length = label.join(before.label), length.plus(before.length)
        if work.preamble.scheme == "mcp":
            cost.take(round(walk.world.server_seconds(work.preamble.where.partition("/")[0]) * 1000))
    earlier, earlier_length = earlier_results(work.context, place.step, scope)
    budget = work.cast.budget if work.cast is not None and work.cast.budget is not None else walk.world.context_budget
    if budget is not None:
        earlier_length = earlier_length.at_most(budget * 4)
    label = label.join(earlier)
    closing, forced = closing_lengths(work.closing) if work.closing else (0, 0)
    fixed = number(text_length(scope.plan.system) + closing + BETWEEN)
    is_text = any(isinstance(part, str) and part.strip() for part in work.prompt.parts)
    is_fetched = work.preamble is not None and work.preamble.scheme != "variable"
    calls = model_calls(
        cost,
        agent,
        length.plus(earlier_length).plus(fixed),
        place,
        # A text that is fetched may refer to a value many times, so its length does not bound the prompt.
        reads_replies=max(label.integrity, label.chosen) >= MODEL or is_fetched,
        least=int(is_text),
        forced=forced,
    )
    told = walk.told(label, agent.tools, place)
    file = AUTHORED
    if work.preamble is not None and work.preamble.scheme == "file":
        file = rendered(template(work.preamble.where), scope).label
    output = walk.note_model(agent, told, calls, place, scope, prompt_file=file)
    return reply_value(TEXT, agent.reply_tokens, output)


def _preamble(walk: Walk, source: PromptSource, place: Place, scope: Scope) -> AbstractValue:
    """Return a prompt that is fetched: text of a server is from outside, a file is from the workspace. Its own
    references are filled in too, so it reads every value."""
    if source.scheme == "variable":
        return scope.names.stores.get(source.where) or EMPTY
    trace = Trace(f"@prompt({source.scheme}:{source.where})", place.way, place.span, place.document)
    integrity = Integrity.OUTSIDE if source.scheme == "mcp" else Integrity.WORKSPACE
    if source.scheme == "mcp" and walk.world.trusts(source.where.partition("/")[0]):
        integrity = Integrity.WORKSPACE
    everything = scope.names.everything()
    label = source_label(integrity, Privacy.PUBLIC, trace).join(everything.label)
    if source.scheme != "mcp":
        label = label.join(walk.contents.read_file().through(trace.what, place.way, place.span, place.document))
    return sized(TEXT, number(_PROMPT_TOKENS).plus(everything.length), label)


def argument_value(tree: Arguments, scope: Scope) -> AbstractValue:
    """Return what is known about an argument of a tool."""
    match tree:
        case Template():
            return rendered(tree, scope)
        case ValueSlot(reference=reference):
            value = rendered(Template((reference,)), scope)
            return value if _is_verdict(value) or value.type in (NUMBER, BOOL) else _read_as_json(value)
        case tuple():
            parts = [argument_value(part, scope) for part in tree]
            fields = {str(at): part for at, part in enumerate(parts)}
            label = joined(part.label for part in parts)
            return AbstractValue(None, number(len(parts)), total(part.length for part in parts), label, fields)
        case dict():
            fields = {key: argument_value(part, scope) for key, part in tree.items()}
            keys = [rendered(Template((reference,)), scope) for reference in key_references(tree)]
            label = joined(part.label for part in (*fields.values(), *keys))
            return AbstractValue(
                None, number(len(fields)), total(part.length for part in fields.values()), label, fields
            )
    return literal(tree)


def _read_as_json(value: AbstractValue) -> AbstractValue:
    """Return the value that a text is the JSON of: a list has no more items than the text has bytes, and its numbers
    may be written in more characters."""
    most = value.length if value.label.chosen < MODEL else value.parts
    return AbstractValue(None, most, value.length.times(number(PARSED)), value.label)


def argument_names(tree: Arguments) -> list[str]:
    match tree:
        case Template():
            return read_names(tree)
        case ValueSlot(reference=reference):
            return [reference.name]
        case tuple():
            return [name for part in tree for name in argument_names(part)]
        case dict():
            keys = [reference.name for reference in key_references(tree)]
            return keys + [name for part in tree.values() for name in argument_names(part)]
    return []


def _use_tool(walk: Walk, step: Step, work: UseTool, place: Place, scope: Scope, cost: Cost) -> AbstractValue:
    from quire.plan.uses import OWN, OWN_TOOLS  # most playbooks use no tool, and load no table of them

    value = argument_value(work.arguments, scope)
    arguments = dict(value.fields)
    if work.connection == OWN and work.tool not in OWN_TOOLS and walk.world.document(work.tool) is not None:
        return _as_text(walk.call(work.tool, arguments, step, scope, cost))
    reads = tuple(dict.fromkeys(scope.version(name) for name in argument_names(work.arguments)))
    results = []
    for named in walk.world.tools(work.connection, work.tool):
        from quire.analysis.tool_flows import reading

        tool = reading(named, work.tool, work.arguments, walk.world)
        results.append(walk.note_call(tool, arguments, place, scope, cost, value.label, reads=reads))
    return either(results) if results else NULL
