"""The return of a directive's outputs: the block that describes them to the model, and the tool that returns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.engine.conversation import Offered, ToolUse
from quire.engine.inputs import converted, kind_of
from quire.plan.built_in_tools import RETURN
from quire.trust.capabilities import canonical
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.plan.thread import Parameter
    from quire.values import Value

_STATUS = "status"
_DETAIL = "error_detail"
_EXECUTE = "rye/execute"


class Returned(Struct, frozen=True):
    """A parsed call of the return tool."""

    outputs: Mapping[str, Value]
    status: Literal["completed", "error"]
    error_detail: str
    problems: tuple[str, ...]
    """Messages for the model; if there are any, the thread continues."""


def returns_block(outputs: Sequence[Parameter]) -> str | None:
    """Return the `<returns>` element that closes a directive's text, or None if there are no outputs."""
    if not outputs:
        return None
    lines = []
    for output in outputs:
        name = escaped(output.name).replace('"', "&quot;")
        text = escaped(output.description.strip())
        lines.append(f'  <output name="{name}">{text}</output>' if text else f'  <output name="{name}" />')
    return "\n".join(["<returns>", *lines, "</returns>"])


def return_tool(outputs: Sequence[Parameter]) -> Offered:
    """Return the tool that ends the thread.

    Its schema does not require any output, since a failed thread has none to give; `returned` checks the required ones.
    """
    status, detail = _own_names(outputs)
    properties: dict[str, Value] = {output.name: _property(output) for output in outputs}
    properties[status] = {
        "type": "string",
        "enum": ["completed", "error"],
        "description": "completed (the default), or error when the directive could not be carried out.",
    }
    properties[detail] = {"type": "string", "description": "What went wrong. Only with the status error."}
    required = [output.name for output in outputs if output.required]
    described = "Ends this thread and hands its outputs to whoever started it. Call it once, as the last thing."
    if required:
        described += f" Must be given unless the status is error: {', '.join(required)}."
    schema: dict[str, Value] = {"type": "object", "properties": properties, "additionalProperties": False}
    return Offered(RETURN, described, schema)


def as_return(use: ToolUse) -> ToolUse | None:
    """Return this call as a call of the return tool, by any of its names or through `rye_execute`; None if it is not
    one."""
    if use.problem:
        return None
    name, arguments = canonical(use.name), use.arguments
    if name == _EXECUTE and arguments.get("item_type") == "tool":
        named, parameters = arguments.get("item_id"), arguments.get("parameters") or {}
        if isinstance(named, str) and isinstance(parameters, Mapping):
            name, arguments = canonical(named.strip("/ ")), parameters
    return ToolUse(use.id, RETURN, arguments) if name == RETURN else None


def missing_outputs(outputs: Sequence[Parameter], values: Mapping[str, Value]) -> list[str]:
    """Return the required outputs that are missing. False, 0 and an empty text are values; null is not."""
    return [output.name for output in outputs if output.required and values.get(output.name) is None]


def returned(outputs: Sequence[Parameter], arguments: Mapping[str, Value]) -> Returned:
    """Read a call of the return tool. Text for a number, a boolean, a list or an object is converted.

    An output of type `string`, or without a type, takes any value unchanged: models return an untyped output such as
    `signed` more often as true than as text.
    """
    status_name, detail_name = _own_names(outputs)
    declared = {output.name: output for output in outputs}
    problems: list[str] = []
    values: dict[str, Value] = {}
    status, detail = arguments.get(status_name), arguments.get(detail_name)
    failed = status == "error"
    if status not in (None, "completed", "error"):
        problems.append(f"{status_name} must be completed or error")
    for name, value in arguments.items():
        output = declared.get(name)
        if output is None:
            if name not in (status_name, detail_name):
                names = [*declared, status_name, detail_name]
                hint = did_you_mean(nearest(name, names), f": there are {', '.join(names)}", lead=" (")
                problems.append(f"unknown output {name}{hint}")
            continue
        try:
            free = value is None or kind_of(output.type) in (None, "string")
            values[name] = value if free else converted(output.type, value)
        except ValueError as error:
            if not failed:
                problems.append(f"output {name}: {error}")
    missing = [] if failed else missing_outputs(outputs, values)
    if missing:
        problems.append(f"missing required outputs: {', '.join(missing)}")
    text = detail if isinstance(detail, str) else ""
    return Returned(values, "error" if failed else "completed", text, tuple(problems))


def escaped(text: str) -> str:
    """Escape a text for the inside of an element."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _property(output: Parameter) -> dict[str, Value]:
    kind = kind_of(output.type)
    made: dict[str, Value] = {} if kind is None else {"type": kind}
    text = " ".join(output.description.split())
    if text:
        made["description"] = text
    return made


def _own_names(outputs: Sequence[Parameter]) -> tuple[str, str]:
    """Return the names of the tool's own two arguments; an output of the same name takes precedence."""
    taken = {output.name for output in outputs}
    status, detail = (f"directive_{name}" if name in taken else name for name in (_STATUS, _DETAIL))
    return status, detail
