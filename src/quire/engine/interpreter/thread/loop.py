"""Run a directive: the loop of its thread asks the model, makes the calls of its reply and tells it the results, until
it returns its outputs or ends with text.

Every model request and every tool call is an effect of its own, so a killed thread continues in the middle of a turn
and repeats nothing. All counts come from records, so they are the same on every replay.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from quire.engine.conversation import Message, Offered, ToolUse, early_end, too_many_calls, uses_of
from quire.engine.interpreter.thread.budgets import RAISABLE, REACHED, Account
from quire.engine.interpreter.thread.compose import nudge
from quire.engine.interpreter.thread.hooks import HookDecision, HookRunner
from quire.engine.interpreter.thread.own_tools import as_return, missing_outputs, return_tool, returned
from quire.engine.interpreter.thread.setup import Setup, ThreadResult
from quire.engine.interpreter.thread.tool_calls import Calls
from quire.engine.interpreter.thread.tool_results import ToolResult, failed, finished_walk
from quire.engine.premises import FAILURES_IN_A_ROW, MOST_CALLS, PARALLEL
from quire.engine.requests import (
    Boundary,
    Emit,
    Fan,
    Load,
    Meter,
    Metering,
    ModelRequest,
    Offer,
    Outcome,
    Request,
    Steps,
)
from quire.engine.thread_progress import END, START
from quire.errors import StepFailed
from quire.plan.built_in_tools import RETURN
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.engine.requests import Walk


NUDGES = 2
SAME_TURNS_TOLD, SAME_TURNS = 3, 50
"""Turns with the same calls and the same results after which the model is warned, and after which it is stopped."""


def run_thread(setup: Setup) -> Generator[Request, Any, ThreadResult]:
    """Run a thread to its end. A failure of the thread is an ending, never an exception."""
    try:
        return (yield from _ThreadRun(setup).run())
    finally:
        setup.purse.close()  # also if it is stopped from outside: its spending counts for its parent


class _Ended(Exception):
    def __init__(self, ending: ThreadResult) -> None:
        self.ending = ending


class _ThreadRun:
    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.composed = setup.composed
        self.account = Account(setup.limits, setup.purse)
        self.messages = [Message("user", self.composed.message)]
        self.turn = 0
        self._over = False
        self._nudges = 0
        self._same = 0
        self._letters = 0
        self._known = 0
        self._last: tuple[object, ...] = ()
        self.calls = Calls(setup)
        self.hooks = HookRunner(setup, self._hook_directive)
        self._offered: tuple[Offered, ...] = ()

    def run(self) -> Generator[Request, Any, ThreadResult]:
        yield Emit("thread_started", self.setup.path, "", {"thread": self.setup.id, "depth": self.setup.depth})
        for number, warning in enumerate(self.composed.warnings):
            # An event is kept once for each path, so each warning has a path of its own.
            place = f"{self.setup.path}/start" + (f"/warning[{number}]" if number else "")
            yield Emit("warning", place, "", {"message": warning})
        try:
            yield from self._offer()
            reason = "a hook kept the thread from starting"
            yield from self._decide("thread_started", f"{self.setup.path}/start", reason)
            while True:
                yield from self._one_turn()
        except _Ended as ended:
            ending = ended.ending
        if (yield from self._stop_children()):
            # A resumed thread may have other children to stop at its end.
            ending = replace(ending, blame=(*ending.blame, self._halting))
        closing = self.composed.success if ending.success else self.composed.failure
        ending = replace(ending, closing=closing or None, cost=self.account.cost, outside=self.calls.untrusted)
        context: dict[str, Value] = {"success": ending.success, "outputs": dict(ending.outputs), "error": ending.error}
        if ending.success:
            self._over = True
            yield from self._fire("after_complete", f"{self.setup.path}/end", context)
        yield Emit("thread_ended", self.setup.path, "", {"thread": self.setup.id, **ending.as_value()})
        return ending

    def _one_turn(self) -> Steps:
        self.turn += 1
        self.hooks.paths.clear()
        yield Emit("step_started", self._at, self._label, {"title": self.setup.id, "depth": self.setup.depth})
        if self.calls.launched:
            yield from self._take_letters()
        text, uses = yield from self._ask_model()
        self.messages.append(Message("assistant", text, tuple(uses)))
        if uses:
            yield from self._use_tools(uses, text)
        else:
            yield from self._said(text)
        yield Emit("step_completed", self._at, self._label, {}, {"output": text, "displayed": text})
        overrides: Mapping[str, str] = yield Boundary.after(self._at, self._label)
        if overrides:
            values = "\n".join(f"{name}: {value}" for name, value in overrides.items())
            self.messages.append(Message("user", f"A person adds:\n{values}"))

    @property
    def _at(self) -> str:
        return f"{self.setup.path}/turn[{self.turn}]"

    @property
    def _label(self) -> str:
        """Return the label of the current turn.

        Before the first turn and after the last one the thread is not in any turn.
        """
        here = END if self._over else f"turn {self.turn}" if self.turn else START
        return here if not self.setup.depth else f"{self.setup.id} {here}"

    def _offer(self) -> Steps:
        offers: list[list[Any]] = yield Offer(f"{self.setup.path}/offer", "", grants=self.setup.grants)
        tools = [Offered(*offer) for offer in offers]
        tools += self.calls.own_tools()
        if self.composed.outputs or self.composed.success or self.composed.failure:
            tools.append(return_tool(self.composed.outputs))
        self._offered = tuple(tools)
        self.calls.offered = {tool.name: tool.id or tool.name for tool in tools}
        yield Emit("tools_offered", f"{self.setup.path}/offer", "", {"tools": [tool.id or tool.name for tool in tools]})

    def _ask_model(self) -> Generator[Request, Any, tuple[str, list[ToolUse]]]:
        """Return the model's reply, after as many attempts as it takes."""
        failures = again = 0
        while True:
            path = f"{self._at}/model" + (f"/retry[{again}]" if again else "")
            again += 1
            try:
                reply: Mapping[str, Value] = yield self._request(path)
            except StepFailed as error:
                yield from self._count(path)
                if error.kind in REACHED:
                    yield from self._limit_reached(error, path)
                    continue
                failures += 1
                decided = yield from self._fire("error", path, _error(error.kind, error.message, ""))
                yield from self._heed(decided, error, path)
                if decided is None or decided.stops or failures >= FAILURES_IN_A_ROW:
                    raise self._failed(error.message, error.kind) from None
                continue
            yield from self._count(path, turns=1)
            if warning := early_end(reply):
                yield Emit("warning", path, self._label, {"message": warning})
            self._known = len(self.messages)
            return str(reply["text"]), uses_of(reply)

    def _take_letters(self) -> Steps:
        """Add the results of pipelines that were launched and not waited for, and what they have spent."""
        path = f"{self._at}/letters"
        text: str | None = yield Load(path, self._label, "letters", str(self._letters))
        meters: list[Meter] = yield Metering(below=(path,))
        self.account.pay(Meter(cost=meters[0].cost))
        for letter in json.loads(text) if text else []:
            self._letters += 1
            self.messages.append(Message("user", letter))

    def _request(self, path: str) -> ModelRequest:
        settings: Mapping[str, Any] = self.setup.settings
        return ModelRequest(
            path=path,
            label=self._label,
            instructions=self.composed.system,
            messages=tuple(self.messages),
            tools=self._offered,
            model=self.setup.model,
            temperature=settings.get("temperature"),
            max_tokens=settings.get("max_tokens"),
            reasoning=settings.get("reasoning", ""),
            timeout=settings.get("timeout"),
            bounds=self.account.bounds(),
            known=self._known,
        )

    def _count(self, path: str, *, turns: int = 0) -> Steps:
        meters: list[Meter] = yield Metering((path,))
        for meter in meters:
            self.account.pay(meter, turns=turns)

    def _said(self, text: str) -> Steps:
        """Handle text without a tool call: remind the model if more is expected, otherwise end the thread."""
        outputs = self.composed.outputs
        if self._nudges < NUDGES and (self.turn == 1 or outputs):
            self._nudges += 1
            self.messages.append(Message("user", nudge(outputs)))
            return
        missing = missing_outputs(outputs, {})
        if missing:
            raise self._failed(f"the thread ended without its required outputs: {', '.join(missing)}", "outputs", text)
        if outputs:
            message = f"the thread ended with text, and without {', '.join(output.name for output in outputs)}"
            yield Emit("warning", self._at, self._label, {"message": message})
        raise _Ended(ThreadResult(True, text))

    def _use_tools(self, uses: list[ToolUse], text: str) -> Steps:
        handing_back = [returning for use in uses if (returning := as_return(use))]
        working = [use for use in uses if as_return(use) is None]
        walks = []
        sharing = sum(self.calls.starts_a_thread(use) or self.calls.calls_a_document(use) for use in working)
        for number, use in enumerate(working):
            path = f"{self._at}/tool[{number}]"
            if number >= MOST_CALLS:
                walks.append(finished_walk(failed(use.name, too_many_calls(len(working)))))
                continue
            if use.problem:
                walks.append(finished_walk(failed(use.name, StepFailed(use.problem, kind="arguments"))))
                continue
            walks.append((yield from self.calls.prepare(use, path, self._label, self.account.cost, max(1, sharing))))
            sharing -= self.calls.starts_a_thread(use)
            self.account.count_spawns(self.calls.children.started)
        if walks:
            outcomes: list[Outcome] = yield Fan(f"{self._at}/tools", iter(walks), PARALLEL)
            results = [cast("ToolResult", outcome.value) for outcome in outcomes]
            for number, (use, result) in enumerate(zip(working, results, strict=True)):
                yield from self._tell(use, result, f"{self._at}/tool[{number}]")
            self._notice_sameness(working, results)
        for number, use in enumerate(handing_back):
            # One that is refused may be followed by another, at which hooks act again.
            several = number if self.composed.rules > 2 else 0
            yield from self._hand_back(use, text, f"{self._at}/return" + (f"[{several}]" if several else ""))
        for note in self.hooks.notes:
            self.messages.append(Message("user", note))
        self.hooks.notes.clear()
        yield from self._decide("after_step", self._at, "a hook ended the thread")

    def _tell(self, use: ToolUse, result: ToolResult, path: str) -> Steps:
        """Give the model the result of one call; a failed call triggers the `error` hooks."""
        meters: list[Meter] = yield Metering(tuple(result["paths"]))
        for meter in meters:
            self.account.pay(meter)
        for cost in (result["cost"], *self.calls.children.unpaid()):
            if cost is not None:
                self.account.count_child(cost)
        self.calls.hear(result["outside"])
        self.account.count_documents(self.calls.uncounted())
        self.messages.append(Message("tool", result["content"], answers=use.id))
        data: dict[str, Value] = {"tool": result["tool"], "result": result["content"], "kind": result["kind"]}
        yield Emit("tool_told", path, self._label, data, kept=False)
        if not result["kind"]:
            return
        # In 0.1.0 hooks got a tool's error as the JSON that the model gets.
        message = result["content"] if self.composed.rules < 2 else result["message"]
        kind = "permission_denied" if result["kind"] == "denied" else result["kind"]
        decided = yield from self._fire("error", path, _error(kind, message, result["tool"]))
        error = StepFailed(message, kind=result["kind"])
        yield from self._heed(decided, error, path)
        if decided is not None and decided.stops:
            raise self._stopped(decided.message or message, result["kind"])

    def _notice_sameness(self, uses: list[ToolUse], results: list[ToolResult]) -> None:
        """Warn, then stop, a model that makes the same calls with the same results turn after turn."""
        now = tuple(
            (use.name, encode(dict(use.arguments)), result["content"])
            for use, result in zip(uses, results, strict=True)
        )
        self._same = self._same + 1 if now == self._last else 1
        self._last = now
        if self._same >= SAME_TURNS:
            raise self._failed(f"the model made the same calls {self._same} turns in a row", "repeated")
        if self._same >= SAME_TURNS_TOLD:
            note = f"You have made exactly this call {self._same} times in a row, with the same result each time."
            self.hooks.notes.append(note)

    def _hand_back(self, use: ToolUse, text: str, path: str) -> Steps:
        read = returned(self.composed.outputs, use.arguments)
        if read.problems:
            yield from self._refuse_return(use, "; ".join(read.problems), path)
            return
        context: dict[str, Value] = {"outputs": dict(read.outputs), "status": read.status}
        decided = yield from self._fire("directive_return", path, context)
        yield from self._heed(decided, None, path)
        if decided is not None and decided.what in ("retry", "skip"):
            yield from self._refuse_return(use, decided.message or "the outputs were not accepted", path)
            return
        if decided is not None and decided.stops:
            raise self._stopped(decided.message or "a hook refused the outputs", "hook", read.outputs)
        if read.status == "error":
            raise self._failed(read.error_detail or "the thread gave up", "returned", outputs=read.outputs)
        raise _Ended(ThreadResult(True, text, read.outputs))

    def _refuse_return(self, use: ToolUse, problem: str, path: str) -> Steps:
        content = encode({"error": problem})
        self.messages.append(Message("tool", content, answers=use.id))
        data: dict[str, Value] = {"tool": RETURN, "result": content, "kind": "outputs"}
        yield Emit("tool_told", path, self._label, data, kept=False)

    def _limit_reached(self, error: StepFailed, path: str) -> Steps:
        """End the thread at a limit, unless a hook asks a person and the person raises it."""
        event = self.account.reached(error.kind, error.message)
        context: dict[str, Value] = {"limit": event.as_value(), **event.as_value()}
        decided = yield from self._fire("limit", path, context)
        ending = self._failed(error.message, error.kind)
        ending.ending = replace(ending.ending, limit=error.kind)
        if decided is None or not decided.asks:
            raise ending
        name = error.kind.removesuffix("_exceeded")
        if name not in RAISABLE:
            raise ending
        raised = yield from self.hooks.higher_limit(name, decided.message or error.message, path, self._label)
        if raised is None:
            raise ending
        self.account.raise_limit(name, raised)

    def _heed(self, decided: HookDecision | None, error: StepFailed | None, path: str) -> Steps:
        """Put the thread into the inbox for `escalate` and `suspend`: a person decides whether it continues."""
        if decided is None or not decided.asks:
            return
        why = decided.message or (error.message if error else "a hook suspended the thread")
        if not (yield from self.hooks.may_go_on(why, path, self._label)):
            raise self._stopped(f"a person stopped the thread: {why}", "stopped")

    def _decide(self, event: str, where: str, otherwise: str) -> Steps:
        """Fire an event at which hooks may end the thread; `otherwise` is the reason if they give none."""
        decided = yield from self._fire(event, where)
        yield from self._heed(decided, None, where)
        if decided is not None and decided.stops:
            raise self._stopped(decided.message or otherwise, "hook")

    def _fire(self, event: str, where: str, more: Mapping[str, Value] | None = None) -> Steps:
        context: dict[str, Value] = {
            "event": event,
            "directive": self.composed.item_id,
            "thread_id": self.setup.id,
            "turn": self.turn,
            "cost": self.account.cost.as_value(),
            "limits": dict(self.composed.limits_declared),
            "inputs": dict(self.composed.inputs),
            **(more or {}),
        }
        return (yield from self.hooks.fire(event, where, self._label, context))

    def _hook_directive(self, item_id: str, inputs: Mapping[str, Value], path: str) -> Steps:
        result = yield from self.calls.run_directive(item_id, inputs, path, self._label, self.account.cost)
        self.account.count_spawns(self.calls.children.started)
        if result["cost"] is not None:
            self.account.count_child(result["cost"])
        self.calls.hear(result["outside"])
        return result["ended"]

    @property
    def _halting(self) -> str:
        return f"{self.setup.path}/end/halt"

    def _stop_children(self) -> Steps:
        """Stop the children that are still running; return True if there were any."""
        running = self.calls.children.running()
        if running:
            yield from self.calls.children.halt(self._halting, "", running)
        return bool(running)

    def _failed(self, message: str, kind: str, result: str = "", outputs: Mapping[str, Value] | None = None) -> _Ended:
        """Return an ending that the model is to blame for: when the run is resumed, this turn is done again."""
        return _Ended(ThreadResult(False, result, outputs or {}, message, kind, blame=(f"{self._at}/*",)))

    def _stopped(self, message: str, kind: str, outputs: Mapping[str, Value] | None = None) -> _Ended:
        """Return an ending that a hook or a person decided: when the run is resumed, only they are asked again."""
        return _Ended(ThreadResult(False, "", outputs or {}, message, kind, blame=tuple(self.hooks.paths)))


def _error(kind: str, message: str, resource: str) -> dict[str, Value]:
    return {"error": {"type": kind, "message": message, "resource": resource}}


def interpret_directive(setup: Setup) -> Walk:
    """Run a thread.

    Its result has the outputs, or the last words if none are declared. A thread that failed ends the run.
    """
    # A turn that a resume does again was paid for all the same.
    meters: list[Meter] = yield Metering(superseded=True)
    setup.purse.pay(meters[-1].cost)
    ending = yield from run_thread(setup)
    if not ending.success:
        raise ending.failure(setup.path)
    output = dict(ending.outputs) if setup.composed.outputs else ending.result
    return {"output": output, "thread": ending.as_value()}
