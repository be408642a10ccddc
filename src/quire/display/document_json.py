"""JSON of documents for `quire show --json` and the API: the outline, and the proof with its numbers, their words and
footnotes, its approvals, data flows and the lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from quire.analysis.amounts import written
from quire.analysis.lock.difference_words import told
from quire.diagnostics import Severity
from quire.display.flowchart_marks import effect_text
from quire.display.lock_diff import built_in_name, diff_data
from quire.display.proof import NAMES, Footnotes, Seen, assumed_text, gate_text, proven_text, quantity_data
from quire.plan.bounds import COUNTED, PlanBounds, Range
from quire.plan.pipeline_work import Invoke, Literal
from quire.schema import Kind, Ref, Simple
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.analysis.approvals import Gate
    from quire.analysis.assumptions import Assumptions
    from quire.analysis.flow_paths import Flow
    from quire.analysis.quantities import Quantity
    from quire.engine.records import RunRow
    from quire.library.document import Document
    from quire.library.document_state import DocumentState, Signature
    from quire.library.library import Library
    from quire.library.lock_state import LockState
    from quire.plan.envelope import CapabilityEnvelope
    from quire.plan.nodes import Plan, Step
    from quire.runs.earlier_runs import UsageSeen
    from quire.runs.forecast import Forecast
    from quire.runs.proven import RunProof
    from quire.values import Value
    from quire.workspace.settings import Settings


_ONE_LINE = 120
"""Most characters of a text that is asked for on one line."""
_LONG = 80
"""Most characters of a formula in a line of a list. `quire show` has all of it."""
_NAMES = {"model_calls": "model call", "tool_calls": "tool call", "questions": "question", "threads": "thread"}


def document_row(state: DocumentState, last: RunRow | None) -> dict[str, Value]:
    """Return a document as a list shows it. All keys of the list are defined here."""
    plan = state.document.plan if state.document else None
    return {
        "id": state.id,
        "title": state.title,
        "format": state.format or None,
        "description": plan.description if plan else "",
        "runnable": plan is not None,
        "errors": state.errors,
        "warnings": state.warnings,
        "hints": state.count(Severity.LINT, Severity.NOTE),
        "error": state.error or None,
        "signature": signature_data(state.signature),
        "bound": bound_words(state.bounds.model_calls, "model_calls") if state.bounds else None,
        "last_run": {"id": last.id, "status": str(last.status), "updated_at": last.updated_at, "cost": last.cost}
        if last
        else None,
    }


def signature_data(signature: Signature) -> dict[str, Value]:
    """Return the verdict on a signature. `state` is one of the outcomes of verifying, or `signed`, or `unknown`."""
    verdict = signature.verdict
    state = "unknown" if verdict is None else "signed" if verdict.ok else verdict.outcome.value
    refused = not (verdict and verdict.ok) and (signature.required or signature.claimed)
    return {
        "state": state,
        "required": signature.required,
        "refused": refused,
        "key": (verdict.key_id if verdict else "") or None,
        "by": signature.by or None,
        "message": signature.message or None,
    }


def bound_words(count: Range, counted: str) -> str:
    """Return a bound in words: `≤ 12 model calls`, `3 model calls`, `no model calls`, `≤ 2·|rows| model calls`, `any
    number of model calls`."""
    name = _NAMES[counted]
    if count.most is None and count.formula:
        return f"≤ {count.formula if len(count.formula) <= _LONG else '(a long formula)'} {name}s"
    if count.most is None:
        return f"any number of {name}s"
    if not count.most:
        return f"no {name}s"
    sign = "" if count.least == count.most else "≤ "
    return f"{sign}{count.most:,} {pluralize(name, count.most)}"


def bounds_data(bounds: PlanBounds) -> dict[str, Value]:
    """Return bounds as `quire show --json` has them, each with its words."""
    from quire.display.outline import range_data

    counts: dict[str, Value] = {
        name: {**range_data(count), "words": bound_words(count, name)}
        for name in COUNTED
        if (count := cast("Range", getattr(bounds, name)))
    }
    return {**counts, "unknown": list(bounds.unknown), "sentence": _sentence(bounds)}


def _sentence(bounds: PlanBounds) -> str:
    """Return the bounds as one sentence. Things that cannot happen are left out, except model calls."""
    parts = [
        bound_words(count, name).removeprefix("≤ ")
        for name in ("model_calls", "tool_calls")
        if (count := cast("Range", getattr(bounds, name))).most != 0 or name == "model_calls"
    ]
    sure = bounds.model_calls.least == bounds.model_calls.most and bounds.tool_calls.least == bounds.tool_calls.most
    endless = bounds.model_calls.most is None and not bounds.model_calls.formula
    words = f"makes {'' if sure or endless else 'at most '}{' and '.join(parts)}"
    if bounds.questions.most != 0:
        words += f", asks {bound_words(bounds.questions, 'questions').replace('≤', 'at most')}"
    if bounds.threads.most != 0:
        words += f", starts {bound_words(bounds.threads, 'threads').replace('≤', 'at most')}"
    return words


def inputs_data(document: Document) -> dict[str, Value]:
    """Return the inputs as JSON Schema. `x-lines` marks a text that may have several lines, `x-typed` an input whose
    values are JSON of its type: inputs of playbooks and directives may also be given as texts."""
    from quire.library.interface import input_schema

    schema = input_schema(document)
    properties = cast("dict[str, dict[str, Value]]", schema["properties"])
    for item in document.runnable().inputs:
        if item.type == "text" and item.name in properties:
            properties[item.name]["x-lines"] = True
    for field in document.runnable().declared or ():
        made = properties[field.name]
        made["x-typed"] = True
        match field.type:
            case Ref():
                made["type"] = "object"
            case Simple(kind=Kind.STRING, pattern=None, max_length=most) if most is None or most > _ONE_LINE:
                made["x-lines"] = True
    return schema


def steps_data(plan: Plan) -> list[Value]:
    """Return all steps in the order of the document, each with the facts for a form: if it can ask a model, if a run
    can stop after it, and the question that it asks a person."""
    from quire.plan.descriptions import step_name

    stops = plan.stops()
    return [
        {
            "path": path,
            "label": step.label,
            "title": step_name(step),
            "asks_model": step.work is not None and step.work.asks_model,
            "stops": path in stops,
            "question": _question(step),
        }
        for path, step in plan.steps()
    ]


def _question(step: Step) -> Value:
    from quire.display.outline import ask_data

    if step.ask is not None:
        return ask_data(step.ask)
    if isinstance(step.work, Invoke) and step.work.tool == "ask":
        arguments = {name: argument.value for name, argument in step.work.arguments if isinstance(argument, Literal)}
        options = arguments.get("options")
        return {
            "kind": str(arguments.get("type", "input")),
            "prompt": str(arguments.get("prompt", "")),
            "options": [str(option) for option in options] if isinstance(options, list | tuple) else [],
            "default": arguments.get("default"),
        }
    return None


def envelope_data(
    envelope: CapabilityEnvelope, settings: Settings, allow: Sequence[str], signed_by: str = ""
) -> dict[str, Value]:
    """Return the permissions that a document needs, and who grants each. `signed_by` is the owner of the key that has
    signed a directive: the signature grants what the directive asks for. The page grants nothing: `command` does."""
    from quire.display.shell_commands import shell_line
    from quire.workspace.grants import granted_by

    needs: list[Value] = []
    for need in envelope.needs:
        by = f"the signature of {signed_by}" if signed_by else granted_by(settings, need.capability, allow)
        tool = "" if by else built_in_name(need.capability)
        needs.append(
            {
                "capability": need.capability,
                "steps": list(need.steps),
                "class": need.effect,
                "tier": need.tier or None,
                "details": list(need.details),
                "granted_by": by or None,
                "command": shell_line("serve", "--allow", tool) if tool else None,
            }
        )
    return {"capabilities": needs, "unknown": list(envelope.unknown)}


def forecast_data(forecast: Forecast, envelope: CapabilityEnvelope) -> dict[str, Value]:
    """Return what is known about a run before its start. Null as the most means that no bound is known."""
    from quire.display.preflight_line import preflight_line

    proof = forecast.proof
    return {
        "line": preflight_line(proof.quantities, proof.sizes, envelope) if proof else None,
        "proof": run_numbers_data(proof) if proof else None,
        "ready": forecast.ready,
        "model": {"name": forecast.model.spec, "why": forecast.model.reason} if forecast.model else None,
        "bounds": bounds_data(forecast.bounds),
        "price": {"most": forecast.price.most, "why": forecast.price.why or None},
        "limits": dict(forecast.limits),
        "inputs": dict(forecast.inputs),
        "missing": list(forecast.missing),
        "problems": list(forecast.problems),
        "denied": list(forecast.denied),
        "warnings": list(forecast.warnings),
    }


def outlined(
    document: Document, library: Library | None = None, environ: Mapping[str, str] | None = None
) -> dict[str, Value]:
    """Return the outline of a document that can run: its summary, inputs and steps.

    A directive is composed with what it extends, which needs the library; an input without a value has its name in
    brackets. Raises `CannotStart` for a directive that cannot be composed.
    """
    plan = document.runnable()
    if plan.thread:
        from quire.display.outline_directive import directive_data
        from quire.library.survey import survey

        assert library is not None  # noqa: S101  # the caller has one for directives
        return directive_data(survey(library, environ or {}, document, {}))
    if plan.format == "pipeline":
        from quire.display.outline_pipeline import pipeline_data
        from quire.formats.pipeline.inputs import further_inputs, needed_inputs
        from quire.library.lookup import tree_of

        tree = tree_of(document)
        return pipeline_data(plan, needed_inputs(tree), further_inputs(tree))
    from quire.display.outline import outline_data

    return outline_data(plan)


_STANDINGS = {
    "none": "This workspace has no quire.lock.",
    "unreadable": "quire.lock cannot be read.",
    "new": "quire.lock has no entry of this document: its permissions were never reviewed.",
    "equal": "The document may do what quire.lock says, and no more.",
    "stale": "The document has changed since it was locked. It may do no more than before.",
    "wider": "The document may do more than quire.lock says.",
}


class _Kept(Footnotes):
    """Footnotes that are kept apart from the text."""

    def mark(self, *notes: str) -> str:
        super().mark(*notes)
        return ""


def numbers_data(
    quantities: Sequence[Quantity],
    sizes: Mapping[str, int],
    assumed: Assumptions | None = None,
    seen: Seen | None = None,
) -> dict[str, Value]:
    """Return the numbers of a proof by name. `words` are for people, `notes` the premises that they rest on; `sizes`
    are put into the formulas for `estimate`, and `assumed` for the words beside them."""
    guessed = assumed.sizes(size for quantity in quantities for size in quantity.most.sizes) if assumed else {}
    numbers: dict[str, Value] = {}
    for quantity in quantities:
        notes = _Kept()
        words = proven_text(quantity, notes)
        numbers[quantity.name] = {
            **quantity_data(quantity, sizes),
            "title": NAMES.get(quantity.name, quantity.name),
            "words": words,
            "notes": list(notes.notes),
            "assumed": (assumed_text(quantity, guessed) or None) if guessed else None,
            "seen": (seen.text(quantity.name) or None) if seen is not None and seen.runs else None,
        }
    return numbers


def proof_data(
    quantities: Sequence[Quantity], model: str, assumed: Assumptions, seen: UsageSeen, unknown: Iterable[str]
) -> dict[str, Value]:
    """Return the section `proof` of a document."""
    symbols = [size for quantity in quantities for size in quantity.most.sizes]
    sizes = assumed.sizes(symbols)
    shown = Seen(seen.runs, {name: spread.p95 for name, spread in seen.amounts.items()})
    return {
        "model": model or None,
        "numbers": numbers_data(quantities, sizes, assumed, shown),
        "assumed": dict(sizes),
        "assumed_words": str(assumed.used(symbols)) or None,
        "seen_runs": seen.runs,
        "unknown": list(unknown),
    }


def run_numbers_data(proof: RunProof) -> dict[str, Value]:
    """Return the numbers of a run that is not started yet, with the sizes of its inputs put into the formulas."""
    sized = [with_sizes(quantity, proof.sizes) for quantity in proof.quantities]
    used = {size for quantity in proof.quantities for size in quantity.most.sizes}
    return {
        "numbers": numbers_data(sized, {}),
        "formulas": {
            quantity.name: quantity.most.text(partial(written, unit=quantity.unit))
            for quantity in proof.quantities
            if quantity.most.sizes
        },
        "sizes": {name: count for name, count in proof.sizes.items() if name in used},
    }


def with_sizes(quantity: Quantity, sizes: Mapping[str, int]) -> Quantity:
    """Return a number with known sizes in its formulas. The ceiling of a number that cannot reach it is left out."""
    sized = quantity.with_sizes(sizes)
    count = sized.most.as_number
    reached = sized.ceiling is not None and (count is None or count > sized.ceiling.most)
    return sized if reached else replace(sized, ceiling=None)


def gates_data(gates: Iterable[Gate]) -> list[Value]:
    """Return the effects that change something, each with the questions before it."""
    return [
        {
            "effect": gate.key,
            "step": gate.way,
            "tool": gate.tool,
            "class": gate.effect.tool.effect,
            "tier": gate.effect.tool.tier,
            "by_model": gate.effect.by_model,
            "words": effect_text(gate.effect),
            "verdict": gate.verdict,
            "gate": gate_text(gate),
            "questions": [{"step": question.place.way, "kind": question.kind} for question in gate.questions],
            "shown": list(gate.shown),
        }
        for gate in gates
    ]


def flows_data(flows: Iterable[Flow]) -> list[Value]:
    """Return the ways of text from outside, each with all places that it passes."""
    return [
        {
            "kind": flow.kind,
            "text": flow.text,
            "acts": flow.acts,
            "step": flow.place.way,
            "sink": flow.sink,
            "places": [
                {"step": place.step or None, "what": place.what, "document": place.document or None}
                for place in flow.trace.way()
            ],
        }
        for flow in flows
    ]


def lock_data(state: LockState) -> dict[str, Value]:
    """Return how a document stands to the lock, with each difference in words."""
    data = diff_data(state.changes, state.assumed)
    changes = data["changes"]
    words = [told(change) for change in state.changes]
    listed = zip(changes, words, strict=True) if isinstance(changes, list) else ()
    return {
        "standing": state.standing,
        "words": _STANDINGS[state.standing],
        "problem": state.problem or None,
        "changes": [{**change, "words": words} for change, words in listed if isinstance(change, dict)],
    }
