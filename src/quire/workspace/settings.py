"""The settings and their defaults: plain values that every other part may read.

`quire.workspace.configuration` makes them from the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field

from quire.engine.premises import PURE_WORK, REPLY_TOKENS
from quire.models.choose import CallSettings

if TYPE_CHECKING:
    from quire.models.choose import ModelSettings
    from quire.sizes import Size
    from quire.workspace.host_headers import HostHeaders
    from quire.workspace.locate import Workspace
    from quire.workspace.mcp_config import McpServer

OnUncertain: TypeAlias = "Literal['rerun', 'ask', 'fail']"
Durability: TypeAlias = "Literal['power', 'process']"
TrustMode: TypeAlias = "Literal['require', 'warn']"


class ToolSettings(Struct, frozen=True):
    """The table `[tools]` of one file."""

    allow: tuple[str, ...] = ()
    """Requests of the workspace's files, not grants."""
    modules: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    """Holds whichever file contains it."""
    shell_env: tuple[str, ...] = ()
    """Variables that commands get; read from the user's own file only."""


class RunSettings(Struct, frozen=True):
    """The table `[runs]`."""

    expiry: float | None = 30 * 86_400.0
    """In seconds; None for never."""
    on_uncertain: OnUncertain = "rerun"
    durability: Durability = "power"
    context_budget: int | None = None
    """In characters of earlier outputs in a prompt; None for a value that depends on the model."""
    pure_work: int = PURE_WORK
    """How much a run may compute between its effects, in units of `quire.engine.pure_work`."""
    reply_tokens: int = REPLY_TOKENS
    """Tokens of one reply of a model, where its agent or tier does not set `max_tokens`."""


class TrustSettings(Struct, frozen=True):
    mode: TrustMode = "require"
    documents: bool = False
    locked: bool = False
    """Whether runs are refused that may do more than `quire.lock` says. Holds whichever file sets it."""


class AgentSettings(Struct, frozen=True):
    """An identity of agents. `turns` is the number of turns in a row in which an agent of a pipeline may use tools."""

    model: str | None = None
    system: str = ""
    tools: tuple[str, ...] = ()
    turns: int | None = None
    call: CallSettings = CallSettings()


class PlaybookSettings(Struct, frozen=True):
    """A table `[playbooks."NAME"]`. Models are tiers, profiles of `[agents]`, or models themselves."""

    model: str = ""
    """The model of all steps that ask for no other."""
    agent: str = ""
    """The profile whose read-only tools the steps may use."""
    steps: Mapping[str, str] = field(default_factory=dict)
    """Models of single steps, by label; they win over the document."""


class SpawnSettings(Struct, frozen=True):
    """Limits of pipelines; 0 means no limit."""

    max_pipeline_fan_out_depth: int = 5
    max_pipeline_spawns: int = 100
    said: bool = False
    """True if a file says how many model calls there may be. The default gives way to a budget."""


class SandboxSettings(Struct, frozen=True):
    """Limits of a command in the sandbox; read from the user's own file only."""

    memory: int = 4096
    """MB of all its processes together, and never more than half of the machine; one process may reserve twice as
    much."""
    processes: int = 2048
    file: int = 4096
    """MB of one file that it writes."""


class PipelineEntry(Struct, frozen=True):
    path: str
    description: str = ""
    enabled: bool = True


class TemporalAccess(Struct, frozen=True):
    """Access to a Temporal server that is not open to all. Secrets are named here, never held."""

    tls: bool | None = None
    """None if it is not set: then TLS is used if any other of these settings is."""
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    server_name: str | None = None
    api_key_env: str | None = None
    api_key_file: Path | None = None

    @property
    def encrypted(self) -> bool:
        return self != TemporalAccess() if self.tls is None else self.tls


class ClusterSettings(Struct, frozen=True):
    """The table `[cluster]`."""

    temporal: str | None = None
    namespace: str = "default"
    task_queue: str = "quire"
    heartbeat: float = 10.0
    """The seconds of silence after which a worker counts as dead and others take its runs over."""
    access: TemporalAccess = TemporalAccess()
    """Belongs to the server `temporal`: the two come from the same file."""


WEBHOOK_EVENTS = ("question.opened", "question.answered", "run.completed", "run.failed", "run.expiring")
LISTENERS = 256
WEBHOOK_TEXTS = ("prompt", "artifact")


class WebhookSettings(Struct, frozen=True):
    """A table `[webhooks.NAME]`; read from the user's own file only. The secret is named here, never held."""

    url: str
    secret_env: str | None = None
    secret_file: Path | None = None
    events: tuple[str, ...] = WEBHOOK_EVENTS
    include: tuple[str, ...] = ()
    """The texts of a run that are sent along: `prompt` of a question, `artifact` of a completed run."""


class ServerMark(Struct, frozen=True):
    """A table `[servers.NAME]`: what the user says about an MCP server. Read from the user's own file only."""

    at: str = ""
    """The address of the server, or its command with the arguments: a workspace may give its name to another one."""
    trusted: bool = False
    """True if its results do not count as text from outside."""
    private: bool = False
    """True if its results must not leave."""


NOTIFY_EVENTS = ("run.waiting", "run.completed", "run.failed")


class NotifySettings(Struct, frozen=True):
    """The table `[notify]`; read from the user's own file only, because it starts a program."""

    command: tuple[str, ...]
    events: tuple[str, ...] = NOTIFY_EVENTS


class Excess(Struct, frozen=True):
    """A setting of the workspace that goes beyond the user's own: `key` as in the docs, `value` as requested."""

    kind: Literal["limit", "model"]
    key: str
    value: str
    line: str
    """The line shown to the user."""


class Settings(Struct, frozen=True):
    """All settings of a workspace and its user."""

    workspace: Workspace
    user: Path
    models: ModelSettings
    tools: ToolSettings = ToolSettings()
    granted: tuple[str, ...] = ()
    """`[tools] allow` of the user's space."""
    denied: tuple[str, ...] = ()
    """`[tools] deny` of both files."""
    shell_env: tuple[str, ...] = ()
    runs: RunSettings = RunSettings()
    prompt_folders: tuple[Path, ...] = ()
    knowledge_folders: tuple[Path, ...] = ()
    trust: TrustSettings = TrustSettings()
    store_url: str | None = None
    agents: Mapping[str, AgentSettings] = field(default_factory=dict)
    playbooks: Mapping[str, PlaybookSettings] = field(default_factory=dict)
    spawn: SpawnSettings = SpawnSettings()
    pipelines: Mapping[str, PipelineEntry] = field(default_factory=dict)
    cluster: ClusterSettings = ClusterSettings()
    sandbox: SandboxSettings = SandboxSettings()
    listeners: int = LISTENERS
    """Event streams that `quire serve` keeps open at once."""
    webhooks: Mapping[str, WebhookSettings] = field(default_factory=dict)
    notify: NotifySettings | None = None
    http: tuple[HostHeaders, ...] = ()
    """Headers that the user adds to requests; read from the user's own file only."""
    assume: Mapping[str, Size] = field(default_factory=dict)
    """Sizes of inputs for which bounds are shown, by names as they are written."""
    marks: Mapping[str, ServerMark] = field(default_factory=dict)
    """The marks that the user gives servers, by name; read from the user's own file only."""
    private_files: tuple[str, ...] = ()
    """Patterns of files whose contents are private: of both files together."""
    servers: Mapping[str, McpServer] = field(default_factory=dict)
    disabled_servers: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    """The files that were read."""
    warnings: tuple[str, ...] = ()
    requested: Mapping[str, object] = field(default_factory=dict)
    """The tables of the workspace's own file, as written: `quire.workspace.consent` asks the user about them."""
    excess: tuple[Excess, ...] = ()
    outside: tuple[Path, ...] = ()
    """Folders of prompts and knowledge outside the workspace that its file names."""
    rehearsal: bool = False
    """True in document tests, where nothing is started, sent or read outside: consent and signatures are not asked
    for. No file can set it."""
