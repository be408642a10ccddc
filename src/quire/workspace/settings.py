"""The settings and their defaults: plain values that every other part may read, made by `quire.workspace.configuration`
from the files; and those of a workspace that go beyond the user's own, which do not hold until they are confirmed.

A workspace may lower a limit, name the model that the user has anyway, or name any hosted model if the user has not
chosen one. Without consent it may not raise a limit, weaken a setting of the user, replace the user's model, load a
file of weights, or read documents outside its folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from quire.engine.premises import PURE_WORK, REPLY_TOKENS
from quire.models.choose import CallSettings, members_of

if TYPE_CHECKING:
    from quire.models.choose import ModelSettings
    from quire.units import Size
    from quire.workspace.host_headers import HostHeaders
    from quire.workspace.locate import Workspace
    from quire.workspace.mcp_config import McpServer


def table_in(data: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Return a table of settings as they are written; an empty one if there is none."""
    table = data.get(key)
    return table if isinstance(table, Mapping) else {}


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
    """How much a run may compute between its effects, in units of `quire.engine.premises`."""
    reply_tokens: int = REPLY_TOKENS
    """Tokens of one reply of a model, where its agent or tier does not set `max_tokens`."""
    keep: float | None = None
    """Seconds for which servers and workers keep a run that has ended, but not failed; None for ever."""
    keep_failed: float | None = None


class TrustSettings(Struct, frozen=True):
    mode: TrustMode = "require"
    documents: bool = False
    locked: bool = False
    """True if runs are refused that may do more than `quire.lock` says. Holds in each file that sets it."""


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
    is_set: bool = False
    """True if a file says how many model calls there may be. The default gives way to a budget."""


class SandboxSettings(Struct, frozen=True):
    """Limits of a command in the sandbox; read from the user's own file only."""

    memory: int = 4096
    """MB of all its processes together, and never more than half of the machine; one process may reserve twice as
    much."""
    processes: int = 2048
    file: int = 4096
    """MB of one file that it writes."""


class BudgetSettings(Struct, frozen=True):
    """The table `[budgets]`, in dollars; None for no limit. Of two files the smaller amount counts."""

    run: float | None = None
    """The budget of a run that names none."""
    day: float | None = None
    """The most for all runs that the store has of a day, in UTC."""
    month: float | None = None


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
WEBHOOK_TEXTS = ("prompt", "artifact", "subject")


Role: TypeAlias = Literal["look", "answer", "run", "administer"]
ROLES: tuple[Role, ...] = ("look", "answer", "run", "administer")


class ServeSettings(Struct, frozen=True):
    """The table `[serve]`. Only the number of event streams is read from a workspace too."""

    listeners: int = 256
    different_approver: bool = False
    people: Mapping[str, Role] = field(default_factory=dict)
    """The roles of people, by the names that a proxy gives them."""


class WebhookSettings(Struct, frozen=True):
    """A table `[webhooks.NAME]`; read from the user's own file only. The secret is named here, never held."""

    url: str
    secret_env: str | None = None
    secret_file: Path | None = None
    events: tuple[str, ...] = WEBHOOK_EVENTS
    include: tuple[str, ...] = ()
    """The texts of a run that are sent along: `prompt` of a question, `artifact` of a completed run."""


class ServerMark(Struct, frozen=True):
    """A table `[servers.NAME]`: the user's settings of an MCP server. Read from the user's own file only."""

    at: str = ""
    """The address of the server, or its command with the arguments: a workspace may give its name to another one."""
    trusted: bool = False
    """True if its results do not count as text from outside."""
    private: bool = False
    """True if its results must not leave."""


NOTIFY_EVENTS = ("run.waiting", "run.completed", "run.failed", "trigger.refused")


class NotifySettings(Struct, frozen=True):
    """The table `[notify]`; read from the user's own file only, because it starts a program."""

    command: tuple[str, ...]
    events: tuple[str, ...] = NOTIFY_EVENTS


class TelemetrySettings(Struct, frozen=True):
    """The table `[telemetry]`; read from the user's own file only, because it sends data away."""

    endpoint: str | None = None
    content: bool = False


TRIGGER_WORDS = {
    "catch_up": ("once", "all", "none"),
    "overlap": ("skip", "queue", "allow"),
    "questions": ("park", "default"),
}


class TriggerSettings(Struct, frozen=True, omit_defaults=True):
    """A table `[triggers.NAME]`, with exactly one source. Nothing starts until the user enables it as it is."""

    run: str = ""
    cron: str = ""
    every: float | None = None
    zone: str = "UTC"
    inputs: Mapping[str, object] = field(default_factory=dict)
    """Values, or `{"expr": TEXT}`."""
    when: str = ""
    budget: float | None = None
    day_budget: float | None = None
    catch_up: str = "once"
    window: float = 86_400.0
    overlap: str = "skip"
    questions: str = "park"
    allow: tuple[str, ...] = ()
    model: str | None = None


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
    """`[tools] allow` of the user folder."""
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
    budgets: BudgetSettings = BudgetSettings()
    pipelines: Mapping[str, PipelineEntry] = field(default_factory=dict)
    cluster: ClusterSettings = ClusterSettings()
    sandbox: SandboxSettings = SandboxSettings()
    serve: ServeSettings = ServeSettings()
    webhooks: Mapping[str, WebhookSettings] = field(default_factory=dict)
    triggers: Mapping[str, TriggerSettings] = field(default_factory=dict)
    notify: NotifySettings | None = None
    telemetry: TelemetrySettings = TelemetrySettings()
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


_CAUTION = ("rerun", "ask", "fail")
_NOT_HERE = ("http://", "https://")


def find_excess(
    merged: Settings, own: Settings, theirs: Settings, own_table: Mapping[str, object], table: Mapping[str, object]
) -> tuple[Excess, ...]:
    """Return the settings of the workspace that go beyond the user's own. `own_table` and `table` are the files of the
    user and of the workspace as written, `own` and `theirs` the same with defaults filled in."""
    return (
        *_models(merged, own, theirs),
        *_spawns(own, theirs, table),
        *_runs(own, theirs, own_table),
        *_replies(own, theirs, table),
        *(
            Excess("limit", f"pipelines.entries.{key}.path", entry.path, f"read the pipeline {key} from {entry.path}")
            for key, entry in sorted(theirs.pipelines.items())
            if not _is_inside(entry, merged.workspace.folder)
        ),
    )


def without_excess(merged: Settings, own: Settings) -> Settings:
    """Return the settings without those beyond the user's own. The choice of models stays: a run that would use an
    unconfirmed one is refused, because falling back to another model may be less private."""
    folder = merged.workspace.folder
    over = {excess.key for excess in merged.excess}
    runs = merged.runs
    for key in ("durability", "on_uncertain", "expiry", "context_budget", "reply_tokens", "keep", "keep_failed"):
        if f"runs.{key}" in over:
            runs = replace(runs, **{key: getattr(own.runs, key)})
    spawn = merged.spawn
    for key in ("max_pipeline_spawns", "max_pipeline_fan_out_depth"):
        if f"safety.spawn.{key}" in over:
            spawn = replace(spawn, **{key: getattr(own.spawn, key)}, is_set=own.spawn.is_set)
    mode = merged.trust.mode if own.trust.mode == "warn" else "require"
    return replace(
        merged,
        runs=runs,
        spawn=spawn,
        trust=replace(merged.trust, mode=mode, documents=merged.trust.documents or own.trust.documents),
        pipelines={key: entry for key, entry in merged.pipelines.items() if _is_inside(entry, folder)},
        prompt_folders=tuple(path for path in merged.prompt_folders if path not in merged.outside),
        knowledge_folders=tuple(path for path in merged.knowledge_folders if path not in merged.outside),
    )


def model_file(spec: str, folder: Path) -> Path | None:
    """Return the file of weights that a model's name refers to, None for all other models. A relative path is looked up
    in the workspace; the name of a pulled model is not a path."""
    kind, _, name = spec.partition(":")
    if kind != "local" or not name:
        return None
    path = folder / os.path.expanduser(name)  # noqa: PTH111  # an unknown user is not an exception here
    return path if "/" in name or os.sep in name or name.endswith(".gguf") or path.exists() else None


def _models(merged: Settings, own: Settings, theirs: Settings) -> Iterator[Excess]:
    named = {"default": theirs.models.default, **{f"tiers.{name}": spec for name, spec in theirs.models.tiers.items()}}
    users = {"default": own.models.default, **{f"tiers.{name}": spec for name, spec in own.models.tiers.items()}}
    for key, spec in sorted(named.items()):
        if not spec:
            continue
        # A tier that the user does not have would otherwise be a model of the user's own.
        yours = users.get(key) or users["default"]
        yours = own.models.tiers.get(yours, yours) if yours else None
        what = f"as the model {key.removeprefix('tiers.')}"
        for member in members_of(merged.models.tiers.get(spec, spec)):
            if member.startswith(_NOT_HERE) or (yours and member in members_of(yours)):
                continue  # Addresses always need consent, for any model of the user.
            if file := model_file(member, merged.workspace.folder):
                yield Excess("model", f"models.{key}", member, f"load the model file {file}, {what}")
            elif yours:
                line = f"send prompts to {member} instead of your {yours}, {what}"
                yield Excess("model", f"models.{key}", member, line)


def _spawns(own: Settings, theirs: Settings, table: Mapping[str, object]) -> Iterator[Excess]:
    for key in table_in(table_in(table, "safety"), "spawn"):
        most, yours = getattr(theirs.spawn, key), getattr(own.spawn, key)
        # 0 means no limit.
        if most != yours and yours and (most > yours or not most):
            line = f"set [safety.spawn] {key} = {most or '0 (no limit)'}, above your {yours}"
            yield Excess("limit", f"safety.spawn.{key}", str(most), line)


def _runs(own: Settings, theirs: Settings, own_table: Mapping[str, object]) -> Iterator[Excess]:
    """Compare with the values that the user has set, not with the defaults: these settings concern the workspace's own
    runs."""
    stated, requested = table_in(own_table, "runs"), table_in(theirs.requested, "runs")
    mine, settings = own.runs, theirs.runs
    weaker = {
        "durability": mine.durability == "power" and settings.durability == "process",
        "on_uncertain": _CAUTION.index(settings.on_uncertain) < _CAUTION.index(mine.on_uncertain),
        # None means for ever.
        "expiry": mine.expiry is not None and (settings.expiry is None or settings.expiry > mine.expiry),
        "context_budget": (settings.context_budget or 0) > (mine.context_budget or 0),
        "keep": (settings.keep or inf) < (mine.keep or inf),
        "keep_failed": (settings.keep_failed or inf) < (mine.keep_failed or inf),
    }
    for key, is_weaker in weaker.items():
        if is_weaker and key in requested and (key in stated or key.startswith("keep")):
            line = f"set [runs] {key} = {requested[key]}, where you have {stated.get(key, 'no limit')}"
            yield Excess("limit", f"runs.{key}", str(requested[key]), line)


def _replies(own: Settings, theirs: Settings, table: Mapping[str, object]) -> Iterator[Excess]:
    """Compare with the default too: longer replies cost the user's money."""
    most, yours = theirs.runs.reply_tokens, own.runs.reply_tokens
    if "reply_tokens" in table_in(table, "runs") and most > yours:
        line = f"set [runs] reply_tokens = {most}, above your {yours}"
        yield Excess("limit", "runs.reply_tokens", str(most), line)


def _is_inside(entry: PipelineEntry, folder: Path) -> bool:
    try:
        return Path(os.path.realpath(folder / entry.path)).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError):
        return False
