"""Premises of the proof before a run: the limits that the engine enforces on calls of models and tools, and the
count of pure work, which a walk computes without any effect.

This is the one place where these numbers stand. The code that enforces a limit reads it from here, and so does the
analysis that multiplies it; a test compares each with what happens.

The count belongs to one walk. A driver or a replay decides how far it may go: the interpreter only stops to ask, with a
`WorkCheck`, at intervals and at every path where the journal has a refusal. An allowed check is not recorded, so a
drive and a replay may ask at different moments; a refusal is recorded at the path of its step and replayed there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

from msgspec import Struct

from quire.plan.vocabulary import MAX_ITEMS

if TYPE_CHECKING:
    from quire.values import Value

_N = TypeVar("_N", int, float)

REPLY_TOKENS: Final = 16_384
"""Tokens of one reply, if neither `[runs] reply_tokens` nor the agent itself sets another number."""

SHORT_REPLY_TOKENS: Final = 4096
"""The same for a turn of a thread, and for a call for which the budget, or the model, has no room for more."""

THINKING_TOKENS: Final[Mapping[str, int]] = {"minimal": 1024, "low": 2048, "medium": 10_000, "high": 16_384}
"""Tokens that a model may think in addition, where `reasoning` is set and `max_tokens` is not. Services count thoughts
as part of the reply, and refuse a reply that is shorter than the thoughts they plan."""

TOKENS_A_MESSAGE: Final = 16
"""Marks of role, beginning and end that a service puts around a message."""

TOKENS_A_CALL: Final = 1024
"""The text that a service adds to a call by itself, such as its instructions for tools; up to about 800 are known."""

JSON_GROWTH: Final = 3
"""Services write schemas and arguments anew, with spaces and `\\u00e9` for letters."""

MAX_TURNS: Final = 25
"""Turns with tools of an agent whose profile does not set them, as in 0.1.0."""

DIALECT_TURNS: Final = 8
"""Turns of an agent of the Quire dialect where neither its step nor its profile sets them."""

REPAIRS: Final = 2
"""How often a reply that does not fit its schema is sent back."""

MOST_CALLS: Final = 200
"""The number of tool calls of one turn that are made; a model that wants more at once is told so."""

PARALLEL: Final = 8
"""Tool calls of one turn of a thread that are made at the same time."""

FAILURES_IN_A_ROW: Final = 3
"""How often a thread whose model failed is tried again by its hooks, before it ends."""

THREAD_LIMITS: Final[Mapping[str, Value]] = {
    "turns": 25,
    "tokens": 200_000,
    "spend": 1.0,
    "spend_currency": "USD",
    "spawns": 50,
    "depth": 10,
    "duration_seconds": 1800,
}
"""Limits of a thread whose directive does not set them."""

TIMEOUT: Final = 120.0
"""Seconds in which a service must send something, unless configured otherwise."""

TIMEOUTS_OF_A_CALL: Final = 30
"""How many times its time-out a model call may take in all: its tries, the waits between them, and a reply that keeps
trickling in. Waiting for a place under `[models.limits]` does not count."""

BACKOFF: Final = (1.0, 2.0, 4.0, 8.0)
"""Waits before a failed call is tried again, in seconds; a service may ask for a longer wait."""

RETRY_WAIT: Final = 60.0
"""The longest wait before another try. If a service asks for a longer one, the run parks."""

MAX_REPLY_CHARACTERS: Final = 4_000_000
"""A longer reply means that the server is broken."""

MAX_PROMPT_CHARACTERS: Final = 8_000_000
"""About two million tokens: more than models read. A longer call is not made, so nothing is paid for it."""

MAX_RESULT_BYTES: Final = 1_000_000
"""Bytes of the result of one tool call, as JSON."""

PURE_WORK: Final = 100_000_000
"""Units of `quire.engine.premises` that a run may compute between its effects by default: 10 to 30 seconds."""

FILE_SECONDS: Final = 300.0
HTTP_SECONDS, LONGEST_HTTP = 30.0, 120.0
SHELL_SECONDS, LONGEST_SHELL = 60.0, 600.0
PYTHON_SECONDS, LONGEST_PYTHON = 300.0, 86_400.0
MCP_SECONDS, MCP_START_SECONDS = 120.0, 60.0
GRACE_SECONDS: Final = 60.0
"""Seconds that a call of a tool may take in addition to its own limit: to look at files before and after a command, and
to end a process that does not end."""

ToolKind: TypeAlias = "Literal['files', 'items', 'http', 'shell', 'python', 'mcp']"
"""Tools that share a limit: `items` are those that find, load and sign documents. Launching another run has no limit of
its own, because it waits for the end of that run."""


class ToolSeconds(Struct, frozen=True):
    """The longest that one call of a tool of each kind may take, in seconds, all around it included."""

    files: float = FILE_SECONDS + GRACE_SECONDS
    items: float = FILE_SECONDS + GRACE_SECONDS
    http: float = LONGEST_HTTP + GRACE_SECONDS
    """For `timeout` at its largest; without the argument `HTTP_SECONDS` hold."""
    shell: float = LONGEST_SHELL + GRACE_SECONDS
    """For `timeout` at its largest; without the argument `SHELL_SECONDS` hold."""
    python: float = PYTHON_SECONDS + GRACE_SECONDS
    """For a function that declares no `timeout`."""

    def of(self, kind: ToolKind, own: float | None = None) -> float:
        """Return the longest that a call may take; `own` is the limit that the call, its function or its server
        sets."""
        if kind == "mcp":
            # A session that is gone is opened once more, and the call made again if that is harmless.
            return 2 * (MCP_START_SECONDS + (MCP_SECONDS if own is None else own)) + GRACE_SECONDS
        return float(getattr(self, kind)) if own is None else own + GRACE_SECONDS


TOOL_SECONDS: Final = ToolSeconds()


class Premises(Struct, frozen=True):
    """The limits of one run. The defaults are those of an empty `quire.toml`; 0 never means "no limit" here."""

    reply_tokens: int = REPLY_TOKENS
    """Sent with every model call, unless the agent or its step sets `max_tokens`, which then holds instead."""
    turns: int = MAX_TURNS
    """Turns with tools of an agent or a step; there is one more model call than turns."""
    dialect_turns: int = DIALECT_TURNS
    repairs: int = REPAIRS
    calls_per_turn: int = MOST_CALLS
    timeout: float = TIMEOUT
    """Seconds of silence of a service, where the agent or its tier sets no `timeout`."""
    model_tries: int = len(BACKOFF) + 1
    """Tries of one model call. A try is made again only while no text has come."""
    retry_wait: float = RETRY_WAIT
    tool_seconds: ToolSeconds = TOOL_SECONDS
    result_bytes: int = MAX_RESULT_BYTES
    prompt_characters: int = MAX_PROMPT_CHARACTERS
    reply_characters: int = MAX_REPLY_CHARACTERS
    items: int = MAX_ITEMS
    """Items of a `for_each` without `max_items`; a longer list fails the step."""
    spawns: int | None = 100
    """Model calls of a pipeline in all (`max_pipeline_spawns`); None if there is no limit. A cap, not a bound: a run
    that reaches it fails."""


def smallest(*limits: _N | None) -> _N | None:
    """Return the limit that counts: the smallest of those that are set, or None."""
    return min((limit for limit in limits if limit is not None), default=None)


def longest_reply(usual: int | None, own: int | None, reasoning: str) -> int | None:
    """Return the tokens of one reply at most: those that the agent asks for, else the usual ones and its thoughts.

    None means no limit, as in runs that were started before there was one."""
    if own is not None or usual is None:
        return own
    return usual + THINKING_TOKENS.get(reasoning, 0)


def usual_reply(setting: int | None, *, short: bool) -> int | None:
    """Return the tokens of one reply of an agent that asks for none: those of the setting, if it has been changed."""
    return SHORT_REPLY_TOKENS if short and setting in (None, REPLY_TOKENS) else setting


def longest_call(timeout: float) -> float:
    """Return the seconds that a model call with this time-out may take in all."""
    return timeout * TIMEOUTS_OF_A_CALL


UNITS_BETWEEN_CHECKS = 100_000
"""About 10 milliseconds: the time that the event loop waits for its turn."""

STEP = 40
"""Units of one step. One unit is about the time that one node of an expression takes."""

REPLAY_FACTOR = 2
"""A replay may use this many times the limit: it asks at other moments than the drive, and a run that kept to the limit
must remain readable."""

WORK = "/work"
"""The last segment of a check's path."""


class PureWork:
    """Count of the work units of one walk. `used` only grows.

    `pause_at` is the count at which to ask next. `refused` are the paths of checks that are recorded as refused; they
    have to be asked again at any count.
    """

    __slots__ = ("pause_at", "refused", "used")

    def __init__(self, refused: Iterable[str] = ()) -> None:
        self.used = 0
        self.pause_at = UNITS_BETWEEN_CHECKS
        self.refused = frozenset(refused)

    def due(self, path: str) -> bool:
        """Return True if the check at this path has to be asked."""
        return self.used >= self.pause_at or (bool(self.refused) and path in self.refused)

    def allow(self) -> None:
        """Let the work continue until the next check."""
        self.pause_at = self.used + UNITS_BETWEEN_CHECKS

    def add_text(self, characters: int) -> None:
        """Count text that is built, written as JSON or hashed."""
        self.used += characters >> 5


def exhausted(limit: int, label: str, path: str) -> str:
    """Say which limit is reached, where, and how to raise it."""
    at = path.rpartition(WORK)[0]
    step = f"step {label} ({at})" if label else f"the step at {at}"
    return (
        f"{step} is not begun: the steps before it have used the {limit:,} units of pure work that a run may use "
        f"(go through fewer items, or raise pure_work under [runs] in the user's own quire.toml)"
    )


def replay_exhausted(limit: int) -> str:
    return (
        f"to follow this run takes more than the {limit:,} units of pure work that are allowed "
        f"(raise pure_work under [runs] in the user's own quire.toml)"
    )
