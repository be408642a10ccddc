"""Edits of the steps of pipelines: prompts, stores, arguments, policies for errors, limits, choices and conditions.

Known equivalences, for which no edit is made: a store that nothing reads, a default of a step that does not go on after
a failure, two cases that run the same, and `max_parallel`, which changes only the time that a run takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.expr.syntax import Constant
from quire.plan.built_in_tools import ASK
from quire.plan.nodes import Plan, Reference, Step, Template
from quire.plan.pipeline_work import (
    Agent,
    Block,
    Call,
    Fail,
    Fold,
    ForEach,
    Formula,
    Guard,
    Invoke,
    Literal,
    OnError,
    Parallel,
    Repeat,
    Select,
)
from quire.schema_types import ListOf
from quire.testing.live.structure_hash import structure_hash
from quire.testing.mutation.edits import Edit, changed_literals, shown
from quire.testing.mutation.expressions import negated, span_in, variants
from quire.testing.mutation.formulas import changed_formulas, with_formula
from quire.testing.mutation.kills import Kill
from quire.testing.plan_facts import declared_type

if TYPE_CHECKING:
    from quire.testing.mutation.edits import Site

_ABORT = OnError("abort")


def pipeline_edits(site: Site) -> Iterator[Edit]:
    """Yield every edit of one step of a pipeline, without those of the steps inside it."""
    step = site.step
    work = step.work
    asks = isinstance(work, Invoke) and work.tool == ASK
    if site.can_be_dropped:
        kill = Kill("asked", step.label) if asks else Kill("steps", step.label, value="completed")
        operator = "drop_question" if asks else "drop_step"
        yield Edit(operator, "", f"drops {site.name}", None, kill, step.span)
    if step.capture is not None and step.capture.name in site.reads:
        sentence = f"drops the store {step.capture.name} of {site.name}"
        kill = Kill("stores", step.capture.name)
        yield Edit("drop_capture", step.capture.name, sentence, replace(step, capture=None), kill, site.key("output"))
    if step.guard is not None:
        yield from _guard(site, step.guard)
    match work:
        case Agent():
            yield from _agent(site, work)
        case Invoke():
            yield from _invoke(site, work)
        case Call():
            yield from _call(site, work)
        case Select():
            yield from _select(site, work)
        case Fold():
            yield from _max_items(site, work)
        case ForEach():
            yield from _max_items(site, work)
            yield from _fan(site, work)
        case Parallel():
            yield from _fan(site, work)
            yield from _branches(site, work)
        case Repeat():
            yield from _repeat(site, work)
    yield from _expressions(site)


def result_kill(step: Step) -> Kill:
    """Return the expectation that looks at the value of a step: its store, or the output."""
    return Kill("stores", step.capture.name) if step.capture is not None else Kill("output")


def _expressions(site: Site) -> Iterator[Edit]:
    """Yield the edits of the expressions of a step: each node, and the negation of conditions."""
    step = site.step
    for place, role, formula in changed_formulas(step):
        condition = place in ("when", "until")
        kill = _formula_kill(step, place)
        slug = place.removeprefix("the ").replace(" ", ".")
        found = [*variants(formula)]
        if condition and (whole := negated(formula)) is not None:
            found.append(whole)
        for number, variant in enumerate(found):
            tail = f"{place} of {site.name}"
            sentence = f"negates {tail}" if variant.operator == "negate_condition" else f"{variant.change} in {tail}"
            span = span_in(site.source, formula, variant.span)
            changed = with_formula(step, role, variant.formula)
            yield Edit(variant.operator, f"{slug}.{number}", sentence, changed, kill, span)


def _formula_kill(step: Step, place: str) -> Kill:
    """Return the expectation that shows the value of an expression."""
    if place in ("when", "until"):
        return Kill("steps", step.label)
    if isinstance(step.work, Fail):
        return Kill("error")
    if isinstance(step.work, Invoke) and place != "the default":
        return _invoke_kill(step, step.work)
    return result_kill(step)


def _invoke_kill(step: Step, work: Invoke) -> Kill:
    return Kill("asked", step.label) if work.tool == ASK else Kill("calls", work.tool)


def _guard(site: Site, guard: Guard) -> Iterator[Edit]:
    step = site.step

    def changed(**fields: object) -> Step:
        return replace(step, guard=replace(guard, **fields))

    if guard.when is not None:
        yield Edit(
            "drop_condition",
            "when",
            f"drops when of {site.name}",
            changed(when=None),
            Kill("steps", step.label, value="skipped"),
            site.key("when"),
        )
    if guard.on_error is not None:
        for detail, policy in _other_policies(guard.on_error):
            sentence = f"has on_error {policy} instead of {guard.on_error} in {site.name}"
            span = site.key("on_error")
            yield Edit(
                "change_on_error", detail, sentence, changed(on_error=policy), _policy_kill(guard.on_error), span
            )
    if guard.default is not None and guard.goes_on and not _is_null(guard.default):
        sentence = f"drops the default of {site.name}"
        span = site.key("default")
        kill = result_kill(step)
        yield Edit("drop_default", "guard", sentence, changed(default=None), kill, span)
    if guard.timeout is not None:
        sentence = f"drops the timeout of {site.name}"
        yield Edit("drop_timeout", "", sentence, changed(timeout=None), _timeout_kill(guard), site.key("timeout"))


def _is_null(formula: Formula) -> bool:
    root = formula.compiled.expression.root
    return isinstance(root, Constant) and root.value is None


def _policy_kill(on_error: OnError) -> Kill:
    """Return the expectation for a case in which the step fails as often as it is tried."""
    return Kill("status", value="completed" if on_error.goes_on else "failed")


def _timeout_kill(guard: Guard) -> Kill:
    if guard.goes_on:
        return Kill("status", value="completed")
    return Kill("error", value="(timeout)")


def _other_policies(on_error: OnError) -> Iterator[tuple[str, OnError]]:
    """Yield other policies for a failure, each with a word for the id."""
    match on_error.policy:
        case "continue":
            yield "abort", _ABORT
        case "abort":
            yield "continue", OnError("continue")
        case "retry":
            yield "no_retry", OnError("continue") if on_error.survives else _ABORT
            if on_error.times > 1:
                yield "fewer", replace(on_error, times=on_error.times - 1)
            yield "survives", replace(on_error, survives=not on_error.survives)


def _agent(site: Site, work: Agent) -> Iterator[Edit]:
    step, label = site.step, site.step.label
    seen: dict[str, int] = {}
    for number, part in enumerate(work.prompt.parts):
        if not isinstance(part, Reference) or part.default is not None:
            continue
        earlier = seen.get(part.raw, 0)
        seen[part.raw] = earlier + 1
        fewer = Template(work.prompt.parts[:number] + work.prompt.parts[number + 1 :])
        yield Edit(
            "drop_reference",
            f"{part.name}.{earlier}" if earlier else part.name,
            f"drops {part.raw} from the prompt of {site.name}",
            replace(step, work=replace(work, prompt=fewer)),
            Kill("prompts", label, part.name),
            site.find(part.raw, earlier),
        )
    if work.schema is not None:
        sentence = f"drops the schema {work.schema} of {site.name}"
        without = replace(step, work=replace(work, schema=None))
        yield Edit("drop_schema", "", sentence, without, Kill("prompts", label, value=work.schema), site.key("schema"))


def _invoke(site: Site, work: Invoke) -> Iterator[Edit]:
    step = site.step
    kill = _invoke_kill(step, work)
    for number, (name, argument) in enumerate(work.arguments):
        if not isinstance(argument, Literal):
            continue
        for place, whole, old, new in changed_literals(argument.value):
            arguments = (*work.arguments[:number], (name, Literal(whole)), *work.arguments[number + 1 :])
            where = f"{name}.{place}" if place and not place.startswith("[") else f"{name}{place}"
            yield Edit(
                "change_argument",
                where,
                f"gives {shown(new)} instead of {shown(old)} in the argument {where} of {site.name}",
                replace(step, work=replace(work, arguments=arguments)),
                kill,
                site.find(str(old)) if isinstance(old, str) else site.find(shown(old)),
            )
    if work.schema is not None:
        sentence = f"drops the schema {work.schema} of {site.name}"
        without = replace(step, work=replace(work, schema=None))
        yield Edit("drop_schema", "", sentence, without, Kill("status", value="failed"), site.key("schema"))


def _call(site: Site, work: Call) -> Iterator[Edit]:
    for number, (name, _) in enumerate(work.passes):
        fewer = replace(work, passes=work.passes[:number] + work.passes[number + 1 :])
        sentence = f"does not pass {name} in {site.name}"
        yield Edit("drop_pass", name, sentence, replace(site.step, work=fewer), result_kill(site.step), site.find(name))


def _select(site: Site, work: Select) -> Iterator[Edit]:
    step, cases = site.step, work.cases

    def changed(edited: tuple[tuple[str, Call | Block], ...]) -> Step:
        return replace(step, work=replace(work, cases=edited))

    for number, (name, target) in enumerate(cases):
        kill, span = _target_kill(step, target), site.find(name)
        rest = cases[:number] + cases[number + 1 :]
        yield Edit("drop_arm", name, f"drops the case {name} of {site.name}", changed(rest), kill, span)
        if number + 1 < len(cases) and not _runs_the_same(cases[number + 1][1], target):
            other_name, other = cases[number + 1]
            swapped = (*cases[:number], (name, other), (other_name, target), *cases[number + 2 :])
            sentence = f"swaps the cases {name} and {other_name} of {site.name}"
            yield Edit("swap_arms", name, sentence, changed(swapped), kill, span)
    if work.default is not None:
        kill = result_kill(step) if isinstance(work.default, Formula) else _target_kill(step, work.default)
        without = replace(step, work=replace(work, default=None))
        yield Edit("drop_arm", "default", f"drops the default of {site.name}", without, kill, site.key("default"))


def _runs_the_same(one: Call | Block, other: Call | Block) -> bool:
    """Tell whether two cases do the same, written at two places or once with an alias."""
    return structure_hash(one, ("label",)) == structure_hash(other, ("label",))


def _target_kill(step: Step, target: Call | Block) -> Kill:
    if isinstance(target, Block) and target.body.steps:
        return Kill("steps", target.body.steps[0].label, value="completed")
    return result_kill(step)


def _max_items(site: Site, work: Fold | ForEach) -> Iterator[Edit]:
    if work.max_items is None:
        return
    step, span = site.step, site.key("max_items")
    fails = isinstance(work, ForEach)
    kill = Kill("error", value="max_items") if fails else result_kill(step)

    def changed(most: int | None) -> Step:
        return replace(step, work=replace(work, max_items=most))

    type = declared_type(site.plan, work.source) if isinstance(work.source, Formula) else None
    longest = type.max_items if isinstance(type, ListOf) else None
    if longest is None or longest > work.max_items:
        yield Edit("drop_max_items", "", f"drops max_items of {site.name}", changed(None), kill, span)
    fewer = work.max_items - 1
    if fewer and (longest is None or longest > fewer):
        sentence = f"has max_items {fewer} instead of {work.max_items} in {site.name}"
        enough = Kill("status", value="completed") if fails else kill
        yield Edit("change_max_items", "", sentence, changed(fewer), enough, span)


def _fan(site: Site, work: ForEach | Parallel) -> Iterator[Edit]:
    step, span = site.step, site.key("on_error")
    # A policy that is not written is the default of a `parallel`: there is nothing to change.
    for detail, policy in _other_policies(work.on_error) if span is not None else ():
        sentence = f"has on_error {policy} instead of {work.on_error} in {site.name}"
        changed = replace(step, work=replace(work, on_error=policy))
        yield Edit("change_on_error", detail, sentence, changed, _policy_kill(work.on_error), span)
    if work.default is not None and work.on_error.goes_on:
        without = replace(step, work=replace(work, default=None))
        sentence = f"drops the default of {site.name}"
        yield Edit("drop_default", "fan", sentence, without, result_kill(step), site.key("default"))


def _branches(site: Site, work: Parallel) -> Iterator[Edit]:
    for number, (name, branch) in enumerate(work.branches):
        if len(work.branches) > 1:
            fewer = replace(work, branches=work.branches[:number] + work.branches[number + 1 :])
            sentence = f"drops the branch {name} of {site.name}"
            changed = replace(site.step, work=fewer)
            yield Edit("drop_branch", name, sentence, changed, result_kill(site.step), branch.span)


def _repeat(site: Site, work: Repeat) -> Iterator[Edit]:
    step = site.step
    if work.max > 1:
        sentence = f"goes {work.max - 1} rounds at most instead of {work.max} in {site.name}"
        changed = replace(step, work=replace(work, max=work.max - 1))
        # A run that needs the last round fails without it, or goes on with another value.
        ends = result_kill(step) if work.keeps_last else Kill("status", value="completed")
        kill = replace(ends)
        yield Edit("change_max", "", sentence, changed, kill, site.key("max"))
    last = "fails" if work.keeps_last else "keeps the last value"
    flipped = replace(step, work=replace(work, keeps_last=not work.keeps_last))
    sentence = f"{last} after the last round of {site.name}"
    kill = Kill("status", value="completed" if work.keeps_last else "failed")
    yield Edit("change_on_max", "", sentence, flipped, kill, site.key("on_max"))


def reads_of_pipeline(plan: Plan) -> frozenset[str]:
    """Return the names that some step reads. If a step reads all stores at once, all of them count."""
    names: set[str] = set()
    for _, step in plan.steps():
        paths = [read.path for _, _, formula in changed_formulas(step) for read in formula.compiled.reads()]
        if isinstance(step.work, Agent):
            paths += [tuple(one.name.split(".")) for one in step.work.prompt.references() if one.default is None]
            if step.work.file:
                names |= plan.written
        for path in paths:
            if path == ("ctx",):
                return plan.written
            names.add(path[1] if path[0] in ("ctx", "errors") and len(path) > 1 else path[0])
    return frozenset(names)
