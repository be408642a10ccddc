"""Permissions of a directive: the tools of each, its tier of risk, and the steps that use it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from quire.lsp.answers import code
from quire.lsp.directive.item_words import KINDS, entries
from quire.lsp.directive.tags import scan
from quire.patterns import late_pattern
from quire.plan.built_in_tools import BUILT_IN_TOOLS, FORK
from quire.plan.vocabulary import EVERYTHING, PRIMARIES
from quire.trust.capabilities import Grants, capability
from quire.trust.risk import NO_RULES, Tier, project_risk, tier_of
from quire.wording import first_of

if TYPE_CHECKING:
    from quire.formats.directive.item_references import Call
    from quire.lsp.desk import Folder
    from quire.lsp.directive.tags import Tagged
    from quire.lsp.document_view import View
    from quire.source import Span
    from quire.trust.capabilities import Primary
    from quire.trust.risk import ProjectRisk

ORCHESTRATOR = "rye/agent/threads/orchestrator"
_BOLD = late_pattern(r"^(?:#{1,4}[ \t]+|\*\*)([^\n*]+)", re.MULTILINE)
_RISKS: WeakKeyDictionary[Folder, ProjectRisk] = WeakKeyDictionary()


def risk_rules(folder: Folder) -> ProjectRisk:
    """Return the project's table of risks."""
    if folder not in _RISKS:
        _RISKS[folder] = project_risk(folder.settings.workspace.folder) if folder.settings else NO_RULES
    return _RISKS[folder]


def tier(view: View, pattern: str) -> Tier | None:
    return tier_of(pattern, risk_rules(view.folder))


def permission_at(tag: Tagged) -> tuple[str, Span] | None:
    """Return the capability that an element inside of `<permissions>` asks for, and where its pattern is."""
    above = tag.parent
    if not tag.finished or tag.children or above is None or not tag.inside("permissions"):
        return None
    text, span = tag.text
    if not text or any(sign.isspace() for sign in text):
        return None
    if above.tag in PRIMARIES:
        return f"rye.{above.tag}.{tag.tag}.{text.replace('/', '.')}", span
    if tag.tag in PRIMARIES:
        return f"rye.{tag.tag}.{text.replace('/', '.')}", span
    return None


def permissions(view: View) -> Iterator[tuple[str, Span, Tagged]]:
    """Yield the permissions of a directive, in the order of the text."""
    for tag in scan(view.source.text).tags:
        if tag.tag == "permissions" and not tag.children and tag.text[0] == "*":
            yield "rye.*", tag.text[1], tag
        elif (permission := permission_at(tag)) is not None:
            yield *permission, tag


def offered_tools(view: View, pattern: str) -> list[str]:
    """Return the ids of the tools that a permission offers. The tools of servers and modules are not listed, because
    they are not started: `mcp/NAME/…` stands for those."""
    grants = Grants.of([pattern])
    tool_ids = (*(tool.id for tool in BUILT_IN_TOOLS), FORK, ORCHESTRATOR)
    offered = [tool_id for tool_id in tool_ids if grants.covers(capability("execute", "tool", tool_id))]
    settings = view.folder.settings
    for name in settings.servers if settings else ():
        head = capability("execute", "tool", f"mcp/{name}")
        if grants.covers(f"{head}.x") or any(pattern.startswith(f"{head}.") for pattern in grants.patterns):
            offered.append(f"mcp/{name}/…")
    return offered


def covered_items(view: View, pattern: str) -> list[tuple[str, str]]:
    """Return the items that a permission covers, as (type, id). Pipelines are read only if the pattern is for them."""
    parts = pattern.split(".")
    if len(parts) < 4 or parts[2] not in KINDS:
        return []
    primary: Primary = parts[1]  # type: ignore[assignment]  # a tag of the format
    grants = Grants.of([pattern])
    return [
        (parts[2], entry)
        for entry in entries(view.folder, parts[2])
        if grants.covers(capability(primary, parts[2], entry))
    ]


def calls_of_view(view: View) -> list[Call]:
    """Return the calls of the instructions and of the hooks."""
    from quire.formats.directive.item_references import calls_of, calls_of_hooks

    directive = view.reading.partial
    return [*calls_of(directive), *calls_of_hooks(directive)]


def users(view: View, pattern: str) -> list[str]:
    """Return where a permission is used: names of steps and hooks, each once."""
    scanned = scan(view.source.text)
    places: dict[str, None] = {}
    for call in calls_of_view(view):
        if not call.covered_by(pattern):
            continue
        at = scanned.at(call.span.start)
        named = next((around for around in (at, *at.around()) if around.tag in ("step", "hook")), None) if at else None
        if named is not None:
            places[f"{named.tag} {named.value('name') or named.value('id')}".strip()] = None
        else:
            places[_heading(view.source.text, scanned.body_start, call.span.start)] = None
    return list(places)


def _heading(text: str, start: int, at: int) -> str:
    """Return the heading, or the line in bold letters, before an offset of the instructions."""
    matches = list(_BOLD.finditer(text, start, at))
    return f"“{matches[-1][1].strip()}”" if matches else "the instructions"


_SHOWN = 12


def _listed(names: list[str]) -> str:
    return ", ".join(map(code, first_of(names, _SHOWN)))


def permission_markdown(view: View, pattern: str) -> str:
    """Return what is known about one permission."""
    lines = [f"**capability** {code(pattern)}", ""]
    risk = tier(view, pattern)
    lines.append(f"- tier: **{risk.value}** — {risk.meaning}" if risk else "- tier: none is known")
    if risk is not None and risk.value in ("elevated", "unrestricted"):
        lines.append(f"- {_acknowledged(view, risk.value)}")
    if pattern == EVERYTHING:
        return "\n".join([*lines, "- offers everything"])
    tools = offered_tools(view, pattern) if pattern.startswith(("rye.execute.tool", "rye.execute.*")) else []
    if pattern.startswith("rye.execute.tool"):
        lines.append(f"- offers: {_listed(tools) or 'no tool that is known here'}")
    elif tools:
        lines.append(f"- offers: {_listed(tools)}, and every other item that can be executed")
    items = [item_id for _, item_id in covered_items(view, pattern)]
    if pattern.split(".")[2:3] and pattern.split(".")[2] in ("directive", "knowledge", "pipeline", "playbook"):
        lines.append(f"- covers: {_listed(items) or 'nothing that exists now'}")
    used = users(view, pattern)
    lines.append(
        f"- used by: {', '.join(first_of(used, _SHOWN))}" if used else "- no call of the instructions needs it"
    )
    return "\n".join(lines)


def permissions_markdown(view: View) -> str:
    """Return a table of all permissions, to be put behind the meaning of the element."""
    granted = list(permissions(view))
    if not granted:
        return ""
    rows = [f"| {code(pattern)} | {risk.value if (risk := tier(view, pattern)) else ''} |" for pattern, _, _ in granted]
    return "\n\n| capability | tier |\n| --- | --- |\n" + "\n".join(rows[:_SHOWN])


def _acknowledged(view: View, risk: str) -> str:
    tags = [tag for tag in scan(view.source.text).tags if tag.tag == "acknowledge" and tag.value("risk") == risk]
    if tags:
        return "acknowledged: " + (" ".join(tags[0].text[0].split()) or "without a reason")
    return "not acknowledged: it does not start" if risk == "unrestricted" else "not acknowledged: a warning"
