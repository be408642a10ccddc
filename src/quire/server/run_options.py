"""Options of a run as requests give them. A request grants nothing that the user has not granted in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from quire.errors import BadInputs
from quire.runs.options import RunOptions
from quire.server.site import DOOR

if TYPE_CHECKING:
    from quire.server.site import Site
    from quire.values import Value


def options_of(site: Site, body: Mapping[str, Value]) -> RunOptions:
    """Return the options of a new run. Raises `CannotStart` for options that do not fit, and `BadInputs` for a tool
    that the server was not started with."""
    allow = body.get("allow")
    return RunOptions(
        model=cast("str | None", body.get("model")) or site.options.model,
        breakpoints=tuple(cast("list[str]", body.get("breakpoints") or ())),
        answers=cast("Mapping[str, str]", body.get("answers") or {}),
        unattended=bool(body.get("unattended")),
        says_yes=body.get("unattended") == "yes",
        force=body.get("force") is True,
        allow=site.options.allow if allow is None else allowed(site, cast("list[str]", allow)),
        budget=cast("float | None", body.get("budget", site.options.budget)),
        limits=cast("Mapping[str, Value]", body.get("limits") or {}),
        reuse=cast("str", body.get("reuse") or ""),
        door=DOOR,
    )


def allowed(site: Site, wanted: list[str]) -> tuple[str, ...]:
    """Return the tools to grant. Raises `BadInputs` for a tool that the user has not granted to the server."""
    beyond = [tool for tool in wanted if tool not in site.options.allow]
    if beyond:
        raise BadInputs([f"allow: {tool} is granted in a terminal only: quire serve --allow {tool}" for tool in beyond])
    return tuple(wanted)
