"""Handlers for a run that is not started yet: what a model would be told, and what the run would do at most."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from quire.analysis.flow_paths import flows_of
from quire.analysis.gates import gates_of
from quire.display.commands import run_command
from quire.display.document_json import envelope_data, forecast_data
from quire.display.proof_json import flows_data, gates_data, lock_data
from quire.display.transcript import prompt_data
from quire.engine.declared_inputs import complete_declared, missing_fields
from quire.engine.inputs import complete_inputs, missing_inputs
from quire.errors import BadInputs
from quire.library.foresight import Foresight
from quire.library.lock_state import lock_state
from quire.runs.forecast import forecast
from quire.runs.prompts import prompt_of_directive, prompt_of_document
from quire.server.endpoints import Call, Reply
from quire.server.run_options import options_of
from quire.server.shelf import to_run

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.plan.nodes import Plan
    from quire.server.site import Site
    from quire.values import Value


async def preview_prompt(site: Site, call: Call) -> Reply:
    state = await asyncio.to_thread(site.shelf.one, call.path["id"])
    given = cast("Mapping[str, Value]", call.body.get("inputs") or {})
    return Reply(await asyncio.to_thread(_preview, site, to_run(state), str(call.body.get("step") or ""), given))


def _preview(site: Site, document: Document, step: str, given: Mapping[str, Value]) -> dict[str, Value]:
    runtime = site.runtime
    wrong = _wrong_inputs(document.runnable(), given)
    fitting = {name: value for name, value in given.items() if name not in wrong}
    if document.format == "directive":
        found = prompt_of_directive(runtime.library, runtime.environ, document, fitting)
    else:
        found = prompt_of_document(document, step, fitting, runtime.settings)
    return {
        "label": found.request.label,
        "prompt": prompt_data(found.request),
        "notes": list(found.notes),
        "inputs": dict(wrong),
    }


def _wrong_inputs(plan: Plan, given: Mapping[str, Value]) -> dict[str, str]:
    """Return the problems of given inputs by name, if they are declared. A preview accepts missing inputs."""
    if plan.format != "playbook" and plan.declared is None:
        return {}
    try:
        complete_declared(plan, given) if plan.declared is not None else complete_inputs(plan, given)
    except BadInputs as error:
        missing = {one.name for one in missing_inputs(plan, given)} | {one.name for one in missing_fields(plan, given)}
        return {name: problem for name, problem in error.inputs.items() if name not in missing}
    return {}


async def preflight(site: Site, call: Call) -> Reply:
    state = await asyncio.to_thread(site.shelf.one, call.path["id"])
    document = to_run(state)
    inputs = cast("Mapping[str, Value]", call.body.get("inputs") or {})
    options = options_of(site, call.body)
    found = await forecast(site.runtime, document, inputs, options)
    settings, plan = site.runtime.settings, document.runnable()
    verdict = state.signature.verdict
    by = state.signature.by if document.format == "directive" and verdict and verdict.ok else ""
    command = run_command(
        state.id,
        inputs,
        model=options.model or "",
        budget="" if options.budget is None else f"{options.budget:g}",
        breakpoints=options.breakpoints,
        answers=options.answers,
        limits=options.limits,
        allow=options.allow,
        unattended=options.unattended,
        force=options.force,
        detach=call.body.get("detach") is True,
        reuse=options.reuse,
        as_json=document.format == "pipeline" and document.runnable().declared is None,
    )
    envelope = await asyncio.to_thread(lambda: Foresight(settings).envelope(plan, document.name))
    lock = await asyncio.to_thread(lock_state, settings.workspace, state.path)
    proof = found.proof.proof if found.proof else None
    return Reply(
        {
            **forecast_data(found, envelope),
            "gates": gates_data(gates_of(proof)) if proof else None,
            "flows": flows_data(flows_of(proof)) if proof else None,
            "lock": lock_data(lock),
            "envelope": envelope_data(envelope, settings, options.allow, by),
            "budget": options.budget,
            "command": command,
        }
    )
