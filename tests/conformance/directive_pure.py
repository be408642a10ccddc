"""Directive cases of the kit that need no thread: inputs, returns, hooks, limits and the choice of a model."""

from __future__ import annotations

from typing import Any

from quire.engine.inputs import resolve_inputs
from quire.engine.interpreter.thread.budgets import Cost, Limits, exceeded, resolve_limits
from quire.engine.interpreter.thread.hooks import condition_holds, fill_params
from quire.engine.interpreter.thread.own_tools import returns_block
from quire.errors import QuireError
from quire.formats.directive.lower import thread
from quire.formats.directive.parse import parse
from quire.models.tiers import choose
from quire.plan.templates import fill
from quire.plan.thread import Parameter, Thread
from quire.plan.vocabulary import LIMIT_ALIASES
from quire.source import Source

_DIRECTIVE = '# T\n\n```xml\n<directive name="d" version="1.0.0">\n{}\n</directive>\n```\n'


def interpolate(given: dict[str, Any]) -> dict[str, Any]:
    return {"text": fill(given["template"], given["inputs"])}


def inputs(given: dict[str, Any]) -> dict[str, Any]:
    declared = _thread(given.get("inputs_xml") or "").inputs
    try:
        return {"resolved": resolve_inputs(declared, given["params"])}
    except QuireError as error:
        return {"error": str(error)}


def returns(given: dict[str, Any]) -> dict[str, Any]:
    if "outputs_dict" in given:
        named = given["outputs_dict"] or {}
        outputs = tuple(Parameter(name, description=text or "") for name, text in named.items())
    else:
        outputs = _thread(given.get("outputs_xml") or "").outputs
    return {"returns": returns_block(outputs)}


def hook_condition(given: dict[str, Any]) -> dict[str, Any]:
    return {"matches": condition_holds(given["condition"] or {}, given["context"])}


def hook_params(given: dict[str, Any]) -> dict[str, Any]:
    return {"value": fill_params(given["value"], given["context"])}


def limits(given: dict[str, Any]) -> dict[str, Any]:
    declared = {**_thread(_cost_element(given.get("cost") or {})).limits, **(given["directive"] or {})}
    parent = None if given.get("parent") is None else _limits(given["parent"])
    try:
        return {"resolved": resolve_limits(declared, given.get("overrides") or {}, parent).as_value()}
    except QuireError as error:
        return {"error": str(error)}


def limit_check(given: dict[str, Any]) -> dict[str, Any]:
    known = set(Cost.__struct_fields__)
    cost = Cost(**{name: value for name, value in given["cost"].items() if name in known})
    event = exceeded(_limits(given["limits"]), cost)
    return {"event": event.as_value() if event else None}


def model(given: dict[str, Any]) -> dict[str, Any]:
    providers = {name: provider.get("tiers") or {} for name, provider in (given.get("providers") or {}).items()}
    try:
        chosen = choose(
            given.get("model_attributes") or {}, providers, given.get("default_provider"), given.get("default_model")
        )
    except QuireError as error:
        return {"error": str(error)}
    return {"model_id": chosen}


def _cost_element(cost: dict[str, Any]) -> str:
    """Write a cost block of a case as the element of a directive."""
    context, spend = cost.get("context") or {}, cost.get("spend") or {}
    names = " ".join(f'{name}="{context[name]}"' for name in ("turns", "spawn_threshold") if name in context)
    parts = [f"<context {names}>{context.get('max_tokens', '')}</context>"] if context else []
    parts += [f"<duration>{cost['duration']}</duration>"] if "duration" in cost else []
    parts += (
        [f'<spend currency="{spend.get("currency", "USD")}">{spend["amount"]}</spend>'] if "amount" in spend else []
    )
    return f"<metadata><cost>{''.join(parts)}</cost></metadata>" if parts else ""


def _limits(partial: dict[str, Any]) -> Limits:
    """What a case does not mention has no limit there."""
    return Limits(**{LIMIT_ALIASES.get(name, name): value for name, value in partial.items()})


def _thread(inside: str) -> Thread:
    return thread(parse(Source.of(_DIRECTIVE.format(inside), "d.md")).partial)
