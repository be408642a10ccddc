"""Load the settings of a workspace: `quire.toml` of the user, overridden by that of the workspace, and `.mcp.json`.

They are read once, when a verb or a run starts. Everything has a default; the problems of all files are reported
together, each with its file, its key and the key that was probably meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import astuple, replace

from quire.engine.premises import smallest
from quire.errors import BadConfiguration
from quire.models.choose import ModelSettings
from quire.patterns import late_pattern
from quire.source import open_text, read_bytes, real_path
from quire.workspace.locate import MCP_FILE, SAFE_FOLDERS, Workspace, find_workspace, has_table, user_space
from quire.workspace.settings import (
    AgentSettings,
    BudgetSettings,
    Durability,
    OnUncertain,
    RunSettings,
    Settings,
    ToolSettings,
    TrustMode,
    TrustSettings,
    find_excess,
    table_in,
    without_excess,
)
from quire.workspace.tables import (
    Table,
    read_budgets,
    read_cluster,
    read_mark,
    read_notify,
    read_pipelines,
    read_playbook,
    read_private_files,
    read_sandbox,
    read_serve,
    read_spawn,
    read_telemetry,
    read_trigger,
    read_webhook,
    server_of_one_file,
    whole_table,
)

if TYPE_CHECKING:
    from quire.workspace.host_headers import HostHeaders
    from quire.workspace.mcp_config import McpServer

_VARIABLE = late_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
NEVER = "never"
"""In place of a time: a run may wait for ever."""


class _File(Struct, frozen=True):
    """A file as it was read, or as an editor has it; without content if it does not exist, or if a problem says why it
    cannot be read.

    `name` is a text, because these are the keys of a cache, and the hash of a path takes long.
    """

    name: str
    content: bytes | None = None
    problem: str = ""

    @classmethod
    def read(cls, path: Path) -> _File:
        name = str(path)
        if (source := open_text(path)) is not None:
            return cls(name, source.text.encode("utf-8", "replace"))
        try:
            return cls(name, read_bytes(path))
        except FileNotFoundError:
            return cls(name)
        except OSError as error:
            return cls(name, problem=f"{path}: cannot be read: {error.strerror or error}")

    @property
    def path(self) -> Path:
        return Path(self.name)


class _Contents(Struct, frozen=True):
    """The three files of a workspace as settings, before anything outside of them is looked at."""

    own: Mapping[str, object]
    theirs: Mapping[str, object]
    merged: Settings
    users: Settings
    requests: Settings
    servers: Mapping[str, McpServer]
    disabled: tuple[str, ...]
    warnings: tuple[str, ...]


def settings_here() -> Settings:
    """Load the settings of the workspace around the current folder."""
    return load_settings(find_workspace(Path.cwd()))


def load_settings(workspace: Workspace, environ: Mapping[str, str] | None = None) -> Settings:
    """Load the settings. Raises `BadConfiguration` with all problems of all files, one a line.

    The files are read each time, and parsed only if their bytes have changed: a process may start many runs."""
    user = user_space(environ)
    file, pyproject = workspace.folder / "quire.toml", workspace.folder / "pyproject.toml"
    if not file.is_file() and has_table(pyproject):
        file = pyproject
    paths = (user / "quire.toml", file, workspace.folder / MCP_FILE)
    files = tuple(map(_File.read, paths))
    read = _contents(str(workspace.folder), str(user), *files)
    own, theirs, merged, users, requests = read.own, read.theirs, read.merged, read.users, read.requests
    prompts, knowledge = (_folders(workspace.folder, theirs, name) for name in ("prompts", "knowledge"))
    models, agents = merged.models, merged.agents
    if models != ModelSettings() or agents:
        from quire.workspace.model_tables import combined_agents, combined_models

        agents = combined_agents(agents, users.agents)
        models = combined_models(models, users.models, requests.models, agents, str(workspace.folder))
    settings = Settings(
        workspace=workspace,
        user=user,
        models=models,
        tools=requests.tools,
        granted=users.tools.allow,
        denied=(*users.tools.deny, *requests.tools.deny),
        shell_env=users.tools.shell_env,
        # A workspace may lower the user's limit of pure work, never raise it.
        runs=replace(merged.runs, pure_work=min(merged.runs.pure_work, users.runs.pure_work)),
        prompt_folders=prompts + _folders(user, own, "prompts"),
        knowledge_folders=knowledge + _folders(user, own, "knowledge"),
        trust=replace(merged.trust, locked=users.trust.locked or requests.trust.locked),
        store_url=merged.store_url,
        agents=agents,
        playbooks=merged.playbooks,
        spawn=merged.spawn,
        budgets=BudgetSettings(*map(smallest, astuple(users.budgets), astuple(requests.budgets))),
        pipelines=requests.pipelines,
        cluster=server_of_one_file(merged.cluster, theirs, requests.cluster, users.cluster),
        sandbox=users.sandbox,
        serve=replace(users.serve, listeners=merged.serve.listeners),
        webhooks=users.webhooks,
        triggers=merged.triggers,
        notify=users.notify,
        telemetry=users.telemetry,
        http=users.http,
        assume=merged.assume,
        marks=users.marks,
        private_files=(*users.private_files, *requests.private_files),
        servers=read.servers,
        disabled_servers=read.disabled,
        files=tuple(path for path, file in zip(paths, files, strict=True) if file.content is not None),
        warnings=read.warnings,
        requested=theirs,
        outside=tuple(path for path in (*prompts, *knowledge) if not path.is_relative_to(workspace.folder)),
    )
    excess = find_excess(settings, users, replace(requests, requested=theirs), own, theirs)
    return _until_confirmed(replace(settings, excess=excess), users)


@lru_cache(maxsize=8)
def _contents(folder: str, user_folder: str, own_file: _File, file: _File, mcp_file: _File) -> _Contents:
    workspace, user = Workspace(Path(folder)), Path(user_folder)
    problems: list[str] = []
    warnings: list[str] = []
    disabled: list[str] = []
    own, theirs = _tables(own_file, problems), _tables(file, problems)
    users = _settings(workspace, user, own, own_file.path, problems)
    requests = _settings(workspace, user, theirs, file.path, problems)
    problems += _misplaced(own_file.path, own, file.path, theirs)
    if mcp_file.problem:
        problems.append(mcp_file.problem)
    servers: Mapping[str, McpServer] = {}
    if mcp_file.content is not None:
        from quire.workspace.mcp_config import read_servers

        servers = read_servers(mcp_file.path, mcp_file.content, problems, warnings, disabled)
    if problems:
        raise BadConfiguration("\n".join(problems))
    merged = _settings(workspace, user, _merge(own, theirs), file.path, [])
    return _Contents(own, theirs, merged, users, requests, servers, tuple(disabled), tuple(warnings))


def problems_in(path: Path, text: str, workspace: Workspace, user: Path) -> list[str]:
    """Return the problems of one file of settings, in the words of `load_settings`. The file is that of the user if it
    is in the user folder, else that of a workspace."""
    problems: list[str] = []
    tables = _tables(_File(str(path), text.encode("utf-8", "replace")), problems)
    if not problems:
        is_own = real_path(path.parent) == real_path(user)
        _settings(workspace, user, tables, path, problems)
        problems += _misplaced(path, tables, path, {}) if is_own else _misplaced(path, {}, path, tables)
    return problems


def with_tables(settings: Settings, tables: Mapping[str, object], name: str) -> Settings:
    """Return the settings as if the file of the workspace had these tables too. `name` stands in messages. Raises
    `BadConfiguration`."""
    problems: list[str] = []
    data = _merge(settings.requested, tables)
    read = _settings(settings.workspace, settings.user, data, Path(name), problems)
    if problems:
        raise BadConfiguration("\n".join(problems))
    return replace(
        settings,
        models=read.models,
        tools=read.tools,
        denied=(*settings.denied, *read.tools.deny),
        runs=read.runs,
        agents=read.agents,
        playbooks=read.playbooks,
        spawn=read.spawn,
        pipelines=read.pipelines,
        requested=data,
    )


def _misplaced(own_file: Path, own: Mapping[str, object], file: Path, theirs: Mapping[str, object]) -> Iterator[str]:
    """Yield the problems of settings that stand in the wrong one of the two files."""
    if "modules" in table_in(own, "tools"):
        yield f"{own_file}: [tools] modules are read from a workspace's quire.toml, not from here"
    elsewhere = "is read from the quire.toml of your user folder, not from"
    if "prices" in table_in(theirs, "models"):
        yield f"{file}: [models.prices] {elsewhere} a workspace"
    if "shell_env" in table_in(theirs, "tools"):
        yield f"{file}: [tools] shell_env {elsewhere} a workspace"
    for key in table_in(theirs, "serve").keys() & {"people", "different_approver"}:
        yield f"{file}: [serve] {key} {elsewhere} a workspace"
    reasons = {"servers": ": it says which servers are trusted", "notify": ": it starts a program"}
    for name in ("sandbox", "servers", "http", "webhooks", "notify", "telemetry"):
        if name in theirs:
            yield f"{file}: [{name}] {elsewhere} a workspace{reasons.get(name, '')}"
    if SAFE_FOLDERS in table_in(theirs, "trust"):
        yield f"{file}: [trust] {SAFE_FOLDERS} {elsewhere} here"


def _until_confirmed(settings: Settings, own: Settings) -> Settings:
    """Drop the settings that go beyond the user's own, until the user has agreed to them."""
    held = without_excess(settings, own)
    if held == settings:
        return settings
    from quire.workspace.consent import is_trusted

    return settings if is_trusted(settings) else held


def _tables(file: _File, problems: list[str]) -> dict[str, object]:
    if file.problem:
        problems.append(file.problem)
    if not file.content:
        return {}
    import tomllib  # most folders have no such file

    try:
        data = tomllib.loads(file.content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        problems.append(f"{file.path}: is not TOML: {error}")
        return {}
    if file.path.name == "pyproject.toml":
        tool = data.get("tool")
        data = tool.get("quire", {}) if isinstance(tool, dict) else {}
        if not isinstance(data, dict):
            problems.append(f"{file.path}: [tool.quire] must be a table")
            data = {}
    return data


def _merge(under: Mapping[str, object], over: Mapping[str, object], depth: int = 2) -> dict[str, object]:
    """Merge two files key by key down to `[models.providers]`; a provider, an agent, a trigger and the settings of a
    playbook are each taken whole from one file.

    Otherwise a workspace could combine its own `base_url` with the user's `api_key_env`.
    """
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        if depth and isinstance(value, dict) and isinstance(below, dict):
            merged[key] = _merge(below, value, 0 if key in ("agents", "playbooks", "triggers") else depth - 1)
        else:
            merged[key] = value
    return merged


def _folders(base: Path, data: Mapping[str, object], key: str) -> tuple[Path, ...]:
    return tuple(real_path(base / folder) for folder in Table("", "", data, []).table(key).texts("folders"))


def _settings(
    workspace: Workspace, user: Path, data: Mapping[str, object], file: Path, problems: list[str]
) -> Settings:
    """Read one file, or the merge of two, as settings; add errors to `problems`."""
    prefix = "tool.quire" if file.name == "pyproject.toml" else ""
    top = Table(str(file), prefix, data, problems)
    for name in ("prompts", "knowledge"):
        table = top.table(name)
        table.texts("folders")
        table.end()
    models, agents = _models_and_agents(top)
    settings = Settings(
        workspace=workspace,
        user=user,
        models=models,
        tools=_tools(top.table("tools")),
        runs=_runs(top.table("runs")),
        trust=_trust(top.table("trust")),
        store_url=_store(top.table("store")),
        agents=agents,
        playbooks={name: read_playbook(table) for name, table in top.tables("playbooks").items()},
        spawn=read_spawn(top.table("safety")),
        budgets=read_budgets(top.table("budgets")),
        pipelines=read_pipelines(top.table("pipelines")),
        cluster=read_cluster(top.table("cluster"), file.parent),
        sandbox=read_sandbox(top.table("sandbox")),
        serve=read_serve(top.table("serve")),
        webhooks={name: read_webhook(table, file.parent) for name, table in top.tables("webhooks").items()},
        triggers={name: read_trigger(table) for name, table in top.tables("triggers").items()},
        notify=read_notify(top.table("notify")) if "notify" in top.data else None,
        telemetry=read_telemetry(top.table("telemetry")),
        http=_http(top.tables("http")),
        assume=top.table("assume").all_sizes(),
        marks={name: read_mark(table) for name, table in top.tables("servers").items()},
        private_files=read_private_files(top.table("privacy")),
    )
    top.end()
    return settings


def _models_and_agents(top: Table) -> tuple[ModelSettings, dict[str, AgentSettings]]:
    models, agents = top.table("models"), top.tables("agents")
    if not models.data and not agents:
        return ModelSettings(), {}
    from quire.workspace.model_tables import read_agent, read_models  # most folders need none of it

    return read_models(models), {name: read_agent(table) for name, table in agents.items()}


@whole_table
def _tools(table: Table) -> ToolSettings:
    settings = ToolSettings(table.texts("allow"), table.texts("modules"), table.texts("deny"), table.texts("shell_env"))
    for name in settings.shell_env:
        if not _VARIABLE.fullmatch(name):
            table.wrong(f"shell_env: {name!r} is not the name of a variable")
    return settings


@whole_table
def _runs(table: Table) -> RunSettings:
    default = RunSettings()
    never = table.data.get("expiry") == NEVER
    expiry = None if never else table.duration("expiry")
    if never:
        table.text("expiry")
    on_uncertain: OnUncertain | None = table.choice("on_uncertain", ("rerun", "ask", "fail"))
    durability: Durability | None = table.choice("durability", ("power", "process"))
    pure_work = table.count("pure_work")
    return RunSettings(
        expiry=None if never else default.expiry if expiry is None else expiry,
        on_uncertain=on_uncertain or default.on_uncertain,
        durability=durability or default.durability,
        context_budget=table.count("context_budget"),
        pure_work=default.pure_work if pure_work is None else pure_work,
        reply_tokens=table.positive("reply_tokens") or default.reply_tokens,
        keep=table.duration("keep"),
        keep_failed=table.duration("keep_failed"),
    )


@whole_table
def _trust(table: Table) -> TrustSettings:
    mode: TrustMode | None = table.choice("mode", ("require", "warn"))
    table.texts(SAFE_FOLDERS)
    return TrustSettings(mode or "require", table.flag("documents", False), table.flag("locked", False))


@whole_table
def _store(table: Table) -> str | None:
    return table.text("url")


def _http(tables: Mapping[str, Table]) -> tuple[HostHeaders, ...]:
    if not tables:
        return ()
    from quire.workspace.host_headers import read_host_headers

    return tuple(filter(None, (read_host_headers(name, table) for name, table in tables.items())))
