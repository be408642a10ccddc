"""What a plan will ask for from outside, known before it runs."""

from __future__ import annotations

from quire.plan.nodes import Plan, Think, UseTool


def tool_calls(plan: Plan) -> list[tuple[str, str]]:
    """Each (connection, tool) once, in document order."""
    calls = ((step.work.connection, step.work.tool) for _, step in plan.steps() if isinstance(step.work, UseTool))
    return list(dict.fromkeys(calls))


def prompt_schemes(plan: Plan) -> set[str]:
    return {
        step.work.preamble.scheme
        for _, step in plan.steps()
        if isinstance(step.work, Think) and step.work.preamble is not None
    }
