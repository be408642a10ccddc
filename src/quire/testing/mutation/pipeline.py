"""Edits of the steps of pipelines: prompts, stores, arguments, policies for errors, limits, choices and conditions.

Known equivalences, for which no edit is made: a store that nothing reads, a default of a step that does not continue
after a failure, two cases that run the same, and `max_parallel`, which changes only the time that a run takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.expr.syntax import Constant
from quire.plan.built_in_tools import ASK
from quire.plan.parts import formulas, with_formulas
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
from quire.testing.live.receipts import structure_hash
from quire.testing.mutation.edits import Edit, changed_literals, prompt_edits, shown, with_item, without
from quire.testing.mutation.expressions import negated, span_in, variants
from quire.testing.mutation.kills import Kill
from quire.testing.plan_facts import declared_type

if TYPE_CHECKING:
    from quire.plan.nodes import Plan, Step
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
        sentence = f"drops the variable {step.capture.name} of {site.name}"
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
        changes = [*variants(formula)]
        if condition and (whole := negated(formula)) is not None:
            changes.append(whole)
        for number, variant in enumerate(changes):
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
        kill = Kill("steps", step.label, value="skipped")
        sentence = f"drops when of {site.name}"
        yield Edit("drop_condition", "when", sentence, changed(when=None), kill, site.key("when"))
    if guard.on_error is not None:
        for detail, policy in _other_policies(guard.on_error):
            yield _policy_edit(site, guard.on_error, detail, policy, changed(on_error=policy))
    if guard.default is not None and guard.goes_on and not _is_null(guard.default):
        sentence = f"drops the default of {site.name}"
        yield Edit("drop_default", "guard", sentence, changed(default=None), result_kill(step), site.key("default"))
    if guard.timeout is not None:
        kill = Kill("status", value="completed") if guard.goes_on else Kill("error", value="(timeout)")
        sentence = f"drops the timeout of {site.name}"
        yield Edit("drop_timeout", "", sentence, changed(timeout=None), kill, site.key("timeout"))


def _is_null(formula: Formula) -> bool:
    root = formula.compiled.expression.root
    return isinstance(root, Constant) and root.value is None


def _policy_edit(site: Site, old: OnError, detail: str, policy: OnError, changed: Step) -> Edit:
    """Return the edit of a policy. It takes a case in which the step fails as often as it is tried."""
    kill = Kill("status", value="completed" if old.goes_on else "failed")
    sentence = f"has on_error {policy} instead of {old} in {site.name}"
    return Edit("change_on_error", detail, sentence, changed, kill, site.key("on_error"))


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
    yield from prompt_edits(site, work.prompt, defaults=False)
    if work.schema is not None:
        yield _schema_edit(site, work.schema, Kill("prompts", site.step.label, value=work.schema))


def _schema_edit(site: Site, schema: str, kill: Kill) -> Edit:
    sentence = f"drops the schema {schema} of {site.name}"
    return Edit("drop_schema", "", sentence, site.with_work(schema=None), kill, site.key("schema"))


def _invoke(site: Site, work: Invoke) -> Iterator[Edit]:
    kill = _invoke_kill(site.step, work)
    for number, (name, argument) in enumerate(work.arguments):
        if not isinstance(argument, Literal):
            continue
        for place, whole, old, new in changed_literals(argument.value):
            where = f"{name}.{place}" if place and not place.startswith("[") else f"{name}{place}"
            yield Edit(
                "change_argument",
                where,
                f"gives {shown(new)} instead of {shown(old)} in the argument {where} of {site.name}",
                site.with_work(arguments=with_item(work.arguments, number, (name, Literal(whole)))),
                kill,
                site.find(old if isinstance(old, str) else shown(old)),
            )
    if work.schema is not None:
        yield _schema_edit(site, work.schema, Kill("status", value="failed"))


def _call(site: Site, work: Call) -> Iterator[Edit]:
    for number, (name, _) in enumerate(work.passes):
        fewer = site.with_work(passes=without(work.passes, number))
        sentence = f"does not pass {name} in {site.name}"
        yield Edit("drop_pass", name, sentence, fewer, result_kill(site.step), site.find(name))


def _select(site: Site, work: Select) -> Iterator[Edit]:
    step, cases = site.step, work.cases
    for number, (name, target) in enumerate(cases):
        kill, span = _target_kill(step, target), site.find(name)
        fewer = site.with_work(cases=without(cases, number))
        yield Edit("drop_arm", name, f"drops the case {name} of {site.name}", fewer, kill, span)
        if number + 1 < len(cases) and not _runs_the_same(cases[number + 1][1], target):
            other_name, other = cases[number + 1]
            swapped = (*cases[:number], (name, other), (other_name, target), *cases[number + 2 :])
            sentence = f"swaps the cases {name} and {other_name} of {site.name}"
            yield Edit("swap_arms", name, sentence, site.with_work(cases=swapped), kill, span)
    if work.default is not None:
        kill = result_kill(step) if isinstance(work.default, Formula) else _target_kill(step, work.default)
        sentence = f"drops the default of {site.name}"
        yield Edit("drop_arm", "default", sentence, site.with_work(default=None), kill, site.key("default"))


def _runs_the_same(case: Call | Block, other: Call | Block) -> bool:
    """Tell whether two cases do the same, written at two places or once with an alias."""
    return structure_hash(case, ("label",)) == structure_hash(other, ("label",))


def _target_kill(step: Step, target: Call | Block) -> Kill:
    if isinstance(target, Block) and target.body.steps:
        return Kill("steps", target.body.steps[0].label, value="completed")
    return result_kill(step)


def _max_items(site: Site, work: Fold | ForEach) -> Iterator[Edit]:
    if work.max_items is None:
        return
    span, fails = site.key("max_items"), isinstance(work, ForEach)
    type = declared_type(site.plan, work.source) if isinstance(work.source, Formula) else None
    longest = type.max_items if isinstance(type, ListOf) else None
    if longest is None or longest > work.max_items:
        kill = Kill("error", value="max_items") if fails else result_kill(site.step)
        sentence = f"drops max_items of {site.name}"
        yield Edit("drop_max_items", "", sentence, site.with_work(max_items=None), kill, span)
    fewer = work.max_items - 1
    if fewer and (longest is None or longest > fewer):
        kill = Kill("status", value="completed") if fails else result_kill(site.step)
        sentence = f"has max_items {fewer} instead of {work.max_items} in {site.name}"
        yield Edit("change_max_items", "", sentence, site.with_work(max_items=fewer), kill, span)


def _fan(site: Site, work: ForEach | Parallel) -> Iterator[Edit]:
    # A policy that is not written is the default of a `parallel`: nothing can change.
    for detail, policy in _other_policies(work.on_error) if site.key("on_error") is not None else ():
        yield _policy_edit(site, work.on_error, detail, policy, site.with_work(on_error=policy))
    if work.default is not None and work.on_error.goes_on:
        sentence, kill = f"drops the default of {site.name}", result_kill(site.step)
        yield Edit("drop_default", "fan", sentence, site.with_work(default=None), kill, site.key("default"))


def _branches(site: Site, work: Parallel) -> Iterator[Edit]:
    for number, (name, branch) in enumerate(work.branches if len(work.branches) > 1 else ()):
        fewer = site.with_work(branches=without(work.branches, number))
        sentence = f"drops the branch {name} of {site.name}"
        yield Edit("drop_branch", name, sentence, fewer, result_kill(site.step), branch.span)


def _repeat(site: Site, work: Repeat) -> Iterator[Edit]:
    if work.max > 1:
        sentence = f"goes {work.max - 1} rounds at most instead of {work.max} in {site.name}"
        # A run that needs the last round fails without it, or continues with another value.
        kill = result_kill(site.step) if work.keeps_last else Kill("status", value="completed")
        yield Edit("change_max", "", sentence, site.with_work(max=work.max - 1), kill, site.key("max"))
    last = "fails" if work.keeps_last else "keeps the last value"
    sentence = f"{last} after the last round of {site.name}"
    kill = Kill("status", value="completed" if work.keeps_last else "failed")
    flipped = site.with_work(keeps_last=not work.keeps_last)
    yield Edit("change_on_max", "", sentence, flipped, kill, site.key("on_max"))


def reads_of_pipeline(plan: Plan) -> frozenset[str]:
    """Return the names that some step reads. If a step reads all stores at once, all of them count."""
    names: set[str] = set()
    for _, step in plan.steps():
        paths = [read.path for _, _, formula in changed_formulas(step) for read in formula.compiled.reads()]
        if isinstance(step.work, Agent):
            paths += [
                tuple(reference.name.split("."))
                for reference in step.work.prompt.references()
                if reference.default is None
            ]
            if step.work.file:
                names |= plan.written
        for path in paths:
            if path == ("ctx",):
                return plan.written
            names.add(path[1] if path[0] in ("ctx", "errors") and len(path) > 1 else path[0])
    return frozenset(names)


_PLACES = {"when": "when", "instead": "the default", "source": "over", "on": "on", "init": "init", "until": "until"}
"""The words for roles; other roles are the word itself: `the value`, `the argument city`."""


def changed_formulas(step: Step) -> Iterator[tuple[str, str, Formula]]:
    """Yield the place, the role and the expression for each one of a step itself. A default that never counts, because
    a failure ends the run, is left out."""
    guard, work = step.guard, step.work
    for role, formula in formulas(step):
        fan_ends = role == "default" and isinstance(work, ForEach | Parallel) and not work.on_error.goes_on
        run_ends = role == "instead" and guard is not None and not guard.goes_on
        if not (fan_ends or run_ends):
            yield _place(role), role, formula


def with_formula(step: Step, role: str, formula: Formula) -> Step:
    """Return the step with another expression in a role."""
    return with_formulas(step, lambda name, old: formula if name == role else old)


def _place(role: str) -> str:
    """Return the words for a role: `the passed letter` for `cases[urgent].passes[letter]`."""
    if role.startswith("arguments["):
        return f"the argument {role.removeprefix('arguments[').removesuffix(']')}"
    _, passed, name = role.rpartition("passes[")
    return f"the passed {name.removesuffix(']')}" if passed else _PLACES.get(role, f"the {role}")
