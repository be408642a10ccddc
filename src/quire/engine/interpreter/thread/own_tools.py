"""What a directive hands back: the block that tells the model of it, and the tool that the model returns it with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.engine.inputs import converted, kind_of
from quire.engine.requests import Offered, ToolUse
from quire.trust.capabilities import RETURN, canonical
from quire.wording import nearest

if TYPE_CHECKING:
    from quire.plan.thread import Parameter
    from quire.values import Value

_STATUS = "status"
_DETAIL = "error_detail"
_EXECUTE = "rye/execute"


class Returned(Struct, frozen=True):
    """A call of the return tool, read. `problems` are for the model: with any of them the thread goes on."""

    outputs: Mapping[str, Value]
    status: Literal["completed", "error"]
    error_detail: str
    problems: tuple[str, ...]


def returns_block(outputs: Sequence[Parameter]) -> str | None:
    """The `<returns>` element that closes a directive's text; None where nothing is to be returned."""
    if not outputs:
        return None
    lines = []
    for output in outputs:
        name = escaped(output.name).replace('"', "&quot;")
        text = escaped(output.description.strip())
        lines.append(f'  <output name="{name}">{text}</output>' if text else f'  <output name="{name}" />')
    return "\n".join(["<returns>", *lines, "</returns>"])


def return_tool(outputs: Sequence[Parameter]) -> Offered:
    """No output is required by the schema, since a failed thread has none to give: `returned` says what is owed."""
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
    """The call of the return tool that this is, by whichever of its names, or through `rye_execute`."""
    if use.problem:
        return None
    name, arguments = canonical(use.name), use.arguments
    if name == _EXECUTE and arguments.get("item_type") == "tool":
        named, parameters = arguments.get("item_id"), arguments.get("parameters") or {}
        if isinstance(named, str) and isinstance(parameters, Mapping):
            name, arguments = canonical(named.strip("/ ")), parameters
    return ToolUse(use.id, RETURN, arguments) if name == RETURN else None


def owed(outputs: Sequence[Parameter], given: Mapping[str, Value]) -> list[str]:
    """The required outputs that are not there. False, 0 and an empty text are values; null is none."""
    return [output.name for output in outputs if output.required and given.get(output.name) is None]


def returned(outputs: Sequence[Parameter], arguments: Mapping[str, Value]) -> Returned:
    """Text for a number, a boolean, a list or an object is converted. An output that says `string`, or no type at all,
    takes any value as it is: `signed` without a type is returned as true more often than as text."""
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
                problems.append(_unknown(name, [*declared, status_name, detail_name]))
            continue
        try:
            values[name] = value if value is None or _free(output) else converted(output.type, value)
        except ValueError as error:
            if not failed:
                problems.append(f"output {name}: {error}")
    missing = [] if failed else owed(outputs, values)
    if missing:
        problems.append(f"missing required outputs: {', '.join(missing)}")
    text = detail if isinstance(detail, str) else ""
    return Returned(values, "error" if failed else "completed", text, tuple(problems))


def escaped(text: str) -> str:
    """For the inside of an element."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _free(output: Parameter) -> bool:
    return kind_of(output.type) in (None, "string")


def _property(output: Parameter) -> dict[str, Value]:
    kind = kind_of(output.type)
    made: dict[str, Value] = {} if kind is None else {"type": kind}
    text = " ".join(output.description.split())
    if text:
        made["description"] = text
    return made


def _own_names(outputs: Sequence[Parameter]) -> tuple[str, str]:
    """The tool's own two arguments make way for outputs of the same name."""
    taken = {output.name for output in outputs}
    status, detail = (f"directive_{name}" if name in taken else name for name in (_STATUS, _DETAIL))
    return status, detail


def _unknown(name: str, known: Sequence[str]) -> str:
    close = nearest(name, known)
    return f"unknown output {name}" + (f" (did you mean {close}?)" if close else f": there are {', '.join(known)}")
