"""Write the facts of a proof as texts of a lock: bounds, gates and flows."""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.analysis.labels import OUTSIDE
from quire.analysis.lock.file import ENDLESS, OPENS, OPENS_WITHOUT, STAYS_SHUT, UNPRICED, shortened
from quire.analysis.lock.read import LONGEST
from quire.analysis.quantities import quantities

if TYPE_CHECKING:
    from quire.analysis.amounts import Amount
    from quire.analysis.flow_paths import Flow
    from quire.analysis.gates import Gate, GateSearch
    from quire.analysis.proof import Proof
    from quire.analysis.quantities import RateOf
    from quire.engine.premises import Premises

_MICRODOLLAR = 10**6
"""Picodollars. Money in a lock is rounded up to these."""
_MINUTE = 60_000


def locked_bounds(proof: Proof, premises: Premises, rate_of: RateOf) -> dict[str, str]:
    """Return the bounds of a proof as formulas. Caps of the engine are left out: they end a run, and bound no
    document."""
    most: dict[str, str] = {}
    for one in quantities(proof, premises, rate_of, longest=premises.prompt_characters * 4):
        if one.name == "time":
            most["minutes"] = str(one.most.divided(_MINUTE))
        elif one.name == "money":
            most["money"] = UNPRICED if one.unpriced else _dollars(one.most)
        elif one.name == "input_tokens":
            most["input_tokens"] = one.most.text(lambda count: f"{rounded_up(count, 1):,}")
        else:
            most[one.name] = str(one.most)
    # A formula of that length tells a reader as little as none.
    return {name: text if len(text) <= LONGEST else ENDLESS for name, text in most.items()}


def rounded_up(count: int, digits: int) -> int:
    """Return a number with so many digits that count, not below `count`: a prompt that is some words longer has the
    same bound."""
    step = int(10 ** max(0, len(str(count)) - digits))
    return -(-count // step) * step


def locked_gates(proof: Proof) -> dict[str, str]:
    """Return the question before each effect that changes something, by the effect; `none` without one. Effects that no
    run reaches are left out. The effects of a tool have their details only if their gates differ."""
    if not proof.effects:
        return {}  # and the expressions, by which gates are judged, are not loaded
    from quire.analysis.gates import GateSearch, gates_of
    from quire.analysis.lock.gate_texts import unnumbered_gate

    search = GateSearch()
    gates = [(gate, _unattended(gate, search)) for gate in gates_of(proof) if gate.verdict != "never"]
    kinds: dict[str, set[str]] = {}
    for gate, note in gates:
        kinds.setdefault(gate.tool, set()).add(unnumbered_gate(gate.text_with(note)))
    found: dict[str, str] = {}
    openness: dict[str, int] = {}
    for gate, note in gates:
        key = shortened(_detailed(gate) if len(kinds[gate.tool]) > 1 else gate.key)
        how_open = 2 if gate.verdict != "gated" else int(note in (OPENS, OPENS_WITHOUT))
        if how_open >= openness.get(key, 0):  # of several calls of a step, the one that is gated least is written
            openness[key], found[key] = how_open, shortened(gate.text_with(note))
    return found


def _detailed(gate: Gate) -> str:
    """Return an effect in one line with how far it goes: `4 path=a.md file__write`."""
    from quire.plan.nodes import UseTool
    from quire.plan.pipeline_work import Invoke
    from quire.plan.tool_details import any_details, details_of, together
    from quire.plan.uses import OWN

    work = gate.effect.place.step.work
    details: tuple[str, ...] = ()
    if gate.effect.by_model:
        details = any_details(gate.effect.tool.capability)
    elif isinstance(work, Invoke):
        details = details_of(work.tool, dict(work.arguments), piped=work.piped)
    elif isinstance(work, UseTool) and work.connection == OWN:
        details = details_of(work.tool, work.arguments)
    named = (detail for detail in together(details) if not detail.startswith("words="))
    return " ".join((gate.way, *named, gate.tool))


def _unattended(gate: Gate, search: GateSearch) -> str:
    """Return the note of a gate about runs in which no person answers."""
    from quire.analysis.gates import can_open_without_default, has_default, may_open_by_itself

    if gate.verdict != "gated":
        return ""
    if may_open_by_itself(gate, search):
        return OPENS if any(map(has_default, gate.questions)) else OPENS_WITHOUT
    return STAYS_SHUT if any(map(can_open_without_default, gate.questions)) else ""


def locked_flows(proof: Proof) -> tuple[str, ...]:
    """Return all flows of a document. A model is written with each tool by which it can act: one more is a change."""
    if not proof.effects and not any(call.told.integrity >= OUTSIDE for call in proof.model_calls):
        return ()
    from quire.analysis.flow_paths import flows_of

    return tuple(sorted({shortened(_written(flow)) for flow in flows_of(proof, most=sys.maxsize)}))


def _written(flow: Flow) -> str:
    if flow.tools:
        flow = replace(flow, sink=f"model with {', '.join(flow.tools)}")
    return flow.text


def _dollars(amount: Amount) -> str:
    """Return a formula of money, each coefficient rounded up to two digits that count."""
    return amount.text(lambda count: f"{Decimal(_micro(count)).scaleb(-6).normalize():f}")


def _micro(picodollars: int) -> int:
    return rounded_up(-(-picodollars // _MICRODOLLAR), 2)
