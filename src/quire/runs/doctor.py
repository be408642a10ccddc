"""Examine a workspace: list the models, keys and tools that its runs have and lack, without starting anything. `quire
doctor` prints the findings, and the page shows them."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from quire import __version__
from quire.errors import BadConfiguration, QuireError, StoreError, ToolFailed
from quire.installed import add_extra, other_owners
from quire.os_flags import IS_WINDOWS, WINDOWS_VERBS
from quire.stores import DEFAULT_PATH, file_of, is_server, open_store
from quire.stores.occurrences import Process
from quire.trust.seal import user_seal
from quire.versions import format_numbers, version_line
from quire.wording import counted, pluralize
from quire.workspace.locate import Workspace, user_space

if TYPE_CHECKING:
    from quire.library.items import ItemType, SpaceName
    from quire.models.choose import CallSettings, ProviderLimits
    from quire.tools.registry import ToolSpec
    from quire.values import Value
    from quire.workspace.mcp_config import McpServer
    from quire.workspace.settings import AgentSettings, Settings


EXTRAS = {"llm": "pydantic_ai", "local": "xllamacpp", "mcp": "mcp", "web": "starlette"}
_KINDS: tuple[tuple[ItemType, str], ...] = (("directive", "directive"), ("knowledge", "knowledge item"))
_SPACES: dict[SpaceName, str] = {
    "project": "documents of the project folder",
    "user": "documents of the user folder",
    "system": "built-in documents",
}
_LISTED = 8
MOST_AHEAD_SECONDS = 60.0


def examine(workspace: Workspace, environ: Mapping[str, str] | None = None) -> Iterator[Finding]:
    """Yield all findings about a workspace, the most general first. `environ` is the environment of its user."""
    yield Finding("python", "ok", f"{platform.python_version()} ({sys.executable})")
    yield Finding("quire", "ok", version_line().removeprefix("quire "))
    yield _system()
    if strangers := other_owners():
        named = " and ".join(strangers)
        yield Finding("quire", "problem", f"{named} is installed too, with files of the same names: uninstall it")
    numbers = (f"{name.replace('_', ' ')} {number}" for name, number in format_numbers().items())
    yield Finding("formats", "ok", ", ".join(numbers))
    made = f"found by its {workspace.marker.name}" if workspace.marker else "nothing here marks a workspace"
    yield Finding("workspace", "ok", f"{workspace.folder} ({made})")
    space = user_space(environ)
    yield Finding("user folder", "ok" if space.is_dir() else "missing", str(space))
    settings = None
    try:
        from quire.workspace.configuration import load_settings

        settings = load_settings(workspace, environ)
    except BadConfiguration as error:
        for problem in str(error).splitlines():
            yield Finding("settings", "problem", problem)
    if settings is not None:
        yield from _settings(settings, environ)
    for extra, module in EXTRAS.items():
        if find_spec(module):
            yield Finding(f"extra {extra}", "ok", "installed")
        else:
            yield Finding(f"extra {extra}", "missing", add_extra(extra))
    yield _sandbox()
    yield from models_here()


def _system() -> Finding:
    if IS_WINDOWS:
        return Finding("system", "missing", f"on Windows only {', '.join(WINDOWS_VERBS)} work: use WSL for all else")
    if sys.platform == "linux":
        return Finding("system", "ok", "Linux: everything works")
    return Finding("system", "ok", f"{platform.system()}: everything works but the sandbox for commands")


def _sandbox() -> Finding:
    """Look for bubblewrap without trying it: only running a command shows whether the system allows namespaces."""
    import shutil

    program = shutil.which("bwrap")
    if program:
        return Finding("sandbox", "ok", f"bubblewrap ({program}), for the commands of shell and rye/bash")
    return Finding(
        "sandbox",
        "missing",
        "bubblewrap is not installed, so commands (shell, rye/bash, shell steps of pipelines) are refused: install it, "
        "or grant them without one with --allow shell=unsandboxed",
    )


def _settings(settings: Settings, environ: Mapping[str, str] | None) -> Iterator[Finding]:
    files = ", ".join(str(file) for file in settings.files)
    yield Finding("settings", "ok", files or "no files, all defaults")
    for warning in settings.warnings:
        yield Finding("settings", "missing", warning)
    yield _trust(settings)
    if is_server(settings.store_url or ""):
        yield from _server_store(settings)
    else:
        yield _store(settings)
        yield from _foreign_runs(settings)
    yield _state(settings)
    yield from _pipelines(settings)
    yield from _directives(settings)
    yield from _keys(settings)
    yield from configured_models(settings)
    if settings.notify is not None:
        yield _notify(settings.notify.command)
    yield from _python_tools(settings)
    for host in settings.http:
        missing = host.missing(os.environ if environ is None else environ)
        listed = f"{', '.join(missing)} is not set" if missing else f"your headers: {', '.join(host.headers)}"
        yield Finding(f"http {host.name}", "missing" if missing else "ok", listed)
    for server in sorted(settings.servers.values(), key=lambda server: server.name):
        yield _server(server)
    for name in sorted(settings.disabled_servers):
        yield Finding(f"mcp server {name}", "ok", "disabled in .mcp.json")


def _directives(settings: Settings) -> Iterator[Finding]:
    """Report the folders of directives and knowledge, their number, and those that are not signed by a trusted key."""
    from quire.library.items import SPACES, Spaces
    from quire.library.verify import VerifiedItems
    from quire.trust.trusted_keys import TrustedKeys

    spaces = Spaces(settings)
    try:
        items = VerifiedItems(spaces, TrustedKeys.load(settings))
        for space in SPACES:
            counts = ", ".join(counted(len(spaces.entries(kind, space)), words) for kind, words in _KINDS)
            yield Finding(_SPACES[space], "ok", f"{counts} ({next(spaces.roots('directive', space)).folder})")
        entries = [entry for kind, _ in _KINDS for entry in spaces.entries(kind) if entry.space != "system"]
        verdicts = [(entry, items.verdict(spaces.read(entry))) for entry in entries]
    except QuireError as error:
        yield Finding("directives", "problem", str(error))
        return
    refused = [f"{entry.type} {entry.id} ({verdict.outcome.value})" for entry, verdict in verdicts if not verdict.ok]
    if refused:
        what = "are used with a warning" if settings.trust.mode == "warn" else "do not run before they are: quire sign"
        listed = ", ".join(refused[:_LISTED]) + (
            f" and {len(refused) - _LISTED} more" if len(refused) > _LISTED else ""
        )
        yield Finding("signatures", "missing", f"{len(refused)} not signed by a key that you trust, {what}: {listed}")
    elif verdicts:
        yield Finding("signatures", "ok", f"all {len(verdicts)} are signed by keys that you trust")


def _keys(settings: Settings) -> Iterator[Finding]:
    from quire.trust.trusted_keys import TrustedKeys, own_notes

    try:
        own = [f"{note.name} ({note.public.key_id})" for note in own_notes(settings)]
        trusted = TrustedKeys.load(settings)
    except QuireError as error:
        yield Finding("keys", "problem", str(error))
        return
    others = sum(trusted.find(key) is not None for key, note in trusted.keys.items() if note.origin != "own")
    counted = f"; trusted keys of others: {others}, revoked keys: {len(trusted.revoked)}"
    if own:
        yield Finding("keys", "ok", ", ".join(own) + counted)
    else:
        yield Finding("keys", "missing", f"you have none to sign with: quire trust keys new{counted}")


def _python_tools(settings: Settings) -> Iterator[Finding]:
    """Report the functions of installed packages and of the modules of a trusted workspace, and why some of them cannot
    be used."""
    from quire.tools.python import installed_tools, workspace_tools
    from quire.workspace.consent import is_trusted

    loaders: list[Callable[[], Mapping[str, ToolSpec]]] = [installed_tools]
    if settings.tools.modules and is_trusted(settings):
        loaders.append(lambda: workspace_tools(settings))
    elif settings.tools.modules:
        yield Finding("python tools", "missing", "not loaded before you agree to the workspace: quire trust workspace")
    specs: dict[str, ToolSpec] = {}
    for load in loaders:
        try:
            specs.update(load())
        except QuireError as error:
            yield Finding("python tools", "problem", str(error))
    usable = [name for name, spec in specs.items() if not spec.problem]
    if usable:
        yield Finding("python tools", "ok", ", ".join(sorted(usable)))
    for name, spec in sorted(specs.items()):
        if spec.problem:
            yield Finding(f"python tool {name}", "problem", spec.problem)


def _pipelines(settings: Settings) -> Iterator[Finding]:
    from quire.library.registered import load_registry

    registry = load_registry(settings)
    if registry.pipelines:
        yield Finding("pipelines", "ok", ", ".join(registry.pipelines))
    for problem in registry.problems:
        yield Finding("pipelines", "problem", problem)


def _server(server: McpServer) -> Finding:
    """Report one MCP server. Arguments and the rest of a URL are not printed, because they may contain keys."""
    import shutil
    from urllib.parse import urlsplit

    what = f"mcp server {server.name}"
    if missing := server.missing(os.environ):
        return Finding(what, "missing", f"{', '.join(missing)} is not set")
    if server.url:
        return Finding(what, "ok", f"at {urlsplit(server.url).hostname}")
    if "${" not in server.command and shutil.which(server.command) is None:
        return Finding(what, "missing", f"command not found: {server.command}")
    return Finding(what, "ok", f"started by {server.command}")


def _notify(command: Sequence[str]) -> Finding:
    """Report the program that is told of runs. Its arguments are not printed, because they may contain keys."""
    import shutil

    if "/" not in command[0] and shutil.which(command[0]) is None:
        return Finding("notify", "problem", f"program not found: {command[0]}")
    return Finding("notify", "ok", f"{command[0]} is told when runs wait or end")


def _trust(settings: Settings) -> Finding:
    from quire.workspace.consent import is_trusted, requests

    try:
        count = len(requests(settings))
        if not count:
            return Finding("trust", "ok", "the workspace asks for nothing")
        trusted = is_trusted(settings)
    except BadConfiguration as error:
        return Finding("trust", "problem", str(error))
    if trusted:
        return Finding("trust", "ok", f"you agreed to its {count} {pluralize('request', count)}")
    waiting = "1 request waits" if count == 1 else f"{count} requests wait"
    return Finding("trust", "missing", f"{waiting} for you: quire trust workspace")


def _store(settings: Settings) -> Finding:
    url = settings.store_url or ""
    path = settings.workspace.folder / (file_of(url) if url else DEFAULT_PATH)
    if path.exists() and not path.is_file():
        return Finding("store", "problem", f"{path} is not a regular file")
    if path.parent.exists() and not path.parent.is_dir():
        return Finding("store", "problem", f"{path.parent} is not a folder")
    if shut := _not_writable(path):
        return Finding("store", "problem", f"{shut} may not be written, so nothing can run here")
    if not path.is_file():
        return Finding("store", "missing", f"{path} does not exist yet; the first run creates it")
    import sqlite3

    from quire.stores.sqlite.database import explain
    from quire.stores.sqlite.statements import APPLICATION_ID, MIGRATIONS

    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=1)) as connection:
            owner: int = connection.execute("PRAGMA application_id").fetchone()[0]
            version: int = connection.execute("PRAGMA user_version").fetchone()[0]
            used: int = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            health: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        return Finding("store", "problem", str(explain(error, path)))
    if used and owner != APPLICATION_ID:
        return Finding("store", "problem", f"{path} is a database of another program")
    if version > len(MIGRATIONS):
        return Finding("store", "problem", f"{path} was written by a newer Quire")
    if health != "ok":
        return Finding("store", "problem", f"{path} is damaged: {' '.join(health.split())}")
    return Finding("store", "ok", str(path))


def _foreign_runs(settings: Settings) -> Iterator[Finding]:
    """Count the runs of the store that this user cannot drive, because they are not sealed with this user's key."""
    import sqlite3

    from quire.stores.sqlite.statements import SqliteStatements

    path = settings.workspace.folder / DEFAULT_PATH
    if settings.store_url or not path.is_file():
        return
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=1)) as connection:
            seals = [str(seal) for (seal,) in connection.execute("SELECT seal FROM pins LIMIT 100000")]
            reports = connection.execute(SqliteStatements.PROCESSES).fetchall()
    except sqlite3.Error:
        return
    seal = user_seal(settings.user)
    mine = f"{seal.key_id}:" if seal.exists() else None
    foreign = sum(mine is None or not run_seal.startswith(mine) for run_seal in seals)
    if foreign:
        detail = f"{foreign} of {len(seals)} are not sealed by you: they can be looked at and forked, not driven"
        yield Finding("runs", "missing", detail)
    yield from _processes(reports)


def _server_store(settings: Settings) -> Iterator[Finding]:
    """Look at a PostgreSQL store, without changing it, and at the processes that report themselves to it."""
    from quire.workspace.consent import is_trusted

    if not is_trusted(settings):
        yield Finding("store", "missing", "not opened before you agree to the workspace: quire trust workspace")
        return
    try:
        place = getattr(open_store(settings.store_url or ""), "place", "")
        from quire.stores.postgres.database import look
        from quire.stores.postgres.statements import MIGRATIONS

        version, clock, left, reports = look(settings.store_url or "")
    except StoreError as error:
        yield Finding("store", "problem", str(error))
        return
    ahead = clock - time.time()
    state: State = "problem" if version > len(MIGRATIONS) or abs(ahead) > MOST_AHEAD_SECONDS or left < 1 else "ok"
    facts = (
        f"schema {version} of {len(MIGRATIONS)}, {counted(left, 'connection')} left, its clock is {ahead:+.0f} s off"
    )
    yield Finding("store", state, f"{place}: {facts}")
    if not user_seal(settings.user).exists():
        yield Finding("seal key", "missing", "the first run makes one; processes that share runs need the same one")
    yield from _processes(reports)


def _processes(reports: Sequence[Sequence[Any]]) -> Iterator[Finding]:
    alive = [process for process in (Process(*row) for row in reports) if process.is_recent(time.time())]
    for process in alive:
        if process.state == "unfit":
            yield Finding(f"{process.kind} {process.pid}@{process.host}", "problem", f"unfit: {process.reason}")
    versions = sorted({process.version for process in alive} - {__version__})
    if versions:
        yield Finding("processes", "missing", f"some run Quire {', '.join(versions)}, and this is {__version__}")


def _state(settings: Settings) -> Finding:
    """Report the values that `state__set` keeps for the workspace. Their names are not shown: documents choose them."""
    from quire.tools.builtin.state import State

    state = State.of(settings.user, settings.workspace.folder)
    try:
        count = len(state.values())
    except ToolFailed as error:
        return Finding("state", "problem", error.message)
    values = f"{count} {pluralize('value', count)}" if count else "no values are"
    return Finding("state", "ok", f"{values} kept for state__get ({state.file})")


def _not_writable(path: Path) -> Path | None:
    """Return the path that prevents writing or creating a file; None if it can be written.

    This can be the file, its folder, or the nearest existing folder above. SQLite creates files beside the database,
    so permission to write the database file alone is not enough.
    """
    folder = next(parent for parent in path.parents if parent.exists())
    paths = [*([path] if path.exists() else []), folder]
    return next((place for place in paths if not os.access(place, os.W_OK)), None)


State = Literal["ok", "missing", "problem"]


class Finding(Struct, frozen=True):
    """One line of the report."""

    what: str
    state: State
    """`missing` is something that a run may do without; `problem` is something to repair."""
    detail: str

    def data(self) -> dict[str, Value]:
        """Return the line as JSON."""
        return {"what": self.what, "state": self.state, "detail": self.detail}


def configured_models(settings: Settings) -> Iterator[Finding]:
    """Yield the providers, tiers, agents, limits and prices of the settings."""
    models = settings.models
    for name, provider in sorted(models.providers.items()):
        if provider.api_key_env and not os.environ.get(provider.api_key_env):
            yield Finding(f"provider {name}", "missing", f"{provider.api_key_env} is not set")
        else:
            yield Finding(f"provider {name}", "ok", provider.base_url)
    for name, spec in sorted(models.tiers.items()):
        yield Finding(f"tier {name}", "ok", ", ".join([spec, *_call(models.settings_of(name))]))
    for name, agent in sorted(settings.agents.items()):
        yield Finding(f"agent {name}", "ok", ", ".join(_agent(agent)) or "as the run")
    for whose, limits in (("", models.limits), (" (of the workspace)", models.folder_limits)):
        for name, provider_limits in sorted(limits.items()):
            yield Finding(f"limits of {name}{whose}", "ok", ", ".join(_limits(provider_limits)) or "none")
    for name, price in sorted(models.prices.items()):
        since = ", ".join(str(fact) for fact in (price.source, price.date) if fact)
        amounts = f"${price.input:g} in, ${price.output:g} out per million tokens{f' ({since})' if since else ''}"
        yield Finding(f"price of {name}", "ok", amounts)


def _agent(agent: AgentSettings) -> Iterator[str]:
    yield from [agent.model] if agent.model else []
    yield from _call(agent.call)
    yield from [f"{agent.turns} turns"] if agent.turns else []
    yield from [f"tools {' '.join(agent.tools)}"] if agent.tools else []


def _call(call: CallSettings) -> Iterator[str]:
    if call.temperature is not None:
        yield f"temperature {call.temperature:g}"
    if call.max_tokens is not None:
        yield f"replies of at most {call.max_tokens:,} tokens"
    if call.reasoning:
        yield f"reasoning {call.reasoning}"
    if call.timeout is not None:
        yield f"timeout {call.timeout:g} s"
    if call.at_once is not None:
        yield f"{call.at_once} at once"


def _limits(limits: ProviderLimits) -> Iterator[str]:
    for most, words in (
        (limits.at_once, "calls at once"),
        (limits.calls_per_minute, "calls a minute"),
        (limits.tokens_per_minute, "tokens a minute"),
    ):
        if most is not None:
            yield f"{most:,} {words}"


def models_here() -> Iterator[Finding]:
    """Yield the keys in the environment and the models that were pulled."""
    from quire.models.choose import MODEL_BY_KEY
    from quire.models.downloads import models_folder, pulled_models

    # Names only: a value of the environment is never printed.
    present = [name for name in MODEL_BY_KEY if os.environ.get(name)]
    yield Finding("provider keys", "ok" if present else "missing", ", ".join(present) or "none in the environment")
    pulled = [model.name for model in pulled_models()]
    if pulled:
        yield Finding("embedded models", "ok", ", ".join(pulled))
    else:
        yield Finding("embedded models", "missing", f"none in {models_folder()}: quire model pull smollm2")
