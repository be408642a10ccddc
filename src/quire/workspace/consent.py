"""The requests of a workspace's files, and the user's consent to them.

A cloned repository is not trusted: it may name commands to start, addresses to send data to, code to import. All
requests are brought to a normal form, shown line by line, and remembered by their hash in the user folder. An entry is
a folder and the hash of all requests; when either differs, the user is asked again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import BadConfiguration, Untrusted
from quire.models.choose import as_spec, members_of
from quire.source import read_bytes, real_path, written_beside
from quire.values import Value, fingerprint
from quire.wording import counted
from quire.workspace.code import is_hash
from quire.workspace.secrets import masked, masked_command, masked_value
from quire.workspace.server_code import LoadedCode, ServerCode, read_code
from quire.workspace.settings import table_in

if TYPE_CHECKING:
    from quire.workspace.mcp_config import McpServer
    from quire.workspace.settings import Settings

_VERSION = 1


class ConfirmedWorkspaces(Struct, frozen=True):
    """A file of texts by workspace folder, in the folder `trust` of the user folder: `workspaces.json` or
    `agreed.json`."""

    file: Path

    def has(self, folder: Path, fingerprint: str) -> bool:
        return self._read().get(_key(folder)) == fingerprint

    def get(self, folder: Path) -> str:
        """Return the value stored for a folder; empty if there is none."""
        return self._read().get(_key(folder), "")

    def add(self, folder: Path, fingerprint: str) -> None:
        self._write({**self._read(), _key(folder): fingerprint})

    def remove(self, folder: Path) -> bool:
        """Remove a folder; return False if it was not stored."""
        entries = self._read()
        if entries.pop(_key(folder), None) is None:
            return False
        self._write(entries)
        return True

    def _read(self) -> dict[str, str]:
        try:
            data = json.loads(self.file.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise BadConfiguration(f"{self.file} cannot be read ({error}); delete it to be asked again") from None
        entries = data.get("workspaces") if isinstance(data, dict) and data.get("version") == _VERSION else None
        if not isinstance(entries, dict) or not all(isinstance(value, str) for value in entries.values()):
            raise BadConfiguration(f"{self.file} is not a list of workspaces; delete it to be asked again")
        return entries

    def _write(self, entries: dict[str, str]) -> None:
        """Write the file atomically, so that readers see the old or the new one; only the user can read it."""
        text = json.dumps({"version": _VERSION, "workspaces": entries}, indent=2, sort_keys=True)
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with written_beside(self.file, f"{text}\n".encode()) as new:
                new.replace(self.file)
        except OSError as error:
            raise BadConfiguration(f"{self.file} cannot be written: {error.strerror or error}") from None


def _key(folder: Path) -> str:
    return str(folder.resolve())


HOOKS = ".ai/config/agent/hooks.yaml"


def requests(settings: Settings) -> tuple[str, ...]:
    """Return one readable line for each request; empty if there is none."""
    return tuple(line for line, _ in _requests(settings))


def is_trusted(settings: Settings, code: LoadedCode | None = None) -> bool:
    """Tell whether the user has confirmed all requests exactly as they are now. True if there are none."""
    if settings.rehearsal:
        return True
    asked_for = list(_requests(settings, code))
    return not asked_for or _confirmed(settings).has(settings.workspace.folder, _hash(asked_for))


def confirm(settings: Settings) -> None:
    """Remember that the user agrees to the requests of these settings."""
    asked_for = list(_requests(settings))
    _confirmed(settings).add(settings.workspace.folder, _hash(asked_for))
    lines = {line: fingerprint([value]) for line, value in asked_for}
    _agreed(settings).add(settings.workspace.folder, json.dumps(lines))
    _agreed_files(settings).add(settings.workspace.folder, json.dumps(_files(value for _, value in asked_for)))


def changes(settings: Settings) -> tuple[str, ...]:
    """Return the differences from the requests that the user agreed to, a line each; empty if the user never agreed
    here."""
    try:
        before: object = json.loads(_agreed(settings).get(settings.workspace.folder) or "{}")
        files: object = json.loads(_agreed_files(settings).get(settings.workspace.folder) or "{}")
    except (BadConfiguration, ValueError, RecursionError):
        return ()
    if not isinstance(before, dict) or not before or not isinstance(files, dict):
        return ()
    asked_for = dict(_requests(settings))
    now = {line: fingerprint([value]) for line, value in asked_for.items()}
    differences = [f"new: {line}" for line in now if line not in before]
    for line in now:
        if line in before and before[line] != now[line]:
            names = [name for name, hash in _files([asked_for[line]]).items() if files and files.get(name) != hash]
            differences.append(f"changed: {_shown(', '.join(names))}" if names else f"changed content: {line}")
    return (*differences, *(f"no longer: {line}" for line in before if line not in now))


def revoke(settings: Settings) -> bool:
    """Withdraw the consent; return False if there was none."""
    _agreed(settings).remove(settings.workspace.folder)
    return _confirmed(settings).remove(settings.workspace.folder)


def require_trusted(settings: Settings) -> LoadedCode:
    """Return the confirmed code as it was read. Raises `Untrusted` with the list of requests."""
    if settings.rehearsal:
        return LoadedCode()
    code = read_code(settings)
    if is_trusted(settings, code):
        return code
    from quire.workspace.configuration import load_settings

    now = load_settings(settings.workspace, {"QUIRE_HOME": str(settings.user)})
    if (now.requested, now.servers) != (settings.requested, settings.servers):
        # To compare what was agreed to with old settings would show every change the wrong way round.
        raise Untrusted(f"the settings of {now.workspace.folder} have changed since this process read them: restart it")
    lines = "\n".join(f"  {line}" for line, _ in _requests(settings, code))
    if changed := changes(settings):
        lines += "\nsince you agreed:\n" + "\n".join(f"  {line}" for line in changed)
    raise Untrusted(
        f"{settings.workspace.folder} requests permissions that you have not confirmed yet:\n{lines}\n"
        "look at them, then run: quire trust workspace"
    )


def require_model(settings: Settings, spec: str) -> None:
    """Raise `Untrusted` for a model that the workspace names beyond the user's own settings, such as an address or a
    file of weights, until the user has agreed."""
    needing = {address for _, address in _addresses(settings.requested)}
    needing |= {excess.value for excess in settings.excess if excess.kind == "model"}
    if not needing.isdisjoint(members_of(spec)):
        require_trusted(settings)


def _addresses(own: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the addresses that a file names as models, each with the name of the tier, or `default`."""
    models = table_in(own, "models")
    for name, tier in sorted({"default": models.get("default"), **table_in(models, "tiers")}.items()):
        spec = as_spec(tier.get("model") if isinstance(tier, Mapping) else tier)
        for member in members_of(spec or ""):
            if member.startswith(("http://", "https://")):
                yield name, member


def _confirmed(settings: Settings) -> ConfirmedWorkspaces:
    return ConfirmedWorkspaces(settings.user / "trust" / "workspaces.json")


def _agreed(settings: Settings) -> ConfirmedWorkspaces:
    """The confirmed lines, each with its fingerprint; only used to show what has changed since."""
    return ConfirmedWorkspaces(settings.user / "trust" / "agreed.json")


def _agreed_files(settings: Settings) -> ConfirmedWorkspaces:
    """The hashes of the files in the confirmed lines; only used to show which of them has changed since."""
    return ConfirmedWorkspaces(settings.user / "trust" / "agreed_files.json")


def _files(values: Iterable[Value]) -> dict[str, str]:
    """Return the files that modules and servers load, each with its hash."""
    hashes: dict[str, str] = {}
    for value in values:
        match value:
            case ["module", _, dict() as files] | ["server", {"files": dict() as files}]:
                hashes |= {name: str(hash) for name, hash in files.items()}
    return hashes


def _hash(asked_for: list[tuple[str, Value]]) -> str:
    return fingerprint([value for _, value in asked_for])


def _requests(settings: Settings, code: LoadedCode | None = None) -> Iterator[tuple[str, Value]]:
    """Yield the lines, each with the exact value that it stands for."""
    code = code or read_code(settings)
    for name, server in sorted(settings.servers.items()):
        yield _server(name, server, code.servers.get(name))
    if settings.tools.allow:
        yield f"use the tools {', '.join(sorted(settings.tools.allow))}", ["allow", *sorted(settings.tools.allow)]
    for module in sorted(settings.tools.modules):
        files = code.modules[module]
        where = _counted(files) if files else "not in this folder"
        yield f"import the Python module {_shown(module)} ({where})", ["module", module, dict(files)]
    yield from _tables(settings)
    yield from _hooks(settings.workspace.folder)
    for kind in ("prompts", "knowledge"):
        named = table_in(settings.requested, kind).get("folders")
        for name in named if isinstance(named, list) else ():
            folder = real_path(settings.workspace.folder / str(name))
            if not folder.is_relative_to(settings.workspace.folder):
                yield f"read {kind} outside of the workspace, in {_shown(str(folder))}", [kind, str(folder)]
    for excess in settings.excess:
        yield _shown(excess.line), ["excess", excess.key, excess.value]


def _hooks(folder: Path) -> Iterator[tuple[str, Value]]:
    """Yield the request for the hooks of the project. They act in every directive that runs here, and are not
    signed."""
    file = folder / HOOKS
    if not file.is_file() and not file.is_symlink():
        return
    try:
        stored = read_bytes(file)
    except OSError as error:
        # If it becomes readable later, that is a change, and the user is asked again.
        yield f"add the hooks of {HOOKS} to every directive (it cannot be read: {error.strerror})", ["hooks", None]
        return
    digest = hashlib.sha256(stored).hexdigest()
    yield f"add the hooks of {HOOKS} to every directive (content {digest[:12]})", ["hooks", digest]


def _tables(settings: Settings) -> Iterator[tuple[str, Value]]:
    """Yield the requests in the tables of the workspace's own file. The user's own file needs no consent."""
    own = settings.requested
    for name, provider in sorted(table_in(table_in(own, "models"), "providers").items()):
        fields = _texts(provider)
        key = f"with the key in {fields['api_key_env']}" if "api_key_env" in fields else "without a key"
        does = f"send prompts of the provider {name} to {masked(fields.get('base_url', ''))}, {key}"
        yield _shown(does), ["provider", name, fields]
    for name, spec in _addresses(own):
        yield f"send prompts to {_shown(masked(spec))}, as the model {_shown(name)}", ["model", name, spec]
    for name, agent in sorted(table_in(own, "agents").items()):
        yield f"define the agent {_shown(name)}: {_shown(masked(str(agent)))}", ["agent", name, str(agent)]
    for name, playbook in sorted(table_in(own, "playbooks").items()):
        yield (
            f"choose for the playbook {_shown(name)}: {_shown(masked(str(playbook)))}",
            ["playbook", name, str(playbook)],
        )
    for name, trigger in sorted(table_in(own, "triggers").items()):
        yield f"offer the trigger {_shown(name)}: {_shown(masked(str(trigger)))}", ["trigger", name, str(trigger)]
    for table in ("trust", "store", "cluster"):
        # Holding runs to the lock asks for nothing: it only refuses.
        if fields := {key: text for key, text in _texts(table_in(own, table)).items() if key != "locked"}:
            shown = ", ".join(f"{key} = {_shown(masked(value))}" for key, value in sorted(fields.items()))
            yield f"set [{table}] {shown}", [table, fields]


def _server(name: str, server: McpServer, code: ServerCode | None) -> tuple[str, Value]:
    files, runs = (code.files, code.runs) if code else ({}, ())
    value: dict[str, Value] = {
        "name": name,
        "command": [server.command, *server.args],
        "env": dict(server.env),
        "cwd": server.cwd,
        "url": server.url,
        "headers": dict(server.headers),
    }
    if files:
        value["files"] = dict(files)
    if runs:
        value["runs"] = list(runs)
    if server.url:
        does = f"connect to {masked(server.url)}"
    else:
        command = masked_command([server.command, *server.args])
        does = f"start {' '.join(command)}" + (f" in {server.cwd}" if server.cwd else "")
    handed_over = {**server.env, **server.headers}
    variables = sorted(f"{name}={masked_value(name, value)}" for name, value in handed_over.items())
    variables += sorted({*server.variables()} - {*handed_over})
    handed = f", given {', '.join(variables)}" if variables else ""
    handed += f", loading {_counted(files)} of this folder" if files else ""
    if runs:
        folders = " AND ".join("THIS FOLDER" if folder == "." else f"THE FOLDER {folder}" for folder in runs)
        handed += (
            f", AND WHATEVER {folders} CONTAINS: any program there may run as you, and its changes do not ask again"
        )
    return f"{_shown(does)} as the MCP server {_shown(name)}{_shown(handed)}", ["server", value]


def _counted(files: Mapping[str, str]) -> str:
    """Return the number of loaded files, with those that cannot be loaded."""
    refused = [f"{name} is {why} and does not load" for name, why in sorted(files.items()) if not is_hash(why)]
    return "; ".join([counted(len(files), "file"), *refused[:3]])


def _texts(table: object) -> dict[str, str]:
    return {key: str(value) for key, value in table.items()} if isinstance(table, Mapping) else {}


def _shown(text: str) -> str:
    """Make a text safe for a terminal: a file must not be able to hide a line with escape codes."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
