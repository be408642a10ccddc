"""Pipeline cases of the kit that run nothing: reading definitions, inferring inputs, and the gate."""

from __future__ import annotations

from typing import Any

from quire.diagnostics import Severity
from quire.formats.pipeline.check import call_cycles, finder
from quire.formats.pipeline.inline import gate
from quire.formats.pipeline.inputs import inferred_inputs
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.syntax import ParseResult, Pipeline, PipelineFile
from quire.formats.resolver import DocumentResolver
from quire.source import Source


class Loaded(DocumentResolver):
    """Definitions that were loaded together, each from a text of its own."""

    def __init__(self, files: list[PipelineFile]) -> None:
        self._pipelines = {pipeline.name.text: pipeline for file in files for pipeline in file.pipelines}

    def pipeline(self, name: str, caller: Pipeline) -> Pipeline | None:
        return self._pipelines.get(name)


def parse_pipelines(given: dict[str, Any]) -> dict[str, Any]:
    _, error = load_all(given["pipelines"])
    return {"error": error} if error else {"ok": True}


def infer_inputs(given: dict[str, Any]) -> dict[str, Any]:
    files, error = load_all(given["pipelines"])
    return {"error": error} if error else {"inputs": sorted(inferred_inputs(files[0].pipelines[0]))}


def check_gate(given: dict[str, Any]) -> dict[str, Any]:
    reading = parse(Source.of(given["definition"], "definition.yaml"))
    if reading.file is None:
        return {"error": parse_error(reading)}
    refusal = gate(reading.file, given["identity"], given["known_tools"], bool(given.get("shell")))
    if refusal is None:
        return {"ok": True}
    number, dot, rest = refusal.problems[0].path.partition(".")
    path = f"{int(number) - 1}{dot}{rest}"  # the kit counts steps from 0
    return {"error": {"class": "gate", "message": str(refusal), "path": path}}


def load_all(texts: list[str]) -> tuple[list[PipelineFile], dict[str, Any] | None]:
    """The files, and what is wrong with the first that is wrong."""
    files: list[PipelineFile] = []
    for at, text in enumerate(texts):
        reading = parse(Source.of(text, f"{at}.yaml"))
        if reading.file is None:
            return [], parse_error(reading)
        files.append(reading.file)
    loaded = Loaded(files)
    for file in files:
        for names, _ in call_cycles(file.pipelines[0], finder(file, loaded)):
            way = " → ".join([*names, names[0]])
            return [], {"class": "load", "message": f"a pipeline can reach itself: {way}"}
    return files, None


def parse_error(reading: ParseResult) -> dict[str, Any]:
    errors = reading.of(Severity.ERROR)
    in_schemas = all(found.code.id.startswith("PL04") for found in errors)
    message = "\n".join(f"{found.message} {found.help}".strip() for found in errors)
    return {"class": "schema" if in_schemas else "parse", "message": message}
