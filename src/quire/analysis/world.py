"""The workspace as an analysis needs it: the documents that are called, the tools behind names, and the models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct

from quire.analysis.labels import Integrity, Privacy
from quire.engine.premises import REPLY_TOKENS

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.budgets import Limits
    from quire.plan.nodes import Plan, StepModel
    from quire.plan.pipeline_work import Agent
    from quire.plan.thread import HookAction, Thread
    from quire.trust.capabilities import Grants

Class: TypeAlias = "Literal['read', 'idempotent', 'write']"
Kind: TypeAlias = "Literal['built-in', 'shell', 'http', 'mcp', 'python', 'item', 'own']"


class ToolFact(Struct, frozen=True):
    """A tool, or a pattern for several, as it is known without starting anything."""

    name: str
    """The name as the document writes it."""
    capability: str
    effect: Class = "write"
    """A tool that is not known counts as one that writes."""
    tier: str = "elevated"
    kind: Kind = "mcp"
    gives: Integrity = Integrity.OUTSIDE
    """The least integrity of its results."""
    gives_privacy: Privacy = Privacy.PUBLIC
    sends_out: bool = False
    """True if its arguments leave the machine."""
    seconds: float | None = None
    """The longest that a call takes; None if nothing bounds it."""
    result_tokens: int = 1_000_000
    """The longest result."""
    certain: bool = True
    """False if effect and tier are only assumed, because the tool is not known."""


class AgentFact(Struct, frozen=True, cache_hash=True):
    """The model and the tools of a model call, as the settings have them."""

    model: str = ""
    """Empty if it is not known."""
    tools: tuple[ToolFact, ...] = ()
    asks: bool = False
    """True if the model may ask a person."""
    turns: int = 25
    """Turns in which it may use tools."""
    reply_tokens: int | None = REPLY_TOKENS
    """None if its replies have no limit."""
    seconds: float | None = None
    """The longest that one call takes, with all tries; None if nothing bounds it."""
    system_tokens: int = 0
    """Of its own system text."""


class ThreadFact(Struct, frozen=True):
    """A directive as it would run: composed with its ancestors, under the limits of the engine."""

    agent: AgentFact
    limits: Limits
    """Its own, with the defaults of the engine. A child has at most those of its parent."""
    grants: Grants
    children: tuple[tuple[str, Thread], ...] | None = ()
    """The directives that it may start as threads, by id; None if they are not known."""
    documents: tuple[tuple[str, Plan], ...] | None = ()
    """The pipelines and playbooks that it may run, by name; None if they are not known."""
    inherits: bool = False
    """True if it has the permissions of the thread that starts it."""
    launches: bool = False
    """True if it may launch runs of their own: of pipelines that it does not wait for, or that its model writes."""
    launched_model: str = ""
    """The model of runs that it launches; empty if it is not known."""
    knowledge: tuple[str, ...] = ()
    """Ids of the knowledge of the project and of the user that the engine puts into its prompt: no grant is needed for
    that."""
    prompt_length: int | None = None
    """Bytes of the first message without inputs; None if it is not known."""
    load_seconds: float = 0.0
    """The longest that loading a document takes."""
    problem: str = ""
    """Why it could not be composed; empty if it could."""


class World(Protocol):
    """Answers about names. All answers are the same each time."""

    @property
    def context_budget(self) -> int | None:
        """Characters of earlier results that a step of a playbook is sent; None for all."""
        ...

    def trusts(self, server: str) -> bool:
        """Tell whether the user has marked a server as trusted."""
        ...

    def reads_private(self, patterns: tuple[str, ...]) -> bool:
        """Tell whether one of these paths, in which `*` stands for any text, may be a private file."""
        ...

    def document(self, name: str) -> Plan | None:
        """Return a called document of any format, or None if it is not found."""
        ...

    def tools(self, connection: str, name: str) -> tuple[ToolFact, ...]:
        """Return the tool behind a name; several for a pattern, none if the engine itself answers it."""
        ...

    def server_seconds(self, name: str) -> float:
        """Return the longest that a request to a server takes; to any of them, if it is not one that is known."""
        ...

    def agent(self, work: Agent) -> AgentFact:
        """Return the profile of an agent step."""
        ...

    def thinker(self, cast: StepModel | None) -> AgentFact:
        """Return the profile of a playbook step."""
        ...

    def thread(self, thread: Thread) -> ThreadFact:
        """Return a directive as it would run."""
        ...

    def hook_tool(self, action: HookAction) -> ToolFact | None:
        """Return the tool that an action of a hook calls; None if it only decides."""
        ...
