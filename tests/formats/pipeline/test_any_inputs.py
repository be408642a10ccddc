"""Any declaration is written and read again as it was, and our check agrees with a validator of JSON Schema."""

from __future__ import annotations

import json

import jsonschema_rs
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.depth import depth
from tests.formats.pipeline.test_pipeline_any_text import same_again, texts
from tests.schema.test_schema_agrees import FIELDS, NAMES, VALUES, near

from quire.engine.declared_inputs import complete_declared
from quire.errors import BadInputs
from quire.formats.pipeline.check import check_reading
from quire.formats.pipeline.codes import errors as codes
from quire.formats.pipeline.lower import lower
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.syntax import Name, Pipeline, PipelineFile
from quire.formats.pipeline.write import write
from quire.library.interface import pipeline_schema
from quire.schema import Field, Object, Schema
from quire.source import Source
from quire.values import Value

HEAD = "pipeline: p\ndialect: quire\ninput: {}\nsteps: [{transform: {value: ctx}}]\n"
NAMED = st.sampled_from(["__proto__", "constructor", "null", "on", "pipe", "a-b", "x"])


def file_of(fields: tuple[Field, ...], schemas: tuple[Schema, ...]) -> PipelineFile:
    """A file with these inputs."""
    [plain] = (parse(Source.of(HEAD)).file or PipelineFile((), ())).pipelines
    names = tuple(Name(one.name) for one in fields)
    pipeline = Pipeline(plain.name, "", plain.steps, dialect=True, input=fields, input_names=names)
    return PipelineFile((pipeline,), schemas)


def is_readable(file: PipelineFile) -> bool:
    """Tell whether the reader has nothing against it: generated limits and patterns may be wrong."""
    reading = parse(Source.of(write(file)))
    known = (codes.FIELD_LIMIT, codes.DEFAULT, codes.SCHEMA_CYCLE)
    assert reading.file is not None or any(one.code in known for one in reading.diagnostics), reading.diagnostics
    return reading.file is not None


@st.composite
def declared(draw: st.DrawFn) -> PipelineFile:
    schemas = (Schema("A", draw(FIELDS)), Schema("B", draw(FIELDS)))
    known = {one.name: one for one in schemas}
    fields: list[Field] = []
    for field in (*draw(FIELDS), *draw(FIELDS.map(lambda found: found[:1]))):
        name = draw(NAMES | NAMED)
        if any(one.name == name for one in fields):
            continue
        described = replace(field, name=name, description=draw(texts))
        if draw(st.booleans()):
            described = replace(described, default=draw(near(field.type, known)))
        fields.append(described)
    return file_of(tuple(fields), schemas)


@settings(max_examples=depth(10, 500), deadline=None)
@given(declared())
def test_a_declaration_is_written_as_it_was_read(file: PipelineFile) -> None:
    assume(is_readable(file))
    reading = parse(Source.of(write(file)))
    assert reading.file is not None
    assert reading.file.pipelines[0].input == file.pipelines[0].input
    same_again(reading.file)
    check_reading(reading)


@settings(max_examples=depth(10, 500), deadline=None)
@given(declared(), st.data())
def test_the_check_and_the_schema_for_clients_agree(file: PipelineFile, data: st.DataObject) -> None:
    assume(is_readable(file))
    plan = lower(file, file.pipelines[0])
    fields = plan.declared or ()
    given_values = data.draw(near(Object(fields), dict(plan.schemas)) | st.dictionaries(NAMES, VALUES, max_size=2))
    assume(isinstance(given_values, dict) and all(value is not None for value in given_values.values()))
    assert isinstance(given_values, dict)
    inputs: dict[str, Value] = {str(name): value for name, value in given_values.items()}
    schema = pipeline_schema(plan, file.pipelines[0])
    fits = jsonschema_rs.validator_for(json.loads(json.dumps(schema))).is_valid(inputs)
    try:
        complete = complete_declared(plan, inputs)
    except BadInputs:
        assert not fits
    else:
        assert fits
        assert complete.items() >= inputs.items()
