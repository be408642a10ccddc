"""Walk through a playbook's plan: pure, without input or output, one request at a time.

The walk reads no clock, draws no random number and keeps no state outside its scope; given the same answers, it makes
the same requests again. Therefore a journal is enough to restore a run.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

from quire.engine.capture import artifact_problem, artifact_text, capture_text
from quire.engine.earlier_results import Entry
from quire.engine.interpreter.playbook.steps import PlaybookScope, ask, think, use_tool
from quire.engine.premises import STEP, WORK, PureWork
from quire.engine.requests import Boundary, Emit, Request, Walk, WorkCheck
from quire.errors import StepFailed
from quire.formats.playbook.syntax import ARTIFACT_TYPES
from quire.plan.nodes import SEMANTICS_VERSION, Case, Match, Plan, Sequence, Step, Think, UseTool
from quire.values import Value, text_or_json

if TYPE_CHECKING:
    from quire.engine.interpreter.callees import Environment


def interpret(
    plan: Plan,
    inputs: Mapping[str, str],
    *,
    context_budget: int | None = None,
    prefix: str = "",
    setting: Environment | None = None,
) -> Walk:
    """Run a plan on complete inputs. Its result is the output of the last executed step, or the one that the document
    names, with the artifact if that differs from the output.

    The artifact does not contain the object that a model was told to end its reply with, for `extract`, nor a fence
    around all of it. A last step that writes a file gives its content. `prefix` begins all paths; `setting` has the
    documents that can be called as tools.
    """
    work = setting.work if setting is not None else PureWork()
    rules = setting.rules if setting is not None else SEMANTICS_VERSION
    scope = PlaybookScope(plan, dict(inputs), context_budget, setting=setting, work=work, rules=rules)
    yield from _sequence(plan.body, prefix, scope)
    if plan.artifact and plan.artifact.source:
        yield from _take_source(plan.artifact.source, prefix, scope)
    artifact_type, artifact = "", scope.shown
    if plan.artifact and not plan.artifact.type.empty:
        artifact_type = scope.render(plan.artifact.type).strip().lower()
        if artifact_type not in ARTIFACT_TYPES:
            message = f"{artifact_type!r} is not an artifact type ({', '.join(ARTIFACT_TYPES)})"
            yield Emit("warning", f"{prefix}artifact", "", {"message": message})
        artifact = artifact_text(scope.shown, artifact_type)
        if message := artifact_problem(artifact, artifact_type):
            yield Emit("warning", f"{prefix}artifact", "", {"message": message})
    result: dict[str, Value] = {"output": scope.result, "artifact_type": artifact_type, "named": dict(scope.named)}
    if artifact != scope.result:
        result["artifact"] = artifact
    return result


def _take_source(name: str, prefix: str, scope: PlaybookScope) -> Generator[Request, Any, None]:
    """Make the result of the run the one of that name, or of that label; if there is none, it stays the last one."""
    if name in scope.named:
        scope.result = scope.shown = scope.named[name]
    elif scope.source is not None:
        scope.result, scope.shown = scope.source
    else:
        message = f"the artifact comes from {name}, which has no result in this run: the last result is taken instead"
        yield Emit("warning", f"{prefix}artifact", "", {"message": message})


def _sequence(sequence: Sequence, prefix: str, scope: PlaybookScope) -> Generator[Request, Any, str | None]:
    """Return the output of the last step that did something, or None."""
    last: str | None = None
    for step in sequence.steps:
        output = yield from _step(step, f"{prefix}{step.position}", scope)
        last = output if output is not None else last
    return last


def _step(step: Step, path: str, scope: PlaybookScope) -> Generator[Request, Any, str | None]:
    taken = step.capture.field if step.capture else None
    yield Emit("step_started", path, step.label, {"title": step.title}, {"extract": taken} if taken else {})
    try:
        scope.work.used += STEP
        if scope.work.due(f"{path}{WORK}"):
            yield WorkCheck(f"{path}{WORK}", step.label, scope.work)
        output = yield from _perform(step, path, scope)
    except StepFailed as error:
        error.label = error.label or step.label
        error.path = error.path or path
        yield Emit("step_failed", path, step.label, {"title": step.title, "kind": error.kind, "message": error.message})
        raise
    overrides: Mapping[str, Value] = yield Boundary.after(path, step.label)
    for name, value in overrides.items():
        # If set in the run of a pipeline that calls this playbook, it may be any value.
        emit = scope.override(path, step.label, name, text_or_json(value))
        if emit:
            yield emit
    return output


def _perform(step: Step, path: str, scope: PlaybookScope) -> Generator[Request, Any, str | None]:
    """Perform a step: its question, a `match` that decides first, the work, a `match` on the work, and one arm."""
    before = len(scope.entries)
    own: str | None = None
    if step.ask:
        own = yield from ask(step, step.ask, path, scope)
    chosen: tuple[int, Case] | None = None
    if step.match and step.match.decide_first:
        chosen = _choose(step.match, scope)
        if chosen is None:
            scope.drop_entries(before)
            yield Emit("step_skipped", path, step.label, {"title": step.title})
            return None
    displayed: str | None = None
    written: str | None = None
    own_shown = ""
    match step.work:
        case Think():
            reply = yield from think(step, step.work, path, scope, before)
            if reply is not None or own is None or scope.rules < 4:
                own = reply or ""
                scope.add_entry(Entry(step.label, step.title, own))
        case UseTool():
            own, written = yield from use_tool(step, step.work, path, scope)
            scope.add_entry(Entry(step.label, step.title, own))
        case None:
            if not (step.ask or step.match):
                own = ""  # a step that consists of its heading alone
        case _:
            raise TypeError(f"a playbook has no {type(step.work).__name__}")
    if own is not None:
        displayed = yield from _capture(step, path, own, scope, before)
        # A reply that consists of that object alone is shown as it is.
        scope.result, scope.shown = own, displayed or own
        if written is not None and scope.rules > 1:
            scope.shown = written
        own_shown = scope.shown
    if step.match and not step.match.decide_first:
        chosen = _choose(step.match, scope)
    output = own
    if chosen:
        number, case = chosen
        scope.around = step.label
        last = yield from _sequence(case.body, f"{path}/case[{number}]/", scope)
        scope.around = ""
        if own is None:
            output = last
            displayed = (yield from _capture(step, path, last, scope, before)) if last is not None else None
            if displayed and scope.result == last:
                scope.shown = displayed
            own_shown = scope.shown
    if output is not None and scope.plan.artifact and scope.plan.artifact.source == step.label:
        scope.source = output, own_shown
    shown = {"output": output or "", "displayed": (displayed if displayed is not None else output) or ""}
    yield Emit("step_completed", path, step.label, {"title": step.title}, shown)
    return output


def _capture(step: Step, path: str, text: str, scope: PlaybookScope, before: int) -> Generator[Request, Any, str]:
    """Store the result under its name and return the text that a person is shown. The entries of the step begin at
    `before`."""
    if step.capture is None:
        return text
    cut = scope.cut and isinstance(step.work, Think)
    captured = capture_text(step.capture, text, scope.rules, cut=cut)
    if len(scope.entries) > before:
        scope.captured[step.capture.name] = len(scope.entries) - 1
    yield scope.name(path, step.label, step.capture.name, captured.value)
    if captured.warning:
        yield Emit("warning", f"{path}/output", step.label, {"message": captured.warning})
    return text if isinstance(step.work, UseTool) else captured.displayed


def _choose(match: Match, scope: PlaybookScope) -> tuple[int, Case] | None:
    for number, case in enumerate(match.cases, 1):
        if case.test is None:
            return number, case
        value = scope.lookup(case.test.variable) or ""
        if (value == case.test.value) == (case.test.operator == "=="):
            return number, case
    return None
