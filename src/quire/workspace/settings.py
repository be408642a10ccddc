"""What can be set, with the defaults: plain values that every other part may read.

`quire.workspace.configuration` makes them from the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from quire.engine.pure_work import PURE_WORK

if TYPE_CHECKING:
    from quire.models.choose import ModelSettings
    from quire.workspace.locate import Workspace
    from quire.workspace.mcp_config import McpServer

OnUncertain = Literal["rerun", "ask", "fail"]
Durability = Literal["power", "process"]
TrustMode = Literal["require", "warn"]


class ToolSettings(Struct, frozen=True):
    """`allow` is what the workspace's files request, not what anybody granted; `deny` holds whoever says it."""

    allow: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    shell_env: tuple[str, ...] = ()
    """Variables that commands get; only the user's own file says so."""


class RunSettings(Struct, frozen=True):
    """`expiry` in seconds, None for never; `context_budget` in characters of earlier outputs in a prompt, None for
    all.

    `pure_work` is how much a run may compute between its effects, in units of `quire.engine.pure_work`."""

    expiry: float | None = 30 * 86_400.0
    on_uncertain: OnUncertain = "rerun"
    durability: Durability = "power"
    context_budget: int | None = None
    pure_work: int = PURE_WORK


class TrustSettings(Struct, frozen=True):
    mode: TrustMode = "require"
    documents: bool = False


DEFAULT_TURNS = 25


class AgentSettings(Struct, frozen=True):
    """`turns` is for how many turns in a row an agent of a pipeline may use tools."""

    model: str | None = None
    system: str = ""
    tools: tuple[str, ...] = ()
    turns: int = DEFAULT_TURNS


class SpawnSettings(Struct, frozen=True):
    """0 means no limit."""

    max_pipeline_fan_out_depth: int = 5
    max_pipeline_spawns: int = 100


class SandboxSettings(Struct, frozen=True):
    """How much a command in the sandbox may use; only the user's own file sets it."""

    memory: int = 4096
    """MB of all its processes together, and never more than half of the machine; one may reserve twice as much."""
    processes: int = 2048
    file: int = 4096
    """MB of one file that it writes."""


class PipelineEntry(Struct, frozen=True):
    path: str
    description: str = ""
    enabled: bool = True


class TemporalAccess(Struct, frozen=True):
    """How a Temporal server is come by that is not open to everybody. Secrets are named here, never held.

    `tls` is None where nobody said: then there is TLS if anything else of this needs it."""

    tls: bool | None = None
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
    """`heartbeat` is after how many seconds of silence a worker counts as dead, and others take its runs over.

    `access` belongs to the server `temporal`: the two come from the same file."""

    temporal: str | None = None
    namespace: str = "default"
    task_queue: str = "quire"
    heartbeat: float = 10.0
    access: TemporalAccess = TemporalAccess()


class Excess(Struct, frozen=True):
    """A setting of the workspace that goes beyond the user's own: `key` as in the docs, `value` as it is asked for."""

    kind: Literal["limit", "model"]
    key: str
    value: str
    line: str
    """What the user is asked."""


class Settings(Struct, frozen=True):
    """`granted` are the `[tools] allow` of the user's space, `denied` the `[tools] deny` of both files.

    `files` are those that were read."""

    workspace: Workspace
    user: Path
    models: ModelSettings
    tools: ToolSettings = ToolSettings()
    granted: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    shell_env: tuple[str, ...] = ()
    runs: RunSettings = RunSettings()
    prompt_folders: tuple[Path, ...] = ()
    knowledge_folders: tuple[Path, ...] = ()
    trust: TrustSettings = TrustSettings()
    store_url: str | None = None
    agents: Mapping[str, AgentSettings] = field(default_factory=dict)
    spawn: SpawnSettings = SpawnSettings()
    pipelines: Mapping[str, PipelineEntry] = field(default_factory=dict)
    cluster: ClusterSettings = ClusterSettings()
    sandbox: SandboxSettings = SandboxSettings()
    servers: Mapping[str, McpServer] = field(default_factory=dict)
    disabled_servers: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()
    requested: Mapping[str, object] = field(default_factory=dict)
    """The tables of the workspace's own file, as written: what `quire.workspace.consent` asks the user about."""
    excess: tuple[Excess, ...] = ()
    outside: tuple[Path, ...] = ()
    """Folders of prompts and knowledge outside of the workspace that its file names."""
