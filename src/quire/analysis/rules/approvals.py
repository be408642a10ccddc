"""GA: find effects that happen without a person's yes, and questions that do not protect as they seem to; say which
lines make a gate, and write them into a document where their place is certain."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from quire.analysis.amounts import ONE
from quire.analysis.approvals import (
    Gate,
    GateSearch,
    changes_something,
    considered,
    decided_from_outside,
    deciding,
    has_default,
    is_constant,
    is_from_model,
    opens_by_itself,
    source_words,
    unattended,
    used_arguments,
)
from quire.analysis.conditions import questions_in
from quire.analysis.facts import ChoiceFact, EffectFact, ModelFact, StoreFact
from quire.analysis.labels import Integrity
from quire.analysis.rules import codes
from quire.analysis.rules.flows import within_callee
from quire.analysis.rules.shown_values import ANYTHING, EVERYTHING, Derivations, read_names, shown_names, used_names
from quire.analysis.tool_flows import sinks
from quire.diagnostics import Diagnostic, Edit, Fix, Related
from quire.patterns import late_pattern
from quire.plan.pipeline_work import Agent, Parallel
from quire.plan.vocabulary import JOINT
from quire.source import Span
from quire.trust.risk import Tier

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quire.analysis.amounts import Amount
    from quire.analysis.facts import Condition, Place, QuestionFact
    from quire.analysis.labels import Trace
    from quire.analysis.proof import Proof
    from quire.analysis.rules import RuleContext
    from quire.source import Source


def check(proof: Proof, context: RuleContext) -> Iterator[Diagnostic]:
    """Yield the findings about the approvals of a document."""
    if any(changes_something(effect) for effect in proof.effects):
        yield from _Rules(proof, context).findings()


def is_serious(effect: EffectFact) -> bool:
    """Tell whether an effect reaches out of the workspace or starts a program, and cannot be repeated safely."""
    return effect.tool.effect == "write" and Tier(effect.tool.tier).rank >= Tier.ELEVATED.rank


class _Rules:
    """The rules on one document."""

    def __init__(self, proof: Proof, context: RuleContext) -> None:
        self._proof = proof
        self._context = context
        self._search = GateSearch()
        self._told: set[tuple[str, int]] = set()
        """Codes and questions that were reported: once for each question is enough."""

    def findings(self) -> Iterator[Diagnostic]:
        for effect in self._proof.effects:
            if not changes_something(effect) or effect.place.is_thread:
                continue
            gate = self._search.gate_of(effect)
            if gate.verdict == "gated" and all(
                _is_of_callee(effect.place, question.place) for question in gate.questions
            ):
                continue
            if gate.verdict == "gated":
                yield from self._stale(gate)
                if is_serious(effect):
                    yield from self._blind(gate)
                    yield from self._many(gate)
                    yield from self._opens(gate)
            elif gate.verdict != "never":
                yield from self._ungated(gate)

    def _ungated(self, gate: Gate) -> Iterator[Diagnostic]:
        effect = gate.effect
        ignored = next((question for question in gate.questions if self._is_ignored(question, effect)), None)
        if ignored is not None:
            if self._is_new("GA102", ignored) and not _is_of_callee(effect.place, ignored.place):
                yield self._ignored(effect, ignored)
            return
        if is_serious(effect) and not is_constant(effect) and decided_from_outside(effect) and not _is_flow(effect):
            trace, why = _reason(effect)
            if trace is not None and within_callee(trace, effect.place):
                return
            yield Diagnostic(
                codes.UNGATED_EFFECT,
                f"step {effect.place.way} runs {effect.tool.name} without a person's yes, and {why}",
                self._context.span(effect.place),
                help=help_for(effect),
                related=self._context.path(trace),
                confidence="proven" if effect.tool.certain and not effect.by_model else "possible",
            )

    def _is_ignored(self, question: QuestionFact, effect: EffectFact) -> bool:
        """Tell whether a question seems to be meant as a gate: a *no* is possible, and changes nothing."""
        conditions = considered(effect.conditions)
        if question in questions_in(conditions):
            if question.kind == "confirm":
                return not self._search.prevented(conditions, {question: "yes"})
            # A text that is compared with a no, and lets every other word through.
            return question.kind == "input" and self._search.prevented(conditions, {question: "no"})
        return question.kind == "confirm" and not self._is_used(question)

    def _is_used(self, question: QuestionFact) -> bool:
        if question in self._used or question.place.document:
            return True
        step = question.place.step
        names = {f"__elicit_step_{step.number}", f"__elicit_step_{step.label}"}
        names |= {step.capture.name, EVERYTHING} if step.capture is not None else set()
        if step.capture is None and step.ask is None:
            names.add(ANYTHING)
        return bool(names & self._names)

    @cached_property
    def _names(self) -> set[str]:
        """The names that any step of the document reads."""
        names = {name for _, step in self._proof.plan.steps() if step.ask is None for name in read_names(step)}
        return names - {ANYTHING} if self._proof.plan.format == "playbook" else names

    @cached_property
    def _used(self) -> set[QuestionFact]:
        """The questions whose answers decide anything, or that values are computed from."""
        conditions: list[Condition] = []
        facts: set[QuestionFact] = set()
        for fact in self._proof.facts:
            match fact:
                case ChoiceFact(condition=condition):
                    conditions.append(condition)
                case EffectFact() | ModelFact():
                    conditions += fact.conditions[-1:]
                case StoreFact(value=value) if value.computed is not None or value.choices:
                    parts = (value, *value.choices)
                    reads = [read for part in parts if part.computed for read in part.computed.reads.values()]
                    facts.update(read.answer for read in reads if read.answer is not None)
        facts.update(questions_in(conditions))
        return facts

    def _ignored(self, effect: EffectFact, question: QuestionFact) -> Diagnostic:
        read = question in questions_in(considered(effect.conditions))
        no = "no" if question.kind == "confirm" else "another answer than no"
        why = "" if read else ": nothing reads the answer"
        return Diagnostic(
            codes.ANSWER_IGNORED,
            f"step {effect.place.way} runs {effect.tool.name} also after “{no}” to step {question.place.way}{why}",
            self._context.span(effect.place),
            help=condition_help(effect, question),
            fix=condition_fix(effect, question, self._context.source, self._proof.stores),
            related=(self._asked(question),),
            confidence="proven" if not read else "possible",
        )

    def _asked(self, question: QuestionFact) -> Related:
        return self._at(question.place, f"step {question.place.way} asks")

    def _at(self, place: Place, message: str) -> Related:
        source = self._context.callee(place.document) if place.document else None
        return Related(place.span if source or not place.document else self._context.span(place), message, source)

    def _blind(self, gate: Gate) -> Iterator[Diagnostic]:
        effect = gate.effect
        values = effect.arguments.values()
        if effect.by_model or not any(
            max(value.label.integrity, value.label.chosen) > Integrity.PERSON for value in values
        ):
            return
        used = used_names(effect)
        for question in gate.questions:
            shown = shown_names(question)
            is_here = not question.place.document and not effect.place.document
            if not used or (shown and (not is_here or self._derivations.are_related(shown, used, effect))):
                return
        question = gate.questions[-1]
        if not self._is_new("GA103", question):
            return
        names = ", ".join(sorted(used - {ANYTHING, EVERYTHING})) or "its values"
        yield Diagnostic(
            codes.BLIND_GATE,
            f"the question of step {question.place.way} shows nothing of what {effect.tool.name} of step "
            f"{effect.place.way} uses: {names}",
            self._context.span(question.place),
            help=show_help(question, used),
            related=(self._at(effect.place, f"step {effect.place.way} uses {names}"),),
        )

    @cached_property
    def _derivations(self) -> Derivations:
        return Derivations(self._proof.plan)

    def _stale(self, gate: Gate) -> Iterator[Diagnostic]:
        effect = gate.effect
        used = dict(read.rsplit("#", 1) for read in effect.reads)
        older: dict[str, QuestionFact] = {}
        fresh: set[str] = set()
        for question in gate.questions:
            if question.place.document != effect.place.document:
                continue
            for name, version in (shown.rsplit("#", 1) for shown in question.shown_names):
                if name in used and int(version) < int(used[name]):
                    older[name] = question
                elif used.get(name) == version:
                    fresh.add(name)
        for name, question in older.items():
            if name in fresh:
                continue
            yield Diagnostic(
                codes.STALE_GATE,
                f"step {effect.place.way} uses another {name} than step {question.place.way} has shown",
                self._context.span(effect.place),
                help=f"ask after the last step that writes {name}, or keep its new value under another name",
                related=(
                    self._at(question.place, f"step {question.place.way} shows {name}"),
                    *self._written(name, int(used[name]), effect),
                ),
            )

    def _written(self, name: str, version: int, effect: EffectFact) -> Iterator[Related]:
        """Yield the step that writes a version of a name."""
        for store in self._proof.stores:
            same = store.name == name and store.place.document == effect.place.document
            if same and store.version == version and store.place.span.start < effect.place.span.start:
                yield self._at(store.place, f"step {store.place.way} writes {name} again")
                return

    def _many(self, gate: Gate) -> Iterator[Diagnostic]:
        effect = gate.effect
        around = [_place(fan) for question in gate.questions for fan in question.fans]
        outside = [fan for fan in effect.fans if _place(fan) not in around and not isinstance(fan.step.work, Parallel)]
        if not outside or (often := self._often(outside)).as_number in (0, 1):
            return
        question, fan = gate.questions[-1], outside[0]
        yield Diagnostic(
            codes.ONE_YES_FOR_MANY,
            f"one yes to step {question.place.way} lets step {effect.place.way} run {effect.tool.name} {often} times",
            self._context.span(effect.place),
            help=f"ask inside of step {fan.way} if each of them has to be looked at",
            related=(self._asked(question), self._at(fan, f"step {fan.way} repeats it")),
        )

    def _often(self, fans: list[Place]) -> Amount:
        often = ONE
        for fan in fans:
            often = often.times(self._rounds.get(_place(fan), ONE))
        return often

    @cached_property
    def _rounds(self) -> dict[tuple[str, str, str], Amount]:
        return {_place(fact.place): fact.rounds for fact in self._proof.fans}

    def _opens(self, gate: Gate) -> Iterator[Diagnostic]:
        if not opens_by_itself(gate, self._search):
            return
        effect, question = gate.effect, gate.questions[-1]
        if not self._is_new("GA106", question):
            return
        answer = unattended(question)
        why = (
            f"its default is “{answer}”"
            if has_default(question)
            else f"without a default, `--unattended` says “{answer}”"
        )
        stopping = self._search.refusals(question, considered(effect.conditions))
        yield Diagnostic(
            codes.OPENS_ITSELF,
            f"the question of step {question.place.way} opens itself for step {effect.place.way}: {why}",
            self._context.span(question.place),
            help=default_help(question, stopping[0] if stopping else "no"),
            fix=default_fix(question, stopping[0] if stopping else "no", self._context.source),
            related=(self._at(effect.place, f"step {effect.place.way} runs {effect.tool.name} then"),),
        )

    def _is_new(self, code: str, question: QuestionFact) -> bool:
        key = (code, id(question))
        if key in self._told:
            return False
        self._told.add(key)
        return True


def _is_of_callee(place: Place, other: Place) -> bool:
    """Tell whether two places are in one call of another document: then a finding is one about that document."""
    return bool(place.document) and place.way.rpartition(JOINT)[0] == other.way.rpartition(JOINT)[0]


def _is_flow(effect: EffectFact) -> bool:
    """Tell whether the rules about flows report the effect (TA101, TA103, TA105), where a yes helps as well."""
    if any(condition.label.chosen >= Integrity.OUTSIDE for condition in effect.conditions):
        return True
    return any(sink.value.label.integrity >= Integrity.OUTSIDE and not sink.confined for sink in sinks(effect))


def _place(place: Place) -> tuple[str, str, str]:
    return place.document, place.path, place.way


def _reason(effect: EffectFact) -> tuple[Trace | None, str]:
    """Return how the say of a model or an outsider comes in, and that in words."""
    if effect.by_model:
        return effect.chooser.chosen_trace, "a model chooses whether and how"
    for name, value in used_arguments(effect):
        label = value.label
        if is_from_model(label):
            trace = label.trace if label.integrity >= Integrity.MODEL else label.chosen_trace
            return trace, f"{name} depends on {source_words(trace)}"
    trace = deciding(effect)
    return trace, f"{source_words(trace)} decides{' whether' if trace is not None else ''}"


_KEYS = late_pattern(r":[ ]*(?:\{[ ]*|\n([ ]+)(?=\S))")
"""Matches from the end of the name of a step to its first key."""
_ARGUMENTS = late_pattern(r"\bargs:[ ]*(?:\{[ ]*|\n([ ]+)(?=\S))")
_ELICIT = late_pattern(r'@elicit\((?:confirm|select),[^\n]*?("\s*)\)[ ]*$', 8)
"""Matches a question of a playbook that ends with a text on its line (8: `re.MULTILINE`)."""
_DIALECT = late_pattern(r"""^dialect[ ]*:[ ]*["']?quire\b""", 8)
_FAR = 2_000
"""Characters after the name of a step in which its arguments begin."""
_UNATTENDED = 'in a job without people, write out all that it is given, or `quire: allow GA101 because "…"`'


def help_for(effect: EffectFact) -> str:
    """Return the lines that put a person's yes before an effect."""
    way = effect.place.step.label
    if effect.place.format == "playbook":
        asking = (
            'ask in a step before it: `@elicit(confirm, "…", default:"no")`, and put '
            f'step {way} between ` ```if __elicit_step_N == "yes"``` ` and ` ```endif``` `'
        )
        return f"{asking}; {_UNATTENDED}"
    ask = '`- tool: {name: ask, args: {prompt: …, type: confirm, default: "no"}, output: approved}`'
    more = "; or leave the tool out of its `capabilities`" if isinstance(effect.place.step.work, Agent) else ""
    return f"ask before it: {ask}, and add `when: approved == 'yes'` to step {way}{more}; {_UNATTENDED}"


def condition_help(effect: EffectFact, question: QuestionFact) -> str:
    """Return the condition that makes a question a gate of an effect."""
    name, step = _answer(question), effect.place.step.label
    if effect.place.format == "playbook":
        return f'put step {step} between ` ```if {name} == "yes"``` ` and ` ```endif``` `'
    if not name:
        return f"keep the answer with `output: approved`, and add `when: approved == 'yes'` to step {step}"
    read = _read(name)
    return f"add `when: {read} == 'yes'` to step {step}, or `- stop: {{when: {read} != 'yes'}}` after the question"


def _read(name: str) -> str:
    """Return the expression that reads a store."""
    return name if name.isidentifier() else f"get(ctx, '{name}')"


def _answer(question: QuestionFact) -> str:
    step = question.place.step
    if step.capture is not None:
        return step.capture.name
    return f"__elicit_step_{step.label}" if step.ask is not None else ""


def condition_fix(
    effect: EffectFact, question: QuestionFact, source: Source, stores: Iterable[StoreFact]
) -> Fix | None:
    """Return the edit that lets a step run after a yes only: of a step of the pipeline itself without a condition. The
    pipeline has to be in the dialect that has conditions, and no other step may write the store of the answer."""
    name, place = _answer(question), effect.place
    guard = place.step.guard
    if not name or place.document or question.place.document or place.format != "pipeline":
        return None
    if guard is not None and guard.when is not None:
        return None
    if any(store.name == name and store.place.way != question.place.way for store in stores):
        return None
    if not _in_dialect(source.text, place.span.end):
        return None
    test = f"{_read(name)} == 'yes'"
    line = f"when: {test}" if name.isidentifier() else f'when: "{test}"'
    keys = _KEYS.match(source.text, place.span.end)
    return _at(keys.end(), keys[1], line, f"run step {place.step.label} after a yes only") if keys else None


def _in_dialect(text: str, at: int) -> bool:
    """Tell whether the YAML document around a place says that it is in the Quire dialect."""
    start, end = text.rfind("\n---", 0, at) + 1, text.find("\n---", at)
    return _DIALECT.search(text, start, end if end >= 0 else len(text)) is not None


def default_help(question: QuestionFact, answer: str) -> str:
    key = f'`default:"{answer}"`' if question.is_elicited else f'`default: "{answer}"`'
    return f"let it have {key}" if has_default(question) else f"add {key} to the question"


def default_fix(question: QuestionFact, answer: str, source: Source) -> Fix | None:
    """Return the edit that gives a question without a default one that stops the effect."""
    place = question.place
    if place.document or has_default(question) or '"' in answer or "\\" in answer:
        return None
    title = f"answer “{answer}” if no person does"
    if question.is_elicited:
        match = _ELICIT.search(source.text, place.span.end, place.span.end + _FAR)
        between = source.text[place.span.end : match.start()] if match else ""
        if match is None or "\n#" in between:
            return None
        at = match.end(1)
        return Fix(title, (Edit(Span(at, at), "", f', default:"{answer}"'),), safe=False)
    keys = _KEYS.match(source.text, place.span.end)
    match = _ARGUMENTS.search(source.text, place.span.end, place.span.end + _FAR) if keys else None
    if match is None or "\n-" in source.text[place.span.end : match.start()].replace(" ", ""):
        return None
    return _at(match.end(), match[1], f'default: "{answer}"', title)


def show_help(question: QuestionFact, used: frozenset[str]) -> str:
    name = next(iter(sorted(used)), "value")
    if question.is_elicited:
        return f"put {{{{{name}}}}} into the text of the question"
    return f"add `show: !expr {name}` to its args, or put it into the prompt"


def _at(at: int, indent: str | None, line: str, title: str) -> Fix:
    """Return the fix that inserts a key: before the others of a flow mapping, or as a line of its own."""
    new = f"{line}, " if indent is None else f"{line}\n{indent}"
    return Fix(title, (Edit(Span(at, at), "", new),), safe=False)
