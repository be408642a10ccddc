"""The cost of the model calls of one step: calls, tokens, tool calls and time.

A call reads its prompt and, in later turns, everything that was said before. Texts of the document and of its inputs
have no more tokens than bytes. How many tokens a model needs to read a reply again is not certain, so a call that reads
one is bounded by the context window of its model; the formula for it is an estimate.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.analysis.abstract_values import BYTES_A_TOKEN
from quire.analysis.amounts import ONE, Amount, endless, number
from quire.analysis.costs import (
    ASKED,
    BYTES_OF,
    CALLS_OF,
    MODEL_CALLS,
    OUTPUT_OF,
    QUESTIONS,
    SURE_INPUT_OF,
    TOOL_CALLS,
    TOOLS_OF,
    WINDOW_OF,
    Cost,
    known,
)
from quire.engine.premises import JSON_GROWTH, MOST_CALLS, TOKENS_A_CALL, TOKENS_A_MESSAGE

if TYPE_CHECKING:
    from quire.analysis.facts import Place
    from quire.analysis.world import AgentFact, ToolFact

_REPAIR_TOKENS = 4_000
"""Tokens of the message to a model whose reply does not fit."""
_AROUND = 64
"""Bytes around the messages of a call, for the estimate."""
_FRAME = TOKENS_A_CALL + 2 * TOKENS_A_MESSAGE
"""Tokens that a service adds to a call with a system text and one message, at most."""


def model_calls(
    cost: Cost,
    agent: AgentFact,
    prompt: Amount,
    place: Place,
    *,
    reads_replies: bool,
    repairs: int = 0,
    least: int = 1,
    forced: int = 0,
) -> StepCalls:
    """Add the model calls of a step: one, or turns with tools, and corrections. `prompt` has the bytes of all that the
    first call reads, and `forced` those of the JSON Schema that is sent beside it. With `reads_replies`, only the
    window of the model bounds what a call reads."""
    key = agent, repairs, least, reads_replies
    calls = _KNOWN.get(key)
    if calls is None or calls.fixed.endless:
        calls = _constant(agent, repairs, least, reads_replies, place)
        if len(_KNOWN) < _MOST_KNOWN:
            _KNOWN[key] = calls
    cost.add_known(calls.fixed)
    first = prompt.plus(calls.frame if not forced else calls.frame.plus(number(JSON_GROWTH * forced)))
    if not calls.turns:
        # The bytes around the prompt are among the fixed costs.
        cost.spend(calls.read, prompt if calls.calls == 1 else prompt.times(number(calls.calls)).plus(calls.said))
        if not reads_replies:
            cost.spend(calls.sure, first)
    return StepCalls(calls.calls, first, calls.windows, calls.turns * MOST_CALLS)


class StepCalls(Struct, frozen=True, gc=False):
    """The model calls of a step each time it runs."""

    calls: int
    """How many there are at most, with turns and corrections."""
    first: Amount
    """Tokens that the first call reads at most, without the tools that it is offered."""
    windows: int
    """Calls of which only the window of the model bounds what they read."""
    uses: int = 0
    """Calls of tools, or questions, that the model can make."""


class _Calls(Struct, frozen=True):
    """The calls of an agent, without its prompt."""

    calls: int
    turns: int
    windows: int
    fixed: Cost
    frame: Amount
    """Tokens of a call besides the prompt and the JSON Schema of its reply, at most."""
    said: Amount
    """Bytes that corrections read in addition."""
    read: str
    sure: str


_KNOWN: dict[tuple[AgentFact, int, int, bool], _Calls] = {}
_MOST_KNOWN = 500


def _constant(agent: AgentFact, repairs: int, least: int, reads_replies: bool, place: Place) -> _Calls:
    """Return everything about the calls of an agent that does not depend on the prompt. Many steps share it."""
    turns = agent.turns if agent.tools or agent.asks else 0
    calls = 1 + turns + repairs
    model = agent.model
    cost = Cost()
    cost.count(MODEL_CALLS, calls, least)
    cost.count(ASKED, 1)
    cost.count(f"{CALLS_OF}{model}", calls)
    if agent.reply_tokens is not None:
        reply = number(agent.reply_tokens)
    else:
        reply = endless(place.reason("the length of a reply is not limited", "[runs] reply_tokens = 4096"))
    cost.spend(f"{OUTPUT_OF}{model}", reply.times(number(calls)))
    # Each turn reads all results before it: nothing but the window bounds that.
    windows = calls if turns or reads_replies else repairs
    if windows:
        cost.count(f"{WINDOW_OF}{model}", windows)
    if turns:
        _tool_turns(cost, agent, turns, place)
    else:
        cost.count(f"{BYTES_OF}{model}", (_AROUND + agent.system_tokens) * calls)
    _time(cost, agent.seconds, calls, f"a call of {model or 'the model'}", place)
    amount = reply.plus(number(_REPAIR_TOKENS)).times(number(BYTES_A_TOKEN * repairs * (repairs + 1) // 2))
    return _Calls(
        calls,
        turns,
        windows,
        known(cost),
        number(_FRAME + agent.system_tokens),
        amount,
        f"{BYTES_OF}{model}",
        f"{SURE_INPUT_OF}{model}",
    )


def _tool_turns(cost: Cost, agent: AgentFact, turns: int, place: Place) -> None:
    calls = turns * MOST_CALLS
    if agent.asks:
        cost.count(QUESTIONS, calls)
    if not agent.tools:
        return
    cost.count(TOOL_CALLS, calls)
    for effect in dict.fromkeys(tool.effect for tool in agent.tools):
        cost.count(f"{TOOLS_OF}{effect}", calls)
    if any(tool.seconds is None for tool in agent.tools):
        _time(cost, None, calls, "a tool of the agent", place)
    else:
        _time(cost, max(tool.seconds or 0.0 for tool in agent.tools), calls, "", place)


def tool_call(cost: Cost, tool: ToolFact, place: Place) -> None:
    """Add one call of a tool by a step."""
    cost.add_known(_one_call(tool.effect, tool.seconds))
    if tool.seconds is None:
        _time(cost, None, 1, tool.name, place)


@lru_cache(maxsize=256)
def _one_call(effect: str, seconds: float | None) -> Cost:
    cost = Cost()
    cost.count(TOOL_CALLS, 1, 1)
    cost.count(f"{TOOLS_OF}{effect}", 1)
    if seconds is not None:
        cost.take(round(seconds * 1000))
    return known(cost)


def _time(cost: Cost, seconds: float | None, often: int, what: str, place: Place) -> None:
    if seconds is None:
        cost.spend_time(endless(place.reason(f"nothing bounds how long {what} takes")))
    else:
        cost.take(round(seconds * 1000) * often)


def tried(cost: Cost, times: int, *, survives: bool) -> Cost:
    """Return the cost of work that may be tried again `times` times. If its failure is survived, it may fail before any
    work."""
    if not times and not survives:
        return cost
    whole = cost.times(number(1 + times) if times else ONE, 0 if survives else 1)
    if times:
        whole.drop(ASKED)
        whole.spend(ASKED, cost.amount(ASKED))
    return whole
