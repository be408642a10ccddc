"""What a playbook cannot do, whatever its model says: found before anything is paid for.

A step in an arm counts as well, as it does for tools that are not there: the document is wrong either way.
"""

from __future__ import annotations

from quire.plan.nodes import Plan, PromptSource, Think, UseTool
from quire.plan.uses import problem_of
from quire.workspace.prompts import leads_out


def certain_failures(plan: Plan) -> list[str]:
    """A line for each step that would fail if it were reached. Of other formats nothing is said here."""
    if plan.format != "playbook":
        return []
    problems = []
    for _, step in plan.steps():
        if isinstance(step.work, UseTool) and (problem := problem_of(step.work)):
            problems.append(f"step {step.label}: {problem}")
    problems += [
        f"step {label}: prompt file:{source.where}: must be a path below the document's folder, without .."
        for label, source in _prompts(plan, "file")
        if leads_out(source.where)
    ]
    return problems


def server_prompts(plan: Plan) -> list[tuple[str, str, str]]:
    """The label of each step that begins with a prompt of a server, the server, and the prompt."""
    found = []
    for label, source in _prompts(plan, "mcp") if plan.format == "playbook" else ():
        server, _, name = source.where.partition("/")
        found.append((label, server, name))
    return found


def _prompts(plan: Plan, scheme: str) -> list[tuple[str, PromptSource]]:
    return [
        (step.label, step.work.preamble)
        for _, step in plan.steps()
        if isinstance(step.work, Think) and step.work.preamble is not None and step.work.preamble.scheme == scheme
    ]
