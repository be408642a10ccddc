"""Adapters for the ports of the engine: the clock of this machine, the people who answer questions, and the models."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.interpreter.playbook.steps import WrongAnswer, checked_answer, unattended_answer
from quire.engine.ports import Model, ModelCall, ModelReply, People, Present
from quire.errors import CannotStart, ModelFailed, Refused, StepFailed
from quire.models.choose import CHARACTERS_A_TOKEN, NO_SETTINGS, CallSettings, Choice, choose_model, members_of
from quire.models.open import open_model
from quire.plan.pipeline_work import Agent
from quire.plan.vocabulary import shell_way, typed_way
from quire.stores import is_server
from quire.values import clean

if TYPE_CHECKING:
    from quire.engine.records import Question
    from quire.models.choose import ModelSettings
    from quire.plan.nodes import Plan
    from quire.workspace.settings import Settings


class WallClock:
    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


BEFOREHAND = "--answer"
PROGRAM = "python"
_LONGEST_NAME = 100


def name_of(people: People) -> str:
    """Return the name under which answers of these people are recorded: their attribute `by`, or `PROGRAM`."""
    by = getattr(people, "by", None)
    return one_name(by) if isinstance(by, str) and by else PROGRAM


def one_name(name: str) -> str:
    """Return a name as it is recorded: printable characters only, and cut to a maximum length."""
    return "".join(part for part in clean(name) if part.isprintable()).strip()[:_LONGEST_NAME]


class Nobody:
    """People who are absent: questions wait in the inbox."""

    async def ask(self, question: Question, problem: str) -> str | None:
        return None


class Unattended:
    """Answers for a run in which no person can be asked: the default, else yes, the first option or the empty text. A
    confirm of the tool `ask` is never given a yes without a default: its step fails.

    If an answer given beforehand does not fit, only the default replaces it; the user meant something by that answer.
    """

    by = "unattended"

    async def ask(self, question: Question, problem: str) -> str | None:
        if question.explicit and question.kind == "confirm" and question.default is None and not problem:
            raise StepFailed(
                "this confirm has no default, and no person can be asked: give it a default, or answer it beforehand "
                f"(--answer {shell_way(question.way)}=yes)",
                kind="unattended",
                path=question.path,
            )
        answer = unattended_answer(question.kind, question.options, question.default)
        if not problem or (question.default is not None and _fits(question, answer)):
            return answer
        raise StepFailed(
            f"the answer does not fit, and no person can be asked: {problem}", kind="answer", path=question.path
        )


class GivenAnswers:
    """Answers that were given with the run; all other questions go to the other `People`.

    An answer named by the label of a step, or by the way to it, is used for every item of that step; one named by a
    path is for that question only. An agent or a thread asks something different in each turn, so there an answer is
    used once. An answer that does not fit is not used for that question again.
    """

    def __init__(self, answers: Mapping[str, str], others: People) -> None:
        self._answers = {typed_way(name): answer for name, answer in answers.items()}
        self._others = others
        self._refused: set[str] = set()
        self._by: dict[str, str] = {}

    async def ask(self, question: Question, problem: str) -> str | None:
        if problem:
            self._refused.add(question.path)
        name = self._name(question)
        if name is not None:
            once = name == question.path or "/turn[" in question.path
            answer = self._answers.pop(name) if once else self._answers[name]
            self._by[question.path] = BEFOREHAND
            return option_by_number(question.kind, question.options, answer)
        self._by[question.path] = name_of(self._others)
        return await _ask(self._others, question, problem)

    def answered_by(self, question: Question) -> str:
        return self._by.get(question.path, "")

    def is_here(self, question: Question) -> bool:
        name = self._name(question)
        if name is not None and _fits(question, self._answers[name]):
            return False
        # The class is asked: Python takes long over the same question about an instance.
        return issubclass(type(self._others), Present) and cast("Present", self._others).is_here(question)

    def overtaken(self, question: Question, value: str) -> None:
        if isinstance(self._others, Present):
            self._others.overtaken(question, value)

    def _name(self, question: Question) -> str | None:
        if question.path in self._refused:
            return None
        return next((name for name in (question.path, question.way, question.label) if name in self._answers), None)


async def _ask(people: People, question: Question, problem: str) -> str | None:
    """Ask a `People` and return its answer. Accepts the result of a plain function, and numbers and booleans where they
    are unambiguous.

    Raises `StepFailed` for a value that cannot be an answer.
    """
    answer: object = people.ask(question, problem)
    if isinstance(answer, Awaitable):
        answer = await answer
    match answer:
        case None | str():
            return answer
        case bool() if question.kind == "confirm":
            return "yes" if answer else "no"
        case int() | float() if not isinstance(answer, bool):
            return str(answer)
    message = f"people.ask returned {answer!r}: return a text, or None to leave the question in the inbox"
    raise StepFailed(message, kind="answer", path=question.path)


def _fits(question: Question, text: str) -> bool:
    try:
        checked_answer(question.kind, question.options, option_by_number(question.kind, question.options, text))
    except WrongAnswer:
        return False
    return True


def option_by_number(kind: str, options: Sequence[str], text: str) -> str:
    """Return the option that a number stands for, or the text itself. An option that is itself a number wins."""
    typed = text.strip()
    if kind != "select" or typed in options or not (typed.isascii() and typed.isdigit()):
        return text
    number = int(typed) if len(typed) < 10 else 0
    return options[number - 1] if 1 <= number <= len(options) else text


LIMITS_FILE = "limits.db"
LOCAL_CONTEXT_CHARACTERS = 12_000
CONTEXT_CHARACTERS = 400_000
"""About 100,000 tokens: the earlier results that a model with a window of 128,000 tokens can read."""


class Models(Struct, frozen=True):
    """Choose and open models for a workspace. If `given` is set, it replaces all other models."""

    settings: Settings
    environ: Mapping[str, str]
    given: Model | None = None

    def replaces_all(self, named: str | None) -> bool:
        """Tell whether one model is called in place of every other: one is given, or the user has named it."""
        return self.given is not None or named is not None

    def choose(self, named: str | None, choice_of_document: Callable[[], Choice] | None = None) -> Choice:
        """Return the model that a run started now would use, and the reason. The user may have named it."""
        from quire.workspace.consent import require_model, require_trusted

        if self.given is not None:
            return Choice(self.given.name, "given")
        if named is None and choice_of_document is not None:
            choice = choice_of_document()
        else:
            choice = choose_model(named, None, self.settings.models, self.environ)
        if named is None and any(member.startswith(_ADDRESS) for member in members_of(choice.spec)):
            require_trusted(self.settings)
        if named is None or named in self.settings.models.tiers:
            require_model(self.settings, choice.spec)
        self._check_provider(choice.spec)
        return choice

    def open(self, spec: str, settings: CallSettings = NO_SETTINGS) -> Model:
        """Open a model by its name, with settings of its calls. Without a name, for a run that calls no model, the
        result fails when it is called."""
        from quire.workspace.consent import require_model

        if self.given is not None:
            return self.given
        self._check_provider(spec)
        if spec in self.settings.models.tiers:
            require_model(self.settings, self.settings.models.tiers[spec])
        if not spec:
            return NoModelHere()
        models = self.settings.models
        if models.has_limits:
            url = self.settings.store_url or ""
            models = replace(models, shared=url if is_server(url) else str(self.settings.user / LIMITS_FILE))
        model = open_model(spec, models, self.environ)
        if settings == NO_SETTINGS:
            return model
        from quire.models.wrappers import with_settings

        return with_settings(model, settings)

    def context_budget(self, spec: str) -> int:
        """Return how many characters of earlier results a model is given. Without a setting it depends on the model.

        The embedded model has a small context: there they take at most half of it.
        """
        budget = self.settings.runs.context_budget
        if budget is not None:
            return budget
        if len(members := members_of(self.settings.models.tiers.get(spec, spec))) > 1:
            return min(map(self.context_budget, members))
        if spec.startswith("local:"):
            return LOCAL_CONTEXT_CHARACTERS
        if self.given is not None or spec.startswith("script:") or not spec:
            return CONTEXT_CHARACTERS
        from quire.models.prices import rate_of

        window = rate_of(spec, self.settings.models, datetime.now(UTC).date(), self.environ).context
        if window is None:
            return CONTEXT_CHARACTERS
        return max(LOCAL_CONTEXT_CHARACTERS, (window - self.settings.runs.reply_tokens) * CHARACTERS_A_TOKEN)

    def _check_provider(self, spec: str) -> None:
        """Require the user's consent to the workspace before a configured provider is used: a file of the workspace may
        state its address, and prompts are sent there. Raises `Untrusted`."""
        from quire.workspace.consent import require_trusted

        models = self.settings.models
        if any(member.partition(":")[0] in models.providers for member in members_of(models.tiers.get(spec, spec))):
            require_trusted(self.settings)


class NoModelHere:
    """The model of a run that calls none."""

    name = "none"

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        raise ModelFailed("this run was started without a model", kind="no_model")


_ADDRESS = ("http://", "https://")


def named_model(name: str, models: ModelSettings, own: str) -> str:
    """Return the model behind a name, as it is opened: a tier, a model, or empty for the run's own. Raises
    `CannotStart` for a tier that is not known here."""
    if name in models.tiers or ":" in name:
        return name
    from quire.models.tiers import step_model

    spec = step_model(name, models, own)
    if spec is None:
        raise CannotStart(f"no tier is named {name} here: set [models.tiers] {name} in quire.toml")
    return spec


def check_agent_models(plans: Sequence[Plan], settings: Settings, own: str) -> list[str]:
    """Return the models that the agents of these plans ask for (`agent: {model: …}`), as they are opened.

    A document is not signed, so it can name what its user would use anyway: a tier, a model of the run's own provider
    or of a configured one, and any hosted model if the user has not chosen one. It names no address and no file. The
    model that the user gives with `--model` replaces those of documents.

    Raises `Refused` for those that only the user may choose, and `CannotStart` for unknown tiers.
    """
    specs: dict[str, None] = {}
    problems: list[str] = []
    for step in (step for plan in plans for _, step in plan.steps()):
        name = step.work.settings.model if isinstance(step.work, Agent) and step.work.settings is not None else ""
        if name and (problem := _problem(name, settings, own)):
            problems.append(f"step {step.label}: the model {name[:200]} is {problem}")
        elif name:
            specs[named_model(name, settings.models, own)] = None
    if problems:
        raise Refused("\n".join(dict.fromkeys(problems)))
    return [spec for spec in specs if spec]


def _problem(name: str, settings: Settings, own: str) -> str:
    """Return why a document may not choose a model; empty if it may."""
    from quire.workspace.settings import model_file

    models = settings.models
    if name in models.tiers or ":" not in name:
        return ""
    if len(members := members_of(name)) > 1:
        return next(filter(None, (_problem(member, settings, own) for member in members)), "")
    as_tier = "make it a tier ([models.tiers] in quire.toml), and name that"
    if name.startswith(_ADDRESS):
        return f"an address, and a document cannot choose where prompts go: {as_tier}"
    if name.startswith("script:") or model_file(name, settings.workspace.folder) is not None:
        return f"a file, and a document cannot choose which one is loaded: {as_tier}"
    providers = {member.partition(":")[0] for member in members_of(models.tiers.get(own, own))}
    if models.default is None or name.partition(":")[0] in {*providers, *models.providers}:
        return ""
    yours = models.tiers.get(models.default, models.default)
    return f"not one of your providers, and your prompts go to {yours}: {as_tier}"
