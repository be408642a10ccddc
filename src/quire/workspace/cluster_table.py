"""The table `[cluster]`: which Temporal server, how it lets one in, and what is asked of it.

A server and the way into it are taken whole from one file. Were they not, a workspace could put its own address beside
the user's key, or take the encryption from under it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from quire.workspace.settings import ClusterSettings, TemporalAccess
from quire.workspace.table import Table

SERVER = (
    "temporal",
    "tls",
    "tls_ca",
    "tls_cert",
    "tls_key",
    "tls_server_name",
    "api_key_env",
    "api_key_file",
)
"""The keys that say where a server is and how it lets one in."""


def read_cluster(table: Table, folder: Path) -> ClusterSettings:
    """Files are relative to `folder`; `~` is the home of the user."""
    default = ClusterSettings()
    settings = ClusterSettings(
        table.text("temporal"),
        table.text("namespace") or default.namespace,
        table.text("task_queue") or default.task_queue,
        table.duration("heartbeat") or default.heartbeat,
        _access(table, folder),
    )
    table.problems.extend(f"{table.file}: [{table.name}] {problem}" for problem in problems_of(settings.access))
    table.end()
    return settings


def server_of_one_file(
    merged: ClusterSettings, theirs: Mapping[str, object], requested: ClusterSettings, own: ClusterSettings
) -> ClusterSettings:
    """`merged`, with the server of the workspace if `theirs`, its file as written, says anything of one; else the
    user's."""
    table = theirs.get("cluster")
    chosen = requested if isinstance(table, Mapping) and any(key in table for key in SERVER) else own
    return replace(merged, temporal=chosen.temporal, access=chosen.access)


def problems_of(access: TemporalAccess) -> list[str]:
    """What does not go together, in the words of the settings."""
    found = []
    if (access.certificate is None) != (access.key is None):
        given, missing = ("tls_cert", "tls_key") if access.key is None else ("tls_key", "tls_cert")
        found.append(f"{given} needs {missing} beside it")
    if access.api_key_env and access.api_key_file:
        found.append("api_key_env and api_key_file are both set: which one?")
    if access.tls is False and access != TemporalAccess(tls=False):
        found.append("tls = false does not go with the rest: certificates and API keys are for TLS")
    return found


def _access(table: Table, folder: Path) -> TemporalAccess:
    said = table.flag("tls", False)
    return TemporalAccess(
        tls=said if "tls" in table.data else None,
        ca=_file(table, "tls_ca", folder),
        certificate=_file(table, "tls_cert", folder),
        key=_file(table, "tls_key", folder),
        server_name=table.text("tls_server_name"),
        api_key_env=table.text("api_key_env"),
        api_key_file=_file(table, "api_key_file", folder),
    )


def _file(table: Table, key: str, folder: Path) -> Path | None:
    text = table.text(key)
    return folder / Path(text).expanduser() if text else None
