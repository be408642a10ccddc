"""What the tests of pipelines share: short ways to read a text and to see what was found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from quire.diagnostics import Diagnostic
from quire.formats.pipeline.check import check_reading
from quire.formats.pipeline.lower import lower
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.syntax import Pipeline, PipelineFile, Step
from quire.formats.resolver import DocumentInterface, DocumentResolver
from quire.plan.nodes import Plan
from quire.source import Source
from quire.values import Value


def shown(text: str, found: Iterable[Diagnostic]) -> list[tuple[str, str]]:
    """The code of each finding and the text that it points at."""
    return [(one.code.id, text[one.span.start : one.span.end]) for one in found]


def problems(text: str) -> list[tuple[str, str]]:
    reading = parse(Source.of(text))
    assert (reading.file is None) == any(one.severity == "error" for one in reading.diagnostics)
    return shown(text, reading.diagnostics)


def file_of(text: str, *, registered: bool = False) -> PipelineFile:
    reading = parse(Source.of(text), registered=registered)
    assert reading.file is not None, reading.diagnostics
    return reading.file


def pipeline_of(text: str) -> Pipeline:
    return file_of(text).pipelines[0]


def step_of(text: str) -> Step:
    """The only step of a pipeline, given by what stands after its dash."""
    return pipeline_of(steps(text)).steps[0]


def steps(*texts: str) -> str:
    return "pipeline: p\nsteps:\n" + "".join(f"- {text}\n" for text in texts)


class Workspace(DocumentResolver):
    """Registered pipelines, one a text, and the other documents, the tools and the identities there are."""

    def __init__(
        self,
        *texts: str,
        tools: Collection[str] | None = None,
        parameters: Mapping[str, Mapping[str, Value]] | None = None,
        identities: Collection[str] | None = None,
        documents: Collection[DocumentInterface] = (),
        caps: tuple[int, int] = (0, 0),
        python: Mapping[str, str] | None = None,
    ) -> None:
        """`python` are problems of Python tools by name."""
        files = [file_of(text) for text in texts]
        found = [pipeline for file in files for pipeline in file.pipelines]
        self._plans = {one.name.text: lower(file, one) for file in files for one in file.pipelines}
        self._caps = caps
        self._python = python or {}
        self._pipelines = {pipeline.name.text: pipeline for pipeline in found}
        self._tools = tools
        self._parameters = parameters or {}
        self._identities = identities
        self._documents = {one.name: one for one in documents}

    def pipeline(self, name: str, caller: Pipeline) -> Pipeline | None:
        return self._pipelines.get(name)

    def document(self, name: str) -> DocumentInterface | None:
        return self._documents.get(name)

    def tools(self) -> Collection[str] | None:
        return self._tools

    def parameters(self, tool: str) -> Mapping[str, Value] | None:
        return self._parameters.get(tool)

    def plans(self) -> dict[str, Plan]:
        return self._plans

    def caps(self) -> tuple[int, int]:
        return self._caps

    def python_problem(self, tool: str) -> str:
        return self._python.get(tool, "")

    def identities(self) -> Collection[str] | None:
        return self._identities


def checked(text: str, workspace: DocumentResolver | None = None) -> list[tuple[str, str]]:
    return shown(text, check_reading(parse(Source.of(text)), workspace))


def dialect(*steps: str) -> str:
    """Return a pipeline of the Quire dialect."""
    return "pipeline: p\ndialect: quire\nsteps:\n" + "".join(f"- {step}\n" for step in steps)
