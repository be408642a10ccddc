"""TA: follow values from outside to the places where tools, models and decisions act on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.analysis.approvals import is_constant
from quire.analysis.facts import EffectFact
from quire.analysis.labels import OUTSIDE, Label, Privacy, Trace, joined
from quire.analysis.rules import codes
from quire.analysis.rules.shown_values import Agreements
from quire.analysis.tool_flows import sinks
from quire.diagnostics import Confidence, Diagnostic, Related
from quire.source import NOWHERE

if TYPE_CHECKING:
    from quire.analysis.facts import ModelFact, Place
    from quire.analysis.proof import Proof
    from quire.analysis.rules import RuleContext
    from quire.diagnostics import Code
    from quire.source import Span

_CODES: dict[str, Code] = {
    "command": codes.COMMAND,
    "path": codes.PATH,
    "address": codes.ADDRESS,
    "item": codes.ITEM,
}
_HELP = {
    "command": "pass on a number, or a word of an enum or of an anchored pattern, put `--` before data, or ask a "
    "person who is shown the value",
    "path": "write the path out, or let the value choose between paths of the document",
    "address": "write the host at the beginning of this argument, `'https://HOST/…' + value`: one in a variable or in "
    "format() is not seen",
    "item": "write the id out, or let the value choose between ids of the document",
}
_DECIDES_HELP = (
    "ask a person before it, write out all that it is given, or say why no person has to be asked: "
    '`quire: allow TA105 because "…"`'
)


def check(proof: Proof, context: RuleContext) -> Iterator[Diagnostic]:
    """Yield the flows from outside."""
    sending: set[tuple[str, str]] = set()
    agreements = Agreements()
    for effect in proof.effects:
        yield from _to_sinks(effect, agreements, context)
        yield from _decided(effect, agreements, context)
        where = (effect.place.document, effect.place.way)
        # One finding for each model: all that it has read can leave by all of its tools.
        for finding in _trifecta(effect, agreements, context) if where not in sending else ():
            sending.add(where)
            yield finding
    for call in proof.model_calls:
        yield from _powerful(call, context)
        yield from _chosen_prompt(call, context)


def is_outside(label: Label) -> bool:
    return label.integrity >= OUTSIDE


def _to_sinks(effect: EffectFact, agreements: Agreements, context: RuleContext) -> Iterator[Diagnostic]:
    if not any(is_outside(value.label) for value in effect.arguments.values()):
        return
    for sink in sinks(effect):
        trace = sink.value.label.trace
        if not is_outside(sink.value.label) or trace is None or within_callee(trace, effect.place):
            continue
        if sink.kind == "address" and sink.confined:
            continue
        if sink.kind == "path" and effect.tool.effect == "read" and effect.tool.kind == "built-in":
            # It reads no more than the document may read anyway.
            continue
        is_word = sink.name.startswith("argv[")
        argument, part = ("command", int(sink.name[5:-1])) if is_word else (sink.name, None)
        if agreements.covers(effect, argument, part, sink.value):
            continue
        shown = f"{short(effect.tool.name)} {sink.name}"
        code = _CODES[sink.kind]
        confidence: Confidence = "proven" if sink.certain and effect.tool.certain else "possible"
        help = _HELP[sink.kind]
        if sink.kind == "path" and sink.confined:
            help = f"the path stays within {sink.confined}, of the workspace; {help}"
        message = f"{named(trace)} reaches {shown} of {step_words(effect.place.way)}"
        yield flow(code, message, effect, trace, shown, context, help, confidence)


def _decided(effect: EffectFact, agreements: Agreements, context: RuleContext) -> Iterator[Diagnostic]:
    """Yield one finding for an effect whose happening a text from outside decides, and no person."""
    if effect.tool.effect == "read" or effect.tool.kind == "own" or is_constant(effect):
        return
    for condition in effect.conditions:
        label = condition.label
        if condition.place.is_thread:
            # Every event of a thread is up to its model; a hook decides by the values that its condition reads.
            label = joined(value.label for value in condition.reads.values())
        trace = label.chosen_trace
        if label.chosen < OUTSIDE or trace is None or within_callee(trace, effect.place):
            continue
        if agreements.questions(effect):
            return
        name = short(effect.tool.name)
        message = f"{named(trace)} decides whether {name} of {step_words(effect.place.way)} runs"
        shown = f"{name} runs or not"
        yield flow(codes.DECIDES, message, effect, trace, shown, context, _DECIDES_HELP, "possible")
        return


def _powerful(call: ModelFact, context: RuleContext) -> Iterator[Diagnostic]:
    trace = call.told.trace
    writing = [short(tool.name) for tool in call.tools if tool.effect != "read"]
    if not is_outside(call.told) or not writing or trace is None or within_callee(trace, call.place):
        return
    own = trace.source.step == call.place.way and trace.source.document == call.place.document
    if own and len(call.tools) == 1 and not call.tools[0].certain and "*" not in call.tools[0].name:
        # A single tool of which nothing is known is taken for a source, or for one that writes, but not for both.
        return
    more = f" and {len(writing) - 3} more" if len(writing) > 3 else ""
    may = f"{', '.join(writing[:3])}{more}"
    message = f"{named(trace)} reaches the model of {step_words(call.place.way)}, which may use {may}"
    help = "let a model without tools read it, and pass on fields of a schema"
    shown = f"prompt of a model with {writing[0]}"
    yield flow(codes.POWERFUL_PROMPT, message, call, trace, shown, context, help, "possible" if own else "proven")


def _chosen_prompt(call: ModelFact, context: RuleContext) -> Iterator[Diagnostic]:
    trace = call.prompt_file.trace
    if is_outside(call.prompt_file) and trace is not None and not within_callee(trace, call.place):
        message = f"{named(trace)} chooses the prompt file of {step_words(call.place.way)}"
        yield flow(codes.ITEM, message, call, trace, "prompt file", context, _HELP["item"], "proven")


def _trifecta(effect: EffectFact, agreements: Agreements, context: RuleContext) -> Iterator[Diagnostic]:
    """Yield a finding if private values and text from outside meet in a tool that sends something out."""
    if not effect.tool.sends_out:
        return
    label = effect.given
    trace, private = label.trace, label.private_trace
    least = Privacy.WORKSPACE if effect.by_model else Privacy.PRIVATE
    if not is_outside(label) or label.privacy < least or trace is None or private is None:
        return
    if within_callee(trace, effect.place) and within_callee(private, effect.place):
        return
    name = short(effect.tool.name)
    if not effect.tool.certain and "*" not in name and {trace.source.what, private.source.what} == {effect.tool.name}:
        # One tool of which nothing is known is not all three things at once.
        return
    if agreements.questions(effect):
        return
    who = f"the model of {step_words(effect.place.way)}" if effect.by_model else step_words(effect.place.way)
    parts = f"private values ({named(private)}), text from outside ({named(trace)}) and a way out ({name})"
    message = f"{who} has {parts}"
    help = "take one of the three away, or ask a person who is shown what is sent"
    # A finding has one path: the way of the private value is shown as places beside it.
    beside = (Related(each.span, f"private: {each.message}", each.source) for each in context.path(private))
    related = (*flow_path(trace, effect, f"{name} sends out", context), *beside)
    confidence: Confidence = "possible" if effect.by_model or not effect.tool.certain else "proven"
    span = _shown_at(effect, context)
    yield Diagnostic(codes.TRIFECTA, message, span, help=help, related=related, confidence=confidence)


def flow(
    code: Code,
    message: str,
    fact: EffectFact | ModelFact,
    trace: Trace,
    sink: str,
    context: RuleContext,
    help: str,
    confidence: Confidence,
) -> Diagnostic:
    """Return a finding with the whole path of the value, which ends in the sink."""
    related = flow_path(trace, fact, sink, context)
    return Diagnostic(code, message, _shown_at(fact, context), help=help, related=related, confidence=confidence)


def flow_path(trace: Trace, fact: EffectFact | ModelFact, sink: str, context: RuleContext) -> tuple[Related, ...]:
    place = fact.place
    source = context.callee(place.document) if place.document else None
    last = Related(_span(fact), f"it ends in {sink}", source, f"{place.way} {sink}")
    return (*context.path(trace), last)


def _shown_at(fact: EffectFact | ModelFact, context: RuleContext) -> Span:
    return context.span(fact.place) if fact.place.site is not None else _span(fact)


def _span(fact: EffectFact | ModelFact) -> Span:
    """Return where a fact is in its own document: an action of a hook is at the hook."""
    return fact.span if isinstance(fact, EffectFact) and fact.span != NOWHERE else fact.place.span


def within_callee(trace: Trace, place: Place) -> bool:
    """Tell whether the whole way is in a called document: then the finding is one about that document."""
    return bool(place.document) and all(each.document == place.document for each in trace.way())


def named(trace: Trace) -> str:
    """Return the source of a value in words."""
    source = trace.source
    return f"{short(source.what)} of {step_words(source.step)}" if source.step else source.what


def short(name: str) -> str:
    """Return the name of a tool without the beginning that all capabilities of tools share."""
    return name.removeprefix("rye.execute.tool.")


def step_words(way: str) -> str:
    return "the thread" if way == "thread" else f"step {way}"
