"""The calls between the documents of a workspace, for `check`: cycles of calls, and the inputs and outputs of callees.

Nothing is started or verified. Only documents that the checked one can reach are read, each file once. The reader of a
format is imported when the first document of it is met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import QuireError
from quire.formats.resolver import Called, Caller, Circle, Wanted, circles
from quire.library.directive_index import DirectiveIndex
from quire.library.document import read
from quire.library.playbooks import Playbooks, load_playbooks
from quire.library.spaces import Spaces
from quire.schema import Field, FieldType, Kind, Object, Ref, Simple
from quire.source import Source, read_source
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.library.pipelines import Registered
    from quire.plan.nodes import Plan
    from quire.plan.thread import Parameter
    from quire.workspace.settings import Settings


MOST_FOLLOWED = 50_000
"""The number of calls that are followed for one workspace. In a file of thousands of pipelines that call each other,
each call would be followed again from each of them; cycles that are missed because of this limit are refused when the
run starts."""


class CallGraph:
    """The documents of one workspace, as their files are now; `pipelines` returns the registered ones."""

    def __init__(self, settings: Settings, pipelines: Callable[[], Mapping[str, Registered]]) -> None:
        self._pipelines = cache(pipelines)
        self._followed = 0
        self._declaring = cache(self._by_declared_name)
        self.directives = DirectiveIndex(Spaces(settings))
        self.playbooks = load_playbooks(settings)
        self._pipeline = lru_cache(maxsize=None)(self._read_pipeline)
        self._playbook = lru_cache(maxsize=None)(self._read_playbook)
        self._directive = lru_cache(maxsize=None)(self._read_directive)

    def pipeline(self, path: Path, declared: str, calls: Sequence[Wanted]) -> list[Circle]:
        """Return the cycles that the calls of a pipeline lead into. An unregistered pipeline has no name for other
        documents, but a run of it resolves its own name to itself."""
        if self._followed > MOST_FOLLOWED:
            return []
        at = path.resolve()
        here = self._declaring().get(declared, ())
        own = next((one.name for one in here if Path(one.source.name).resolve() == at), "")
        root = Caller(f"pipeline:{own}" if own else "", own or declared, "pipeline", tuple(calls))
        return circles(root, lambda caller, wanted: self._find(caller, wanted) or _itself(root, wanted))

    def playbook(self, path: Path, calls: Sequence[Wanted]) -> list[Circle]:
        at = path.resolve()
        own = next((name for name, file in self.playbooks.paths.items() if file.resolve() == at), "")
        return circles(Caller(f"playbook:{own}" if own else "", own or path.name, "playbook", tuple(calls)), self._find)

    def directive(self, item_id: str, calls: Sequence[Wanted]) -> list[Circle]:
        return circles(Caller(f"directive:{item_id}", item_id, "directive", tuple(calls)), self._find)

    def _by_declared_name(self) -> Mapping[str, Sequence[Registered]]:
        found: dict[str, list[Registered]] = {}
        for one in self._pipelines().values():
            found.setdefault(one.declared, []).append(one)
        return found

    def _find(self, caller: Caller, wanted: Wanted) -> Caller | None:
        """Return the document that a run would resolve a name to. A document that cannot be read leads nowhere: the run
        reports why."""
        self._followed += 1
        try:
            if wanted.kind in ("", "pipeline") and (found := self._registered(caller, wanted.name)):
                return found
            if wanted.kind in ("", "playbook") and (playbook := self.playbooks.find(wanted.name)):
                return self._playbook(*playbook)
            return self._directive(wanted.name) if wanted.kind in ("", "directive") else None
        except QuireError:
            return None

    def _registered(self, caller: Caller, name: str) -> Caller | None:
        """Resolve the name of a pipeline. In a file of several, a name without a dot is a sibling first."""
        key, dot, _ = caller.name.rpartition(".") if caller.format == "pipeline" else ("", "", "")
        sibling = f"{key}.{name}"
        return self._pipeline(sibling if dot and sibling in self._pipelines() else name)

    def _read_pipeline(self, name: str) -> Caller | None:
        found = self._pipelines().get(name)
        return Caller(f"pipeline:{name}", name, "pipeline", _wanted(found.plan)) if found else None

    def _read_playbook(self, name: str, path: Path) -> Caller | None:
        from quire.library.document import read

        plan = read(read_source(path)).plan
        return Caller(f"playbook:{name}", name, "playbook", _wanted(plan)) if plan else None

    def _read_directive(self, name: str) -> Caller | None:
        item = self.directives.find(name)
        if item is None:
            return None
        from quire.formats.directive.item_references import documents_called
        from quire.formats.directive.parse import parse

        reading = parse(Source.of(item.text, str(item.path)))
        if reading.directive is None:
            return None
        calls = dict.fromkeys(wanted for wanted, _ in documents_called(reading.directive))
        return Caller(f"directive:{item.id}", item.id, "directive", tuple(calls))


class PipelineReach:
    """The `Reach` of a file of pipelines."""

    def __init__(self, graph: CallGraph, path: Path) -> None:
        self._graph = graph
        self._path = path

    def circles(self, declared: str, calls: Sequence[Wanted]) -> Sequence[Circle]:
        return self._graph.pipeline(self._path, declared, calls)


class PlaybookReach:
    """The `Reach` of a playbook."""

    def __init__(self, graph: CallGraph, path: Path) -> None:
        self._graph = graph
        self._path = path

    def circles(self, declared: str, calls: Sequence[Wanted]) -> Sequence[Circle]:
        return self._graph.playbook(self._path, calls)


def _itself(root: Caller, wanted: Wanted) -> Caller | None:
    return root if wanted.name == root.name and wanted.kind in ("", "pipeline") else None


def _wanted(plan: Plan) -> tuple[Wanted, ...]:
    from quire.library.called_names import called

    return tuple(Wanted(name) for name in dict.fromkeys(called(plan)))


_ANY = Ref("")
"""The type of an unknown value: a schema that no file has."""

_TEXT = Simple(Kind.STRING)
_KINDS = {
    "string": _TEXT,
    "integer": Simple(Kind.NUMBER),
    "number": Simple(Kind.NUMBER),
    "boolean": Simple(Kind.BOOL),
}


class CalledDocuments:
    """Finds playbooks and directives by name, as a run would; reads each of them once."""

    def __init__(self, playbooks: Playbooks, directives: DirectiveIndex) -> None:
        self._playbooks = playbooks
        self._directives = directives
        self.find = lru_cache(maxsize=None)(self._find)

    def _find(self, name: str) -> Called | None:
        try:
            source = self._source(name)
            document = read(source) if source else None
        except QuireError:
            return Called("document", name)  # it exists but cannot be read; the run reports why
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
    """Describe a playbook for its callers. Its captures are texts; without a capture its result is a text."""
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
    from quire.engine.inputs import converted
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
    """Return the type of the outputs. An output declared as `string` takes any value: only other types are checked."""
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
