"""The inputs of a run: complete, of the right type, and as text, before anything runs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from quire.errors import BadInputs
from quire.plan.nodes import Input, Plan
from quire.values import Value, clean, encode
from quire.wording import nearest

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_LINE_END = re.compile(r"\r\n|\r|\n")
_BOOLEANS = dict.fromkeys(("true", "yes", "on", "1"), "true") | dict.fromkeys(("false", "no", "off", "0"), "false")


def complete_inputs(plan: Plan, given: Mapping[str, Value], *, one_line: bool = True) -> dict[str, str]:
    """Every declared input with its value or default. Raises `BadInputs` with all that is wrong at once.

    A `string` is one line where a person or a program gives it; with `one_line` false, as for a value that another
    document computed, it may have several."""
    declared = {wanted.name: wanted for wanted in plan.inputs}
    problems = [_unknown(name, declared) for name in given if name not in declared]
    values: dict[str, str] = {}
    for name, wanted in declared.items():
        if wanted.required and wanted.default is None and not _as_text(given.get(name)).strip():
            problems.append(f"missing input {describe(wanted)}")
            continue
        try:
            values[name] = input_value(wanted, given.get(name), one_line=one_line)
        except ValueError as error:
            problems.append(f"input {name}: {error}")
    if problems:
        raise BadInputs(problems)
    return values


def input_value(wanted: Input, given: Value, *, one_line: bool = True) -> str:
    """One input as the run gets it, blank its default; raises ValueError with what would be right."""
    text = _as_text(given)
    if text.strip():
        return checked_input(wanted, text, one_line=one_line)
    if wanted.default is None and wanted.required:
        raise ValueError("it is required, and has no default")
    return clean(text) if wanted.default is None else wanted.default


def missing_inputs(plan: Plan, given: Mapping[str, Value]) -> list[Input]:
    """The required ones that nobody has given, in document order: what a terminal can ask for."""
    return [
        wanted
        for wanted in plan.inputs
        if wanted.required and wanted.default is None and not _as_text(given.get(wanted.name)).strip()
    ]


def checked_input(wanted: Input, text: str, *, one_line: bool = True) -> str:
    """The value as the run gets it; raises ValueError with what would be right."""
    match wanted.type:
        case "number":
            if not is_number(text.strip()):
                raise ValueError(f"{_quoted(text)} is not a number")
            return text.strip()
        case "boolean":
            if text.strip().lower() not in _BOOLEANS:
                raise ValueError(f"{_quoted(text)} is not true or false")
            return _BOOLEANS[text.strip().lower()]
        case "enum" if wanted.options:
            if text.strip() not in wanted.options:
                close = nearest(text.strip(), wanted.options)
                hint = f" (did you mean {close}?)" if close else ""
                raise ValueError(f"{_quoted(text)} is not one of {', '.join(wanted.options)}{hint}")
            return text.strip()
        case "string" if one_line:
            # The line end of a file or of `echo` is not part of the value.
            text = text.rstrip("\r\n")
            if breaks := len(_LINE_END.findall(text)):
                raise ValueError(f"a string is one line, and this has {breaks + 1}; a text input takes several")
    return clean(text)


def is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def describe(wanted: Input) -> str:
    kind = f"one of {', '.join(wanted.options)}" if wanted.options else wanted.type
    return f"{wanted.name} ({kind})" + (f": {wanted.description}" if wanted.description else "")


def _unknown(name: str, declared: Mapping[str, Input]) -> str:
    close = nearest(name, declared)
    if close:
        return f"unknown input {name} (did you mean {close}?)"
    return f"unknown input {name}: the document declares " + (", ".join(declared) or "none")


def _as_text(value: Value) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value)


def _quoted(text: str) -> str:
    short = " ".join(text.split())
    return f'"{short if len(short) <= 60 else short[:57] + "…"}"'
