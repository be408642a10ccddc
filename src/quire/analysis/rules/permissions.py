"""Find permissions that are never used, wider than needed, or not known (EV101 to EV104)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.analysis.labels import Integrity
from quire.analysis.rules import codes
from quire.diagnostics import Diagnostic
from quire.engine.interpreter.pipeline.agent import narrowed_tools
from quire.plan.pipeline_work import Agent
from quire.plan.uses import OWN_TOOLS, called_documents
from quire.source import NOWHERE

if TYPE_CHECKING:
    from quire.analysis.facts import EffectFact
    from quire.analysis.proof import Proof
    from quire.analysis.rules import RuleContext
    from quire.source import Span


_WITH_NETWORK = frozenset({"shell=network", "shell=unsandboxed"})
_CHANGING = ("write", "idempotent")


def check(proof: Proof, context: RuleContext) -> Iterator[Diagnostic]:
    """Yield permissions that a reviewer would ask about."""
    offered: dict[str, list[EffectFact]] = {}
    for effect in proof.effects:
        if effect.by_model and not effect.place.document:
            offered.setdefault(effect.place.path, []).append(effect)
    yield from _agents(proof, offered, context.agents)
    yield from _incomplete(proof, context)
    if _WITH_NETWORK & set(context.granted):
        yield from _commands(proof, context)


def _agents(
    proof: Proof, offered: dict[str, list[EffectFact]], identities: frozenset[str] | None
) -> Iterator[Diagnostic]:
    for path, step in proof.plan.steps():
        if type(step.work) is not Agent:
            continue
        whose = step.work.identity or "default"
        held = [effect.tool.name for effect in offered.get(path, ())]
        named = [name for name in step.work.tools or () if name not in OWN_TOOLS]
        for at, name in enumerate(named):
            others = (other for other in named if other != name)
            covering = next((other for other in others if narrowed_tools([name], [other]) == (name,)), "")
            if name in named[:at]:
                yield _unused(f"step {step.label} is given {name} twice", step.span)
            elif covering:
                yield _unused(f"step {step.label} is given {name}, which {covering} includes", step.span)
            elif identities is not None and whose in identities and not narrowed_tools([name], held):
                message = (
                    f"the model of step {step.label} is never offered {name}: its identity {whose} does not have it"
                )
                help = f"leave it out, or add it to tools of [agents.{whose}] in quire.toml"
                yield _unused(message, step.span, help)
        for effect in offered.get(path, ()):
            tool = effect.tool
            if "*" in tool.capability and tool.effect in _CHANGING:
                message = f"the model of step {step.label} may use every tool that fits {tool.name}"
                help = "name the tools that it needs, in capabilities of the step or in tools of its identity"
                yield Diagnostic(codes.WILDCARD_GRANT, message, step.span, help=help)


def _unused(message: str, span: Span, help: str = "leave it out") -> Diagnostic:
    return Diagnostic(codes.UNUSED_GRANT, message, span, help=help)


def _incomplete(proof: Proof, context: RuleContext) -> Iterator[Diagnostic]:
    """Yield documents that callees miss. Those that the document itself calls have findings of their format."""
    calls: dict[str, Span] = {}
    for _, step in proof.plan.steps() if proof.missed_by else ():
        for name in called_documents(step):
            calls.setdefault(name, step.span)
    for name, through in proof.missed_by.items():
        # An existing document was left out because it is called in a circle, which has a finding of its own.
        if through and context.callee(name) is None:
            message = f"{through} leads to {name}, which is not found: it can do anything"
            yield Diagnostic(codes.INCOMPLETE, message, calls.get(through, NOWHERE), help=f"check {through}")
    if proof.incomplete:
        message = "the document does too much to list all of it, so not all of its effects were looked at"
        yield Diagnostic(codes.INCOMPLETE, message, NOWHERE)


def _commands(proof: Proof, context: RuleContext) -> Iterator[Diagnostic]:
    """Yield the commands with the network that the author has not written out."""
    reported = set()
    for effect in proof.effects:
        if effect.tool.kind != "shell" or effect.place.way in reported:
            continue
        by_others = [name for name, value in effect.arguments.items() if value.label.integrity > Integrity.AUTHOR]
        if effect.by_model or by_others:
            reported.add(effect.place.way)
            who = "a model writes" if effect.by_model else f"values from outside the document are in {by_others[0]} of"
            message = f"step {effect.place.way}: {who} a command that may use the network"
            yield Diagnostic(codes.NETWORK_SHELL, message, context.span(effect.place))
