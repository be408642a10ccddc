"""The ways on which text from outside reaches tools, decisions and models, and private values leave, for `show`, the
page and the lock.

All ways are listed, also those that no rule objects to: a model without tools that reads a web page is such a one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.analysis.facts import EffectFact, ModelFact
from quire.analysis.labels import Integrity, Privacy

if TYPE_CHECKING:
    from quire.analysis.facts import Place
    from quire.analysis.labels import Label, Trace
    from quire.analysis.proof import Proof

FlowKind = Literal["argument", "decision", "prompt", "private"]
"""Text from outside is an argument of a tool, it decides whether a tool is called, or a model reads it; or a private
value leaves with a tool."""
MOST_FLOWS = 200


class Flow(Struct, frozen=True):
    """A value, the places that it passes, and the place that acts on it."""

    kind: FlowKind
    trace: Trace
    place: Place
    """The step that acts on it."""
    sink: str
    """The acting place in words: `shell argv[1]`, `model (no tools)`."""
    acts: bool
    """False for a model that can only write text: nothing happens by that alone."""
    tools: tuple[str, ...] = ()
    """Tools of the model that reads it which change something or send something out. `sink` names one of them."""

    @property
    def source(self) -> Trace:
        return self.trace.source

    @property
    def text(self) -> str:
        """The whole way in one line: `1 http__get → page → 3 model → 5 shell argv[1]`."""
        private = "private: " if self.kind == "private" else ""
        return f"{private}{self.trace} → {self.place.way} {self.sink}"


def flows_of(proof: Proof, most: int = MOST_FLOWS) -> tuple[Flow, ...]:
    """Return the flows of a document in the order of the steps that act on them, each once."""
    flows: dict[str, Flow] = {}
    for fact in proof.facts:
        for flow in _of_effect(fact) if isinstance(fact, EffectFact) else ():
            flows.setdefault(flow.text, flow)
        for flow in _of_model(fact) if isinstance(fact, ModelFact) else ():
            flows.setdefault(flow.text, flow)
        if len(flows) >= most:
            break
    return tuple(flows.values())[:most]


def _of_effect(effect: EffectFact) -> Iterator[Flow]:
    """Yield the flows into a call of a step. Those into the calls that a model chooses are those of its prompt."""
    tool, changes = effect.tool, effect.tool.effect != "read"
    if tool.kind == "own":
        return
    if not effect.by_model:
        yield from _into_arguments(effect)
        for condition in effect.conditions if changes else ():
            trace = condition.label.chosen_trace
            if condition.label.chosen >= Integrity.OUTSIDE and trace is not None:
                yield Flow("decision", trace, effect.place, f"{tool.name} runs or not", acts=True)
    if tool.sends_out:
        label = effect.given
        if label.privacy >= Privacy.PRIVATE and label.private_trace is not None:
            yield Flow("private", label.private_trace, effect.place, f"{tool.name} sends it out", acts=True)


def _into_arguments(effect: EffectFact) -> Iterator[Flow]:
    """Yield the flows into arguments. Of a command, only the words and the input that it acts on count."""
    tool, place = effect.tool, effect.place
    if tool.effect == "read" and not tool.sends_out and tool.kind != "shell":
        return
    from quire.analysis.tool_flows import sinks

    values = {sink.name: sink.value for sink in sinks(effect)}
    if tool.kind != "shell":
        values |= {name: value for name, value in effect.arguments.items() if name not in values}
    for name, value in values.items():
        if (trace := _outside(value.label)) is not None:
            yield Flow("argument", trace, place, f"{tool.name} {name}", acts=True)


def _of_model(call: ModelFact) -> Iterator[Flow]:
    trace = _outside(call.told)
    if trace is not None and trace.step == call.place.way and trace.what == "model":
        trace = trace.before or trace
    if trace is None:
        return
    writing = tuple(sorted({tool.name for tool in call.tools if tool.effect != "read" or tool.sends_out}))
    if writing:
        more = f" and {len(writing) - 1} more" if len(writing) > 1 else ""
        yield Flow("prompt", trace, call.place, f"model with {writing[0]}{more}", acts=True, tools=writing)
    else:
        yield Flow("prompt", trace, call.place, "model (only reads)" if call.tools else "model (no tools)", acts=False)


def _outside(label: Label) -> Trace | None:
    return label.trace if label.integrity >= Integrity.OUTSIDE else None
