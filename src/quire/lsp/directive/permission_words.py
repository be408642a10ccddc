"""Permissions of a directive in words: what they offer, their tier, their use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.directive.grants import covered_items, offered_tools, permissions, tier, users
from quire.lsp.directive.tags import scan
from quire.lsp.markdown import code
from quire.wording import first_of

if TYPE_CHECKING:
    from quire.lsp.views import View

_SHOWN = 12


def permission_markdown(view: View, pattern: str) -> str:
    """Return what is known about one permission."""
    from quire.plan.vocabulary import EVERYTHING

    lines = [f"**capability** {code(pattern)}", ""]
    risk = tier(view, pattern)
    lines.append(f"- tier: **{risk.value}** — {risk.meaning}" if risk else "- tier: none is known")
    if risk is not None and risk.value in ("elevated", "unrestricted"):
        lines.append(f"- {_acknowledged(view, risk.value)}")
    if pattern == EVERYTHING:
        return "\n".join([*lines, "- offers everything that there is"])
    tools = offered_tools(view, pattern) if pattern.startswith(("rye.execute.tool", "rye.execute.*")) else []
    if pattern.startswith("rye.execute.tool"):
        lines.append(f"- offers: {_listed(tools) or 'no tool that is known here'}")
    elif tools:
        lines.append(f"- offers: {_listed(tools)}, and every other item that can be executed")
    items = [item_id for _, item_id in covered_items(view, pattern)]
    if pattern.split(".")[2:3] and pattern.split(".")[2] in ("directive", "knowledge", "pipeline", "playbook"):
        lines.append(f"- covers: {_listed(items) or 'nothing that is there now'}")
    used = users(view, pattern)
    lines.append(
        f"- used by: {', '.join(first_of(used, _SHOWN))}" if used else "- no call of the instructions needs it"
    )
    return "\n".join(lines)


def permissions_markdown(view: View) -> str:
    """Return a table of all permissions, to be put behind the meaning of the element."""
    found = list(permissions(view))
    if not found:
        return ""
    rows = [f"| {code(pattern)} | {risk.value if (risk := tier(view, pattern)) else ''} |" for pattern, _, _ in found]
    return "\n\n| capability | tier |\n| --- | --- |\n" + "\n".join(rows[:_SHOWN])


def _acknowledged(view: View, risk: str) -> str:
    said = [one for one in scan(view.source.text).tags if one.tag == "acknowledge" and one.value("risk") == risk]
    if said:
        return "acknowledged: " + (" ".join(said[0].text[0].split()) or "without a reason")
    return "not acknowledged: it does not start" if risk == "unrestricted" else "not acknowledged: a warning"


def _listed(names: list[str]) -> str:
    return ", ".join(code(one) for one in first_of(names, _SHOWN)) if names else ""
