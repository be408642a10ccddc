"""Limits and models of a directive in words: what happens when a limit is reached, and what a tier stands for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from quire.errors import QuireError
from quire.lsp.directive.elements import LIMIT_MEANINGS
from quire.lsp.markdown import code
from quire.plan.vocabulary import INTEGER_LIMITS, LIMIT_ALIASES, LIMITS
from quire.workspace.secrets import shown_model

if TYPE_CHECKING:
    from quire.lsp.directive.tags import Tagged
    from quire.lsp.views import View

_PER_CALL = ("spawns", "depth")


def effective_limits(view: View) -> tuple[dict[str, object], set[str]]:
    """Return the limits that count, and the names of those that the directive itself sets. Values that are not numbers
    count as not set."""
    from quire.engine.premises import THREAD_LIMITS
    from quire.formats.directive.lower import limits

    declared = limits(view.reading.partial)
    own = {
        name: value
        for name, value in declared.items()
        if name in LIMITS and (isinstance(value, int | float) or name == "spend_currency")
    }
    return {**THREAD_LIMITS, **own}, set(own)


def limit_markdown(name: str, value: str) -> str:
    """Return what a limit means, and what happens when it is reached."""
    from quire.engine.premises import THREAD_LIMITS
    from quire.formats.directive.limits import limit_problem

    canonical = LIMIT_ALIASES.get(name, name)
    lines = [f"**limit** {code(canonical)} — {LIMIT_MEANINGS.get(canonical, '')}", ""]
    if value and (problem := limit_problem(name, value)):
        lines.append(f"- the value {problem}")
    if canonical in _PER_CALL:
        lines.append("- when it is reached: the call that would start another thread fails, and the model is told")
    elif canonical != "spend_currency":
        lines.append(
            "- when it is reached: the run ends with exit code 5; `quire resume RUN --limit "
            f"{canonical}=…` goes on, and a hook on `limit` may ask a person"
        )
    lines.append(f"- without it: {amount(canonical, THREAD_LIMITS[canonical])}")
    if canonical in INTEGER_LIMITS:
        lines.append("- a whole number")
    return "\n".join(lines)


def limits_markdown(view: View) -> str:
    """Return the limits that count, as a table to be put behind the meaning of the element."""
    effective, own = effective_limits(view)
    rows = [
        f"| {code(name)} | {amount(name, effective[name])} | {'the directive' if name in own else 'default'} |"
        for name in LIMITS
        if name != "spend_currency"
    ]
    return "\n\n| limit | counts | from |\n| --- | --- | --- |\n" + "\n".join(rows)


def amount(name: str, value: object) -> str:
    """Return the value of a limit as people read it."""
    if name == "spend" and isinstance(value, int | float):
        return f"${value:,.2f}"
    if isinstance(value, int | float):
        return f"{value:,}"
    return str(value)


def model_words(view: View, tag: Tagged) -> tuple[str, str]:
    """Return the model that `<model>` stands for here, and why; an empty name if that is only known when it runs."""
    from quire.library.survey import model_here

    settings = view.folder.settings
    if settings is None:
        return "", "the settings of the workspace cannot be read"
    asked = {one.name: one.value.strip() for one in tag.attributes}
    try:
        choice = model_here(asked, settings, os.environ)
    except QuireError as error:
        return "", str(error)
    return shown_model(choice.spec), choice.reason


def model_markdown(view: View, tag: Tagged) -> str:
    name, reason = model_words(view, tag)
    return f"\n\nHere: {code(name)} ({reason})" if name else f"\n\nHere: {reason}"
