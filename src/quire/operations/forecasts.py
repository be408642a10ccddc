"""Operations on a run that is not started yet: preview its prompts, and the most that it would do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import field

from quire.analysis.approvals import gates_of
from quire.analysis.flow_paths import flows_of
from quire.display.document_json import envelope_data, flows_data, forecast_data, gates_data, lock_data
from quire.display.shell_commands import run_command
from quire.display.transcript import prompt_data
from quire.engine.declared_inputs import complete_declared, missing_fields
from quire.engine.inputs import complete_inputs, missing_inputs
from quire.errors import BadInputs
from quire.library.foresight import Foresight
from quire.library.lock_state import lock_state
from quire.operations.documents import OfDocument, signer_of
from quire.operations.field_types import Object, RunOptions, Text, operation, shape
from quire.operations.results import Forecast
from quire.operations.shelf import to_run
from quire.runs.forecast import forecast
from quire.runs.prompts import prompt_of_directive, prompt_of_document

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.operations.host import Host
    from quire.plan.nodes import Plan
    from quire.values import Value


class PreviewPrompt(OfDocument, frozen=True, kw_only=True):
    inputs: Object = field(default_factory=dict)
    step: Text = ""


@operation(
    "The messages that a model would get at a step, with these inputs.",
    PreviewPrompt,
    shape(prompt=Object, notes=list[Any], inputs=Object),
)
async def preview_prompt(host: Host, given: PreviewPrompt) -> Value:
    state = await asyncio.to_thread(host.shelf.one, given.id)
    return await asyncio.to_thread(_preview, host, to_run(state), given.step, given.inputs)


def _preview(host: Host, document: Document, step: str, inputs: Mapping[str, Value]) -> dict[str, Value]:
    runtime = host.runtime
    plan = document.runnable()
    wrong = _wrong_inputs(plan, inputs)
    fitting = {name: value for name, value in inputs.items() if name not in wrong}
    if plan.thread:
        preview = prompt_of_directive(runtime.library, runtime.environ, document, fitting)
    else:
        preview = prompt_of_document(document, step, fitting, runtime.settings)
    return {
        "label": preview.request.label,
        "prompt": prompt_data(preview.request),
        "notes": list(preview.notes),
        "inputs": dict(wrong),
    }


def _wrong_inputs(plan: Plan, inputs: Mapping[str, Value]) -> dict[str, str]:
    """Return the problems of given inputs by name, if they are declared. A preview accepts missing inputs."""
    if plan.thread or plan.infers_inputs:
        return {}
    try:
        complete_declared(plan, inputs) if plan.declared is not None else complete_inputs(plan, inputs)
    except BadInputs as error:
        missing = {input.name for input in missing_inputs(plan, inputs)}
        missing |= {field.name for field in missing_fields(plan, inputs)}
        return {name: problem for name, problem in error.inputs.items() if name not in missing}
    return {}


class Preflight(RunOptions, frozen=True, kw_only=True):
    id: str


@operation(
    "The bounds, the model and the cost of a run, and the reasons why it cannot start. Starts nothing.",
    Preflight,
    Forecast,
)
async def preflight(host: Host, given: Preflight) -> Value:
    state = await asyncio.to_thread(host.shelf.one, given.id)
    document, options = to_run(state), host.caller.options(given)
    foreseen = await forecast(host.runtime, document, given.inputs, options)
    settings, plan = host.runtime.settings, document.runnable()
    command = run_command(
        state.id,
        given.inputs,
        model=options.model or "",
        budget="" if options.budget is None else f"{options.budget:g}",
        breakpoints=options.breakpoints,
        answers=options.answers,
        limits=options.limits,
        allow=options.allow,
        unattended=options.unattended,
        force=options.force,
        detach=given.detach,
        reuse=options.reuse,
        as_json=plan.infers_inputs,
    )
    envelope = await asyncio.to_thread(lambda: Foresight(settings).envelope(plan, document.name))
    lock = await asyncio.to_thread(lock_state, settings.workspace, state.path)
    proof = foreseen.proof.proof if foreseen.proof else None
    return {
        **forecast_data(foreseen, envelope),
        "gates": gates_data(gates_of(proof)) if proof else None,
        "flows": flows_data(flows_of(proof)) if proof else None,
        "lock": lock_data(lock),
        "envelope": envelope_data(envelope, settings, options.allow, signer_of(state, plan)),
        "budget": options.budget,
        "command": command,
    }
