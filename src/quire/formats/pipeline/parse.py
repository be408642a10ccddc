"""Parse a pipeline file into a syntax tree and findings. Never raises because of the content of a text.

All mistakes are reported, not only the first one: a part that cannot be read is left out, and reading continues after
it.
"""

from __future__ import annotations

from quire.diagnostics import Severity
from quire.formats.near_names import word_fix
from quire.formats.pipeline.codes import errors as codes
from quire.formats.pipeline.fields import ADD_DIALECT, Fields
from quire.formats.pipeline.language import KEYS
from quire.formats.pipeline.schemas import SchemaReading, read_inputs, read_schemas
from quire.formats.pipeline.steps import StepReader
from quire.formats.pipeline.syntax import Name, ParseResult, Pipeline, PipelineFile, Step, is_name
from quire.formats.yaml import Entry, Mapping, Node, YamlReading, describe, read_yaml, text_of
from quire.formats.yaml import codes as yaml_codes
from quire.source import MAX_DOCUMENT_BYTES, NOWHERE, Source
from quire.wording import quoted

_KEYS = ("pipeline", "description", "dialect", "steps")
_INPUT = "input"
_PLANNED = (_INPUT, "defaults", "refine")
_DIALECT = "quire"
_NOTHING_TO_READ = (yaml_codes.SYNTAX, yaml_codes.TOO_LARGE, yaml_codes.TOO_DEEP, yaml_codes.CHARACTER)


def parse(source: Source, *, registered: bool = False, limit: int = MAX_DOCUMENT_BYTES) -> ParseResult:
    """Parse a text.

    A registered file may contain several pipelines; a text that is run directly must contain exactly one.
    """
    yaml = read_yaml(source, limit=limit)
    mappings = [node for node in yaml.documents if isinstance(node, Mapping)]
    dialect = any(node.find("pipeline") and node.find("dialect") for node in mappings)
    schemas = read_schemas([node for node in mappings if node.find("schema")], dialect=dialect)
    reader = _DocumentReader(source, schemas)
    read = [reader.document(node) for node in yaml.documents if not (isinstance(node, Mapping) and node.find("schema"))]
    reader.count(yaml, registered)
    diagnostics = yaml.with_findings([*schemas.diagnostics, *reader.fields.diagnostics])
    pipelines, good = tuple(filter(None, read)), tuple(schemas.schemas.values())
    if not any(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics):
        return ParseResult(source, PipelineFile(pipelines, good), diagnostics)
    if any(diagnostic.code in _NOTHING_TO_READ for diagnostic in yaml.diagnostics):
        return ParseResult(source, None, diagnostics)
    readable = {*schemas.schemas, *(pipeline.name.text for pipeline in pipelines)}
    declared = (text_of(node.get(key)) for node in mappings for key in ("schema", "pipeline"))
    unread = frozenset(name for name in declared if name and name not in readable)
    return ParseResult(source, None, diagnostics, PipelineFile(pipelines, good, unread, tuple(reader.lost)))


class _DocumentReader:
    def __init__(self, source: Source, schemas: SchemaReading) -> None:
        self.fields = Fields(source)
        self._schemas = schemas
        self._steps = StepReader(self.fields)
        self._declared: list[Entry] = []
        self._strange = False

    def document(self, node: Node) -> Pipeline | None:
        """Read one document of the file. Return None if it is not a pipeline or has no readable list of steps."""
        report = self.fields.report
        declared = node.find("pipeline") if isinstance(node, Mapping) else None
        if not isinstance(node, Mapping) or declared is None:
            self._strange = True
            self._neither(node)
            return None
        self._declared.append(declared)
        self.fields.dialect = self._dialect(node.find("dialect"))
        planned = [key for key in _PLANNED if key != _INPUT or not self.fields.dialect]
        supported = tuple(entry for entry in node.entries if entry.key.value not in planned)
        for entry in node.entries:
            if entry.key.value in planned:
                help = f"{ADD_DIALECT}; without it {_INSTEAD}" if entry.key.value == _INPUT else _INSTEAD
                report(codes.PLANNED, f"{entry.key.value} is not yet supported", entry.key.span, help)
        document = Mapping(supported, node.span)
        entries = self.fields.entries(document, _KEYS, "a pipeline document", codes.DOCUMENT_KEY, (_INPUT,))
        name = self.fields.name(declared, "the name of a pipeline")
        about = entries.get("description")
        description = self.fields.text(about, "description", empty=True) if about else None
        inputs = read_inputs(entries[_INPUT], self._schemas) if _INPUT in entries else None
        self.fields.diagnostics += inputs.diagnostics if inputs else ()
        if "steps" not in entries:
            report(codes.MISSING, "the pipeline needs the key steps, a list of steps", declared.key.span)
        steps = self._steps.block(entries["steps"]) if "steps" in entries else ()
        if not steps:
            return None
        return Pipeline(
            name or Name("", declared.value.span),
            description or "",
            steps,
            declared.key.span,
            dialect=self.fields.dialect,
            input=inputs.fields if inputs else None,
            input_names=inputs.names if inputs else (),
        )

    @property
    def lost(self) -> list[Step]:
        return self._steps.lost

    def count(self, yaml: YamlReading, registered: bool) -> None:
        """Report a file without pipeline, with several pipelines that are not registered, or with repeated names."""
        report = self.fields.report
        if not self._declared and not self._strange:
            mixed = any(isinstance(node, Mapping) and node.find("pipeline") for node in yaml.documents)
            if not mixed and not any(diagnostic.code in _NOTHING_TO_READ for diagnostic in yaml.diagnostics):
                report(codes.NO_PIPELINE, "this file has no `pipeline:` document", NOWHERE, _SHAPE)
            return
        first: dict[str, Entry] = {}
        for at, entry in enumerate(self._declared):
            name = text_of(entry.value)
            if at and not registered:
                message = "a file that is run directly holds exactly one pipeline: document, this is another"
                report(codes.SEVERAL, message, entry.key.span, "put each pipeline into a file of its own")
            elif name is not None and first.setdefault(name, entry) is not entry:
                line = yaml.source.position(first[name].key.span.start).line
                message = f"the pipeline {quoted(name)} is declared twice"
                report(codes.DUPLICATE, message, entry.value.span, f"the first is on line {line}")

    def _neither(self, node: Node) -> None:
        message = "a document has the key pipeline or the key schema"
        if not isinstance(node, Mapping):
            self.fields.report(codes.DOCUMENT, f"{message}; this one is {describe(node)}", node.span, _SHAPE)
            return
        keys = [entry.key for entry in node.entries]
        span, help = keys[0].span if keys else node.span, self._instead([key.text for key in keys])
        self.fields.report(codes.DOCUMENT, f"{message}; this one has neither", span, help)

    def _instead(self, keys: list[str]) -> str:
        """Return advice about a document with these keys."""
        for key in keys:
            word, _, name = key.partition(" ")
            if word.lower() == "pipeline" and is_name(name):
                return f"write pipeline: {name}, and steps: on a line of its own that begins in the same column"
        if kind := next((key for key in keys if key in KEYS), ""):
            return f"begin with the lines pipeline: NAME and steps:, then write the step below them as - {kind}: …"
        near = (self.fields.suggestion(key, ("pipeline", "schema")) for key in keys)
        return next(filter(None, near), _ADD_NAME if "steps" in keys else _SHAPE)

    def _dialect(self, entry: Entry | None) -> bool:
        """Tell whether the document asks for the Quire dialect. Without the key, it is in the seed's own language."""
        if entry is None or text_of(entry.value) == _DIALECT:
            return entry is not None
        text = text_of(entry.value)
        place = entry.visible
        message = f"the one dialect is quire, not {self.fields.described(entry.value)}"
        self.fields.report(codes.DIALECT, message, place, fix=word_fix(text or "", (_DIALECT,), place))
        return True


_INSTEAD = "inputs need no declaration: a step reads ctx.NAME"
_ADD_NAME = "begin with a line pipeline: NAME, before steps:"
_SHAPE = "a pipeline document begins with pipeline: NAME, followed by steps:"
