"""The default grants of a run: the file tools, the tools of a trusted workspace, and the user's own grants.

`--allow` and `[tools] allow` take the name of a tool. Four built-in tools also take a detail after a `=`: how far they
may go. It is kept beside the capabilities, under `rye.reach`, and is always read literally: no wildcard and no document
can request it.

    http__get=HOST[:PORT]    that host, even if its address is private; other hosts need `http__get`
    http__send=HOST[:PORT]   that host, in the same way; a grant for all hosts does not exist
    file__write=PLACE        a protected folder or file, or a folder around some; `.` for all that a grant can open
    shell=network            the shell may use the network (so it may with `rye/web/*`)
    shell=unsandboxed        the shell runs without a sandbox; only the user can grant this, not a workspace
    shell=env:NAME,NAME      commands get these variables of the environment; only the user can grant this
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from msgspec import Struct

from quire.errors import BadConfiguration
from quire.patterns import late_pattern
from quire.plan.built_in_tools import BUILT_IN_TOOLS, SEND
from quire.source import real_path
from quire.trust.capabilities import Grants, canonical, capability, escape, grant_for, mcp_tool

if TYPE_CHECKING:
    from quire.workspace.settings import Settings

_DETAILS = {tool.id: tool.detail for tool in BUILT_IN_TOOLS}
_HOST = "rye.reach.host."
_RECEIVER = "rye.reach.send."
_FOLDER = "rye.reach.folder."
_UNSANDBOXED = "rye.reach.shell.unsandboxed"
_NETWORK = "rye.reach.shell.network"
_VARIABLE = "rye.reach.shell.env."
_OF_THE_USER = (_UNSANDBOXED, _VARIABLE)
"""Grants that the file of a workspace cannot give, confirmed or not."""
_NAMES = late_pattern(r"env:[A-Za-z_][A-Za-z0-9_]*(?:,[A-Za-z_][A-Za-z0-9_]*)*")


class ToolReach(Struct, frozen=True):
    """How far the built-in tools may go."""

    hosts: frozenset[str] = frozenset()
    """Entries are `name` or `name:port`."""
    receivers: frozenset[str] = frozenset()
    """The hosts that `http__send` may write to, like `hosts`."""
    folders: frozenset[str] = frozenset()
    """Relative paths."""
    unsandboxed: bool = False
    network: bool = False
    variables: frozenset[str] = frozenset()
    """Variables of the environment that commands get."""


@lru_cache(maxsize=64)
def reach_of(grants: Grants) -> ToolReach:
    patterns = grants.patterns

    def after(prefix: str) -> frozenset[str]:
        return frozenset(unquote(pattern.removeprefix(prefix)) for pattern in patterns if pattern.startswith(prefix))

    return ToolReach(
        hosts=after(_HOST),
        receivers=after(_RECEIVER),
        folders=after(_FOLDER),
        unsandboxed=_UNSANDBOXED in patterns,
        variables=after(_VARIABLE),
        # A grant of all of `rye/web/*`; `http__get` alone keeps away from private addresses.
        network=_NETWORK in patterns or grants.covers(capability("execute", "tool", "rye/web")),
    )


def reaching(grants: Grants) -> frozenset[str]:
    """Return the grants that state how far tools may go."""
    return frozenset(pattern for pattern in grants.patterns if pattern.startswith("rye.reach."))


def default_grants(settings: Settings, allow: Sequence[str] = ()) -> Grants:
    """Return the grants of a new run; `allow` are the values of `--allow`. Files of a workspace count only once they
    are confirmed."""
    patterns = list(_built_in_grants(is_everything(settings.workspace.folder)))
    for name in (*settings.granted, *allow):
        patterns += _with_receiver(settings, name)
    patterns += [_VARIABLE + name for name in settings.shell_env]
    if not (settings.servers or settings.tools.modules or settings.tools.allow):
        return Grants.of(patterns)
    from quire.workspace.consent import is_trusted  # reads what the workspace asks for

    if is_trusted(settings):
        for server in settings.servers:
            patterns.append(f"rye.execute.tool.mcp.{escape(server)}.*")
            patterns.append(f"rye.fetch.prompt.mcp.{escape(server)}.*")
        if settings.tools.modules:
            patterns.append("rye.execute.tool.python.*")
        for name in settings.tools.allow:
            patterns += (grant for grant in _with_receiver(settings, name) if not grant.startswith(_OF_THE_USER))
    return Grants.of(patterns)


def allow_problem(settings: Settings, name: str, *, denies: bool = False) -> str:
    """Return why an entry of `[tools] allow`, or of `deny`, cannot be one; empty if it can."""
    try:
        list(_grants(settings, name) if denies else _with_receiver(settings, name))
    except BadConfiguration as error:
        return str(error)
    return ""


def granted_by(settings: Settings, needed: str, allow: Sequence[str] = ()) -> str:
    """Return who grants a capability to new runs, in words; empty if it is not granted. `allow` are the values of
    `--allow`."""
    if denied_tools(settings).covers(needed) or not default_grants(settings, allow).covers(needed):
        return ""
    if Grants.of(_built_in_grants(is_everything(settings.workspace.folder))).covers(needed):
        return "Quire, for every document"
    if Grants.of(grant for name in settings.granted for grant in _grants(settings, name)).covers(needed):
        return "you, in your settings"
    if Grants.of(grant for name in allow for grant in _grants(settings, name)).covers(needed):
        return "you, with --allow"
    return "the workspace, which you confirmed"


@lru_cache(maxsize=2)
def _built_in_grants(everywhere: bool) -> tuple[str, ...]:
    """Return the grants that every document has; fewer in a folder that sets no limit."""
    granted = ("always",) if everywhere else ("always", "in a workspace")
    return tuple(capability("execute", "tool", tool.id) for tool in BUILT_IN_TOOLS if tool.granted in granted)


def denied_tools(settings: Settings) -> Grants:
    """Return the tools that `[tools] deny` removes, at any place of their grant."""
    return Grants.of(grant for name in settings.denied for grant in _grants(settings, name))


def is_everything(folder: Path) -> bool:
    """Tell whether a folder is the home folder or one above it, so that it sets no limit for tools."""
    try:
        home = _home(os.path.expanduser("~"))  # noqa: PTH111  # for every run
        return _is_around(folder, _identity(folder), home, _identity(home))
    except (RuntimeError, OSError):
        return folder == Path(folder.anchor)


@lru_cache(maxsize=4)
def _home(name: str) -> Path:
    if name.startswith("~"):
        raise RuntimeError("the user has no home folder")
    return Path(name)


@lru_cache(maxsize=8)
def _is_around(folder: Path, folder_now: object, home: Path, home_now: object) -> bool:
    """Tell whether a folder is the other one or above it. A link that leads elsewhere now has another identity."""
    return real_path(home).is_relative_to(real_path(folder))


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)  # noqa: PTH116  # for every run
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _grants(settings: Settings, name: str) -> Iterator[str]:
    tool, equals, detail = name.partition("=")
    identity = canonical(tool)
    if identity not in _DETAILS:
        yield _grant(settings, name)
        return
    kind = _DETAILS[identity]
    if not equals:
        yield grant_for(tool)
    elif kind == "host" and detail and not set(detail) & set("/*@ "):
        if identity == SEND:
            yield grant_for(tool)
        yield (_RECEIVER if identity == SEND else _HOST) + escape(detail.lower())
    elif kind == "place" and detail.strip("/") and "*" not in detail and ".." not in detail.split("/"):
        yield from (capability("execute", "tool", other) for other in _DETAILS if _DETAILS[other] == kind)
        yield _FOLDER + escape(detail.strip("/"))
    elif kind == "sandbox" and detail in ("unsandboxed", "network"):
        yield grant_for(tool)
        yield _UNSANDBOXED if detail == "unsandboxed" else _NETWORK
    elif kind == "sandbox" and _NAMES.fullmatch(detail):
        yield grant_for(tool)
        yield from (_VARIABLE + variable for variable in detail.removeprefix("env:").split(","))
    else:
        raise BadConfiguration(
            f"cannot allow {name}: after a = stands the HOST or HOST:PORT of http__get and http__send, the place of "
            "file__write, or unsandboxed, network or env:NAME,NAME for shell"
        )


def _with_receiver(settings: Settings, name: str) -> Iterator[str]:
    """Return the grants of a name. Raises `BadConfiguration` for `http__send` alone: `[tools] deny` may say that."""
    if canonical(name) == SEND:
        raise BadConfiguration(f"cannot allow {name} without a host: {name}=HOST or {name}=HOST:PORT names it")
    return _grants(settings, name)


def _grant(settings: Settings, name: str) -> str:
    """Return the grant for a tool name. People write the tool of a server as `SERVER/TOOL` or `SERVER__TOOL`."""
    for separator in ("/", "__"):
        server, mark, tool = name.partition(separator)
        if mark and tool and server in settings.servers:
            return grant_for(f"mcp/{escape(server)}/*" if tool == "*" else mcp_tool(server, tool))
    if name in settings.servers:
        return grant_for(f"mcp/{escape(name)}/*")
    return grant_for(name)
