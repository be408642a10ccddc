"""Perform one effect and record its outcome, success or failure."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from quire.engine.driver.model_calls import CallTime
from quire.engine.interpreter.playbook.steps import MOST_UNFIT, WrongAnswer, checked_answer
from quire.engine.ports import Attributed, Model, ModelCall, ModelReply, Ports, Present, Priced, Rehearsed
from quire.engine.premises import (
    MAX_PROMPT_CHARACTERS,
    MAX_REPLY_CHARACTERS,
    MOST_CALLS,
    TIMEOUT,
    TIMEOUTS_OF_A_CALL,
    longest_call,
    longest_reply,
    smallest,
    usual_reply,
)
from quire.engine.records import REFUSED, Answer, EffectRecord, Question, Usage
from quire.engine.request_hashes import KINDS, request_hash
from quire.engine.requests import (
    TINY,
    Boundary,
    Effect,
    Failure,
    Halt,
    HumanRequest,
    Join,
    Load,
    ModelRequest,
    Offer,
    ToolRequest,
    WorkCheck,
)
from quire.errors import ModelFailed, Parked, Refused, RunState, StepFailed
from quire.values import InvalidValue, Value, clean, copy, encode, fingerprint

if TYPE_CHECKING:
    from quire.engine.events import Feed
    from quire.engine.ports import People


class Performer:
    parks = False
    """True if a call whose service asks for a long wait raises `Parked`, and is not recorded."""

    def __init__(
        self, run: str, ports: Ports, feed: Feed, reply_tokens: int | None = None, timeout: float = TIMEOUT
    ) -> None:
        """`timeout` is the longest silence of a service where a request sets none: it bounds the time of a call."""
        self._reply_tokens = reply_tokens
        self._short: set[str] = set()
        """Paths of calls whose reply has to be short, because of the budget."""
        self._timeout = timeout
        self._begun: set[str] = set()
        self._run = run
        self._ports = ports
        self._feed = feed

    def changes_the_world(self, request: Effect) -> bool:
        return isinstance(request, ToolRequest) and self._ports.tools.effect_class(request) == "write"

    def writes(self, request: ToolRequest) -> bool:
        """Tell whether a tool may do more than read."""
        return self._ports.tools.effect_class(request) != "read"

    def intent(self, request: Effect) -> EffectRecord:
        return EffectRecord(
            request.path, KINDS[type(request)], "intent", request_hash(request), self._ports.clock.now()
        )

    async def perform(self, request: ModelRequest | ToolRequest | Load | Offer) -> EffectRecord:
        started = self._ports.clock.now()
        usage: Usage | None = None
        delays: tuple[float, ...] = ()
        value: Value = None
        failure: Failure | None = None
        switches: list[Mapping[str, Value]] = []
        try:
            match request:
                case ModelRequest():
                    reply = await self._reply(request, switches)
                    # Also a reply that is of no use was paid for.
                    usage, delays = reply.usage, reply.delays
                    value = _checked(reply, may_call=_may_call(request))
                    if reply.finish_reason == "length":
                        # Replies that 0.1.0 recorded do not have it: they replay as complete ones.
                        value |= self._call(request).cut_off(reply.usage.output_tokens, reply.model)
                        if request.path in self._short:
                            value["cut_by"] = "the budget"
                case ToolRequest():
                    value = copy(await self._ports.tools.call(request, self.effect_id(request.path)))
                case Load(scheme="run"):
                    value = self._run
                case Load():
                    text = await self._ports.loader.load(request)
                    value = None if text is None else clean(text)
                case Offer():
                    if request.grants is None:
                        offers = await self._ports.tools.offers(request.names)
                        if request.reads_only:
                            offers = [offer for offer in offers if not self.writes(of_name(offer.name))]
                        value = copy([[offer.name, offer.description, offer.schema] for offer in offers])
                    else:
                        offers = await self._ports.tools.offers_under(request.grants)
                        value = copy([[offer.name, offer.description, offer.schema, offer.id] for offer in offers])
        except (StepFailed, Refused) as error:
            if self.parks and isinstance(error, Parked):
                raise
            failure = Failure.of(error)
            if isinstance(error, ModelFailed):
                delays = error.delays or delays
                usage = usage or (Usage(*error.used) if error.used else None)
        except InvalidValue as error:
            failure = Failure("tool", f"the result is not a JSON value: {error}")
        # Here and not when they happen: an event belongs to the transaction of its effect.
        for switch in switches:
            self._feed.say("model_switched", path=request.path, label=request.label, data=switch)
        return EffectRecord(
            request.path,
            KINDS[type(request)],
            "failed" if failure else "ok",
            request_hash(request),
            started,
            value,
            failure,
            usage,
            max(0.0, self._ports.clock.now() - started),
            delays,
        )

    def reused(self, request: ModelRequest) -> EffectRecord | None:
        """Return the reply of another run that this one takes over, or None."""
        earlier = self._ports.earlier
        record = earlier.take(request, self._ports.clock.now()) if earlier is not None else None
        if record is not None and isinstance(model := self._model_of(request), Rehearsed):
            model.pass_over(self._call(request))
        return record

    def _model_of(self, request: ModelRequest) -> Model:
        if request.model and self._ports.other_model is not None:
            return self._ports.other_model(request.model)
        return self._ports.model

    def _call(self, request: ModelRequest) -> ModelCall:
        left = request.bounds.tokens if request.bounds else None
        # Threads have always had a usual length, also those of runs that pin none.
        usual = usual_reply(self._reply_tokens, short=left is not None or request.path in self._short)
        return ModelCall(
            request.system,
            request.messages,
            request.closing,
            # Here and not in the request, whose hash is in journals that were written before there was a usual length.
            max_tokens=smallest(longest_reply(usual, request.max_tokens, request.reasoning), left),
            usual_tokens=request.max_tokens is None,
            left_tokens=left,
            temperature=request.temperature,
            reasoning=request.reasoning,
            timeout=request.timeout,
            cache=fingerprint([request.system, request.label])[:32] if request.tools or "[" in request.path else "",
            schema=request.schema,
            tools=request.tools,
            run=self._run,
            label=request.label,
            path=request.path,
            identity=request.identity,
            allow=request.allow,
            on_retry=lambda wait, reason: self._feed.waiting(request.path, request.label, wait, reason),
            on_wait=lambda reason: self._feed.queued(request.path, request.label, reason),
            on_reading=lambda processed, total: self._feed.reading(request.path, request.label, processed, total),
        )

    async def _reply(self, request: ModelRequest, switches: list[Mapping[str, Value]]) -> ModelReply:
        model, call = self._model_of(request), self._call(request)
        if (size := _prompt_size(call)) > MAX_PROMPT_CHARACTERS:
            message = f"the prompt has {size:,} characters; no more than {MAX_PROMPT_CHARACTERS:,} are sent to a model"
            raise ModelFailed(message, kind="too_long")

        def pass_on(piece: str) -> None:
            if piece:
                self._begun.add(request.path)
            self._feed.delta(request.path, request.label, piece)

        seconds = longest_call(request.timeout or self._timeout)
        timed = CallTime(seconds)
        call = replace(call, untimed=timed.untimed, on_switch=switches.append)
        try:
            async with timed.limit:
                return await model.complete(call, pass_on)
        except TimeoutError:
            if not timed.limit.expired():
                raise
        message = (
            f"{model.name}: the call took longer than {seconds:g} s in all, {TIMEOUTS_OF_A_CALL} times its timeout"
        )
        raise ModelFailed(message, kind="timeout")

    def may_have_paid(self, record: EffectRecord) -> bool:
        """Tell whether a failed call may have cost something although its cost is not known: a part of the reply came,
        or the service was silent for too long."""
        if record.failure is None or record.usage is not None:
            return False
        return record.path in self._begun or record.failure.kind == "timeout"

    def question(self, request: HumanRequest, expiry: float | None) -> Question:
        now = self._ports.clock.now()
        waits = [wait for wait in (expiry, request.expiry) if wait is not None]
        return Question(
            run=self._run,
            path=request.path,
            way=request.label,
            title=request.title,
            kind=request.kind,
            prompt=request.prompt,
            options=request.options,
            default=request.default,
            hash=request_hash(request),
            asked_at=now,
            expires_at=now + min(waits) if waits else None,
            explicit=request.explicit,
        )

    async def ask_here(self, question: Question) -> str | None:
        """Return a fitting answer from a person who is present, or None."""
        problem = rejected = ""
        unfit = 0
        # A person who is present is told what was wrong; an answer that was given beforehand is reported by an event.
        here = self.is_attended(question)
        while (answer := await self._ports.people.ask(question, problem)) is not None:
            try:
                fitting = clean(checked_answer(question.kind, question.options, answer))
            except WrongAnswer as wrong:
                problem, rejected = str(wrong), answer
                unfit += 1
                if unfit == MOST_UNFIT:
                    self._say_dropped(question, rejected, problem, f"nor did {unfit - 1} before it: the question waits")
                    return None
                # A computed answer comes at once: give the rest of the event loop its turn before the next one.
                await asyncio.sleep(0)
                continue
            if problem and not here:
                self._say_dropped(question, rejected, problem, f'"{fitting}" is taken instead')
            return fitting
        if problem and not here:
            self._say_dropped(question, rejected, problem, "the question waits")
        return None

    def _say_dropped(self, question: Question, answer: str, problem: str, instead: str) -> None:
        message = f'the answer "{clean(answer)}" does not fit, {instead} ({problem})'
        self._feed.say("warning", path=question.path, label=question.way, data={"message": message})

    def is_attended(self, question: Question) -> bool:
        """Return True if a person is present who may take their time over a question."""
        present = _present(self._ports.people)
        return present is not None and present.is_here(question)

    def answer_of(self, question: Question, value: str) -> Answer:
        """Return an answer from a person who is present, with its author."""
        people = self._ports.people
        named = issubclass(type(people), Attributed)
        by = cast("Attributed", people).answered_by(question) if named else ""
        return Answer(question.path, question.hash, value, by)

    async def first_answer(self, question: Question, value: str) -> Answer:
        """Return the answer that counts after a person who is present has answered.

        All answers go through the store, which accepts one.
        """
        mine = self.answer_of(question, value)
        try:
            await self._ports.store.answer(self._run, question.path, question.hash, value, mine.by)
        except RunState:
            for other in await self._ports.store.answers(self._run):
                if (other.path, other.hash) == (question.path, question.hash):
                    self.overtaken(question, other.value)
                    return other
        return mine

    def overtaken(self, question: Question, value: str) -> None:
        if (present := _present(self._ports.people)) is not None:
            present.overtaken(question, value)

    def settled(self, request: HumanRequest | Boundary | Join | Halt, value: Value, by: str = "") -> EffectRecord:
        """Return the record of a decision of a person or a child. The time spent waiting for it is not counted."""
        return EffectRecord(
            request.path, KINDS[type(request)], "ok", request_hash(request), self._ports.clock.now(), value, by=by
        )

    def aborted(self, path: str, number: int) -> EffectRecord:
        """Return the record that a child ended a fan for all of them.

        The child sent no request, so it has no hash to compare.
        """
        return EffectRecord(path, "abort", "ok", "", self._ports.clock.now(), number)

    def uncertain(self, request: ToolRequest) -> EffectRecord:
        """Return the failure of a call that was running at a crash and must not be made again."""
        name = f"{request.connection}/{request.tool}"
        message = f"{name} was under way when the run was interrupted, and it is not known whether it finished"
        now = self._ports.clock.now()
        return EffectRecord(
            request.path, "tool", "failed", request_hash(request), now, failure=Failure("uncertain", message)
        )

    def refused(
        self, request: ModelRequest | HumanRequest | ToolRequest | Load | WorkCheck, message: str, kind: str = REFUSED
    ) -> EffectRecord:
        now, failure = self._ports.clock.now(), Failure(kind, message)
        return EffectRecord(request.path, KINDS[type(request)], "failed", request_hash(request), now, failure=failure)

    def out_of_bounds(self, request: ModelRequest, estimate: float | None) -> EffectRecord | None:
        """Return the refusal of a call if its thread has no turns, tokens, time or money left for it, else None.

        `estimate` is the most that the call may cost, or None if that is not known."""
        bounds = request.bounds
        if bounds is None:
            return None
        if bounds.reached is not None:
            code, message = bounds.reached
            return self.refused(request, message, code)
        if bounds.money is None:
            return None
        left = bounds.money.left
        if estimate == 0 or (left > TINY and (estimate is None or estimate <= left + TINY)):
            return None
        if left > TINY:
            message = f"the next call may cost ${estimate:.4f}, and ${left:.4f} are left"
        else:
            message = "limit reached: nothing is left of the spend of this thread; resume with a higher limit"
        return self.refused(request, message, "spend_exceeded")

    def estimate(self, request: ModelRequest) -> float | None:
        """Return the most that a call may cost, or None if unknown."""
        model = self._model_of(request)
        return model.estimate(self._call(request)) if isinstance(model, Priced) else None

    def shortened(self, request: ModelRequest, left: float) -> float | None:
        """Return the most that a call may cost. If that is more than is left, its reply may only be short."""
        if (most := self.estimate(request)) is not None and most > left and request.max_tokens is None:
            self._short.add(request.path)
            most = self.estimate(request)
        return most

    async def sleep(self, seconds: float) -> None:
        await self._ports.clock.sleep(seconds)

    def effect_id(self, path: str) -> str:
        return effect_id(self._run, path)


def of_name(tool: str) -> ToolRequest:
    """Return the request of a tool that its name alone identifies, to ask about the tool."""
    return ToolRequest("", "", "", tool, {})


def effect_id(run: str, path: str) -> str:
    """Return the id under which a tool is called; it is the same each time the call is repeated."""
    return hashlib.sha256(f"{run}\n{path}".encode()).hexdigest()[:32]


def _may_call(request: ModelRequest) -> bool:
    """Tell whether calls of tools in a reply count. Those of a model that was offered no tools would make turns that no
    bound has; the model of a thread is told that it may not, and has a limit of turns."""
    of_a_thread = request.bounds is not None and request.bounds.tokens is not None
    return bool(request.tools) or of_a_thread


def _checked(reply: ModelReply, *, may_call: bool) -> dict[str, Value]:
    """Return a reply as it is recorded. Raises `ModelFailed` if it is empty, too long or not JSON.

    Of calls that are too many only the first is kept, so that the model is told: each one that fails is an event, at
    which hooks act."""
    if not reply.text.strip() and not (reply.uses and may_call):
        what = "asked for a tool, and was offered none" if reply.uses else "answered nothing"
        raise ModelFailed(f"{reply.model} {what}", kind="empty")
    if len(reply.text) > MAX_REPLY_CHARACTERS:
        raise ModelFailed(f"{reply.model} answered more than {MAX_REPLY_CHARACTERS:,} characters", kind="bad_reply")
    value: dict[str, Value] = {"text": clean(reply.text), "model": reply.model, "finish_reason": reply.finish_reason}
    if reply.uses and may_call:
        # In the form that a replay will see: models write half a surrogate pair, and numbers that JSON does not have.
        try:
            value["uses"] = copy([use.as_record() for use in reply.uses[: MOST_CALLS + 1]])
        except InvalidValue as error:
            raise ModelFailed(f"{reply.model} gave a tool what is not JSON: {error}", kind="bad_reply") from None
        if len(encode(value["uses"])) > MAX_REPLY_CHARACTERS:
            message = f"{reply.model} gave tools more than {MAX_REPLY_CHARACTERS:,} characters"
            raise ModelFailed(message, kind="bad_reply")
    return value


def _present(people: People) -> Present | None:
    """Return the people if they take time to answer. Their class is asked: Python takes ten times as long over the same
    question about an instance."""
    return cast("Present", people) if issubclass(type(people), Present) else None


def _prompt_size(call: ModelCall) -> int:
    """Count the characters to be sent, except the arguments of earlier calls, which have their own limit."""
    messages = len(call.system) + sum(len(message.content) for message in call.messages)
    return messages + sum(len(tool.name) + len(tool.description) for tool in call.tools)
