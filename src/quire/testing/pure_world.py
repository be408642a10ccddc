"""Answer the requests of a pure walk from the world of a case: its scripts, its people and its tools.

Tools go through the gate of the case, so grants, schemas and scripts count as in a driven run. A call of the gate is a
coroutine; the loop of the case runs it to its end, and the time that passes there is the time that the effect took.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

from quire.engine.ports import ModelCall
from quire.engine.premises import MOST_CALLS, REPLY_TOKENS, longest_reply, smallest, usual_reply
from quire.engine.requests import Boundary, Failure, HumanRequest, Load, Meter, ModelRequest, Offer, ToolRequest
from quire.errors import ModelFailed, Refused, StepFailed
from quire.plan.ways import last_label
from quire.runs.adapters import Unattended, option_by_number
from quire.testing.observation import SeenPrompt, SeenQuestion
from quire.testing.pure_answers import NO_METER, Performance
from quire.testing.world.model import NAME, NO_REPLY, CaseModel, usage_of
from quire.testing.world.process import Died
from quire.testing.world.replies import ModelAsked
from quire.values import clean, copy

if TYPE_CHECKING:
    from collections.abc import Callable

    from quire.engine.ports import Loader, Tools
    from quire.engine.records import Question
    from quire.formats.test.syntax import Entry
    from quire.testing.case_run import CaseWorld
    from quire.testing.pure_answers import Performed
    from quire.testing.virtual_loop import VirtualLoop
    from quire.values import Value

T = TypeVar("T")


class WorldAnswers:
    """Answers of one walk. What was answered before is answered the same again, so a walk can be begun anew.

    `open_gate` and `open_loader` are called when the first tool, and the first text, is needed.
    """

    def __init__(
        self,
        world: CaseWorld,
        loop: VirtualLoop,
        open_gate: Callable[[], Tools],
        open_loader: Callable[[Tools], Loader],
        *,
        unattended: bool,
    ) -> None:
        self.world = world
        self._loop = loop
        self._open_gate = open_gate
        self._open_loader = open_loader
        self._unattended = unattended
        self._gate: Tools | None = None
        self._done: dict[str, Performance] = {}

    def __call__(self, request: Performed) -> Performance | None:
        known = self._done.get(request.path)
        if known is not None:
            return known
        try:
            done = self._perform(request)
        except (StepFailed, Refused) as error:
            done = Performance(failure=Failure.of(error))
        if done is not None:
            self._done[request.path] = done
        return done

    def _perform(self, request: Performed) -> Performance | None:
        match request:
            case ModelRequest():
                return self._model(request)
            case HumanRequest():
                return self._ask(request)
            case ToolRequest():
                return self._timed(self._tools().call(request, ""))
            case Load(scheme="run"):
                return Performance("run")
            case Load():
                loaded = self._timed(self._open_loader(self._tools()).load(request))
                loaded.value = clean(loaded.value) if isinstance(loaded.value, str) else loaded.value
                return loaded
            case Offer():
                return self._offer(request)
            case Boundary():
                return None
            case _:
                assert_never(request)

    def _tools(self) -> Tools:
        if self._gate is None:
            self._gate = self._open_gate()
        return self._gate

    def _timed(self, call: Coroutine[Any, Any, Value]) -> Performance:
        began = self._loop.time()
        try:
            value = copy(self._loop.run(call))
        except (StepFailed, Refused) as error:
            return Performance(meter=self._meter(began), failure=Failure.of(error))
        return Performance(value, self._meter(began))

    def _meter(self, began: float) -> Meter:
        passed = self._loop.time() - began
        return Meter(elapsed=passed) if passed else NO_METER

    def _offer(self, request: Offer) -> Performance:
        gate = self._tools()
        if request.grants is None:
            offers = self._loop.run(_awaited(gate.offers(request.names)))
            if request.reads_only:
                reads = (ToolRequest("", "", "", one.name, {}) for one in offers)
                offers = [one for one, read in zip(offers, reads, strict=True) if gate.effect_class(read) == "read"]
            return Performance(copy([[one.name, one.description, one.schema] for one in offers]))
        under = self._loop.run(_awaited(gate.offers_under(request.grants)))
        return Performance(copy([[one.name, one.description, one.schema, one.id] for one in under]))

    def _model(self, request: ModelRequest) -> Performance | None:
        model = self.world.model
        if type(model) is not CaseModel:
            return self._other_model(model, request)
        messages = tuple((message.role, message.content) for message in request.messages)
        names = tuple(tool.name for tool in request.tools)
        seen = SeenPrompt(request.path, request.label, request.system, messages, names)
        model.seen.append(seen)
        asked = ModelAsked(request.path, request.label, seen.text)
        entry = model.replies.take(asked)
        if entry is None:
            model.missing.append((asked, None))
            raise ModelFailed(f"the test has no reply for this call of step {seen.label}", kind=NO_REPLY)
        if entry.crash is not None and model.replies.dies(entry):
            return None
        used = usage_of(entry)
        meter = Meter(used.input_tokens, used.output_tokens, used.cost, entry.delay)
        if entry.error is not None:
            return Performance(meter=meter, failure=Failure(entry.error.kind, entry.error.message))
        return Performance(_reply(entry, request), meter)

    def _other_model(self, model: CaseModel, request: ModelRequest) -> Performance | None:
        """Ask a model that has more than a script, such as recorded replies."""
        began = self._loop.time()
        try:
            reply = self._loop.run(model.complete(_call(request), lambda text: None))
        except Died:
            return None
        value: dict[str, Value] = {
            "text": clean(reply.text),
            "model": reply.model,
            "finish_reason": reply.finish_reason,
        }
        if reply.finish_reason == "length":
            value |= _call(request).cut_off(reply.usage.output_tokens, reply.model)
        if reply.uses and (request.tools or request.bounds):
            value["uses"] = copy([use.as_record() for use in reply.uses[: MOST_CALLS + 1]])
        used = reply.usage
        return Performance(value, Meter(used.input_tokens, used.output_tokens, used.cost, self._loop.time() - began))

    def _ask(self, request: HumanRequest) -> Performance | None:
        if self._unattended:
            return Performance(self._loop.run(Unattended().ask(_question(request), "")))
        people = self.world.people
        seen = people.seen.setdefault(
            request.path, SeenQuestion(request.path, request.label, request.kind, request.prompt, request.options)
        )
        given = people.answers.take(request.path, request.label, last_label(request.label))
        if given is None:
            return None
        seen.answer = option_by_number(request.kind, request.options, given.value)
        return Performance(seen.answer, Meter(elapsed=given.after) if given.after else NO_METER)


def _reply(entry: Entry, request: ModelRequest) -> dict[str, Value]:
    """Return the reply of an entry as the journal keeps one."""
    value: dict[str, Value] = {"text": clean(entry.reply), "model": NAME}
    finish = entry.finish_reason or ("tool_call" if entry.calls else "stop")
    value["finish_reason"] = finish
    if finish == "length":
        value |= _call(request).cut_off(usage_of(entry).output_tokens, NAME)
    calls = entry.calls[: MOST_CALLS + 1] if request.tools or request.bounds else ()
    if calls:
        earlier = sum(len(message.uses) for message in request.messages)
        value["uses"] = [[f"call_{earlier + at}", name, copy(given)] for at, (name, given) in enumerate(calls, 1)]
    return value


def _call(request: ModelRequest) -> ModelCall:
    left = request.bounds.tokens if request.bounds else None
    usual = usual_reply(REPLY_TOKENS, short=left is not None)
    return ModelCall(
        request.system,
        request.messages,
        request.closing,
        max_tokens=smallest(longest_reply(usual, request.max_tokens, request.reasoning), left),
        usual_tokens=request.max_tokens is None,
        left_tokens=left,
        temperature=request.temperature,
        reasoning=request.reasoning,
        timeout=request.timeout,
        schema=request.schema,
        tools=request.tools,
        run="run",
        label=request.label,
        path=request.path,
        identity=request.identity,
        allow=request.allow,
    )


def _question(request: HumanRequest) -> Question:
    from quire.engine.records import Question

    return Question(
        "run",
        request.path,
        request.label,
        request.title,
        request.kind,
        request.prompt,
        request.options,
        request.default,
        "",
        0.0,
        explicit=request.explicit,
    )


async def _awaited(call: Coroutine[Any, Any, T]) -> T:
    return await call
