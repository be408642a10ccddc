"""The documents of a workspace as their callers see them: for `check`, which starts nothing and verifies nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from quire.documents import read
from quire.errors import QuireError
from quire.formats.called import Called
from quire.schema import Field, FieldType, Kind, Object, Ref, Simple
from quire.source import Source, read_source
from quire.values import Value, encode
from quire.workspace.directive_index import DirectiveIndex
from quire.workspace.playbooks import Playbooks

if TYPE_CHECKING:
    from quire.plan.nodes import Plan
    from quire.plan.thread import Parameter

_ANY = Ref("")
"""The type of a value of which nothing is known: a schema that no file has."""

_TEXT = Simple(Kind.STRING)
_KINDS = {
    "string": _TEXT,
    "integer": Simple(Kind.NUMBER),
    "number": Simple(Kind.NUMBER),
    "boolean": Simple(Kind.BOOL),
}


class CalledDocuments:
    """Finds playbooks and directives by name, as a run would; reads each once."""

    def __init__(self, playbooks: Playbooks, directives: DirectiveIndex) -> None:
        self._playbooks = playbooks
        self._directives = directives
        self.find = lru_cache(maxsize=None)(self._find)

    def _find(self, name: str) -> Called | None:
        try:
            source = self._source(name)
            document = read(source) if source else None
        except QuireError:
            return Called("document", name)  # it is there and cannot be read; the run says why
        if document is None:
            return None
        if document.plan is None:
            return Called(document.format, name)
        return called_directive(name, document.plan) if document.format == "directive" else called(name, document.plan)

    def _source(self, name: str) -> Source | None:
        found = self._playbooks.find(name)
        if found is not None:
            return read_source(found[1])
        item = self._directives.find(name)
        return Source.of(item.text, str(item.path)) if item else None


def called(name: str, plan: Plan) -> Called:
    """A playbook. What it captures is text; without a capture it gives text itself."""
    from quire.engine.inputs import checked_input

    inputs = {one.name: one for one in plan.inputs}

    def wrong(given: str, value: Value) -> str:
        text = "" if value is None else value if isinstance(value, str) else encode(value)
        if given not in inputs or not text.strip():
            return ""  # a blank means the default
        return _said(lambda: checked_input(inputs[given], text, one_line=False))

    required = tuple(one.name for one in plan.inputs if one.required and one.default is None)
    captured = dict.fromkeys(step.capture.name for _, step in plan.steps() if step.capture)
    gives: FieldType = _TEXT
    if captured:
        gives = Object(tuple(Field(one, _TEXT) for one in {**captured, "output": None}))
    return Called("playbook", name, required, tuple(inputs), gives, wrong)


def called_directive(name: str, plan: Plan) -> Called:
    from quire.engine.thread.inputs import converted
    from quire.plan.thread import Thread

    (step,) = plan.body.steps
    assert isinstance(step.work, Thread)  # noqa: S101  # a directive is one thread
    thread = step.work
    inputs = {one.name: one for one in thread.inputs}

    def wrong(given: str, value: Value) -> str:
        if given not in inputs or value is None:
            return ""
        return _said(lambda: converted(inputs[given].type, value))

    required = tuple(one.name for one in thread.inputs if one.required and one.default is None)
    return Called("directive", name, required, tuple(inputs) if inputs else None, _outputs(thread.outputs), wrong)


def _outputs(outputs: tuple[Parameter, ...]) -> FieldType:
    """An output that says `string` takes any value: only other types are held to."""
    if not outputs:
        return _TEXT
    kinds: Mapping[str, FieldType] = {name: kind for name, kind in _KINDS.items() if kind != _TEXT}
    return Object(tuple(Field(one.name, kinds.get(one.type, _ANY), required=one.required) for one in outputs))


def _said(check: Callable[[], object]) -> str:
    """Run a check and return the message of its error, or an empty text."""
    try:
        check()
    except ValueError as error:
        return str(error)
    return ""
