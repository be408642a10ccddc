"""Find what the answer to a question sets free: effects, model calls and price of the rest of the run, by a proof."""

from __future__ import annotations

import asyncio
import itertools
import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.errors import QuireError
from quire.models.choose import PICODOLLARS
from quire.plan.nodes import Sequence
from quire.plan.pipeline_work import Formula, Invoke, Literal
from quire.values import encode
from quire.wording import cut

if TYPE_CHECKING:
    from quire.analysis.facts import EffectFact
    from quire.analysis.quantities import Quantity
    from quire.engine.records import Question, RunRow
    from quire.operations.host import Host
    from quire.runs.pins import PinnedRun
    from quire.values import Value
    from quire.workspace.settings import Settings

MOST_EFFECTS = 8
_MOST_KEPT = 256
_WORD = re.compile(r"[A-Za-z][\w-]*(?:\.\w+)?")


class Freed(Struct, frozen=True):
    """The rest of a run after an answer. `alone` marks a question before an effect that changes the world, and one of
    which that is not known: no answer is meant for it and others together."""

    alone: bool = True
    data: dict[str, Value] | None = None


_kept: dict[tuple[object, ...], Freed] = {}


async def freed_by(host: Host, row: RunRow | None, question: Question) -> Freed:
    """Return what an answer to a question sets free. It is kept for all runs of the same documents."""
    if row is None:
        return Freed()
    settings = host.runtime.settings
    pins = (encode(row.pins.get(name)) for name in ("document", "callees", "model", "one_model"))
    step = question.path.partition("/")[0]
    # The engine asks by itself whether to call a tool again; such a question is not a gate of the document.
    kind = question.kind if question.path.endswith("/ask") else ""
    key = (settings.workspace.folder, *pins, step, question.way, kind)
    if key not in _kept:
        try:
            held = await host.runtime.stored(row)
            freed = await asyncio.to_thread(_freed, held, settings, step, question.way, kind)
        except QuireError:  # A run of another version: nothing is known of it.
            freed = Freed()
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[key] = freed
    return _kept[key]


def _freed(held: PinnedRun, settings: Settings, step: str, way: str, kind: str) -> Freed:
    from quire.analysis.approvals import changes_something, gates_of
    from quire.analysis.quantities import quantities
    from quire.library.foresight import Foresight
    from quire.runs.proven import rates_of

    plan, model, one_model = held.plan, held.pins.model, held.pins.one_model
    steps = tuple(itertools.dropwhile(lambda other: str(other.position) != step, plan.body.steps))
    if is_rest := bool(steps) and not plan.thread:  # Earlier steps may have written any name: its value is not known.
        plan = replace(plan, body=Sequence(steps), declared=None)
    foresight = Foresight(settings, held.setting.documents)
    proof = foresight.proof(plan, held.document.name, model, inputs={}, is_rest=is_rest, one_model=one_model)
    asking = [fact for fact in proof.questions if fact.place.way == way and fact.kind == kind]
    gates = [gate for gate in gates_of(proof) if gate.verdict != "never"]
    own = [gate for gate in gates if any(fact in asking for fact in gate.questions)]
    if proof.unknown or proof.incomplete or (gates and not asking):
        return Freed()
    later = (effect for effect in proof.effects if effect.tool.effect != "read" and not changes_something(effect))
    effects = {_name(effect): effect for effect in (*(gate.effect for gate in (*own, *gates)), *later)}
    numbers = quantities(proof, foresight.world(model).premises, rates_of(settings, model, one_model=one_model))
    ranges = {quantity.name: _range(quantity) for quantity in numbers}
    data: dict[str, Value] = {
        "effects": [
            {"name": name, "kind": effect.tool.effect, "world": changes_something(effect)}
            for name, effect in itertools.islice(effects.items(), MOST_EFFECTS)
        ],
        "calls": ranges["model_calls"],
        "price": ranges.get("money"),
        "red": any(gate.verdict == "gated" for gate in own),
        "word": _word(own[0].effect) if own else "",
    }
    return Freed(bool(own), data)


def _range(quantity: Quantity) -> Value:
    most = quantity.number
    if most is None or quantity.unpriced:
        return None
    is_money = quantity.unit == "picodollars"
    return [quantity.least / PICODOLLARS, most / PICODOLLARS] if is_money else [quantity.least, most]


def _name(effect: EffectFact) -> str:
    """Return the command that an effect runs, as the document writes it; the tool, if it is not a command."""
    work = effect.place.step.work
    command = dict(work.arguments).get("command") if isinstance(work, Invoke) and effect.tool.kind == "shell" else None
    text = command.text if isinstance(command, Formula) else command.value if isinstance(command, Literal) else ""
    return cut(re.sub(r"[\[\](),'\"\s]+", " ", str(text)).strip() or effect.tool.name, 80)


def _word(effect: EffectFact) -> str:
    """Return the effect in one word for a button: `publish` for the command `sh publish.sh`."""
    from quire.plan.tool_details import CODE_RUNNERS

    words = _WORD.findall(_name(effect).replace("__", " "))
    if effect.tool.kind != "shell":
        return cut(words[-1] if words else effect.tool.name, 24)
    return cut(next((word.partition(".")[0] for word in words if word not in CODE_RUNNERS), "run it"), 24)
