"""Write an explored run as a case of a test file, to paste and keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.testing.snapshots import as_text

if TYPE_CHECKING:
    from quire.testing.exploration.drawn_run import Broken, DrawnAnswer, Given
    from quire.values import Value


def written_case(given: Given, broken: Broken, seed: int) -> str:
    """Return a case with the inputs, replies, results and answers of a run. Its expectation is for the author."""
    case: dict[str, Value] = {"name": f"explored {seed}: {broken.promise}"}
    if given.inputs:
        case["inputs"] = dict(given.inputs)
    model, tools, answers = _parts(given)
    if model:
        case["model"] = model
    if tools:
        case["tools"] = tools
    if answers:
        case["answers"] = answers
    case["expect"] = "todo"
    return as_text([case])


def _parts(given: Given) -> tuple[list[Value], dict[str, Value], dict[str, Value]]:
    model: list[Value] = []
    tools: dict[str, list[Value]] = {}
    answers: dict[str, Value] = {}
    for path, performed in given.answers.items():
        kind, name = given.ways.get(path, ("", ""))
        match kind:
            case "model":
                model.append({"path": path, **_said(performed)})
            case "tool":
                tools.setdefault(name, []).append(_result(performed))
            case "ask":
                answers[path] = performed.value
    listed: dict[str, Value] = {name: {"sequence": calls} for name, calls in tools.items()}
    return model, listed, answers


def _said(performed: DrawnAnswer) -> dict[str, Value]:
    if performed.failure is not None:
        return {"error": {"kind": performed.failure.kind, "message": performed.failure.message}}
    value = performed.value if isinstance(performed.value, Mapping) else {}
    uses = value.get("uses")
    if isinstance(uses, list):
        calls: list[Value] = [{"name": use[1], "input": use[2]} for use in uses if isinstance(use, list)]
        return {"tool_calls": calls}
    return {"reply": str(value.get("text", ""))}


def _result(performed: DrawnAnswer) -> Value:
    if performed.failure is not None:
        return {"raises": {"kind": performed.failure.kind, "message": performed.failure.message}}
    return {"returns": performed.value}
