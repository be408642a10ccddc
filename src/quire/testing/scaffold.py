"""Write a first test of a document: a case for each arm and each answer, with placeholders, and without expectations.

The document is run on the bench of tests. Each request, for a reply, an answer or the result of a tool, gets a
placeholder, until it asks for nothing more. Then the choices that were made on the way, such as an answer, are made
otherwise, as long as that takes the document into arms and answers that no case has taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.errors import QuireError
from quire.formats.test.check import DocumentSteps
from quire.library.interface import input_schema
from quire.library.library import Library
from quire.library.tested_document import callee_plans
from quire.patterns import late_pattern
from quire.plan.built_in_tools import ALIASES, RETURN
from quire.testing.case_run import CaseRun
from quire.testing.coverage.report import CoverageMeter
from quire.testing.drafts import Draft, DraftReply, expectations, names_before
from quire.testing.observation import NOT_STARTED
from quire.testing.placeholders import TODO, Choices, Placeholders
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.testing.case_run import Bench
    from quire.testing.coverage.decisions import Decision
    from quire.testing.observation import Observation, SeenQuestion
    from quire.testing.world.model import ModelAsked

MOST_ROUNDS = 60
MOST_DRAFTS = 120
MOST_CASES = 40
_UNATTENDED = "unattended"
_GRANT = late_pattern(r"--allow ([A-Za-z0-9_./=-]*[A-Za-z0-9_])")
_PROMPT = late_pattern(r'under tools as "([^"]+)"')


def scaffold(document: Document) -> str:
    """Return the text of a first test of a document. Raises `QuireError` for a document that cannot run."""
    from quire.testing.discovery import bench_for
    from quire.testing.drafts import file_text

    return file_text(PurePath(document.source.name).name, draft_cases(bench_for(document)))


def draft_cases(bench: Bench, *, expects: bool = False) -> list[Draft]:
    """Return the cases of a first test, each with a name of its own. At least one, also if the document fails.

    With `expects`, they have expectations that hold; otherwise these are left to the author.
    """
    covered: set[str] = set()
    drafts: list[Draft] = []
    scaffold = _Scaffold(bench)
    for draft, taken in _tried(scaffold):
        new = [decision for decision in taken if decision.kind in ("arms", "answers") and decision.id not in covered]
        if drafts and not new:
            continue
        covered.update(decision.id for decision in new)
        draft.name = _unique(_name(new), drafts)
        draft.takes = tuple(decision.id for decision in new)
        if expects and scaffold.seen is not None:
            draft.expect = expectations(scaffold.plan, scaffold.seen, new)
        drafts.append(draft)
        if len(drafts) == MOST_CASES:
            break
    return drafts


def draft_for(bench: Bench, decision_id: str) -> Draft | None:
    """Return a case that takes one decision, such as an arm, with expectations that hold; None if none was found.

    `decision_id` names the decision. If it is empty, it is a case in which the document runs to its end.
    """
    scaffold = _Scaffold(bench)
    for draft, taken in _tried(scaffold, names_before(scaffold.plan, decision_id)):
        decision = next((candidate for candidate in taken if candidate.id == decision_id), None)
        if decision is None and decision_id:
            continue
        decisions = [decision] if decision is not None else []
        draft.name = _name(decisions)
        draft.takes = tuple(decision.id for decision in decisions)
        if scaffold.seen is not None:
            draft.expect = expectations(scaffold.plan, scaffold.seen, decisions)
        return draft
    return None


def _tried(scaffold: _Scaffold, names: frozenset[str] = frozenset()) -> Iterator[tuple[Draft, list[Decision]]]:
    """Yield drafts, each with the decisions that it takes. The choices of a draft that takes a new decision are made
    otherwise in later drafts; those about `names` first."""
    first: deque[Mapping[str, Value]] = deque([{}])
    later: deque[Mapping[str, Value]] = deque()
    tried: set[frozenset[tuple[str, str]]] = {frozenset()}
    covered: set[str] = set()
    for _ in range(MOST_DRAFTS):
        if not first and not later:
            return
        made = (first or later).popleft()
        draft, choices, taken = scaffold.draft(made)
        yield draft, taken
        if covered.issuperset(decision.id for decision in taken) and covered:
            continue
        covered.update(decision.id for decision in taken)
        for name, options in choices.offered.items():
            waiting = later if names and names.isdisjoint(name.split()) else first
            for option in options:
                further = {**made, name: option}
                key = frozenset((choice, encode(value)) for choice, value in further.items())
                if key not in tried:
                    tried.add(key)
                    waiting.append(further)


class _Scaffold:
    def __init__(self, bench: Bench) -> None:
        self.plan = bench.document.runnable()
        self.seen: Observation | None = None
        """The observation of the run of the last draft; None if it could not be run."""
        self._bench = bench
        self._callees = callee_plans(self.plan, Library(bench.settings))
        self._steps = DocumentSteps(self.plan, self._callees)
        self._schema = input_schema(bench.document)

    def draft(self, made: Mapping[str, Value]) -> tuple[Draft, Choices, list[Decision]]:
        """Return a case in which these choices are made, all choices, and the decisions that it takes."""
        choices = Choices(made)
        values = Placeholders(self.plan, choices, self._callees)
        self.seen = None
        draft = Draft("draft", values.inputs(self._schema), unattended=made.get(_UNATTENDED) is True)
        meter = CoverageMeter(self._bench.document)
        for _ in range(MOST_ROUNDS):
            meter = CoverageMeter(self._bench.document)
            run = CaseRun(replace(self._bench, coverage=meter), draft.case)
            try:
                self.seen = run.play()[-1].observation
            except QuireError:
                break
            before = draft.size
            self._fill(draft, run, values, choices)
            _mend(draft, self.seen)
            if draft.size == before:
                break
        choices.offered[_UNATTENDED] = [False, True]
        coverage = meter.result()
        return draft, choices, [decision for decision in coverage.decisions if coverage.count(decision)]

    def _fill(self, draft: Draft, run: CaseRun, values: Placeholders, choices: Choices) -> None:
        """Add the replies, answers and results that the run asked for."""
        for call, _ in run.world.model.missing:
            self._reply(draft, call, run, values)
        for question in run.world.people.seen.values():
            if question.answer is None and question.way not in draft.answers:
                draft.answers[question.way] = self._answer(question, values, choices)
        for unscripted in run.world.tools.unscripted:
            names = [unscripted.tool, *(alias for alias, tool in ALIASES.items() if tool == unscripted.tool)]
            draft.tools.setdefault(unscripted.tool, values.result(unscripted.tool, names))

    def _answer(self, question: SeenQuestion, values: Placeholders, choices: Choices) -> str:
        if question.kind == "confirm":
            return str(choices.pick(f"answer {question.way}", ["yes", "no"]))
        if question.options:
            return str(choices.pick(f"answer {question.way}", list(question.options)))
        return values.answer(next(iter(self._steps.steps(question.way)), None), question.way)

    def _reply(self, draft: Draft, call: ModelAsked, run: CaseRun, values: Placeholders) -> None:
        key = (call.way, call.item)
        if reply := draft.replies.get(key):
            draft.replies[key] = replace(reply, any_times=True)
            return
        thread = self.plan.thread
        if thread is not None and call.turn is not None:
            offered = next((prompt.tools for prompt in run.world.model.seen if prompt.path == call.path), ())
            calls = ((RETURN, values.outputs(thread.outputs)),) if RETURN in offered else ()
            text = "" if calls else f"{TODO}: a reply in {call.way}"
            draft.replies[key] = DraftReply(call.way, text, call.item, calls)
            return
        step = next((step for step in self._steps.steps(call.way) if step.work and step.work.asks_model), None)
        value = values.reply(step, call.way) if step else f"{TODO}: a reply to step {call.way}"
        draft.replies[key] = DraftReply(call.way, value, call.item)


def _mend(draft: Draft, observation: Observation) -> None:
    """Add the grants, the prompts of servers and the files that the run lacked."""
    message = str(observation.error.get("message", "")) if observation.error else ""
    if observation.status == NOT_STARTED:
        draft.allow += [grant for grant in _GRANT.findall(message) if grant not in draft.allow]
        for name in _PROMPT.findall(message):
            draft.tools.setdefault(name, f"{TODO}: the text of {name}")
    for call in observation.calls:
        path = call.arguments.get("path")
        if call.failure and call.tool.startswith("rye/file-system/") and isinstance(path, str) and _is_inside(path):
            draft.files.setdefault(path, f"{TODO}: the text of {path}\n")


def _is_inside(path: str) -> bool:
    return not path.startswith(("/", "~")) and ".." not in path and "\\" not in path and ":" not in path


def _name(new: list[Decision]) -> str:
    """Name a case by the branches and answers that it covers."""
    words = [decision.label for decision in new][:3]
    return ", ".join(words).replace("`", "") or "it runs to its end"


def _unique(name: str, drafts: list[Draft]) -> str:
    taken = {draft.name for draft in drafts}
    name = name[:150]
    number = 2
    unique = name
    while unique in taken:
        unique, number = f"{name} ({number})", number + 1
    return unique
