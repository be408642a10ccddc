"""Values that a person sets in the middle of a run: the names must mean something, inputs must stay what they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from quire.documents import Document
from quire.engine.inputs import input_value
from quire.errors import BadInputs
from quire.plan.ways import JOINT
from quire.values import InvalidValue, Value, copy
from quire.wording import nearest


def checked_overrides(document: Document, given: Mapping[str, Value], *, way: str = "") -> dict[str, Value]:
    """The values as the run gets them. Raises `BadInputs` with all that is wrong at once. `way` is where the run
    stands: in a callee the names are those of another document, and not looked up in this one.

    An input is checked as at the start, and blank it is its default. Of a kept result any text will do."""
    plan, text = document.runnable(), document.source.text
    inside = JOINT in way
    declared = {wanted.name: wanted for wanted in plan.inputs} if plan.format == "playbook" and not inside else {}
    words = None if inside or reads_any(plan.format, text) else mentioned(text)
    values: dict[str, Value] = {}
    problems: list[str] = []
    for name, value in given.items():
        if words is not None and name not in words:
            problems.append(unknown(name, words, "the document never mentions"))
            continue
        try:
            values[name] = copy(input_value(declared[name], value) if name in declared else value)
        except InvalidValue as error:
            problems.append(f"--set {name}: no JSON value: {error}")
        except ValueError as error:
            problems.append(f"--set {name}: {error}")
    if problems:
        raise BadInputs(problems)
    return values


def unknown(name: str, known: Sequence[str], problem: str) -> str:
    close = nearest(name, known)
    return f"--set {name}: {problem} {name}" + (f" (did you mean {close}?)" if close else "")


def reads_any(format: str, text: str) -> bool:
    """Whether a value has an effect whatever its name: a model is told of it, or a pipeline reads all of its stores."""
    return format == "directive" or (format == "pipeline" and re.search(r"\bctx\b(?!\s*\.)", text) is not None)


def mentioned(text: str) -> list[str]:
    """All that may be a name in a document; those of pipelines may have hyphens in them."""
    return sorted({*re.findall(r"\w+", text), *re.findall(r"[\w-]+", text)})
